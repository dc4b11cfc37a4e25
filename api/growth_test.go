package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/growthtest"
)

// plain is an encoding without rules of its own.
func plain() *api.Encoding {
	return &api.Encoding{Append: func(dst []byte, m content.Message, _ int) []byte { return m.Blocks.Append(append(dst, m.Role...)) }}
}

var growingEnd = api.Finish{Stop: content.StopEndTurn, Model: "m", Usage: content.Usage{Input: 1, Output: 1}}

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
					repaired, _ := api.Repair(messages, api.Rules{})
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

	// A client reads each event once, whatever is in the request.
	for name, answer := range map[string]func(n int) []any{
		"many deltas": func(n int) (events []any) {
			for range n {
				events = append(events, api.Delta{Kind: api.DeltaText, Text: "word "})
			}
			return append(events, api.BlockEnd{Block: text(strings.Repeat("word ", n))}, growingEnd)
		},
		"many deltas, cut off": func(n int) (events []any) {
			for range n {
				events = append(events, api.Delta{Kind: api.DeltaText, Text: "word "})
			}
			return append(events, &api.Error{Kind: api.ErrInvalidRequest, Message: "over"})
		},
		"many blocks": func(n int) (events []any) {
			for i := range n {
				events = append(events, api.Delta{Kind: api.DeltaText, Index: i, Text: "word"}, api.BlockEnd{Index: i, Block: text("word")})
			}
			return append(events, growingEnd)
		},
	} {
		cases = append(cases, growthtest.Case{Name: "Client.Send/" + name, Growth: growthtest.Linear, Setup: func(t testing.TB, n int) func() {
			client := api.NewClient(script(answer(n)), &api.ClientOptions{Attempts: 1})
			return func() {
				got, err := client.Send(context.Background(), api.Request{})
				if name == "many deltas, cut off" {
					require.ErrorIs(t, err, api.ErrInvalidRequest)
				} else {
					require.NoError(t, err)
				}
				require.NotZero(t, got.Blocks.Len())
			}
		}})
	}
	cases = append(cases,
		growthtest.Case{Name: "Client.Send/a long conversation", Growth: growthtest.Flat, Setup: func(t testing.TB, n int) func() {
			client := api.NewClient(script([]any{api.BlockEnd{Block: text("word")}, growingEnd}), nil)
			req := api.Request{Messages: shapes["chain"](n)}
			return func() {
				_, err := client.Send(context.Background(), req)
				require.NoError(t, err)
			}
		}},
		growthtest.Case{Name: "Client.Send/many requests, with limits", Growth: growthtest.Linear, Setup: func(t testing.TB, n int) func() {
			plays := make([][]any, n)
			for i := range plays {
				plays[i] = []any{api.BlockEnd{Block: text("word")}, growingEnd}
			}
			client := api.NewClient(script(plays...), &api.ClientOptions{MaxConcurrent: 1})
			return func() {
				for range n {
					_, err := client.Send(context.Background(), api.Request{})
					require.NoError(t, err)
				}
			}
		}},
	)
	growthtest.Run(t, cases)
}
