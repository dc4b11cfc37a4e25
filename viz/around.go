package viz

import "slices"

// where says how what is left out of a drawing stands to what is drawn.
type where string

const (
	before where = "before" // something that is drawn follows it
	after  where = "after"  // it follows something that is drawn, and nothing drawn follows it
	beside where = "beside" // neither
)

// leftOut is a vertex that a drawing around another leaves out.
type leftOut struct {
	box   int // the vertex whose id the box has that stands for it; none for a vertex that is drawn
	where where
}

// lookAt leaves out of the drawing all but the vertex at focus and what is at most that many edges before or after it. What is left out
// becomes a box for each piece that hangs together.
func (o *outline) lookAt(focus, steps int) {
	up, down := o.neighbours()
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
	levels := o.levels()
	for i := range o.left {
		if o.left[i].where != "" && o.left[i].box == none {
			o.gather(i, levels, up, down)
		}
	}
}

// gather gives one box to all that hangs together with vertex i and stands as it does to what is drawn. The box lies in the
// outermost conversation of them.
func (o *outline) gather(i int, levels []int, up, down [][]int) {
	piece := []int{i}
	o.left[i].box = i
	level := func(v int) int {
		if g := o.vertices[v].group; g != none {
			return levels[g]
		}
		return 1
	}
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

// neighbours returns of each vertex those with an edge to it, and those that it has an edge to.
func (o *outline) neighbours() (up, down [][]int) {
	up, down = make([][]int, len(o.vertices)), make([][]int, len(o.vertices))
	o.arrows(func(from, to int, _ string) {
		up[to] = append(up[to], from)
		down[from] = append(down[from], to)
	})
	return up, down
}

// reached reports of each vertex whether it is at most that many steps from one of those given.
func reached(from []int, next [][]int, steps int) []bool {
	seen := make([]bool, len(next))
	for _, i := range from {
		seen[i] = true
	}
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

// levels returns of each group how many conversations it is inside of, itself counted; the outermost conversation has level 1.
func (o *outline) levels() []int {
	levels := make([]int, len(o.groups))
	for i, g := range o.groups { // an outer group has a lower number than the groups in it
		levels[i] = 2
		if g.outer != none {
			levels[i] = levels[g.outer] + 1
		}
	}
	return levels
}

// isLeftOut reports whether vertex i is left out of a drawing around another.
func (o *outline) isLeftOut(i int) bool { return o.left != nil && o.left[i].where != "" }
