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

// How much of what was reached must remain. Allocations and bytes are counted, and are about the same everywhere. A
// ratio of two times depends on the machine and on what else it does: on one with a load of 25, some were 1.4 times as
// bad.
const (
	shareOfCounts = 3.0 / 4
	shareOfTimes  = 1.0 / 3
)

// slack is how much worse a figure of zero may become: a runtime that allocates now and then is no failure.
const slack = 0.02

// attempts is how often a measure is taken before it fails: one bad moment of the machine is no failure.
const attempts = 3

// reached returns the ratio of each measure in bench/reached.json.
func reached() (map[string]float64, error) {
	var ratios map[string]float64
	if err := json.Unmarshal(reachedFile, &ratios); err != nil {
		return nil, fmt.Errorf("bench/reached.json: %w", err)
	}
	return ratios, nil
}

// keep writes the comparable measures to bench/reached.json, beside those that were not measured now. What counts as
// reached is what three quarters of the rounds reached, so that the gate leaves room for the noise of each measure.
func keep(measures []pair.Measure) error {
	ratios, err := reached()
	if err != nil {
		return err
	}
	for _, m := range measures {
		if m.Comparable && !machineDecides(m.Name) {
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

// machineDecides reports whether a measure says more about the machine or the compiler than about us, and is not gated:
// what a whole file costs depends on the disk, what gonum costs on the caches, by a factor of three between two
// machines, and a provider without a run around it is a loop of 0.3 or 3 ns, as the compiler likes.
func machineDecides(name string) bool {
	return strings.HasSuffix(name, "/whole file") || strings.HasPrefix(name, "order/gonum/") || name == "delta/provider alone"
}

// isCounted reports whether a measure counts allocations or bytes.
func isCounted(name string) bool {
	return strings.HasSuffix(name, "allocs") || strings.HasSuffix(name, "bytes") || strings.HasPrefix(name, "memory/")
}

// again measures a case anew while one of its measures is too far below what was reached.
func again(r pair.Runner, c pair.Case, measures []pair.Measure) ([]pair.Measure, error) {
	before, err := reached()
	if err != nil {
		return measures, err
	}
	low := below(measures, before)
	for attempt := 1; attempt < attempts && len(low) > 0; attempt++ {
		r.Seed++
		next, err := r.Run(c)
		if err != nil {
			return measures, err
		}
		measures, low = next, both(low, below(next, before))
	}
	if len(low) > 0 {
		return measures, fmt.Errorf("too far below what was reached: %s", strings.Join(low, ", "))
	}
	return measures, nil
}

// both returns the texts whose measure is in both lists, with the later figures.
func both(first, second []string) []string {
	var kept []string
	for _, s := range second {
		name, _, _ := strings.Cut(s, " is ")
		for _, f := range first {
			if strings.HasPrefix(f, name+" is ") {
				kept = append(kept, s)
			}
		}
	}
	return kept
}

// below returns the measures that are too far below what was reached.
func below(measures []pair.Measure, reached map[string]float64) []string {
	var low []string
	for _, m := range measures {
		before, ok := reached[m.Name]
		if !ok || !m.Comparable {
			continue
		}

		share := shareOfTimes
		if isCounted(m.Name) {
			share = shareOfCounts
		}
		if m.Higher && m.Ratio < before*share || !m.Higher && m.Ratio > before/share+slack {
			low = append(low, fmt.Sprintf("%s is %s after %s", m.Name, figure(m.Ratio), figure(before)))
		}
	}
	return low
}

// machine describes where the figures come from.
func machine() string {
	return fmt.Sprintf("%s %s/%s, %d CPUs", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}
