// Package growthtest checks how the work of an operation grows with the size of its input. Work is counted, not timed:
// allocations, their bytes, and executed statements.
//
// Statements are counted by the coverage counters of the runtime, if the test binary is built with them:
//
//	go test -run Growth -tags countstatements -ldflags=-checklinkname=0 \
//		-covermode=atomic -coverpkg=github.com/plait-dev/plait/...,slices ./dag
//
// Package slices is counted too. Loops elsewhere in the standard library and in other modules execute no counted
// statements. Choose shapes to make such a loop
// visible: in the allocations, or in the statements of functions called by the loop.
package growthtest

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/plait-dev/plait/internal/testkit/racetest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/stretchr/testify/require"
)

// snapshot returns a copy of the coverage counters, or nil if statements are not counted.
var snapshot = func() []uint32 { return nil }

// statements returns how many basic blocks had been entered at the time of the snapshot.
func statements(counters []uint32) (total uint64) {
	for i := 0; i < len(counters); i++ {
		n := int(counters[i])
		if n == 0 {
			continue
		}

		// An entered function starts with three numbers: its number of counters, its package, its index.
		for _, entered := range counters[min(i+3, len(counters)):min(i+3+n, len(counters))] {
			total += uint64(entered)
		}
		i += 2 + n
	}
	return total
}

// Work is the work of an operation.
type Work struct {
	Allocations, Bytes uint64
	// Statements is how many times a basic block was entered; 0 if statements are not counted.
	Statements uint64
}

// Growth is how the work of an operation may grow.
type Growth int

const (
	// Flat allows work independent of the size.
	Flat Growth = iota
	// Linear allows work proportional to the number of elements.
	Linear
	// LogLinear allows linear work times the logarithm of the size, as for a search in a tree for each element.
	LogLinear
	// FlatButCopies allows flat work plus one copy of a list of references as long as the size: at most 64 bytes and 4
	// statements for each element.
	FlatButCopies
)

// Case is one operation on one shape.
type Case struct {
	// Name names the operation, and the shape if there are several.
	Name string
	// Growth is how its work may grow. Defaults to Flat.
	Growth Growth
	// Setup returns the operation on a shape of size n. The operation is measured once. The garbage collector does not
	// run between Setup and the end of the operation, so weak references to the shape stay valid.
	Setup func(t testing.TB, n int) func()
	// Small and Large are the sizes. Default to 100 and 1,000, and to 1,000 and 10,000 with PLAIT_LONG=1.
	Small, Large int
	// Fixed keeps Small and Large with PLAIT_LONG=1, for operations that refuse larger sizes.
	Fixed bool
}

// slack is the factor allowed between the work and the expected work on the large size: maps and slices grow in steps,
// by a factor of 2 at most.
const slack = 2

// Run checks each case in a subtest. The subtests do not run in parallel, because the counters belong to the process.
func Run(t *testing.T, cases []Case) {
	racetest.SkipCounting(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Small == 0 {
				c.Small, c.Large = 100, 1000
			}
			if seedtest.Long() && !c.Fixed {
				c.Small, c.Large = max(c.Small, 1000), max(c.Large, 10_000)
			}

			Measure(c.Setup(t, 10)) // warm up: initializes the values that a program makes only once
			small, large := c.measure(t, c.Small), c.measure(t, c.Large)
			t.Logf("n = %d: %+v; n = %d: %+v", c.Small, small, c.Large, large)
			c.Check(t, small, large)
		})
	}
}

func (c Case) measure(t testing.TB, n int) Work {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return Measure(c.Setup(t, n))
}

// Check fails the test if the work grows more than c.Growth allows.
func (c Case) Check(t testing.TB, small, large Work) {
	t.Helper()
	c.check(t, "allocations", small.Allocations, large.Allocations, 0, 50)
	c.check(t, "bytes", small.Bytes, large.Bytes, 64, 16<<10)
	c.check(t, "statements", small.Statements, large.Statements, 4, 500)
}

// check compares one kind of work. Element is the work for one element of a copied list; noise is the tolerance for a
// flat operation.
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

// Measure returns the work of do. Meanwhile only do may work, and the goroutines it starts.
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

// SmallStack limits the stack of each goroutine to half a megabyte until the test ends. A function that calls itself for
// each of 20,000 nodes, which the usual gigabyte has room for, then ends the program. The test must not run in parallel.
func SmallStack(t testing.TB) {
	before := debug.SetMaxStack(512 << 10)
	t.Cleanup(func() { debug.SetMaxStack(before) })
}
