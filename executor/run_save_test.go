package executor_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/tooltest"
	"github.com/plait-dev/plait/node"
)

// twoTurns is a run of two turns with tools, one call after the other.
func twoTurns() executor.Agent {
	return executor.Agent{
		Provider: apitest.NewScript(apitest.Call(callA, callB), apitest.Call(call("broken"), call("nobody")), apitest.Say("Done.")),
		Strategy: executor.Sequential(),
		Tools:    []dag.Tool{toolA, toolB, broken},
		System:   "Be brief.",
	}
}

func TestSaveIsCalledBeforeTheEventOfEachStep(t *testing.T) {
	plain, err := twoTurns().Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)

	agent := twoTurns()
	var all []dag.DAG
	agent.Save = func(ctx context.Context, d dag.DAG) error {
		all = append(all, d)
		return ctx.Err()
	}
	var end dag.DAG
	for event, err := range agent.Stream(t.Context(), dag.New().User("Go.")) {
		require.NoError(t, err)
		last := dag.New()
		if len(all) > 0 {
			last = all[len(all)-1]
		}
		switch e := event.(type) {
		case executor.RunStart:
			require.True(t, dag.Equal(e.DAG, last))
		case executor.MessageEnd:
			require.Same(t, e.Node, last.Node(e.Node.ID()))
		case executor.ToolEnd:
			var found bool
			for _, n := range last.Nodes() {
				saved, ok := n.Payload().(node.ToolExecution)
				found = found || ok && saved.Index == e.Execution.Index && saved.Result.Equal(e.Execution.Result)
			}
			require.True(t, found, "the result of call %d is not saved", e.Execution.Index)
		case executor.TurnEnd:
			require.Same(t, e.DAG.Head(), last.Node(e.DAG.Head().ID()))
		case executor.End:
			end = e.DAG
			require.True(t, dag.Equal(end, last))
		}
	}
	require.True(t, dag.Equal(plain, end), "saving changes nothing of what a run does")
	require.Len(t, all, 1+3+3, "the beginning, three responses, and three calls with a tool")
	for _, d := range all {
		for _, n := range d.Nodes() {
			if e, ok := n.Payload().(node.ToolExecution); ok && e.State == node.ExecutionStarted {
				require.Nil(t, end.Node(n.ID()), "the start of a call is replaced by its result")
				continue
			}
			require.Same(t, n, end.Node(n.ID()), "what is saved stays a part of the conversation, so that a journal holds it once")
		}
	}
}

// TestRunContinuesFromEverySavedStep ends a run after each of its steps, as a crash does, and runs what its journal holds.
func TestRunContinuesFromEverySavedStep(t *testing.T) {
	var steps []dag.DAG
	agent := twoTurns()
	agent.Save = func(_ context.Context, d dag.DAG) error {
		steps = append(steps, d)
		return nil
	}
	want, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)

	for i, d := range steps[:len(steps)-1] {
		path := filepath.Join(t.TempDir(), "j")
		j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
		require.NoError(t, err)
		require.NoError(t, j.Append(d))
		require.NoError(t, j.Close())
		loaded, err := dag.Load(path)
		require.NoError(t, err)

		executed := map[string]bool{}
		for _, n := range loaded.Nodes() {
			if e, ok := n.Payload().(node.ToolExecution); ok {
				executed[e.Tool] = true // or started: it is in doubt then
			}
		}
		again := twoTurns()
		counted := func(name string) executor.Tool {
			return tool(name, func(context.Context) (any, error) {
				if executed[name] {
					t.Errorf("step %d: %s is executed a second time", i, name)
				}
				return name, nil
			})
		}
		again.Tools = []dag.Tool{counted("a"), counted("b"), broken}
		script := []apitest.Turn{apitest.Call(callA, callB), apitest.Call(call("broken"), call("nobody")), apitest.Say("Done.")}
		said := 0
		for _, m := range loaded.Messages() {
			if m.Role == content.Assistant {
				said++
			}
		}
		if said == len(script) {
			continue // the answer is there, and nothing is left to be done
		}
		again.Provider = apitest.NewScript(script[said:]...)
		got, err := again.Run(t.Context(), loaded)
		require.NoError(t, err, "step %d", i)
		require.Equal(t, len(want.Messages()), len(got.Messages()), "step %d", i)
		require.Empty(t, got.OpenCalls())
	}
}

