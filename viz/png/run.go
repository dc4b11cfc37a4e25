package png

import (
	"image"
	"image/color"
	"math"
	"slices"

	"github.com/go-text/typesetting/di"
	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/font/opentype"
	"github.com/go-text/typesetting/harfbuzz"
	"github.com/go-text/typesetting/language"
	"github.com/go-text/typesetting/shaping"
	"golang.org/x/image/draw"
	"golang.org/x/image/math/fixed"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/viz/internal/ink"
)

// run is a piece of a line drawn in one font other than Go Mono.
type run struct {
	font   *otherFont
	text   []rune
	script language.Script
	cells  int
	size   int // in the line, in bytes
}

// emojiSign after a character asks for its emoji.
const emojiSign = '\ufe0f'

// shown reports whether r has a glyph of its own: joiners and variation selectors have none.
func shown(r rune) bool { return !harfbuzz.IsDefaultIgnorable(r) }

// nextRun returns the run at the beginning of a line. Characters that are joined or reordered with their neighbors are
// in one run, and so are the words of a right-to-left script. The font is nil if none has the first character.
func (c *canvas) nextRun(t *typeface, line string) run {
	text, cells, size := safetext.Cluster(line)
	r := run{text: []rune(text), cells: cells, size: size}
	r.script = language.LookupScript(r.text[0])

	// Prefer a font with the whole cluster. Otherwise, a font with its letter is enough if Go Mono lacks the letter.
	r.font = c.others.find(r.text, isEmoji(r.text, cells))
	if r.font == nil && !t.has(r.text[:1]) {
		r.font = c.others.find(r.text[:1], isEmoji(r.text, cells))
	}
	if r.font == nil || ownCells(r.script) {
		return r
	}

	// Extend the run. A space belongs to it only if another word of the run follows.
	ahead := r
	for ahead.size < len(line) {
		text, cells, size := safetext.Cluster(line[ahead.size:])
		cluster := []rune(text)
		space := text == " "
		same := !t.has(cluster) && language.LookupScript(cluster[0]) == r.script && r.font.draws(cluster)
		if !same && !(space && fromRight(r.script)) {
			break
		}

		ahead.text = append(slices.Clip(ahead.text), cluster...)
		ahead.cells, ahead.size = ahead.cells+cells, ahead.size+size
		if !space {
			r = ahead
		}
	}
	return r
}

// isEmoji reports whether a cluster of so many cells is shown as an emoji.
func isEmoji(cluster []rune, cells int) bool {
	if slices.Contains(cluster, emojiSign) {
		return true
	}
	r := cluster[0]
	return cells >= 2 && (r >= 0x1f000 && r < 0x20000 || r >= 0x2000 && r < 0x2e80)
}

// ownCells reports whether each character of a script is drawn alone, centered in its cells. This holds for symbols and
// East Asian characters.
func ownCells(s language.Script) bool {
	switch s {
	case language.Common, language.Inherited, language.Unknown, language.Han, language.Hiragana, language.Katakana, language.Hangul,
		language.Bopomofo:
		return true
	}
	return false
}

// fromRight reports whether a script is written from right to left.
func fromRight(s language.Script) bool {
	switch s {
	case language.Arabic, language.Hebrew, language.Syriac, language.Thaana, language.Nko, language.Adlam:
		return true
	}
	return false
}

// shape returns the glyphs of a run, in drawing order and with letters joined.
func (c *canvas) shape(r run) shaping.Output {
	input := shaping.Input{
		Text: r.text, RunEnd: len(r.text), Face: r.font.face, Script: r.script,
		Size: fixed.Int26_6(ink.FontSize * c.scale * 64), Direction: di.DirectionLTR,
	}
	if fromRight(r.script) {
		input.Direction = di.DirectionRTL
	}
	return c.shaper.Shape(input)
}

