package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// redact returns all, each node after what it names, as it is after some of them were redacted.
func redact(t testing.TB, all []*node.Node, some ...*node.Node) []*node.Node {
	t.Helper()
	now, err := node.Redact(all, func(n *node.Node) bool { return slices.Contains(some, n) })
	require.NoError(t, err)
	out := make([]*node.Node, len(all))
	for i, n := range all {
		if out[i] = n; now[n] != nil {
			out[i] = now[n]
		}
	}
	return out
}

// reread writes nodes and reads them back.
func reread(t testing.TB, all []*node.Node) []*node.Node {
	t.Helper()
	var read []*node.Node
	for _, n := range all {
		got, err := node.Parse(n.Append(nil), reader(read...))
		require.NoError(t, err)
		require.Equal(t, string(n.Append(nil)), string(got.Append(nil)))
		read = append(read, got)
	}
	return read
}

// bodyOf is what a node's line says beside its names.
func bodyOf(n *node.Node) string {
	line := string(n.Append(nil))
	_, line, _ = strings.Cut(line, `"body":`)
	line, _, _ = strings.Cut(line, `,"sum"`)
	return line
}

func TestRedactKeepsLabels(t *testing.T) {
	everything := node.Message{Role: content.Assistant, Blocks: blocks(t,
		content.Thinking{Text: "SECRET", Signature: "SECRET"},
		content.Text{Text: "SECRET", Extra: content.Extra{API: "a", JSON: `{"b":"SECRET"}`}},
		content.ToolUse{ID: "1", Name: "f", Input: `{"a":"SECRET"}`, Extra: content.Extra{API: "a", JSON: `{"b":"SECRET"}`}},
		content.Image{Source: content.Source{URL: "SECRET"}}, content.Document{Source: content.Source{Text: "SECRET"}, Title: "SECRET"},
		content.ToolUse{Input: "SECRET"},
		content.ToolResult{CallID: "2", Content: content.Words("SECRET"), IsError: true, Extra: content.Extra{API: "a", JSON: `{"b":"SECRET"}`}},
		content.ToolResult{CallID: "3"},
		content.Opaque{API: "a", JSON: `{"b":"SECRET"}`}, content.CutToolUse{Name: "SECRET", Input: `{"SECRET`}, content.Unknown{JSON: `{"type":"SECRET"}`}),
		Answer: node.Answer{API: "api", Model: "model", ResponseID: "SECRET", Stop: content.StopToolUse, Usage: content.Usage{Input: 1}, Latency: 2, Retries: 3, Seen: node.Seen{1},
			Details: `{"logprobs":["SECRET"]}`}}
	child := newMaker(t).node(user("inner"))
	id := child.ID().String()
	secret := content.Words("SECRET")
	for _, c := range []struct {
		p    node.Payload
		left string
	}{
		{node.System{Text: "SECRET"}, `{"text":"[redacted]"}`},
		{node.System{}, `{}`},
		{node.System{Name: "agent", Text: "SECRET"}, `{"name":"agent","text":"[redacted]"}`},
		{node.Tools{Withdrawn: node.ListOf("f")}, `{"tools":[],"withdrawn":["f"]}`},
		{node.Tools{Defs: node.ListOf(
			content.Tool{Name: "f", Description: "SECRET", Schema: `{"type":"object","x":"SECRET"}`, Extra: content.Extra{API: "a", JSON: `{"b":"SECRET"}`}},
			content.Tool{Name: "search", Extra: content.Extra{API: "a", JSON: `{"type":"SECRET"}`}})},
			`{"tools":[{"name":"f","description":"[redacted]","schema":{"type":"object"}}]}`},
		{everything, `{"role":"assistant","blocks":[{"type":"text","text":"[redacted]"},{"type":"tool_use","id":"1","name":"f","input":{}},` +
			`{"type":"tool_use","input":{}},{"type":"tool_result","call_id":"2","content":[{"type":"text","text":"[redacted]"}],"is_error":true},` +
			`{"type":"tool_result","call_id":"3","content":[]}]},"info":{"api":"api","model":"model","stop":"tool_use","usage":{"input":1},"latency_ns":2,"retries":3}`},
		{node.Message{Role: content.User}, `{"role":"user","blocks":[]}`},
		{node.ToolExecution{CallID: "c", Index: 1, Tool: "f", Input: `{"a":"SECRET"}`, Result: secret, IsError: true, Started: start, Ended: start,
			Child: node.ListOf(child), Ran: node.Ran{Tool: "SECRET", Input: `"SECRET"`}, Usage: content.Usage{Input: 1}, Details: `"SECRET"`, Full: secret},
			`{"call_id":"c","index":1,"tool":"f","input":{},"result":[{"type":"text","text":"[redacted]"}],"is_error":true,"child":["` + id +
				`"]},"info":{"started":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:05Z","usage":{"input":1}}`},
		{node.ToolExecution{Full: secret}, `{"index":0,"input":{},"result":[]}`},
		{node.ToolExecution{State: node.ExecutionStarted, Ran: node.Ran{Tool: "SECRET"}}, `{"index":0,"input":{},"state":"started","result":[]}`},
		{node.SubGraph{Title: "SECRET", CallID: "c", Heads: node.ListOf(child), Summary: "SECRET"},
			`{"title":"[redacted]","call_id":"c","heads":["` + id + `"],"summary":"[redacted]"}`},
		{node.Compaction{Summary: secret, Replaced: node.ListOf(child.ID())},
			`{"summary":[{"type":"text","text":"[redacted]"}],"replaced":["` + id + `"]}`},
		{node.RunStart{Agent: "support", Run: "r", Version: "3", Limits: node.RunLimits{Turns: 5}},
			`{"agent":"support"},"info":{"run":"r","version":"3","limits":{"turns":5}}`},
		{node.StopReason{Reason: content.StopMaxTurns, Detail: "SECRET", Turns: 3, Cost: 1},
			`{"reason":"max_turns","detail":"[redacted]"},"info":{"turns":3,"cost":1,"cost_partial":true}`},
		{node.Custom{Name: "acme.note", JSON: `"SECRET"`}, `{"name":"acme.note","json":null}`},
	} {
		m := newMaker(t)
		m.node(user("so that ids differ"))
		before := m.node(user("before"))
		meta, err := node.Meta{}.With("note", "SECRET")
		require.NoError(t, err)
		n, err := node.New(m.src, c.p, meta, before)
		require.NoError(t, err)
		after := m.node(user("after"), n)
		line, next := string(n.Append(nil)), string(after.Append(nil))
		all := []*node.Node{child, before, n, after}

		for _, all := range [][]*node.Node{all, reread(t, all)} {
			was := string(all[2].Append(nil))
			done := redact(t, all, all[2])
			require.Equal(t, line, was)
			require.Equal(t, was, string(all[2].Append(nil)), "the node itself did not change")
			require.False(t, all[2].Redacted())
			require.Same(t, all[0], done[0])
			require.Same(t, all[1], done[1], "what is before it is shared")
			for i, got := range reread(t, done)[2:] {
				for _, got := range []*node.Node{got, done[2+i]} {
					require.Equal(t, i == 0, got.Redacted())
					require.NoError(t, got.Verify())
					require.NotEqual(t, all[2+i].Digest(), got.Digest())
					require.Equal(t, all[2+i].ID(), got.ID())
					require.Equal(t, all[2+i].Time(), got.Time())
					require.Equal(t, all[2+i].Depth(), got.Depth())
					require.Equal(t, i == 0, got == redact(t, []*node.Node{child, before, got}, got)[2])
				}
			}
			require.Equal(t, c.left+`,"redacted":true`, bodyOf(done[2]))
			require.Zero(t, done[2].Meta().Len())
			require.Equal(t, []*node.Node{done[2]}, done[3].Parents())
			require.Equal(t, next, string(done[3].Append(nil)), "what comes after it is saved as it was")
			again := redact(t, done, done[2])
			require.Equal(t, done, again)
			require.Same(t, done[2], again[2], "twice is once")
			require.Same(t, done[3], again[3])
		}
	}
}

