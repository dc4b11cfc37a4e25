package web

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

func TestDeniedCallIsNoFailure(t *testing.T) {
	call := func(id string) content.ToolUse { return content.ToolUse{ID: id, Name: "drop_table", Input: `{}`} }
	denied := node.ToolExecution{
		Index: 0, State: node.ExecutionDenied, Result: content.Words("Tool call denied: not in production"), IsError: true,
	}
	failed := node.ToolExecution{Index: 1, Result: content.Words("no such table"), IsError: true}
	d := start().User("Clean up.").Assistant("", call("a"), call("b")).CloseTools(denied, failed)
	require.NoError(t, d.Err())

	p := update(t, NewModel(), d)
	find := func(match func(Node) bool) Node {
		for _, n := range p.Nodes {
			if match(n) {
				return n
			}
		}
		t.Fatal("no such node")
		return Node{}
	}
	declined := find(func(n Node) bool { return n.State == "denied" })
	require.Equal(t, "denied: Tool call denied: not in production", declined.Line)
	require.Equal(t, "2 results, 1 failed, 1 denied", find(func(n Node) bool { return n.Sort == "results" }).Line)
	for _, place := range p.Places {
		require.Equal(t, place.Key == declined.Key, place.Style == "aside", "the box of %d", place.Key)
	}

	// Only the other call counts.
	for _, problem := range p.Problems {
		require.NotEqual(t, declined.Key, problem.Key, problem.What)
	}
	for _, total := range p.Totals {
		if total.By == "tool" {
			require.Equal(t, 1, total.Failed)
		}
	}

	// The log does not mark it as a failure either.
	var log strings.Builder
	require.NoError(t, d.WriteLog(&log, nil))
	for line := range strings.Lines(log.String()) {
		require.False(t, strings.Contains(line, "denied:") && strings.Contains(line, "✗"), line)
	}
}
