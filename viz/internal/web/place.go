package web

import (
	"strings"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// placed is a picture whose boxes and edges are identified by the keys of their nodes.
type placed struct {
	*viz.Picture
	keys map[node.ID]int
}

func (p placed) key(box int) int { return p.keys[p.Boxes[box].Node.ID()] }

func (p placed) place(i int) Place {
	b := p.Boxes[i]
	return Place{
		Key: p.key(i), N: b.Number, X: b.X, Y: b.Y, W: b.W, H: b.H,
		Style: string(b.Style), Text: strings.Join(b.Lines, "\n"), Head: b.Head, Frame: b.Frame,
	}
}

func (p placed) edge(e viz.Edge) Edge {
	edge := Edge{From: p.key(e.From), To: p.key(e.To), Dashed: e.Dashed}
	for _, at := range e.Points {
		edge.Points = append(edge.Points, at.X, at.Y)
	}
	return edge
}

func (p placed) frames() []Frame {
	var list []Frame
	for _, f := range p.Frames {
		list = append(list, Frame{Title: f.Title, Owner: p.key(f.Owner), Outer: f.Outer, X: f.X, Y: f.Y, W: f.W, H: f.H})
	}
	return list
}
