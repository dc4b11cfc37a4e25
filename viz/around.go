package viz

import "slices"

// where is the position of a left-out vertex relative to the drawn vertices.
type where string

const (
	before where = "before" // a drawn vertex follows it
	after  where = "after"  // it follows a drawn vertex, and no drawn vertex follows it
	beside where = "beside" // neither
)

// leftOut is the state of one vertex in a drawing around another vertex.
type leftOut struct {
	box   int   // the vertex with the ID of this one's box; none if this vertex is drawn
	where where // empty if the vertex is drawn
}

// lookAt restricts the drawing to the vertex at focus and the vertices at most steps edges before or after it. The
// vertices left out are gathered into one box for each connected piece.
func (o *outline) lookAt(focus, steps int) {
	up, down := o.neighbors()

	// Walk up and down separately: a walk in both directions would also reach branches beside the focus.
	drawn := reached([]int{focus}, up, steps)
	for i, ok := range reached([]int{focus}, down, steps) {
		drawn[i] = drawn[i] || ok
	}
	var all []int
	for i, ok := range drawn {
		if ok {
			all = append(all, i)
		}
	}

	// Find the vertices before and after the drawn ones.
	everything := len(o.vertices)
	above, below := reached(all, up, everything), reached(all, down, everything)

	o.focus, o.left = focus, make([]leftOut, len(o.vertices))
	for i := range o.left {
		switch {
		case drawn[i]:
			o.left[i] = leftOut{box: none}
		case above[i]:
			o.left[i] = leftOut{none, before}
		case below[i]:
			o.left[i] = leftOut{none, after}
		default:
			o.left[i] = leftOut{none, beside}
		}
	}

	// Each piece gets its box when its first vertex is met.
	levels := o.levels()
	for i := range o.left {
		if o.left[i].where != "" && o.left[i].box == none {
			o.gather(i, levels, up, down)
		}
	}
}

// gather gives one box to vertex i and all vertices connected with it at the same position. The box belongs to the
// outermost conversation among them.
func (o *outline) gather(i int, levels []int, up, down [][]int) {
	piece := []int{i}
	o.left[i].box = i

	level := func(v int) int {
		if g := o.vertices[v].group; g != none {
			return levels[g]
		}
		return 1
	}

	// The piece grows during the walk: a breadth-first search.
	box := i
	for at := 0; at < len(piece); at++ {
		v := piece[at]
		if level(v) < level(box) || level(v) == level(box) && v < box {
			box = v
		}

		for _, near := range [][]int{up[v], down[v]} {
			for _, n := range near {
				if o.left[n].box == none && o.left[n].where == o.left[i].where {
					o.left[n].box = i
					piece = append(piece, n)
				}
			}
		}
	}

	for _, v := range piece {
		o.left[v].box = box
	}
}

// neighbors returns, for each vertex, the vertices with an edge to it and the vertices it has an edge to.
func (o *outline) neighbors() (up, down [][]int) {
	up, down = make([][]int, len(o.vertices)), make([][]int, len(o.vertices))
	o.arrows(func(from, to int, _ string) {
		up[to] = append(up[to], from)
		down[from] = append(down[from], to)
	})
	return up, down
}

// reached reports, for each vertex, whether it is at most steps edges from a vertex in from.
func reached(from []int, next [][]int, steps int) []bool {
	seen := make([]bool, len(next))
	for _, i := range from {
		seen[i] = true
	}

	// Each ring is one step further out.
	for ring := slices.Clone(from); len(ring) > 0 && steps > 0; steps-- {
		var wider []int
		for _, i := range ring {
			for _, n := range next[i] {
				if !seen[n] {
					seen[n] = true
					wider = append(wider, n)
				}
			}
		}
		ring = wider
	}
	return seen
}

// levels returns the nesting level of each group. The outermost conversation has level 1, so a group has 2 or more.
func (o *outline) levels() []int {
	levels := make([]int, len(o.groups))
	for i, g := range o.groups { // an outer group precedes the groups in it
		levels[i] = 2
		if g.outer != none {
			levels[i] = levels[g.outer] + 1
		}
	}
	return levels
}

// isLeftOut reports whether vertex i is left out of a drawing around another.
func (o *outline) isLeftOut(i int) bool { return o.left != nil && o.left[i].where != "" }
