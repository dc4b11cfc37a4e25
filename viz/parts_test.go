package viz

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// requireParts requires that the parts show every node and edge once, and returns what was found. A stub must name where it leads.
func requireParts(t *testing.T, whole drawing, texts []string, maxEdges, maxText int) {
	t.Helper()
	part := map[string]int{} // of each node
	var parts []drawing
	for i, text := range texts {
		p := takeApart(t, text)
		requireWhole(t, p)
		parts = append(parts, p)
		if len(p.nodes) > 5 {
			require.LessOrEqual(t, len(p.edges), maxEdges)
			require.LessOrEqual(t, utf16Len(text), maxText)
		}
		for _, n := range p.nodes {
			if n[0] == 'n' {
				require.Zero(t, part[n], "%s is drawn twice", n)
				part[n] = i + 1
			}
		}
	}
	require.Len(t, part, len(whole.nodes))
	want := map[[2]string]int{}
	for _, e := range whole.edges {
		want[e]++
	}
	in, out := map[[2]string]int{}, map[[2]string]int{}
	for i, p := range parts {
		labels := stubLabels(texts[i])
		for _, e := range p.edges {
			switch {
			case e[0][0] == 'n' && e[1][0] == 'n':
				want[e]--
			case e[0][0] == 'b':
				for _, far := range namedIn(t, labels[e[0]], part) {
					in[[2]string{far, e[1]}]++
				}
			case e[1][0] == 'a':
				for _, far := range namedIn(t, labels[e[1]], part) {
					out[[2]string{e[0], far}]++
				}
			default:
				require.Fail(t, "edge between stubs", "%v", e)
			}
		}
	}
	for e, n := range want {
		require.Equal(t, n, max(in[e], out[e]), "edge %v", e)
		if n > 0 && !strings.Contains(strings.Join(texts, ""), " more part") {
			require.Equal(t, in[e], out[e], "both ends of %v say so", e)
		}
		delete(in, e)
		delete(out, e)
	}
	require.Empty(t, in, "edges that are none")
	require.Empty(t, out, "edges that are none")
}

var stubLine = regexp.MustCompile(`(?m)^    ((?:ai?|bi?)\d+)>"([^"]+)"\]`)

func stubLabels(text string) map[string]string {
	labels := map[string]string{}
	for _, m := range stubLine.FindAllStringSubmatch(text, -1) {
		labels[m[1]] = m[2]
	}
	return labels
}

var (
	stubIn  = regexp.MustCompile(`^(?:from|inside) (.+) in part (\d+)$`)
	stubOut = regexp.MustCompile(`^(?:continues in|inside:) part (\d+) at (.+)$`)
)

