package dag_test

import (
	"bytes"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func declaration(name string) content.Tool {
	return content.Tool{Name: name, Description: "d", Schema: `{"type":"object"}`}
}

func toolNames(t dag.Transcript) []string {
	var names []string
	for _, def := range t.Tools {
		names = append(names, def.Name)
	}
	return names
}

// reloaded is d, written to a file and read again.
func reloaded(t *testing.T, d dag.DAG) dag.DAG {
	t.Helper()
	require.NoError(t, d.Err())
	var file bytes.Buffer
	require.NoError(t, d.Write(&file))
	read, err := dag.Read(&file)
	require.NoError(t, err)
	return read
}

func TestSetSystemReplacesThePromptOfTheSameName(t *testing.T) {
	d := dag.New().System("Be kind.").SetSystem("agent", "You are A.").System("Use metric units.").User("Hello.")
	require.Equal(t, []string{"Be kind.", "You are A.", "Use metric units."}, d.Transcript().System)

	changed := d.SetSystem("agent", "You are B.")
	require.Equal(t, []string{"Be kind.", "You are B.", "Use metric units."}, changed.Transcript().System, "in the place of the first")
	require.Equal(t, []string{"Be kind.", "You are A.", "Use metric units."}, d.SystemPrompts(), "the older conversation keeps its own")
	require.Equal(t, d.Len()+1, changed.Len())

	other := changed.SetSystem("memory", "The user is called Mia.")
	require.Equal(t, []string{"Be kind.", "You are B.", "Use metric units.", "The user is called Mia."}, other.Transcript().System)

	removed := other.SetSystem("agent", "")
	require.Equal(t, []string{"Be kind.", "Use metric units.", "The user is called Mia."}, removed.Transcript().System)
	back := removed.SetSystem("agent", "You are C.")
	require.Equal(t, []string{"Be kind.", "You are C.", "Use metric units.", "The user is called Mia."}, back.Transcript().System)

	loaded := reloaded(t, back)
	require.Equal(t, back.Transcript().System, loaded.Transcript().System)
	require.True(t, dag.Equal(back, loaded))
	require.Empty(t, loaded.Validate())
}

func TestSetSystemAddsNothingForTheSameText(t *testing.T) {
	d := dag.New().SetSystem("agent", "A\xff").User("Hello.")
	require.Equal(t, d.Head(), d.SetSystem("agent", "A\xff").Head(), "the text is compared as it is kept")
	require.Equal(t, d.Head(), d.SetSystem("memory", "").Head(), "there is nothing to remove")
	require.Equal(t, 3, d.SetSystem("", "A\xff").Len(), "without a name it is System")
	back := d.SetSystem("agent", "B").SetSystem("agent", "A\xff")
	require.Equal(t, []string{"A\uFFFD"}, back.SystemPrompts())
}

func TestWithdrawnToolsAreNotDeclared(t *testing.T) {
	d := dag.New().Tools(declaration("grep"), declaration("bash"), declaration("read")).User("Hello.")
	less := d.WithdrawTools("grep", "grep", "unknown")
	require.Equal(t, []string{"bash", "read"}, toolNames(less.Transcript()))
	require.Equal(t, node.ListOf("grep").Slice(), less.Head().Payload().(node.Tools).Withdrawn.Slice(), "once, and no name that is not declared")
	_, travels := less.Tool("grep")
	require.False(t, travels, "it does not travel with the conversation any more")
	_, travels = less.Tool("bash")
	require.True(t, travels)
	require.Equal(t, []string{"grep", "bash", "read"}, toolNames(d.Transcript()), "the older conversation keeps its own")

	require.Equal(t, less.Head(), less.WithdrawTools("grep").Head(), "nothing is added twice")
	require.Equal(t, less.Head(), less.WithdrawTools().Head())

	again := less.Tools(declaration("grep"))
	require.Equal(t, []string{"bash", "read", "grep"}, toolNames(again.Transcript()), "what is declared again comes last")
	_, travels = again.Tool("grep")
	require.True(t, travels)

	called := d.Assistant("", content.ToolUse{ID: "1", Name: "grep", Input: "{}"}).CloseTools().WithdrawTools("grep")
	require.Empty(t, called.Validate(), "it was declared when it was called")

	none := again.WithdrawTools("read", "bash", "grep")
	require.Empty(t, none.ToolDefs())
	loaded := reloaded(t, none)
	require.Empty(t, loaded.ToolDefs())
	require.True(t, dag.Equal(none, loaded))
}

// TestThinkingIsBoundToPromptsAndToolsAsSent: a replaced prompt and a withdrawn tool are what the model would not see again.
func TestThinkingIsBoundToPromptsAndToolsAsSent(t *testing.T) {
	asked := dag.New().SetSystem("agent", "You are A.").Tools(declaration("grep"), declaration("bash")).User("Hello.")
	thinking, err := content.Of(content.Thinking{Text: "hm", Signature: "s"}, content.Text{Text: "Hi."})
	require.NoError(t, err)
	d := asked.Append(node.Message{Role: content.Assistant, Blocks: thinking, Answer: node.Answer{Seen: asked.Seen()}})
	stale := func(d dag.DAG) bool { return d.Transcript().Messages[1].Blocks.At(0).(content.Thinking).Stale }

	require.False(t, stale(d))
	require.True(t, stale(d.SetSystem("agent", "You are B.")))
	require.False(t, stale(d.SetSystem("agent", "You are B.").SetSystem("agent", "You are A.")), "the model sees the same again")
	require.True(t, stale(d.WithdrawTools("grep")))
	require.True(t, stale(d.WithdrawTools("grep").Tools(declaration("grep"))), "in another order")
	require.False(t, stale(d.WithdrawTools("bash").Tools(declaration("bash"))), "in the same order")
}

func TestLogShowsReplacedPromptsAndWithdrawnTools(t *testing.T) {
	d := dag.New().SetSystem("agent", "You are A.").Tools(declaration("grep"), declaration("bash")).User("Hello.").
		SetSystem("agent", "You are B.").WithdrawTools("grep", "bash").SetSystem("agent", "")
	var log bytes.Buffer
	require.NoError(t, d.WriteLog(&log, nil))
	require.Contains(t, log.String(), "(agent) You are B.")
	require.Contains(t, log.String(), "withdrawn: grep, bash")
	require.Contains(t, log.String(), "(agent removed)")
}

func TestLogShowsWhatARunCost(t *testing.T) {
	for want, stop := range map[string]node.StopReason{
		"1 turn · cost 0.125":         {Cost: 0.125, CostKnown: true},
		"1 turn · cost 0\n":           {CostKnown: true},
		"1 turn · cost 1.5 (partial)": {Cost: 1.5},
		"1 turn\n":                    {},
	} {
		stop.Reason, stop.Turns = content.StopEndTurn, 1
		var log bytes.Buffer
		require.NoError(t, dag.New().User("Go.").Append(stop).WriteLog(&log, nil))
		require.Contains(t, log.String(), want)
	}
}
