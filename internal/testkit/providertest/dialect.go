package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
)

// Dialect describes an API to the random conversations: how to make requests, and its own kinds of blocks.
type Dialect struct {
	// API is the name of the API, as in its own kinds of blocks.
	API string
	// Asked chooses a model and a set of options. It is nil if no request is checked.
	Asked func(w *World) Asked
	// Model returns a new Turn, for one conversation. It is nil if no model takes part.
	Model func() Turn
	// Waits reports whether a repaired conversation contains a call to be answered later by the API itself. Such a call
	// is dropped if the user speaks first. Nil if the API has no such calls.
	Waits func(repaired []content.Message) bool

	// Others describe the other APIs that a conversation is sent to: its blocks of other APIs are theirs. If there are
	// none, these are made up.
	Others []*Dialect

	// Thought is thinking in the form of the API. Thoughts is other thinking for a conversation.
	Thought  content.Block
	Thoughts []content.Block
	// Extras is further members for any block, valid and invalid. ToolExtras is the same for tools. Both may be empty.
	Extras, ToolExtras []content.JSON
	// ServerTools is tools run by the API itself.
	ServerTools []content.JSON
	// Opaque is blocks in the API's own form, valid and invalid.
	Opaque []content.JSON
	// Served returns the blocks of a turn with a tool run by the API. The turn may be cut after each block.
	Served func(w *World) []content.Block
}

// Turn appends a turn of a model to a conversation: the messages of a run. An error is a failure of the test.
type Turn func(w *World, d dag.DAG) (dag.DAG, error)

// Asked is one model of an API with one set of options.
type Asked struct {
	With  string // names the model and the options in a failure
	Body  func(api.Request) ([]byte, error)
	Check func(body []byte) error
	Rules dialect.Rules
}

// request returns the request for the current conversation.
func (w *World) request() api.Request {
	t := w.d.Transcript()
	return api.Request{System: t.System, Tools: t.Tools, Messages: t.Messages}
}

// check checks the request for the current conversation, and lets a model continue it.
func (w *World) check() error {
	if w.dialect.Asked != nil {
		if err := w.sendable(); err != nil {
			return err
		}
	}
	if w.turn == nil {
		return nil
	}

	d, err := w.turn(w, w.d)
	if err == nil {
		w.d = d
	}
	return err
}

// sendable checks the request for the current conversation.
func (w *World) sendable() error {
	req := w.request()
	asked := w.dialect.Asked(w)
	body, err := asked.Body(req)

	if errors.Is(err, api.ErrNothing) {
		return saysNothing(req)
	}
	if err != nil {
		return err
	}

	if err := asked.Check(body); err != nil {
		w.Logf("with %s\nsent %s", asked.With, body)
		return err
	}

	// The further checks are slow: make them once in six times.
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

// unremembered returns a copy of the request with new blocks: nothing is cached for them.
func unremembered(req api.Request) api.Request {
	messages := make([]content.Message, len(req.Messages))
	for i, m := range req.Messages {
		messages[i] = content.Message{Role: m.Role}
		messages[i].Blocks, _ = content.Of(m.Blocks.Slice()...)
	}
	req.Messages = messages
	return req
}

// prefixKept checks that a longer conversation is sent with the same beginning as before: prompt caches and signatures
// stay valid. Two messages may differ: the last one, because it may have grown, and the one before it, because it may
// have got results.
func (d *Dialect) prefixKept(messages []content.Message, rules dialect.Rules) error {
	// A waiting call is dropped when the user speaks, so the beginning may change.
	once, _ := dialect.Repair(messages, rules)
	if d.Waits != nil && d.Waits(once) {
		return nil
	}

	// The limit on the capacity keeps append from writing into the caller's array.
	longer, _ := dialect.Repair(append(messages[:len(messages):len(messages)],
		content.Message{Role: content.Assistant, Blocks: content.Words("x")},
		content.Message{Role: content.User, Blocks: content.Words("y")}), rules)

	for i := range len(once) - 2 {
		if !same(once[i], longer[i]) {
			return fmt.Errorf("message %d of %d was another before the conversation went on:\n%s\n%s", i, len(once),
				once[i].Blocks.Append(nil), longer[i].Blocks.Append(nil))
		}
	}
	return nil
}

// saysNothing checks a conversation without a request: it must have nothing to send.
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
