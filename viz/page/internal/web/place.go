package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// placed is a conversation laid out: the first picture of a page, and the pictures inside its folded boxes. Boxes and
// edges are identified by keys.
type placed struct {
	*viz.Picture // the outermost
	keys         map[node.ID]int
	boxes        []*viz.Box // of all nodes, in reading order: the index is the node's number
	frames       []Frame
	owners       []int // by index of a frame: the number of the node with that conversation
	frameOf      []int // by number of a node: the index of the frame around it, or -1

	// What lay adds. A folded box precedes those inside it.
	places []Place
	folds  []Fold
	edges  []Edge
	rooms  []Room
}

// boxesOf returns the boxes of all nodes in p and the pictures inside it, in reading order.
func boxesOf(p *viz.Picture) []*viz.Box {
	var boxes []*viz.Box
	for stack := []*viz.Picture{p}; len(stack) > 0; {
		p, stack = stack[len(stack)-1], stack[:len(stack)-1]
		for i := range p.Boxes {
			b := &p.Boxes[i]
			if b.Inside != nil {
				stack = append(stack, b.Inside)
				continue
			}

			// A result in the box of its call is a node like others.
			boxes = append(boxes, b)
			if b.Results != nil {
				results := *b
				results.Node, results.Number, results.Results = b.Results, b.ResultsNumber, nil
				boxes = append(boxes, &results)
			}
		}
	}

	slices.SortFunc(boxes, func(a, b *viz.Box) int { return cmp.Compare(a.Number, b.Number) })
	return boxes
}

// key returns the key of a node, by its number.
func (p *placed) key(number int) int { return p.keys[p.boxes[number].Node.ID()] }

// findFrames lists the conversations of sub-agents, outer ones before inner ones.
func (p *placed) findFrames() {
	at := map[int]int{} // by number of the owner: the index of its frame
	p.frameOf = make([]int, len(p.boxes))
	for i, b := range p.boxes {
		frame, ok := at[b.Owner]
		switch {
		case b.Owner < 0:
			frame = -1
		case !ok:
			frame = len(p.frames)
			at[b.Owner] = frame
			p.owners = append(p.owners, b.Owner)
			p.frames = append(p.frames, Frame{
				Title: describe.Of(p.boxes[b.Owner].Node).Inside(clip), Owner: p.key(b.Owner), Outer: p.frameOf[b.Owner],
			})
		}
		p.frameOf[i] = frame
	}
}

// heights returns, for p and each picture inside it, the nesting depth of its folded boxes; 0 without any.
func heights(p *viz.Picture) map[*viz.Picture]int {
	height := map[*viz.Picture]int{}
	var measure func(p *viz.Picture) int
	measure = func(p *viz.Picture) int {
		n := 0
		for _, b := range p.Boxes {
			if b.Inside != nil {
				n = max(n, 1+measure(b.Inside))
			}
		}
		height[p] = n
		return n
	}

	measure(p)
	return height
}

// lay places the boxes, edges and rooms of a picture and of those inside it. in is the key of the folded box around the
// picture, 0 for the outermost picture. foldKey returns the key of a folded box from the key of its first node and the
// height of its picture.
func (p *placed) lay(pic *viz.Picture, in int, height map[*viz.Picture]int, foldKey func(first, height int) int) {
	keys := make([]int, len(pic.Boxes))
	for i := range pic.Boxes {
		b := &pic.Boxes[i]
		keys[i] = p.key(b.Number)
		text := strings.Join(b.Lines, "\n")
		if b.Inside == nil {
			p.places = append(p.places, Place{
				Key: keys[i], N: b.Number, In: in, X: b.X, Y: b.Y, W: b.W, H: b.H,
				Style: b.Style, Text: text, Right: fromRight(b), Head: b.Head, Frame: p.frameOf[b.Number],
			})
			if b.Results != nil {
				p.places = append(p.places, Place{
					Key: p.key(b.ResultsNumber), N: b.ResultsNumber, In: in, Style: "user",
					Frame: p.frameOf[b.ResultsNumber], Of: keys[i],
				})
			}
			continue
		}

		// Nested folded boxes may begin with the same node. The height of the picture inside tells them apart.
		first := keys[i]
		keys[i] = foldKey(first, height[b.Inside])
		p.folds = append(p.folds, Fold{
			Key: keys[i], In: in, First: first, Nodes: b.Nodes, X: b.X, Y: b.Y, W: b.W, H: b.H,
			Style: b.Style, Text: text, Right: fromRight(b), Width: b.Inside.Width, Height: b.Inside.Height,
		})
		p.lay(b.Inside, keys[i], height, foldKey)
	}

	for _, e := range pic.Edges {
		edge := Edge{From: keys[e.From], To: keys[e.To], Dashed: e.Dashed}
		for _, at := range e.Points {
			edge.Points = append(edge.Points, at.X, at.Y)
		}
		p.edges = append(p.edges, edge)
	}
	for _, f := range pic.Frames {
		p.rooms = append(p.rooms, Room{Title: f.Title, In: in, X: f.X, Y: f.Y, W: f.W, H: f.H})
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
