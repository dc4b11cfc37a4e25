package executor_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/tooltest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// quiet is a log for runs with calls in doubt, which are warned about.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// startedAt is when the calls of crashed were started.
var startedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// starts returns the executions that are started, by the index of their call.
func starts(d dag.DAG) map[int]node.ToolExecution {
	all := map[int]node.ToolExecution{}
	for _, h := range d.Heads() {
		if e, ok := h.Payload().(node.ToolExecution); ok && e.State == node.ExecutionStarted {
			all[e.Index] = e
		}
	}
	return all
}

// crashed returns a conversation in which every call was started, and the program ended.
func crashed(tools []dag.Tool, calls ...content.ToolUse) dag.DAG {
	blocks := make([]content.Block, len(calls))
	begun := make([]node.ToolExecution, len(calls))
	for i, c := range calls {
		blocks[i] = c
		begun[i] = node.ToolExecution{Index: i, State: node.ExecutionStarted, Started: startedAt}
	}
	return ask(tools...).Assistant("", blocks...).AppendExecutions(begun...)
}

// execution returns the execution of a call of the last tool phase.
func executionOf(t *testing.T, d dag.DAG, index int) node.ToolExecution {
	t.Helper()
	for _, e := range executed(d) {
		if e.Index == index {
			return e
		}
	}
	require.Fail(t, "there is no such execution")
	return node.ToolExecution{}
}

func TestStartOfACallIsSavedBeforeItsToolRuns(t *testing.T) {
	var saved dag.DAG
	looked := tool("look", func(ctx context.Context) (any, error) {
		mark, ok := starts(saved)[0]
		require.True(t, ok)
		require.Equal(t, node.Ran{Input: `{"at":2}`}, mark.Ran, "the arguments are those that are executed")
		require.Equal(t, []string{"a", "look"}, []string{mark.CallID, mark.Tool})
		require.False(t, mark.Started.IsZero())
		require.True(t, mark.Ended.IsZero())
		return "seen", nil
	})
	agent := executor.Agent{
		Provider: once(content.ToolUse{ID: "a", Name: "look", Input: `{"at":1}`}), Handler: nil,
		Hooks: []executor.Hook{{Before: func(context.Context, executor.Call) (executor.Decision, error) {
			return executor.Modify(`{"at":2}`), nil
		}}},
		Save: func(_ context.Context, d dag.DAG) error { saved = d; return nil },
	}
	agent.Tools = []dag.Tool{executor.NewTool(content.Tool{Name: "look", Schema: `{"type":"object"}`}, looked.Call)}
	agent.Handler = func(ctx context.Context, _ executor.Call) (any, error) {
		return looked.Call(ctx, executor.Call{Name: "look", Input: "{}"})
	}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, []string{"seen"}, outcomes(t, d))
	require.Len(t, executed(d), 1, "the start is not in the conversation any more")
}

// TestOneSaveHasTheStartsOfAllCallsThatRunTogether: a call that waits for its turn has not been started.
func TestOneSaveHasTheStartsOfAllCallsThatRunTogether(t *testing.T) {
	for name, c := range map[string]struct {
		strategy executor.Strategy
		want     [][]int // the calls that are started, at each save in which one is
	}{
		"parallel":   {nil, [][]int{{0, 1, 2}, {1, 2}, {2}}},
		"sequential": {executor.Sequential(), [][]int{{0}, {1}, {2}}},
		"batched":    {executor.Batched(2), [][]int{{0, 1}, {1}, {2}}},
		"limited":    {executor.Parallel(2), [][]int{{0, 1}, {1, 2}, {2}}},
	} {
		t.Run(name, func(t *testing.T) {
			var saves [][]int
			next := make(chan int, 3) // the calls that may end: in call order, so that the saves are the same each time
			agent := executor.Agent{Provider: once(call("f"), call("f"), call("f")), Strategy: c.strategy}
			agent.Tools = []dag.Tool{tooltest.Func("f", func(_ context.Context, call executor.Call) (any, error) {
				for i := range next {
					if i == call.Index {
						break
					}
					next <- i
				}
				return "ok", nil
			})}

			agent.Save = func(_ context.Context, d dag.DAG) error {
				var now []int
				begun := starts(d)
				for i := range 3 {
					if _, ok := begun[i]; ok {
						now = append(now, i)
					}
				}
				if len(now) == 0 {
					return nil
				}
				saves = append(saves, now)
				next <- now[0]
				return nil
			}

			_, err := agent.Run(t.Context(), dag.New().User("Go."))
			require.NoError(t, err)
			require.Equal(t, c.want, saves)
		})
	}
}

