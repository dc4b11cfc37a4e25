package dag

import (
	"cmp"
	"io"
	"strings"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// LogOptions changes how [DAG.WriteLog] draws. The zero value and nil are the defaults.
type LogOptions struct {
	// Width is how many cells a row has, where the graph alone does not take more than three quarters of them: 40 at least.
	// Defaults to 100, also when negative.
	Width int
	// ASCII draws with * | \ / and other signs of ASCII only. What was said stays as it is. Defaults to false.
	ASCII bool
	// Color has the ANSI colours of a terminal show what a node is and what failed. Without its codes the text is the same.
	// Defaults to false.
	Color bool
	// Last draws only so many nodes of the conversation, the last ones, and says how many are before them. Defaults to all, also
	// when negative.
	Last int
	// Fold draws the middle of long runs, and the calls of wide fans beyond the first few, as one row that says what it stands for. What
	// failed, heads, named nodes, branches and their merges are drawn. Defaults to false.
	Fold bool
}

// WriteLog writes the log that [DAG.String] returns, and a line break: with heads marked and refs named at their nodes, and drawn as o
// wants it. The error is that of w.
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
	_, err := io.WriteString(w, d.log(l)+"\n")
	return err
}

// color is the parameters of the ANSI sequence that begins it; none for "".
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

// piece is a piece of a row. Its text is harmless.
type piece struct {
	text  string
	color color
}

func note(text string) piece { return piece{text: text} }

// asciiFrame is what the signs of the graph are in ASCII.
var asciiFrame = strings.NewReplacer("│", "|", "─", "-", "├", "|", "┤", "|", "╮", `\`, "╯", "/", "╰", `\`, "╭", "/", "┬", "+", "┴", "+", "┼", "+",
	"╵", "'", "╷", ".", "╴", "-", "╶", "-", "⋮", ":", "┊", ":", "⋯", "...",
	"◆", "#", "●", "*", "◇", "=", "○", "o", "▪", ">", "▣", "@", "≡", "~", "■", "X", "▫", "+")

// row writes the graph and what stands beside it, without spaces at the end.
func (l *logger) row(graph string, pieces ...piece) {
	pieces = append([]piece{{l.framed(graph), ""}}, pieces...)
	for len(pieces) > 0 {
		last := &pieces[len(pieces)-1]
		if last.text = strings.TrimRight(last.text, " "); last.text != "" {
			break
		}
		pieces = pieces[:len(pieces)-1]
	}
	for _, s := range pieces {
		if l.Color && s.color != "" {
			s.text = "\x1b[" + string(s.color) + "m" + s.text + "\x1b[0m"
		}
		l.out.WriteString(s.text)
	}
	l.out.WriteByte('\n')
}

// framed writes signs of the graph.
func (l *logger) framed(graph string) string {
	if l.frame == nil {
		return graph
	}
	return l.frame.Replace(graph)
}

// minText is how many cells the text of a row has, however wide the graph beside it is.
func (l *logger) minText() int { return max(l.width*24/logWidth, 8) }

// How a log is folded.
const (
	keepLinks = 4 // of a run are drawn at each end: messages, or tool phases
	leastFold = 6 // nodes are worth a row that stands for them
	keepCalls = 3 // of a wide fan are drawn
)

// foldRuns finds the runs that become one row: what lies between two nodes that all ways lead through, holds no node that must be drawn,
// and is not near an end.
func (g *drawing) foldRuns(heads []*node.Node) {
	pinned := make([]bool, len(g.nodes))
	for i, n := range g.nodes {
		pinned[i] = len(g.parents(n)) != n.NumParents() || n.NumParents() == 0 || g.marks[i] != "" || n.Failed()
	}
	for _, h := range heads {
		if at := g.at[h.ID()] - g.base; at >= 0 {
			pinned[at] = true
		}
	}
	var run []int // nodes that all ways lead through, with nothing pinned between them
	for i, open := range g.narrow() {
		if pinned[i] {
			g.foldRun(run)
			run = nil
		}
		if !open {
			run = append(run, i)
		}
	}
	g.foldRun(run)
}

// narrow reports of each node whether a way leads past it, from a node before it to one after it.
func (g *drawing) narrow() []bool {
	last := make([]int, len(g.nodes)) // of what follows a node
	for i, n := range g.nodes {
		for _, p := range g.parents(n) {
			last[p] = max(last[p], i)
		}
	}
	open := make([]bool, len(g.nodes))
	furthest := 0
	for i := range g.nodes {
		open[i] = furthest > i
		furthest = max(furthest, last[i])
	}
	return open
}

// foldRun folds the middle of a run, where it is long.
func (g *drawing) foldRun(run []int) {
	if len(run) <= 2*keepLinks+1 {
		return
	}
	from, to := run[keepLinks]+1, run[len(run)-1-keepLinks]+1
	if to-from >= leastFold {
		g.folds[from] = to
	}
}

// folded draws the nodes from one to before another as one row, in the column of the node before them.
func (g *drawing) folded(from, to int) {
	c := g.column[from-1]
	g.open[c] += g.kids[to-1] - g.kids[from-1]
	var users, answers, calls, agents int
	for i := from; i < to; i++ {
		g.column[i] = c
		n := g.nodes[i]
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
	text := count(to-from, "node")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	open := g.open[c]
	g.open[c] = max(open, 1)
	g.row(g.indent+g.cells(c, "⋮"), note(g.line(text, cmp.Or(g.width-2*len(g.open), g.minText()))))
	g.open[c] = open
	g.last = c
}

// foldFan hides the executions of a wide fan beyond the first few, but for those that failed, have a name or a conversation.
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
