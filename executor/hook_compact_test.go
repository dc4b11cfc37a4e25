package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// chatter is a conversation of n turns, each with a tool call whose output is long.
func chatter(n int) dag.DAG {
	d := dag.New().System("Be brief.").Tools(fast)
	for i := range n {
		d = d.User(fmt.Sprint("Question ", i)).Assistant("", apitest.Use("fast", content.JSON(fmt.Sprintf(`{"n":%d}`, i)))).
			CloseTools(node.ToolExecution{Result: content.Words(strings.Repeat(fmt.Sprint("page ", i, " "), 100))}).
			Assistant(fmt.Sprint("Answer ", i))
	}
	return d
}

func sent(d dag.DAG) string {
	var b strings.Builder
	for _, m := range d.Messages() {
		text, _ := m.Blocks.MarshalJSON()
		b.WriteString(string(m.Role) + string(text) + "\n")
	}
	return b.String()
}

func TestCompactingLeavesOutTheMiddleAndKeepsItInTheGraph(t *testing.T) {
	d := chatter(10)
	c := executor.Compaction{Budget: 800, Keep: 300}
	short, err := c.Compact(t.Context(), d)
	require.NoError(t, err)
	requireValid(t, short)
	require.Equal(t, d.Len()+1, short.Len(), "everything stays in the graph")
	said := sent(short)
	require.True(t, strings.HasPrefix(said, `user[{"type":"text","text":"Question 0"}]`), said)
	require.Contains(t, said, "earlier messages were left out here.]")
	require.Contains(t, said, "Answer 9")
	require.NotContains(t, said, "page 3")
	require.Less(t, len(said), len(sent(d))/3)

	again, err := c.Compact(t.Context(), short)
	require.NoError(t, err)
	require.Equal(t, short.Heads(), again.Heads(), "what fits is left as it is")

	longer := short.User("And now?").Assistant("This.")
	require.True(t, strings.HasPrefix(sent(longer), said), "what follows does not change the beginning")
}

func TestAChatIsCompactedBeforeTheFirstRequestOfARun(t *testing.T) {
	model := apitest.NewScript(apitest.Say(strings.Repeat("word ", 500)).Always())
	c := executor.Compaction{Budget: 2000}
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{c.Hook()}}
	d := dag.New()
	for range 20 {
		var err error
		d, err = agent.Run(t.Context(), d.User("Hello"))
		require.NoError(t, err)
	}
	for _, r := range model.Requests() {
		require.LessOrEqual(t, api.EstimateTokens(api.Request{Messages: r.Messages}), int64(2000))
	}
	requireValid(t, d)

	// A new message may be what exceeds the budget.
	_, err := agent.Run(t.Context(), d.User(strings.Repeat("word ", 1200)))
	require.NoError(t, err)
	last := model.Requests()[20].Messages
	require.Contains(t, last[1].Blocks.Text(), "were left out here")
	require.Less(t, len(last), 6)
}

func TestCompactingAgainReplacesTheEarlierCompaction(t *testing.T) {
	d := chatter(6)
	c := executor.Compaction{Budget: 700, Keep: 250}
	d, err := c.Compact(t.Context(), d)
	require.NoError(t, err)
	for i := range 6 {
		d = d.User(fmt.Sprint("More ", i)).Assistant(strings.Repeat("words ", 200))
		d, err = c.Compact(t.Context(), d)
		require.NoError(t, err)
	}
	requireValid(t, d)
	require.Equal(t, 1, strings.Count(sent(d), "were left out here"), sent(d))
}

func TestACallIsNeverPartedFromItsResults(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		d := chatter(1 + random.IntN(8))
		for range 1 + random.IntN(3) {
			c := executor.Compaction{Budget: 1 + random.IntN(2000), Keep: random.IntN(1500)}
			short, err := c.Compact(t.Context(), d)
			require.NoError(t, err)
			requireValid(t, short)
			d = short.User("And?").Assistant("So.")
		}
	}
}

func TestPoliciesReturnTheSummaryOfTheMiddle(t *testing.T) {
	d := chatter(8)
	cut, err := executor.Compaction{Budget: 900, Keep: 300, Policy: executor.TruncateOutputs(40)}.Compact(t.Context(), d)
	require.NoError(t, err)
	require.Contains(t, sent(cut), `assistant calls fast({\"n\":2})`)
	require.Contains(t, sent(cut), `the tool returned: page 2 page 2`)
	require.Contains(t, sent(cut), `[truncated]`)

	model := apitest.NewScript(apitest.Say("They talked about pages."))
	summed, err := executor.Compaction{Budget: 900, Keep: 300, Policy: executor.Summarise(model, "")}.Compact(t.Context(), d)
	require.NoError(t, err)
	require.Contains(t, sent(summed), "They talked about pages.")
	require.Contains(t, model.Requests()[0].Messages[0].Blocks.Text(), "user: Question 3")

	for _, turn := range []apitest.Turn{apitest.Fail(&api.Error{Kind: api.ErrAuth}), apitest.Say(" "), apitest.Say("Half of").Stop(content.StopMaxTokens)} {
		same, err := executor.Compaction{Budget: 900, Policy: executor.Summarise(apitest.NewScript(turn), "")}.Compact(t.Context(), d)
		require.Error(t, err)
		require.Equal(t, d.Heads(), same.Heads(), "the conversation stays as it was")
	}
}