// TestAResultIsSavedBeforeTheNextCallStarts: otherwise a crash leaves a call in doubt that was over.
func TestAResultIsSavedBeforeTheNextCallStarts(t *testing.T) {
	seen, settled := make(chan struct{}), make(chan struct{})
	report := executor.WithTimeout(tool("report", func(ctx context.Context) (any, error) {
		context.AfterFunc(ctx, func() { close(settled) }) // its own context ends when it has its result
		err := executor.Progress(ctx, "half")
		<-seen
		return "ok", err
	}), time.Hour)
	agent := executor.Agent{
		Provider: once(call("report"), call("fast")), Strategy: executor.Parallel(1), Tools: []dag.Tool{report, fast},
		Save: func(_ context.Context, d dag.DAG) error {
			require.Less(t, len(starts(d)), 2)
			return nil
		},
	}
	for event, err := range agent.Stream(t.Context(), dag.New().User("Go.")) {
		require.NoError(t, err)
		if _, ok := event.(executor.ToolUpdate); ok {
			close(seen)
			<-settled // the result comes while the run is busy with the update
		}
	}
}

func TestNoToolRunsWhoseStartCannotBeSaved(t *testing.T) {
	full := errors.New("the disk is full")
	agent := executor.Agent{Provider: once(call("f")), Tools: []dag.Tool{tool("f", func(context.Context) (any, error) {
		t.Error("it is executed")
		return "", nil
	})}}
	agent.Save = func(_ context.Context, d dag.DAG) error {
		if len(starts(d)) > 0 {
			return full
		}
		return nil
	}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, full)
	require.Equal(t, []string{"error: Operation cancelled before the tool was started."}, outcomes(t, d))
}

func TestWithoutSaveNothingIsMarked(t *testing.T) {
	var d dag.DAG
	for event, err := range twoTurns().Stream(t.Context(), dag.New().User("Go.")) {
		require.NoError(t, err)
		if e, ok := event.(executor.TurnEnd); ok {
			d = e.DAG
		}
	}
	for _, e := range executed(d) {
		require.Equal(t, node.ExecutionFinished, e.State)
	}
}

// TestEffectDecidesAboutACallThatWasStarted starts a second run where the first one ended while each tool ran.
func TestEffectDecidesAboutACallThatWasStarted(t *testing.T) {
	var keys []string
	f := tool("f", func(ctx context.Context) (any, error) {
		keys = append(keys, executor.IdempotencyKey(ctx))
		return "done", nil
	})
	for name, c := range map[string]struct {
		tool executor.Tool
		want string
	}{
		"unknown":    {f, "error: " + content.OutcomeUnknown},
		"once":       {executor.WithEffect(f, executor.EffectUnknown), "error: " + content.OutcomeUnknown},
		"read only":  {executor.WithEffect(f, executor.EffectReadOnly), "done"},
		"idempotent": {executor.WithTimeout(executor.WithEffect(f, executor.EffectIdempotent), time.Minute), "done"},
		"two":        {executor.WithEffect(executor.WithEffect(f, executor.EffectUnknown), executor.EffectReadOnly), "done"},
	} {
		t.Run(name, func(t *testing.T) {
			keys = nil
			asked := 0
			agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Log: quiet, Hooks: []executor.Hook{{
				Before: func(context.Context, executor.Call) (executor.Decision, error) {
					asked++
					return executor.Allow(), nil
				},
			}}}
			begun := crashed([]dag.Tool{c.tool}, call("f"))
			var ends []executor.ToolEnd
			var end dag.DAG
			for event, err := range agent.Stream(t.Context(), begun) {
				require.NoError(t, err)
				switch e := event.(type) {
				case executor.ToolStart:
					require.True(t, e.Repeated)
				case executor.ToolEnd:
					ends = append(ends, e)
				case executor.End:
					end = e.DAG
				}
			}
			require.Equal(t, []string{c.want}, outcomes(t, end))
			requireValid(t, end)

			e := executionOf(t, end, 0)
			require.Len(t, ends, 1)
			require.Equal(t, e.State, ends[0].Execution.State)
			if c.want == "done" {
				require.Equal(t, node.ExecutionFinished, e.State)
				require.Equal(t, 1, asked, "the hooks decide once more")
				require.Equal(t, []string{begun.Head().Parent(0).ID().String() + "/0"}, keys)
				return
			}
			require.Empty(t, keys, "it is not executed")
			require.Equal(t, node.ExecutionInDoubt, e.State)
			require.Equal(t, startedAt, e.Started)
			require.True(t, e.Ended.IsZero())
		})
	}
	require.Empty(t, executor.IdempotencyKey(t.Context()))
	require.ErrorIs(t, dag.New().Tools(executor.WithEffect(nil, executor.EffectUnknown)).Err(), content.ErrTool)
}

