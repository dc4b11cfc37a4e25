package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/page"
	"github.com/plait-dev/plait/viz/png"
)

// logOptions are the flags of plait log.
type logOptions struct {
	oneline, all, failed, asJSON bool

	at   string
	draw logFlags
}

func logCommand(s *streams) *cobra.Command {
	var f logOptions
	cmd := &cobra.Command{
		Use:   "log FILE",
		Short: "Print the graph as a log, the oldest node first",
		Long: `Prints the nodes that the head of FILE reaches, the oldest first.

A row names its node by the end of the node's ID, for "plait show FILE NODE".
The row of a failure tells why before anything else, and that of a response how
many of its calls wait for a person or a result.

With --failed it prints a row for each failure, sub-agents included, and for
what leads to it: the user's message, the response, and the call of a sub-agent.

With --all it prints the nodes that any ref reaches as well, and then the refs;
--oneline and --json then list the conversations of sub-agents, too.

With --json it prints a list with an object for each node.

On a terminal the log has colors, unless NO_COLOR is set, and the width of the
terminal.`,
		Example: `  plait log talk.json
  plait log talk.json -n 20 --fold --color=always | less -R
  plait log talk.json --failed
  plait log talk.json --oneline --node first-try
  plait log talk.json --json | jq -r '.[] | select(.usage) | .model'`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return s.log(args[0], f) },
	}

	cmd.Flags().BoolVar(&f.oneline, "oneline", false, "a line for each node: its name, kind and content")
	cmd.Flags().BoolVar(&f.all, "all", false, "also the nodes that only refs reach, and the refs")
	cmd.Flags().BoolVar(&f.failed, "failed", false, "only failures and what leads to them, a line for each")
	cmd.Flags().StringVar(&f.at, "node", "", "only `NODE` and the nodes before it")
	f.draw.register(cmd)
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

// log prints the log of a file.
func (s *streams) log(name string, f logOptions) error {
	d, err := s.load(name)
	if err == nil && f.at != "" {
		d, err = find(d, f.at)
	}
	if err != nil {
		return err
	}

	refs := d.Refs()
	if f.all && f.at == "" {
		d = everyNode(d)
	}

	o, err := f.draw.options(s.out)
	if err != nil {
		return err
	}
	if f.asJSON || f.oneline || f.failed {
		return s.printRows(d, f, o)
	}
	if err := d.WriteLog(s.out, o); err != nil || !f.all {
		return err
	}
	return s.printRefs(refs, d.ShortIDs())
}

// printRows prints a row for each node or, with --failed, for failures and their causes.
func (s *streams) printRows(d dag.DAG, f logOptions, o *dag.LogOptions) error {
	var list []row
	if f.failed {
		list = failures(d, o.Last)
	} else {
		list = rows(d, f.all, o.Last)
	}

	// Nodes are decoded on first use, so a broken node may be found only now.
	if err := d.Err(); err != nil {
		return err
	}
	if f.asJSON {
		return s.printJSON(list)
	}
	return s.oneline(list, o)
}

// everyNode returns the conversation with all heads and refs as its heads.
func everyNode(d dag.DAG) dag.DAG {
	heads := d.Heads()
	for _, r := range d.Refs() {
		heads = append(heads, r.Heads...)
	}
	return d.WithHeads(leaves(heads)...)
}

// leaves returns the heads that are no ancestors of other heads.
func leaves(heads []*node.Node) []*node.Node {
	ancestors := map[*node.Node]bool{}
	for _, n := range dag.New().WithHeads(heads...).Nodes() {
		for _, p := range n.Parents() {
			ancestors[p] = true
		}
	}

	return slices.DeleteFunc(heads, func(n *node.Node) bool { return ancestors[n] })
}

// printRefs prints the refs of a file with the kinds and short names of their heads.
func (s *streams) printRefs(refs []dag.Ref, short func(*node.Node) string) error {
	for i, r := range refs {
		if i == 0 {
			fmt.Fprintln(s.out)
		}
		var at []string
		for _, n := range r.Heads {
			at = append(at, n.Kind()+" "+short(n))
		}
		if _, err := fmt.Fprintln(s.out, safetext.Row(r.Name+": "+strings.Join(at, ", "))); err != nil {
			return err
		}
	}
	return nil
}

// loadAt loads a file. With a node in at, that node becomes the head.
func (s *streams) loadAt(name, at string) (dag.DAG, error) {
	d, err := s.load(name)
	if err != nil || at == "" {
		return d, err
	}
	return find(d, at)
}

