package dag_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

func message(role content.Role, blocks ...content.Block) content.Message {
	said, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	return content.Message{Role: role, Blocks: said}
}

func TestFromTranscriptReturnsItsTranscript(t *testing.T) {
	call := func(id string) content.ToolUse { return content.ToolUse{ID: id, Name: "f", Input: "{}"} }
	result := func(id, text string) content.ToolResult {
		return content.ToolResult{CallID: id, Content: content.Words(text)}
	}
	tests := map[string]struct {
		messages   []content.Message
		executions int
	}{
		"nothing": {},
		"calls with results and a word": {[]content.Message{
			message(content.User, content.Text{Text: "Go."}), message(content.Assistant, call("a"), call("b")),
			message(content.User, result("b", "2"), result("a", "1"), content.Text{Text: "And?"}), message(content.Assistant, content.Text{Text: "Done."}),
		}, 2},
		"one id for two calls": {[]content.Message{
			message(content.Assistant, call("a"), call("a")), message(content.User, result("a", "1"), result("a", "2")),
		}, 2},
		"a result of no call, one twice, and a call without": {[]content.Message{
			message(content.User, result("x", "?")), message(content.Assistant, call("a"), call("b")),
			message(content.User, result("a", "1"), result("a", "again"), result("y", "?")),
		}, 1},
		"calls that nobody answers": {[]content.Message{
			message(content.Assistant, call("a")), message(content.User, content.Text{Text: "Never mind."}), message(content.Assistant, call("b")),
		}, 0},
	}
	for name, test := range tests {
		want := dag.Transcript{
			System: []string{"Be brief.", "Be kind."}, Messages: test.messages,
			Tools: []content.Tool{{Name: "f", Schema: `{"type":"object"}`}},
		}
		d := dag.FromTranscript(want)
		require.NoError(t, d.Err(), name)
		got := d.Transcript()
		require.Equal(t, want.System, got.System, name)
		require.Equal(t, want.Tools, got.Tools, name)
		require.Len(t, got.Messages, len(want.Messages), name)
		for i, m := range got.Messages {
			require.Equal(t, want.Messages[i].Role, m.Role, name)
			require.True(t, want.Messages[i].Blocks.Equal(m.Blocks), name)
		}
		executions := 0
		for _, n := range d.Nodes() {
			if _, ok := n.Payload().(node.ToolExecution); ok {
				executions++
			}
		}
		require.Equal(t, test.executions, executions, name)
	}
}

func TestFromTranscriptErrors(t *testing.T) {
	require.ErrorIs(t, dag.FromTranscript(dag.Transcript{Messages: []content.Message{{Role: content.User}}}).Err(), dag.ErrEmpty)
	require.ErrorIs(t, dag.FromTranscript(dag.Transcript{Tools: []content.Tool{{}}}).Err(), content.ErrTool)
	require.Error(t, dag.FromTranscript(dag.Transcript{Messages: []content.Message{message("nobody", content.Text{Text: "?"})}}).Err())
}

// A request that another program made becomes a conversation.
func ExampleFromTranscript() {
	d := dag.FromTranscript(dag.Transcript{
		System: []string{"Answer briefly."},
		Messages: []content.Message{
			message(content.User, content.Text{Text: "What is the time?"}),
			message(content.Assistant, content.ToolUse{ID: "call_1", Name: "clock", Input: "{}"}),
			message(content.User, content.ToolResult{CallID: "call_1", Content: content.Words("12:00")}),
		},
	})
	fmt.Println(d)
	// Output:
	// ◆ system    Answer briefly.
	// ○ user      What is the time?
	// ● assistant → clock
	// ▪ clock() → 12:00
}
