package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/report"
	"github.com/plait-dev/plait/viz/page"
)

// reportFlags are the flags of plait report.
type reportFlags struct {
	prices, by, sort, as string
	where                []string
	limit                int
	cache, asJSON        bool
}

// reportForms are the forms of a report, in the order of the help text. The first is the default.
var reportForms = []string{"text", "json", "html"}

const reportHelp = `Prints a row for each conversation: how it ended, its turns, its tool calls and
how many of them failed, its cost, the time that models and tools worked, its
first failure with the NODE for plait show, and the last answer. Below the rows
are the sums by tool and by model, the causes, the failures, and the paths.

With --prices it prints what the responses cost. The price file is JSON; prices
are for a million tokens:

  {"date": "2026-11-01", "currency": "USD", "models": {
    "claude-sonnet-4-5": {"input": 3, "output": 15, "cache_read": 0.3,
                          "cache_write": 3.75, "cache_write_long": 6}}}

A model without a price has an unknown cost, and so has a sum with such a model:
the known part of a sum is printed with "at least". So is the cost of a response
with incomplete counts: it broke off, or used what has a price of its own, such
as a search or audio. A response without a token count is counted as such.

With --cache it also prints each model call: the tokens of its request, how many
of them the provider could read from its prompt cache (an estimate), how many it
reported, and what changed since the request before.

FILE may also be a folder, for all *.json and *.jsonl files and databases in it,
or a database, for all conversations in it. A file that cannot be read is a row
with the reason, or a line on standard error; the exit code is then 2.

A path is the sequence of steps, without what was said: which tools were called,
and what failed. The first path is the most frequent one; the others are printed
with the step at which they part from a more frequent one.

A KEY is name, outcome, stop, model, tool, failure, cause, path, or a key of the
metadata of the conversations. The cause is the failure that ended one, not one
from which it went on. --sort also accepts turns, calls, failed, steps,
tokens, cost, time and began; -KEY is the reverse order. What is unknown comes
last.

Counts and costs include all branches and the conversations of sub-agents. A
node that several conversations share counts in each of them.`

func reportCommand(s *streams) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report FILE…",
		Short: "Compare many conversations: outcomes, costs, failures, paths",
		Long:  reportHelp,
		Example: `  plait report runs/
  plait report runs/ --by model --prices prices.json
  plait report talk.json --cache
  plait report runs/ --where outcome=failed --sort -cost -n 10
  plait report runs/ --as html > runs.html
  plait report sessions.db --json | jq '.rows[] | select(.calls > 9).name'`,
		Args: someFiles,
		RunE: func(_ *cobra.Command, args []string) error { return s.reportOn(args, f) },
	}

	flags := cmd.Flags()
	flags.StringVar(&f.prices, "prices", "", "a `FILE` with the prices of models")
	flags.StringArrayVar(&f.where, "where", nil, "only conversations that meet `KEY=VALUE`, or KEY!=VALUE;\nmay be given several times")
	flags.StringVar(&f.by, "by", "", "print a row for each value of `KEY`")
	flags.StringVar(&f.sort, "sort", "", "sort the rows by `KEY`")
	flags.IntVarP(&f.limit, "limit", "n", 0, "only the first `N` conversations, after sorting")
	flags.StringVar(&f.as, "as", "", "the `FORM`: "+strings.Join(reportForms, ", "))
	flags.BoolVar(&f.cache, "cache", false, "also each model call, and what was in the prompt cache")
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

// reportOutput is the output of report --json.
type reportOutput struct {
	// Currency and Date are those of the price file; "" without one.
	Currency string         `json:"currency,omitempty"`
	Date     string         `json:"date,omitempty"`
	Total    report.Summary `json:"total"`
	Rows     []report.Row   `json:"rows"`
	// Groups are the values of --by.
	Groups []report.Group `json:"groups,omitempty"`
	// Causes and Failures are the values of keys "cause" and "failure".
	Causes   []report.Group `json:"causes"`
	Failures []report.Group `json:"failures"`
	Paths    []report.Path  `json:"paths"`
	// Requests are the model calls, with --cache.
	Requests []cachedCall `json:"requests,omitempty"`
}

// check sets the form of the report, and returns an error for invalid or conflicting flags.
func (f *reportFlags) check() error {
	if f.asJSON {
		f.as = "json"
	}
	f.as = cmp.Or(f.as, reportForms[0])

	switch {
	case !slices.Contains(reportForms, f.as):
		return fmt.Errorf("--as %q is not one of %s", f.as, strings.Join(reportForms, ", "))
	case f.limit < 0:
		return errors.New("-n must not be negative")
	}
	return nil
}

