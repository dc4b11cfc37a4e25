package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// A fork of a conversation at a message with a call does not forget that the call was started before the fork.
func TestCallThatWasStartedOnAnotherBranchIsInDoubt(t *testing.T) {
	ran := 0
	pay := tool("pay", func(context.Context) (any, error) { ran++; return "paid", nil })
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done."), apitest.Say("Done.")), Tools: []dag.Tool{pay}, Log: quiet}
	asked := ask(pay).Assistant("I pay.", call("pay"))
	crashed := asked.AppendExecutions(node.ToolExecution{Index: 1, State: node.ExecutionStarted, Started: startedAt})

	for name, d := range map[string]dag.DAG{
		"beside it":     crashed.User("Never mind.").Join(asked),
		"under a ref":   crashed.User("Never mind.").WithRef("before").WithHeads(asked.Head()),
		"it was closed": crashed.CloseTools().Join(asked),
	} {
		require.NoError(t, d.Err(), name)
		agent.Provider = apitest.NewScript(apitest.Say("Done."), apitest.Say("Done."))
		got, _ := agent.Run(t.Context(), d)
		require.Zero(t, ran, name)
		require.Contains(t, got.Text()+outcomesOf(got), "in_doubt", name)
	}

	// A fork of a call that nobody has started executes it.
	_, err := agent.ExecuteTools(t.Context(), asked.User("Never mind.").Join(asked))
	require.NoError(t, err)
	require.Equal(t, 1, ran)
}

// outcomesOf returns the states of all executions of d.
func outcomesOf(d dag.DAG) (states string) {
	for _, n := range d.Nodes() {
		if e, is := n.Payload().(node.ToolExecution); is {
			states += string(e.State) + " "
		}
	}
	return states
}
