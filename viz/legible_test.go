package viz

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/viz/internal/viztest"
)

// TestDrawingsOfAnySizeAreLegible draws conversations of many sizes and shapes, as they are drawn by default, on a screen of 1440 by
// 900 pixels: no drawing is wider, none has more than 80 boxes, and each tells how many calls failed and names the first and the last.
// With PLAIT_PICTURES=DIR the pictures are written there, to look at.
func TestDrawingsOfAnySizeAreLegible(t *testing.T) {
	nodes := 20_000
	if testing.Short() {
		nodes = 2000
	}
	viztest.Samples(nodes, func(s viztest.Sample) {
		t.Run(s.Name(), func(t *testing.T) {
			require.NoError(t, s.DAG.Err())
			requireLegible(t, s.DAG, s.Failed)
		})
	})
}

var countedFailures = regexp.MustCompile(`([\d,]+) failed`)

func requireLegible(t *testing.T, d dag.DAG, failed int) {
	t.Helper()
	p, vertices := layout(t, d, &LayoutOptions{}), outlineOf(d.Heads()).vertices
	require.LessOrEqual(t, len(p.Boxes), 80)
	require.LessOrEqual(t, p.Width, 1440)
	require.LessOrEqual(t, p.Height, 80*80, "as high as if all boxes were below each other")
	require.Equal(t, len(p.Boxes) < len(vertices), p.Note != nil, "a folded picture says so")
	if dir := os.Getenv("PLAIT_PICTURES"); dir != "" {
		_, file, _ := strings.Cut(t.Name(), "/")
		file = filepath.Join(dir, strings.ReplaceAll(strings.ReplaceAll(file, ",", ""), "_", "-"))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(file+".svg", []byte(svg(t, d, &SVGOptions{})), 0o600))
		require.NoError(t, os.WriteFile(file+".dot", []byte(dotOf(t, d, &DOTOptions{})), 0o600))
		require.NoError(t, os.WriteFile(file+".mmd", []byte(draw(t, d, nil)), 0o600))
	}

	// Add up the failures that have a box and those that boxes count.
	seen, named := 0, map[int]bool{}
	for _, b := range p.Boxes {
		text := strings.Join(b.Lines, " ")
		if b.Node != nil {
			if b.Node.Failed() {
				require.Equal(t, StyleFailed, b.Style)
				seen, named[b.Number] = seen+1, true
			}
			continue
		}

		if vertices[b.Number].node.Failed() && strings.Contains(text, " inside (") {
			seen, named[b.Number] = seen+1, true
		}
		if m := countedFailures.FindStringSubmatch(text); m != nil {
			require.Equal(t, StyleFailed, b.Style)
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

	// The other formats have the same boxes.
	if len(vertices) > 10_000 {
		return
	}
	require.Equal(t, len(p.Boxes), strings.Count(dotOf(t, d, &DOTOptions{}), "tooltip="))
	require.Equal(t, len(p.Boxes), strings.Count(svg(t, d, &SVGOptions{}), `role="listitem"`))
	boxes := 0
	for _, id := range takeApart(t, draw(t, d, nil)).nodes {
		if id != "note0" {
			boxes++
		}
	}
	require.Equal(t, len(p.Boxes), boxes)
}
