package openai

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/testkit/fixture"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/stretchr/testify/require"
)

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
				CallID: param.NewOpt(id), Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: param.NewOpt(fixture.Words)},
			}}, said("assistant", fixture.Words))
	}
	items = append(items, said("user", "And now?"))
	return responses.ResponseNewParams{
		Model: "gpt-x", Instructions: param.NewOpt("Be brief."), Store: param.NewOpt(false),
		Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		Input:   responses.ResponseNewParamsInputUnion{OfInputItemList: items},
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
			Name: "get_weather", Description: param.NewOpt("Weather."), Parameters: weatherSchema(), Strict: param.NewOpt(false),
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

// BenchmarkChatRequest makes requests, beside encoding/json's marshalling of the same body as maps and slices.
func BenchmarkChatRequest(b *testing.B) {
	fixture.BenchRequests(b, func(req api.Request) error {
		_, _, err := ChatBody(req, "gpt-x", nil)
		return err
	}, func(req api.Request) error {
		_, err := chatCall(req, "gpt-x", nil, server{})
		return err
	}, func(n int) func() error {
		body, _, err := ChatBody(fixture.Conversation(n), "gpt-x", nil)
		require.NoError(b, err)
		var decoded any
		require.NoError(b, json.Unmarshal(body, &decoded))
		return func() error {
			_, err := json.Marshal(decoded)
			return err
		}
	})
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

// BenchmarkResponsesRoundTrip asks a local server, with the provider and with the SDK alone.
func BenchmarkResponsesRoundTrip(b *testing.B) {
	local := sink(b, `{"id":"r","object":"response","status":"completed","model":"gpt-x","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello.","annotations":[]}]}]}`)
	service := responses.NewResponseService(local...)
	fixture.BenchRoundTrips(b, api.NewClient(NewResponses("gpt-x", &Options{NoStream: true, SDK: local}), nil), func(n int) func() error {
		p := theirResponses(n)
		return func() error {
			_, err := service.New(b.Context(), p)
			return err
		}
	})
}

func sink(b *testing.B, answer string) []option.RequestOption {
	server := httptest.NewServer(fixture.Sink(answer))
	b.Cleanup(server.Close)
	return []option.RequestOption{option.WithAPIKey("none"), option.WithBaseURL(server.URL + "/v1"), option.WithHTTPClient(server.Client()), option.WithMaxRetries(0)}
}

func TestBothMakeTheSameResponsesRequest(t *testing.T) {
	want, err := json.Marshal(theirResponses(8))
	require.NoError(t, err)
	got, notes, err := ResponsesBody(fixture.Conversation(8), "gpt-x", &Options{NoStream: true})
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Equal(t, providertest.NormalResponses(t, string(want)), providertest.NormalResponses(t, string(got)))
}
