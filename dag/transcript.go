package dag

import (
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// Transcript is the part of a conversation for a model, in order. It has the content of the nodes unchanged. Package
// api repairs it for a provider when it is sent.
type Transcript struct {
	// System holds the system prompts, in order, without replaced ones (see node.System).
	System []string
	// Tools holds the declared tools without withdrawn ones. Each name occurs once, with its last definition, in the
	// order of the first declarations. A tool that was withdrawn and declared again comes last.
	Tools []content.Tool
	// Messages holds the messages, in order.
	Messages []content.Message
	// Nodes holds the node of each message. For the summary of a compaction, it is the first replaced node. Nodes is
	// nil in a transcript that was made by hand.
	Nodes []*node.Node
}

// Transcript returns the conversation in order, as it is sent to a model.
//
//   - The summary of a compaction is a message with role user, in place of the first message replaced by it. The other
//     replaced messages are left out. System prompts and declared tools stay.
//   - If several compactions replace the same message, the last one counts. A compaction that replaces nothing in the
//     conversation has its summary in its own position.
//   - If a result is in no message (in an incomplete tool phase), its execution becomes a message with the result. A
//     started call without a result gets the text content.OutcomeUnknown once another node follows. Any other execution
//     without a result is left out.
//   - Thinking is marked as stale if it was produced from another transcript than the one before it: see
//     [DAG.Seen].
func (d DAG) Transcript() Transcript {
	p, m := d.lineage()
	t := p.at(m)
	return Transcript{
		System: copied(t.System), Tools: copied(t.Tools), Messages: copied(t.Messages), Nodes: copied(t.Nodes),
	}
}

// copied returns a copy of list, nil for an empty one.
func copied[E any](list []E) []E {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}

// build builds the transcript, without the tools in w, from all nodes.
func (d DAG) build(w without) *transcriptCache {
	nodes, rest := d.sent()
	view, ok := viewOf(nodes, rest)
	if !ok {
		nodes = d.Nodes()
		view, _ = viewOf(nodes, nil)
	}
	p := &transcriptCache{rigid: view.rigid, without: w}
	p.t.Messages, p.t.Nodes = make([]content.Message, 0, view.messages), make([]*node.Node, 0, view.messages)

	var setup setup
	for _, n := range nodes {
		// The first node that a compaction replaces becomes its summary; the others are empty and add nothing.
		if summaryBlocks, replaced := view.replaced[n.ID()]; replaced {
			if summaryBlocks.Len() > 0 {
				p.addSummary(view.by[n.ID()], summary{entry: len(p.t.Messages)})
			}
			p.t.add(n, content.User, summaryBlocks)
			continue
		}

		switch payload := n.Payload().(type) {
		case node.System:
			setup.prompt(payload, n)
		case node.Tools:
			setup.declare(payload, n)
		case node.Message:
			p.t.Messages = append(p.t.Messages, content.Message{Role: payload.Role, Blocks: payload.Blocks})
			p.t.Nodes = append(p.t.Nodes, n)
		case node.ToolExecution:
			if view.sends(n) || view.inDoubt(n) {
				// No message holds the result of this execution, so it is sent by itself.
				result, _ := content.Of(resultOf(n)) // no error: checked when the node was made
				p.t.add(n, content.User, result)
			}
		case node.Compaction:
			// If none of the replaced nodes is in the conversation, the summary has the position of the compaction.
			if !view.placed[n.ID()] {
				p.t.add(n, content.User, payload.Summary)
			} else if s, ok := p.summaries[n.ID()]; ok {
				s.own = len(p.t.Messages)
				p.summaries[n.ID()] = s
			}
		}
	}

	// Any node may replace a prompt or a tool, so these are added after all nodes.
	for i, prompt := range setup.prompts {
		p.prompt(prompt, setup.promptBy[i])
	}
	for i, def := range setup.defs {
		if def.Name != "" {
			p.tool(def, setup.defBy[i])
		}
	}
	p.retired = setup.retired
	p.markStale(0)
	return p
}

// setup collects the system prompts and tools of a conversation, node by node.
type setup struct {
	prompts  []node.System
	promptBy []origin       // the first node with each of the prompts
	defs     []content.Tool // a zero value for a withdrawn tool
	defBy    []origin       // the first node with each of the definitions
	retired  bool           // a prompt or a tool was replaced or withdrawn

	named    map[string]int          // index in prompts of each named prompt
	declared map[string]int          // index in defs of each declared tool
	texts    map[string]origin       // the first node with each text of a prompt
	same     map[content.Tool]origin // the first node with each definition
}

// first returns the origin of key: by, unless there is an earlier one.
func first[K comparable](origins *map[K]origin, key K, by origin) origin {
	if *origins == nil {
		*origins = map[K]origin{}
	}
	if earlier, has := (*origins)[key]; has {
		return earlier
	}
	(*origins)[key] = by
	return by
}

// prompt adds a system prompt, or replaces the one with its name.
func (s *setup) prompt(p node.System, n *node.Node) {
	by := first(&s.texts, p.Text, origin{n: n})
	if i, has := s.named[p.Name]; has {
		s.retired = s.retired || s.prompts[i].Text != p.Text
		s.prompts[i], s.promptBy[i] = p, by
		return
	}

	if s.named == nil {
		s.named = map[string]int{}
	}
	if p.Name != "" {
		s.named[p.Name] = len(s.prompts)
	}
	s.prompts, s.promptBy = append(s.prompts, p), append(s.promptBy, by)
}

// declare removes the tools withdrawn by p, and adds or replaces those defined by p.
func (s *setup) declare(p node.Tools, n *node.Node) {
	for _, name := range p.Withdrawn.Slice() {
		// The entry stays as a gap, so that the other indexes stay valid. A new declaration of the tool comes last.
		if i, has := s.declared[name]; has {
			s.defs[i], s.retired = content.Tool{}, true
			delete(s.declared, name)
		}
	}

	for k, def := range p.Defs.Slice() {
		by := first(&s.same, def, origin{n, k})
		if i, has := s.declared[def.Name]; has {
			s.retired = s.retired || s.defs[i] != def
			s.defs[i], s.defBy[i] = def, by
			continue
		}
		if s.declared == nil {
			s.declared = map[string]int{}
		}
		s.declared[def.Name] = len(s.defs)
		s.defs, s.defBy = append(s.defs, def), append(s.defBy, by)
	}
}

// add appends a message of node n, unless it is empty.
func (t *Transcript) add(n *node.Node, role content.Role, blocks content.Blocks) {
	if blocks.Len() > 0 {
		t.Messages, t.Nodes = append(t.Messages, content.Message{Role: role, Blocks: blocks}), append(t.Nodes, n)
	}
}

// view holds facts about all nodes of a conversation. They are needed before the first message can be written, because
// later nodes replace and close earlier ones.
type view struct {
	replaced map[node.ID]content.Blocks // the blocks in place of each replaced node: the summary, or none
	by       map[node.ID]*node.Node     // for a node replaced by a summary: the compaction
	placed   map[node.ID]bool           // compactions that replace something: they have no message of their own
	closed   map[node.ID]bool           // executions, and nodes with calls, with their results in a message
	followed map[node.ID]bool           // started executions without a result that have a child
	rigid    bool                       // a compaction names a missing or a later node
	messages int                        // number of nodes with messages
}

// viewOf returns the view of nodes in order. If they are those of later.sent, rest is what is loaded later, nil for
// nothing. It returns false if the view depends on the rest.
func viewOf(nodes []*node.Node, rest *later) (view, bool) {
	v := view{closed: map[node.ID]bool{}}
	var compactions []*node.Node

	for _, n := range nodes {
		// A start without a result is in doubt only until a later node settles it.
		for _, p := range startedBefore(n) {
			if v.followed == nil {
				v.followed = map[node.ID]bool{}
			}
			v.followed[p.ID()] = true
		}

		switch p := n.Payload().(type) {
		case node.Compaction:
			compactions = append(compactions, n)
		case node.Message:
			v.messages++

			// The message has the results of its parents, so these are not sent by themselves.
			if p.Role == content.User && holdsResult(p.Blocks) {
				for i := range n.NumParents() {
					v.closed[n.Parent(i).ID()] = true
				}
			}
		}
	}

	return v, len(compactions) == 0 || v.compact(nodes, compactions, rest)
}

// sends reports whether the execution n becomes a message: it has a result, and no message holds it.
func (v view) sends(n *node.Node) bool { return sends(n, v.closed) }

// inDoubt reports whether n is a started execution that will not get a result, because another node follows it.
func (v view) inDoubt(n *node.Node) bool { return v.followed[n.ID()] && !v.closed[n.Parent(0).ID()] }

// startedBefore returns the parents of n that are started executions without a result. (The execution with the result
// is not a child of the start: both are children of the message with the call.)
func startedBefore(n *node.Node) (started []*node.Node) {
	for i := range n.NumParents() {
		p := n.Parent(i)
		if p.Loader() != nil {
			continue // nothing of it is sent: see OutlineOf
		}
		if isUnfinished(p) && lineage.InDoubt(p.Payload().(node.ToolExecution)) && p.NumParents() == 1 {
			started = append(started, p)
		}
	}
	return started
}

// sends reports whether the execution n has a result that is in no message: neither in a child of n, nor in a child of
// the calling node. closed lists the nodes with their results in a message.
func sends(n *node.Node, closed map[node.ID]bool) bool {
	return !isUnfinished(n) && !closed[n.ID()] && (n.NumParents() == 0 || !closed[n.Parent(0).ID()])
}

// holdsResult reports whether blocks hold a tool result.
func holdsResult(blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		if _, ok := b.(content.ToolResult); ok {
			return true
		}
	}
	return false
}

