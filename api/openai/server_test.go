package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

func TestServerIsRecognizedByItsBaseURL(t *testing.T) {
	key := option.WithAPIKey("k")
	for name, test := range map[string]struct {
		sdk        []option.RequestOption
		compatible bool
	}{
		"none given":        {nil, false},
		"a key alone":       {[]option.RequestOption{key}, false},
		"OpenAI":            {[]option.RequestOption{key, option.WithBaseURL("https://api.openai.com/v1")}, false},
		"OpenAI in Europe":  {[]option.RequestOption{key, option.WithBaseURL("https://eu.api.openai.com/v1")}, false},
		"Azure":             {[]option.RequestOption{azure.WithEndpoint("https://x.openai.azure.com", "2024-06-01"), azure.WithAPIKey("k")}, false},
		"Azure's gateway":   {[]option.RequestOption{azure.WithEndpoint("https://gateway.example", "2024-06-01"), azure.WithAPIKey("k")}, false},
		"Azure, v1":         {[]option.RequestOption{key, option.WithBaseURL("https://x.services.ai.azure.com/openai/v1")}, false},
		"a local server":    {[]option.RequestOption{key, option.WithBaseURL("http://127.0.0.1:8080/v1")}, true},
		"without a key":     {[]option.RequestOption{option.WithBaseURL("http://127.0.0.1:8080/v1")}, true},
		"another provider":  {[]option.RequestOption{key, option.WithBaseURL("https://openrouter.ai/api/v1")}, true},
		"a deceptive name":  {[]option.RequestOption{key, option.WithBaseURL("https://api.openai.com.example/v1")}, true},
		"the last one wins": {[]option.RequestOption{key, option.WithBaseURL("http://127.0.0.1:1/v1"), option.WithBaseURL("https://api.openai.com/v1")}, false},
	} {
		require.Equal(t, test.compatible, serverIn(&Options{SDK: test.sdk}).compatible, name)
		require.Equal(t, test.compatible, newTransport(ResponsesAPI, "responses", "", &Options{SDK: test.sdk}).server.compatible, name)
	}
	require.False(t, serverIn(nil).compatible)
}

func TestServerOfTheEnvironmentIsCompatible(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
	require.True(t, newTransport(ResponsesAPI, "responses", "", nil).server.compatible)
	require.False(t, serverIn(nil).compatible, "a body is made of its arguments alone")
}

func TestSmallMaxTokensAreRaisedForOpenAIAlone(t *testing.T) {
	req := hello()
	req.Options.MaxTokens = 3

	body, notes, err := ResponsesBody(req, "gpt-5", nil)
	require.NoError(t, err)
	require.Contains(t, string(body), `"max_output_tokens":16`)
	require.Len(t, notes, 1)

	body, notes, err = ResponsesBody(req, "gpt-5", &Options{SDK: []option.RequestOption{option.WithBaseURL("http://127.0.0.1:8080/v1")}})
	require.NoError(t, err)
	require.Contains(t, string(body), `"max_output_tokens":3,`)
	require.Empty(t, notes)
}

