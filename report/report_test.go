package report_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report"
)

var began = time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)

// start returns the beginning of a conversation: a prompt, a tool and a question.
func start() dag.DAG {
	return dag.New().WithSource(node.Counting(began)).System("Answer briefly.").
		Tools(content.Tool{Name: "get_weather", Schema: `{"type":"object"}`}).User("Weather in Paris?")
}

// answer returns a response with text and calls of get_weather.
func answer(stop content.Stop, text string, calls ...string) node.Message {
	var blocks []content.Block
	if text != "" {
		blocks = append(blocks, content.Text{Text: text})
	}
	for _, id := range calls {
		blocks = append(blocks, content.ToolUse{ID: id, Name: "get_weather", Input: `{"city":"Paris"}`})
	}
	list, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	return node.Message{Role: content.Assistant, Blocks: list, Answer: node.Answer{
		Model: "m", Stop: stop, Latency: 2 * time.Second, Usage: content.Usage{Input: 1000, Output: 100},
	}}
}

// executed returns an execution that took so long. It failed if why is not "".
func executed(took time.Duration, why string) node.ToolExecution {
	e := node.ToolExecution{Result: content.Words("18 °C"), Started: began, Ended: began.Add(took)}
	if why != "" {
		e.Result, e.IsError = content.Words(why), true
	}
	return e
}

// at returns e as the execution of the call in a block.
func at(block int, e node.ToolExecution) node.ToolExecution {
	e.Index = block
	return e
}

// answered returns a conversation with one tool call that ended.
func answered(took time.Duration, why string) dag.DAG {
	return start().Append(answer(content.StopToolUse, "", "1")).CloseTools(executed(took, why)).
		Append(answer(content.StopEndTurn, "18 °C.")).Stop(content.StopEndTurn)
}

func TestOutcomeIsHowAConversationEnded(t *testing.T) {
	asked := start().Append(answer(content.StopToolUse, "", "1", "2"))
	recorded := func(executions ...node.ToolExecution) dag.DAG {
		return asked.AppendExecutions(executions...).Custom("note", 1)
	}
	for name, c := range map[string]struct {
		d    dag.DAG
		want string
		stop content.Stop
	}{
		"an answer and a stop":        {answered(0, ""), "ended", content.StopEndTurn},
		"an answer without a stop":    {start().Append(answer(content.StopEndTurn, "18 °C.")), "ended", content.StopEndTurn},
		"an imported answer":          {start().Assistant("18 °C."), "ended", ""},
		"a record behind the end":     {answered(0, "").Custom("note", 1), "ended", content.StopEndTurn},
		"a tool that failed":          {answered(0, "no such city"), "ended", content.StopEndTurn},
		"an error":                    {start().Stop(content.StopError), "failed", content.StopError},
		"a limit":                     {start().Stop(content.StopMaxTurns), "failed", content.StopMaxTurns},
		"a refusal":                   {start().Append(answer(content.StopRefusal, "No.")), "failed", content.StopRefusal},
		"a provider's own reason":     {start().Append(answer("odd", "No.")), "failed", "odd"},
		"a run that was cancelled":    {start().Stop(content.StopCancelled), "cancelled", content.StopCancelled},
		"a response that broke off":   {start().Append(answer(content.StopCut, "18")), "cut off", content.StopCut},
		"calls that wait":             {asked, "paused", content.StopToolUse},
		"a record behind calls":       {asked.Custom("note", 1), "paused", content.StopToolUse},
		"a call that waits":           {asked.AppendExecutions(executed(0, "")), "paused", ""},
		"a call that was started":     {asked.AppendExecutions(node.ToolExecution{State: node.ExecutionStarted}), "in doubt", ""},
		"a record behind all results": {recorded(executed(0, ""), node.ToolExecution{Index: 1}), "open", ""},
		"a record behind a result":    {recorded(executed(0, "")), "paused", ""},
		"a record behind a call that was started": {
			recorded(node.ToolExecution{State: node.ExecutionStarted}, node.ToolExecution{Index: 1}), "in doubt", "",
		},
		"two records behind a call that was started": {
			recorded(node.ToolExecution{State: node.ExecutionStarted}, node.ToolExecution{Index: 1}).Custom("note", 2), "in doubt", "",
		},
		"a question without response": {start(), "open", ""},
		"results without response":    {asked.CloseTools(), "open", ""},
		"only a prompt":               {dag.New().System("Answer briefly."), "empty", ""},
		"nothing":                     {dag.New(), "empty", ""},
		"the newest of two heads":     {start().Stop(content.StopError).Join(answered(0, "")), "ended", content.StopEndTurn},
	} {
		r := report.Of("x", c.d, nil)
		require.Empty(t, r.Error, name)
		require.Equal(t, c.want, r.Outcome, name)
		require.Equal(t, c.stop, r.Stop, name)
	}
}

