package node_test

import (
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/racetest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// kept keeps results, so that the compiler does not leave out what makes them.
var kept *node.Node

// TestNewAllocatesOneNode makes nodes of clean payloads, which are kept as they are given.
func TestNewAllocatesOneNode(t *testing.T) {
	racetest.SkipCounting(t)
	first, err := node.New(node.Source{}, user("one"), node.Meta{})
	require.NoError(t, err)

	for _, p := range payloads(t) {
		bytes := allocated(1000, func() { kept, err = node.New(node.Source{}, p, node.Meta{}, first) })
		require.NoError(t, err)
		if _, tools := p.(node.Tools); !tools { // its names are compared in a map
			require.LessOrEqual(t, bytes, 1.05, "%T", p)
		}
	}
}

// allocated returns the allocations of one call of do.
func allocated(runs int, do func()) float64 { return testing.AllocsPerRun(runs, do) }

// TestFirstEncodingAllocatesNothing encodes nodes into a buffer that is large enough, as a journal does.
func TestFirstEncodingAllocatesNothing(t *testing.T) {
	racetest.SkipCounting(t)
	m := newMaker(t)
	first := m.node(node.System{Text: "Be brief."})
	p := said(t, content.Text{Text: "An answer \"with\" quotes.\n"}, content.ToolUse{ID: "c", Name: "f", Input: `{"a":1}`})
	nodes := make([]*node.Node, 102)
	for i := range nodes {
		nodes[i] = m.node(p, first)
	}

	dst, next := make([]byte, 0, 1000), 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		dst = nodes[next].Append(dst[:0])
		next++
	}))
	require.Equal(t, string(nodes[next-1].Append(nil)), string(dst))
}

// TestNodeRemembersItsSecondEncoding encodes a node several times. All encodings are the same, and from the third on
// they are copies.
func TestNodeRemembersItsSecondEncoding(t *testing.T) {
	racetest.SkipCounting(t)
	m := newMaker(t)
	for _, dst := range [][]byte{nil, append(make([]byte, 0, 1000), "before "...)} {
		n := m.node(node.Tools{Defs: node.ListOf(content.Tool{Name: "f", Schema: `{"type":"object"}`})})
		want := string(n.Append(nil))
		before := string(dst)
		dst = n.Append(dst)
		require.Equal(t, before+want, string(dst))
		require.Equal(t, want, string(n.Append(nil)))
		require.Zero(t, testing.AllocsPerRun(100, func() { dst = n.Append(dst[:0]) }))
	}
}
