package dag_test

import (
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// compact appends a compaction of the nodes at those places.
func compact(d dag.DAG, summary string, places ...int) dag.DAG {
	nodes := d.Nodes()
	var ids []node.ID
	for _, p := range places {
		ids = append(ids, nodes[p].ID())
	}
	return d.Append(node.Compaction{Summary: content.Words(summary), Replaced: node.ListOf(ids...)})
}

func TestOnlySystemToolsAndMessagesAreSent(t *testing.T) {
	d := fresh().System("S1").User("u").System("S2").System("").Custom("note", 1).SubGraph("x", fresh().User("hidden")).
		Assistant("a").Stop(content.StopEndTurn).User("again")
	require.Equal(t, []string{"S1", "S2"}, d.SystemPrompts())
	require.Equal(t, []string{"user:u", "assistant:a", "user:again"}, spell(d.Messages()))
	require.Empty(t, d.ToolDefs())
	require.Equal(t, dag.Transcript{}, dag.New().Transcript())
}

func TestCompactionReplacesItsFirstMessage(t *testing.T) {
	d := fresh().System("s").Tools(declared("f", "")).User("1").Assistant("2").User("3").Assistant("4")
	c := compact(d, "sum", 0, 1, 2, 3).User("5")
	require.Equal(t, []string{"user:sum", "user:3", "assistant:4", "user:5"}, spell(c.Messages()))
	require.Equal(t, []string{"s"}, c.SystemPrompts(), "system prompts stay")
	require.Len(t, c.ToolDefs(), 1, "declared tools stay")
	require.Equal(t, 8, c.Len(), "what is replaced stays in the graph")
	require.Equal(t, spell(d.Messages()), spell(c.Back(1).At(d.Head().ID()).Messages()), "and is said again before the compaction")
}

func TestLaterCompactionOverridesEarlierOne(t *testing.T) {
	d := fresh().User("1").Assistant("2").User("3").Assistant("4") // places 0 … 3
	first := compact(d, "first", 0, 1).User("5").Assistant("6")    // 4 is the compaction
	for _, c := range []struct {
		name   string
		places []int
		want   []string
	}{
		{"of the compaction and more", []int{4, 2, 3}, []string{"user:second", "user:5", "assistant:6"}},
		{"of the compaction alone", []int{4}, []string{"user:3", "assistant:4", "user:second", "user:5", "assistant:6"}},
		{"of what it replaced and more", []int{0, 1, 2, 3}, []string{"user:second", "user:5", "assistant:6"}},
		{"of a part of what it replaced", []int{1, 2}, []string{"user:first", "user:second", "assistant:4", "user:5", "assistant:6"}},
		{"of everything", []int{0, 1, 2, 3, 4, 5, 6}, []string{"user:second"}},
		{"of nothing that is there", nil, []string{"user:first", "user:3", "assistant:4", "user:5", "assistant:6", "user:second"}},
	} {
		require.Equal(t, append(c.want, "user:on"), spell(compact(first, "second", c.places...).User("on").Messages()), c.name)
	}
}

func TestCompactionWithoutSummaryLeavesOutMessages(t *testing.T) {
	d := compact(fresh().User("1").Assistant("2").User("3"), "", 0, 1)
	require.Equal(t, []string{"user:3"}, spell(d.Messages()))
}

func TestResultIsSentOnce(t *testing.T) {
	d := askWeather()
	said := d.Heads()
	byHand := d.ToolResults(result("t1", "1"), result("t2", "2"), result("t3", "3"))
	require.Len(t, byHand.Messages(), 3)
	d, _, _ = d.AppendTo(said, execution(0, "one"))
	d, _, _ = d.AppendTo(said, execution(1, "two"))
	require.Equal(t, []string{"user:!t1=one", "user:!t2=two"}, spell(d.Messages())[2:], "executions that no message closes are said, with the ids of their calls")
	closed := d.CloseTools()
	require.Len(t, closed.Messages(), 3, "and not once more when one does")
	part, _, err := d.AppendTo(d.Heads()[:1], node.Message{Role: content.User, Blocks: mustOf(t, result("t1", "one"))})
	require.NoError(t, err)
	require.Equal(t, []string{"user:!t1=one", "user:!t2=two"}, spell(part.Messages())[2:], "a message that closes a part leaves the rest to be said")
}

func mustOf(t *testing.T, blocks ...content.Block) content.Blocks {
	b, err := content.Of(blocks...)
	require.NoError(t, err)
	return b
}