// TestACallIsExecutedAgainAsItWasStarted: a service that gets a key twice must get the same request twice. If the hooks
// would allow another request now, it gets none.
func TestACallIsExecutedAgainAsItWasStarted(t *testing.T) {
	var got []executor.Call
	look := tooltest.Func("look", func(_ context.Context, call executor.Call) (any, error) { got = append(got, call); return "ok", nil })
	tools := []dag.Tool{executor.WithEffect(look, executor.EffectIdempotent)}
	begun := ask(tools...).Assistant("", call("other")).AppendExecutions(
		node.ToolExecution{State: node.ExecutionStarted, Started: startedAt, Ran: node.Ran{Tool: "look", Input: `{"day":1}`}})
	run := func(input content.JSON) dag.DAG {
		got = nil
		agent := executor.Agent{
			Provider: apitest.NewScript(apitest.Say("Done.")), Tools: tools, Log: quiet,
			Hooks: []executor.Hook{{
				Prepare: func(_ context.Context, call executor.Call) (executor.Call, error) {
					call.Name = "look"
					return call, nil
				},
				Before: func(context.Context, executor.Call) (executor.Decision, error) { return executor.Modify(input), nil },
			}},
		}
		d, err := agent.Run(t.Context(), begun)
		require.NoError(t, err)
		return d
	}
	d := run(`{"day":2}`)
	require.Empty(t, got)
	require.Contains(t, outcomes(t, d)[0], content.OutcomeUnknown)

	d = run(`{ "day":1 }`)
	require.Len(t, got, 1)
	require.Equal(t, []string{"look", `{"day":1}`}, []string{got[0].Name, string(got[0].Input)})
	require.Equal(t, node.Ran{Tool: "look", Input: `{"day":1}`}, executionOf(t, d, 0).Ran)
}

func TestHookDecidesAboutACallInDoubt(t *testing.T) {
	runs := 0
	pay := tool("pay", func(context.Context) (any, error) { runs++; return "paid", nil })
	broke := errors.New("the ledger is down")
	unknown := "error: " + content.OutcomeUnknown
	for name, c := range map[string]struct {
		decision executor.Decision
		err      error
		want     string
		state    node.ExecutionState
		runs     int
	}{
		"allow":      {executor.Allow(), nil, unknown, node.ExecutionInDoubt, 0},
		"deny":       {executor.Deny("ask the bank"), nil, unknown + " (ask the bank)", node.ExecutionInDoubt, 0},
		"error":      {executor.ExecuteAgain(), broke, unknown + " (the ledger is down)", node.ExecutionInDoubt, 0},
		"modify":     {executor.Modify("{}"), nil, unknown + " (a hook's decision does not fit a call in doubt)", node.ExecutionInDoubt, 0},
		"defer":      {executor.Defer(""), nil, unknown + " (a hook's decision does not fit a call in doubt)", node.ExecutionInDoubt, 0},
		"run again":  {executor.ExecuteAgain(), nil, "paid", "", 1},
		"use result": {executor.UseResult(executor.Result{Content: content.Words("found")}), nil, "found", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			runs = 0
			var key string
			agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Log: quiet, Hooks: []executor.Hook{
				{InDoubt: func(ctx context.Context, call executor.Call) (executor.Decision, error) {
					key = executor.IdempotencyKey(ctx)
					require.Equal(t, "pay", call.Name)
					return c.decision, c.err
				}},
				{InDoubt: func(context.Context, executor.Call) (executor.Decision, error) {
					require.Equal(t, "allow", name, "the first decision that is not Allow counts")
					return executor.Allow(), nil
				}},
			}}
			begun := crashed([]dag.Tool{pay}, call("pay"))
			d, err := agent.Run(t.Context(), begun)
			require.NoError(t, err)
			require.Equal(t, []string{c.want}, outcomes(t, d))
			require.Equal(t, c.state, executionOf(t, d, 0).State)
			require.Equal(t, c.runs, runs)
			require.Equal(t, begun.Head().Parent(0).ID().String()+"/0", key)
		})
	}

	agent := executor.Agent{Provider: once(call("pay")), Tools: []dag.Tool{pay}, Hooks: []executor.Hook{{
		Before: func(context.Context, executor.Call) (executor.Decision, error) { return executor.ExecuteAgain(), nil },
	}}}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, []string{"error: a hook's decision is for a call in doubt, which this one is not"}, outcomes(t, d))
}

