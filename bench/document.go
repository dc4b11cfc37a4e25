package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/plait-dev/plait/bench/internal/pair"
)

// write writes bench/measured.txt, and the chart docs/cost-per-turn.svg if other libraries were measured. The working
// directory must be the project's folder.
func write(measures []pair.Measure, conditions string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "The output of go run ./bench -write, of %s:\n%s.\n", time.Now().Format("2 January 2006"), conditions)
	b.WriteString("bench/main.go explains the columns. Reproduce a row with go run ./bench -run NAME.\n\n")

	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "aim\tmeasure\tours\tbeside\tratio [quartiles]\tgoal")
	area := ""
	for _, m := range byArea(measures) {
		// A blank line separates two areas.
		if area != "" && areaOf(m) != area {
			fmt.Fprintln(table, strings.Repeat("\t", 5))
		}
		area = areaOf(m)
		fmt.Fprintln(table, fileRow(m))
	}
	table.Flush()

	failed := os.WriteFile("bench/measured.txt", []byte(trimLines(b.String())), 0o644)
	if lines := turnLines(measures); lines != nil {
		failed = errors.Join(failed, os.WriteFile("docs/cost-per-turn.svg", []byte(chart(lines)), 0o644))
	}
	return failed
}

// trimLines removes the spaces that pad the last column.
func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// areaOf returns the area of a measure: the first part of its name.
func areaOf(m pair.Measure) string {
	area, _, _ := strings.Cut(m.Name, "/")
	return area
}

// byArea groups the measures by area. Areas have the order of their first measures.
func byArea(measures []pair.Measure) []pair.Measure {
	// Backward, so that the first measure of an area sets its index last.
	first := map[string]int{}
	for i, m := range slices.Backward(measures) {
		first[areaOf(m)] = i
	}
	return slices.SortedStableFunc(slices.Values(measures), func(a, b pair.Measure) int {
		return cmp.Compare(first[areaOf(a)], first[areaOf(b)])
	})
}

// fileRow returns a row of bench/measured.txt, its cells separated by tabs. Nothing in it is cut.
func fileRow(m pair.Measure) string {
	number, beside := "", ""
	if m.Number > 0 {
		number = fmt.Sprint(m.Number)
	}
	if m.Beside != "" {
		beside = amount(m.Baseline, m.Unit) + ", " + m.Beside
	}
	goal := strings.NewReplacer("<=", "≤", ">=", "≥").Replace(m.Goal)
	if goal != "" && !m.Met {
		goal += ", missed"
	}
	return fmt.Sprintf("%s\t%s\t%s per %s\t%s\t%s %s\t%s", number, m.Name, amount(m.Ours, m.Unit), m.Per, beside, figure(m.Ratio), spread(m), goal)
}

// conditions describes where and how the figures were measured.
func (o options) conditions(rounds int) string {
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = strings.Join(strings.Fields(string(text))[:3], ", ")
	}
	mode := "full mode"
	if o.quick {
		mode = "quick mode"
	}
	if o.note != "" {
		return machine() + ", " + o.note
	}
	return fmt.Sprintf("%s, load average %s, %s, %d rounds", machine(), load, mode, rounds)
}

// earlier reads the output of -json. If two lines have the same name, the later one counts.
func earlier(path string) ([]pair.Measure, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	var list []pair.Measure
	at := map[string]int{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var m pair.Measure
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		// A measure that was taken again keeps its position.
		if i, ok := at[m.Name]; ok {
			list[i] = m
			continue
		}
		at[m.Name] = len(list)
		list = append(list, m)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}
