package openai

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/stretchr/testify/require"
)

// failing answers every request with the same, and counts them.
func failing(t *testing.T, status int, header map[string]string, body string) (*httptest.Server, *int) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server, &asked
}

// sendChat makes one request of a server, without retries.
func sendChat(server *httptest.Server, o Options) (api.Response, error) {
	o.SDK = append(localSDK(server), o.SDK...)
	return api.NewClient(NewChat("gpt", &o), &api.ClientOptions{Attempts: 1}).Send(context.Background(), hello())
}

func TestErrorsHaveTheirKind(t *testing.T) {
	openAI := func(kind, code, message string) string {
		return `{"error":{"message":"` + message + `","type":"` + kind + `","param":null,"code":` + code + `}}`
	}
	for _, c := range []struct {
		status int
		body   string
		want   error
		kind   string // api.Error.Type
	}{
		{400, openAI("invalid_request_error", "null", "Missing required parameter"), api.ErrInvalidRequest, "invalid_request_error"},
		{400, openAI("invalid_request_error", `"context_length_exceeded"`, "too long"), api.ErrContextTooLong, "context_length_exceeded"},
		{400, openAI("invalid_request_error", "null", "This model's maximum context length is 8192 tokens."), api.ErrContextTooLong, "invalid_request_error"},
		{400, `{"object":"error","message":"This model's maximum context length is 10 tokens","type":"BadRequestError","param":null,"code":400}`, api.ErrContextTooLong, "BadRequestError"},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, api.ErrContextTooLong, "exceed_context_size_error"},
		{400, openAI("invalid_request_error", `"content_policy_violation"`, "no"), api.ErrFiltered, "content_policy_violation"},
		{400, `{"error":{"message":"The response was filtered","type":null,"code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, api.ErrFiltered, "content_filter"},
		{401, openAI("invalid_request_error", `"invalid_api_key"`, "Incorrect API key"), api.ErrAuth, "invalid_api_key"},
		{401, `{"detail":"Unauthorized"}`, api.ErrAuth, ""},
		{402, `{"error":"no credit"}`, api.ErrQuota, ""},
		{403, openAI("invalid_request_error", "null", "You are not allowed to sample from this model"), api.ErrAuth, "invalid_request_error"},
		{404, openAI("invalid_request_error", `"model_not_found"`, "no such model"), api.ErrNotFound, "model_not_found"},
		{404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment does not exist"}}`, api.ErrNotFound, "DeploymentNotFound"},
		{409, openAI("x", "null", "again"), api.ErrServer, "x"},
		{413, "<html>too large</html>", api.ErrContextTooLong, ""},
		{422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, api.ErrInvalidRequest, ""},
		{429, openAI("tokens", `"rate_limit_exceeded"`, "slow down"), api.ErrRateLimited, "rate_limit_exceeded"},
		{429, openAI("insufficient_quota", `"insufficient_quota"`, "You exceeded your current quota"), api.ErrQuota, "insufficient_quota"},
		{429, `[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]`, api.ErrRateLimited, "RESOURCE_EXHAUSTED"},
		{429, "", api.ErrRateLimited, ""},
		{500, openAI("server_error", "null", "The server had an error"), api.ErrServer, "server_error"},
		{502, "<html>bad gateway</html>", api.ErrServer, ""},
		{503, openAI("server_error", "null", "The engine is currently overloaded"), api.ErrOverloaded, "server_error"},
		{504, "", api.ErrServer, ""},
		{529, "", api.ErrOverloaded, ""},
	} {
		server, asked := failing(t, c.status, map[string]string{"x-request-id": "req_1"}, c.body)
		_, err := sendChat(server, Options{})
		require.ErrorIs(t, err, c.want, c.body)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.status, e.Status)
		require.Equal(t, "req_1", e.RequestID)
		require.Equal(t, c.body, e.Body)
		require.Equal(t, c.kind, e.Type, c.body)
		require.Equal(t, 1, *asked, "the SDK's own retries are off")
	}
}

