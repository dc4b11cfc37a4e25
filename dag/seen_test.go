package dag_test

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// think appends an answer that thinks, and knows what it had seen.
func think(t testing.TB, d dag.DAG, thought, text string) dag.DAG {
	return thinkAfter(t, d, d.Seen(), thought, text)
}

func thinkAfter(t testing.TB, d dag.DAG, seen node.Seen, thought, text string) dag.DAG {
	t.Helper()
	blocks, err := content.Of(content.Thinking{Text: thought, Signature: "s"}, content.Text{Text: text})
	require.NoError(t, err)
	d = d.Append(node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{Seen: seen}})
	require.NoError(t, d.Err())
	return d
}

// thoughts is those that d's transcript marks, and the others.
func thoughts(d dag.DAG) (stale, fresh []string) {
	for _, m := range d.Transcript().Messages {
		for _, b := range m.Blocks.All() {
			switch t, ok := b.(content.Thinking); {
			case ok && t.Stale:
				stale = append(stale, t.Text)
			case ok:
				fresh = append(fresh, t.Text)
			}
		}
	}
	return stale, fresh
}

// again appends what the nodes say.
func again(d dag.DAG, nodes ...*node.Node) dag.DAG {
	for _, n := range nodes {
		d = d.Append(n.Payload())
	}
	return d
}

// TestSeenIsPinned: files hold these values, so they do not change. This is the rule of DAG.Seen, spelled out.
func TestSeenIsPinned(t *testing.T) {
	d := fresh().System("Be brief.").System("Be kind.").Tools(declared("f", "one"), declared("g", "two")).
		User("Hi.").Assistant("", use("c", "f", `{"x": 1.0}`)).CloseTools(execution(0, "1"))
	nodes := d.Nodes()
	id := func(i int) string { id := nodes[i].ID(); return string(id[:]) }
	const none = "\x00\x00\x00\x00"
	sum := sha256.Sum256([]byte("plait.seen.v1\x00" + "\x00\x00\x00\x02" + id(0) + "\x00" + none + id(1) + "\x00" + none +
		"\x00\x00\x00\x02" + id(2) + "\x00" + none + id(2) + "\x00\x00\x00\x00\x01"))
	for _, i := range []int{3, 4, 6} {
		sum = sha256.Sum256([]byte(string(sum[:]) + id(i) + "\x00"))
	}
	require.Equal(t, node.Seen(sum), d.Seen())
}

// TestSeenDependsOnNoText: a file must not confirm a guess of what was erased from it.
func TestSeenDependsOnNoText(t *testing.T) {
	build := func(pin string) dag.DAG {
		d := think(t, counting().System("s"+pin).Tools(declared("f", pin)).User(pin), pin, "2").User(pin)
		return compact(think(t, d, "b", "4"), pin, 3)
	}
	require.Equal(t, build("1").Seen(), build("2").Seen())
	require.NotEqual(t, build("1").Seen(), build("1").User("more").Seen())
}

// TestThinkingIsStaleAfterEachErasure erases one result of two, and later the other: each time the transcript changes,
// and what was thought after one is not valid after the other.
func TestThinkingIsStaleAfterEachErasure(t *testing.T) {
	d := fresh().Tools(declared("f", "")).User("1").Assistant("", use("a", "f", `{}`), use("b", "f", `{}`))
	d = d.CloseTools(execution(0, "one"), execution(1, "two"))
	var executions []node.ID
	for _, n := range d.Nodes() {
		if n.Kind() == "tool_execution" {
			executions = append(executions, n.ID())
		}
	}

	d = think(t, d, "whole", "2")
	d = think(t, d.Redact(executions[0]).User("3"), "half", "4")
	stale, fresh := thoughts(d)
	require.Equal(t, []string{"whole"}, stale)
	require.Equal(t, []string{"half"}, fresh)

	for _, d := range []dag.DAG{d.Redact(executions[1]), read(t, written(t, d.Redact(executions[1])))} {
		stale, fresh = thoughts(d)
		require.Equal(t, []string{"whole", "half"}, stale)
		require.Empty(t, fresh)
	}
}

// TestThinkingStaysValidWhenPromptsAndToolsComeBack declares what was declared before, changed or withdrawn in between.
func TestThinkingStaysValidWhenPromptsAndToolsComeBack(t *testing.T) {
	d := think(t, fresh().System("s").SetSystem("agent", "A").Tools(declared("f", "1"), declared("g", "1")).User("1"), "a", "2")
	for name, c := range map[string]struct {
		d     dag.DAG
		stale []string
	}{
		"the same tool":            {d.Append(node.Tools{Defs: node.ListOf(declared("f", "1").Definition())}), nil},
		"the same prompt":          {d.Append(node.System{Name: "agent", Text: "A"}), nil},
		"another prompt":           {d.SetSystem("agent", "B"), []string{"a"}},
		"a prompt and back":        {d.SetSystem("agent", "B").User("3").SetSystem("agent", "A"), nil},
		"a tool and back":          {d.Tools(declared("g", "2")).User("3").Tools(declared("g", "1")), nil},
		"a tool withdrawn":         {d.WithdrawTools("g"), []string{"a"}},
		"a tool withdrawn, back":   {d.WithdrawTools("g").User("3").Tools(declared("g", "1")), nil},
		"a prompt that was erased": {d.Redact(d.Nodes()[0].ID()), []string{"a"}},
		"a tool that was erased":   {d.Redact(d.Nodes()[2].ID()), []string{"a"}},
		"a message, erased":        {d.Redact(d.Nodes()[3].ID()), []string{"a"}},
		"a summary, erased": {func() dag.DAG {
			c := compact(d, "sum", 3)
			c = think(t, c.User("3"), "b", "4")
			return c.Redact(c.Nodes()[5].ID())
		}(), []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.d.Err())
			for _, d := range []dag.DAG{c.d, c.d.User("more"), read(t, written(t, c.d))} {
				stale, _ := thoughts(d)
				require.Equal(t, c.stale, stale)
			}
		})
	}
}

