package main

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/report"
)

// csvColumns are the columns of a report in CSV. A column for each label follows.
var csvColumns = []struct {
	name string
	cell func(r report.Row) string
}{
	{"name", func(r report.Row) string { return csvText(r.Name) }},
	{"outcome", func(r report.Row) string { return csvText(string(r.Outcome)) }},
	{"stop", func(r report.Row) string { return csvText(string(r.Stop)) }},
	{"turns", func(r report.Row) string { return strconv.Itoa(r.Turns) }},
	{"calls", func(r report.Row) string { return strconv.Itoa(r.Calls) }},
	{"failed_calls", func(r report.Row) string { return strconv.Itoa(r.FailedCalls) }},
	{"responses", func(r report.Row) string { return strconv.Itoa(r.Responses) }},
	{"input", func(r report.Row) string { return strconv.FormatInt(r.Usage.Input, 10) }},
	{"output", func(r report.Row) string { return strconv.FormatInt(r.Usage.Output, 10) }},
	{"cache_read", func(r report.Row) string { return strconv.FormatInt(r.Usage.CacheRead, 10) }},
	{"cache_write", func(r report.Row) string { return strconv.FormatInt(r.Usage.CacheWrite, 10) }},
	{"cost", func(r report.Row) string { return csvCost(r.Cost) }},
	{"known_cost", func(r report.Row) string { return csvCost(r.Known) }},
	{"took_ms", func(r report.Row) string { return strconv.FormatInt(r.Took.Milliseconds(), 10) }},
	{"began", func(r report.Row) string { return csvTime(r.Began) }},
	{"last", func(r report.Row) string { return csvTime(r.Last) }},
	{"path", func(r report.Row) string { return strconv.Itoa(r.Path) }},
	{"failure_node", func(r report.Row) string { return csvText(failureOf(r.Failure).Node) }},
	{"failure", func(r report.Row) string { return csvText(failureOf(r.Failure).Text) }},
	{"cause_node", func(r report.Row) string { return csvText(failureOf(r.Cause).Node) }},
	{"cause", func(r report.Row) string { return csvText(failureOf(r.Cause).Text) }},
	{"answer", func(r report.Row) string { return csvText(r.Answer) }},
	{"error", func(r report.Row) string { return csvText(r.Error) }},
}

// writeCSV writes the rows as CSV, with a header. The label KEY is in column "label.KEY".
func (out reportOutput) writeCSV(w io.Writer) error {
	found := map[string]bool{}
	for _, r := range out.Rows {
		for key := range r.Labels {
			found[key] = true
		}
	}
	labels := slices.Sorted(maps.Keys(found))

	var header []string
	for _, c := range csvColumns {
		header = append(header, c.name)
	}
	for _, key := range labels {
		header = append(header, csvText("label."+key))
	}

	// Each row has a cell for each label of any row.
	lines := csv.NewWriter(w)
	_ = lines.Write(header) // Error returns the error
	for _, r := range out.Rows {
		var cells []string
		for _, c := range csvColumns {
			cells = append(cells, c.cell(r))
		}
		for _, key := range labels {
			cells = append(cells, csvText(r.Labels[key]))
		}
		_ = lines.Write(cells)
	}
	lines.Flush()
	return lines.Error()
}

// csvText returns a text for a cell. A spreadsheet takes a cell beginning with "=", "+", "-" or "@", or with such a
// sign of full width, for a formula. Such a text gets a quote before it, unless it is a number. In a locale with ";"
// between the items of lists, a spreadsheet begins a cell after each ";" of a text, even inside quotes.
func csvText(text string) string {
	text = safetext.Row(text)
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return formula().ReplaceAllString(text, "$1'$2")
}

// formula matches the beginning of a cell that looks like a formula to a spreadsheet.
var formula = pattern.Of(`(^|;)([\s"]*[=+\-@＝＋－＠])`)

// failureOf returns a failure, or an empty one for none.
func failureOf(f *report.Failure) report.Failure {
	if f == nil {
		return report.Failure{}
	}
	return *f
}

// csvCost returns a cost, or "" if it is unknown.
func csvCost(cost *float64) string {
	if cost == nil {
		return ""
	}
	return strconv.FormatFloat(*cost, 'f', -1, 64)
}

func csvTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}
