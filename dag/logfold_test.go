package dag_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// TestLogsAtTheirLimits holds whole logs at the limits of LogOptions, and one beyond.
func TestLogsAtTheirLimits(t *testing.T) {
	chain := func(n int) dag.DAG {
		d := fresh()
		for i := range n {
			d = d.User(fmt.Sprint("message ", i))
		}
		return d
	}
	fan := func(n int) dag.DAG {
		var calls []content.Block
		var runs []node.ToolExecution
		for i := range n {
			calls, runs = append(calls, use(fmt.Sprint(i), "f", "{}")), append(runs, execution(i, fmt.Sprint(i)))
		}
		return fresh().User("q").Assistant("", calls...).CloseTools(runs...).Assistant("a")
	}
	broken := execution(0, "no station")
	broken.IsError = true
	colored := fresh().System("s").Tools(declared("f", "")).User("q").WithRef("here").
		Assistant("", use("a", "f", "{}"), use("b", "f", "{}")).CloseTools(broken, execution(1, "x")).Assistant("a").
		Append(node.Compaction{Summary: content.Words("sum")}).SubGraph("child", fresh().WithSource(later(1)).User("in")).
		Custom("acme.note", 1).Stop(content.StopError)
	records, agents := fresh(), fresh()
	for i := range 17 {
		records = records.Custom("acme.note", i)
		agents = agents.SubGraph("child", fresh().WithSource(later(i+1)).User("in"))
	}
	forked := chain(16)
	forked = forked.User("left").Join(forked.User("right")).User("1").User("2").User("3").User("4").User("end")
	long := fresh().User(strings.Repeat("x", 200))
	var all strings.Builder
	for _, c := range []struct {
		name string
		d    dag.DAG
		o    dag.LogOptions
	}{
		{"nothing", fresh(), dag.LogOptions{}},
		{"width 0", long, dag.LogOptions{}},
		{"width -1", long, dag.LogOptions{Width: -1}},
		{"width 1", long, dag.LogOptions{Width: 1}},
		{"width 39", long, dag.LogOptions{Width: 39}},
		{"width 40", long, dag.LogOptions{Width: 40}},
		{"width 41", long, dag.LogOptions{Width: 41}},
		{"chain of 15, folded", chain(15), dag.LogOptions{Fold: true}},
		{"chain of 16, folded", chain(16), dag.LogOptions{Fold: true}},
		{"ref in a chain of 17, folded", chain(8).WithRef("here").WithHeads(chain(17).Head()), dag.LogOptions{Fold: true}},
		{"sub-agent with a chain of 17, folded", fresh().WithSource(later(1)).User("q").SubGraph("child", chain(17)), dag.LogOptions{Fold: true}},
		{"chain of 17 records, folded", records, dag.LogOptions{Fold: true}},
		{"chain of 17 sub-agents, folded", agents, dag.LogOptions{Fold: true}},
		{"fork after a folded run", forked, dag.LogOptions{Fold: true}},
		{"fan of 8, folded", fan(8), dag.LogOptions{Fold: true}},
		{"fan of 9, folded", fan(9), dag.LogOptions{Fold: true}},
		{"last 2 of 3", chain(3), dag.LogOptions{Last: 2}},
		{"last 3 of 3", chain(3), dag.LogOptions{Last: 3}},
		{"last 4 of 3", chain(3), dag.LogOptions{Last: 4}},
		{"every kind", colored, dag.LogOptions{}},
		{"every kind in color", colored, dag.LogOptions{Color: true}},
	} {
		require.NoError(t, c.d.Err(), c.name)
		all.WriteString("# " + c.name + "\n" + strings.ReplaceAll(logOf(t, c.d, &c.o), "\x1b", "ESC") + "\n")
	}
	goldentest.Require(t, "loglimits.golden", all.String())
}

// TestFoldedLogHasALimit: of a conversation of any length it writes at most 60 rows, with the first failures.
func TestFoldedLogHasALimit(t *testing.T) {
	turns := func(n, every int) dag.DAG {
		d := fresh()
		for i := range n {
			result := execution(0, fmt.Sprint("done ", i))
			result.IsError = every > 0 && i%every == every-1
			d = d.User(fmt.Sprint("turn ", i)).Assistant("", use("1", "step", "{}")).CloseTools(result)
		}
		return d.Assistant("fine")
	}
	rows := func(d dag.DAG) []string {
		require.NoError(t, d.Err())
		return strings.Split(strings.TrimSpace(logOf(t, d, &dag.LogOptions{Fold: true})), "\n")
	}

	long := rows(turns(5_000, 11)) // 20,001 nodes, 454 failures
	require.Len(t, long, 18+1+20+1+18)
	require.Equal(t, "○ user      turn 0", long[0])
	require.Regexp(t, `^⋮ [\d,]+ rows left out, with \d+ failures, of which the first 20:$`, long[18])
	for _, row := range long[19:39] {
		require.Contains(t, row, "step ✗ done")
	}
	require.Contains(t, long[len(long)-1], "fine")
	for _, row := range rows(turns(5_000, 0)) {
		require.NotContains(t, row, "left out", "a run without failures is short anyway")
	}
	require.LessOrEqual(t, len(rows(turns(30, 7))), 60)

	branches := turns(100, 0)
	for i := range 40 {
		branches = branches.Join(fresh().WithSource(later(i + 1)).User("root").User("again"))
	}
	all := rows(branches)
	require.Len(t, all, 18+1+18)
	require.Regexp(t, `rows left out, no failures$`, all[18])
}

func TestUnreachedNodesAreListedWithTheirSize(t *testing.T) {
	kept, dropped := line(1, `"kind":"system","body":{"text":"a"}`), line(2, `"kind":"system","body":{"text":"b"}`)
	d := read(t, document(`,"heads":[`+ref(1)+`]`, kept, dropped))
	size := len(written(t, d)) - len(written(t, d.Prune()))
	require.Equal(t, fmt.Sprintf("1 node out of reach, %d bytes\nsystem 00000002", size), d.Unreachable().String())
	require.Equal(t, "0 nodes out of reach, 0 bytes", d.Prune().Unreachable().String())
}
