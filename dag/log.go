package dag

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// The log's measures, in cells and columns.
const (
	logWidth   = 100 // of a row
	leastWidth = 40  // that can be asked for
	maxName    = 30  // of the name of a ref
	wordWidth  = 9   // of the word for what a node is
	maxFan     = 8   // executions that get a column each
	maxColumns = 16  // lines side by side; what is open beyond shares one more column
	maxInside  = 4   // sub-agents in sub-agents that are drawn
)

// String draws the conversation for a terminal, the oldest node first: each line of the conversation is a column, a tool phase
// fans out and comes together again, and the text stands to the right. fmt.Println(d) prints it.
//
//	○ user      Weather in Tokyo and Paris?
//	● assistant → get_weather ×2
//	├─╮
//	▪ │ get_weather(city: "Tokyo") → 22 °C
//	│ ▪ get_weather(city: "Paris") ✗ no such station
//	├─╯
//	◇ results   2, 1 failed
//
// Where there are several heads they are numbered. The conversation of a sub-agent is drawn under its execution. A row has at
// most 100 cells, but where the graph alone takes more than three quarters of them; a longer text ends in "…". Text is shown on
// one line and made harmless: nothing in it can drive a terminal. A chain that failed ends in its error. The form is for people
// and may change; programs read nodes.
func (d DAG) String() string { return d.log(logger{}) }

// log draws the conversation with a logger that has its options.
func (d DAG) log(l logger) string {
	l.at, l.out, l.models = map[node.ID]int{}, &strings.Builder{}, severalModels(d)
	l.width = max(cmp.Or(max(l.Width, 0), logWidth), leastWidth)
	if l.ASCII {
		l.signs, l.frame = asciiSigns, asciiFrame
	} else {
		l.signs = plainSigns
	}
	if len(d.heads) == 0 {
		l.row("", note("(empty conversation)"))
	}
	l.draw(d.heads, "", 0)
	if d.err != nil {
		l.row("", piece{l.cross + " " + l.line(d.err.Error(), l.width-2), red})
	}
	return strings.TrimSuffix(l.out.String(), "\n")
}

func severalModels(d DAG) bool {
	first := ""
	for n := range d.backward {
		if m, ok := n.Message(); ok && m.Answer.Model != "" {
			if first == "" {
				first = m.Answer.Model
			}
			if m.Answer.Model != first {
				return true
			}
		}
	}
	return false
}

// logger writes rows.
type logger struct {
	LogOptions
	signs
	marked bool // refs and all heads are shown
	refs   map[node.ID][]string
	frame  *strings.Replacer // writes the signs of the graph in ASCII; nil leaves them
	out    *strings.Builder
	width  int
	at     map[node.ID]int // a node's place among all that are drawn, so that each is drawn once
	placed int             // how many have a place
	models bool
}

// draw writes the conversation that ends in heads, but for what was drawn before.
func (l *logger) draw(heads []*node.Node, indent string, nesting int) {
	nodes := postOrderOf(heads, func(n *node.Node) bool {
		_, drawn := l.at[n.ID()]
		if !drawn {
			l.at[n.ID()] = -1 // entered; its place is known when the order is
		}
		return !drawn
	})
	if nesting > maxInside || len(nodes) == 0 {
		switch {
		case len(nodes) > 0:
			l.row(indent+"⋯ ", note(count(len(nodes), "node")))
		case len(heads) > 0 && l.at[heads[0].ID()] < 0:
			l.row(indent+"⋯ ", note("among the nodes before"))
		case len(heads) > 0:
			l.row(indent+"⋯ ", note("drawn above"))
		}
		return
	}
	if skip := len(nodes) - l.Last; nesting == 0 && l.Last > 0 && skip > 0 {
		l.row("⋮ ", note(count(skip, "node")+" before"))
		nodes = nodes[skip:]
	}
	g := newDrawing(l, nodes, heads)
	g.indent, g.nesting = indent, nesting
	if l.Fold {
		g.foldRuns(heads)
	}
	for i := 0; i < len(nodes); i++ {
		if end := g.folds[i]; end > 0 {
			g.folded(i, end)
			i = end - 1
			g.fan(i)
			continue
		}
		g.node(i)
	}
}

// drawing is one conversation while it is drawn. A column's number of open edges says how many of the nodes to come are
// connected to it: it is free at 0.
type drawing struct {
	*logger
	indent   string
	nesting  int
	nodes    []*node.Node
	base     int   // the place of the first node
	column   []int // of each node; -1 until it has one
	kids     []int // how many nodes each has to come
	executed []bool
	comb     []bool         // executions of a fan that is too wide for a column each
	marks    map[int]string // what is said of a node beside what it is: the number of a head, the names of refs
	folds    map[int]int    // where a run begins that is one row, and where it ends
	more     map[int]int    // the first execution of a fan that is not drawn, and how many are not
	hidden   map[int]bool   // the others
	open     []int          // edges of each column
	last     int            // column of the latest node
}

