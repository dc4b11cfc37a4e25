package viz

import (
	"cmp"
	"math"
	"slices"

	"github.com/plait-dev/plait/internal/safetext"
)

// How a conversation is spread from left to right, when the rows are known:
//
//   - An item dominates every item that can be reached only through it. Each item hangs below its last dominator.
//   - Items below one item may flow into the same merge. They are placed side by side, each in its own column, with the
//     merge centered below them. The result is a list of trees side by side.
//   - One of these trees is the trunk: it continues straight below the item. The others are sides. A side is placed
//     beside the trunk if it ends above the merge of the trunk. Any other side is passed outwards, to the right of the
//     whole tool phase: nothing may come between the calls of a phase and their results message.
//   - The outlines of trunk and side determine their distance, row by row. The tallest tree is the trunk unless another
//     flows into a merge. So each row of an outline is examined once for each trunk beside it.

// spread finds the column of each item.
func (m *plot) spread() {
	// Inner rooms have higher indexes, so their widths are known first.
	s := newSpreader(m)
	for i := len(m.rooms) - 1; i >= 0; i-- {
		s.room(i)
	}
	s.settle()

	m.rooms[0].left += margin
	m.rooms[0].right += margin
	m.rooms[0].x = m.rooms[0].left

	// Columns so far count from the axes of the rooms. Turn them into distances from the left.
	for i := range m.rooms {
		r := &m.rooms[i]
		if r.owner != none {
			r.x += m.items[r.owner].x
		}
		for _, k := range r.items {
			m.items[k].x += r.x
		}
	}
}

// spreader holds the state of spread. Its lists have one entry for each item, preceded by one for a virtual root: entry
// 0 is the root, entry k+1 is item k. An index into these lists is a vertex v.
type spreader struct {
	*plot
	idom   []int   // its immediate dominator: the last of its dominators
	depth  []int   // the number of its dominators
	jump   []int   // a dominator further up; with it, a search for a dominator takes a logarithmic number of steps
	kids   [][]int // the vertices with this idom
	feeds  [][]int // the merges it flows into, among those with the same idom
	direct []bool  // true for a merge with an edge from its idom
	trunk  []int   // the kid on the way to the merge it flows into; flowsOut for a parent of the merge; 0 if unknown
	joins  []int   // the merge it is placed above, or 0
	above  [][]int // the vertices placed above this merge
	blocks []block
	anchor []int // the origin of dx
	dx     []int
	reach  []int // scratch for pack: by row, the right side of everything placed
	lefts  []int // scratch for pack: by row, the left side, or unset
}

const flowsOut = -1

// block is a tree during placement: an item, the branches above it (for a merge), its trunk, and the sides not yet
// placed.
type block struct {
	top, bottom int // the rows it covers
	outline     []segment
	sides       []int // vertices whose own blocks are complete
}

// segment is the outline of a block in a range of rows. The segments of an outline start with the lowest rows.
type segment struct{ from, to, left, right int }

// corridor is the space on either side of a vertical edge, in pixels.
const corridor = 8

func newSpreader(m *plot) *spreader {
	// The lists of integers share one allocation, except dx.
	n := len(m.items) + 1
	ints := make([]int, 6*n)
	next := func() (part []int) { part, ints = ints[:n:n], ints[n:]; return part }

	s := &spreader{
		plot: m, idom: next(), depth: next(), jump: next(), trunk: next(), joins: next(), anchor: next(), dx: make([]int, n),
		kids: make([][]int, n), feeds: make([][]int, n), above: make([][]int, n),
		direct: make([]bool, n), blocks: make([]block, n),
	}

	for i := range m.items {
		s.dominate(i + 1)
	}
	for i := range m.items {
		s.flow(i + 1)
	}
	return s
}

func (s *spreader) item(v int) *item { return &s.items[v-1] }

// dominate finds the dominators of v. The dominators of its parents must be known.
func (s *spreader) dominate(v int) {
	// The immediate dominator is the last common dominator of all parents. Without parents, it is the root.
	parents, d := s.item(v).parents, 0
	for i, p := range parents {
		if i == 0 {
			d = p + 1
		} else {
			d = s.common(d, p+1)
		}
	}

	s.idom[v], s.depth[v], s.jump[v] = d, s.depth[d]+1, d

	// Two jumps of the same length become one of twice the length.
	if j := s.jump[d]; s.depth[d]-s.depth[j] == s.depth[j]-s.depth[s.jump[j]] {
		s.jump[v] = s.jump[j]
	}

	if d > 0 {
		s.kids[d] = append(s.kids[d], v)
	}
}

