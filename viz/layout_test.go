package viz

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// rect is a box or a frame.
type rect struct{ x, y, w, h int }

func (r rect) holds(s rect) bool {
	return r.x < s.x && r.y < s.y && s.x+s.w < r.x+r.w && s.y+s.h < r.y+r.h
}

func (r rect) meets(s rect) bool {
	return r.x < s.x+s.w && s.x < r.x+r.w && r.y < s.y+s.h && s.y < r.y+r.h
}

func boxRect(b Box) rect     { return rect{b.X, b.Y, b.W, b.H} }
func frameRect(f Frame) rect { return rect{f.X, f.Y, f.W, f.H} }

// requireTidy requires that no boxes overlap, that frames hold their own and nothing else, and that edges lead
// downwards.
func requireTidy(t *testing.T, p *Picture) {
	t.Helper()
	whole := rect{0, 0, p.Width, p.Height}
	around := func(frame int) []int { // the frames around it
		var all []int
		for ; frame >= 0; frame = p.Frames[frame].Outer {
			all = append(all, frame)
		}
		return all
	}

	for i, b := range p.Boxes {
		require.True(t, whole.holds(boxRect(b)), "box %d is not in the picture", i)
		for j := range i {
			if boxRect(b).meets(boxRect(p.Boxes[j])) {
				require.Fail(t, "boxes overlap", "%d %v and %d %v", i, boxRect(b), j, boxRect(p.Boxes[j]))
			}
		}

		in := around(b.Frame)
		for f, frame := range p.Frames {
			if slices.Contains(in, f) {
				require.True(t, frameRect(frame).holds(boxRect(b)), "box %d leaves frame %d", i, f)
			} else if frameRect(frame).meets(boxRect(b)) {
				require.Fail(t, "a frame cuts a box", "frame %d, box %d", f, i)
			}
		}
	}

	for i, f := range p.Frames {
		require.True(t, whole.holds(frameRect(f)), "frame %d is not in the picture", i)
		require.Less(t, f.Outer, i)
		in := around(f.Outer)
		for j := range i {
			if slices.Contains(in, j) {
				require.True(t, frameRect(p.Frames[j]).holds(frameRect(f)), "frame %d leaves frame %d", i, j)
			} else if frameRect(p.Frames[j]).meets(frameRect(f)) {
				require.Fail(t, "frames overlap", "%d and %d", i, j)
			}
		}
	}

	for _, e := range p.Edges {
		a, b := p.Boxes[e.From], p.Boxes[e.To]
		if a.Frame == b.Frame && !e.Dashed {
			require.LessOrEqual(t, a.Y+a.H, b.Y, "edge %d-%d leads up", e.From, e.To)
		}

		require.Equal(t, Point{a.X + a.W/2, a.Y + a.H}, e.Points[0])
		require.Equal(t, Point{b.X + b.W/2, b.Y}, e.Points[len(e.Points)-1])
	}
}

func TestLayoutIsTidy(t *testing.T) {
	seeded(t, 500, 120, func(t *testing.T, d dag.DAG) {
		p := layout(t, d, nil)
		requireTidy(t, p)
		if len(p.Boxes) < 200 {
			require.Empty(t, pierced(p))
		}
		requireTidy(t, layout(t, d, &Options{}))
	})
}

func TestLayoutOfAnEmptyConversation(t *testing.T) {
	p := layout(t, dag.New(), nil)
	require.Empty(t, p.Boxes)
	require.Positive(t, p.Width)
	require.Positive(t, p.Height)
}

func TestLayoutOfSamples(t *testing.T) {
	for name, d := range map[string]dag.DAG{"single": sampleSingle(), "parallel": sampleParallel(), "sub-agents": sampleSubAgents()} {
		t.Run(name, func(t *testing.T) { requireTidy(t, layout(t, d, nil)) })
	}
	p := layout(t, sampleSubAgents(), nil)
	require.Len(t, p.Frames, 2)
	require.Equal(t, "sub-agent: Research", p.Frames[0].Title)
	require.Equal(t, 0, p.Frames[1].Outer)
	require.Equal(t, []string{"Research(question: Why DAGs?)", "Because history forks."}, p.Boxes[p.Frames[0].Owner].Lines)
	require.Equal(t, fmt.Sprint("◀ head ", 2), p.Boxes[len(p.Boxes)-1].Lines[2])
}

// pierced returns an edge that runs through a box, if there is one.
func pierced(p *Picture) string {
	for _, e := range p.Edges {
		for i, b := range p.Boxes {
			for k := 1; k < len(e.Points) && i != e.From && i != e.To; k++ {
				u, v := e.Points[k-1], e.Points[k]
				line := rect{min(u.X, v.X), min(u.Y, v.Y), max(u.X, v.X) - min(u.X, v.X), max(u.Y, v.Y) - min(u.Y, v.Y)}
				if boxRect(b).meets(line) {
					return fmt.Sprintf("box %d, by edge %d-%d %v", i, e.From, e.To, e.Points)
				}
			}
		}
	}
	return ""
}

