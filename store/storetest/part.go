package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// BenchmarkFirstRequest measures the first request of a process on a conversation of 100,000 nodes (1,000 with -short),
// of which a compaction leaves 200 messages to send: opening it, adding a message, and making the transcript. Beside it
// is the same with all nodes loaded. It runs with each driver that open returns, a new one for each request.
func BenchmarkFirstRequest(b *testing.B, open func(b *testing.B) store.Driver) {
	nodes := 100_000
	if testing.Short() {
		nodes = 1000
	}
	c, err := store.New(open(b)).Conversation(b.Context(), "talk")
	require.NoError(b, err)
	d := dag.New().System("Be brief.").Tools(content.Tool{Name: "f", Schema: `{"type":"object"}`}).User("Begin.")
	for i := 0; d.Head().Depth() < nodes; i++ {
		d = d.Assistant("I look.", content.ToolUse{ID: fmt.Sprint(i), Name: "f", Input: `{"city":"Paris"}`})
		d = d.CloseTools(node.ToolExecution{Index: 1, Result: content.Words(fmt.Sprint("18 degrees, as on day ", i))})
		d = d.Assistant("It is 18 degrees.").User("And now?")
	}

	// Most of them are replaced by a summary.
	var replaced []node.ID
	t := d.Transcript()
	for _, n := range t.Nodes[1 : len(t.Nodes)-198] {
		for _, p := range n.Parents() {
			if p.Kind() == "tool_execution" {
				replaced = append(replaced, p.ID())
			}
		}
		replaced = append(replaced, n.ID())
	}
	d = d.Append(node.Compaction{Summary: content.Words("A summary."), Replaced: node.ListOf(replaced...)})
	require.Len(b, d.Transcript().Messages, 200)
	require.NoError(b, c.Append(b.Context(), d))

	first := func(ctx context.Context, whole bool) {
		c, err := store.New(open(b)).Conversation(ctx, "talk")
		require.NoError(b, err)
		if whole {
			require.NoError(b, c.DAG().LoadAll())
		}
		require.Len(b, c.DAG().User("More?").Transcript().Messages, 201)
	}
	for _, whole := range []bool{false, true} {
		b.Run(map[bool]string{false: "from the compaction", true: "all nodes"}[whole], func(b *testing.B) {
			for b.Loop() {
				first(b.Context(), whole)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/request")
		})
	}
}
