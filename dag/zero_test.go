package dag_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

func TestZeroConversationIsEmptyAndCanBeExtended(t *testing.T) {
	var d dag.DAG
	require.Zero(t, d.Len())
	require.Nil(t, d.Head())
	require.Empty(t, d.Validate())
	require.Equal(t, dag.New().Seen(), d.Seen())

	d = d.User("Hello.")
	require.NoError(t, d.Err())
	require.Equal(t, 1, d.Len())
}

func TestZeroArchiveHoldsNodes(t *testing.T) {
	var a dag.NodeSet
	n := dag.New().User("Hello.").Head()
	require.Nil(t, a.Node(n.ID()))
	empty, err := a.DAG(nil, nil)
	require.NoError(t, err)
	require.Zero(t, empty.Len())

	a.Add(n)
	require.Same(t, n, a.Node(n.ID()))
}

func TestZeroReportsAreReadable(t *testing.T) {
	require.Equal(t, "0 nodes out of reach, 0 bytes", dag.Unreached{}.String())
	require.Equal(t, "0 nodes: 0 checked, 0 redacted, 0 unknown, 0 findings; nothing was checked", dag.Verification{}.String())
	require.False(t, dag.Verification{}.OK())
}

func TestZeroDifferenceIsNotEqual(t *testing.T) {
	require.False(t, dag.Difference{}.Equal())
	require.NotEmpty(t, dag.Difference{}.String())
}
