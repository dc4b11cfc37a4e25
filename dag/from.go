package dag

import (
	"fmt"
	"runtime"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// FromTranscript returns a conversation whose Transcript is t.
//
//   - If a message with role user has results for calls of the message before it, an execution is added for each such
//     result, as after a run.
//   - Tools are declared only: they cannot be executed.
//   - Thinking is taken to be valid in its position, unless it is marked as stale. node.Answer.Seen records the
//     position.
//
// Errors of the chain: ErrEmpty for a message without content, content.ErrTool, and those of node.New.
func FromTranscript(t Transcript) DAG {
	d := New()
	for _, text := range t.System {
		d = d.System(text)
	}
	if len(t.Tools) > 0 {
		d = d.step("FromTranscript", node.Tools{Defs: node.ListOf(t.Tools...)})
	}

	// Keep the lineage: nodes refer to it weakly, and each message extends it.
	var kept *transcriptCache
	for i, m := range t.Messages {
		if m.Blocks.Len() == 0 {
			return d.fail("FromTranscript", fmt.Errorf("message %d: %w", i, ErrEmpty))
		}

		// The executions become heads, and so the parents of the message with their results.
		if m.Role == content.User {
			d = d.fan(m.Blocks)
		}
		var answer node.Answer
		if m.Role == content.Assistant && thinks(m.Blocks) {
			kept, _ = d.lineage()
			if answer.Seen = d.Seen(); isStale(m.Blocks) {
				// Stale thinking must be stale in the new conversation too.
				answer.Seen = unseen
			}
		}
		d = d.step("FromTranscript", node.Message{Role: m.Role, Blocks: m.Blocks, Answer: answer})
	}
	runtime.KeepAlive(kept)
	return d
}

// isStale reports whether blocks hold thinking that is marked as stale.
func isStale(blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		if t, ok := b.(content.Thinking); ok && t.Stale {
			return true
		}
	}
	return false
}

// fan adds an execution for each result in blocks for an open call at the head. Results without a call, and further
// results of the same call, get none.
func (d DAG) fan(blocks content.Blocks) DAG {
	p, ok := d.openPhase()
	if d.err != nil || !ok || d.head == nil {
		return d
	}

	open := make(map[string][]int, len(p.List)) // numbers of the calls without an execution, by ID
	for i := range p.List {
		id := p.Call(i).ID
		open[id] = append(open[id], i)
	}

	// A call ID may be used twice. The first result with the ID belongs to the first call with it, and so on.
	var executions []*node.Node
	for _, result := range blocks.ToolResults() {
		indexes := open[result.CallID]
		if len(indexes) == 0 {
			continue
		}
		open[result.CallID] = indexes[1:]

		e := node.ToolExecution{Index: p.At[indexes[0]], Result: result.Content, IsError: result.IsError}
		if err := p.execute(d.Source(), indexes[0], e); err != nil {
			return d.fail("FromTranscript", err)
		}
		executions = append(executions, p.Done(indexes[0]))
	}
	if len(executions) == 0 {
		return d
	}
	return d.WithHeads(executions...)
}
