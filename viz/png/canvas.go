package png

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"strconv"

	"github.com/go-text/typesetting/shaping"
	"golang.org/x/image/vector"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/internal/ink"
)

// canvas is an image under construction. Paths are in units of the layout, points in pixels.
type canvas struct {
	img         *image.RGBA
	scale       float32 // pixels per unit of the layout
	palette     *ink.Palette
	pen         vector.Rasterizer
	plain, bold *typeface
	others      *fallback
	shaper      shaping.HarfbuzzShaper
	path, inner ink.Path // buffers for the current shape, reused
	line        []point  // buffer of flatten, reused
}

type point struct{ x, y float32 }

// Widths of lines, in units of the layout.
const (
	thin  = 1.25
	edge  = 1.5
	thick = 3 // around heads
)

// dash and gap are the lengths of the pieces of dashed lines and of the gaps, in units of the layout.
const dash, gap = 5, 4

func newCanvas(p *viz.Picture, scale int, palette *ink.Palette, others *fallback) (*canvas, error) {
	plain, bold, err := typefaces(scale)
	if err != nil {
		return nil, err
	}
	return &canvas{
		img:     image.NewRGBA(image.Rect(0, 0, p.Width*scale, p.Height*scale)),
		scale:   float32(scale),
		palette: palette, plain: plain, bold: bold, others: others,
	}, nil
}

// picture draws all of p: frames below edges, edges below boxes.
func (c *canvas) picture(p *viz.Picture) {
	draw.Draw(c.img, c.img.Rect, image.NewUniform(rgb(c.palette.Page)), image.Point{}, draw.Src)

	for i, line := range p.Note {
		c.text(c.plain, line, ink.Margin, ink.Margin+ink.FontSize+i*ink.LineHeight, rgb(c.palette.Frame.Text))
	}

	for _, f := range p.Frames {
		c.path, _ = ink.Box(c.path[:0], nil, "turn", f.X, f.Y, f.W, f.H)
		c.fill(c.path, c.palette.Frame.Fill)
		c.stroke(c.path, c.palette.Frame.Stroke, thin, false)
	}

	for _, e := range p.Edges {
		c.path = ink.Line(c.path[:0], len(e.Points), func(i int) (x, y int) { return e.Points[i].X, e.Points[i].Y })
		c.stroke(c.path, c.palette.Line, edge, e.Dashed)
	}
	for _, f := range p.Frames {
		c.title(f)
	}

	// One arrowhead per box is enough: all edges to a box end at the same point.
	done := make([]bool, len(p.Boxes))
	for _, e := range p.Edges {
		if end := e.Points[len(e.Points)-1]; !done[e.To] {
			done[e.To] = true
			c.path = ink.Tip(c.path[:0], end.X, end.Y)
			c.fill(c.path, c.palette.Line)
		}
	}

	for i := range p.Boxes {
		c.box(&p.Boxes[i])
	}
	if len(p.Boxes) == 0 {
		c.text(c.plain, ink.Empty, ink.Margin, ink.Margin+ink.FontSize, rgb(c.palette.Frame.Text))
	}
}

// title draws the title of a frame, on a ground to hide the edges behind it.
func (c *canvas) title(f viz.Frame) {
	x, y, w, h := ink.TitleGround(f.X, f.Y, int(cellWidth*float32(safetext.Width(f.Title))))
	c.path, _ = ink.Box(c.path[:0], nil, "setup", x, y, w, h)
	c.fill(c.path, c.palette.Frame.Fill)

	x, y = ink.TitleAt(f.X, f.Y)
	c.text(c.plain, f.Title, x, y, rgb(c.palette.Frame.Text))
}

// box draws a box and its text. The box of a head has a thick outline.
func (c *canvas) box(b *viz.Box) {
	look := c.palette.Boxes[b.Style]
	c.path, c.inner = ink.Box(c.path[:0], c.inner[:0], b.Shape, b.X, b.Y, b.W, b.H)
	c.fill(c.path, look.Fill)

	// The lines inside a shape stay thin around a head too, and are never dashed.
	width := float32(thin)
	if b.Head > 0 {
		width = thick
	}
	c.stroke(c.path, look.Stroke, width, b.Nodes > 1)
	c.stroke(c.inner, look.Stroke, thin, false)

	x, y := ink.TextAt(b.Shape, b.X, b.Y)
	for i, line := range b.Lines {
		face := c.plain
		if i < b.Heading {
			face = c.bold
		}
		if b.FromRight != nil && b.FromRight[i] {
			c.textToRight(face, line, ink.TextEnd(b.Shape, b.X, b.W), y, rgb(look.Text))
		} else {
			c.text(face, line, x, y, rgb(look.Text))
		}
		y += ink.LineHeight
	}
}

