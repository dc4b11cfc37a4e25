package viz

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/fixture"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/stretchr/testify/require"
)

// The tests in this file draw with the real Mermaid, in Chromium. They run where PLAIT_MERMAID=1 is set, and then fail
// where node, its packages or Chromium are missing (.ci/browser/install.sh installs them).

const (
	allVersions    = "12,11,11-4,10"
	newestVersions = "12,11"
)

// job is one diagram for check.mjs, with what must be read back from it.
type job struct {
	Name   string `json:"name"`
	Text   string `json:"text"`
	Expect expect `json:"expect"`
}

type expect struct {
	Nodes     map[string]string `json:"nodes"`
	Edges     [][2]string       `json:"edges"`
	Subgraphs map[string]string `json:"subgraphs"`
}

// verdict is what check.mjs says of a diagram.
type verdict struct {
	File        string          `json:"file"`
	Mermaid     string          `json:"mermaid"`
	OK          bool            `json:"ok"`
	Match       bool            `json:"match"`
	DrawnAgrees bool            `json:"drawnAgrees"`
	Diffs       []string        `json:"diffs"`
	Danger      json.RawMessage `json:"danger"`
	Parse       struct{ Error string }
	Render      struct {
		Error           string
		FullWidth, Font float64 // the width of the whole and the smallest font, in pixels
		Height          float64
	}
}

// expecting returns the drawing of d, with what is meant by it: the boxes, their plain texts and their edges, by the
// plan that the drawing was made by.
func expecting(t *testing.T, name string, d dag.DAG, o Options) job {
	t.Helper()
	s := newSketch(t, d, &o)
	m, text, err := s.mermaid(s.labels)
	require.NoError(t, err)
	require.Equal(t, draw(t, d, &o), text)
	return meant(m, name, text)
}

// meant returns a drawing with what is meant by it.
func meant(m *plot, name, text string) job {
	e := expect{Nodes: map[string]string{}, Edges: [][2]string{}, Subgraphs: map[string]string{}}

	for _, it := range m.items {
		e.Nodes[fmt.Sprintf("n%d", it.vertex)] = shownByMermaid(it.face.label)
		for _, g := range m.path(none, m.vertices[it.vertex].group) {
			e.Subgraphs[fmt.Sprintf("s%d", g)] = shownByMermaid(m.groups[g].title)
		}
	}

	for _, edge := range m.edges {
		e.Edges = append(e.Edges, [2]string{fmt.Sprintf("n%d", edge.from), fmt.Sprintf("n%d", edge.to)})
	}
	if len(m.note) > 0 {
		e.Nodes["note0"] = strings.Join(m.note, " ")
	}

	return job{name, text, e}
}

// shownByMermaid replaces the two signs that Mermaid uses for its own escapes, as escape does: they cannot be shown.
func shownByMermaid(label string) string {
	return strings.NewReplacer("ﬂ", "fl", "¶ß", "¶\u200bß").Replace(label)
}

// check draws the jobs with each version and requires that all of them are read back as they were meant, and did
// nothing.
func check(t *testing.T, versions string, jobs []job) []verdict {
	t.Helper()
	var verdicts []verdict
	var in, stderr bytes.Buffer

	enc := json.NewEncoder(&in)
	for _, j := range jobs {
		require.NoError(t, enc.Encode(j))
	}

	cmd := exec.Command("node", "check.mjs", "--stdin", "--brief", "--mermaid="+versions)
	cmd.Dir, cmd.Stdin, cmd.Stderr = requireMermaid(t), &in, &stderr
	out, err := cmd.Output()

	drawn, wrong := 0, 0
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v verdict
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v), "%s", lines.Bytes())
		drawn++
		verdicts = append(verdicts, v)
		if (!v.OK || !v.Match || !v.DrawnAgrees || v.Danger != nil) && wrong < 20 {
			wrong++
			t.Errorf("Mermaid %s, %s: %s %s %q danger: %s", v.Mermaid, v.File, v.Parse.Error, v.Render.Error, v.Diffs, v.Danger)
		}
	}

	require.Equal(t, len(jobs)*(1+strings.Count(versions, ",")), drawn, "diagrams drawn: %v\n%s", err, stderr.String())
	t.Logf("%d diagrams drawn by Mermaid %s", len(jobs), versions)
	return verdicts
}

