package dag_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// fresh is an empty conversation with ids and times that depend on nothing.
func fresh() dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

// declared is a tool that is declared only.
func declared(name, description string) content.Tool {
	return content.Tool{Name: name, Description: description, Schema: `{"type":"object"}`}
}

func use(id, name string, input content.JSON) content.ToolUse {
	return content.ToolUse{ID: id, Name: name, Input: input}
}

func result(id, text string) content.ToolResult {
	return content.ToolResult{CallID: id, Content: content.Words(text)}
}

func execution(index int, text string) node.ToolExecution {
	return node.ToolExecution{Index: index, Result: content.Words(text)}
}

// askWeather is a conversation whose assistant waits for three results.
func askWeather() dag.DAG {
	return fresh().
		System("Answer briefly. Call tools in parallel when you can.").
		Tools(declared("get_weather", "Current weather for one city.")).
		User("Weather in Tokyo, Paris and New York?").
		Assistant("",
			use("t1", "get_weather", `{"city":"Tokyo"}`),
			use("t2", "get_weather", `{"city":"Paris"}`),
			use("t3", "get_weather", `{"city":"New York"}`), content.Text{Text: "I'll look it up."})
}

// toldWeather is the same, answered and ended.
func toldWeather() dag.DAG {
	failed := execution(2, "no station answers")
	failed.IsError = true
	return askWeather().
		CloseTools(execution(0, "22 °C, sunny"), execution(1, "18 °C, rain"), failed).
		Assistant("Tokyo: 22 °C and sunny. Paris: 18 °C and rain. New York does not answer.").
		Append(node.StopReason{Reason: content.StopEndTurn, Turns: 2, ToolCalls: 3,
			Usage: content.Usage{Input: 1201, Output: 339}, Elapsed: 4200 * time.Millisecond})
}

type brokenTool struct{ content.Tool }

var errBroken = errors.New("no schema for a channel")

func (brokenTool) Err() error { return errBroken }

