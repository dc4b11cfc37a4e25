package node_test

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// maker makes nodes of one Source.
type maker struct {
	t   testing.TB
	src node.Source
}

func newMaker(t testing.TB) maker { return maker{t, node.Counting(start)} }

func (m maker) node(p node.Payload, parents ...*node.Node) *node.Node {
	m.t.Helper()
	n, err := node.New(m.src, p, node.Meta{}, parents...)
	require.NoError(m.t, err)
	return n
}

func blocks(t testing.TB, bs ...content.Block) content.Blocks {
	t.Helper()
	b, err := content.Of(bs...)
	require.NoError(t, err)
	return b
}

func user(text string) node.Message {
	return node.Message{Role: content.User, Blocks: content.Words(text)}
}

// payloads is one filled payload of every variant that New takes. TestPayloadsListsEveryVariant keeps it complete.
func payloads(t testing.TB) []node.Payload {
	child := maker{t, node.Counting(start.Add(time.Hour))}.node(user("inner"))
	def := content.Tool{Name: "f", Description: "d", Schema: `{"type":"object", "x":1.0}`, Extra: content.Extra{API: "a", JSON: `{"c" : 1}`}}
	usage := content.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5}
	return []node.Payload{
		node.System{Name: "agent", Text: "Be brief."},
		node.Tools{Defs: node.ListOf(def), Withdrawn: node.ListOf("g", "h")},
		node.Message{Role: content.Assistant, Blocks: content.Words("Hi."), Answer: node.Answer{API: "anthropic", Model: "m",
			ResponseID: "r", Stop: content.StopEndTurn, Usage: usage, Latency: time.Second, Retries: 2, Seen: node.Seen{1, 2, 3}}},
		node.ToolExecution{CallID: "c", Index: 1, Tool: "f", Input: `{"a" : 1.0}`, Result: content.Words("ok"), IsError: true,
			State: node.ExecutionInDoubt, Started: start, Ended: start.Add(time.Millisecond), Child: node.ListOf(child), Usage: usage,
			Ran: node.Ran{Tool: "g", Input: `{"b" : 2.0}`}, Details: `[1.0 , null]`, Full: content.Words("ok, and so on"),
			Note: "n", Deferred: true, Decided: node.Decided{By: "Ann", At: start, Rule: "r"},
			Spent: node.Spent{
				Run: "r1", Turns: 1, Calls: 2, InnerTurns: 3, InnerCalls: 4, Usage: usage, ToolUsage: usage, Elapsed: time.Second,
				Cost: 0.5, CostKnown: true,
			}},
		node.SubGraph{Title: "t", CallID: "c", Heads: node.ListOf(child), Summary: "s"},
		node.Compaction{Summary: content.Words("so far"), Replaced: node.ListOf(child.ID())},
		node.RunStart{Agent: "support", Run: "r", Version: "3", Limits: node.RunLimits{Turns: 50, Calls: 9, Tokens: 1000, Cost: 0.1, Time: time.Minute}},
		node.StopReason{Reason: content.StopMaxTurns, Detail: "d", Turns: 3, ToolCalls: 2, Usage: usage, Elapsed: time.Minute,
			ToolUsage: usage, Cost: 0.1, CostKnown: true},
		node.Custom{Name: "acme.note", JSON: `{"n" : 1.0}`},
	}
}

func TestPayloadsListsEveryVariant(t *testing.T) {
	var kinds []string
	m := newMaker(t)
	for _, p := range payloads(t) {
		kinds = append(kinds, m.node(p).Kind())
		v := reflect.ValueOf(p)
		for i := range v.NumField() {
			require.False(t, v.Field(i).IsZero(), "%T.%s", p, v.Type().Field(i).Name)
		}
	}
	require.Equal(t, []string{"system", "tools", "message", "tool_execution", "sub_graph", "compaction", "run_start",
		"stop_reason", "custom"}, kinds)
	source, err := os.ReadFile("payload.go")
	require.NoError(t, err)
	sealed := regexp.MustCompile(`(?m)^func \((?:u )?(\w+)\) kind\(\)`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, sealed, len(kinds)+1, "and Unknown, which New does not take")
	for _, variant := range sealed {
		require.True(t, strings.Contains(string(source), "//   - ["+variant[1]+"]"), "the comment of Payload lists %s", variant[1])
	}
}

