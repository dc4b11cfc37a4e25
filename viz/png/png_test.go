package png

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/internal/ink"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/stretchr/testify/require"
)

// draw1 draws d without fonts of the system, unless o names fonts.
func draw1(t testing.TB, d dag.DAG, o *Options) image.Image {
	t.Helper()
	var b bytes.Buffer
	own := Options{}
	if o != nil {
		own = *o
	}
	if own.Fonts == nil {
		own.Fonts = []string{}
	}
	require.NoError(t, Write(&b, d, &own))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	return img
}

func layout(t testing.TB, d dag.DAG) *viz.Picture {
	t.Helper()
	p, err := viz.Layout(d, nil)
	require.NoError(t, err)
	return p
}

// sample has a box of every shape and style, a frame, a branch, and both kinds of edges.
func sample() dag.DAG {
	child := dag.New().User("deep?").Assistant("Very deep.").Stop(content.StopEndTurn)
	d := dag.New().System("Be brief.").Tools(content.Tool{Name: "ask", Description: "asks", Schema: `{"type":"object"}`}).
		Custom("note", 1).User("Why DAGs? 漢字 👩‍👩‍👧 e\u0301").
		Assistant("", content.ToolUse{ID: "1", Name: "ask", Input: "{}"}, content.ToolUse{ID: "2", Name: "ask", Input: "{}"}).
		CloseTools(node.ToolExecution{Index: 0, Result: content.Words("Very deep."), Child: node.ListOf(child.Heads()...)},
			node.ToolExecution{Index: 1, Result: content.Words("no"), IsError: true}).
		Append(node.Compaction{Summary: content.Words("It was said.")})
	return d.Assistant("Because history forks.").Stop(content.StopMaxTurns).Join(d.User("And a tree?"))
}

func at(img image.Image, x, y int) string {
	c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
	return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
}

func TestEveryBoxIsDrawnInItsPlace(t *testing.T) {
	d := sample()
	require.NoError(t, d.Err())
	p := layout(t, d)
	shapes := map[string]bool{}

	for scale := 1; scale <= 3; scale++ {
		for _, dark := range []bool{false, true} {
			palette := map[bool]ink.Palette{false: ink.Light, true: ink.Dark}[dark]
			img := draw1(t, d, &Options{Scale: scale, Dark: dark})
			require.Equal(t, image.Rect(0, 0, p.Width*scale, p.Height*scale), img.Bounds())
			require.Equal(t, palette.Page, at(img, 2, 2))

			for _, b := range p.Boxes {
				shapes[b.Shape] = true
				require.Equal(t, palette.Boxes[b.Style].Fill, at(img, (b.X+b.W/2)*scale, (b.Y+4)*scale), "box %d", b.Number)
				require.True(t, written(img, b, palette.Boxes[b.Style].Text, scale), "box %d has no text", b.Number)
			}

			for _, f := range p.Frames {
				require.Equal(t, palette.Frame.Fill, at(img, (f.X+4)*scale, (f.Y+f.H/2)*scale))
			}

			for _, e := range p.Edges {
				if end := e.Points[len(e.Points)-1]; !e.Dashed {
					require.Equal(t, palette.Line, at(img, end.X*scale, (end.Y-5)*scale), "edge %d-%d", e.From, e.To)
				}
			}
		}
	}

	require.Len(t, shapes, 7)
}

// written reports whether there are pixels in the colour of the text in a box.
func written(img image.Image, b viz.Box, colour string, scale int) bool {
	for y := b.Y * scale; y < (b.Y+b.H)*scale; y++ {
		for x := b.X * scale; x < (b.X+b.W)*scale; x++ {
			if at(img, x, y) == colour {
				return true
			}
		}
	}
	return false
}

