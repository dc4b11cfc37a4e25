package dag_test

import (
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func waits(index int, state node.ExecutionState) node.ToolExecution {
	return node.ToolExecution{Index: index, State: state}
}

func TestPendingIsWhatWaitsForSomebody(t *testing.T) {
	asked := askWeather()
	message := asked.Head().ID()
	ask := waits(2, node.ExecutionAwaitingApproval)
	ask.Ran, ask.Note, ask.Deferred = node.Ran{Tool: "get_forecast", Input: `{"city":"Oslo"}`}, "It costs.", true
	begun := waits(1, node.ExecutionAwaitingResults)
	begun.Started = start
	d := asked.AppendExecutions(ask, begun)

	require.Equal(t, []dag.Pending{
		{
			Key: node.CallKey{Message: message, Index: 1}, Tool: "get_weather", Input: `{"city":"Paris"}`, Deferred: true, Started: start,
			Call: dag.Call{Name: "get_weather", Input: `{"city":"Paris"}`, Message: message, Index: 1, ID: "t2"},
		},
		{
			Key: node.CallKey{Message: message, Index: 2}, Tool: "get_weather", Input: `{"city":"New York"}`, Approval: true, Deferred: true, Note: "It costs.",
			Call: dag.Call{Name: "get_forecast", Input: `{"city":"Oslo"}`, Message: message, Index: 2, ID: "t3"},
		},
	}, d.Pending())
	require.Len(t, d.OpenCalls(), 3, "the first call is open, and nobody decided about it")
	require.Empty(t, asked.AppendExecutions(started(0)).Pending(), "a call that runs here waits for nobody")
	require.Empty(t, asked.AppendExecutions(execution(1, "b")).Join(d).AppendExecutions(execution(2, "c")).Pending(),
		"a call with a result waits no more, though its unfinished execution is a head too")
}

func TestPendingCoversEveryHeadAndDepth(t *testing.T) {
	inner := dag.New().User("Go.").Assistant("", use("i", "erase", "{}")).AppendExecutions(waits(0, node.ExecutionAwaitingApproval))
	middle := dag.New().User("Go.").Assistant("Deep.", use("m", "agent", "{}"), use("n", "mail", "{}")).
		AppendExecutions(pausedIn(1, inner), waits(2, node.ExecutionAwaitingResults))
	outer := dag.New().User("Go.").Assistant("", use("o", "agent", "{}")).AppendExecutions(pausedIn(0, middle))
	other := askWeather().AppendExecutions(waits(0, node.ExecutionAwaitingResults))

	key := func(d dag.DAG, index int) node.CallKey {
		return node.CallKey{Message: d.Heads()[0].Parent(0).ID(), Index: index}
	}
	list := outer.Join(dag.New().User("Something else."), other).Pending()
	require.Len(t, list, 3)
	require.Equal(t, []node.CallKey{key(inner, 0), key(middle, 2), key(other, 0)}, []node.CallKey{list[0].Key, list[1].Key, list[2].Key})
	require.Equal(t, []node.CallKey{key(outer, 0), key(middle, 1)}, list[0].Path)
	require.Equal(t, []node.CallKey{key(outer, 0)}, list[1].Path)
	require.Empty(t, list[2].Path)

	// A sub-agent that waits for nothing is no reason to wait: its call itself is what waits.
	idle := dag.New().User("Go.").Assistant("Done.")
	d := dag.New().User("Go.").Assistant("", use("o", "agent", "{}")).AppendExecutions(pausedIn(0, idle))
	require.Equal(t, key(d, 0), d.Pending()[0].Key)
}

func TestStartElsewhereIsInDoubtOnceAnotherNodeFollows(t *testing.T) {
	begun := waits(0, node.ExecutionAwaitingResults)
	begun.Started = start
	d := fresh().User("Send it.").Assistant("", use("a", "mail", "{}")).AppendExecutions(begun)
	e := d.CloseTools().Head().Parent(0).Payload().(node.ToolExecution)
	require.Equal(t, node.ExecutionInDoubt, e.State)
	require.Equal(t, content.OutcomeUnknown, e.Result.Text())
	require.Equal(t, "user:!a="+content.OutcomeUnknown, spell(d.User("And?").Messages())[2])

	waiting := fresh().User("Send it.").Assistant("", use("a", "mail", "{}")).AppendExecutions(waits(0, node.ExecutionAwaitingResults))
	require.Equal(t, content.NoResult, waiting.CloseTools().Head().Parent(0).Payload().(node.ToolExecution).Result.Text(), "nobody began it")
}

func TestBranchesAreValidatedEachForItself(t *testing.T) {
	asked := askWeather()
	a := asked.CloseTools(execution(0, "a"), execution(1, "a"), execution(2, "a"))
	b := asked.CloseTools(execution(0, "b"), execution(1, "b"), execution(2, "b"))
	require.Empty(t, a.Validate())
	require.Empty(t, a.Join(b).Validate(), "each branch answers its calls once")
	require.Empty(t, a.Assistant("A.").Join(b, asked.AppendExecutions(execution(1, "c"))).Validate(), "and so after another step")
	require.NotEmpty(t, a.Join(b).User("And?").Validate(), "the merge sends both")

	// A tool may be declared in another branch.
	calls := fresh().User("x").Assistant("", use("t", "later", "{}"))
	require.Equal(t, []dag.FindingKind{dag.UndeclaredTool}, kinds(calls))
	require.Empty(t, kinds(calls.Join(dag.New().Tools(declared("later", "")))))
	require.Equal(t, []dag.FindingKind{dag.UndeclaredTool}, kinds(calls.Join(dag.New().Tools(declared("sooner", "")))))
}
