package dag_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// complete checks that a difference tells of every node, and returns its changes as a word each.
func complete(t testing.TB, a, b dag.DAG) []string {
	t.Helper()
	diff := dag.Diff(a, b)
	require.Equal(t, dag.Equal(a, b), diff.Equal())
	old, new := a.Nodes(), b.Nodes()
	if diff.Equal() {
		require.Empty(t, dag.ChangesOf(diff))
		require.Equal(t, len(new), diff.Common)
		return nil
	}
	for i := range diff.Common {
		require.Equal(t, old[i].Digest(), new[i].Digest())
	}
	if diff.Common < min(len(old), len(new)) {
		require.NotEqual(t, old[diff.Common].Digest(), new[diff.Common].Digest())
		require.Same(t, old[diff.Common], diff.Old)
		require.Same(t, new[diff.Common], diff.New)
	}
	olds, news := diff.Common+dag.AfterOf(diff), diff.Common+dag.AfterOf(diff)
	var words []string
	for _, c := range dag.ChangesOf(diff) {
		olds, news = olds+c.Before, news+c.Before
		words = append(words, string(c.Op))
		if c.Old != nil {
			olds++
		}
		if c.New != nil {
			news++
		}
		require.Equal(t, c.Op == dag.Removed, c.New == nil)
		require.Equal(t, c.Op == dag.Added, c.Old == nil)
		if c.Op == dag.Changed {
			require.NotEmpty(t, c.Parts())
		}
	}
	require.Equal(t, len(old), olds, "every old node is told of once")
	require.Equal(t, len(new), news, "every new node is told of once")
	text, err := json.Marshal(diff)
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	require.NotEmpty(t, diff.String())
	return words
}

func TestSameNodesAfterOthersAreNotEqual(t *testing.T) {
	// Only the parent of the last node differs. Both conversations have the same nodes in the same order.
	build := func(parent int) dag.DAG {
		d := fresh().System("s").User("a").Assistant("b")
		nodes := d.Nodes()
		last := d.WithHeads(nodes[parent]).User("c").Head()
		return d.WithHeads(nodes[2], last)
	}
	old, now := build(2), build(1)
	diff := dag.Diff(old, now)
	require.False(t, diff.Equal())
	require.Empty(t, complete(t, old, now))
	require.Contains(t, diff.String(), "the heads, or what nodes follow: ")
}

func TestDiffReportsTheChangeOfEachNode(t *testing.T) {
	base := fresh().System("s").User("1").Assistant("2").User("3").Assistant("4")
	without := fresh().System("s").User("1").Assistant("2")
	ask := fresh().User("q")
	x, y := ask.Assistant("x"), ask.Assistant("y")
	for name, c := range map[string]struct {
		a, b dag.DAG
		want []string
	}{
		"nothing":                  {fresh(), fresh(), nil},
		"said anew, the same":      {base, fresh().System("s").User("1").Assistant("2").User("3").Assistant("4"), nil},
		"from nothing":             {fresh(), base, []string{"added", "added", "added", "added", "added"}},
		"to nothing":               {without, fresh(), []string{"removed", "removed", "removed"}},
		"goes on":                  {without, base, []string{"added", "added"}},
		"was cut":                  {base, without, []string{"removed", "removed"}},
		"the middle":               {base, fresh().System("s").User("1").Assistant("two").User("3").Assistant("4"), []string{"changed"}},
		"the first":                {base, fresh().System("other").User("1").Assistant("2").User("3").Assistant("4"), []string{"changed"}},
		"one more in the middle":   {base, fresh().System("s").Custom("n", 1).User("1").Assistant("2").User("3").Assistant("4"), []string{"added"}},
		"one less":                 {base, fresh().System("s").User("1").User("3").Assistant("4"), []string{"removed"}},
		"two changed, one between": {base, fresh().System("s").User("one").Assistant("2").User("three").Assistant("4"), []string{"changed", "changed"}},
		"said earlier":             {base, fresh().System("s").User("3").User("1").Assistant("2").Assistant("4"), []string{"added", "removed"}},
		"other order of branches":  {x.Join(y), y.Join(x), []string{"removed", "added"}},
		"merged in another order":  {x.Join(y).User("z"), y.Join(x).User("z"), []string{"removed", "added"}},
		"other heads":              {base, base.WithHeads(append(base.Heads(), base.Nodes()[1])...), nil},
		"of another kind":          {fresh().User("1"), fresh().System("1"), []string{"removed", "added"}},
		"of the other side":        {fresh().User("1"), fresh().Assistant("1"), []string{"removed", "added"}},
	} {
		require.Equal(t, c.want, complete(t, c.a, c.b), name)
	}
	d := dag.Diff(base, base.WithHeads(append(base.Heads(), base.Nodes()[1])...))
	require.Contains(t, d.String(), "00000005 → 00000005, 00000002", "no change, and yet they are not equal")
	require.False(t, d.Equal())
}