// TestLayoutPlacesAPhase says where the boxes of a small conversation stand.
func TestLayoutPlacesAPhase(t *testing.T) {
	p := layout(t, sampleParallel(), nil)
	middle := func(i int) int { return p.Boxes[i].X + p.Boxes[i].W/2 }
	for _, i := range []int{1, 2, 3, 5, 7, 8, 9} { // the trunk, with the second of the three calls
		require.Equal(t, middle(0), middle(i), "box %d", i)
	}
	require.Equal(t, p.Boxes[4].Y, p.Boxes[5].Y, "calls stand side by side")
	require.Equal(t, p.Boxes[4].Y, p.Boxes[6].Y)
	require.Equal(t, gapX, p.Boxes[5].X-p.Boxes[4].X-p.Boxes[4].W)
	require.Equal(t, gapX, p.Boxes[6].X-p.Boxes[5].X-p.Boxes[5].W)
	require.Equal(t, margin, p.Boxes[4].X)
}

func TestLayoutPutsBranchesToTheRight(t *testing.T) {
	question := sampleStart().User("Name a tree.")
	d := question.Assistant("An oak.").Join(question.Assistant("A red-black tree.").User("Really?"))
	p := layout(t, d, nil)
	require.Equal(t, []string{"assistant", "An oak.", "◀ head 1"}, p.Boxes[1].Lines)
	require.Greater(t, p.Boxes[1].X, p.Boxes[2].X+p.Boxes[2].W, "the longer branch is the trunk")
	require.Equal(t, p.Boxes[0].X+p.Boxes[0].W/2, p.Boxes[2].X+p.Boxes[2].W/2)
}

// TestLayoutKeepsPhasesTogether has a branch that goes on from a call for longer than its phase lasts: it stands to the
// right of all.
func TestLayoutKeepsPhasesTogether(t *testing.T) {
	d := sampleStart().User("Go.").Assistant("", use("1", "a", "{}"), use("2", "b", "{}"), use("3", "c", "{}")).
		CloseTools(ran(0, "1"), ran(1, "2"), ran(2, "3")).Assistant("Done.")
	first := d.Nodes()[2]
	branch := d.WithHeads(first)
	for range 5 {
		branch = branch.User("And then?").Assistant("Then something else.")
	}
	p := layout(t, d.Join(branch), nil)
	requireTidy(t, p)
	right := 0
	for _, b := range p.Boxes[:7] {
		right = max(right, b.X+b.W)
	}
	for _, b := range p.Boxes[7:] {
		require.Greater(t, b.X, p.Boxes[5].X+p.Boxes[5].W, "%v stands beside the message that joins the calls", b.Lines)
	}
	require.Less(t, p.Boxes[4].X+p.Boxes[4].W-p.Boxes[2].X, 400, "nothing stands between the calls")
}

// middles returns the middle of each box of a grown graph, by its word, and the points of each edge.
func middles(t *testing.T, d dag.DAG) (x map[string]int, edges map[string][]Point) {
	t.Helper()
	p := layout(t, d, nil)
	requireTidy(t, p)
	require.Empty(t, pierced(p))
	x, edges = map[string]int{}, map[string][]Point{}
	for _, b := range p.Boxes {
		x[b.Lines[1]] = b.X + b.W/2
	}
	for _, e := range p.Edges {
		edges[p.Boxes[e.From].Lines[1]+" "+p.Boxes[e.To].Lines[1]] = e.Points
	}
	return x, edges
}

func TestLayoutKeepsSpaceForEdgesToAMerge(t *testing.T) {
	d, _ := grown(t, "top", "a top", "b top", "b2 b", "b3 b2", "merge a b3", "leaf a")
	x, edges := middles(t, d)
	require.Greater(t, x["leaf"], x["a"])
	require.Equal(t, x["a"], edges["a merge"][1].X, "the edge runs down from a, beside the leaf")
	require.Len(t, edges["a merge"], 4)
}

func TestLayoutGoesStraightToAMerge(t *testing.T) {
	d, _ := grown(t, "top", "a top", "b top", "a2 a", "merge a2 b", "long1 a", "long2 long1", "long3 long2", "long4 long3", "long5 long4")
	x, _ := middles(t, d)
	require.Equal(t, x["a"], x["a2"], "though another branch of a is taller")
	require.Greater(t, x["long1"], x["b"], "which stands beside the phase")
	require.Equal(t, x["top"], x["merge"])
}

func TestLayoutPutsLaterBranchesNearer(t *testing.T) {
	d, _ := grown(t, "1", "2 1", "3 2", "4 3", "5 4", "6 5", "early 1", "early2 early", "early3 early2", "late 2", "late2 late", "late3 late2")
	x, _ := middles(t, d)
	require.Less(t, x["2"], x["late"])
	require.Less(t, x["late"], x["early"], "so that no edge crosses another")
}

