package providers

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
)

// binder is an agent behind a strict fake of Anthropic's API, which refuses thinking that does not stand where it was
// thought. Its n-th answer thinks "sn" and says "answer n".
type binder struct {
	t     *testing.T
	fake  *fake.API
	agent executor.Agent
}

func newBinder(t *testing.T, o api.Options, noStream bool, answers ...fake.Reply) *binder {
	model := fake.Anthropic(answers...)
	server := direct(t, model)
	p, _ := named("anthropic")
	return &binder{t, model, executor.Agent{
		Provider: api.NewClient(p.at(server, o, noStream), &api.ClientOptions{Attempts: 1}),
		Handler:  func(context.Context, executor.Call) (any, error) { return "It is so.", nil },
		Limits:   executor.Limits{Turns: 3},
	}}
}

// thought is answer n, which may think once more behind its text, and call a tool.
func thought(n int, twice, redacted bool, calls int) fake.Reply {
	thinking := content.Thinking{Text: "Hm.", Signature: fmt.Sprint("s", n)}
	if redacted {
		thinking = content.Thinking{Redacted: fmt.Sprint("s", n)}
	}
	said := []content.Block{thinking, content.Text{Text: fmt.Sprint("answer ", n)}}
	if twice {
		said = append(said, content.Thinking{Text: "Yes.", Signature: fmt.Sprint("s", n, "b")}, content.Text{Text: "So."})
	}
	for i := range calls {
		said = append(said, content.ToolUse{ID: fmt.Sprint("call_", n, "_", i), Name: "f", Input: `{ "x": 1.0 }`})
	}
	return fake.AnthropicMessage(said...)
}

// run goes on with a conversation, of which the API must take every request.
func (b *binder) run(d dag.DAG) dag.DAG {
	b.t.Helper()
	d, err := b.agent.Run(b.t.Context(), d)
	require.NoError(b.t, err)
	require.Empty(b.t, b.fake.Refused())
	return d
}

