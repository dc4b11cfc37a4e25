package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
)

var growingEnd = api.Finish{Stop: content.StopEndTurn, Model: "m", Usage: content.Usage{Input: 1, Output: 1}}

// chat returns n questions with their answers, and a last question.
func chat(n int) (messages []content.Message) {
	for i := range n {
		messages = append(messages, user(fmt.Sprint("question ", i)), content.Message{Role: content.Assistant, Blocks: content.Words("answer")})
	}
	return append(messages, user("And now?"))
}

// TestGrowth checks how the cost of a client's request grows with the conversation and with the response.
func TestGrowth(t *testing.T) {
	var cases []growthtest.Case

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
			req := api.Request{Messages: chat(n)}
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