func TestRowHasCountsTimesAndTheFirstFailure(t *testing.T) {
	d := start().WithMetadata("variant", "short").WithMetadata("score", 7).WithMetadata("request", map[string]int{"x": 1}).
		Append(answer(content.StopToolUse, "I look.", "1", "2", "3")).CloseTools(
		at(1, executed(time.Second, "")), node.ToolExecution{Index: 2, Result: content.Words("\n  no such city\nSee the list."), IsError: true},
		node.ToolExecution{Index: 3, Result: content.Words("late"), IsError: true, Started: began.Add(2 * time.Second), Ended: began.Add(3 * time.Second)}).
		Append(answer(content.StopEndTurn, "18\n°C."))
	require.NoError(t, d.Err())
	failed := d.Head().Parent(0).Parent(1)

	r := report.Of("x", d, nil)
	require.Equal(t, 2, r.Turns)
	require.Equal(t, 3, r.Calls)
	require.Equal(t, 2, r.FailedCalls)
	require.Equal(t, 7*time.Second, r.Took, "two responses, and the tool phase as a whole")
	require.Equal(t, &report.Failure{Node: node.ShortID(failed.ID()), Text: "get_weather: no such city"}, r.Failure)
	found, err := d.Find(r.Failure.Node)
	require.NoError(t, err)
	require.Equal(t, failed, found)
	require.Equal(t, "18 °C.", r.Answer)
	require.Equal(t, map[string]string{"variant": "short", "score": "7"}, r.Labels)
	require.Equal(t, int64(2000), r.Usage.Input)
	require.Nil(t, r.Cost)
}

func TestCallsWithoutExecutionsCountByTheirResults(t *testing.T) {
	d := start().Append(answer(content.StopToolUse, "", "1", "2")).ToolResults(
		content.ToolResult{CallID: "1", Content: content.Words("18 °C")},
		content.ToolResult{CallID: "2", Content: content.Words("no such city"), IsError: true})
	require.NoError(t, d.Err())
	r := report.Of("x", d, nil)
	require.Len(t, r.Tools, 1)
	require.Equal(t, "get_weather", r.Tools[0].Name)
	require.Equal(t, 2, r.Tools[0].Calls)
	require.Equal(t, 1, r.Tools[0].Failed)
	require.Zero(t, r.Tools[0].Timed)
	require.Equal(t, "tool failed: no such city", r.Failure.Text)
}

func TestCallWithoutAResultDoesNotCount(t *testing.T) {
	d := start().Append(answer(content.StopToolUse, "", "1", "2")).AppendExecutions(
		executed(time.Second, ""), node.ToolExecution{Index: 1, State: node.ExecutionStarted})
	r := report.Of("x", d, nil)
	require.Equal(t, 1, r.Calls)
	require.Equal(t, "in doubt", r.Outcome)
}

func TestSubAgentsAndBranchesCount(t *testing.T) {
	child := dag.New().User("Find it.").Append(answer(content.StopRefusal, "No."))
	call := executed(time.Second, "")
	call.Child = node.ListOf(child.Heads()...)
	d := start().Append(answer(content.StopToolUse, "", "1")).CloseTools(call)
	branch := d.Append(answer(content.StopEndTurn, "Left.")).WithRef("left")
	d = branch.WithHeads(d.Heads()...).Append(answer(content.StopEndTurn, "Right."))

	r := report.Of("x", d, nil)
	require.Equal(t, 4, r.Responses, "one of the sub-agent, one of the branch")
	require.Equal(t, 3, r.Turns)
	require.Equal(t, 7*time.Second, r.Took, "the sub-agent worked within its call")
	require.Equal(t, "the response ended: refusal", r.Failure.Text)
	require.Equal(t, "ended", r.Outcome)
	require.Equal(t, "Right.", r.Answer)
}

