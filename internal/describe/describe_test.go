package describe_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

func made(t *testing.T, p node.Payload, parents ...*node.Node) *node.Node {
	t.Helper()
	n, err := node.New(node.Counting(time.Unix(0, 0)), p, node.Meta{}, parents...)
	require.NoError(t, err)
	return n
}

func blocks(t *testing.T, bs ...content.Block) content.Blocks {
	t.Helper()
	list, err := content.Of(bs...)
	require.NoError(t, err)
	return list
}

func TestEachSortOfNodeHasItsHeadAndLead(t *testing.T) {
	answer := func(stop content.Stop) node.Message {
		return node.Message{Role: content.Assistant, Blocks: content.Words("Yes."), Answer: node.Answer{Model: "m", Stop: stop}}
	}
	bad := content.ToolResult{CallID: "1", IsError: true}
	id := made(t, node.System{}).ID()
	for _, c := range []struct {
		payload    node.Payload
		sort       describe.Sort
		head, lead string
	}{
		{node.System{Text: "Be brief."}, describe.System, "system", ""},
		{node.System{Name: "tone", Text: "Be brief."}, describe.System, "system, tone", "(tone)"},
		{node.System{Name: "tone"}, describe.System, "system, tone removed", "(tone removed)"},
		{node.Tools{Withdrawn: node.ListOf("find")}, describe.Tools, "tools", ""},
		{node.Message{Role: content.User, Blocks: content.Words("Why?")}, describe.User, "user", ""},
		{node.Message{Role: content.User, Blocks: blocks(t, bad)}, describe.Results, "1 result, 1 failed", ""},
		{answer(content.StopEndTurn), describe.Assistant, "assistant, m", "[m]"},
		{answer(content.StopCut), describe.Assistant, "assistant, m, cut off", "[m, cut off]"},
		{node.Message{Role: content.Assistant, Answer: node.Answer{Model: "m", Retries: 2}}, describe.Assistant, "assistant, m, 2 retries", "[m, 2 retries]"},
		{answer(content.StopMaxTokens), describe.Assistant, "assistant, m, stopped: max_tokens", "[m, stopped: max_tokens]"},
		{node.ToolExecution{Tool: "find"}, describe.Call, "tool call find", "find"},
		{node.ToolExecution{Tool: "find", State: node.ExecutionStarted}, describe.Call, "tool call find, started", "find"},
		{node.ToolExecution{Tool: "find", State: node.ExecutionInDoubt}, describe.Call, "tool call find, in doubt", "find"},
		{node.ToolExecution{Tool: "ask", State: node.ExecutionAwaitingApproval}, describe.Call, "tool call ask, awaiting approval", "ask"},
		{node.SubGraph{Title: "help"}, describe.SubGraph, "sub-graph: help", "help"},
		{node.Compaction{Summary: content.Words("It rained.")}, describe.Compaction, "compaction", ""},
		{node.Compaction{Replaced: node.ListOf(id)}, describe.Compaction, "compaction of 1 node", "of 1 node:"},
		{node.RunStart{Run: "r"}, describe.Run, "run", ""},
		{node.RunStart{Agent: "support", Version: "3"}, describe.Run, "run by support", "by support"},
		{node.StopReason{Reason: content.StopEndTurn, Turns: 2}, describe.Stop, "stop: end_turn", "end_turn / 2 turns"},
		{node.Custom{Name: "acme.note", JSON: "1"}, describe.Record, "record acme.note", "acme.note"},
	} {
		d := describe.Of(made(t, c.payload))
		require.Equal(t, c.sort, d.Sort)
		require.Equal(t, c.head, d.Head(true, func(s string) string { return s }))
		require.Equal(t, c.lead, d.Lead(true, " / "))
	}
}

func TestCallsThatWaitAreANote(t *testing.T) {
	d := describe.Of(made(t, node.Message{Role: content.Assistant, Answer: node.Answer{Model: "m", Retries: 1}}))
	require.Zero(t, d.Waiting)
	d.Waiting = 1
	require.Equal(t, []string{"1 retry", "1 call waits"}, d.Notes(false))
	d.Waiting = 2000
	require.Equal(t, "assistant, m, 1 retry, 2,000 calls wait", d.Head(true, func(s string) string { return s }))
	require.Equal(t, "[1 retry, 2,000 calls wait]", d.Lead(false, ""))
}

