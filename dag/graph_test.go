package dag_test

import (
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/graph/encoding/dot"
	"gonum.org/v1/gonum/graph/topo"
)

func TestGraphHasTheEdgesOfTheConversation(t *testing.T) {
	told := toldWeather()
	d := told.Join(told.Back(1).User("other"), dag.New().User("root of its own"))
	d = d.User("all")
	g := d.Graph()
	nodes := d.Nodes()
	require.Equal(t, len(nodes), g.Nodes().Len())
	edges := 0
	for i, n := range nodes {
		v, ok := g.Vertex(n)
		require.True(t, ok)
		require.EqualValues(t, i, v.ID())
		require.Same(t, n, v.Node)
		require.Same(t, n, g.At(v.ID()))
		require.Equal(t, v, g.Node(v.ID()))
		require.Equal(t, n.NumParents(), g.To(v.ID()).Len())
		for p := range n.NumParents() {
			edges++
			from, _ := g.Vertex(n.Parent(p))
			require.True(t, g.HasEdgeFromTo(from.ID(), v.ID()))
			require.False(t, g.HasEdgeFromTo(v.ID(), from.ID()))
			require.True(t, g.HasEdgeBetween(v.ID(), from.ID()))
			e := g.Edge(from.ID(), v.ID())
			require.Equal(t, from, e.From())
			require.Equal(t, v, e.To())
			require.Equal(t, v, e.ReversedEdge().From())
		}
		edges -= g.From(v.ID()).Len()
	}
	require.Zero(t, edges, "From and To agree")
	_, err := topo.Sort(g)
	require.NoError(t, err, "it has no cycle")
}

func TestGraphWithoutNodesOrVertices(t *testing.T) {
	g := fresh().User("x").Graph()
	for _, id := range []int64{-1, 1, 1 << 40} {
		require.Nil(t, g.Node(id))
		require.Nil(t, g.At(id))
		require.Zero(t, g.From(id).Len())
		require.Zero(t, g.To(id).Len())
		require.False(t, g.HasEdgeFromTo(id, 0))
		require.False(t, g.HasEdgeFromTo(0, id))
		require.Nil(t, g.Edge(0, id))
	}
	_, ok := g.Vertex(nil)
	require.False(t, ok)
	_, ok = g.Vertex(dag.New().User("y").Head())
	require.False(t, ok)
	require.Zero(t, dag.New().Graph().Nodes().Len())
	require.Nil(t, g.Edge(0, 0))
}

func TestGraphEncodesAsDOT(t *testing.T) {
	text, err := dot.Marshal(fresh().User("x").Assistant("y", content.Text{Text: "z"}).Graph(), "conversation", "", "  ")
	require.NoError(t, err)
	require.Contains(t, string(text), "message_00000001 -> message_00000002;")
}
