package viz

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/viz/internal/viztest"
)

// TestDrawingsOfAnySizeAreLegible draws conversations of many sizes and shapes, as they are drawn by default, on a
// screen of 1440 by 900 pixels: no drawing is wider, none has more than 80 boxes, and each says how many calls failed
// and names the first and the last. With PLAIT_PICTURES=DIR the pictures are written there, to look at.
func TestDrawingsOfAnySizeAreLegible(t *testing.T) {
	viztest.Samples(seedtest.Rounds(2000, 20_000), func(s viztest.Sample) {
		t.Run(s.Name(), func(t *testing.T) {
			require.NoError(t, s.DAG.Err())
			requireLegible(t, s.DAG, s.Failed)
		})
	})
}

var countedFailures = regexp.MustCompile(`([\d,]+) failed`)

func requireLegible(t *testing.T, d dag.DAG, failed int) {
	t.Helper()
	p, vertices := layout(t, d, &Options{}), new(outline).of(d.Heads()).vertices
	require.LessOrEqual(t, len(p.Boxes), 80)
	require.LessOrEqual(t, p.Width, 1440)
	require.LessOrEqual(t, p.Height, legibleHeight)
	shown := 0
	for _, b := range p.Boxes {
		if shown++; b.Results != nil {
			shown++
		}
	}
	require.Equal(t, shown < len(vertices), p.Note != nil, "a folded picture says so")
	if dir := os.Getenv("PLAIT_PICTURES"); dir != "" {
		_, file, _ := strings.Cut(t.Name(), "/")
		file = filepath.Join(dir, strings.ReplaceAll(strings.ReplaceAll(file, ",", ""), "_", "-"))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(file+".svg", []byte(svg(t, d, &Options{})), 0o600))
		require.NoError(t, os.WriteFile(file+".dot", []byte(dotOf(t, d, &Options{})), 0o600))
		require.NoError(t, os.WriteFile(file+".mmd", []byte(draw(t, d, nil)), 0o600))
	}

	// Add up the failures that have a box and those that boxes count.
	seen, named := 0, map[int]bool{}
	for _, b := range p.Boxes {
		text := strings.Join(b.Lines, " ")
		if b.Node != nil {
			if b.Node.Failed() {
				require.Equal(t, styleFailed, b.Style)
				seen, named[b.Number] = seen+1, true
			}
			continue
		}

		if vertices[b.Number].node.Failed() && strings.Contains(text, " inside (") {
			seen, named[b.Number] = seen+1, true
		}
		if m := countedFailures.FindStringSubmatch(text); m != nil {
			require.Equal(t, styleFailed, b.Style)
			n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
			require.NoError(t, err)
			seen += n
		}
		for _, m := range regexp.MustCompile(` n(\d+) \w+:`).FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			named[n] = true
		}
	}
	require.Equal(t, failed, seen, "every failure is drawn or counted")

	var all []int
	for i, v := range vertices {
		if v.node.Failed() {
			all = append(all, i)
		}
	}
	if failed > 0 {
		require.True(t, named[all[0]], "the first failure, n%d, is named", all[0])
		require.True(t, named[all[len(all)-1]], "the last failure, n%d, is named", all[len(all)-1])
	}

	require.GreaterOrEqual(t, fitted(svgFont(t, svg(t, d, &Options{})), float64(p.Width)), legibleFont)
	if len(vertices) > 10_000 {
		return
	}

	// The other formats have the same boxes with the same texts, in lines of other lengths.
	text := func(label string) string { return strings.Join(strings.Fields(label), "") }
	s := newSketch(t, d, &Options{})
	m, _, err := s.mermaid(s.labels)
	require.NoError(t, err)
	require.Len(t, m.items, len(p.Boxes))
	for k, it := range m.items {
		require.Equal(t, p.Boxes[k].Number, it.vertex)
		require.Equal(t, text(strings.Join(p.Boxes[k].Lines, " ")), text(it.face.label))
	}
	require.Equal(t, p.Note, m.note)
	require.Equal(t, len(p.Boxes), strings.Count(dotOf(t, d, &Options{}), "tooltip="))
	require.Equal(t, len(p.Boxes), strings.Count(svg(t, d, &Options{}), `role="listitem"`))
}