func requireMermaid(t *testing.T) string {
	t.Helper()
	return viztest.BrowserCheck(t, "mermaid", "PLAIT_MERMAID")
}

func TestRealMermaidDrawsSamples(t *testing.T) {
	requireMermaid(t)
	full := Options{Full: true}
	check(t, allVersions, []job{
		expecting(t, "single", sampleSingle(), full),
		expecting(t, "parallel", sampleParallel(), full),
		expecting(t, "sub-agents", sampleSubAgents(), full),
		expecting(t, "long run", longRun(20, 3), full),
		expecting(t, "folded", longRun(60, 12), Options{LabelChars: 20}),
	})
}

// TestRealMermaidDrawsALongRunOnTwoScreens: a run with one call after the other is high, not wide.
func TestRealMermaidDrawsALongRunOnTwoScreens(t *testing.T) {
	requireMermaid(t)
	d := sampleStart().User("The parser drops the last line of a file without a newline. Please fix it.")
	for i := range 19 {
		d = d.Assistant(fmt.Sprintf("Step %d: let me look at the next file and run its tests.", i), use("1", "bash", fmt.Sprintf(`{"command":"go test -run Line%d"}`, i))).
			CloseTools(node.ToolExecution{Index: 1, Result: content.Words("ok  example.com/parser 0.2s\nPASS")})
	}
	d = d.Assistant("Fixed.")
	for _, v := range check(t, allVersions, []job{expecting(t, "60 nodes", d, Options{})}) {
		require.LessOrEqual(t, v.Render.Height, 1800.0, v.Mermaid)
		require.LessOrEqual(t, v.Render.FullWidth, 1440.0, v.Mermaid)
	}
	require.LessOrEqual(t, layout(t, d, &Options{}).Height, 1800)
}

func TestRealMermaidDrawsUpToItsLimits(t *testing.T) {
	requireMermaid(t)
	chain := sampleStart()
	for range 501 {
		chain = chain.User("a")
	}
	wide := Options{Full: true, LabelChars: 100_000, LabelLines: 10_000}
	room := mermaidText - utf16Len(draw(t, sampleStart().User("a"), &wide)) + 1
	check(t, newestVersions, []job{
		expecting(t, "500 edges", chain, Options{Full: true}),
		expecting(t, "50,000 units", sampleStart().User(strings.Repeat("é ", room/2)), wide),
	})
}

// TestRealMermaidDrawsRandomGraphs draws half of them whole and half folded. Most are small: how long a drawing takes depends on its size, and what can go wrong on how many there are. Half of each are
// drawn by two of the versions and half by the two others; with PLAIT_MERMAID=all ten times as many are drawn, and every
// one by all four.
func TestRealMermaidDrawsRandomGraphs(t *testing.T) {
	requireMermaid(t)
	graphs, versions := 200, [2]string{"12,11-4", "11,10"}
	if os.Getenv("PLAIT_MERMAID") == "all" {
		graphs, versions = 2000, [2]string{allVersions, allVersions}
	}
	var halves [2][]job
	for i := range graphs {
		r := rand.New(rand.NewPCG(seedtest.First(t)+uint64(i), 2))
		half := &halves[i/2%2]
		*half = append(*half, randomJobs(t, r, i)...)
	}
	t.Logf("%d graphs, %d diagrams", graphs, len(halves[0])+len(halves[1]))
	for i, jobs := range halves {
		t.Run(versions[i], func(t *testing.T) { t.Parallel(); check(t, versions[i], jobs) })
	}
}

// randomJobs returns the drawings of random graph i.
func randomJobs(t *testing.T, r *rand.Rand, i int) []job {
	t.Helper()
	name := fmt.Sprintf("graph %d", i)
	size := 1
	if i%100 < 4 {
		size = 14
	}

	d := randomGraph(r, size, 1)
	require.NoError(t, d.Err(), name)
	s := newSketch(t, d, &Options{})

	if i%2 == 0 {
		return []job{expecting(t, name+", whole", d, Options{})}
	}
	m := s.drawn(plans[1+i/2%(len(plans)-1)])
	return []job{meant(m, name+", folded", m.mermaid(false))}
}