// edited is a chain again, with another message in place of n.
func edited(d dag.DAG, n *node.Node, text string) dag.DAG {
	nodes := d.Nodes()
	at := slices.Index(nodes, n)
	return again(d.WithHeads(n.Parents()...).Append(saying(text)), nodes[at+1:]...)
}

func TestThinkingIsStaleAfterAnotherTranscript(t *testing.T) {
	d := think(t, think(t, fresh().System("s").User("1"), "a", "2").User("3"), "b", "4")
	nodes := d.Nodes()
	for name, c := range map[string]struct {
		d            dag.DAG
		stale, fresh []string
	}{
		"as it was":         {d, nil, []string{"a", "b"}},
		"with more after":   {d.User("5").Assistant("6"), nil, []string{"a", "b"}},
		"two forks":         {d.Join(think(t, d.Back(1).User("other"), "c", "x")), []string{"c"}, []string{"a", "b"}},
		"edited":            {edited(d, nodes[1], "eins"), []string{"a", "b"}, nil},
		"edited later":      {edited(d, nodes[3], "drei"), []string{"b"}, []string{"a"}},
		"one left out":      {again(again(fresh(), nodes[:2]...), nodes[3:]...), []string{"b"}, nil},
		"another system":    {d.System("t"), []string{"a", "b"}, nil},
		"a tool":            {d.Tools(declared("f", "")), []string{"a", "b"}, nil},
		"an empty system":   {d.System(""), nil, []string{"a", "b"}},
		"a note":            {d.Custom("n", 1), nil, []string{"a", "b"}},
		"compacted":         {compact(d, "1 to 2", 1, 2), []string{"b"}, nil},
		"compacted at 3":    {compact(d, "drei", 3), []string{"b"}, []string{"a"}},
		"thought on":        {think(t, d.System("t").User("5"), "c", "6").User("7"), []string{"a", "b"}, []string{"c"}},
		"not known":         {thinkAfter(t, d.User("5"), node.Seen{}, "c", "6"), nil, []string{"a", "b", "c"}},
		"not known, edited": {thinkAfter(t, d.User("5"), node.Seen{}, "c", "6").System("t"), []string{"a", "b", "c"}, nil},
		"nothing known":     {thinkAfter(t, fresh().User("5"), node.Seen{}, "c", "6").System("t"), nil, []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.d.Err())
			stale, fresh := thoughts(c.d)
			require.Equal(t, c.stale, stale)
			require.Equal(t, c.fresh, fresh)
			for _, m := range c.d.Messages() {
				require.NotContains(t, m.Blocks.Slice(), content.Thinking{Text: "a", Signature: "s", Stale: true}, "messages are as they were said")
			}
			var file bytes.Buffer
			require.NoError(t, c.d.Write(&file))
			require.NotContains(t, file.String(), "tale")
			loaded, err := dag.Read(&file)
			require.NoError(t, err)
			again, _ := thoughts(loaded)
			require.Equal(t, c.stale, again)
		})
	}
}

func TestStaleBlocksAreShared(t *testing.T) {
	d := think(t, fresh().User("1"), "a", "2").System("s").User("3")
	require.Equal(t, d.Transcript().Messages[1].Blocks.Slice()[0], content.Thinking{Text: "a", Signature: "s", Stale: true})
	require.True(t, d.Transcript().Messages[1].Blocks == d.User("4").Transcript().Messages[1].Blocks, "what is remembered with them is found")
	said := again(fresh(), d.Nodes()...)
	copied := said.Append(node.Message{Role: content.Assistant, Blocks: d.Transcript().Messages[1].Blocks})
	m, _ := copied.Head().Message()
	require.Equal(t, content.Thinking{Text: "a", Signature: "s"}, m.Blocks.At(0), "a node says nothing of a place that it may not have")
	require.True(t, copied.Head().Parent(0) != nil && copied.Head().Verify() == nil)
}

func TestFromTranscriptRecordsSeen(t *testing.T) {
	d := think(t, think(t, fresh().System("s").System("").User("1"), "a", "2").User("3"), "b", "4")
	for name, c := range map[string]struct {
		d            dag.DAG
		stale, fresh []string
	}{
		"as it is":     {dag.FromTranscript(d.Transcript()), nil, []string{"a", "b"}},
		"then changed": {dag.FromTranscript(d.Transcript()).System("t"), []string{"a", "b"}, nil},
		"of a changed": {dag.FromTranscript(compact(d, "drei", 4).Transcript()), []string{"b"}, []string{"a"}},
		"unclean": {dag.FromTranscript(dag.Transcript{System: []string{"\xff"}, Tools: []content.Tool{declared("f", "\xff")}, Messages: d.Transcript().Messages}),
			nil, []string{"a", "b"}},
	} {
		stale, fresh := thoughts(c.d)
		require.Equal(t, c.stale, stale, name)
		require.Equal(t, c.fresh, fresh, name)
	}
}

func BenchmarkTranscriptWithThinking(b *testing.B) {
	d := fresh().System("s")
	for range 1000 {
		blocks, _ := content.Of(content.Thinking{Text: "hm", Signature: "s"}, content.Text{Text: "a"})
		d = d.User("q")
		d = d.Append(node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{Seen: d.Seen()}})
	}
	for name, d := range map[string]dag.DAG{"holds": d, "stale": d.System("t")} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				d.Transcript()
			}
		})
	}
	b.Run("as said", func(b *testing.B) {
		for b.Loop() {
			d.Messages()
		}
	})
}