func TestPoliciesWriteMessagesAsText(t *testing.T) {
	messages := dag.New().Tools(fast).
		User("Look:", content.Image{Source: content.Source{URL: "https://example.com/a.png"}},
			content.Document{Source: content.Source{Text: "x"}, Title: "report.txt"}).
		Assistant("I call.", content.Thinking{Text: "hm", Signature: "s"}, apitest.Use("fast", content.JSON(`{"n":1}`)),
			apitest.Use("fast", content.JSON(`{"n":2}`))).
		CloseTools(
			node.ToolExecution{Index: 2, Result: content.Words(strings.Repeat("long ", 1000))},
			node.ToolExecution{Index: 3, Result: content.Words("no"), IsError: true}).
		Messages()
	told := func(output string) string {
		return "user: Look:\nuser: [image https://example.com/a.png]\nuser: [document report.txt]\nassistant: I call.\n" +
			"assistant calls fast({\"n\":1})\nassistant calls fast({\"n\":2})\n" +
			"the tool returned: " + output + "\nthe tool failed: no"
	}

	said, err := executor.TruncateOutputs(24)(t.Context(), messages)
	require.NoError(t, err)
	require.Equal(t, "[Earlier messages, with the output of tools cut:]\n"+told("long long l\n\n[truncated]"), said.Text())

	model := apitest.NewScript(apitest.Say("  They said little.\n"), apitest.Say("x"))
	said, err = executor.Summarise(model, "Be short.")(t.Context(), messages)
	require.NoError(t, err)
	require.Equal(t, "[Summary of earlier messages:]\nThey said little.", said.Text())
	require.Equal(t, []string{"Be short."}, model.Requests()[0].System)
	require.Len(t, model.Requests()[0].Messages, 1)
	asked := model.Requests()[0].Messages[0]
	require.Equal(t, content.User, asked.Role)
	require.True(t, strings.HasPrefix(asked.Blocks.Text(), told(strings.Repeat("long ", 390))[:1900]))
	require.Less(t, len(asked.Blocks.Text()), 2300)

	_, err = executor.Summarise(model, "")(t.Context(), messages)
	require.NoError(t, err)
	require.Equal(t, []string{"Summarise this part of a conversation for the assistant that goes on with it: what was asked, decided and " +
		"found out, names and numbers as they are, what is still open. Write nothing else."}, model.Requests()[1].System)

	for want, turn := range map[string]apitest.Turn{
		"executor: the summary of earlier messages: not authorized":                              apitest.Fail(&api.Error{Kind: api.ErrAuth}),
		"executor: the summary of earlier messages stopped with end_turn: there is no summary":   apitest.Say(" "),
		"executor: the summary of earlier messages stopped with max_tokens: there is no summary": apitest.Say("Half of").Stop(content.StopMaxTokens),
	} {
		_, err := executor.Summarise(apitest.NewScript(turn), "")(t.Context(), messages)
		require.EqualError(t, err, want)
	}
}

func TestEachBlockCountsAQuarterOfItsBytes(t *testing.T) {
	for name, c := range map[string]struct {
		block  content.Block
		tokens int
	}{
		"text":      {content.Text{Text: "12345678"}, 2},
		"thinking":  {content.Thinking{Text: "12345678", Signature: "s"}, 2},
		"a call":    {apitest.Use("nine_nine", content.JSON(`{"a":"bcd"}`)), 5},
		"a cut one": {content.CutToolUse{Name: "nine_nine", Input: `{"a":"bcdef`}, 5},
		"opaque":    {content.Opaque{API: "x", JSON: `{"a":"12345"}   `}, 4},
		"a result":  {content.ToolResult{CallID: "c", Content: content.Words("1234567890123456")}, 4},
		"an image":  {content.Image{Source: content.Source{URL: "https://example.com/a.png"}}, 0},
		"a file":    {content.Document{Source: content.Source{Text: "12345678"}, Title: "t"}, 0},
	} {
		// Six messages of 16 bytes each, and 16 more for each message: 8 tokens.
		words := "0123456789abcdef"
		d := dag.New().User(words).Assistant(words).User(words).Assistant(words)
		if _, isResult := c.block.(content.ToolResult); isResult {
			d = d.User(words, c.block)
		} else {
			d = d.Assistant(words, c.block)
		}
		d = d.User(words)
		require.NoError(t, d.Err(), name)
		fits, err := executor.Compaction{Budget: 48 + c.tokens, Keep: 1}.Compact(t.Context(), d)
		require.NoError(t, err)
		require.Equal(t, d.Heads(), fits.Heads(), name)
		short, err := executor.Compaction{Budget: 47 + c.tokens, Keep: 1}.Compact(t.Context(), d)
		require.NoError(t, err)
		require.NotEqual(t, d.Heads(), short.Heads(), name)
	}
}