func TestEveryPayloadIsSavedAndReadBack(t *testing.T) {
	for _, p := range payloads(t) {
		m := newMaker(t)
		known := map[node.ID]*node.Node{}
		parent := m.node(user("before"))
		n := m.node(p, parent)
		for _, k := range append(n.Children().Slice(), parent) {
			known[k.ID()] = k
		}
		line := n.Append(nil)
		require.NotContains(t, string(line), "\n")
		got, err := node.Parse(line, func(id node.ID) *node.Node { return known[id] })
		require.NoError(t, err)
		require.Equal(t, string(line), string(got.Append(nil)))
		require.Equal(t, []*node.Node{parent}, got.Parents())
		require.Equal(t, n.Digest(), got.Digest())
		require.NoError(t, got.Verify())
		require.Equal(t, n.Time(), got.Time())
		require.Equal(t, 1, got.Depth())
		again, err := node.New(m.src, got.Payload(), got.Meta(), parent) // what was read says the same in a new node
		require.NoError(t, err)
		require.Equal(t, n.Digest(), again.Digest())
		require.Equal(t, tail(t, n), tail(t, again))
	}
}

// TestWaitingCallIsSavedAndUnderTheDigest: what a person is shown of a call is content, and everything else about it is kept.
func TestWaitingCallIsSavedAndUnderTheDigest(t *testing.T) {
	whole := payloads(t)[3].(node.ToolExecution)
	whole.State, whole.Result, whole.IsError = node.ExecutionAwaitingApproval, content.Blocks{}, false
	whole.Child = node.List[*node.Node]{}
	m := newMaker(t)
	n := m.node(whole)
	line := string(n.Append(nil))
	require.Contains(t, line, `"state":"awaiting_approval","ran":{"tool":"g","input":{"b" : 2.0}},"note":"n","deferred":true,"result":[]}`)
	require.Contains(t, line, `"decided":{"by":"Ann","at":"2026-01-02T03:04:05Z","rule":"r"},"spent":{"run":"r1","turns":1,"calls":2,`)

	got, err := node.Parse([]byte(line), nil)
	require.NoError(t, err)
	require.Equal(t, whole, got.Payload())
	require.NoError(t, got.Verify())

	for what, changed := range map[string]func(*node.ToolExecution){
		"state": func(e *node.ToolExecution) { e.State = node.ExecutionAwaitingResults },
		"tool":  func(e *node.ToolExecution) { e.Ran.Tool = "h" },
		"input": func(e *node.ToolExecution) { e.Ran.Input = `{"b":3}` },
		"note":  func(e *node.ToolExecution) { e.Note = "m" },
	} {
		other := whole
		changed(&other)
		require.NotEqual(t, n.Digest(), m.node(other).Digest(), what)
	}
	other := whole
	other.Decided, other.Spent, other.Started = node.Decided{}, node.Spent{}, start.Add(time.Hour)
	require.Equal(t, n.Digest(), m.node(other).Digest())
}