func TestAnErrorInsideAnAnswerIsTyped(t *testing.T) {
	for body, want := range map[string]error{
		`{"error":{"message":"so it is","type":"server_error","param":null,"code":null}}`:                  api.ErrServer,
		`{"error":{"message":"so it is","type":"insufficient_quota","code":"insufficient_quota"}}`:         api.ErrQuota,
		`{"error":{"message":"so it is","type":"invalid_request_error","code":"context_length_exceeded"}}`: api.ErrContextTooLong,
		`{"error":{"message":"so it is","type":"invalid_request_error","code":null}}`:                      api.ErrInvalidRequest,
		`{"type":"error","code":"rate_limit_exceeded","message":"so it is","param":null}`:                  api.ErrRateLimited,
		`{"type":"error","error":{"type":"overloaded_error","message":"so it is"}}`:                        api.ErrOverloaded,
		`{"object":"error","message":"so it is","type":"BadRequestError","param":null,"code":400}`:         api.ErrInvalidRequest,
		`{"error":"so it is"}`: api.ErrServer,
		`{"id":"x","choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"so it is"}}`:   api.ErrServer,
		`{"id":"x","choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"429","message":"so it is"}}`: api.ErrRateLimited,
		`{"error":{"code":503,"message":"so it is","status":"UNAVAILABLE"}}`:                                                  api.ErrOverloaded,
		`[{"error":{"code":429,"message":"so it is"}}]`:                                                                       api.ErrRateLimited,
	} {
		_, streamed := foldChat("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\nevent: error\ndata: " + body + "\n\ndata: [DONE]\n\n")
		_, whole := askChat(t, providertest.Answered(body))
		for _, err := range []error{streamed, whole} {
			require.ErrorIs(t, err, want, body)
			var e *api.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, http.StatusOK, e.Status)
			require.Equal(t, "so it is", e.Message)
		}
	}
}

func TestRetryAfterIsReadFromRateLimitHeaders(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{map[string]string{"Retry-After": "3"}, 3 * time.Second},
		{map[string]string{"Retry-After-Ms": "250", "X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "1m"}, 250 * time.Millisecond},
		{map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "6m0s"}, 6 * time.Minute},
		{map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "20ms"}, 20 * time.Millisecond},
		{map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "1d2h"}, 26 * time.Hour},
		{map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "1d2562047h47m"}, math.MaxInt64},
		{map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "1.5"}, 1500 * time.Millisecond},
		{map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "-5s"}, 0},
		{map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "soon"}, 0},
		{map[string]string{"X-Ratelimit-Remaining-Tokens": "9", "X-Ratelimit-Reset-Tokens": "1m"}, 0},
	} {
		header := http.Header{}
		for name, value := range c.header {
			header.Set(name, value)
		}
		require.Equal(t, c.want, retryAfter(header, now), c.header)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// through lets the SDK talk to f instead of a server.
func through(f roundTrip) []option.RequestOption {
	return []option.RequestOption{
		option.WithBaseURL("http://127.0.0.1:1/v1"), option.WithAPIKey("test-key"), option.WithHTTPClient(&http.Client{Transport: f}),
	}
}

// TestClientWaitsAsLongAsTheServerDemands retries through 429, 503 and 500, on a clock that does not take time.
func TestClientWaitsAsLongAsTheServerDemands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []struct {
			status int
			after  string
		}{{429, "7"}, {503, "2"}, {500, "1"}, {200, ""}}
		asked := 0
		model := NewChat("gpt", &Options{SDK: through(func(r *http.Request) (*http.Response, error) {
			a := answers[asked]
			asked++
			rec := httptest.NewRecorder()
			rec.Header().Set("Retry-After", a.after)
			rec.Header().Set("Content-Type", "text/event-stream")
			rec.WriteHeader(a.status)
			if a.status == 200 {
				io.WriteString(rec, longChat)
			}
			res := rec.Result()
			res.Request = r
			return res, nil
		})})
		begin := time.Now()
		answer, err := api.NewClient(model, nil).Send(t.Context(), hello())
		require.NoError(t, err)
		require.Equal(t, 6, answer.Blocks.Len())
		require.Equal(t, 10*time.Second, time.Since(begin))
	})
}

// TestAStallIsAnError lets a server fall silent before and in the middle of its answer, on a clock that does not take time.
func TestAStallIsAnError(t *testing.T) {
	for _, begun := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			model := NewChat("gpt", &Options{Options: api.Options{Idle: time.Minute}, SDK: through(func(r *http.Request) (*http.Response, error) {
				if !begun {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				body := io.MultiReader(strings.NewReader(longChat[:600]), &waiting{r.Context()})
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body), Request: r}, nil
			})})
			begin := time.Now()
			_, err := foldEvents(model.Stream(t.Context(), hello()))
			require.ErrorIs(t, err, api.ErrStalled)
			require.True(t, api.Retryable(err))
			require.Equal(t, time.Minute, time.Since(begin))
		})
	}
}

