package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

func TestLogRowsNameFailures(t *testing.T) {
	used := content.Usage{Input: 7, Output: 3}
	d := dag.New().User("Weather?").
		Append(node.Message{Role: content.Assistant, Blocks: toolUse(t), Answer: node.Answer{Model: "m-1", Stop: content.StopToolUse, Usage: used}}).
		CloseTools(node.ToolExecution{Result: content.Words("no station"), IsError: true, Usage: content.Usage{Output: 2}}).
		Append(node.Message{Role: content.Assistant, Blocks: content.Words("I am s"), Answer: node.Answer{Model: "m-1", Stop: content.StopMaxTokens}}).
		Append(node.StopReason{Reason: content.StopMaxTurns, Usage: used})
	require.NoError(t, d.Err())
	list := rows(d, false, 0)

	var out bytes.Buffer
	s := &streams{out: &out}
	require.NoError(t, s.oneline(list))
	text := out.String()
	for _, want := range []string{
		"assistant      → get_weather{\"city\":\"Paris\"}\n", "tool call      get_weather{\"city\":\"Paris\"} ✗ failed: no station\n",
		"results        ← ", "assistant      [stopped: max_tokens] I am s\n", "stop           max_turns\n",
	} {
		require.Contains(t, text, want)
	}

	data, err := json.Marshal(list)
	require.NoError(t, err)
	var got []struct {
		Kind, Model, Stop string
		Failed            bool
		Usage             content.Usage
	}
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, []bool{false, false, true, false, true, true}, []bool{
		got[0].Failed, got[1].Failed, got[2].Failed, got[3].Failed, got[4].Failed, got[5].Failed,
	})
	require.Equal(t, []string{"m-1", "tool_use"}, []string{got[1].Model, got[1].Stop})
	require.Equal(t, used, got[1].Usage)
	require.Equal(t, content.Usage{Output: 2}, got[2].Usage)
	require.Equal(t, used, got[5].Usage)
	require.Equal(t, "max_turns", got[5].Stop)
	require.NotContains(t, string(data), `"usage":{}`, "what is not known is left out")
}

func TestLogAndShowNameCallsInDoubt(t *testing.T) {
	asked := dag.New().User("Weather?").Append(node.Message{Role: content.Assistant, Blocks: toolUse(t)})
	begun := asked.AppendExecutions(node.ToolExecution{State: node.ExecutionStarted})
	doubt := begun.CloseTools()
	require.NoError(t, doubt.Err())

	var out bytes.Buffer
	s := &streams{out: &out}
	require.NoError(t, s.oneline(rows(begun, false, 0)))
	require.NoError(t, s.oneline(rows(doubt, false, 0)))
	require.Contains(t, out.String(), "get_weather{\"city\":\"Paris\"} → started\n")
	require.Contains(t, out.String(), "get_weather{\"city\":\"Paris\"} ✗ in doubt: The outcome")
	require.Contains(t, whole(begun.Head()), "← 1  started")
	require.Contains(t, whole(doubt.Head().Parent(0)), "← 1  in doubt\n  The outcome")
}

func toolUse(t *testing.T) content.Blocks {
	t.Helper()
	list, err := content.Of(content.ToolUse{ID: "1", Name: "get_weather", Input: `{"city":"Paris"}`})
	require.NoError(t, err)
	return list
}
