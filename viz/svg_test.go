package viz

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/testkit/fixture"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/stretchr/testify/require"
)

// seen is what is read back from an SVG.
type seen struct {
	boxes  map[string][]string
	edges  []string
	frames map[string]string
	title  string
}

// readSVG reads an SVG back as XML. It fails where there is an element or an attribute that a picture does not need.
func readSVG(t *testing.T, text string) seen {
	t.Helper()
	allowed := map[string][]string{
		"svg":   {"xmlns", "width", "height", "viewBox", "role", "aria-labelledby", "space"},
		"title": {"id"}, "desc": {"id"}, "style": {}, "g": {"id", "class", "role", "aria-hidden", "data-frame"},
		"rect": {"class", "id", "data-owner", "x", "y", "width", "height", "rx"}, "path": {"class", "d", "data-from", "data-to"},
		"text": {"class", "direction", "x", "y"}, "tspan": {"class", "x", "y"},
	}

	s := seen{boxes: map[string][]string{}, frames: map[string]string{}}
	group, element := "", ""
	for dec := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return s
		}
		require.NoError(t, err)

		switch token := token.(type) {
		case xml.StartElement:
			element = token.Name.Local
			attr := map[string]string{}
			require.Contains(t, allowed, element)
			for _, a := range token.Attr {
				require.Contains(t, allowed[element], a.Name.Local, element)
				attr[a.Name.Local] = a.Value
			}

			switch {
			case element == "g":
				group = attr["id"] + attr["data-frame"]
			case element == "tspan":
				s.boxes[group] = append(s.boxes[group], "")
			case attr["data-from"] != "":
				s.edges = append(s.edges, attr["data-from"]+" "+attr["data-to"]+" "+attr["class"])
			}

		case xml.EndElement:
			element = ""

		case xml.CharData:
			switch element {
			case "tspan":
				list := s.boxes[group]
				list[len(list)-1] += string(token)
			case "text":
				s.frames[group] += string(token)
			case "title":
				s.title += string(token)
			case "style":
				require.NotContains(t, string(token), "url")
				require.NotContains(t, string(token), "import")
			}

		case xml.ProcInst, xml.Directive, xml.Comment:
			require.Fail(t, "not needed", "%v", token)
		}
	}
}

// requireSeen requires that an SVG shows a picture, text for text.
func requireSeen(t *testing.T, p *Picture, s seen) {
	t.Helper()
	require.Equal(t, p.Note, s.boxes[""])
	delete(s.boxes, "")
	require.Len(t, s.boxes, len(p.Boxes))
	for _, b := range p.Boxes {
		require.Equal(t, b.Lines, s.boxes[fmt.Sprint("n", b.Number)])
	}
	for i, f := range p.Frames {
		require.Equal(t, f.Title, s.frames[fmt.Sprint("f", i)])
	}
	var edges []string
	for _, e := range p.Edges {
		class := map[bool]string{true: "dashed"}[e.Dashed]
		edges = append(edges, fmt.Sprintf("n%d n%d %s", p.Boxes[e.From].Number, p.Boxes[e.To].Number, class))
	}
	require.Equal(t, edges, s.edges)
}

// hostileTexts is every text that a model, a tool or a user may try something with.
func hostileTexts(t *testing.T) []string {
	t.Helper()
	texts := append(slices.Clone(hostile), "]]>", "<![CDATA[x]]>", "<!-- x -->", "<?xml?>", "<!DOCTYPE x>", "</text></svg>", "</style>", "&#0;", "&x;",
		"\ufffe\uffff", "\xff\xfe", "\xed\xa0\x80", "\x00", "\u0085", "\u2028", "' onload='x", "\" onload=\"x", "\U0010ffff", "")
	if recorded, err := os.ReadFile(fixture.Path(t, "mermaid-check", "labels.jsonl")); err == nil {
		for line := range bytes.Lines(recorded) {
			var l struct{ Label string }
			require.NoError(t, json.Unmarshal(line, &l))
			texts = append(texts, l.Label)
		}
	}
	return texts
}

func TestSVGShowsHostileTexts(t *testing.T) {
	for _, text := range hostileTexts(t) {
		d := everywhere(sampleStart(), text)
		if d.Err() != nil {
			continue // not a text that a conversation can hold
		}
		o := Options{LabelLines: 1000, LabelChars: 10_000}
		s := readSVG(t, svg(t, d, titled(o, text)))
		requireSeen(t, layout(t, d, &o), s)
		want := strings.Join(strings.Fields(safetext.Clip(strings.ToValidUTF8(text, "\ufffd"), 1, 10_000)), "")
		said := strings.Join(strings.Fields(strings.Join(s.boxes["n0"][1:], "")), "")
		require.True(t, strings.HasPrefix(said, strings.TrimSuffix(want, "…")), "%q is shown as %q", text, said)
	}
}

