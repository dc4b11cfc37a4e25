package node_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// TestDigestsStayTheSame pins the rule that is written down at Node.Digest. No file holds one.
func TestDigestsStayTheSame(t *testing.T) {
	m := newMaker(t)
	parent := m.node(node.System{Text: "Be brief."})
	for i, p := range payloads(t) {
		n := m.node(p, parent)
		require.Equal(t, golden[n.Kind()], fmt.Sprintf("sha256:%x", n.Digest()), "%d %s", i, n.Kind())
	}
	everything := node.Message{Role: content.Assistant, Blocks: blocks(t,
		content.Text{Text: "\u00e9\n<&>\"", Extra: content.Extra{API: "anthropic", JSON: `{"citations":[1.0]}`}},
		content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}},
		content.Document{Source: content.Source{Text: "t"}, Title: "d"},
		content.Thinking{Text: "hm", Signature: "s", Redacted: "r"},
		content.ToolUse{ID: "1", Name: "f", Input: `{"b":1.0,"a":[]}`},
		content.ToolResult{CallID: "1", Content: content.Words("ok"), IsError: true},
		content.Opaque{API: "a", JSON: `{"b":1}`},
		content.Unknown{JSON: `{"type":"hologram"}`})}
	require.Equal(t, golden["every block"], fmt.Sprintf("sha256:%x", m.node(everything).Digest()))
	require.Equal(t, golden["empty"], fmt.Sprintf("sha256:%x", m.node(node.System{}).Digest()))

	// What a newer version added to a payload leaves the digests of those without it as they were.
	def := payloads(t)[1].(node.Tools).Defs
	require.Equal(t, golden["unnamed system"], fmt.Sprintf("sha256:%x", m.node(node.System{Text: "Be brief."}, parent).Digest()))
	finished := payloads(t)[3].(node.ToolExecution)
	finished.State = node.ExecutionFinished
	require.Equal(t, golden["finished execution"], fmt.Sprintf("sha256:%x", m.node(finished, parent).Digest()))
	require.Equal(t, golden["tools declared"], fmt.Sprintf("sha256:%x", m.node(node.Tools{Defs: def}, parent).Digest()))
}

// TestDigestFollowsTheDocumentedRule follows the words at Node.Digest, without the code.
func TestDigestFollowsTheDocumentedRule(t *testing.T) {
	m := newMaker(t)
	root := m.node(node.System{})
	want := sha256.Sum256([]byte("plait.node.v1\x00system\x00\x00\x00\x00\x00{}"))
	require.Equal(t, node.Digest(want), root.Digest())
	ask := m.node(node.Message{Role: content.Assistant, Blocks: blocks(t, content.ToolUse{ID: "call_1", Name: "f", Input: `{"b" : 1.0, "a":"\u0041"}`})}, root)
	want = sha256.Sum256([]byte("plait.node.v1\x00message\x00\x00\x00\x00\x01" + string(want[:]) +
		`{"role":"assistant","blocks":[{"type":"tool_use","name":"f","input":{"a":"A","b":1.0}}]}`))
	require.Equal(t, node.Digest(want), ask.Digest())
	tell := m.node(node.Message{Role: content.User, Blocks: blocks(t, content.ToolResult{CallID: "call_1", Content: content.Words("ok")})}, ask)
	want = sha256.Sum256([]byte("plait.node.v1\x00message\x00\x00\x00\x00\x01" + string(want[:]) +
		`{"role":"user","blocks":[{"type":"tool_result","call_id":"#0","content":[{"type":"text","text":"ok"}]}]}`))
	require.Equal(t, node.Digest(want), tell.Digest())
}

