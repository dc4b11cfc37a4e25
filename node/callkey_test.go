package node_test

import (
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func TestCallKeyIsReadBackAsItIsWritten(t *testing.T) {
	k := node.CallKey{Message: node.Source{}.ID(), Index: 12}
	again, err := node.ParseCallKey(k.String())
	require.NoError(t, err)
	require.Equal(t, k, again)
	require.True(t, strings.HasSuffix(k.String(), "/12"))

	// It may be the name of a member too.
	saved, err := json.Marshal(map[node.CallKey]node.CallKey{k: k})
	require.NoError(t, err)
	var read map[node.CallKey]node.CallKey
	require.NoError(t, json.Unmarshal(saved, &read))
	require.Equal(t, map[node.CallKey]node.CallKey{k: k}, read)
}

func TestCallKeyRefusesEveryOtherForm(t *testing.T) {
	id := node.Source{}.ID().String()
	for _, text := range []string{
		"", "/", id, id + "/", id + "/-1", id + "/+1", id + "/01", id + "/1/2", id + "/x", "x/1", strings.ToUpper(id) + "/1",
		id + "/99999999999999999999", " " + id + "/1",
	} {
		_, err := node.ParseCallKey(text)
		require.ErrorContains(t, err, "not the key of a call", text)
	}
}
