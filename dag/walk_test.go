package dag

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/internal/testkit/racetest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// say returns a node that says text after its parents.
func say(t testing.TB, text string, parents ...*node.Node) *node.Node {
	n, err := node.New(node.Source{}, node.Message{Role: content.User, Blocks: content.Words(text)}, node.Meta{}, parents...)
	require.NoError(t, err)
	return n
}

func texts(nodes []*node.Node) string {
	var out []string
	for _, n := range nodes {
		m, _ := n.Message()
		out = append(out, m.Blocks.Text())
	}
	return strings.Join(out, " ")
}

func TestOrderIsDepthFirstWithParentsAsDeclared(t *testing.T) {
	r := say(t, "r")
	a, b := say(t, "a", r), say(t, "b", r)
	a2 := say(t, "a2", a)
	for _, c := range []struct {
		name, want string
		heads      []*node.Node
	}{
		{"empty", "", nil},
		{"chain", "r a a2", []*node.Node{a2}},
		{"diamond", "r b a a2 m", []*node.Node{say(t, "m", b, a2)}},
		{"diamond the other way round", "r a a2 b m", []*node.Node{say(t, "m", a2, b)}},
		{"parent given twice", "r a m", []*node.Node{say(t, "m", a, a)}},
		{"parent that is an ancestor of another", "r a x", []*node.Node{say(t, "x", r, a)}},
		{"and after it", "r a x", []*node.Node{say(t, "x", a, r)}},
		{"no parents", "x", []*node.Node{say(t, "x")}},
		{"several roots", "x y z", []*node.Node{say(t, "z", say(t, "x"), say(t, "y"))}},
		{"fan", "r a b m", []*node.Node{say(t, "m", a, b)}},
		{"heads", "r b a a2", []*node.Node{b, a2}},
		{"head before another", "r a a2", []*node.Node{a, a2}},
		{"head after another", "r a a2", []*node.Node{a2, a}},
	} {
		d := New().WithHeads(c.heads...)
		require.Equal(t, c.want, texts(d.Nodes()), c.name)
		require.Equal(t, len(d.Nodes()), d.Len(), c.name)
	}
}

// naive is the order by recursion, by the words of Nodes.
func naive(heads []*node.Node) []*node.Node {
	var out []*node.Node
	var visit func(*node.Node)
	visit = func(n *node.Node) {
		if !slices.Contains(out, n) {
			for _, p := range n.Parents() {
				visit(p)
			}
			out = append(out, n)
		}
	}
	for _, h := range heads {
		visit(h)
	}
	return out
}

