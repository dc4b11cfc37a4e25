package node

import "sync/atomic"

// Loader loads the nodes of [Later]. It is safe for concurrent use.
type Loader interface {
	// Load returns the node with that ID, or nil if it cannot be loaded. It returns the same each time.
	Load(id ID) *Node
}

// Later returns a node that is in a store and not in memory. It has its ID and its depth; everything else is loaded when
// it is first used. If it cannot be loaded, it has no parents and a payload of type [Unknown]. The loader then has to
// report the error elsewhere: package dag does in dag.DAG.Err.
func Later(id ID, depth int, l Loader) *Node {
	n := newNode()
	n.id, n.depth, n.payload = id, int32(depth), &later{loader: l}
	return n
}

// Loader returns the loader of a node that is not loaded yet, or nil for any other node.
func (n *Node) Loader() Loader {
	if l, is := n.payload.(*later); is && l.node.Load() == nil {
		return l.loader
	}
	return nil
}

// later is the payload of a node of Later. [Node.Payload] does not return it.
type later struct {
	Unknown
	loader Loader
	node   atomic.Pointer[Node] // nil until the node is loaded
}

// whole returns the node with all fields set: n itself, or the loaded node of a node of Later.
func (n *Node) whole() *Node {
	if l, is := n.payload.(*later); is {
		return l.loaded(n)
	}
	return n
}

func (l *later) loaded(n *Node) *Node {
	if whole := l.node.Load(); whole != nil {
		return whole
	}
	whole := l.loader.Load(n.id)
	if whole == nil {
		whole = &Node{id: n.id, depth: n.depth, payload: Unknown{body: "null"}}
	}

	// Another goroutine may have loaded it too. All callers get the same node.
	l.node.CompareAndSwap(nil, whole)
	return l.node.Load()
}
