package dag

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// Sizes of the log, in terminal cells and in columns of the graph.
const (
	logWidth   = 100 // default width of a row, in cells
	leastWidth = 40  // minimum width of a row, in cells
	maxName    = 30  // maximum width of a ref's name, in cells
	wordWidth  = 9   // width of the word for the kind of a node, in cells
	maxFan     = 8   // maximum executions of a fan with a column each
	maxColumns = 16  // maximum columns; further branches share one more column
	maxInside  = 4   // maximum nesting of sub-agents that are drawn
)

// String draws the conversation for a terminal, the oldest node first: each branch is a column, a tool phase fans out
// and joins again, and the text is to the right. fmt.Println(d) prints it.
//
//		○ user      Weather in Tokyo and Paris?
//		● assistant → get_weather ×2
//		├─╮
//		▪ │ get_weather(city: "Tokyo") → 22 °C
//		│ ▪ get_weather(city: "Paris") ✗ no such station
//		├─╯
//		◇ results   2, 1 failed
//
//	  - Several heads are numbered.
//	  - The message with the only result of a phase has no row: that of the call shows the result.
//	  - The conversation of a sub-agent is drawn under its execution.
//	  - The start of a run has a row only if another agent takes over.
//	  - A row has at most 100 cells, unless the graph alone takes more than three quarters of them. A longer text
//	    ends in "…".
//	  - Text is shown on one line and cleaned: nothing in it can control a terminal. It is in the order in which it is
//	    read. If it has letters that read from right to left, U+2068 and U+2069 enclose it, for the terminal to order
//	    them alone.
//	  - A chain with an error ends in the error.
//
// The form is for people and may change. Programs should read the nodes.
func (d DAG) String() string { return d.log(logger{}) }

// log draws the conversation with l, whose options are set.
func (d DAG) log(l logger) string {
	l.at, l.out, l.models = map[node.ID]int{}, &strings.Builder{}, describe.SeveralModels(d.backward)
	l.waiting = shared.Waiting(d.heads())
	l.width = max(cmp.Or(max(l.Width, 0), logWidth), leastWidth)

	if l.IDs {
		l.shortID = d.ShortIDs()
	}

	if len(d.heads()) == 0 {
		l.row("", note("(empty conversation)"))
	}
	l.draw(d.heads(), "", 0)

	if d.err != nil {
		l.row("", piece{crossSign + " " + cleanLine(d.err.Error(), l.width-2), red})
	}
	text := strings.TrimSuffix(l.out.String(), "\n")
	if l.Fold && l.written > maxRows {
		return l.middleLeftOut(text)
	}
	return text
}

// logger writes rows.
type logger struct {
	LogOptions
	marked   bool                 // show refs, and a single head too
	refs     map[node.ID][]string // names of the refs of each node
	out      *strings.Builder
	width    int                     // of a row, in cells
	at       map[node.ID]int         // index of each node among all drawn nodes; -1 if the node was visited and has no index yet
	instead  map[node.ID]*node.Node  // for each start of a run that is left out, the node before it; nil for none
	placed   int                     // number of nodes with an index
	models   bool                    // name the model of each response
	waiting  map[node.ID]int         // number of open calls of each message
	shortID  func(*node.Node) string // the name of the node in each row; nil for none
	written  int                     // number of rows
	failures []int                   // the rows of failed nodes
}

// draw writes the conversation with these heads, except nodes drawn before.
func (l *logger) draw(heads []*node.Node, indent string, nesting int) {
	// Mark a node when it is entered: a conversation may reach it through several heads.
	nodes := postOrderOf(heads, func(n *node.Node) bool {
		_, drawn := l.at[n.ID()]
		if !drawn {
			l.at[n.ID()] = -1
		}
		return !drawn
	})

	nodes = slices.DeleteFunc(nodes, l.leavesOut(heads))

	// If it is nested too deep, or all its nodes are drawn elsewhere, write one row instead.
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

	// Columns are assigned over the whole drawing, and rows are written node by node.
	g := newDrawing(l, nodes, heads)
	g.indent, g.nesting = indent, nesting
	if l.Fold {
		g.foldRuns(heads)
	}

	for i := 0; i < len(nodes); i++ {
		// A folded run is one row. The fan after its last node is still drawn.
		if end := g.folds[i]; end > 0 {
			g.folded(i, end)
			i = end - 1
			g.fan(i)
			continue
		}
		g.node(i)
	}
}

