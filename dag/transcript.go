package dag

import (
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// Transcript is a conversation in order, as far as a model is concerned with it. It is what was said, as it was said: package
// api repairs on the way out what a provider would not take.
type Transcript struct {
	// System is the system prompts, in order.
	System []string
	// Tools is the declared tools: each name once, in the order in which names were first declared, with the definition that
	// was declared last.
	Tools []content.Tool
	// Messages is the messages, in order.
	Messages []content.Message
	// Nodes is the nodes that say them: Nodes[i] says Messages[i], or is the first of those that a compaction's summary stands for. It is
	// nil where the transcript was made by hand.
	Nodes []*node.Node
}

// Transcript linearises the conversation, for a model to be asked. In place of the first message that a compaction replaces, its summary
// is said by the user's side, and the others are left out; system prompts and declared tools stay. Where several compactions replace the
// same message the last one holds, and a compaction of nothing that is in the conversation says its summary in its own place. An
// execution whose result no message holds yet (a tool phase cut in half) says its result, so that it is not lost.
//
// Thinking that was thought after something else than what stands before it is marked as stale: see [Transcript.Seen].
func (d DAG) Transcript() Transcript {
	t, thoughts := d.linear()
	t.markStale(thoughts)
	return t
}

// linear returns the transcript as it was said, and which of its messages hold thinking.
func (d DAG) linear() (Transcript, []thought) {
	var thoughts []thought
	nodes := d.Nodes()
	view := viewOf(nodes)
	t := Transcript{
		Messages: slices.Grow([]content.Message(nil), view.messages), Nodes: slices.Grow([]*node.Node(nil), view.messages),
	}
	index := map[string]int{} // of a tool's name in t.Tools
	for _, n := range nodes {
		if stand, replaced := view.replaced[n.ID()]; replaced {
			t.say(n, content.User, stand)
			continue
		}
		switch p := n.Payload().(type) {
		case node.System:
			if p.Text != "" {
				t.System = append(t.System, p.Text)
			}
		case node.Tools:
			for _, def := range p.Defs.Slice() {
				if i, has := index[def.Name]; has {
					t.Tools[i] = def
				} else {
					index[def.Name] = len(t.Tools)
					t.Tools = append(t.Tools, def)
				}
			}
		case node.Message:
			if p.Role == content.Assistant && thinks(p.Blocks) {
				thoughts = append(thoughts, thought{len(t.Messages), p.Answer.Seen})
			}
			t.Messages, t.Nodes = append(t.Messages, content.Message{Role: p.Role, Blocks: p.Blocks}), append(t.Nodes, n)
		case node.ToolExecution:
			if view.open(n) {
				answer, _ := content.Of(answerOf(n)) // its parts were checked when the node was made
				t.say(n, content.User, answer)
			}
		case node.Compaction:
			if !view.placed[n.ID()] {
				t.say(n, content.User, p.Summary)
			}
		}
	}
	return t, thoughts
}

func (t *Transcript) say(n *node.Node, role content.Role, blocks content.Blocks) {
	if blocks.Len() > 0 {
		t.Messages, t.Nodes = append(t.Messages, content.Message{Role: role, Blocks: blocks}), append(t.Nodes, n)
	}
}

// view is what has to be known of all nodes before the first is said.
type view struct {
	replaced map[node.ID]content.Blocks // what is said in place of a node that a compaction replaces; nothing for most
	placed   map[node.ID]bool           // compactions that replace something, so that nothing is said in their own place
	closed   map[node.ID]bool           // executions, and nodes with calls, whose results a message holds
	messages int                        // nodes with messages
}

func viewOf(nodes []*node.Node) view {
	v := view{closed: map[node.ID]bool{}}
	var compactions []*node.Node
	for _, n := range nodes {
		switch p := n.Payload().(type) {
		case node.Compaction:
			compactions = append(compactions, n)
		case node.Message:
			v.messages++
			if p.Role == content.User && holdsResult(p.Blocks) {
				for i := range n.NumParents() {
					v.closed[n.Parent(i).ID()] = true
				}
			}
		}
	}
	if len(compactions) > 0 {
		v.compact(nodes, compactions)
	}
	return v
}

// open reports whether n is an execution whose result no message holds: neither one after it, nor one after the calls.
func (v view) open(n *node.Node) bool {
	return !v.closed[n.ID()] && (n.NumParents() == 0 || !v.closed[n.Parent(0).ID()])
}

func holdsResult(blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		if _, ok := b.(content.ToolResult); ok {
			return true
		}
	}
	return false
}

// compact finds what the compactions, given in order, replace. A later one holds over an earlier one: what both replace is
// replaced by the later, and an earlier one that is replaced itself, or has nothing left to stand for, says nothing.
func (v *view) compact(nodes, compactions []*node.Node) {
	place := make(map[node.ID]int, len(nodes))
	for i, n := range nodes {
		if said(n) {
			place[n.ID()] = i
		}
	}
	v.replaced, v.placed = map[node.ID]content.Blocks{}, map[node.ID]bool{}
	for _, n := range slices.Backward(compactions) {
		c := n.Payload().(node.Compaction)
		first := len(nodes)
		for _, id := range c.Replaced.Slice() {
			i, here := place[id]
			if !here {
				continue
			}
			v.placed[n.ID()] = true
			if _, already := v.replaced[nodes[i].ID()]; !already {
				v.replaced[nodes[i].ID()] = content.Blocks{}
				first = min(first, i)
			}
		}
		if _, gone := v.replaced[n.ID()]; first < len(nodes) && !gone {
			v.replaced[nodes[first].ID()] = c.Summary
		}
	}
}

// said reports whether n is of a kind that a compaction can replace: one that puts messages into the transcript.
func said(n *node.Node) bool {
	switch n.Payload().(type) {
	case node.Message, node.ToolExecution, node.Compaction:
		return true
	}
	return false
}

// asSaid returns the transcript as it was said.
func (d DAG) asSaid() Transcript {
	t, _ := d.linear()
	return t
}

// SystemPrompts returns the system prompts, in order.
func (d DAG) SystemPrompts() []string { return d.asSaid().System }

// ToolDefs returns the declared tools, as in [Transcript].
func (d DAG) ToolDefs() []content.Tool { return d.asSaid().Tools }

// Messages returns the messages, in order, as they were said: to read them. A model is sent those of [DAG.Transcript].
func (d DAG) Messages() []content.Message { return d.asSaid().Messages }
