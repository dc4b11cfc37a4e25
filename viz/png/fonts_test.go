package png

import (
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/font/opentype"
	"github.com/stretchr/testify/require"
	"golang.org/x/image/font/gofont/goregular"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/viz/internal/ink"
)

func TestFontsOfTheSystemAreFoundByName(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	for _, name := range []string{"a/NotoSansCJK-Regular.ttc", "a/b/DejaVuSansMono.ttf", "a/NotoSansCJK-Bold.ttc", "a/NotoColorEmoji.ttf", "wqy-zenhei.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("not a font"), 0o600))
	}
	fonts := systemFonts([]string{dir, filepath.Join(dir, "missing")})
	require.Equal(t, []*otherFont{
		{path: filepath.Join(dir, "a/b/DejaVuSansMono.ttf")}, {path: filepath.Join(dir, "a/NotoSansCJK-Regular.ttc")},
		{path: filepath.Join(dir, "a/NotoColorEmoji.ttf"), emoji: true},
	}, fonts)

	others := &fallback{fonts: fonts}
	require.Nil(t, others.find([]rune("漢"), false), "files that are no fonts are skipped")
	require.Nil(t, others.find([]rune("🙂"), true))
}

// TestFontsAreAskedInTheirOrder also draws with each font that this machine has.
func TestFontsAreAskedInTheirOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go.ttf")
	require.NoError(t, os.WriteFile(file, goregular.TTF, 0o600))
	fonts := []*otherFont{{path: "missing.ttf"}, {path: file}, {path: file, emoji: true}}
	others := &fallback{fonts: fonts}
	require.Same(t, fonts[1], others.find([]rune("a"), false))
	require.Same(t, fonts[2], others.find([]rune("a"), true), "fonts for emoji first")
	require.Nil(t, others.find([]rune("漢"), false), "none has it")

	d := dag.New().User("漢字 سلام 🙂")
	var all []string
	for _, f := range systemFonts(fontDirs()) {
		draw1(t, d, &Options{Fonts: []string{f.path}})
		all = append(all, f.path)
	}
	draw1(t, d, &Options{Fonts: all})
}

// ownFonts returns the canvas of an empty picture with the fonts in testdata, which have the letters of these tests: the
// fonts of the machine decide nothing.
func ownFonts(t *testing.T) *canvas {
	t.Helper()
	c, err := newCanvas(layout(t, dag.New().User("x")), 2, &ink.Light, &fallback{fonts: systemFonts([]string{"testdata/fonts"})})
	require.NoError(t, err)
	return c
}

// TestWordsOfOneScriptAreShapedTogether: letters that are joined or reordered, and words that are read from the right,
// must be in one run.
func TestWordsOfOneScriptAreShapedTogether(t *testing.T) {
	for text, want := range map[string][]string{
		"سلام":          {"سلام"},
		"سلام عليكم":    {"سلام عليكم"},
		"مُحَمَّد":      {"مُحَمَّد"},
		"שלום עולם end": {"e", "n", "d", " ", "שלום עולם"},
		"किताब है":      {"किताब", " ", "है"},
		"ที่นี่":        {"ที่นี่"},
		"漢字":            {"漢", "字"},
	} {
		t.Run(text, func(t *testing.T) {
			require.Equal(t, want, runs(ownFonts(t), text))
		})
	}
}

// runs returns the runs of a line, from left to right.
func runs(c *canvas, line string) (texts []string) {
	list, _ := c.runs(c.plain, line, safetext.FromRight(line))
	for _, r := range list {
		texts = append(texts, string(r.text))
	}
	return texts
}

// TestArabicIsJoinedAndReadsFromTheRight compares the ink in the halves of a word's cells: a word begins on the right,
// and two letters beside each other have other forms than alone.
func TestArabicIsJoinedAndReadsFromTheRight(t *testing.T) {
	one, two := inkOf(ownFonts(t), "اس", 0, 2), inkOf(ownFonts(t), "سا", 0, 2)
	require.NotEqual(t, one, two)
	alone, word := inkOf(ownFonts(t), "ببب", 0, 3), 0
	for i := range 3 {
		word += inkOf(ownFonts(t), "ب", i, 1)
	}
	require.NotEqual(t, alone, word, "joined letters have other forms")

	first := inkOf(ownFonts(t), "יייש", 0, 1)
	last := inkOf(ownFonts(t), "יייש", 3, 1)
	require.Greater(t, first, last, "the last letter, which is wide, is on the left")
}