// TestExecutionKeepsItsInfo: what the info of an execution holds comes back as it was, whatever it is.
func TestExecutionKeepsItsInfo(t *testing.T) {
	deep := content.JSON(strings.Repeat("[", 400) + strings.Repeat("]", 400))
	full := blocks(t, content.Text{Text: "all of it"}, content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}},
		content.Unknown{JSON: `{"type":"hologram"}`})
	m := newMaker(t)
	plain := node.ToolExecution{Tool: "f", Input: "{}"}
	require.NotContains(t, string(m.node(plain).Append(nil)), "info", "what is empty is left out")
	for want, e := range map[string]node.ToolExecution{
		`"info":{"ran":{"tool":"g"}}`:                                    {Ran: node.Ran{Tool: "g"}},
		`"info":{"ran":{"input":{"a" : 1.0}}}`:                           {Ran: node.Ran{Input: `{"a" : 1.0}`}},
		`"info":{"ran":{"tool":"g","input_text":"{\"a\":"}}`:             {Ran: node.Ran{Tool: "g", Input: `{"a":`}},
		`"info":{"ran":{"input_text":"{\n}"}}`:                           {Ran: node.Ran{Input: "{\n}"}},
		`"info":{"ran":{"input_text":"` + string(deep) + `"}}`:           {Ran: node.Ran{Input: deep}},
		`"info":{"usage":{"output":3}}`:                                  {Usage: content.Usage{Output: 3}},
		`"info":{"details":null}`:                                        {Details: "null"},
		`"info":{"details":{"a" : 1.0}}`:                                 {Details: `{"a" : 1.0}`},
		`"info":{"details_text":" [1,\n2] "}`:                            {Details: " [1,\n2] "},
		`"info":{"details_text":"` + string(deep) + `"}`:                 {Details: deep},
		`"info":{"full":[{"type":"text","text":"all of it"},{"type":"im`: {Full: full},
	} {
		e.Tool, e.Input = plain.Tool, plain.Input
		n := m.node(e)
		require.Equal(t, m.node(plain).Digest(), n.Digest(), want)
		line := n.Append(nil)
		require.Contains(t, string(line), want)
		got, err := node.Parse(line, nil)
		require.NoError(t, err, want)
		require.NoError(t, got.Verify())
		require.Equal(t, string(line), string(got.Append(nil)))
		again := m.node(got.Payload())
		require.Equal(t, tail(t, n), tail(t, again))
		read := again.Payload().(node.ToolExecution)
		require.True(t, e.Full.Equal(read.Full))
		read.Full, e.Full, read.Result = content.Blocks{}, content.Blocks{}, content.Blocks{}
		require.Equal(t, e, read)
		require.Equal(t, content.ToolResult{}, read.Answer(), "none of it is what the model is told")
	}
}

func TestStopReasonKeepsTotals(t *testing.T) {
	m := newMaker(t)
	plain := m.node(node.StopReason{Reason: "r"})
	require.NotContains(t, string(plain.Append(nil)), "info")
	for want, s := range map[string]node.StopReason{
		`"info":{"tool_usage":{"input":1,"cache_read":2}}`: {ToolUsage: content.Usage{Input: 1, CacheRead: 2}},
		`"info":{"usage":{"input":1},"tool_usage":{"inpu`:  {Usage: content.Usage{Input: 1}, ToolUsage: content.Usage{Input: 2}},
		`"info":{"cost":0.1}`:                              {Cost: 0.1, CostKnown: true},
		`"info":{"cost":0}`:                                {CostKnown: true},
		`"info":{"cost":0.1,"cost_partial":true}`:          {Cost: 0.1},
		`"info":{"cost":3}`:                                {Cost: 3, CostKnown: true},
		`"info":{"cost":0.1234567890123}`:                  {Cost: 0.1234567890123, CostKnown: true},
		`"info":{"cost":5e-324}`:                           {Cost: math.SmallestNonzeroFloat64, CostKnown: true},
		`"info":{"cost":1.7976931348623157e+308}`:          {Cost: math.MaxFloat64, CostKnown: true},
	} {
		s.Reason = "r"
		n := m.node(s)
		require.Equal(t, plain.Digest(), n.Digest(), want)
		line := n.Append(nil)
		require.Contains(t, string(line), want)
		got, err := node.Parse(line, nil)
		require.NoError(t, err)
		require.Equal(t, s, got.Payload())
		require.Equal(t, string(line), string(got.Append(nil)))
		require.Equal(t, tail(t, n), tail(t, m.node(got.Payload())))
	}
	none := m.node(node.StopReason{Reason: "r", Cost: math.Copysign(0, -1)})
	require.Equal(t, tail(t, plain), tail(t, none), "no cost has one spelling")
}