func TestUnknownCostStaysUnknown(t *testing.T) {
	prices := &report.Options{Prices: api.Prices{"m": {Input: 1, Output: 10}}}
	known := report.Of("known", answered(0, ""), prices)
	other := answer(content.StopEndTurn, "Hi.")
	other.Answer.Model = "other"
	unknown := report.Of("unknown", start().Append(other), prices)
	require.InDelta(t, 0.004, *known.Cost, 1e-12)
	require.Nil(t, unknown.Cost)

	s := report.Sum([]report.Row{unknown, known})
	require.Nil(t, s.Cost)
	require.InDelta(t, 0.004, *s.Known, 1e-12)
	require.Equal(t, "at least 0.0040", s.Money())
	require.Equal(t, "unknown", report.Sum([]report.Row{unknown}).Money())
	require.InDelta(t, 0.008, *report.Sum([]report.Row{known, known}).Cost, 1e-12)
	require.InDelta(t, 0.004, *known.Cost, 1e-12, "a sum leaves the rows as they are")

	half := answer(content.StopCut, "18")
	half.Answer.Usage.Incomplete = true
	cut := report.Of("cut", start().Append(half), prices)
	require.Nil(t, cut.Cost)
	require.Equal(t, "at least 0.0020", cut.Money())

	broken := report.Unreadable("broken", errors.New("torn"))
	require.Equal(t, "at least 0.0040", report.Sum([]report.Row{broken, known}).Money())
}

func TestPercentilesAreOfAllConversations(t *testing.T) {
	var rows []report.Row
	for i := range 100 {
		rows = append(rows, report.Of("x", answered(time.Duration(100-i)*time.Millisecond, ""), nil))
	}
	s := report.Sum(rows)
	require.Equal(t, 100, s.Tools[0].Calls)
	require.Equal(t, 50*time.Millisecond, s.Tools[0].P50)
	require.Equal(t, 95*time.Millisecond, s.Tools[0].P95)
	require.Equal(t, 100*time.Millisecond, rows[0].Tools[0].P50, "a sum leaves the rows as they are")

	few := report.Sum(rows[:3]).Tools[0]
	require.Equal(t, 99*time.Millisecond, few.P50)
	require.Equal(t, 100*time.Millisecond, few.P95)
}

func TestBrokenConversationIsAnUnreadableRow(t *testing.T) {
	r := report.Of("x", start().Back(7), nil)
	require.Equal(t, "unreadable", r.Outcome)
	require.Contains(t, r.Error, "no such exchange")
}

func TestPathsGroupRunsAndNameTheStepThatDiffers(t *testing.T) {
	loop := start()
	for range 3 {
		loop = loop.Append(answer(content.StopToolUse, "", "1")).CloseTools(executed(0, ""))
	}
	rows := []report.Row{
		report.Unreadable("broken", errors.New("torn")),
		report.Of("loop", loop.Stop(content.StopMaxTurns), nil),
		report.Of("a", answered(0, ""), nil), report.Of("b", answered(0, ""), nil), report.Of("c", answered(0, ""), nil),
		report.Of("d", answered(0, "port 40000 is closed after 1.5s"), nil), report.Of("e", answered(0, "port 40001 is closed after 12.25s"), nil),
	}
	paths := report.Paths(rows)
	require.Len(t, paths, 3)
	require.Equal(t, []int{2, 3, 4}, paths[0].Rows)
	require.Zero(t, paths[0].Base)

	require.Equal(t, []int{5, 6}, paths[1].Rows, "numbers do not make two failures of one")
	require.Equal(t, 1, paths[1].Base)
	require.Equal(t, 4, paths[1].Same)
	require.Equal(t, 4, paths[1].SameContent)
	require.Equal(t, "get_weather: port # is closed after #s", paths[1].Step)
	require.Equal(t, "get_weather", paths[1].Instead)

	require.Equal(t, []int{1}, paths[2].Rows)
	require.Equal(t, 1, paths[2].Base, "it has six steps in common with the first, and four with the second")
	require.Equal(t, 6, paths[2].Same)
	require.Equal(t, "the run ended: max_turns", rows[1].Steps()[len(rows[1].Steps())-1].Label)
	for i, want := range []int{0, 3, 1, 1, 1, 2, 2} {
		require.Equal(t, want, rows[i].Path, rows[i].Name)
	}
}

func TestPathPartsFromTheMostFrequentOfTwoThatAreAsClose(t *testing.T) {
	rows := []report.Row{
		report.Of("a", answered(0, ""), nil), report.Of("b", answered(0, ""), nil), report.Of("c", answered(0, ""), nil),
		report.Of("d", answered(0, "no such city"), nil), report.Of("e", answered(0, "no such city"), nil), report.Of("f", answered(0, "late"), nil),
	}
	paths := report.Paths(rows)
	require.Len(t, paths, 3)
	require.Equal(t, 4, paths[2].Same)
	require.Equal(t, 1, paths[2].Base)
}

