package viz

import (
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func TestLogAndDrawingsUseTheSameWords(t *testing.T) {
	answer := func(stop content.Stop, blocks ...content.Block) node.Message {
		list, err := content.Of(blocks...)
		require.NoError(t, err)
		return node.Message{Role: content.Assistant, Blocks: list, Answer: node.Answer{Stop: stop}}
	}
	hi := content.Text{Text: "Hi."}
	for _, c := range []struct {
		payload    node.Payload
		words, not []string
	}{
		{answer(content.StopPause, hi), []string{"assistant", "Hi."}, []string{"pause_turn", "stopped"}},
		{answer(content.StopMaxTokens, hi), []string{"assistant", "stopped: max_tokens", "Hi."}, nil},
		{answer("", content.Thinking{Text: ""}), []string{"[thinking]"}, nil},
		{answer("", content.Opaque{API: "anthropic", JSON: "{}"}), []string{"[anthropic block]"}, nil},
		{node.Message{Role: content.User, Blocks: answer("", content.Image{Source: content.Source{MediaType: "image/png", Data: "iVBORw0K"}}).Blocks},
			[]string{"user", "[image image/png]"}, nil},
		{node.Message{Role: content.User, Blocks: answer("", content.ToolResult{CallID: "1", Content: content.Words("22 °C")}, hi).Blocks},
			[]string{"result", "22 °C", "Hi."}, []string{"user"}},
		{node.Compaction{Summary: content.Words("so far"), Replaced: node.ListOf(node.ID{1}, node.ID{2})}, []string{"compaction of 2 nodes", "so far"}, nil},
		{node.Compaction{Summary: content.Words("so far")}, []string{"compaction", "so far"}, []string{"0 nodes"}},
		{node.Custom{Name: "acme.x", JSON: `{"a":1}`}, []string{"record", "acme.x", "a: 1"}, []string{"note", "{"}},
		{node.System{Name: "memory", Text: "Mia likes tea."}, []string{"system", "memory", "Mia likes tea."}, []string{"removed"}},
		{node.System{Name: "memory"}, []string{"system", "memory", "removed"}, nil},
		{node.SubGraph{Title: "review", Summary: "fine"}, []string{"sub-graph", "review", "fine"}, nil},
		{node.ToolExecution{Tool: "pay", State: node.ExecutionStarted}, []string{"pay", "started"}, []string{"failed", "no output"}},
		{node.ToolExecution{Tool: "pay", State: node.ExecutionInDoubt, Result: content.Words("Unknown."), IsError: true},
			[]string{"pay", "in doubt: Unknown."}, []string{"failed"}},
		{node.RunStart{Agent: "support", Run: "r1", Limits: node.RunLimits{Turns: 8}}, []string{"run", "by support"}, []string{"8", "r1"}},
		{node.ToolExecution{Tool: "bash", Result: content.Words("exit status 1\n--- FAIL: TestX\n"), IsError: true},
			[]string{"bash", "--- FAIL: TestX"}, []string{"exit status"}},
		{node.StopReason{Reason: content.StopMaxTurns, Turns: 8, ToolCalls: 1, ToolUsage: content.Usage{Output: 5}, Elapsed: 1500 * time.Millisecond},
			[]string{"stop", "max_turns", "8 turns", "1 tool call", "5 tokens in tools", "1.5s"}, nil},
	} {
		d := sampleStart().Append(c.payload)
		require.NoError(t, d.Err())
		s := newSketch(t, d, &Options{})
		for where, text := range map[string]string{"the log": d.String(), "a drawing": s.labels.face(0).label} {
			for _, word := range c.words {
				require.Contains(t, text, word, where)
			}
			for _, word := range c.not {
				require.NotContains(t, text, word, where)
			}
		}
	}
}