func TestChainKeepsFirstErrorAndItsStep(t *testing.T) {
	for _, c := range []struct {
		step string
		want error
		fail func(dag.DAG) dag.DAG
	}{
		{"User", dag.ErrEmpty, func(d dag.DAG) dag.DAG { return d.User("") }},
		{"User", content.ErrBlock, func(d dag.DAG) dag.DAG { return d.User("look", content.Image{}) }},
		{"User", content.ErrBlock, func(d dag.DAG) dag.DAG { return d.User("", nil) }},
		{"Assistant", dag.ErrEmpty, func(d dag.DAG) dag.DAG { return d.Assistant("") }},
		{"Assistant", content.ErrBlock, func(d dag.DAG) dag.DAG { return d.Assistant("", (*content.Text)(nil)) }},
		{"ToolResults", dag.ErrEmpty, func(d dag.DAG) dag.DAG { return d.ToolResults() }},
		{"Append", node.ErrPayload, func(d dag.DAG) dag.DAG { return d.Append(nil) }},
		{"Append", node.ErrPayload, func(d dag.DAG) dag.DAG { return d.Append(node.Message{Role: "judge"}) }},
		{"AppendMeta", node.ErrPayload, func(d dag.DAG) dag.DAG { return d.AppendMeta(node.Unknown{}, node.Meta{}) }},
		{"Tools", content.ErrTool, func(d dag.DAG) dag.DAG { return d.Tools(declared("no spaces", "")) }},
		{"Tools", content.ErrTool, func(d dag.DAG) dag.DAG { return d.Tools(nil) }},
		{"Tools", errBroken, func(d dag.DAG) dag.DAG { return d.Tools(brokenTool{declared("f", "")}) }},
		{"Custom", content.ErrJSON, func(d dag.DAG) dag.DAG { return d.Custom("n", math.NaN()) }},
		{"SubGraph", dag.ErrEmpty, func(d dag.DAG) dag.DAG { return d.SubGraph("x", dag.New().User("")) }},
		{"CloseTools", dag.ErrNoCalls, func(d dag.DAG) dag.DAG { return d.CloseTools() }},
		{"CloseTools", dag.ErrNoCalls, func(d dag.DAG) dag.DAG { return askWeather().CloseTools(execution(3, "")) }},
		{"CloseTools", dag.ErrNoCalls, func(d dag.DAG) dag.DAG { return askWeather().CloseTools(execution(-1, "")) }},
		{"CloseTools", dag.ErrNoCalls, func(d dag.DAG) dag.DAG { return askWeather().CloseTools(execution(0, ""), execution(0, "")) }},
		{"AppendExecutions", dag.ErrNoCalls, func(d dag.DAG) dag.DAG { return d.AppendExecutions(execution(0, "")) }},
		{"AppendExecutions", dag.ErrNoCalls, func(d dag.DAG) dag.DAG { return askWeather().AppendExecutions(execution(3, "")) }},
		{"AppendExecutions", dag.ErrNoCalls, func(d dag.DAG) dag.DAG { return askWeather().AppendExecutions(execution(-1, "")) }},
		{"AppendExecutions", dag.ErrNoCalls, func(d dag.DAG) dag.DAG { return askWeather().AppendExecutions(execution(0, ""), execution(0, "")) }},
		{"AppendExecutions", dag.ErrNoCalls, func(d dag.DAG) dag.DAG {
			return askWeather().AppendExecutions(execution(1, "")).AppendExecutions(execution(1, ""))
		}},
		{"AppendExecutions", node.ErrPayload, func(d dag.DAG) dag.DAG { return askWeather().AppendExecutions(node.ToolExecution{Details: "{"}) }},
		{"CloseTools", node.ErrPayload, func(d dag.DAG) dag.DAG { return askWeather().CloseTools(node.ToolExecution{Details: "{"}) }},
		{"Back", dag.ErrNoExchange, func(d dag.DAG) dag.DAG { return d.Back(2) }},
		{"At", dag.ErrForeign, func(d dag.DAG) dag.DAG { return d.At(node.ID{1}) }},
		{"User", dag.ErrEmpty, func(d dag.DAG) dag.DAG { return d.Join(dag.New().User("")) }},
	} {
		d := fresh().System("s").User("hello")
		broken := c.fail(d)
		require.ErrorIs(t, broken.Err(), c.want)
		require.Contains(t, broken.Err().Error(), "dag: "+c.step+": ")
		require.NoError(t, d.Err(), "the conversation that was extended stays good")

		first, heads := broken.Err(), broken.Heads()
		after := broken.System("x").Tools(declared("g", "")).User("x").Assistant("").ToolResults(result("a", "b")).Custom("n", 1).
			Stop(content.StopError).SubGraph("s", d).CloseTools().AppendExecutions(execution(0, "")).Back(9).At(node.ID{2}).Append(nil).Join(dag.New().Custom("", math.Inf(1)))
		require.Same(t, first, after.Err(), "%s: the first error stays", c.step)
		require.Equal(t, heads, after.Heads(), "%s: steps after the error change nothing", c.step)
		_, n, err := broken.AppendTo(broken.Heads(), node.System{Text: "x"})
		require.Same(t, first, err)
		require.Nil(t, n)
		require.Contains(t, broken.String(), "✗ dag: "+c.step)
	}
}

func TestAppendToAcceptsAnyNodeOfTheConversation(t *testing.T) {
	d := fresh().User("root")
	root := d.Head()
	say := func(s string) node.Payload { return node.Message{Role: content.User, Blocks: content.Words(s)} }
	d, a, err := d.AppendTo([]*node.Node{root}, say("a"))
	require.NoError(t, err)
	require.Equal(t, []*node.Node{a}, d.Heads(), "it takes its parent's place")
	d, b, err := d.AppendTo([]*node.Node{root}, say("b"))
	require.NoError(t, err)
	d, c, err := d.AppendTo([]*node.Node{root}, say("c"))
	require.NoError(t, err)
	require.Equal(t, []*node.Node{a, b, c}, d.Heads(), "heads that are no parents stay")
	merged, m, err := d.AppendTo([]*node.Node{b, c}, say("m"))
	require.NoError(t, err)
	require.Equal(t, []*node.Node{a, m}, merged.Heads(), "it stands where the first of its parents stood")
	require.Equal(t, []*node.Node{b, c}, m.Parents())

	for name, parents := range map[string][]*node.Node{
		"none":    nil,
		"nil":     {nil},
		"foreign": {dag.New().User("x").Head()},
		"stale":   {merged.User("later").Head()},
		"mixed":   {a, dag.New().User("x").Head()},
	} {
		same, n, err := merged.AppendTo(parents, say("x"))
		require.ErrorIs(t, err, dag.ErrForeign, name)
		require.Nil(t, n)
		require.Equal(t, merged.Heads(), same.Heads())
		require.NoError(t, same.Err(), "the conversation stays good")
	}
	_, _, err = merged.AppendTo([]*node.Node{a}, nil)
	require.ErrorIs(t, err, node.ErrPayload)
	first, n, err := fresh().AppendTo(nil, say("first"))
	require.NoError(t, err)
	require.Equal(t, n, first.Head())
}

