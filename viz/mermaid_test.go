package viz

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func TestMermaidDrawsTheSamplesAsBefore(t *testing.T) {
	for name, d := range map[string]dag.DAG{
		"single":     sampleSingle(),
		"parallel":   sampleParallel(),
		"sub_agents": sampleSubAgents(),
	} {
		got := draw(t, d, nil)
		goldentest.Require(t, name+".mmd", got)
	}
}

// drawing is a Mermaid text taken apart, by the grammar that package viz keeps to.
type drawing struct {
	nodes, groups []string
	edges         [][2]string
	heads         []string
}

var (
	styleLine = regexp.MustCompile(`^    classDef (\w+) (?:fill:#\w{6},stroke:#\w{6},color:#\w{6}(?:,stroke-dasharray:4 4)?|stroke-width:4px|stroke-dasharray:4 4)$`)
	boxLine   = regexp.MustCompile(`^ +((?:n|bi?|ai?|note)\d+)(\(|\[|\[\[|\[\\|\(\[|\[\(|>)"[^"<&` + "`" + `]+"(\)|\]|\]\]|/\]|\]\)|\)\]):::(user|assistant|aside|failed|folded)$`)
	groupLine = regexp.MustCompile(`^ +subgraph (s\d+)\["[^"]+"\]$`)
	edgeLine  = regexp.MustCompile(`^    ((?:n|bi?|ai?)\d+) (?:-->|-\.->) ((?:n|bi?|ai?)\d+)$`)
	headLine  = regexp.MustCompile(`^    class (n\d+) head$`)
	frameLine = regexp.MustCompile(`^    class (s\d+(?:,s\d+)*) frame$`)
	manyLine  = regexp.MustCompile(`^    class (n\d+) several$`)
)

// takeApart fails for a line that is no statement.
func takeApart(t *testing.T, text string) drawing {
	t.Helper()
	text, found := strings.CutPrefix(strings.TrimPrefix(text, closer+"\n"), "flowchart TD\n")
	require.True(t, found)

	styles := map[string]bool{}
	var d drawing
	var framed []string
	depth := 0

	for statement := range strings.SplitSeq(strings.TrimSuffix(joinLabels(text), "\n"), "\n") {
		if m := styleLine.FindStringSubmatch(statement); m != nil {
			styles[m[1]] = true
		} else if m := boxLine.FindStringSubmatch(statement); m != nil {
			d.nodes = append(d.nodes, m[1])
			require.True(t, styles[m[4]], "%s has no style %s", m[1], m[4])
		} else if m := groupLine.FindStringSubmatch(statement); m != nil {
			d.groups = append(d.groups, m[1])
			depth++
		} else if strings.TrimSpace(statement) == "end" {
			depth--
		} else if m := edgeLine.FindStringSubmatch(statement); m != nil {
			d.edges = append(d.edges, [2]string{m[1], m[2]})
		} else if m := headLine.FindStringSubmatch(statement); m != nil {
			d.heads = append(d.heads, m[1])
		} else if manyLine.MatchString(statement) {
			require.True(t, styles["several"])
		} else if m := frameLine.FindStringSubmatch(statement); m != nil {
			require.True(t, styles["frame"])
			framed = append(framed, strings.Split(m[1], ",")...)
		} else {
			require.Fail(t, "no statement", "%q", statement)
		}

		require.GreaterOrEqual(t, depth, 0)
	}
	require.Zero(t, depth, "every subgraph ends")
	require.ElementsMatch(t, d.groups, framed, "each has the colors of a frame")
	return d
}

// joinLabels puts each label on one line.
func joinLabels(text string) string {
	quoted := false
	return strings.Map(func(r rune) rune {
		if r == '"' {
			quoted = !quoted
		}
		if quoted && r == '\n' {
			return '/'
		}
		return r
	}, text)
}

func requireWhole(t *testing.T, d drawing) {
	t.Helper()
	known := map[string]bool{}
	for _, id := range append(d.nodes, d.groups...) {
		require.False(t, known[id], "%s is declared twice", id)
		known[id] = true
	}
	for _, e := range d.edges {
		require.True(t, known[e[0]] && known[e[1]], "an end of %v is not declared", e)
	}
	for _, h := range d.heads {
		require.True(t, known[h], "head %s is not declared", h)
	}
}

