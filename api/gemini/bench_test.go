package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/testkit/fixture"
)

// theirs is fixture.Conversation(n) for the SDK.
func theirs(n int) ([]*genai.Content, *genai.GenerateContentConfig) {
	said := func(role string, parts ...*genai.Part) *genai.Content {
		return &genai.Content{Role: role, Parts: parts}
	}
	words := genai.NewPartFromText(fixture.Words)
	var contents []*genai.Content
	for i := 0; len(contents) < n; i++ {
		id := fmt.Sprintf("call_%d", i)
		var args map[string]any
		if err := json.Unmarshal([]byte(fixture.Input), &args); err != nil {
			panic(err)
		}
		contents = append(contents, said("user", words),
			said("model", words, &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: "get_weather", Args: args}}),
			said("user", &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "get_weather", Response: map[string]any{"output": fixture.Words}}}),
			said("model", words))
	}
	contents = append(contents, said("user", genai.NewPartFromText("And now?")))
	return contents, &genai.GenerateContentConfig{
		SystemInstruction: said("", genai.NewPartFromText("Be brief.")),
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: "get_weather", Description: "Weather.",
			ParametersJsonSchema: map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
		}}}},
	}
}

// BenchmarkRequest makes requests, beside the SDK, which is stopped where it would send its own.
func BenchmarkRequest(b *testing.B) {
	stop := errors.New("stop")
	client, err := genai.NewClient(b.Context(), localSDK("http://localhost", &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		req.Body.Close()
		return nil, stop
	})}))
	require.NoError(b, err)
	fixture.BenchRequests(b, func(req api.Request) error {
		_, _, err := Body(req, "gemini-2.5-flash", nil)
		return err
	}, func(req api.Request) error {
		made := builder{model: "gemini-2.5-flash"}
		_, err := made.body(req)
		return err
	}, func(n int) func() error {
		contents, config := theirs(n)
		return func() error {
			if _, err := client.Models.GenerateContent(b.Context(), "gemini-2.5-flash", contents, config); !errors.Is(err, stop) {
				return fmt.Errorf("the SDK did not come to send its request: %w", err)
			}
			return nil
		}
	})
}

// BenchmarkRoundTrip asks a local server, with the provider and with the SDK alone.
func BenchmarkRoundTrip(b *testing.B) {
	server := httptest.NewServer(fixture.Sink(`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello."}]},"finishReason":"STOP"}]}`))
	b.Cleanup(server.Close)
	sdk := localSDK(server.URL, server.Client())
	client, err := genai.NewClient(b.Context(), sdk)
	require.NoError(b, err)
	ours := api.NewClient(New("gemini-2.5-flash", &Options{NoStream: true, SDK: sdk}), nil)
	fixture.BenchRoundTrips(b, ours, func(n int) func() error {
		contents, config := theirs(n)
		return func() error {
			_, err := client.Models.GenerateContent(b.Context(), "gemini-2.5-flash", contents, config)
			return err
		}
	})
}
