// Package png draws conversations as PNG images. [Write] draws the same picture as viz.SVG, for programs without
// support for SVG.
//
// The smallest whole program:
//
//	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")
//	err := png.Write(os.Stdout, d, nil)
//
// The package is a module of its own: programs that draw no images need not carry its fonts.
//
// # Concurrency
//
// The functions keep no state and are safe for concurrent use.
//
// # Errors
//
// Drawing returns the error of the chain that built the conversation (dag.DAG.Err) and the error of the writer
// unchanged. [ErrTooManyPixels] marks a picture of more pixels than allowed.
package png

import (
	"cmp"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/internal/ink"
)

// ErrTooManyPixels is in the chain of the error for a picture with more than MaxPixels pixels.
var ErrTooManyPixels = errors.New("too large for an image")

// maxPixels is the default of Options.MaxPixels: 40 million pixels need 160 MB of memory.
const maxPixels = 40_000_000

// Options configures [Write]. The zero value and nil select the defaults.
type Options struct {
	// Layout configures the boxes and their text. Defaults to the defaults of viz.Options.
	Layout viz.Options
	// Scale is the number of pixels per unit of the layout. If it is zero or negative, it defaults to 2, or to 1 if the
	// image would be too large with 2.
	Scale int
	// MaxPixels is the limit on the number of pixels of the image. Drawing needs four bytes of memory for each. If it
	// is zero or negative, it defaults to 40,000,000.
	MaxPixels int
	// Dark draws on a dark page. Defaults to false.
	Dark bool
	// Fonts are font files for the characters missing in Go Mono, the best first. Unreadable files are skipped.
	// Defaults to the fonts of the system for the scripts of Asia and Africa, symbols and emoji. If Fonts is empty but
	// not nil, there are none, and the image is the same on every machine.
	Fonts []string
}

// Write writes d to w as a PNG image, the same picture as that of viz.SVG. The same graph and the same fonts give the
// same bytes.
//
// Text is drawn in Go Mono, with the letters of Latin, Greek and Cyrillic, and any other character in the first of
// o.Fonts that has it. Scripts such as Arabic, Devanagari and Thai are shaped: letters are joined, signs are at their
// positions, and Arabic and Hebrew words are drawn from right to left. An emoji is in color if the font has pictures of
// it. A character without a font is shown as an empty frame of its width. A mark is left out if no font has it together
// with its letter.
//
// Write returns the error of d; [ErrTooManyPixels], before memory is allocated for the image; or the error of w. Nothing is
// written before the drawing is complete.
func Write(w io.Writer, d dag.DAG, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	p, err := viz.Layout(d, &o.Layout)
	if err != nil {
		return err
	}

	// Check the size before allocating the image.
	limit := cmp.Or(max(o.MaxPixels, 0), maxPixels)
	scale := cmp.Or(max(o.Scale, 0), 2)
	if o.Scale <= 0 && !fits(p, scale, limit) {
		scale = 1
	}
	if !fits(p, scale, limit) {
		return fmt.Errorf("%w: %d by %d pixels, the maximum is %d",
			ErrTooManyPixels, scaled(p.Width, scale), scaled(p.Height, scale), limit)
	}

	palette := &ink.Light
	if o.Dark {
		palette = &ink.Dark
	}

	others := &fallback{search: o.Fonts == nil}
	for _, path := range o.Fonts {
		others.fonts = append(others.fonts, &otherFont{path: path})
	}
	c, err := newCanvas(p, scale, palette, others)
	if err != nil {
		return err
	}

	c.picture(p)
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	return enc.Encode(w, c.img)
}

// scaled returns a length in pixels. If length*scale would overflow an int, it uses the largest scale without overflow.
func scaled(length, scale int) int { return length * min(scale, math.MaxInt/length) }

// fits reports whether a picture has at most the given number of pixels. It only divides: a product might overflow.
func fits(p *viz.Picture, scale, limit int) bool {
	height := limit / scale / p.Width // the maximum, in pixels
	return height > 0 && p.Height <= height/scale
}
