package viz

import (
	"cmp"
	"slices"
	"sort"
)

// How edges run:
//
//   - An edge leaves the middle of a box downwards, follows a lane between two rows, and enters the middle of a box from above.
//   - All edges out of a box share a lane, and so do all edges into a merge. Other edges that would overlap get another lane.
//   - An edge over several rows has two lanes, and between them a channel free of boxes.

// way is the course of an edge.
type way struct {
	from, to int // items
	channel  int // the x of its vertical part
	out, in  int // the lane below from and the lane above to, as indexes in router.lanes; none without a turn
}

// lane is a horizontal piece of one or more edges.
type lane struct {
	gap         int // the row above it; -1 for the gap above the first row
	key         int // edges with the same key and gap share a lane
	left, right int
	place       int // its index in the gap, from the top
}

const (
	laneGap  = 8  // between lanes
	maxLanes = 12 // between two rows; more share the last
	clear    = 10 // the distance of an edge from the boxes it passes
)

// router finds the ways of all edges, once items have rows and columns.
type router struct {
	*plot
	ways   []way
	lanes  []lane
	rowOf  [][]int // by row: its items, from left to right
	budget int     // the number of rows that the search for channels may still examine
}

// channels finds the ways and lanes of all edges, and the number of lanes in each gap.
func (m *plot) channels() *router {
	r := &router{plot: m, rowOf: make([][]int, len(m.rows)), budget: 64*len(m.items) + 1024}
	r.lanes = make([]lane, 0, len(m.edges))

	for k := range m.items {
		row := m.items[k].row
		r.rowOf[row] = append(r.rowOf[row], k)
	}

	// From left to right: free searches a row by x.
	for _, row := range r.rowOf {
		slices.SortFunc(row, func(a, b int) int { return cmp.Compare(m.items[a].x, m.items[b].x) })
	}

	r.ways = make([]way, len(m.edges))
	for i, e := range m.edges {
		r.ways[i] = r.way(m.at[e.from], m.at[e.to], e.arrow != "-->")
	}

	// The place of a lane depends on all others in its gap, so places come last.
	r.assign()
	return r
}

// way finds the course of an edge. Its lanes have no places yet.
func (r *router) way(from, to int, dashed bool) way {
	a, b := &r.items[from], &r.items[to]
	w := way{from: from, to: to, out: none, in: none}

	above := b.row - 1
	switch {
	// To the next row. Edges into a merge meet above it; other edges part below their source.
	case above == a.row:
		if a.x == b.x {
			w.channel = a.x
		} else if len(b.parents) > 1 && len(b.parents) >= len(a.kids) && !dashed {
			w.channel, w.in = a.x, r.lane(above, -to-1, a.x, b.x)
		} else {
			w.channel, w.out = b.x, r.lane(a.row, bus(from, dashed), a.x, b.x)
		}
		return w
	// Upwards: only nodes of several conversations have such edges.
	case above < a.row:
		w.channel = r.nearest(a.x, b.x, b.row, a.row)
	default:
		w.channel = r.channel(a, b)
	}

	// The calls in a row of a wrapped fan share a lane above and one below them.
	out, in := bus(from, dashed), -to-1
	if a.fan && !dashed {
		out = -to - 1
	}
	if b.fan && !dashed {
		in = bus(from, dashed)
	}

	if w.channel != a.x {
		w.out = r.lane(a.row, out, a.x, w.channel)
	}
	if w.channel != b.x {
		w.in = r.lane(above, in, w.channel, b.x)
	}
	return w
}

// bus returns the key of the lanes out of an item. Lanes into an item have negative keys.
func bus(item int, dashed bool) int {
	if dashed {
		return 2*item + 1
	}
	return 2 * item
}

func (r *router) lane(gap, key, x1, x2 int) int {
	r.lanes = append(r.lanes, lane{gap: gap, key: key, left: min(x1, x2), right: max(x1, x2)})
	return len(r.lanes) - 1
}

// channel returns an x for the way of an edge down from a to b, past the boxes in the rows between them.
func (r *router) channel(a, b *item) int {
	first, last := a.row+1, b.row-1
	for _, x := range []int{a.x, b.x} {
		if _, free := r.free(x, first, last); free {
			return x
		}
	}
	return r.nearest(a.x, b.x, first, last)
}

// nearest returns an x near from and to, for an edge past the boxes in these rows.
func (r *router) nearest(from, to, first, last int) int {
	left, right := r.aside(from, first, last, -1), r.aside(from, first, last, 1)
	far := func(x int) int { return max(x-from, from-x) + max(x-to, to-x) }
	if far(left) < far(right) {
		return left
	}
	return right
}

