package viz

import "github.com/plait-dev/plait/internal/cells"

// The measures of a picture, in pixels.
const (
	margin      = 16 // around the whole
	gapX        = 24 // between boxes side by side
	gapY        = 28 // between rows
	framePad    = 12 // between a frame and what is in it
	titleHeight = 20 // of a frame, above what is in it
)

// rowExtent is where a row is: the tops of its boxes, the height of the highest, and the room to the next row.
type rowExtent struct{ y, h, gap int }

// stack finds the row of each item: below its parents, and below the conversations that hang on them.
func (m *plot) stack() {
	for i := len(m.rooms) - 1; i >= 0; i-- { // a room comes before those in it
		r := &m.rooms[i]
		for _, k := range r.items {
			it := &m.items[k]
			for _, p := range it.parents {
				it.row = max(it.row, m.items[p].row+1+m.items[p].below)
			}
			for _, h := range it.hangs {
				it.below = max(it.below, m.rooms[h].rows)
			}
			r.rows = max(r.rows, it.row+1+it.below)
		}
		for _, k := range r.items {
			it := &m.items[k]
			for _, h := range it.hangs {
				if it.row+1+m.rooms[h].rows == r.rows {
					r.depth = max(r.depth, 1+m.rooms[h].depth)
				}
			}
		}
	}
	for i := range m.rooms {
		r := &m.rooms[i]
		if r.owner != none {
			r.row = m.items[r.owner].row + 1
		}
		for _, k := range r.items {
			m.items[k].row += r.row
		}
	}
}

// measureRows finds out how high each row is, and how far apart they are.
func (m *plot) measureRows() {
	m.rows = make([]rowExtent, max(m.rooms[0].rows, 1))
	for i := range m.items {
		r := &m.rows[m.items[i].row]
		r.h = max(r.h, m.items[i].h)
	}
	for i := range m.rooms[1:] {
		if r := &m.rooms[i+1]; len(r.items) > 0 {
			above, last := &m.rows[r.row-1], &m.rows[r.row+r.rows-1]
			last.gap = max(last.gap, framePad*(1+r.depth))
			above.y = framePad + titleHeight
		}
	}
	y := margin
	for i := range m.rows {
		r := &m.rows[i]
		r.gap += gapY + r.y
		r.y = y
		y += r.h + r.gap
	}
	m.rows[len(m.rows)-1].gap += margin - gapY
}

// spread finds out where each item is from left to right.
func (m *plot) spread() {
	for i := len(m.rooms) - 1; i >= 0; i-- {
		m.spreadRoom(i)
	}
	m.rooms[0].left += margin
	m.rooms[0].right += margin
	m.rooms[0].x = m.rooms[0].left
	for i := range m.rooms {
		r := &m.rooms[i]
		if r.owner != none {
			r.x += m.rooms[m.items[r.owner].room].x
		}
		for _, k := range r.items {
			m.items[k].x += r.x
		}
	}
}

func (m *plot) spreadRoom(i int) {
	r := &m.rooms[i]
	width := make([]int, r.rows)
	for _, k := range r.items {
		it := &m.items[k]
		width[it.row-r.row] += it.w + gapX
	}
	next := make([]int, r.rows)
	for i, w := range width {
		next[i] = -(w - gapX) / 4 * 2
		r.left = max(r.left, -next[i])
		r.right = max(r.right, w)
	}
	free := make([]int, r.rows)
	for i := range free {
		free[i] = r.right + gapX
	}
	for _, k := range r.items {
		it := &m.items[k]
		at := &next[it.row-r.row]
		it.x = *at + it.w/2
		*at += it.w + gapX
		for _, h := range it.hangs {
			in := &m.rooms[h]
			rows, x := free[in.row-r.row:][:in.rows], 0
			for _, f := range rows {
				x = max(x, f)
			}
			in.x = x + in.left
			for j := range rows {
				rows[j] = x + in.left + in.right + gapX
			}
			r.right = max(r.right, x+in.left+in.right)
		}
	}
	if r.owner != none {
		r.left += framePad
		r.right = max(r.right+framePad, textWidth(cells.Of(m.groups[i-1].title))+2*framePad-r.left)
	}
}
