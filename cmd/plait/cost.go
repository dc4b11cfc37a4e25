package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

func costCommand(s *streams) *cobra.Command {
	var pricesFile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cost FILE… [--prices FILE]",
		Short: "Print the tokens and the cost of each model",
		Long: `Prints how many tokens the responses in each FILE used, for each model, for each
FILE and in total: of all branches, and of the conversations of sub-agents. A
node that several FILEs share counts once in the total.

With --prices it prints what they cost. The price file is JSON; prices are for a
million tokens:

  {"date": "2026-11-01", "currency": "USD", "models": {
    "claude-sonnet-4-5": {"input": 3, "output": 15,
                          "cache_read": 0.3, "cache_write": 3.75}}}

A model without a price has an unknown cost, and so has a sum with such a model:
the known part of a sum is printed with "at least". So is the cost of a response
that broke off, because its token count is incomplete. A response without a
token count is counted as such.`,
		Example: `  plait cost talk.json
  plait cost sessions/*.json --prices prices.json
  plait cost talk.json --prices prices.json --json | jq .total.cost`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := s.cost(args, pricesFile)
			if err != nil {
				return err
			}
			if asJSON {
				return s.printJSON(report)
			}
			return report.write(s.out)
		},
	}

	cmd.Flags().StringVar(&pricesFile, "prices", "", "a `FILE` with the prices of models")
	_ = cmd.MarkFlagFilename("prices", "json")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// costReport is the output of cost --json.
type costReport struct {
	// Currency and Date are those of the price file; "" without one.
	Currency string     `json:"currency,omitempty"`
	Date     string     `json:"date,omitempty"`
	Files    []fileCost `json:"files"`
	// Total counts a node that several files share once.
	Total spending `json:"total"`
}

// fileCost sums up the responses in one file.
type fileCost struct {
	File   string      `json:"file"`
	Models []modelCost `json:"models"`
	Total  spending    `json:"total"`
}

// modelCost sums up the responses of one model.
type modelCost struct {
	// Model is the name that the provider returned, or "" if it returned none.
	Model string `json:"model"`
	spending
}

// spending is a sum of responses.
type spending struct {
	Responses int           `json:"responses"`
	Usage     content.Usage `json:"usage"`
	// Uncounted is the number of responses without a token count: their tokens and their cost are unknown.
	Uncounted int `json:"uncounted,omitempty"`
	// Cost is nil if it is unknown, even in part. Known is the known part, or nil without prices.
	Cost  *float64 `json:"cost"`
	Known *float64 `json:"known_cost,omitempty"`
	// Estimated reports that some tokens have no price of their own and are estimated.
	Estimated bool `json:"estimated,omitempty"`
}

// costs adds up responses.
type costs struct {
	prices api.Prices // nil for none
	models map[string]*spending
}

// add adds a response.
func (c *costs) add(model string, u content.Usage) {
	sum := c.models[model]
	if sum == nil {
		sum = &spending{}
		c.models[model] = sum
		if c.prices != nil {
			sum.Cost, sum.Known = new(float64), new(float64)
		}
	}

	sum.Responses++
	sum.Usage = sum.Usage.Plus(u)

	if u == (content.Usage{}) {
		sum.Uncounted++
		sum.Cost = nil
		return
	}
	if c.prices == nil {
		return
	}

	price, known := c.prices.Of(model)
	if !known {
		sum.Cost = nil
		return
	}
	cost, complete := price.Cost(u)
	sum.Estimated = sum.Estimated || !complete
	plus(sum.Known, cost)
	plus(sum.Cost, cost)

	// More tokens were paid for than are counted, so only a part of the cost is known.
	if u.Incomplete {
		sum.Cost = nil
	}
}

// plus adds a cost to a sum, which may be nil for unknown. The sum stays finite.
func plus(sum *float64, cost float64) {
	if sum != nil {
		*sum = min(*sum+cost, math.MaxFloat64)
	}
}

