package dag_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// begun adds the start of a run by an agent.
func begun(d dag.DAG, agent string) dag.DAG {
	return d.Append(node.RunStart{Agent: agent, Run: "run of " + agent})
}

// responded adds a response that took 10 tokens.
func responded(d dag.DAG, blocks ...content.Block) dag.DAG {
	list, _ := content.Of(blocks...)
	return d.Append(node.Message{Role: content.Assistant, Blocks: list, Answer: node.Answer{Usage: content.Usage{Input: 10}}})
}

func TestLastRunIsTheNewest(t *testing.T) {
	stop := node.StopReason{Reason: content.StopMaxTurns, Turns: 9, Cost: 2, CostKnown: true}
	first := begun(fresh().User("One."), "a").Assistant("1").Append(stop)
	run, ok := first.LastRun()
	require.True(t, ok)
	require.Equal(t, dag.Run{Start: node.RunStart{Agent: "a", Run: "run of a"}, Stop: stop, Final: true}, run)

	// What follows the end is no part of it.
	run, _ = responded(first.User("And?")).LastRun()
	require.Equal(t, stop, run.Stop)

	second := responded(responded(begun(first.User("Two."), "b")))
	run, ok = second.LastRun()
	require.True(t, ok)
	require.Equal(t, "b", run.Start.Agent)
	require.Equal(t, node.StopReason{Turns: 2, Usage: content.Usage{Input: 20}, Elapsed: 2 * time.Second}, run.Stop)
	require.False(t, run.Final, "its end is not in the conversation")

	// Of two branches, it is that of the last head.
	run, _ = second.Join(first).LastRun()
	require.Equal(t, "a", run.Start.Agent)
	run, _ = first.Join(second).LastRun()
	require.Equal(t, "b", run.Start.Agent)
}

func TestLastRunOfAPausedRun(t *testing.T) {
	d := responded(begun(fresh().User("Go."), "a"), use("0", "f", "{}"), use("1", "f", "{}"), use("2", "f", "{}"))
	waits := func(index int, state node.ExecutionState) node.ToolExecution {
		return node.ToolExecution{Index: index, State: state, Usage: content.Usage{Output: 1}}
	}
	for want, states := range map[content.Stop][]node.ExecutionState{
		"":                   {node.ExecutionStarted, node.ExecutionStarted},
		content.StopResults:  {node.ExecutionStarted, node.ExecutionAwaitingResults},
		content.StopApproval: {node.ExecutionAwaitingApproval, node.ExecutionAwaitingResults},
	} {
		paused := d.AppendExecutions(execution(0, "ok"), waits(1, states[0]), waits(2, states[1]))
		run, ok := paused.LastRun()
		require.True(t, ok)
		require.Equal(t, "a", run.Start.Agent)
		require.Positive(t, run.Stop.Elapsed)
		run.Stop.Elapsed = 0
		require.Equal(t, node.StopReason{Reason: want, Turns: 1, ToolCalls: 1, Usage: content.Usage{Input: 10},
			ToolUsage: content.Usage{Output: 2}}, run.Stop)
	}
}

func TestLastRunWithoutAStart(t *testing.T) {
	for _, d := range []dag.DAG{dag.New(), fresh().User("Hi."), fresh().User("Hi.").Assistant("Hi.")} {
		run, ok := d.LastRun()
		require.False(t, ok)
		require.Zero(t, run)
	}

	// An import may have ends without starts. The start of an earlier run is not that of a later one.
	d := begun(fresh().User("One."), "a").Assistant("1").Stop(content.StopEndTurn).User("Two.").Stop(content.StopMaxTurns)
	run, ok := d.LastRun()
	require.True(t, ok)
	require.Equal(t, dag.Run{Stop: node.StopReason{Reason: content.StopMaxTurns}, Final: true}, run)
}

// twice returns a conversation without the starts of its runs, and the same with them: by one agent each, in a sub-agent
// too, and one with two starts in a row.
func twice() [2]dag.DAG {
	build := func(start func(dag.DAG, string) dag.DAG) dag.DAG {
		child := start(dag.New().WithSource(later(1)).User("Find it."), "finder").Assistant("Found.").Stop(content.StopEndTurn)
		d := start(fresh().System("s").User("One."), "").Assistant("", use("0", "f", "{}"), use("1", "f", "{}")).
			CloseTools(node.ToolExecution{Result: content.Words("ok"), Child: node.ListOf(child.Heads()...)}, execution(1, "ok")).
			Assistant("1").Stop(content.StopEndTurn)
		d = start(start(d.User("Two."), ""), "").Assistant("2").Stop(content.StopEndTurn)
		fork := start(d.User("Three."), "").Assistant("3")
		return fork.Join(start(d.User("Four."), "").Assistant("4"))
	}
	return [2]dag.DAG{build(func(d dag.DAG, _ string) dag.DAG { return d }), build(begun)}
}

func TestTheLogLeavesOutTheStartsOfRuns(t *testing.T) {
	both := twice()
	require.NoError(t, both[1].Err())
	require.Equal(t, both[0].String(), both[1].String())
	for _, o := range []dag.LogOptions{{}, {Last: 5}, {Fold: true}, {Last: 3, Fold: true}} {
		require.Equal(t, logged(t, both[0], &o), logged(t, both[1], &o))
	}
}

func TestTheLogShowsAStartThatMatters(t *testing.T) {
	rows := func(d dag.DAG) (list []string) {
		for row := range strings.Lines(logged(t, d, nil)) {
			if strings.Contains(row, "▸") {
				list = append(list, strings.TrimSpace(row))
			}
		}
		return list
	}

	first := begun(fresh().User("One."), "a")
	require.Equal(t, []string{"▸ run       (head) by a"}, rows(first), "a head has a row")
	require.Equal(t, []string{"▸ run       (here) by a"}, rows(first.WithRef("here").Assistant("1")), "so has a ref")
	handed := begun(begun(first.Assistant("1").User("Two."), "a").Assistant("2").User("Three."), "b").Assistant("3")
	require.Equal(t, []string{"▸ run       by b"}, rows(handed), "and a start by another agent")
	require.Equal(t, []string{"▸ run       by a"}, rows(begun(handed.User("Four."), "a").Assistant("4"))[1:])
	require.Empty(t, rows(begun(first.Assistant("1").User("Two."), "").Assistant("2")), "without a name there is nothing to show")
	require.Len(t, rows(begun(fresh(), "a").User("One.")), 1, "a root has a row")
}

// logged returns the log that WriteLog writes.
func logged(t *testing.T, d dag.DAG, o *dag.LogOptions) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, d.WriteLog(&b, o))
	return b.String()
}