// waiting is a body that says nothing until its request ends.
type waiting struct{ ctx context.Context }

func (w *waiting) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

func TestResponseInAnotherFormIsAnError(t *testing.T) {
	for _, body := range []string{"", "{", "[]", "{}", `{"choices":[]}`, `{"choices":[{"message":7}]}`, `{"choices":{}}`, "<html>a proxy</html>"} {
		server, _ := failing(t, 200, map[string]string{"Content-Type": "application/json"}, body)
		_, err := sendChat(server, Options{NoStream: true})
		require.ErrorIs(t, err, api.ErrProtocol, body)
	}
	server, _ := failing(t, 200, map[string]string{"Content-Type": "text/html"}, "<html>a proxy</html>")
	_, err := sendChat(server, Options{})
	require.ErrorIs(t, err, api.ErrProtocol)
	server, _ = failing(t, 200, map[string]string{"Content-Type": "application/json", "Content-Length": "1000"}, `{"choices":`)
	_, err = sendChat(server, Options{NoStream: true})
	require.ErrorIs(t, err, api.ErrCut)
}

func TestEndlessResponseIsAnErrorWithoutRetry(t *testing.T) {
	for kind, noStream := range map[string]bool{"streamed": false, "whole": true} {
		endless := through(func(r *http.Request) (*http.Response, error) {
			body := &repeating{text: "data: {\"choices\":[]}\n\n" + strings.Repeat(":", 1<<20) + "\n"}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.LimitReader(body, 300<<20)), Request: r}, nil
		})
		_, err := foldEvents(NewChat("gpt", &Options{NoStream: noStream, SDK: endless}).Stream(t.Context(), hello()))
		require.ErrorIs(t, err, api.ErrProtocol, kind)
		require.ErrorIs(t, err, wire.ErrTooLong, kind)
		require.False(t, api.Retryable(err), kind)
	}
	line := &http.Response{Header: http.Header{}, Body: io.NopCloser(io.LimitReader(&repeating{text: "data: " + strings.Repeat("x", 1<<20)}, 40<<20))}
	_, err := foldEvents(streamedChat(line, call{}))
	require.ErrorIs(t, err, api.ErrProtocol, "a line of 40 MB")
}

// repeating is its text, again and again.
type repeating struct {
	text string
	at   int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func TestAnErrorWithoutEndIsCut(t *testing.T) {
	_, err := api.NewClient(NewChat("gpt", &Options{SDK: through(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(&repeating{text: "no "}), Request: r}, nil
	})}), nil).Send(t.Context(), hello())
	var e *api.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, api.ErrInvalidRequest)
	require.Len(t, e.Body, wire.MaxError)
}

func TestACutConnectionIsCut(t *testing.T) {
	for _, at := range []int{1, 100, 700, strings.Index(longChat, `"finish_reason":"tool_calls"`)} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, longChat[:at])
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		_, err := sendChat(server, Options{})
		server.Close()
		require.ErrorIs(t, err, api.ErrCut)
		require.True(t, api.Retryable(err))
	}
}

func TestNoServerIsATransportError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := sendChat(server, Options{})
	require.ErrorIs(t, err, api.ErrTransport)
	require.True(t, api.Retryable(err))
}

func TestTheContextsCauseIsKept(t *testing.T) {
	why := errors.New("the user left")
	for _, begun := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(context.Background())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			readAll(t, r.Body) // only then the server sees the client go
			if begun {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, longChat[:600])
				http.NewResponseController(w).Flush()
			}
			cancel(why)
			<-r.Context().Done()
		}))
		_, err := foldEvents(NewChat("gpt", &Options{SDK: localSDK(server)}).Stream(ctx, hello())) // without a client, which would add the cause itself
		server.Close()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
	}
}

// TestBreakingOffClosesTheResponse waits, in the server, for the client to be gone. That no goroutine is left is checked at the
// end of all tests.
func TestBreakingOffClosesTheResponse(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		readAll(t, r.Body) // only then the server sees the client go
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, longChat[:700])
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	for event, err := range NewChat("gpt", &Options{SDK: localSDK(server)}).Stream(t.Context(), hello()) {
		require.NoError(t, err)
		require.IsType(t, api.Delta{}, event)
		break
	}
	<-gone
}