func TestToolsAreWithdrawnByName(t *testing.T) {
	m := newMaker(t)
	withdrawn := m.node(node.Tools{Withdrawn: node.ListOf("grep")})
	require.Contains(t, string(withdrawn.Append(nil)), `"body":{"tools":[],"withdrawn":["grep"]}`)

	def := content.Tool{Name: "f", Schema: `{"type":"object"}`}
	for name, tools := range map[string]node.Tools{
		"no name":             {Withdrawn: node.ListOf("")},
		"not a name":          {Withdrawn: node.ListOf("a\"b")},
		"named twice":         {Withdrawn: node.ListOf("f", "f")},
		"declared, withdrawn": {Defs: node.ListOf(def), Withdrawn: node.ListOf("f")},
	} {
		_, err := node.New(m.src, tools, node.Meta{})
		require.ErrorIs(t, err, content.ErrTool, name)
	}
}

// tail is a saved node without its id, parents and time.
func tail(t testing.TB, n *node.Node) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(n.Append(nil)), `"body":`)
	require.True(t, ok)
	body, _, _ := strings.Cut(rest, `,"sum":`)
	return body
}

func TestASummaryHasWhatAMessageOfTheUserMayHave(t *testing.T) {
	result := content.ToolResult{CallID: "call_1", Content: content.Words("left out")}
	m := newMaker(t)
	n := m.node(node.Compaction{Summary: blocks(t, result, content.Text{Text: "Go on."})})
	saved, err := n.MarshalJSON()
	require.NoError(t, err)
	again, err := node.Parse(saved, nil)
	require.NoError(t, err)
	require.Equal(t, n.Payload().(node.Compaction).Summary.String(), again.Payload().(node.Compaction).Summary.String())

	for _, b := range []content.Block{content.ToolUse{Name: "f"}, content.Thinking{Text: "Hm."}} {
		_, err := node.New(m.src, node.Compaction{Summary: blocks(t, result, b)}, node.Meta{})
		require.ErrorContains(t, err, "block 1 is a call or thinking")
	}
}

func TestAPointerToAPayloadIsReplacedByItsValue(t *testing.T) {
	m := newMaker(t)
	for _, p := range payloads(t) {
		ptr := reflect.New(reflect.TypeOf(p))
		ptr.Elem().Set(reflect.ValueOf(p))
		n := m.node(ptr.Interface().(node.Payload))
		ptr.Elem().SetZero()
		require.IsType(t, p, n.Payload())
		require.Equal(t, m.node(p).Digest(), n.Digest())

		_, err := node.New(m.src, reflect.Zero(ptr.Type()).Interface().(node.Payload), node.Meta{})
		require.ErrorIs(t, err, node.ErrPayload)
	}
}

