package executor_test

import (
	"context"
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

// An agent that calls itself by a tool of the program's own, and not by SubAgent, comes to an end as well.
func TestDepthLimitHoldsForEveryRunInsideATool(t *testing.T) {
	var agent executor.Agent
	deepest, refused := 0, ""
	nest := executor.Func("nest", "", func(ctx context.Context, _ none) (string, error) {
		deepest++
		d, err := agent.Run(ctx, dag.New().User("Go."))
		if err != nil {
			refused = err.Error()
		}
		return d.Text(), err
	})
	agent.Provider = apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		if len(req.Messages) > 1 {
			return apitest.Say("Done.")
		}
		return apitest.Call(call("nest"))
	}).Always())
	agent.Tools, agent.Limits = []dag.Tool{nest}, executor.Limits{Depth: 3}
	_, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, 4, deepest, "the fourth is refused")
	require.Equal(t, "sub-agents may nest no deeper than 3", refused)
}

// A sub-agent that is refused has a conversation too: its task.
func TestRefusedSubAgentKeepsItsConversation(t *testing.T) {
	sub := executor.SubAgent("sub", "", executor.Agent{}) // it has no provider
	for event := range executor.Stream(t.Context(), once(apitest.Use("sub", executor.Task{Task: "The task."})), ask(sub)) {
		if end, ok := event.(executor.ToolEnd); ok {
			require.True(t, end.Execution.IsError)
			require.Equal(t, 1, end.Execution.Child.Len())
		}
	}
}

// A tool may hold its conversation by Agent.Run as well as by SubAgent: it hangs on the call's execution, as Result.Child says.
func TestRunInsideAToolKeepsItsConversation(t *testing.T) {
	inner := executor.Agent{Provider: apitest.NewScript(apitest.Say("inner").Usage(content.Usage{Input: 5}))}
	nest := executor.Func("nest", "", func(ctx context.Context, _ none) (string, error) {
		_, err := inner.Run(ctx, dag.New().User("Go."))
		return "outer", err
	})
	var done node.ToolExecution
	for event := range executor.Stream(t.Context(), once(call("nest")), ask(nest)) {
		if end, ok := event.(executor.ToolEnd); ok {
			done = end.Execution
		}
	}
	require.Equal(t, int64(5), done.Usage.Input)
	require.Equal(t, 1, done.Child.Len())
	require.Equal(t, "inner", dag.New().WithHeads(done.Child.Slice()...).Text())
	require.Equal(t, content.StopEndTurn, done.Child.Slice()[0].Payload().(node.StopReason).Reason)
}

func TestSubAgentExecutionCountsTheUsageOfItsTools(t *testing.T) {
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
func TestChildConversationIsComplete(t *testing.T) {
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
