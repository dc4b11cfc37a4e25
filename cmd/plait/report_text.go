package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/report"
)

// reportText lays out a report for a terminal.
type reportText struct {
	reportOutput
	grouped string // the key of --by, or ""
	width   int    // in cells
	color   bool

	out bytes.Buffer
}

// The colors of a report, as parameters of an ANSI sequence.
const (
	redText    = "31"
	yellowText = "33"
	grayText   = "90"
)

// lines returns the whole report.
func (t *reportText) lines() []byte {
	if t.grouped != "" {
		t.groups()
	} else {
		t.rows()
	}

	// One conversation has no paths to compare, and its row has its failure.
	t.tools()
	t.models()
	t.cached()
	if len(t.Rows) > 1 {
		t.failures("cause", t.Causes)
		if !slices.EqualFunc(t.Causes, t.Failures, func(a, b report.Group) bool { return a.Value == b.Value && slices.Equal(a.Rows, b.Rows) }) {
			t.failures("first failure", t.Failures)
		}
		t.paths()
	}
	t.total()
	return t.out.Bytes()
}

// paint returns text in a color, if colors are used.
func (t *reportText) paint(color, text string) string {
	if !t.color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// outcomeColor returns the color of an outcome.
func outcomeColor(outcome string) string {
	switch outcome {
	case "failed", "cut off", "in doubt", "unreadable":
		return redText
	case "paused", "open", "cancelled":
		return yellowText
	}
	return ""
}

// column is a column of a table.
type column struct {
	title string
	left  bool // align to the left
}

// table writes rows below the titles of their columns. Numbers are aligned to the right, and the last column has no
// padding. after writes the text below row i.
func (t *reportText) table(columns []column, rows [][]string, color func(i int) string, after func(i int)) {
	// Widths are in cells of the terminal, not in bytes.
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = len(c.title)
		for _, row := range rows {
			widths[i] = max(widths[i], safetext.Width(row[i]))
		}
	}

	line := func(cells []string, color string) {
		for i, cell := range cells {
			padding := strings.Repeat(" ", widths[i]-safetext.Width(cell))
			switch {
			case i == len(cells)-1 && columns[i].left:
			case columns[i].left:
				cell += padding
			default:
				cell = padding + cell
			}

			if i > 0 {
				t.out.WriteString("  ")
			} else {
				cell = t.paint(color, cell)
			}
			t.out.WriteString(cell)
		}
		t.out.WriteByte('\n')
	}

	var titles []string
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	line(titles, "")
	for i, row := range rows {
		line(row, color(i))
		after(i)
	}
}

func plainRow(int) string { return "" }
func nothingAfter(int)    {}

// rows writes a row for each conversation, with its first failure and its cause below it. The answer follows, unless
// there is a failure and the conversation did not end normally.
func (t *reportText) rows() {
	columns := []column{{"outcome", true}, {"turns", false}, {"calls", false}, {"failed", false}}
	if t.Currency != "" {
		columns = append(columns, column{t.currency(), false})
	}
	columns = append(columns, column{"time", false}, column{"conversation", true})

	var cells [][]string
	for _, r := range t.Rows {
		row := []string{outcomeText(r), dashed(r.Turns), dashed(r.Calls), dashed(r.FailedCalls)}
		if t.Currency != "" {
			row = append(row, money(r.Spending))
		}
		cells = append(cells, append(row, tookText(r.Took), safetext.Row(r.Name)))
	}

	// Below a row: the reason if it cannot be read, the failure, and the answer.
	t.table(columns, cells, func(i int) string { return outcomeColor(t.Rows[i].Outcome) }, func(i int) {
		r := t.Rows[i]
		if r.Error != "" {
			t.detail("✗", r.Error, redText)
		}
		if r.Failure != nil {
			t.detail("✗ "+r.Failure.Node, r.Failure.Text, redText)
		}
		if r.Cause != nil && *r.Cause != *r.Failure {
			t.detail("✗ "+r.Cause.Node, r.Cause.Text, redText)
		}
		if r.Answer != "" && (r.Failure == nil || r.Outcome == "ended") {
			t.detail("→", r.Answer, grayText)
		}
	})
}