func TestNewErrors(t *testing.T) {
	m := newMaker(t)
	object := content.JSON(`{"type":"object"}`)
	far := time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC)
	unknown, err := node.Parse([]byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"moon","body":1}`), nil)
	require.NoError(t, err)
	for name, p := range map[string]node.Payload{
		"nil":                     nil,
		"no role":                 node.Message{},
		"system role":             node.Message{Role: "system"},
		"bad tool":                node.Tools{Defs: node.ListOf(content.Tool{Name: "a b", Schema: object})},
		"tool twice":              node.Tools{Defs: node.ListOf(content.Tool{Name: "a", Schema: object}, content.Tool{Name: "a", Schema: object})},
		"result in a result":      node.ToolExecution{Result: blocks(t, content.ToolResult{})},
		"call in a summary":       node.Compaction{Summary: blocks(t, content.ToolUse{})},
		"nil child":               node.ToolExecution{Child: node.ListOf[*node.Node](nil)},
		"nil head":                node.SubGraph{Heads: node.ListOf(m.node(user("x")), nil)},
		"custom without JSON":     node.Custom{Name: "a"},
		"custom without a name":   node.Custom{JSON: "1"},
		"custom with broken JSON": node.Custom{Name: "a", JSON: "{"},
		"unknown":                 unknown.Payload(),
		"far start":               node.ToolExecution{Started: far},
		"far end":                 node.ToolExecution{Ended: far},
		"broken details":          node.ToolExecution{Details: "{"},
		"far decision":            node.ToolExecution{Decided: node.Decided{At: far}},
		"spent a negative count":  node.ToolExecution{Spent: node.Spent{Turns: -1}},
		"spent no cost":           node.ToolExecution{Spent: node.Spent{Cost: math.NaN()}},
		"details of two values":   node.ToolExecution{Details: "1 2"},
		"details that are space":  node.ToolExecution{Details: " "},
		"details with a twin":     node.ToolExecution{Details: `{"a":1,"a":2}`},
		"details that are bytes":  node.ToolExecution{Details: "\"\xff\""},
		"details of an answer":    node.Message{Role: content.Assistant, Answer: node.Answer{Details: "{"}},
		"call in a full output":   node.ToolExecution{Full: blocks(t, content.ToolUse{})},
		"result in a full output": node.ToolExecution{Full: blocks(t, content.ToolResult{})},
		"thought in one":          node.ToolExecution{Full: blocks(t, content.Thinking{})},
		"fewer turns than none":   node.RunStart{Limits: node.RunLimits{Turns: -1}},
		"fewer calls than none":   node.RunStart{Limits: node.RunLimits{Calls: -1}},
		"fewer tokens than none":  node.RunStart{Limits: node.RunLimits{Tokens: -1}},
		"less time than none":     node.RunStart{Limits: node.RunLimits{Time: -1}},
		"limit below nothing":     node.RunStart{Limits: node.RunLimits{Cost: -0.1}},
		"limit without end":       node.RunStart{Limits: node.RunLimits{Cost: math.Inf(1)}},
		"cost below nothing":      node.StopReason{Cost: -0.1},
		"cost that is no number":  node.StopReason{Cost: math.NaN()},
		"cost without end":        node.StopReason{Cost: math.Inf(1)},
		"gain without end":        node.StopReason{Cost: math.Inf(-1)},
	} {
		n, err := node.New(m.src, p, node.Meta{})
		require.ErrorIs(t, err, node.ErrPayload, name)
		require.Nil(t, n)
	}
	_, err = node.New(m.src, user("x"), node.Meta{}, m.node(user("y")), nil)
	require.ErrorIs(t, err, node.ErrPayload)
	require.ErrorContains(t, err, "parent 1 is nil")
	_, err = node.New(node.Source{Now: func() time.Time { return far }}, user("x"), node.Meta{})
	require.ErrorIs(t, err, node.ErrPayload)
	var field *node.FieldError
	_, err = node.New(m.src, node.Message{Role: "tool"}, node.Meta{})
	require.ErrorAs(t, err, &field)
	require.Equal(t, "role", field.Field)
	for name, p := range map[string]node.Payload{
		"details": node.ToolExecution{Details: "{"},
		"full":    node.ToolExecution{Full: blocks(t, content.ToolUse{})},
		"ended":   node.ToolExecution{Ended: far},
		"cost":    node.StopReason{Cost: math.NaN()},
		"limits":  node.RunStart{Limits: node.RunLimits{Turns: -1}},
	} {
		_, err = node.New(m.src, p, node.Meta{})
		require.ErrorAs(t, err, &field)
		require.Equal(t, name, field.Field)
	}
	_, err = node.New(m.src, node.ToolExecution{Details: "{"}, node.Meta{})
	require.ErrorIs(t, err, content.ErrJSON)
	_, err = node.New(m.src, node.ToolExecution{Full: blocks(t, content.ToolUse{})}, node.Meta{})
	require.ErrorIs(t, err, content.ErrBlock)
}

func TestTextIsCleaned(t *testing.T) {
	const bad, good = "a\xff", "a\uFFFD"
	m := newMaker(t)
	object := content.JSON(`{"type":"object"}`)
	for _, c := range [][2]node.Payload{
		{node.System{Text: bad}, node.System{Text: good}},
		{node.Custom{Name: bad, JSON: "1"}, node.Custom{Name: good, JSON: "1"}},
		{node.RunStart{Agent: bad, Run: bad, Version: bad}, node.RunStart{Agent: good, Run: good, Version: good}},
		{node.StopReason{Reason: bad, Detail: bad}, node.StopReason{Reason: good, Detail: good}},
		{node.StopReason{}, node.StopReason{Reason: content.StopUnknown}},
		{node.SubGraph{Title: bad, CallID: bad, Summary: bad}, node.SubGraph{Title: good, CallID: good, Summary: good}},
		{node.ToolExecution{CallID: bad, Tool: bad, Input: bad}, node.ToolExecution{CallID: good, Tool: good, Input: good}},
		{node.ToolExecution{Ran: node.Ran{Tool: bad, Input: bad}}, node.ToolExecution{Ran: node.Ran{Tool: good, Input: good}}},
		{node.Message{Role: content.User, Answer: node.Answer{API: bad, Model: bad, ResponseID: bad, Stop: bad}},
			node.Message{Role: content.User, Answer: node.Answer{API: good, Model: good, ResponseID: good, Stop: good}}},
	} {
		require.Equal(t, c[1], m.node(c[0]).Payload())
	}
	def := content.Tool{Name: "f", Description: bad, Schema: object, Extra: content.Extra{API: bad, JSON: "{}"}}
	got := m.node(node.Tools{Defs: node.ListOf(def)}).Payload().(node.Tools).Defs.At(0)
	require.Equal(t, content.Tool{Name: "f", Description: good, Schema: object, Extra: content.Extra{API: good, JSON: "{}"}}, got)
}

func TestNodeIsImmutable(t *testing.T) {
	m := newMaker(t)
	a, b, other := m.node(user("a")), m.node(user("b")), m.node(user("other"))
	defs := []content.Tool{{Name: "f", Schema: `{"type":"object"}`}}
	heads, replaced := []*node.Node{a, b}, []node.ID{a.ID(), b.ID()}
	parents := []*node.Node{a, b}
	nodes := []*node.Node{
		m.node(node.Tools{Defs: node.ListOf(defs...)}, parents...),
		m.node(node.ToolExecution{Child: node.ListOf(heads...)}, parents...),
		m.node(node.SubGraph{Heads: node.ListOf(heads...)}, parents...),
		m.node(node.Compaction{Replaced: node.ListOf(replaced...)}, parents...),
	}
	line := []byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":["` + a.ID().String() + `"],"kind":"moon","body":{"x":1},"meta":{"k":[1]}}`)
	parsed, err := node.Parse(line, func(node.ID) *node.Node { return a })
	require.NoError(t, err)
	nodes = append(nodes, parsed)
	before := make([]string, len(nodes))
	for i, n := range nodes {
		before[i] = string(n.Append(nil))
	}

	clear(line)
	defs[0].Name = "changed"
	heads[0], replaced[0], parents[0] = other, other.ID(), other
	for _, n := range nodes {
		clear(n.Parents())
		clear(n.Children().Slice())
		clear(n.Append(nil))
		d := n.Digest()
		clear(d[:])
		switch p := n.Payload().(type) {
		case node.Tools:
			p.Defs.Slice()[0].Name = "changed"
			p.Defs = node.List[content.Tool]{}
		case node.SubGraph:
			p.Heads.Slice()[0] = other
			p.Title = "changed"
		case node.ToolExecution:
			p.Child.Slice()[0] = other
			p.Tool = "changed"
		case node.Compaction:
			p.Replaced.Slice()[0] = other.ID()
		}
		_, err := n.Meta().With("new", 1)
		require.NoError(t, err)
	}
	for i, n := range nodes {
		require.Equal(t, before[i], string(n.Append(nil)))
		require.Equal(t, a, n.Parent(0))
		if i < 4 {
			require.NoError(t, n.Verify())
		}
	}
	list := node.ListOf(1, 2)
	list.Slice()[0] = 9
	require.Equal(t, 1, list.At(0))
	require.Zero(t, node.ListOf[int]())
	require.Nil(t, node.List[int]{}.Slice())
	require.Panics(t, func() { list.At(2) })
}

