package openai

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

func TestChatKeepsTheRules(t *testing.T) {
	for name, o := range map[string]Options{"streamed": {}, "whole": {NoStream: true}} {
		t.Run(name, func(t *testing.T) {
			apitest.Run(t, func(t *testing.T, s apitest.Scenario) api.Provider {
				if s == apitest.Breaks && o.NoStream {
					return nil // an answer that comes whole cannot break off in its middle
				}
				sent := &apitest.Recorder{Next: chatScenario(s)}
				server := httptest.NewServer(sent)
				t.Cleanup(server.Close)
				o.SDK = localSDK(server)
				return sent.Of(NewChat("gpt-test", &o))
			})
		})
	}
}

// chatScenario is a strict fake of the API that behaves as s says.
func chatScenario(s apitest.Scenario) http.Handler {
	said := fake.OpenAIChatMessage(content.Text{Text: "Hello there."})
	var replies []fake.Reply
	switch s {
	case apitest.Hangs:
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			r.Body.Close() // only then is it seen that the client is gone
			<-r.Context().Done()
		})
	case apitest.Calls:
		said = fake.OpenAIChatMessage(content.Text{Text: "Let me see."}, content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":"Tokyo"}`})
	case apitest.FailsOnce:
		replies = append(replies, fake.OpenAIFailure(503, "server_error", "", "Overloaded"))
	case apitest.Breaks:
		said.Cut = true
	}
	for range 40 {
		replies = append(replies, said)
	}
	return fake.OpenAIChat(replies...)
}