// drawRun draws a run, centered in its cells. Its cells begin at x, its baseline is at y, in pixels. A run wider than
// its cells is squeezed.
func (c *canvas) drawRun(r run, x, y float32, shade color.RGBA) {
	out := c.shape(r)
	room, width := c.scale*cellWidth*float32(r.cells), pixels(out.Advance)
	squeeze := float32(1)
	if width > room {
		squeeze = room / width
	}
	x += (room - width*squeeze) / 2

	for _, g := range out.Glyphs {
		outline, picture := r.font.image(g.GlyphID)
		at := point{x + pixels(g.XOffset)*squeeze, y - pixels(g.YOffset)}
		switch {
		case g.GlyphID == 0: // a mark missing in the font
		case picture != nil:
			c.emoji(picture, at, pixels(g.Advance)*squeeze)
		default:
			c.outline(outline, at, ink.FontSize*c.scale/float32(r.font.face.Upem()), squeeze, shade)
		}
		x += pixels(g.Advance) * squeeze
	}
}

func pixels(v fixed.Int26_6) float32 { return float32(v) / 64 }

// outline fills a glyph. Its baseline begins at the point at. A unit of the font is unit pixels high and unit*squeeze
// pixels wide.
func (c *canvas) outline(o font.GlyphOutline, at point, unit, squeeze float32, shade color.RGBA) {
	place := func(p opentype.SegmentPoint) point { return point{at.x + p.X*unit*squeeze, at.y - p.Y*unit} }
	minX, minY := float32(math.Inf(1)), float32(math.Inf(1))
	maxX, maxY := -minX, -minY
	for i := range o.Segments {
		for _, arg := range o.Segments[i].ArgsSlice() {
			p := place(arg)
			minX, minY, maxX, maxY = min(minX, p.x), min(minY, p.y), max(maxX, p.x), max(maxY, p.y)
		}
	}

	// The pen covers only the glyph, to keep its buffer small. It cannot draw beyond the image: signs stacked on a
	// letter may be higher than the margin.
	bounds := image.Rect(int(math.Floor(float64(minX))), int(math.Floor(float64(minY))), int(maxX)+1, int(maxY)+1)
	bounds = bounds.Intersect(c.img.Rect)
	if len(o.Segments) == 0 || bounds.Empty() {
		return
	}
	c.pen.Reset(bounds.Dx(), bounds.Dy())
	left, top := float32(bounds.Min.X), float32(bounds.Min.Y)

	for i := range o.Segments {
		s := &o.Segments[i]
		var to [3]point
		for k, arg := range s.ArgsSlice() {
			p := place(arg)
			to[k] = point{p.x - left, p.y - top}
		}

		switch s.Op {
		case opentype.SegmentOpMoveTo:
			c.pen.ClosePath()
			c.pen.MoveTo(to[0].x, to[0].y)
		case opentype.SegmentOpLineTo:
			c.pen.LineTo(to[0].x, to[0].y)
		case opentype.SegmentOpQuadTo:
			c.pen.QuadTo(to[0].x, to[0].y, to[1].x, to[1].y)
		case opentype.SegmentOpCubeTo:
			c.pen.CubeTo(to[0].x, to[0].y, to[1].x, to[1].y, to[2].x, to[2].y)
		}
	}
	c.pen.ClosePath()
	c.pen.Draw(c.img, bounds, image.NewUniform(shade), image.Point{})
}

// emoji draws a picture, width pixels wide, and centers it vertically on the letters beside it.
func (c *canvas) emoji(picture image.Image, at point, width float32) {
	size := picture.Bounds().Size()
	w := int(width + 0.5)
	h := w * size.Y / max(size.X, 1)
	middle := int(at.y - ink.FontSize*c.scale/3)
	to := image.Rect(0, 0, w, h).Add(image.Pt(int(at.x+0.5), middle-h/2))
	draw.CatmullRom.Scale(c.img, to, picture, picture.Bounds(), draw.Over, nil)
}
