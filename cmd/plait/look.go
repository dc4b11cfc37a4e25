package main

import (
	"bufio"
	"bytes"
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
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/page"
	"github.com/plait-dev/plait/viz/png"
)

func logCommand(s *streams) *cobra.Command {
	var oneline, all, asJSON bool
	var at string
	var draw logFlags
	cmd := &cobra.Command{
		Use:   "log FILE",
		Short: "Print the graph as a log, the oldest node first",
		Long: `Prints the nodes that the head of FILE reaches, the oldest first.

With --all it prints the nodes that any ref reaches as well, and then the refs;
--oneline and --json then list the conversations of sub-agents, too.

With --json it prints a list with an object for each node.

On a terminal the log has colours, unless NO_COLOR is set, and the width of the
terminal.`,
		Example: `  plait log talk.json
  plait log talk.json -n 20 --fold --color=always | less -R
  plait log talk.json --oneline --node first-try
  plait log talk.json --json | jq -r '.[] | select(.usage) | .model'`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.loadAt(args[0], at)
			if err != nil {
				return err
			}
			refs := d.Refs()
			if all && at == "" {
				heads := d.Heads()
				for _, r := range refs {
					heads = append(heads, r.Heads...)
				}
				d = d.WithHeads(ends(heads)...)
			}
			o, err := draw.options(s.out)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return s.printJSON(last(rows(d, all), o.Last))
			case oneline:
				return s.oneline(last(rows(d, all), o.Last))
			}
			if err := d.WriteLog(s.out, o); err != nil || !all {
				return err
			}
			return s.names(refs)
		},
	}
	cmd.Flags().BoolVar(&oneline, "oneline", false, "a line for each node: its digest, its kind, what it says")
	cmd.Flags().BoolVar(&all, "all", false, "also what only refs reach, and the refs")
	cmd.Flags().StringVar(&at, "node", "", "only `NODE` and the nodes before it")
	draw.register(cmd)
	completeNode(s, cmd, "node")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// last is the last n rows, or all for 0.
func last(list []row, n int) []row {
	if n == 0 {
		return list
	}
	return list[max(len(list)-n, 0):]
}

// ends is the nodes without those that others go on from.
func ends(heads []*node.Node) []*node.Node {
	before := map[*node.Node]bool{}
	for _, n := range dag.New().WithHeads(heads...).Nodes() {
		for _, p := range n.Parents() {
			before[p] = true
		}
	}
	return slices.DeleteFunc(heads, func(n *node.Node) bool { return before[n] })
}

// names prints the names in a file, and where each stands.
func (s *streams) names(refs []dag.Ref) error {
	for i, r := range refs {
		if i == 0 {
			fmt.Fprintln(s.out)
		}
		var at []string
		for _, n := range r.Heads {
			at = append(at, n.String())
		}
		if _, err := fmt.Fprintln(s.out, printable(r.Name+": "+strings.Join(at, ", "))); err != nil {
			return err
		}
	}
	return nil
}

// loadAt loads a file, and goes back to a node where one is named.
func (s *streams) loadAt(name, at string) (dag.DAG, error) {
	d, err := s.load(name)
	if err != nil || at == "" {
		return d, err
	}
	return find(d, at)
}

// find returns the conversation that ends where it is named: at a ref, or in a node.
func find(d dag.DAG, name string) (dag.DAG, error) {
	at := d.AtName(name)
	if err := at.Err(); err != nil {
		var missing *dag.FindError
		if errors.As(err, &missing) {
			return dag.DAG{}, fmt.Errorf("no head has that name: %w", missing)
		}
		return dag.DAG{}, err
	}
	return at, nil
}

// row is a node in a list.
type row struct {
	ID      string   `json:"id"`
	Digest  string   `json:"digest"`
	Kind    string   `json:"kind"`
	Role    string   `json:"role,omitempty"`
	Parents []string `json:"parents,omitempty"`
	Time    string   `json:"time,omitempty"`

	// Failed, Model, Stop and Usage are those of the node itself: of an answer, a tool call, or a whole run at its stop.
	Failed bool          `json:"failed,omitempty"`
	Model  string        `json:"model,omitempty"`
	Stop   string        `json:"stop,omitempty"`
	Usage  content.Usage `json:"usage,omitzero"`

	Says string `json:"says"`

	described describe.Node
}