func TestFullDrawingShowsEveryNodeAndEdgeOnce(t *testing.T) {
	seeded(t, 500, 40, func(t *testing.T, d dag.DAG) {
		text := draw(t, d, &Options{Full: true})
		got := takeApart(t, text)
		requireWhole(t, got)
		o := new(outline).of(d.Heads())
		require.Len(t, got.nodes, len(d.WithChildren())-len(o.instead))
		require.Len(t, got.heads, len(d.Heads()))

		edges := map[[2]string]int{}
		for _, e := range got.edges {
			edges[e]++
		}
		id := map[node.ID]string{}
		for i, v := range o.vertices {
			require.Empty(t, id[v.node.ID()])
			id[v.node.ID()] = fmt.Sprintf("n%d", i)
		}
		want := map[[2]string]bool{}
		for _, n := range d.WithChildren() {
			if _, leftOut := n.Payload().(node.RunStart); leftOut && id[n.ID()] == "" {
				require.NotNil(t, o.instead[n.ID()])
				continue
			}
			for _, p := range n.Parents() {
				edge := [2]string{id[cmp.Or(o.instead[p.ID()], p).ID()], id[n.ID()]}
				require.Equal(t, 1, edges[edge])
				want[edge] = true
			}
		}
		require.GreaterOrEqual(t, len(got.edges), len(want))
		require.Equal(t, text, draw(t, d, &Options{Full: true}), "same graph, same bytes")
	})
}

func TestEveryPlanOfFoldingDrawsAWholeDiagram(t *testing.T) {
	seeded(t, 300, 80, func(t *testing.T, d dag.DAG) {
		s := newSketch(t, d, &Options{})
		for _, p := range plans {
			drawn := s.drawn(p)
			got := takeApart(t, drawn.mermaid(false))
			requireWhole(t, got)
			if p.heads == 0 {
				require.Len(t, got.heads, len(d.Heads()), "heads are not folded")
			} else {
				require.GreaterOrEqual(t, len(got.heads), min(p.heads, len(d.Heads())), "the first heads are not folded")
			}

			total := 0
			for _, it := range drawn.items {
				i, in := it.vertex, it.members
				total += len(in)
				bad := false
				for _, m := range in {
					bad = bad || m != i && s.vertices[m].group == s.vertices[i].group && p.keep >= 0 && s.vertices[m].node.Failed()
				}
				if bad {
					require.Contains(t, it.face.label, " failed")
				}
			}

			require.Equal(t, len(s.vertices), total, "every node is in one box")
		}
	})
}

func TestLongRunIsFoldedInTheMiddle(t *testing.T) {
	d := longRun(1000, 2)
	text := draw(t, d, nil)
	got := takeApart(t, text)
	requireWhole(t, got)

	require.Less(t, utf16Len(text), budgetText)
	require.Less(t, len(got.edges), budgetEdges)
	require.Greater(t, len(got.nodes), 10, "as much is drawn as can be read")
	require.LessOrEqual(t, layout(t, d, &Options{}).Height, legibleHeight)
	require.Contains(t, text, "failed: done 500", "a failure is not folded while there is room")
	require.Contains(t, text, "n0[", "the beginning is drawn")
	require.Contains(t, text, "stop: end_turn")
	require.Regexp(t, `"… [\d,]+ nodes \(n\d+ to n\d+\)\n\d+ user turns, [\d,]+ answers, \d+ tool calls"`, text)
}

