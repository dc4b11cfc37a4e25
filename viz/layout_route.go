package viz

// route adds the edges.
func (m *plot) route(p *Picture) {
	for _, e := range m.edges {
		from, to := m.at[e.from], m.at[e.to]
		a, b := &p.Boxes[from], &p.Boxes[to]
		start, end := Point{a.X + a.W/2, a.Y + a.H}, Point{b.X + b.W/2, b.Y}
		turn := m.rows[max(m.items[to].row, 1)-1]
		y := turn.y + turn.h + gapY/2
		line := []Point{start, {start.X, y}, {end.X, y}, end}
		if start.X == end.X {
			line = []Point{start, end}
		}
		p.Edges = append(p.Edges, Edge{From: from, To: to, Points: line, Dashed: e.arrow != "-->"})
	}
}
