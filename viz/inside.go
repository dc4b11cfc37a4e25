package viz

import (
	"math"
	"slices"
)

// insidePlans are tried in this order for the picture inside a folded box. In contrast to plans, they do not draw the
// ends of a run and fold its middle: they cut it into pieces of about the same size. A reader then reaches each node in
// few steps. These pictures may have any height: a page opens them one at a time, and scrolls.
var insidePlans = []plan{
	{fans: wideFan, keep: -1},
	{fans: wideFan, depth: 6, keep: -1},
	{fans: wideFan, depth: 3, keep: -1},
	{fans: wideFan, depth: 2, keep: -1},
	{fans: wideFan, depth: 1, keep: -1},
	{fans: wideFan, depth: 2, keep: -1, pieces: 40},
	{fans: wideFan, depth: 1, keep: -1, pieces: 40},
	{keep: -1, pieces: 40, across: true},
	{keep: -1, pieces: 12, across: true},
	{keep: -1, pieces: 6, across: true},
}

// layInside adds the pictures inside the folded boxes of p, the picture of m.
func (m *plot) layInside(l labeller, p *Picture) {
	// Cut out all parts first. The whole is then not needed any more, and neither is a part when its picture is there:
	// the memory of a long conversation is free again.
	parts := make([]*outline, len(p.Boxes))
	for i := range p.Boxes {
		if p.Boxes[i].Node == nil {
			parts[i] = m.part(m.items[i].members)
		}
	}

	for i, part := range parts {
		if part == nil {
			continue
		}

		// The part numbers its vertices anew, so the labels must refer to it.
		l.o, parts[i] = part, nil
		f := part.legible(l, insidePlans, 0, math.MaxInt, part.divide)
		inside := part.plot(f.box)
		inside.label(l, f.cells)
		p.Boxes[i].Inside = inside.picture()
		inside.layInside(l, p.Boxes[i].Inside)
	}
}

// divide is like fold, except for plans that would put everything into a single box, or most of a large part into one:
// then it draws everything. Otherwise a reader of deeply nested conversations would need a step for every few of them.
func (o *outline) divide(p plan) []int {
	box := o.fold(p)
	sizes, largest := make([]int, len(box)), 0
	for _, b := range box {
		sizes[b]++
		largest = max(largest, sizes[b])
	}

	const large = 500
	if countBoxes(box) == 1 || !p.across && len(box) > large && largest > len(box)*3/4 {
		return o.fold(plans[0])
	}
	return box
}

// part returns the outline of some vertices, in ascending order. Edges to others are dropped. A conversation without
// its owner among them becomes part of the one around it.
func (o *outline) part(members []int) *outline {
	at := func(i int) (int, bool) { return slices.BinarySearch(members, i) }
	among := func(all []int) (list []int) {
		for _, i := range all {
			if k, ok := at(i); ok {
				list = append(list, k)
			}
		}
		return list
	}

	p := &outline{full: o.full, vertices: make([]vertex, 0, len(members)), refs: o.refs, waiting: o.waiting}
	groups := map[int]int{none: none}
	for k, i := range members {
		v := o.vertices[i]
		g := o.partGroup(v.group, at, groups, p)
		p.vertices = append(p.vertices, vertex{
			node: v.node, number: v.number, owner: v.owner, head: v.head, group: g, hangs: none,
			parents: among(v.parents), kids: among(v.kids), also: among(v.also), sort: v.sort, grave: v.grave, failed: v.failed,
		})
		if g != none {
			p.groups[g].last = k
		} else if o.several(v.group) {
			p.heads = 2 // any number above 1 means several
		}
	}

	// An inner group ends where the group around it ends, or before.
	for _, g := range slices.Backward(p.groups) {
		if g.outer != none {
			p.groups[g.outer].last = max(p.groups[g.outer].last, g.last)
		}
	}
	p.connect()
	return p
}

// partGroup returns the group of the part p for the vertices of group g, and adds it if it is new. at maps vertices to
// their indexes in the part. groups maps groups to groups of the part. The vertices before those of g must be in the
// part.
func (o *outline) partGroup(g int, at func(int) (int, bool), groups map[int]int, p *outline) int {
	if known, ok := groups[g]; ok {
		return known
	}

	// Collect g and the groups around it, up to the first known one.
	path := []int{g}
	for {
		outer := o.groups[path[len(path)-1]].outer
		if _, ok := groups[outer]; ok {
			break
		}
		path = append(path, outer)
	}

	// Add them from the outermost inwards. Without its owner, a group becomes part of the one around it.
	for _, g := range slices.Backward(path) {
		old := o.groups[g]
		outer := groups[old.outer]
		owner, ok := at(old.owner)
		if !ok {
			groups[g] = outer
			continue
		}

		k := len(p.vertices)
		groups[g] = len(p.groups)
		p.vertices[owner].hangs = groups[g]
		p.groups = append(p.groups, group{title: old.title, owner: owner, outer: outer, first: k, last: k, heads: old.heads})
	}
	return groups[g]
}

// foldPieces cuts the drawn boxes, in reading order, into consecutive pieces, and folds each piece into one box.
func (o *outline) foldPieces(p plan, box []int) {
	drawn := make([][]int, 1+len(o.groups)) // by conversation: the vertices with a box
	index := make([]int, len(box))          // by vertex with a box: its index in drawn
	room := func(i int) int {
		if p.across {
			return 0
		}
		return o.vertices[i].group + 1
	}

	for i, b := range box {
		if i == b {
			index[i] = len(drawn[room(i)])
			drawn[room(i)] = append(drawn[room(i)], i)
		}
	}

	// By conversation and index: the number of edges passing between a box and the one before it. Count the beginnings
	// and ends of edges, then add up.
	passing := make([][]int, len(drawn))
	for r := range drawn {
		passing[r] = make([]int, len(drawn[r])+1)
	}
	o.arrows(func(from, to int, _ string) {
		from, to = box[from], box[to]
		if r := room(from); from < to && r == room(to) {
			passing[r][index[from]+1]++
			passing[r][index[to]+1]--
		}
	})

	for r := range drawn {
		for i := 1; i < len(passing[r]); i++ {
			passing[r][i] += passing[r][i-1]
		}
		if len(drawn[r]) > p.pieces {
			joinPieces(drawn[r], units(passing[r][:len(drawn[r])]), p.pieces, box)
		}
	}
}

// units returns the indexes for cuts of a list of boxes. At most one edge may pass there, as between two turns. passing
// has the number of edges between each box and the one before it. If one turn has more than half of the boxes, it
// returns all indexes.
func units(passing []int) []int {
	var turns, all []int
	longest, last := 0, 0
	for i, n := range passing {
		all = append(all, i)
		if n <= 1 {
			longest, last = max(longest, i-last), i
			turns = append(turns, i)
		}
	}

	if max(longest, len(passing)-last) > len(passing)/2 {
		return all
	}
	return turns
}

// joinPieces folds a list of boxes into at most limit pieces, cut only at the beginnings of units.
func joinPieces(drawn, units []int, limit int, box []int) {
	// The size is a power, not a fraction of the length: the first pieces then stay the same when a run grows at its
	// end.
	size := 1
	for (len(units)+size-1)/size > limit {
		size *= limit / 2
	}

	for from := 0; from < len(units); from += size {
		end := len(drawn)
		if from+size < len(units) {
			end = units[from+size]
		}
		for _, i := range drawn[units[from]:end] {
			box[i] = drawn[units[from]]
		}
	}
}
