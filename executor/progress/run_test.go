package progress

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// TestEveryEventChangesTheLine requires the line that is drawn again after each event, and the line of its own that it is worth elsewhere.
func TestEveryEventChangesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run{prices: api.Prices{"dear": {Input: 1, Output: 2}}, began: time.Now()}
		see := func(event executor.Event, err error, drawn, own string) {
			t.Helper()
			require.Equal(t, own, r.see(event, err))
			require.Equal(t, drawn, r.line(time.Now()))
		}
		call := func(i int, name string) executor.Call { return executor.Call{Index: i, Name: name} }
		delta := func(kind api.DeltaKind) executor.MessageDelta {
			return executor.MessageDelta{Event: api.Delta{Kind: kind}}
		}
		said := func(model string, input int64) *node.Node {
			usage := content.Usage{Input: input, Output: 1_000_000}
			return dag.New().Append(node.Message{Role: content.Assistant, Blocks: content.Words("x"), Answer: node.Answer{Model: model, Usage: usage}}).Head()
		}

		require.Equal(t, "0s", r.line(time.Now()))
		see(executor.RunStart{}, nil, "0s", "")
		see(executor.TurnStart{Turn: 1}, nil, "turn 1 · 0s · waiting for the model", "turn 1")
		time.Sleep(9999 * time.Millisecond)
		require.Equal(t, "turn 1 · 9s · waiting for the model", r.line(time.Now()))
		time.Sleep(time.Millisecond)
		require.Equal(t, "turn 1 · 10s · no response for 10s", r.line(time.Now()))
		see(delta(api.DeltaThinking), nil, "turn 1 · 10s · thinking", "")
		see(delta(api.DeltaText), nil, "turn 1 · 10s · answering", "")
		see(executor.Retry{Turn: 1, Retry: api.Retry{Attempt: 2, Wait: 2540 * time.Millisecond, Err: api.ErrServer}}, nil, "turn 1 · 10s · retrying in 2.5s", "turn 1: attempt 2 failed, retrying in 2.5s: server error")
		time.Sleep(12 * time.Second)
		require.Equal(t, "turn 1 · 22s · retrying in 2.5s", r.line(time.Now()), "silence is counted from the next attempt")
		time.Sleep(600 * time.Millisecond)
		require.Equal(t, "turn 1 · 22s · no response for 10s", r.line(time.Now()))

		see(executor.MessageEnd{}, nil, "turn 1 · 22s", "")
		see(executor.MessageEnd{Node: dag.New().User("x").Head()}, nil, "turn 1 · 22s", "")
		see(executor.MessageEnd{Node: said("unknown", 234)}, nil, "turn 1 · 22s · 1,000,234 tokens", "")
		see(executor.MessageEnd{Node: said("dear", 1_000_000)}, nil, "turn 1 · 22s · 2,000,000 tokens · cost 3.0000", "")

		see(executor.ToolStart{Turn: 1, Call: call(0, "asked"), Ran: call(0, "first")}, nil, "turn 1 · 22s · first 0s · 2,000,000 tokens · cost 3.0000", "")
		time.Sleep(63 * time.Second)
		see(executor.ToolStart{Turn: 1, Call: call(1, "asked"), Ran: call(1, "second")}, nil, "turn 1 · 1m25s · first 1m3s, second 0s · 2,000,000 tokens · cost 3.0000", "")
		see(executor.ToolUpdate{Turn: 1, Call: call(1, ""), Content: content.Words("\n half\nway")}, nil, "turn 1 · 1m25s · first 1m3s, second 0s (half…) · 2,000,000 tokens · cost 3.0000", "")
		see(executor.Child{}, nil, "turn 1 · 1m25s · first 1m3s, second 0s (half…) · 2,000,000 tokens · cost 3.0000", "")
		see(executor.Child{Path: []executor.Call{call(0, "")}, Event: executor.TurnStart{Turn: 3}}, nil, "turn 1 · 1m25s · first 1m3s (turn 3), second 0s (half…) · 2,000,000 tokens · cost 3.0000", "")
		see(executor.Child{Path: []executor.Call{call(0, ""), call(1, "")}, Event: executor.ToolStart{Ran: call(7, "inner")}}, nil, "turn 1 · 1m25s · first 1m3s (inner), second 0s (half…) · 2,000,000 tokens · cost 3.0000", "")
		see(executor.ToolEnd{Turn: 1, Execution: node.ToolExecution{Index: 1, Tool: "second"}}, nil, "turn 1 · 1m25s · first 1m3s (inner) · 2,000,000 tokens · cost 3.0000", "turn 1: second 0s")
		failed := node.ToolExecution{Index: 0, Tool: "first", IsError: true, Result: content.Words("no luck\nat all")}
		see(executor.ToolEnd{Turn: 1, Execution: failed}, nil, "turn 1 · 1m25s · 2,000,000 tokens · cost 3.0000", "turn 1: first 1m3s failed: no luck…")
		see(executor.ToolEnd{Turn: 1, Execution: node.ToolExecution{Index: 9, Tool: "refused"}}, nil, "turn 1 · 1m25s · 2,000,000 tokens · cost 3.0000", "turn 1: refused")
		doubt := node.ToolExecution{Index: 9, Tool: "pay", State: node.ExecutionInDoubt, IsError: true, Result: content.Words("Unknown.")}
		see(executor.ToolEnd{Turn: 1, Execution: doubt}, nil, "turn 1 · 1m25s · 2,000,000 tokens · cost 3.0000", "turn 1: pay in doubt: Unknown.")

		see(executor.TurnEnd{Usage: content.Usage{Input: 7}, ToolUsage: content.Usage{Output: 3}}, nil, "turn 1 · 1m25s · 10 tokens · cost 3.0000", "")
		see(executor.TurnStart{Turn: 2}, nil, "turn 2 · 1m25s · waiting for the model · 10 tokens · cost 3.0000", "turn 2")
		see(executor.TurnEnd{Usage: content.Usage{Input: 1}}, nil, "turn 2 · 1m25s · 11 tokens · cost 3.0000", "")

		stop := node.StopReason{Reason: content.StopMaxTurns, Turns: 2, Usage: content.Usage{Input: 999}, ToolUsage: content.Usage{Output: 1}}
		require.Equal(t, "stop: max_turns · 2 turns · 1,000 tokens · cost 3.0000 · 1m25s", r.see(executor.End{Stop: stop}, nil))
		require.Empty(t, r.see(executor.End{}, nil), "a run that did not begin")
		require.Equal(t, "stop: failed · 0 turns · cost 3.0000 · 1m25s", r.see(executor.End{}, errors.New("broken")))
		see(executor.Paused{Continuation: executor.Continuation{Calls: make([]node.CallKey, 2)}}, nil, "turn 2 · 1m25s · 11 tokens · cost 3.0000", "")
		require.Equal(t, "paused: 2 calls waiting · 1 turn · cost 3.0000 · 1m25s", r.see(executor.End{Stop: node.StopReason{Reason: content.StopApproval, Turns: 1}}, nil))
	})
}

func TestLinesAreDrawnAgainOnDevicesOfCharacters(t *testing.T) {
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, device.Close()) }()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()

	require.True(t, terminal(device))
	require.False(t, terminal(file))
	require.False(t, terminal(&strings.Builder{}))
}

func TestTextsOfOthersAreCut(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "  a  ": "a", "\n\nfirst\nsecond": "first…",
		strings.Repeat("x", 40): strings.Repeat("x", 40), strings.Repeat("x", 41): strings.Repeat("x", 40) + "…",
		strings.Repeat("é", 41): strings.Repeat("é", 40) + "…", strings.Repeat(" ", 160) + "late": "late",
	} {
		require.Equal(t, want, excerpt(text))
	}
}