// find returns the conversation with the heads of a ref, or with the node of a name as head.
func find(d dag.DAG, name string) (dag.DAG, error) {
	at := d.AtName(name)
	if err := at.Err(); err != nil {
		var missing *dag.FindError
		if errors.As(err, &missing) {
			return dag.DAG{}, fmt.Errorf("no ref or node has that name: %w", missing)
		}
		return dag.DAG{}, err
	}
	return at, nil
}

// row is a node in the output of log --json and fork --json.
type row struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Role    string   `json:"role,omitempty"`
	Parents []string `json:"parents,omitempty"`
	Time    string   `json:"time,omitempty"`

	// Failed, Model, Stop and Usage are those of the node itself: of a response, an execution, or the whole run for its
	// stop reason.
	Failed bool `json:"failed,omitempty"`
	// Waiting is how many calls of the node have no result yet, at a head of the conversation.
	Waiting int           `json:"waiting,omitempty"`
	Model   string        `json:"model,omitempty"`
	Stop    string        `json:"stop,omitempty"`
	Usage   content.Usage `json:"usage,omitzero"`

	Says string `json:"says"`

	described describe.Node
	short     string // the short name of the node
}

// rows returns a row for each of the last nodes, or for each node if last is 0. With all, it includes the nodes of
// sub-agents.
func rows(d dag.DAG, all bool, last int) []row {
	nodes := d.Nodes()
	if all {
		nodes = d.WithChildren()
	}
	if last > 0 {
		nodes = nodes[max(len(nodes)-last, 0):]
	}

	return rowsOf(d, nodes)
}

// rowsOf returns a row for each of the nodes of a conversation.
func rowsOf(conversation dag.DAG, nodes []*node.Node) []row {
	waiting, short := shared.Waiting(conversation.Heads()), conversation.ShortIDs()
	list := make([]row, len(nodes))
	for i, n := range nodes {
		d := describe.Of(n)
		d.Waiting = waiting[n.ID()]
		list[i] = row{ID: n.ID().String(), short: short(n), Kind: n.Kind(),
			Time: n.Time().Format("2006-01-02T15:04:05Z07:00"), Role: string(d.Role), Failed: d.Failed, Waiting: d.Waiting, Model: d.Model,
			Stop: string(d.Stop), Usage: d.Usage, Says: says(d), described: d}
		for _, p := range n.Parents() {
			list[i].Parents = append(list[i].Parents, p.ID().String())
		}
	}
	return list
}

// says returns the content of a node as text.
func says(d describe.Node) string {
	text := d.Text
	if d.Blocks.Len() > 0 {
		text = blocksText(d.Blocks)
	}

	switch d.Sort {
	case describe.System: // without the title: its name is not part of the prompt
		return text
	case describe.Call:
		if d.Failed {
			reason, more := d.Reason()
			if more {
				reason += " …"
			}
			return d.Called.Tool + " ✗ " + describe.WithOutcome(d.Outcome(), reason) + " " + string(d.Called.Input)
		}
		return d.Called.Tool + string(d.Called.Input) + " → " + describe.WithOutcome(d.Outcome(), text)
	}
	return strings.TrimSpace(d.Title + " " + text)
}

// blocksText returns the content of blocks as text.
func blocksText(blocks content.Blocks) string {
	var list []string
	for p := range describe.Parts(blocks) {
		switch p.Form {
		case describe.Said:
			list = append(list, p.Text)
		case describe.Thought:
			list = append(list, p.Word()+" "+p.Text)
		case describe.Asked:
			list = append(list, "→ "+p.Name+string(p.JSON))
		case describe.Returned:
			list = append(list, "← "+blocksText(p.Content))
		case describe.Shown:
			list = append(list, p.Word())
		}
	}
	return strings.Join(list, " ")
}

// oneline prints a line for each node. Failures are red if o has colors.
func (s *streams) oneline(list []row, o *dag.LogOptions) error {
	out := bufio.NewWriter(s.out)
	for _, r := range list {
		// The name, the kind in 14 cells and two spaces come before the text.
		text := safetext.Line(lead(r.described)+r.Says, cmp.Or(max(o.Width-len(r.short)-16, 0), 100))
		line := fmt.Sprintf("%-14s %s", safetext.Row(r.described.Word), text)
		if o.Color && r.described.Grave() {
			line = "\x1b[31m" + line + "\x1b[0m"
		}
		fmt.Fprintf(out, "%s %s\n", r.short, line)
	}
	return out.Flush()
}

// lead returns the text in the log before the content of a node, unless the content begins with it.
func lead(d describe.Node) string {
	switch d.Sort {
	case describe.System, describe.Assistant, describe.Compaction:
		if lead := d.Lead(false, ", "); lead != "" {
			return lead + " "
		}
	}
	return ""
}

