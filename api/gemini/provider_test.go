package gemini

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/auth"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
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
		return `{"error":{"code":1,"status":"` + kind + `","message":"` + message + `"}}`
	}
	for _, c := range []struct {
		status int
		body   string
		want   error
	}{
		{400, said("INVALID_ARGUMENT", "contents is not specified"), api.ErrInvalidRequest},
		{400, said("INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), api.ErrContextTooLong},
		{400, said("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), api.ErrAuth},
		{400, said("INVALID_ARGUMENT", "The request violates our Responsible AI practices."), api.ErrFiltered},
		{400, said("FAILED_PRECONDITION", "User location is not supported for the API use."), api.ErrInvalidRequest},
		{429, said("RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."), api.ErrQuota},
		{401, said("UNAUTHENTICATED", "no"), api.ErrAuth},
		{403, said("PERMISSION_DENIED", "no"), api.ErrAuth},
		{404, said("NOT_FOUND", "models/x is not found"), api.ErrNotFound},
		{429, said("RESOURCE_EXHAUSTED", "Resource exhausted."), api.ErrRateLimited},
		{499, said("CANCELLED", "late"), api.ErrServer},
		{500, said("INTERNAL", "Internal error"), api.ErrServer},
		{503, said("UNAVAILABLE", "The model is overloaded."), api.ErrOverloaded},
		{504, said("DEADLINE_EXCEEDED", "late"), api.ErrServer},
		{403, "<html>a proxy</html>", api.ErrAuth}, {404, "", api.ErrNotFound}, {413, "<html>too large</html>", api.ErrContextTooLong},
		{429, "", api.ErrRateLimited}, {502, "bad gateway", api.ErrServer}, {503, "", api.ErrOverloaded}, {418, "", api.ErrInvalidRequest},
		{429, "[" + said("RESOURCE_EXHAUSTED", "slow down") + "]", api.ErrRateLimited},
	} {
		for _, noStream := range []bool{false, true} {
			server, asked := failing(t, c.status, nil, c.body)
			_, err := send(server, &Options{NoStream: noStream})
			require.ErrorIs(t, err, c.want, c.body)
			var e *api.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.status, e.Status)
			require.Equal(t, c.body, e.Body)
			require.Equal(t, strings.Contains(c.body, `"status"`), e.Type != "" && e.Message != "", c.body)
			require.Equal(t, 1, *asked, "the SDK's own retries are off")
		}
	}
}

func TestAnErrorInsideAStreamIsTyped(t *testing.T) {
	const failure = `{"error":{"code":503,"status":"UNAVAILABLE","message":"so it is"}}`
	for name, stream := range map[string]string{
		"an event":         "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\ndata: " + failure + "\n\n",
		"a list":           "data: [" + failure + "]\n\n",
		"bare":             "data: {\"candidates\":[]}\n\n" + failure,
		"bare, over lines": "{\n  \"error\": {\n    \"code\": 503,\n    \"status\": \"UNAVAILABLE\",\n    \"message\": \"so it is\"\n  }\n}\n",
	} {
		_, err := fold(stream)
		require.ErrorIs(t, err, api.ErrOverloaded, name)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, http.StatusOK, e.Status)
		require.Equal(t, "so it is", e.Message, name)
	}
}

func TestHowLongToWait(t *testing.T) {
	e := newError(429, http.Header{"Retry-After": {"3"}}, []byte(`{"error":{"status":"RESOURCE_EXHAUSTED","details":[7,`+
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"27.5s"},{"@type":"type.googleapis.com/google.rpc.RequestInfo","requestId":"req7"}]}}`))
	require.Equal(t, 27500*time.Millisecond, e.RetryAfter)
	require.Equal(t, "req7", e.RequestID)
	e = newError(429, http.Header{"Retry-After": {"3"}}, []byte(`{"error":{"details":[{"retryDelay":"soon"},{"retryDelay":"-5s"}]}}`))
	require.Equal(t, 3*time.Second, e.RetryAfter)
}

// TestClientWaitsAsLongAsTheServerDemands retries through 429, 503 and 500, on a clock that does not take time.
func TestClientWaitsAsLongAsTheServerDemands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []struct {
			status int
			after  string
		}{{429, "7"}, {503, "2"}, {500, "1"}, {200, ""}}
		asked := 0
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			a := answers[asked]
			asked++
			rec := httptest.NewRecorder()
			rec.Header().Set("Content-Type", "text/event-stream")
			rec.WriteHeader(a.status)
			if a.status == 200 {
				io.WriteString(rec, longStream)
			} else {
				io.WriteString(rec, `{"error":{"status":"UNAVAILABLE","message":"y","details":[{"retryDelay":"`+a.after+`s"}]}}`)
			}
			res := rec.Result()
			res.Request = r
			return res, nil
		})
		model := New("gemini-x", &Options{SDK: localSDK("http://127.0.0.1:1", &http.Client{Transport: transport})})
		begin := time.Now()
		answer, err := api.NewClient(model, nil).Send(t.Context(), hello())
		require.NoError(t, err)
		require.Equal(t, 9, answer.Blocks.Len())
		require.Equal(t, 10*time.Second, time.Since(begin))
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestResponseInAnotherFormIsAnError(t *testing.T) {
	for body, want := range map[string]error{
		"": api.ErrProtocol, "{": api.ErrProtocol, "[]": api.ErrProtocol, "{}": api.ErrProtocol, `{"candidates":[]}`: api.ErrProtocol,
		`{"candidates":[{"content":{"parts":[{"text":"a"},7]}}]}`:              api.ErrProtocol,
		`{"error":{"code":503,"status":"UNAVAILABLE","message":"Overloaded"}}`: api.ErrOverloaded,
		"<html>a proxy</html>": api.ErrProtocol,
	} {
		server, _ := failing(t, 200, map[string]string{"Content-Type": "application/json"}, body)
		for _, noStream := range []bool{false, true} {
			_, err := send(server, &Options{NoStream: noStream})
			require.ErrorIs(t, err, want, body)
		}
	}
}

func TestAWholeAnswerCutShortIsCut(t *testing.T) {
	server, _ := failing(t, 200, map[string]string{"Content-Type": "application/json", "Content-Length": "1000"}, `{"candidates"`)
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

// TestAConfigurationThatIsRefused is an error of the first request, and never shows the key.
func TestAConfigurationThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		config *genai.ClientConfig
		want   error
	}{
		"no key":                {nil, api.ErrAuth},
		"no project":            {&genai.ClientConfig{Backend: genai.BackendVertexAI}, api.ErrAuth},
		"a key and a project":   {&genai.ClientConfig{APIKey: "top-secret", Project: "p", Backend: genai.BackendGeminiAPI}, api.ErrInvalidRequest},
		"a key and credentials": {&genai.ClientConfig{APIKey: "top-secret", Credentials: credentials()}, api.ErrInvalidRequest},
		"no base URL":           {&genai.ClientConfig{APIKey: "top-secret", HTTPOptions: genai.HTTPOptions{BaseURL: "http://%"}}, api.ErrInvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := api.NewClient(New("gemini-x", &Options{SDK: c.config}), nil).Send(t.Context(), hello())
			require.ErrorIs(t, err, c.want)
			require.NotContains(t, err.Error(), "top-secret")
			var e *api.Error
			require.ErrorAs(t, err, &e)
			require.NotContains(t, e.Err.Error(), "top-secret")
			require.Equal(t, API, e.API)
		})
	}
	_, err := api.NewClient(New("", &Options{SDK: localSDK("http://127.0.0.1:1", nil)}), nil).Send(t.Context(), hello())
	require.ErrorIs(t, err, api.ErrInvalidRequest, "a model without a name")
}

// TestAKeyThatComesLater makes a request without a key, and then one with it.
func TestAKeyThatComesLater(t *testing.T) {
	fakeAPI := fake.Gemini(fake.GeminiContent(content.Text{Text: "ok"}))
	server := httptest.NewServer(fakeAPI)
	defer server.Close()
	t.Setenv("GOOGLE_GEMINI_BASE_URL", server.URL)
	model := api.NewClient(New("gemini-x", nil), nil)
	_, err := model.Send(t.Context(), hello())
	require.ErrorIs(t, err, api.ErrAuth)
	t.Setenv("GEMINI_API_KEY", "a-key")
	t.Setenv("GOOGLE_CLOUD_PROJECT", "some-project") // for other programs
	answer, err := model.Send(t.Context(), hello())
	require.NoError(t, err)
	require.Equal(t, "ok", answer.Blocks.Text())
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestAKeyOfTheEnvironmentBesideCredentials is a configuration that the SDK takes, and completes to one that it would refuse.
func TestAKeyOfTheEnvironmentBesideCredentials(t *testing.T) {
	server := httptest.NewServer(fake.Gemini(fake.GeminiContent(content.Text{Text: "ok"})))
	defer server.Close()
	t.Setenv("GEMINI_API_KEY", "a-key")
	config := localSDK(server.URL, server.Client())
	config.APIKey, config.Credentials = "", credentials()
	answer, err := api.NewClient(New("gemini-x", &Options{SDK: config}), nil).Send(t.Context(), hello())
	require.NoError(t, err)
	require.Equal(t, "ok", answer.Blocks.Text())
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
		model := New("gemini-x", &Options{SDK: localSDK(server.URL, server.Client())})
		var err error
		for _, err = range model.Stream(ctx, hello()) { // without a client, which would add the cause itself
		}
		server.Close()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
	}
}

// TestAServerThatFallsSilent is given up after Idle, and after the SDK's own timeout.
func TestAServerThatFallsSilent(t *testing.T) {
	for _, begun := range []bool{false, true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // the client may have given up already
			if begun {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, longStream[:600])
				http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}))
		_, err := send(server, &Options{Options: api.Options{Idle: 20 * time.Millisecond}})
		require.ErrorIs(t, err, api.ErrStalled)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, api.ErrStalled, e.Kind)
		config := localSDK(server.URL, server.Client())
		soon := 20 * time.Millisecond
		config.HTTPOptions.Timeout = &soon
		_, err = api.NewClient(New("gemini-x", &Options{SDK: config}), &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, api.Retryable(err))
		server.Close()
	}
}

// TestTheSDKsTimeoutIsForTheWholeAnswer reads an answer to its end, although the SDK has ended its own context by then.
func TestTheSDKsTimeoutIsForTheWholeAnswer(t *testing.T) {
	server := httptest.NewServer(fake.Gemini(fake.GeminiContent(content.Text{Text: strings.Repeat("long ", 10_000)})))
	defer server.Close()
	config := localSDK(server.URL, server.Client())
	config.HTTPClient.Timeout = time.Minute
	late := time.Minute
	config.HTTPOptions.Timeout = &late
	answer, err := api.NewClient(New("gemini-x", &Options{SDK: config}), nil).Send(t.Context(), hello())
	require.NoError(t, err)
	require.Len(t, answer.Blocks.Text(), 50_000)
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
	model := New("gemini-x", &Options{SDK: localSDK(server.URL, server.Client())})
	for event, err := range model.Stream(t.Context(), hello()) {
		require.NoError(t, err)
		require.IsType(t, api.Delta{}, event)
		break
	}
	<-gone
}

func TestRequestWithoutMessagesIsAnError(t *testing.T) {
	model := New("gemini-x", &Options{SDK: localSDK("http://127.0.0.1:1", nil)})
	_, err := api.NewClient(model, nil).Send(t.Context(), api.Request{System: []string{"x"}})
	require.ErrorIs(t, err, api.ErrNothing)
}

func TestTheSDKCarriesTheBytesUnchanged(t *testing.T) {
	var printed strings.Builder
	log.SetOutput(&printed)
	defer log.SetOutput(log.Default().Writer())
	req := api.Request{System: []string{"<b> & \u2028"}, Messages: []content.Message{{Role: content.User, Blocks: content.Words("<&> ☃")}}}
	for _, noStream := range []bool{false, true} {
		fakeAPI := fake.Gemini(fake.GeminiContent(content.Text{Text: "ok"}), fake.GeminiContent(content.Text{Text: "again"}))
		var header http.Header
		var length int64
		var address string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header, length, address = r.Header.Clone(), r.ContentLength, r.URL.String()
			fakeAPI.ServeHTTP(w, r)
		}))
		o := &Options{NoStream: noStream, SDK: localSDK(server.URL, server.Client())}
		o.SDK.HTTPOptions.Headers = http.Header{"X-Of-The-Client": {"yes"}}
		o.Header = http.Header{"x-of-the-request": {"yes", "too"}}
		model := api.NewClient(New("gemini-x", o), nil)
		for _, want := range []string{"ok", "again"} {
			answer, err := model.Send(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, want, answer.Blocks.Text())
		}
		server.Close()
		want, _, err := Body(req, "gemini-x", o)
		require.NoError(t, err)
		require.Equal(t, string(want), string(fakeAPI.Bodies()[0]))
		require.EqualValues(t, len(want), length)
		require.Equal(t, "test-key", header.Get("x-goog-api-key"))
		require.Equal(t, "yes", header.Get("X-Of-The-Client"))
		require.Equal(t, []string{"yes", "too"}, header.Values("X-Of-The-Request"))
		require.Contains(t, header.Get("User-Agent"), "google-genai-sdk")
		method := "streamGenerateContent?alt=sse"
		if noStream {
			method = "generateContent"
		}
		require.Equal(t, "/v1beta/models/gemini-x:"+method, address)
	}
	require.Empty(t, printed.String(), "the SDK has nothing to complain of")
}

func credentials() *auth.Credentials { return credentialsOf(tokens{}) }

func credentialsOf(provider auth.TokenProvider) *auth.Credentials {
	return auth.NewCredentials(&auth.CredentialsOptions{
		TokenProvider:          provider,
		QuotaProjectIDProvider: auth.CredentialsPropertyFunc(func(context.Context) (string, error) { return "quota-project", nil }),
	})
}

type tokens struct{}

func (tokens) Token(context.Context) (*auth.Token, error) {
	return &auth.Token{Value: "a-token", Expiry: time.Now().Add(time.Hour)}, nil
}

// TestVertexIsABackendOfTheSDK sends requests to a server in the place of Vertex AI, with the SDK's authorization and our bytes.
func TestVertexIsABackendOfTheSDK(t *testing.T) {
	for _, noStream := range []bool{false, true} {
		fakeAPI := fake.Gemini(fake.GeminiContent(content.Text{Text: "ok"}))
		var header http.Header
		var address string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header, address = r.Header.Clone(), r.URL.String()
			fakeAPI.ServeHTTP(w, r)
		}))
		config := &genai.ClientConfig{
			Backend: genai.BackendVertexAI, Project: "my-project", Location: "europe-west1", Credentials: credentials(),
			HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
		}
		o := &Options{NoStream: noStream, SDK: config}
		answer, err := api.NewClient(New("gemini-2.5-flash", o), nil).Send(t.Context(), hello())
		require.NoError(t, err)
		require.Equal(t, "ok", answer.Blocks.Text())
		require.Equal(t, `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`, string(fakeAPI.Bodies()[0]))
		require.Equal(t, "Bearer a-token", header.Get("Authorization"))
		require.Equal(t, "quota-project", header.Get("X-Goog-User-Project"))
		method := "streamGenerateContent?alt=sse"
		if noStream {
			method = "generateContent"
		}
		require.Equal(t, "/v1beta1/projects/my-project/locations/europe-west1/publishers/google/models/gemini-2.5-flash:"+method, address)
		require.Same(t, config.Credentials, o.SDK.Credentials, "the user's configuration is left as it is")
		require.Nil(t, config.HTTPClient)
		server.CloseClientConnections()
		server.Close()
	}
}

// refusing gives no token, because of a status.
type refusing int

func (r refusing) Token(context.Context) (*auth.Token, error) {
	return nil, &auth.Error{Response: &http.Response{StatusCode: int(r)}, Body: []byte("no")}
}

func TestATokenThatIsNotGivenIsAnAuthError(t *testing.T) {
	for status, want := range map[int]error{400: api.ErrAuth, 503: api.ErrTransport} {
		config := &genai.ClientConfig{
			Backend: genai.BackendVertexAI, Project: "p", Location: "l", Credentials: credentialsOf(refusing(status)),
			HTTPOptions: genai.HTTPOptions{BaseURL: "http://127.0.0.1:1"},
		}
		_, err := api.NewClient(New("gemini-x", &Options{SDK: config}), &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello())
		require.ErrorIs(t, err, want)
	}
}

// body is a response's body that a test looks at: it takes its time for each read, counts what was read, and whether it was closed.
type body struct {
	io.Reader
	ctx    context.Context // of the request
	each   time.Duration
	read   int
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	time.Sleep(b.each) // on a clock that does not take time
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.Reader.Read(p[:min(len(p), 400)])
	b.read += n
	return n, err
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func (b *body) answer(status int) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		b.ctx = r.Context()
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: b, Request: r}, nil
	})}
}

// TestASlowAnswerIsNoStall reads an answer that takes longer than Idle in all, and never that long between two pieces.
func TestASlowAnswerIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &body{Reader: strings.NewReader(longStream), each: 6 * time.Second}
		model := New("gemini-x", &Options{Options: api.Options{Idle: 10 * time.Second}, SDK: localSDK("http://127.0.0.1:1", slow.answer(200))})
		begin := time.Now()
		answer, err := api.NewClient(model, &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello())
		require.NoError(t, err)
		require.Equal(t, 9, answer.Blocks.Len())
		require.Greater(t, time.Since(begin), 10*time.Second)
		require.True(t, slow.closed)
	})
}

func TestOfAnEndlessErrorOnlyTheBeginningIsRead(t *testing.T) {
	long := &body{Reader: strings.NewReader(strings.Repeat("x", 20*wire.MaxError))}
	model := New("gemini-x", &Options{SDK: localSDK("http://127.0.0.1:1", long.answer(500))})
	_, err := api.NewClient(model, &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello())
	require.ErrorIs(t, err, api.ErrServer)
	require.LessOrEqual(t, long.read, 2*wire.MaxError)
	require.True(t, long.closed)
}

func TestRepairsAreReported(t *testing.T) {
	server := httptest.NewServer(fake.Gemini(fake.GeminiContent(content.Text{Text: "ok"})))
	defer server.Close()
	model := New("gemini-x", &Options{SDK: localSDK(server.URL, server.Client())})
	answer, err := api.NewClient(model, nil).Send(t.Context(), ask3(user(said("Hi")), assistant(said("Hello"))))
	require.NoError(t, err)
	require.Len(t, answer.Repairs, 1)
	require.Equal(t, "end", answer.Repairs[0].Kind)
}

// TestARequestOfTheSDKIsSentOnce keeps a retry of the SDK from sending, and paying for, a request twice.
func TestARequestOfTheSDKIsSentOnce(t *testing.T) {
	server, asked := failing(t, 500, nil, "{}")
	s := &sent{ctx: t.Context(), body: new(wire.Parts)}
	req, err := http.NewRequestWithContext(context.WithValue(t.Context(), sending{}, s), http.MethodPost, server.URL, nil)
	require.NoError(t, err)

	transport := carrier{client: server.Client()}
	res, err := transport.RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "the SDK gets an empty success")
	require.NoError(t, s.res.Body.Close())

	_, err = transport.RoundTrip(req)
	require.ErrorIs(t, err, errNotOurs)
	require.Equal(t, 1, *asked)
}
