package png

import (
	"image"
	"image/color"
	"image/draw"
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
	others *fallback       // the fonts for such letters
}

// glyph is the image of a letter. The mask is nil for a space.
type glyph struct {
	mask *image.Alpha
	at   image.Point // from the left end of its baseline
	// advance is the width of a letter of another font, in pixels. It is centered in its cells. 0 for Go Mono.
	advance int
}

// typefaces returns the plain and the bold face.
func typefaces(scale int, others *fallback) (plain, bold *typeface, err error) {
	if plain, err = newTypeface(gomono.TTF, scale, others); err != nil {
		return nil, nil, err
	}
	bold, err = newTypeface(gomonobold.TTF, scale, others)
	return plain, bold, err
}

func newTypeface(ttf []byte, scale int, others *fallback) (*typeface, error) {
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
	return &typeface{font: parsed, face: face, glyphs: map[rune]*glyph{}, others: others}, nil
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
	face, advance := t.face, 0
	if index, err := t.font.GlyphIndex(&t.buf, r); err != nil || index == 0 {
		if face = t.others.find(r, &t.buf); face == nil {
			return nil
		}
		width, _ := face.GlyphAdvance(r)
		advance = width.Round()
	}

	rect, mask, from, _, ok := face.Glyph(fixed.Point26_6{}, r)
	if !ok || rect.Empty() {
		if face != t.face {
			return nil // a picture, or an empty letter of a font that has it elsewhere
		}
		return &glyph{}
	}

	// The face reuses its mask for the next letter: copy it.
	g := &glyph{mask: image.NewAlpha(image.Rect(0, 0, rect.Dx(), rect.Dy())), at: rect.Min, advance: advance}
	draw.Draw(g.mask, g.mask.Rect, mask, from, draw.Src)
	return g
}

// text draws a line of text. Its baseline begins at x, y, and each character takes its one or two cells.
func (c *canvas) text(t *typeface, line string, x, y int, shade color.RGBA) {
	source := image.NewUniform(shade)
	used := 0
	line = arranged(line)
	for line != "" {
		text, width, size := safetext.Cluster(line)
		line = line[size:]
		at := image.Pt(int(c.scale*(float32(x)+cellWidth*float32(used))+0.5), y*int(c.scale))

		// Draw the base letter (i is 0) and its marks. Other runes of the cluster, such as joiners, are left out.
		for i, r := range text {
			g := t.glyph(r)
			switch {
			case g == nil && i == 0:
				c.missing(at, width, shade)
			case g != nil && g.mask != nil && (i == 0 || unicode.IsMark(r) && g.advance == 0):
				to := g.mask.Rect.Add(at).Add(g.at)
				if g.advance > 0 {
					to = to.Add(image.Pt((int(c.scale*cellWidth*float32(width))-g.advance)/2, 0))
				}
				draw.DrawMask(c.img, to, source, image.Point{}, g.mask, image.Point{}, draw.Over)
			}
		}
		used += width
	}
}

// cellWidth is the width of a cell, in units of the layout.
const cellWidth = 7.25

// missing draws a frame in place of a character missing in the font.
func (c *canvas) missing(at image.Point, width int, shade color.RGBA) {
	x, y, s := float32(at.X), float32(at.Y), c.scale
	w := (cellWidth*float32(width) - 1.5) * s
	frame := []point{{x + s, y + s}, {x + w, y + s}, {x + w, y - 9*s}, {x + s, y - 9*s}, {x + s, y + s}}
	for i := 1; i < len(frame); i++ {
		c.piece(frame[i-1], frame[i], s/2, shade)
	}
}
