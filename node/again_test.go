package node_test

import (
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func TestAgainCopiesANodeToOtherParents(t *testing.T) {
	src := node.Counting(time.Unix(1, 0))
	made := func(p node.Payload, parents ...*node.Node) *node.Node {
		meta, err := node.Meta{}.With("k", "v")
		require.NoError(t, err)
		n, err := node.New(src, p, meta, parents...)
		require.NoError(t, err)
		return n
	}
	root, other := made(node.System{Text: "a"}), made(node.System{Text: "b"})
	n := made(node.Message{Role: content.User, Blocks: content.Words("x")}, root)
	again, err := n.Again(src, other, root, other)
	require.NoError(t, err)
	require.Equal(t, []*node.Node{other, root}, again.Parents())
	require.Equal(t, n.Payload(), again.Payload())
	require.Equal(t, n.Meta(), again.Meta())
	require.NotEqual(t, n.ID(), again.ID())
	require.NotEqual(t, n.Digest(), again.Digest())
	require.True(t, again.Time().After(n.Time()))
	require.NoError(t, again.Verify())
	same, err := n.Again(src, root)
	require.NoError(t, err)
	require.Equal(t, n.Digest(), same.Digest())
	require.Equal(t, 1, again.Depth())

	unknown, err := node.Parse([]byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"moon","body":{"b":1.0,"a":[]}}`), nil)
	require.NoError(t, err)
	again, err = unknown.Again(src, root)
	require.NoError(t, err)
	require.Equal(t, unknown.Payload(), again.Payload())
	parsed, err := node.Parse(again.Append(nil), func(node.ID) *node.Node { return root })
	require.NoError(t, err)
	require.Equal(t, again.Digest(), parsed.Digest())

	_, err = n.Again(src, nil)
	require.ErrorIs(t, err, node.ErrPayload)
	_, err = n.Again(node.Source{Now: func() time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }})
	require.ErrorIs(t, err, node.ErrPayload)
}