func rows(d dag.DAG, all bool) []row {
	nodes := d.Nodes()
	if all {
		nodes = d.WithChildren()
	}
	list := make([]row, len(nodes))
	for i, n := range nodes {
		d := describe.Of(n)
		list[i] = row{ID: n.ID().String(), Digest: strings.TrimPrefix(n.Digest().String(), "sha256:"), Kind: n.Kind(),
			Time: n.Time().Format("2006-01-02T15:04:05Z07:00"), Role: string(d.Role), Failed: d.Failed, Model: d.Model,
			Stop: string(d.Stop), Usage: d.Usage, Says: says(d), described: d}
		for _, p := range n.Parents() {
			list[i].Parents = append(list[i].Parents, p.ID().String())
		}
	}
	return list
}

// says is what a node says, in words.
func says(d describe.Node) string {
	text := d.Text
	if d.Blocks.Len() > 0 {
		text = words(d.Blocks)
	}

	switch d.Sort {
	case describe.System: // without its name, which is no part of the prompt
		return text
	case describe.Call:
		sign := " → "
		if d.Failed {
			sign = " ✗ failed: "
		}
		return d.Called.Tool + string(d.Called.Input) + sign + text
	}
	return strings.TrimSpace(d.Title + " " + text)
}

// words is what blocks say.
func words(blocks content.Blocks) string {
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
			list = append(list, "← "+words(p.Content))
		case describe.Shown:
			list = append(list, p.Word())
		}
	}
	return strings.Join(list, " ")
}

// oneline prints a row for each node. Ids are cut to what tells them apart.
func (s *streams) oneline(list []row) error {
	width := distinct(list)
	out := bufio.NewWriter(s.out)
	for _, r := range list {
		fmt.Fprintf(out, "%s %-14s %s\n", r.Digest[:width], printable(r.described.Word), beginning(lead(r.described)+r.Says, 100))
	}
	return out.Flush()
}

// lead is what the log writes before what a node says, unless that begins with it.
func lead(d describe.Node) string {
	switch d.Sort {
	case describe.System, describe.Assistant, describe.Compaction:
		if lead := d.Lead(false, ", "); lead != "" {
			return lead + " "
		}
	}
	return ""
}

// beginning is the first characters of a text, on one line.
func beginning(text string, chars int) string {
	const enough = 1 << 10 // bytes, of which the rest of a long text is not looked at
	cut := len(text) > enough
	if cut {
		text = strings.ToValidUTF8(text[:enough], "")
	}
	said := []rune(strings.Join(strings.Fields(printable(text)), " "))
	if len(said) > chars || cut {
		said = append(said[:min(len(said), chars-1)], '…')
	}
	return string(said)
}

// distinct is how many digits of the digests tell them apart; eight at least.
func distinct(list []row) int {
	for width := 8; ; width++ {
		seen := map[string]bool{}
		whole := map[string]bool{}
		for _, r := range list {
			if width >= len(r.Digest) {
				return len(r.Digest)
			}
			seen[r.Digest[:width]], whole[r.Digest] = true, true
		}
		if len(seen) == len(whole) {
			return width
		}
	}
}

func showCommand(s *streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show FILE [NODE]",
		Short: "Print the content of a node, or the last answer",
		Long: `Prints the content of NODE: text, tool calls with their arguments, tool results.
NODE defaults to the last answer. With --json it prints the node as it is saved.`,
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return s.nodeNames(args[0]), cobra.ShellCompDirectiveNoFileComp
		},
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
			_, err = fmt.Fprintln(s.out, printable(whole(n)))
			return err
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// shown is the node that is named, else the last answer.
func shown(d dag.DAG, name []string) (*node.Node, error) {
	if len(name) == 1 {
		return nodeOf(d, name[0])
	}
	for _, n := range slices.Backward(d.Nodes()) {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			return n, nil
		}
	}
	return nil, errors.New("the conversation has no answer: name a node")
}

