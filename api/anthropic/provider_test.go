package anthropic

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/bedrock"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/vertex"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// failing answers every request with one error, and counts them.
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

func TestErrorsHaveTheirKind(t *testing.T) {
	said := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_body"}`
	}
	for _, c := range []struct {
		status int
		body   string
		want   error
	}{
		{400, said("invalid_request_error", "messages: text content blocks must be non-empty"), api.ErrInvalidRequest},
		{400, said("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), api.ErrContextTooLong},
		{400, said("invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2"), api.ErrContextTooLong},
		{400, said("invalid_request_error", "Output blocked by content filtering policy"), api.ErrFiltered},
		{401, said("authentication_error", "invalid x-api-key"), api.ErrAuth},
		{402, said("billing_error", "no credit"), api.ErrQuota},
		{400, said("invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), api.ErrQuota},
		{403, said("permission_error", "no"), api.ErrAuth},
		{404, said("not_found_error", "model: claude-x"), api.ErrNotFound},
		{409, said("conflict_error", "again"), api.ErrServer},
		{413, "<html>too large</html>", api.ErrContextTooLong},
		{429, said("rate_limit_error", "slow down"), api.ErrRateLimited},
		{500, said("api_error", "Internal server error"), api.ErrServer},
		{503, "", api.ErrOverloaded},
		{504, said("timeout_error", "late"), api.ErrServer},
		{529, said("overloaded_error", "Overloaded"), api.ErrOverloaded},
		{500, said("overloaded_error", "Overloaded"), api.ErrOverloaded},
	} {
		server, asked := failing(t, c.status, map[string]string{"request-id": "req_header"}, c.body)
		_, err := send(server, nil)
		require.ErrorIs(t, err, c.want, c.body)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.status, e.Status)
		require.Equal(t, "req_header", e.RequestID)
		require.Equal(t, c.body, e.Body)
		require.Equal(t, 1, *asked, "the SDK's own retries are off")
	}
}

func TestAnErrorInsideAStreamIsTyped(t *testing.T) {
	for kind, want := range map[string]error{
		"overloaded_error": api.ErrOverloaded, "api_error": api.ErrServer, "rate_limit_error": api.ErrRateLimited,
		"invalid_request_error": api.ErrInvalidRequest, "authentication_error": api.ErrAuth, "novel_error": api.ErrServer,
		"throttlingException": api.ErrRateLimited,
	} {
		_, err := fold("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"" + kind + "\",\"message\":\"so it is\"}}\n\n")
		require.ErrorIs(t, err, want)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, http.StatusOK, e.Status)
		require.Equal(t, kind, e.Type)
		require.Equal(t, "so it is", e.Message)
	}
}

func TestRetryAfterIsReadInEveryForm(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After", "Sat, 01 Aug 2026 12:00:07 GMT", 7 * time.Second},
		{"Retry-After", "Sat, 01 Aug 2026 11:00:00 GMT", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "-3", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1e300", 1<<62 - 1},
		{"X", "", 0},
	} {
		require.InDelta(t, c.want, wire.RetryAfter(http.Header{c.name: {c.value}}, now), 1000, c.value)
	}
	both := http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"9"}}
	require.Equal(t, 1500*time.Millisecond, wire.RetryAfter(both, now))
}

