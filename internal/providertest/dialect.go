package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
)

// Dialect is an API as random conversations know it: how it is asked, and what is its own in a conversation.
type Dialect struct {
	// API is its name, as blocks of its own have it.
	API string
	// Asked chooses a model, and options that a program can have.
	Asked func(w *World) Asked
	// Waits reports whether a repaired conversation has a call in it that the API answers itself later, and that is left out when the
	// user speaks before. Nil is an API without such.
	Waits func(repaired []content.Message) bool

	// Thought is thinking as the API gives it, and Thoughts is other thinking that may stand in a conversation.
	Thought  content.Block
	Thoughts []content.Block
	// Extras is further members that any block may have, good and bad, and ToolExtras the same of tools. There may be none.
	Extras, ToolExtras []content.JSON
	// ServerTools is tools that the API runs itself.
	ServerTools []content.JSON
	// Opaque is blocks that only the API knows, good and bad.
	Opaque []content.JSON
	// Served is a turn in which the API ran a tool of its own. It may break off after each block.
	Served func(w *World) []content.Block
}

// Asked is a way of asking an API: with one model and one set of options.
type Asked struct {
	With  string // what a failure says of it
	Body  func(api.Request) ([]byte, error)
	Check func(body []byte) error
	Rules dialect.Rules
}

// sendable checks what would be sent of the conversation at hand.
func (w *World) sendable() error {
	t := w.d.Transcript()
	req := api.Request{System: t.System, Tools: t.Tools, Messages: t.Messages}
	asked := w.dialect.Asked(w)
	body, err := asked.Body(req)
	if errors.Is(err, api.ErrNothing) {
		return saysNothing(req)
	}
	if err != nil {
		return err
	}
	if err := asked.Check(body); err != nil {
		w.tell("with %s\nsent %s", asked.With, body)
		return err
	}
	if !w.One(6) {
		return nil
	}
	again, err := asked.Body(unremembered(req))
	if err != nil || !bytes.Equal(body, again) {
		return fmt.Errorf("the same conversation gave other bytes (%v):\n%s\n%s", err, body, again)
	}
	if err := w.dialect.prefixKept(req.Messages, asked.Rules); err != nil {
		return err
	}
	return idempotent(req.Messages, asked.Rules)
}

// unremembered is the same request, of which nothing is remembered.
func unremembered(req api.Request) api.Request {
	messages := make([]content.Message, len(req.Messages))
	for i, m := range req.Messages {
		messages[i] = content.Message{Role: m.Role}
		messages[i].Blocks, _ = content.Of(m.Blocks.Slice()...)
	}
	req.Messages = messages
	return req
}

// prefixKept makes sure that a conversation that goes on is sent with the beginning that was sent before, so that prompt caches
// and signatures hold. Its last message may have grown, and the answers before that may have come.
func (d *Dialect) prefixKept(messages []content.Message, rules dialect.Rules) error {
	once, _ := dialect.Repair(messages, rules)
	if d.Waits != nil && d.Waits(once) {
		return nil
	}
	longer, _ := dialect.Repair(append(messages[:len(messages):len(messages)],
		content.Message{Role: content.Assistant, Blocks: content.Words("x")}, content.Message{Role: content.User, Blocks: content.Words("y")}), rules)
	for i := range len(once) - 2 {
		if !same(once[i], longer[i]) {
			return fmt.Errorf("message %d of %d was another before the conversation went on:\n%s\n%s", i, len(once), once[i].Blocks.Append(nil), longer[i].Blocks.Append(nil))
		}
	}
	return nil
}

// saysNothing makes sure that a conversation that is not sent at all says nothing that could be.
func saysNothing(req api.Request) error {
	for _, m := range req.Messages {
		if len(m.Blocks.ToolUses()) > 0 || strings.TrimSpace(m.Blocks.Text()) != "" {
			return errors.New("a conversation that says something is not sent")
		}
	}
	return nil
}

func idempotent(messages []content.Message, rules dialect.Rules) error {
	once, _ := dialect.Repair(messages, rules)
	twice, notes := dialect.Repair(once, rules)
	if len(notes) > 0 {
		return fmt.Errorf("repaired again: %v", notes)
	}
	if len(once) != len(twice) {
		return fmt.Errorf("%d messages became %d", len(once), len(twice))
	}
	for i := range once {
		if !same(once[i], twice[i]) {
			return fmt.Errorf("message %d was repaired again", i)
		}
	}
	return nil
}

func same(a, b content.Message) bool { return a.Role == b.Role && a.Blocks.Equal(b.Blocks) }
