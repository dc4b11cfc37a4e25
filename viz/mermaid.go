package viz

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
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
	if o == nil {
		o = &Options{}
	}
	if err := d.Err(); err != nil {
		return err
	}

	_, text, err := newSketch(d, o).choose(o.Full)
	if err != nil {
		return err
	}

	_, err = io.WriteString(w, text)
	return err
}

// choose returns the sheet to draw and its text. The sheet is from the first plan with a drawing that is legible and
// within Mermaid's limits. If full is set, it is the whole drawing.
func (s *sketch) choose(full bool) (sheet, string, error) {
	if full {
		return s.draw(plans[0], mermaidEdges, mermaidText)
	}

	// A legible drawing may still be too large for Mermaid. Then fold more, from the next plan on.
	for i := 1; ; i++ {
		f := s.legible(s.labels, plans, i, legibleHeight, s.fold)
		i = f.plan
		sh, text, err := s.drawBoxes(f, budgetEdges, budgetText)
		if err == nil || i == len(plans)-1 {
			return sh, text, err
		}
	}
}

// sketch draws one outline by several plans, and caches boxes for all of them.
type sketch struct {
	*outline
	labels labeller
	alone  []drawn // by vertex: its box, if it has been drawn alone
}

func newSketch(d dag.DAG, o *Options) *sketch {
	out := outlineOfDAG(d, false)
	out.full = o.Full
	return &sketch{
		outline: out,
		labels:  labeller{out, cmp.Or(max(o.LabelLines, 0), 3), cmp.Or(max(o.LabelChars, 0), 120), describe.SeveralModels(out.nodes)},
		alone:   make([]drawn, len(out.vertices)),
	}
}

// draw returns the sheet and the diagram of plan p, or ErrTooLarge.
func (s *sketch) draw(p plan, maxEdges, maxText int) (sheet, string, error) {
	return s.drawBoxes(folding{box: s.fold(p)}, maxEdges, maxText)
}

// drawBoxes returns the sheet and the diagram with the boxes of a plan, or ErrTooLarge.
func (s *sketch) drawBoxes(f folding, maxEdges, maxText int) (sheet, string, error) {
	sh := s.sheetOf(f.box)
	sh.close = f.height > closeHeight && f.width < legibleWidth/2
	if len(sh.edges) > maxEdges {
		return sh, "", tooLarge(len(sh.edges), "edges", maxEdges)
	}

	text := s.write(sh)
	if size := utf16Len(text); size > maxText {
		return sh, "", tooLarge(size, "UTF-16 code units", maxText)
	}
	return sh, text, nil
}

func tooLarge(size int, unit string, most int) error {
	return fmt.Errorf("%w: %d %s, the maximum is %d", ErrTooLarge, size, unit, most)
}

// sheet is the content of one diagram.
type sheet struct {
	boxes   []int   // the vertices with a box of their own, in reading order
	members [][]int // by vertex: the vertices in its box; nil for one in the box of another
	edges   []edge  // between boxes
	note    string  // a description of the folding; "" without folding
	close   bool    // the boxes are closer to each other, and their lines longer: the drawing is high
}

// closeHeight is the height of a narrow picture, in pixels, from which on Mermaid draws it closer. closer is the configuration
// for that, with the spaces of other pictures. Without it, Mermaid's drawing is more than half as high again.
const (
	closeHeight = 800
	closer      = `%%{init: {"flowchart": {"rankSpacing": 24, "padding": 6, "wrappingWidth": 360}}}%%`
)

// sheetOf returns the sheet with the boxes of a plan.
func (s *sketch) sheetOf(box []int) sheet {
	sh := sheet{members: members(box), edges: s.edges(box)}
	sh.note = s.labels.note(box, s.fold(plans[0]))
	for i, in := range sh.members {
		if in != nil {
			sh.boxes = append(sh.boxes, i)
		}
	}
	return sh
}

