package executor_test

import (
	"context"
	"errors"
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

func kinds(d dag.DAG) []string {
	var list []string
	for _, n := range d.Nodes() {
		list = append(list, n.Kind())
	}
	return list
}

// runStarts returns the starts of runs in d, in order.
func runStarts(d dag.DAG) []node.RunStart {
	var list []node.RunStart
	for _, n := range d.Nodes() {
		if start, ok := n.Payload().(node.RunStart); ok {
			list = append(list, start)
		}
	}
	return list
}

func TestARunRecordsWhoRuns(t *testing.T) {
	agent := executor.Agent{
		Name: "support", Version: "3", System: "Be kind.", Tools: []dag.Tool{fast},
		Provider: apitest.NewScript(apitest.Call(call("fast")), apitest.Say("Done.")),
		Limits:   executor.Limits{Turns: -1, Calls: 9, Tokens: 5000, Cost: 2, Time: time.Minute},
		Prices:   api.Prices{"m": {}},
	}
	var run string
	var end executor.End
	for e, err := range agent.Stream(t.Context(), ask()) {
		require.NoError(t, err)
		switch e := e.(type) {
		case executor.RunStart:
			run = e.Run
		case executor.End:
			end = e
		}
	}

	require.Equal(t, []string{"message", "system", "tools", "run_start", "message", "tool_execution", "message", "message",
		"stop_reason"}, kinds(end.DAG), "after the input and the declarations, before the first response")
	want := node.RunStart{Agent: "support", Version: "3", Run: run,
		Limits: node.RunLimits{Calls: 9, Tokens: 5000, Cost: 2, Time: time.Minute}}
	require.Equal(t, []node.RunStart{want}, runStarts(end.DAG))

	last, ok := end.DAG.LastRun()
	require.True(t, ok)
	require.Equal(t, dag.Run{Start: want, Stop: end.Stop, Final: true}, last)
}

func TestTwoRunsThatSaidTheSameAreEqual(t *testing.T) {
	run := func(name string) dag.DAG {
		agent := executor.Agent{Name: name, Provider: apitest.NewScript(apitest.Say("Hi."))}
		d, err := agent.Run(t.Context(), dag.New().User("Hello."))
		require.NoError(t, err)
		return d
	}
	require.True(t, dag.Equal(run("a"), run("a")))
	require.False(t, dag.Equal(run("a"), run("b")))
}

// TestAStartNeverComesBetweenCallsAndResults: after a crash, a run executes the open calls before it records its start.
func TestAStartNeverComesBetweenCallsAndResults(t *testing.T) {
	agent := executor.Agent{Name: "b", Tools: []dag.Tool{fast}, Provider: apitest.NewScript(apitest.Say("Done."))}
	crashed := ask(fast).Append(node.RunStart{Agent: "a"}).Assistant("", call("fast"))
	d, err := agent.Run(t.Context(), crashed)
	require.NoError(t, err)
	requireValid(t, d)
	require.Equal(t, []string{"tools", "message", "run_start", "message", "tool_execution", "message", "run_start", "message",
		"stop_reason"}, kinds(d))

	// A run that is cancelled during these calls has its start after them.
	ctx, cancel := context.WithCancel(t.Context())
	agent.Hooks = []executor.Hook{{After: func(context.Context, executor.Call, executor.Result) (executor.Result, error) {
		cancel()
		return executor.Result{Content: content.Words("ok")}, nil
	}}}
	d, err = agent.Run(ctx, crashed)
	require.ErrorIs(t, err, context.Canceled)
	last, ok := d.LastRun()
	require.True(t, ok)
	require.Equal(t, "b", last.Start.Agent)
	require.Equal(t, content.StopCancelled, last.Stop.Reason)
	require.Equal(t, 1, last.Stop.ToolCalls)
}

// TestARunThatEndsWithTheCallsOfBranchesHasAStart: it reaches its limit before it can record its start.
func TestARunThatEndsWithTheCallsOfBranchesHasAStart(t *testing.T) {
	asked := ask(fast)
	d := asked.Assistant("", call("fast")).Join(asked.Assistant("Two.", call("fast")))
	d, err := executor.Agent{Name: "a", Provider: apitest.NewScript(), Limits: executor.Limits{Calls: 1}}.Run(t.Context(), d)
	require.NoError(t, err)
	last, ok := d.LastRun()
	require.True(t, ok)
	require.Equal(t, "a", last.Start.Agent)
	require.Equal(t, content.StopCallLimit, last.Stop.Reason)
}

func TestAResumedRunHasOneStart(t *testing.T) {
	agent := executor.Agent{
		Tools: []dag.Tool{fast}, Provider: apitest.NewScript(apitest.Call(call("fast")), apitest.Say("Done.")),
		Hooks: []executor.Hook{{Before: func(context.Context, executor.Call) (executor.Decision, error) {
			return executor.AskApproval(""), nil
		}}},
	}
	d, err := agent.Run(t.Context(), ask())
	c := pauseOf(t, err)
	last, ok := d.LastRun()
	require.True(t, ok)
	require.False(t, last.Final)
	require.Equal(t, c.Run, last.Start.Run)
	require.Equal(t, 1, last.Stop.Turns)

	d, err = agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]))
	require.NoError(t, err)
	require.Len(t, runStarts(d), 1)

	// A run that pauses before its first request records its start when it is resumed.
	agent.Provider = apitest.NewScript(apitest.Say("Done."))
	d, err = agent.Run(t.Context(), ask(fast).Assistant("", call("fast")))
	c = pauseOf(t, err)
	require.Empty(t, runStarts(d))
	d, err = agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]))
	require.NoError(t, err)
	requireValid(t, d)
	require.Len(t, runStarts(d), 1)
	require.Equal(t, c.Run, runStarts(d)[0].Run)
}