func TestFailedSaveEndsTheRun(t *testing.T) {
	full := errors.New("the disk is full")
	for fail := 1; fail <= 7; fail++ {
		calls := 0
		agent := twoTurns()
		model := agent.Provider.(*apitest.Script)
		agent.Save = func(context.Context, dag.DAG) error {
			if calls++; calls == fail {
				return full
			}
			return nil
		}
		asked := -1
		var end executor.End
		var last error
		for event, err := range agent.Stream(t.Context(), dag.New().User("Go.")) {
			if calls == fail && asked < 0 {
				asked = len(model.Requests())
			}
			if e, ok := event.(executor.End); ok {
				end, last = e, err
			}
		}
		require.ErrorIs(t, last, full, "call %d of Save", fail)
		require.Equal(t, fail, calls, "Save is not called again")
		require.Len(t, model.Requests(), asked, "the model is not asked again")
		require.Empty(t, end.DAG.OpenCalls())
		if fail < 7 {
			require.Equal(t, content.StopError, end.Stop.Reason, "call %d of Save", fail)
		}
	}
}

func TestErrorOfSaveComesAfterThatOfTheRun(t *testing.T) {
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Say("Half of").Fail(&api.Error{Kind: api.ErrAuth})),
		Save: func(_ context.Context, d dag.DAG) error {
			if d.Len() > 2 {
				return errors.New("the disk is full")
			}
			return nil
		},
	}
	_, err := agent.Run(t.Context(), ask())
	require.EqualError(t, err, "not authorized\nexecutor: save: the disk is full")
}

func TestPausedRunIsSaved(t *testing.T) {
	var saved dag.DAG
	agent := executor.Agent{
		Provider: once(callA, callB, call("nobody")), Tools: []dag.Tool{toolA, executor.DeferredTool(content.Tool{Name: "b", Schema: `{"type":"object"}`})},
		Save: func(_ context.Context, d dag.DAG) error { saved = d; return nil },
	}
	d, err := agent.Run(t.Context(), ask())
	pauseOf(t, err)
	require.Equal(t, d.Heads(), saved.Heads())
	require.Len(t, d.Heads(), 3, "two of three calls have a result, and the third waits")

	d, err = agent.Resume(t.Context(), d, replySet{"b": failed("x")}.of(d)...)
	require.NoError(t, err)
	require.Equal(t, d.Heads(), saved.Heads())
	require.Equal(t, []string{"a", "error: x", `error: Tool "nobody" not found. Available tools: a, b`}, outcomes(t, d))

	full := errors.New("the disk is full")
	agent.Provider = once(callB)
	agent.Save = func(_ context.Context, d dag.DAG) error {
		if len(d.OpenCalls()) > 0 {
			return full
		}
		return nil
	}
	_, err = agent.Run(t.Context(), ask())
	require.ErrorIs(t, err, full)
}

func TestExecuteToolsSavesEachResult(t *testing.T) {
	var steps []int
	agent := executor.Agent{Tools: []dag.Tool{toolA, toolB}, Strategy: executor.Sequential()}
	agent.Save = func(_ context.Context, d dag.DAG) error {
		steps = append(steps, len(d.OpenCalls()))
		return nil
	}
	d, err := agent.ExecuteTools(t.Context(), ask(toolA, toolB).Assistant("", callA, callB))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, outcomes(t, d))
	require.Equal(t, []int{2, 1, 0}, steps, "the first start, the first result with the second start, and all results")

	full := errors.New("the disk is full")
	agent.Save = func(context.Context, dag.DAG) error { return full }
	d, err = agent.ExecuteTools(t.Context(), ask(toolA, toolB).Assistant("", callA, callB))
	require.ErrorIs(t, err, full)
	require.Empty(t, d.OpenCalls())
}

// TestExecuteToolsSavesTheLastResultBeforeAPauseAtOneOfSeveralHeads: after a crash, a call whose result is not saved is
// in doubt.
func TestExecuteToolsSavesTheLastResultBeforeAPauseAtOneOfSeveralHeads(t *testing.T) {
	far := executor.DeferredTool(content.Tool{Name: "far", Schema: `{"type":"object"}`})
	root := ask(toolA, far)
	var saved dag.DAG
	agent := executor.Agent{Save: func(_ context.Context, d dag.DAG) error { saved = d; return nil }}

	d, err := agent.ExecuteTools(t.Context(), root.Assistant("", callA, call("far")).Join(root.Assistant("Here I am.")))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Equal(t, d.Heads(), saved.Heads())

	full := errors.New("the disk is full")
	agent.Save = func(_ context.Context, d dag.DAG) error {
		for _, n := range d.Nodes() {
			if e, ok := n.Payload().(node.ToolExecution); ok && e.State == "" {
				return full
			}
		}
		return nil
	}
	_, err = agent.ExecuteTools(t.Context(), root.Assistant("", callA, call("far")).Join(root.Assistant("Here I am.")))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.ErrorIs(t, err, full)
}

