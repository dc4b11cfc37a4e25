package viz

import (
	"cmp"
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// outline is a conversation in the form for drawing. Every node occurs once, in reading order. The conversation of a
// sub-agent follows the node it belongs to.
type outline struct {
	vertices []vertex
	groups   []group
	heads    int                    // of the outermost conversation
	runs     bool                   // draw each start of a run
	instead  map[node.ID]*node.Node // for each start of a run that is left out, the node before it; nil for none
	refs     map[node.ID][]string   // the names of the refs to each node; nil for none
	waiting  map[node.ID]int        // number of open calls of each message
	working  map[node.ID]bool       // the executions whose background work is open; nil for none
	// full is set for a drawing in which every node has a box of its own.
	full bool
}

// vertex is one node. Vertices and groups refer to each other by index.
type vertex struct {
	node    *node.Node
	number  int // its index in the outline of the whole conversation
	owner   int // the number of the vertex this one's conversation belongs to; none for the outermost
	parents []int
	kids    []int // in ascending order
	group   int   // the conversation around it; none for the outermost
	hangs   int   // the group that belongs to it, or none
	also    []int // the heads of its conversation, if drawn elsewhere
	head    int   // 1 for the first head of its conversation, 2 for the second …; 0 for other nodes
	// sort, grave and failed are computed once because folding reads them often. sort and grave are from the node's
	// description: the sort, and true for a failure. failed is true for a failed node.
	sort   describe.Sort
	grave  bool
	failed bool
}

// group is the conversation of a vertex, usually that of a sub-agent. It has at least one vertex.
type group struct {
	title string
	owner int // the vertex it belongs to
	outer int // the group around it, or none
	first int // first to last are its vertices and the vertices of groups in it
	last  int
	heads int
	// entries are its own vertices without a parent in it.
	entries []int
	// low to high spans its vertices and all vertices with edges to or from them.
	low, high int
	// shared reports whether its nodes have edges to nodes outside of it.
	shared bool
}

const none = -1

// outlineOf returns the outline of d, with the names of refs, and its labeller.
func outlineOf(d dag.DAG, options *Options) (*outline, labeller, error) {
	if err := d.Err(); err != nil {
		return nil, labeller{}, err
	}
	if options == nil {
		options = &Options{}
	}

	o := &outline{runs: options.Runs, full: options.Full}
	for _, r := range d.Refs() {
		for _, h := range r.Heads {
			if o.refs == nil {
				o.refs = map[node.ID][]string{}
			}
			o.refs[h.ID()] = append(o.refs[h.ID()], name(r.Name))
		}
	}
	o.of(d.Heads())
	return o, labeller{
		o, cmp.Or(max(options.LabelLines, 0), 3), cmp.Or(max(options.LabelChars, 0), 120), describe.SeveralModels(o.nodes),
	}, nil
}

// of fills in the outline of the graph under heads.
func (o *outline) of(heads []*node.Node) *outline {
	o.heads, o.waiting = len(heads), shared.Waiting(heads)
	number := o.number(heads)
	open, _ := lineage.OpenWork(o.nodes)
	for _, n := range open {
		if o.working == nil {
			o.working = map[node.ID]bool{}
		}
		o.working[n.ID()] = true
	}

	at := func(n *node.Node) int { return number[cmp.Or(o.instead[n.ID()], n).ID()] }

	for i := range o.vertices {
		v := &o.vertices[i]
		for p := range v.node.NumParents() {
			parent := at(v.node.Parent(p))

			// The node before a start of a run that is left out may be a parent itself.
			if o.instead[v.node.Parent(p).ID()] != nil && slices.Contains(v.parents, parent) {
				continue
			}
			v.parents = append(v.parents, parent)
			o.vertices[parent].kids = append(o.vertices[parent].kids, i)
		}

		// Without a group of its own, the conversation is drawn elsewhere: link to its heads.
		if v.hangs == none {
			for _, h := range dag.FromNode(v.node).Heads() {
				v.also = append(v.also, at(h))
			}
		}
	}

	o.connect()
	return o
}

// refsOf returns the names of the refs to vertex i.
func (o *outline) refsOf(i int) []string { return o.refs[o.vertices[i].node.ID()] }

// conversation is the state of numbering the nodes of one conversation.
type conversation struct {
	rest  []*node.Node    // nodes without a number, in reading order
	rank  map[node.ID]int // the position of each head, from 1
	group int
}

// open claims the unclaimed nodes under heads for a conversation. A claimed node has the number none until it gets its
// own. A start of a run that is left out keeps it.
func (o *outline) open(heads []*node.Node, group int, number map[node.ID]int) conversation {
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
	if !o.runs {
		c.rest = o.withoutStarts(c)
	}
	o.vertices = slices.Grow(o.vertices, len(c.rest))
	return c
}

// withoutStarts returns the nodes of c without the starts of runs that are left out.
func (o *outline) withoutStarts(c conversation) []*node.Node {
	var runs describe.Runs
	return slices.DeleteFunc(c.rest, func(n *node.Node) bool {
		if !runs.LeavesOut(n, c.rank[n.ID()] > 0 || o.refs[n.ID()] != nil) {
			return false
		}
		if o.instead == nil {
			o.instead = map[node.ID]*node.Node{}
		}
		before := n.Parent(0)
		o.instead[n.ID()] = cmp.Or(o.instead[before.ID()], before)
		return true
	})
}

// number fills in the vertices and groups, and returns the index of each node by its ID. A node of several
// conversations belongs to the outermost of them, and there to the first.
func (o *outline) number(heads []*node.Node) map[node.ID]int {
	number := map[node.ID]int{}

	stack := []conversation{o.open(heads, none, number)} // the innermost last
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
		owner := none
		if c.group != none {
			owner = o.groups[c.group].owner
		}
		described := describe.Of(n)
		o.vertices = append(o.vertices, vertex{
			node: n, number: i, owner: owner, group: c.group, hangs: none, head: c.rank[n.ID()],
			sort: described.Sort, grave: described.Grave(), failed: n.Failed(),
		})

		// The nodes of a sub-agent follow its node, so its conversation is numbered next. If other conversations have
		// claimed all of its nodes, it gets no group: outlineOf links to its heads.
		hanging := dag.FromNode(n).Heads()
		if inside := o.open(hanging, g, number); len(inside.rest) > 0 {
			o.vertices[i].hangs = g
			o.groups = append(o.groups, group{
				title: describe.Of(n).Inside(name), owner: i, outer: c.group, first: i + 1, heads: len(hanging),
			})
			stack = append(stack, inside)
		}
	}
	return number
}

