package anthropic

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// place is the position of a block among the messages.
type place struct{ message, block int }

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.message, other.message), cmp.Compare(p.block, other.block))
}

// change replaces a block; nil drops it. Why is the reason.
type change struct {
	with content.Block
	why  string
}

// prune implements dialect.Rules.Prune. It finds
//
//   - calls of server tools without a result, and results without their call, because the API refuses them. A call may
//     still be open at the end of the conversation, and while its own tool calls are answered. The thinking of a response
//     without the result goes with the call: it is bound to the messages before it;
//   - the caller of a block, if it is a call of a server tool that is not sent;
//   - thinking at the end of an assistant's message;
//   - system messages at the beginning of a conversation, and alone at its end. They become texts;
//   - texts of white space in an assistant's message, and space at the end of a last one. Next to thinking, such
//     a text is kept: the model wrote it between signed blocks, and these must not change.
func prune(messages []content.Message) []dialect.Pruned {
	changes := map[place]change{}
	unpaired(messages, changes)
	for i, m := range messages {
		if m.Role == content.Assistant {
			silent(i, m, changes)
		}
	}

	found := lonely(messages)
	for at, c := range changes {
		found = append(found, dialect.Pruned{Message: at.message, Block: at.block, With: c.with, Why: c.why})
	}

	// The end is trimmed only if nothing is dropped: Prune is called again with the result.
	if len(found) == 0 {
		return trimEnd(messages)
	}
	return found
}

// lonely finds the system messages with no message of the user before them: at the beginning of a conversation, and
// alone at its end.
func lonely(messages []content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	ofSystem := func(i int) {
		for j, b := range messages[i].Blocks.All() {
			o, ok := b.(content.Opaque)
			if !ok || !isSystem(o) {
				return
			}
			as := dialect.Pruned{Message: i, Block: j, Why: "a system message without a message of the user before it"}
			if text, ok := dialect.SystemText(o); ok && !blank(text) {
				as.With = content.Text{Text: text}
			}
			found = append(found, as)
		}
	}

	last := len(messages) - 1
	if last >= 0 && messages[0].Role == content.User {
		ofSystem(0)
	}
	if last > 0 && messages[last].Role == content.User {
		alone := !slices.ContainsFunc(messages[last].Blocks.Slice(), func(b content.Block) bool {
			o, ok := b.(content.Opaque)
			return !ok || !isSystem(o)
		})
		if alone {
			ofSystem(last)
		}
	}
	return found
}

// waits implements dialect.Rules.Waits: a server tool's call may be answered after its own tool calls.
func waits(m content.Message) bool {
	for _, b := range m.Blocks.All() {
		if itemID(b) != "" {
			return true
		}
	}
	return false
}

// itemID implements dialect.Rules.ItemID: the ID of a server tool's call.
func itemID(b content.Block) string {
	o, ok := b.(content.Opaque)
	if !ok || o.API != API {
		return ""
	}
	if call, ok := serverCallOf(o); ok && call.whole {
		return call.id
	}
	return ""
}

// pairing finds the calls and results of server tools without their counterpart.
type pairing struct {
	changes map[place]change
	// The calls without a result so far, by ID.
	open map[string]place
	// The IDs of all calls so far.
	called map[string]bool
	// The thinking that came while a call was open. It is bound to the calls before it, and valid only if they are sent.
	thinking []place
}

// unpaired adds to changes the calls of server tools without a result, with the thinking after them, the results without
// a call, and the blocks whose caller is missing.
func unpaired(messages []content.Message, changes map[place]change) {
	p := pairing{changes: changes, open: map[string]place{}, called: map[string]bool{}}
	for i, m := range messages {
		if m.Role == content.User {
			continue
		}
		for j, b := range m.Blocks.All() {
			p.look(place{i, j}, b)
		}

		// A call may be open at the end of the conversation.
		if i+1 < len(messages) {
			p.close(m, messages[i+1])
		}
	}
}

// look reads the block at a position.
func (p *pairing) look(at place, b content.Block) {
	if _, thinks := b.(content.Thinking); thinks {
		if len(p.open) > 0 {
			p.thinking = append(p.thinking, at)
		}
		return
	}
	if caller, without := callerOf(b); caller != "" && !p.called[caller] {
		p.changes[at] = change{without, "the call of a server tool that made it is not sent"}
	}

	o, ok := b.(content.Opaque)
	if !ok {
		return
	}
	if call, ok := serverCallOf(o); ok {
		if !call.whole {
			p.changes[at] = change{why: "an incomplete call of a server tool"}
			return
		}
		p.open[call.id], p.called[call.id] = at, true
		return
	}

	if id, ok := serverResultOf(o); ok {
		if _, waits := p.open[id]; !waits {
			p.changes[at] = change{why: "a result of a server tool without its call"}
		}
		// The call is no longer open, so a second result of it is dropped.
		delete(p.open, id)
	}
}