// TestCharactersTakeTheirCells draws what the font has, what it has not, and what it joins, before a letter that has to
// be where it would be after as many plain letters.
func TestCharactersTakeTheirCells(t *testing.T) {
	last := func(text string) image.Image {
		d := dag.New().User(text + "M")
		p := layout(t, d)
		b := p.Boxes[0]
		x, y := ink.TextAt(b.Shape, b.X, b.Y)
		left := int(2*(float32(x)+cellWidth*4) + 0.5)
		return draw1(t, d, &Options{Scale: 2}).(interface {
			SubImage(image.Rectangle) image.Image
		}).SubImage(image.Rect(left, 2*(y+ink.LineHeight)-24, left+14, 2*(y+ink.LineHeight)+6))
	}

	pixels := func(img image.Image) (out []color.Color) {
		for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
			for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
				out = append(out, img.At(x, y))
			}
		}
		return out
	}

	want := pixels(last("abcd"))
	require.NotEqual(t, want, pixels(last("abc")), "the letter is looked for in the right place")
	for _, text := range []string{"漢字", "ab漢", "e\u0301bcd", "жλñ¿", "ab🙂", "\u0e01bcd"} {
		require.Equal(t, want, pixels(last(text)), text)
	}
}

// TestLinesAreDrawnAsTheyAreMeant looks at lines in twice the size, where two whole pixels beside their middle are
// inside of them.
func TestLinesAreDrawnAsTheyAreMeant(t *testing.T) {
	d := sample()
	p, img := layout(t, d), draw1(t, d, &Options{Scale: 2})

	for _, b := range p.Boxes {
		look := ink.Light.Boxes[b.Style]
		if b.Shape == "turn" {
			require.Equal(t, b.Head > 0, at(img, 2*b.X-3, 2*b.Y+b.H) == look.Stroke, "box %d: only heads have a thick line", b.Number)
		}
		if b.Shape == "call" {
			require.Equal(t, look.Stroke, at(img, 2*(b.X+5), 2*b.Y+b.H), "box %d has a second line", b.Number)
		}
	}

	dashed := 0
	for _, e := range p.Edges {
		for i := 1; i < len(e.Points); i++ {
			from, to := e.Points[i-1], e.Points[i]
			if from.Y != to.Y || max(from.X-to.X, to.X-from.X) < 40 {
				continue
			}

			gaps := false
			for x := 2 * (min(from.X, to.X) + 10); x < 2*(max(from.X, to.X)-10); x++ {
				gaps = gaps || at(img, x, 2*from.Y) != ink.Light.Line
			}
			require.Equal(t, e.Dashed, gaps, "edge %d-%d", e.From, e.To)
			if e.Dashed {
				dashed++
			}
		}
	}

	require.NotZero(t, dashed)
	for _, f := range p.Frames {
		x, y, w, h := ink.TitleGround(f.X, f.Y, 80)
		require.True(t, written(img, viz.Box{X: x, Y: y, W: w, H: h}, ink.Light.Frame.Text, 2), "a frame has a title")
	}
}

func TestFoldedBoxesHaveDashedOutlines(t *testing.T) {
	d := dag.New()
	for range 100 {
		d = d.User("Go on.")
	}
	p, err := viz.Layout(d, nil)
	require.NoError(t, err)
	img := draw1(t, d, &Options{Scale: 2})
	folded := 0
	for _, b := range p.Boxes {
		gaps := false
		for x := 2 * (b.X + 10); x < 2*(b.X+b.W/2-10); x++ {
			gaps = gaps || at(img, x, 2*b.Y) != ink.Light.Boxes[b.Style].Stroke
		}
		require.Equal(t, b.Node == nil, gaps, "box %d", b.Number)
		if gaps {
			folded++
		}
	}
	require.Equal(t, 1, folded)
}

