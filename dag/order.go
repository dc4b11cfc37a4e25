package dag

import "github.com/plait-dev/plait/node"

// walk goes through nodes so that each comes after its parents and after the conversation that hangs on it.
type walk struct {
	known func(*node.Node) bool       // nodes to leave out, with all before them; nil for none
	extra map[*node.Node][]*node.Node // nodes that come before one as well
	seen  map[node.ID]*node.Node      // filled by from; a node that was loaded twice is one
	clash error                       // set by from: ErrDuplicateID where two nodes that are not the same have one id
}

// from returns every node that the heads reach, each once.
func (w *walk) from(heads []*node.Node) []*node.Node {
	type visit struct {
		n    *node.Node
		next int // what to enter next: parents first
	}
	var nodes []*node.Node
	var stack []visit
	w.seen = map[node.ID]*node.Node{}
	enter := func(n *node.Node) {
		if old := w.seen[n.ID()]; old != nil {
			w.compare(old, n)
		} else if w.known == nil || !w.known(n) {
			w.seen[n.ID()] = n
			stack = append(stack, visit{n: n})
		}
	}
	for _, head := range heads {
		enter(head)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			n := w.before(top.n, top.next)
			top.next++
			if n != nil {
				enter(n)
				continue
			}
			nodes = append(nodes, top.n)
			stack = stack[:len(stack)-1]
		}
	}
	return nodes
}

// compare notes a clash where two nodes with one id do not say the same.
func (w *walk) compare(old, n *node.Node) {
	if w.clash == nil && old != n && old.Digest() != n.Digest() {
		w.clash = &node.FieldError{ID: n.ID().String(), Field: "id", Err: ErrDuplicateID}
	}
}

// before returns the node that has to come before n at place i: its parents, then its child conversation, then the extra ones;
// nil after the last.
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
