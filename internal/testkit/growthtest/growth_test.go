package growthtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/growthtest"
)

var sink [][]byte

func allocate(times, size int) func() {
	return func() {
		for range times {
			sink = append(sink[:0], make([]byte, size))
		}
	}
}

func TestMeasureCountsAllocations(t *testing.T) {
	work := growthtest.Measure(allocate(100, 1000))
	require.InDelta(t, 100, work.Allocations, 20)
	require.InDelta(t, 102_400, work.Bytes, 10_000)
}

// fails reports whether the case fails.
func fails(t *testing.T, c growthtest.Case) bool {
	var r recorder
	small, large := growthtest.Measure(c.Setup(t, 1000)), growthtest.Measure(c.Setup(t, 10_000))
	c.Small, c.Large = 1000, 10_000
	c.Check(&r, small, large)
	return r.failed
}

type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Name() string          { return "" }
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow()              { r.failed = true }

func TestGrowthIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		growth growthtest.Growth
		work   func(n int) func()
		fails  bool
	}{
		"flat as flat":             {growthtest.Flat, func(int) func() { return allocate(10, 10) }, false},
		"linear as flat":           {growthtest.Flat, func(n int) func() { return allocate(n, 10) }, true},
		"linear as linear":         {growthtest.Linear, func(n int) func() { return allocate(n, 10) }, false},
		"quadratic as linear":      {growthtest.Linear, func(n int) func() { return allocate(n*n/1000, 10) }, true},
		"a list that is copied":    {growthtest.FlatButCopies, func(n int) func() { return allocate(1, 24*n) }, false},
		"a copy for each element":  {growthtest.Linear, func(n int) func() { return allocate(n, n) }, true},
		"a linear copy as flat":    {growthtest.Flat, func(n int) func() { return allocate(1, 24*n) }, true},
		"many lists as one copied": {growthtest.FlatButCopies, func(n int) func() { return allocate(50, 24*n) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := fails(t, growthtest.Case{Growth: c.growth, Setup: func(_ testing.TB, n int) func() { return c.work(n) }})
			require.Equal(t, c.fails, got)
		})
	}
}

func TestMeasuringCountsNoStatementsOfItsOwn(t *testing.T) {
	// Test files are not instrumented: all that could be counted here is the package itself.
	require.Less(t, growthtest.Measure(allocate(1000, 1)).Statements, uint64(10))
}
