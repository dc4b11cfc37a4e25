package viz

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/dag"
)

// MermaidPart is one of the diagrams of [MermaidParts].
type MermaidPart struct {
	// Title names the part and its nodes: "Part 2 of 5: n410 to n822".
	Title string
	// Text is the diagram, in the form written by [Mermaid].
	Text string
}

// MermaidParts draws d as [Mermaid] does, but completely: in as many diagrams as needed, each with at most 450 edges
// and 45,000 UTF-16 code units.
//
//   - Every node is drawn in one part, in reading order, with its ID from the whole drawing. Only o.Depth and o.Around
//     leave nodes out; o.Full has no effect.
//   - An edge between two parts becomes a dashed box in both, with the position of the other end: "continues in part 3
//     at n410". A box names only a few of many ends; the box at the other end names the others.
//   - Cuts are made at positions with few open edges: between turns rather than in a tool phase, after a sub-agent
//     rather than inside it. If the conversation of a sub-agent is cut, its title in the next part ends in "continued".
//   - The same graph gives the same parts. Time and memory grow with the size of the graph.
//
// There is always at least one part. The errors are those of Mermaid. A *SizeError is returned only if o allows labels
// longer than a whole diagram.
func MermaidParts(d dag.DAG, o *MermaidOptions) ([]MermaidPart, error) {
	if o == nil {
		o = &MermaidOptions{}
	}
	s, err := sketchOf(d, o)
	if err != nil {
		return nil, err
	}

	sheets := s.split(budgetEdges, budgetText)
	parts := make([]MermaidPart, len(sheets))
	for i, sh := range sheets {
		parts[i] = MermaidPart{partTitle(i, len(sheets), sh.boxes), s.write(sh)}

		// A part with a single box cannot be cut, however long the box is.
		if size := utf16Len(parts[i].Text); size > budgetText {
			return nil, &SizeError{"UTF-16 code units", size, budgetText}
		}
	}
	return parts, nil
}

func partTitle(i, of int, boxes []int) string {
	title := fmt.Sprintf("Part %d of %d", i+1, of)
	switch len(boxes) {
	case 0:
		return title
	case 1:
		return fmt.Sprintf("%s: n%d", title, boxes[0])
	}
	return fmt.Sprintf("%s: n%d to n%d", title, boxes[0], boxes[len(boxes)-1])
}

// stub is a box with the names of nodes in other parts. All boxes of this part with edges to exactly these nodes share
// it.
type stub struct {
	id, label string
	tie       tie
	boxes     []int // in this part
	far       []int // in other parts, as indexes in splitter.all
}

// tie is the position of a box relative to the other end of one of its edges.
type tie int

// The ties of a box.
const (
	follows  tie = iota // after the other, as the next message
	inside              // in the other, as a sub-agent of its call
	followed            // before the other
	holds               // around the other, as the call of its sub-agent
	ties
)

// tied holds, for each tie, the letters of the ID, the arrow and the text.
var tied = [ties]struct{ id, arrow, words string }{
	follows:  {"b", "-->", "from %s in part %d"},
	inside:   {"bi", "-.->", "inside %s in part %d"},
	followed: {"a", "-->", "continues in part %[2]d at %[1]s"},
	holds:    {"ai", "-.->", "inside: part %[2]d at %[1]s"},
}

// writeEdges writes the edges of the stub.
func (st stub) writeEdges(b *strings.Builder) {
	for _, i := range st.boxes {
		from, to := st.id, "n"+strconv.Itoa(i)
		if st.tie >= followed {
			from, to = to, from
		}
		fmt.Fprintf(b, "    %s %s %s\n", from, tied[st.tie].arrow, to)
	}
}

// splitter cuts a sheet into parts. It identifies a box by its position in the sheet.
type splitter struct {
	*sketch
	all   sheet
	ends  [][]end // by box: the ends of its edges
	open  []int   // by position: the number of stubs for a cut before it
	parts []int   // the first position of each part
}

// end is one end of an edge: the tie of a box to another box.
type end struct {
	tie   tie
	other int
}

// split returns sheets that together show everything. Each is within the limits, unless a single box exceeds them.
func (s *sketch) split(maxEdges, maxText int) []sheet {
	s.full = true
	c := &splitter{sketch: s, all: s.sheet(plan{keep: -1})}
	if len(c.all.boxes) == 0 {
		return []sheet{c.all}
	}

	c.connect()
	for from := 0; from < len(c.all.boxes); {
		c.parts = append(c.parts, from)
		from = c.cut(from, maxEdges, maxText)
	}

	return c.sheets()
}