func newDrawing(l *logger, nodes, heads []*node.Node) *drawing {
	size := len(nodes)
	g := &drawing{logger: l, nodes: nodes, base: l.placed, last: -1,
		marks: map[int]string{}, folds: map[int]int{}, more: map[int]int{}, hidden: map[int]bool{},
		column: make([]int, size), kids: make([]int, size), executed: make([]bool, size), comb: make([]bool, size)}
	l.placed += size
	for i, n := range nodes {
		l.at[n.ID()] = g.base + i
		g.column[i] = -1
		for _, p := range g.parents(n) {
			g.kids[p]++
			g.executed[p] = g.executed[p] || isExecution(n)
		}
	}
	for i, h := range heads {
		if at := l.at[h.ID()] - g.base; at >= 0 && len(heads) > 1 {
			g.marks[at] = "head " + strconv.Itoa(i+1)
		} else if at >= 0 && l.marked && g.base == 0 {
			g.marks[at] = "head"
		}
	}
	for i, n := range nodes {
		var marks []string
		if m := g.marks[i]; m != "" {
			marks = append(marks, m)
		}
		for _, name := range l.refs[n.ID()] {
			marks = append(marks, l.line(name, maxName))
		}
		if len(marks) > 0 {
			g.marks[i] = strings.Join(marks, ", ")
		}
	}
	return g
}

// parents returns the parents of n in this drawing.
func (g *drawing) parents(n *node.Node) []int {
	at := make([]int, 0, n.NumParents())
	for i := range n.NumParents() {
		if p := g.at[n.Parent(i).ID()] - g.base; p >= 0 {
			at = append(at, p)
		}
	}
	return at
}

// node draws node i, with the rows that lead to it and the fan that begins at it.
func (g *drawing) node(i int) {
	n := g.nodes[i]
	parents := slices.DeleteFunc(g.parents(n), func(p int) bool { return g.column[p] < 0 }) // an id that two nodes have
	switch {
	case g.comb[i]:
		g.tooth(i)
		g.children(n)
		return
	case g.column[i] >= 0: // its fan put it there
		g.open[g.column[i]]--
	case len(parents) == 0:
		g.root(i)
	default:
		g.connect(i, parents)
	}
	c, f := g.column[i], g.faceOf(n, g.executed[i])
	g.open[c] += g.kids[i]
	g.write(g.cells(c, f.glyph), i, f)
	g.last = c
	g.children(n)
	if g.folds[i+1] == 0 {
		g.fan(i)
	}
}

// write writes the row of node i: the graph, the word, what it is marked with, and as much text as there is room for.
func (g *drawing) write(graph string, i int, f face) {
	before, after, _ := strings.Cut(g.indent+graph, f.glyph)
	row := []piece{{g.framed(f.glyph), f.color}, {g.framed(after), ""}}
	if f.word != "" {
		row = append(row, piece{f.word, f.color}, piece{strings.Repeat(" ", max(wordWidth-safetext.Width(f.word), 0)+1), ""})
	}
	if m := g.marks[i]; m != "" {
		row = append(row, piece{"(" + g.line(m, g.width/3) + ")", yellow}, piece{" ", ""})
	}
	used := safetext.Width(before)
	for _, s := range row {
		used += safetext.Width(s.text)
	}
	g.row(before, append(row, piece{g.text(f, max(g.width-used, g.minText())), ""})...)
}

// free returns a free column to the right of column c, or the shared one.
func (g *drawing) free(c int) int {
	for c++; c < maxColumns; c++ {
		if c >= len(g.open) {
			break
		}
		if g.open[c] == 0 {
			return c
		}
	}
	for len(g.open) <= min(c, maxColumns) {
		g.open = append(g.open, 0)
	}
	return min(c, maxColumns)
}

// root gives node i, which follows nothing, a column.
func (g *drawing) root(i int) {
	c := g.free(-1)
	g.column[i] = c
	if c == g.last { // or it would seem to follow the node above
		g.row(g.indent + g.cells(-1, ""))
	}
	if first := i == 0 && g.nesting == 0; g.nodes[i].NumParents() > 0 && !first { // the row above the first one says so
		g.row(g.indent + g.cells(c, "⋮")) // what it follows is drawn elsewhere
	}
}

// connect gives node i a column and draws how it comes from its parents: it goes on in the column of a parent that nothing
// else follows, and begins one where there is none.
func (g *drawing) connect(i int, parents []int) {
	if c := g.column[parents[0]]; len(parents) == 1 && g.open[c] == 1 {
		g.open[c]--
		g.column[i] = c
		return
	}
	before := slices.Clone(g.open)
	joined := map[int]bool{}
	right, goesOn := -1, -1
	for _, p := range parents {
		c := g.column[p]
		joined[c] = true
		g.open[c]--
		right = max(right, c)
	}
	for c := range joined {
		if g.open[c] == 0 && (goesOn < 0 || c < goesOn) {
			goesOn = c
		}
	}
	if goesOn < 0 {
		goesOn = g.free(right)
	}
	g.column[i] = goesOn
	joined[goesOn] = true
	if len(joined) > 1 {
		g.junction(before, joined, func(c int) bool { return g.open[c] > 0 || c == goesOn })
	}
}

