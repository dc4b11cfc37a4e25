package dag

import (
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
)

// walk visits nodes in the order of saving: each after its parents and after its child conversation.
type walk struct {
	known func(*node.Node) bool       // nodes to leave out, with all before them; nil for none
	extra map[*node.Node][]*node.Node // further nodes to visit before a node
	seen  map[node.ID]*node.Node      // the nodes visited by from; one of those with the same ID
	clash error                       // ErrDuplicateID if from has met two different nodes with one ID
	twins bool                        // from has met two values of one node: one of them may be redacted
	same  sameness
}

// sameness compares values of nodes: a conversation may hold one node several times, read from a file or redacted. It
// remembers what it has compared, so that all comparisons together take time in proportion to the nodes.
type sameness struct{ done map[pairOfNodes]bool }

type pairOfNodes struct{ a, b *node.Node }

// of reports whether a and b are one node: with the same ID, content and nodes before them, except that nodes may be
// redacted in one of the two.
func (s *sameness) of(a, b *node.Node) bool {
	pairs := []pairOfNodes{{a, b}}
	for len(pairs) > 0 {
		p := pairs[len(pairs)-1]
		pairs = pairs[:len(pairs)-1]
		if p.a == p.b || s.done[p] {
			continue
		}
		if !memo.SameNode(p.a, p.b) {
			return false
		}
		if s.done == nil {
			s.done = map[pairOfNodes]bool{}
		}
		s.done[p] = true

		// The digests differ after a node that is redacted in one of the two. Otherwise they cover all nodes before.
		if p.a.Digest() == p.b.Digest() && !p.a.Redacted() {
			continue
		}
		for i := range p.a.NumParents() {
			pairs = append(pairs, pairOfNodes{p.a.Parent(i), p.b.Parent(i)})
		}
		for i := range p.a.Children().Len() {
			pairs = append(pairs, pairOfNodes{p.a.Children().At(i), p.b.Children().At(i)})
		}
	}
	return true
}

// from returns every node reachable from the heads, each ID once. It sets seen, clash and twins.
func (w *walk) from(heads []*node.Node) []*node.Node {
	w.seen = map[node.ID]*node.Node{}
	return visit(heads, w.before, func(n *node.Node) bool {
		if old := w.seen[n.ID()]; old != nil {
			w.compare(old, n)
			return false
		}
		if w.known != nil && w.known(n) {
			return false
		}
		w.seen[n.ID()] = n
		return true
	})
}

// visit returns the nodes reachable from the heads, each after the nodes before it, of which before returns the i-th, and
// nil after the last one. It leaves out nodes rejected by enter, and nodes reachable only through those. enter is called
// for each head and each edge, and must reject a node the second time.
func visit(
	heads []*node.Node, before func(n *node.Node, i int) *node.Node, enter func(*node.Node) bool,
) []*node.Node {
	type frame struct {
		n    *node.Node
		next int // index of the next node before n to enter
	}

	// A conversation may be too long for recursion.
	var nodes []*node.Node
	var stack []frame
	for _, head := range heads {
		if enter(head) {
			stack = append(stack, frame{n: head})
		}

		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			n := before(top.n, top.next)
			if n == nil {
				// Everything to visit before this node is in nodes, so it follows.
				nodes = append(nodes, top.n)
				stack = stack[:len(stack)-1]
				continue
			}

			top.next++
			if enter(n) {
				stack = append(stack, frame{n: n})
			}
		}
	}
	return nodes
}

// compare compares two nodes with one ID, and sets clash and twins.
func (w *walk) compare(old, n *node.Node) {
	if old == n {
		return
	}
	w.twins = true
	w.clashes(old, n)
}

// clashes sets clash if the two nodes with one ID differ.
func (w *walk) clashes(old, n *node.Node) {
	if w.clash == nil && !w.same.of(old, n) {
		w.clash = &node.FieldError{ID: n.ID().String(), Field: "id", Err: ErrDuplicateID}
	}
}

// before returns the i-th node to visit before n: first its parents, then the heads of its child conversation, then the
// extra nodes. It returns nil after the last one.
func (w *walk) before(n *node.Node, i int) *node.Node {
	if i < n.NumParents() {
		return n.Parent(i)
	}

	i -= n.NumParents()
	children := n.Children()
	if i < children.Len() {
		return children.At(i)
	}

	if i -= children.Len(); i < len(w.extra[n]) {
		return w.extra[n][i]
	}
	return nil
}
