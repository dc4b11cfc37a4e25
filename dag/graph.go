package dag

import (
	"cmp"
	"slices"

	"github.com/plait-dev/plait/node"
	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
)

// Graph is a view of a conversation for the algorithms of gonum: a graph.Directed with an edge from each parent to each
// of its children.
//
// The ID of a vertex is the index of its node in [DAG.Nodes], from 0. IDs are in topological order, and the same in
// every view of the same conversation. Child conversations are not included; use [FromNode] and Graph for a view of
// one. A Graph never changes, and is safe for concurrent use. The zero Graph has no vertices.
type Graph struct {
	vertices []gonum.Node
	ids      map[node.ID]int64
	children [][]gonum.Node
}

var _ gonum.Directed = (*Graph)(nil)

// Graph returns a view of the conversation for the algorithms of gonum.
func (d DAG) Graph() *Graph {
	nodes := d.Nodes()
	g := &Graph{
		vertices: make([]gonum.Node, len(nodes)),
		ids:      make(map[node.ID]int64, len(nodes)),
		children: make([][]gonum.Node, len(nodes)),
	}

	// Nodes has parents before their children, so the ID of a parent is known. The children of a vertex get ascending
	// IDs, for the search in HasEdgeFromTo.
	for i, n := range nodes {
		v := Vertex{Node: n, id: int64(i)}
		g.vertices[i], g.ids[n.ID()] = v, v.id
		for p := range n.NumParents() {
			parent := g.ids[n.Parent(p).ID()]
			g.children[parent] = append(g.children[parent], v)
		}
	}
	return g
}

// Vertex is a node in a [Graph]. The zero value is no vertex and has no methods that work.
type Vertex struct {
	// Node is the conversation's node.
	Node *node.Node
	id   int64
}

// ID returns the ID of the vertex: the index of its node.
func (v Vertex) ID() int64 { return v.id }

// DOTID returns the name of the vertex for gonum's encoding of Graphviz DOT.
func (v Vertex) DOTID() string { return v.Node.Kind() + "_" + node.ShortID(v.Node.ID()) }

// Vertex returns the vertex of n, and whether n is in the graph.
func (g *Graph) Vertex(n *node.Node) (Vertex, bool) {
	if n == nil {
		return Vertex{}, false
	}
	id, ok := g.ids[n.ID()]
	if !ok {
		return Vertex{}, false
	}
	return g.vertices[id].(Vertex), true
}

// At returns the conversation's node for a vertex ID, as returned by an algorithm, or nil if there is none.
func (g *Graph) At(id int64) *node.Node {
	if !g.has(id) {
		return nil
	}
	return g.vertices[id].(Vertex).Node
}

func (g *Graph) has(id int64) bool { return id >= 0 && id < int64(len(g.vertices)) }

// Node returns the vertex with that ID, or nil.
func (g *Graph) Node(id int64) gonum.Node {
	if !g.has(id) {
		return nil
	}
	return g.vertices[id]
}

// Nodes returns all vertices, in the order of their IDs.
func (g *Graph) Nodes() gonum.Nodes { return ordered(g.vertices) }

// From returns the children of a vertex, in the order of their IDs.
func (g *Graph) From(id int64) gonum.Nodes {
	if !g.has(id) {
		return gonum.Empty
	}
	return ordered(g.children[id])
}

// To returns the parents of a vertex, in their declared order.
func (g *Graph) To(id int64) gonum.Nodes {
	n := g.At(id)
	if n == nil {
		return gonum.Empty
	}
	parents := make([]gonum.Node, n.NumParents())
	for i := range parents {
		parents[i] = g.vertices[g.ids[n.Parent(i).ID()]]
	}
	return ordered(parents)
}

func ordered(nodes []gonum.Node) gonum.Nodes {
	if len(nodes) == 0 {
		return gonum.Empty
	}
	return iterator.NewOrderedNodes(nodes)
}

// HasEdgeFromTo reports whether u is a parent of v.
func (g *Graph) HasEdgeFromTo(u, v int64) bool {
	if !g.has(u) {
		return false
	}
	_, found := slices.BinarySearchFunc(g.children[u], v, func(child gonum.Node, id int64) int {
		return cmp.Compare(child.ID(), id)
	})
	return found
}

// HasEdgeBetween reports whether one vertex is a parent of the other.
func (g *Graph) HasEdgeBetween(x, y int64) bool {
	return g.HasEdgeFromTo(x, y) || g.HasEdgeFromTo(y, x)
}

// Edge returns the edge from u to v, or nil if u is not a parent of v.
func (g *Graph) Edge(u, v int64) gonum.Edge {
	if !g.HasEdgeFromTo(u, v) {
		return nil
	}
	return edge{g.Node(u), g.Node(v)}
}

// edge is an edge from a parent to a child.
type edge struct{ from, to gonum.Node }

func (e edge) From() gonum.Node { return e.from }

func (e edge) To() gonum.Node { return e.to }

func (e edge) ReversedEdge() gonum.Edge { return edge{e.to, e.from} }