func showCommand(s *streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show FILE [NODE]",
		Short: "Print the content of a node, or the last response",
		Long: `Prints the content of NODE: text, tool calls with their arguments, tool results.
NODE defaults to the last response, whose details follow if the server reported
any: its timings, a fingerprint, log probabilities. With --json it prints the
node as it is saved.`,
		Args: takes("FILE and at most one NODE", 1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.load(args[0])
			if err != nil {
				return err
			}

			n, err := shown(d, args[1:])
			if err != nil {
				return err
			}
			if asJSON {
				return s.printNode(n)
			}
			_, err = fmt.Fprintln(s.out, safetext.Block(whole(n)))
			return err
		},
	}

	jsonFlag(cmd, &asJSON)
	return cmd
}

// shown returns the named node, or the last response if none is named.
func shown(d dag.DAG, name []string) (*node.Node, error) {
	if len(name) == 1 {
		return nodeOf(d, name[0])
	}
	for _, n := range slices.Backward(d.Nodes()) {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			return n, nil
		}
	}
	return nil, errors.New("the conversation has no response: name a node")
}

// nodeOf returns the only node with the given name.
func nodeOf(d dag.DAG, name string) (*node.Node, error) {
	at, err := find(d, name)
	if err != nil {
		return nil, err
	}
	if at.Head() == nil {
		return nil, fmt.Errorf("%q names %d heads, not one node", name, len(at.Heads()))
	}
	return at.Head(), nil
}

// printNode prints a node in its saved form.
func (s *streams) printNode(n *node.Node) error {
	line := n.Append(nil)
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(line), "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.out, out.String())
	return err
}

// renderFlags are the flags of plait render.
type renderFlags struct {
	as, prices string
	full       bool
}

// renderForms are the forms of a drawing, in the order of the help text.
var renderForms = []string{"mermaid", "html", "svg", "png", "dot"}

func renderCommand(s *streams) *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:   "render --as FORM FILE",
		Short: "Draw the graph, to standard output",
		Long: `Draws the graph: for Mermaid (as GitHub and GitLab show it), as a page to look
around in (html), as a picture (svg, png), or for Graphviz (dot). To draw what
came before a node, plait fork --at NODE first.

A drawing that is wider than a screen or higher than two is folded and says so:
failures are kept, and dashed boxes count the rest. --full draws every node.

The page is one file that needs no network. It contains everything in FILE, and
the request of each response. With --prices it shows what each call cost: see
"plait report" for the price file.`,
		Example: `  plait render --as mermaid talk.json > talk.mmd
  plait fork talk.json --at 3f2a | plait render --as mermaid - > before.mmd
  plait render --as html talk.json > talk.html
  plait render --as html talk.json --prices prices.json > talk.html
  plait render --as svg talk.json > talk.svg
  plait render --as dot talk.json | dot -Tpdf > talk.pdf`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return s.render(args[0], f) },
	}

	cmd.Flags().StringVar(&f.as, "as", "", "the `FORM`: "+strings.Join(renderForms, ", "))
	cmd.Flags().BoolVar(&f.full, "full", false, "draw every node, however many there are")
	cmd.Flags().StringVar(&f.prices, "prices", "", "html: a `FILE` with the prices of models")
	_ = cmd.MarkFlagRequired("as")
	return cmd
}

// check returns an error for flags of another form.
func (f renderFlags) check() error {
	switch {
	case f.as != "html" && f.prices != "":
		return errors.New("--prices is for --as html")
	case f.full && f.as == "html":
		return errors.New("--full is for drawings that are folded otherwise")
	}
	return nil
}

// render prints the drawing of a file.
func (s *streams) render(name string, f renderFlags) error {
	list, err := s.priceList([]string{name}, f.prices)
	if err != nil {
		return err
	}
	d, err := s.load(name)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}

	o := &viz.Options{Full: f.full}
	switch f.as {
	case "mermaid":
		err := viz.Mermaid(s.out, d, o)
		if errors.Is(err, viz.ErrTooLarge) {
			return fmt.Errorf("%w; --as svg has no limit", err)
		}
		return err

	case "html":
		return page.Write(s.out, d, &page.Options{
			Title: title(name), Request: exactRequest, Prices: list.Prices, Cache: cachePolicy(d),
		})

	case "svg":
		return viz.SVG(s.out, d, o)

	case "png":
		err := png.Write(s.out, d, &png.Options{Layout: *o})
		if errors.Is(err, png.ErrTooManyPixels) && f.full {
			return fmt.Errorf("%w; without --full it is folded", err)
		}
		return err

	case "dot":
		return viz.DOT(s.out, d, o)
	}
	return fmt.Errorf("--as %q is not one of %s", f.as, strings.Join(renderForms, ", "))
}

// title returns the title of the page for a file.
func title(name string) string {
	if name == std {
		return ""
	}
	return filepath.Base(name)
}