// newServer returns a server that answers each request with the same body.
func newServer(t *testing.T, kind, body string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestAnswerThatReachesTheLimitOfACompatibleServerIsCut(t *testing.T) {
	const whole = `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"fc_1",` +
		`"call_id":"c","name":"f","arguments":"{\"a\":"}],"usage":{"input_tokens":1,"output_tokens":20}}`
	const streamed = `data: {"type":"response.output_item.added","item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f"}}` + "\n\n" +
		`data: {"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"a\":"}}` + "\n\n" +
		`data: {"type":"response.completed","response":` + whole + "}\n\n"
	ask := func(server *httptest.Server, o Options, limit int) content.Stop {
		o.SDK = localSDK(server)
		req := hello()
		req.Options.MaxTokens = limit
		answer, err := api.NewClient(NewResponses("m", &o), &api.ClientOptions{Attempts: 1}).Send(context.Background(), req)
		require.NoError(t, err)
		return answer.Stop
	}

	for _, server := range []*httptest.Server{newServer(t, "application/json", whole), newServer(t, "text/event-stream", streamed)} {
		require.Equal(t, content.StopMaxTokens, ask(server, Options{}, 20))
		require.Equal(t, content.StopMaxTokens, ask(server, Options{}, 4), "a server may write a little more")
		require.Equal(t, content.StopToolUse, ask(server, Options{}, 21))
		require.Equal(t, content.StopToolUse, ask(server, Options{}, 0))
		inBody := Options{Options: api.Options{Body: `{"max_output_tokens":20}`}}
		require.Equal(t, content.StopMaxTokens, ask(server, inBody, 0))
	}

	own := Options{Options: api.Options{MaxTokens: 20}}
	own.SDK = []option.RequestOption{option.WithBaseURL("https://api.openai.com/v1")}
	c, err := responsesCall(hello(), "m", &own, serverIn(&own))
	require.NoError(t, err)
	require.Zero(t, c.limit, "OpenAI itself needs no limit: its status is right")

	_, finish, err := decodeResponse([]byte(whole), nil, 0)
	require.NoError(t, err)
	require.Equal(t, content.StopToolUse, finish.Stop, "OpenAI itself reports an answer that was cut")
}

// TestResponsesStreamWithoutIndexes reads the streams of servers that send no output_index: each item goes by its id.
func TestResponsesStreamWithoutIndexes(t *testing.T) {
	const (
		said   = `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Look."}]}`
		call   = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}`
		second = `{"type":"function_call","id":"fc_2","call_id":"c2","name":"g","arguments":"{}"}`
	)
	event := func(kind, members string) string { return `data: {"type":"response.` + kind + `",` + members + "}\n\n" }
	added := func(item string) string { return event("output_item.added", `"item":`+item) }
	done := func(item string) string { return event("output_item.done", `"item":`+item) }
	end := event("completed", `"response":{"id":"r","status":"completed","output":[`+said+","+call+","+second+`]}`)
	short := event("completed", `"response":{"id":"r","status":"completed"}`)

	first := `"output_index":0,"item":` + said
	nameless := strings.NewReplacer(`"id":"msg_1",`, "", `"id":"fc_1",`, "", `"id":"fc_2",`, "")
	for name, stream := range map[string]string{
		"one after the other":      added(said) + done(said) + added(call) + done(call) + added(second) + done(second) + end,
		"all open at once":         added(said) + added(call) + added(second) + done(said) + done(call) + done(second) + end,
		"the last ends first":      added(said) + added(call) + added(second) + done(second) + done(said) + done(call) + end,
		"without what it was":      added(said) + added(call) + added(second) + done(said) + done(call) + done(second) + short,
		"an index at some":         event("output_item.added", first) + event("output_item.done", first) + added(call) + done(call) + added(second) + done(second) + end,
		"ends alone":               done(said) + done(call) + done(second) + short,
		"without ids":              nameless.Replace(added(said) + done(said) + added(call) + done(call) + added(second) + done(second) + end),
		"without ids, all at once": nameless.Replace(added(said) + added(call) + added(second) + done(said) + done(call) + done(second) + short),
		"other ids at the end":     strings.Replace(added(said)+added(call)+added(second), "_", "_x", -1) + done(said) + done(call) + done(second) + short,
	} {
		answer, err := foldResponse(stream)
		require.NoError(t, err, name)
		require.Equal(t, "Look.", answer.Blocks.Text(), name)
		calls := answer.Blocks.ToolUses()
		require.Len(t, calls, 2, name)
		require.Equal(t, []string{"c1", "f", "c2", "g"}, []string{calls[0].ID, calls[0].Name, calls[1].ID, calls[1].Name}, name)
	}

	for name, stream := range map[string]string{
		"begins twice": added(said) + added(said) + end,
		"ends twice":   added(said) + done(said) + done(said) + end,
	} {
		_, err := foldResponse(stream)
		require.ErrorIs(t, err, api.ErrProtocol, name)
	}
}

func TestResponsesDeltasWithoutIndexesGoToTheirItem(t *testing.T) {
	stream := `data: {"type":"response.output_item.added","item":{"type":"message","id":"msg_1"}}` + "\n\n" +
		`data: {"type":"response.output_item.added","item":{"type":"function_call","id":"fc_1","name":"f"}}` + "\n\n" +
		`data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{}"}` + "\n\n" +
		`data: {"type":"response.output_text.delta","item_id":"msg_1","delta":"Hi"}` + "\n\n" +
		`data: {"type":"response.function_call_arguments.delta","delta":"!"}` + "\n\n"
	var shown []api.Delta
	for e, err := range streamedResponse(&http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(stream))}, call{}) {
		if err == nil {
			shown = append(shown, e.(api.Delta))
		}
	}
	require.Equal(t, []api.Delta{
		{Index: 1, Kind: api.DeltaInput, Tool: "f", Text: "{}"}, {Index: 0, Kind: api.DeltaText, Text: "Hi"},
		{Index: 1, Kind: api.DeltaInput, Tool: "f", Text: "!"},
	}, shown)
}

