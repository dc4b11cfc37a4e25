package viz

import (
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// outline is a conversation as it is drawn: every node once, numbered in reading order, the conversations of sub-agents
// right after the nodes they hang on.
type outline struct {
	vertices []vertex
	groups   []group
	heads    int // of the outermost conversation
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
	// shared says that its nodes have edges to nodes outside of it.
	shared bool
}

const none = -1

// outlineOf returns the outline of the graph under heads.
func outlineOf(heads []*node.Node) *outline {
	o := &outline{heads: len(heads)}
	number := o.number(heads)
	for i := range o.vertices {
		v := &o.vertices[i]
		for p := range v.node.NumParents() {
			parent := number[v.node.Parent(p).ID()]
			v.parents = append(v.parents, parent)
			o.vertices[parent].kids = append(o.vertices[parent].kids, i)
			o.markShared(o.vertices[parent].group, v.group)
		}
		if v.hangs == none {
			for _, h := range dag.Open(v.node).Heads() {
				v.also = append(v.also, number[h.ID()])
				o.markShared(v.group, o.vertices[number[h.ID()]].group)
			}
		}
	}
	return o
}

// number fills in the vertices and groups, and returns the number of each node, by its id. A node that several conversations share
// belongs to the outermost, and there to the first.
func (o *outline) number(heads []*node.Node) map[node.ID]int {
	number := map[node.ID]int{}
	var place func(heads []*node.Node, in int)
	place = func(heads []*node.Node, in int) {
		order := walk(heads, number)
		rank := map[node.ID]int{}
		for i, h := range slices.Backward(heads) {
			rank[h.ID()] = i + 1
		}
		for _, n := range order {
			number[n.ID()] = none // taken, before the conversations inside can take it
		}
		for _, n := range order {
			i := len(o.vertices)
			number[n.ID()] = i
			o.vertices = append(o.vertices, vertex{node: n, group: in, hangs: none, head: rank[n.ID()]})
			if inside := dag.Open(n).Heads(); len(walk(inside, number)) > 0 {
				g := len(o.groups)
				o.vertices[i].hangs = g
				o.groups = append(o.groups, group{title: title(n), owner: i, outer: in, first: i + 1, heads: len(inside)})
				place(inside, g)
				o.groups[g].last = len(o.vertices) - 1
			}
		}
	}
	place(heads, none)
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

// markShared notes an edge between two groups: all groups that it leads into or out of are shared.
func (o *outline) markShared(a, b int) {
	for a != b {
		// An outer group has a lower number than the groups in it.
		if a > b {
			o.groups[a].shared = true
			a = o.groups[a].outer
		} else {
			o.groups[b].shared = true
			b = o.groups[b].outer
		}
	}
}

// entries returns the vertices of group g that have no parent in it.
func (o *outline) entries(g int) []int {
	var found []int
	for i := o.groups[g].first; i <= o.groups[g].last; i++ {
		v := &o.vertices[i]
		inside := func(p int) bool { return o.vertices[p].group == g }
		if v.group == g && !slices.ContainsFunc(v.parents, inside) {
			found = append(found, i)
		}
	}
	return found
}