// fill fills each piece of a path.
func (c *canvas) fill(p ink.Path, hex string) {
	for _, line := range c.flatten(p) {
		c.polygon(line, rgb(hex))
	}
}

// stroke draws along a path. It draws each straight piece separately: a long line then needs no more memory than a
// short one.
func (c *canvas) stroke(p ink.Path, hex string, width float32, dashed bool) {
	shade, half := rgb(hex), width*c.scale/2
	for _, line := range c.flatten(p) {
		left, drawing := float32(dash)*c.scale, true // the rest of the current dash or gap
		for i := 1; i < len(line); i++ {
			from, to := line[i-1], line[i]

			// Consume whole dashes and gaps. The rest of the piece is drawn below.
			for dashed {
				d := length(from, to)
				if d <= left {
					left -= d
					break
				}
				mid := point{from.x + (to.x-from.x)*left/d, from.y + (to.y-from.y)*left/d}
				if drawing {
					c.piece(from, mid, half, shade)
				}
				from, drawing = mid, !drawing
				left = float32(map[bool]int{true: dash, false: gap}[drawing]) * c.scale
			}

			if drawing {
				c.piece(from, to, half, shade)
			}
		}
	}
}

// piece draws a straight line as a rectangle.
func (c *canvas) piece(from, to point, half float32, shade color.RGBA) {
	d := length(from, to)
	if d == 0 {
		return
	}

	// Extend both ends a little, to fill the corners between two pieces.
	x, y := (to.x-from.x)/d*half, (to.y-from.y)/d*half
	const more = 0.4 // of half the width
	from, to = point{from.x - x*more, from.y - y*more}, point{to.x + x*more, to.y + y*more}

	c.polygon([]point{
		{from.x - y, from.y + x}, {from.x + y, from.y - x}, {to.x + y, to.y - x}, {to.x - y, to.y + x},
	}, shade)
}

// polygon fills the inside of a closed line.
func (c *canvas) polygon(line []point, shade color.RGBA) {
	minX, minY, maxX, maxY := line[0].x, line[0].y, line[0].x, line[0].y
	for _, p := range line {
		minX, minY, maxX, maxY = min(minX, p.x), min(minY, p.y), max(maxX, p.x), max(maxY, p.y)
	}

	// The pen covers only the bounding box, to keep its buffer small. It cannot draw beyond the image.
	r := image.Rect(int(math.Floor(float64(minX))), int(math.Floor(float64(minY))), int(maxX)+1, int(maxY)+1)
	r = r.Intersect(c.img.Rect)
	if r.Empty() {
		return
	}
	x, y := r.Min.X, r.Min.Y
	c.pen.Reset(r.Dx(), r.Dy())

	for i, p := range line {
		if i == 0 {
			c.pen.MoveTo(p.x-float32(x), p.y-float32(y))
		} else {
			c.pen.LineTo(p.x-float32(x), p.y-float32(y))
		}
	}
	c.pen.ClosePath()
	c.pen.Draw(c.img, r, image.NewUniform(shade), image.Point{})
}

// flatten returns a path as lines of straight pieces, in pixels. The lines are valid until the next call.
func (c *canvas) flatten(p ink.Path) [][]point {
	c.line = c.line[:0]
	var lines [][]point
	start := 0
	end := func() {
		if len(c.line)-start > 1 {
			lines = append(lines, c.line[start:len(c.line):len(c.line)])
		}
		start = len(c.line)
	}

	for _, s := range p {
		to := point{float32(s.X) * c.scale, float32(s.Y) * c.scale}
		switch s.Op {
		case 'M':
			end()
			c.line = append(c.line, to)
		case 'L':
			c.line = append(c.line, to)
		case 'Q':
			from, mid := c.line[len(c.line)-1], point{float32(s.CX) * c.scale, float32(s.CY) * c.scale}
			// Curves are used for small round corners alone, so a few straight pieces are enough.
			const steps = 6
			for i := 1; i <= steps; i++ {
				t := float32(i) / steps
				u := 1 - t
				c.line = append(c.line, point{u*u*from.x + 2*u*t*mid.x + t*t*to.x, u*u*from.y + 2*u*t*mid.y + t*t*to.y})
			}
		case 'Z':
			c.line = append(c.line, c.line[start])
		}
	}

	end()
	return lines
}

func length(a, b point) float32 { return float32(math.Hypot(float64(b.x-a.x), float64(b.y-a.y))) }

// rgb parses a color of the form #rrggbb.
func rgb(hex string) color.RGBA {
	v, _ := strconv.ParseUint(hex[1:], 16, 32)
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255}
}