// TestARunReplacesAStartWithNothingAfterIt: the run before got no further, or the response is asked for again.
func TestARunReplacesAStartWithNothingAfterIt(t *testing.T) {
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.").Always())}
	first, err := agent.Run(t.Context(), ask())
	require.NoError(t, err)
	again, err := agent.Run(t.Context(), first.WithHeads(first.Nodes()[2].Parents()...))
	require.NoError(t, err)
	require.True(t, dag.Equal(first, again))
	require.NotEqual(t, runStarts(first), runStarts(again))
}

func TestAFailedRunHasItsStart(t *testing.T) {
	down := errors.New("down")
	d, err := executor.Agent{Name: "support", Provider: apitest.NewScript(apitest.Fail(down))}.Run(t.Context(), ask())
	require.ErrorIs(t, err, down)
	require.Equal(t, []string{"message", "run_start", "stop_reason"}, kinds(d))

	// A single tool phase is no run.
	d, err = executor.ExecuteTools(t.Context(), ask(fast).Assistant("", call("fast")))
	require.NoError(t, err)
	require.Empty(t, runStarts(d))
}

func TestASubAgentIsNamedAfterItsTool(t *testing.T) {
	inner := executor.Agent{Provider: apitest.NewScript(apitest.Say("Found.").Always())}
	named := inner
	named.Name = "librarian"
	model := apitest.NewScript(apitest.Call(apitest.Use("research", executor.Task{Task: "a"}), apitest.Use("read", executor.Task{Task: "b"})),
		apitest.Say("Done."))
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{
		executor.SubAgent("research", "Researches.", inner), executor.SubAgent("read", "Reads.", named),
	}}
	d, err := agent.Run(t.Context(), ask())
	require.NoError(t, err)

	var names []string
	for _, n := range d.Nodes() {
		if n.Children().Len() > 0 {
			names = append(names, runStarts(dag.FromNode(n))[0].Agent)
		}
	}
	require.Equal(t, []string{"research", "librarian"}, names)
}

// TestAStartNeedsNoSave: it is saved with the first response.
func TestAStartNeedsNoSave(t *testing.T) {
	var saved [][]string
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Save: func(_ context.Context, d dag.DAG) error {
		saved = append(saved, kinds(d))
		return nil
	}}
	_, err := agent.Run(t.Context(), ask())
	require.NoError(t, err)
	require.Equal(t, [][]string{{"message"}, {"message", "run_start", "message", "stop_reason"}}, saved)
}

// TestLastRunOfAnInterruptedRunAddsUpItsNodes: what was saved says how far the run got.
func TestLastRunOfAnInterruptedRunAddsUpItsNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool("slow", func(context.Context) (any, error) {
			time.Sleep(time.Second)
			return executor.Result{Content: content.Words("ok"), Usage: content.Usage{Output: 7}}, nil
		})
		var saved dag.DAG
		agent := executor.Agent{
			Name: "support", Tools: []dag.Tool{slow},
			Provider: apitest.NewScript(apitest.Call(call("slow")).Usage(content.Usage{Input: 10}),
				apitest.Call(call("slow")).Usage(content.Usage{Input: 20}), apitest.Say("Done.")),
			Save: func(_ context.Context, d dag.DAG) error {
				if run, _ := d.LastRun(); !run.Final {
					saved = d
				}
				return nil
			},
		}
		_, err := agent.Run(t.Context(), ask())
		require.NoError(t, err)

		last, ok := saved.LastRun()
		require.True(t, ok)
		require.Equal(t, "support", last.Start.Agent)
		last.Start = node.RunStart{}
		require.Equal(t, dag.Run{Stop: node.StopReason{Turns: 2, ToolCalls: 2, Usage: content.Usage{Input: 30},
			ToolUsage: content.Usage{Output: 14}, Elapsed: 2 * time.Second}}, last)
	})
}
