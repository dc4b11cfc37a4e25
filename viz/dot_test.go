package viz

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/stretchr/testify/require"
)

func TestDOTSamplesAreAsWrittenDown(t *testing.T) {
	got := dotOf(t, sampleSubAgents(), nil)
	goldentest.Require(t, "sub_agents.dot", got)
}

func TestDOTErrors(t *testing.T) {
	require.Error(t, DOT(io.Discard, dag.New().CloseTools(), nil), "the error of the chain")
	require.ErrorIs(t, DOT(brokenWriter{}, sampleSingle(), nil), io.ErrClosedPipe)
}

// The tests below read a drawing back from the real Graphviz.

func requireGraphviz(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("dot"); err != nil {
		require.Empty(t, os.Getenv("PLAIT_GRAPHVIZ"), "PLAIT_GRAPHVIZ is set, but Graphviz is missing: apt-get install graphviz")
		t.Skip("SKIPPED: Graphviz is not installed, so no drawing is read back from it")
	}
}

// graphviz is what Graphviz has drawn.
type graphviz struct {
	labels   map[string][]string // of nodes and clusters, by their names
	edges    map[string]bool     // whether dashed
	clusters map[string][]string // the nodes in each, those in clusters in it too
	width    float64             // in points
	font     float64             // the smallest, in points
}

func readGraphviz(t *testing.T, text string) graphviz {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("dot", "-Tsvg", "-o", filepath.Join(dir, "svg"), "-Tjson", "-o", filepath.Join(dir, "json"))
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		// Of fonts that the machine does not have, and of no place to keep a list of them.
		require.Contains(t, strings.ToLower(line), "font", "Graphviz complains")
	}
	svg, err := os.ReadFile(filepath.Join(dir, "svg"))
	require.NoError(t, err)
	g := graphviz{labels: map[string][]string{}, edges: map[string]bool{}, clusters: map[string][]string{}}
	g.readSVG(t, string(svg))
	data, err := os.ReadFile(filepath.Join(dir, "json"))
	require.NoError(t, err)
	g.readJSON(t, data)
	return g
}

func (g *graphviz) readSVG(t *testing.T, text string) {
	t.Helper()
	class, title, element, line := "", "", "", ""
	for dec := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)

		switch token := token.(type) {
		case xml.StartElement:
			element = token.Name.Local
			require.Contains(t, []string{"svg", "g", "title", "text", "polygon", "path", "ellipse", "polyline", "a"}, element)
			line = ""
			for _, a := range token.Attr {
				require.NotEqual(t, "href", a.Name.Local, "a link")
				switch {
				case element == "g" && a.Name.Local == "class":
					class, title = a.Value, ""
				case class == "edge" && a.Name.Local == "stroke-dasharray":
					g.edges[title] = true
				}
			}

		case xml.EndElement:
			if token.Name.Local == "text" {
				g.labels[title] = append(g.labels[title], line)
			}
			if token.Name.Local == "title" && class == "edge" {
				g.edges[title] = false
			}
			element = ""

		case xml.CharData:
			switch element {
			case "title":
				title += string(token)
			case "text":
				line += strings.ReplaceAll(string(token), "\u00a0", " ")
			}
		}
	}
}

func (g *graphviz) readJSON(t *testing.T, data []byte) {
	t.Helper()
	var drawn struct {
		Strict  bool
		BB      string
		Objects []struct {
			Name, FontSize string
			Nodes          []int
		}
		Edges []struct{ Tail, Head int }
	}

	require.NoError(t, json.Unmarshal(data, &drawn))
	require.False(t, drawn.Strict)

	corners := strings.Split(drawn.BB, ",")
	require.Len(t, corners, 4)
	var err error
	g.width, err = strconv.ParseFloat(corners[2], 64)
	require.NoError(t, err)

	g.font = math.Inf(1)
	for _, o := range drawn.Objects {
		size, err := strconv.ParseFloat(o.FontSize, 64)
		require.NoError(t, err, "%q", o.Name)
		g.font = min(g.font, size)
		for _, n := range o.Nodes {
			g.clusters[o.Name] = append(g.clusters[o.Name], drawn.Objects[n].Name)
		}
	}
}

