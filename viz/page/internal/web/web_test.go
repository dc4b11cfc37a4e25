package web

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

func start() dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

func update(t *testing.T, m *Model, d dag.DAG) Patch {
	t.Helper()
	changes, err := m.Update(d)
	require.NoError(t, err)
	p := changes.Patch()
	require.Equal(t, changes.Empty(), reflect.ValueOf(p).IsZero())
	return p
}

func keys(nodes []Node) (list []int) {
	for _, n := range nodes {
		list = append(list, n.Key)
	}
	return list
}

func TestPatchHasOnlyChanges(t *testing.T) {
	m := NewModel()
	question := start().User("Name a tree.")
	first := update(t, m, question)
	require.Equal(t, []int{0}, keys(first.Nodes))
	require.Equal(t, []int{0}, first.Heads)
	require.Len(t, first.Places, 1)

	require.Zero(t, update(t, m, question), "nothing is new")

	answered := question.Assistant("An oak.")
	second := update(t, m, answered)
	require.Equal(t, []int{1}, keys(second.Nodes))
	require.Equal(t, []int{0}, second.Nodes[0].Parents)
	require.Equal(t, []int{1}, second.Heads)
	require.Equal(t, [][2]int{{0, 1}}, ends(second.Edges))
	require.Equal(t, first.Width, second.Width, "a picture that only grows in height is sent with both sizes")
	require.Greater(t, second.Height, first.Height)

	fork := answered.Join(question.Assistant("A red-black tree."))
	third := update(t, m, fork)
	require.Equal(t, []int{2}, keys(third.Nodes), "a shared node is sent once")
	require.Equal(t, []int{1, 2}, third.Heads)

	back := update(t, m, question.Assistant("A fir."))
	require.Equal(t, []int{3}, keys(back.Nodes), "keys are not used again")
	require.Equal(t, []int{1, 2}, back.Gone)
	require.Equal(t, [][2]int{{0, 1}, {0, 2}}, back.Cut)
	require.Len(t, m.shown.nodes, 2, "the model forgets nodes that are gone")
	require.Nil(t, update(t, m, m.shown.d.User("And another?")).Cut, "an edge is cut once")
}

func ends(edges []Edge) (list [][2]int) {
	for _, e := range edges {
		list = append(list, [2]int{e.From, e.To})
	}
	return list
}

func TestReloadedPageGetsEverythingUnderTheSameKeys(t *testing.T) {
	m := NewModel()
	d := start().User("Name a tree.")
	fork := d.Assistant("An oak.").Join(d.Assistant("A fir."))
	update(t, m, d.Assistant("An elm."))
	update(t, m, fork)
	whole := m.Whole().Patch()
	require.True(t, whole.Reset)
	require.Equal(t, []int{0, 2, 3}, keys(whole.Nodes))
	require.Equal(t, []int{2, 3}, whole.Heads)
	require.Len(t, whole.Places, 3)
	require.Len(t, whole.Edges, 2)
	require.Zero(t, update(t, m, fork), "both pages know the same")
}

func TestRedactedNodeIsSentAgain(t *testing.T) {
	m := NewModel()
	d := start().User("My secret is 12345.").Assistant("I keep it.")
	update(t, m, d)
	p := update(t, m, d.Redact(d.Nodes()[0].ID()))
	require.Equal(t, []int{0}, keys(p.Nodes), "the second node says what it said")
	require.NotContains(t, p.Nodes[0].Raw.String(), "12345")
}

func TestAnAnswerHasItsCostWhereAPriceIsKnown(t *testing.T) {
	m := NewModel()
	m.Prices = api.Prices{"dear": {Input: 2, Output: 10}, "free": {}}
	d := start().User("Name a tree.")
	for _, model := range []string{"dear", "free", "unknown"} {
		d = d.Append(node.Message{Role: content.Assistant, Blocks: content.Words("An oak."), Answer: node.Answer{Model: model, Usage: content.Usage{Input: 1000, Output: 100}}})
	}
	d = d.Append(node.Message{Role: content.Assistant, Blocks: content.Words("A fir."), Answer: node.Answer{Model: "dear"}})
	nodes := update(t, m, d).Nodes
	require.InDelta(t, 0.003, *nodes[1].Cost, 1e-12)
	require.Zero(t, *nodes[2].Cost, "a price of nothing is a price")
	require.Nil(t, nodes[3].Cost, "what is not known is not nothing")
	require.Nil(t, nodes[4].Cost, "nor what was not counted")
}

