// Package ink defines the look of pictures: the outlines of boxes, the course of lines, and colors. SVG, PNG and pages
// share it. Mermaid has colors of its own, in viz/mermaid.go.
package ink

// The measures of a picture, in pixels.
const (
	FontSize    = 12
	LineHeight  = 16
	PadX        = 12 // beside the text of a box
	PadY        = 8  // above and below it
	FramePad    = 12 // between a frame and its boxes
	TitleHeight = 20 // of a frame, above its boxes
	Margin      = 16 // around the whole
)

// Empty is the text of a picture of an empty conversation.
const Empty = "(an empty conversation)"

// TextAt returns the beginning of the text in a box at x, y: the left end of the first baseline.
func TextAt(shape string, x, y int) (left, baseline int) {
	beside, above := Padding(shape)
	return x + PadX + beside, y + PadY + above + FontSize
}

// TextEnd returns the right side of the text in a box at x, of width w. A line that reads from right to left begins there.
func TextEnd(shape string, x, w int) int {
	beside, _ := Padding(shape)
	return x + w - PadX - beside
}

// TitleAt returns the beginning of the title of a frame at x, y: the left end of its baseline. An edge into the frame
// may run behind it.
func TitleAt(x, y int) (left, baseline int) { return x + FramePad, y + TitleHeight }

// TitleGround returns the rectangle behind a title of width pixels. It hides edges behind the letters.
func TitleGround(x, y, width int) (left, top, w, h int) {
	return x + FramePad - 2, y + TitleHeight - FontSize, width + 4, LineHeight
}

// Step is one command of a path, from the current point to X, Y. Coordinates are pixels.
type Step struct {
	// Op is the command as in SVG: 'M' begins at X, Y, 'L' is a straight line, 'Q' a quadratic curve with the control
	// point CX, CY, and 'Z' a line back to the last M.
	Op           byte
	CX, CY, X, Y int
}

// Path is an outline or a line: its steps in order.
type Path []Step

func (p Path) move(x, y int) Path          { return append(p, Step{Op: 'M', X: x, Y: y}) }
func (p Path) line(x, y int) Path          { return append(p, Step{Op: 'L', X: x, Y: y}) }
func (p Path) curve(cx, cy, x, y int) Path { return append(p, Step{'Q', cx, cy, x, y}) }
func (p Path) shut() Path                  { return append(p, Step{Op: 'Z'}) }

const (
	bar   = 5  // the second line of a call, from its side
	slant = 10 // the inward slope of the sides of a merge
	lid   = 7  // half the height of the lid of a store
	fold  = 10 // the side of the folded corner of a note
	tip   = 4  // half the width of the tip of a line
)

// Box appends the outline of a box to p, and the lines inside it to inner.
func Box(p, inner Path, shape string, x, y, w, h int) (Path, Path) {
	r, b := x+w, y+h
	switch shape {
	case "turn":
		return round(p, x, y, w, h, 8), inner
	case "stop":
		return round(p, x, y, w, h, min(h/2, 20)), inner
	case "call":
		inner = inner.move(x+bar, y).line(x+bar, b).move(r-bar, y).line(r-bar, b)
		return round(p, x, y, w, h, 2), inner
	case "merge":
		return p.move(x, y).line(r, y).line(r-slant, b).line(x+slant, b).shut(), inner
	case "store":
		// A cylinder: the front of its lid is an inner line, and the back is the top of the outline.
		m := x + w/2
		inner = inner.move(x, y+lid).curve(x, y+2*lid, m, y+2*lid).curve(r, y+2*lid, r, y+lid)
		p = p.move(x, y+lid).curve(x, y, m, y).curve(r, y, r, y+lid)
		return p.line(r, b-lid).curve(r, b, m, b).curve(x, b, x, b-lid).shut(), inner
	case "note":
		inner = inner.move(r-fold, y).line(r-fold, y+fold).line(r, y+fold)
		return p.move(x, y).line(r-fold, y).line(r, y+fold).line(r, b).line(x, b).shut(), inner
	}

	// A setup.
	return round(p, x, y, w, h, 2), inner
}

