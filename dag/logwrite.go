package dag

import (
	"cmp"
	"io"
	"strings"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// LogOptions are options of [DAG.WriteLog]. Nil is the same as the zero value.
type LogOptions struct {
	// Width is the maximum width of a row in terminal cells, at least 40. A row is wider only if the graph alone takes
	// more than three quarters of it. Defaults to 100, also if negative.
	Width int
	// IDs writes the short name of each node in its row, for [DAG.Find]. See [DAG.ShortIDs]. Defaults to false.
	IDs bool
	// Color shows the kinds of nodes, and failures, in the ANSI colors of a terminal. The text is otherwise the same.
	// Defaults to false.
	Color bool
	// Last draws only that many nodes, the last ones, and writes the number of nodes before them. Defaults to all, also
	// if negative.
	Last int
	// Fold draws the middle of a long run of nodes, and the calls of a wide fan beyond the first few, as one row with
	// their numbers. Failures, heads, nodes with refs, forks and merges are drawn. If more than 60 rows are left, only
	// the first and the last are written, and the first 20 failures between them with the number of all. Defaults to
	// false.
	Fold bool
}

// WriteLog writes the log of [DAG.String] and a line break. It also marks the heads, and names the refs of each node.
// The error is that of w, or that of [DAG.Err] for a broken node; then nothing is written.
func (d DAG) WriteLog(w io.Writer, o *LogOptions) error {
	l := logger{marked: true, refs: map[node.ID][]string{}}
	if o != nil {
		l.LogOptions = *o
	}
	for _, r := range d.Refs() {
		for _, h := range r.Heads {
			l.refs[h.ID()] = append(l.refs[h.ID()], r.Name)
		}
	}

	// Drawing loads what was not loaded yet. The error of the chain is a row of the log.
	text := d.log(l)
	if err := d.WithoutErr().Err(); err != nil {
		return err
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

// color holds the parameters of an ANSI sequence; "" for no color.
type color string

const (
	gray    color = "90"
	red     color = "31"
	green   color = "32"
	yellow  color = "33"
	blue    color = "34"
	magenta color = "35"
	cyan    color = "36"
)

// piece is a part of a row. Its text is cleaned.
type piece struct {
	text  string
	color color
}

func note(text string) piece { return piece{text: text} }

// row writes the graph and the pieces beside it, without spaces at the end.
func (l *logger) row(graph string, pieces ...piece) {
	pieces = append([]piece{{graph, ""}}, pieces...)

	// Remove the spaces before colors are added: the spaces are not at the end any more then.
	for len(pieces) > 0 {
		last := &pieces[len(pieces)-1]
		if last.text = strings.TrimRight(last.text, " "); last.text != "" {
			break
		}
		pieces = pieces[:len(pieces)-1]
	}

	// A piece with letters that read from right to left must not change the order of the pieces around it.
	for _, s := range pieces {
		s.text = l.isolate(s.text)
		if l.Color && s.color != "" {
			s.text = "\x1b[" + string(s.color) + "m" + s.text + "\x1b[0m"
		}
		l.out.WriteString(s.text)
	}
	l.out.WriteByte('\n')
	l.written++
}

// isolate returns the text of a piece with its own direction. The arrow or cross before a result stays outside.
func (l *logger) isolate(text string) string {
	if sign, rest, found := strings.Cut(text, " "); found && (sign == arrowSign || sign == crossSign) {
		return sign + " " + safetext.Isolate(rest)
	}
	return safetext.Isolate(text)
}

// minText returns the minimum width of a row's text, however wide the graph is.
func (l *logger) minText() int { return max(l.width*24/logWidth, 8) }

// Limits of folding.
const (
	keepLinks = 4 // messages or tool phases that are drawn at each end of a run
	leastFold = 6 // minimum number of nodes in a folded row
	keepCalls = 3 // calls of a wide fan that are drawn

	maxRows      = 60 // of a folded log
	keepRows     = 18 // rows that are written at each end of a longer one
	keepFailures = 20 // failures that are written between them
)

// middleLeftOut returns the first rows of a log, the first failures after them, and the last rows.
func (l *logger) middleLeftOut(text string) string {
	rows := strings.Split(text, "\n")
	end := len(rows) - keepRows
	var failed []int
	for _, i := range l.failures {
		if i >= keepRows && i < end {
			failed = append(failed, i)
		}
	}

	out := &strings.Builder{}
	l.out = out
	tell := func(text string) { l.row("⋮ ", note(cleanLine(text, l.width-2))) }
	out.WriteString(strings.Join(rows[:keepRows], "\n") + "\n")
	left := count(end-keepRows, "row") + " left out"
	switch {
	case len(failed) == 0:
		tell(left + ", no failures")
	case len(failed) <= keepFailures:
		tell(left + ", except " + count(len(failed), "failure") + ":")
	default:
		tell(left + ", with " + count(len(failed), "failure") + ", of which the first " + number(keepFailures) + ":")
	}
	for _, i := range failed[:min(len(failed), keepFailures)] {
		out.WriteString(rows[i] + "\n")
	}
	if len(failed) > 0 {
		l.row("⋮ ")
	}
	return out.String() + strings.Join(rows[end:], "\n")
}

// foldRuns finds the runs to draw as one row. A run lies between two nodes that no path bypasses, and has no node that
// must be drawn. The nodes near its two ends are not folded.
func (g *drawing) foldRuns(heads []*node.Node) {
	// Pinned nodes are always drawn: roots, nodes with parents elsewhere, heads, failures, and nodes with a mark.
	pinned := make([]bool, len(g.nodes))
	for i, n := range g.nodes {
		pinned[i] = len(g.parents(n)) != n.NumParents() || n.NumParents() == 0 || g.marks[i] != "" || n.Failed()
	}
	for _, h := range heads {
		if at := g.at[h.ID()] - g.base; at >= 0 {
			pinned[at] = true
		}
	}

	var run []int // nodes that no path bypasses, without a pinned node between them
	for i, bypassed := range g.bypassed() {
		// A pinned node ends one run and begins the next, and the ends of a run are not folded.
		if pinned[i] {
			g.foldRun(run)
			run = nil
		}
		if !bypassed {
			run = append(run, i)
		}
	}
	g.foldRun(run)
}

// bypassed reports for each node whether an edge leads past it, from a node before it to a node after it.
func (g *drawing) bypassed() []bool {
	last := make([]int, len(g.nodes)) // the last child of each node
	for i, n := range g.nodes {
		for _, p := range g.parents(n) {
			last[p] = max(last[p], i)
		}
	}

	bypassed := make([]bool, len(g.nodes))

	// furthest is the last node that an edge from an earlier node leads to.
	furthest := 0
	for i := range g.nodes {
		bypassed[i] = furthest > i
		furthest = max(furthest, last[i])
	}
	return bypassed
}

// foldRun folds the middle of a run if it is long enough.
func (g *drawing) foldRun(run []int) {
	if len(run) <= 2*keepLinks+1 {
		return
	}

	// Begin and end after a node that every path passes: only one column is open there.
	from, to := run[keepLinks]+1, run[len(run)-1-keepLinks]+1
	if to-from >= leastFold {
		g.folds[from] = to
	}
}

// folded draws the nodes [from, to) as one row, in the column of the node before them.
func (g *drawing) folded(from, to int) {
	c := g.column[from-1]

	// The column has a line for each child of the node before the run. It needs one for each child of the last node.
	g.open[c] += g.kids[to-1] - g.kids[from-1]
	for i := from; i < to; i++ {
		g.column[i] = c
	}

	// The row is drawn like a node of its column, even if nothing follows it.
	open := g.open[c]
	g.open[c] = max(open, 1)
	text := countsOf(g.nodes[from:to])
	g.row(g.indent+g.cells(c, "⋮"), note(cleanLine(text, cmp.Or(g.width-2*len(g.open), g.minText()))))
	g.open[c] = open
	g.last = c
}

// countsOf returns the text of a folded row: the number of nodes, and of some kinds among them.
func countsOf(nodes []*node.Node) string {
	var users, answers, calls, agents int
	for _, n := range nodes {
		// A call that ran a sub-agent counts as both.
		if n.Children().Len() > 0 {
			agents++
		}

		switch describe.Of(n).Sort {
		case describe.Call:
			calls++
		case describe.Assistant:
			answers++
		case describe.User:
			users++
		}
	}

	var parts []string
	for _, p := range []struct {
		n     int
		thing string
	}{{users, "user turn"}, {answers, "answer"}, {calls, "tool call"}, {agents, "sub-agent"}} {
		if p.n > 0 {
			parts = append(parts, count(p.n, p.thing))
		}
	}

	text := count(len(nodes), "node")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// foldFan hides the executions of a wide fan after the first few, except those with a failure, a mark or a child
// conversation.
func (g *drawing) foldFan(from, to int) {
	first := -1
	for i := from + keepCalls; i < to; i++ {
		n := g.nodes[i]
		switch {
		case n.Failed() || g.marks[i] != "" || n.Children().Len() > 0:
		case first < 0:
			first = i
			g.more[i] = 1
		default:
			g.hidden[i] = true
			g.more[first]++
		}
	}
}