// reportOn prints the report on the conversations in the arguments.
func (s *streams) reportOn(names []string, f reportFlags) error {
	if err := f.check(); err != nil {
		return err
	}

	var out reportOutput
	list, err := s.priceList(names, f.prices)
	if err != nil {
		return err
	}
	if list.Prices != nil {
		out.Currency, out.Date = list.Currency, list.Date.Format(time.DateOnly)
	}

	// One conversation at a time is in memory. Of each, its row stays.
	var unread []report.Row
	calls := map[string][]cachedCall{} // by the name of the conversation
	o := &report.Options{Prices: list.Prices, Texts: new(report.Texts)}
	for c := range s.conversations(names) {
		row := report.Of(c.name, c.dag, o)
		if c.err != nil {
			row = report.Unreadable(c.name, c.err)
		}
		if row.Error != "" {
			row.Error = strings.TrimPrefix(plain(errors.New(row.Error)), c.name+": ")
			unread = append(unread, row)
		}
		out.Rows = append(out.Rows, row)
		if f.cache && row.Error == "" {
			calls[c.name] = cachedCalls(c.name, c.dag)
		}
	}

	if err := out.choose(f); err != nil {
		return err
	}
	for _, row := range out.Rows {
		out.Requests = append(out.Requests, calls[row.Name]...)
	}

	s.sayUnread(unread, out.Rows, f)
	if err := s.writeReport(out, f); err != nil {
		return err
	}

	// The report on the others is complete: an unreadable conversation changes only the exit code.
	if len(unread) > 0 {
		return &exitError{code: exitBad}
	}
	return nil
}

// sayUnread prints the errors of unreadable conversations without a row in the report.
func (s *streams) sayUnread(unread, rows []report.Row, f reportFlags) {
	listed := map[string]bool{}
	// Groups as text have no row for an unreadable conversation.
	if f.by == "" || f.as != "text" {
		for _, r := range rows {
			listed[r.Name] = true
		}
	}
	for _, r := range unread {
		if !listed[r.Name] {
			s.say("plait: %s: %s", r.Name, r.Error)
		}
	}
}

// choose filters, sorts and groups the rows. The paths are numbered first: a filter does not change their numbers.
func (out *reportOutput) choose(f reportFlags) (err error) {
	out.Paths = report.Paths(out.Rows)

	// Keys are checked against all rows: perhaps no filtered row has the label.
	if f.by != "" {
		if err := report.CheckKey(out.Rows, f.by); err != nil {
			return fmt.Errorf("--by: %w", err)
		}
	}
	if f.sort != "" {
		if err := report.Sort(out.Rows, f.sort); err != nil {
			return fmt.Errorf("--sort: %w", err)
		}
	}

	if out.Rows, err = report.Where(out.Rows, f.where...); err != nil {
		return fmt.Errorf("--where: %w", err)
	}
	if f.limit > 0 {
		out.Rows = out.Rows[:min(f.limit, len(out.Rows))]
	}

	if f.by != "" {
		out.Groups = report.GroupBy(out.Rows, f.by)
	}

	out.Total = report.Sum(out.Rows)
	out.Causes, out.Failures = valuesOf(out.Rows, "cause"), valuesOf(out.Rows, "failure")
	out.Paths = pathsOf(out.Paths, out.Rows)
	if out.Rows == nil {
		out.Rows = []report.Row{} // in JSON it is a list
	}
	return nil
}

// valuesOf returns the groups of the rows with a key.
func valuesOf(rows []report.Row, key string) []report.Group {
	return slices.DeleteFunc(report.GroupBy(rows, key), func(g report.Group) bool { return g.Value == "" })
}

// pathsOf returns the paths of the rows.
func pathsOf(paths []report.Path, rows []report.Row) []report.Path {
	members := map[int][]int{}
	for i, r := range rows {
		members[r.Path] = append(members[r.Path], i)
	}

	taken := []report.Path{}
	for _, p := range paths {
		if p.Rows = members[p.Number]; len(p.Rows) > 0 {
			taken = append(taken, p)
		}
	}
	return taken
}

// writeReport writes the report in the form selected by the flags.
func (s *streams) writeReport(out reportOutput, f reportFlags) error {
	switch f.as {
	case "json":
		return s.printJSON(out)
	case "html":
		return page.WriteReport(s.out, out.Rows, &page.ReportOptions{Currency: out.Currency})
	}

	text := reportText{reportOutput: out, grouped: f.by, width: s.reportWidth(), color: colorOf(s.out)}
	_, err := s.out.Write(text.lines())
	return err
}

// reportWidth returns the width of a report in cells.
func (s *streams) reportWidth() int {
	_, width := terminalOf(s.out)
	if width == 0 {
		width = defaultReportWidth
	}
	return max(width, minReportWidth)
}

// defaultReportWidth is the width of a report in cells if output is no terminal.
const defaultReportWidth = 80

// minReportWidth is the minimum width of a report in cells.
const minReportWidth = 60