func TestDigestCoversContentOnly(t *testing.T) {
	a, b := newMaker(t), maker{t, node.Counting(start.Add(time.Hour))}
	b.node(user("so that the ids differ"))
	call := func(id string, input content.JSON) node.Message {
		return node.Message{Role: content.Assistant, Blocks: blocks(t, content.ToolUse{ID: id, Name: "f", Input: input})}
	}
	answered := func(m node.Message) node.Message {
		m.Answer = node.Answer{API: "x", Model: "y", ResponseID: "z", Stop: "w", Usage: content.Usage{Input: 7}, Latency: 9, Retries: 1}
		return m
	}
	meta, err := node.Meta{}.With("k", 1)
	require.NoError(t, err)
	withMeta, err := node.New(b.src, call("1", "{}"), meta)
	require.NoError(t, err)
	require.Equal(t, a.node(call("1", "{}")).Digest(), withMeta.Digest(), "metadata, ids and times")
	for name, c := range map[string][2]node.Payload{
		"usage, model, latency": {call("1", "{}"), answered(call("1", "{}"))},
		"provider call ids":     {call("1", "{}"), call("2", "{}")},
		"spelling of JSON":      {call("1", `{"a":1,"b":"A"}`), call("1", "{ \"b\" : \"\\u0041\",\n\"a\":1 }")},
		"times of an execution": {node.ToolExecution{Tool: "f"}, node.ToolExecution{Tool: "f", Started: start, Ended: start}},
		"what ran in fact":      {node.ToolExecution{Tool: "f"}, node.ToolExecution{Tool: "f", Ran: node.Ran{Tool: "g", Input: "{}"}}},
		"what a tool took and kept": {node.ToolExecution{}, node.ToolExecution{Usage: content.Usage{Input: 1}, Details: "{}",
			Full: content.Words("x")}},
		"call id of an execution":  {node.ToolExecution{CallID: "1"}, node.ToolExecution{CallID: "2"}},
		"call id of a sub-graph":   {node.SubGraph{CallID: "1"}, node.SubGraph{CallID: "2"}},
		"id and version of a run":  {node.RunStart{Agent: "a"}, node.RunStart{Agent: "a", Run: "r", Version: "3"}},
		"limits of a run":          {node.RunStart{}, node.RunStart{Limits: node.RunLimits{Turns: 1, Calls: 2, Tokens: 3, Cost: 4, Time: 5}}},
		"totals of a run":          {node.StopReason{Reason: "r"}, node.StopReason{Reason: "r", Turns: 1, ToolCalls: 2, Usage: content.Usage{Input: 1}, Elapsed: 1}},
		"cost of a run":            {node.StopReason{Reason: "r"}, node.StopReason{Reason: "r", Cost: 1, ToolUsage: content.Usage{Input: 1}}},
		"ids a compaction names":   {node.Compaction{}, node.Compaction{Replaced: node.ListOf(withMeta.ID())}},
		"ids of a child's nodes":   {node.SubGraph{Heads: node.ListOf(a.node(user("c")))}, node.SubGraph{Heads: node.ListOf(b.node(user("c")))}},
		"ids of a child execution": {node.ToolExecution{Child: node.ListOf(a.node(user("c")))}, node.ToolExecution{Child: node.ListOf(b.node(user("c")))}},
	} {
		require.Equal(t, a.node(c[0]).Digest(), b.node(c[1]).Digest(), "%s is no part of it", name)
	}
	asked := a.node(call("1", "{}"))
	require.NotEqual(t, a.node(said(t, content.ToolResult{CallID: "1"}), asked).Digest(),
		a.node(said(t, content.ToolResult{CallID: "#0"}), asked).Digest(), "whether a result answers a call is")
	x, y := a.node(user("x")), a.node(user("y"))
	one := a.node(user("z"), x, y).Digest()
	require.NotEqual(t, one, a.node(user("z"), y, x).Digest(), "the order of the parents is")
	require.NotEqual(t, one, a.node(user("z"), x).Digest(), "the parents are")
	for name, c := range map[string][2]node.Payload{
		"text":                {user("x"), user("y")},
		"role":                {user("x"), node.Message{Role: content.Assistant, Blocks: content.Words("x")}},
		"kind":                {node.System{}, node.Custom{Name: "a", JSON: "{}"}},
		"splitting a text":    {user("xy"), node.Message{Role: content.User, Blocks: blocks(t, content.Text{Text: "x"}, content.Text{Text: "y"})}},
		"arguments":           {call("1", `{"a":1}`), call("1", `{"a":2}`)},
		"absent JSON":         {call("1", ""), call("1", "null")},
		"text for JSON":       {call("1", `x`), call("1", `"x"`)},
		"digits of a number":  {call("1", `1`), call("1", `1.0`)},
		"name of a prompt":    {node.System{Text: "x"}, node.System{Name: "a", Text: "x"}},
		"withdrawn tools":     {node.Tools{}, node.Tools{Withdrawn: node.ListOf("f")}},
		"title":               {node.SubGraph{Title: "a"}, node.SubGraph{Title: "b"}},
		"child":               {node.SubGraph{Heads: node.ListOf(x)}, node.SubGraph{Heads: node.ListOf(y)}},
		"result":              {node.ToolExecution{Result: content.Words("x")}, node.ToolExecution{Result: content.Words("y")}},
		"failure":             {node.ToolExecution{}, node.ToolExecution{IsError: true}},
		"state":               {node.ToolExecution{}, node.ToolExecution{State: node.ExecutionStarted}},
		"index":               {node.ToolExecution{}, node.ToolExecution{Index: 1}},
		"agent":               {node.RunStart{Agent: "a"}, node.RunStart{Agent: "b"}},
		"reason":              {node.StopReason{Reason: "a"}, node.StopReason{Reason: "b"}},
		"summary":             {node.Compaction{Summary: content.Words("x")}, node.Compaction{Summary: content.Words("y")}},
		"custom name":         {node.Custom{Name: "a", JSON: "1"}, node.Custom{Name: "b", JSON: "1"}},
		"thinking signature":  {said(t, content.Thinking{Signature: "a"}), said(t, content.Thinking{Signature: "b"})},
		"order of the blocks": {said(t, content.Text{Text: "a"}, content.Thinking{}), said(t, content.Thinking{}, content.Text{Text: "a"})},
	} {
		require.NotEqual(t, a.node(c[0]).Digest(), a.node(c[1]).Digest(), "%s is a part of it", name)
	}
}

