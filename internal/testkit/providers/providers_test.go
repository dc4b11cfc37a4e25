package providers

import (
	"net/http"
	"net/http/httptest"
	"testing"

	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start")) // of a package of Google, from its init on
}

// provider is one of the APIs.
type provider struct {
	name string
	// at is a model of it behind a server.
	at func(server *httptest.Server, o api.Options, noStream bool) api.Provider
	// fake is its strict fake, and says, fails and overloaded are replies of it.
	fake  func(...fake.Reply) *fake.API
	says  func(...content.Block) fake.Reply
	fails func(status int) fake.Reply
	// body and parse are the provider's Body and Import, and items is the member of a body that holds the messages.
	body  func(api.Request) ([]byte, []api.RepairNote, error)
	parse func([]byte) (api.Request, error)
	items string
}

// providers is all of them.
var providers = []provider{
	{
		name: "anthropic",
		at: func(s *httptest.Server, o api.Options, noStream bool) api.Provider {
			return anthropic.New("claude-test", &anthropic.Options{Options: o, NoStream: noStream, SDK: []anthropicopt.RequestOption{
				anthropicopt.WithoutEnvironmentDefaults(), anthropicopt.WithAPIKey("none"), anthropicopt.WithBaseURL(s.URL), anthropicopt.WithHTTPClient(s.Client()),
			}})
		},
		fake: fake.Anthropic, says: fake.AnthropicMessage,
		fails: func(status int) fake.Reply {
			return fake.AnthropicFailure(status, words(status, map[int]string{
				400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error",
			}, "api_error"), "It failed.")
		},
		body: func(req api.Request) ([]byte, []api.RepairNote, error) {
			return anthropic.Body(req, "claude-test", nil)
		},
		parse: func(body []byte) (api.Request, error) {
			req, _, err := anthropic.Import(body)
			return req, err
		},
		items: "messages",
	},
	{
		name: "openai-chat",
		at: func(s *httptest.Server, o api.Options, noStream bool) api.Provider {
			return openai.NewChat("gpt-test", &openai.Options{Options: o, NoStream: noStream, SDK: openAI(s)})
		},
		fake: fake.OpenAIChat, says: fake.OpenAIChatMessage,
		fails: openAIFails,
		body:  func(req api.Request) ([]byte, []api.RepairNote, error) { return openai.ChatBody(req, "gpt-test", nil) },
		parse: func(body []byte) (api.Request, error) {
			req, _, err := openai.ImportChat(body)
			return req, err
		},
		items: "messages",
	},
	{
		name: "openai-responses",
		at: func(s *httptest.Server, o api.Options, noStream bool) api.Provider {
			return openai.NewResponses("gpt-test", &openai.Options{Options: o, NoStream: noStream, SDK: openAI(s)})
		},
		fake: fake.OpenAIResponses, says: fake.OpenAIResponse,
		fails: openAIFails,
		body: func(req api.Request) ([]byte, []api.RepairNote, error) {
			return openai.ResponsesBody(req, "gpt-test", &openai.Options{SDK: []openaiopt.RequestOption{openaiopt.WithBaseURL("http://127.0.0.1/v1")}}) // as at the fake
		},
		parse: func(body []byte) (api.Request, error) {
			req, _, err := openai.ImportResponses(body)
			return req, err
		},
		items: "input",
	},
	{
		name: "gemini",
		at: func(s *httptest.Server, o api.Options, noStream bool) api.Provider {
			return gemini.New("gemini-3-test", &gemini.Options{Options: o, NoStream: noStream, SDK: &genai.ClientConfig{
				APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPClient: s.Client(), HTTPOptions: genai.HTTPOptions{BaseURL: s.URL},
			}})
		},
		fake: fake.Gemini, says: fake.GeminiContent,
		fails: func(status int) fake.Reply {
			return fake.GeminiFailure(status, words(status, map[int]string{
				400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
			}, "INTERNAL"), "It failed.")
		},
		body:  func(req api.Request) ([]byte, []api.RepairNote, error) { return gemini.Body(req, "gemini-3-test", nil) },
		parse: gemini.Import,
		items: "contents",
	},
}

func openAI(s *httptest.Server) []openaiopt.RequestOption {
	return []openaiopt.RequestOption{openaiopt.WithAPIKey("none"), openaiopt.WithBaseURL(s.URL + "/v1"), openaiopt.WithHTTPClient(s.Client())}
}

func openAIFails(status int) fake.Reply {
	return fake.OpenAIFailure(status, words(status, map[int]string{
		400: "invalid_request_error", 401: "invalid_request_error", 403: "invalid_request_error", 404: "invalid_request_error", 429: "requests",
	}, "server_error"), words(status, map[int]string{401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}, ""), "It failed.")
}

// words is the API's word for a status.
func words(status int, known map[int]string, otherwise string) string {
	if word := known[status]; word != "" {
		return word
	}
	return otherwise
}

// each runs a test for every provider, streamed and whole.
func each(t *testing.T, test func(t *testing.T, p provider, noStream bool)) {
	for _, p := range providers {
		for mode, noStream := range map[string]bool{"streamed": false, "whole": true} {
			t.Run(p.name+"/"+mode, func(t *testing.T) { test(t, p, noStream) })
		}
	}
}

// serve is a local server.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// direct is a local server that its client calls without a connection: in rounds by the thousand, connections take most
// of the time.
func direct(t *testing.T, h http.Handler) *httptest.Server {
	s := serve(t, h.ServeHTTP)
	s.Client().Transport = calling(h)
	return s
}

// calling is a network that calls a handler without a connection.
func calling(h http.Handler) transport {
	return func(r *http.Request) (*http.Response, error) {
		whole := httptest.NewRecorder()
		h.ServeHTTP(whole, r)
		res := whole.Result()
		res.Request = r
		return res, r.Body.Close()
	}
}

// answer is what the provider's API says to a greeting: "Hello there.", and a tool call.
func (p provider) answer(t *testing.T, noStream bool) *http.Response {
	model := p.fake(p.says(content.Text{Text: "Hello there."}, content.ToolUse{ID: "call_a", Name: "get_weather", Input: `{"city":"Tokyo"}`}))
	var kept *httptest.ResponseRecorder
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		kept = httptest.NewRecorder()
		model.ServeHTTP(kept, r)
		w.WriteHeader(http.StatusTeapot)
	})
	for range p.at(server, api.Options{}, noStream).Stream(t.Context(), greeting()) {
	}
	require.Empty(t, model.Refused())
	return kept.Result()
}

func greeting() api.Request {
	return api.Request{
		Tools:    []content.Tool{{Name: "get_weather", Description: "The weather.", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`}},
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
	}
}
