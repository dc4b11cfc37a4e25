package dag

import (
	"fmt"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// FromTranscript returns a conversation that says what t says: its Transcript is t. Where a message of the user's side answers calls of
// the message before it, each of these answers has an execution of its own in between, as after a run. Definitions of tools come
// without what runs them. Thinking is taken to hold where it stands, unless it is marked as stale, and is bound to that place by
// node.Answer.Seen. Errors are the chain's: content.ErrTool, and what node.New refuses.
func FromTranscript(t Transcript) DAG {
	d := New()
	for _, text := range t.System {
		d = d.System(text)
	}
	if len(t.Tools) > 0 {
		d = d.step("FromTranscript", node.Tools{Defs: node.ListOf(t.Tools...)})
	}
	thoughts := thoughtsOf(d, t.Messages)
	for i, m := range t.Messages {
		if m.Blocks.Len() == 0 {
			return d.fail("FromTranscript", fmt.Errorf("message %d: %w", i, ErrEmpty))
		}
		if m.Role == content.User {
			d = d.fan(m.Blocks)
		}
		d = d.step("FromTranscript", node.Message{Role: m.Role, Blocks: m.Blocks, Answer: node.Answer{Seen: thoughts[i]}})
	}
	return d
}

// thoughtsOf returns, for the place of each message with thinking, what its model had seen, where front is what stands before all of
// them.
func thoughtsOf(front DAG, messages []content.Message) map[int]node.Digest {
	if !slices.ContainsFunc(messages, func(m content.Message) bool { return thinks(m.Blocks) }) {
		return nil
	}
	thoughts := map[int]node.Digest{}
	seen := front.Transcript().front()
	for i, m := range messages {
		if m.Role == content.Assistant && thinks(m.Blocks) {
			thoughts[i] = seen
			if isStale(m.Blocks) {
				thoughts[i] = unseen
			}
		}
		seen = goOn(seen, m)
	}
	return thoughts
}

func isStale(blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		if t, ok := b.(content.Thinking); ok && t.Stale {
			return true
		}
	}
	return false
}

// fan puts an execution between the calls at the head and each result that answers one of them. A result of no call has none, and so
// has a further one of the same call.
func (d DAG) fan(blocks content.Blocks) DAG {
	p, ok := d.openPhase()
	if d.err != nil || !ok || len(d.heads) != 1 {
		return d
	}

	open := make(map[string][]int, len(p.calls)) // calls that have no execution yet, by id
	for i, call := range p.calls {
		open[call.ID] = append(open[call.ID], i)
	}

	var ends []*node.Node
	for _, result := range blocks.ToolResults() {
		waiting := open[result.CallID]
		if len(waiting) == 0 {
			continue
		}
		open[result.CallID] = waiting[1:]
		e := node.ToolExecution{Index: waiting[0], Result: result.Content, IsError: result.IsError}
		if err := p.execute(d.Source(), e); err != nil {
			return d.fail("FromTranscript", err)
		}
		ends = append(ends, p.done[e.Index])
	}
	if len(ends) == 0 {
		return d
	}
	return d.WithHeads(ends...)
}