func TestTotalsKeepWhatIsUnknownApart(t *testing.T) {
	reply := func(model string, input int64, took time.Duration) node.Message {
		usage := content.Usage{Input: input, Incomplete: model == "free"}
		return node.Message{Role: content.Assistant, Answer: node.Answer{Model: model, Usage: usage, Latency: took}}
	}
	at := time.Unix(0, 0)
	child := dag.New().User("Why?").Append(reply("dear", 2000, 5*time.Second))
	call := content.ToolUse{ID: "1", Name: "ask", Input: "{}"}
	d := start().User("Look.").Append(reply("dear", 1000, time.Second)).Append(reply("", 0, 0)).Append(reply("free", 7, 0)).Assistant("", call).
		CloseTools(node.ToolExecution{Started: at, Ended: at.Add(6 * time.Second), IsError: true, Child: node.ListOf(child.Heads()...), Usage: content.Usage{Input: 2000}})

	m := NewModel()
	m.Prices = api.Prices{"dear": {Input: 1000}, "free": {}}
	p := update(t, m, d)
	require.Equal(t, []Total{
		{By: "model", Name: "dear", Calls: 2, Usage: [5]int64{3000}, MS: 6000, Longest: 5000, Cost: 3, Priced: 2},
		{By: "model", Name: "", Calls: 2, Untimed: 2, Unpriced: 2},
		{By: "model", Name: "free", Calls: 1, Usage: [5]int64{7}, Least: true, Untimed: 1, Priced: 1},
		{By: "tool", Name: "ask", Calls: 1, Failed: 1, Usage: [5]int64{2000}, MS: 6000, Longest: 6000},
		{By: "agent", Name: "", Calls: 5, Failed: 1, Usage: [5]int64{1007}, Least: true, Cost: 1, Priced: 2, Unpriced: 2},
		{By: "agent", Name: "sub-agent: ask", Calls: 1, Usage: [5]int64{2000}, MS: 6000, Longest: 6000, Cost: 2, Priced: 1},
	}, p.Totals)
	require.Nil(t, update(t, m, m.shown.d.User("And now?")).Totals, "totals that have not changed are not sent")
}

func TestACallHasItsBeginningAndItsState(t *testing.T) {
	at := time.UnixMilli(1767323045000).UTC()
	call := content.ToolUse{ID: "1", Name: "look", Input: "{}"}
	d := start().User("Look.").Assistant("", call).AppendExecutions(node.ToolExecution{State: node.ExecutionStarted, Started: at.Add(1500 * time.Microsecond)})
	n := update(t, NewModel(), d).Nodes[2]
	require.Equal(t, "started", n.State)
	require.Equal(t, 1767323045001.5, n.At)
	require.Zero(t, n.MS, "how long it takes is unknown")

	retried := start().User("Look.").Append(node.Message{Role: content.Assistant, Blocks: content.Words("Blue."), Answer: node.Answer{Retries: 2}})
	n = update(t, NewModel(), retried).Nodes[1]
	require.Equal(t, "2 retries", n.State)
	require.Equal(t, "[2 retries] Blue.", n.Line)
}

func TestAResponseHasWhyItsPrefixBroke(t *testing.T) {
	reply := func(input, read int64) node.Message {
		return node.Message{Role: content.Assistant, Blocks: content.Words("Yes."), Answer: node.Answer{
			API: "anthropic", Model: "claude-sonnet-4-5", Usage: content.Usage{Input: input, CacheRead: read}}}
	}
	d := start().SetSystem("day", "It is Monday. "+strings.Repeat("Be brief. ", 1000)).User("One?").Append(reply(3000, 0)).
		User("Two?").Append(reply(10, 3000)).
		SetSystem("day", "It is Tuesday. "+strings.Repeat("Be brief. ", 1000)).User("Three?").Append(reply(3020, 0))
	m := NewModel()
	nodes := update(t, m, d).Nodes
	require.Equal(t, &Cache{Input: 3000, Text: "0 of 3,000 tokens predicted, 0 read: it is the first request"}, nodes[2].Cache)
	require.False(t, nodes[4].Cache.Broke)
	require.Nil(t, nodes[4].Cache.At)
	cause := 5
	require.Equal(t, &Cache{Input: 3020, Text: "0 of 3,020 tokens predicted, 0 read: system prompt 1 changed", Broke: true, At: &cause}, nodes[7].Cache)

	other := dag.New().WithSource(node.Counting(d.Head().Time().Add(time.Minute))).SetSystem("day", "Look.").User("Where?").Append(reply(3000, 0))
	beside := update(t, NewModel(), d.SubGraph("help", other)).Nodes
	require.Equal(t, "0 of 3,000 tokens predicted, 0 read: system prompt 1 changed", beside[len(beside)-1].Cache.Text)
	require.False(t, beside[len(beside)-1].Cache.Broke, "another conversation breaks nothing")

	next := update(t, m, d.User("Four?").Append(reply(10, 3020))).Nodes
	require.Equal(t, []int{8, 9}, keys(next), "responses that are known are not sent again")
	require.False(t, next[1].Cache.Broke)
}

