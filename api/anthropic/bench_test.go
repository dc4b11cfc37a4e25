package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/testkit/fixture"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/stretchr/testify/require"
)

// theirs is fixture.Conversation(n) for the SDK.
func theirs(n int) sdk.MessageNewParams {
	p := sdk.MessageNewParams{Model: "claude-x", MaxTokens: 1000, System: []sdk.TextBlockParam{{Text: "Be brief."}}}
	p.Tools = []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{
		Name: "get_weather", Description: sdk.String("Weather."),
		InputSchema: sdk.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}},
	}}}
	for i := 0; len(p.Messages) < n; i++ {
		id := fmt.Sprintf("call_%d", i)
		p.Messages = append(p.Messages, sdk.NewUserMessage(sdk.NewTextBlock(fixture.Words)),
			sdk.NewAssistantMessage(sdk.NewTextBlock(fixture.Words), sdk.NewToolUseBlock(id, json.RawMessage(fixture.Input), "get_weather")),
			sdk.NewUserMessage(sdk.NewToolResultBlock(id, fixture.Words, false)), sdk.NewAssistantMessage(sdk.NewTextBlock(fixture.Words)))
	}
	p.Messages = append(p.Messages, sdk.NewUserMessage(sdk.NewTextBlock("And now?")))
	return p
}

var plain = &Options{Options: api.Options{MaxTokens: 1000}}

// BenchmarkRequest makes requests, beside the SDK's own marshalling.
func BenchmarkRequest(b *testing.B) {
	fixture.BenchRequests(b, func(req api.Request) error {
		_, _, err := Body(req, "claude-x", plain)
		return err
	}, func(req api.Request) error {
		made := newBuilder(plain, req, "claude-x")
		_, err := made.body(req)
		return err
	}, func(n int) func() error {
		p := theirs(n)
		return func() error {
			_, err := json.Marshal(p)
			return err
		}
	})
}

// BenchmarkRoundTrip asks a local server, with the provider and with the SDK alone.
func BenchmarkRoundTrip(b *testing.B) {
	server := httptest.NewServer(fixture.Sink(`{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"Hello."}],` +
		`"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`))
	b.Cleanup(server.Close)
	local := []option.RequestOption{option.WithoutEnvironmentDefaults(), option.WithAPIKey("none"), option.WithBaseURL(server.URL), option.WithHTTPClient(server.Client())}
	ours := api.NewClient(New("claude-x", &Options{Options: plain.Options, NoStream: true, SDK: local}), nil)
	client := sdk.NewClient(append(local, option.WithMaxRetries(0))...)
	fixture.BenchRoundTrips(b, ours, func(n int) func() error {
		p := theirs(n)
		return func() error {
			_, err := client.Messages.New(b.Context(), p, option.WithRequestTimeout(time.Minute))
			return err
		}
	})
}

func TestBothMakeTheSameRequest(t *testing.T) {
	want, err := json.Marshal(theirs(8))
	require.NoError(t, err)
	got, notes, err := Body(fixture.Conversation(8), "claude-x", plain)
	require.NoError(t, err)
	require.Empty(t, notes)
	providertest.RequireSame(t, providertest.NormalAnthropic(t, string(want)), providertest.NormalAnthropic(t, string(got)))
}
