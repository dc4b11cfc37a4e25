// Package png draws conversations as PNG images: [Write] draws what viz.SVG draws, for places that show no SVG.
//
// The smallest whole program:
//
//	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")
//	err := png.Write(os.Stdout, d, nil)
//
// The package is a module of its own, so that programs that do not draw images carry no fonts.
//
// # Concurrency
//
// The functions keep no state and are safe for concurrent use.
//
// # Errors
//
// Drawing returns the error of the chain that built the conversation (dag.DAG.Err), and the error of the writer, as they are.
// [ErrTooManyPixels] marks a picture of more pixels than are allowed; [SizeError] says how many.
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

// ErrTooManyPixels is in the chain of the error of a picture that is larger than MaxPixels.
var ErrTooManyPixels = errors.New("too large for an image")

// SizeError says how large a picture would be. Its chain holds ErrTooManyPixels.
type SizeError struct {
	// Width and Height are the size of the image, in pixels; of more than an int can hold, about as much as it can.
	Width, Height int
	// Max is how many pixels it may have.
	Max int
}

// Error says how large the picture would be.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%v: %d by %d pixels, where at most %d are drawn", ErrTooManyPixels, e.Width, e.Height, e.Max)
}

// Unwrap returns ErrTooManyPixels.
func (e *SizeError) Unwrap() error { return ErrTooManyPixels }

// maxPixels is the default of Options.MaxPixels: 40 million take 160 MB of memory.
const maxPixels = 40_000_000

// Options changes how [Write] draws. The zero value and nil are the defaults.
type Options struct {
	// Layout is what the boxes show. Defaults to the defaults of viz.LayoutOptions.
	Layout viz.LayoutOptions
	// Scale is how many pixels of the image a unit of the layout has. Defaults to 2, or to 1 where the image would be too large
	// with 2; also when negative.
	Scale int
	// MaxPixels is how many pixels the image may have. Drawing takes four bytes of memory for each. Defaults to 40,000,000, also
	// when negative.
	MaxPixels int
	// Dark draws on a dark page. Defaults to false.
	Dark bool
}

// Write writes d to w as a PNG image, drawn as viz.SVG draws it. The same graph gives the same bytes.
//
// Text is drawn in Go Mono, which has the letters of Latin, Greek and Cyrillic. Any other character is shown as an empty frame of its
// width; marks on letters that the font has no letter for are left out.
//
// Errors: d's own; a *SizeError, before memory is taken for the image; and that of w. Nothing is written before the drawing is whole.
func Write(w io.Writer, d dag.DAG, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	p, err := viz.Layout(d, &o.Layout)
	if err != nil {
		return err
	}
	most := cmp.Or(max(o.MaxPixels, 0), maxPixels)
	scale := cmp.Or(max(o.Scale, 0), 2)
	if o.Scale <= 0 && !fits(p, scale, most) {
		scale = 1
	}
	if !fits(p, scale, most) {
		return &SizeError{scaled(p.Width, scale), scaled(p.Height, scale), most}
	}
	palette := &ink.Light
	if o.Dark {
		palette = &ink.Dark
	}
	c, err := newCanvas(p, scale, palette)
	if err != nil {
		return err
	}
	c.picture(p)
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	return enc.Encode(w, c.img)
}

// scaled is a length in pixels, by the largest scale up to that one at which it is an int.
func scaled(length, scale int) int { return length * min(scale, math.MaxInt/length) }

// fits reports whether a picture has at most that many pixels, without computing a number that could be too large for an int.
func fits(p *viz.Picture, scale, most int) bool {
	width := most / scale / p.Width // how many times as wide it could be
	return width > 0 && p.Height <= width/scale
}