func TestBrokenChainIsAnErrorWithoutNodes(t *testing.T) {
	m := NewModel()
	d := start().User("Name a tree.")
	update(t, m, d)
	_, err := m.Update(d.Back(3))
	require.ErrorContains(t, err, "no such exchange")
	require.Zero(t, update(t, m, d))
}

func TestProblemsAreWhatFailedAndWhatIsForbidden(t *testing.T) {
	call := content.ToolUse{ID: "1", Name: "get_weather", Input: `{"city":"Paris"}`}
	tool := content.Tool{Name: "get_weather", Schema: `{"type":"object"}`}
	failed := start().Tools(tool).User("Weather?").Assistant("", call).
		CloseTools(node.ToolExecution{Result: content.Words("no such city"), IsError: true}).Stop(content.StopMaxTurns)
	require.Equal(t, []Problem{{Key: 3, What: "tool failed", Grave: true}, {Key: 5, What: "the run ended: max_turns", Grave: true}}, update(t, NewModel(), failed).Problems)

	open := start().Tools(tool).User("Weather?").Assistant("", call)
	waits := []Problem{{Key: 2, What: "call 1, of get_weather, waits for its result", Waits: true}}
	require.Equal(t, waits, update(t, NewModel(), open).Problems)

	m := NewModel()
	update(t, m, open)
	closed := update(t, m, open.CloseTools(node.ToolExecution{Result: content.Words("22°C")}))
	require.NotNil(t, closed.Problems, "a list that became empty is sent")
	require.Empty(t, closed.Problems)

	beside := open.Join(dag.New().User("Another end."))
	require.Equal(t, waits, update(t, NewModel(), beside).Problems)
}

func TestCallsOfAPausedSubAgentAreProblems(t *testing.T) {
	tool := content.Tool{Name: "help", Schema: `{"type":"object"}`}
	child := dag.New().Tools(tool).User("Help.").Assistant("", content.ToolUse{ID: "1", Name: "help", Input: "{}"})
	calls := make([]content.Block, 3)
	for i := range calls {
		calls[i] = content.ToolUse{ID: fmt.Sprint(i), Name: "help", Input: "{}"}
	}
	d := start().Tools(tool).User("Help.").Assistant("", calls...).AppendExecutions(
		node.ToolExecution{Index: 0},
		node.ToolExecution{Index: 1, State: node.ExecutionAwaitingApproval, Child: node.ListOf(child.Heads()...)},
	)
	waits := func(key, call int) Problem {
		return Problem{Key: key, What: fmt.Sprintf("call %d, of help, waits for its result", call), Waits: true}
	}
	require.ElementsMatch(t, []Problem{waits(2, 3), waits(7, 1)}, update(t, NewModel(), d).Problems)
}

func TestACancelledRunDidNotFail(t *testing.T) {
	for _, stop := range []content.Stop{content.StopApproval, content.StopResults, content.StopCancelled} {
		problems := update(t, NewModel(), start().User("Weather?").Stop(stop)).Problems
		require.Equal(t, []Problem{{Key: 1, What: "the run ended: " + string(stop)}}, problems)
	}
}

func TestUndeclaredToolsAreOneProblem(t *testing.T) {
	call := func(name string) content.ToolUse { return content.ToolUse{ID: "1", Name: name, Input: "{}"} }
	one := start().User("Weather?").Assistant("", call("get_weather")).CloseTools(node.ToolExecution{})
	require.Equal(t, []Problem{{Key: 1, What: `undeclared tool: "get_weather"`}}, update(t, NewModel(), one).Problems)

	session := start().User("Weather?")
	for i := range 100 {
		session = session.Assistant("", call(fmt.Sprintf("tool_%d", i%7))).CloseTools(node.ToolExecution{IsError: i == 50})
	}
	require.Equal(t, []Problem{
		{Key: 1, What: `undeclared tools in 100 calls: "tool_0", "tool_1", "tool_2", "tool_3", "tool_4" and 2 more`},
		{Key: 152, What: "tool failed", Grave: true},
	}, update(t, NewModel(), session).Problems)
}

