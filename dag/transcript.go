package dag

import (
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// Transcript is a conversation in order, as far as a model is concerned with it. It is what was said, as it was said: package
// api repairs on the way out what a provider would not take.
type Transcript struct {
	// System is the system prompts, in order. One that another replaced is not among them: see node.System.
	System []string
	// Tools is the tools that are declared and not withdrawn: each name once, in the order in which names were first declared, with the
	// definition that was declared last. A tool that was withdrawn and declared again comes last.
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
	p, m := d.lineage()
	t := p.at(m)
	return Transcript{System: copied(t.System), Tools: copied(t.Tools), Messages: copied(t.Messages), Nodes: copied(t.Nodes)}
}

// copied returns a copy of list, nil for an empty one.
func copied[E any](list []E) []E {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}

// build returns the transcript without these tools, from all nodes.
func (d DAG) build(w without) *lineage {
	nodes := d.Nodes()
	view := viewOf(nodes)
	p := &lineage{rigid: view.rigid, without: w}
	p.t.Messages, p.t.Nodes = make([]content.Message, 0, view.messages), make([]*node.Node, 0, view.messages)

	var setup setup
	for _, n := range nodes {
		if stand, replaced := view.replaced[n.ID()]; replaced {
			if stand.Len() > 0 {
				p.stand(view.by[n.ID()], standing{entry: len(p.t.Messages)})
			}
			p.t.say(n, content.User, stand)
			continue
		}

		switch payload := n.Payload().(type) {
		case node.System:
			setup.prompt(payload)
		case node.Tools:
			setup.declare(payload)
		case node.Message:
			p.t.Messages, p.t.Nodes = append(p.t.Messages, content.Message{Role: payload.Role, Blocks: payload.Blocks}), append(p.t.Nodes, n)
		case node.ToolExecution:
			if view.open(n) {
				answer, _ := content.Of(resultOf(n)) // its parts were checked when the node was made
				p.t.say(n, content.User, answer)
			}
		case node.Compaction:
			if !view.placed[n.ID()] {
				p.t.say(n, content.User, payload.Summary)
			} else if s, stands := p.summaries[n.ID()]; stands {
				s.own = len(p.t.Messages)
				p.summaries[n.ID()] = s
			}
		}
	}
	// Only now is it known which prompts and tools hold.
	for _, prompt := range setup.prompts {
		p.prompt(prompt)
	}
	for _, def := range setup.tools() {
		p.tool(def)
	}
	p.judge(0)
	return p
}

// setup is the system prompts and tools of a conversation, read node by node.
type setup struct {
	prompts []node.System
	defs    []content.Tool // a withdrawn one is left as a zero value

	named    map[string]int // the index in prompts of each named prompt
	declared map[string]int // the index in defs of each tool that is declared
}

func (s *setup) prompt(p node.System) {
	if p.Name == "" {
		s.prompts = append(s.prompts, p)
		return
	}
	if i, has := s.named[p.Name]; has {
		s.prompts[i] = p
		return
	}
	if s.named == nil {
		s.named = map[string]int{}
	}
	s.named[p.Name] = len(s.prompts)
	s.prompts = append(s.prompts, p)
}

func (s *setup) declare(p node.Tools) {
	for _, name := range p.Withdrawn.Slice() {
		if i, has := s.declared[name]; has {
			s.defs[i] = content.Tool{}
			delete(s.declared, name)
		}
	}
	for _, def := range p.Defs.Slice() {
		if i, has := s.declared[def.Name]; has {
			s.defs[i] = def
			continue
		}
		if s.declared == nil {
			s.declared = map[string]int{}
		}
		s.declared[def.Name] = len(s.defs)
		s.defs = append(s.defs, def)
	}
}

// tools returns the definitions that hold, in order.
func (s *setup) tools() []content.Tool {
	return slices.DeleteFunc(s.defs, func(def content.Tool) bool { return def.Name == "" })
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
	by       map[node.ID]node.ID        // the compaction whose summary stands in place of a node
	rigid    bool                       // a compaction names a node that is not there, or that comes after it
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
	v.replaced, v.placed, v.by = map[node.ID]content.Blocks{}, map[node.ID]bool{}, map[node.ID]node.ID{}
	for _, n := range slices.Backward(compactions) {
		c := n.Payload().(node.Compaction)
		first := len(nodes)
		for _, id := range c.Replaced.Slice() {
			i, here := place[id]
			v.rigid = v.rigid || !here || i >= place[n.ID()]
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
			v.replaced[nodes[first].ID()], v.by[nodes[first].ID()] = c.Summary, n.ID()
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

// SystemPrompts returns the system prompts, in order.
func (d DAG) SystemPrompts() []string {
	p, m := d.lineage()
	return copied(p.at(m).System)
}

// ToolDefs returns the declared tools, as in [Transcript].
func (d DAG) ToolDefs() []content.Tool {
	p, m := d.lineage()
	return copied(p.at(m).Tools)
}

// Messages returns the messages, in order, as they were said: to read them. A model is sent those of [DAG.Transcript].
func (d DAG) Messages() []content.Message {
	p, m := d.lineage()
	t := p.at(m)
	messages := copied(t.Messages)

	// Where thinking was marked as stale, the node has it as it was.
	for i, n := range t.Nodes {
		if said, ok := n.Message(); ok && !p.isSummary(i) {
			messages[i].Blocks = said.Blocks
		}
	}
	return messages
}
