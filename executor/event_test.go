package executor_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// story is the events of a run, each in a word or two.
func story(events func(func(executor.Event, error) bool)) (told []string, last executor.End, failure error) {
	for event, err := range events {
		if last.DAG.Len() > 0 {
			told = append(told, "after the end")
		}
		switch e := event.(type) {
		case executor.TurnStart:
			told = append(told, fmt.Sprintf("turn %d", e.Turn))
		case executor.RunStart:
			told = append(told, "run")
		case executor.MessageStart:
			told = append(told, "("+string(e.Role))
		case executor.MessageDelta:
			if _, whole := e.Event.(api.BlockEnd); !whole {
				continue
			}
			told = append(told, "block")
		case executor.Retry:
			told = append(told, fmt.Sprintf("retry %d", e.Attempt))
		case executor.Repaired:
			told = append(told, "repaired")
		case executor.MessageEnd:
			if e.Node == nil {
				told = append(told, "nothing)")
			} else {
				told = append(told, ")")
			}
		case executor.ToolUpdate:
			told = append(told, fmt.Sprintf("update %d %s", e.Call.Index, e.Content.Text()))
		case executor.Child:
			told = append(told, fmt.Sprintf("child %d", e.Path[0].Index))
		case executor.Rejected:
			told = append(told, "rejected")
		case executor.Paused:
			told = append(told, "paused")
		case executor.ToolStart:
			told = append(told, fmt.Sprintf("start %d", e.Call.Index))
		case executor.ToolEnd:
			told = append(told, fmt.Sprintf("end %d", e.Execution.Index))
		case executor.TurnEnd:
			told = append(told, fmt.Sprintf("turn end %d", e.Turn))
		case executor.End:
			told = append(told, "end: "+string(e.Stop.Reason))
			last, failure = e, err
			continue
		}
		if err != nil {
			told = append(told, "error before the end")
		}
	}
	return told, last, failure
}

func TestEventsAreInOneConsistentOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pause := func(name string, d time.Duration) executor.Tool {
			return tool(name, func(ctx context.Context) (any, error) { return name, wait(ctx, d) })
		}
		model := apitest.NewScript(
			apitest.Fail(&api.Error{Kind: api.ErrOverloaded}),
			apitest.Say("Well.").Repaired(api.RepairNote{Kind: "merged"}).Call(call("three"), call("missing"), call("one"), call("two")),
			apitest.Say("Done."),
		)
		d := ask(pause("one", time.Second), pause("two", 2*time.Second), pause("three", 3*time.Second))
		told, end, err := story(executor.Stream(t.Context(), model, d))
		require.NoError(t, err)
		require.Equal(t, []string{
			"run", "turn 1", "(assistant", "retry 1", "repaired", "block", "block", "block", "block", "block", ")",
			"start 1", "start 2", "end 2", "start 3", "start 4", "end 3", "end 4", "end 1", "(user", ")", "turn end 1",
			"turn 2", "(assistant", "block", ")", "turn end 2",
			"end: end_turn",
		}, told)
		require.Equal(t, []string{"three", `error: Tool "missing" not found. Available tools: one, two, three`, "one", "two"}, outcomes(t, end.DAG))
		require.Equal(t, end.Stop, stopped(t, end.DAG))
	})
}

func TestOpenCallsAreTurnZero(t *testing.T) {
	told, _, err := story(executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Done.")), ask(fast).Assistant("", call("fast"))))
	require.NoError(t, err)
	require.Equal(t, []string{
		"run", "start 0", "end 0", "(user", ")", "turn end 0", "turn 1", "(assistant", "block", ")", "turn end 1", "end: end_turn",
	}, told)
}

func TestEndComesLastBesideTheError(t *testing.T) {
	failure := &api.Error{Kind: api.ErrAuth}
	told, end, err := story(executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Half").Fail(failure)), ask()))
	require.ErrorIs(t, err, api.ErrAuth)
	require.Equal(t, []string{"run", "turn 1", "(assistant", "block", ")", "turn end 1", "end: error"}, told)
	require.Equal(t, "ua", roles(end.DAG))

	told, end, err = story(executor.Stream(t.Context(), nil, ask()))
	require.ErrorContains(t, err, "the agent has no provider")
	require.Equal(t, []string{"end: "}, told)
	require.Equal(t, 1, end.DAG.Len())
}

// TestBreakingOffStopsEverything breaks off at each event of a run in turn, and finds no goroutine left. synctest fails when one
// is.
func TestBreakingOffStopsEverything(t *testing.T) {
	for at := range 30 {
		synctest.Test(t, func(t *testing.T) {
			n, ctx := 0, t.Context()
			var running atomic.Int32
			counts := tool("counts", func(ctx context.Context) (any, error) {
				running.Add(1)
				defer running.Add(-1)
				return nil, wait(ctx, time.Hour)
			})
			model := apitest.NewScript(apitest.Say("Hm.").Call(call("fast"), call("counts"), call("fast"), call("patient")), apitest.Say("Done."))
			patient := executor.NewTool(content.Tool{Name: "patient", Schema: `{"type":"object"}`}, counts.Call)
			start := time.Now()
			for range (executor.Agent{Provider: model, Strategy: executor.Parallel(3), ToolTimeout: time.Minute}).Stream(ctx, ask(fast, counts, executor.WithTimeout(patient, 2*time.Minute))) {
				if n++; n == at {
					break
				}
			}
			require.Zero(t, running.Load(), "a tool still runs after the break at event %d", at)
			require.LessOrEqual(t, time.Since(start), 2*time.Minute)
		})
	}
}

func TestBreakingOffDoesNotWaitForATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for event := range executor.Stream(t.Context(), once(call("fast"), call("deaf")), ask(fast, deaf)) {
			if _, ok := event.(executor.ToolEnd); ok {
				break
			}
		}
		require.Equal(t, time.Second, time.Since(start), "no longer than its grace")
		time.Sleep(2 * time.Hour)
	})
}