// connect sets ends and open.
func (c *splitter) connect() {
	place := make([]int, len(c.vertices))
	for p, i := range c.all.boxes {
		place[i] = p
	}

	c.ends = make([][]end, len(c.all.boxes))

	// A stub covers all ends of one tie, so only the furthest one matters.
	last := make([][ties]int, len(c.all.boxes)) // by box: the furthest position for each tie
	for _, e := range c.all.edges {
		// A dotted edge leads into the conversation of a sub-agent.
		from, to, out, in := place[e.from], place[e.to], followed, follows
		if e.arrow != tied[followed].arrow {
			out, in = holds, inside
		}

		c.ends[from] = append(c.ends[from], end{out, to})
		c.ends[to] = append(c.ends[to], end{in, from})
		last[from][out], last[to][in] = max(last[from][out], to), max(last[to][in], from)
	}

	// A box needs a stub from the next position up to its last end. Count the beginnings and ends of stubs, then add
	// up.
	change := make([]int, len(c.all.boxes)+2)
	for p := range last {
		for _, l := range last[p] {
			if l > p {
				change[p+1]++
				change[l+1]--
			}
		}
	}

	c.open = change
	for p := 1; p < len(change); p++ {
		change[p] += change[p-1]
	}
}

// cut returns the end of the part that begins at from: the last position that fits, or an earlier one in the second
// half of the part if a cut there needs fewer stubs.
func (c *splitter) cut(from, maxEdges, maxText int) int {
	// Find an upper bound for the end: the boxes and their edges, without stubs and frames.
	to, edges, text := from, 0, 0
	for ; to < len(c.all.boxes); to++ {
		for _, e := range c.ends[to] {
			if e.other >= from && e.other < to {
				edges++
			}
		}

		text += c.boxText(to)
		if to > from && (edges > maxEdges || text > maxText) {
			break
		}
	}

	// Go back until the part fits with its stubs and frames. Prefer a cut with few stubs.
	for to > from+1 {
		best := to
		for at := to - 1; at >= from+(to-from+1)/2 && c.open[best] > 0; at-- {
			if c.open[at] < c.open[best] {
				best = at
			}
		}

		// The end of the drawing is the best place to cut, if everything fits.
		if to < len(c.all.boxes) || !c.fits(from, to, maxEdges, maxText) {
			to = best
		}
		if c.fits(from, to, maxEdges, maxText) {
			break
		}

		// Still too large: the bound does not count stubs and frames.
		to = from + max((to-from)*3/4, 1)
	}
	return to
}

// Upper bounds for the length of statements without their labels, in UTF-16 code units.
const (
	headText  = 600 // the first lines of a diagram
	edgeText  = 32  // an edge
	groupText = 120 // the frame around a conversation
)

func (c *splitter) boxText(p int) int {
	i := c.all.boxes[p]
	size := utf16Len(c.box(i, c.all.members[i]).text) + 4*(1+maxIndent)
	if c.vertices[i].head > 0 {
		size += edgeText
	}
	return size
}

// frameText returns the maximum length of the frame around group g.
func (c *splitter) frameText(g int) int {
	if g == none {
		return 0
	}
	return groupText + utf16Len(escape(c.groups[g].title))
}

// fits reports whether the boxes at positions from to to-1, with their stubs and frames, are a diagram within the
// limits. The size of the text is an upper bound.
func (c *splitter) fits(from, to, maxEdges, maxText int) bool {
	inner, stubs := c.between(from, to)
	edges, text := len(inner), headText
	for _, st := range stubs {
		edges += len(st.boxes)
		text += labelRoom(len(st.far)) + 2*edgeText
	}
	text += edges * edgeText

	// within is the innermost group around all boxes so far. Its frame is shown, and so is the frame of each group with
	// a box.
	within := c.vertices[c.all.boxes[from]].group
	text += c.frameText(within)
	for p := from; p < to && text <= maxText; p++ {
		i := c.all.boxes[p]

		for within != none && c.groups[within].last < i {
			within = c.groups[within].outer
			text += c.frameText(within)
		}
		for g := c.vertices[i].group; p > from && g != none && c.groups[g].first > c.all.boxes[p-1]; g = c.groups[g].outer {
			text += c.frameText(g)
		}

		text += c.boxText(p)
	}

	return edges <= maxEdges && text <= maxText
}

