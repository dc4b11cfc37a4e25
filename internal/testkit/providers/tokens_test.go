package providers

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
)

// counters makes each provider that counts, for a server at url.
var counters = map[string]struct {
	at      func(url string) api.Provider
	path    string
	members []string // of the body that is counted
	reply   string
}{
	"anthropic": {
		func(url string) api.Provider {
			return anthropic.New("claude-sonnet-4-5", &anthropic.Options{
				SDK: []anthropicoption.RequestOption{anthropicoption.WithAPIKey("key"), anthropicoption.WithBaseURL(url)},
			})
		},
		"/v1/messages/count_tokens", []string{"messages", "model", "system", "tools"}, `{"input_tokens":17}`,
	},
	"openai": {
		func(url string) api.Provider {
			return openai.NewResponses("gpt-5", &openai.Options{
				SDK: []openaioption.RequestOption{openaioption.WithAPIKey("key"), openaioption.WithBaseURL(url + "/v1")},
			})
		},
		"/v1/responses/input_tokens", []string{"input", "instructions", "model", "tools"},
		`{"object":"response.input_tokens","input_tokens":17}`,
	},
	"gemini": {
		func(url string) api.Provider {
			return gemini.New("gemini-2.5-flash", &gemini.Options{
				SDK: &genai.ClientConfig{APIKey: "key", HTTPOptions: genai.HTTPOptions{BaseURL: url}},
			})
		},
		"/v1beta/models/gemini-2.5-flash:countTokens", []string{"generateContentRequest"}, `{"totalTokens":17}`,
	},
}

// question is a request with a part of each kind that is counted, and options that are not.
func question() api.Request {
	return api.Request{
		System:   []string{"Be brief."},
		Tools:    []content.Tool{{Name: "ls", Schema: `{"type":"object"}`}},
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
		Options:  api.Options{MaxTokens: 100},
	}
}

func TestEachAPICountsTheRequestThatWouldBeSent(t *testing.T) {
	for name, c := range counters {
		t.Run(name, func(t *testing.T) {
			var path string
			var body map[string]json.RawMessage
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path = r.URL.Path
				text, err := io.ReadAll(r.Body)
				if err != nil || json.Unmarshal(text, &body) != nil {
					t.Errorf("the body is %s: %v", text, err)
				}
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, c.reply)
			}))
			defer server.Close()

			n, err := api.CountTokens(t.Context(), c.at(server.URL), question())
			require.NoError(t, err)
			require.Equal(t, api.TokenCount{Input: 17}, n)
			require.Equal(t, c.path, path)

			var members []string
			for member := range body {
				members = append(members, member)
			}
			slices.Sort(members)
			require.Equal(t, c.members, members)
			if name == "gemini" {
				var request map[string]json.RawMessage
				require.NoError(t, json.Unmarshal(body["generateContentRequest"], &request))
				require.JSONEq(t, `"models/gemini-2.5-flash"`, string(request["model"]))
				require.Contains(t, request, "contents")
				require.Contains(t, request, "tools")
			}
		})
	}
}

func TestCountsThatCannotBeReadAreErrors(t *testing.T) {
	for name, c := range counters {
		for reply, want := range map[string]error{
			"{": api.ErrProtocol, "{}": api.ErrProtocol, `{"input_tokens":"many","totalTokens":-1}`: api.ErrProtocol,
		} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, reply) }))
			_, err := api.CountTokens(t.Context(), c.at(server.URL), question())
			server.Close()
			require.ErrorIs(t, err, want, "%s: %s", name, reply)
		}

		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
		_, err := api.CountTokens(t.Context(), c.at(server.URL), question())
		require.ErrorIs(t, err, api.ErrAuth, name)
		server.Close()

		server = httptest.NewServer(http.NotFoundHandler())
		n, err := api.CountTokens(t.Context(), c.at(server.URL), question())
		server.Close()
		require.NoError(t, err, name)
		require.True(t, n.Estimated, name)
	}
}

func TestNothingIsCountedForARequestThatCannotBeMade(t *testing.T) {
	for name, c := range counters {
		_, err := api.CountTokens(t.Context(), c.at("http://127.0.0.1:1"), api.Request{})
		require.ErrorIs(t, err, api.ErrNothing, name)
	}
}