func TestPathsOfRowsFromJSONHaveNoSteps(t *testing.T) {
	data, err := json.Marshal([]report.Row{report.Of("a", answered(0, ""), nil), report.Of("b", start().Stop(content.StopMaxTurns), nil)})
	require.NoError(t, err)
	var rows []report.Row
	require.NoError(t, json.Unmarshal(data, &rows))

	require.Empty(t, rows[0].Steps())
	require.NotPanics(t, func() { report.Paths(append(rows, report.Of("c", start(), nil))) })
}

func TestCauseIsTheFailureThatEndedTheRun(t *testing.T) {
	again := func(d dag.DAG, why string) dag.DAG {
		return d.Append(answer(content.StopToolUse, "", "1")).CloseTools(executed(0, why))
	}
	tolerated := again(start(), "rate limited")
	two := start().Append(answer(content.StopToolUse, "", "1", "2")).CloseTools(executed(0, "late"),
		node.ToolExecution{Index: 1, Result: content.Words("no such city"), IsError: true})

	for name, c := range map[string]struct {
		d    dag.DAG
		want string
	}{
		"a run that ended well":        {tolerated.Append(answer(content.StopEndTurn, "18 °C.")), ""},
		"a call, and then an error":    {again(tolerated, "no such city").Stop(content.StopError), "get_weather: no such city"},
		"the line that tells most":     {again(tolerated, "exit status 1\n--- FAIL: TestX\n").Stop(content.StopError), "get_weather: --- FAIL: TestX"},
		"the first of two calls":       {two.Stop(content.StopError), "get_weather: late"},
		"a limit behind a failed call": {tolerated.Stop(content.StopMaxTurns), "the run ended: max_turns"},
		"a limit":                      {again(tolerated, "").Stop(content.StopMaxTurns), "the run ended: max_turns"},
		"an error with its text":       {tolerated.Append(node.StopReason{Reason: content.StopError, Detail: "overloaded"}), "the run ended: error: overloaded"},
		"a refusal":                    {tolerated.Append(answer(content.StopRefusal, "No.")), "the response ended: refusal"},
		"a pause behind a failed call": {tolerated.Append(answer(content.StopToolUse, "", "1")), ""},
	} {
		r := report.Of("x", c.d, nil)
		require.Empty(t, r.Error, name)
		got, _ := r.Value("cause")
		require.Equal(t, c.want, got, name)
	}
}

func TestExitCodesAndStatusesMakeTwoFailures(t *testing.T) {
	rows := []report.Row{report.Of("a", answered(0, "exit code 1"), nil), report.Of("b", answered(0, "exit code 2"), nil), report.Of("c", answered(0, "status 404"), nil)}
	require.Len(t, report.Paths(rows), 3)
}

func TestTextDoesNotMakeAnotherPath(t *testing.T) {
	other := start().Append(answer(content.StopToolUse, "I look.", "9")).CloseTools(at(1, executed(0, ""))).
		Append(answer(content.StopEndTurn, "It is warm.")).Stop(content.StopEndTurn)
	rows := []report.Row{report.Of("a", answered(0, ""), nil), report.Of("b", other, nil)}
	require.Len(t, report.Paths(rows), 1)
	require.Equal(t, rows[0].Steps()[2].Content, rows[1].Steps()[2].Content)
	require.NotEqual(t, rows[0].Steps()[3].Content, rows[1].Steps()[3].Content)
}

func TestLongConversationKeepsItsFirstSteps(t *testing.T) {
	long := func(last string) dag.DAG {
		d := start()
		for range 300 {
			d = d.Assistant("Yes?").User("No.")
		}
		return d.Stop(content.Stop(last))
	}
	rows := []report.Row{report.Of("a", long("end_turn"), nil), report.Of("b", long("end_turn"), nil), report.Of("c", long("stop_sequence"), nil)}
	require.Equal(t, 604, rows[0].NumSteps)
	require.Len(t, rows[0].Steps(), 400)
	paths := report.Paths(rows)
	require.Len(t, paths, 2, "the steps that are not kept count too")
	require.Equal(t, 400, paths[1].Same)
	require.Equal(t, paths[0].Outcome, paths[1].Outcome)
}

