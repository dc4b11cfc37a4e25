package dag

import (
	"slices"

	"github.com/plait-dev/plait/node"
)

// Nodes returns every node that the heads reach, in order: depth-first and post-order, parents in their declared order, each
// node once; nodes with the same id are the same. Every node comes after its parents. Conversations that hang on a node (a sub-agent's) are not entered. It needs
// no recursion, and for a conversation without unusual merges no more memory than the result.
func (d DAG) Nodes() []*node.Node {
	if len(d.heads) == 1 {
		return upstream(d.heads[0])
	}
	return postOrder(nil, d.heads)
}

// Len returns the number of nodes that the heads reach.
func (d DAG) Len() int { return len(d.Nodes()) }

// upstream follows single parents and tool fans up to a root, and leaves the rest to postOrder where the graph is not so
// simple.
func upstream(head *node.Node) []*node.Node {
	nodes := make([]*node.Node, 0, head.Depth()+1)
	for n := head; ; {
		nodes = append(nodes, n)
		switch {
		case n.NumParents() == 0:
			slices.Reverse(nodes)
			return nodes
		case n.NumParents() == 1:
			n = n.Parent(0)
		case fanSource(n) != nil:
			for i := n.NumParents() - 1; i >= 0; i-- {
				nodes = append(nodes, n.Parent(i))
			}
			n = fanSource(n)
		default:
			before := postOrder(nil, n.Parents())
			slices.Reverse(nodes)
			return append(before, nodes...)
		}
	}
}

// fanSource is the node that all parents of n have as their only parent, as in a tool phase; or nil.
func fanSource(n *node.Node) *node.Node {
	var source *node.Node
	for i := range n.NumParents() {
		p := n.Parent(i)
		if p.NumParents() != 1 || source != nil && source != p.Parent(0) {
			return nil
		}
		source = p.Parent(0)
	}
	return source
}

// postOrder appends to nodes what the heads reach.
func postOrder(nodes []*node.Node, heads []*node.Node) []*node.Node {
	type visit struct {
		n    *node.Node
		next int // the parent to look at next
	}
	seen := map[node.ID]bool{}
	var stack []visit
	for _, head := range heads {
		if seen[head.ID()] {
			continue
		}
		seen[head.ID()] = true
		stack = append(stack, visit{n: head})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == top.n.NumParents() {
				nodes = append(nodes, top.n)
				stack = stack[:len(stack)-1]
				continue
			}
			p := top.n.Parent(top.next)
			top.next++
			if !seen[p.ID()] {
				seen[p.ID()] = true
				stack = append(stack, visit{n: p})
			}
		}
	}
	return nodes
}

// Node returns the node with that id that the heads reach, or nil.
func (d DAG) Node(id node.ID) *node.Node {
	for _, n := range d.Nodes() {
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
	seen := map[node.ID]bool{}
	stack := slices.Clone(d.heads)
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
	type visit struct {
		n    *node.Node
		deps []*node.Node
	}
	var nodes []*node.Node
	seen := map[node.ID]bool{}
	var stack []visit
	enter := func(n *node.Node) {
		if !seen[n.ID()] {
			seen[n.ID()] = true
			stack = append(stack, visit{n, append(n.Parents(), n.Children().Slice()...)})
		}
	}
	for _, head := range d.heads {
		enter(head)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.deps) == 0 {
				nodes = append(nodes, top.n)
				stack = stack[:len(stack)-1]
				continue
			}
			next := top.deps[0]
			top.deps = top.deps[1:]
			enter(next)
		}
	}
	return nodes
}