// asking is a request.
type asking struct {
	System   jsonx.Raw `json:"system"`
	Tools    jsonx.Raw `json:"tools"`
	Messages []message `json:"messages"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Signature string `json:"signature"`
	Data      string `json:"data"`

	raw jsonx.Raw
}

func (b *block) UnmarshalJSON(data []byte) error {
	type plain block
	b.raw = jsonx.Raw(bytes.Clone(data))
	return json.Unmarshal(data, (*plain)(b), jsonx.Lenient)
}

func (b block) thinks() string { return b.Signature + b.Data }

func (b *binder) sent() []asking {
	var all []asking
	for _, body := range b.fake.Bodies() {
		var s asking
		require.NoError(b.t, json.Unmarshal(body, &s, jsonx.Lenient))
		all = append(all, s)
	}
	return all
}

func (b *binder) last() asking { all := b.sent(); return all[len(all)-1] }

// thinking is the signatures in a request, in order.
func (s asking) thinking() (all []string) {
	for _, m := range s.Messages {
		for _, b := range m.Content {
			if b.thinks() != "" {
				all = append(all, b.thinks())
			}
		}
	}
	return all
}

// before is what is said before message i, but what is thought.
func (s asking) before(i int) string {
	said := fmt.Sprintf("%s|%s|", s.System, s.Tools)
	for _, m := range s.Messages[:i] {
		said += m.Role
		for _, b := range m.Content {
			if b.thinks() == "" {
				said += string(b.raw)
			}
		}
	}
	return said
}

// holding is the thinking that holds in a request where all answers, by number, were given to the requests of all:
// worked out from what was sent, and not from what is in the conversation. Where one message holds the same answer
// twice, as after a join, the second was not thought behind the first.
func (s asking) holding(all []asking, thoughts map[int][]string) (holding []string) {
	for i, m := range s.Messages {
		for _, b := range m.Content {
			var n int
			if _, err := fmt.Sscanf(b.Text, "answer %d", &n); err != nil || m.Role != "assistant" {
				continue
			}
			if s.before(i) == all[n].before(len(all[n].Messages)) {
				holding = append(holding, thoughts[n]...)
			}
			break
		}
	}
	return holding
}

var declared = content.Tool{Name: "f", Description: "Does it.", Schema: `{"type":"object"}`}

// edited is d with a message replaced, and everything after it said again.
func edited(d dag.DAG, which func(m node.Message) bool, edit func(node.Message) node.Message) dag.DAG {
	nodes := d.Nodes()
	at := slices.IndexFunc(nodes, func(n *node.Node) bool { m, ok := n.Message(); return ok && which(m) })
	if at < 0 {
		return d
	}

	// Append everything from the message on anew. A compaction then names the new nodes.
	e := d.WithHeads(nodes[at].Parents()...)
	again := map[node.ID]node.ID{}
	for i, n := range nodes[at:] {
		p := n.Payload()
		switch said := p.(type) {
		case node.Message:
			if i == 0 {
				p = edit(said)
			}
		case node.Compaction:
			ids := said.Replaced.Slice()
			for i, id := range ids {
				if now, moved := again[id]; moved {
					ids[i] = now
				}
			}
			said.Replaced = node.ListOf(ids...)
			p = said
		case node.System, node.Tools:
		default:
			continue
		}

		e = e.Append(p)
		again[n.ID()] = e.Head().ID()
	}
	return e
}

func saying(text string) func(node.Message) bool {
	return func(m node.Message) bool { return m.Blocks.Text() == text }
}

func becomes(text string) func(node.Message) node.Message {
	return func(m node.Message) node.Message { m.Blocks = content.Words(text); return m }
}

func hasResults(m node.Message) bool { return len(m.Blocks.ToolResults()) > 0 }

// cut shortens the results of a message.
func cut(m node.Message) node.Message {
	list := m.Blocks.Slice()
	for i, b := range list {
		if r, ok := b.(content.ToolResult); ok {
			r.Content = content.Words("It …")
			list[i] = r
		}
	}
	m.Blocks, _ = content.Of(list...)
	return m
}

// compacted is d with a summary in place of the messages that are asked for.
func compacted(d dag.DAG, summary string, which func(m node.Message) bool) dag.DAG {
	var ids []node.ID
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && which(m) {
			ids = append(ids, n.ID())
		}
	}
	return d.Append(node.Compaction{Summary: content.Words(summary), Replaced: node.ListOf(ids...)})
}

func reloaded(t *testing.T, d dag.DAG) dag.DAG {
	var file bytes.Buffer
	require.NoError(t, d.Write(&file))
	loaded, err := dag.Read(&file)
	require.NoError(t, err)
	return loaded
}

func TestExactlyTheThinkingThatNoLongerHoldsIsLeftOut(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, d dag.DAG) dag.DAG
		keeps  string // of s0 s1 s2 s3
	}{
		{"nothing changed", func(_ *testing.T, d dag.DAG) dag.DAG { return d }, "s0 s1 s2 s2b s3"},
		{"a loaded copy", reloaded, "s0 s1 s2 s2b s3"},
		{"a fork", func(_ *testing.T, d dag.DAG) dag.DAG { return d.Back(1) }, "s0 s1 s2 s2b"},
		{"two turns back", func(_ *testing.T, d dag.DAG) dag.DAG { return d.Back(2) }, "s0 s1"},

		{"the first question edited", func(_ *testing.T, d dag.DAG) dag.DAG { return edited(d, saying("One?"), becomes("Eins?")) }, ""},
		{"the second question edited", func(_ *testing.T, d dag.DAG) dag.DAG { return edited(d, saying("Two?"), becomes("Zwei?")) }, "s0 s1"},
		{"the last question edited", func(_ *testing.T, d dag.DAG) dag.DAG { return edited(d, saying("Three?"), becomes("Drei?")) }, "s0 s1 s2 s2b"},
		{"edited and saved", func(t *testing.T, d dag.DAG) dag.DAG {
			return reloaded(t, edited(d, saying("Two?"), becomes("Zwei?")))
		}, "s0 s1"},
		// What a model has seen are nodes: the same text in another node is not known to be the same.
		{"edited to the same", func(_ *testing.T, d dag.DAG) dag.DAG { return edited(d, saying("Two?"), becomes("Two?")) }, "s0 s1"},
		{"a result cut", func(_ *testing.T, d dag.DAG) dag.DAG { return edited(d, hasResults, cut) }, "s0"},

		{"a tool added", func(_ *testing.T, d dag.DAG) dag.DAG {
			return d.Tools(content.Tool{Name: "g", Schema: `{"type":"object"}`})
		}, ""},
		{"a tool described anew", func(_ *testing.T, d dag.DAG) dag.DAG {
			anew := declared
			anew.Description = "Does it all."
			return d.Tools(anew)
		}, ""},
		{"the same tools", func(_ *testing.T, d dag.DAG) dag.DAG { return d.Tools(declared) }, "s0 s1 s2 s2b s3"},
		{"another system prompt", func(_ *testing.T, d dag.DAG) dag.DAG { return d.System("And be polite.") }, ""},

		{"compacted from the second question on", func(_ *testing.T, d dag.DAG) dag.DAG {
			return compacted(d, "In short.", func(m node.Message) bool { return saying("Two?")(m) || strings.HasPrefix(m.Blocks.Text(), "answer 2") })
		}, "s0 s1"},
		{"compacted to the second question", func(_ *testing.T, d dag.DAG) dag.DAG {
			return compacted(d, "In short.", func(m node.Message) bool { return !saying("Three?")(m) && !saying("answer 3")(m) })
		}, ""},

		{"two forks joined", func(_ *testing.T, d dag.DAG) dag.DAG {
			other := d.Back(1)
			nodes := d.Nodes()
			for _, n := range nodes[len(nodes)-2:] {
				if n.Kind() == "message" {
					other = other.Append(n.Payload())
				}
			}
			return d.Join(other)
		}, "s0 s1 s2 s2b s3"},

		{"a request read", func(_ *testing.T, d dag.DAG) dag.DAG { return dag.FromTranscript(d.Transcript()) }, "s0 s1 s2 s2b s3"},
		{"a request read and edited", func(_ *testing.T, d dag.DAG) dag.DAG {
			return edited(dag.FromTranscript(d.Transcript()), saying("Two?"), becomes("Zwei?"))
		}, "s0 s1"},
		{"a request with stale thinking read", func(_ *testing.T, d dag.DAG) dag.DAG {
			return dag.FromTranscript(edited(d, saying("Two?"), becomes("Zwei?")).Transcript())
		}, "s0 s1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBinder(t, api.Options{Cache: api.CacheOff, Thinking: api.ThinkAuto}, false, thought(0, false, false, 1), thought(1, false, false, 0),
				thought(2, true, false, 0), thought(3, false, true, 0), thought(4, false, false, 1), thought(5, false, false, 0),
				thought(6, false, false, 0))

			d := dag.New().System("Be brief.").Tools(declared)
			for _, question := range []string{"One?", "Two?", "Three?"} {
				d = b.run(d.User(question))
			}

			whole := b.fake.Bodies()
			keeps := strings.Fields(test.keeps)
			d = b.run(test.change(t, d).User("Four?"))
			bodies := b.fake.Bodies()
			require.Len(t, bodies, 6)
			sent := b.sent()
			require.Equal(t, keeps, append([]string{}, sent[4].thinking()...))
			require.Equal(t, append(keeps, "s4"), sent[5].thinking(), "what was thought after the change holds")

			b.run(d.User("Five?"))
			require.Equal(t, append(keeps, "s4", "s5"), b.last().thinking())

			p, _ := named("anthropic")
			bodies = b.fake.Bodies()
			for i := 5; i < len(bodies); i++ {
				requireGrows(t, p, p.messages(t, bodies[i-1]), p.messages(t, bodies[i]))
			}

			// Where nothing was left out, the first request after the change continues the last one before it.
			if len(keeps) == 5 && test.name != "two forks joined" {
				requireGrows(t, p, p.messages(t, whole[3]), p.messages(t, bodies[4]))
			}
		})
	}
}

// Asked to drop thinking that does not hold, the API compares texts, and knows thinking as valid that a copy of the
// conversation has left out. It is sent the same as otherwise: what it thinks then would be bound to thinking that later
// requests do not have.
func TestThinkingIsLeftOutOfARequestToDropItToo(t *testing.T) {
	const drop = `{"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"}}}`
	for _, text := range []string{"One?", "Eins?"} {
		for _, o := range []api.Options{{}, {Thinking: api.ThinkAuto}, {Thinking: "1024"}, {Thinking: api.ThinkAuto, ToolChoice: api.ToolsAny}} {
			b := newBinder(t, api.Options{}, true, thought(0, false, false, 0), thought(1, false, false, 0), thought(2, false, false, 0),
				thought(3, false, false, 0))
			d := b.run(dag.New().Tools(declared).User("One?"))
			d = b.run(edited(d, saying("One?"), becomes(text)).User("Two?"))
			require.Empty(t, b.last().thinking())

			strict := b.agent
			b.agent.Options = o
			b.agent.Options.Body = drop
			d = b.run(d.User("Three?"))
			require.Contains(t, string(b.fake.Bodies()[2]), `"block_binding":{"prefix_mismatch_behavior":"drop_block"}`)
			require.Equal(t, []string{"s1"}, b.last().thinking())

			b.agent = strict
			b.run(d.User("Four?"))
			require.Equal(t, []string{"s1", "s2"}, b.last().thinking())
		}
	}
}

// An answer that was asked for in words that are not in the conversation ("Continue.") saw something else than the
// conversation says.
func TestThinkingAfterARequestToGoOnIsNotKept(t *testing.T) {
	stopped := thought(0, false, false, 0)
	stopped.Body = strings.Replace(stopped.Body, "end_turn", "max_tokens", 1)
	silent := fake.AnthropicMessage(content.Thinking{Text: "Hm.", Signature: "s0"})
	silent.Body = strings.Replace(silent.Body, "end_turn", "max_tokens", 1)
	for name, first := range map[string]fake.Reply{"in the middle of a text": stopped, "before a word was said": silent} {
		t.Run(name, func(t *testing.T) {
			b := newBinder(t, api.Options{}, true, first, thought(1, false, false, 0), thought(2, false, false, 0), thought(3, false, false, 0))
			d := b.run(b.run(dag.New().User("One?")))
			d = b.run(d.User("Two?"))
			require.Equal(t, []string{"s0"}, b.last().thinking())
			b.run(d.User("Three?"))
			require.Equal(t, []string{"s0", "s2"}, b.last().thinking())
		})
	}
}

// TestNoChangeOfAConversationIsRefused changes conversations at random, in every way there is (forks, edits, joins,
// merges, compactions, prunings, redactions, names, files), and goes on with them. The strict fake takes every request,
// and each holds exactly the thinking that holds there by what was sent before. Nothing that a head or a name reaches
// is lost on the way, what is not erased stays as it was saved, and the strict rules of every other API take what comes out as well.
func TestNoChangeOfAConversationIsRefused(t *testing.T) {
	scripts := seedtest.Rounds(5, 400)

	seed, script := seedtest.First(t), 0
	defer func() {
		if t.Failed() {
			t.Logf("script %d of PLAIT_SEED=%d", script, seed)
		}
	}()

	kept, left := 0, 0
	for ; script < scripts; script++ {
		k, l := randomly(t, rand.New(rand.NewPCG(seed, uint64(script))))
		kept, left = kept+k, left+l
	}

	t.Logf("%d blocks of thinking kept, %d left out", kept, left)
	require.NotZero(t, kept)
	require.NotZero(t, left)
}

func randomly(t *testing.T, r *rand.Rand) (kept, left int) {
	const answers = 60
	one := func(in int) bool { return r.IntN(in) == 0 }

	var replies []fake.Reply
	thoughts := map[int][]string{}
	for n := range answers {
		if one(5) {
			replies = append(replies, fake.AnthropicMessage(content.Text{Text: fmt.Sprint("answer ", n)}))
			continue
		}
		twice := one(4)
		replies = append(replies, thought(n, twice, one(4), r.IntN(3)))
		thoughts[n] = []string{fmt.Sprint("s", n)}
		if twice {
			thoughts[n] = append(thoughts[n], fmt.Sprint("s", n, "b"))
		}
	}

	thinking := []api.Thinking{"", api.ThinkAuto, "2000"}[r.IntN(3)]
	b := newBinder(t, api.Options{Cache: api.CacheOff, Thinking: thinking}, one(2), replies...)
	b.agent.Limits.Turns = 1 + r.IntN(3)
	any := func(node.Message) bool { return one(4) }
	pool := []version{{DAG: dag.New().Tools(declared), forgot: map[string]bool{}}}

	for step := 0; len(b.fake.Bodies()) < answers-3; step++ {
		// Half of the changes are made to the newest version.
		v := pool[r.IntN(len(pool))]
		if one(2) {
			v = pool[len(pool)-1]
		}

		d, forgot, other := v.DAG, maps.Clone(v.forgot), pool[r.IntN(len(pool))]
		change := r.IntN(20)
		joins, erases := change == 6 || change == 10, change == 14 || change == 15
		read := v.read || change == 8 || joins && other.read
		copied := v.copied || change == 1 || change == 2 || joins && (other.copied || read) || erases && read
		switch change {
		case 0:
			if back := d.Back(1 + r.IntN(3)); back.Err() == nil {
				d = back
			}

		case 1:
			question := func(m node.Message) bool { return any(m) && m.Role == content.User && !hasResults(m) }
			d = edited(d, question, becomes(fmt.Sprint("Edited ", step)))
		case 2:
			d = edited(d, func(m node.Message) bool { return hasResults(m) && !cut(m).Blocks.Equal(m.Blocks) }, cut)

		case 3:
			if one(3) {
				d = d.Tools(content.Tool{Name: fmt.Sprint("g", step), Description: "Erased with its node.", Schema: `{"type":"object"}`})
			}
		case 4:
			if one(3) {
				d = d.System(fmt.Sprint("Be ", step))
			}

		case 5:
			d = compacted(d, fmt.Sprint("In short, ", step), any)

		case 6:
			d = d.Join(other.DAG)
			maps.Copy(forgot, other.forgot)
		case 10:
			if merged := dag.Merge(dag.Branch{DAG: d}, dag.Branch{DAG: other.DAG}); merged.Err() == nil {
				requireReached(t, d, merged)
				others := other.DAG
				for _, ref := range d.Refs() {
					others = others.WithoutRef(ref.Name) // d's own stays
				}
				requireReached(t, others, merged)
				d = merged
				maps.Copy(forgot, other.forgot)
			}

		case 11:
			policy := []executor.Policy{nil, executor.TruncateOutputs(4)}[r.IntN(2)]
			shorter, err := executor.Compaction{Budget: 20 + r.IntN(100), Keep: 1 + r.IntN(30), Policy: policy}.Compact(t.Context(), d)
			require.NoError(t, err)
			requireReached(t, d, shorter)
			d = shorter

		case 12:
			d = d.WithRef(fmt.Sprint("ref", r.IntN(3)))
		case 13:
			pruned := d.Prune()
			requireReached(t, d, pruned)
			require.Empty(t, pruned.Unreachable().Nodes)
			d = pruned

		case 14, 15:
			var ids []node.ID
			for _, n := range d.Nodes() {
				if one(6) {
					ids = append(ids, n.ID())
				}
			}
			erased := d.Redact(ids...)
			requireReached(t, d, erased)
			d = erased

		case 7:
			loaded := reloaded(t, d)
			requireReached(t, d, loaded)
			d = loaded
		case 8:
			if len(d.OpenCalls()) == 0 {
				forget(forgot, d)
				d = dag.FromTranscript(d.Transcript())
			}
		}

		if d.Len() == 0 || d.Err() != nil {
			continue
		}

		if closed := d.CloseTools(); closed.Err() == nil {
			d = closed
		}
		d = d.User(fmt.Sprint("Question ", step))
		require.NoError(t, d.Err())

		// Now and then the API is asked to drop thinking itself: that changes nothing of what is sent.
		b.agent.Options = api.Options{}
		if one(12) {
			b.agent.Options.Body = `{"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"}}}`
		}

		from := len(b.fake.Bodies())
		d = b.run(d)
		all := b.sent()

		for n := from; n < len(all); n++ {
			there := all[n].thinking()
			holding := slices.DeleteFunc(append([]string{}, all[n].holding(all, thoughts)...), func(s string) bool { return forgot[s] && !slices.Contains(there, s) })
			if copied {
				holding = slices.DeleteFunc(holding, func(s string) bool { return !slices.Contains(there, s) })
			}
			require.Equal(t, holding, append([]string{}, there...), "step %d, request %d", step, n)

			kept += len(there)
			for _, m := range d.Messages() {
				for _, block := range m.Blocks.All() {
					if _, ok := block.(content.Thinking); ok {
						left++
					}
				}
			}
			left -= len(there)
		}

		requireTaken(t, d)
		pool = append(pool, version{d, forgot, read, copied})
	}
	return kept, left
}

// version is a conversation, and the thinking that was read with it from a bare transcript in which it did not hold.
// What its model had seen is not known from then on, so that it does not hold again even where the conversation says
// that again.
type version struct {
	dag.DAG
	forgot map[string]bool
	read   bool // it was read from a bare transcript, with new nodes

	// An edit copied nodes, a join has several nodes with the same tools, or a node with the text of an erased one was
	// erased. Thinking may be left out even if the texts before it are the same.
	copied bool
}

// forget notes the thinking in d that does not hold.
func forget(forgot map[string]bool, d dag.DAG) {
	for _, m := range d.Transcript().Messages {
		for _, b := range m.Blocks.All() {
			if thinking, ok := b.(content.Thinking); ok && thinking.Stale {
				forgot[thinking.Signature+thinking.Redacted] = true
			}
		}
	}
}

// requireReached requires that every node that the heads and the names of old reach is in now, with the saved form it
// had unless it is redacted in one of the two.
func requireReached(t *testing.T, old, now dag.DAG) {
	t.Helper()
	saved := func(n *node.Node) string {
		line, err := n.MarshalJSON()
		require.NoError(t, err)
		return string(line)
	}

	nodes := map[node.ID]*node.Node{}
	for _, n := range reached(now) {
		nodes[n.ID()] = n
	}
	for _, n := range reached(old) {
		is := nodes[n.ID()]
		require.NotNil(t, is, "%v", n)
		if !n.Redacted() && !is.Redacted() {
			require.Equal(t, saved(n), saved(is), "%v", n)
		}
	}
	require.True(t, now.Verify().OK(), now.Verify())
}

// reached is every node that the heads and the names of d reach, and what hangs on them.
func reached(d dag.DAG) []*node.Node {
	heads := d.Heads()
	for _, r := range d.Refs() {
		heads = append(heads, r.Heads...)
	}
	return d.WithHeads(heads...).WithChildren()
}

// requireTaken requires that every API takes the conversation with one more question.
func requireTaken(t *testing.T, d dag.DAG) {
	t.Helper()
	for _, p := range providers {
		body, err := sent(p, d.User("And now?"))
		require.NoError(t, err, "to %s: %s", p.name, body)
	}
}
