package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
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
	require.NoError(t, s.oneline(list, &dag.LogOptions{}))
	text := out.String()
	for _, want := range []string{
		"assistant      → get_weather{\"city\":\"Paris\"}\n", "tool call      get_weather ✗ failed: no station {\"city\":\"Paris\"}\n",
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

func TestEachLogSaysWhichCallsWait(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.json")
	d := dag.New().User("Erase both.").Assistant("",
		content.ToolUse{ID: "1", Name: "erase", Input: "{}"}, content.ToolUse{ID: "2", Name: "erase", Input: "{}"})
	require.NoError(t, d.Save(file))

	for args, want := range map[string]string{
		"": "(head) [2 calls wait]", "--oneline": "assistant      [2 calls wait]", "--json": `"waiting": 2`,
	} {
		out, errs, code := command("", append([]string{"log", file}, strings.Fields(args)...)...)
		require.Equal(t, exitDone, code, errs)
		require.Contains(t, out, want)
	}

	out, _, code := command("", "log", file, "--failed")
	require.Equal(t, exitDone, code)
	require.Empty(t, out, "a call that waits is no failure")

	require.NoError(t, d.CloseTools().Save(file))
	out, _, _ = command("", "log", file, "--json")
	require.NotContains(t, out, "waiting")
}

func TestLogAndShowNameCallsInDoubt(t *testing.T) {
	asked := dag.New().User("Weather?").Append(node.Message{Role: content.Assistant, Blocks: toolUse(t)})
	begun := asked.AppendExecutions(node.ToolExecution{State: node.ExecutionStarted})
	doubt := begun.CloseTools()
	require.NoError(t, doubt.Err())

	var out bytes.Buffer
	s := &streams{out: &out}
	require.NoError(t, s.oneline(rows(begun, false, 0), &dag.LogOptions{}))
	require.NoError(t, s.oneline(rows(doubt, false, 0), &dag.LogOptions{}))
	require.Contains(t, out.String(), "get_weather{\"city\":\"Paris\"} → started\n")
	require.Contains(t, out.String(), "get_weather ✗ in doubt: The outcome")
	require.Contains(t, whole(begun.Head()), "← 1  started")
	require.Contains(t, whole(doubt.Head().Parent(0)), "← 1  in doubt\n  The outcome")
}

func toolUse(t *testing.T) content.Blocks {
	t.Helper()
	list, err := content.Of(content.ToolUse{ID: "1", Name: "get_weather", Input: `{"city":"Paris"}`})
	require.NoError(t, err)
	return list
}

func TestFailuresAreListedWithWhatLeadsToThem(t *testing.T) {
	call := func(d dag.DAG) dag.DAG {
		return d.Append(node.Message{Role: content.Assistant, Blocks: toolUse(t)})
	}
	failed := node.ToolExecution{Result: content.Words("no station"), IsError: true}
	child := call(dag.New().User("Inside?")).CloseTools(failed)
	d := dag.New().User("First?").Assistant("Fine.").User("Weather?")
	d = call(d).CloseTools(node.ToolExecution{Result: content.Words("18 °C"), Child: node.ListOf(child.Heads()...)}).Assistant("Warm.").User("Again?")
	d = call(d).CloseTools(failed).Assistant("No.")
	require.NoError(t, d.Err())

	list := func(last int) (says []string) {
		for _, r := range failures(d, last) {
			says = append(says, r.Says)
		}
		return says
	}
	asked, broken := `→ get_weather{"city":"Paris"}`, `get_weather ✗ failed: no station {"city":"Paris"}`
	second := []string{"Again?", asked, broken}
	require.Equal(t, second, list(1))
	require.Equal(t, append([]string{"Weather?", asked, `get_weather{"city":"Paris"} → 18 °C`, "Inside?", asked, broken}, second...), list(0))

	var out bytes.Buffer
	s := &streams{out: &out}
	require.NoError(t, s.oneline(failures(d, 1), &dag.LogOptions{Color: true}))
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("\x1b[31mtool call ")), "only what failed is red")
}