// tied is a tool phase as package dag makes it, after a fork of which there are two closing messages.
func tied(t testing.TB) (m maker, all []*node.Node) {
	m = newMaker(t)
	use := m.node(said(t, content.Text{Text: "SECRET words"}, content.ToolUse{ID: "a", Name: "f", Input: `"SECRET a"`},
		content.ToolUse{ID: "b", Name: "f", Input: `"SECRET b"`}))
	all = []*node.Node{use}
	var results []content.Block
	for i, id := range []string{"a", "b"} {
		e := node.ToolExecution{CallID: id, Index: i, Tool: "f", Input: content.JSON(`"SECRET ` + id + `"`),
			Ran: node.Ran{Input: content.JSON(`"SECRET ` + id + `"`)}, Result: content.Words("result " + id)}
		all = append(all, m.node(e, use))
		results = append(results, e.Answer())
	}
	closing := node.Message{Role: content.User, Blocks: blocks(t, results...)}
	fork := node.Message{Role: content.User, Blocks: blocks(t, append(results, content.Text{Text: "and more"})...)}
	return m, append(all, m.node(closing, all[1:]...), m.node(fork, all[1:3]...))
}

func texts(all []*node.Node) string {
	var out string
	for _, n := range all {
		out += string(n.Append(nil)) + "\n"
	}
	return out
}