func TestTurnEndsHoldConversationsThatCanBeSaved(t *testing.T) {
	var before dag.DAG
	turns := 0
	for event, err := range executor.Stream(t.Context(), apitest.NewScript(apitest.Call(call("fast")), apitest.Call(call("broken")), apitest.Say("Done.")), ask(fast, broken)) {
		require.NoError(t, err)
		if e, ok := event.(executor.TurnEnd); ok {
			turns++
			requireValid(t, e.DAG)
			require.Greater(t, e.DAG.Len(), before.Len())
			before = e.DAG
		}
	}
	require.Equal(t, 3, turns)
}

func TestRequestIsTheTranscriptOfTheConversationSoFar(t *testing.T) {
	d := ask(fast).System("Late.").Assistant("Hi.").User("Again.")
	model := apitest.NewScript(apitest.Call(call("fast")), apitest.Answer().Stop(content.StopPause), apitest.Call(call("fast"), call("gone")), apitest.Say("Done."))
	seen := []dag.DAG{d}
	for event, err := range executor.Stream(t.Context(), model, d) {
		require.NoError(t, err)
		if e, ok := event.(executor.TurnEnd); ok {
			seen = append(seen, e.DAG)
		}
	}
	want := []dag.DAG{seen[0], seen[1], seen[2], seen[3]}
	for i, req := range model.Requests() {
		transcript := want[i].Transcript()
		require.Equal(t, api.Request{System: transcript.System, Tools: transcript.Tools, Messages: transcript.Messages}, req)
	}
}

// adding is a provider that adds a message to what it is asked, as a wrapper may.
type adding struct {
	api.Provider
	old []api.Request
}

func (a *adding) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	a.old = append(a.old, req)
	for _, earlier := range a.old {
		_ = append(earlier.Messages, content.Message{Role: content.User, Blocks: content.Words("Psst!")})
	}
	return a.Provider.Stream(ctx, req)
}

func TestWhoAddsToARequestDoesNotChangeTheConversation(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("fast")), apitest.Call(call("fast")), apitest.Call(call("fast")), apitest.Say("Done."))
	d, err := executor.Run(t.Context(), &adding{Provider: model}, ask(fast))
	require.NoError(t, err)
	messages := d.Messages()
	for _, req := range model.Requests() {
		require.Equal(t, messages[:len(req.Messages)], req.Messages)
	}
}

func TestTurnZeroReportsCallsThatHadAllBeenExecuted(t *testing.T) {
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

func TestPauseOfTurnZeroCountsNoUsageOfAnEarlierRun(t *testing.T) {
	blocks, err := content.Of(call("fast"))
	require.NoError(t, err)
	used := node.Answer{Usage: content.Usage{Input: 100, Output: 7}}
	d := ask(fast).Append(node.Message{Role: content.Assistant, Blocks: blocks, Answer: used})
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Hooks: []executor.Hook{executor.RequireApproval()}}
	d, err = agent.Run(t.Context(), d)
	require.ErrorIs(t, err, executor.ErrPaused)

	all, end, err := watch(t, agent.ResumeStream(t.Context(), d, executor.Approved(d.Pending()[0])))
	require.NoError(t, err)
	turns := only[executor.TurnEnd](all)
	require.Equal(t, []int{0, 1}, turnsOf(turns))
	require.Zero(t, turns[0].Usage)
	require.Equal(t, turns[1].Usage, end.Stop.Usage)
}

func TestPausedTurnReportsItsTotalTime(t *testing.T) {
	took := executor.NewTool(content.Tool{Name: "took", Schema: `{"type":"object"}`}, func(context.Context, executor.Call) (executor.Result, error) {
		return executor.Result{Usage: content.Usage{Output: 3}}, nil
	})
	away := executor.DeferredTool(content.Tool{Name: "away", Schema: `{"type":"object"}`})
	model := apitest.NewScript(apitest.Call(call("took"), call("away")).Usage(content.Usage{Output: 5}), apitest.Say("Done."))
	agent := executor.Agent{Provider: model}
	d, err := agent.Run(t.Context(), ask(took, away))
	require.ErrorIs(t, err, executor.ErrPaused)
	var turns []executor.TurnEnd
	for event := range agent.ResumeStream(t.Context(), d, executor.Returned(d.Pending()[0], executor.Result{Usage: content.Usage{Output: 4}})) {
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