// TestRealMermaidShowsHostileTexts has each text in every place of a drawing where a model, a tool or a user can put
// one.
func TestRealMermaidShowsHostileTexts(t *testing.T) {
	requireMermaid(t)
	recorded, err := os.ReadFile(fixture.Path(t, "mermaid-check", "labels.jsonl"))
	require.NoError(t, err)

	texts := hostile
	for line := range bytes.Lines(recorded) {
		var l struct{ Label string }
		require.NoError(t, json.Unmarshal(line, &l))
		texts = append(texts, l.Label)
	}
	require.Greater(t, len(texts), 800)

	var jobs []job
	for len(texts) > 0 {
		n := min(12, len(texts))
		d, units := sampleStart(), 0
		for i, text := range texts[:n] {
			if units += len(text); i > 0 && units > 2500 {
				n = i
				break
			}
			d = everywhere(d, text)
		}

		require.NoError(t, d.Err())
		jobs = append(jobs, expecting(t, fmt.Sprintf("%q", texts[0]), d, Options{Full: true, LabelLines: 1000, LabelChars: 10_000}))
		texts = texts[n:]
	}

	// Each half has a browser of its own, so that both are drawn at the same time.
	half := len(jobs) / 2
	t.Run("first half", func(t *testing.T) { t.Parallel(); check(t, allVersions, jobs[:half]) })
	t.Run("second half", func(t *testing.T) { t.Parallel(); check(t, allVersions, jobs[half:]) })
}

// TestRealMermaidShowsHostileTextsInFolds has each text in every place of a folded drawing.
func TestRealMermaidShowsHostileTextsInFolds(t *testing.T) {
	t.Parallel()
	requireMermaid(t)
	var jobs []job
	for texts := range slices.Chunk(hostile, 8) {
		d := foldedWith(texts)
		require.NoError(t, d.Err())
		s := newSketch(t, d, &Options{LabelLines: 100, LabelChars: 1000})
		m := s.drawn(foldedPlan)
		jobs = append(jobs, meant(m, fmt.Sprintf("%q", texts[0]), m.mermaid(false)))
	}
	check(t, allVersions, jobs)
}

// foldedPlan folds all that foldedWith makes to be folded.
var foldedPlan = plan{fans: wideFan, depth: 1, keep: 1, failed: 2}

// foldedWith returns a conversation with each text in the places of a drawing that [everywhere] has none in: the names
// of refs, models and sub-graphs, the details of stops, the calls that share a box, and the failures that the box of a
// run names.
func foldedWith(texts []string) dag.DAG {
	d := sampleStart().User("Begin.")
	for _, text := range texts {
		var calls []content.Block
		var runs []node.ToolExecution
		for i := range wideFan + 2 {
			calls = append(calls, use(fmt.Sprint(i), text, fmt.Sprintf(`{%q:%q}`, "a", fmt.Sprint(i))))
			runs = append(runs, node.ToolExecution{Index: i, IsError: i%2 == 0, Result: content.Words(text)})
		}
		blocks, err := content.Of(calls...)
		if err != nil {
			panic(err)
		}
		d = d.Append(node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{Model: text, Stop: content.Stop(text)}}).CloseTools(runs...)

		// A run of turns that is one box, with a failure that the box names.
		for range minRun {
			d = d.User("Go on.").Append(node.StopReason{Reason: content.StopError, Detail: text})
		}
		d = d.Append(node.SubGraph{Title: text, Summary: text, Heads: node.ListOf(sampleStart().Custom(text, 1).Heads()...)})
		if named := d.WithRef(text); named.Err() == nil {
			d = named.WithRef("second " + text)
		}
		d = d.Append(node.System{Text: text})
	}
	open := d.Assistant("", use("open", texts[0], "{}"))
	return d.User("Other.").Join(open)
}

func everywhere(d dag.DAG, text string) dag.DAG {
	child := dag.New().WithSource(d.Source()).Custom(text, 1)
	in, err := content.ToJSON(map[string]string{text: text})
	if err != nil {
		panic(err)
	}
	return d.
		Append(node.Message{Role: content.Assistant, Blocks: content.Words(text)}).
		Append(node.ToolExecution{Tool: text, Input: in, Result: content.Words(text), Child: node.ListOf(child.Heads()...)})
}