// detail writes a line below a row.
func (t *reportText) detail(sign, text, color string) { t.indented(2, sign+" "+text, color) }

// indented writes a line after the given number of spaces.
func (t *reportText) indented(spaces int, text, color string) {
	t.out.WriteString(strings.Repeat(" ", spaces) + t.paint(color, safetext.Line(text, t.width-spaces)) + "\n")
}

// outcomeText returns the outcome of a row, with the stop reason unless it is the usual one.
func outcomeText(r report.Row) string {
	text := r.Outcome
	switch r.Stop {
	case "", content.StopEndTurn, content.StopToolUse, content.StopCut, content.StopCancelled, content.StopUnknown:
		return text
	}
	return text + ": " + safetext.Line(string(r.Stop), 21)
}

// dashed returns a number, or "-" for 0.
func dashed(n int) string {
	if n == 0 {
		return "-"
	}
	return describe.Number(n)
}

func tookText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return describe.Duration(d)
}

func (t *reportText) currency() string { return safetext.Line(t.Currency, 20) }

// groups writes a row for each value of the key.
func (t *reportText) groups() {
	columns := []column{{"count", false}, {"ended", false}, {"turns", false}, {"calls", false}, {"failed", false}}
	if t.Currency != "" {
		columns = append(columns, column{t.currency(), false})
	}
	columns = append(columns, column{"time", false}, column{safetext.Line(t.grouped, 40), true})

	var cells [][]string
	for _, g := range t.Groups {
		row := []string{describe.Number(g.Conversations), dashed(g.Outcomes["ended"]), dashed(g.Turns), dashed(g.Calls), dashed(g.FailedCalls)}
		if t.Currency != "" {
			row = append(row, money(g.Spending))
		}
		cells = append(cells, append(row, tookText(g.Took), cmp.Or(safetext.Line(g.Value, 200), "(none)")))
	}
	t.table(columns, cells, plainRow, nothingAfter)
}

// tools writes the calls of each tool.
func (t *reportText) tools() {
	if len(t.Total.Tools) == 0 {
		return
	}
	var cells [][]string
	for _, tool := range t.Total.Tools {
		failed := "-"
		if tool.Failed > 0 {
			failed = fmt.Sprintf("%s (%s)", describe.Number(tool.Failed), percent(tool.Failed, tool.Calls))
		}
		p50, p95 := "-", "-"
		if tool.Timed > 0 {
			p50, p95 = describe.Duration(tool.P50), describe.Duration(tool.P95)
		}
		cells = append(cells, []string{describe.Number(tool.Calls), failed, p50, p95, cmp.Or(safetext.Line(tool.Name, 60), "(no name)")})
	}

	t.out.WriteByte('\n')
	t.table([]column{{"calls", false}, {"failed", false}, {"p50", false}, {"p95", false}, {"tool", true}}, cells, plainRow, nothingAfter)
}

// percent returns n of all as a percentage, rounded down. A small share is not rounded to 0.
func percent(n, all int) string {
	share := int64(n) * 100 / int64(all) // as integers: 0.29*100 is less than 29
	if share == 0 {
		return "<1%"
	}
	return strconv.FormatInt(share, 10) + "%"
}

// models writes the tokens and the cost of each model.
func (t *reportText) models() {
	if len(t.Total.Models) == 0 {
		return
	}
	columns := []column{{"responses", false}, {"input", false}, {"output", false}, {"cache read", false}, {"cache write", false}}
	if t.Currency != "" {
		columns = append(columns, column{t.currency(), false})
	}
	columns = append(columns, column{"model", true})

	var cells [][]string
	for _, m := range t.Total.Models {
		u := m.Usage
		row := []string{describe.Number(m.Responses), describe.Number(u.Input), describe.Number(u.Output),
			describe.Number(u.CacheRead), describe.Number(u.CacheWrite)}
		if t.Currency != "" {
			row = append(row, money(m.Spending))
		}
		cells = append(cells, append(row, cmp.Or(safetext.Line(m.Model, 60), "(no model)")))
	}

	t.out.WriteByte('\n')
	t.table(columns, cells, plainRow, nothingAfter)
}

