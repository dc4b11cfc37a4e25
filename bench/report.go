package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/plait-dev/plait/bench/internal/pair"
)

// short formats a count for a name: 1000 is 1k.
func short(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprint(n/1_000_000, "M")
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprint(n/1000, "k")
	}
	return fmt.Sprint(n)
}

const header = "goal measure                                  ours   beside                                ratio [quartiles]           goal"

// row returns one line of the table.
func row(m pair.Measure) string {
	number := ""
	if m.Number > 0 {
		number = fmt.Sprint(m.Number)
	}
	beside := m.Beside
	if beside != "" {
		beside = fmt.Sprintf("%8s %s", amount(m.Baseline, m.Unit), clip(beside, 25))
	}
	goal := strings.NewReplacer("<=", "≤", ">=", "≥").Replace(m.Goal)
	if goal != "" {
		mark := "met"
		if !m.Met {
			mark = "MISSED"
		}
		goal += " " + mark
	}
	return strings.TrimRight(fmt.Sprintf("%4s %-36s %9s   %-34s %7s %-17s %s",
		number, clip(m.Name, 36), amount(m.Ours, m.Unit), beside, figure(m.Ratio), spread(m), goal), " ")
}

func spread(m pair.Measure) string {
	return fmt.Sprintf("[%s–%s]", figure(m.Quartiles[0]), figure(m.Quartiles[1]))
}

func clip(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

// figure formats a number with three digits, or with all digits before the point.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// amount formats a figure with its unit. Times and sizes get the largest unit with a figure of at least 1.
func amount(v float64, unit string) string {
	steps := []struct {
		from float64
		unit string
	}{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	if unit == "B" {
		steps = []struct {
			from float64
			unit string
		}{{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}}
	}
	if unit != "ns" && unit != "B" {
		return figure(v) + " " + unit
	}

	at := 0
	for at+1 < len(steps) && math.Abs(v) >= steps[at+1].from {
		at++
	}
	return figure(v/steps[at].from) + " " + steps[at].unit
}
