package viz

import (
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// outline is a conversation as it is drawn: every node once, numbered in reading order, the conversations of sub-agents
// right after the nodes they hang on.
type outline struct {
	vertices []vertex
	groups   []group
	heads    int // of the outermost conversation
	// focus is the vertex that is drawn with what is around it, or none; left then says of each vertex whether it is left out.
	focus int
	left  []leftOut
}

// vertex is one node. Numbers of vertices and groups are their places in the outline.
type vertex struct {
	node    *node.Node
	parents []int
	kids    []int // in number order
	group   int   // the conversation it belongs to; none for the outermost
	hangs   int   // the group that hangs on it, or none
	also    []int // heads of a hanging conversation that is drawn elsewhere
	head    int   // 1 for the first head of its conversation, 2 for the second …; 0 for other nodes
}

// group is a conversation that hangs on a vertex: a sub-agent's, mostly. It has at least one vertex.
type group struct {
	title string
	owner int // the vertex it hangs on
	outer int // the group it lies in, or none
	first int // its vertices, and those of the groups in it, are first … last
	last  int
	heads int
	// entries are its own vertices that have no parent in it.
	entries []int
	// low … high are its vertices and all that they have an edge to.
	low, high int
	// shared says that its nodes have edges to nodes outside of it.
	shared bool
}

const none = -1

// outlineOf returns the outline of the graph under heads.
func outlineOf(heads []*node.Node) *outline {
	o := &outline{heads: len(heads), focus: none}
	number := o.number(heads)
	for i := range o.vertices {
		v := &o.vertices[i]
		for p := range v.node.NumParents() {
			parent := number[v.node.Parent(p).ID()]
			v.parents = append(v.parents, parent)
			o.vertices[parent].kids = append(o.vertices[parent].kids, i)
		}
		if v.hangs == none {
			for _, h := range dag.FromNode(v.node).Heads() {
				v.also = append(v.also, number[h.ID()])
			}
		}
	}
	o.connect()
	return o
}

// conversation is one whose nodes are being numbered.
type conversation struct {
	rest  []*node.Node // that have no number yet, in reading order
	rank  map[node.ID]int
	group int
}

// open takes the nodes under heads that no other conversation has taken: they have no number yet, but stand in the map.
func open(heads []*node.Node, group int, number map[node.ID]int) conversation {
	c := conversation{rest: walk(heads, number), group: group}
	if len(c.rest) == 0 {
		return c
	}
	c.rank = map[node.ID]int{}
	for i, h := range slices.Backward(heads) {
		c.rank[h.ID()] = i + 1
	}
	for _, n := range c.rest {
		number[n.ID()] = none
	}
	return c
}

// number fills in the vertices and groups, and returns the number of each node, by its id. A node that several conversations share
// belongs to the outermost, and there to the first.
func (o *outline) number(heads []*node.Node) map[node.ID]int {
	number := map[node.ID]int{}
	stack := []conversation{open(heads, none, number)} // the innermost last
	for len(stack) > 0 {
		c := &stack[len(stack)-1]
		if len(c.rest) == 0 {
			if c.group != none {
				o.groups[c.group].last = len(o.vertices) - 1
			}
			stack = stack[:len(stack)-1]
			continue
		}
		n, i, g := c.rest[0], len(o.vertices), len(o.groups)
		c.rest = c.rest[1:]
		number[n.ID()] = i
		o.vertices = append(o.vertices, vertex{node: n, group: c.group, hangs: none, head: c.rank[n.ID()]})
		hanging := dag.FromNode(n).Heads()
		if inside := open(hanging, g, number); len(inside.rest) > 0 {
			o.vertices[i].hangs = g
			o.groups = append(o.groups, group{title: describe.Of(n).Inside(name), owner: i, outer: c.group, first: i + 1, heads: len(hanging)})
			stack = append(stack, inside)
		}
	}
	return number
}

// walk returns the nodes under heads that are not in seen, parents before children, branches together.
func walk(heads []*node.Node, seen map[node.ID]int) []*node.Node {
	type step struct {
		node *node.Node
		next int // the parent to visit next
	}
	var order []*node.Node
	entered := map[node.ID]bool{}
	for _, h := range heads {
		stack := []step{{node: h}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			n := top.node
			if _, ok := seen[n.ID()]; ok || top.next == 0 && entered[n.ID()] {
				stack = stack[:len(stack)-1]
				continue
			}
			entered[n.ID()] = true
			if top.next < n.NumParents() {
				top.next++
				stack = append(stack, step{node: n.Parent(top.next - 1)})
				continue
			}
			order = append(order, n)
			stack = stack[:len(stack)-1]
		}
	}
	return order
}

// connect finds out of each group where it is entered and whether it is shared.
func (o *outline) connect() {
	for g := range o.groups {
		o.groups[g].low, o.groups[g].high = o.groups[g].first, o.groups[g].last
	}
	for i, v := range o.vertices {
		for _, far := range slices.Concat(v.parents, v.also) {
			o.reach(v.group, far, far)
			o.reach(o.vertices[far].group, i, i)
		}
		inside := func(p int) bool { return o.vertices[p].group == v.group }
		if v.group != none && !slices.ContainsFunc(v.parents, inside) {
			o.groups[v.group].entries = append(o.groups[v.group].entries, i)
		}
	}
	for i := range slices.Backward(o.groups) { // an outer group has a lower number than the groups in it
		g := &o.groups[i]
		g.shared = g.low < g.first || g.high > g.last
		o.reach(g.outer, g.low, g.high)
	}
}

// reach notes that nodes of group g, or of the groups in it, have edges to the vertices low and high.
func (o *outline) reach(g, low, high int) {
	if g != none {
		o.groups[g].low, o.groups[g].high = min(o.groups[g].low, low), max(o.groups[g].high, high)
	}
}

// path returns the groups that lie in the group from and that group to lies in, the outermost first and to last.
func (o *outline) path(from, to int) []int {
	var path []int
	for ; to != from; to = o.groups[to].outer {
		path = append(path, to)
	}
	slices.Reverse(path)
	return path
}