// redactedOf is an x for each node that is redacted, also when it was saved and read.
func redactedOf(t testing.TB, all []*node.Node) string {
	t.Helper()
	out := ""
	for i, n := range reread(t, all) {
		require.Equal(t, all[i].Redacted(), n.Redacted())
		out += map[bool]string{true: "x", false: "."}[n.Redacted()]
	}
	return out
}

func TestRedactErasesAResultFromBothNodes(t *testing.T) {
	_, all := tied(t)
	for _, all := range [][]*node.Node{all, reread(t, all)} {
		done := redact(t, all, all[1])
		require.Equal(t, ".x.xx", redactedOf(t, done))
		require.NotContains(t, texts(done), "result a")
		require.Equal(t, 1, strings.Count(texts(done), "result b"), "the other result stays, and stands once")
		require.NotContains(t, texts(done), "and more", "what no digest covers any more goes")
		m, _ := done[3].Message()
		require.Equal(t, "[redacted]", m.Blocks.ToolResults()[0].Content.Text())
		require.Equal(t, "result b", m.Blocks.ToolResults()[1].Content.Text())
		require.Contains(t, string(done[3].Append(nil)), `[{"type":"tool_result","result_of":0},{"type":"tool_result","result_of":1}]`)
		require.Equal(t, done, redact(t, done, done[1]))

		done = redact(t, done, done[2])
		require.Equal(t, ".xxxx", redactedOf(t, done))
		require.NotContains(t, texts(done), "result ")
		require.Contains(t, texts(done), "SECRET words", "what the model said is not named")

		done = redact(t, all, all[3])
		require.Equal(t, ".xxxx", redactedOf(t, done), "a message takes its executions along, and they the other messages")
		require.NotContains(t, texts(done), "result ")
	}
}

func TestRedactErasesArgumentsFromExecutions(t *testing.T) {
	_, all := tied(t)
	for _, all := range [][]*node.Node{all, reread(t, all)} {
		done := redact(t, all, all[0])
		require.Equal(t, "xxx..", redactedOf(t, done), "the messages with the results are as they were")
		require.NotContains(t, texts(done), "SECRET")
		require.Contains(t, texts(done), "result a")
		for _, n := range reread(t, done) {
			require.NoError(t, n.Verify())
		}
		require.Equal(t, done, redact(t, done, done[0]))
		require.Equal(t, "xxxxx", redactedOf(t, redact(t, done, done[1], done[2])), "and the results later")
		require.NotContains(t, texts(redact(t, done, done[3])), "result ")
	}
}

func TestNodesAfterARedactionAreNotRedacted(t *testing.T) {
	m := newMaker(t)
	use := m.node(said(t, content.ToolUse{ID: "a", Name: "f", Input: `"SECRET"`}))
	done := redact(t, []*node.Node{use}, use)
	e := m.node(node.ToolExecution{CallID: "a", Input: "{}", Result: content.Words("[redacted]")}, done...)
	tells := m.node(user("x"), e)
	done = append(done, e, tells)
	require.Equal(t, "x..", redactedOf(t, redact(t, done, done[0])))
	require.Equal(t, "x.x", redactedOf(t, redact(t, done, tells)))
}

