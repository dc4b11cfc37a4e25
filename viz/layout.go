package viz

import (
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/ink"
)

// Picture is a conversation laid out: the position of each box, and the edges between them. Units are pixels, x to
// the right, y down, both from 0. No two boxes overlap. A frame holds the boxes of its conversation and touches no
// others.
type Picture struct {
	// Width and Height are the size of the whole, with a margin.
	Width, Height int
	// Note describes the folding of the picture, for its reader, in lines below each other from the upper left corner.
	// It is nil if every node has a box.
	Note []string
	// Boxes are in reading order: parents before children, and the conversation of a sub-agent right after its call.
	Boxes []Box
	// Edges lead from parents to children, and from a call to the conversation of its sub-agent.
	Edges []Edge
	// Frames surround the conversations of sub-agents, outer frames before inner ones.
	Frames []Frame
}

// Box is a node, or several nodes folded into one box.
type Box struct {
	// Node is the node in the box; nil if the box holds several.
	Node *node.Node
	// Nodes is the number of nodes in the box: 1, or more if it is folded.
	Nodes int
	// Results is the message with the result of the call in the box, and ResultsNumber its index in reading order. Only
	// results of several calls have a box of their own, which joins the calls, unless Options.Full is set. It is
	// nil for other boxes.
	Results       *node.Node
	ResultsNumber int
	// Number is the index of the node in reading order, from 0; of the first node if there are several. Folding does
	// not change it. Mermaid's IDs, n0, n1 …, use the same numbers.
	Number int
	// X and Y are the upper left corner, W and H the size.
	X, Y, W, H int
	// Lines is the text: plain, cut, without control characters, and not escaped for any format.
	Lines []string
	// FromRight reports for each line whether it reads from right to left, and so begins at the right side of the box:
	// the first letter of the text decides, also for the lines that it is broken into. It is nil if no line does.
	FromRight []bool
	// Heading is the number of lines with the kind of the box. The content follows them.
	Heading int
	// Style determines the colors of the box:
	//
	//	user       the user's side: messages, tool calls and their results
	//	assistant  the model's side
	//	aside      neither side: system prompts, tools, the start and the end of a run
	//	failed     a failure
	//	folded     a summary of folded nodes
	Style string
	// Shape determines its outline:
	//
	//	turn   a message
	//	setup  a system prompt, the tools
	//	call   an executed tool call, a conversation in the conversation
	//	merge  the message with the results of calls
	//	stop   the start or the end of a run
	//	store  a compaction
	//	note   a record
	Shape string
	// Head is 1 for the first head of its conversation, 2 for the second …, and 0 for other boxes.
	Head int
	// Frame is the index in Frames of the innermost frame around the box, or -1.
	Frame int
	// Owner is the number of the node with the conversation around the box, usually the call of a sub-agent. It is -1
	// in the outermost conversation.
	Owner int
	// Inside is the picture of the nodes in a folded box, if Options.Inside is set.
	Inside *Picture
}

// Edge joins two boxes.
type Edge struct {
	// From and To are indexes in Boxes.
	From, To int
	// Points are the corners of the line between them. Each segment is horizontal or vertical.
	Points []Point
	// Dashed marks an edge to the conversation of a sub-agent, not to a child.
	Dashed bool
}

// Point is a position in a picture.
type Point struct{ X, Y int }

// Frame surrounds the conversation of a box, usually that of a sub-agent.
type Frame struct {
	// Title is the name of the conversation.
	Title string
	// Owner is the index in Boxes of the box it belongs to.
	Owner int
	// Outer is the index in Frames of the frame around this one, or -1.
	Outer int
	// X and Y are the upper left corner, W and H the size.
	X, Y, W, H int
}