// list returns the sums of the models, in the order of their names, and of all.
func (c *costs) list() (models []modelCost, total spending) {
	names := make([]string, 0, len(c.models))
	for name := range c.models {
		names = append(names, name)
	}
	slices.Sort(names)

	if c.prices != nil {
		total.Cost, total.Known = new(float64), new(float64)
	}
	models = []modelCost{} // not nil: in JSON it is a list
	for _, name := range names {
		sum := *c.models[name]
		models = append(models, modelCost{name, sum})

		total.Responses += sum.Responses
		total.Uncounted += sum.Uncounted
		total.Usage = total.Usage.Plus(sum.Usage)
		total.Estimated = total.Estimated || sum.Estimated
		if sum.Known != nil {
			plus(total.Known, *sum.Known)
		}

		// One unknown cost makes the total unknown.
		if sum.Cost == nil {
			total.Cost = nil
			continue
		}
		plus(total.Cost, *sum.Cost)
	}
	return models, total
}

// cost returns the report on the files.
func (s *streams) cost(files []string, pricesFile string) (costReport, error) {
	var report costReport
	var prices api.Prices
	if pricesFile != "" {
		if pricesFile == std && slices.Contains(files, std) {
			return report, errors.New("only one input can be standard input: FILE and --prices cannot both be -")
		}
		list, err := s.prices(pricesFile)
		if err != nil {
			return report, err
		}
		prices, report.Currency, report.Date = list.Prices, list.Currency, list.Date.Format(time.DateOnly)
	}

	if err := readOnce(files); err != nil {
		return report, err
	}

	all := &costs{prices: prices, models: map[string]*spending{}}
	counted := map[string]bool{} // the nodes in all, by ID and digest: files may share nodes
	for _, name := range files {
		d, err := s.load(name)
		if err != nil {
			return report, err
		}

		own := &costs{prices: prices, models: map[string]*spending{}}
		for n, m := range responses(d) {
			own.add(m.Answer.Model, m.Answer.Usage)
			if key := n.ID().String() + n.Digest().String(); !counted[key] {
				counted[key] = true
				all.add(m.Answer.Model, m.Answer.Usage)
			}
		}

		file := fileCost{File: name}
		file.Models, file.Total = own.list()
		report.Files = append(report.Files, file)
	}

	_, report.Total = all.list()
	return report, nil
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
	in := s.in
	if name != std {
		file, err := os.Open(name)
		if err != nil {
			return api.PriceList{}, err
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}

	list, err := api.ReadPrices(in)
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

// readOnce refuses a list of files that names standard input twice.
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
			m.row(w, file.File+": "+name, r.Currency)
		}

		// With one model, its row is the total.
		if len(file.Models) != 1 {
			file.Total.row(w, file.File, r.Currency)
		}
	}

	if len(r.Files) > 1 {
		r.Total.row(w, "total", r.Currency)
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

// row writes one line of the table. The name comes last, so that its width does not affect the columns.
func (s spending) row(w io.Writer, name, currency string) {
	u := s.Usage
	cells := []string{strconv.Itoa(s.Responses), thousands(u.Input), thousands(u.Output), thousands(u.CacheRead), thousands(u.CacheWrite)}
	if currency != "" {
		cells = append(cells, s.money())
	}
	fmt.Fprintf(w, "%s\t  %s\n", strings.Join(cells, "\t"), safetext.Line(name, math.MaxInt))
}

// money returns the cost as text: exact, estimated, at least the known part, or unknown.
func (s spending) money() string {
	switch {
	case s.Cost == nil && (s.Known == nil || *s.Known == 0):
		return "unknown"
	case s.Cost == nil:
		return "at least " + amount(*s.Known)
	case s.Estimated:
		return "about " + amount(*s.Cost)
	}
	return amount(*s.Cost)
}

func amount(cost float64) string { return strconv.FormatFloat(cost, 'f', 4, 64) }

// thousands returns a number with a comma between groups of three digits.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
