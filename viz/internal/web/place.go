package web

import (
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// picture is a conversation laid out.
type picture struct {
	Width, Height int
	Boxes         []box
	Edges         []line
	Frames        []Frame
}

type box struct {
	Node               *node.Node
	Number, X, Y, W, H int
	Style, Text        string
	Head, Frame        int
}

type line struct {
	From, To int
	Points   []int
}

const (
	boxWidth  = 200
	boxHeight = 48
)

func layout(d dag.DAG) (*picture, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	pic := &picture{Width: boxWidth + 40}
	at := map[node.ID]int{}
	for i, n := range d.WithChildren() {
		at[n.ID()] = i
		b := box{Node: n, Number: i, X: 20, Y: 20 + i*2*boxHeight, W: boxWidth, H: boxHeight, Style: "aside", Text: n.Kind(), Frame: -1}
		if m, ok := n.Message(); ok {
			b.Style, b.Text = string(m.Role), string(m.Role)+"\n"+m.Blocks.Text()
		}
		if e, ok := n.Payload().(node.ToolExecution); ok && e.IsError {
			b.Style = "failed"
		}
		pic.Boxes = append(pic.Boxes, b)
		for _, p := range n.Parents() {
			from := pic.Boxes[at[p.ID()]]
			pic.Edges = append(pic.Edges, line{at[p.ID()], i, []int{from.X + from.W/2, from.Y + from.H, b.X + b.W/2, b.Y}})
		}
		pic.Height = b.Y + 2*boxHeight
	}
	for i, h := range d.Heads() {
		pic.Boxes[at[h.ID()]].Head = i + 1
	}
	return pic, nil
}

func placeOf(b box, key int) Place {
	return Place{Key: key, N: b.Number, X: b.X, Y: b.Y, W: b.W, H: b.H, Style: b.Style, Text: b.Text, Head: b.Head, Frame: b.Frame}
}

func edgeOf(pic *picture, e line, keys map[node.ID]int) Edge {
	return Edge{From: keys[pic.Boxes[e.From].Node.ID()], To: keys[pic.Boxes[e.To].Node.ID()], Points: e.Points}
}

func framesOf(pic *picture, keys map[node.ID]int) []Frame { return pic.Frames }
