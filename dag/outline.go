package dag

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// outline is what [Outline] writes.
type outline struct {
	ids    []node.ID // the nodes to load: first those before the boundary, in order; the compaction is the last
	before int       // the number of nodes before the boundary
	absent []absent  // the nodes that these refer to, to be loaded later; the first is the boundary
	rigid  bool      // view.rigid
}

// absent is a node that is loaded later. The boundary is one that every path to older nodes passes.
type absent struct {
	id    node.ID
	depth int
}

// Outline returns the outline of the conversation that ends in a compaction, and about how many nodes it leaves out. It
// lists the nodes that are needed to continue the conversation: the system prompts, the tools, the messages that are
// still sent, and the newest nodes. A store keeps it beside the compaction, to load a long conversation in part: see
// [NodeSet.Expect]. It is derived from the nodes, and holds none of their content.
//
// It is nil if it would leave out fewer nodes than it lists, or if there are nodes of unknown kinds. Outline loads no
// nodes.
func Outline(compaction *node.Node) (text []byte, leftOut int) {
	o, leftOut := outlineOf(compaction)
	if leftOut < max(1, len(o.ids)) {
		return nil, 0
	}
	return o.append(nil), leftOut
}

func outlineOf(compaction *node.Node) (o outline, leftOut int) {
	nodes, rest := DAG{}.at(compaction).sent()
	view, ok := viewOf(nodes, rest)
	if _, is := compaction.Payload().(node.Compaction); !ok || !is {
		return outline{}, 0
	}

	out := outliner{nodes: nodes, view: view, keep: make([]bool, len(nodes)), alone: len(nodes)}
	out.index = make(map[node.ID]int, len(nodes))
	for i, n := range nodes {
		out.index[n.ID()] = i
	}
	out.keepSent()
	boundary, ok := out.boundary(compaction, rest)
	if !ok || !out.keepCompactions() || !out.children() {
		return outline{}, 0
	}

	o = out.list(boundary)
	o.rigid = view.rigid
	if slices.Contains(o.ids, boundary.ID()) {
		return outline{}, 0 // a child conversation continues the older part of this one
	}
	return o, max(compaction.Depth()+1-len(o.ids), 0)
}

// outliner makes an outline.
type outliner struct {
	nodes []*node.Node    // those of sent
	index map[node.ID]int // of nodes
	view  view            // of nodes
	keep  []bool          // by index: the node is in the outline
	alone int             // the index of the first execution that is sent by itself; len(nodes) for none
	inner []*node.Node    // nodes of child conversations
}

// keepSent keeps the prompts, the tools, and every node with a message in the transcript.
func (o *outliner) keepSent() {
	for i, n := range o.nodes {
		_, hidden := o.view.replaced[n.ID()]
		summary := o.view.by[n.ID()] != nil
		switch n.Payload().(type) {
		case node.System, node.Tools:
			o.keep[i] = true
		case node.Message:
			o.keep[i] = !hidden || summary
		case node.Compaction:
			o.keep[i] = !hidden && !o.view.placed[n.ID()] || summary
		case node.ToolExecution:
			o.keep[i] = summary
			if !hidden && (o.view.sends(n) || o.view.inDoubt(n)) {
				o.alone = min(o.alone, i)
			}
		}
	}
}

// boundary finds the newest node that every path to older nodes passes, with the last replaced node before it or at it.
// It keeps everything after it.
func (o *outliner) boundary(compaction *node.Node, rest *later) (n *node.Node, found bool) {
	last := 0
	for i, n := range o.nodes {
		if _, hidden := o.view.replaced[n.ID()]; hidden {
			last = i
		}
	}

	// The parents of a message that is sent are looked at too, so the first node after the boundary is not sent.
	first := 0 // the index of the first node after the boundary
	replaced := false
	for n = compaction; !found; {
		below, simple := trunk(n)
		if !simple || below == nil {
			return nil, false
		}
		n = below
		if rest != nil && n == rest.boundary {
			first, found = len(rest.before), true
			break
		}

		// Between two turns: what a tool phase shares is loaded together.
		_, compacts := n.Payload().(node.Compaction)
		i := o.index[n.ID()]
		if i <= last && !o.keep[i] && !compacts && !isExecution(n) && !lineage.HasCalls(n) {
			found, replaced = replaced, true
		}
		first = i + 1
	}

	for i := first; i < len(o.nodes); i++ {
		o.keep[i] = true
	}
	return n, o.alone >= first
}

