package dag

import (
	"math"
	"slices"

	"github.com/plait-dev/plait/node"
)

// Nodes returns every node reachable from the heads, each ID once, in order: depth-first and post-order, parents in
// their declared order. Every node comes after its parents. Child conversations, such as that of a sub-agent, are not
// included. Nodes needs no recursion, and without unusual merges no memory beside the result.
func (d DAG) Nodes() []*node.Node {
	nodes := make([]*node.Node, 0, d.sizeHint())
	for n := range d.backward {
		nodes = append(nodes, n)
	}
	slices.Reverse(nodes)
	return nodes
}

// sizeHint estimates the number of nodes. It is exact for a chain.
func (d DAG) sizeHint() int {
	hint := 0
	for _, h := range d.heads() {
		hint = max(hint, h.Depth()+1)
	}
	return hint
}

// Len returns the number of nodes reachable from the heads.
func (d DAG) Len() int {
	count := 0
	for range d.backward {
		count++
	}
	return count
}

// backward yields the nodes in the reverse order of Nodes. It visits as little of the graph as possible: from a single
// head, or from the executions of an open tool phase, it follows single parents and tool fans towards the root, and
// sorts the rest only at another kind of merge.
func (d DAG) backward(yield func(*node.Node) bool) {
	rest := d.heads()
	if below := fanBelow(rest); below != nil {
		for _, h := range slices.Backward(rest) {
			if !yield(h) {
				return
			}
		}
		rest = alone(below)
	}
	if len(rest) == 1 {
		n, more := backAlongTrunk(rest[0], yield)
		if !more {
			return
		}
		rest = n.Parents()
	}

	for _, n := range slices.Backward(postOrder(rest)) {
		if !yield(n) {
			return
		}
	}
}

// fanBelow returns the only parent of all heads if there are several heads, or nil.
func fanBelow(heads []*node.Node) *node.Node {
	if len(heads) < 2 || heads[0].NumParents() != 1 {
		return nil
	}
	below := heads[0].Parent(0)
	for _, h := range heads[1:] {
		if h.NumParents() != 1 || h.Parent(0) != below {
			return nil
		}
	}
	return below
}

// backAlongTrunk yields n and the nodes before it, back to the first node without a trunk. It returns that node, and
// whether there are nodes before it to yield.
func backAlongTrunk(n *node.Node, yield func(*node.Node) bool) (last *node.Node, more bool) {
	for n != nil {
		if !yield(n) {
			return nil, false
		}
		below, simple := trunk(n)
		if !simple {
			return n, true
		}

		// Parents of a merge, such as the executions of a fan, come in reverse order before the node that they share.
		for i := n.NumParents() - 1; i >= 0 && n.NumParents() > 1; i-- {
			if !yield(n.Parent(i)) {
				return nil, false
			}
		}
		n = below
	}
	return nil, false
}

// trunk returns the next node back from n on the trunk: the only parent of n, or the only parent of all its parents, as
// in the fan of a tool phase. All paths from n to the roots pass it. It returns nil for a root, and false if there is
// no such node.
func trunk(n *node.Node) (below *node.Node, simple bool) {
	switch n.NumParents() {
	case 0:
		return nil, true
	case 1:
		return n.Parent(0), true
	}

	// Several parents must all have the same parent, and only that one.
	for i := range n.NumParents() {
		p := n.Parent(i)
		if p.NumParents() != 1 || below != nil && below != p.Parent(0) {
			return nil, false
		}
		below = p.Parent(0)
	}
	return below, true
}

// postOrder returns the nodes reachable from the heads, in the order of Nodes.
func postOrder(heads []*node.Node) []*node.Node {
	return postOrderOf(heads, entering(func(*node.Node) bool { return true }))
}

// postOrderOf returns the nodes reachable from the heads, in the order of Nodes: see visit.
func postOrderOf(heads []*node.Node, enter func(*node.Node) bool) []*node.Node {
	return visit(heads, parentOf, enter)
}

// parentOf returns the i-th parent of n, and nil after the last one.
func parentOf(n *node.Node, i int) *node.Node {
	if i < n.NumParents() {
		return n.Parent(i)
	}
	return nil
}

// Node returns the node with that ID among the nodes reachable from the heads, or nil. It searches from the heads
// backward, so recent nodes are found fast.
func (d DAG) Node(id node.ID) *node.Node {
	for n := range d.backward {
		if n.ID() == id {
			return n
		}
	}
	return nil
}

// Contains reports whether n is reachable from the heads. It visits only nodes deeper than n, so it is fast for recent
// nodes.
func (d DAG) Contains(n *node.Node) bool {
	if n == nil {
		return false
	}
	if d.head == nil {
		return slices.Contains(d.heads(), n) || reaches(d.heads(), n)
	}

	top := d.head
	for top.Depth() > n.Depth() {
		// Without a trunk, search everything. If the trunk skips the depth of n, only a parent of top can be n.
		below, simple := trunk(top)
		if !simple || below.Depth() < n.Depth() {
			return reaches(top.Parents(), n)
		}
		top = below
	}
	return top.ID() == n.ID()
}

// foreign returns the first of nodes that is nil or not reachable from the heads, and whether there is one. It visits
// each node of the conversation at most once.
func (d DAG) foreign(nodes []*node.Node) (*node.Node, bool) {
	// The usual case, a single parent, needs no map.
	if len(nodes) < 2 {
		for _, n := range nodes {
			return n, !d.Contains(n)
		}
		return nil, false
	}

	// A node can be reached only from deeper ones, so the walk need not go below the lowest of nodes.
	missing, lowest := make(map[node.ID]bool, len(nodes)), math.MaxInt
	for _, n := range nodes {
		if n == nil {
			return nil, true
		}
		missing[n.ID()], lowest = true, min(lowest, n.Depth())
	}

	// Usually the nodes are heads, and nothing has to be searched.
	for _, h := range d.heads() {
		delete(missing, h.ID())
	}
	if len(missing) > 0 {
		postOrderOf(d.heads(), entering(func(n *node.Node) bool {
			delete(missing, n.ID())
			return len(missing) > 0 && n.Depth() > lowest
		}))
	}

	at := slices.IndexFunc(nodes, func(n *node.Node) bool { return missing[n.ID()] })
	if at < 0 {
		return nil, false
	}
	return nodes[at], true
}

// entering makes a function for postOrderOf that calls enter once for each node.
func entering(enter func(*node.Node) bool) func(*node.Node) bool {
	seen := map[node.ID]bool{}
	return func(n *node.Node) bool {
		if seen[n.ID()] {
			return false
		}
		seen[n.ID()] = true
		return enter(n)
	}
}

// reaches reports whether n is among the ancestors of the heads.
func reaches(heads []*node.Node, n *node.Node) bool {
	seen := map[node.ID]bool{}
	stack := slices.Clone(heads)
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if top.ID() == n.ID() {
			return true
		}

		// A node is deeper than all nodes before it, so n cannot come before a node of its own depth.
		if top.Depth() <= n.Depth() || seen[top.ID()] {
			continue
		}

		seen[top.ID()] = true
		for i := range top.NumParents() {
			stack = append(stack, top.Parent(i))
		}
	}
	return false
}

// WithChildren returns every node reachable from the heads, and before each node its child conversation, to any depth;
// each node once. Nodes are saved in this order.
func (d DAG) WithChildren() []*node.Node {
	nodes := d.Nodes()
	if !slices.ContainsFunc(nodes, func(n *node.Node) bool { return n.Children().Len() > 0 }) {
		return nodes
	}
	w := walk{}
	return w.from(d.heads())
}