func TestWideFanIsGroupedByToolAndOutcome(t *testing.T) {
	fan := func(n int, tools, failed int) dag.DAG {
		calls, runs := []content.Block{}, []node.ToolExecution{}
		for i := range n {
			calls = append(calls, use("", fmt.Sprint("step", i%tools), fmt.Sprintf(`{"i":%d}`, i)))
			runs = append(runs, node.ToolExecution{Index: i, IsError: i >= n-failed, Result: content.Words(fmt.Sprint("done ", i, "\nmore"))})
		}
		return sampleStart().User("go").Assistant("", calls...).CloseTools(runs...)
	}

	labels := func(d dag.DAG, p plan) (list []string) {
		s := newSketch(t, d, &Options{})
		items := s.drawn(p).items
		for _, it := range items[2 : len(items)-1] {
			list = append(list, it.face.label)
		}
		return list
	}

	all := plan{fans: wideFan, keep: -1}
	require.Equal(t, []string{
		"step0 ×9\ni: 0\ni: 2\ni: 4…", "step1 ×9\ni: 1\ni: 3\ni: 5…", "step0\nfailed: done 18\nmore\n(i: 18)", "step1\nfailed: done 19\nmore\n(i: 19)",
	}, labels(fan(20, 2, 2), all), "each failure has a box while there is room")

	require.Equal(t, []string{
		"step0 ×8\ni: 0\ni: 1\ni: 2…", "step0\nfailed: done 8\nmore\n(i: 8)", "step0 ×10, 10 failed\nfirst n11 step0: done 9\nlast n20 step0: done 18",
		"step0\nfailed: done 19\nmore\n(i: 19)",
	}, labels(fan(20, 1, 12), plan{fans: wideFan, keep: -1, failed: 2}), "or the first and the last, and the number")

	require.Equal(t, "step7 ×2, step8 ×2, step9 ×2, step10, step11, step12\ni: 7\ni: 8\ni: 9…", labels(fan(23, 13, 0), all)[7], "further tools share a box")

	require.Equal(t, []string{
		"step0 ×8\ni: 0\ni: 1\ni: 2…", "step0\nfailed: done 8\nmore\n(i: 8)", "step0\nfailed: done 9\nmore\n(i: 9)", "step0\nfailed: done 10\nmore\n(i: 10)",
		"step0 ×8, 8 failed\nfirst n13 step0: done 11\nlast n20 step0: done 18", "step0\nfailed: done 19\nmore\n(i: 19)",
	}, labels(fan(20, 1, 12), all), "no more failures than fit beside each other")

	require.Len(t, labels(fan(40, 1, 7), all), 8)
	require.Len(t, labels(fan(40, 13, 20), all), 8)
	require.Len(t, labels(fan(8, 1, 0), all), 8)
}

func TestManyBranchesShareABoxBehindTheFirst(t *testing.T) {
	start := sampleStart().User("go")
	var branches []dag.DAG
	for i := range wideFan + 1 {
		branches = append(branches, start.User(fmt.Sprint("branch ", i)))
	}
	s := newSketch(t, branches[0].Join(branches[1:]...).User("merge"), &Options{})
	text := s.drawn(plan{fans: wideFan, keep: -1}).mermaid(false)
	require.Equal(t, showFan, strings.Count(text, "branch "), text)
}

func TestSubAgentFoldsIntoItsCall(t *testing.T) {
	s := newSketch(t, sampleSubAgents(), &Options{})
	text := s.drawn(plan{depth: 1, keep: -1}).mermaid(false)
	require.NotContains(t, text, "subgraph")
	require.Contains(t, text, "… 12 nodes inside (n6 to n17)")
}

func TestMermaidsOwnLimitsAreKeptExactly(t *testing.T) {
	chain := func(nodes int) dag.DAG {
		d := sampleStart()
		for range nodes {
			d = d.User("a")
		}
		return d
	}
	draw(t, chain(501), &Options{Full: true}) // 500 edges

	err := Mermaid(io.Discard, chain(502), &Options{Full: true})
	require.ErrorIs(t, err, ErrTooLarge)
	require.EqualError(t, err, "too large for a Mermaid diagram: 501 edges, the maximum is 500")

	wide := &Options{Full: true, LabelChars: 100_000}
	room := 50_000 - utf16Len(draw(t, sampleStart().User("a"), wide)) + 1
	require.Equal(t, 50_000, utf16Len(draw(t, sampleStart().User(strings.Repeat("é", room)), wide)))
	err = Mermaid(io.Discard, sampleStart().User(strings.Repeat("é", room+1)), wide)
	require.EqualError(t, err, "too large for a Mermaid diagram: 50001 UTF-16 code units, the maximum is 50000")
	require.Error(t, Mermaid(io.Discard, sampleStart().User(strings.Repeat("😀", room/2+1)), wide), "an emoji counts twice")
}