// keepCompactions keeps the compactions that replace a kept node, and one node of those that a kept compaction replaces:
// without any it would have a message of its own. It returns false for a node of an unknown kind, which may refer to any
// node.
func (o *outliner) keepCompactions() bool {
	for more := true; more; {
		more = false
		for i, n := range o.nodes {
			c, is := n.Payload().(node.Compaction)
			if !is {
				continue
			}

			here, kept := -1, false
			for _, id := range c.Replaced.Slice() {
				if at, found := o.index[id]; found && hasMessage(o.nodes[at]) {
					here, kept = at, kept || o.keep[at]
				}
			}
			switch {
			case kept && !o.keep[i]:
				o.keep[i], more = true, true
			case o.keep[i] && !kept && here >= 0:
				o.keep[here], more = true, true
			}
		}
	}
	return !slices.ContainsFunc(o.nodes, isUnknown)
}

// children finds the child conversations of the kept nodes. It returns false if one continues the conversation itself.
func (o *outliner) children() bool {
	var heads []*node.Node
	for i, n := range o.nodes {
		if o.keep[i] {
			heads = append(heads, n.Children().Slice()...)
		}
	}
	if len(heads) == 0 {
		return true
	}

	own, seen := true, map[node.ID]bool{}
	w := walk{}
	o.inner = visit(heads, w.before, func(n *node.Node) bool {
		if _, outside := o.index[n.ID()]; outside || n.Loader() != nil || isUnknown(n) {
			own = false
		}
		if !own || seen[n.ID()] {
			return false
		}
		seen[n.ID()] = true
		return true
	})
	return own
}

// list returns the outline with the kept nodes.
func (o *outliner) list(boundary *node.Node) (list outline) {
	list.absent = []absent{{boundary.ID(), boundary.Depth()}}
	missing := map[node.ID]bool{boundary.ID(): true}
	for i, n := range o.nodes {
		if !o.keep[i] {
			continue
		}

		// Everything after the boundary is kept.
		if n.Depth() < boundary.Depth() {
			list.before++
		}
		list.ids = append(list.ids, n.ID())
		for k := range n.NumParents() {
			p := n.Parent(k)
			if at, here := o.index[p.ID()]; (!here || !o.keep[at]) && !missing[p.ID()] {
				missing[p.ID()] = true
				list.absent = append(list.absent, absent{p.ID(), p.Depth()})
			}
		}
	}

	// The nodes of child conversations come between the two parts.
	inner := make([]node.ID, len(o.inner))
	for i, n := range o.inner {
		inner[i] = n.ID()
	}
	list.ids = slices.Insert(list.ids, list.before, inner...)
	return list
}

func isUnknown(n *node.Node) bool {
	_, is := n.Payload().(node.Unknown)
	return is
}

// later returns the nodes that those of the outline refer to, and that are loaded later.
func (o outline) later() []node.ID {
	ids := make([]node.ID, len(o.absent))
	for i, a := range o.absent {
		ids[i] = a.id
	}
	return ids
}

// outlineVersion is the first byte of an outline.
const outlineVersion = 1

// append appends the outline in its saved form: a byte for the version, one that is 1 if rigid, the number of nodes
// before the boundary, of all nodes and of absent ones, each in 4 bytes, the highest first, the IDs of the nodes, and the
// ID and depth of each absent node.
func (o outline) append(dst []byte) []byte {
	dst = append(dst, outlineVersion, flag(o.rigid))
	for _, n := range []int{o.before, len(o.ids), len(o.absent)} {
		dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	}
	for _, id := range o.ids {
		dst = append(dst, id[:]...)
	}
	for _, a := range o.absent {
		dst = binary.BigEndian.AppendUint32(append(dst, a.id[:]...), uint32(a.depth))
	}
	return dst
}

var errOutline = errors.New("the outline of a compaction is damaged, or of a newer version")

// parseOutline reads the form of append.
func parseOutline(data []byte) (o outline, err error) {
	const head, idSize = 2 + 3*4, len(node.ID{})
	if len(data) < head || data[0] != outlineVersion || data[1] > 1 {
		return outline{}, errOutline
	}
	o.rigid, o.before = data[1] == 1, int(binary.BigEndian.Uint32(data[2:]))
	ids, missing := uint64(binary.BigEndian.Uint32(data[6:])), uint64(binary.BigEndian.Uint32(data[10:]))
	data = data[head:]
	if uint64(len(data)) != ids*uint64(idSize)+missing*uint64(idSize+4) || uint64(o.before) >= ids || missing == 0 {
		return outline{}, errOutline
	}

	for ; len(o.ids) < int(ids); data = data[idSize:] {
		o.ids = append(o.ids, node.ID(data[:idSize]))
	}
	for ; len(data) > 0; data = data[idSize+4:] {
		o.absent = append(o.absent, absent{node.ID(data[:idSize]), int(int32(binary.BigEndian.Uint32(data[idSize:])))})
	}
	return o, nil
}