func TestNodeWithoutContentIsNotRedacted(t *testing.T) {
	m := newMaker(t)
	use := m.node(said(t, content.Text{Text: "SECRET"}, content.ToolUse{ID: "a", Name: "f", Input: "{}"}))
	e := m.node(node.ToolExecution{CallID: "a", Input: "{}", Result: content.Words("x")}, use)
	require.Equal(t, "x.", redactedOf(t, redact(t, []*node.Node{use, e}, use)), "its arguments were none")
}

// TestNodesAddedAfterARedactionHaveTheirOwnDigests: an execution that was carried out later with other arguments keeps them, and one beside a
// child that said nothing loses nothing.
func TestNodesAddedAfterARedactionHaveTheirOwnDigests(t *testing.T) {
	m := newMaker(t)
	ask := m.node(user("SECRET"))
	all := redact(t, []*node.Node{ask, m.node(said(t, content.ToolUse{ID: "a", Name: "f", Input: `"SECRET"`}), ask)}, m.node(user("x")))
	all = redact(t, all, all[1])
	all = append(all, m.node(node.ToolExecution{CallID: "a", Input: `"its own"`, Result: content.Words("x")}, all[1]))
	require.Equal(t, "xx.", redactedOf(t, redact(t, all, all[0])))

	silent := m.node(said(t, content.ToolUse{ID: "b", Name: "f"}))
	other := m.node(said(t, content.Text{Text: "SECRET"}))
	before := m.node(user("before"))
	all = []*node.Node{silent, other, before, m.node(node.ToolExecution{Input: `"kept"`, Child: node.ListOf(silent)}, before),
		m.node(node.SubGraph{Title: "t", Heads: node.ListOf(silent)}, before),
		m.node(node.ToolExecution{Input: `"kept"`, Result: content.Words("SECRET")}, before)}
	require.Equal(t, "xxx...", redactedOf(t, redact(t, all, silent, other, before)))
}

// TestRedactedNodeStaysRedacted, in whatever order, and keeps what a newer version wrote beside it.
func TestRedactedNodeStaysRedacted(t *testing.T) {
	m := newMaker(t)
	first := m.node(user("SECRET"))
	second := m.node(user("SECRET"), first)
	all := redact(t, []*node.Node{first, second, m.node(user("x"), second)}, second)
	require.Equal(t, "xx.", redactedOf(t, redact(t, all, all[0])))
	line := strings.Replace(string(all[1].Append(nil)), `"kind"`, `"weight": 1.50,"kind"`, 1)
	weighed, err := node.Parse([]byte(line), reader(first))
	require.NoError(t, err)
	for _, done := range [][]*node.Node{redact(t, []*node.Node{first, weighed}, first), redact(t, []*node.Node{first, weighed}, first, weighed)} {
		require.Equal(t, line, string(done[1].Append(nil)))
		require.Same(t, done[0], done[1].Parent(0))
		require.True(t, done[1].Redacted())
	}
}

// TestRedactErasesMetadataOfNamedNodesOnly, and stays where it only lost what it repeats.
func TestRedactErasesMetadataOfNamedNodesOnly(t *testing.T) {
	m, all := tied(t)
	meta, err := node.Meta{}.With("k", "SECRET note")
	require.NoError(t, err)
	all[3], err = node.New(m.src, all[3].Payload(), meta, all[3].Parents()...)
	require.NoError(t, err)
	done := redact(t, all[:4], all[1], all[2])
	require.Equal(t, 1, done[3].Meta().Len())
	require.True(t, done[3].Redacted())
	done = redact(t, done, done[3])
	require.Zero(t, done[3].Meta().Len())
	require.NotContains(t, texts(done), "SECRET note")
}