// leavesOut returns a function that reports whether a node is a start of a run without a row. It is called for each
// node, in order. A head and a node with refs have a row.
func (l *logger) leavesOut(heads []*node.Node) func(*node.Node) bool {
	marked := make(map[node.ID]bool, len(heads))
	for _, h := range heads {
		marked[h.ID()] = true
	}

	var runs describe.Runs
	return func(n *node.Node) bool {
		if !runs.LeavesOut(n, marked[n.ID()] || len(l.refs[n.ID()]) > 0) {
			return false
		}
		if l.instead == nil {
			l.instead = map[node.ID]*node.Node{}
		}
		before := n.Parent(0)
		l.instead[n.ID()] = cmp.Or(l.instead[before.ID()], before)
		return true
	}
}

// drawing is the state of drawing one conversation. Slices and map keys are indexes in nodes, unless noted otherwise.
type drawing struct {
	*logger
	indent   string
	nesting  int
	nodes    []*node.Node
	base     int            // the index of nodes[0] in logger.at
	column   []int          // column of each node; -1 until it has one
	kids     []int          // number of children of each node
	executed []bool         // nodes with an execution as a child
	comb     []bool         // executions of a fan that is too wide for a column each
	marks    map[int]string // the text in parentheses: the number of a head, the names of refs
	folds    map[int]int    // runs that are drawn as one row: the first node, and the node after the last
	more     map[int]int    // the first hidden execution of each folded fan, and the number of hidden ones
	hidden   map[int]bool   // the other hidden executions
	open     []int          // by column: number of undrawn nodes that are connected to it; 0 for a free column
	last     int            // column of the latest node
	latest   int            // the node of the latest row

	parentsOf []int // the latest result of parents; its memory is used again by the next call
}

func newDrawing(l *logger, nodes, heads []*node.Node) *drawing {
	size := len(nodes)
	g := &drawing{logger: l, nodes: nodes, base: l.placed, last: -1, latest: -1,
		marks: map[int]string{}, folds: map[int]int{}, more: map[int]int{}, hidden: map[int]bool{},
		column: make([]int, size), kids: make([]int, size), executed: make([]bool, size), comb: make([]bool, size)}
	l.placed += size

	// Count the children before anything is drawn: they decide how long a column stays open.
	for i, n := range nodes {
		l.at[n.ID()] = g.base + i
		g.column[i] = -1
		for _, p := range g.parents(n) {
			g.kids[p]++
			g.executed[p] = g.executed[p] || isExecution(n)
		}
	}

	// Several heads are numbered. A single one is marked only where refs are.
	for i, h := range heads {
		// A head that is drawn elsewhere has an index before base.
		if at := l.at[h.ID()] - g.base; at >= 0 && len(heads) > 1 {
			g.marks[at] = "head " + strconv.Itoa(i+1)
		} else if at >= 0 && l.marked && g.base == 0 {
			g.marks[at] = "head"
		}
	}

	// Refs follow the mark of the head.
	for i, n := range nodes {
		var marks []string
		if m := g.marks[i]; m != "" {
			marks = append(marks, m)
		}
		for _, name := range l.refs[n.ID()] {
			marks = append(marks, cleanLine(name, maxName))
		}
		if len(marks) > 0 {
			g.marks[i] = strings.Join(marks, ", ")
		}
	}
	return g
}

// parents returns the indexes of those parents of n that are in this drawing. A start of a run without a row is
// replaced by the node before it. The slice is valid until the next call.
func (g *drawing) parents(n *node.Node) []int {
	at := g.parentsOf[:0]
	for i := range n.NumParents() {
		parent := n.Parent(i)
		before := g.instead[parent.ID()]
		p := g.at[cmp.Or(before, parent).ID()] - g.base
		if p >= 0 && (before == nil || !slices.Contains(at, p)) {
			at = append(at, p)
		}
	}
	g.parentsOf = at
	return at
}