// requireDrawn requires that Graphviz draws a conversation as it is.
func requireDrawn(t *testing.T, d dag.DAG, o *Options) graphviz {
	t.Helper()
	p, got := layout(t, d, o), readGraphviz(t, dotOf(t, d, o))
	name := func(box int) string { return fmt.Sprint("n", p.Boxes[box].Number) }

	labels, edges, clusters := map[string][]string{}, map[string]bool{}, map[string][]string{}
	titles := map[string]int{}
	spaced := func(lines []string) []string {
		var out []string
		for _, l := range lines {
			out = append(out, strings.ReplaceAll(l, "\u00a0", " "))
		}
		return out
	}

	for i, b := range p.Boxes {
		labels[name(i)] = spaced(b.Lines)
		for f := b.Frame; f >= 0; f = p.Frames[f].Outer {
			clusters[fmt.Sprint(f)] = append(clusters[fmt.Sprint(f)], name(i))
		}
	}
	for _, f := range p.Frames {
		titles[strings.ReplaceAll(f.Title, "\u00a0", " ")]++
	}
	for _, e := range p.Edges {
		edges[name(e.From)+"->"+name(e.To)] = e.Dashed
	}

	for name, lines := range got.labels {
		if strings.HasPrefix(name, "cluster") {
			titles[strings.Join(lines, "\n")]--
			continue
		}
		if name == "conversation" {
			require.Equal(t, p.Note, lines)
			continue
		}
		require.Equal(t, labels[name], lines, name)
	}

	require.Equal(t, p.Note != nil, got.labels["conversation"] != nil, "a folded drawing says so")
	delete(got.labels, "conversation")
	require.Equal(t, len(p.Boxes), len(got.labels)-len(p.Frames))
	require.Equal(t, edges, got.edges)
	for title, n := range titles {
		require.Zero(t, n, "%q", title)
	}

	// Graphviz has other names for clusters, so they are compared by the boxes in them.
	var want, have [][]string
	for _, c := range clusters {
		want = append(want, c)
	}
	for _, c := range got.clusters {
		have = append(have, c)
	}

	require.Len(t, have, len(want))
	for _, c := range want {
		found := false
		for _, h := range have {
			found = found || sameStrings(c, h)
		}
		require.True(t, found, "no cluster has just %v: %v", c, have)
	}
	return got
}

func sameStrings(a, b []string) bool {
	in := map[string]bool{}
	for _, s := range a {
		in[s] = true
	}
	for _, s := range b {
		if !in[s] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestGraphvizDrawsSamples(t *testing.T) {
	requireGraphviz(t)
	for name, d := range map[string]dag.DAG{"single": sampleSingle(), "parallel": sampleParallel(), "sub-agents": sampleSubAgents()} {
		t.Run(name, func(t *testing.T) { requireDrawn(t, d, &Options{}) })
	}
	require.Equal(t, [][]string{{"(an empty conversation)"}}, values(readGraphviz(t, dotOf(t, dag.New(), nil)).labels))
}

func values(m map[string][]string) (list [][]string) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

func TestGraphvizDrawsRandomGraphs(t *testing.T) {
	t.Parallel()
	requireGraphviz(t)
	nth := 0
	seeded(t, 100, 30, func(t *testing.T, d dag.DAG) {
		if nth++; seedtest.Sample(nth, 2) {
			requireDrawn(t, d, &Options{})
		}
	})
}

func TestGraphvizShowsHostileTexts(t *testing.T) {
	t.Parallel()
	requireGraphviz(t)
	own := []string{"<<b>x</b>>, URL=\"javascript:alert(1)\"", "<b>x</b>", `"quoted"`, `\N \G \L \l \r \T \E`, "a\\", "{a|b}", "<x>", "&eacute;",
		"node", "subgraph", "👨\u200d👩\u200d👧", "\u200d", "a -> b; c", "]; n9 [label=x"}
	nth := 0
	for texts := range slices.Chunk(append(own, hostileTexts(t)...), 20) {
		if nth++; !seedtest.Sample(nth-1, 2) {
			continue
		}
		d := sampleStart()
		for _, text := range texts {
			if next := everywhere(d, text); next.Err() == nil {
				d = next
			}
		}
		requireDrawn(t, d, &Options{LabelLines: 1000, LabelChars: 10_000})
	}
}

// TestGraphvizShowsHostileTextsInFolds has each text in every place of a folded drawing.
func TestGraphvizShowsHostileTextsInFolds(t *testing.T) {
	t.Parallel()
	requireGraphviz(t)
	nth, folded, tried := 0, 0, 0
	for texts := range slices.Chunk(hostile, 8) {
		if nth++; !seedtest.Sample(nth, 2) {
			continue
		}
		tried += len(texts)
		d := foldedWith(texts)
		o := Options{LabelLines: 100, LabelChars: 1000}
		requireDrawn(t, d, &o)
		for _, b := range layout(t, d, &o).Boxes {
			if b.Nodes > 1 {
				folded++
			}
		}
	}
	require.GreaterOrEqual(t, folded, tried, "each text is in a box that holds several nodes")
}

func BenchmarkDOT(b *testing.B) {
	for _, n := range []int{100, 2000, 20_000} {
		d := longConversation(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := DOT(io.Discard, d, &Options{Full: true}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}