// TestClientWaitsAsLongAsTheServerDemands retries through 429, 529 and 500, on a clock that does not take time.
func TestClientWaitsAsLongAsTheServerDemands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []struct {
			status int
			after  string
		}{{429, "7"}, {529, "2"}, {500, "1"}, {200, ""}}
		asked := 0
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			a := answers[asked]
			asked++
			rec := httptest.NewRecorder()
			rec.Header().Set("Retry-After", a.after)
			rec.Header().Set("Content-Type", "text/event-stream")
			rec.WriteHeader(a.status)
			if a.status == 200 {
				io.WriteString(rec, longStream)
			} else {
				io.WriteString(rec, `{"type":"error","error":{"type":"x","message":"y"}}`)
			}
			res := rec.Result()
			res.Request = r
			return res, nil
		})
		model := New("claude", &Options{SDK: localSDK("http://127.0.0.1:1", &http.Client{Transport: transport})})
		begin := time.Now()
		answer, err := api.NewClient(model, nil).Send(t.Context(), hello())
		require.NoError(t, err)
		require.Equal(t, 7, answer.Blocks.Len())
		require.Equal(t, 10*time.Second, time.Since(begin))
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestResponseInAnotherFormIsAnError(t *testing.T) {
	for body, want := range map[string]error{
		"":                      api.ErrProtocol,
		"{":                     api.ErrProtocol,
		"[]":                    api.ErrProtocol,
		`{"type":"completion"}`: api.ErrProtocol,
		`{"type":"message","content":[{"type":"text","text":"a"},7]}`:                 api.ErrProtocol,
		`{"type":"message","content":{}}`:                                             api.ErrProtocol,
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`: api.ErrOverloaded,
		"<html>a proxy</html>":                                                        api.ErrProtocol,
	} {
		server, _ := failing(t, 200, map[string]string{"Content-Type": "application/json"}, body)
		_, err := send(server, &Options{NoStream: true})
		require.ErrorIs(t, err, want, body)
	}
}

func TestAWholeAnswerCutShortIsCut(t *testing.T) {
	server, _ := failing(t, 200, map[string]string{"Content-Type": "application/json", "Content-Length": "1000"}, `{"type":"message"`)
	_, err := send(server, &Options{NoStream: true})
	require.ErrorIs(t, err, api.ErrCut)
}

func TestNoServerIsATransportError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := send(server, nil)
	require.ErrorIs(t, err, api.ErrTransport)
	require.True(t, api.Retryable(err))
}

func TestNoKeyIsAnAuthError(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_BASE_URL"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	t.Setenv("ANTHROPIC_CONFIG_DIR", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	asked := 0
	client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		asked++
		return nil, errors.New("there is no network")
	})}
	model := New("claude", &Options{SDK: []option.RequestOption{option.WithHTTPClient(client)}})
	_, err := api.NewClient(model, nil).Send(t.Context(), hello())
	require.ErrorIs(t, err, api.ErrAuth)
	require.Zero(t, asked)
}

func TestTheContextsCauseIsKept(t *testing.T) {
	why := errors.New("the user left")
	for _, begun := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(context.Background())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			readAll(t, r.Body) // only then the server sees the client go
			if begun {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, longStream[:600])
				http.NewResponseController(w).Flush()
			}
			cancel(why)
			<-r.Context().Done()
		}))
		model := New("claude", &Options{SDK: localSDK(server.URL, server.Client())})
		var err error
		for _, err = range model.Stream(ctx, hello()) { // without a client, which would add the cause itself
		}
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
		io.WriteString(w, longStream[:700])
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	model := New("claude", &Options{SDK: localSDK(server.URL, server.Client())})
	for event, err := range model.Stream(t.Context(), hello()) {
		require.NoError(t, err)
		require.IsType(t, api.Delta{}, event)
		break
	}
	<-gone
}

func TestRequestWithoutMessagesIsAnError(t *testing.T) {
	model := New("claude", &Options{SDK: localSDK("http://127.0.0.1:1", http.DefaultClient)})
	_, err := api.NewClient(model, nil).Send(t.Context(), api.Request{System: []string{"x"}})
	require.ErrorIs(t, err, api.ErrNothing)
}

func TestTheSDKCarriesTheBytesUnchanged(t *testing.T) {
	req := api.Request{System: []string{"<b> & \u2028"}, Messages: []content.Message{{Role: content.User, Blocks: content.Words("<&> ☃")}}}
	for _, noStream := range []bool{false, true} {
		fakeAPI := fake.Anthropic(fake.AnthropicMessage(content.Text{Text: "ok"}))
		var header http.Header
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header = r.Header.Clone()
			fakeAPI.ServeHTTP(w, r)
		}))
		o := &Options{NoStream: noStream, Options: api.Options{Header: http.Header{"Anthropic-Beta": {"one-2026-01-01", "two-2026-01-01"}}}, SDK: localSDK(server.URL, server.Client())}
		answer, err := api.NewClient(New("claude", o), nil).Send(t.Context(), req)
		server.Close()
		require.NoError(t, err)
		require.Equal(t, "ok", answer.Blocks.Text())
		want, _, err := Body(req, "claude", o)
		require.NoError(t, err)
		require.Equal(t, string(want), string(fakeAPI.Bodies()[0]))
		require.Equal(t, []string{"one-2026-01-01", "two-2026-01-01"}, header.Values("anthropic-beta"))
		require.Equal(t, "test-key", header.Get("x-api-key"))
	}
}

// TestBedrockAndVertexAreOptionsOfTheSDK constructs both, and lets Bedrock's request run into a transport of ours.
func TestBedrockAndVertexAreOptionsOfTheSDK(t *testing.T) {
	var path string
	var body string
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		path, body = r.URL.Path, readAll(t, r.Body)
		return nil, errors.New("no network in tests")
	})
	config := aws.Config{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
	})}
	model := New("anthropic.claude-x", &Options{SDK: []option.RequestOption{
		bedrock.WithConfig(config), option.WithHTTPClient(&http.Client{Transport: transport}),
	}})
	_, err := api.NewClient(model, &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello())
	require.ErrorIs(t, err, api.ErrTransport)
	require.Equal(t, "/model/anthropic.claude-x/invoke-with-response-stream", path)
	require.Contains(t, body, `"anthropic_version"`)

	credentials := &google.Credentials{TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token"})}
	require.NotNil(t, New("claude-x", &Options{SDK: []option.RequestOption{
		vertex.WithCredentials(t.Context(), "europe-west1", "project", credentials),
	}}))
}

// TestABodyIsSentInOneGo makes sure that a body in pieces has a length, as some proxies want it.
func TestABodyIsSentInOneGo(t *testing.T) {
	fakeAPI := fake.Anthropic(fake.AnthropicMessage(said("Hello.")))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength <= 0 || len(r.TransferEncoding) > 0 {
			t.Errorf("a length of %d, and an encoding of %v", r.ContentLength, r.TransferEncoding)
		}
		fakeAPI.ServeHTTP(w, r)
	}))
	defer server.Close()
	_, err := send(server, nil)
	require.NoError(t, err)
}

func TestHeaderReplacesTheOneOfTheSDK(t *testing.T) {
	var came http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came = r.Header }))
	defer server.Close()
	o := &Options{Options: api.Options{Header: http.Header{
		"content-type": {"application/json; charset=utf-8"}, "Accept": {"*/*"}, "Anthropic-Version": {"2026-01-01"}, "X-Api-Key": {"another"},
	}}}
	_, err := send(server, o)
	require.Error(t, err, "it answers nothing")
	for name, values := range o.Header {
		require.Equal(t, values, came.Values(name))
	}
}