// legibleFont is the height of letters, in pixels, below which a text is hard to read.
const legibleFont = 9.0

// fitted returns the size of the letters of a drawing that is made as narrow as a screen, if it is wider.
func fitted(font, width float64) float64 { return font * min(1, legibleWidth/width) }

// svgFont returns the smallest font of an SVG.
func svgFont(t *testing.T, text string) float64 {
	t.Helper()
	smallest := math.Inf(1)
	for _, m := range regexp.MustCompile(`font(?:-size)?:(\d+)px`).FindAllStringSubmatch(text, -1) {
		size, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		smallest = min(smallest, size)
	}
	require.False(t, math.IsInf(smallest, 1), "a size is set")
	return smallest
}

// TestRealMermaidDrawingsAreLegible draws the same conversations with the real Mermaid, which lays them out as it
// likes. Mermaid 10.9 breaks no lines, so that the widest of these drawings has letters of 8.7 pixels there.
func TestRealMermaidDrawingsAreLegible(t *testing.T) {
	t.Parallel()
	requireMermaid(t)
	nodes, versions := 200, newestVersions
	if os.Getenv("PLAIT_MERMAID") == "all" {
		nodes, versions = 20_000, newestVersions+",11-4"
	}
	var jobs []job
	viztest.Samples(nodes, func(s viztest.Sample) {
		if s.Nodes > 10 {
			jobs = append(jobs, expecting(t, s.Name(), s.DAG, Options{}))
		}
	})
	for _, v := range check(t, versions, jobs) {
		require.Positive(t, v.Render.Font, v.File)
		require.GreaterOrEqual(t, fitted(v.Render.Font, v.Render.FullWidth), legibleFont, "Mermaid %s, %s: %v", v.Mermaid, v.File, v.Render)
	}
}

// TestGraphvizDrawingsAreLegible draws the same conversations with the real Graphviz. A point is 4/3 of a pixel.
func TestGraphvizDrawingsAreLegible(t *testing.T) {
	t.Parallel()
	requireGraphviz(t)
	nth := 0
	viztest.Samples(seedtest.Rounds(200, 20_000), func(s viztest.Sample) {
		if nth++; !seedtest.Sample(nth, 2) {
			return
		}
		t.Run(s.Name(), func(t *testing.T) {
			got := requireDrawn(t, s.DAG, &Options{})
			require.GreaterOrEqual(t, fitted(got.font*4/3, got.width*4/3), legibleFont, "%v points wide", got.width)
		})
	})
}

// TestWhatCannotBeNarrowIsAsNarrowAsItCanBe draws random graphs, of which some are wider than a screen however they are
// folded.
func TestWhatCannotBeSmallIsAsSmallAsItCanBe(t *testing.T) {
	excess := func(p *Picture) float64 {
		bare := *p
		if len(p.Note) > 0 {
			bare.Height -= len(p.Note)*lineHeight + gapY
		}
		return excessOf(&bare, legibleHeight-noteHeight)
	}
	large := 0
	for seed := uint64(0); seed < 60; seed += uint64(seedtest.Rounds(2, 1)) {
		d := randomGraph(rand.New(rand.NewPCG(seed, 3)), 1+int(seed)%60, 2)
		drawn := excess(layout(t, d, &Options{}))
		if drawn <= 1 {
			continue
		}

		large++
		s := newSketch(t, d, nil)
		for _, p := range plans[1:] {
			m := s.plot(s.fold(p))
			m.label(s.labels, fewCells)
			if len(m.items) <= legibleBoxes {
				require.LessOrEqual(t, drawn, excess(m.picture()), "seed %d", seed)
			}
		}
	}
	require.NotZero(t, large)
}