// Options changes what a drawing shows. The zero value and nil are the defaults.
type Options struct {
	// LabelLines limits the lines of a text in a box. Long lines are broken. If the picture would be wider than a
	// screen, the lines are shorter. Defaults to 3, also when negative.
	LabelLines int
	// LabelChars limits the characters of a text in a box. Defaults to 120, also when negative.
	LabelChars int
	// Full draws every node. Otherwise the only result of a tool phase is in the box of its call, and wide fans are
	// grouped. In a conversation of more than 80 boxes, wider than a screen, or higher than two, the conversations of
	// sub-agents and the middle of long runs become boxes with a summary. Mermaid has limits of its own: 500 edges and
	// 50,000 UTF-16 code units. Defaults to false.
	Full bool
	// Runs draws the start of each run. Otherwise it is drawn only if another agent takes over. Defaults to false.
	Runs bool
	// Inside makes [Layout] also lay out the nodes in each folded box, as a picture of its own. A large inner picture is
	// folded too, so there are pictures in pictures. Each node has a box of its own in one of them. Defaults to false.
	Inside bool
	// Title is the name of the picture of [SVG] for screen readers and tooltips. Defaults to "Conversation".
	Title string
}

// Layout computes the position of each box and each edge of d. Time runs downwards: a box is placed below its parents.
// The conversation of a sub-agent has a frame beside its call, and everything after the call is below the frame. The
// calls of a tool phase are side by side, centered above the results message, in several rows if there are more than
// six. Branches are to the right.
//
//   - The same graph gives the same picture.
//   - Text is measured in cells, as on a terminal: a letter is one cell of 7.25 pixels in a font of 12, an East Asian
//     character or an emoji is two. No font is needed.
//   - A conversation without nodes gives a picture without boxes, with room for a line of text.
//
// Layout returns the error of d.
func Layout(d dag.DAG, o *Options) (*Picture, error) {
	m, l, err := plotOf(d, o)
	if err != nil {
		return nil, err
	}

	p := m.picture()
	if o != nil && o.Inside {
		m.layInside(l, p)
	}
	return p, nil
}

// plotOf returns the labeled boxes and the edges of d, not yet placed, and its labeller.
func plotOf(d dag.DAG, o *Options) (*plot, labeller, error) {
	out, l, err := outlineOf(d, o)
	if err != nil {
		return nil, l, err
	}
	unfolded := out.fold(plans[0])
	f := folding{box: unfolded, cells: lineCells}
	if !out.full {
		// Even small drawings group wide fans: only Full uses plans[0].
		f = out.legible(l, plans, 1, legibleHeight, out.fold)
	}

	m := out.plot(f.box)
	m.label(l, f.cells)
	m.setNote(l.note(f.box, unfolded))
	return m, l, nil
}

// plot is an outline during layout.
type plot struct {
	*outline
	items []item
	at    []int       // by vertex: its item
	rooms []room      // the conversations: the outermost, then group 0 …
	edges []edge      // between vertices
	rows  []rowExtent // from top to bottom
	note  []string    // a description of the folding; nil without folding
}

// item is a box during layout.
type item struct {
	vertex  int
	members []int // the vertices in the box
	room    int
	face    face
	lines   []string
	right   []bool // by line: true if it reads from right to left; nil if none does
	heading int    // the number of lines in the heading
	w, h    int
	parents []int // items in the same room
	kids    []int // items in the same room
	hangs   []int // the rooms of this item
	below   int   // the number of rows of these rooms
	fan     bool  // true for a call of a fan with several rows
	wrapped int   // how many of these rows are above it
	row     int   // from the first row of its room; after stack, from the top
	x       int   // of its middle, from the axis of its room; after spread, from the left
}

// room is a conversation during layout. Its items are placed around a vertical axis.
type room struct {
	items []int
	owner int // the item it belongs to, or none
	rows  int // the number of its rows
	row   int // its first row
	depth int // the nesting depth of inner rooms that end in its last row
	left  int // its width on the left of the axis, frame included
	right int // its width on the right of the axis, frame included
	x     int // of its axis, from the axis of the room around it; after spread, from the left
}

// plot returns the boxes and edges to place. box is a result of fold: the box of each vertex.
func (o *outline) plot(box []int) *plot {
	m := &plot{outline: o, at: make([]int, len(box)), rooms: make([]room, 1+len(o.groups)), edges: o.edges(box)}
	m.rooms[0].owner = none

	m.items = make([]item, 0, countBoxes(box))
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

	// A room hangs on the box of its call, even if that is folded. Empty rooms are not drawn.
	for g := range o.groups {
		r := &m.rooms[g+1]
		r.owner = m.at[o.groups[g].owner]
		if len(r.items) > 0 {
			m.items[r.owner].hangs = append(m.items[r.owner].hangs, g+1)
		}
	}

	// Edges to other rooms, and edges upwards, do not count for the placement.
	for _, e := range m.edges {
		from, to := m.at[e.from], m.at[e.to]
		if m.items[from].room == m.items[to].room && from < to {
			m.items[to].parents = append(m.items[to].parents, from)
			m.items[from].kids = append(m.items[from].kids, to)
		}
	}
	return m
}