// fan gives the executions that come directly after node i, and after nothing else, their columns.
func (g *drawing) fan(i int) {
	width := 0
	for j := i + 1; j < len(g.nodes) && isExecution(g.nodes[j]) && slices.Equal(g.parents(g.nodes[j]), []int{i}); j++ {
		width++
	}
	if width > maxFan {
		if g.Fold {
			g.foldFan(i+1, i+1+width)
		}
		for j := i + 1; j <= i+width; j++ {
			g.comb[j], g.column[j] = true, g.column[i]
		}
		return
	}
	if width < 2 {
		return
	}
	before := slices.Clone(g.open)
	c := g.column[i]
	joined := map[int]bool{c: true}
	g.open[c] -= width
	right := c
	for j := i + 1; j <= i+width; j++ {
		if j > i+1 || g.open[c] > 0 {
			right = g.free(right)
		}
		g.column[j] = right
		g.open[right]++
		joined[right] = true
	}
	if len(joined) > 1 {
		g.junction(before, joined, func(c int) bool { return g.open[c] > 0 })
	}
}

// tooth draws an execution of a wide fan: beside the column that it comes from, which stays open for what follows it.
func (g *drawing) tooth(i int) {
	c := g.column[i]
	g.open[c] += g.kids[i] - 1
	if g.hidden[i] {
		return
	}
	var b strings.Builder
	for k := range g.columns() {
		switch {
		case k == c && g.open[c] > 0:
			b.WriteString("├─")
		case k == c:
			b.WriteString("╰─")
		case k > c && g.open[k] > 0:
			b.WriteString("│─")
		case k > c:
			b.WriteString("──")
		case g.open[k] > 0:
			b.WriteString("│ ")
		default:
			b.WriteString("  ")
		}
	}
	if g.columns() <= c {
		b.WriteString(strings.Repeat("  ", c-g.columns()) + "╰─")
	}
	g.last = -1
	if hidden := g.more[i]; hidden > 0 {
		g.row(g.indent+b.String()+"⋯ ", note(count(hidden, "more call")))
		return
	}
	f := g.faceOf(g.nodes[i], false)
	g.write(b.String()+f.glyph+" ", i, f)
}

// columns is how many columns there are up to the last open one.
func (g *drawing) columns() int {
	n := len(g.open)
	for n > 0 && g.open[n-1] == 0 {
		n--
	}
	return n
}

// cells is the graph of one row: sign in column at, and a line in every other column that is open.
func (g *drawing) cells(at int, sign string) string {
	var b strings.Builder
	gap := 0
	for c := range g.open {
		s := "│"
		switch {
		case c == at:
			s = sign
		case g.open[c] == 0:
			gap += 2
			continue
		case c == maxColumns:
			s = "⋮"
		}
		b.WriteString(strings.Repeat(" ", gap))
		b.WriteString(s)
		b.WriteByte(' ')
		gap = 0
	}
	return b.String()
}

// Lines of a junction by where they go.
const (
	up = 1 << iota
	down
	left
	right
)

var lines = [...]string{
	0: " ", up: "╵", down: "╷", up | down: "│", left: "╴", up | left: "╯", down | left: "╮", up | down | left: "┤", right: "╶",
	up | right: "╰", down | right: "╭", up | down | right: "├", left | right: "─", up | left | right: "┴",
	down | left | right: "┬", up | down | left | right: "┼",
}

// junction draws the row that connects the joined columns. before is the open edges of the columns above the row, goesOn which
// are open below it. Other columns are crossed.
func (g *drawing) junction(before []int, joined map[int]bool, goesOn func(column int) bool) {
	from, to := len(g.open), -1
	for c := range joined {
		from, to = min(from, c), max(to, c)
	}
	var b strings.Builder
	for c := range g.open {
		line := 0
		if c < len(before) && before[c] > 0 {
			line |= up
		}
		if goesOn(c) {
			line |= down
		}
		inside := c >= from && c <= to
		if joined[c] || inside && line == 0 {
			if c > from {
				line |= left
			}
			if c < to {
				line |= right
			}
		}
		b.WriteString(lines[line])
		if inside && c < to {
			b.WriteString("─")
		} else {
			b.WriteString(" ")
		}
	}
	g.row(g.indent + b.String())
}

// children draws the conversation that hangs on n, which was drawn.
func (g *drawing) children(n *node.Node) {
	if hanging := n.Children(); hanging.Len() > 0 {
		graph := g.cells(-1, "")
		g.draw(hanging.Slice(), g.indent+graph+"┊ ", g.nesting+1)
	}
}
