package dag_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
)

// step extends a conversation by something random, right or wrong.
func step(r *rand.Rand, d dag.DAG, others []dag.DAG) dag.DAG {
	id := func() string { return fmt.Sprint("c", r.IntN(4)) }
	switch r.IntN(12) {
	case 0:
		return d.User("on")
	case 1:
		return d.Assistant("so")
	case 2, 3, 4:
		return d.Assistant("", use(id(), "f", "{}"), use(id(), []string{"f", "g"}[r.IntN(2)], "{}"))
	case 5:
		return d.ToolResults(result(id(), "x"))
	case 6:
		if calls := d.OpenCalls(); len(calls) > 1 && d.CloseTools().Err() == nil { // several branches have no phase together
			return d.AppendExecutions(execution(calls[r.IntN(len(calls))].Index, "x"))
		}
		return d.Custom("note", 1)
	case 7, 8:
		if len(d.OpenCalls()) > 0 && d.CloseTools().Err() == nil {
			return d.CloseTools()
		}
		return d.Stop(content.StopEndTurn)
	case 9:
		return d.Join(others[r.IntN(len(others))]).User("both")
	case 10:
		if r.IntN(4) == 0 {
			nodes := d.Nodes()
			replaced := node.ListOf(nodes[r.IntN(len(nodes))].ID(), nodes[r.IntN(len(nodes))].ID())
			return d.Append(node.Compaction{Summary: content.Words("sum"), Replaced: replaced})
		}
		return d.User("more")
	}
	return d.Join(others[r.IntN(len(others))])
}

func TestConversationsThatShareABeginningAreValidatedAsEachByItself(t *testing.T) {
	for round := range seedtest.Rounds(200, 20_000) {
		seed := seedtest.First(t) + uint64(round)
		r := rand.New(rand.NewPCG(seed, seed))
		source := node.Counting(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		pool := []dag.DAG{dag.New().WithSource(source).Tools(declared("f", "")).User("Start")}
		for range 40 {
			next := step(r, pool[max(0, len(pool)-1-r.IntN(6))], pool)
			require.NoError(t, next.Err())
			pool = append(pool, next)
		}

		// The same findings as of each conversation by itself, whatever the order.
		want := map[string]bool{}
		parent := dag.New().WithSource(source).User("Start")
		for _, i := range r.Perm(len(pool)) {
			parent = parent.SubGraph("child", pool[i])
			for _, f := range pool[i].Validate() {
				want[f.String()] = true
			}
		}
		got := map[string]bool{}
		for _, f := range parent.Validate() {
			require.False(t, got[f.String()], "%v is reported twice", f)
			got[f.String()] = true
		}
		require.Equal(t, want, got, "round %d, seed %d", round, seed)
	}
}

func TestToolDeclaredAfterItsCallIsDeclared(t *testing.T) {
	start := fresh().User("q").Assistant("", use("a", "f", "{}")).CloseTools(execution(0, "x"))
	require.Equal(t, []dag.FindingKind{dag.UndeclaredTool}, kinds(start))
	later := start.Tools(declared("f", ""))
	require.Empty(t, kinds(later))

	// Also if the declaration is in one of several conversations with the call.
	for _, children := range [][]dag.DAG{{start, later}, {later, start}, {start.User("on"), later.User("on"), start}} {
		d := dag.New().WithSource(node.Source{}).User("Start")
		for _, c := range children {
			d = d.SubGraph("child", c)
		}
		require.Empty(t, kinds(d))
	}

	// A declaration after another call, which comes later, counts for both.
	twice := start.Assistant("", use("b", "f", "{}")).CloseTools(execution(0, "x"))
	require.Equal(t, []dag.FindingKind{dag.UndeclaredTool, dag.UndeclaredTool}, kinds(twice))
	require.Empty(t, kinds(twice.Tools(declared("f", ""))))
	require.True(t, slices.ContainsFunc(twice.Tools(declared("g", "")).Validate(), func(f dag.Finding) bool { return f.Kind == dag.UndeclaredTool }))
}