// TestPicturesStayAsTheyAre compares whole pictures with those in testdata. Processors round differently, so a color
// may differ a little.
func TestPicturesStayAsTheyAre(t *testing.T) {
	chain := dag.New()
	for range 100 {
		chain = chain.User("Go on.")
	}
	for name, draw := range map[string]struct {
		d dag.DAG
		o Options
	}{
		"sample.png": {sample(), Options{Scale: 1}},
		"folded.png": {chain, Options{Scale: 2, Dark: true}},
		// Beside Chromium's drawing of the same SVG it differs in the shapes and widths of letters alone.
		"scripts.png": {viztest.Scripts(), Options{Scale: 2, Fonts: testFonts(t)}},
	} {
		file := filepath.Join("testdata", name)
		if *goldentest.Update {
			var b bytes.Buffer
			if draw.o.Fonts == nil {
				draw.o.Fonts = []string{}
			}
			require.NoError(t, Write(&b, draw.d, &draw.o))
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
		}

		b, err := os.ReadFile(file)
		require.NoError(t, err, "run with -update to write it")
		want, err := png.Decode(bytes.NewReader(b))
		require.NoError(t, err)
		got := draw1(t, draw.d, &draw.o)
		require.Equal(t, want.Bounds(), got.Bounds(), name)
		for y := range want.Bounds().Dy() {
			for x := range want.Bounds().Dx() {
				if !near(want.At(x, y), got.At(x, y)) {
					require.Failf(t, "another color", "%s: %d, %d is %s, not %s", name, x, y, at(got, x, y), at(want, x, y))
				}
			}
		}
	}
}

// testFonts returns the fonts in testdata, the best first.
func testFonts(t *testing.T) (paths []string) {
	t.Helper()
	for _, f := range systemFonts([]string{"testdata/fonts"}) {
		paths = append(paths, f.path)
	}
	return paths
}

// near reports whether no channel of two colors differs by more than 2 of 255.
func near(a, b color.Color) bool {
	c, d := color.RGBAModel.Convert(a).(color.RGBA), color.RGBAModel.Convert(b).(color.RGBA)
	for _, channel := range [][2]uint8{{c.R, d.R}, {c.G, d.G}, {c.B, d.B}} {
		if max(channel[0], channel[1])-min(channel[0], channel[1]) > 2 {
			return false
		}
	}
	return true
}

func TestLettersAreDrawnAsTheyAreMeant(t *testing.T) {
	inked := func(text string) (heading, body int) {
		d := dag.New().User(text)
		b := layout(t, d).Boxes[0]
		img := draw1(t, d, &Options{Scale: 2})
		look := ink.Light.Boxes[b.Style]
		x, y := ink.TextAt(b.Shape, b.X, b.Y)

		for row := range 2 {
			for py := 2 * (y + row*ink.LineHeight - 10); py < 2*(y+row*ink.LineHeight+2); py++ {
				for px := 2 * x; px < 2*(b.X+b.W-ink.PadX); px++ {
					if at(img, px, py) == look.Fill {
						continue
					}
					if row == 0 {
						heading++
					} else {
						body++
					}
				}
			}
		}

		return heading, body
	}

	heading, body := inked("user")
	require.Greater(t, heading, body, "headings are bold")
	_, missing := inked("漢")
	require.Positive(t, missing, "what the font has not is a frame")

	plain, bold, err := typefaces(2)
	require.NoError(t, err)
	for r := range alike {
		require.NotNil(t, plain.glyph(r), "%q", r)
		require.NotNil(t, bold.glyph(r), "%q", r)
	}
	require.Nil(t, plain.glyph('漢'))
}

func TestTooLarge(t *testing.T) {
	d := dag.New().User("a")
	p := layout(t, d)
	one := p.Width * p.Height
	err := Write(io.Discard, d, &Options{MaxPixels: one - 1})
	require.ErrorIs(t, err, ErrTooManyPixels)
	require.EqualError(t, err, fmt.Sprintf("too large for an image: %d by %d pixels, the maximum is %d", p.Width, p.Height, one-1))

	require.Equal(t, p.Width, draw1(t, d, &Options{MaxPixels: one}).Bounds().Dx(), "drawn smaller, since nothing was asked for")
	require.Equal(t, 2*p.Width, draw1(t, d, &Options{MaxPixels: 4 * one}).Bounds().Dx())
	require.ErrorIs(t, Write(io.Discard, d, &Options{Scale: 2, MaxPixels: 4*one - 1}), ErrTooManyPixels)
	err = Write(io.Discard, d, &Options{Scale: math.MaxInt})
	require.ErrorIs(t, err, ErrTooManyPixels)
	require.NotContains(t, err.Error(), "-", "no size wraps around")
	require.ErrorIs(t, Write(io.Discard, d, &Options{Scale: math.MaxInt / 100, MaxPixels: math.MaxInt}), ErrTooManyPixels)
}