func TestContentCannotEndTheScriptElement(t *testing.T) {
	const hostile = "</script><script>alert(1)</script><!-- \u2028\u2029 & {{patch}}"
	var b strings.Builder
	whole, err := NewModel().Update(start().User(hostile))
	require.NoError(t, err)
	require.NoError(t, WritePage(&b, Config{Title: hostile}, whole))
	page := b.String()
	require.Equal(t, 3, strings.Count(page, "</script>"), "config, patch, script")
	_, data, _ := strings.Cut(page, `id="patch">`)
	data, _, _ = strings.Cut(data, "</script>")
	require.NotContains(t, data, "<")
	require.NotContains(t, data, "\u2028", "which ends a line in JavaScript")
	var read Patch
	require.NoError(t, json.Unmarshal([]byte(data), &read))
	require.Equal(t, decoded(whole.Patch()), read, "and it equals what was sent")
}

// decoded returns a patch as a page has it: with the saved forms as texts.
func decoded(p Patch) Patch {
	for i := range p.Nodes {
		p.Nodes[i].Raw = Saved{text: p.Nodes[i].Raw.String()}
	}
	return p
}

func TestALongConversationIsCompressed(t *testing.T) {
	d := start()
	for range packedNodes - 1 {
		d = d.User("<b>Name a tree.</b>")
	}
	m := NewModel()
	whole, err := m.Update(d)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, WritePage(&b, Config{}, whole))
	require.Contains(t, b.String(), `<script type="application/json" id="patch">{"nodes":[{"key":0,`)

	_, err = m.Update(d.User("And another?"))
	require.NoError(t, err)
	whole = m.Whole()
	b.Reset()
	require.NoError(t, WritePage(&b, Config{}, whole))
	_, data, found := strings.Cut(b.String(), `<script type="application/gzip" id="patch">`)
	require.True(t, found)
	data, _, _ = strings.Cut(data, "</script>")

	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	require.NoError(t, err)
	var read Patch
	require.NoError(t, json.NewDecoder(packed).Decode(&read))
	require.Equal(t, decoded(whole.Patch()), read)

	w := &full{err: errors.New("full")}
	require.ErrorIs(t, WritePage(w, Config{}, whole), w.err)
}

// full is a writer that fails once, in the middle.
type full struct {
	writes int
	err    error
}

func (f *full) Write(p []byte) (int, error) {
	f.writes++
	if f.writes == 2 {
		return 0, f.err
	}
	return len(p), nil
}

func TestWritePageStopsAtTheFirstError(t *testing.T) {
	w := &full{err: errors.New("full")}
	require.ErrorIs(t, WritePage(w, Config{}, Changes{}), w.err)
	require.Equal(t, 2, w.writes)

	var b strings.Builder
	require.Error(t, WritePage(&b, Config{Static: &Static{File: []any{func() {}}}}, Changes{}), "what is no JSON")
	require.NotContains(t, b.String(), `id="patch"`)
}

// TestThePolicyAllowsTheScriptAndStyleOfThePage hashes the elements of the page as a browser does.
func TestThePolicyAllowsTheScriptAndStyleOfThePage(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WritePage(&b, Config{}, Changes{}))
	for _, element := range []string{"script", "style"} {
		_, rest, found := strings.Cut(b.String(), "<"+element+">")
		require.True(t, found, element)
		inside, _, _ := strings.Cut(rest, "</"+element+">")
		sum := sha256.Sum256([]byte(inside))
		require.Contains(t, Policy(false), element+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
}

func TestOnlyALivePageMayConnectToItsServer(t *testing.T) {
	require.NotContains(t, Policy(false), "connect-src")
	require.Contains(t, Policy(true), "; connect-src 'self'")
	require.NotContains(t, Policy(true), "unsafe")
	for _, live := range []bool{false, true} {
		require.Contains(t, Policy(live), "; base-uri 'none'; form-action 'none'; ", "a base element in what was said changes no address")
	}
}

func TestResultsOfACallOnTwoBranchesAreNoProblem(t *testing.T) {
	asked := start().User("Weather?").Assistant("", content.ToolUse{ID: "c", Name: "look", Input: "{}"})
	result := func(text string) dag.DAG {
		return asked.CloseTools(node.ToolExecution{Result: content.Words(text)}).Assistant("It is " + text + ".")
	}
	d := result("warm").Join(result("cold"))
	p := update(t, NewModel(), d)
	for _, problem := range p.Problems {
		require.NotContains(t, problem.What, string(dag.ResultWithoutCall))
	}

	stray := start().User("Hi.").ToolResults(content.ToolResult{CallID: "x", Content: content.Words("?")})
	p = update(t, NewModel(), stray.Join(dag.New().User("Another.")))
	require.Contains(t, p.Problems[0].What, string(dag.ResultWithoutCall))
}
