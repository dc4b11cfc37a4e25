package dag

import (
	"math"
	"slices"

	"github.com/plait-dev/plait/node"
)

// Nodes returns every node that the heads reach, in order: depth-first and post-order, parents in their declared order, each
// node once; nodes with the same id are the same. Every node comes after its parents. Conversations that hang on a node (a
// sub-agent's) are not entered. It needs no recursion, and for a conversation without unusual merges no more memory than the
// result.
func (d DAG) Nodes() []*node.Node {
	nodes := make([]*node.Node, 0, d.sizeHint())
	for n := range d.backward {
		nodes = append(nodes, n)
	}
	slices.Reverse(nodes)
	return nodes
}

// sizeHint is a guess at the number of nodes: right for a chain.
func (d DAG) sizeHint() int {
	hint := 0
	for _, h := range d.heads {
		hint = max(hint, h.Depth()+1)
	}
	return hint
}

// Len returns the number of nodes that the heads reach.
func (d DAG) Len() int {
	count := 0
	for range d.backward {
		count++
	}
	return count
}

// backward yields the nodes in the order of Nodes from the last to the first. It looks at no more of the graph than it has to:
// it follows single parents and tool fans towards a root, and puts the rest in order where the graph is not so simple.
func (d DAG) backward(yield func(*node.Node) bool) {
	rest := d.heads
	if len(rest) == 1 {
		n := rest[0]
		for n != nil {
			if !yield(n) {
				return
			}
			below, simple := trunk(n)
			if !simple {
				break
			}
			for i := n.NumParents() - 1; i >= 0 && n.NumParents() > 1; i-- {
				if !yield(n.Parent(i)) {
					return
				}
			}
			n = below
		}
		if n == nil {
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

// trunk is the one node that the conversation before n comes through, but for the fan of a tool phase: the only parent of n, or
// the only parent of all its parents; nil where n is a root. It reports false where there is no such node.
func trunk(n *node.Node) (below *node.Node, simple bool) {
	switch n.NumParents() {
	case 0:
		return nil, true
	case 1:
		return n.Parent(0), true
	}
	for i := range n.NumParents() {
		p := n.Parent(i)
		if p.NumParents() != 1 || below != nil && below != p.Parent(0) {
			return nil, false
		}
		below = p.Parent(0)
	}
	return below, true
}

// postOrder returns what the heads reach, in the order of Nodes.
func postOrder(heads []*node.Node) []*node.Node {
	return postOrderOf(heads, entering(func(*node.Node) bool { return true }))
}

// postOrderOf returns what the heads reach, in the order of Nodes, without the nodes for which enter says no and what only they
// reach. enter is asked once for each head and edge, and must say no to a node it said yes to.
func postOrderOf(heads []*node.Node, enter func(*node.Node) bool) []*node.Node {
	type visit struct {
		n    *node.Node
		next int // the parent to look at next
	}
	var nodes []*node.Node
	var stack []visit
	for _, head := range heads {
		if enter(head) {
			stack = append(stack, visit{n: head})
		}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == top.n.NumParents() {
				nodes = append(nodes, top.n)
				stack = stack[:len(stack)-1]
				continue
			}
			p := top.n.Parent(top.next)
			top.next++
			if enter(p) {
				stack = append(stack, visit{n: p})
			}
		}
	}
	return nodes
}

// Node returns the node with that id that the heads reach, or nil. A recent one is found at once: it looks from the heads
// backward.
func (d DAG) Node(id node.ID) *node.Node {
	for n := range d.backward {
		if n.ID() == id {
			return n
		}
	}
	return nil
}

// Contains reports whether the heads reach n. It looks only at nodes that are deeper than n, so that it costs little for a
// recent one.
func (d DAG) Contains(n *node.Node) bool {
	if n == nil {
		return false
	}
	if len(d.heads) != 1 {
		return slices.Contains(d.heads, n) || reaches(d.heads, n)
	}
	top := d.heads[0]
	for top.Depth() > n.Depth() {
		below, simple := trunk(top)
		if !simple || below.Depth() < n.Depth() { // below is passed: of what is before top, only its parents can be n
			return reaches(top.Parents(), n)
		}
		top = below
	}
	return top.ID() == n.ID()
}

// foreign returns the first of nodes that the heads do not reach; it may be nil. It looks at each node of the conversation once, however
// many nodes are asked about.
func (d DAG) foreign(nodes []*node.Node) (*node.Node, bool) {
	if len(nodes) < 2 {
		for _, n := range nodes {
			return n, !d.Contains(n)
		}
		return nil, false
	}

	missing, lowest := make(map[node.ID]bool, len(nodes)), math.MaxInt
	for _, n := range nodes {
		if n == nil {
			return nil, true
		}
		missing[n.ID()], lowest = true, min(lowest, n.Depth())
	}
	for _, h := range d.heads { // they usually are the heads
		delete(missing, h.ID())
	}
	if len(missing) > 0 {
		postOrderOf(d.heads, entering(func(n *node.Node) bool {
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

// entering returns enter for postOrderOf, asked once for each node.
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

// WithChildren returns every node that the heads reach, and before each node the conversation that hangs on it, to any depth;
// each node once. It is the order in which nodes are saved.
func (d DAG) WithChildren() []*node.Node {
	nodes := d.Nodes()
	if !slices.ContainsFunc(nodes, func(n *node.Node) bool { return n.Children().Len() > 0 }) {
		return nodes
	}
	w := walk{}
	return w.from(d.heads)
}