// TestStartedCallThatCannotRunIsInDoubt: never a result by which it was not executed.
func TestStartedCallThatCannotRunIsInDoubt(t *testing.T) {
	look := executor.WithEffect(tool("look", func(context.Context) (any, error) { t.Error("it is executed"); return "", nil }),
		executor.EffectReadOnly)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		tools []dag.Tool
		agent executor.Agent
		want  string
	}{
		"cancelled": {cancelled, []dag.Tool{look}, executor.Agent{}, content.OutcomeUnknown},
		"no tool": {t.Context(), nil, executor.Agent{Hooks: []executor.Hook{{
			InDoubt: func(context.Context, executor.Call) (executor.Decision, error) { return executor.ExecuteAgain(), nil },
		}}}, content.OutcomeUnknown + ` (Tool "look" not found. There are no tools.)`},
	} {
		t.Run(name, func(t *testing.T) {
			c.agent.Provider, c.agent.Log = apitest.NewScript(apitest.Say("Done.")), quiet
			d, _ := c.agent.Run(c.ctx, crashed(c.tools, call("look")))
			require.Equal(t, []string{"error: " + c.want}, outcomes(t, d))
			require.Equal(t, node.ExecutionInDoubt, executionOf(t, d, 0).State)
		})
	}
}

// TestAPersonDecidesAboutACallInDoubt pauses the run that finds the call, and resumes it by way of the saved
// continuation.
func TestAPersonDecidesAboutACallInDoubt(t *testing.T) {
	runs := 0
	var keys []string
	pay := tool("pay", func(ctx context.Context) (any, error) {
		runs++
		keys = append(keys, executor.IdempotencyKey(ctx))
		return "paid", nil
	})
	look := executor.WithEffect(tool("look", func(context.Context) (any, error) { return "seen", nil }), executor.EffectReadOnly)
	var saved dag.DAG
	agent := executor.Agent{
		Tools: []dag.Tool{pay, look}, Log: quiet,
		Save: func(_ context.Context, d dag.DAG) error { saved = d; return nil },
		Hooks: []executor.Hook{{InDoubt: func(context.Context, executor.Call) (executor.Decision, error) {
			return executor.AskApproval("look at the account"), nil
		}}},
	}
	for name, c := range map[string]struct {
		reply answer
		want  string
		runs  int
		state node.ExecutionState
	}{
		"approved": {approved(), "paid", 1, node.ExecutionFinished},
		"declined": {declined(""), "error: " + content.OutcomeUnknown + " (a person decided not to execute it again)", 0, node.ExecutionInDoubt},
		"reason":   {declined("I paid it myself"), "error: " + content.OutcomeUnknown + " (I paid it myself)", 0, node.ExecutionInDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			runs, keys = 0, nil
			agent.Provider = apitest.NewScript(apitest.Say("Done."))
			paused, err := agent.Run(t.Context(), crashed(agent.Tools, call("pay"), call("look")))
			pause := pauseOf(t, err)
			require.Equal(t, content.StopApproval, pause.Reason)
			require.Equal(t, "in doubt: it was started at 2026-01-02T03:04:05Z, and the outcome is unknown: look at the account",
				paused.Pending()[0].Note)
			require.Len(t, paused.Pending(), 1, "the call beside it may be executed again, and waits for nobody")
			require.Equal(t, startedAt, paused.Pending()[0].Started)
			require.Len(t, starts(paused), 1, "and stays started")
			replies := replySet{callNames(paused)[paused.Pending()[0].Key]: c.reply}
			var begun dag.DAG
			for event, err := range agent.ResumeStream(t.Context(), paused, replies.of(paused)...) {
				require.NoError(t, err)
				if _, ok := event.(executor.ToolEnd); ok && begun.Len() == 0 {
					begun = saved
				}
				if e, ok := event.(executor.End); ok {
					require.Equal(t, []string{c.want, "seen"}, outcomes(t, e.DAG))
					require.Equal(t, c.state, executionOf(t, e.DAG, 0).State)
					requireValid(t, e.DAG)
				}
			}
			require.Equal(t, c.runs, runs)
			for _, key := range keys {
				require.Equal(t, pause.Calls[0].String(), key)
			}
		})
	}
}

