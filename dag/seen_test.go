package dag_test

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// think appends an answer that thinks, and knows what it had seen.
func think(t testing.TB, d dag.DAG, thought, text string) dag.DAG {
	return thinkAfter(t, d, d.Transcript().Seen(), thought, text)
}

func thinkAfter(t testing.TB, d dag.DAG, seen node.Digest, thought, text string) dag.DAG {
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

// TestSeenIsPinned: a file holds these digests, so they do not change. This is the rule of Transcript.Seen, spelled out.
func TestSeenIsPinned(t *testing.T) {
	d := fresh().System("Be brief.").System("Be kind.").Tools(declared("f", `Does "it".`), content.Tool{Name: "search", Extra: content.Extra{API: "a", JSON: `{"type":"s" }`}}).
		User("Hi.").Assistant("", use("c", "f", `{"x": 1.0}`)).CloseTools(execution(0, "1"))
	sum := sha256.Sum256([]byte("plait.seen.v1\x00" + `{"system":[{"text":"Be brief."},{"text":"Be kind."}],"tools":[` +
		`{"name":"f","description":"Does \"it\".","schema":{"type":"object"}},{"name":"search","extra":{"api":"a","json":{"type":"s" }}}]}`))
	for _, said := range [][2]string{
		{"user", `[{"type":"text","text":"Hi."}]`},
		{"assistant", `[{"type":"tool_use","id":"c","name":"f","input":{"x": 1.0}}]`},
		{"user", `[{"type":"tool_result","call_id":"c","content":[{"type":"text","text":"1"}]}]`},
	} {
		blocks := sha256.Sum256([]byte(said[1]))
		sum = sha256.Sum256([]byte(string(sum[:]) + said[0] + "\x00" + string(blocks[:])))
	}
	require.Equal(t, node.Digest(sum), d.Transcript().Seen())
	require.Equal(t, "sha256:e5eb245c585f3b4214677b66ac6f38c20221eeb59c67b5fa1f5cb2ac951c9e1c", d.Transcript().Seen().String())
	require.Equal(t, "sha256:c7f6735404fd4e35de375f4f2afd987992dc7794c90c32b5235595f4bdc43860", dag.Transcript{}.Seen().String())
	thought := think(t, d, "hm", "It is 1.")
	stale := again(fresh(), thought.Nodes()[1:]...)
	require.NotEqual(t, thought.Transcript().Seen(), stale.Transcript().Seen())
	require.Equal(t, again(fresh(), d.Nodes()[1:]...).Assistant("It is 1.").Transcript().Seen(), stale.Transcript().Seen(), "stale thinking counts as not there")
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
		"edited":            {again(fresh().System("s").User("eins"), nodes[2:]...), []string{"a", "b"}, nil},
		"edited later":      {again(again(fresh(), nodes[:3]...).User("drei"), nodes[4:]...), []string{"b"}, []string{"a"}},
		"one left out":      {again(again(fresh(), nodes[:2]...), nodes[3:]...), []string{"b"}, nil},
		"another system":    {d.System("t"), []string{"a", "b"}, nil},
		"a tool":            {d.Tools(declared("f", "")), []string{"a", "b"}, nil},
		"an empty system":   {d.System(""), nil, []string{"a", "b"}},
		"a note":            {d.Custom("n", 1), nil, []string{"a", "b"}},
		"compacted":         {compact(d, "1 to 2", 1, 2), []string{"b"}, nil},
		"compacted at 3":    {compact(d, "drei", 3), []string{"b"}, []string{"a"}},
		"thought on":        {think(t, d.System("t").User("5"), "c", "6").User("7"), []string{"a", "b"}, []string{"c"}},
		"not known":         {thinkAfter(t, d.User("5"), node.Digest{}, "c", "6"), nil, []string{"a", "b", "c"}},
		"not known, edited": {thinkAfter(t, d.User("5"), node.Digest{}, "c", "6").System("t"), []string{"a", "b", "c"}, nil},
		"nothing known":     {thinkAfter(t, fresh().User("5"), node.Digest{}, "c", "6").System("t"), nil, []string{"c"}},
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
		t := d.Transcript()
		blocks, _ := content.Of(content.Thinking{Text: "hm", Signature: "s"}, content.Text{Text: "a"})
		d = d.User("q")
		t.Messages = append(t.Messages, content.Message{Role: content.User, Blocks: content.Words("q")})
		d = d.Append(node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{Seen: t.Seen()}})
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
