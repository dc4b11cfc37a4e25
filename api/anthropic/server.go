package anthropic

import (
	"strings"
	"unicode"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// place is where a block stands among the messages.
type place struct{ message, block int }

// repair makes of a conversation one that the API accepts. What a look at single blocks cannot find is found between two rounds
// of api.Repair.
func repair(said []content.Message, prefill bool) ([]content.Message, []api.RepairNote) {
	messages, notes := api.Repair(said, rules(prefill))
	for {
		kept, found := prune(messages)
		if len(found) == 0 {
			return messages, notes
		}
		again, more := api.Repair(kept, rules(prefill))
		messages, notes = again, append(append(notes, found...), more...)
	}
}

// prune returns messages without
//
//   - calls of server tools without a result, and results without their call, which the API refuses. A call may wait for its
//     result while the tool calls that it makes itself are answered, and at the end of the conversation;
//   - thinking at the end of an assistant's message;
//   - space in an assistant's message that says nothing else, and at the end of a last one.
//
// It returns no notes when there is nothing to change.
func prune(messages []content.Message) ([]content.Message, []api.RepairNote) {
	drop := map[place]string{}
	unpaired(messages, drop)
	for i, m := range messages {
		if m.Role == content.Assistant {
			silent(i, m, drop)
		}
	}
	kept, notes := without(messages, drop)
	return trimEnd(kept, notes)
}

// pairing finds the calls and results of server tools that do not belong together.
type pairing struct {
	drop map[place]string
	used map[string]bool  // ids of calls
	open map[string]place // calls that wait, by id
}

func unpaired(messages []content.Message, drop map[place]string) {
	p := pairing{drop, map[string]bool{}, map[string]place{}}
	for _, m := range messages {
		for _, call := range m.Blocks.ToolUses() {
			p.used[call.ID] = true
		}
	}
	for i, m := range messages {
		if m.Role == content.Assistant {
			for j, b := range m.Blocks.All() {
				if o, ok := b.(content.Opaque); ok {
					p.look(place{i, j}, o)
				}
			}
			if i+1 < len(messages) {
				p.close(m)
			}
		}
	}
}

func (p *pairing) look(at place, b content.Opaque) {
	if call, ok := serverCallOf(b); ok {
		switch {
		case !call.whole:
			p.drop[at] = "a server tool's call that is not whole"
		case p.used[call.id]:
			p.drop[at] = "a server tool's call whose id was used before"
		default:
			p.used[call.id], p.open[call.id] = true, at
		}
		return
	}
	if id, ok := serverResultOf(b); ok {
		if _, waits := p.open[id]; !waits {
			p.drop[at] = "a server tool's result without its call"
		}
		delete(p.open, id)
	}
}

// close drops the calls that wait at the end of m for anything but the calls that they make themselves.
func (p *pairing) close(m content.Message) {
	waits := map[string]bool{}
	for _, call := range m.Blocks.ToolUses() {
		waits[callerOf(call)] = true
	}
	for id, at := range p.open {
		if !waits[id] {
			p.drop[at] = "a server tool's call without a result"
			delete(p.open, id)
		}
	}
}

// callerOf is the id of the server tool's call that makes the call; "" where the model itself does.
func callerOf(call content.ToolUse) string {
	further := call.Extra.For(API)
	if further == "" {
		return ""
	}
	var extra struct {
		Caller struct {
			ToolID string `json:"tool_id"`
		} `json:"caller"`
	}
	_ = further.Decode(&extra) // what is no caller is none
	return extra.Caller.ToolID
}

// serverCall is a call of a server tool.
type serverCall struct {
	id    string
	whole bool // it has all that the API wants of one
}

func serverCallOf(b content.Opaque) (serverCall, bool) {
	var call struct {
		Type  string  `json:"type"`
		ID    rawJSON `json:"id"`
		Name  rawJSON `json:"name"`
		Input rawJSON `json:"input"`
	}
	if b.JSON.Decode(&call) != nil || !isServerCall(call.Type) {
		return serverCall{}, false
	}
	id, _ := text(content.JSON(call.ID))
	pattern := idPattern
	if call.Type == "server_tool_use" {
		pattern = serverIDPattern
	}
	whole := pattern.MatchString(id) && call.Name.Kind() == '"' && call.Input.Kind() == '{'
	return serverCall{id, whole}, true
}

// serverResultOf returns the id that a server tool's result answers, and whether b is one.
func serverResultOf(b content.Opaque) (string, bool) {
	var result struct {
		Type      string  `json:"type"`
		ToolUseID rawJSON `json:"tool_use_id"`
	}
	if b.JSON.Decode(&result) != nil || !isServerResult(result.Type) {
		return "", false
	}
	id, _ := text(content.JSON(result.ToolUseID))
	return id, true
}

// silent finds space in a message that says nothing else, and thinking that ends a message.
func silent(i int, m content.Message, drop map[place]string) {
	says := false
	for _, b := range m.Blocks.All() {
		t, isText := b.(content.Text)
		_, call := b.(content.ToolUse)
		says = says || call || isText && !blank(t.Text)
	}
	for j, b := range m.Blocks.All() {
		if t, ok := b.(content.Text); ok && !says && blank(t.Text) {
			drop[place{i, j}] = "a text of nothing but space"
		}
	}
	for last := m.Blocks.Len() - 1; last >= 0; last-- {
		if drop[place{i, last}] != "" {
			continue
		}
		if _, thinks := m.Blocks.At(last).(content.Thinking); !thinks {
			return
		}
		drop[place{i, last}] = "thinking at the end of a message"
	}
}

// without returns messages without the blocks in drop.
func without(messages []content.Message, drop map[place]string) ([]content.Message, []api.RepairNote) {
	if len(drop) == 0 {
		return messages, nil
	}
	var notes []api.RepairNote
	kept := make([]content.Message, 0, len(messages))
	for i, m := range messages {
		var blocks []content.Block
		for j, b := range m.Blocks.All() {
			if why := drop[place{i, j}]; why != "" {
				notes = append(notes, api.RepairNote{Kind: api.RepairDropped, Message: i, Detail: why})
			} else {
				blocks = append(blocks, b)
			}
		}
		if len(blocks) == 0 {
			continue
		}
		if len(blocks) < m.Blocks.Len() {
			m.Blocks, _ = content.Of(blocks...) // each was part of a list before
		}
		kept = append(kept, m)
	}
	return kept, notes
}

// trimEnd takes the space from the end of a conversation that ends with the assistant's words, where the API does not want any.
func trimEnd(messages []content.Message, notes []api.RepairNote) ([]content.Message, []api.RepairNote) {
	n := len(messages) - 1
	if n < 0 || messages[n].Role == content.User {
		return messages, notes
	}
	blocks := messages[n].Blocks.Slice()
	last, ok := blocks[len(blocks)-1].(content.Text)
	trimmed := strings.TrimRightFunc(last.Text, unicode.IsSpace)
	if !ok || trimmed == last.Text {
		return messages, notes
	}
	if last.Text = trimmed; trimmed == "" {
		blocks = blocks[:len(blocks)-1]
	} else {
		blocks[len(blocks)-1] = last
	}
	messages = append([]content.Message(nil), messages...)
	messages[n].Blocks, _ = content.Of(blocks...) // each was part of a list before
	return messages, append(notes, api.RepairNote{Kind: api.RepairBlock, Message: n, Detail: "space at the end of the last message"})
}
