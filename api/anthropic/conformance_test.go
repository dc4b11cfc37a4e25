package anthropic

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/content"
)

func TestProviderKeepsTheRules(t *testing.T) {
	for name, o := range map[string]Options{
		"streamed": {}, "whole": {NoStream: true}, "at llama.cpp": {Server: compatible.LlamaCPP}, "at Ollama": {Server: compatible.Ollama},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T, s conformance.Scenario) api.Provider {
				if s == conformance.Breaks && o.NoStream {
					return nil // an answer that comes whole cannot break off in its middle
				}
				sent := &conformance.Recorder{Next: scenario(s)}
				return sent.Of(New("claude-test", providerOptions(t, o, sent)))
			})
		})
	}
}

func providerOptions(t *testing.T, o Options, h http.Handler) *Options {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o.SDK = []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(server.URL), option.WithAPIKey("none"), option.WithHTTPClient(server.Client()),
	}
	return &o
}

// scenario is a strict fake of the API that behaves as s says.
func scenario(s conformance.Scenario) http.Handler {
	hello := fake.AnthropicMessage(content.Text{Text: "Hello there."})
	var answers []fake.Reply
	switch s {
	case conformance.Hangs:
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			r.Body.Close() // only then is it seen that the client is gone
			<-r.Context().Done()
		})
	case conformance.Calls:
		hello = fake.AnthropicMessage(content.Text{Text: "Let me see."}, content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":"Tokyo"}`})
	case conformance.FailsOnce:
		answers = append(answers, fake.AnthropicFailure(529, "overloaded_error", "Overloaded"))
	case conformance.Breaks:
		hello.Cut = true
	}
	for range 40 {
		answers = append(answers, hello)
	}
	return fake.Anthropic(answers...)
}