func TestParentsCountOnceAndInOrder(t *testing.T) {
	m := newMaker(t)
	a, b := m.node(user("a")), m.node(user("b"))
	n := m.node(user("c"), b, a, b)
	require.Equal(t, []*node.Node{b, a}, n.Parents())
	require.Equal(t, 2, n.NumParents())
	require.Equal(t, a, n.Parent(1))
	var many []*node.Node
	for range 20 {
		many = append(many, m.node(user("x")))
	}
	n = m.node(user("c"), append(slices.Clone(many), many...)...)
	require.Equal(t, many, n.Parents())
	require.Equal(t, []*node.Node{a, b}, node.Distinct([]*node.Node{a, nil, b, a}))
}

func TestIDsAreOfVersion7AndSortByTime(t *testing.T) {
	for name, src := range map[string]node.Source{"real": {}, "counting": node.Counting(start)} {
		last := ""
		for range 1000 {
			n, err := node.New(src, user("x"), node.Meta{})
			require.NoError(t, err)
			id := n.ID()
			require.EqualValues(t, 7, id.Version(), name)
			require.Equal(t, "RFC4122", id.Variant().String(), name)
			require.Greater(t, id.String(), last, name)
			last = id.String()
		}
	}
	id := newMaker(t).node(user("x")).ID()
	require.Equal(t, "019b7ca9-8c88-7000-8000-000000000001", id.String())
	require.Equal(t, "00000001", node.ShortID(id))
}

