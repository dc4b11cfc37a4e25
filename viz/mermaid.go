package viz

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// The limits of Mermaid itself. No configuration inside a diagram can raise them.
const (
	mermaidEdges = 500    // edges of a diagram
	mermaidText  = 50_000 // its whole text, in UTF-16 code units
)

// The size above which a drawing is folded: clear of the limits, so that what surrounds it has room.
const (
	budgetEdges = 450
	budgetText  = 45_000
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
}

// Mermaid writes d to w as a Mermaid flowchart: every node with what was said, run and answered, tool calls side by side and
// the message that joins them, branches, and the conversation of each sub-agent in a box beside its call. Where d has several
// heads, they are numbered.
//
//   - The text is what Mermaid 10.9 to 12.3 draw, in GitHub, in editors and in documentation tools, in light and dark pages.
//   - Whatever was said, it is shown letter for letter and does nothing: it cannot break the diagram, run, fetch or link. The
//     text can stand in a Markdown fence as it is.
//   - The same graph gives the same bytes. Ids (n0, n1 …) number the nodes in reading order, whatever is folded.
//   - A conversation too large for Mermaid is folded until it fits: calls side by side beyond the first three, the inside of
//     sub-agents, and the middle of long runs of turns become boxes that say what they stand for and how much of it failed.
//     What failed in the conversation itself is folded last; heads, roots, branch points and merges of branches never.
//
// Errors: d's own; a *SizeError when the conversation is too large even so; and that of w. Nothing is written before the
// drawing is whole.
func Mermaid(w io.Writer, d dag.DAG, o *MermaidOptions) error {
	if err := d.Err(); err != nil {
		return err
	}
	if o == nil {
		o = &MermaidOptions{}
	}
	s := newSketch(d, o)
	maxEdges, maxText, tries := budgetEdges, budgetText, plans
	if o.Full {
		maxEdges, maxText, tries = mermaidEdges, mermaidText, plans[:1]
	}
	var tooLarge error
	for _, p := range tries {
		text, err := s.draw(p, maxEdges, maxText)
		if err == nil {
			_, err = io.WriteString(w, text)
			return err
		}
		tooLarge = err
	}
	return tooLarge
}

// sketch draws one outline by several plans, and keeps what they share.
type sketch struct {
	*outline
	labels labeller
	alone  []drawn // each vertex that was drawn in a box of its own
}

func newSketch(d dag.DAG, o *MermaidOptions) *sketch {
	out := outlineOf(d.Heads())
	return &sketch{
		outline: out,
		labels:  labeller{out, cmp.Or(max(o.LabelLines, 0), 3), cmp.Or(max(o.LabelChars, 0), 120), out.severalModels()},
		alone:   make([]drawn, len(out.vertices)),
	}
}

// draw returns the diagram by plan p, or a *SizeError.
func (s *sketch) draw(p plan, maxEdges, maxText int) (string, error) {
	box := s.fold(p)
	edges := s.edges(box)
	if len(edges) > maxEdges {
		return "", &SizeError{"edges", len(edges), maxEdges}
	}
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	s.classDefs(&b, box)
	s.boxes(&b, box)
	for _, e := range edges {
		fmt.Fprintf(&b, "    n%d %s n%d\n", e.from, e.arrow, e.to)
	}
	for i, v := range s.vertices {
		if v.head > 0 && v.group == none {
			fmt.Fprintf(&b, "    class n%d head\n", i)
		}
	}
	if size := utf16Len(b.String()); size > maxText {
		return "", &SizeError{"UTF-16 code units", size, maxText}
	}
	return b.String(), nil
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
func (s *sketch) classDefs(b *strings.Builder, box []int) {
	used := map[Style]bool{}
	for i, in := range members(box) {
		if in != nil {
			used[s.box(i, in).style] = true
		}
	}
	if len(box) == 0 {
		used[StyleAside] = true
	}
	for _, l := range looks {
		if used[l.style] {
			fmt.Fprintf(b, "    classDef %s %s\n", l.style, l.css)
		}
	}
	if len(box) > 0 {
		b.WriteString("    classDef head stroke-width:4px\n")
	}
}

// boxes writes a statement for each box, those of a hanging conversation inside a subgraph.
func (s *sketch) boxes(b *strings.Builder, box []int) {
	if len(box) == 0 {
		b.WriteString(`    n0["(an empty conversation)"]:::aside` + "\n")
	}
	var open []int // groups, the innermost last
	indent := func() { b.WriteString(strings.Repeat("    ", 1+len(open))) }
	shut := func() {
		open = open[:len(open)-1]
		indent()
		b.WriteString("end\n")
	}
	for i, in := range members(box) {
		if in == nil {
			continue
		}
		for len(open) > 0 && s.groups[open[len(open)-1]].last < i {
			shut()
		}
		around := none
		if len(open) > 0 {
			around = open[len(open)-1]
		}
		for _, g := range s.path(around, s.vertices[i].group) {
			indent()
			fmt.Fprintf(b, "subgraph s%d[\"%s\"]\n", g, escape(s.groups[g].title))
			open = append(open, g)
		}
		indent()
		b.WriteString(s.box(i, in).text)
	}
	for len(open) > 0 {
		shut()
	}
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
	alone := len(members) == 1
	if alone && s.alone[i].text != "" {
		return s.alone[i]
	}
	var f face
	if alone {
		f = s.labels.face(i)
	} else {
		f = s.labels.foldedFace(members)
	}
	if v := s.vertices[i]; v.head > 0 && s.several(v.group) {
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
	for i, v := range s.vertices {
		for _, p := range v.parents {
			add(p, i, "-->")
		}
		for _, h := range v.also {
			add(i, h, "-.->")
		}
		if v.hangs != none && box[s.groups[v.hangs].first] != box[i] {
			for _, e := range s.groups[v.hangs].entries {
				add(i, e, "-.->")
			}
		}
	}
	return edges
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
		if m, ok := v.node.Payload().(node.Message); ok && m.Answer.Model != "" {
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