func TestGroupsAndConditionsUseColumnsAndLabels(t *testing.T) {
	rows := []report.Row{
		report.Of("a", answered(0, "").WithMetadata("variant", "short"), nil),
		report.Of("b", answered(0, "no such city").WithMetadata("variant", "long"), nil),
		report.Of("c", answered(0, "").WithMetadata("variant", "long").WithMetadata("outcome", "mine"), nil),
		report.Unreadable("d", errors.New("torn")),
	}
	groups := report.GroupBy(rows, "variant")
	require.Equal(t, "long", groups[0].Value)
	require.Equal(t, []int{1, 2}, groups[0].Rows)
	require.Equal(t, 1, groups[0].FailedCalls)
	require.Equal(t, "", groups[1].Value)

	names := func(condition string) (list []string) {
		found, err := report.Where(rows, condition)
		require.NoError(t, err)
		for _, r := range found {
			list = append(list, r.Name)
		}
		return list
	}
	require.Equal(t, []string{"b", "c"}, names("variant=long"))
	require.Equal(t, []string{"a", "d"}, names("variant!=long"))
	require.Equal(t, []string{"d"}, names("outcome=unreadable"), "a column comes before a label")
	require.Equal(t, []string{"b"}, names("failure=get_weather: no such city"))
	require.Equal(t, []string{"a", "b", "c"}, names("model=m"))
	_, err := report.Where(rows, "varient=long")
	require.ErrorContains(t, err, `no conversation has this key: "varient" is not one of`)
	require.ErrorContains(t, err, "variant")
	_, err = report.Where(rows, "variant")
	require.ErrorContains(t, err, "KEY=VALUE")
}

func TestSortPutsTheUnknownLastInBothDirections(t *testing.T) {
	prices := &report.Options{Prices: api.Prices{"m": {Input: 1, Output: 10}}}
	rows := []report.Row{
		report.Unreadable("torn", errors.New("torn")),
		report.Of("nine", answered(0, "").WithMetadata("score", 9), nil),
		report.Of("ten", answered(0, "").User("Why?").Append(answer(content.StopEndTurn, "So.")).WithMetadata("score", 10), prices),
		report.Of("two", answered(0, "").WithMetadata("score", "2"), prices),
	}
	order := func(key string) (list []string) {
		require.NoError(t, report.Sort(rows, key))
		for _, r := range rows {
			list = append(list, r.Name)
		}
		return list
	}
	require.Equal(t, []string{"two", "nine", "ten", "torn"}, order("score"))
	require.Equal(t, []string{"ten", "nine", "two", "torn"}, order("-score"))
	require.Equal(t, []string{"nine", "ten", "torn", "two"}, order("name"))
	require.Equal(t, []string{"two", "ten"}, order("cost")[:2])
	require.Equal(t, []string{"ten", "two"}, order("-cost")[:2])
	require.ErrorContains(t, report.Sort(rows, "costs"), "no conversation has this key")
}

func TestRowsAreWrittenToJSONWithAllTheirFields(t *testing.T) {
	data, err := json.Marshal(report.Of("x", answered(1500*time.Microsecond, ""), nil))
	require.NoError(t, err)
	var row map[string]any
	require.NoError(t, json.Unmarshal(data, &row))
	require.Equal(t, 4001.5, row["took_ms"])
	require.Nil(t, row["cost"])
	require.Contains(t, row, "cost")
	tool := row["tools"].([]any)[0].(map[string]any)
	require.Equal(t, 1.5, tool["p50_ms"])
	require.Equal(t, "get_weather", tool["name"])

	data, err = json.Marshal(report.GroupBy([]report.Row{report.Of("x", answered(0, ""), nil)}, "outcome")[0])
	require.NoError(t, err)
	require.Contains(t, string(data), `"value":"ended","rows":[0],"conversations":1`)
	require.Contains(t, string(data), `"took_ms":4000`)
}

func TestTimesOfAFileDoNotOverflow(t *testing.T) {
	m := answer(content.StopEndTurn, "18 °C.")
	m.Answer.Latency = math.MaxInt64
	r := report.Of("a", start().Append(m).User("And now?").Append(m), nil)
	require.Equal(t, time.Duration(math.MaxInt64), r.Took)
	require.Equal(t, time.Duration(math.MaxInt64), report.Sum([]report.Row{r, r}).Took)
}

func TestPathThatPartsBehindTheKeptStepsHasNotEnded(t *testing.T) {
	long := start()
	for range 250 {
		long = long.Append(answer(content.StopEndTurn, "18 °C.")).User("And now?")
	}
	rows := []report.Row{
		report.Of("a", long, nil), report.Of("b", long, nil), report.Of("c", long.Append(answer(content.StopEndTurn, "19 °C.")), nil),
	}
	paths := report.Paths(rows)
	require.Len(t, paths, 2)
	require.Equal(t, 400, paths[1].Same)
	require.Equal(t, []string{"…", "…"}, []string{paths[1].Step, paths[1].Instead})
}