// node draws node i, the rows that connect it to its parents, and the fan that begins at it.
func (g *drawing) node(i int) {
	n := g.nodes[i]

	// Two nodes may have one ID: such a parent may not be drawn yet.
	parents := slices.DeleteFunc(g.parents(n), func(p int) bool { return g.column[p] < 0 })
	switch {
	case g.comb[i]:
		g.tooth(i)
		g.children(n)
		return
	case g.column[i] >= 0: // fan has set it
		g.open[g.column[i]]--
	case len(parents) == 0:
		g.root(i)
	default:
		g.connect(i, parents)
	}

	// The column stays open for as many rows as the node has children.
	c := g.column[i]
	g.open[c] += g.kids[i]
	if !g.isShownBefore(i) {
		f := g.faceOf(n, g.executed[i])
		g.write(g.cells(c, f.glyph), i, f)
	}
	g.last = c
	g.children(n)

	// If a folded run begins with the next node, its row includes the executions.
	if g.folds[i+1] == 0 {
		g.fan(i)
	}
}

// isShownBefore reports whether node i is the message with the only result of a tool phase, and the row of the call,
// directly before it, shows the result. It has a row of its own all the same if it is marked or named.
func (g *drawing) isShownBefore(i int) bool {
	n := g.nodes[i]
	if n.NumParents() != 1 || g.marks[i] != "" || g.shortID != nil {
		return false
	}

	// Ask for the content of nodes last: a node may be decoded only if it is drawn.
	p := g.at[n.Parent(0).ID()] - g.base
	if p < 0 || p != g.latest || g.kids[p] != 1 || !isExecution(n.Parent(0)) || n.Parent(0).Children().Len() > 0 {
		return false
	}
	m, ok := n.Message()
	return ok && m.Blocks.Len() == 1 && len(m.Blocks.ToolResults()) == 1
}

// write writes the row of node i: the graph, the word for its kind, its mark, and as much text as fits.
func (g *drawing) write(graph string, i int, f face) {
	// Of the graph, only the sign has the color of the node.
	before, after, _ := strings.Cut(g.indent+graph, f.glyph)
	row := []piece{{f.glyph, f.color}, {after, ""}}

	if g.shortID != nil {
		row = append(row, piece{g.shortID(g.nodes[i]), gray}, note(" "))
	}
	if f.word != "" {
		padding := strings.Repeat(" ", max(wordWidth-safetext.Width(f.word), 0)+1)
		row = append(row, piece{f.word, f.color}, piece{padding, ""})
	}
	if m := g.marks[i]; m != "" {
		row = append(row, piece{"(" + cleanLine(m, g.width/3) + ")", yellow}, piece{" ", ""})
	}

	g.latest = i
	if f.why != "" {
		g.failures = append(g.failures, g.written)
	}
	used := safetext.Width(before)
	for _, s := range row {
		used += safetext.Width(s.text)
	}
	g.row(before, append(row, faceText(f, max(g.width-used, g.minText()))...)...)
}

// free returns a free column to the right of column c, or the shared column.
func (g *drawing) free(c int) int {
	for c++; c < maxColumns; c++ {
		if c >= len(g.open) {
			break
		}
		if g.open[c] == 0 {
			return c
		}
	}

	// No column is free: add one, or share the last one if there are too many.
	for len(g.open) <= min(c, maxColumns) {
		g.open = append(g.open, 0)
	}
	return min(c, maxColumns)
}

// root assigns a column to node i. It has no parent in this drawing.
func (g *drawing) root(i int) {
	c := g.free(-1)
	g.column[i] = c

	// Without an empty row the node would look like a child of the node above.
	if c == g.last {
		g.row(g.indent + g.cells(-1, ""))
	}

	// Its parents are drawn elsewhere. For the first node, a row with the number of nodes before it is there already.
	if first := i == 0 && g.nesting == 0; g.nodes[i].NumParents() > 0 && !first {
		g.row(g.indent + g.cells(c, "⋮"))
	}
}

