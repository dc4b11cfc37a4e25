package viz

import (
	"cmp"
	"fmt"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/ink"
)

// Picture is a conversation laid out: where each box is, and which edges join them. Units are pixels, x to the right, y down,
// both from 0. No two boxes overlap, and a frame holds the boxes of its conversation and touches no others.
type Picture struct {
	// Width and Height are the size of the whole, with a margin.
	Width, Height int
	// Boxes are in reading order: parents before children, the conversation of a sub-agent right after the call it hangs on.
	Boxes []Box
	// Edges lead from parents to children, and from a call to the conversation that hangs on it.
	Edges []Edge
	// Frames are the conversations that hang on boxes, the outer before the inner.
	Frames []Frame
}

// Box is a node, or several that are folded into one box.
type Box struct {
	// Node is what the box stands for; nil where it stands for several.
	Node *node.Node
	// Nodes is how many nodes it stands for: 1, or more where it is folded.
	Nodes int
	// Number is the node's number in reading order, from 0, whatever is folded: that of the first where there are several.
	// It is the same number as in Mermaid's ids, n0, n1 ….
	Number int
	// X and Y are the upper left corner, W and H the size.
	X, Y, W, H int
	// Lines is the text: plain, cut and without control characters, and not escaped for any format.
	Lines []string
	// Heading is how many of the lines say what the box is; what was said follows.
	Heading int
	// Style and Shape are how the box looks.
	Style Style
	Shape Shape
	// Head is 1 for the first head of its conversation, 2 for the second …, and 0 for a box that is no head.
	Head int
	// Frame is the place in Frames of the innermost frame around the box, and -1 for a box that is in none.
	Frame int
}

// Edge joins two boxes.
type Edge struct {
	// From and To are places in Boxes.
	From, To int
	// Points are the corners of the line from the one to the other; pieces are level or upright.
	Points []Point
	// Dashed says that the edge leads to a conversation that hangs on a box, not to a child.
	Dashed bool
}

// Point is a place in a picture.
type Point struct{ X, Y int }

// Frame is what is drawn around a conversation that hangs on a box: a sub-agent's, mostly.
type Frame struct {
	// Title names the conversation.
	Title string
	// Owner is the place in Boxes of the box that it hangs on.
	Owner int
	// Outer is the place in Frames of the frame around this one, and -1 for none.
	Outer int
	// X and Y are the upper left corner, W and H the size.
	X, Y, W, H int
}

// LayoutOptions changes what [Layout] puts into boxes. The zero value and nil are the defaults.
type LayoutOptions struct {
	// LabelLines is how many lines of a text a box shows; a long line is broken into several. Defaults to 3, also when negative.
	LabelLines int
	// LabelChars is how many characters of a text a box shows. Defaults to 120, also when negative.
	LabelChars int
	// Fold draws wide fans, conversations of sub-agents and the middle of long runs of turns as boxes that say what they stand
	// for, as [Mermaid] does with a conversation that is too large for it. Defaults to false.
	Fold bool
}

// Layout finds a place for each box and each edge of d. Time runs downwards: a box stands below its parents, and what follows a
// call below the conversation of its sub-agent, which is in a frame beside it. The calls of a phase stand side by side, centred over
// the message that joins them; branches stand to the right.
//
//   - The same graph gives the same picture.
//   - Text is measured in cells, as a terminal does: a letter is one cell of 7.25 pixels in a font of 12, an East Asian character or
//     an emoji is two. No font is needed.
//   - A conversation without nodes gives a picture without boxes, with room for a line of text.
//
// The error is that of d.
func Layout(d dag.DAG, o *LayoutOptions) (*Picture, error) {
	m, err := plotOf(d, o)
	if err != nil {
		return nil, err
	}
	return m.picture(), nil
}

// plotOf returns the boxes and edges of d with their labels, to be placed.
func plotOf(d dag.DAG, o *LayoutOptions) (*plot, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	if o == nil {
		o = &LayoutOptions{}
	}
	out := outlineOf(d.Heads())
	p := plans[0]
	if o.Fold {
		p = foldedPlan
	}
	m := out.plot(out.fold(p))
	m.label(labeller{out, cmp.Or(max(o.LabelLines, 0), 3), cmp.Or(max(o.LabelChars, 0), 120), out.severalModels()})
	return m, nil
}

// foldedPlan is how LayoutOptions.Fold folds.
var foldedPlan = plan{fans: true, depth: 1, keep: 3}

// plot is an outline that is being laid out: its boxes, and where they stand.
type plot struct {
	*outline
	items []item
	at    []int       // of each vertex, the item that it is drawn in
	rooms []room      // the conversations; the outermost first, then group 0 …
	edges []edge      // between vertices
	rows  []rowExtent // from the top
}