func TestWhatCannotBeFoldedIsTooLarge(t *testing.T) {
	all := sampleStart()
	for range 599 {
		all = all.Join(sampleStart().WithSource(node.Source{}).User("hello"))
	}
	all = all.Join(sampleStart().User("hello"))
	merged, _, err := all.AppendTo(all.Heads(), node.System{Text: "a merge"})
	require.NoError(t, err)
	merged = merged.WithHeads(merged.Heads()[len(merged.Heads())-1])

	err = Mermaid(io.Discard, merged, nil)
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorContains(t, err, fmt.Sprintf("edges, the maximum is %d", budgetEdges))
}

func TestManyHeadsAreCountedBeyondTheFirst(t *testing.T) {
	comb := sampleStart().User("root")
	heads := []*node.Node{}
	for i := range 578 {
		heads = append(heads, comb.User("another way").Assistant("yes").Head())
		comb = comb.User(fmt.Sprint("step ", i)).Assistant("ok")
	}

	roots, empty := []*node.Node{}, sampleStart()
	for range 1500 {
		roots = append(roots, empty.User("hello").Head())
	}

	for name, d := range map[string]dag.DAG{
		"at one node": branches(sampleStart().User("root"), 600), "along a conversation": comb.WithHeads(append(heads, comb.Head())...),
		"of their own": sampleStart().WithHeads(roots...),
	} {
		text := draw(t, d, nil)
		got := takeApart(t, text)
		requireWhole(t, got)
		require.LessOrEqual(t, len(got.nodes), legibleBoxes, name)

		drawn := len(got.heads)
		require.Greater(t, drawn, 2, name)
		require.Contains(t, text, "◀ head 1\"", name)
		require.Contains(t, text, fmt.Sprintf("◀ head %d\"", drawn), name)
		require.NotContains(t, text, fmt.Sprintf("◀ head %d\"", drawn+1), name)

		for _, m := range regexp.MustCompile(`n(\d+)\("… [\d,]+ nodes \(n(\d+) to`).FindAllStringSubmatch(text, -1) {
			require.Equal(t, m[2], m[1], "%s: a box has the number of its first node", name)
		}

		counted := 0
		for _, m := range regexp.MustCompile(`([\d,]+) heads?[",]`).FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
			require.NoError(t, err)
			counted += n
		}
		require.Equal(t, len(d.Heads())-drawn, counted, "%s: heads that are not drawn are counted", name)
	}
}

func TestHeadInsideARunIsDrawn(t *testing.T) {
	d := longRun(100, 1)
	middle := d.Nodes()[200]
	two := d.WithHeads(d.Head(), middle)
	require.Len(t, two.Heads(), 2)
	text := draw(t, two, nil)
	require.Len(t, takeApart(t, text).heads, 2)
	require.Regexp(t, `n200[^\n]*\n(?:[^\n]*\n){0,3}◀ head 2"`, text)
}

func TestFailuresAreSeenAtAnySize(t *testing.T) {
	const turns, every = 4250, 20 // 21,251 nodes, of which 213 failed
	d := sampleStart().Tools(tool("step"))
	for i := range turns {
		e := ran(0, "done")
		e.IsError = i%every == 7
		d = d.User("step").Assistant("", use("0", "step", "{}")).CloseTools(e).Assistant("ok")
	}
	failures := 0
	for _, n := range d.Nodes() {
		if n.Failed() {
			failures++
		}
	}
	require.Equal(t, 213, failures)

	text := draw(t, d, nil)
	got := takeApart(t, text)
	requireWhole(t, got)
	require.LessOrEqual(t, len(got.nodes), legibleBoxes)
	drawn := strings.Count(text, "failed: done")
	require.Equal(t, 4, drawn)
	require.Contains(t, text, fmt.Sprintf("%d failed: %d in boxes of their own", failures, drawn))
	m := regexp.MustCompile(`, (\d+) failed\nfirst n\d+ step: done\nlast n\d+ step: done"[^:]*:::failed`).FindStringSubmatch(text)
	require.NotNil(t, m, "and a red box counts the others")
	require.Equal(t, fmt.Sprint(failures-drawn), m[1])
}

