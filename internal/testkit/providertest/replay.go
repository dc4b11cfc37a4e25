package providertest

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
)

// Switching sends its first request to the first provider, its second to the second, and so on: a program with changing
// options between requests.
type Switching struct {
	Requests []api.Provider
	Made     int
}

// Stream sends the next request.
func (s *Switching) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	s.Made++
	return s.Requests[s.Made-1].Stream(ctx, req)
}

// RequireSaved saves a conversation, loads it again, and requires the same conversation.
func RequireSaved(t testing.TB, d dag.DAG) {
	t.Helper()
	var first, second bytes.Buffer
	require.NoError(t, d.Write(&first))
	loaded, err := dag.Read(bytes.NewReader(first.Bytes()))
	require.NoError(t, err)
	require.True(t, dag.Equal(d, loaded))
	require.True(t, SameMessages(d.Messages(), loaded.Messages()))
	require.Equal(t, d.ToolDefs(), loaded.ToolDefs())
	require.Equal(t, d.SystemPrompts(), loaded.SystemPrompts())
	require.NoError(t, loaded.Write(&second))
	require.Equal(t, first.String(), second.String())
}

// SameMessages reports whether two conversations have equal messages.
func SameMessages(a, b []content.Message) bool { return slices.EqualFunc(a, b, same) }

// Added returns the blocks of the user's messages except tool results: a run adds these itself.
func Added(messages []content.Message) []content.Block {
	var blocks []content.Block
	for _, m := range messages {
		for _, b := range m.Blocks.All() {
			if _, result := b.(content.ToolResult); !result && m.Role == content.User {
				blocks = append(blocks, b)
			}
		}
	}
	return blocks
}