func TestAddedNodesChangeNoOthers(t *testing.T) {
	// A fan with one execution more, and a chain with a node more.
	ask := func(calls ...string) dag.DAG {
		var blocks []content.Block
		for _, c := range calls {
			blocks = append(blocks, use(c, c, "{}"))
		}
		return fresh().User("q").Assistant("", blocks...).CloseTools().Assistant("done").User("more")
	}
	require.NotContains(t, complete(t, ask("a", "b"), ask("a", "c", "b")), "removed")
	require.Equal(t, []string{"added", "added"}, complete(t, ask("a"), ask("a").WithHeads(ask("a").Nodes()[:1]...).
		Custom("n", 1).Custom("m", 1).Assistant("", use("a", "a", "{}")).CloseTools().Assistant("done").User("more")))
}

func TestConversationsWithTheSameContentAreEqual(t *testing.T) {
	root := dag.New().User("r")
	one, other := root.User("p"), root.User("p")
	apart := one.User("q").Join(other.User("s")).User("end")
	together := one.User("q").Join(one.User("s")).User("end")
	require.True(t, dag.Equal(apart, together))
	require.NotEqual(t, apart.Len(), together.Len())
	require.Empty(t, complete(t, apart, together))
	require.Equal(t, "the conversations are the same: 5 nodes", dag.Diff(apart, together).String())
}

