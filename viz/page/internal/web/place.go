package web

import (
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// view is a conversation as a page shows it: the first picture of the page, and the pictures inside its folded boxes.
// Boxes and edges are identified by keys. A view never changes.
type view struct {
	d        dag.DAG
	nodes    []shownNode     // in reading order: the index is the node's number
	index    map[node.ID]int // in nodes
	folds    []Fold          // a folded box precedes those inside it
	foldKeys map[[2]int]int  // by the key of the first node in the box, and the height of the picture inside
	edges    []Edge
	frames   []Frame
	owners   []int // by index of a frame: the number of the node with that conversation
	rooms    []Room

	width, height int
	note          string
	heads         []int
	refs          []Ref
	problems      []Problem
	totals        []Total
}

// shownNode is a node on the page.
type shownNode struct {
	node  *node.Node
	place Place
}

// key returns the key of a node, and whether the page has the node.
func (v *view) key(id node.ID) (int, bool) {
	i, ok := v.index[id]
	if !ok {
		return 0, false
	}
	return v.nodes[i].place.Key, true
}

// keysOf returns the keys of nodes, without those that are not drawn.
func (v *view) keysOf(nodes []*node.Node) []int {
	var list []int
	for _, n := range nodes {
		if k, ok := v.key(n.ID()); ok {
			list = append(list, k)
		}
	}
	return list
}

// take sets the nodes of a picture and of those inside it. It returns, by number of a node, the number of the node with
// the conversation around it, or -1.
func (v *view) take(drawn *viz.Picture) (owners []int) {
	total := 0
	for i := range drawn.Boxes {
		total += drawn.Boxes[i].Nodes
		if drawn.Boxes[i].Results != nil {
			total++
		}
	}
	v.nodes, owners = make([]shownNode, total), make([]int, total)

	for stack := []*viz.Picture{drawn}; len(stack) > 0; {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for i := range p.Boxes {
			b := &p.Boxes[i]
			if b.Inside != nil {
				stack = append(stack, b.Inside)
				continue
			}

			v.nodes[b.Number].node, owners[b.Number] = b.Node, b.Owner
			if b.Results != nil {
				v.nodes[b.ResultsNumber].node, owners[b.ResultsNumber] = b.Results, b.Owner
			}
		}
	}
	return owners
}

// findFrames lists the conversations of sub-agents, outer ones before inner ones.
func (v *view) findFrames(owners []int) {
	at := map[int]int{} // by number of the owner: the index of its frame
	for i, owner := range owners {
		frame, ok := at[owner]
		switch {
		case owner < 0:
			frame = -1
		case !ok:
			frame = len(v.frames)
			at[owner] = frame
			v.owners = append(v.owners, owner)
			v.frames = append(v.frames, Frame{
				Title: describe.Of(v.nodes[owner].node).Inside(clip), Owner: v.nodes[owner].place.Key, Outer: v.nodes[owner].place.Frame,
			})
		}
		v.nodes[i].place.Frame = frame
	}
}

// height returns the nesting depth of the folded boxes of a picture; 0 without any.
func height(p *viz.Picture) int {
	n := 0
	for i := range p.Boxes {
		if inside := p.Boxes[i].Inside; inside != nil {
			n = max(n, 1+height(inside))
		}
	}
	return n
}

// lay places the boxes, edges and rooms of a picture and of those inside it. in is the key of the folded box around the
// picture, 0 for the outermost picture. foldKey returns the key of a folded box from the key of its first node and the
// height of its picture. The pictures are used up.
func (v *view) lay(pic *viz.Picture, in int, foldKey func(first, height int) int) {
	keys := make([]int, len(pic.Boxes))
	for i := range pic.Boxes {
		b := &pic.Boxes[i]
		place := &v.nodes[b.Number].place
		keys[i] = place.Key
		text := strings.Join(b.Lines, "\n")
		if b.Inside == nil {
			place.In, place.X, place.Y, place.W, place.H = in, b.X, b.Y, b.W, b.H
			place.Style, place.Text, place.Right, place.Head = b.Style, text, fromRight(b), b.Head
			if b.Results != nil {
				results := &v.nodes[b.ResultsNumber].place
				results.In, results.Style, results.Of = in, "user", keys[i]
			}
			continue
		}

		// Nested folded boxes may begin with the same node. The height of the picture inside tells them apart.
		first := keys[i]
		keys[i] = foldKey(first, height(b.Inside))
		v.folds = append(v.folds, Fold{
			Key: keys[i], In: in, First: first, Nodes: b.Nodes, X: b.X, Y: b.Y, W: b.W, H: b.H,
			Style: b.Style, Text: text, Right: fromRight(b), Width: b.Inside.Width, Height: b.Inside.Height,
		})
		v.lay(b.Inside, keys[i], foldKey)
		b.Inside = nil // its memory is free again
	}

	for _, e := range pic.Edges {
		edge := Edge{From: keys[e.From], To: keys[e.To], Points: make([]int, 0, 2*len(e.Points)), Dashed: e.Dashed}
		for _, at := range e.Points {
			edge.Points = append(edge.Points, at.X, at.Y)
		}
		v.edges = append(v.edges, edge)
	}
	for _, f := range pic.Frames {
		v.rooms = append(v.rooms, Room{Title: f.Title, In: in, X: f.X, Y: f.Y, W: f.W, H: f.H})
	}
}

// fromRight returns the lines of a box that read from right to left, as bits: the lowest is the first line. A box has
// fewer lines than JavaScript has bits.
func fromRight(b *viz.Box) (lines int64) {
	for i, right := range b.FromRight {
		if right && i < 31 {
			lines |= 1 << i
		}
	}
	return lines
}
