package node_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

func TestNodesAndListsAreNotEncodedAsNothing(t *testing.T) {
	n, err := node.New(node.Source{}, node.System{Text: "Answer briefly."}, node.Meta{})
	require.NoError(t, err)
	data, err := json.Marshal(struct{ At *node.Node }{n})
	require.NoError(t, err)
	require.JSONEq(t, `{"At":`+string(n.Append(nil))+`}`, string(data))

	tools := node.Tools{Defs: node.ListOf(content.Tool{Name: "f"}), Withdrawn: node.ListOf("g", "h")}
	data, err = json.Marshal(tools)
	require.NoError(t, err)
	var read node.Tools
	require.NoError(t, json.Unmarshal(data, &read))
	require.Equal(t, tools, read)

	data, err = json.Marshal(node.List[string]{})
	require.NoError(t, err)
	require.Equal(t, "[]", string(data))

	line := `{"id":"019b7ca9-8c88-7000-8000-000000000001","parents":[],"kind":"planet","time":"2026-01-02T03:04:05Z","body":{"moons":2}}`
	unknown, err := node.Parse([]byte(line), func(node.ID) *node.Node { return nil })
	require.NoError(t, err)
	data, err = json.Marshal(unknown.Payload())
	require.NoError(t, err)
	require.Equal(t, `{"moons":2}`, string(data))
}

func TestNodeIsNotUnmarshaledWithoutItsParents(t *testing.T) {
	var n node.Node
	require.ErrorIs(t, json.Unmarshal([]byte(`{"id":"x"}`), &n), node.ErrParse)
	_, err := json.Marshal(&n)
	require.ErrorIs(t, err, node.ErrPayload)
	require.Error(t, json.Unmarshal([]byte(`["f",1]`), new(node.List[string])))
}