func TestLayoutPutsSubAgentsBesideTheirCalls(t *testing.T) {
	p := layout(t, sampleSubAgents(), nil)
	f := p.Frames[0]
	call := p.Boxes[f.Owner]
	require.Greater(t, f.Y, call.Y+call.H)
	require.Greater(t, f.X, call.X+call.W/2, "what follows the call runs down beside the frame")
	merge := slices.IndexFunc(p.Boxes, func(b Box) bool { return b.Frame < 0 && b.Shape == shapeMerge })
	require.Greater(t, p.Boxes[merge].Y, f.Y+f.H, "the results come after all that the sub-agent did")
}

func TestLayoutFolds(t *testing.T) {
	d := longRun(40, 12)
	whole, folded := layout(t, d, nil), layout(t, d, &Options{})
	require.Len(t, whole.Boxes, d.Len())
	require.Less(t, len(folded.Boxes), 100)
	nodes := 0
	for _, b := range folded.Boxes {
		nodes += b.Nodes
		require.Equal(t, b.Nodes == 1, b.Node != nil)
		require.Equal(t, b.Nodes > 1, b.Style == styleFolded)
	}
	require.Equal(t, d.Len(), nodes, "each node is in one box")
}

func TestLayoutBreaksLongLines(t *testing.T) {
	d := sampleStart().User(strings.Repeat("word ", 20) + strings.Repeat("x", 50)).User(strings.Repeat("漢字", 30))
	p := layout(t, d, &Options{LabelChars: 1000})
	require.Equal(t, []string{
		"user", "word word word word word word word word", "word word word word word word word word", "word word word word",
		strings.Repeat("x", 40), strings.Repeat("x", 10),
	}, p.Boxes[0].Lines)
	require.Equal(t, []string{"user", strings.Repeat("漢字", 10), strings.Repeat("漢字", 10), strings.Repeat("漢字", 10)}, p.Boxes[1].Lines)
	require.Equal(t, p.Boxes[1].W, textWidth(40)+2*padX, "a wide character takes two cells")
	require.Equal(t, 1, p.Boxes[0].Heading)

	for text, want := range map[string][]string{
		"undefined: cursor.Advance":           {"undefined:", "cursor.Advance"},
		"(path: src/package0/file_10.go)":     {"(path: src/package0/", "file_10.go)"},
		"a " + strings.Repeat("x", 30) + " b": {"a " + strings.Repeat("x", 22), strings.Repeat("x", 8) + " b"},
	} {
		got, _, _ := wrap(text, fewCells)
		require.Equal(t, want, got, "words and names of files stay whole")
	}
}

func TestLayoutIsTheSameEachTime(t *testing.T) {
	seeded(t, 50, 60, func(t *testing.T, d dag.DAG) { require.Equal(t, layout(t, d, nil), layout(t, d, nil)) })
}

// TestLayoutOfFramesThatEndTogether has calls that nothing follows: their frames end below the same row.
func TestLayoutOfFramesThatEndTogether(t *testing.T) {
	d := dag.New().User("inside")
	for range 8 {
		d = dag.New().User("Call.").Append(node.ToolExecution{Tool: "deeper", Child: node.ListOf(d.Heads()...), Result: content.Words("done")})
	}
	requireTidy(t, layout(t, d.User("after"), nil))
}

// TestLayoutOfDeepGraphs would overflow a stack if a function called itself for each node, and take minutes with PLAIT_LONG
// if anything were done once for each pair of nodes. TestGrowth notices that every day.
func TestLayoutOfDeepGraphs(t *testing.T) {
	growthtest.SmallStack(t)
	size := seedtest.Rounds(20_000, 100_000)
	chain := sampleStart()
	for range size {
		chain = chain.User("a")
	}
	require.Len(t, layout(t, chain, nil).Boxes, size)

	comb := sampleStart().User("a") // each node has a leaf, and the longer branch is the younger
	var leaves []dag.DAG
	for range 5000 {
		leaves = append(leaves, comb.Assistant("leaf"))
		comb = comb.User("a")
	}
	p := layout(t, comb.Join(leaves...), nil)
	require.Len(t, p.Boxes, 10_001)
	require.Less(t, p.Width, 500)

	nested := dag.New().User("inside")
	for range 400 {
		nested = dag.New().User("Call.").Assistant("", use("1", "deeper", "{}")).
			CloseTools(node.ToolExecution{Child: node.ListOf(nested.Heads()...), Result: content.Words("done")})
	}
	require.Len(t, layout(t, nested, nil).Frames, 400)
}

func BenchmarkLayout(b *testing.B) {
	for _, n := range []int{100, 2000, 20_000} {
		d := longConversation(n)
		perNode := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Layout(d, &Options{Full: true}); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b)
		})

		b.Run(fmt.Sprint(n, "/placement"), func(b *testing.B) {
			o := new(outline).of(d.Heads())
			m := o.plot(o.fold(plans[0]))
			m.label(labeller{o, 3, 120, false}, lineCells)
			items, rooms := slices.Clone(m.items), slices.Clone(m.rooms)

			b.ReportAllocs()
			for b.Loop() {
				copy(m.items, items)
				copy(m.rooms, rooms)
				m.picture()
			}
			perNode(b)
		})
	}
}
