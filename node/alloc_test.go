package node_test

import (
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// TestEncodingAllocatesNothing encodes into a buffer that is large enough, as a journal does.
func TestEncodingAllocatesNothing(t *testing.T) {
	m := newMaker(t)
	first := m.node(node.System{Text: "Be brief."})
	n := m.node(said(t, content.Text{Text: "An answer \"with\" quotes.\n"},
		content.ToolUse{ID: "c", Name: "f", Input: `{"a":1}`}), first)
	want := string(n.Append(nil))

	dst := make([]byte, 0, 2*len(want))
	require.Zero(t, testing.AllocsPerRun(100, func() { dst = n.Append(dst[:0]) }))
	require.Equal(t, want, string(dst))
}

func TestParsingADigestAllocatesNothing(t *testing.T) {
	text := node.Digest{1, 2, 3, 0xab}.String()
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = node.ParseDigest(text) }))
}