func TestHeadReturnsTheOnlyHead(t *testing.T) {
	require.Nil(t, dag.New().Head())
	d := fresh().User("a")
	require.NotNil(t, d.Head())
	require.Nil(t, d.Join(dag.New().User("b")).Head())
	require.Len(t, d.Join(d, d).Heads(), 1, "heads are not repeated")
	start := time.Unix(0, 0)
	one, other := dag.New().WithSource(node.Counting(start)).User("a"), dag.New().WithSource(node.Counting(start)).User("b")
	require.ErrorIs(t, one.Join(other).Err(), dag.ErrDuplicateID, "two nodes with one id")
	require.Len(t, one.Join(dag.New().WithSource(node.Counting(start)).User("a")).Heads(), 1, "two nodes that are one")
	heads := d.Heads()
	heads[0] = nil
	require.NotNil(t, d.Head(), "what is handed out is a copy")
	own := []*node.Node{d.Head(), nil, d.Head()}
	e := d.WithHeads(own...)
	own[0] = nil
	require.Equal(t, d.Heads(), e.Heads())
}

func TestBackRemovesExchanges(t *testing.T) {
	d := fresh().System("s").User("one").Assistant("1").User("two").Assistant("", use("a", "f", "{}")).
		ToolResults(result("a", "r")).Assistant("2")
	require.Equal(t, 3, d.Back(1).Len(), "results begin no turn")
	require.Equal(t, "1", d.Back(1).Text())
	require.Equal(t, 1, d.Back(2).Len())
	require.Equal(t, 7, d.Back(0).Len())
	require.Equal(t, 7, d.Back(-1).Len())
	require.ErrorIs(t, d.Back(3).Err(), dag.ErrNoExchange)
	require.Zero(t, fresh().User("x").Back(1).Len())
	mixed := d.User("", result("z", "r"), content.Text{Text: "and another thing"})
	require.Equal(t, 7, mixed.Back(1).Len(), "results with words begin a turn")
}

func TestBackKeepsHeadsOfOtherBranches(t *testing.T) {
	base := fresh().User("root").Assistant("r")
	left, right := base.User("left").Assistant("l"), base.User("right")
	require.Equal(t, left.Heads(), left.Join(right).Back(1).Heads(), "the head of the other line stays, and it alone")
	merged := left.Join(right).User("both").Assistant("b")
	require.Equal(t, left.Join(right).Heads(), merged.Back(1).Heads())
}

func TestCloseToolsAnswersEveryCallInCallOrder(t *testing.T) {
	d := askWeather()
	require.Len(t, d.OpenCalls(), 3)
	said := d.Head()
	closed := d.CloseTools(execution(2, "c"), execution(0, "a"))
	require.NoError(t, closed.Err())
	require.Empty(t, closed.OpenCalls())
	merge := closed.Head()
	require.Equal(t, 3, merge.NumParents())
	for i, p := range merge.Parents() {
		e := p.Payload().(node.ToolExecution)
		require.Equal(t, []*node.Node{said}, p.Parents())
		require.Equal(t, i, e.Index)
		require.Equal(t, "get_weather", e.Tool)
		require.Equal(t, []string{"t1", "t2", "t3"}[i], e.CallID)
		require.NotEmpty(t, e.Input)
	}
	m, _ := merge.Message()
	answers := m.Blocks.ToolResults()
	require.Equal(t, content.User, m.Role)
	require.Equal(t, []string{"a", content.NoResult, "c"}, []string{answers[0].Content.Text(), answers[1].Content.Text(), answers[2].Content.Text()})
	require.Equal(t, []bool{false, true, false}, []bool{answers[0].IsError, answers[1].IsError, answers[2].IsError})
	require.Empty(t, closed.Validate())
}

