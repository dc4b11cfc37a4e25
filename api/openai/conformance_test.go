package openai

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

func TestChatKeepsTheRules(t *testing.T) {
	for name, o := range map[string]Options{"streamed": {}, "whole": {NoStream: true}} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T, s conformance.Scenario) api.Provider {
				if s == conformance.Breaks && o.NoStream {
					return nil // an answer that comes whole cannot break off in its middle
				}
				sent := &conformance.Recorder{Next: chatScenario(s)}
				server := httptest.NewServer(sent)
				t.Cleanup(server.Close)
				o.SDK = localSDK(server)
				return sent.Of(NewChat("gpt-test", &o))
			})
		})
	}
}

// chatScenario is a strict fake of the API that behaves as s says.
func chatScenario(s conformance.Scenario) http.Handler {
	said := fake.OpenAIChatMessage(content.Text{Text: "Hello there."})
	var replies []fake.Reply
	switch s {
	case conformance.Hangs:
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			r.Body.Close() // only then is it seen that the client is gone
			<-r.Context().Done()
		})
	case conformance.Calls:
		said = fake.OpenAIChatMessage(content.Text{Text: "Let me see."}, content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":"Tokyo"}`})
	case conformance.FailsOnce:
		replies = append(replies, fake.OpenAIFailure(503, "server_error", "", "Overloaded"))
	case conformance.Breaks:
		said.Cut = true
	}
	for range 40 {
		replies = append(replies, said)
	}
	return fake.OpenAIChat(replies...)
}