// TestResumeRefusesAContinuationWhoseCallsWereStarted: the program ended after a person had approved a call, while it
// ran.
func TestResumeRefusesAContinuationWhoseCallsWereStarted(t *testing.T) {
	for name, again := range map[string]bool{"started once": false, "started a second time": true} {
		t.Run(name, func(t *testing.T) {
			var saved dag.DAG
			pay := tool("pay", func(context.Context) (any, error) { return "paid", nil })
			asks := func(context.Context, executor.Call) (executor.Decision, error) { return executor.AskApproval(""), nil }
			agent := executor.Agent{
				Provider: once(call("pay")), Tools: []dag.Tool{pay}, Log: quiet,
				Hooks: []executor.Hook{{Before: asks, InDoubt: asks}},
				Save: func(_ context.Context, d dag.DAG) error {
					if len(starts(d)) > 0 {
						saved = d
					}
					return nil
				},
			}
			d := dag.New().User("Go.")
			if again {
				agent.Provider = apitest.NewScript(apitest.Say("Done."))
				d = crashed(agent.Tools, call("pay"))
			}
			d, err := agent.Run(t.Context(), d)
			require.ErrorIs(t, err, executor.ErrPaused)
			reply := executor.Approved(d.Pending()[0])
			_, err = agent.Resume(t.Context(), d, reply)
			require.NoError(t, err)

			require.Len(t, starts(saved), 1)
			_, err = agent.Resume(t.Context(), saved, reply)
			require.ErrorIs(t, err, executor.ErrUnknownCall, "it was started, and waits no more")

			_, err = agent.Run(t.Context(), saved)
			require.Len(t, pauseOf(t, err).Calls, 1, "the person is asked again")
		})
	}
}

// TestSubAgentContinuesAfterACrashInAResumedRun ends the program after each step of a sub-agent that was resumed.
func TestSubAgentContinuesAfterACrashInAResumedRun(t *testing.T) {
	var count tally
	var saved []dag.DAG
	agent := executor.Agent{
		Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{count.risky("sub", []string{"pay"}, "pay")}, Log: quiet,
		Save: func(_ context.Context, d dag.DAG) error { saved = append(saved, d); return nil },
	}
	paused, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Empty(t, starts(paused), "nothing is in doubt in a pause")
	saved = nil
	reply := executor.Approved(paused.Pending()[0])
	_, err = agent.Resume(t.Context(), paused, reply)
	require.NoError(t, err)
	require.Equal(t, []string{"pay"}, count.ran())

	var outcome []string
	for i, d := range saved {
		if len(starts(d)) == 0 {
			continue // before or after the call
		}
		_, err = agent.Resume(t.Context(), d, reply)
		require.ErrorIs(t, err, executor.ErrUnknownCall, "step %d", i)

		d, err = agent.Run(t.Context(), d)
		var again *executor.PausedError
		switch {
		case errors.As(err, &again):
			require.Len(t, again.Continuation().Calls, 1)
			outcome = append(outcome, "asked again")
		default:
			require.NoError(t, err)
			outcome = append(outcome, outcomes(t, d)...)
		}
	}
	require.Equal(t, []string{
		"asked again", // the sub-agent has not continued
		"asked again", // it has begun its run again
		"<error: " + content.OutcomeUnknown + ">",
		"<pay>", // the tool has its result
		"<pay>", // the sub-agent's run is over
	}, outcome)
	require.Equal(t, []string{"pay"}, count.ran(), "nothing ran a second time")
}

