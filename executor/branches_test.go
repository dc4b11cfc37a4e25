package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// branches is a conversation of three heads: two open calls, an answer, and a third call.
func branches(t *testing.T, tools ...dag.Tool) dag.DAG {
	t.Helper()
	root := ask(tools...)
	one, two := call("fast"), call("fast")
	one.ID, two.ID = "one", "two"
	open := root.Assistant("", one, two)
	other := root.Assistant("Here I am.")
	third := root.Assistant("Third.", two)
	d := open.Join(other, third)
	require.Len(t, d.Heads(), 3)
	return d
}

func TestCallsThatAreOpenAtAnyHeadAreExecuted(t *testing.T) {
	model := apitest.NewScript(apitest.Say("Done."))
	agent := executor.Agent{Provider: model, System: "You are A."}
	all, end, err := watch(t, agent.Stream(t.Context(), branches(t, fast)))
	require.NoError(t, err)
	require.Len(t, model.Requests(), 1)
	results := 0
	for _, m := range model.Requests()[0].Messages {
		for _, r := range m.Blocks.ToolResults() {
			require.Equal(t, "fast", r.Content.Text())
			results++
		}
	}
	require.Equal(t, 3, results)
	require.Equal(t, []string{"You are A."}, model.Requests()[0].System)
	require.Len(t, only[executor.ToolEnd](all), 3)
	require.Equal(t, []int{0, 0, 1}, turnsOf(only[executor.TurnEnd](all)))
	require.Len(t, only[executor.TurnEnd](all)[0].DAG.Heads(), 3, "the other heads stay")
	requireValid(t, end.DAG)
	require.Len(t, end.DAG.Heads(), 1)

	d, err := executor.ExecuteTools(t.Context(), branches(t, fast))
	require.NoError(t, err)
	require.Len(t, d.Heads(), 3)
	for _, h := range d.Heads() {
		require.Empty(t, d.WithHeads(h).OpenCalls())
	}
	requireValid(t, d)
}

func turnsOf(ends []executor.TurnEnd) []int {
	var turns []int
	for _, e := range ends {
		turns = append(turns, e.Turn)
	}
	return turns
}

// TestPauseAtOneOfSeveralHeadsLosesNoHead: it is resumed without the others.
func TestPauseAtOneOfSeveralHeadsLosesNoHead(t *testing.T) {
	root := ask(fast)
	open := root.Assistant("", call("fast"))
	d := open.Join(root.Assistant("Here I am."))
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Hooks: []executor.Hook{executor.RequireApproval()}}
	after, err := agent.Run(t.Context(), d)
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	require.Len(t, after.Pending(), 1)
	require.Equal(t, d.Heads()[1], after.Heads()[1], "the other branch stays")

	after, err = agent.Resume(t.Context(), after, executor.Approved(after.Pending()[0]))
	require.NoError(t, err)
	require.Equal(t, []string{"fast"}, outcomes(t, after))
}

func TestBranchesAreCutOffWithTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stops := tool("stops", func(context.Context) (any, error) { cancel(); return "stopped", nil })
	root := ask(stops)
	d := root.Assistant("", call("stops")).Join(root.Assistant("More.", call("stops")), root.Assistant("Here I am."))
	end, err := executor.Agent{Provider: api.Provider(apitest.NewScript())}.Run(ctx, d)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, content.StopCancelled, stopped(t, end).Reason)
	requireValid(t, end)
}

func TestTurnEndOfABranchReportsTheUsageOfItsOwnCalls(t *testing.T) {
	bills := tool("bills", func(context.Context) (any, error) {
		return executor.Result{Content: content.Words("ok"), Usage: content.Usage{Input: 7}}, nil
	})
	root := ask(bills)
	d := root.Assistant("", call("bills")).Join(root.Assistant("More.", call("bills")))
	all, end, err := watch(t, executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Done.")), d))
	require.NoError(t, err)

	var usage []content.Usage
	for _, e := range only[executor.TurnEnd](all) {
		usage = append(usage, e.ToolUsage)
	}
	require.Equal(t, []content.Usage{{Input: 7}, {Input: 7}, {}}, usage)
	require.Equal(t, content.Usage{Input: 14}, end.Stop.ToolUsage)
}