// inkOf draws a text and returns how many pixels have ink in cells of the line, counted from a first one.
func inkOf(c *canvas, text string, from, cells int) (count int) {
	c.img = image.NewRGBA(image.Rect(0, 0, 400, 60))
	c.text(c.plain, text, 10, 20, color.RGBA{A: 255})
	for y := range 60 {
		for x := range int(c.scale * cellWidth * float32(cells)) {
			if c.img.RGBAAt(20+int(c.scale*cellWidth*float32(from))+x, y).A > 128 {
				count++
			}
		}
	}
	return count
}

func TestVowelSignsAreDrawnWhereTheyAreWritten(t *testing.T) {
	c := ownFonts(t)
	r := c.nextRun(c.plain, "कि", false)
	letter, ok := r.font.face.NominalGlyph('क')
	require.True(t, ok)
	require.Len(t, r.glyphs, 2)
	require.Equal(t, letter, r.glyphs[1].GlyphID, "the sign is on the left of the letter that it follows")

	c = ownFonts(t)
	require.Len(t, c.nextRun(c.plain, "ที่", false).glyphs, 3)
	require.Less(t, inkOf(c, "ท", 1, 1), 10)
	require.Less(t, inkOf(c, "ที่", 1, 1), 10, "signs are above their letter")
}

// TestEmojiAreDrawnAsOneCharacter: with a font for emoji, an astronaut is one picture in color.
func TestEmojiAreDrawnAsOneCharacter(t *testing.T) {
	for _, text := range []string{"🙂", "✅", "👩🏽‍🚀", "🇯🇵", "👍🏽", "⚠️", "1️⃣"} {
		c := ownFonts(t)
		r := c.nextRun(c.plain, text, false)
		require.NotNil(t, r.font, text)
		require.Equal(t, len(text), r.size, text)
		inkOf(c, text, 0, 1)
		colors := map[color.RGBA]bool{}
		for y := range 60 {
			for x := range 400 {
				if p := c.img.RGBAAt(x, y); p.A > 128 && (p.R != p.G || p.G != p.B) {
					colors[p] = true
				}
			}
		}
		require.Greater(t, len(colors), 20, "%s has colors", text)
	}
}

func TestGlyphsAreCutAtTheEdgesOfTheImage(t *testing.T) {
	c, err := newCanvas(layout(t, dag.New().User("x")), 1, &ink.Light, &fallback{})
	require.NoError(t, err)
	var square font.GlyphOutline
	for i, p := range []opentype.SegmentPoint{{X: -40, Y: -40}, {X: 40, Y: -40}, {X: 40, Y: 40}, {X: -40, Y: 40}} {
		op := opentype.SegmentOpLineTo
		if i == 0 {
			op = opentype.SegmentOpMoveTo
		}
		square.Segments = append(square.Segments, font.Segment{Op: op, Args: [3]opentype.SegmentPoint{p}})
	}

	red, edge := color.RGBA{R: 255, A: 255}, c.img.Rect.Max
	for _, at := range []image.Point{{}, {X: edge.X - 1}, {Y: edge.Y - 1}, edge.Sub(image.Pt(1, 1))} {
		clear(c.img.Pix)
		c.outline(square, point{float32(at.X), float32(at.Y)}, 1, 1, red)
		require.Equal(t, red, c.img.RGBAAt(at.X, at.Y), "corner %v", at)
		require.Zero(t, c.img.RGBAAt(edge.X/2, edge.Y/2))
	}

	for _, text := range []string{"ﷺ" + strings.Repeat("\u08e8", 8), "ب" + strings.Repeat("\u08d9", 8)} {
		draw1(t, dag.New().User(text), nil)
	}
}