func round(p Path, x, y, w, h, radius int) Path {
	r, b := x+w, y+h
	p = p.move(x+radius, y).line(r-radius, y).curve(r, y, r, y+radius)
	p = p.line(r, b-radius).curve(r, b, r-radius, b)
	p = p.line(x+radius, b).curve(x, b, x, b-radius)
	return p.line(x, y+radius).curve(x, y, x+radius, y).shut()
}

// Padding returns the additional room for a shape on each side of the text in a box, and above it.
func Padding(shape string) (beside, above int) {
	switch shape {
	case "call":
		return bar, 0
	case "merge":
		return slant, 0
	case "stop":
		return 4, 0
	case "store":
		return 0, 2 * lid
	case "note":
		return fold / 2, 0
	}
	return 0, 0
}

// Bend is the distance from a corner to both ends of its curve.
const Bend = 8

// to appends a line from fromX, fromY with a turn at cx, cy towards x, y. The corner is round.
func (p Path) to(fromX, fromY, cx, cy, x, y int) Path {
	// A segment shorter than two bends is divided between its two corners.
	in := min(Bend, distance(fromX, fromY, cx, cy)/2)
	out := min(Bend, distance(cx, cy, x, y)/2)
	p = p.line(cx-in*sign(cx-fromX), cy-in*sign(cy-fromY))
	return p.curve(cx, cy, cx+out*sign(x-cx), cy+out*sign(y-cy))
}

// Line appends a line through n points to p, with round corners. Each segment must be horizontal or vertical.
func Line(p Path, n int, at func(int) (x, y int)) Path {
	fromX, fromY := at(0)
	p = p.move(fromX, fromY)
	for i := 1; i < n-1; i++ {
		cx, cy := at(i)
		x, y := at(i + 1)
		p = p.to(fromX, fromY, cx, cy, x, y)
		fromX, fromY = cx, cy
	}
	x, y := at(n - 1)
	return p.line(x, y)
}

// Tip appends to p the tip of a line ending at x, y from above.
func Tip(p Path, x, y int) Path {
	return p.move(x, y).line(x-tip, y-2*tip).line(x+tip, y-2*tip).shut()
}

func distance(ax, ay, bx, by int) int { return max(ax-bx, bx-ax) + max(ay-by, by-ay) }

func sign(d int) int {
	switch {
	case d < 0:
		return -1
	case d > 0:
		return 1
	}
	return 0
}

// Look is the colors of a box, each as #rrggbb.
type Look struct{ Fill, Stroke, Text string }

// Palette is the colors of a picture.
type Palette struct {
	Page  string
	Line  string // edges
	Frame Look
	// Boxes has the colors by style.
	Boxes map[string]Look
}

// Styles are the styles of boxes, in the order of the output.
var Styles = []string{"user", "assistant", "aside", "failed", "folded"}

// Light and Dark are the palettes. Text stands out from its box by at least 7 to 1.
var (
	Light = Palette{
		Page: "#ffffff", Line: "#6b7280", Frame: Look{"#f8fafc", "#cbd5e1", "#475569"},
		Boxes: map[string]Look{
			"user":      {"#e1f5fe", "#0277bd", "#01406d"},
			"assistant": {"#e8f5e9", "#2e7d32", "#14461a"},
			"aside":     {"#f5f5f5", "#757575", "#424242"},
			"failed":    {"#ffebee", "#c62828", "#8e1212"},
			"folded":    {"#fffde7", "#9e9d24", "#5d5400"},
		},
	}
	Dark = Palette{
		Page: "#0f1419", Line: "#8b949e", Frame: Look{"#161c24", "#38434f", "#a9b4c0"},
		Boxes: map[string]Look{
			"user":      {"#0b2a3c", "#4fc3f7", "#cdeefe"},
			"assistant": {"#12301a", "#66bb6a", "#d3f0d6"},
			"aside":     {"#24292f", "#8b949e", "#d5d9de"},
			"failed":    {"#3b1518", "#ef5350", "#ffd5d6"},
			"folded":    {"#302e12", "#c0ca33", "#f3f1c4"},
		},
	}
)