// common returns the last common dominator of a and b. Here a vertex also counts as its own dominator.
func (s *spreader) common(a, b int) int {
	if s.depth[a] > s.depth[b] {
		a = s.up(a, s.depth[b])
	} else {
		b = s.up(b, s.depth[a])
	}

	for a != b {
		if s.jump[a] != s.jump[b] {
			a, b = s.jump[a], s.jump[b]
		} else {
			a, b = s.idom[a], s.idom[b]
		}
	}
	return a
}

// up returns the dominator of v at that depth.
func (s *spreader) up(v, depth int) int {
	for s.depth[v] > depth {
		if s.depth[s.jump[v]] >= depth {
			v = s.jump[v]
		} else {
			v = s.idom[v]
		}
	}
	return v
}

// flow records the vertices that flow into v if v is a merge, and the way there.
func (s *spreader) flow(v int) {
	parents, d := s.item(v).parents, s.idom[v]
	if len(parents) < 2 {
		return
	}

	for _, p := range parents {
		u := p + 1
		if u == d {
			s.direct[v] = true
			continue
		}

		// Find the kid of d on the way to p: a dominator of p, or p itself.
		x := s.up(u, s.depth[d]+1)
		if n := len(s.feeds[x]); n == 0 || s.feeds[x][n-1] != v {
			s.feeds[x] = append(s.feeds[x], v)
		}

		// Mark the way from x down to the merge. At a vertex with a marked way, the rest is known.
		if s.trunk[u] == 0 {
			s.trunk[u] = flowsOut
		}
		for ; u != x && s.trunk[s.idom[u]] == 0; u = s.idom[u] {
			s.trunk[s.idom[u]] = u
		}
	}
}

// room places the items of a room around its axis. Rooms inside it are placed beside the items they belong to.
func (s *spreader) room(i int) {
	r := &s.rooms[i]
	var roots []int
	for _, k := range slices.Backward(r.items) {
		s.place(k + 1)
		if s.idom[k+1] == 0 {
			roots = append(roots, k+1)
		}
	}
	if len(roots) == 0 {
		return
	}

	// The tallest tree is the main line, on the axis. The others go to its right.
	slices.Reverse(roots)
	trees := s.trees(roots)
	main := s.tallest(trees)
	b := &s.blocks[main]

	for _, t := range trees {
		b.top = min(b.top, s.blocks[t].top)
		if t != main {
			b.sides = append(b.sides, s.rigid(t))
		}
	}

	s.rigid(main)
	for _, seg := range b.outline {
		r.left, r.right = max(r.left, -seg.left), max(r.right, seg.right)
	}

	// The frame needs room for its border and its title.
	if r.owner != none {
		r.left += framePad
		r.right = max(r.right+framePad, titleWidth(s.groups[i-1].title)-r.left)
	}
}

// titleWidth returns the minimum width of a frame with that title.
func titleWidth(title string) int { return textWidth(safetext.Width(title)) + 2*framePad }

// place builds the block of v. The blocks of the vertices it dominates must be complete.
func (s *spreader) place(v int) {
	it := s.item(v)
	foot := s.hang(v)
	b := block{top: it.row, bottom: it.row + it.below}

	// If v flows into a merge, the trunk leads there.
	trees := s.trees(s.kids[v])
	main := 0
	switch to := s.trunk[v]; {
	case to > 0:
		main = s.treeOf(to)
	case to != flowsOut:
		main = s.tallest(trees)
	}

	// The block of the trunk becomes part of this one. Below v, only the edge to a distant trunk takes room.
	if main != 0 {
		below := &s.blocks[main]
		b.outline, b.sides, b.bottom = below.outline, below.sides, below.bottom
		below.outline, below.sides = nil, nil
		s.anchor[main] = v

		if below.top > it.row+it.below+1 {
			b.outline = append(b.outline, segment{it.row + it.below + 1, below.top - 1, -corridor, corridor})
		}
	}

	for _, t := range trees {
		if t != main {
			b.sides = append(b.sides, s.rigid(t))
		}
	}

	// The lowest rows come first, so the rooms that hang on v and then v itself are the last segments.
	if it.below > 0 {
		b.outline = append(b.outline, segment{it.row + 1, it.row + it.below, -corridor, foot})
	}
	b.outline = append(b.outline, segment{it.row, it.row, -it.w / 2, it.w / 2})
	s.blocks[v] = b
}

