package png

import (
	"image"
	"image/color"
	"image/draw"
	"slices"
	"unicode"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/viz/internal/ink"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// typeface draws letters of one size. It caches the letters drawn.
type typeface struct {
	font   *sfnt.Font
	face   font.Face
	buf    sfnt.Buffer
	glyphs map[rune]*glyph // at most maxGlyphs; nil for a letter missing in the font
}

// glyph is the image of a letter. The mask is nil for a space.
type glyph struct {
	mask *image.Alpha
	at   image.Point // from the left end of its baseline
}

// typefaces returns the plain and the bold face.
func typefaces(scale int) (plain, bold *typeface, err error) {
	if plain, err = newTypeface(gomono.TTF, scale); err != nil {
		return nil, nil, err
	}
	bold, err = newTypeface(gomonobold.TTF, scale)
	return plain, bold, err
}

func newTypeface(ttf []byte, scale int) (*typeface, error) {
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{
		Size: float64(ink.FontSize * scale), DPI: 72, Hinting: font.HintingFull,
	})
	if err != nil {
		return nil, err
	}
	return &typeface{font: parsed, face: face, glyphs: map[rune]*glyph{}}, nil
}

// alike maps letters missing in the font to similar ones.
var alike = map[rune]rune{'◀': '◄', '▶': '►', '\u00a0': ' ', '\u2011': '-', '′': '\'', '″': '"'}

// maxGlyphs is the limit on cached letters. It exceeds the number of letters in the font, but missing ones count too.
const maxGlyphs = 2000

// glyph returns the letter for r, or nil if the font does not have it.
func (t *typeface) glyph(r rune) *glyph {
	if g, ok := t.glyphs[r]; ok {
		return g
	}
	if len(t.glyphs) >= maxGlyphs {
		clear(t.glyphs)
	}
	g := t.draw(r)
	t.glyphs[r] = g
	return g
}

// draw draws the letter for r, without the cache.
func (t *typeface) draw(r rune) *glyph {
	if other, ok := alike[r]; ok {
		r = other
	}
	if index, err := t.font.GlyphIndex(&t.buf, r); err != nil || index == 0 {
		return nil
	}

	rect, mask, from, _, ok := t.face.Glyph(fixed.Point26_6{}, r)
	if !ok || rect.Empty() {
		return &glyph{}
	}

	// The face reuses its mask for the next letter: copy it.
	g := &glyph{mask: image.NewAlpha(image.Rect(0, 0, rect.Dx(), rect.Dy())), at: rect.Min}
	draw.Draw(g.mask, g.mask.Rect, mask, from, draw.Src)
	return g
}

// has reports whether the font has all characters of a cluster. Characters without a glyph do not count, except
// emojiSign.
func (t *typeface) has(cluster []rune) bool {
	for _, r := range cluster {
		if (shown(r) || r == emojiSign) && t.glyph(r) == nil {
			return false
		}
	}
	return true
}

// text draws a line of text from left on, in pixels, with its baseline at y. Its first letter decides where it is read
// from.
func (c *canvas) text(t *typeface, line string, left, y int, shade color.RGBA) {
	runs, _ := c.runs(t, line, safetext.FromRight(line))
	c.drawRuns(t, runs, float32(left)*c.scale, float32(y)*c.scale, shade)
}

// textToRight draws a line that reads from right to left, beginning at its right side.
func (c *canvas) textToRight(t *typeface, line string, right, y int, shade color.RGBA) {
	runs, width := c.runs(t, line, true)
	c.drawRuns(t, runs, float32(right)*c.scale-width, float32(y)*c.scale, shade)
}

// runs returns the runs of a line that reads in the given direction, from left to right, and their total width.
func (c *canvas) runs(t *typeface, line string, fromRight bool) (runs []run, width float32) {
	for _, p := range pieces(line, fromRight) {
		start := len(runs)
		for text := p.text; text != ""; {
			r := c.nextRun(t, text, p.fromRight)
			runs, width, text = append(runs, r), width+r.width, text[r.size:]
		}
		if p.fromRight {
			slices.Reverse(runs[start:])
		}
	}
	return runs, width
}

// drawRuns draws runs beside each other.
func (c *canvas) drawRuns(t *typeface, runs []run, left, y float32, shade color.RGBA) {
	for _, r := range runs {
		// If no font has all of a cluster, Go Mono draws its letter without the missing marks.
		switch at := (point{left, y}); {
		case r.font != nil:
			c.drawRun(r, at, shade)
		case t.glyph(r.text[0]) == nil:
			c.missing(at, r.width, shade)
		default:
			c.letter(t, r.text, at, shade)
		}
		left += r.width
	}
}

// letter draws a letter with its marks, except marks missing in Go Mono.
func (c *canvas) letter(t *typeface, cluster []rune, at point, shade color.RGBA) {
	for i, r := range cluster {
		if g := t.glyph(r); g != nil && g.mask != nil && (i == 0 || unicode.IsMark(r)) {
			to := g.mask.Rect.Add(image.Pt(int(at.x+0.5), int(at.y))).Add(g.at)
			draw.DrawMask(c.img, to, image.NewUniform(shade), image.Point{}, g.mask, image.Point{}, draw.Over)
		}
	}
}

// cellWidth is the width of a letter of Go Mono, and of a cell, in units of the layout.
const cellWidth = 7.25

// missing draws a frame in place of a character missing in the font, in a width of pixels.
func (c *canvas) missing(at point, width float32, shade color.RGBA) {
	x, y, s := float32(int(at.x+0.5)), at.y, c.scale
	w := width - 1.5*s
	frame := []point{{x + s, y + s}, {x + w, y + s}, {x + w, y - 9*s}, {x + s, y - 9*s}, {x + s, y + s}}
	for i := 1; i < len(frame); i++ {
		c.piece(frame[i-1], frame[i], s/2, shade)
	}
}
