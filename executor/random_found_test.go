package executor_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// What random scripts found, each in its smallest form.

func TestFoundToolThatFailsBesideDetailsThatAreNoJSON(t *testing.T) {
	for _, r := range []executor.Result{{Details: "{"}, {Child: dag.New().Append(nil)}} {
		bad := executor.NewTool(content.Tool{Name: "bad", Schema: `{"type":"object"}`}, func(context.Context, executor.Call) (executor.Result, error) {
			return r, errors.New("failed")
		})
		d, err := executor.Run(t.Context(), once(call("bad"), call("fast")), ask(bad, fast))
		require.NoError(t, err)
		require.Equal(t, []string{"error: failed", "fast"}, outcomes(t, d))
	}
}

func TestFoundRefusedRunGivesBackTheConversationAsItWas(t *testing.T) {
	said := node.Message{Role: content.Assistant, Blocks: content.Words("Yes?"), Answer: node.Answer{Stop: content.StopEndTurn}}
	d := dag.New().User("Hello?").Append(said)
	agent := executor.Agent{Provider: apitest.NewScript(), System: "Be brief.", Tools: []dag.Tool{fast}}
	after, err := agent.Run(t.Context(), d)
	require.ErrorIs(t, err, executor.ErrAnswered)
	require.Equal(t, d.Heads(), after.Heads())
}

func TestFoundMessageOfAQueueIsNotLostWithItsConsumer(t *testing.T) {
	for _, leaveAt := range []executor.Event{executor.TurnStart{}, executor.MessageStart{}} {
		q := executor.NewQueue()
		require.NoError(t, q.Add("one"))
		require.NoError(t, q.Add("two"))
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Steering: q}
		for event := range agent.Stream(t.Context(), ask()) {
			_, turn := event.(executor.TurnStart)
			_, message := event.(executor.MessageStart)
			if _, atTurn := leaveAt.(executor.TurnStart); atTurn && turn || !atTurn && message {
				break
			}
		}
		require.Equal(t, 2, q.Len())
		require.Equal(t, "one", q.Messages()[0].Blocks.Text())
	}
}

func TestFoundCallsOfAWaveStartInCallOrder(t *testing.T) {
	backwards := func(calls []executor.Ready) []executor.Batch {
		var w executor.Batch
		for i := range calls {
			w.Calls = append(w.Calls, len(calls)-1-i)
		}
		return []executor.Batch{w}
	}
	var starts []int
	for event := range (executor.Agent{Provider: once(call("fast"), call("fast"), call("fast")), Strategy: backwards}).Stream(t.Context(), ask(fast)) {
		if e, ok := event.(executor.ToolStart); ok {
			starts = append(starts, e.Call.Index)
		}
	}
	require.Equal(t, []int{0, 1, 2}, starts)
}

func TestFoundTurnZeroTellsOfCallsThatWereAllCarriedOutBefore(t *testing.T) {
	d := ask(fast).Assistant("", call("fast"))
	d = d.AppendExecutions(node.ToolExecution{Index: 0, Result: content.Words("before")})
	for event, err := range executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Done.")), d) {
		require.NoError(t, err)
		if e, ok := event.(executor.TurnEnd); ok && e.Turn == 0 {
			require.Len(t, e.Executions, 1)
			require.Equal(t, "before", e.Executions[0].Result.Text())
		}
	}
}

func TestFoundTurnThatWasPausedTellsWhatItTookInAll(t *testing.T) {
	took := executor.NewTool(content.Tool{Name: "took", Schema: `{"type":"object"}`}, func(context.Context, executor.Call) (executor.Result, error) {
		return executor.Result{Usage: content.Usage{Output: 3}}, nil
	})
	away := executor.DeferredTool(content.Tool{Name: "away", Schema: `{"type":"object"}`})
	model := apitest.NewScript(apitest.Call(call("took"), call("away")).Usage(content.Usage{Output: 5}), apitest.Say("Done."))
	agent := executor.Agent{Provider: model}
	d, err := agent.Run(t.Context(), ask(took, away))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	c := paused.Continuation
	var turns []executor.TurnEnd
	for event := range agent.ResumeStream(t.Context(), d, c, map[string]executor.Reply{c.Pending[0].ID: executor.Returned(executor.Result{Usage: content.Usage{Output: 4}})}) {
		switch e := event.(type) {
		case executor.TurnEnd:
			turns = append(turns, e)
		case executor.End:
			require.EqualValues(t, 5, e.Stop.Usage.Output)
			require.EqualValues(t, 7, e.Stop.ToolUsage.Output)
		}
	}
	require.EqualValues(t, 5, turns[0].Usage.Output)
	require.EqualValues(t, 7, turns[0].ToolUsage.Output)
}