// item is a box that is being placed.
type item struct {
	vertex  int
	members []int // the vertices that it stands for
	room    int
	face    face
	lines   []string
	heading int // lines
	w, h    int
	parents []int // items of the same room
	kids    []int // likewise
	hangs   []int // rooms
	below   int   // how many rows the rooms take that hang on it
	row     int   // from the first of its room; in the end, from the top
	x       int   // of its middle, from the axis of its room; in the end, from the left
}

// room is a conversation that is being placed. Its items are placed around an axis.
type room struct {
	items []int
	owner int // the item that it hangs on, or none
	rows  int
	row   int // its first
	depth int // of the rooms in it that end where it ends, 0 for none
	left  int // what it takes to the left of its axis, with a frame
	right int
	x     int // of its axis, from that of the room around it; in the end, from the left
}

// plot returns the boxes and edges to be placed, where box says in whose box each vertex is drawn.
func (o *outline) plot(box []int) *plot {
	m := &plot{outline: o, at: make([]int, len(box)), rooms: make([]room, 1+len(o.groups)), edges: o.edges(box)}
	m.rooms[0].owner = none
	m.items = make([]item, 0, len(box))
	for i, in := range members(box) {
		if in == nil {
			continue
		}
		k := len(m.items)
		it := item{vertex: i, members: in, room: o.vertices[i].group + 1}
		for _, v := range in {
			m.at[v] = k
		}
		m.items = append(m.items, it)
		m.rooms[it.room].items = append(m.rooms[it.room].items, k)
	}
	for g := range o.groups {
		r := &m.rooms[g+1]
		r.owner = m.at[o.groups[g].owner]
		if len(r.items) > 0 {
			m.items[r.owner].hangs = append(m.items[r.owner].hangs, g+1)
		}
	}
	for _, e := range m.edges {
		from, to := m.at[e.from], m.at[e.to]
		if m.items[from].room == m.items[to].room && from < to {
			m.items[to].parents = append(m.items[to].parents, from)
			m.items[from].kids = append(m.items[from].kids, to)
		}
	}
	return m
}

// label fills in what is seen in each box, and how much room that takes.
func (m *plot) label(l labeller) {
	for i := range m.items {
		it := &m.items[i]
		if len(it.members) == 1 {
			it.face = l.face(it.vertex)
		} else {
			it.face = l.foldedFace(it.members)
		}
		if v := m.vertices[it.vertex]; v.head > 0 && m.several(v.group) {
			it.face.label = lines(it.face.label, fmt.Sprintf("◀ head %d", v.head))
		}
		it.lines, it.heading = wrap(it.face.label)
		it.w, it.h = boxSize(it.lines, it.face.shape)
	}
}

// picture places everything.
func (m *plot) picture() *Picture {
	m.stack()
	m.rows = make([]rowExtent, max(m.rooms[0].rows, 1))
	m.spread()
	edges := m.channels()
	m.measureRows()
	p := &Picture{Boxes: make([]Box, 0, len(m.items)), Edges: make([]Edge, 0, len(m.edges))}
	for i := range m.items {
		it := &m.items[i]
		v := &m.vertices[it.vertex]
		b := Box{
			Nodes: len(it.members), Number: it.vertex, Lines: it.lines, Heading: it.heading, Style: it.face.style, Shape: it.face.shape,
			X: it.x - it.w/2, Y: m.rows[it.row].y, W: it.w, H: it.h, Frame: none,
		}
		if b.Nodes == 1 {
			b.Node, b.Head = v.node, v.head
		}
		p.Boxes = append(p.Boxes, b)
	}
	m.frame(p)
	edges.draw(p)
	last := m.rows[len(m.rows)-1]
	p.Width, p.Height = m.rooms[0].left+m.rooms[0].right, last.y+last.h+last.foot+margin
	if len(p.Boxes) == 0 {
		p.Width, p.Height = 2*margin+textWidth(len(ink.Empty)), 2*margin+lineHeight
	}
	return p
}

// frame adds the frames.
func (m *plot) frame(p *Picture) {
	at := make([]int, len(m.rooms))
	at[0] = none
	for i := 1; i < len(m.rooms); i++ {
		r, g := &m.rooms[i], m.groups[i-1]
		if len(r.items) == 0 {
			at[i] = at[g.outer+1]
			continue
		}
		at[i] = len(p.Frames)
		y := m.rows[r.row].y - framePad - titleHeight
		last := m.rows[r.row+r.rows-1]
		p.Frames = append(p.Frames, Frame{
			Title: g.title, Owner: r.owner, Outer: at[g.outer+1],
			X: r.x - r.left, W: r.left + r.right, Y: y, H: last.y + last.h + framePad*(1+r.depth) - y,
		})
	}
	for i := range p.Boxes {
		p.Boxes[i].Frame = at[m.items[i].room]
	}
}
