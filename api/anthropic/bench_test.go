package anthropic

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

// conversation returns n messages of a tool loop, for us and for the SDK.
func conversation(n int) (api.Request, sdk.MessageNewParams) {
	req := api.Request{System: []string{"Be brief."}, Tools: []content.Tool{weather}}
	theirs := sdk.MessageNewParams{Model: "claude-x", MaxTokens: 1000, System: []sdk.TextBlockParam{{Text: "Be brief."}}}
	theirs.Tools = []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{
		Name: "get_weather", Description: sdk.String("Weather."),
		InputSchema: sdk.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}},
	}}}
	const words = "It snows in Oslo, and it will go on to do so until the evening, when it clears up from the west. "
	for i := 0; len(req.Messages) < n; i++ {
		id := fmt.Sprintf("toolu_%d", i)
		input := json.RawMessage(`{"city":"Oslo","days":[1,2,3]}`)
		req.Messages = append(req.Messages, user(said(words)), assistant(said(words), content.ToolUse{ID: id, Name: "get_weather", Input: content.JSON(input)}),
			user(content.ToolResult{CallID: id, Content: content.Words(words)}), assistant(said(words)))
		theirs.Messages = append(theirs.Messages, sdk.NewUserMessage(sdk.NewTextBlock(words)),
			sdk.NewAssistantMessage(sdk.NewTextBlock(words), sdk.NewToolUseBlock(id, input, "get_weather")),
			sdk.NewUserMessage(sdk.NewToolResultBlock(id, words, false)), sdk.NewAssistantMessage(sdk.NewTextBlock(words)))
	}
	req.Messages = append(req.Messages, user(said("And now?")))
	theirs.Messages = append(theirs.Messages, sdk.NewUserMessage(sdk.NewTextBlock("And now?")))
	return req, theirs
}

// BenchmarkBody makes the same request with Body, which also repairs it, and with the SDK's own marshalling, and reports how
// many times faster Body is.
func BenchmarkBody(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		req, theirs := conversation(n)
		o := &Options{MaxTokens: 1000}
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Body(req, "claude-x", o); err != nil {
					b.Fatal(err)
				}
			}
			ours := b.Elapsed() / time.Duration(b.N)
			begin, rounds := time.Now(), 0
			for time.Since(begin) < b.Elapsed()/2+10*time.Millisecond {
				if _, err := json.Marshal(theirs); err != nil {
					b.Fatal(err)
				}
				rounds++
			}
			sdks := time.Since(begin) / time.Duration(rounds)
			b.ReportMetric(float64(sdks)/float64(ours), "x-faster-than-SDK")
		})
	}
}

func TestBothMakeTheSameRequest(t *testing.T) {
	req, theirs := conversation(8)
	want, err := json.Marshal(theirs)
	require.NoError(t, err)
	got, notes, err := Body(req, "claude-x", &Options{MaxTokens: 1000})
	require.NoError(t, err)
	require.Empty(t, notes)
	requireSame(t, normalRequest(t, string(want)), normalRequest(t, string(got)))
}