// Whatever a digest covers, a difference of it is a change.
func TestDiffReportsEverythingThatADigestCovers(t *testing.T) {
	extra := content.Extra{API: "x", JSON: `{"a":1}`}
	source := content.Source{MediaType: "image/png", Data: "AAAA"}
	blocks := []content.Block{
		content.Text{Text: "a"}, content.Text{Text: "b"}, content.Text{Text: "a", Extra: extra},
		content.Image{Source: source}, content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAB"}}, content.Image{Source: source, Extra: extra},
		content.Image{Source: content.Source{URL: "u"}}, content.Image{Source: content.Source{FileID: "u"}},
		content.Document{Source: source}, content.Document{Source: source, Title: "t"}, content.Document{Source: content.Source{Text: "a"}},
		content.Thinking{Text: "a"}, content.Thinking{Text: "a", Signature: "s"}, content.Thinking{Text: "a", Signature: "t"},
		content.Thinking{Redacted: "r"}, content.Thinking{Redacted: "q"}, content.Thinking{Text: "a", Extra: extra},
		content.ToolUse{ID: "1", Name: "f"}, content.ToolUse{ID: "1", Name: "g"}, content.ToolUse{ID: "1", Name: "f", Input: "{}"},
		content.ToolUse{ID: "1", Name: "f", Input: `{"a":1}`}, content.ToolUse{ID: "1", Name: "f", Input: `{"a":1.0}`},
		content.ToolUse{ID: "1", Name: "f", Extra: extra}, content.ToolUse{ID: "1", Name: "f", Input: "not JSON"},
		content.Opaque{API: "x", JSON: `{"a":1}`}, content.Opaque{API: "y", JSON: `{"a":1}`}, content.Opaque{API: "x", JSON: `{"a":2}`},
		content.Unknown{JSON: `{"type":"h","a":1}`}, content.Unknown{JSON: `{"type":"h","a":2}`},
	}
	results := []content.Block{
		result("1", "a"), result("2", "a"), result("1", "b"), content.ToolResult{CallID: "1", Content: content.Words("a"), IsError: true},
		content.ToolResult{CallID: "1"}, content.ToolResult{CallID: "1", Content: content.Words("a"), Extra: extra},
		content.ToolResult{CallID: "1", Content: mustOf(t, content.Image{Source: source})},
		content.ToolResult{CallID: "1", Content: mustOf(t, content.Text{Text: "a"}, content.Text{Text: "b"})},
		content.ToolResult{CallID: "1", Content: mustOf(t, content.Text{Text: "a", Extra: extra})},
	}
	var payloads []node.Payload
	for _, b := range blocks {
		payloads = append(payloads, speak(t, content.Assistant, b))
	}
	for _, b := range results {
		payloads = append(payloads, speak(t, content.User, b))
	}
	child := fresh().User("inner")
	payloads = append(payloads, speak(t, content.Assistant, content.Text{Text: "a"}, content.Text{Text: "b"}), speak(t, content.Assistant, content.Text{Text: "a\nb"}),
		speak(t, content.Assistant, content.Text{Text: "atextb"}), // what two texts "a" and "b" are, written without their lengths
		node.System{}, node.System{Text: "a"},
		node.Tools{Defs: node.ListOf(declared("f", "a"))}, node.Tools{Defs: node.ListOf(declared("f", "b"))}, node.Tools{Defs: node.ListOf(declared("g", "a"))},
		node.Tools{Defs: node.ListOf(content.Tool{Name: "f", Description: "a", Schema: `{"type":"object","x":1}`})},
		node.ToolExecution{}, node.ToolExecution{Index: 1}, node.ToolExecution{Tool: "f"}, node.ToolExecution{Input: "{}"}, node.ToolExecution{IsError: true},
		node.ToolExecution{Result: content.Words("a")}, node.ToolExecution{Result: content.Words("b")}, node.ToolExecution{Child: node.ListOf(child.Heads()...)},
		node.ToolExecution{Child: node.ListOf(child.User("more").Heads()...)},
		node.SubGraph{}, node.SubGraph{Title: "a"}, node.SubGraph{Summary: "a"}, node.SubGraph{Heads: node.ListOf(child.Heads()...)},
		node.Compaction{}, node.Compaction{Summary: content.Words("a")}, node.Compaction{Summary: content.Words("b")},
		node.StopReason{Reason: "a"}, node.StopReason{Reason: "b"}, node.StopReason{Reason: "a", Detail: "d"},
		node.Custom{Name: "a", JSON: "1"}, node.Custom{Name: "b", JSON: "1"}, node.Custom{Name: "a", JSON: "2"},
	)
	// What follows the changed node keeps its digest from covering for what is not spelled.
	grown := func(p node.Payload, front string) dag.DAG { return fresh().User(front).Append(p).User("end") }
	for i, p := range payloads {
		for k, q := range payloads {
			a, b := grown(p, "x"), grown(q, "y")
			if i == k || a.Nodes()[1].Digest() == grown(q, "x").Nodes()[1].Digest() {
				continue
			}
			require.NoError(t, a.Err())
			words := complete(t, a, b)
			require.Greater(t, len(words), 1, "%#v %#v", p, q)
			require.Equal(t, "changed", words[0])
			for _, c := range dag.ChangesOf(dag.Diff(a, b)) {
				for _, part := range c.Parts() {
					require.NotEqual(t, "content without a text form", part.Name, "%#v %#v", p, q)
				}
			}
		}
	}
}

func TestRandomConversationsAreComparedCompletely(t *testing.T) {
	seed := seedtest.First(t)
	for trial := range 40 {
		rnd := rand.New(rand.NewPCG(seed, uint64(trial)))
		m := &model{t: t, rnd: rnd, place: map[node.ID]int{}}
		versions := []version{{d: fresh()}}
		for range 40 {
			v := versions[rnd.IntN(len(versions))]
			versions = append(versions, m.step(v, versions[rnd.IntN(len(versions))]))
		}
		for range 60 {
			complete(t, versions[rnd.IntN(len(versions))].d, versions[rnd.IntN(len(versions))].d)
		}
	}
}

// linesOf is the lines of one changed text.
func linesOf(t *testing.T, old, new string) []dag.Line {
	t.Helper()
	diff := dag.Diff(dag.New().User(old), dag.New().User(new))
	require.Len(t, dag.ChangesOf(diff), 1)
	require.Len(t, dag.ChangesOf(diff)[0].Parts(), 1)
	return dag.ChangesOf(diff)[0].Parts()[0].Lines
}

