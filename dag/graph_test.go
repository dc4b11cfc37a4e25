package dag_test

import (
	"testing"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/graph/topo"
)

func TestGraphHasTheEdgesOfTheConversation(t *testing.T) {
	told := toldWeather()
	d := told.Join(told.Back(1).User("other"), dag.New().User("root of its own"))
	d = d.User("all")
	g := d.Graph()
	nodes := d.Nodes()
	require.Equal(t, len(nodes), g.Nodes().Len())

	index, edges := map[node.ID]int64{}, 0
	for i, n := range nodes {
		id := int64(i)
		index[n.ID()] = id
		require.Same(t, n, g.Node(id).(dag.Vertex).Node)
		require.Equal(t, id, g.Node(id).ID())
		require.Equal(t, n.NumParents(), g.To(id).Len())
		for p := range n.NumParents() {
			edges++
			from := index[n.Parent(p).ID()]
			require.True(t, g.HasEdgeFromTo(from, id))
			require.False(t, g.HasEdgeFromTo(id, from))
			require.True(t, g.HasEdgeBetween(id, from))
			e := g.Edge(from, id)
			require.Equal(t, g.Node(from), e.From())
			require.Equal(t, g.Node(id), e.To())
			require.Equal(t, g.Node(id), e.ReversedEdge().From())
		}
	}
	for id := range g.Nodes().Len() {
		edges -= g.From(int64(id)).Len()
	}
	require.Zero(t, edges, "From and To agree")
	_, err := topo.Sort(g)
	require.NoError(t, err, "it has no cycle")
	require.Zero(t, dag.New().Graph().Nodes().Len())
}

func TestGraphWithoutNodesOrVertices(t *testing.T) {
	g := fresh().User("x").Graph()
	for _, id := range []int64{-1, 1, 1 << 40} {
		require.Nil(t, g.Node(id))
		require.Zero(t, g.From(id).Len())
		require.Zero(t, g.To(id).Len())
		require.False(t, g.HasEdgeFromTo(id, 0))
		require.False(t, g.HasEdgeFromTo(0, id))
		require.Nil(t, g.Edge(0, id))
	}
	require.Nil(t, g.Edge(0, 0))
}