func TestEveryMessageItemHasItsType(t *testing.T) {
	body, _, err := ResponsesBody(api.Request{Messages: []content.Message{
		{Role: content.User, Blocks: content.Words("a")},
		{Role: content.Assistant, Blocks: must(content.Text{Text: "b", Extra: content.Extra{API: "anthropic", JSON: `{"citations":[]}`}})},
		{Role: content.User, Blocks: content.Words("c")},
		{Role: content.Assistant, Blocks: must(content.Text{Text: "d", Extra: content.Extra{API: ResponsesAPI, JSON: `{"annotations":[]}`}})},
		{Role: content.User, Blocks: content.Words("e")},
	}}, "m", nil)
	require.NoError(t, err)
	require.Equal(t, 5, strings.Count(string(body), `{"type":"message","role":"`), "%s", body)
}

// TestImagesThatAServerDoesNotAcceptAreNotSentAgain reads the error as llama.cpp words it: with a status that is retried otherwise.
func TestImagesThatAServerDoesNotAcceptAreNotSentAgain(t *testing.T) {
	for _, what := range []string{"image", "audio"} {
		body := `{"error":{"code":500,"message":"` + what + ` input is not supported - hint: provide the mmproj","type":"server_error"}}`
		err := newError(ChatAPI, 500, nil, []byte(body))
		require.ErrorIs(t, err, api.ErrInvalidRequest)
		require.False(t, api.Retryable(err))
	}
	require.ErrorIs(t, newError(ChatAPI, 500, nil, []byte(`{"error":{"message":"failed","type":"server_error"}}`)), api.ErrServer)
}

// TestChatWithAFormEndsWithTheUser asks for a form where the assistant spoke last. A server that continues that text cannot do so in the
// form, which the text does not have.
func TestChatWithAFormEndsWithTheUser(t *testing.T) {
	req := hello()
	req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: content.Words("Well,")})
	body, notes, err := ChatBody(req, "m", nil)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(body), `{"role":"assistant","content":"Well,"}]}`), "%s", body)
	require.Empty(t, notes)

	req.Options.Output = api.Schema{Name: "form", JSON: `{"type":"object"}`}
	body, notes, err = ChatBody(req, "m", nil)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(body), `{"role":"user","content":"`+content.GoOn+`"}]}`), "%s", body)
	require.Len(t, notes, 1)
	require.Equal(t, "end", notes[0].Kind)
}

func TestSettingsOfTheEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "own")
	t.Setenv("OPENAI_ORG_ID", "org")
	t.Setenv("OPENAI_PROJECT_ID", "project")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-One: 1\nX-Two: a:b\nno header")
	var got *http.Request
	sent := option.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r
		return nil, errors.New("no network in tests")
	})})

	// They go to OpenAI, and to a server that is named by its address alone.
	for _, address := range []string{"https://api.openai.com/v1", "http://127.0.0.1:1/a%2Fb/"} {
		o := &Options{SDK: []option.RequestOption{sent, option.WithBaseURL(address)}}
		_, err := api.NewClient(NewChat("m", o), &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello())
		require.ErrorIs(t, err, api.ErrTransport)
		require.Equal(t, strings.TrimSuffix(address, "/")+"/chat/completions", got.URL.String())
		require.Equal(t, "Bearer own", got.Header.Get("Authorization"))
		require.Equal(t, "org", got.Header.Get("OpenAI-Organization"))
		require.Equal(t, "project", got.Header.Get("OpenAI-Project"))
		require.Equal(t, "1", got.Header.Get("X-One"))
		require.Equal(t, "a:b", got.Header.Get("X-Two"))
	}

	// A setting of the program replaces that of the environment.
	o := &Options{SDK: []option.RequestOption{sent, option.WithAPIKey("given")}}
	_, err := api.NewClient(NewResponses("m", o), &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello())
	require.ErrorIs(t, err, api.ErrTransport)
	require.Equal(t, "https://api.openai.com/v1/responses", got.URL.String())
	require.Equal(t, "Bearer given", got.Header.Get("Authorization"))

	// None goes to Azure.
	o = &Options{SDK: []option.RequestOption{sent, azure.WithEndpoint("https://gateway.example", "2024-06-01"), azure.WithAPIKey("k")}}
	_, err = api.NewClient(NewChat("m", o), &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello())
	require.ErrorIs(t, err, api.ErrTransport)
	require.Equal(t, "gateway.example", got.URL.Host)
	for _, name := range []string{"Authorization", "OpenAI-Organization", "OpenAI-Project", "X-One"} {
		require.Empty(t, got.Header.Get(name), name)
	}
}
