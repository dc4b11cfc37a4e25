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

// Case is variants of the same work, and what their comparison should show.
type Case struct {
	// Name is the path of the case, such as "load/10k".
	Name string
	// Per is the unit of the figures, such as "node". Defaults to "op".
	Per string
	// Units is how many of these units the work of one op has. Defaults to 1.
	Units int
	// Unit is what a sample counts. Defaults to "ns", processor time.
	Unit string
	// Wall measures wall time in place of processor time, for work that waits.
	Wall bool
	// Full leaves the case out of the quick mode.
	Full bool
	// Rounds is how many rounds the case has at most. Defaults to those of the Runner.
	Rounds int
	// Variants builds what the case needs. Only one case is built at a time.
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
	// Max is the largest s.N, for work that uses up what was built. Defaults to no limit.
	Max int
	// Close frees what the variant holds. Defaults to nothing.
	Close func() error
}

// Cost is what a sample took.
type Cost struct {
	// Value is processor time in nanoseconds, or whatever the unit of the case is.
	Value float64
	// Allocs and Bytes are what was allocated.
	Allocs, Bytes float64
}

// Sample is one measurement of one variant. The clock runs when Run is called.
type Sample struct {
	// N is how often to do the work.
	N int

	wall    bool
	running bool
	clock   time.Duration
	memory  runtime.MemStats
	spent   Cost
	set     bool
}

// Pause stops the clock, for preparations inside Run. It costs about 50 microseconds.
func (s *Sample) Pause() {
	now := s.now()
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
	s.clock = s.now()
}

// Set replaces what was measured: for a variant that counts something else than time, or that another process measured.
// The cost is that of all N.
func (s *Sample) Set(c Cost) { s.spent, s.set = c, true }

func (s *Sample) now() time.Duration {
	if s.wall {
		return time.Duration(time.Now().UnixNano())
	}
	return cpuTime()
}

// Runner measures cases.
type Runner struct {
	// Rounds is how often each variant is measured.
	Rounds int
	// MinTime is how long a sample takes at least. The work is repeated accordingly.
	MinTime time.Duration
	// Seed is that of the order of the variants.
	Seed uint64
}

// Run measures a case and returns one measure for each of its goals.
func (r Runner) Run(c Case) (measures []Measure, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", c.Name, err)
		}
	}()

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

// calibrate returns how often a variant does its work in a sample. It is the variant's warm-up too.
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
		if n >= most || (c.Unit != "" && c.Unit != "ns") {
			return n, nil
		}

		// Preparations inside the work can take far longer than what is measured: they end the search too.
		took := time.Duration(cost.Value * float64(n*max(c.Units, 1)))
		if took >= r.MinTime || time.Since(began) > 20*r.MinTime+time.Second {
			return n, nil
		}
		grow := 1.2 * float64(r.MinTime) / float64(max(took, time.Microsecond))
		n = min(most, max(n+1, int(float64(n)*min(grow, 20))))
	}
}

// sample measures a variant once and returns what one unit cost.
func sample(c Case, v Variant, n int) (Cost, error) {
	runtime.GC()

	s := &Sample{N: n, wall: c.Wall}
	var err error
	// The labels let a profile of the process show one variant: go tool pprof -tagfocus.
	pprof.Do(context.Background(), pprof.Labels("case", c.Name, "variant", v.Name), func(context.Context) {
		s.Resume()
		err = v.Run(s)
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

// Cost returns what was measured until now, for programs that measure without a [Runner].
func (s *Sample) Cost() Cost { return s.spent }