func TestLinesAroundADifferenceAreShown(t *testing.T) {
	numbered := func(changed ...int) string {
		lines := make([]string, 40)
		for i := range lines {
			lines[i] = fmt.Sprint("line ", i)
		}
		for _, i := range changed {
			lines[i] = fmt.Sprint("other ", i)
		}
		return strings.Join(lines, "\n")
	}
	sign := map[dag.Op]string{dag.Same: " ", dag.Removed: "-", dag.Added: "+"}
	show := func(lines []dag.Line) string {
		var out []string
		for _, l := range lines {
			if l.Gap > 0 {
				out = append(out, fmt.Sprintf("(%d)", l.Gap))
			} else {
				out = append(out, sign[l.Op]+strings.TrimPrefix(l.Text, "line "))
			}
		}
		return strings.Join(out, "|")
	}
	require.Equal(t, "(17)| 17| 18| 19|-20|+other 20| 21| 22| 23|(16)", show(linesOf(t, numbered(), numbered(20))))
	require.Equal(t, "-0|+other 0| 1| 2| 3|(36)", show(linesOf(t, numbered(), numbered(0))))
	require.Equal(t, "(36)| 36| 37| 38|-39|+other 39", show(linesOf(t, numbered(), numbered(39))))
	require.Equal(t, "(7)| 7| 8| 9|-10|+other 10| 11| 12| 13| 14| 15| 16| 17|-18|+other 18| 19| 20| 21|(18)",
		show(linesOf(t, numbered(), numbered(10, 18))), "a gap of one line is the line")
	require.Contains(t, show(linesOf(t, numbered(), numbered(10, 19))), " 13|(2)| 16|")
	require.Equal(t, "-a|-b|+c", show(linesOf(t, "a\nb", "c")))
	require.Equal(t, " a|+b", show(linesOf(t, "a", "a\nb")))
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("日", 500_000)
	for _, before := range []string{"", "x"} {
		lines := linesOf(t, before+long+"ONE"+long, before+long+"TWO"+long)
		require.Len(t, lines, 2)
		require.Contains(t, lines[0].Text, "ONE")
		require.Contains(t, lines[1].Text, "TWO")
		for _, l := range lines {
			require.Less(t, len(l.Text), 420)
			require.True(t, utf8.ValidString(l.Text), "no character is cut in two")
		}
	}
	many := strings.Repeat("x\n", 200_000)
	for _, lines := range [][]dag.Line{linesOf(t, many, strings.Repeat("y\n", 200_000)), linesOf(t, many, "z"), linesOf(t, "z", many)} {
		require.Less(t, len(lines), 1000)
		gaps := 0
		for _, l := range lines {
			gaps += l.Gap
		}
		require.Greater(t, gaps, 190_000)
	}
	whole := dag.ChangesOf(dag.Diff(dag.New(), dag.New().User(many)))[0].Parts()[0].Lines
	require.Less(t, len(whole), 1000)
	require.Greater(t, whole[len(whole)-1].Gap, 190_000)
	alternate := func(s string) string { return strings.Repeat(strings.Repeat("x\n", 9)+s, 20_000) }
	require.Less(t, len(linesOf(t, alternate("a\n"), alternate("b\n"))), 1000)
}

func TestDifferenceIsSafeToPrint(t *testing.T) {
	evil := "\x1b[2J\u202e\tx\r\x00 \u009b31m" + strings.Repeat("\u0301", 100) + "\n  indented"
	call := content.ToolUse{ID: evil, Name: evil, Input: content.JSON(`{"` + "\u202e" + `":1}`)}
	d := fresh().User("q")
	for _, op := range [][2]dag.DAG{{d, d.User(evil)}, {d.User(evil), d}, {d.User(evil), d.User(evil + "\n" + evil)},
		{d, d.Assistant("", call).CloseTools().Custom(evil, evil)}} {
		diff := dag.Diff(op[0], op[1])
		for _, color := range []bool{false, true} {
			var out bytes.Buffer
			require.NoError(t, diff.Write(&out, &dag.DiffOptions{Color: color}))
			text := out.String()
			for _, ours := range []string{"\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[0m"} {
				if !color {
					require.NotContains(t, text, ours)
				}
				text = strings.ReplaceAll(text, ours, "")
			}
			for _, r := range text {
				require.True(t, r == '\n' || r >= ' ' && r != 0x7f && r != '\u202e' && (r < 0x80 || r > 0x9f), "%q in %q", r, text)
			}
			require.NotContains(t, text, strings.Repeat("\u0301", 10))
			require.Equal(t, color, strings.Contains(out.String(), "\x1b["))
		}
	}
	require.Contains(t, dag.Diff(d, d.User(evil)).String(), "+   indented", "spaces are kept")
	require.Contains(t, dag.Diff(d.User("a b"), d.User("a\u0085b")).String(), "+ a\uFFFDb", "a control character that is white space is shown, too")
}