// TestSubAgentContinuesFromEverySavedStep ends a run after each of its steps, as a crash does, two sub-agents deep,
// and runs what its journal holds.
func TestSubAgentContinuesFromEverySavedStep(t *testing.T) {
	var count tally
	inner := executor.Agent{
		Provider: calling(plainCall("a"), plainCall("b")), Tools: []dag.Tool{count.tool("a"), count.tool("b")},
		Strategy: executor.Sequential(), Log: quiet,
	}
	middle := executor.Agent{
		Provider: calling(plainCall("c"), toSub("inner", "i")), Strategy: executor.Sequential(), Log: quiet,
		Tools: []dag.Tool{count.tool("c"), executor.SubAgent("inner", "", inner)},
	}
	var saved []dag.DAG
	agent := executor.Agent{
		Provider: calling(toSub("middle", "m"), plainCall("d")), Log: quiet,
		Tools: []dag.Tool{executor.SubAgent("middle", "", middle), count.tool("d")},
		Save:  func(_ context.Context, d dag.DAG) error { saved = append(saved, d); return nil },
	}
	want, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, "<<c; <a; b>>; d>", want.Text())
	require.Greater(t, len(saved), 12, "the steps of the sub-agents are saved")

	steps := saved
	for i, d := range steps[:len(steps)-1] {
		path := filepath.Join(t.TempDir(), "journal")
		j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
		require.NoError(t, err)
		require.NoError(t, j.Append(d))
		require.NoError(t, j.Close())
		loaded, err := dag.Load(path)
		require.NoError(t, err)

		begun := map[string]node.ToolExecution{}
		addExecutions(loaded, begun)
		inDoubt := slices.ContainsFunc(slices.Collect(maps.Values(begun)), func(e node.ToolExecution) bool {
			return e.State == node.ExecutionStarted && e.Child.Len() == 0
		})
		count = tally{}
		d, err = agent.Run(t.Context(), loaded)
		require.NoError(t, err, "step %d", i)
		require.Equal(t, inDoubt, strings.Contains(d.Text(), content.OutcomeUnknown), "step %d: %s", i, d.Text())

		ran := count.ran()
		for _, name := range []string{"a", "b", "c", "d"} {
			if _, before := begun[name]; before {
				require.NotContains(t, ran, name, "step %d: it is executed a second time", i)
			} else if !inDoubt {
				require.Contains(t, ran, name, "step %d", i)
			}
		}
	}
}

// addExecutions adds the executions of d and of the conversations in it, by the name of the tool.
func addExecutions(d dag.DAG, to map[string]node.ToolExecution) {
	for _, n := range d.Nodes() {
		if e, ok := n.Payload().(node.ToolExecution); ok {
			to[e.Tool] = e
			addExecutions(dag.FromNode(n), to)
		}
	}
}

// TestAStoreHasTheStartsOfCalls: a store gives the same guarantee as a journal.
func TestAStoreHasTheStartsOfCalls(t *testing.T) {
	s := store.New(store.Memory())
	c, err := s.Conversation(t.Context(), "talk")
	require.NoError(t, err)
	var steps []map[int]node.ExecutionState
	agent := executor.Agent{
		Provider: once(callA, callB), Tools: []dag.Tool{toolA, toolB}, Strategy: executor.Sequential(),
		Save: func(ctx context.Context, d dag.DAG) error {
			if err := c.Append(ctx, d); err != nil {
				return err
			}
			again, err := s.Conversation(ctx, "talk")
			if err != nil {
				return err
			}
			states := map[int]node.ExecutionState{}
			for _, h := range again.DAG().Heads() {
				if e, ok := h.Payload().(node.ToolExecution); ok {
					states[e.Index] = e.State
				}
			}
			if len(states) > 0 {
				steps = append(steps, states)
			}
			return nil
		},
	}
	_, err = agent.Run(t.Context(), c.DAG().User("Go."))
	require.NoError(t, err)
	started := node.ExecutionStarted
	require.Equal(t, []map[int]node.ExecutionState{{0: started}, {0: "", 1: started}}, steps)
}
