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
//     result as long as the user's side only answers calls, and at the end of the conversation;
//   - thinking at the end of an assistant's message;
//   - assistant's messages that hold nothing but space, and space at the end of a last one.
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

// unpaired finds the calls and results of server tools that do not belong together.
func unpaired(messages []content.Message, drop map[place]string) {
	open, seen := map[string]place{}, map[string]bool{}
	for i, m := range messages {
		if m.Role == content.User {
			if !onlyResults(m) {
				closeAll(open, drop)
			}
			continue
		}
		for j, b := range m.Blocks.All() {
			o, ok := b.(content.Opaque)
			if !ok {
				continue
			}
			id, call, result := serverIDs(o)
			switch _, waits := open[result]; {
			case call && (id == "" || seen[id]):
				drop[place{i, j}] = "a server tool's call whose id is empty or used before"
			case call && !hasArguments(o):
				drop[place{i, j}] = "a server tool's call without an object of arguments"
			case call:
				open[id], seen[id] = place{i, j}, true
			case result != "" && !waits:
				drop[place{i, j}] = "a server tool's result without its call"
			case result != "":
				delete(open, result)
			}
		}
	}
}

func closeAll(open map[string]place, drop map[place]string) {
	for id, at := range open {
		drop[at] = "a server tool's call without a result"
		delete(open, id)
	}
}

func onlyResults(m content.Message) bool {
	return m.Role == content.User && len(m.Blocks.ToolResults()) == m.Blocks.Len()
}

// serverIDs returns the id of a server tool's call, whether the block is one, and the id that a server tool's result answers.
// A result that names no call answers the id "?", which no call has.
func serverIDs(b content.Opaque) (id string, call bool, result string) {
	var ids struct {
		Type      string  `json:"type"`
		ID        rawJSON `json:"id"`
		ToolUseID rawJSON `json:"tool_use_id"`
	}
	if b.JSON.Decode(&ids) != nil {
		return "", false, ""
	}
	switch {
	case isServerCall(ids.Type):
		id, _ = text(content.JSON(ids.ID))
		if !idPattern.MatchString(id) {
			id = ""
		}
		return id, true, ""
	case isServerResult(ids.Type):
		if result, _ = text(content.JSON(ids.ToolUseID)); result == "" {
			result = "?"
		}
	}
	return "", false, result
}

// silent finds what may not end an assistant's message, or be all of it.
func silent(i int, m content.Message, drop map[place]string) {
	last := m.Blocks.Len() - 1
	for ; last >= 0; last-- {
		if drop[place{i, last}] != "" {
			continue
		}
		if _, thinks := m.Blocks.At(last).(content.Thinking); !thinks {
			break
		}
		drop[place{i, last}] = "thinking at the end of a message"
	}
	for j, b := range m.Blocks.All() {
		if t, ok := b.(content.Text); (!ok || !blank(t.Text)) && drop[place{i, j}] == "" {
			return
		}
	}
	for j := range m.Blocks.All() {
		if drop[place{i, j}] == "" {
			drop[place{i, j}] = "a message of nothing but space"
		}
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