// namedIn returns the ids that a stub names, and requires that they are where it says.
func namedIn(t *testing.T, label string, part map[string]int) []string {
	t.Helper()
	var ids []string
	for line := range strings.SplitSeq(label, "\n") {
		if strings.HasSuffix(line, " more parts") || strings.HasSuffix(line, " more part") {
			break // the stubs there name this one
		}
		names, number := "", ""
		if m := stubIn.FindStringSubmatch(line); m != nil {
			names, number = m[1], m[2]
		} else if m := stubOut.FindStringSubmatch(line); m != nil {
			names, number = m[2], m[1]
		} else {
			require.Fail(t, "no place", "%q", line)
		}
		for name := range strings.SplitSeq(names, ", ") {
			first, last, ranged := strings.Cut(name, " to ")
			if !ranged {
				last = first
			}
			from, err := strconv.Atoi(first[1:])
			require.NoError(t, err)
			to, err := strconv.Atoi(last[1:])
			require.NoError(t, err)
			for i := from; i <= to; i++ {
				id := fmt.Sprintf("n%d", i)
				require.Equal(t, number, strconv.Itoa(part[id]), "%s in %q", id, line)
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func TestPartsShowEveryNodeAndEdgeOnce(t *testing.T) {
	seeded(t, 300, 30, func(t *testing.T, d dag.DAG) {
		whole := takeApart(t, draw(t, d, &MermaidOptions{Full: true}))
		s := newSketch(d, &MermaidOptions{})
		var texts []string
		for _, sh := range s.split(12, 6000) {
			texts = append(texts, s.write(sh))
		}
		requireParts(t, whole, texts, 12, 6000)
	})
}

func TestPartsOfWhatFitsAreOneWholeDiagram(t *testing.T) {
	for _, d := range []dag.DAG{sampleSingle(), sampleSubAgents()} {
		parts := partsOf(t, d, nil)
		require.Len(t, parts, 1)
		require.Equal(t, draw(t, d, &MermaidOptions{Full: true}), parts[0].Text)
	}
	require.Equal(t, "Part 1 of 1: n0 to n7", partsOf(t, sampleSingle(), nil)[0].Title)
	empty := partsOf(t, dag.DAG{}, nil)
	require.Equal(t, []MermaidPart{{"Part 1 of 1", draw(t, dag.DAG{}, nil)}}, empty)
}

func TestPartsAreCutBetweenTurns(t *testing.T) {
	parts := partsOf(t, longRun(200, 3), nil)
	require.Greater(t, len(parts), 2)
	for i, p := range parts {
		ins, outs := strings.Count(p.Text, "from n"), strings.Count(p.Text, "continues in part")
		require.Equal(t, min(i, 1), ins, p.Title)
		require.Equal(t, min(len(parts)-1-i, 1), outs, p.Title)
	}
}

func TestSubAgentIsCutOnlyWhereItDoesNotFit(t *testing.T) {
	d := sampleStart().User("go")
	for i := range 30 {
		child := dag.New().WithSource(d.Source()).User("task")
		for range 15 + i {
			child = child.Assistant("thinking about it")
		}
		d = d.SubGraph("helper", child).User("next")
	}
	for _, p := range partsOf(t, d, nil) {
		require.NotContains(t, p.Text, "continued", p.Title)
		require.NotContains(t, p.Text, "inside", p.Title)
	}

	child := dag.New().WithSource(d.Source()).User("task")
	for range 1000 {
		child = child.Assistant("thinking about it")
	}
	parts := partsOf(t, sampleStart().User("go").SubGraph("helper", child).User("thanks"), nil)
	require.Greater(t, len(parts), 1)
	for _, p := range parts[1:] {
		require.Contains(t, p.Text, `["sub-graph`, p.Title)
		require.Contains(t, p.Text, ", continued", p.Title)
	}
}

func TestWideFanIsSplit(t *testing.T) {
	var calls []content.Block
	var runs []node.ToolExecution
	for i := range 2000 {
		calls = append(calls, use(fmt.Sprint(i), "step", `{}`))
		runs = append(runs, ran(i, "done"))
	}
	d := sampleStart().User("go").Assistant("", calls...).CloseTools(runs...).Assistant("ok")
	parts := partsOf(t, d, nil)
	require.Less(t, len(parts), 20)
	require.Contains(t, parts[1].Text, "from n1 in part 1", "one stub for all calls of a message")
	require.Equal(t, 1, strings.Count(parts[1].Text, "from n1 in part 1"))
	require.Regexp(t, fmt.Sprintf(`from n\d+ to n\d+ in part 1\nfrom n\d+ to n\d+ in part 2\nfrom n\d+ to n\d+ in part 3\nand %d more parts`, len(parts)-4),
		parts[len(parts)-1].Text, "each other part has calls")
}

func TestPartsOfWhatCannotBeFolded(t *testing.T) {
	root := sampleStart().User("root")
	d := root
	for range 600 {
		d = d.Join(root.User("a branch"))
	}
	parts := partsOf(t, d, nil)
	require.Len(t, parts, 2)
	require.Contains(t, parts[0].Text, "continues in part 2 at n")
	require.Contains(t, parts[1].Text, "from n0 in part 1")
}

func TestPartsOfManyNodesAndOfDeepNestingTakeNoRecursion(t *testing.T) {
	growthtest.SmallStack(t)
	size := seedtest.Rounds(20_000, 1_000_000)
	d := sampleStart()
	for range size {
		d = d.User("a")
	}
	parts := partsOf(t, d, nil)
	require.Contains(t, parts[len(parts)-1].Text, fmt.Sprintf("class n%d head", size-1))
	require.Less(t, len(parts), size/100)

	nested := sampleStart().User("innermost")
	for range 10_000 {
		nested = dag.New().WithSource(nested.Source()).Append(node.ToolExecution{Tool: "f", Child: node.ListOf(nested.Heads()...)}).Assistant("ok")
	}
	total := 0
	for _, p := range partsOf(t, nested, nil) {
		total += len(takeApart(t, p.Text).nodes)
	}
	require.GreaterOrEqual(t, total, 20_001)
}

func TestPartsKeepDepthAndAround(t *testing.T) {
	d := sampleSubAgents()
	require.NotContains(t, partsOf(t, d, &MermaidOptions{Depth: 1})[0].Text, "subgraph")
	last := d.Nodes()[len(d.Nodes())-1]
	o := &MermaidOptions{Around: last.ID(), Steps: 1}
	require.Equal(t, draw(t, d, o), partsOf(t, d, o)[0].Text)
	_, err := MermaidParts(d, &MermaidOptions{Around: node.ID{1}})
	require.ErrorIs(t, err, dag.ErrForeign)
	_, err = MermaidParts(dag.New().User(""), nil)
	require.Error(t, err)
}

func TestFramesAndTheirTitlesTakeRoomInAPart(t *testing.T) {
	d := sampleStart().User("innermost")
	for range 400 {
		d = dag.New().WithSource(d.Source()).Append(node.ToolExecution{Tool: strings.Repeat("#", nameChars), Child: node.ListOf(d.Heads()...)})
	}
	drawn := 0
	for _, p := range partsOf(t, d, nil) {
		require.LessOrEqual(t, utf16Len(p.Text), budgetText)
		drawn += strings.Count(p.Text, ":::user")
	}
	require.Equal(t, 401, drawn)
}

func TestALabelLongerThanADiagramIsASizeError(t *testing.T) {
	_, err := MermaidParts(sampleStart().User("a").User(strings.Repeat("é", 50_000)), &MermaidOptions{LabelChars: 100_000})
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestDrawingAroundANodeCountsWhatItLeavesOut(t *testing.T) {
	seeded(t, 300, 40, func(t *testing.T, d dag.DAG) {
		r := rand.New(rand.NewPCG(uint64(d.Len()), 5))
		s := newSketch(d, &MermaidOptions{})
		focus, steps := r.IntN(len(s.vertices)), 1+r.IntN(3)
		near := nearby(s.outline, focus, steps)
		s.lookAt(focus, steps)
		for _, p := range plans {
			sh := s.sheet(p)
			requireWhole(t, takeApart(t, s.write(sh)))
			total, drawn := 0, 0
			for _, i := range sh.boxes {
				in := sh.members[i]
				total += len(in)
				if label := s.box(i, in).label; regexp.MustCompile(`^… [\d,]+ nodes? (before|after|beside)`).MatchString(label) {
					require.Contains(t, label, count(len(in), "node"))
					continue
				}
				drawn += len(in)
				require.True(t, near[i], "n%d is drawn", i)
			}
			require.Equal(t, len(s.vertices), total, "every node is in one box")
			require.GreaterOrEqual(t, drawn, 1)
			if p.keep < 0 && p.depth == 0 {
				require.Equal(t, len(near), drawn, "what is near is drawn")
			}
			require.NotNil(t, sh.members[focus], "what the drawing is around has a box")
		}
	})
}

// nearby returns the vertices at most that many steps up from focus, and those as many down.
func nearby(o *outline, focus, steps int) map[int]bool {
	near := map[int]bool{focus: true}
	for _, up := range []bool{true, false} {
		ring := map[int]bool{focus: true}
		for range steps {
			next := map[int]bool{}
			o.arrows(func(from, to int, _ string) {
				if !up {
					from, to = to, from
				}
				if ring[to] {
					next[from], near[from] = true, true
				}
			})
			ring = next
		}
	}
	return near
}

func TestDrawingAroundCountsNodesBeforeAfterAndBeside(t *testing.T) {
	d := sampleStart()
	for i := range 20 {
		d = d.User(fmt.Sprint("step ", i))
	}
	middle := d.Nodes()[10]
	text := draw(t, d.Join(d.Back(17).Assistant("aside").Assistant("aside again")), &MermaidOptions{Around: middle.ID(), Steps: 2})
	require.Contains(t, text, "… 8 nodes before (n0 to n7)\n8 user turns")
	require.Contains(t, text, "… 7 nodes after (n13 to n19)\n7 user turns, 1 head")
	require.Contains(t, text, "… 2 nodes beside (n20 to n21)\n2 answers, 1 head")
	require.Contains(t, text, "step 8")
	require.Contains(t, text, "step 12")
	require.NotContains(t, text, "class ")

	require.ErrorIs(t, Mermaid(nil, d, &MermaidOptions{Around: node.ID{1}}), dag.ErrForeign)
	require.Contains(t, draw(t, d, &MermaidOptions{Around: middle.ID(), Steps: -1}), "… 7 nodes before (n0 to n6)", "3 steps")
}

func TestDepthFoldsWhatIsDeeper(t *testing.T) {
	for depth, want := range map[int][]string{
		1:  {"… 12 nodes inside (n6 to n17)"},
		2:  {"subgraph s0[", "… 4 nodes inside (n11 to n14)"},
		3:  {"subgraph s0[", "subgraph s1["},
		0:  {"subgraph s0[", "subgraph s1["},
		-1: {"subgraph s0[", "subgraph s1["},
	} {
		text := draw(t, sampleSubAgents(), &MermaidOptions{Depth: depth, Full: true})
		for _, w := range want {
			require.Contains(t, text, w, "depth %d", depth)
		}
		if depth > 0 {
			require.Equal(t, min(depth-1, 2), strings.Count(text, "subgraph"), "depth %d", depth)
		}
	}
}