// TestRedactFindsResultsThatAreNotShared: who builds by hand may hold a result twice.
func TestRedactFindsResultsThatAreNotShared(t *testing.T) {
	for name, c := range map[string]struct {
		e    node.ToolExecution
		r    content.ToolResult
		left string
	}{
		"equal words":             {node.ToolExecution{CallID: "a", Result: content.Words("SECRET")}, content.ToolResult{CallID: "z", Content: content.Words("SECRET")}, ".xx."},
		"the same call":           {node.ToolExecution{CallID: "a", Result: content.Words("SECRET")}, content.ToolResult{CallID: "a", Content: content.Words("SECRET, edited")}, ".xx."},
		"the call of its index":   {node.ToolExecution{Index: 0, Result: content.Words("SECRET")}, content.ToolResult{CallID: "a", Content: content.Words("SECRET, edited")}, ".xx."},
		"no id, the same place":   {node.ToolExecution{Index: 1, Result: content.Words("SECRET")}, content.ToolResult{Content: content.Words("SECRET, edited")}, ".xx."},
		"another call's":          {node.ToolExecution{CallID: "a", Result: content.Words("SECRET")}, content.ToolResult{CallID: "b", Content: content.Words("other")}, ".x.."},
		"nothing was ever said":   {node.ToolExecution{CallID: "a"}, content.ToolResult{CallID: "a", Content: content.Words("other")}, ".x.."},
		"both say nothing at all": {node.ToolExecution{CallID: "a"}, content.ToolResult{CallID: "b"}, ".x.."},
	} {
		m := newMaker(t)
		use := m.node(said(t, content.ToolUse{ID: "a", Name: "f"}))
		e := m.node(c.e, use)
		closing := m.node(node.Message{Role: content.User, Blocks: blocks(t, c.r)}, e)
		all := []*node.Node{use, e, closing, m.node(user("go on"), closing)}
		done := redact(t, all, e)
		require.Equal(t, c.left, redactedOf(t, done), name)
		require.NotContains(t, texts(done), "SECRET", name)
		for _, n := range reread(t, done) {
			require.NoError(t, n.Verify(), name)
		}
	}
}

// TestRedactKeepsResultsOfRepeatedCallIDs: where results are shared, the place decides and not the id.
func TestRedactKeepsResultsOfRepeatedCallIDs(t *testing.T) {
	m := newMaker(t)
	use, executions, closing := phase(t, m)
	all := append([]*node.Node{use}, append(executions, closing)...)
	done := redact(t, all, executions[1])
	got, _ := done[4].Message()
	require.Contains(t, got.Blocks.ToolResults()[0].Content.Text(), "long ")
	require.Equal(t, "[redacted]", got.Blocks.ToolResults()[1].Content.Text())
	require.Equal(t, "[redacted]", got.Blocks.ToolResults()[2].Content.Text(), "it is nobody's but the message's, which is redacted")
	require.False(t, done[1].Redacted())
}

// TestAResultIsNotTakenForAnothers: an execution that a message does not tell is redacted without it, and it without the execution.
func TestAResultIsNotTakenForAnothers(t *testing.T) {
	for name, c := range map[string]struct{ told, spare node.ToolExecution }{
		"the same call twice": {node.ToolExecution{CallID: "a", Result: content.Words("x")}, node.ToolExecution{CallID: "a", Result: content.Words("y")}},
		"no ids":              {node.ToolExecution{Index: 7, Result: content.Words("x")}, node.ToolExecution{Index: 8, Result: content.Words("y")}},
		"no results":          {node.ToolExecution{CallID: "a"}, node.ToolExecution{CallID: "b"}},
	} {
		m := newMaker(t)
		use := m.node(said(t, content.ToolUse{ID: "a", Name: "f"}, content.ToolUse{ID: "b", Name: "f"}))
		told, spare := m.node(c.told, use), m.node(c.spare, use)
		for _, answer := range []content.ToolResult{c.told.Answer(), {CallID: c.told.CallID, Content: content.Words("edited")}} {
			if name == "the same call twice" && answer != c.told.Answer() {
				continue // then nobody knows whose it is, and it goes
			}
			closing := m.node(node.Message{Role: content.User, Blocks: blocks(t, answer)}, told, spare)
			all := []*node.Node{use, told, spare, closing}
			require.Equal(t, "..x.", redactedOf(t, redact(t, all, spare)), name)
			require.Equal(t, ".x.x", redactedOf(t, redact(t, all, closing)), name)
		}
	}
}