func TestDrawingsAreOfASizeThatCanBeRead(t *testing.T) {
	fan := draw(t, longRun(1, 60), nil)
	require.Contains(t, fan, "step ×59")
	long := takeApart(t, draw(t, longRun(405, 1), nil)) // 2,028 nodes
	require.LessOrEqual(t, len(long.nodes), legibleBoxes)
	require.Greater(t, len(long.nodes), 10)
	require.Len(t, takeApart(t, draw(t, longRun(2, 2), nil)).nodes, longRun(2, 2).Len(), "what is small is drawn whole")
	require.Greater(t, len(takeApart(t, draw(t, longRun(40, 2), &Options{Full: true})).nodes), 2*legibleBoxes, "and so is what was asked for")
}

func TestErrorsComeBeforeAnythingIsWritten(t *testing.T) {
	var b strings.Builder
	broken := dag.New().User("")
	require.Error(t, broken.Err())
	require.Equal(t, broken.Err(), Mermaid(&b, broken, nil))
	require.Empty(t, b.String())

	full := errors.New("disk full")
	require.Equal(t, full, Mermaid(writerFunc(func([]byte) (int, error) { return 0, full }), sampleSingle(), nil))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestEmptyConversationIsDrawnAsSuch(t *testing.T) {
	require.Contains(t, draw(t, dag.DAG{}, nil), `n0["(an empty conversation)"]`)
}

func TestModelsAreNamedWhereSeveralSpoke(t *testing.T) {
	say := func(model string) node.Message {
		return node.Message{Role: content.Assistant, Blocks: content.Words("hi"), Answer: node.Answer{Model: model}}
	}
	one := sampleStart().User("a").Append(say("m-1")).User("b")
	require.NotContains(t, draw(t, one.Append(say("m-1")), nil), "m-1")
	require.Contains(t, draw(t, one.Append(say("m-2")), nil), "assistant, m-2")
}

func TestArgumentsAreWrittenWithoutBraces(t *testing.T) {
	for input, want := range map[string]string{
		`{"city": "Tokyo", "days": 3}`:                     "city: Tokyo, days: 3",
		`{"a": {"b": [1, 2]}, "a": null}`:                  `a: {"b": [1, 2]}, a: null`,
		`{"a": "x\u00e9\n\ud800", "b\"": "\""}`:            "a: xé…, b\": \"",
		"{\"\xff\": \"\xff\"}":                             "\ufffd: \ufffd",
		`{}`:                                               "",
		`{"a": 1} and more`:                                "a: 1",
		`{"a": "` + strings.Repeat("x", 80) + `"}`:         "a: " + strings.Repeat("x", 69) + "…",
		`{"a": "` + strings.Repeat("x", 71) + `", "b": 1}`: "a: " + strings.Repeat("x", 69) + "…",
		`{"a": "` + strings.Repeat("日", 30) + `", "b": 1}`: "a: " + strings.Repeat("日", 30) + ", …",
		`{"a": 1`:  `{"a": 1`,
		`{"a": 1]`: `{"a": 1]`,
		`{"a"}`:    `{"a"}`,
		`[1]`:      `[1]`,
		`"text"`:   `"text"`,
		"":         "",
	} {
		require.Equal(t, want, describe.Arguments(content.JSON(input), argsChars), input)
	}
}

func TestLabelsNameKindToolAndFailure(t *testing.T) {
	answer := func(stop content.Stop) node.Message {
		return node.Message{Role: content.Assistant, Blocks: content.Words("well"), Answer: node.Answer{Stop: stop}}
	}

	for _, c := range []struct {
		payload node.Payload
		want    string
	}{
		{answer(content.StopEndTurn), "assistant\nwell"},
		{answer(content.StopMaxTokens), "assistant, stopped: max_tokens\nwell"},
		{node.ToolExecution{Tool: "f", Input: `{"a":"x y","b":[1,2],"c":null}`, Result: content.Words("ok")}, "f(a: x y, b: [1,2], c: null)\nok"},
		{node.ToolExecution{Tool: "f", Input: `{"a":`, IsError: true, Result: content.Words("cut off")}, "f\nfailed: cut off\n" + `({"a":)`},
		{node.ToolExecution{Tool: "f"}, "f()\n(no output)"},
		{node.StopReason{Reason: "max_turns", Detail: "limit 8", Turns: 8, ToolCalls: 1, Usage: content.Usage{Input: 12_345}},
			"stop: max_turns\nlimit 8\n8 turns, 1 tool call, 12,345 tokens"},
		{node.Compaction{Summary: content.Words("so far"), Replaced: node.ListOf(node.ID{1}, node.ID{2})}, "compaction of 2 nodes\nso far"},
		{node.Custom{Name: "acme.note", JSON: `{"a":1}`}, "record acme.note\na: 1"},
		{node.Tools{Defs: node.ListOf(tool("a"), tool("b"))}, "tools\na, b"},
		{node.SubGraph{Title: "review", Summary: "fine"}, "sub-graph: review\nfine"},
	} {
		s := newSketch(t, sampleStart().Append(c.payload), &Options{})
		require.Len(t, s.vertices, 1)
		require.Equal(t, c.want, s.labels.face(0).label)
	}

	byHand := sampleStart().Assistant("", use("1", "f", `{"a":1}`)).ToolResults(content.ToolResult{CallID: "1", Content: content.Words("two")})
	s := newSketch(t, byHand, &Options{})
	require.Equal(t, "assistant\nf(a: 1)", s.labels.face(0).label, "arguments stand with the call where no box runs it")
	require.Equal(t, "1 result\ntwo", s.labels.face(1).label)
}

func TestDeepNestingAndLongHistoryNeedNoRecursionPerNode(t *testing.T) {
	growthtest.SmallStack(t)
	size := seedtest.Rounds(20_000, 100_000)
	d := sampleStart()
	for range size {
		d = d.User("a")
	}
	got := takeApart(t, draw(t, d, nil))
	requireWhole(t, got)

	nested := sampleStart().User("a")
	for range size {
		nested = dag.New().Append(node.ToolExecution{Tool: "f", Child: node.ListOf(nested.Heads()...)})
	}
	require.LessOrEqual(t, len(takeApart(t, draw(t, nested, nil)).nodes), legibleBoxes)
}

// BenchmarkMermaid draws a conversation of tool phases in one diagram, folded where it must be, and whole in parts.
func BenchmarkMermaid(b *testing.B) {
	for _, size := range []int{100, 2000, 20_000} {
		d := longRun(size/6, 2)
		nodes := d.Len()
		perNode := func(b *testing.B, draw func() error) {
			b.ReportAllocs()
			for b.Loop() {
				if err := draw(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*nodes), "ns/node")
		}
		b.Run(fmt.Sprintf("%d nodes", size), func(b *testing.B) {
			perNode(b, func() error { return Mermaid(io.Discard, d, nil) })
		})
	}
}

func TestNodesOfOneIDAreOneBox(t *testing.T) {
	here, loaded := sampleStart().User("a"), sampleStart().User("a")
	fresh := node.Source{}
	d := here.WithSource(fresh).User("b").Join(loaded.WithSource(fresh).User("c"))
	got := takeApart(t, draw(t, d, nil))
	require.Equal(t, []string{"n0", "n1", "n2"}, got.nodes)
	require.Equal(t, [][2]string{{"n0", "n1"}, {"n0", "n2"}}, got.edges)
}

// TestDrawingShowsExecutedArguments: a call that a hook changed shows both, in the picture and in the log; the
// program's own records do not show.
func TestDrawingShowsExecutedArguments(t *testing.T) {
	e := ran(0, "22°C")
	e.Ran = node.Ran{Tool: "get_forecast", Input: `{"days":1}`}
	e.Usage, e.Details, e.Full = content.Usage{Output: 9}, `{"hidden":1}`, content.Words("hidden")
	d := sampleStart().User("Weather?").Assistant("", content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":"Tokyo"}`}).
		AppendExecutions(e).CloseTools().Append(node.StopReason{Reason: content.StopTerminated, ToolUsage: e.Usage})
	require.NoError(t, d.Err())
	for _, shown := range []string{draw(t, d, nil), strings.ReplaceAll(d.String(), `"`, "")} {
		require.Contains(t, shown, "get_forecast(days: 1) in place of get_weather(city: Tokyo)")
		require.Contains(t, shown, "9 tokens in tools")
		require.NotContains(t, shown, "hidden")
	}
}
