package viz

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/ink"
)

// The limits of Mermaid itself. No configuration inside a diagram can raise them.
const (
	mermaidEdges = 500    // edges of a diagram
	mermaidText  = 50_000 // its whole text, in UTF-16 code units
)

// A larger drawing is folded. The numbers leave room below Mermaid's limits for the page around it.
const (
	budgetEdges = 450
	budgetText  = 45_000
)

// ErrTooLarge is in the chain of the error for a conversation too large to draw.
var ErrTooLarge = errors.New("too large for a Mermaid diagram")

// Mermaid writes d to w as a Mermaid flowchart. It shows every node with its text, tool calls side by side above their
// results message, branches, and the conversation of each sub-agent in a box beside its call. If d has several heads,
// they are numbered.
//
//   - Mermaid 10.9 to 12.3 draw the text: in GitHub, in editors and in documentation tools, in light and dark pages.
//   - Every text is shown letter for letter and has no effect: it cannot break the diagram, run, fetch or link. The
//     output can be put into a Markdown fence as it is.
//   - The same graph gives the same bytes. IDs (n0, n1 …) number the nodes in reading order. Folding does not change
//     them.
//   - The only result of a tool phase is in the box of its call. The results of several calls join them in a box.
//   - A conversation of more than 80 boxes, wider than 1,440 or higher than 1,800 pixels is folded: the inside of
//     sub-agents and the middle of long runs of turns become dashed boxes with a summary. If more than eight calls are
//     side by side, calls with the same tool and outcome share a box: at most eight boxes are drawn in a row. A box at
//     the top shows how much is folded.
//   - Failures stay: each one while there is room, and the first and the last at any size. A box with failures is red,
//     counts them, and names its first and its last.
//   - The start of a run is drawn only if another agent takes over.
//   - Heads, roots, branch points and merges of branches are drawn while there is room. Of many heads only the first
//     few are drawn, and boxes count the others.
//
// Mermaid returns the error of d; the error of w; or [ErrTooLarge], with the size and the limit, if the conversation is
// too large even when folded.
// [SVG] can then draw it. Nothing is written unless the drawing is complete.
func Mermaid(w io.Writer, d dag.DAG, o *Options) error {
	out, l, err := outlineOf(d, o)
	if err != nil {
		return err
	}

	_, text, err := out.mermaid(l)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// mermaid returns the boxes and the diagram of the first plan that is legible and within Mermaid's limits. Of an outline
// that is not folded, it returns the whole diagram.
func (o *outline) mermaid(l labeller) (*plot, string, error) {
	unfolded := o.fold(plans[0])
	if o.full {
		return o.diagram(l, folding{box: unfolded, cells: lineCells}, unfolded, mermaidEdges, mermaidText)
	}

	// A legible drawing may still be too large for Mermaid. Then fold more, from the next plan on.
	for i := 1; ; i++ {
		f := o.legible(l, plans, i, legibleHeight, o.fold)
		i = f.plan
		m, text, err := o.diagram(l, f, unfolded, budgetEdges, budgetText)
		if err == nil || i == len(plans)-1 {
			return m, text, err
		}
	}
}

// diagram returns the boxes and the diagram of a plan, or ErrTooLarge.
func (o *outline) diagram(l labeller, f folding, unfolded []int, maxEdges, maxText int) (*plot, string, error) {
	m := o.plot(f.box)
	if len(m.edges) > maxEdges {
		return m, "", tooLarge(len(m.edges), "edges", maxEdges)
	}

	m.label(l, f.cells)
	m.setNote(l.note(f.box, unfolded))
	text := m.mermaid(f.height > closeHeight && f.width < legibleWidth/2)
	if size := utf16Len(text); size > maxText {
		return m, "", tooLarge(size, "UTF-16 code units", maxText)
	}
	return m, text, nil
}

func tooLarge(size int, unit string, most int) error {
	return fmt.Errorf("%w: %d %s, the maximum is %d", ErrTooLarge, size, unit, most)
}

// closeHeight is the height of a narrow picture, in pixels, from which on Mermaid draws it closer. closer is the configuration
// for that, with the spaces of other pictures. Without it, Mermaid's drawing is more than half as high again.
const (
	closeHeight = 800
	closer      = `%%{init: {"flowchart": {"rankSpacing": 24, "padding": 6, "wrappingWidth": 360}}}%%`
)

// mermaid returns the diagram of labeled boxes. With near, the boxes are closer to each other, and their lines longer.
func (m *plot) mermaid(near bool) string {
	var b strings.Builder
	if near {
		b.WriteString(closer + "\n")
	}
	b.WriteString("flowchart TD\n")

	m.classDefs(&b)
	if len(m.note) > 0 {
		fmt.Fprintf(&b, "    note0[\"%s\"]:::%s\n", escape(strings.Join(m.note, " ")), styleAside)
	}
	m.boxes(&b)
	for _, e := range m.edges {
		fmt.Fprintf(&b, "    n%d %s n%d\n", e.from, e.arrow, e.to)
	}

	// A class adds to the style of a box: a thick outline for a head of the outermost conversation, a dashed one for
	// several nodes.
	for _, it := range m.items {
		if v := m.vertices[it.vertex]; v.head > 0 && v.group == none && m.isOwn(it.members) {
			fmt.Fprintf(&b, "    class n%d head\n", it.vertex)
		}
		if m.isDashed(it) {
			fmt.Fprintf(&b, "    class n%d several\n", it.vertex)
		}
	}
	return b.String()
}

// isDashed reports whether a box needs a class for its dashed outline: it holds several nodes, and its style is not
// styleFolded. styleFolded is dashed itself.
func (m *plot) isDashed(it item) bool {
	return !m.isSingle(it.members) && it.face.style != styleFolded
}

// brackets are the delimiters of a box. They select its outline. Every version of Mermaid knows these classic ones.
var brackets = map[string][2]string{
	shapeTurn:  {"(", ")"},
	shapeSetup: {"[", "]"},
	shapeCall:  {"[[", "]]"},
	shapeMerge: {`[\`, "/]"},
	shapeStop:  {"([", "])"},
	shapeStore: {"[(", ")]"},
	shapeNote:  {">", "]"},
}

// looks sets fill, stroke and color of each style together. If one of them is left to the theme, dark pages are
// unreadable.
var looks = []struct {
	style string
	css   string
}{
	{styleUser, "fill:#e1f5fe,stroke:#01579b,color:#01579b"},
	{styleAssistant, "fill:#e8f5e9,stroke:#1b5e20,color:#1b5e20"},
	{styleAside, "fill:#f5f5f5,stroke:#616161,color:#424242"},
	{styleFailed, "fill:#ffebee,stroke:#b71c1c,color:#b71c1c"},
	{styleFolded, "fill:#fffde7,stroke:#827717,color:#5d5400,stroke-dasharray:4 4"},
}

// classDefs writes the styles in use.
func (m *plot) classDefs(b *strings.Builder) {
	used := map[string]bool{}
	for _, it := range m.items {
		used[it.face.style] = true
	}

	// The note and the text of an empty conversation are asides.
	if len(m.items) == 0 || len(m.note) > 0 {
		used[styleAside] = true
	}

	for _, l := range looks {
		if used[l.style] {
			fmt.Fprintf(b, "    classDef %s %s\n", l.style, l.css)
		}
	}
	if slices.ContainsFunc(m.items, m.isDashed) {
		b.WriteString("    classDef several stroke-dasharray:4 4\n")
	}
	if len(m.items) > 0 {
		b.WriteString("    classDef head stroke-width:4px\n")
	}
	if slices.ContainsFunc(m.items, func(it item) bool { return it.room > 0 }) {
		fmt.Fprintf(b, "    classDef frame fill:%s,stroke:%s,color:%s\n", ink.Light.Frame.Fill, ink.Light.Frame.Stroke, ink.Light.Frame.Text)
	}
}

// maxIndent limits the indentation. Deeper nesting makes no difference to Mermaid.
const maxIndent = 8

// boxes writes a statement for each box. The boxes of a group are inside a subgraph.
func (m *plot) boxes(b *strings.Builder) {
	if len(m.items) == 0 {
		b.WriteString(`    n0["(an empty conversation)"]:::aside` + "\n")
	}

	var open []int      // the open groups, outermost first
	var framed []string // the IDs of all groups

	indent := func() { b.WriteString(strings.Repeat("    ", 1+min(len(open), maxIndent))) }

	shut := func() {
		open = open[:len(open)-1]
		indent()
		b.WriteString("end\n")
	}

	for _, it := range m.items {
		// Close the groups that ended before this box.
		for len(open) > 0 && m.groups[open[len(open)-1]].last < it.vertex {
			shut()
		}

		// Open the groups between the current one and that of the box.
		around := none
		if len(open) > 0 {
			around = open[len(open)-1]
		}
		for _, g := range m.path(around, m.vertices[it.vertex].group) {
			indent()
			fmt.Fprintf(b, "subgraph s%d[\"%s\"]\n", g, escape(m.groups[g].title))
			open, framed = append(open, g), append(framed, "s"+strconv.Itoa(g))
		}

		indent()
		ends := brackets[it.face.shape]
		fmt.Fprintf(b, "n%d%s\"%s\"%s:::%s\n", it.vertex, ends[0], escape(it.face.label), ends[1], it.face.style)
	}

	for len(open) > 0 {
		shut()
	}
	if len(framed) > 0 {
		fmt.Fprintf(b, "    class %s frame\n", strings.Join(framed, ","))
	}
}

// members returns the vertices in each box, and nil for a vertex in the box of another.
func members(box []int) [][]int {
	sizes := make([]int, len(box))
	for _, rep := range box {
		sizes[rep]++
	}

	// All lists share one allocation.
	in, all := make([][]int, len(box)), make([]int, len(box))
	for i, rep := range box {
		if in[rep] == nil {
			in[rep], all = all[:0:sizes[rep]], all[sizes[rep]:]
		}
		in[rep] = append(in[rep], i)
	}
	return in
}

type edge struct {
	from, to int
	arrow    string
}

// edges returns the edges between boxes, each once, ordered by target and then by parent.
func (o *outline) edges(box []int) []edge {
	var edges []edge
	seen := map[edge]bool{}
	add := func(from, to int, arrow string) {
		e := edge{box[from], box[to], arrow}
		if e.from != e.to && !seen[e] {
			seen[e] = true
			edges = append(edges, e)
		}
	}
	o.arrows(add)
	return edges
}

// arrows yields the edges between vertices, ordered by target and then by parent. Edges to parents are solid. The edges
// from a call to the conversation of its sub-agent are dotted.
func (o *outline) arrows(yield func(from, to int, arrow string)) {
	for i, v := range o.vertices {
		for _, p := range v.parents {
			yield(p, i, "-->")
		}

		// A conversation drawn elsewhere is linked at its heads, and one in a group of its own at its first nodes.
		for _, h := range v.also {
			yield(i, h, "-.->")
		}
		if v.hangs != none {
			for _, e := range o.groups[v.hangs].entries {
				yield(i, e, "-.->")
			}
		}
	}
}

// several reports whether the conversation of group g has several heads.
func (o *outline) several(g int) bool {
	if g == none {
		return o.heads > 1
	}
	return o.groups[g].heads > 1
}

// nodes yields the node of each vertex.
func (o *outline) nodes(yield func(*node.Node) bool) {
	for _, v := range o.vertices {
		if !yield(v.node) {
			return
		}
	}
}

// utf16Len returns the length of s in UTF-16 code units, the unit of Mermaid's limit.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