// write returns the diagram of a sheet.
func (s *sketch) write(sh sheet) string {
	var b strings.Builder
	if sh.close {
		b.WriteString(closer + "\n")
	}
	b.WriteString("flowchart TD\n")

	s.classDefs(&b, sh)
	if sh.note != "" {
		fmt.Fprintf(&b, "    note0[\"%s\"]:::%s\n", escape(sh.note), styleAside)
	}
	s.boxes(&b, sh)
	for _, e := range sh.edges {
		fmt.Fprintf(&b, "    n%d %s n%d\n", e.from, e.arrow, e.to)
	}

	// A class adds to the style of a box: a thick outline for a head of the outermost conversation, a dashed one for
	// several nodes.
	for _, i := range sh.boxes {
		if v := s.vertices[i]; v.head > 0 && v.group == none && s.isOwn(sh.members[i]) {
			fmt.Fprintf(&b, "    class n%d head\n", i)
		}
		if s.isDashed(i, sh.members[i]) {
			fmt.Fprintf(&b, "    class n%d several\n", i)
		}
	}
	return b.String()
}

// isDashed reports whether the box of vertex i needs a class for its dashed outline: it holds several nodes, and its
// style is not styleFolded. styleFolded is dashed itself.
func (s *sketch) isDashed(i int, members []int) bool {
	return !s.isSingle(members) && s.box(i, members).style != styleFolded
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
func (s *sketch) classDefs(b *strings.Builder, sh sheet) {
	used := map[string]bool{}
	for _, i := range sh.boxes {
		used[s.box(i, sh.members[i]).style] = true
	}

	// The note and the text of an empty conversation are asides.
	if len(sh.boxes) == 0 || sh.note != "" {
		used[styleAside] = true
	}

	for _, l := range looks {
		if used[l.style] {
			fmt.Fprintf(b, "    classDef %s %s\n", l.style, l.css)
		}
	}
	if slices.ContainsFunc(sh.boxes, func(i int) bool { return s.isDashed(i, sh.members[i]) }) {
		b.WriteString("    classDef several stroke-dasharray:4 4\n")
	}
	if len(sh.boxes) > 0 {
		b.WriteString("    classDef head stroke-width:4px\n")
	}
	if slices.ContainsFunc(sh.boxes, func(i int) bool { return s.vertices[i].group != none }) {
		fmt.Fprintf(b, "    classDef frame fill:%s,stroke:%s,color:%s\n", ink.Light.Frame.Fill, ink.Light.Frame.Stroke, ink.Light.Frame.Text)
	}
}

// maxIndent limits the indentation. Deeper nesting makes no difference to Mermaid.
const maxIndent = 8

// boxes writes a statement for each box. The boxes of a group are inside a subgraph.
func (s *sketch) boxes(b *strings.Builder, sh sheet) {
	if len(sh.boxes) == 0 {
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

	for _, i := range sh.boxes {
		// Close the groups that ended before this box.
		for len(open) > 0 && s.groups[open[len(open)-1]].last < i {
			shut()
		}

		// Open the groups between the current one and that of the box.
		around := none
		if len(open) > 0 {
			around = open[len(open)-1]
		}
		for _, g := range s.path(around, s.vertices[i].group) {
			indent()
			fmt.Fprintf(b, "subgraph s%d[\"%s\"]\n", g, escape(s.groups[g].title))
			open, framed = append(open, g), append(framed, "s"+strconv.Itoa(g))
		}

		indent()
		b.WriteString(s.box(i, sh.members[i]).text)
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
	in := make([][]int, len(box))
	for i, rep := range box {
		in[rep] = append(in[rep], i)
	}
	return in
}

// drawn is the box of a vertex: its statement, its plain label and its style.
type drawn struct {
	text, label, style string
}

// box returns the box of vertex i with all its members.
func (s *sketch) box(i int, members []int) drawn {
	// A vertex in a box of its own looks the same in every plan.
	alone := s.isSingle(members)
	if alone && s.alone[i].text != "" {
		return s.alone[i]
	}

	var f face
	if alone {
		f = s.labels.face(i)
	} else {
		f = s.labels.foldedFace(members)
	}

	if s.isOwn(members) {
		f.label = lines(f.label, s.labels.mark(i))
	}

	text := fmt.Sprintf("n%d%s\"%s\"%s:::%s\n", i, brackets[f.shape][0], escape(f.label), brackets[f.shape][1], f.style)
	d := drawn{text, f.label, f.style}
	if alone {
		s.alone[i] = d
	}
	return d
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
