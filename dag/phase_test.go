package dag_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// indexes returns which calls the heads are executions of.
func indexes(t *testing.T, d dag.DAG) []int {
	t.Helper()
	var list []int
	for _, h := range d.Heads() {
		e, ok := h.Payload().(node.ToolExecution)
		require.True(t, ok)
		list = append(list, e.Index)
	}
	return list
}

func open(d dag.DAG) []string {
	ids := []string{}
	for _, call := range d.OpenCalls() {
		ids = append(ids, call.ID)
	}
	return ids
}

func TestAppendExecutionsLeavesThePhaseOpen(t *testing.T) {
	asked := askWeather()
	said := asked.Head()
	require.Equal(t, asked.Heads(), asked.AppendExecutions().Heads(), "nothing was carried out")

	one := asked.AppendExecutions(node.ToolExecution{Index: 2, CallID: "wrong", Tool: "wrong", Input: "wrong", Result: content.Words("c"),
		Ran: node.Ran{Tool: "get_forecast"}})
	require.NoError(t, one.Err())
	e := one.Head().Payload().(node.ToolExecution)
	require.Equal(t, []*node.Node{said}, one.Head().Parents())
	require.Equal(t, []string{"t3", "get_weather", `{"city":"New York"}`}, []string{e.CallID, e.Tool, string(e.Input)},
		"the call says")
	require.Equal(t, "get_forecast", e.Ran.Tool, "and what ran in fact is the program's word")
	require.Equal(t, []string{"t1", "t2"}, open(one))
	require.Equal(t, []string{"t1", "t2", "t3"}, open(asked), "the conversation that was extended stays")

	all := one.AppendExecutions(execution(1, "b"), execution(0, "a"))
	require.NoError(t, all.Err())
	require.Equal(t, []int{0, 1, 2}, indexes(t, all), "in call order, however they came")
	require.Same(t, one.Head(), all.Heads()[2], "the execution that was there is kept")
	require.Empty(t, open(all))
	require.Equal(t, []string{"t1", "t2"}, open(one))
	require.ErrorIs(t, all.AppendExecutions(execution(0, "again")).Err(), dag.ErrNoCalls)
	require.Equal(t, all.Heads(), all.AppendExecutions().Heads())

	closed := all.CloseTools()
	require.NoError(t, closed.Err())
	require.Equal(t, all.Heads(), closed.Head().Parents())
	require.Empty(t, closed.Validate())
	at := asked.CloseTools(execution(0, "a"), execution(1, "b"), execution(2, "c"))
	require.True(t, dag.Equal(at, closed), "one by one or at once is the same conversation")
	require.ErrorIs(t, closed.AppendExecutions(execution(0, "late")).Err(), dag.ErrNoCalls)
}

func TestAppendExecutionsKeepsEarlierExecutions(t *testing.T) {
	d := askWeather()
	said := d.Heads()
	d, first, _ := d.AppendTo(said, execution(1, "first"))
	d, stray, _ := d.AppendTo(said, execution(7, "of no call"))
	d, again, _ := d.AppendTo(said, execution(1, "again"))
	d = d.AppendExecutions(execution(0, "zero"))
	require.NoError(t, d.Err())
	heads := d.Heads()
	require.Len(t, heads, 4)
	require.Equal(t, 0, heads[0].Payload().(node.ToolExecution).Index)
	require.Equal(t, []*node.Node{first, stray, again}, heads[1:], "spare ones come last")
	require.Equal(t, []string{"t3"}, open(d))
	require.Equal(t, heads, d.AppendExecutions().Heads())
}