func TestFailureNamesWhatFailed(t *testing.T) {
	for _, c := range []struct {
		payload node.Payload
		why     string
		grave   bool
	}{
		{node.ToolExecution{IsError: true}, "tool failed", true},
		{node.ToolExecution{}, "", false},
		{node.ToolExecution{IsError: true, State: node.ExecutionInDoubt}, "in doubt", true},
		{node.ToolExecution{State: node.ExecutionStarted}, "", false},
		{node.StopReason{Reason: content.StopError}, "the run ended: error", true},
		{node.StopReason{Reason: content.StopCancelled}, "the run ended: cancelled", false},
		{node.StopReason{Reason: content.StopEndTurn}, "", false},
		{node.Message{Role: content.Assistant, Answer: node.Answer{Stop: content.StopCut}}, "the response ended: cut_off", true},
	} {
		why, grave := describe.Of(made(t, c.payload)).Failure()
		require.Equal(t, c.why, why)
		require.Equal(t, c.grave, grave)
	}
}

func TestANodeBeganWhenItsCallDid(t *testing.T) {
	at := time.Unix(60, 0).UTC()
	for _, c := range []struct {
		payload node.Payload
		began   time.Time
		took    time.Duration
	}{
		{node.Message{Role: content.Assistant, Answer: node.Answer{Latency: 3 * time.Second}}, time.Unix(-3, 0).UTC(), 3 * time.Second},
		{node.Message{Role: content.Assistant}, time.Unix(0, 0).UTC(), 0},
		{node.ToolExecution{Started: at, Ended: at.Add(time.Second)}, at, time.Second},
		{node.ToolExecution{Started: at, State: node.ExecutionStarted}, at, 0},
		{node.ToolExecution{Ended: at}, time.Unix(0, 0).UTC(), 0},
		{node.StopReason{Reason: content.StopEndTurn, Elapsed: time.Second}, time.Unix(0, 0).UTC(), time.Second},
	} {
		d := describe.Of(made(t, c.payload))
		require.Equal(t, c.began, d.Began)
		require.Equal(t, c.took, d.Took)
	}
}

func TestAKindOfANewerVersionIsItsOwnWord(t *testing.T) {
	line := `{"id":"01a0e5f4-b400-7000-8000-000000000001","parents":[],"kind":"hologram","body":{"x":1}}`
	n, err := node.Parse([]byte(line), func(node.ID) *node.Node { return nil })
	require.NoError(t, err)
	d := describe.Of(n)
	require.Equal(t, describe.Unknown, d.Sort)
	require.Equal(t, "hologram", d.Word)
	require.Equal(t, "hologram", d.Label())
	require.Equal(t, "a kind that this version does not know", d.Text)
	require.Equal(t, "", describe.Of(new(node.Node)).Text, "the zero Node is described too")
}

func TestEachBlockHasItsWord(t *testing.T) {
	png := content.Source{MediaType: "image/png", Data: "AAAA"}
	for _, c := range []struct {
		block content.Block
		form  describe.Form
		word  string
	}{
		{content.Text{Text: "a"}, describe.Said, "[text]"},
		{content.Thinking{Text: "a"}, describe.Thought, "[thinking]"},
		{content.ToolUse{Name: "find"}, describe.Asked, "[call of find]"},
		{content.CutToolUse{Name: "find"}, describe.Shown, "[cut-off call of find]"},
		{content.ToolResult{CallID: "1"}, describe.Returned, "[result]"},
		{content.Image{Source: png}, describe.Shown, "[image image/png]"},
		{content.Document{Title: "Report", Source: content.Source{URL: "https://example.com"}}, describe.Shown,
			"[document Report https://example.com]"},
		{content.Opaque{API: "anthropic", JSON: "{}"}, describe.Shown, "[anthropic block]"},
		{content.Unknown{JSON: `{"type":"hologram"}`}, describe.Shown, "[unknown block]"},
	} {
		for p := range describe.Parts(blocks(t, c.block)) {
			require.Equal(t, c.form, p.Form)
			require.Equal(t, c.word, p.Word())
		}
	}
}

func TestALabelIsTheToolOrTheRecordOrTheWord(t *testing.T) {
	for label, p := range map[string]node.Payload{
		"find":             node.ToolExecution{Tool: "find"},
		"tool call":        node.ToolExecution{},
		"record acme.note": node.Custom{Name: "acme.note", JSON: "1"},
		"sub-graph":        node.SubGraph{Title: "help"},
	} {
		require.Equal(t, label, describe.Of(made(t, p)).Label())
	}
}

func TestSortsListsEverySort(t *testing.T) {
	source, err := os.ReadFile("node.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^\t\w+ +Sort = "(.*?)"`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, declared)
	for _, d := range declared {
		require.Contains(t, describe.Sorts(), describe.Sort(d[1]))
	}
}

func TestThingsAreCounted(t *testing.T) {
	for n, want := range map[int64]string{
		-1234: "-1,234 things", 0: "0 things", 1: "1 thing", 2: "2 things", 999: "999 things", 1000: "1,000 things", 12345678: "12,345,678 things",
	} {
		require.Equal(t, want, describe.Count(n, "thing"))
	}
}
