package viz

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// The limits of Mermaid itself. No configuration inside a diagram can raise them.
const (
	mermaidEdges = 500    // edges of a diagram
	mermaidText  = 50_000 // its whole text, in UTF-16 code units
)

// The size above which a drawing is folded: clear of the limits, so that what surrounds it has room, and small enough to be read.
const (
	budgetEdges = 450
	budgetText  = 45_000
	budgetBoxes = 100
)

// ErrTooLarge is in the chain of the error of a conversation that is too large to be drawn.
var ErrTooLarge = errors.New("too large for a Mermaid diagram")

// SizeError says which limit a drawing would pass. Its chain holds ErrTooLarge.
type SizeError struct {
	// Limit names what there is too much of: "edges" or "UTF-16 code units".
	Limit string
	// Size is how much there would be, with everything folded that can be, and Max how much there may be.
	Size, Max int
}

// Error says how much there is of what, and how much there may be.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%v: %d %s, where at most %d are drawn", ErrTooLarge, e.Size, e.Limit, e.Max)
}

// Unwrap returns ErrTooLarge.
func (e *SizeError) Unwrap() error { return ErrTooLarge }

// MermaidOptions changes how [Mermaid] draws. The zero value and nil are the defaults.
type MermaidOptions struct {
	// LabelLines is how many lines of a text a box shows. Defaults to 3, also when negative.
	LabelLines int
	// LabelChars is how many characters of a text a box shows. Defaults to 120, also when negative.
	LabelChars int
	// Full draws every node, up to Mermaid's own limits of 500 edges and 50,000 UTF-16 code units, and fails where a drawing
	// would otherwise be folded. Defaults to false.
	Full bool
	// Depth is how deep in sub-agents conversations are drawn: 1 is the conversation itself, 2 those of its sub-agents, too, and so
	// on. Deeper ones become a line in the box of their call, but for those whose nodes others go on from. Defaults to all, also
	// when negative.
	Depth int
	// Around is the node, of the conversation or of a sub-agent, that is drawn with what is at most Steps edges before or after it.
	// All else becomes boxes that say how much is left out. Ids stay those of the whole drawing. Defaults to drawing everything;
	// what leads to a node is the drawing of [dag.DAG.At].
	Around node.ID
	// Steps is how far from Around is drawn. Defaults to 3, also when negative.
	Steps int
}