func TestRedactErasesTheAnswerOfAChild(t *testing.T) {
	m := newMaker(t)
	asked := m.node(user("prompt"))
	answer := m.node(said(t, content.Text{Text: "SECRET"}), asked)
	use := m.node(said(t, content.Text{Text: "SECRET"}, content.ToolUse{ID: "a", Name: "agent"}))
	e := node.ToolExecution{CallID: "a", Result: content.Words("SECRET"), Child: node.ListOf(answer)}
	ran := m.node(e, use)
	other := m.node(node.ToolExecution{CallID: "a", Result: content.Words("its own"), Child: node.ListOf(answer)}, use)
	closing := m.node(node.Message{Role: content.User, Blocks: blocks(t, e.Answer())}, ran)
	hung := m.node(node.SubGraph{Title: "a title", Summary: "SECRET", Heads: node.ListOf(answer)}, closing)
	silent := m.node(node.SubGraph{Heads: node.ListOf(answer)}, hung)
	plain := m.node(node.SubGraph{Summary: "SECRET", Heads: node.ListOf(asked)}, silent)
	all := []*node.Node{asked, answer, use, ran, other, closing, hung, silent, plain}
	done := redact(t, all, answer)
	require.Equal(t, ".x.x.xx..", redactedOf(t, done))
	require.Equal(t, "a title", done[6].Payload().(node.SubGraph).Title)
	for _, n := range []*node.Node{done[3], done[4], done[6], done[7]} {
		require.Equal(t, []*node.Node{done[1]}, n.Children().Slice(), "they hang on to what is there now")
	}
	require.Equal(t, "SECRET", done[8].Payload().(node.SubGraph).Summary, "another conversation's")
	require.Equal(t, done, redact(t, done, done[1]))
}

func TestRedactKeepsResultThatRepeatsNoAnswerOfTheChild(t *testing.T) {
	m := newMaker(t)
	picture := content.Image{Source: content.Source{MediaType: "image/png", Data: "U0VDUkVU"}}
	use := m.node(said(t, content.ToolUse{ID: "a", Name: "agent"}))

	// In the child conversation the model calls a tool without a text, and answers with a picture.
	asked := m.node(user("prompt"))
	calls := m.node(said(t, content.ToolUse{ID: "b", Name: "draw"}), asked)
	answer := m.node(said(t, picture), calls)
	ran := m.node(node.ToolExecution{CallID: "a", Result: blocks(t, picture), Child: node.ListOf(answer)}, use)
	all := []*node.Node{use, asked, calls, answer, ran}

	require.Equal(t, "..x..", redactedOf(t, redact(t, all, calls)))
	require.Equal(t, "...xx", redactedOf(t, redact(t, all, answer)))
}