func TestCountingIsDeterministicAndSafe(t *testing.T) {
	a, b := newMaker(t), newMaker(t)
	for i := range 100 {
		x, y := a.node(user("x")), b.node(user("x"))
		require.Equal(t, string(x.Append(nil)), string(y.Append(nil)))
		require.Equal(t, start.Add(time.Duration(i)*time.Second), x.Time())
	}
	var wg sync.WaitGroup
	var seen sync.Map
	for range 8 {
		wg.Go(func() {
			for range 100 {
				n, err := node.New(a.src, user("x"), node.Meta{})
				if _, twice := seen.LoadOrStore(n.ID(), true); twice || err != nil {
					t.Error("an id was given twice")
				}
				n.Digest()
			}
		})
	}
	wg.Wait()
	local := node.Source{Now: func() time.Time { return start.In(time.FixedZone("x", 3600)) }}
	require.Equal(t, start, local.Time())
	require.WithinDuration(t, time.Now(), node.Source{}.Time(), time.Minute)
}

func TestMeta(t *testing.T) {
	var empty node.Meta
	require.Zero(t, empty.Len())
	require.Empty(t, empty.Get("a"))
	one, err := empty.With("b", map[string]any{"y": 1, "x": "<\xff>"})
	require.NoError(t, err)
	two, err := one.With("a", 2)
	require.NoError(t, err)
	three, err := two.With("b", nil)
	require.NoError(t, err)
	require.Zero(t, empty.Len())
	require.Equal(t, content.JSON("{\"x\":\"<\uFFFD>\",\"y\":1}"), one.Get("b"))
	require.Equal(t, content.JSON("{\"x\":\"<\uFFFD>\",\"y\":1}"), two.Get("b"), "an older value stays as it was")
	require.Equal(t, content.JSON("null"), three.Get("b"))
	require.Equal(t, `{"a":2,"b":null}`, string(three.Append(nil)))
	var names []string
	for name := range three.All() {
		names = append(names, name)
		if name == "b" {
			break
		}
	}
	require.Equal(t, []string{"a", "b"}, names)
	_, err = three.With("c", math.NaN())
	require.ErrorIs(t, err, content.ErrJSON)
	_, err = three.With("c", deepValue(257))
	require.ErrorIs(t, err, content.ErrJSON)

	deep, err := three.With("c\xff", deepValue(256))
	require.NoError(t, err)
	n, err := node.New(node.Source{}, user("x"), deep)
	require.NoError(t, err)
	got, err := node.Parse(n.Append(nil), nil)
	require.NoError(t, err, "the deepest metadata can be read again")
	require.Equal(t, string(deep.Append(nil)), string(got.Meta().Append(nil)))
	require.Equal(t, deep.Get("c\uFFFD"), got.Meta().Get("c\uFFFD"))

	var meta node.Meta
	require.NoError(t, meta.UnmarshalJSON([]byte(`{"z":1.0,"a": [ 1 ]}`)))
	require.Equal(t, `{"a":[ 1 ],"z":1.0}`, string(meta.Append(nil)))
	require.Error(t, meta.UnmarshalJSON([]byte(`{"z":1,"z":2}`)))
	require.Equal(t, 2, meta.Len())
}