// Mermaid writes d to w as a Mermaid flowchart: every node with what was said, run and answered, tool calls side by side and
// the message that joins them, branches, and the conversation of each sub-agent in a box beside its call. Where d has several
// heads, they are numbered.
//
//   - The text is what Mermaid 10.9 to 12.3 draw, in GitHub, in editors and in documentation tools, in light and dark pages.
//   - Whatever was said, it is shown letter for letter and does nothing: it cannot break the diagram, run, fetch or link. The
//     text can stand in a Markdown fence as it is.
//   - The same graph gives the same bytes. Ids (n0, n1 …) number the nodes in reading order, whatever is folded.
//   - A conversation of more than 100 boxes, which nobody could read, is folded: the inside of sub-agents and the middle of long runs
//     of turns become boxes that say what they stand for. Of more than eight calls side by side, the first three are drawn.
//   - What failed in the conversation itself stays: each failure while there is room, and a few of them at any size. A box that stands
//     for failures is red and counts them.
//   - Heads, roots, branch points and merges of branches are drawn, also where that takes more than 100 boxes. Where it would pass the
//     limits of Mermaid, only the first few heads are, and boxes count the others.
//
// Errors: d's own; dag.ErrForeign where there is no node o.Around; a *SizeError when the conversation is too large even so, which
// [MermaidParts] draws in several diagrams; and that of w. Nothing is written before the drawing is whole.
func Mermaid(w io.Writer, d dag.DAG, o *MermaidOptions) error {
	if o == nil {
		o = &MermaidOptions{}
	}
	s, err := sketchOf(d, o)
	if err != nil {
		return err
	}
	_, text, err := s.choose(o.Full)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// choose returns the sheet that is drawn, and its text: by the first plan whose drawing can be read, or else by the first of those that
// fold the most whose drawing Mermaid takes.
func (s *sketch) choose(full bool) (sheet, string, error) {
	if full {
		return s.draw(plans[0], mermaidEdges, mermaidText)
	}
	for _, p := range plans[1:] {
		if p.heads > 0 {
			break // rather all heads than a small drawing
		}
		if sh := s.sheet(p); len(sh.boxes) > budgetBoxes {
			continue
		}
		if sh, text, err := s.draw(p, budgetEdges, budgetText); err == nil {
			return sh, text, nil
		}
	}

	var tooLarge error
	for _, p := range plans[tightest:] {
		sh, text, err := s.draw(p, budgetEdges, budgetText)
		if err == nil {
			return sh, text, nil
		}
		tooLarge = err
	}
	return sheet{}, "", tooLarge
}

// sketch draws one outline by several plans, and keeps what they share.
type sketch struct {
	*outline
	labels labeller
	depth  int     // of the conversations that are drawn; 0 for all
	alone  []drawn // each vertex that was drawn in a box of its own
}

// sketchOf returns the sketch of d, and what keeps it from being drawn.
func sketchOf(d dag.DAG, o *MermaidOptions) (*sketch, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	s := newSketch(d, o)
	if o.Around == (node.ID{}) {
		return s, nil
	}
	focus := slices.IndexFunc(s.vertices, func(v vertex) bool { return v.node.ID() == o.Around })
	if focus == none {
		return nil, fmt.Errorf("draw around %s: %w", o.Around, dag.ErrForeign)
	}
	s.lookAt(focus, cmp.Or(max(o.Steps, 0), 3))
	return s, nil
}

func newSketch(d dag.DAG, o *MermaidOptions) *sketch {
	out := outlineOf(d.Heads())
	return &sketch{
		outline: out,
		labels:  labeller{out, cmp.Or(max(o.LabelLines, 0), 3), cmp.Or(max(o.LabelChars, 0), 120), out.severalModels()},
		depth:   max(o.Depth, 0),
		alone:   make([]drawn, len(out.vertices)),
	}
}

// fold returns for each vertex the vertex in whose box it is drawn, by plan p and no deeper than the options want it.
func (s *sketch) fold(p plan) []int {
	if s.depth > 0 && p.depth == 0 {
		p.depth = s.depth
	}
	return s.outline.fold(p)
}

// draw returns the sheet and the diagram by plan p, or a *SizeError.
func (s *sketch) draw(p plan, maxEdges, maxText int) (sheet, string, error) {
	sh := s.sheet(p)
	if len(sh.edges) > maxEdges {
		return sh, "", &SizeError{"edges", len(sh.edges), maxEdges}
	}
	text := s.write(sh)
	if size := utf16Len(text); size > maxText {
		return sh, "", &SizeError{"UTF-16 code units", size, maxText}
	}
	return sh, text, nil
}

// sheet is what one diagram shows.
type sheet struct {
	boxes   []int   // the vertices whose boxes are drawn, in reading order
	members [][]int // the vertices in each box; none for a vertex that is drawn in the box of another
	edges   []edge  // between boxes
	stubs   []stub  // for what is drawn in other parts
	within  int     // the conversation that all of it lies in; those around that one are not shown
}

// sheet is the diagram of everything by plan p.
func (s *sketch) sheet(p plan) sheet {
	box := s.fold(p)
	sh := sheet{members: members(box), edges: s.edges(box), within: none}
	for i, in := range sh.members {
		if in != nil {
			sh.boxes = append(sh.boxes, i)
		}
	}
	return sh
}

// write writes the diagram.
func (s *sketch) write(sh sheet) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	s.classDefs(&b, sh)
	s.boxes(&b, sh)
	for _, st := range sh.stubs {
		fmt.Fprintf(&b, "    %s%s\"%s\"%s:::%s\n", st.id, brackets[ShapeNote][0], escape(st.label), brackets[ShapeNote][1], StyleFolded)
	}
	for _, e := range sh.edges {
		fmt.Fprintf(&b, "    n%d %s n%d\n", e.from, e.arrow, e.to)
	}
	for _, st := range sh.stubs {
		st.writeEdges(&b)
	}
	for _, i := range sh.boxes {
		if v := s.vertices[i]; v.head > 0 && v.group == none && !s.isLeftOut(i) && s.isOwn(sh.members[i]) {
			fmt.Fprintf(&b, "    class n%d head\n", i)
		}
	}
	return b.String()
}

