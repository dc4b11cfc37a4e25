package viz

import (
	"slices"

	"github.com/plait-dev/plait/viz/internal/ink"
)

// The measures of a picture, in pixels.
const (
	margin      = ink.Margin
	gapX        = 24 // between boxes side by side
	gapY        = 28 // between rows
	framePad    = ink.FramePad
	titleHeight = ink.TitleHeight
)

// rowExtent is the position of a row, and the space between it and the next row. From the top, this space holds the
// lower ends of frames, the lanes of edges, and the titles of frames below.
type rowExtent struct {
	y, h  int // of the boxes
	foot  int // pixels for frames with their end below this row
	lanes int // the number of lanes
	head  int // pixels for the titles of frames below
}

// gap returns the distance from the bottom of the row to the top of the next.
func (r rowExtent) gap() int { return r.foot + gapY + max(r.lanes-1, 0)*laneGap + r.head }

// stack assigns a row to each item: below its parents, and below the rooms of its parents.
func (m *plot) stack() {
	m.wrapFans()

	// Inner rooms have higher indexes, so their heights are known here. Rows are counted from the first of the room.
	for i := len(m.rooms) - 1; i >= 0; i-- {
		r := &m.rooms[i]
		for _, k := range r.items {
			it := &m.items[k]
			if len(it.parents) == 0 {
				it.row = it.wrapped
			}
			for _, p := range it.parents {
				it.row = max(it.row, m.items[p].row+1+m.items[p].below+it.wrapped)
			}
			for _, h := range it.hangs {
				it.below = max(it.below, m.rooms[h].rows)
			}
			r.rows = max(r.rows, it.row+1+it.below)
		}

		// Nested frames may end in the same row. Their borders then need room below each other.
		for _, k := range r.items {
			it := &m.items[k]
			for _, h := range it.hangs {
				if it.row+1+m.rooms[h].rows == r.rows {
					r.depth = max(r.depth, 1+m.rooms[h].depth)
				}
			}
		}
	}

	// Then from the top, from the outermost room inwards.
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

// rowBoxes is the maximum number of calls of a fan in one row. A wider fan has several rows.
const rowBoxes = 6

// wrapFans distributes the calls of wide fans over several rows. Calls with a sub-agent stay in the first row, and so
// do all calls of a fan if one of them leads to anything but the results message.
func (m *plot) wrapFans() {
	for i := range m.items {
		kids := m.items[i].kids
		if len(kids) <= rowBoxes || slices.ContainsFunc(kids, func(k int) bool { return !m.wraps(k) }) {
			continue
		}
		m.wrapRows(kids)
	}

	// The picture inside a folded box may hold the calls of a fan alone, without the messages before and after them.
	for _, r := range m.rooms {
		if len(r.items) > rowBoxes && !slices.ContainsFunc(r.items, func(k int) bool { return !m.isAlone(k) }) {
			m.wrapRows(r.items)
		}
	}
}

// wrapRows distributes items over rows of about the same length.
func (m *plot) wrapRows(items []int) {
	rows := (len(items) + rowBoxes - 1) / rowBoxes
	perRow := (len(items) + rows - 1) / rows
	for n, k := range items {
		m.items[k].fan, m.items[k].wrapped = true, n/perRow
	}
}

// isAlone reports whether item k is a call without edges.
func (m *plot) isAlone(k int) bool {
	it := &m.items[k]
	return isCall(m.vertices[it.vertex].node) && len(it.parents) == 0 && len(it.kids) == 0 && len(it.hangs) == 0
}

// wraps reports whether item k is a call that may be in another row than the calls beside it.
func (m *plot) wraps(k int) bool {
	it := &m.items[k]
	return isCall(m.vertices[it.vertex].node) && len(it.parents) == 1 && len(it.hangs) == 0 &&
		(len(it.kids) == 0 || len(it.kids) == 1 && len(m.items[it.kids[0]].parents) > 1)
}

// measureRows computes the height and the position of each row.
func (m *plot) measureRows() {
	for i := range m.items {
		r := &m.rows[m.items[i].row]
		r.h = max(r.h, m.items[i].h)
	}

	// A frame has its title above its first row, and its border below its last.
	for i := range m.rooms[1:] {
		if r := &m.rooms[i+1]; len(r.items) > 0 {
			above, last := &m.rows[r.row-1], &m.rows[r.row+r.rows-1]
			last.foot = max(last.foot, framePad*(1+r.depth))
			above.head = framePad + titleHeight
		}
	}

	y := margin
	if len(m.note) > 0 {
		y += len(m.note)*lineHeight + gapY
	}
	for i := range m.rows {
		m.rows[i].y = y
		y += m.rows[i].h + m.rows[i].gap()
	}
}
