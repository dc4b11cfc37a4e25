package dag

import (
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
}

// Transcript linearises the conversation. In place of the first of the nodes that a compaction replaces, its summary is said
// by the user's side, and the others are left out. An execution that no message closes yet (a tool phase cut in half) says its
// result, so that it is not lost.
func (d DAG) Transcript() Transcript {
	nodes := d.Nodes()
	view := viewOf(nodes)
	var t Transcript
	index := map[string]int{} // of a tool's name in t.Tools
	for _, n := range nodes {
		if stand, replaced := view.replaced[n.ID()]; replaced {
			t.say(content.User, stand)
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
			t.Messages = append(t.Messages, content.Message{Role: p.Role, Blocks: p.Blocks})
		case node.ToolExecution:
			if n.NumParents() == 0 || !view.closed[n.Parent(0)] {
				answer, _ := content.Of(p.Answer()) // its parts were checked when the node was made
				t.say(content.User, answer)
			}
		case node.Compaction:
			if !view.placed[n] {
				t.say(content.User, p.Summary)
			}
		}
	}
	return t
}

func (t *Transcript) say(role content.Role, blocks content.Blocks) {
	if blocks.Len() > 0 {
		t.Messages = append(t.Messages, content.Message{Role: role, Blocks: blocks})
	}
}

// view is what has to be known of all nodes before the first is said.
type view struct {
	replaced map[node.ID]content.Blocks // what is said in place of a node that a compaction replaces; nothing for most
	placed   map[*node.Node]bool        // compactions whose summary stands in place of a node
	closed   map[*node.Node]bool        // nodes with calls whose results a message holds
}

func viewOf(nodes []*node.Node) view {
	v := view{map[node.ID]content.Blocks{}, map[*node.Node]bool{}, map[*node.Node]bool{}}
	for _, n := range nodes {
		m, ok := n.Message()
		if !ok || len(m.Blocks.ToolResults()) == 0 {
			continue
		}
		for _, p := range n.Parents() {
			if p.Kind() == (node.ToolExecution{}).Kind() && p.NumParents() > 0 {
				p = p.Parent(0)
			}
			v.closed[p] = true
		}
	}
	for i := len(nodes) - 1; i >= 0; i-- { // a later compaction holds over an earlier one
		if c, ok := nodes[i].Payload().(node.Compaction); ok {
			v.compact(nodes, nodes[i], c)
		}
	}
	return v
}

func (v view) compact(nodes []*node.Node, n *node.Node, c node.Compaction) {
	ids := map[node.ID]bool{}
	for _, id := range c.Replaced.Slice() {
		ids[id] = true
	}
	_, gone := v.replaced[n.ID()]
	for _, earlier := range nodes {
		if !ids[earlier.ID()] {
			continue
		}
		if _, already := v.replaced[earlier.ID()]; already {
			continue
		}
		v.replaced[earlier.ID()] = content.Blocks{}
		if !v.placed[n] && !gone {
			v.replaced[earlier.ID()] = c.Summary
			v.placed[n] = true
		}
	}
}

// SystemPrompts returns the system prompts, in order.
func (d DAG) SystemPrompts() []string { return d.Transcript().System }

// ToolDefs returns the declared tools, as in [Transcript].
func (d DAG) ToolDefs() []content.Tool { return d.Transcript().Tools }

// Messages returns the messages, in order, as they were said.
func (d DAG) Messages() []content.Message { return d.Transcript().Messages }