// brackets give a box its outline. The classic ones are drawn by every version of Mermaid.
var brackets = map[Shape][2]string{
	ShapeTurn:  {"(", ")"},
	ShapeSetup: {"[", "]"},
	ShapeCall:  {"[[", "]]"},
	ShapeMerge: {`[\`, "/]"},
	ShapeStop:  {"([", "])"},
	ShapeStore: {"[(", ")]"},
	ShapeNote:  {">", "]"},
}

// looks sets fill, stroke and color of each style together: with one of them left to a theme, dark pages are unreadable.
var looks = []struct {
	style Style
	css   string
}{
	{StyleUser, "fill:#e1f5fe,stroke:#01579b,color:#01579b"},
	{StyleAssistant, "fill:#e8f5e9,stroke:#1b5e20,color:#1b5e20"},
	{StyleAside, "fill:#f5f5f5,stroke:#616161,color:#424242"},
	{StyleFailed, "fill:#ffebee,stroke:#b71c1c,color:#b71c1c"},
	{StyleFolded, "fill:#fffde7,stroke:#827717,color:#5d5400,stroke-dasharray:4 4"},
}

// classDefs writes the styles that the boxes have.
func (s *sketch) classDefs(b *strings.Builder, sh sheet) {
	used := map[Style]bool{}
	for _, i := range sh.boxes {
		used[s.box(i, sh.members[i]).style] = true
	}
	if len(sh.boxes) == 0 {
		used[StyleAside] = true
	}
	if len(sh.stubs) > 0 {
		used[StyleFolded] = true
	}
	for _, l := range looks {
		if used[l.style] {
			fmt.Fprintf(b, "    classDef %s %s\n", l.style, l.css)
		}
	}
	if len(sh.boxes) > 0 {
		b.WriteString("    classDef head stroke-width:4px\n")
	}
}

// maxIndent is how deep statements are indented. Conversations deeper in one another look no different to Mermaid.
const maxIndent = 8

// boxes writes a statement for each box, those of a hanging conversation inside a subgraph.
func (s *sketch) boxes(b *strings.Builder, sh sheet) {
	if len(sh.boxes) == 0 {
		b.WriteString(`    n0["(an empty conversation)"]:::aside` + "\n")
	}
	outside := none
	if sh.within != none {
		outside = s.groups[sh.within].outer
	}
	var open []int // groups, the innermost last
	indent := func() { b.WriteString(strings.Repeat("    ", 1+min(len(open), maxIndent))) }
	shut := func() {
		open = open[:len(open)-1]
		indent()
		b.WriteString("end\n")
	}
	for _, i := range sh.boxes {
		for len(open) > 0 && s.groups[open[len(open)-1]].last < i {
			shut()
		}
		around := outside
		if len(open) > 0 {
			around = open[len(open)-1]
		}
		for _, g := range s.path(around, s.vertices[i].group) {
			indent()
			fmt.Fprintf(b, "subgraph s%d[\"%s\"]\n", g, escape(s.groupTitle(g, sh)))
			open = append(open, g)
		}
		indent()
		b.WriteString(s.box(i, sh.members[i]).text)
	}
	for len(open) > 0 {
		shut()
	}
}

// groupTitle is the title of group g in one of the parts.
func (s *sketch) groupTitle(g int, sh sheet) string {
	if s.groups[g].first < sh.boxes[0] {
		return s.groups[g].title + ", continued"
	}
	return s.groups[g].title
}

// members returns the vertices in each box; none for a vertex that is drawn in the box of another.
func members(box []int) [][]int {
	in := make([][]int, len(box))
	for i, rep := range box {
		in[rep] = append(in[rep], i)
	}
	return in
}

// drawn is the box of a vertex: its statement, its plain label and its style.
type drawn struct {
	text, label string
	style       Style
}

// box returns the box of vertex i, which stands for all members.
func (s *sketch) box(i int, members []int) drawn {
	alone := len(members) == 1 && !s.isLeftOut(i)
	if alone && s.alone[i].text != "" {
		return s.alone[i]
	}
	var f face
	if alone {
		f = s.labels.face(i)
	} else {
		f = s.labels.foldedFace(members)
	}
	if v := s.vertices[i]; v.head > 0 && s.several(v.group) && !s.isLeftOut(i) && s.isOwn(members) {
		f.label = lines(f.label, fmt.Sprintf("◀ head %d", v.head))
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

// edges returns the edges between boxes, each once: in the order of the boxes they lead to, and there of the parents.
func (s *outline) edges(box []int) []edge {
	var edges []edge
	seen := map[edge]bool{}
	add := func(from, to int, arrow string) {
		e := edge{box[from], box[to], arrow}
		if e.from != e.to && !seen[e] {
			seen[e] = true
			edges = append(edges, e)
		}
	}
	s.arrows(add)
	return edges
}

// arrows yields the edges between vertices: in the order of the vertices they lead to, and there of the parents.
func (o *outline) arrows(yield func(from, to int, arrow string)) {
	for i, v := range o.vertices {
		for _, p := range v.parents {
			yield(p, i, "-->")
		}
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
func (s *outline) several(g int) bool {
	if g == none {
		return s.heads > 1
	}
	return s.groups[g].heads > 1
}

// severalModels reports whether more than one model spoke.
func (o *outline) severalModels() bool {
	var model string
	for _, v := range o.vertices {
		if m, ok := v.node.Message(); ok && m.Answer.Model != "" {
			if model != "" && model != m.Answer.Model {
				return true
			}
			model = m.Answer.Model
		}
	}
	return false
}

// utf16Len is the length of s as Mermaid, which is written in JavaScript, counts it.
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