// maxListed is the maximum number of failures and of paths in the list.
const maxListed = 12

// failures writes how many conversations have each failure.
func (t *reportText) failures(title string, list []report.Group) {
	if len(list) == 0 {
		return
	}
	t.out.WriteString("\ncount  " + title + "\n")
	for _, g := range list[:min(len(list), maxListed)] {
		fmt.Fprintf(&t.out, "%5d", len(g.Rows))
		t.indented(2, g.Value, redText)
		t.named(g.Rows)
	}
	t.more(len(list), title)
}

// named writes the names of the first conversations among rows.
func (t *reportText) named(rows []int) {
	const indent = 7
	more := ""
	if n := len(rows) - 1; n > 0 {
		more = fmt.Sprintf(" and %s more", describe.Number(n))
	}
	t.indented(indent, safetext.Line(t.Rows[rows[0]].Name, t.width-indent-len(more))+more, grayText)
}

// more writes how many entries of a list are left out.
func (t *reportText) more(all int, thing string) {
	if left := all - maxListed; left > 0 {
		fmt.Fprintf(&t.out, "       … and %s (--json lists them)\n", describe.Count(left, "more "+thing))
	}
}

// paths writes the number of conversations of each path, and the step where it parts from another one.
func (t *reportText) paths() {
	if len(t.Paths) < 2 {
		return
	}
	var cells [][]string
	listed := t.Paths[:min(len(t.Paths), maxListed)]
	for _, p := range listed {
		steps := t.Rows[p.Rows[0]].Steps()
		cells = append(cells, []string{
			strconv.Itoa(p.Number), describe.Number(len(p.Rows)), p.Outcome, describe.Number(p.NumSteps), partsText(p, steps),
		})
	}

	// The last column gets the rest of the width.
	const others = len("path  count  cancelled  steps  ")
	for i := range cells {
		cells[i][4] = safetext.Line(cells[i][4], t.width-others)
	}

	t.out.WriteByte('\n')
	t.table([]column{{"path", false}, {"count", false}, {"outcome", true}, {"steps", false}, {"where it parts", true}}, cells,
		plainRow, func(i int) { t.named(listed[i].Rows) })
	t.more(len(t.Paths), "path")
}

// partsText returns the point where a path parts from a more frequent one, or its steps if there is none.
func partsText(p report.Path, steps []report.Step) string {
	if p.Base == 0 {
		var labels []string
		for _, step := range steps {
			labels = append(labels, step.Label)
		}
		return strings.Join(labels, ", ")
	}

	text := fmt.Sprintf("from %d after %d: %s", p.Base, p.Same, cmp.Or(p.Step, "ends"))
	if p.Instead != "" {
		text += " instead of " + p.Instead
	}
	return text
}

// total writes how many conversations there are, and their sums.
func (t *reportText) total() {
	s := t.Total
	var parts []string
	for _, g := range report.GroupBy(t.Rows, "outcome") {
		parts = append(parts, t.paint(outcomeColor(g.Value), describe.Number(len(g.Rows))+" "+g.Value))
	}
	text := describe.Count(s.Conversations, "conversation")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	fmt.Fprintf(&t.out, "\n%s\n", text)

	fmt.Fprintf(&t.out, "%s, %s, %s failed, %s tokens", describe.Count(s.Turns, "turn"), describe.Count(s.Calls, "tool call"),
		describe.Number(s.FailedCalls), describe.Number(s.Usage.Total()))
	if t.Currency != "" {
		fmt.Fprintf(&t.out, ", %s %s", money(s.Spending), t.currency())
	}
	t.out.WriteByte('\n')

	// A response without a token count makes the sums too low.
	if s.Uncounted > 0 {
		fmt.Fprintf(&t.out, "%d of %d responses came without a token count.\n", s.Uncounted, s.Responses)
	}
}
