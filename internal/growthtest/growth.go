// Package growthtest checks how the work of an operation grows with the size of what it works on. Work is counted, not timed: the
// allocations, the bytes that they take, and, in a test binary that is built for it, the executed statements.
//
// Statements are counted by the coverage counters of the runtime, where the test is built with them:
//
//	go test -run Growth -tags countstatements -ldflags=-checklinkname=0 \
//		-covermode=atomic -coverpkg=github.com/plait-dev/plait/... ./dag
//
// Loops inside the standard library and other modules execute no statement of ours: shapes in which they would be long are chosen so
// that their allocations, or the statements of the functions that they call, show it.
package growthtest

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// snapshot returns a copy of the coverage counters; nil where statements are not counted.
var snapshot = func() []uint32 { return nil }

// statements returns how many basic blocks were entered until the snapshot.
func statements(counters []uint32) (total uint64) {
	for i := 0; i < len(counters); i++ {
		n := int(counters[i])
		if n == 0 {
			continue
		}

		// A function that was entered has three numbers in front: how many counters it has, its package, its index.
		for _, entered := range counters[min(i+3, len(counters)):min(i+3+n, len(counters))] {
			total += uint64(entered)
		}
		i += 2 + n
	}
	return total
}

// Work is what an operation took.
type Work struct {
	Allocations, Bytes uint64
	// Statements is how often a basic block of the code was entered; 0 where they are not counted.
	Statements uint64
}

// Growth is how the work of an operation may grow.
type Growth int

const (
	// Flat is an operation whose work does not depend on the size.
	Flat Growth = iota
	// Linear is an operation whose work for each element does not depend on the size.
	Linear
	// LogLinear is a linear operation that finds or places each element in a tree.
	LogLinear
	// FlatButCopies is an operation that is flat, but for the copy of one list of references as long as the size: so many elements, of
	// 64 bytes and 4 statements at most.
	FlatButCopies
)

// Case is one operation on one shape.
type Case struct {
	// Name says the operation, and the shape where there are several.
	Name string
	// Growth is how its work may grow. Defaults to Flat.
	Growth Growth
	// Setup returns the operation on a shape of size n. The operation is measured once. Nothing is collected between Setup and the end
	// of the operation, so what the code remembers weakly of the shape is there.
	Setup func(t testing.TB, n int) func()
	// Small and Large are the sizes. They default to 100 and 1,000, and to 1,000 and 10,000 with PLAIT_LONG=1.
	Small, Large int
	// Fixed keeps Small and Large with PLAIT_LONG=1, for operations that refuse more.
	Fixed bool
}

// slack is how much more the large size may take than what is expected: maps and slices grow in steps, by a factor of 2 at most.
const slack = 2

// Run checks each case in a subtest. It does not run in parallel, because the counters are the process's.
func Run(t *testing.T, cases []Case) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Small == 0 {
				c.Small, c.Large = 100, 1000
			}
			if os.Getenv("PLAIT_LONG") != "" && !c.Fixed {
				c.Small, c.Large = max(c.Small, 1000), max(c.Large, 10_000)
			}
			Measure(c.Setup(t, 10)) // what is made once in a program is there
			small, large := c.measure(t, c.Small), c.measure(t, c.Large)
			t.Logf("n = %d: %+v; n = %d: %+v", c.Small, small, c.Large, large)
			c.Check(t, small, large)
		})
	}
}

func (c Case) measure(t testing.TB, n int) Work {
	defer runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return Measure(c.Setup(t, n))
}

// Check fails the test where the work grows more than it may.
func (c Case) Check(t testing.TB, small, large Work) {
	t.Helper()
	c.check(t, "allocations", small.Allocations, large.Allocations, 0, 50)
	c.check(t, "bytes", small.Bytes, large.Bytes, 64, 16<<10)
	c.check(t, "statements", small.Statements, large.Statements, 4, 500)
}

// check compares one kind of work. Element is what one element of a copied list takes, noise what a flat operation may differ by.
func (c Case) check(t testing.TB, what string, small, large uint64, element, noise int) {
	t.Helper()
	expected := float64(small)
	switch c.Growth {
	case Linear:
		expected *= float64(c.Large) / float64(c.Small)
	case LogLinear:
		expected *= float64(c.Large) / float64(c.Small) * math.Log(float64(c.Large)) / math.Log(float64(c.Small))
	case FlatButCopies:
		expected += float64(element * (c.Large - c.Small))
	}
	require.LessOrEqual(t, float64(large), expected*slack+float64(noise),
		"%s: %d at n = %d and %d at n = %d", what, small, c.Small, large, c.Large)
}

// Measure returns the work of do. No other goroutine may work meanwhile but those that do starts.
func Measure(do func()) Work {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	entered := snapshot()
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	left := snapshot()

	return Work{
		Allocations: after.Mallocs - before.Mallocs, Bytes: after.TotalAlloc - before.TotalAlloc,
		Statements: statements(left) - statements(entered),
	}
}