func TestSVGShowsRandomGraphs(t *testing.T) {
	seeded(t, 200, 60, func(t *testing.T, d dag.DAG) { requireSeen(t, layout(t, d, nil), readSVG(t, svg(t, d, nil))) })
}

func TestSVGShowsHostileTextsInFolds(t *testing.T) {
	for texts := range slices.Chunk(hostile, 8) {
		d := foldedWith(texts)
		require.NoError(t, d.Err())
		o := Options{LabelLines: 100, LabelChars: 1000}
		p := layout(t, d, &o)
		require.NotNil(t, p.Note)
		requireSeen(t, p, readSVG(t, svg(t, d, &o)))
	}
}

// TestChromiumDrawsSVG reads back what Chromium draws: samples of all sizes, folded ones among them, random graphs, and
// hostile texts.
func TestChromiumDrawsSVG(t *testing.T) {
	t.Parallel()
	folder := requireMermaid(t)
	type picture struct {
		Name string `json:"name"`
		Text string `json:"text"`
		want *Picture
	}
	var pictures []picture
	add := func(name string, d dag.DAG, o Options) {
		require.NoError(t, d.Err(), name)
		pictures = append(pictures, picture{name, svg(t, d, titled(o, name)), layout(t, d, &o)})
	}

	add("scripts", viztest.Scripts(), Options{})
	viztest.Samples(2000, func(s viztest.Sample) { add(s.Name(), s.DAG, Options{}) })
	for seed := range uint64(200) {
		add(fmt.Sprint("seed ", seed), randomGraph(rand.New(rand.NewPCG(seed, 3)), 1+int(seed)%60, 2), Options{})
	}
	for texts := range slices.Chunk(hostile, 8) {
		long, d := Options{LabelLines: 100, LabelChars: 1000}, sampleStart()
		for _, text := range texts {
			d = everywhere(d, text)
		}
		add(texts[0], d, long)
		add(texts[0], foldedWith(texts), long)
	}

	var in, stderr bytes.Buffer
	for _, p := range pictures {
		require.NoError(t, json.NewEncoder(&in).Encode(p))
	}
	cmd := exec.Command("node", "svg.mjs")
	cmd.Dir, cmd.Stdin, cmd.Stderr = folder, &in, &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	results := json.NewDecoder(bytes.NewReader(out))
	for _, p := range pictures {
		var drawn struct {
			Boxes map[string]struct {
				Lines []string
				Fits  bool
			}
			Edges, Danger []string
			Frames        map[string]string
			Width, Font   float64
		}
		require.NoError(t, results.Decode(&drawn), p.Name)
		require.Empty(t, drawn.Danger, p.Name)
		require.Equal(t, float64(fontSize), drawn.Font, p.Name)
		require.Equal(t, float64(p.want.Width), drawn.Width, p.Name)

		s := seen{boxes: map[string][]string{}, edges: drawn.Edges, frames: drawn.Frames}
		if p.want.Note != nil {
			s.boxes[""] = p.want.Note
		}
		for id, b := range drawn.Boxes {
			s.boxes[id] = b.Lines
			require.True(t, b.Fits, "%s: the text of %s is inside of its box: %q", p.Name, id, b.Lines)
		}
		requireSeen(t, p.want, s)
	}
	t.Logf("%d pictures drawn by Chromium", len(pictures))
}

func TestSVGSamplesAreAsWrittenDown(t *testing.T) {
	got := svg(t, sampleSingle(), nil)
	goldentest.Require(t, "single.svg", got)
	goldentest.Require(t, "scripts.svg", svg(t, viztest.Scripts(), nil))
}

// TestLinesBeginWhereTheyAreRead: the first letter of a text decides for all lines that it is broken into, and a line
// from right to left begins at the right side of its box.
func TestLinesBeginWhereTheyAreRead(t *testing.T) {
	d := dag.New().User("שלום לכם כולם, וגם main.go:45 is in this long line.\nLatin, then שלום")
	b := layout(t, d, nil).Boxes[0]
	require.Equal(t, []string{"user", "שלום לכם כולם, וגם main.go:45 is in", "this long line.", "Latin, then שלום"}, b.Lines)
	require.Equal(t, []bool{false, true, true, false}, b.FromRight)
	require.Nil(t, layout(t, dag.New().User("Latin, then שלום"), nil).Boxes[0].FromRight)

	got := svg(t, d, nil)
	left, right := fmt.Sprintf(`<tspan x="%d"`, b.X+padX), fmt.Sprintf(`<tspan x="%d"`, b.X+b.W-padX)
	lines := strings.Split(got[strings.Index(got, "<text>"):], "</tspan>")
	require.Contains(t, lines[0], "<text>"+left)
	require.Contains(t, lines[1], `</text><text direction="rtl">`+right)
	require.True(t, strings.HasPrefix(lines[2], right), lines[2])
	require.Contains(t, lines[3], "</text><text>"+left)
}