func TestCompactionKeepsAsMuchAsFits(t *testing.T) {
	words := "0123456789abcdef" // 8 tokens with its message
	d := dag.New().User(words).Assistant(words).User(words).Assistant(words).User(words).Assistant(words).User(words)
	for keep, left := range map[int]int{1: 1, 8: 1, 15: 1, 16: 2, 23: 2, 24: 3, 31: 3, 32: 4, 33: 4} {
		short, err := executor.Compaction{Budget: 55, Keep: keep}.Compact(t.Context(), d)
		require.NoError(t, err)
		messages := short.Messages()
		require.Equal(t, fmt.Sprintf("[%d earlier messages were left out here.]", 6-left), messages[1].Blocks.Text(), keep)
		require.Len(t, messages, 2+left, keep)
		require.Equal(t, words, messages[0].Blocks.Text())
	}
	same, err := executor.Compaction{Budget: 55, Keep: 40}.Compact(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, d.Heads(), same.Heads(), "one message is not worth a summary")
	half, err := executor.Compaction{Budget: 55}.Compact(t.Context(), d)
	require.NoError(t, err)
	require.Len(t, half.Messages(), 2+3, "Keep is half of Budget")
}

func TestWhatCannotBeCompactedIsLeftAsItIs(t *testing.T) {
	tight := executor.Compaction{Budget: 1}
	open := ask(fast).Assistant("", call("fast"))
	for name, d := range map[string]dag.DAG{
		"empty": dag.New(), "one question": dag.New().User(strings.Repeat("long ", 1000)), "calls that wait": chatter(3).User("?").Assistant("", call("fast")), "open": open,
	} {
		same, err := tight.Compact(t.Context(), d)
		require.NoError(t, err, name)
		require.Equal(t, d.Heads(), same.Heads(), name)
	}
	_, err := tight.Compact(t.Context(), dag.New().User(""))
	require.ErrorIs(t, err, dag.ErrEmpty)
}

func TestARunCompactsItself(t *testing.T) {
	long := tool("long", func(context.Context) (any, error) { return strings.Repeat("page ", 300), nil })
	model := apitest.NewScript(
		apitest.Call(call("long")), apitest.Call(call("long")), apitest.Call(call("long")), apitest.Call(call("long")), apitest.Say("Done."),
	)
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{executor.Compaction{Budget: 1000, Keep: 400}.Hook()}}
	d, err := agent.Run(t.Context(), ask(long))
	require.NoError(t, err)
	requireValid(t, d)
	require.Equal(t, "Done.", d.Text())
	for _, req := range model.Requests() {
		require.LessOrEqual(t, len(req.Messages), 6)
	}

	broken := func(context.Context, []content.Message) (content.Blocks, error) {
		return content.Blocks{}, errors.New("no summary today")
	}
	model = apitest.NewScript(apitest.Call(call("long")), apitest.Call(call("long")), apitest.Call(call("long")))
	agent = executor.Agent{Provider: model, Hooks: []executor.Hook{executor.Compaction{Budget: 100, Policy: broken}.Hook()}}
	d, err = agent.Run(t.Context(), ask(long))
	require.ErrorContains(t, err, "no summary today")
	requireValid(t, d)
}

// A conversation that grew too long goes on with a summary in place of its middle, which stays in the graph.
func ExampleCompaction() {
	d := dag.New().User("Plan a trip.").Assistant("Where to?").User("Rome, in May.").Assistant("For how long?").User("A week.").
		Assistant("With whom?").User("Alone.")
	model := apitest.NewScript(apitest.Say("Rome in May, for a week."))
	c := executor.Compaction{Budget: 40, Keep: 15, Policy: executor.Summarise(model, "Summarise.")}

	short, err := c.Compact(context.Background(), d)
	for _, m := range short.Messages() {
		fmt.Printf("%s: %q\n", m.Role, m.Blocks.Text())
	}
	fmt.Println(short.Len(), err)
	// Output:
	// user: "Plan a trip."
	// user: "[Summary of earlier messages:]\nRome in May, for a week."
	// assistant: "With whom?"
	// user: "Alone."
	// 8 <nil>
}