func TestOpenPhaseIsSavedAndContinued(t *testing.T) {
	kept := node.ToolExecution{Index: 1, Result: content.Words("18 °C"), Full: content.Words("18 °C and secrets"),
		Ran: node.Ran{Tool: "get_secrets", Input: `{"secrets":1}`}, Details: `{"secrets":true}`}
	d := askWeather().AppendExecutions(kept)
	var file bytes.Buffer
	require.NoError(t, d.Write(&file))
	loaded, err := dag.Read(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	require.Equal(t, []string{"t1", "t3"}, open(loaded))
	e := loaded.Head().Payload().(node.ToolExecution)
	require.Equal(t, []string{"get_secrets", `{"secrets":1}`, `{"secrets":true}`, "18 °C and secrets"},
		[]string{e.Ran.Tool, string(e.Ran.Input), string(e.Details), e.Full.Text()})
	var again bytes.Buffer
	require.NoError(t, loaded.Write(&again))
	require.Equal(t, file.String(), again.String())

	closed := loaded.AppendExecutions(execution(2, "c"), execution(0, "a")).CloseTools()
	require.NoError(t, closed.Err())
	require.Empty(t, closed.Validate())
	for _, m := range append(loaded.Messages(), closed.Messages()...) {
		said, err := m.Blocks.MarshalJSON()
		require.NoError(t, err)
		require.NotContains(t, string(said), "secrets", "what is kept beside an execution is not sent")
	}
	require.Contains(t, closed.String(), `get_secrets(secrets: 1) in place of get_weather(city: "Paris") → 18 °C`)
	require.NotContains(t, closed.String(), "18 °C and secrets")
}

// TestOpenPhaseOfOneCall: a single execution is the only head, and still no closed phase.
func TestOpenPhaseOfOneCall(t *testing.T) {
	d := fresh().User("x").Assistant("", use("a", "f", "{}")).AppendExecutions(execution(0, "r"))
	require.Empty(t, open(d))
	require.ErrorIs(t, d.AppendExecutions(execution(0, "again")).Err(), dag.ErrNoCalls)
	m, ok := d.CloseTools().Head().Message()
	require.True(t, ok)
	require.Equal(t, "a", m.Blocks.ToolResults()[0].CallID)
	require.Equal(t, "r", m.Blocks.ToolResults()[0].Content.Text())
}

func started(index int) node.ToolExecution {
	return node.ToolExecution{Index: index, State: node.ExecutionStarted, Started: start}
}

// states returns the state of each execution that is a head, by the index of its call.
func states(d dag.DAG) map[int]node.ExecutionState {
	all := map[int]node.ExecutionState{}
	for _, h := range d.Heads() {
		if e, ok := h.Payload().(node.ToolExecution); ok {
			all[e.Index] = e.State
		}
	}
	return all
}

func TestStartedExecutionIsAHeadUntilItsResult(t *testing.T) {
	asked := askWeather()
	begun := asked.AppendExecutions(started(0), started(2))
	require.NoError(t, begun.Err())
	require.Equal(t, []string{"t1", "t2", "t3"}, open(begun), "a call that was started is open")
	require.Equal(t, asked.Messages(), begun.Messages(), "nothing of it is sent")
	require.Equal(t, asked.Messages(), asked.AppendExecutions(started(1)).Messages(), "nor of a single one")
	require.Empty(t, begun.Validate())

	one := begun.AppendExecutions(execution(2, "c"))
	require.Equal(t, map[int]node.ExecutionState{0: node.ExecutionStarted, 2: node.ExecutionFinished}, states(one))
	require.Equal(t, []string{"t1", "t2"}, open(one))
	require.Equal(t, one.Heads(), one.Join(begun).AppendExecutions(execution(0, "a")).WithHeads(one.Heads()...).Heads())
	require.Equal(t, map[int]node.ExecutionState{0: "", 2: ""}, states(one.Join(begun).AppendExecutions(execution(0, "a"))),
		"the start of a call with a result is dropped, wherever it comes from")

	again := begun.AppendExecutions(started(0))
	require.Len(t, again.Heads(), 2, "a call that is started again has one start")
	require.NotSame(t, begun.Heads()[0], again.Heads()[0])

	closed := one.AppendExecutions(execution(0, "a"), execution(1, "b")).CloseTools()
	require.NoError(t, closed.Err())
	require.True(t, dag.Equal(asked.CloseTools(execution(0, "a"), execution(1, "b"), execution(2, "c")), closed),
		"no trace of a start is in the conversation")
}

func TestCloseToolsLeavesAStartedCallInDoubt(t *testing.T) {
	begun := askWeather().AppendExecutions(node.ToolExecution{Index: 1, State: node.ExecutionStarted, Started: start, Ran: node.Ran{Tool: "look"}})
	closed := begun.CloseTools(execution(0, "a"))
	require.NoError(t, closed.Err())
	m, _ := closed.Head().Message()
	var texts []string
	for _, r := range m.Blocks.ToolResults() {
		texts = append(texts, r.Content.Text())
	}
	require.Equal(t, []string{"a", content.OutcomeUnknown, content.NoResult}, texts)

	doubt := closed.Head().Parent(1).Payload().(node.ToolExecution)
	require.Equal(t, node.ExecutionInDoubt, doubt.State)
	require.True(t, doubt.IsError)
	require.Equal(t, start, doubt.Started)
	require.Equal(t, "look", doubt.Ran.Tool)
	require.True(t, doubt.Ended.IsZero(), "nobody knows when it ended")
	require.False(t, closed.Contains(begun.Head()))
	require.Empty(t, closed.Validate())

	difference := dag.Diff(begun, closed).String()
	require.Contains(t, difference, "started")
	require.Contains(t, difference, "in doubt")
}

func TestStartedCallIsAFindingOnceTheConversationGoesOn(t *testing.T) {
	begun := askWeather().AppendExecutions(execution(0, "a"), execution(1, "b"), started(2))
	require.Empty(t, begun.Validate())
	waiting := begun.Verify().Waiting
	require.Len(t, waiting, 1)
	require.Equal(t, `call 2, "t3" of "get_weather", started`, waiting[0].Detail)

	var kinds []dag.FindingKind
	for _, f := range begun.User("Never mind.").Validate() {
		kinds = append(kinds, f.Kind)
	}
	require.Equal(t, []dag.FindingKind{dag.FindingKind("incomplete tool phase"), dag.CallWithoutResult}, kinds)
}

// TestStartedCallHasAnUnknownOutcomeOnceAMessageFollows appends a message to a conversation that a crash cut off. The
// model must not read that the call was not completed.
func TestStartedCallHasAnUnknownOutcomeOnceAMessageFollows(t *testing.T) {
	begun := askWeather().AppendExecutions(execution(0, "a"), started(1))
	require.Len(t, begun.Messages(), 3, "nothing of the start is sent while the call is open")

	d := begun.User("And now?")
	for _, d := range []dag.DAG{d, d.Assistant("Let me look."), dag.New().WithHeads(d.Heads()...)} {
		messages := d.Messages()
		results := messages[3].Blocks.ToolResults()
		require.Len(t, results, 1)
		require.Equal(t, content.ToolResult{CallID: "t2", Content: content.Words(content.OutcomeUnknown), IsError: true}, results[0])
		require.Equal(t, "And now?", messages[4].Blocks.Text())
	}
	require.Len(t, begun.CloseTools().User("And now?").Messages(), 4, "one message has all results")
}

// TestMergeDropsAStartThatAnotherBranchHasLeftBehind merges a conversation that was saved in the middle of a tool phase
// with the same conversation at its end.
func TestMergeDropsAStartThatAnotherBranchHasLeftBehind(t *testing.T) {
	asked := askWeather()
	begun := asked.AppendExecutions(started(0), started(1), started(2))
	half := begun.AppendExecutions(execution(0, "a"))
	whole := half.AppendExecutions(execution(1, "b"), execution(2, "c")).CloseTools()
	for _, c := range []struct{ early, late dag.DAG }{
		{begun, half}, {begun, whole}, {half, whole}, {half, whole.Assistant("Fine.")}, {begun, asked.CloseTools()},
		{begun, asked.User("Never mind.")},
	} {
		merged := dag.Merge(dag.Branch{DAG: c.early}, dag.Branch{DAG: c.late})
		require.NoError(t, merged.Err())
		want := dag.Merge(dag.Branch{DAG: c.late})
		require.Equal(t, want.Messages(), merged.Messages())
	}
}

// pausedIn is a call whose sub-agent is paused, with the calls of its conversation that wait.
func pausedIn(index int, child dag.DAG) node.ToolExecution {
	return node.ToolExecution{Index: index, State: node.ExecutionAwaitingApproval, Child: node.ListOf(child.Heads()...)}
}

func TestPausedSubAgentLeavesItsCallOpenAndIsNeverSent(t *testing.T) {
	erase := content.Tool{Name: "erase", Schema: `{"type":"object"}`}
	child := dag.New().Tools(erase).User("Look.").Assistant("", content.ToolUse{ID: "c1", Name: "erase", Input: "{}"})
	d := askWeather().AppendExecutions(execution(0, "a"), execution(2, "c"), pausedIn(1, child))
	require.NoError(t, d.Err())
	require.Len(t, d.OpenCalls(), 1)
	require.Equal(t, 1, d.OpenCalls()[0].Index)
	require.Equal(t, spell(askWeather().AppendExecutions(execution(0, "a"), execution(2, "c")).Messages()), spell(d.Messages()))
	require.Empty(t, d.Validate())

	var waiting []string
	for _, f := range d.Verify().Waiting {
		waiting = append(waiting, f.Detail)
	}
	require.Equal(t, []string{
		`call 1, "t2" of "get_weather", awaiting approval`, `call 0, "c1" of "erase"`,
	}, waiting, "the calls that a person has to decide about are listed too")
}

func TestLogSaysWhichCallsWait(t *testing.T) {
	child := dag.New().User("Look.").Assistant("", content.ToolUse{ID: "c1", Name: "erase", Input: "{}"})
	open := askWeather()
	half := open.AppendExecutions(execution(0, "a"), execution(2, "c"), pausedIn(1, child))
	require.Contains(t, open.String(), "● assistant [3 calls wait]")
	require.Contains(t, half.String(), "● assistant [1 call waits]")
	require.Contains(t, half.String(), "● assistant [1 call waits] → erase", "the call in the sub-agent waits, too")
	require.Contains(t, open.Join(dag.New().User("Elsewhere.")).String(), "[3 calls wait]", "at any head")
	for _, d := range []dag.DAG{open.CloseTools(), open.User("Never mind.")} {
		require.NotContains(t, d.String(), "wait]")
	}

	// The one call of the last message was started: the message is no head.
	long := dag.New()
	for range 30 {
		long = long.User("Go on.").Assistant("Yes.")
	}
	long = long.Assistant("", content.ToolUse{ID: "1", Name: "erase", Input: "{}"}).AppendExecutions(started(0))
	var folded strings.Builder
	require.NoError(t, long.WriteLog(&folded, &dag.LogOptions{Fold: true}))
	require.Contains(t, folded.String(), "⋮")
	require.Contains(t, folded.String(), "[1 call waits]")
}

func TestConversationOfAPausedSubAgentIsKept(t *testing.T) {
	child := dag.New().User("Look.").Assistant("", content.ToolUse{ID: "c1", Name: "erase", Input: "{}"})
	paused := askWeather().AppendExecutions(pausedIn(1, child))
	further := child.CloseTools(node.ToolExecution{Result: content.Words("erased")})
	for name, c := range map[string]struct {
		d    dag.DAG
		want dag.DAG
	}{
		"given up":         {paused.CloseTools(), child},
		"started again":    {paused.AppendExecutions(started(1)), child},
		"answered":         {paused.AppendExecutions(execution(1, "b")).CloseTools(), child},
		"went on":          {paused.AppendExecutions(node.ToolExecution{Index: 1, Child: node.ListOf(further.Heads()...)}).CloseTools(), further},
		"paused once more": {paused.AppendExecutions(pausedIn(1, further)), further},
	} {
		require.NoError(t, c.d.Err(), name)
		children := 0
		for _, n := range c.d.Nodes() {
			if n.Children().Len() > 0 {
				children++
				require.True(t, dag.Equal(c.want, dag.FromNode(n)), name)
			}
		}
		require.Equal(t, 1, children, name)
	}

	m, _ := paused.CloseTools().Head().Message()
	require.Equal(t, content.NoResult, m.Blocks.ToolResults()[1].Content.Text(), "it is known what has happened: it is not in doubt")
}