func TestDifferenceAsJSON(t *testing.T) {
	d := counting().User("one")
	text, err := json.Marshal(dag.Diff(d.Assistant("a\n"+strings.Repeat("s\n", 9)+"<b>"), d.Assistant("c\n"+strings.Repeat("s\n", 9)+"<b>").Stop("x")))
	require.NoError(t, err)
	want := `{"equal":false,"common":1,` +
		`"old":{"id":"019b7ca9-8c88-7000-8000-000000000002","kind":"message","role":"assistant"},` +
		`"new":{"id":"019b7ca9-8c88-7000-8000-000000000003","kind":"message","role":"assistant"},` +
		`"old_heads":[{"id":"019b7ca9-8c88-7000-8000-000000000002","kind":"message","role":"assistant"}],` +
		`"new_heads":[{"id":"019b7ca9-8c88-7000-8000-000000000004","kind":"stop_reason"}],` +
		`"changes":[{"op":"changed","before":0,` +
		`"old":{"id":"019b7ca9-8c88-7000-8000-000000000002","kind":"message","role":"assistant"},` +
		`"new":{"id":"019b7ca9-8c88-7000-8000-000000000003","kind":"message","role":"assistant"},` +
		`"parts":[{"op":"changed","name":"text","lines":[{"op":"removed","text":"a"},{"op":"added","text":"c"},` +
		`{"op":"same","text":"s"},{"op":"same","text":"s"},{"op":"same","text":"s"},{"op":"same","text":"","gap":7}]}]},` +
		`{"op":"added","before":0,"old":null,"new":{"id":"019b7ca9-8c88-7000-8000-000000000004","kind":"stop_reason"},` +
		`"parts":[{"op":"added","name":"reason","lines":[{"op":"added","text":"x"}]}]}],"after":0}`
	var direct, compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, text))
	direct.Write(text)
	require.Equal(t, want, direct.String())
	require.Equal(t, want, compact.String())

	bytes, err := dag.Diff(dag.New(), dag.New()).MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `{"equal":true,"common":0,"old":null,"new":null,"old_heads":[],"new_heads":[],"changes":[],"after":0}`, string(bytes))
}

func TestDifferenceReturnsErrorsOfItsWriter(t *testing.T) {
	broken := errors.New("broken")
	require.ErrorIs(t, dag.Diff(dag.New(), dag.New().User("x")).Write(failing{broken}, nil), broken)
	require.ErrorIs(t, dag.Diff(dag.New(), dag.New()).Write(failing{broken}, nil), broken)
}

func TestManyNodesAreCompared(t *testing.T) {
	pairs := seedtest.Rounds(5000, 50_000) / 100 * 100
	d := dag.New()
	for i := range pairs {
		d = d.User(fmt.Sprint("question ", i)).Assistant(fmt.Sprint("answer ", i))
	}
	other := dag.New()
	for i := range pairs {
		other = other.User(fmt.Sprint("question ", i)).Assistant(fmt.Sprint("answer ", i*(1+i%100/99)))
	}
	require.Len(t, dag.ChangesOf(dag.Diff(d.Back(1), d)), 2)
	require.Len(t, dag.ChangesOf(dag.Diff(d, other)), pairs/100)
}

// TestDiffShowsNoHashOfHiddenContent: a hash confirms guesses. Content that is not shown is named by its size, and a change of it is reported.
func TestDiffShowsNoHashOfHiddenContent(t *testing.T) {
	picture := func(data string) content.Image {
		return content.Image{Source: content.Source{MediaType: "image/png", Data: data}}
	}
	secret := []string{"AAAA", "AAAB", "AAAABBBB"}
	d := counting()
	diff := dag.Diff(d.User("", picture(secret[0])), d.User("", picture(secret[1]))).String()
	require.Contains(t, diff, "    + (content that is not shown differs)")
	require.Contains(t, diff, "data: 4 bytes\n")
	require.NotRegexp(t, `sha256|[0-9a-f]{9}`, diff)

	diff = dag.Diff(d.User("", picture(secret[0])), d.User("", picture(secret[2]))).String()
	require.Contains(t, diff, "- data: 4 bytes")
	require.Contains(t, diff, "+ data: 8 bytes")
	require.NotContains(t, diff, "not shown")

	child := func(first string) dag.DAG { return counting().User(first).Assistant("It is warm.") }
	diff = dag.Diff(d.User("go").SubGraph("s", child("Lima?")), d.User("go").SubGraph("s", child("Rome?"))).String()
	require.Contains(t, diff, "ends in assistant It is warm.\n")
	require.Contains(t, diff, "    + (content that is not shown differs)")
	require.NotRegexp(t, `sha256|[0-9a-f]{9}`, diff)
}
