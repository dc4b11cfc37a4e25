package pair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"time"
)

// Case is a set of variants of the same work, with the goals of their comparison.
type Case struct {
	// Name is the path of the case, such as "load/10k".
	Name string
	// Per is the unit of the figures, such as "node". Defaults to "op".
	Per string
	// Units is the number of these units in the work of one op. Defaults to 1.
	Units int
	// Unit is the unit of a sample. Defaults to "ns", processor time.
	Unit string
	// Wall measures wall time in place of processor time, for work with waiting.
	Wall bool
	// Full leaves the case out of the quick mode.
	Full bool
	// Rounds is the maximum number of rounds. Defaults to that of the Runner.
	Rounds int
	// Variants builds the variants and their data. Only one case is built at a time. Variants returned with an error
	// are closed too.
	Variants func() ([]Variant, error)
	// Goals are the comparisons to report. Each makes one [Measure].
	Goals []Goal
}

// Skipped is an error of Case.Variants: the reason why the case cannot be measured on this machine.
type Skipped string

// Error returns the reason.
func (s Skipped) Error() string { return string(s) }

// Variant is one way to do the work of a case.
type Variant struct {
	Name string
	// Run does the work s.N times.
	Run func(s *Sample) error
	// Max is the largest s.N, for work that uses up what was prepared. Defaults to no limit.
	Max int
	// Close frees the resources of the variant. Defaults to nothing.
	Close func() error
}

// Cost is the result of a sample.
type Cost struct {
	// Value is processor time in nanoseconds, or a figure in the unit of the case.
	Value float64
	// Allocs and Bytes count the allocations.
	Allocs, Bytes float64
}

// Sample is one measurement of one variant. The clock runs when Run is called.
type Sample struct {
	// N is the number of repetitions of the work.
	N int

	wall    bool             // measure wall time, not processor time
	running bool             // the clock runs
	clock   time.Duration    // at the last Resume
	memory  runtime.MemStats // at the last Resume
	spent   Cost             // up to the last Pause, or set by Set
	set     bool             // Set was called
}

// Pause stops the clock, for preparations inside Run. It costs about 50 microseconds.
func (s *Sample) Pause() {
	now := s.now() // first: reading the memory statistics takes time of its own
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	s.spent.Value += float64(now - s.clock)
	s.spent.Allocs += float64(after.Mallocs - s.memory.Mallocs)
	s.spent.Bytes += float64(after.TotalAlloc - s.memory.TotalAlloc)
	s.running = false
}

// Resume starts the clock again.
func (s *Sample) Resume() {
	runtime.ReadMemStats(&s.memory)
	s.running = true
	s.clock = s.now() // last, see Pause
}

// Set replaces the measured cost, for a figure other than time or a measurement by another process. The cost is that of
// all N repetitions.
func (s *Sample) Set(c Cost) { s.spent, s.set = c, true }

func (s *Sample) now() time.Duration {
	if s.wall {
		return time.Duration(time.Now().UnixNano())
	}
	return cpuTime()
}

// Runner measures cases.
type Runner struct {
	// Rounds is the number of samples of each variant.
	Rounds int
	// MinTime is the minimum time of a sample. The work is repeated accordingly.
	MinTime time.Duration
	// Seed is the seed for the order of the variants.
	Seed uint64
}

// Run measures a case and returns one measure for each of its goals.
func (r Runner) Run(c Case) (measures []Measure, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", c.Name, err)
		}
	}()

	// Close the variants also if Variants fails: those before the error hold files and processes.
	variants, err := c.Variants()
	defer func() {
		for _, v := range variants {
			if v.Close != nil {
				err = errors.Join(err, v.Close())
			}
		}
	}()
	if err != nil {
		return nil, err
	}

	rounds, err := r.rounds(c, variants)
	if err != nil {
		return nil, err
	}
	for _, g := range c.Goals {
		m, err := g.measure(c, variants, rounds)
		if err != nil {
			return nil, err
		}
		measures = append(measures, m)
	}
	return measures, nil
}

// rounds returns the cost of each variant in each round.
func (r Runner) rounds(c Case, variants []Variant) ([][]Cost, error) {
	times := make([]int, len(variants))
	for i, v := range variants {
		n, err := r.calibrate(c, v)
		if err != nil {
			return nil, err
		}
		times[i] = n
	}

	// A random order, so that no variant always runs after the same other one.
	order := rand.New(rand.NewPCG(r.Seed, 0))
	count := r.Rounds
	if c.Rounds > 0 {
		count = min(count, c.Rounds)
	}
	rounds := make([][]Cost, count)
	for i := range rounds {
		rounds[i] = make([]Cost, len(variants))
		for _, which := range order.Perm(len(variants)) {
			cost, err := sample(c, variants[which], times[which])
			if err != nil {
				return nil, err
			}
			rounds[i][which] = cost
		}
	}
	return rounds, nil
}

// calibrate returns the number of repetitions of a variant's work in a sample. It is the variant's warm-up too.
func (r Runner) calibrate(c Case, v Variant) (int, error) {
	n, most := 1, v.Max
	if most == 0 {
		most = 1 << 30
	}

	began := time.Now()
	for {
		cost, err := sample(c, v, n)
		if err != nil {
			return 0, err
		}

		// A figure in another unit does not depend on time: one repetition is enough.
		if n >= most || (c.Unit != "" && c.Unit != "ns") {
			return n, nil
		}

		// Preparations inside the work can take far longer than the measured part, so wall time ends the search too.
		took := time.Duration(cost.Value * float64(n*max(c.Units, 1)))
		if took >= r.MinTime || time.Since(began) > 20*r.MinTime+time.Second {
			return n, nil
		}

		// Aim 20 % above the minimum. A first, short sample can be far off, so one step grows at most 20 times.
		grow := 1.2 * float64(r.MinTime) / float64(max(took, time.Microsecond))
		n = min(most, max(n+1, int(float64(n)*min(grow, 20))))
	}
}

// sample measures a variant once and returns the cost of one unit.
func sample(c Case, v Variant, n int) (Cost, error) {
	runtime.GC()

	s := &Sample{N: n, wall: c.Wall}
	var err error
	// The labels let a profile of the process show one variant: go tool pprof -tagfocus.
	pprof.Do(context.Background(), pprof.Labels("case", c.Name, "variant", v.Name), func(context.Context) {
		s.Resume()
		err = v.Run(s)

		// The clock may be stopped already, and Pause would add to a cost from Set.
		if s.running && !s.set {
			s.Pause()
		}
	})
	if err != nil {
		return Cost{}, fmt.Errorf("%s: %w", v.Name, err)
	}

	units := float64(n * max(c.Units, 1))
	return Cost{s.spent.Value / units, s.spent.Allocs / units, s.spent.Bytes / units}, nil
}

// Live returns the number of reachable bytes on the heap.
func Live() uint64 {
	// The second collection frees objects kept from the first by finalizers and weak pointers.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Cost returns the cost measured up to now, for programs without a [Runner].
func (s *Sample) Cost() Cost { return s.spent }
