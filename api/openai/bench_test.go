package openai

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/testkit/fixture"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/stretchr/testify/require"
)

// theirChat is fixture.Conversation(n) for the SDK.
func theirChat(n int) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{Model: "gpt-x", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage("Be brief.")}}
	p.Tools = []sdk.ChatCompletionToolUnionParam{sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "get_weather", Description: sdk.String("Weather."), Parameters: weatherSchema(),
	})}
	for i := 0; len(p.Messages) <= n; i++ {
		id := fmt.Sprintf("call_%d", i)
		calls := sdk.AssistantMessage(fixture.Words)
		calls.OfAssistant.ToolCalls = []sdk.ChatCompletionMessageToolCallUnionParam{{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
			ID: id, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "get_weather", Arguments: fixture.Input},
		}}}
		p.Messages = append(p.Messages, sdk.UserMessage(fixture.Words), calls, sdk.ToolMessage(fixture.Words, id), sdk.AssistantMessage(fixture.Words))
	}
	p.Messages = append(p.Messages, sdk.UserMessage("And now?"))
	return p
}

// theirResponses is fixture.Conversation(n) for the SDK.
func theirResponses(n int) responses.ResponseNewParams {
	said := func(role responses.EasyInputMessageRole, words string) responses.ResponseInputItemUnionParam {
		return responses.ResponseInputItemParamOfMessage(words, role)
	}
	var items responses.ResponseInputParam
	for i, messages := 0, 0; messages < n; i, messages = i+1, messages+4 {
		id := fmt.Sprintf("call_%d", i)
		items = append(items, said("user", fixture.Words), said("assistant", fixture.Words),
			responses.ResponseInputItemParamOfFunctionCall(fixture.Input, id, "get_weather"),
			responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
				CallID: sdk.String(id), Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: sdk.String(fixture.Words)},
			}}, said("assistant", fixture.Words))
	}
	items = append(items, said("user", "And now?"))
	return responses.ResponseNewParams{
		Model: "gpt-x", Instructions: sdk.String("Be brief."), Store: sdk.Bool(false),
		Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		Input:   responses.ResponseNewParamsInputUnion{OfInputItemList: items},
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
			Name: "get_weather", Description: sdk.String("Weather."), Parameters: weatherSchema(), Strict: sdk.Bool(false),
		}}},
	}
}

func weatherSchema() map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}
}

func marshals[P any](params func(int) P) func(int) func() error {
	return func(n int) func() error {
		p := params(n)
		return func() error {
			_, err := json.Marshal(p)
			return err
		}
	}
}

// BenchmarkChatRequest makes requests, beside the SDK's own marshalling.
func BenchmarkChatRequest(b *testing.B) {
	fixture.BenchRequests(b, func(req api.Request) error {
		_, _, err := ChatBody(req, "gpt-x", nil)
		return err
	}, func(req api.Request) error {
		_, err := chatCall(req, "gpt-x", nil, server{})
		return err
	}, marshals(theirChat))
}

// BenchmarkResponsesRequest makes requests, beside the SDK's own marshalling.
func BenchmarkResponsesRequest(b *testing.B) {
	fixture.BenchRequests(b, func(req api.Request) error {
		_, _, err := ResponsesBody(req, "gpt-x", nil)
		return err
	}, func(req api.Request) error {
		_, err := responsesCall(req, "gpt-x", nil, server{})
		return err
	}, marshals(theirResponses))
}

// BenchmarkChatRoundTrip asks a local server, with the provider and with the SDK alone.
func BenchmarkChatRoundTrip(b *testing.B) {
	local := sink(b, `{"id":"c","object":"chat.completion","model":"gpt-x","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hello."}}]}`)
	client := sdk.NewClient(local...)
	fixture.BenchRoundTrips(b, api.NewClient(NewChat("gpt-x", &Options{NoStream: true, SDK: local}), nil), func(n int) func() error {
		p := theirChat(n)
		return func() error {
			_, err := client.Chat.Completions.New(b.Context(), p)
			return err
		}
	})
}

// BenchmarkResponsesRoundTrip asks a local server, with the provider and with the SDK alone.
func BenchmarkResponsesRoundTrip(b *testing.B) {
	local := sink(b, `{"id":"r","object":"response","status":"completed","model":"gpt-x","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello.","annotations":[]}]}]}`)
	client := sdk.NewClient(local...)
	fixture.BenchRoundTrips(b, api.NewClient(NewResponses("gpt-x", &Options{NoStream: true, SDK: local}), nil), func(n int) func() error {
		p := theirResponses(n)
		return func() error {
			_, err := client.Responses.New(b.Context(), p)
			return err
		}
	})
}

func sink(b *testing.B, answer string) []option.RequestOption {
	server := httptest.NewServer(fixture.Sink(answer))
	b.Cleanup(server.Close)
	return []option.RequestOption{option.WithAPIKey("none"), option.WithBaseURL(server.URL + "/v1"), option.WithHTTPClient(server.Client()), option.WithMaxRetries(0)}
}

func TestBothMakeTheSameChatRequest(t *testing.T) {
	want, err := json.Marshal(theirChat(8))
	require.NoError(t, err)
	got, notes, err := ChatBody(fixture.Conversation(8), "gpt-x", &Options{NoStream: true})
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Equal(t, providertest.NormalChat(t, string(want)), providertest.NormalChat(t, string(got)))
}

func TestBothMakeTheSameResponsesRequest(t *testing.T) {
	want, err := json.Marshal(theirResponses(8))
	require.NoError(t, err)
	got, notes, err := ResponsesBody(fixture.Conversation(8), "gpt-x", &Options{NoStream: true})
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Equal(t, providertest.NormalResponses(t, string(want)), providertest.NormalResponses(t, string(got)))
}