// nodeOf is the one node of that name.
func nodeOf(d dag.DAG, name string) (*node.Node, error) {
	at, err := find(d, name)
	if err != nil {
		return nil, err
	}
	if at.Head() == nil {
		return nil, fmt.Errorf("%q names %d ends, not one node", name, len(at.Heads()))
	}
	return at.Head(), nil
}

// printNode prints a node as it is saved.
func (s *streams) printNode(n *node.Node) error {
	line := n.Append(nil)
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(line), "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.out, out.String())
	return err
}

func renderCommand(s *streams) *cobra.Command {
	var as, at string
	var diagram diagramFlags
	kinds := []string{"mermaid", "html", "svg", "png", "dot", "text"}
	cmd := &cobra.Command{
		Use:   "render --as FORM FILE",
		Short: "Draw the graph, to standard output",
		Long: `Draws the graph: for Mermaid (as GitHub and GitLab show it), as a page to look
around in (html), as a picture (svg, png), for Graphviz (dot), or as the log
that "plait log" prints (text).

A Mermaid diagram of more than 100 boxes is folded: what failed stays, and boxes
count the rest. With --parts it is a Markdown document of several diagrams that
hold every node.

The page is one file that needs no network. It holds all that FILE holds, and
the requests that the answers were given to.`,
		Example: `  plait render --as mermaid talk.json > talk.mmd
  plait render --as mermaid talk.json --around 3f2a --steps 5 > near.mmd
  plait render --as mermaid talk.json --parts > talk.md
  plait render --as html talk.json > talk.html
  plait render --as svg talk.json > talk.svg
  plait render --as dot talk.json | dot -Tpdf > talk.pdf`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.loadAt(args[0], at)
			if err != nil {
				return err
			}
			if as != "mermaid" && diagram != (diagramFlags{}) {
				return errors.New("--around, --steps, --depth and --parts are for --as mermaid")
			}
			switch as {
			case "mermaid":
				return s.mermaid(d, diagram)
			case "html":
				if at != "" {
					d = withoutOthers(d)
				}
				return page.Write(s.out, d, &page.Options{Title: title(args[0]), Request: exactRequest})
			case "svg":
				return viz.SVG(s.out, d, nil)
			case "png":
				return png.Write(s.out, d, nil)
			case "dot":
				return viz.DOT(s.out, d, nil)
			case "text":
				return d.WriteLog(s.out, nil)
			}
			return fmt.Errorf("--as %q is none of %s", as, strings.Join(kinds, ", "))
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "the `FORM`: "+strings.Join(kinds, ", "))
	cmd.Flags().StringVar(&at, "node", "", "only `NODE` and the nodes before it")
	diagram.register(cmd)
	completeNode(s, cmd, "node")
	completeNode(s, cmd, "around")
	_ = cmd.MarkFlagRequired("as")
	_ = cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// withoutOthers is the conversation without the names that lie elsewhere.
func withoutOthers(d dag.DAG) dag.DAG {
	for _, r := range d.Refs() {
		if slices.ContainsFunc(r.Heads, func(h *node.Node) bool { return !d.Contains(h) }) {
			d = d.WithoutRef(r.Name)
		}
	}
	return d
}

// title is what a page is called that shows a file.
func title(name string) string {
	if name == std {
		return ""
	}
	return filepath.Base(name)
}

// completeNode completes a flag that names a node of the first FILE.
func completeNode(s *streams, cmd *cobra.Command, flag string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.nodeNames(args[0]), cobra.ShellCompDirectiveNoFileComp
	})
}

// nodeNames is the names in a file, and the beginnings of the digests of its last nodes, with what they say.
func (s *streams) nodeNames(file string) []string {
	if file == std {
		return nil
	}
	d, err := dag.Load(file)
	if err != nil {
		return nil
	}
	var list []string
	for _, r := range d.Refs() {
		list = append(list, printable(r.Name))
	}
	const most = 30
	all := rows(d, false)
	width := distinct(all)
	for i := len(all) - 1; i >= max(len(all)-most, 0); i-- {
		list = append(list, all[i].Digest[:width]+"\t"+beginning(all[i].Says, 50))
	}
	return list
}