func TestRedactRefusesUnknownKinds(t *testing.T) {
	moon, err := node.Parse([]byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"moon","body":{"a":1}}`), reader())
	require.NoError(t, err)
	_, err = node.Redact([]*node.Node{moon}, func(*node.Node) bool { return true })
	require.ErrorIs(t, err, node.ErrPayload)
	m := newMaker(t)
	n := m.node(user("x"))
	line := `{"id":"00000000-0000-7000-8000-000000000001","parents":["` + n.ID().String() + `"],"kind":"moon","body":{"a" : 1},"redacted":true}`
	moon, err = node.Parse([]byte(line), reader(n))
	require.NoError(t, err)
	require.False(t, moon.Redacted())
	require.ErrorIs(t, moon.Verify(), node.ErrNoSum)
	done := redact(t, []*node.Node{n, moon}, n)
	require.Equal(t, line, string(done[1].Append(nil)), "but moved")
	require.Same(t, done[0], done[1].Parent(0))
}

// TestForgedRedactionIsRejected: a line that says it is redacted and says more is verified as any other, and reported.
func TestForgedRedactionIsRejected(t *testing.T) {
	m, all := tied(t)
	all = append(all, m.node(node.SubGraph{Title: "t", Summary: "s"}), m.node(node.System{Text: "x"}), m.node(node.Custom{Name: "n", JSON: "1"}),
		m.node(user("x")), m.node(node.StopReason{Reason: "x", Detail: "d"}), m.node(node.Tools{Defs: node.ListOf(content.Tool{Name: "f", Schema: `{"type":"object","x":1}`})}),
		m.node(node.Compaction{Summary: content.Words("x")}),
		m.node(node.Message{Role: content.Assistant, Answer: node.Answer{ResponseID: "r"}}),
		m.node(node.Message{Role: content.Assistant, Answer: node.Answer{Details: `{"logprobs":[]}`}}),
		m.node(node.ToolExecution{Input: "{}", Result: content.Words("[redacted]"), Full: content.Words("x")}),
		m.node(node.ToolExecution{Input: "{}", Result: content.Words("[redacted]"), Details: `"x"`}),
		m.node(node.ToolExecution{Input: "{}", Ran: node.Ran{Tool: "x"}}))
	for i, n := range all {
		line := string(n.Append(nil))
		forged := strings.Replace(line, `,"sum"`, `,"redacted":true,"sum"`, 1)
		got, err := node.Parse([]byte(forged), reader(all...))
		require.NoError(t, err)
		if i == 3 { // it says nothing but results of its executions
			require.True(t, got.Redacted())
			continue
		}
		require.False(t, got.Redacted(), line)
		require.ErrorIs(t, got.Verify(), node.ErrRedaction, line)
		require.NotErrorIs(t, got.Verify(), node.ErrSum)
		require.Equal(t, forged, string(got.Append(nil)))
		edited := strings.Replace(strings.Replace(forged, `"parents":[],`, `"parents":["`+all[0].ID().String()+`"],`, 1), `"index":`, `"index":1`, 1)
		edited = strings.Replace(edited, "SECRET words", "other words", 1)
		edited = strings.Replace(edited, `"and more"`, `"and less"`, 1)
		require.NotEqual(t, forged, edited)
		got, err = node.Parse([]byte(edited), reader(all...))
		require.NoError(t, err)
		require.ErrorIs(t, got.Verify(), node.ErrRedaction, edited)
		require.ErrorIs(t, got.Verify(), node.ErrSum, edited)

		truth := redact(t, []*node.Node{got}, got)[0]
		require.True(t, truth.Redacted(), "it can be redacted in truth")
		require.NoError(t, truth.Verify())
	}
	bare, err := node.Parse([]byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"system","body":{"text":"[redacted]"},"redacted":true}`), reader())
	require.NoError(t, err)
	require.True(t, bare.Redacted())
	require.ErrorIs(t, bare.Verify(), node.ErrNoSum)
	_, err = node.Parse([]byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"system","body":{},"redacted":"yes"}`), reader())
	var field *node.FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, "redacted", field.Field)
}

func TestRedactIsLinearWithoutRecursion(t *testing.T) {
	m := newMaker(t)
	all := []*node.Node{m.node(user("x"))}
	for i := range 50_000 {
		p := node.Payload(user("x"))
		if i%2 == 0 {
			p = node.SubGraph{Heads: node.ListOf(all[i])}
		}
		all = append(all, m.node(p, all[i]))
	}
	done := redact(t, all, all[0])
	last := done[len(done)-1]
	require.NotSame(t, all[len(all)-1], last)
	require.Equal(t, string(all[len(all)-1].Append(nil)), string(last.Append(nil)))
	fresh := reread(t, done[:1])
	require.True(t, fresh[0].Redacted())
	require.Same(t, done[0], done[1].Children().At(0))
}

func ExampleRedact() {
	ask, err := node.New(node.Source{}, node.Message{Role: content.User, Blocks: content.Words("My number is 555-0100.")}, node.Meta{})
	if err != nil {
		panic(err)
	}
	stop, err := node.New(node.Source{}, node.StopReason{Reason: content.StopEndTurn}, node.Meta{}, ask)
	if err != nil {
		panic(err)
	}
	now, err := node.Redact([]*node.Node{ask, stop}, func(n *node.Node) bool { return n == ask })
	if err != nil {
		panic(err)
	}
	m, _ := now[ask].Message()
	fmt.Println(m.Blocks.Text(), now[ask].Redacted(), now[ask].ID() == ask.ID())
	fmt.Println(now[stop].Parent(0) == now[ask], now[stop].Redacted(), now[stop].Verify())
	// Output:
	// [redacted] true true
	// true false <nil>
}
