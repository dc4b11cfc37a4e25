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

// run is what is drawn in one go: a character of Go Mono, or characters of another font.
type run struct {
	font      *otherFont // nil for Go Mono
	text      []rune     // in the order in which it is read
	script    language.Script
	fromRight bool
	cells     int
	size      int             // in the line, in bytes
	glyphs    []shaping.Glyph // of another font, in drawing order
	width     float32         // in pixels; at most that of its cells
	squeeze   float32         // the factor that makes another font's glyphs as wide as that
}

// emojiSign after a character asks for its emoji.
const emojiSign = '\ufe0f'

// shown reports whether r has a glyph of its own: joiners and variation selectors have none.
func shown(r rune) bool { return !harfbuzz.IsDefaultIgnorable(r) }

// nextRun returns the run at the beginning of a piece of a line. Characters that are joined or reordered with their
// neighbors are in one run. In a piece that reads from right to left, so are words of one script, and what is between
// them.
func (c *canvas) nextRun(t *typeface, line string, fromRight bool) run {
	text, cells, size := safetext.Cluster(line)
	r := run{text: []rune(text), cells: cells, size: size, fromRight: fromRight}
	if fromRight {
		r.text[0] = mirrored(r.text[0])
	}
	if !t.has(r.text) {
		r.text = []rune(text) // the shaper mirrors by itself
		r = c.otherRun(t, line, r)
	}

	r.width = c.scale * cellWidth * float32(r.cells)
	if r.font != nil {
		r.glyphs, r.width, r.squeeze = c.shape(r, r.width)
	}
	return r
}

// otherRun returns the run at the beginning of a piece that needs another font. r holds its first cluster. The font of
// the result is nil if none has the first character.
func (c *canvas) otherRun(t *typeface, line string, r run) run {
	r.script = language.LookupScript(r.text[0])

	// Prefer a font with the whole cluster. Otherwise, a font with its letter is enough if Go Mono lacks the letter.
	r.font = c.others.find(r.text, isEmoji(r.text, r.cells))
	if r.font == nil && !t.has(r.text[:1]) {
		r.font = c.others.find(r.text[:1], isEmoji(r.text, r.cells))
	}
	if r.font == nil || isAlone(r.script) {
		return r
	}

	// Extend the run. Spaces and punctuation belong to it only if another word of the run follows.
	ahead := r
	for ahead.size < len(line) {
		text, cells, size := safetext.Cluster(line[ahead.size:])
		cluster := []rune(text)
		script := language.LookupScript(cluster[0])
		same := !t.has(cluster) && script == r.script && r.font.draws(cluster)
		between := r.fromRight && (text == " " || script == language.Common && r.font.draws(cluster))
		if !same && !between {
			break
		}

		ahead.text = append(slices.Clip(ahead.text), cluster...)
		ahead.cells, ahead.size = ahead.cells+cells, ahead.size+size
		if same {
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

// isAlone reports whether each character of a script is drawn alone. This holds for symbols and East Asian characters.
func isAlone(s language.Script) bool {
	switch s {
	case language.Common, language.Inherited, language.Unknown, language.Han, language.Hiragana, language.Katakana, language.Hangul,
		language.Bopomofo:
		return true
	}
	return false
}

// shape returns the glyphs of a run, with letters joined, and their width. A run wider than room is squeezed to it.
func (c *canvas) shape(r run, room float32) (glyphs []shaping.Glyph, width, squeeze float32) {
	input := shaping.Input{
		Text: r.text, RunEnd: len(r.text), Face: r.font.face, Script: r.script,
		Size: fixed.Int26_6(ink.FontSize * c.scale * 64), Direction: di.DirectionLTR,
	}
	if r.fromRight {
		input.Direction = di.DirectionRTL
	}
	out := c.shaper.Shape(input)

	width, squeeze = pixels(out.Advance), 1
	if width > room {
		width, squeeze = room, room/width
	}
	return out.Glyphs, width, squeeze
}

// drawRun draws a run of another font. Its baseline begins at the point at.
func (c *canvas) drawRun(r run, at point, shade color.RGBA) {
	for _, g := range r.glyphs {
		outline, picture := r.font.image(g.GlyphID)
		to := point{at.x + pixels(g.XOffset)*r.squeeze, at.y - pixels(g.YOffset)}
		switch {
		case g.GlyphID == 0: // a mark missing in the font
		case picture != nil:
			c.emoji(picture, to, pixels(g.Advance)*r.squeeze)
		default:
			c.outline(outline, to, ink.FontSize*c.scale/float32(r.font.face.Upem()), r.squeeze, shade)
		}
		at.x += pixels(g.Advance) * r.squeeze
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