func TestCloseToolsCompletesAPhaseCutInHalf(t *testing.T) {
	d := askWeather()
	said := d.Heads()
	half, first, err := d.AppendTo(said, node.ToolExecution{Index: 1, CallID: "t2", Tool: "get_weather", Result: content.Words("18 °C")})
	require.NoError(t, err)
	open := half.OpenCalls()
	require.Equal(t, []int{0, 2}, []int{open[0].Index, open[1].Index})
	require.Equal(t, "18 °C", half.Messages()[2].Blocks.ToolResults()[0].Content.Text(), "what was done is said, so that it is not lost")
	require.ErrorIs(t, half.CloseTools(execution(1, "again")).Err(), dag.ErrNoCalls)
	closed := half.CloseTools(execution(0, "22 °C"))
	require.NoError(t, closed.Err())
	require.Same(t, first, closed.Head().Parent(1), "the execution that was there is kept")
	require.Empty(t, closed.Validate())
	require.Len(t, closed.Messages(), 3)
}

func TestExecutionsByHandAreFoundByTheirCallID(t *testing.T) {
	d := askWeather()
	said := d.Heads()
	for _, id := range []string{"t3", "t1", "t2"} { // no Index, as a program writes it that knows ids only
		var err error
		d, _, err = d.AppendTo(said, node.ToolExecution{CallID: id, Result: content.Words("of " + id)})
		require.NoError(t, err)
	}
	require.Empty(t, d.OpenCalls(), "nothing is run twice")
	m, _ := d.CloseTools().Head().Message()
	for i, r := range m.Blocks.ToolResults() {
		require.Equal(t, []string{"t1", "t2", "t3"}[i], r.CallID)
		require.Equal(t, "of "+r.CallID, r.Content.Text())
	}
}

func TestNoExecutionIsLostWhenAPhaseIsClosed(t *testing.T) {
	d := askWeather()
	said := d.Heads()
	d, _, _ = d.AppendTo(said, execution(0, "first"))
	d, again, _ := d.AppendTo(said, execution(0, "again"))
	d, stray, _ := d.AppendTo(said, execution(7, "of no call"))
	require.Len(t, d.OpenCalls(), 2)
	closed := d.CloseTools()
	require.NoError(t, closed.Err())
	require.True(t, closed.Contains(again))
	require.True(t, closed.Contains(stray))
	m, _ := closed.Head().Message()
	require.Len(t, m.Blocks.ToolResults(), 3)
	require.Equal(t, "first", m.Blocks.ToolResults()[0].Content.Text())
	require.Equal(t, "t1", m.Blocks.ToolResults()[0].CallID, "an execution that names its call by Index alone is answered by the call's id")
}

func TestCloseToolsNeedsAnOpenPhase(t *testing.T) {
	d := askWeather()
	other := dag.New().User("x").Assistant("", use("t1", "get_weather", "{}"))
	for name, d := range map[string]dag.DAG{
		"empty":             fresh(),
		"after words":       fresh().User("x").Assistant("y"),
		"calls of the user": fresh().User("", use("a", "f", "{}")),
		"closed":            d.CloseTools(),
	} {
		require.Empty(t, d.OpenCalls(), name)
		require.ErrorIs(t, d.CloseTools().Err(), dag.ErrNoCalls, name)
	}
	require.ErrorIs(t, d.Join(other).CloseTools().Err(), dag.ErrNoCalls, "two phases: which one is not said")
}