func TestCancelledRunIsSavedWithAContextThatIsNotCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(call("stops"))),
		Tools:    []dag.Tool{tool("stops", func(context.Context) (any, error) { cancel(); return "stopped", nil })},
	}
	var saved dag.DAG
	agent.Save = func(ctx context.Context, d dag.DAG) error {
		saved = d
		return ctx.Err() // as a database does
	}

	end, err := agent.Run(ctx, dag.New().User("Go."))
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "save")
	require.True(t, dag.Equal(end, saved))
	require.Equal(t, content.StopCancelled, stopped(t, saved).Reason)
}

// TestSaveKeepsTheOtherHeads runs calls that are open at one of several heads: a crash must not lose the others.
func TestSaveKeepsTheOtherHeads(t *testing.T) {
	asked := ask(toolA).Assistant("", callA)
	d := asked.WithHeads(asked.Nodes()[0]).User("Something else.").Join(asked)
	other := d.Heads()[0]
	saves := 0
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Say("Done.")), Tools: []dag.Tool{toolA},
		Save: func(_ context.Context, d dag.DAG) error {
			saves++
			require.True(t, d.Contains(other))
			return nil
		},
	}
	_, err := agent.Run(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, 4, saves, "the beginning, the start, the results, and the response with the end")
}

// TestConsumerThatLeavesBeforeACallLeavesItUnstarted: its start was saved, and it must not be in doubt.
func TestConsumerThatLeavesBeforeACallLeavesItUnstarted(t *testing.T) {
	for _, leaveAt := range []string{"MessageEnd", "ToolStart", "ToolEnd"} {
		t.Run(leaveAt, func(t *testing.T) {
			var saved dag.DAG
			agent := executor.Agent{
				Provider: once(callA, callB), Strategy: executor.Sequential(), Tools: []dag.Tool{toolA, toolB},
				Save: func(_ context.Context, d dag.DAG) error { saved = d; return nil },
			}
			for event, err := range agent.Stream(t.Context(), dag.New().User("Go.")) {
				require.NoError(t, err)
				if fmt.Sprintf("%T", event) == "executor."+leaveAt {
					break
				}
			}
			require.Empty(t, starts(saved))
			open := 2
			if leaveAt == "ToolEnd" {
				open = 1
			}
			require.Len(t, saved.OpenCalls(), open)
		})
	}
}

func TestResultsThatArriveDuringASaveAreSavedTogether(t *testing.T) {
	const calls = 8
	firstSaved, ended := make(chan struct{}), make(chan struct{}, calls)
	work := executor.WithTimeout(tooltest.Func("work", func(ctx context.Context, call executor.Call) (any, error) {
		context.AfterFunc(ctx, func() { ended <- struct{}{} }) // its own context ends when it has its result
		if call.Index > 0 {
			<-firstSaved
		}
		return "ok", nil
	}), time.Hour)
	var open []int
	agent := executor.Agent{Tools: []dag.Tool{work}}
	agent.Save = func(_ context.Context, d dag.DAG) error {
		if open = append(open, len(d.OpenCalls())); len(open) == 2 {
			close(firstSaved)
			for range calls {
				<-ended
			}
		}
		return nil
	}

	d, err := agent.ExecuteTools(t.Context(), ask(work).Assistant("", slices.Repeat([]content.Block{call("work")}, calls)...))
	require.NoError(t, err)
	require.Empty(t, d.OpenCalls())
	require.Equal(t, []int{calls, calls - 1, 0}, open, "the starts, the first result, and all others with their message")
}

func TestHookDecidesAboutCallsThatAreSaved(t *testing.T) {
	var saved dag.DAG
	agent := executor.Agent{
		Provider: once(callA), Tools: []dag.Tool{toolA},
		Save: func(_ context.Context, d dag.DAG) error { saved = d; return nil },
		Hooks: []executor.Hook{{Before: func(context.Context, executor.Call) (executor.Decision, error) {
			require.Len(t, saved.OpenCalls(), 1)
			require.Empty(t, starts(saved))
			return executor.Allow(), nil
		}}},
	}
	_, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.NotEmpty(t, executed(saved))
}