// hang places the rooms of v to the right of its axis, past the edge down to the next item. It returns how far right
// they extend.
func (s *spreader) hang(v int) int {
	right := 0
	for _, h := range s.item(v).hangs {
		r := &s.rooms[h]
		r.x = right + corridor + gapX/2 + r.left
		right = r.x + r.right
	}
	return right
}

// trees groups the kids of one item by the merge they flow into. It returns the last merge of each resulting tree; a
// kid without a merge is a tree of its own.
func (s *spreader) trees(kids []int) []int {
	if len(kids) < 2 {
		return kids
	}

	// From top to bottom: all branches above a merge must be known before the merge.
	byRow := slices.Clone(kids)
	slices.SortStableFunc(byRow, func(a, b int) int { return cmp.Compare(s.item(a).row, s.item(b).row) })

	var left []int
	for _, x := range byRow {
		if len(s.above[x]) > 0 {
			s.fan(x)
		}

		to := 0
		for _, m := range s.feeds[x] {
			if row := s.item(m).row; row > s.blocks[x].bottom && (to == 0 || row < s.item(to).row) {
				to = m
			}
		}

		if to == 0 {
			left = append(left, x)
			continue
		}

		s.joins[x] = to
		s.above[to] = append(s.above[to], x)
	}
	return left
}

// treeOf returns the tree that contains a kid.
func (s *spreader) treeOf(kid int) int {
	for s.joins[kid] != 0 {
		kid = s.joins[kid]
	}
	return kid
}

// tallest returns the tree that extends to the lowest row, the first of several; 0 if there are none.
func (s *spreader) tallest(trees []int) int {
	best := 0
	for _, t := range trees {
		this, other := s.blocks[t].bottom, s.blocks[best].bottom
		if best == 0 || this > other || this == other && t < best {
			best = t
		}
	}
	return best
}

// fan places the branches of the merge m side by side above it.
func (s *spreader) fan(m int) {
	branches := s.above[m]
	slices.Sort(branches)
	b, row := &s.blocks[m], s.item(m).row

	// The calls of a wide fan are in several rows. Calls below each other share a column.
	columns := len(branches)
	for i, x := range branches {
		if s.item(x).wrapped > 0 {
			columns = i
			break
		}
	}

	lefts, rights := s.gather(m, branches, columns)
	first, last, right := s.placeColumns(m, branches, lefts, rights)

	// The merge is in the middle. If the axis of a branch is close by, the merge takes it, for a straight edge.
	axis := (first + last) / 2
	for _, x := range branches {
		if off := s.dx[x] - axis; -gapX < off && off < gapX {
			axis = s.dx[x]
			break
		}
	}

	for _, x := range branches {
		s.dx[x] -= axis
	}
	b.outline = append(b.outline, segment{b.top, row - 1, -axis, right - gapX - axis})
}

// gather packs the branches above the merge m. It returns how far the columns extend to either side of their axes.
func (s *spreader) gather(m int, branches []int, columns int) (lefts, rights []int) {
	b, row := &s.blocks[m], s.item(m).row
	lefts, rights = make([]int, columns), make([]int, columns)
	for i, x := range branches {
		in := &s.blocks[x]

		// The merge takes over each side that does not end above it.
		fit := func(side int) bool { return s.blocks[side].bottom < row }
		late := slices.IndexFunc(in.sides, func(t int) bool { return !fit(t) })
		if late >= 0 {
			var early []int
			for _, t := range in.sides {
				if fit(t) {
					early = append(early, t)
				} else {
					b.sides = append(b.sides, t)
				}
			}
			in.sides = early
		}

		s.pack(x, row-1)
		l, r := extent(in.outline)
		lefts[i%columns], rights[i%columns] = max(lefts[i%columns], l), max(rights[i%columns], r)
		b.top = min(b.top, in.top)
		in.outline, in.sides = nil, nil
	}
	return lefts, rights
}