func TestOpenCallsCoverEveryHead(t *testing.T) {
	d := askWeather()
	other := dag.New().User("x").Assistant("Look.", use("t1", "get_weather", "{}"))
	both := d.Join(dag.New().User("y"), other)
	require.Equal(t, append(d.OpenCalls(), other.OpenCalls()...), both.OpenCalls())
	require.Len(t, both.OpenCalls(), 4)
	require.Equal(t, node.CallKey{Message: other.Head().ID(), Index: 1}, other.OpenCalls()[0].Key(), "the index is that of the block")

	half := both.WithHeads(d.AppendExecutions(execution(1, "b")).Head(), other.Head())
	require.Equal(t, []string{"t1", "t3", "t1"}, open(half))
}

func TestToolsAreAUnionByNameWithTheLastDefinition(t *testing.T) {
	d := fresh().Tools(declared("a", "1"), declared("b", "1")).User("x").Tools(declared("a", "2"), declared("c", "1"))
	require.NoError(t, d.Err())
	require.Equal(t, []content.Tool{declared("a", "2"), declared("b", "1"), declared("c", "1")}, d.ToolDefs())
	second := d.Head().Payload().(node.Tools)
	require.Equal(t, 2, second.Defs.Len())
	require.Equal(t, d.Len(), d.Tools(declared("a", "2"), declared("b", "1")).Len(), "what is declared is not declared again")
	twice := fresh().Tools(declared("a", "1"), declared("a", "2"))
	require.NoError(t, twice.Err())
	require.Equal(t, []content.Tool{declared("a", "2")}, twice.ToolDefs())
	require.Equal(t, 0, fresh().Tools().Len())
}

// running is a tool that can run.
type running struct {
	content.Tool
	says string
}

func TestToolsTravelWithTheConversationAndAreBoundAgain(t *testing.T) {
	one := running{declared("f", "d"), "one"}
	d := fresh().Tools(one).User("x")
	got, ok := d.Assistant("y").Back(1).Tool("f")
	require.True(t, ok)
	require.Equal(t, one, got)
	_, ok = d.Tool("g")
	require.False(t, ok)
	bare := dag.New().WithHeads(d.Heads()...)
	_, ok = bare.Tool("f")
	require.False(t, ok)
	two := running{declared("f", "d"), "two"}
	bound := bare.Tools(two)
	require.Equal(t, bare.Heads(), bound.Heads(), "binding adds no node")
	got, _ = bound.Tool("f")
	require.Equal(t, two, got)
	rebound := d.Tools(two, running{declared("g", ""), "three"})
	require.Equal(t, 3, rebound.Len())
	got, _ = d.Tool("f")
	require.Equal(t, one, got, "the conversation that was extended keeps its tool")
	got, _ = bound.Join(d).Tool("f")
	require.Equal(t, two, got, "a tool of one's own stays")
	got, _ = dag.New().Join(d).Tool("f")
	require.Equal(t, one, got, "and others' come along")
}

func TestJoinMergesWhatIsAppendedNext(t *testing.T) {
	base := fresh().User("root")
	a, b := base.Assistant("a"), base.Assistant("b")
	m := a.Join(b).User("both")
	require.Equal(t, []*node.Node{a.Head(), b.Head()}, m.Head().Parents())
	require.Equal(t, []string{"user:root", "assistant:a", "assistant:b", "user:both"}, spell(m.Messages()))
	require.Equal(t, []string{"user:root", "assistant:b", "assistant:a", "user:both"}, spell(b.Join(a).User("both").Messages()))
}

func TestEqualComparesContent(t *testing.T) {
	build := func(d dag.DAG) dag.DAG { return d.System("s").User("x").Assistant("y") }
	a, b := build(fresh()), build(dag.New())
	require.True(t, dag.Equal(a, b), "ids and times do not count")
	require.False(t, dag.Equal(a, b.User("z")))
	require.False(t, dag.Equal(a, a.Join(b.User("z"))))
	require.True(t, dag.Equal(fresh(), dag.DAG{}))
	require.False(t, dag.Equal(a, fresh().System("other").User("x").Assistant("y")), "the past counts")
}

func TestMetadataIsNotContent(t *testing.T) {
	meta, err := node.Meta{}.With("cost", 3)
	require.NoError(t, err)
	d := fresh().AppendMeta(node.System{Text: "s"}, meta)
	require.Equal(t, content.JSON("3"), d.Head().Meta().Get("cost"))
	require.True(t, dag.Equal(d, fresh().System("s")))
}
