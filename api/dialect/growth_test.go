package dialect_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
)

// plain is an encoding without rules of its own.
func plain() *dialect.Encoding {
	return &dialect.Encoding{Append: func(dst []byte, m content.Message, _ int) []byte { return m.Blocks.Append(append(dst, m.Role...)) }}
}

// TestGrowth checks how the cost of repairing and encoding grows with the conversation.
func TestGrowth(t *testing.T) {
	shapes := map[string]func(n int) []content.Message{
		"chain": func(n int) (messages []content.Message) {
			for i := range n {
				messages = append(messages, user(text(fmt.Sprint("question ", i))), assistant(text("answer")))
			}
			return append(messages, user(text("And now?")))
		},
		"many calls in one message": func(n int) []content.Message {
			var calls, results []content.Block
			for i := range n {
				calls = append(calls, content.ToolUse{ID: fmt.Sprint("call_", i), Name: "f", Input: "{}"})
				results = append(results, content.ToolResult{CallID: fmt.Sprint("call_", i), Content: content.Words("done")})
			}
			return []content.Message{user(text("Go.")), assistant(calls...), user(results...)}
		},
		"calls with one id": func(n int) (messages []content.Message) {
			for range n {
				messages = append(messages, user(text("Go.")), assistant(content.ToolUse{ID: "a", Name: "f", Input: "{}"}))
			}
			return messages
		},
		"one side": func(n int) (messages []content.Message) {
			for range n {
				messages = append(messages, user(text("Go.")))
			}
			return messages
		},
	}
	var cases []growthtest.Case
	for name, shape := range shapes {
		cases = append(cases,
			growthtest.Case{Name: "Repair/" + name, Growth: growthtest.Linear, Setup: func(t testing.TB, n int) func() {
				messages := shape(n)
				return func() {
					repaired, _ := dialect.Repair(messages, dialect.Rules{})
					require.NotEmpty(t, repaired)
				}
			}},
			growthtest.Case{Name: "Encode/" + name, Growth: growthtest.Linear, Setup: func(_ testing.TB, n int) func() {
				messages, e := shape(n), plain()
				return func() { e.Encode(messages) }
			}})
	}
	cases = append(cases, growthtest.Case{Name: "Encode, the next turn", Growth: growthtest.FlatButCopies, Setup: func(_ testing.TB, n int) func() {
		messages, e := shapes["chain"](n), plain()
		e.Encode(messages)
		longer := append(messages, assistant(text("This.")), user(text("More.")))
		return func() { e.Encode(longer) }
	}})
	growthtest.Run(t, cases)
}