func deepValue(n int) any {
	var v any = []any{}
	for range n - 1 {
		v = []any{v}
	}
	return v
}

// TestManyEntriesOfMetadataAreReadInLinearTime takes minutes where each entry copies those before it.
func TestManyEntriesOfMetadataAreReadInLinearTime(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"moon","body":1,"meta":{"":0`)
	for i := range 200_000 {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	n, err := node.Parse([]byte(b.String()+"}}"), nil)
	require.NoError(t, err)
	require.Equal(t, 200_001, n.Meta().Len())
	require.Equal(t, content.JSON("0"), n.Meta().Get("77777"))
}

func TestSmallThings(t *testing.T) {
	m := newMaker(t)
	n := m.node(user("x"))
	require.Equal(t, "message 00000001", n.String())
	_, ok := m.node(node.System{}).Message()
	require.False(t, ok)
	msg, ok := n.Message()
	require.True(t, ok)
	require.Equal(t, "x", msg.Blocks.Text())
	require.Zero(t, n.Children().Len())
	require.Zero(t, n.Depth())
}

func TestFailed(t *testing.T) {
	stops := map[content.Stop]bool{"": false, content.StopEndTurn: false, content.StopToolUse: false, content.StopHook: false, content.StopUnknown: false,
		content.StopMaxTokens: true, content.StopRefusal: true, content.StopCancelled: true, content.StopApproval: true, "a provider's own": true}
	for stop, failed := range stops {
		for _, p := range []node.Payload{
			node.Message{Role: content.Assistant, Blocks: content.Words("x"), Answer: node.Answer{Stop: stop}}, node.StopReason{Reason: stop},
		} {
			if n, err := node.New(node.Source{}, p, node.Meta{}); err == nil { // a run has a reason
				require.Equal(t, failed, n.Failed(), "%s %q", n.Kind(), stop)
			}
		}
	}
	said, err := node.New(node.Source{}, node.Message{Role: content.Assistant, Blocks: content.Words("x")}, node.Meta{})
	require.NoError(t, err)
	for _, failed := range []bool{true, false} {
		n, err := node.New(node.Source{}, node.ToolExecution{Result: content.Words("x"), IsError: failed}, node.Meta{}, said)
		require.NoError(t, err)
		require.Equal(t, failed, n.Failed())
	}
	require.False(t, said.Failed())
}
