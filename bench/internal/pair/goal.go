package pair

import (
	"fmt"
	"slices"
	"strconv"
)

// Kind is what a goal compares.
type Kind int

// The kinds of goals.
const (
	// AtMost compares ours with the baseline: their ratio is at most the limit.
	AtMost Kind = iota
	// Faster compares the baseline with ours: their ratio is at least the limit.
	Faster
	// Value compares our own figure: it is at most the limit, in the unit of the case.
	Value
	// More compares the difference: ours is at most by the limit above the baseline.
	More
	// Allocs compares our own allocations: at most the limit.
	Allocs
	// Bytes compares the bytes that we allocate: at most the limit.
	Bytes
)

// Goal is a comparison of two variants of a case.
type Goal struct {
	// Number is the number of the goal in docs/performance.md; 0 for a comparison without one.
	Number int
	// Name distinguishes the goals of a case. It is added to the name of the case. Defaults to none.
	Name string
	Kind Kind
	// Ours and Beside are names of variants. They default to the first and the second one.
	Ours, Beside string
	// Limit is the goal. 0 is no goal, and the measure is only reported; for Allocs 0 is a goal.
	Limit float64
}

// Measure is the outcome of a goal.
type Measure struct {
	Name string `json:"name"`
	// Number is that of the goal, or 0.
	Number int `json:"number,omitempty"`
	// Ours and Baseline are the medians of all rounds, for one Per, in Unit. Baseline is 0 if there is none.
	Ours     float64 `json:"ours"`
	Baseline float64 `json:"baseline,omitempty"`
	Unit     string  `json:"unit"`
	Per      string  `json:"per"`
	// Beside names the baseline.
	Beside string `json:"beside,omitempty"`
	// Ratio is what the goal limits: the median of the rounds, and its quartiles.
	Ratio     float64    `json:"ratio"`
	Quartiles [2]float64 `json:"quartiles"`
	// Goal is the limit, such as "<= 1.25"; empty if there is none.
	Goal string `json:"goal,omitempty"`
	Met  bool   `json:"met"`
	// Allocs and AllocBytes are what we allocate, for one Per.
	Allocs     float64 `json:"allocs"`
	AllocBytes float64 `json:"alloc_bytes"`
	// Comparable reports that Ratio is about the same on every machine: it compares two variants, or counts
	// allocations.
	Comparable bool `json:"comparable"`
	// Higher reports that a higher Ratio is better.
	Higher bool `json:"higher"`
}

func (g Goal) measure(c Case, variants []Variant, rounds [][]Cost) (Measure, error) {
	ours, err := index(variants, g.Ours, 0)
	if err != nil {
		return Measure{}, err
	}
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

	m.Ours = median(column(rounds, func(r []Cost) float64 { return r[ours].Value }))
	m.Allocs = median(column(rounds, func(r []Cost) float64 { return r[ours].Allocs }))
	m.AllocBytes = median(column(rounds, func(r []Cost) float64 { return r[ours].Bytes }))
	if g.needsBaseline() {
		m.Beside = variants[beside].Name
		m.Baseline = median(column(rounds, func(r []Cost) float64 { return r[beside].Value }))
	}

	ratios := column(rounds, func(r []Cost) float64 { return g.of(r[ours], r, beside) })
	m.Ratio, m.Quartiles = median(ratios), [2]float64{quantile(ratios, 0.25), quantile(ratios, 0.75)}

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

func (g Goal) needsBaseline() bool { return g.Kind == AtMost || g.Kind == Faster || g.Kind == More }

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

// of returns what the goal limits, in one round.
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

func column(rounds [][]Cost, of func([]Cost) float64) []float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values
}

func median(sorted []float64) float64 { return quantile(sorted, 0.5) }

// quantile interpolates between the two values around q of a sorted list.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[low]
	}
	part := at - float64(low)
	return sorted[low]*(1-part) + sorted[low+1]*part
}
