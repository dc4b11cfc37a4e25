package pair

import (
	"fmt"
	"slices"
	"strconv"
)

// Kind is a kind of goal: the figures it compares.
type Kind int

// The kinds of goals.
const (
	// AtMost: our figure divided by the baseline's is at most the limit.
	AtMost Kind = iota
	// Faster: the baseline's figure divided by ours is at least the limit.
	Faster
	// Value: our own figure is at most the limit, in the unit of the case.
	Value
	// More: our figure is at most the limit above the baseline's.
	More
	// Allocs: our own allocations are at most the limit.
	Allocs
	// Bytes: our own allocated bytes are at most the limit.
	Bytes
)

// Goal is a comparison of two variants of a case.
type Goal struct {
	// Number groups the goals with one aim, and is printed with them; 0 for a comparison without one.
	Number int
	// Name distinguishes the goals of a case. It is added to the name of the case. Defaults to none.
	Name string
	Kind Kind
	// Ours and Beside are names of variants. They default to the first and the second one.
	Ours, Beside string
	// Limit is the limit of the goal. With 0 the measure is only reported; for Allocs, 0 is a limit.
	Limit float64
}

// Measure is the outcome of a goal.
type Measure struct {
	Name string `json:"name"`
	// Number is the goal's number, or 0.
	Number int `json:"number,omitempty"`
	// Ours and Baseline are the medians of all rounds, for one Per, in Unit. Baseline is 0 if there is none.
	Ours     float64 `json:"ours"`
	Baseline float64 `json:"baseline,omitempty"`
	Unit     string  `json:"unit"`
	Per      string  `json:"per"`
	// Beside names the baseline.
	Beside string `json:"beside,omitempty"`
	// Ratio is the figure limited by the goal: the median of the rounds, with the quartiles. For some kinds of goals it
	// is no ratio.
	Ratio     float64    `json:"ratio"`
	Quartiles [2]float64 `json:"quartiles"`
	// Goal is the limit, such as "<= 1.25"; empty if there is none.
	Goal string `json:"goal,omitempty"`
	Met  bool   `json:"met"`
	// Allocs and AllocBytes are our allocations, for one Per.
	Allocs     float64 `json:"allocs"`
	AllocBytes float64 `json:"alloc_bytes"`
	// Comparable reports that Ratio is about the same on every machine: it compares two variants, or counts
	// allocations.
	Comparable bool `json:"comparable"`
	// Counted reports that Ratio counts allocations or bytes, and no time.
	Counted bool `json:"counted"`
	// Higher reports that a higher Ratio is better.
	Higher bool `json:"higher"`
}

// measure computes the measure of the goal from the costs of all rounds.
func (g Goal) measure(c Case, variants []Variant, rounds [][]Cost) (Measure, error) {
	ours, err := index(variants, g.Ours, 0)
	if err != nil {
		return Measure{}, err
	}

	// A goal for our own figure may have no baseline, but a wrong name is an error in any case.
	beside, err := index(variants, g.Beside, 1)
	if err != nil && (g.Beside != "" || g.needsBaseline()) {
		return Measure{}, err
	}

	m := Measure{Name: c.Name, Number: g.Number, Unit: c.Unit, Per: c.Per, Higher: g.Kind == Faster}
	if g.Name != "" {
		m.Name += "/" + g.Name
	}
	if m.Unit == "" {
		m.Unit = "ns"
	}
	if m.Per == "" {
		m.Per = "op"
	}
	m.Comparable = g.Kind == AtMost || g.Kind == Faster || g.Kind == Allocs || g.Kind == Bytes
	m.Counted = m.Unit == "B" || g.Kind == Allocs || g.Kind == Bytes

	m.Ours = median(column(rounds, func(r []Cost) float64 { return r[ours].Value }))
	m.Allocs = median(column(rounds, func(r []Cost) float64 { return r[ours].Allocs }))
	m.AllocBytes = median(column(rounds, func(r []Cost) float64 { return r[ours].Bytes }))
	if g.needsBaseline() {
		m.Beside = variants[beside].Name
		m.Baseline = median(column(rounds, func(r []Cost) float64 { return r[beside].Value }))
	}

	// The ratios of the rounds, and not the ratio of the two medians: a slow round slows both variants.
	ratios := column(rounds, func(r []Cost) float64 { return g.of(r[ours], r, beside) })
	m.Ratio, m.Quartiles = median(ratios), [2]float64{quantile(ratios, 0.25), quantile(ratios, 0.75)}

	// Without a limit, there is no goal to miss.
	m.Met = true
	if g.Limit > 0 || g.Kind == Allocs {
		m.Goal = "<= " + strconv.FormatFloat(g.Limit, 'f', -1, 64) + g.suffix(m.Unit)
		m.Met = m.Ratio <= g.Limit
		if g.Kind == Faster {
			m.Goal, m.Met = ">= "+strconv.FormatFloat(g.Limit, 'f', -1, 64), m.Ratio >= g.Limit
		}
	}
	return m, nil
}

// needsBaseline reports whether the goal compares two variants.
func (g Goal) needsBaseline() bool { return g.Kind == AtMost || g.Kind == Faster || g.Kind == More }

// suffix returns the unit of the limit; "" for a ratio.
func (g Goal) suffix(unit string) string {
	switch g.Kind {
	case Value:
		return " " + unit
	case More:
		return " " + unit + " more"
	case Allocs:
		return " allocs"
	case Bytes:
		return " B"
	}
	return ""
}

// of returns the figure limited by the goal, in one round.
func (g Goal) of(ours Cost, round []Cost, beside int) float64 {
	switch g.Kind {
	case AtMost:
		return ours.Value / round[beside].Value
	case Faster:
		return round[beside].Value / ours.Value
	case More:
		return ours.Value - round[beside].Value
	case Allocs:
		return ours.Allocs
	case Bytes:
		return ours.Bytes
	}
	return ours.Value
}

// index returns the index of the variant with that name. Without a name it is otherwise, if there are so many variants.
func index(variants []Variant, name string, otherwise int) (int, error) {
	if name == "" {
		if otherwise >= len(variants) {
			return 0, fmt.Errorf("there is no variant %d to compare with", otherwise)
		}
		return otherwise, nil
	}
	i := slices.IndexFunc(variants, func(v Variant) bool { return v.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("no variant is named %q", name)
	}
	return i, nil
}

// column returns one figure of each round, sorted.
func column(rounds [][]Cost, of func([]Cost) float64) []float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values
}

func median(sorted []float64) float64 { return quantile(sorted, 0.5) }

// quantile returns the quantile q of a sorted list, interpolated between the two values around it.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[low]
	}
	part := at - float64(low)
	return sorted[low]*(1-part) + sorted[low+1]*part
}
