package gemini

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

func TestProviderKeepsTheRules(t *testing.T) {
	for name, o := range map[string]Options{"streamed": {}, "whole": {NoStream: true}} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T, s conformance.Scenario) api.Provider {
				if s == conformance.Breaks && o.NoStream {
					return nil // an answer that comes whole cannot break off in its middle
				}
				sent := &conformance.Recorder{Next: scenario(s)}
				server := httptest.NewServer(sent)
				t.Cleanup(server.Close)
				options := o
				options.SDK = localSDK(server.URL, server.Client())
				return sent.Of(New("gemini-3-test", &options))
			})
		})
	}
}

// localSDK lets the SDK talk to a server of the test.
func localSDK(url string, client *http.Client) *genai.ClientConfig {
	return &genai.ClientConfig{
		APIKey: "test-key", Backend: genai.BackendGeminiAPI, HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	}
}

// scenario is a strict fake of the API that behaves as s says.
func scenario(s conformance.Scenario) http.Handler {
	hello := fake.GeminiContent(content.Text{Text: "Hello there."})
	var answers []fake.Reply
	switch s {
	case conformance.Hangs:
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			r.Body.Close() // only then is it seen that the client is gone
			<-r.Context().Done()
		})
	case conformance.Calls:
		hello = fake.GeminiContent(content.Text{Text: "Let me see."}, content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":"Tokyo"}`})
	case conformance.FailsOnce:
		answers = append(answers, fake.GeminiFailure(503, "UNAVAILABLE", "The model is overloaded."))
	case conformance.Breaks:
		hello.Cut = true
	}
	for range 40 {
		answers = append(answers, hello)
	}
	return fake.Gemini(answers...)
}