// close drops the calls open at the end of m, unless the turn is unfinished: m has tool calls of its own, and the next
// message has nothing but their results. The API then continues its calls together with the results.
func (p *pairing) close(m, next content.Message) {
	if len(p.open) == 0 || len(m.Blocks.ToolUses()) > 0 && onlyResults(next) {
		return
	}

	first := slices.MinFunc(slices.Collect(maps.Values(p.open)), place.compare)
	for _, at := range p.open {
		p.changes[at] = change{why: "a call of a server tool without its result"}
	}
	for _, at := range p.thinking {
		if first.compare(at) < 0 {
			p.changes[at] = change{why: "thinking after a call of a server tool that is left out"}
		}
	}
	clear(p.open)
	p.thinking = nil
}

// callerOf returns the ID of the server tool's call that made a call or a result, and the block without it. The ID is ""
// for a block made by the model.
func callerOf(b content.Block) (id string, without content.Block) {
	call, isCall := b.(content.ToolUse)
	own, _ := b.(content.Opaque)
	members := own.JSON
	if isCall {
		members = call.Extra.For(API)
	}
	if !strings.Contains(string(members), `"caller"`) {
		return "", nil
	}

	list, _ := jsonx.Members(members) // it was checked when the block was made
	caller, rest := jsonx.Take(list, "caller")
	about, _ := jsonx.Members(caller) // none for another value
	id, _, _ = jsonx.TakeText(about, "tool_id")
	if isCall {
		call.Extra.JSON = jsonx.Object(rest)
		return id, call
	}
	own.JSON = jsonx.Object(rest)
	return id, own
}

// serverCall is a call of a server tool.
type serverCall struct {
	id string
	// The call has an ID, a name and arguments in the API's required form.
	whole bool
}

// serverCallOf decodes a call of a server tool, and reports whether b is one.
func serverCallOf(b content.Opaque) (serverCall, bool) {
	// The members are raw: a call with members of other types is still a call, but not whole.
	var call struct {
		Type  string    `json:"type"`
		ID    jsonx.Raw `json:"id"`
		Name  jsonx.Raw `json:"name"`
		Input jsonx.Raw `json:"input"`
	}
	if b.JSON.Decode(&call) != nil || !isServerCall(call.Type) {
		return serverCall{}, false
	}

	id, _ := jsonx.Text(content.JSON(call.ID))
	fit := target().CallID
	if call.Type == "server_tool_use" {
		fit = serverIDPattern()
	}

	whole := fit.MatchString(id) && call.Name.Kind() == '"' && call.Input.Kind() == '{'
	return serverCall{id, whole}, true
}

// serverResultOf returns the call ID in a server tool's result, and reports whether b is one.
func serverResultOf(b content.Opaque) (string, bool) {
	var result struct {
		Type      string    `json:"type"`
		ToolUseID jsonx.Raw `json:"tool_use_id"`
	}
	if b.JSON.Decode(&result) != nil || !isServerResult(result.Type) {
		return "", false
	}

	id, _ := jsonx.Text(content.JSON(result.ToolUseID))
	return id, true
}

// silent finds texts of white space, and thinking at the end of a message.
func silent(i int, m content.Message, changes map[place]change) {
	spoken, thinks := false, false
	for _, b := range m.Blocks.All() {
		t, isText := b.(content.Text)
		_, call := b.(content.ToolUse)
		_, thinking := b.(content.Thinking)
		spoken = spoken || call || isText && !blank(t.Text)
		thinks = thinks || thinking
	}

	for j, b := range m.Blocks.All() {
		// Beside thinking, such a text is kept if the message has something else to send (see prune).
		if t, ok := b.(content.Text); ok && !(spoken && thinks) && blank(t.Text) {
			changes[place{i, j}] = change{why: "a text block of white space"}
		}
	}

	for last := m.Blocks.Len() - 1; last >= 0; last-- {
		// Without the dropped texts, the thinking before them is the end.
		if c, ok := changes[place{i, last}]; ok && c.with == nil {
			continue
		}
		if _, thinks := m.Blocks.At(last).(content.Thinking); !thinks {
			return
		}
		changes[place{i, last}] = change{why: "thinking at the end of a message"}
	}
}

// trimEnd removes the space at the end of a conversation if its last block is a text of the assistant. The API refuses
// such space.
func trimEnd(messages []content.Message) []dialect.Pruned {
	n := len(messages) - 1
	if n < 0 || messages[n].Role == content.User {
		return nil
	}

	at := messages[n].Blocks.Len() - 1
	last, ok := messages[n].Blocks.At(at).(content.Text)
	trimmed := strings.TrimRightFunc(last.Text, unicode.IsSpace)
	if !ok || trimmed == last.Text {
		return nil
	}

	// A text of white space is dropped: With stays nil.
	found := dialect.Pruned{Message: n, Block: at, Why: "white space at the end of the last message"}
	if last.Text = trimmed; trimmed != "" {
		found.With = last
	}
	return []dialect.Pruned{found}
}