// TestTheSDKCarriesTheBytesUnchanged looks at what arrives: the very bytes, with their length, in one piece.
func TestTheSDKCarriesTheBytesUnchanged(t *testing.T) {
	req := api.Request{System: []string{"<b> & \u2028"}, Messages: []content.Message{{Role: content.User, Blocks: content.Words("<&> ☃")}}}
	req.Options.Header = http.Header{"X-One": {"a", "b"}, "User-Agent": {"mine"}}
	for _, noStream := range []bool{false, true} {
		var got *http.Request
		var body string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, body = r, readAll(t, r.Body)
			io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
		}))
		o := &Options{NoStream: noStream, SDK: append(localSDK(server), option.WithHeader("X-Two", "c"))}
		o.Header = http.Header{"X-Two": {"d"}}
		_, _ = api.NewClient(NewChat("gpt", o), &api.ClientOptions{Attempts: 1}).Send(t.Context(), req)
		server.Close()
		want, _, err := ChatBody(req, "gpt", o)
		require.NoError(t, err)
		require.Equal(t, string(want), body)
		require.Equal(t, "/v1/chat/completions", got.URL.Path)
		require.EqualValues(t, len(want), got.ContentLength)
		require.Empty(t, got.TransferEncoding)
		require.Equal(t, "Bearer test-key", got.Header.Get("Authorization"))
		require.Equal(t, []string{"a", "b"}, got.Header.Values("X-One"))
		require.Equal(t, []string{"d"}, got.Header.Values("X-Two"))
		require.Equal(t, []string{"mine"}, got.Header.Values("User-Agent"))
		require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	}
}

// TestARedirectSendsTheBodyAgain needs a body that can be read twice.
func TestARedirectSendsTheBodyAgain(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodies = append(bodies, readAll(t, r.Body))
		if len(bodies) == 1 {
			http.Redirect(w, r, "/v1/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, longChat)
	}))
	defer server.Close()
	_, err := sendChat(server, Options{})
	require.NoError(t, err)
	require.Len(t, bodies, 2)
	require.Equal(t, bodies[0], bodies[1])
}

// TestAMiddlewareOfTheUsersSeesAndMayChangeTheBody puts another body in the place of ours, as the SDK's own Azure option does.
func TestAMiddlewareOfTheUsersSeesAndMayChangeTheBody(t *testing.T) {
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body = readAll(t, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, longChat)
	}))
	defer server.Close()
	change := option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		changed := strings.Replace(readAll(t, r.Body), "Hello", "Howdy, friend", 1)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(changed)), int64(len(changed))
		return next(r)
	})
	_, err := sendChat(server, Options{SDK: []option.RequestOption{change}})
	require.NoError(t, err)
	require.Contains(t, body, "Howdy, friend")
}

// TestAzureIsAnOptionOfTheSDK lets a request to Azure run into a transport of ours.
func TestAzureIsAnOptionOfTheSDK(t *testing.T) {
	var got *http.Request
	var body string
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		got, body = r, readAll(t, r.Body)
		return nil, errors.New("no network in tests")
	})
	o := &Options{SDK: []option.RequestOption{
		azure.WithEndpoint("https://plait.openai.azure.com", "2025-04-01-preview"), azure.WithAPIKey("azure-key"),
		option.WithHTTPClient(&http.Client{Transport: transport}),
	}}
	_, err := api.NewClient(NewChat("my-deployment", o), &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello())
	require.ErrorIs(t, err, api.ErrTransport)
	require.Equal(t, "https://plait.openai.azure.com/openai/deployments/my-deployment/chat/completions?api-version=2025-04-01-preview", got.URL.String())
	require.Equal(t, "azure-key", got.Header.Get("Api-Key"))
	want, _, err := ChatBody(hello(), "my-deployment", o)
	require.NoError(t, err)
	require.Equal(t, string(want), body)
	require.EqualValues(t, len(want), got.ContentLength)
}

func TestRequestWithoutMessagesIsAnError(t *testing.T) {
	model := NewChat("gpt", &Options{SDK: through(nil)})
	_, err := api.NewClient(model, nil).Send(t.Context(), api.Request{System: []string{"x"}})
	require.ErrorIs(t, err, api.ErrNothing)
}