func said(t testing.TB, bs ...content.Block) node.Message {
	return node.Message{Role: content.Assistant, Blocks: blocks(t, bs...)}
}

// TestDigestCoversTheCallOfAResult: which call a result answers is a part of what was said, though the ids are not.
func TestDigestCoversTheCallOfAResult(t *testing.T) {
	m := newMaker(t)
	digest := func(callA, callB, resultA, resultB string, viaExecutions bool) node.Digest {
		use := m.node(said(t, content.ToolUse{ID: callA, Name: "f", Input: "1"}, content.ToolUse{ID: callB, Name: "f", Input: "2"}))
		parents := []*node.Node{use}
		if viaExecutions {
			parents = []*node.Node{m.node(node.ToolExecution{Index: 0}, use), m.node(node.ToolExecution{Index: 1}, use)}
		}
		return m.node(node.Message{Role: content.User, Blocks: blocks(t,
			content.ToolResult{CallID: resultA, Content: content.Words("one")},
			content.ToolResult{CallID: resultB, Content: content.Words("two")})}, parents...).Digest()
	}
	for _, via := range []bool{false, true} {
		straight := digest("a", "b", "a", "b", via)
		require.NotEqual(t, straight, digest("a", "b", "b", "a", via), "swapped answers differ")
		require.Equal(t, straight, digest("x", "y", "x", "y", via), "whatever the ids")
		require.Equal(t, straight, digest("b", "a", "b", "a", via))
		require.Equal(t, straight, digest("", "", "", "", via), "also when they are empty or used twice")
		require.NotEqual(t, straight, digest("a", "b", "a", "nobody", via))
	}
}

func TestDigestsAreComputedWithoutRecursion(t *testing.T) {
	m := newMaker(t)
	n := m.node(user("x"))
	for range 200_000 {
		n = m.node(node.SubGraph{Heads: node.ListOf(n)})
	}
	require.NotZero(t, n.Digest())
	require.NoError(t, n.Verify())
}

var golden = map[string]string{
	"unnamed system":     "sha256:a95b74e3b812c130a787e108c910a940a3a5ef57ba7932eee83def0545ab2ff9",
	"tools declared":     "sha256:cb243f013141e675d107c7141fac8dd7471c849ea33b7bd99635ad48d315be7a",
	"system":             "sha256:df0f76f80ae072dab98b97f29f4f3659f1d6af4887a7fae982ba59ab1597e324",
	"tools":              "sha256:188c58cfba9d566eeda017601975a0a9bfe1fcd905bd4673711169a54b99da3c",
	"message":            "sha256:0fbf26bafdf9cea82eafa1080b12590a69e8ba1ef1d9fd14759a68730e7d255b",
	"tool_execution":     "sha256:171d64c94cd3f82209ff9ee60cfa380dd6ce889b193ba49eb4510d3e185c2c45",
	"finished execution": "sha256:12ba5fa70a46823e19de433318264f9723e7ee9f7be5afc25247eee1a510e60b",
	"sub_graph":          "sha256:06ba6e72633daccfb12ff873be1f70e5f5ed1cce6b096825afedab9dddddc0d2",
	"compaction":         "sha256:2d8a5740f4c8745a7de0ca5292e5808e2d68e768984c97c5a72c14b77e9d2375",
	"run_start":          "sha256:f04c940d47a2d90121c4e654fd972b9af4cc73f73cacf8b026a8225fa5a0d721",
	"stop_reason":        "sha256:8ba62f81bf8502970e2b68587553fc184aa9e6e6e02762f6d9df60b4ae03669a",
	"custom":             "sha256:8a0305c0d232eae916d628a48584569f57bc4d023e56dfbd86c290816461cec4",
	"every block":        "sha256:e4fbffd6c6509631a804ac3dd58b3bf3b17ccb2d8768fa78a8779cbe0dff194e",
	"empty":              "sha256:778b65cf9c29289cbfde702056e08fff772ed2081fafbbcacf39b57dc29c270c",
}
