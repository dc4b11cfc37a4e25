package describe_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

func TestAShortNameHasAsManyDigitsAsDistinguishTheNodes(t *testing.T) {
	for _, c := range []struct {
		length int
		ids    []string
	}{
		{8, nil},
		{8, []string{"01890000-0000-7000-8000-00000000000a"}},
		{8, []string{"01890000-0000-7000-8000-00000000000a", "01890000-0000-7000-8000-00000000000b"}},
		{8, []string{"01890000-0000-7000-8000-00000000000a", "01890000-0000-7000-8000-00000000000a"}}, // one node twice
		{9, []string{"01890000-0000-7000-8000-00010000000a", "01890000-0000-7000-8000-00020000000a", "01890000-0000-7000-8000-00000000000b"}},
		{10, []string{"01890000-0000-7000-8000-00010000000a", "01890000-0000-7000-8000-00110000000a"}},
		{13, []string{"01890000-0000-7000-8001-00000000000a", "01890000-0000-7000-8002-00000000000a"}},
		{32, []string{"11890000-0000-7000-8000-00000000000a", "01890000-0000-7000-8000-00000000000a"}},
	} {
		var nodes []*node.Node
		names := map[string]bool{}
		for _, id := range c.ids {
			n, err := node.New(node.Source{NewID: func() node.ID { return uuid.MustParse(id) }}, node.Custom{Name: "x", JSON: "1"}, node.Meta{})
			require.NoError(t, err)
			nodes = append(nodes, n)
		}

		length := describe.NameLength(nodes)
		require.Equal(t, c.length, length, c.ids)
		ids := map[node.ID]bool{}
		for _, n := range nodes {
			ids[n.ID()] = true
			names[describe.Name(n.ID(), length)] = true
			require.Equal(t, node.ShortID(n.ID()), describe.Name(n.ID(), 8))
		}
		require.Len(t, names, len(ids))
	}
}
