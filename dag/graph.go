package dag

import (
	"github.com/plait-dev/plait/node"
	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
)

// Graph returns the conversation for the algorithms of gonum, with an edge from each parent to each of its children. It
// never changes, and is safe for concurrent use.
//
// Every node of the graph is a [Vertex]. Its ID is the index of the conversation's node in [DAG.Nodes], from 0. IDs are
// in topological order, and the same in every graph of the same conversation. Child conversations are not included; use
// [FromNode] and Graph for a graph of one.
func (d DAG) Graph() gonum.Directed {
	nodes := d.Nodes()
	g := &directed{
		vertices: make([]gonum.Node, len(nodes)),
		ids:      make(map[node.ID]int64, len(nodes)),
		children: make([][]gonum.Node, len(nodes)),
	}

	// Nodes has parents before their children, so the ID of a parent is known.
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

// Vertex is a node in the result of [DAG.Graph]. The zero value is no vertex and has no methods that work.
type Vertex struct {
	// Node is the conversation's node.
	Node *node.Node
	id   int64
}

// ID returns the ID of the vertex: the index of its node.
func (v Vertex) ID() int64 { return v.id }

// directed is the result of DAG.Graph. All lists are in the order of IDs, but for those of parents.
type directed struct {
	vertices []gonum.Node
	ids      map[node.ID]int64
	children [][]gonum.Node
}

func (g *directed) has(id int64) bool { return id >= 0 && id < int64(len(g.vertices)) }

// Node returns nil if there is no vertex with that ID.
func (g *directed) Node(id int64) gonum.Node {
	if !g.has(id) {
		return nil
	}
	return g.vertices[id]
}

func (g *directed) Nodes() gonum.Nodes { return ordered(g.vertices) }

// From returns the children of a vertex.
func (g *directed) From(id int64) gonum.Nodes {
	if !g.has(id) {
		return gonum.Empty
	}
	return ordered(g.children[id])
}

// To returns the parents of a vertex, in their declared order.
func (g *directed) To(id int64) gonum.Nodes {
	if !g.has(id) {
		return gonum.Empty
	}
	n := g.vertices[id].(Vertex).Node
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

func (g *directed) HasEdgeFromTo(u, v int64) bool {
	for to := g.To(v); to.Next(); {
		if to.Node().ID() == u {
			return true
		}
	}
	return false
}

func (g *directed) HasEdgeBetween(x, y int64) bool {
	return g.HasEdgeFromTo(x, y) || g.HasEdgeFromTo(y, x)
}

// Edge returns nil if u is not a parent of v.
func (g *directed) Edge(u, v int64) gonum.Edge {
	if !g.HasEdgeFromTo(u, v) {
		return nil
	}
	return edge{g.vertices[u], g.vertices[v]}
}

// edge is an edge from a parent to a child.
type edge struct{ from, to gonum.Node }

func (e edge) From() gonum.Node { return e.from }

func (e edge) To() gonum.Node { return e.to }

func (e edge) ReversedEdge() gonum.Edge { return edge{e.to, e.from} }
