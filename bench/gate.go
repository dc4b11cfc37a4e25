package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/plait-dev/plait/bench/internal/pair"
)

//go:embed reached.json
var reachedFile []byte

// The share of a reached value that must remain. Allocations and bytes are counted, and are about the same on every
// machine. A ratio of two times depends on the machine and its load: at a load of 25, some were 1.4 times as bad.
const (
	shareOfCounts = 3.0 / 4
	shareOfTimes  = 1.0 / 3
)

// slack is added to the limit of a figure that should be low. So a reached value of zero may become this much worse: an
// occasional allocation by the runtime is no failure.
const slack = 0.02

// attempts is the number of times a measure must miss before it fails: one bad moment of the machine is no failure.
const attempts = 3

// reached returns the ratio of each measure in bench/reached.json.
func reached() (map[string]float64, error) {
	var ratios map[string]float64
	if err := json.Unmarshal(reachedFile, &ratios); err != nil {
		return nil, fmt.Errorf("bench/reached.json: %w", err)
	}
	return ratios, nil
}

// keep writes the comparable measures to bench/reached.json. Values of other measures stay in the file. The value kept
// was reached by three quarters of the rounds, so that the gate leaves room for the noise of each measure.
func keep(measures []pair.Measure) error {
	ratios, err := reached()
	if err != nil {
		return err
	}
	for _, m := range measures {
		if m.Comparable && !machineDecides(m.Name) {
			// The worse quartile: the upper one, or the lower one if higher is better.
			ratios[m.Name] = m.Quartiles[1]
			if m.Higher {
				ratios[m.Name] = m.Quartiles[0]
			}
		}
	}
	text, err := json.MarshalIndent(ratios, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile("bench/reached.json", append(text, '\n'), 0o644)
}

// machineDecides reports whether a measure depends more on the machine or the compiler than on Plait. It is not gated
// then:
//
//   - The cost of a whole file depends on the disk.
//   - The cost of gonum depends on the caches, by a factor of three between two machines.
//   - A provider without a run around it is a loop of 0.3 or 3 ns, depending on the compiler.
func machineDecides(name string) bool {
	return strings.HasSuffix(name, "/whole file") || strings.HasPrefix(name, "order/gonum/") || name == "delta/provider alone"
}

// again repeats a case until every measure has passed the gate at least once, or fails after the last attempt. It
// returns the measures of the last repetition.
func again(r pair.Runner, c pair.Case, measures []pair.Measure) ([]pair.Measure, error) {
	before, err := reached()
	if err != nil {
		return measures, err
	}

	low := below(measures, before)
	for attempt := 1; attempt < attempts && len(low) > 0; attempt++ {
		r.Seed++ // another order of the variants
		next, err := r.Run(c)
		if err != nil {
			return measures, err
		}

		// A measure that passed once stays passed, whatever it is this time.
		measures, low = next, both(low, below(next, before))
	}
	if len(low) > 0 {
		return measures, fmt.Errorf("too far below what was reached: %s", strings.Join(low, ", "))
	}
	return measures, nil
}

// both returns the texts of measures in both lists, with the figures of the second.
func both(first, second []string) []string {
	var kept []string
	for _, s := range second {
		name, _, _ := strings.Cut(s, " is ") // the form of the texts is in below
		for _, f := range first {
			if strings.HasPrefix(f, name+" is ") {
				kept = append(kept, s)
			}
		}
	}
	return kept
}

// below returns a text for each measure too far below its reached value: the name, " is ", and both figures.
func below(measures []pair.Measure, reached map[string]float64) []string {
	var low []string
	for _, m := range measures {
		// A new measure has no value to compare with yet.
		before, ok := reached[m.Name]
		if !ok || !m.Comparable {
			continue
		}

		share := shareOfTimes
		if m.Counted {
			share = shareOfCounts
		}
		if m.Higher && m.Ratio < before*share || !m.Higher && m.Ratio > before/share+slack {
			low = append(low, fmt.Sprintf("%s is %s after %s", m.Name, figure(m.Ratio), figure(before)))
		}
	}
	return low
}

// machine describes the machine of the figures.
func machine() string {
	return fmt.Sprintf("%s %s/%s, %d CPUs", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}
