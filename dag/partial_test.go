package dag_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// partial is a conversation whose answer was cut off in a call.
func partial(t *testing.T) dag.DAG {
	return fresh().User("Look.").Append(node.Message{
		Role:   content.Assistant,
		Blocks: mustOf(t, content.Text{Text: "Let me"}, content.CutToolUse{Name: "fetch", Input: `{"page":`}),
		Answer: node.Answer{Stop: content.StopCut, Usage: content.Usage{Input: 7, Incomplete: true}},
	}).Append(node.StopReason{Reason: content.StopCancelled, Usage: content.Usage{Input: 7, Incomplete: true}, ToolUsage: content.Usage{Incomplete: true}})
}

// TestCallThatReachedTheLimitOfTokensIsNoFinding keeps the beginning of a call's arguments, which sending repairs.
func TestCallThatReachedTheLimitOfTokensIsNoFinding(t *testing.T) {
	for stop, want := range map[content.Stop][]dag.FindingKind{
		content.StopMaxTokens: nil, content.StopContext: nil, content.StopToolUse: {dag.FindingKind("arguments are not an object")},
	} {
		cut := func(input content.JSON) dag.DAG {
			call := content.ToolUse{ID: "a", Name: "fetch", Input: input}
			return fresh().Tools(declared("fetch", "")).User("Look.").Append(node.Message{
				Role: content.Assistant, Blocks: mustOf(t, call), Answer: node.Answer{Stop: stop},
			}).CloseTools()
		}
		require.Equal(t, want, kinds(cut(`{"page":`)), stop)
		require.Equal(t, []dag.FindingKind{dag.FindingKind("arguments are not an object")}, kinds(cut(`[1]`)), stop)
	}
}

func TestPartialResponseIsSavedAndShown(t *testing.T) {
	d := partial(t)
	require.Empty(t, d.OpenCalls())
	require.Empty(t, d.Validate())
	var file bytes.Buffer
	require.NoError(t, d.Write(&file))
	require.Contains(t, file.String(), `{"type":"cut_tool_use","name":"fetch","input_text":"{\"page\":"}`)
	require.Contains(t, file.String(), `"stop":"cut_off","usage":{"input":7,"incomplete":true}`)
	loaded, err := dag.Read(&file)
	require.NoError(t, err)
	require.True(t, dag.Equal(d, loaded))
	require.Equal(t, d.Nodes()[1].Payload().(node.Message).Answer, loaded.Nodes()[1].Payload().(node.Message).Answer)

	var log bytes.Buffer
	require.NoError(t, loaded.WriteLog(&log, nil))
	require.Contains(t, log.String(), "[cut off] Let me [cut-off call of fetch]")
	require.Contains(t, log.String(), "at least 7 tokens")
	require.Contains(t, log.String(), "tokens unknown in tools")
}

func TestPartialResponseIsForkedMergedAndRedacted(t *testing.T) {
	d := partial(t)
	require.Equal(t, "Well?", d.User("Well?").Messages()[2].Blocks.Text())
	require.Len(t, d.Back(1).Messages(), 0)
	again := dag.FromTranscript(d.Transcript())
	require.True(t, d.Messages()[1].Blocks.Equal(again.Messages()[1].Blocks))

	redacted := d.Redact(d.Nodes()[1].ID())
	require.NoError(t, redacted.Err())
	var file bytes.Buffer
	require.NoError(t, redacted.Write(&file))
	require.NotContains(t, file.String(), "fetch")
	require.NotContains(t, file.String(), "Let me")
	m, _ := redacted.Nodes()[1].Message()
	require.Equal(t, content.StopCut, m.Answer.Stop)
}