func TestFoundExecutionOfASubAgentCountsWhatItsToolsTook(t *testing.T) {
	took := executor.NewTool(content.Tool{Name: "took", Schema: `{"type":"object"}`}, func(context.Context, executor.Call) (executor.Result, error) {
		return executor.Result{Usage: content.Usage{Output: 3}}, nil
	})
	inner := executor.Agent{Provider: once(call("took")), Tools: []dag.Tool{took}}
	sub := executor.SubAgent("sub", "", inner)
	for event := range executor.Stream(t.Context(), once(apitest.Use("sub", executor.Task{Task: "Take."})), ask(sub)) {
		if e, ok := event.(executor.ToolEnd); ok {
			require.EqualValues(t, 3, e.Execution.Usage.Output)
		}
	}
}

// A sub-agent whose time is over tells the end of its story whole or not at all: never an End in a turn that did not end.
func TestFoundChildStoryHasNoHoles(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			sub := executor.WithTimeout(executor.SubAgent("sub", "", executor.Agent{Provider: apitest.NewScript(apitest.Hang())}), time.Second)
			inTurn := false
			for event := range executor.Stream(t.Context(), once(apitest.Use("sub", executor.Task{Task: "Hang."})), ask(sub)) {
				child, ok := event.(executor.Child)
				if !ok {
					continue
				}
				switch child.Event.(type) {
				case executor.TurnStart:
					inTurn = true
				case executor.TurnEnd:
					inTurn = false
				case executor.End:
					require.False(t, inTurn)
				}
			}
			time.Sleep(time.Minute)
		})
	}
}

func TestFoundTimeoutOfOneWaveDoesNotEndTheNext(t *testing.T) {
	var calls []content.ToolUse
	var want []string
	for range 20 {
		calls = append(calls, call("slow"), call("slow"), call("half"), call("half"))
		want = append(want, "error: Tool exceeded timeout of 1s.", "error: Tool exceeded timeout of 1s.", "half", "half")
	}
	half := tool("half", func(ctx context.Context) (any, error) { return "half", wait(ctx, 500*time.Millisecond) })
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			agent := executor.Agent{Provider: once(calls...), Strategy: executor.Batched(2), ToolTimeout: time.Second}
			d, err := agent.Run(t.Context(), ask(slow, half))
			require.NoError(t, err)
			require.Equal(t, want, outcomes(t, d))
		})
	}
}

func TestFoundHookThatEndsTheGoroutineOfAToolThatPanicked(t *testing.T) {
	exits := executor.Hook{After: func(_ context.Context, c executor.Call, r executor.Result) (executor.Result, error) {
		if c.Name == "panics" {
			runtime.Goexit()
		}
		return r, nil
	}}
	agent := executor.Agent{Provider: once(call("panics"), call("fast")), Hooks: []executor.Hook{exits}, ToolTimeout: -1}
	synctest.Test(t, func(t *testing.T) {
		d, err := agent.Run(t.Context(), ask(panics, fast))
		require.NoError(t, err)
		require.Equal(t, []string{`error: Tool "panics" ended without a result.`, "fast"}, outcomes(t, d))
	})
}

func TestFoundHookThatFailsWhenTheTimeIsOverIsATimeout(t *testing.T) {
	late := executor.Hook{After: func(ctx context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
		<-ctx.Done()
		return r, errors.New("the hook gave up")
	}}
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			agent := executor.Agent{Provider: once(call("fast"), call("fast")), Hooks: []executor.Hook{late}, ToolTimeout: time.Second}
			d, err := agent.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			over := "error: Tool exceeded timeout of 1s."
			require.Equal(t, []string{over, over}, outcomes(t, d))
		})
	}
}