// between returns the edges inside the part with the boxes at positions from to to-1, and a stub for each group of
// edges to other parts.
func (c *splitter) between(from, to int) ([]edge, []stub) {
	var inner []edge
	var stubs []stub
	known := map[string]int{} // the index of each stub, by tie and far ends

	for p := from; p < to; p++ {
		// An edge to another part ends in a stub. An edge inside is added once, at its lower end.
		var far [ties][]int
		for _, e := range c.ends[p] {
			switch {
			case e.other < from || e.other >= to:
				far[e.tie] = append(far[e.tie], e.other)
			case e.tie < followed:
				inner = append(inner, edge{c.all.boxes[e.other], c.all.boxes[p], tied[e.tie].arrow})
			}
		}

		// Boxes with the same tie to the same far ends share a stub.
		for t, places := range far {
			if len(places) == 0 {
				continue
			}

			slices.Sort(places)
			key := fmt.Sprint(t, places)
			at, ok := known[key]
			if !ok {
				at = len(stubs)
				known[key] = at
				id := tied[t].id + strconv.Itoa(c.all.boxes[p])
				stubs = append(stubs, stub{id: id, tie: tie(t), far: places})
			}

			stubs[at].boxes = append(stubs[at].boxes, c.all.boxes[p])
		}
	}
	return inner, stubs
}

// The limits of a stub's label: the number of named parts, and for each part the number of boxes or ranges of
// consecutive boxes.
const (
	stubParts = 3
	stubBoxes = 6
)

// labelRoom returns an upper bound for the length of the label of a stub for that many boxes. It assumes many parts:
// their number is unknown until all cuts are made.
func labelRoom(boxes int) int {
	return 50 + 40*min(boxes-1, stubParts) + min(10*boxes, 24*stubParts*stubBoxes)
}

// whereabouts returns the label of a stub: the boxes at these positions, by part.
func (c *splitter) whereabouts(t tie, places []int) string {
	var texts []string
	for len(places) > 0 {
		part, n := c.partOf(places[0]), 1
		for n < len(places) && c.partOf(places[n]) == part {
			n++
		}

		if len(texts) == stubParts {
			return lines(strings.Join(texts, "\n"), "and "+count(c.partsOf(places), "more part"))
		}
		texts = append(texts, fmt.Sprintf(tied[t].words, c.named(places[:n]), part))
		places = places[n:]
	}
	return strings.Join(texts, "\n")
}

// partsOf returns the number of parts with boxes at these positions. The positions must be in ascending order.
func (c *splitter) partsOf(places []int) int {
	n, last := 0, 0
	for _, p := range places {
		if part := c.partOf(p); part != last {
			n, last = n+1, part
		}
	}
	return n
}

// partOf returns the number, from 1, of the part with the box at place.
func (c *splitter) partOf(place int) int {
	at, begins := slices.BinarySearch(c.parts, place)
	if begins {
		at++
	}
	return at
}

// named lists the IDs of the boxes at these positions: "n3, n7 to n9 and 2 more".
func (c *splitter) named(places []int) string {
	var list []string
	for len(places) > 0 {
		if len(list) == stubBoxes {
			return strings.Join(list, ", ") + " and " + strconv.Itoa(len(places)) + " more"
		}

		n := 1
		for n < len(places) && c.all.boxes[places[n]] == c.all.boxes[places[n-1]]+1 {
			n++
		}

		// Fewer than three boxes are shorter as a list than as a range.
		name := "n" + strconv.Itoa(c.all.boxes[places[0]])
		if n < 3 {
			n = 1
		} else {
			name += " to n" + strconv.Itoa(c.all.boxes[places[n-1]])
		}
		list = append(list, name)
		places = places[n:]
	}
	return strings.Join(list, ", ")
}

// sheets returns the sheet of each part.
func (c *splitter) sheets() []sheet {
	sheets := make([]sheet, len(c.parts))
	for i, from := range c.parts {
		to := len(c.all.boxes)
		if i+1 < len(c.parts) {
			to = c.parts[i+1]
		}

		inner, stubs := c.between(from, to)
		for j := range stubs {
			stubs[j].label = c.whereabouts(stubs[j].tie, stubs[j].far)
		}

		// The innermost group around all boxes of the part.
		within := c.vertices[c.all.boxes[from]].group
		for within != none && c.groups[within].last < c.all.boxes[to-1] {
			within = c.groups[within].outer
		}

		sheets[i] = sheet{boxes: c.all.boxes[from:to], members: c.all.members, edges: inner, stubs: stubs, within: within}
	}
	return sheets
}