// connect assigns a column to node i and draws the connection to its parents. The node continues the column of a parent
// without further children, or else starts a new column.
func (g *drawing) connect(i int, parents []int) {
	if c := g.column[parents[0]]; len(parents) == 1 && g.open[c] == 1 {
		g.open[c]--
		g.column[i] = c
		return
	}

	// The node uses one line of each parent's column.
	before := slices.Clone(g.open)
	joined := map[int]bool{}
	right, own := -1, -1
	for _, p := range parents {
		c := g.column[p]
		joined[c] = true
		g.open[c]--
		right = max(right, c)
	}

	// Continue the leftmost column that has become free.
	for c := range joined {
		if g.open[c] == 0 && (own < 0 || c < own) {
			own = c
		}
	}
	if own < 0 {
		own = g.free(right)
	}

	g.column[i] = own
	joined[own] = true
	if len(joined) > 1 {
		g.junction(before, joined, func(c int) bool { return g.open[c] > 0 || c == own })
	}
}

// fan assigns columns to the executions directly after node i that have no other parent.
func (g *drawing) fan(i int) {
	// Executions with further parents are merges and get no column here.
	width := 0
	for j := i + 1; j < len(g.nodes) && isExecution(g.nodes[j]) && slices.Equal(g.parents(g.nodes[j]), []int{i}); j++ {
		width++
	}

	// A fan that is too wide for columns is drawn as a comb: its executions are teeth beside the caller's column.
	if width > maxFan {
		if g.Fold {
			g.foldFan(i+1, i+1+width)
		}
		for j := i + 1; j <= i+width; j++ {
			g.comb[j], g.column[j] = true, g.column[i]
		}
		return
	}

	// A single execution is drawn like any other node.
	if width < 2 {
		return
	}

	// The first execution continues the caller's column unless other children need it.
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

// tooth draws an execution of a wide fan, beside the column of its parent. The column stays open for the nodes after
// the fan.
func (g *drawing) tooth(i int) {
	// The column has a line for each execution of the fan. An execution uses its line, and needs one for each child.
	c := g.column[i]
	g.open[c] += g.kids[i] - 1
	if g.hidden[i] {
		return
	}

	graph := g.toothCells(c)
	g.last = -1
	if hidden := g.more[i]; hidden > 0 {
		g.row(g.indent+graph+"⋯ ", note(count(hidden, "more call")))
		return
	}
	f := g.faceOf(g.nodes[i], false)
	g.write(graph+f.glyph+" ", i, f)
}

// toothCells returns the graph of a row with a line from column c to the right, beyond all columns.
func (g *drawing) toothCells(c int) string {
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

	// Nothing follows in column c or to the right of it, so the loop has not reached it.
	if g.columns() <= c {
		b.WriteString(strings.Repeat("  ", c-g.columns()) + "╰─")
	}
	return b.String()
}

// columns returns the number of columns up to the last open one.
func (g *drawing) columns() int {
	n := len(g.open)
	for n > 0 && g.open[n-1] == 0 {
		n--
	}
	return n
}

// cells returns the graph of one row: sign in column at, and a line in every other open column.
func (g *drawing) cells(at int, sign string) string {
	var b strings.Builder

	// Spaces are written only before the next sign, so that the row does not end in some.
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
			// The shared column may have several lines.
			s = "⋮"
		}
		b.WriteString(strings.Repeat(" ", gap))
		b.WriteString(s)
		b.WriteByte(' ')
		gap = 0
	}
	return b.String()
}

// Directions of the lines of a junction.
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

// junction draws the row that connects the joined columns. before is the value of g.open above the row; openBelow
// reports whether a column is open below it. Columns between the joined ones are crossed.
func (g *drawing) junction(before []int, joined map[int]bool, openBelow func(column int) bool) {
	// The horizontal line reaches from the first to the last joined column.
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
		if openBelow(c) {
			line |= down
		}

		// The horizontal line does not show in a column that it only crosses: the vertical line stays.
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

// children draws the child conversation of n under it.
func (g *drawing) children(n *node.Node) {
	if heads := n.Children(); heads.Len() > 0 {
		graph := g.cells(-1, "")
		g.draw(heads.Slice(), g.indent+graph+"┊ ", g.nesting+1)
	}
}