// setNote sets the description of the folding, in lines.
func (m *plot) setNote(note string) {
	if note != "" {
		m.note, _, _ = wrap(note, lineCells)
	}
}

// label sets the text of each box, in lines of at most that many cells, and its size.
func (m *plot) label(l labeller, cells int) {
	for i := range m.items {
		it := &m.items[i]
		if m.isSingle(it.members) {
			it.face = l.face(it.vertex)
		} else {
			it.face = l.foldedFace(it.members)
		}

		// A call with its folded conversation is still marked as a head and with its refs.
		if m.isOwn(it.members) {
			it.face.label = lines(it.face.label, l.mark(it.vertex))
		}

		it.lines, it.right, it.heading = wrap(it.face.label, cells)
		it.w, it.h = boxSize(it.lines, it.face.shape)
	}
}

// picture places everything and returns the result.
func (m *plot) picture() *Picture {
	// First rows, then columns, then edges: they need both. The space between two rows depends on the edges in it, so
	// heights come last.
	m.stack()
	m.rows = make([]rowExtent, max(m.rooms[0].rows, 1))
	m.spread()
	edges := m.channels()
	m.measureRows()

	p := &Picture{Note: m.note, Boxes: make([]Box, 0, len(m.items)), Edges: make([]Edge, 0, len(m.edges))}
	for i := range m.items {
		it := &m.items[i]
		v := &m.vertices[it.vertex]
		b := Box{
			Nodes: len(it.members), Number: v.number, Lines: it.lines, FromRight: it.right, Heading: it.heading,
			Style: it.face.style, Shape: it.face.shape,
			X: it.x - it.w/2, Y: m.rows[it.row].y, W: it.w, H: it.h, Frame: none, Owner: v.owner,
		}

		// A folded box represents no single node, and is no head.
		if m.isSingle(it.members) {
			b.Node, b.Head, b.Nodes = v.node, v.head, 1
			if len(it.members) > 1 {
				results := &m.vertices[it.members[1]]
				b.Results, b.ResultsNumber = results.node, results.number
			}
		}

		p.Boxes = append(p.Boxes, b)
	}

	m.frame(p)
	edges.draw(p)

	last := m.rows[len(m.rows)-1]
	p.Width, p.Height = m.rooms[0].left+m.rooms[0].right, last.y+last.h+last.foot+margin

	// The note is above everything.
	for _, line := range p.Note {
		p.Width = max(p.Width, 2*margin+textWidth(safetext.Width(line)))
	}

	// An empty conversation has no boxes. Leave room for the renderers' line of text.
	if len(p.Boxes) == 0 {
		p.Width, p.Height = 2*margin+textWidth(len(ink.Empty)), 2*margin+lineHeight
	}
	return p
}

// frame adds the frames.
func (m *plot) frame(p *Picture) {
	at := make([]int, len(m.rooms)) // by room: the index of its frame

	at[0] = none
	for i := 1; i < len(m.rooms); i++ {
		r, g := &m.rooms[i], m.groups[i-1]
		if len(r.items) == 0 {
			// A room without boxes has no frame: all its nodes are drawn elsewhere.
			at[i] = at[g.outer+1]
			continue
		}

		at[i] = len(p.Frames)
		y := m.rows[r.row].y - framePad - titleHeight
		last := m.rows[r.row+r.rows-1]
		p.Frames = append(p.Frames, Frame{
			Title: g.title, Owner: r.owner, Outer: at[m.items[r.owner].room],
			X: r.x - r.left, W: r.left + r.right, Y: y, H: last.y + last.h + framePad*(1+r.depth) - y,
		})
	}

	for i := range p.Boxes {
		p.Boxes[i].Frame = at[m.items[i].room]
	}
}