// aside moves from x to one side, past all boxes in the rows, and returns the free x.
func (r *router) aside(x, first, last, side int) int {
	for {
		k, free := r.free(x, first, last)
		if free {
			return x
		}
		x = r.items[k].x + side*(r.items[k].w/2+clear)
	}
}

// free reports whether an edge can run down at x from row first to row last. If not, it returns the item in the way.
func (r *router) free(x, first, last int) (inTheWay int, ok bool) {
	for row := first; row <= last; row++ {
		if r.budget--; r.budget < 0 {
			return none, true // give up: a box in the way is drawn over the edge
		}

		// Find the first item with its right side beyond x.
		list := r.rowOf[row]
		i := sort.Search(len(list), func(i int) bool { it := &r.items[list[i]]; return it.x+it.w/2+clear > x })
		if i < len(list) && r.items[list[i]].x-r.items[list[i]].w/2-clear < x {
			return list[i], false
		}
	}
	return none, true
}

// assign gives each lane a place in its gap without overlap, and counts the places of each gap.
func (r *router) assign() {
	order := make([]int, len(r.lanes))
	for i := range order {
		order[i] = i
	}

	// Sort lanes with the same gap and key next to each other. The index makes the order reproducible.
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.lanes[a].gap, r.lanes[b].gap), cmp.Compare(r.lanes[a].key, r.lanes[b].key), cmp.Compare(a, b))
	})

	// Lanes with the same gap and key become one lane across all of them.
	same := func(a, b int) bool { return r.lanes[a].gap == r.lanes[b].gap && r.lanes[a].key == r.lanes[b].key }
	var shared [][]int // the lanes of each merged lane
	for from := 0; from < len(order); {
		to := from + 1
		l := &r.lanes[order[from]]
		for ; to < len(order) && same(order[from], order[to]); to++ {
			l.left, l.right = min(l.left, r.lanes[order[to]].left), max(l.right, r.lanes[order[to]].right)
		}

		shared = append(shared, order[from:to])
		from = to
	}

	// Within each gap, from left to right.
	slices.SortFunc(shared, func(a, b []int) int {
		x, y := &r.lanes[a[0]], &r.lanes[b[0]]
		return cmp.Or(cmp.Compare(x.gap, y.gap), cmp.Compare(x.left, y.left), cmp.Compare(x.right, y.right), cmp.Compare(x.key, y.key))
	})

	// Each lane gets the first free place: the lane before it there has ended. Beyond maxLanes, the last place is
	// shared.
	var ends []int // by place in the gap: the right end of its last lane
	for i, s := range shared {
		l := &r.lanes[s[0]]
		if i == 0 || l.gap != r.lanes[shared[i-1][0]].gap {
			ends = ends[:0]
		}

		place := slices.IndexFunc(ends, func(end int) bool { return end < l.left })
		switch {
		case place >= 0:
			ends[place] = l.right
		case len(ends) < maxLanes:
			place, ends = len(ends), append(ends, l.right)
		default:
			place = maxLanes - 1
			ends[place] = max(ends[place], l.right)
		}

		for _, k := range s {
			r.lanes[k].place = place
		}

		if l.gap >= 0 {
			r.rows[l.gap].lanes = max(r.rows[l.gap].lanes, place+1)
		}
	}
}

// draw adds the edges to a picture, once the rows have their positions.
func (r *router) draw(p *Picture) {
	// All edges share one array. Each gets a slice without spare capacity: appending to it then changes no other edge.
	points := make([]Point, 0, 4*len(r.ways))
	for i, w := range r.ways {
		a, b := &p.Boxes[w.from], &p.Boxes[w.to]
		x, end := a.X+a.W/2, b.X+b.W/2
		first := len(points)
		points = append(points, Point{x, a.Y + a.H})

		if w.out != none {
			y := r.laneY(w.out)
			points = append(points, Point{x, y}, Point{w.channel, y})
		}
		if w.in != none {
			y := r.laneY(w.in)
			points = append(points, Point{w.channel, y}, Point{end, y})
		}

		points = append(points, Point{end, b.Y})
		p.Edges = append(p.Edges, Edge{
			From: w.from, To: w.to, Points: points[first:len(points):len(points)], Dashed: r.edges[i].arrow != "-->",
		})
	}
}

func (r *router) laneY(k int) int {
	if r.lanes[k].gap < 0 {
		return r.rows[0].y - margin/2 // above the first row
	}
	row := &r.rows[r.lanes[k].gap]
	return row.y + row.h + row.foot + gapY/2 + r.lanes[k].place*laneGap
}
