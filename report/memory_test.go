package report_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/report"
)

// long returns a conversation whose steps have texts of more than 120 cells. Conversations with the same seed have the
// same nodes until one of them ends.
func long(seed string, exchanges int) dag.DAG {
	d := dag.New()
	for i := range exchanges {
		d = d.User(fmt.Sprint(seed, " question ", i, strings.Repeat(" and more", 40))).Assistant(fmt.Sprint("Answer ", i, strings.Repeat(" and more", 40)))
	}
	return d
}

// live returns the bytes on the heap that are reachable.
func live() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestManyLongConversationsNeedLittleMemory(t *testing.T) {
	d := long("", 200)
	o := &report.Options{Texts: new(report.Texts)}
	rows := make([]report.Row, 0, 1000)
	before := live()
	for range cap(rows) {
		rows = append(rows, report.Of("long.json", d, o))
	}
	require.Less(t, live()-before, 1000*400*26+200_000*140, "26 bytes for each step, and 200,000 texts")

	// The texts that are left are those of the first steps.
	all := 0
	for _, r := range rows {
		steps, texts := r.Steps(), 0
		require.Len(t, steps, 400)
		for texts < len(steps) && steps[texts].Text != "" {
			texts++
		}
		require.GreaterOrEqual(t, texts, report.StepShare(1000))
		for _, step := range steps[texts:] {
			if step.Text != "" {
				require.Fail(t, "a text follows one that was dropped")
			}
		}
		all += texts
	}
	require.LessOrEqual(t, all, 200_000)
}

func TestRowWithoutALimitKeepsAllItsTexts(t *testing.T) {
	steps := report.Of("alone.json", long("", 210), nil).Steps()
	require.Len(t, steps, 400)
	require.Contains(t, steps[399].Text, "Answer 199")
	require.Equal(t, []int{400, 400, 100, 20}, []int{report.StepShare(0), report.StepShare(250), report.StepShare(1000), report.StepShare(1_000_000)})
}

func TestGrowthOfPaths(t *testing.T) {
	// A name has no number of four digits: paths do not distinguish such numbers in failures.
	name := func(i int) string { return strconv.FormatInt(int64(i), 36) }

	// ends returns rows of which no two take one path: the runs are equal but for their stop reasons.
	ends := func(n int) (rows []report.Row) {
		for i := range n {
			rows = append(rows, report.Of(fmt.Sprint(i), long("", 5).Stop(content.Stop("reason "+name(i))), nil))
		}
		return rows
	}
	// tools returns rows that part at the first of their calls already.
	tools := func(n int) (rows []report.Row) {
		for i := range n {
			d := dag.New().User("Go.").Assistant("", content.ToolUse{ID: "1", Name: "tool " + name(i), Input: "{}"}).CloseTools().User("Go on.")
			rows = append(rows, report.Of(fmt.Sprint(i), d, nil))
		}
		return rows
	}

	for shape, of := range map[string]func(n int) []report.Row{"ends differ": ends, "tools differ": tools} {
		growthtest.Run(t, []growthtest.Case{{Name: shape, Growth: growthtest.LogLinear, Setup: func(_ testing.TB, n int) func() {
			rows := of(n)
			return func() { require.Len(t, report.Paths(rows), n) }
		}}})
	}
}