func TestErrors(t *testing.T) {
	require.Error(t, Write(io.Discard, dag.New().CloseTools(), nil), "the error of the chain")
	require.ErrorIs(t, Write(brokenWriter{}, sample(), nil), io.ErrClosedPipe)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestSameBytes(t *testing.T) {
	var a, b bytes.Buffer
	d := sample()
	require.NoError(t, Write(&a, d, nil))
	require.NoError(t, Write(&b, d, nil))
	require.True(t, bytes.Equal(a.Bytes(), b.Bytes()))
}

func TestEmptyConversation(t *testing.T) {
	img := draw1(t, dag.New(), &Options{Scale: 1})
	words := viz.Box{X: 0, Y: 0, W: img.Bounds().Dx() - ink.Margin, H: img.Bounds().Dy()}
	require.True(t, written(img, words, ink.Light.Frame.Text, 1))
	words.X = words.W - 15
	require.True(t, written(img, words, ink.Light.Frame.Text, 1), "the last letters are in the picture")
}

func TestHostileTexts(t *testing.T) {
	d := dag.New()
	for _, text := range []string{"\x00\x1b[31m", "\u202eabc", strings.Repeat("\u0301", 100), "\ufffe", "\U000e0001", strings.Repeat("漢", 500), "\u200d\u200d"} {
		d = d.User(text + ".")
	}
	require.NoError(t, d.Err())
	draw1(t, d, nil)
}

func ExampleWrite() {
	d := dag.New().User("Name a tree.").Assistant("An oak.")

	var b bytes.Buffer
	if err := Write(&b, d, &Options{Scale: 2}); err != nil {
		fmt.Println(err)
	}
	config, err := png.DecodeConfig(&b)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(config.Width, "by", config.Height)
	// Output:
	// 292 by 312
}

func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{100, 2000} {
		d := dag.New()
		for i := range n / 6 {
			d = d.User(fmt.Sprint("Step ", i)).
				Assistant("I shall call tools now.", content.ToolUse{ID: "1", Name: "step", Input: "{}"}, content.ToolUse{ID: "2", Name: "step", Input: "{}"}).
				CloseTools(node.ToolExecution{Index: 1, Result: content.Words("done")}, node.ToolExecution{Index: 2, Result: content.Words("done, too")}).
				Assistant("ok")
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Write(io.Discard, d, &Options{Scale: 1, MaxPixels: math.MaxInt, Layout: viz.Options{Full: true}}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}

// TestImagesOfAnySizeAreLegible draws conversations of many sizes and shapes: at the width of a screen, letters are as
// high as they are laid out, and every box is in its place, in red if it counts a failure.
func TestImagesOfAnySizeAreLegible(t *testing.T) {
	nodes := 2000
	if testing.Short() {
		nodes = 60
	}
	viztest.Samples(nodes, func(s viztest.Sample) {
		t.Run(s.Name(), func(t *testing.T) {
			p := layout(t, s.DAG)
			require.LessOrEqual(t, p.Width, 1440)
			require.LessOrEqual(t, len(p.Boxes), 80)
			c, err := newCanvas(p, 1, &ink.Light, &fallback{})
			require.NoError(t, err)
			c.picture(p)

			failed := 0
			for _, b := range p.Boxes {
				look := ink.Light.Boxes[b.Style]
				require.Equal(t, look.Fill, at(c.img, b.X+b.W/2, b.Y+4), "box %d", b.Number)
				require.True(t, written(c.img, b, look.Text, 1), "box %d has a text", b.Number)
				if b.Style == "failed" {
					failed++
				}
			}
			require.Equal(t, s.Failed > 0, failed > 0)
			for i := range p.Note {
				line := viz.Box{X: ink.Margin, Y: ink.Margin + i*ink.LineHeight, W: 200, H: ink.LineHeight}
				require.True(t, written(c.img, line, ink.Light.Frame.Text, 1), "the image says how it is folded")
			}
		})
	})
}