// walk returns the nodes under heads, except those in seen. Parents come before children, and each branch is in one
// piece.
func walk(heads []*node.Node, seen map[node.ID]int) []*node.Node {
	type step struct {
		node *node.Node
		next int // the parent to visit next
	}

	// The stack avoids deep recursion in long conversations.
	var order []*node.Node
	entered := map[node.ID]bool{}
	for _, h := range heads {
		stack := []step{{node: h}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			n := top.node

			// next is 0 only on arrival: a node entered before that is in order already.
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

// shownBy returns the call whose box also shows vertex i, the message with its result; none for other vertices. The
// results of several calls have a box of their own, which joins the calls. So has a message that says more, that is a
// head, or that has a ref.
func (o *outline) shownBy(i int) int {
	v := &o.vertices[i]
	if v.sort != describe.Results || len(v.parents) != 1 || v.head > 0 || len(o.refsOf(i)) > 0 || o.full {
		return none
	}
	c := v.parents[0]
	call := &o.vertices[c]
	if call.sort != describe.Call || call.node.NumParents() == 0 || len(call.kids) != 1 || call.group != v.group || v.node.NumParents() != 1 {
		return none
	}
	if m, ok := v.node.Message(); !ok || m.Blocks.Len() != 1 {
		return none
	}
	return c
}

// isSingle reports whether a box shows one node, and perhaps the message with its result.
func (o *outline) isSingle(members []int) bool {
	return len(members) == 1 || len(members) == 2 && o.shownBy(members[1]) == members[0]
}

// connect sets the entries of each group, and whether it is shared.
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

	// Inner groups first: their edges count for the outer group too.
	for i := range slices.Backward(o.groups) {
		g := &o.groups[i]
		g.shared = g.low < g.first || g.high > g.last
		o.reach(g.outer, g.low, g.high)
	}
}

// reach widens the range of group g, and of no other, to the vertices low and high.
func (o *outline) reach(g, low, high int) {
	if g != none {
		o.groups[g].low, o.groups[g].high = min(o.groups[g].low, low), max(o.groups[g].high, high)
	}
}

// path returns the groups between group from and group to: the outermost first, without from and with to.
func (o *outline) path(from, to int) []int {
	var path []int
	for ; to != from; to = o.groups[to].outer {
		path = append(path, to)
	}
	slices.Reverse(path)
	return path
}

// neighbors returns, for each vertex, the vertices with an edge to it and the vertices it has an edge to.
func (o *outline) neighbors() (up, down [][]int) {
	up, down = make([][]int, len(o.vertices)), make([][]int, len(o.vertices))
	o.arrows(func(from, to int, _ string) {
		up[to] = append(up[to], from)
		down[from] = append(down[from], to)
	})
	return up, down
}

// levels returns the nesting level of each group. The outermost conversation has level 1, so a group has 2 or more.
func (o *outline) levels() []int {
	levels := make([]int, len(o.groups))
	for i, g := range o.groups { // an outer group precedes the groups in it
		levels[i] = 2
		if g.outer != none {
			levels[i] = levels[g.outer] + 1
		}
	}
	return levels
}