// compact finds the nodes replaced by the compactions, given in order. If two replace the same node, the later one
// counts. An earlier compaction has no message if it is replaced itself, or if later ones replace all of its nodes. It
// returns false if this depends on the rest: see viewOf.
func (v *view) compact(nodes, compactions []*node.Node, rest *later) bool {
	// Only nodes that are messages can be replaced.
	index := make(map[node.ID]int, len(nodes))
	for i, n := range nodes {
		if hasMessage(n) {
			index[n.ID()] = i
		}
	}

	// An outline has what counts of its own compactions. A later one must not replace what the outline leaves out.
	own := 0
	if rest != nil {
		own, v.rigid = 1+slices.Index(compactions, rest.end), rest.outline.rigid
		if !rest.covers(compactions[:own], compactions[own:], index) {
			return false
		}
	}

	// Go backward: the later of two compactions replaces a node first.
	v.replaced, v.placed, v.by = map[node.ID]content.Blocks{}, map[node.ID]bool{}, map[node.ID]*node.Node{}
	for k, n := range slices.Backward(compactions) {
		c := n.Payload().(node.Compaction)
		first := len(nodes)
		for _, id := range c.Replaced.Slice() {
			i, here := index[id]
			v.rigid = v.rigid || k >= own && (!here || i >= index[n.ID()])
			if !here {
				continue
			}

			v.placed[n.ID()] = true
			if _, already := v.replaced[nodes[i].ID()]; !already {
				v.replaced[nodes[i].ID()] = content.Blocks{}
				first = min(first, i)
			}
		}

		// The summary replaces the first node not replaced by a later compaction.
		if _, replaced := v.replaced[n.ID()]; first < len(nodes) && !replaced {
			v.replaced[nodes[first].ID()], v.by[nodes[first].ID()] = c.Summary, n
		}
	}
	return true
}

// hasMessage reports whether a node of this kind can have a message in the transcript. Only these kinds can be
// replaced.
func hasMessage(n *node.Node) bool {
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

// Messages returns the messages, in order, for reading: no thinking is marked as stale. For a model, use
// [DAG.Transcript].
func (d DAG) Messages() []content.Message {
	p, m := d.lineage()
	t := p.at(m)
	messages := copied(t.Messages)

	// The blocks of the nodes have no marks.
	for i, n := range t.Nodes {
		if m, ok := n.Message(); ok && !p.isSummary(i) {
			messages[i].Blocks = m.Blocks
		}
	}
	return messages
}