func TestWalksAgreeOnRandomGraphs(t *testing.T) {
	seed := seedtest.First(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	rounds := seedtest.Rounds(300, 1500)

	for range rounds {
		nodes := []*node.Node{say(t, "0")}
		for len(nodes) < 25 {
			last := nodes[len(nodes)-1]
			switch name := fmt.Sprint(len(nodes)); rnd.IntN(8) {
			case 0: // a merge of anything
				var parents []*node.Node
				for range rnd.IntN(4) {
					parents = append(parents, nodes[rnd.IntN(len(nodes))])
				}
				nodes = append(nodes, say(t, name, parents...))
			case 1, 2: // a fan, merged, in part now and then
				var fan []*node.Node
				for i := range 1 + rnd.IntN(4) {
					fan = append(fan, say(t, fmt.Sprint(name, "-", i), last))
				}
				nodes = append(append(nodes, fan...), say(t, name+"m", fan[rnd.IntN(len(fan)):]...))
			case 3:
				nodes = append(nodes, say(t, name, nodes[rnd.IntN(len(nodes))]))
			default:
				nodes = append(nodes, say(t, name, last))
			}
		}

		for range 6 {
			heads := []*node.Node{nodes[rnd.IntN(len(nodes))]}
			for range rnd.IntN(3) {
				heads = append(heads, nodes[rnd.IntN(len(nodes))])
			}

			d := New().WithHeads(heads...)
			want := naive(d.heads())
			require.Equal(t, want, d.Nodes(), "seed %d", seed)
			require.Equal(t, want, postOrder(d.heads()), "seed %d", seed)
			require.Equal(t, want, d.WithChildren(), "seed %d", seed)
			require.Equal(t, len(want), d.Len(), "seed %d", seed)
			for _, n := range nodes {
				require.Equal(t, slices.Contains(want, n), d.Contains(n), "seed %d", seed)
			}
		}
	}
}

func TestNodeAndItsSavedCopyAreOne(t *testing.T) {
	d := New().User("a").Assistant("b").User("c")
	var saved strings.Builder
	require.NoError(t, d.Write(&saved))
	loaded, err := Read(strings.NewReader(saved.String()))
	require.NoError(t, err)
	both := d.Join(loaded)
	require.Equal(t, "a b c", texts(both.Nodes()))
	require.True(t, both.Contains(loaded.Head()))
	require.True(t, d.Contains(loaded.Head().Parent(0)))
	require.Equal(t, "a b c d", texts(both.User("d").Nodes()))
	require.Equal(t, "a b", texts(both.Back(1).Nodes()))
}

func TestChildrenComeBeforeTheirNode(t *testing.T) {
	inner := New().User("inner")
	child := New().User("child").SubGraph("", inner)
	d := New().User("a").SubGraph("one", child).User("b").SubGraph("two", child)
	var kinds []string
	for _, n := range d.WithChildren() {
		text := n.Kind()
		if m, ok := n.Message(); ok {
			text = m.Blocks.Text()
		}
		kinds = append(kinds, text)
	}
	require.Equal(t, []string{"a", "inner", "child", "sub_graph", "sub_graph", "b", "sub_graph"}, sorted(kinds, "child", "inner"))
	require.Equal(t, 4, d.Len(), "a hanging conversation is no part of the one it hangs on")
	require.Equal(t, "child", texts(FromNode(d.Head()).Nodes()[:1]))
	require.Zero(t, FromNode(d.Nodes()[0]).Len())
}

// sorted swaps two neighbours into one order: which of a node's parent and its child conversation comes first is not promised.
func sorted(list []string, a, b string) []string {
	if i := slices.Index(list, a); i >= 0 && i+1 < len(list) && list[i+1] == b {
		list[i], list[i+1] = b, a
	}
	return list
}

// chain is a conversation of that many turns.
func chain(t testing.TB, size int) DAG {
	src := node.Counting(time.UnixMilli(1))
	d := New().WithSource(src)
	turns := []node.Payload{
		node.Message{Role: content.User, Blocks: content.Words("question")},
		node.Message{Role: content.Assistant, Blocks: content.Words("answer")},
	}
	for i := range size {
		d = d.Append(turns[i%2])
	}
	require.NoError(t, d.Err())
	return d
}

func TestManyNodesNeedNoRecursion(t *testing.T) {
	growthtest.SmallStack(t)
	size := seedtest.Rounds(20_000, 1_000_000)
	began := time.Now()
	lap := func(what string) {
		t.Logf("%-34s %s", what, time.Since(began).Round(time.Millisecond))
		began = time.Now()
	}
	d := chain(t, size)
	lap("built")
	twin := chain(t, size)
	lap("built again")

	require.Equal(t, size, d.Len())
	nodes := d.Nodes()
	require.Len(t, nodes, size)
	require.Equal(t, size-1, nodes[size-1].Depth())
	lap("walked")
	require.Len(t, d.Messages(), size)
	lap("linearised")
	require.True(t, d.Contains(nodes[0]))
	require.Same(t, nodes[0], d.Node(nodes[0].ID()))
	require.True(t, d.Contains(twin.heads()[0]), "nodes with one id are one node")
	stranger := New().User("stranger").heads()[0]
	require.False(t, d.Contains(stranger))
	require.Equal(t, size-100, d.Back(50).Len())
	require.Equal(t, "answer", d.Text())
	lap("searched and rewound")
	require.True(t, Equal(d, twin))
	lap("digested and compared")
	require.False(t, Equal(d, twin.User("more")))
	require.Empty(t, d.Validate())
	lap("validated")
	require.Equal(t, size, strings.Count(d.String(), "\n")+1)
	lap("drawn")
	var line []byte
	for _, n := range nodes {
		line = n.Append(line[:0])
	}
	require.Contains(t, string(line), "answer")
	lap("written, node by node")
	require.NoError(t, d.Write(io.Discard))
	lap("saved")
}

func TestAWideFan(t *testing.T) {
	size := seedtest.Rounds(1000, 10_000)
	var calls []content.Block
	var done []node.ToolExecution
	for i := range size {
		calls = append(calls, content.ToolUse{ID: fmt.Sprint(i), Name: "f", Input: "{}"})
		done = append(done, node.ToolExecution{Index: i, Result: content.Words("ok")})
	}
	f := content.Tool{Name: "f", Schema: `{"type":"object"}`}
	asked := New().Tools(f).User("go").Assistant("", calls...)
	d := asked.CloseTools(done...).Assistant("done")
	require.NoError(t, d.Err())
	require.Equal(t, size+5, d.Len())
	require.Empty(t, d.Validate())
	require.Equal(t, size+5, strings.Count(d.String(), "\n")+1)

	byHand := asked
	for i := range size {
		var err error
		byHand, _, err = byHand.AppendTo(asked.heads(), done[i])
		require.NoError(t, err)
	}
	require.Len(t, byHand.Heads(), size)
	require.Empty(t, byHand.OpenCalls())
	merged := byHand.CloseTools().Assistant("done")
	require.NoError(t, merged.Err())
	require.Equal(t, spoken(d), spoken(merged))

	heads := New().User("root")
	root := heads.heads()
	for i := range size {
		var err error
		heads, _, err = heads.AppendTo(root, node.Message{Role: content.User, Blocks: content.Words(fmt.Sprint(i))})
		require.NoError(t, err)
	}
	require.Equal(t, size+1, heads.Len())
	require.NotEmpty(t, heads.String())
	require.Equal(t, size+2, heads.User("all").Len())
	require.NotEmpty(t, heads.User("all").String())
}

func spoken(d DAG) int {
	blocks := 0
	for _, m := range d.Messages() {
		blocks += m.Blocks.Len()
	}
	return blocks
}

func TestAppendingCostsTheSameAtAnyLength(t *testing.T) {
	racetest.SkipCounting(t)
	allocations := func(d DAG) float64 {
		p := node.Message{Role: content.User, Blocks: content.Words("x")}
		return testing.AllocsPerRun(200, func() { d.Append(p) })
	}
	short, long := allocations(chain(t, 10)), allocations(chain(t, 100_000))
	t.Logf("%v allocations", short)
	require.Equal(t, short, long)
	require.LessOrEqual(t, short, 3.0) // the payload, the node, the heads
}

func TestRecentNodesAreFoundWithoutLookingAtThePast(t *testing.T) {
	racetest.SkipCounting(t)
	d := chain(t, 100_000)
	head := d.Head()
	allocated := testing.AllocsPerRun(20, func() {
		require.True(t, d.Contains(head.Parent(0)))
		require.Same(t, head, d.Node(head.ID()))
		require.Equal(t, "answer", d.Text())
		require.Equal(t, 1, d.Back(1).Head().NumParents())
	})
	require.Less(t, allocated, 100.0)
}

func TestManyGoroutinesExtendOneConversation(t *testing.T) {
	f := content.Tool{Name: "f", Schema: `{"type":"object"}`}
	base := New().System("s").Tools(f).User("go").Assistant("", content.ToolUse{ID: "a", Name: "f"}, content.ToolUse{ID: "b", Name: "f"})
	before := base.String()
	results := make([]DAG, 32)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			d := base.CloseTools(node.ToolExecution{Index: i % 2, Result: content.Words(fmt.Sprint(i))}).Assistant(fmt.Sprint(i))
			d = d.Tools(content.Tool{Name: fmt.Sprint("g", i), Schema: `{"type":"object"}`}).User("more")
			_ = d.Head().Digest()
			_, _, _, _ = d.Messages(), d.String(), d.Validate(), base.Head().Digest()
			results[i] = d.Back(1)
		})
	}
	wg.Wait()
	require.Equal(t, before, base.String())
	for i, d := range results {
		require.NoError(t, d.Err())
		require.Equal(t, fmt.Sprint(i), d.Text())
		_, has := d.Tool(fmt.Sprint("g", i))
		require.True(t, has)
		_, has = d.Tool(fmt.Sprint("g", (i+1)%len(results)))
		require.False(t, has)
		require.Empty(t, d.Validate())
	}
}

func TestManyGoroutinesForkOneConversation(t *testing.T) {
	for range 100 {
		base := New().User("start")
		base.Transcript()
		base.User("first").Transcript() // extends what base remembers, so all others fork it

		results := make([]Transcript, 8)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() { results[i] = base.User(fmt.Sprint(i)).Assistant("yes").Transcript() })
		}
		wg.Wait()

		for i, r := range results {
			require.Len(t, r.Messages, 3)
			require.Len(t, r.Nodes, 3)
			require.Equal(t, content.Words(fmt.Sprint(i)), r.Messages[1].Blocks)
		}
	}
}