// placeColumns places the columns of branches side by side. It returns the axes of the first and the last column, and
// the right side of everything.
func (s *spreader) placeColumns(m int, branches, lefts, rights []int) (first, last, right int) {
	if s.direct[m] {
		right = 2*corridor + gapX
	}

	first = corridor
	columns := len(lefts)
	for c := range columns {
		last = right + lefts[c]
		if c == 0 && !s.direct[m] {
			first = last
		}
		for i := c; i < len(branches); i += columns {
			s.anchor[branches[i]], s.dx[branches[i]] = m, last
		}
		right += lefts[c] + rights[c] + gapX
	}
	return first, last, right
}

// extent returns how far an outline extends to either side of its axis.
func extent(outline []segment) (left, right int) {
	for _, seg := range outline {
		left, right = max(left, -seg.left), max(right, seg.right)
	}
	return left, right
}

// rigid places all sides of a block beside it, and returns the block.
func (s *spreader) rigid(t int) int {
	s.pack(t, 0)
	return t
}

// pack places the sides of block t to the right of it. Sides that begin further down are placed nearer: the edges to
// the others pass above them. An edge runs down on the axis of the block, from its end to row until.
func (s *spreader) pack(t, until int) {
	b := &s.blocks[t]
	if len(b.sides) == 0 {
		return
	}
	slices.SortFunc(b.sides, func(x, y int) int {
		return cmp.Or(-cmp.Compare(s.blocks[x].top, s.blocks[y].top), cmp.Compare(x, y))
	})

	left, _ := extent(b.outline)
	bottom := max(b.bottom, until)
	for _, x := range b.sides {
		bottom = max(bottom, s.blocks[x].bottom)
	}

	// Fill in the extent of each row from b.top: first the edge below the block, then the block. In an empty row, a
	// side may extend as far left as the block.
	n := bottom - b.top + 1
	s.reach, s.lefts = slices.Grow(s.reach[:0], n)[:n], slices.Grow(s.lefts[:0], n)[:n]
	for i := range n {
		s.reach[i], s.lefts[i] = -left-gapX, unset
		if row := b.top + i; row > b.bottom && row <= until {
			s.reach[i], s.lefts[i] = corridor, -corridor
		}
	}

	for _, seg := range b.outline {
		for i := seg.from - b.top; i <= seg.to-b.top; i++ {
			s.reach[i], s.lefts[i] = seg.right, seg.left
		}
	}

	for _, x := range b.sides {
		s.beside(t, x)
	}

	// The sides are part of the block from now on.
	b.bottom, b.sides = bottom, nil
	b.outline = s.outlined(b.top, n, b.outline[:0])
}

// unset is the left side of a row without boxes.
const unset = math.MaxInt

// beside places side x of block t as far to the left as possible.
func (s *spreader) beside(t, x int) {
	b, side := &s.blocks[t], &s.blocks[x]

	// In each of its rows, the side must clear everything placed there.
	at := math.MinInt
	for _, seg := range side.outline {
		for i := seg.from - b.top; i <= seg.to-b.top; i++ {
			at = max(at, s.reach[i]-seg.left)
		}
	}
	at += gapX

	for _, seg := range side.outline {
		for i := seg.from - b.top; i <= seg.to-b.top; i++ {
			s.reach[i], s.lefts[i] = at+seg.right, min(s.lefts[i], at+seg.left)
		}
	}

	s.anchor[x], s.dx[x] = t, at
	side.outline = nil
}

// outlined appends the n rows from top, as filled by pack, to the outline to.
func (s *spreader) outlined(top, n int, to []segment) []segment {
	for i := n - 1; i >= 0; i-- {
		if s.lefts[i] == unset {
			continue
		}
		// Equal rows share a segment.
		if k := len(to) - 1; k >= 0 && to[k].left == s.lefts[i] && to[k].right == s.reach[i] && to[k].from == top+i+1 {
			to[k].from--
			continue
		}

		to = append(to, segment{top + i, top + i, s.lefts[i], s.reach[i]})
	}
	return to
}

// settle turns the distances from anchors into distances from the axes of the rooms.
func (s *spreader) settle() {
	done := make([]bool, len(s.anchor))
	done[0] = true

	// A vertex needs its anchor first. The stack avoids deep recursion in long conversations.
	var stack []int
	for v := range s.anchor {
		for ; !done[v]; v = s.anchor[v] {
			stack = append(stack, v)
		}

		for _, u := range slices.Backward(stack) {
			done[u] = true
			s.dx[u] += s.dx[s.anchor[u]]
			s.item(u).x = s.dx[u]
		}

		stack = stack[:0]
	}
}
