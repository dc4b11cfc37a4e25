package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report"
)

func costCommand(s *streams) *cobra.Command {
	var pricesFile string
	var cache, asJSON bool
	cmd := &cobra.Command{
		Use:   "cost FILE… [--prices FILE] [--cache]",
		Short: "Print the tokens and the cost of each model",
		Long: `Prints how many tokens the responses in each FILE used, for each model, for each
FILE and in total: of all branches, and of the conversations of sub-agents. A
node that several FILEs share counts once in the total.

With --prices it prints what they cost. The price file is JSON; prices are for a
million tokens:

  {"date": "2026-11-01", "currency": "USD", "models": {
    "claude-sonnet-4-5": {"input": 3, "output": 15, "cache_read": 0.3,
                          "cache_write": 3.75, "cache_write_long": 6}}}

A model without a price has an unknown cost, and so has a sum with such a model:
the known part of a sum is printed with "at least". So is the cost of a response
with incomplete counts: it broke off, or used what has a price of its own, such
as a search or audio. A response without a token count is counted as such.

With --cache it also prints each model call: the tokens of its request, how many
of them the provider could read from its prompt cache (an estimate), how many it
reported, and what changed since the request before.`,
		Example: `  plait cost talk.json
  plait cost sessions/*.json --prices prices.json
  plait cost talk.json --prices prices.json --json | jq .total.cost
  plait cost talk.json --cache`,
		Args: someFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			sums, err := s.cost(args, pricesFile, cache)
			if err != nil {
				return err
			}
			if asJSON {
				return s.printJSON(sums)
			}
			if err := sums.write(s.out); err != nil || !cache {
				return err
			}
			fmt.Fprintln(s.out)
			return sums.writeCalls(s.out)
		},
	}

	cmd.Flags().StringVar(&pricesFile, "prices", "", "a `FILE` with the prices of models")
	cmd.Flags().BoolVar(&cache, "cache", false, "also each model call, and what was in the prompt cache")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// costReport is the output of cost --json.
type costReport struct {
	// Currency and Date are those of the price file; "" without one.
	Currency string     `json:"currency,omitempty"`
	Date     string     `json:"date,omitempty"`
	Files    []fileCost `json:"files"`
	// Total counts a node shared by several files once.
	Total report.Spending `json:"total"`
}

// fileCost sums up the responses in one file.
type fileCost struct {
	File   string                 `json:"file"`
	Models []report.ModelSpending `json:"models"`
	Total  report.Spending        `json:"total"`
	// Calls are the model calls in the order of their times, with --cache.
	Calls []cachedCall `json:"calls,omitzero"`
}

// cost returns the report on the files. With cache it has their model calls, too.
func (s *streams) cost(files []string, pricesFile string, cache bool) (costReport, error) {
	var out costReport
	var prices api.Prices
	if pricesFile != "" {
		if pricesFile == std && slices.Contains(files, std) {
			return out, errors.New("only one input can be standard input: FILE and --prices cannot both be -")
		}
		list, err := s.prices(pricesFile)
		if err != nil {
			return out, err
		}
		prices, out.Currency, out.Date = list.Prices, list.Currency, list.Date.Format(time.DateOnly)
	}

	if err := readOnce(files); err != nil {
		return out, err
	}

	all := &report.Costs{Prices: prices}
	counted := map[string]bool{} // the nodes in all, by ID: files may share nodes
	for _, name := range files {
		d, err := s.load(name)
		if err != nil {
			return out, err
		}

		// The rows of a file count all of its nodes. The total counts shared nodes once.
		own := &report.Costs{Prices: prices}
		for n, m := range responses(d) {
			own.Add(m.Answer.Model, m.Answer.Usage)
			if key := n.ID().String(); !counted[key] {
				counted[key] = true
				all.Add(m.Answer.Model, m.Answer.Usage)
			}
		}

		file := fileCost{File: name}
		file.Models, file.Total = own.List()
		if cache {
			file.Calls = cachedCalls(d)
		}
		out.Files = append(out.Files, file)
	}

	_, out.Total = all.List()
	return out, nil
}

// responses returns the responses in a conversation: of all branches, and of the conversations of sub-agents.
func responses(d dag.DAG) iter.Seq2[*node.Node, node.Message] {
	return func(yield func(*node.Node, node.Message) bool) {
		for _, n := range everyNode(d).WithChildren() {
			if m, ok := n.Message(); ok && m.Role == content.Assistant && !yield(n, m) {
				return
			}
		}
	}
}

// prices reads a price file.
func (s *streams) prices(name string) (api.PriceList, error) {
	list, err := within(s, func() (api.PriceList, error) {
		in, err := s.input(name)
		if err != nil {
			return api.PriceList{}, err
		}
		defer in.Close()
		return api.ReadPrices(in)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return list, err // it names the file
	}
	if err != nil {
		return list, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// everyNode returns the conversation with all heads and refs as its heads.
func everyNode(d dag.DAG) dag.DAG {
	heads := d.Heads()
	for _, r := range d.Refs() {
		heads = append(heads, r.Heads...)
	}
	return d.WithHeads(leaves(heads)...)
}

// readOnce refuses a list of files with standard input twice.
func readOnce(files []string) error {
	if at := slices.Index(files, std); at >= 0 && slices.Contains(files[at+1:], std) {
		return errors.New("only one input can be standard input")
	}
	return nil
}

// write prints the report as a table.
func (r costReport) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	header := "responses\tinput\toutput\tcache read\tcache write\t"
	if r.Currency != "" {
		header += r.Currency + "\t"
	}
	fmt.Fprintln(w, header)

	for _, file := range r.Files {
		for _, m := range file.Models {
			name := m.Model
			if name == "" {
				name = "(no model)"
			}
			costRow(w, m.Spending, file.File+": "+name, r.Currency)
		}

		// With one model, its row is the total.
		if len(file.Models) != 1 {
			costRow(w, file.Total, file.File, r.Currency)
		}
	}

	if len(r.Files) > 1 {
		costRow(w, r.Total, "total", r.Currency)
	}
	if err := w.Flush(); err != nil {
		return err
	}

	var err error
	if n := r.Total.Uncounted; n > 0 {
		_, err = fmt.Fprintf(out, "%d of %d responses came without a token count.\n", n, r.Total.Responses)
	}
	return err
}

// money returns a cost for a table, whose other columns and rows show which model has no price.
func money(s report.Spending) string {
	s.Unpriced = nil
	return s.Money()
}

// costRow writes one line of the table. The name comes last: its width does not affect the columns.
func costRow(w io.Writer, s report.Spending, name, currency string) {
	u := s.Usage
	cells := []string{
		strconv.Itoa(s.Responses), describe.Number(u.Input), describe.Number(u.Output),
		describe.Number(u.CacheRead), describe.Number(u.CacheWrite),
	}
	if currency != "" {
		cells = append(cells, money(s))
	}
	fmt.Fprintf(w, "%s\t  %s\n", strings.Join(cells, "\t"), safetext.Line(name, math.MaxInt))
}
