package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/servers"
)

func TestChatKeepsTheRules(t *testing.T) {
	kinds := map[string]Options{"streamed": {}, "whole": {NoStream: true}}
	for _, name := range servers.Names() {
		kinds["at "+name] = Options{Server: compatible.Server(name)}
	}
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T, s conformance.Scenario) api.Provider {
				if s == conformance.Breaks && o.NoStream {
					return nil // an answer that comes whole cannot break off in its middle
				}
				next := chatScenario(s)
				if o.Server != "" {
					next = without(next, "thinking", "reasoning")
				}
				sent := &conformance.Recorder{Next: next}
				server := httptest.NewServer(sent)
				t.Cleanup(server.Close)
				o.SDK = localSDK(server)
				return sent.Of(NewChat("gpt-test", &o))
			})
		})
	}
}

// without removes the members of requests that compatible servers have and OpenAI does not.
func without(next http.Handler, names ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]json.RawMessage
		if json.NewDecoder(r.Body).Decode(&body) == nil {
			for _, name := range names {
				delete(body, name)
			}
			if text, err := json.Marshal(body); err == nil {
				r.Body = io.NopCloser(bytes.NewReader(text))
			}
		}
		next.ServeHTTP(w, r)
	})
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
