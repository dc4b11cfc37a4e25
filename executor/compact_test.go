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

func TestCompactingAgainStandsForWhatWasCompacted(t *testing.T) {
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

func TestPoliciesSayWhatStandsForTheMiddle(t *testing.T) {
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
