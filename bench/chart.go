package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/bench/internal/pair"
)

var turnName = regexp.MustCompile(`^peers/(\w+)/turn/1 calls/(10|100|1k)$`)

// line is the cost of a turn of one library.
type line struct {
	name  string
	costs map[int]float64 // in nanoseconds, by the number of turns before
}

// turnLines returns the line of Plait and then one for each library, in the order of the measures. It returns nil if no
// library was measured.
func turnLines(measures []pair.Measure) []line {
	ours := map[int][]float64{}
	var lines []line
	for _, m := range measures {
		match := turnName.FindStringSubmatch(m.Name)
		if match == nil || match[1] == "anthropic" { // it makes requests, the others do not
			continue
		}
		turns := 1000
		if match[2] != "1k" {
			turns, _ = strconv.Atoi(match[2])
		}

		ours[turns] = append(ours[turns], m.Ours)
		at := slices.IndexFunc(lines, func(l line) bool { return l.name == match[1] })
		if at < 0 {
			at, lines = len(lines), append(lines, line{match[1], map[int]float64{}})
		}
		lines[at].costs[turns] = m.Baseline
	}
	if len(lines) == 0 {
		return nil
	}

	// Plait was measured beside each library: take the median.
	plait := line{"Plait", map[int]float64{}}
	for turns, values := range ours {
		slices.Sort(values)
		plait.costs[turns] = values[len(values)/2]
	}
	return append([]line{plait}, lines...)
}

var colors = []string{"#0b6e4f", "#1f77b4", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#7f7f7f", "#bcbd22"}

// chart draws the cost of a turn against the number of turns before it, both on logarithmic scales, as SVG.
func chart(lines []line) string {
	const width, height, left, right, top, bottom = 760, 420, 70, 150, 40, 50

	// The axis of costs has whole decades around all costs, that of turns the two decades from 10 to 1,000.
	low, high := math.Inf(1), 0.0
	for _, l := range lines {
		for _, c := range l.costs {
			low, high = min(low, c), max(high, c)
		}
	}
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	x := func(turns int) float64 { return left + (math.Log10(float64(turns))-1)/2*(width-left-right) }
	y := func(cost float64) float64 {
		return height - bottom - (math.Log10(cost)-from)/(to-from)*(height-top-bottom)
	}

	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`, width, height)
	p(`<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	p(`<text x="%d" y="22" font-size="15" fill="#222222">Processor time of a turn with one tool call, by the turns before it</text>`, left)

	// The grid and the legends of both axes.
	for e := from; e <= to; e++ {
		at := y(math.Pow(10, e))
		p(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/>`, left, width-right, at, at)
		p(`<text x="%d" y="%.1f" text-anchor="end" fill="#555555">%s</text>`, left-8, at+4, power(e))
	}
	for _, turns := range []int{10, 100, 1000} {
		p(`<text x="%.1f" y="%d" text-anchor="middle" fill="#555555">turn %d</text>`, x(turns), height-bottom+22, turns)
	}

	// A library that was not measured at 1,000 turns has a shorter line, with its label at the last point.
	var labels []label
	for i, l := range lines {
		var points []string
		last := 0
		for _, turns := range []int{10, 100, 1000} {
			if c, ok := l.costs[turns]; ok {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(turns), y(c)))
				last = turns
			}
		}
		stroke := 1.5
		if i == 0 { // Plait
			stroke = 4
		}
		p(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%g"/>`, strings.Join(points, " "), colors[i%len(colors)], stroke)
		labels = append(labels, label{l.name, colors[i%len(colors)], x(last) + 8, y(l.costs[last]) + 4})
	}
	for _, l := range spreadLabels(labels) {
		p(`<text x="%.1f" y="%.1f" fill="%s">%s</text>`, l.x, l.y, l.color, l.text)
	}
	p(`</svg>`)
	return b.String()
}

type label struct {
	text, color string
	x, y        float64
}

// spreadLabels moves labels in the same column down until none covers another.
func spreadLabels(labels []label) []label {
	// From top to bottom: the labels above one have their final position before it is moved.
	slices.SortFunc(labels, func(a, b label) int { return int(math.Copysign(1, a.y-b.y)) })
	for i := 1; i < len(labels); i++ {
		for _, above := range labels[:i] {
			if above.x == labels[i].x && labels[i].y-above.y < 15 {
				labels[i].y = above.y + 15
			}
		}
	}
	return labels
}

// power formats 10^e nanoseconds, such as "100 µs".
func power(e float64) string {
	unit := []string{"ns", "µs", "ms", "s"}[int(e)/3]
	return fmt.Sprintf("%.0f %s", math.Pow(10, math.Mod(e, 3)), unit)
}