func TestSVGOfAnEmptyConversation(t *testing.T) {
	require.Contains(t, svg(t, dag.New(), nil), "(an empty conversation)")
	readSVG(t, svg(t, dag.New(), nil))
}

func TestSVGErrors(t *testing.T) {
	require.Error(t, SVG(io.Discard, dag.New().CloseTools(), nil), "the error of the chain")
	require.ErrorIs(t, SVG(brokenWriter{}, sampleSingle(), nil), io.ErrClosedPipe)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestSVGTitle(t *testing.T) {
	require.Equal(t, "Conversation", readSVG(t, svg(t, sampleSingle(), nil)).title)
	require.Equal(t, "Weather & more", readSVG(t, svg(t, sampleSingle(), &Options{Title: "Weather & more"})).title)
}

func TestSVGTitleIsHarmless(t *testing.T) {
	title := readSVG(t, svg(t, sampleSingle(), &Options{Title: "\x00\x1b[31m\u202ea\nb</title>\ufffe" + strings.Repeat("x", 100)})).title
	require.Equal(t, "␀␛[31m\ufffda…", title)
	require.Equal(t, "Conversation", readSVG(t, svg(t, sampleSingle(), &Options{Title: "\t \n"})).title)
}

func TestSVGDescriptionCountsNodes(t *testing.T) {
	leaf := func() node.List[*node.Node] {
		return node.ListOf(dag.New().User("deep?").Assistant("Deep.").Heads()...)
	}
	d := sampleStart().User("a").Assistant("", use("1", "f", "{}"), use("2", "f", "{}"), use("3", "f", "{}")).
		CloseTools(node.ToolExecution{Child: leaf()}, node.ToolExecution{Index: 1, Child: leaf()}, failing(2, "no"))
	require.NoError(t, d.Err())
	said := func(o *Options) string {
		return regexp.MustCompile(`<desc id="plait-desc">(.*)</desc>`).FindStringSubmatch(svg(t, d, o))[1]
	}
	require.Equal(t, "10 nodes, 2 inner conversations, 1 failure", said(nil))
	for range 100 {
		d = d.User("Go on.")
	}
	require.Equal(t, "110 nodes in 20 boxes: a dashed box holds several. 1 failed, in a box of its own.", said(&Options{}))
}

// TestSVGFramesAndTips has a conversation in a frame that stays open, behind turns that are folded.
func TestSVGFramesAndTips(t *testing.T) {
	d := sampleStart().User("root")
	for range 100 {
		d = d.User("go on")
	}
	child := d.WithHeads(d.Nodes()[0]).User("forked").Assistant("yes")
	d = d.Assistant("", use("1", "f", "{}"), use("2", "f", "{}")).CloseTools(node.ToolExecution{Child: node.ListOf(child.Heads()...)}, ran(1, "done"))
	require.NoError(t, d.Err())
	o := &Options{}
	p, text := layout(t, d, o), svg(t, d, o)
	require.Len(t, p.Frames, 1)
	f := p.Frames[0]
	require.NotEqual(t, f.Owner, p.Boxes[f.Owner].Number)
	require.Contains(t, text, fmt.Sprintf(`<rect class="frame" id="f0" data-owner="n%d" x="%d" y="%d" width="%d" height="%d" rx="8"/>`,
		p.Boxes[f.Owner].Number, f.X, f.Y, f.W, f.H))

	want := map[string]bool{}
	for _, e := range p.Edges {
		end := e.Points[len(e.Points)-1]
		want[fmt.Sprintf("M%d %dL", end.X, end.Y)] = true
	}
	got := map[string]bool{}
	tips := regexp.MustCompile(`class="tips" d="(.*)"`).FindStringSubmatch(text)[1]
	for _, start := range regexp.MustCompile(`M\d+ \d+L`).FindAllString(tips, -1) {
		require.False(t, got[start], "a tip is drawn twice")
		got[start] = true
	}
	require.Equal(t, want, got)
}

// TestSVGFrameTitlesAreText has a sub-agent whose tool is named like a part of a document.
func TestSVGFrameTitlesAreText(t *testing.T) {
	child := dag.New().User("x")
	d := sampleStart().User("a").Assistant("", use("1", `"><script>`, "{}")).
		CloseTools(node.ToolExecution{Child: node.ListOf(child.Heads()...), Result: content.Words("done")})
	require.NoError(t, d.Err())
	require.Equal(t, `sub-agent: "><script>`, readSVG(t, svg(t, d, nil)).frames["f0"])
}

func BenchmarkSVG(b *testing.B) {
	for _, n := range []int{100, 2000, 20_000} {
		d := longConversation(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := SVG(io.Discard, d, &Options{Full: true}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}
