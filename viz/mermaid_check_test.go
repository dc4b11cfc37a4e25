package viz

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/fixture"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// The tests in this file draw with the real Mermaid, in Chromium. They run where PLAIT_MERMAID=1 is set, and then fail where
// node, its packages or Chromium are missing (mermaidcheck/install.sh installs them).

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
	Render      struct{ Error string }
}

// expecting returns the drawing of d, with what is meant by it: the boxes, their plain texts and their edges, by the plan that
// the drawing was made by.
func expecting(t *testing.T, name string, d dag.DAG, o MermaidOptions) job {
	t.Helper()
	s := newSketch(d, &o)
	text := draw(t, d, &o)
	for _, p := range plans {
		drawn, err := s.draw(p, mermaidEdges, mermaidText)
		if err != nil || drawn != text {
			continue
		}
		e := expect{Nodes: map[string]string{}, Edges: [][2]string{}, Subgraphs: map[string]string{}}
		box := s.fold(p)
		for i, in := range members(box) {
			if in == nil {
				continue
			}
			e.Nodes[fmt.Sprintf("n%d", i)] = s.box(i, in).label
			for _, g := range s.path(none, s.vertices[i].group) {
				e.Subgraphs[fmt.Sprintf("s%d", g)] = s.groups[g].title
			}
		}
		for _, edge := range s.edges(box) {
			e.Edges = append(e.Edges, [2]string{fmt.Sprintf("n%d", edge.from), fmt.Sprintf("n%d", edge.to)})
		}
		return job{name, text, e}
	}
	require.Fail(t, "no plan draws it like Mermaid")
	return job{}
}

// check draws the jobs with each version and requires that all of them are read back as they were meant, and did nothing.
func check(t *testing.T, versions string, jobs []job) {
	t.Helper()
	var in, stderr bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, j := range jobs {
		require.NoError(t, enc.Encode(j))
	}
	cmd := exec.Command("node", "check.mjs", "--stdin", "--brief", "--mermaid="+versions)
	cmd.Dir, cmd.Stdin, cmd.Stderr = "mermaidcheck", &in, &stderr
	out, err := cmd.Output()
	drawn, wrong := 0, 0
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v verdict
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v), "%s", lines.Bytes())
		drawn++
		if (!v.OK || !v.Match || !v.DrawnAgrees || v.Danger != nil) && wrong < 20 {
			wrong++
			t.Errorf("Mermaid %s, %s: %s %s %q danger: %s", v.Mermaid, v.File, v.Parse.Error, v.Render.Error, v.Diffs, v.Danger)
		}
	}
	require.Equal(t, len(jobs)*(1+strings.Count(versions, ",")), drawn, "diagrams drawn: %v\n%s", err, stderr.String())
	t.Logf("%d diagrams drawn by Mermaid %s", len(jobs), versions)
}

func requireMermaid(t *testing.T) {
	t.Helper()
	if os.Getenv("PLAIT_MERMAID") != "1" {
		t.Skip("SKIPPED: drawing with the real Mermaid takes minutes, node and Chromium; set PLAIT_MERMAID=1 to run it")
	}
	_, err := exec.LookPath("node")
	require.NoError(t, err, "PLAIT_MERMAID=1 is set, but node is missing")
	browser := os.Getenv("CHROMIUM")
	if browser == "" {
		browser = "/usr/bin/chromium"
	}
	for _, need := range []string{browser, filepath.Join("mermaidcheck", "node_modules", "mermaid-12")} {
		_, err := os.Stat(need)
		require.NoError(t, err, "PLAIT_MERMAID=1 is set, but something is missing; mermaidcheck/install.sh installs it")
	}
}

func TestRealMermaidDrawsSamples(t *testing.T) {
	requireMermaid(t)
	full := MermaidOptions{Full: true}
	check(t, allVersions, []job{
		expecting(t, "single", sampleSingle(), full),
		expecting(t, "parallel", sampleParallel(), full),
		expecting(t, "sub-agents", sampleSubAgents(), full),
		expecting(t, "long run", longRun(20, 3), full),
		expecting(t, "folded", longRun(60, 12), MermaidOptions{LabelChars: 20}),
	})
}

func TestRealMermaidDrawsUpToItsLimits(t *testing.T) {
	requireMermaid(t)
	chain := sampleStart()
	for range 501 {
		chain = chain.User("a")
	}
	wide := MermaidOptions{Full: true, LabelChars: 100_000, LabelLines: 10_000}
	room := mermaidText - utf16Len(draw(t, sampleStart().User("a"), &wide)) + 1
	check(t, newestVersions, []job{
		expecting(t, "500 edges", chain, MermaidOptions{Full: true}),
		expecting(t, "50,000 units", sampleStart().User(strings.Repeat("é ", room/2)), wide),
	})
}

func TestRealMermaidDrawsRandomGraphs(t *testing.T) {
	requireMermaid(t)
	const graphs, old = 500, 50
	var jobs []job
	for seed := range uint64(graphs) {
		d := randomGraph(rand.New(rand.NewPCG(seed, 2)), 1+int(seed)%14, 2)
		require.NoError(t, d.Err(), "seed %d", seed)
		jobs = append(jobs, expecting(t, fmt.Sprintf("seed %d", seed), d, MermaidOptions{}))
	}
	half := graphs / 2
	t.Run("first half", func(t *testing.T) { t.Parallel(); check(t, newestVersions, jobs[:half]) })
	t.Run("second half", func(t *testing.T) { t.Parallel(); check(t, newestVersions, jobs[half:]) })
	t.Run("old versions", func(t *testing.T) { t.Parallel(); check(t, "11-4,10", jobs[:old]) })
}

// TestRealMermaidShowsHostileTexts has each text in every place of a drawing where a model, a tool or a user can put one.
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
		jobs = append(jobs, expecting(t, fmt.Sprintf("%q", texts[0]), d, MermaidOptions{Full: true, LabelLines: 1000, LabelChars: 10_000}))
		texts = texts[n:]
	}
	half := len(jobs) / 2
	t.Run("first half", func(t *testing.T) { t.Parallel(); check(t, allVersions, jobs[:half]) })
	t.Run("second half", func(t *testing.T) { t.Parallel(); check(t, allVersions, jobs[half:]) })
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
