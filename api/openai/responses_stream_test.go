package openai

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/stretchr/testify/require"
)

// longResponse is an answer with everything in it, as it comes whole.
const longResponse = `{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"gpt-test",` +
	`"output":[` +
	`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"**One**"},{"type":"summary_text","text":"Two <&>."}],"encrypted_content":"c2VhbGVk"},` +
	`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"wé"}},` +
	`{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"commentary","content":[` +
	`{"type":"output_text","text":"Let me\n \"see\".","annotations":[{"type":"url_citation","url":"https://example.com","start_index":0,"end_index":3,"title":"t"}],"logprobs":[]},` +
	`{"type":"output_text","text":"Second 😀 part.","annotations":[]}]},` +
	`{"id":"msg_2","type":"message","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"Not that."}]},` +
	`{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"get_weather","arguments":"{ \"city\" : \"Oslo\" }","namespace":"n"},` +
	`{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_2","name":"run","input":"x = \"1\"\n"},` +
	`{"id":"nw_1","type":"novel_item","deep":{"a":[1.0,null]}}],` +
	`"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":10},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}}`

// streamOf is an answer as a stream of small pieces.
func streamOf(t testing.TB, response string) string {
	t.Helper()
	fakeAPI := fake.OpenAIResponses(fake.Reply{Body: response})
	rec := &recorder{header: http.Header{}}
	req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/v1/responses", strings.NewReader(`{"model":"m","input":"x","stream":true}`))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer x")
	req.Header.Set("Content-Type", "application/json")
	fakeAPI.ServeHTTP(rec, req)
	require.Equal(t, http.StatusOK, rec.status, rec.String())
	return rec.String()
}

type recorder struct {
	strings.Builder
	header http.Header
	status int
}

func (r *recorder) Header() http.Header    { return r.header }
func (r *recorder) WriteHeader(status int) { r.status = status }

// foldResponse decodes a stream.
func foldResponse(stream string) (api.Response, error) {
	res := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(stream))}
	var f api.Fold
	for event, err := range streamedResponse(res, call{}) {
		if err == nil {
			err = f.Add(event)
		}
		if err != nil {
			return api.Response{}, err
		}
	}
	return f.Response()
}

// foldWhole decodes an answer that comes whole.
func foldWhole(t testing.TB, body string) api.Response {
	t.Helper()
	blocks, finish, err := decodeResponse([]byte(body), nil, 0)
	require.NoError(t, err)
	return api.Response{Finish: finish, Blocks: must(blocks...)}
}

func requireSameResponse(t testing.TB, want, got api.Response) {
	t.Helper()
	require.True(t, want.Blocks.Equal(got.Blocks), "%s\n%s", want.Blocks.Append(nil), got.Blocks.Append(nil))
	require.Equal(t, want.Finish, got.Finish)
}

func TestAResponseStreamedAndWholeIsTheSame(t *testing.T) {
	whole := foldWhole(t, longResponse)
	got, err := foldResponse(streamOf(t, longResponse))
	require.NoError(t, err)
	requireSameResponse(t, whole, got)
	require.Equal(t, api.Finish{API: ResponsesAPI, Model: "gpt-test", ResponseID: "resp_1", Stop: content.StopToolUse,
		Usage: content.Usage{Input: 30, CacheRead: 60, CacheWrite: 10, Output: 20, Reasoning: 5}}, got.Finish)
	require.Equal(t, content.Thinking{Text: "**One**\n\nTwo <&>.", Signature: "c2VhbGVk", Extra: got.Blocks.At(0).(content.Thinking).Extra}, got.Blocks.At(0))
	calls := got.Blocks.ToolUses()
	require.Len(t, calls, 2)
	require.EqualValues(t, `{ "city" : "Oslo" }`, calls[0].Input, "byte for byte")
	require.EqualValues(t, `"x = \"1\"\n"`, calls[1].Input)
}

// TestRecordedResponsesAreTheSameStreamedAndWhole makes a stream of every answer that was recorded whole.
func TestRecordedResponsesAreTheSameStreamedAndWhole(t *testing.T) {
	n := 0
	for _, c := range responsesCassettes(t) {
		for _, e := range c.Exchanges {
			if e.Response.Status != 200 || e.Streamed() {
				continue
			}
			compact := jsontext.Value(e.Body(t)) // as in the stream that is made of it
			require.NoError(t, compact.Compact(jsontext.PreserveRawStrings(true)))
			body := string(compact)
			got, err := foldResponse(streamOf(t, body))
			require.NoError(t, err, c.Name)
			requireSameResponse(t, foldWhole(t, body), got)
			n++
		}
	}
	t.Logf("%d answers", n)
}

// TestResponsesDeltasAddUpToTheText puts the pieces of each block together.
func TestResponsesDeltasAddUpToTheText(t *testing.T) {
	shown := map[int]string{}
	tools := map[int]string{}
	res := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(streamOf(t, longResponse)))}
	var blocks []content.Block
	for event, err := range streamedResponse(res, call{}) {
		require.NoError(t, err)
		switch e := event.(type) {
		case api.Delta:
			shown[e.Index] += e.Text
			tools[e.Index] = e.Tool
		case api.BlockEnd:
			blocks = append(blocks, e.Block)
		}
	}
	require.Equal(t, blocks[0].(content.Thinking).Text, shown[0])
	require.Equal(t, blocks[2].(content.Text).Text, shown[2])
	require.Equal(t, blocks[3].(content.Text).Text, shown[3])
	require.Equal(t, "Not that.", shown[4])
	require.Equal(t, string(blocks[5].(content.ToolUse).Input), shown[5])
	require.Equal(t, "get_weather", tools[5])
	require.Equal(t, "x = \"1\"\n", shown[6], "the text itself")
}

// TestACutResponseIsNeverAnAnswer cuts every recorded stream, and one of ours that has everything, after every byte (the longer
// ones at a few hundred places).
func TestACutResponseIsNeverAnAnswer(t *testing.T) {
	long := streamOf(t, longResponse)
	streams := []string{long}
	t.Run("recorded", func(t *testing.T) {
		for _, c := range responsesCassettes(t) {
			for _, e := range c.Exchanges {
				if e.Streamed() && e.Response.Status == 200 && !inStreamFailure(e) {
					streams = append(streams, string(e.Body(t)))
				}
			}
		}
	})
	for _, stream := range streams {
		whole, err := foldResponse(stream)
		require.NoError(t, err)
		step := 1
		if stream != long {
			step = len(stream)/seedtest.Rounds(30, 200) + 1
		}
		for at := 0; at < len(stream); at += step {
			got, err := foldResponse(stream[:at])
			if err == nil {
				require.GreaterOrEqual(t, at, len(strings.TrimRight(stream, "\n"))-len("\n\ndata: [DONE]"), "a stream cut after byte %d is taken as an answer", at)
				requireSameResponse(t, whole, got)
				continue
			}
			require.ErrorIs(t, err, api.ErrCut, "cut after byte %d", at)
			require.True(t, api.Retryable(err))
		}
	}
}

const (
	createdEvent   = `data: {"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}` + "\n\n"
	completedEvent = `data: {"type":"response.completed","response":{"id":"r","status":"completed","model":"m","output":[]}}` + "\n\n"
	textItem       = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[]}]}`
)

func itemEvent(kind, index, item string) string {
	return `data: {"type":"response.output_item.` + kind + `","output_index":` + index + `,"item":` + item + "}\n\n"
}

func TestResponsesFailuresInAStreamAreTyped(t *testing.T) {
	for event, want := range map[string]error{
		`{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":2}`:            api.ErrRateLimited,
		`{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"no credit"}}`:        api.ErrQuota,
		`{"error":{"type":"server_error","message":"sorry","code":null}}`:                                                 api.ErrServer,
		`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"long"}}`:     api.ErrContextTooLong,
		`[{"error":{"code":429,"message":"slow down"}}]`:                                                                  api.ErrRateLimited,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oh"}}}`:        api.ErrServer,
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"oh"}}}`: api.ErrRateLimited,
		`{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"oh"}}}`:                        api.ErrFiltered,
		`{"type":"response.failed","response":{"status":"failed","error":null}}`:                                          api.ErrServer,
		`{"type":"response.cancelled","response":{"status":"cancelled"}}`:                                                 api.ErrServer,
	} {
		_, err := foldResponse(createdEvent + "event: x\ndata: " + event + "\n\n" + completedEvent)
		require.ErrorIs(t, err, want, event)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, http.StatusOK, e.Status)
		require.Equal(t, ResponsesAPI, e.API)
		require.NotEmpty(t, e.Body)
	}
}

func TestAResponseThatFailedIsAnError(t *testing.T) {
	for body, want := range map[string]error{
		`{"object":"response","status":"failed","error":{"code":"server_error","message":"sorry"},"output":[]}`: api.ErrServer,
		`{"error":{"message":"The model is overloaded","type":"server_error","code":"server_is_overloaded"}}`:   api.ErrOverloaded,
		`[{"error":{"message":"slow down","code":429}}]`:                                                        api.ErrRateLimited,
		`{"object":"response","status":"in_progress","output":[]}`:                                              api.ErrServer,
		`{"object":"response","status":"queued","output":[]}`:                                                   api.ErrServer,
		`{"object":"response","status":"completed","output":[7]}`:                                               api.ErrProtocol,
		`[]`: api.ErrProtocol,
		``:   api.ErrProtocol,
	} {
		_, _, err := decodeResponse([]byte(body), nil, 0)
		require.ErrorIs(t, err, want, body)
	}
}

func TestAResponseThatFailsInAStreamReportsItsUsage(t *testing.T) {
	events, err := new(responseDecoder).Take([]byte(`{"type":"response.failed","response":{"id":"r","model":"m","status":"failed",` +
		`"error":{"code":"server_error","message":"sorry"},"usage":{"input_tokens":3,"output_tokens":5}}}`))
	require.ErrorIs(t, err, api.ErrServer)
	require.Equal(t, []api.Event{api.Cut{Finish: api.Finish{
		API: ResponsesAPI, Model: "m", ResponseID: "r", Usage: content.Usage{Input: 3, Output: 5},
	}}}, events)
}

func TestAResponseStreamThatBreaksTheProtocol(t *testing.T) {
	for name, stream := range map[string]string{
		"an event that is not JSON":   createdEvent + "data: {\"type\":\n\n" + completedEvent,
		"an event of the wrong shape": createdEvent + "data: {\"type\":7}\n\n" + completedEvent,
		"an item that is no object":   itemEvent("added", "0", "[]") + itemEvent("done", "0", "[]") + completedEvent,
		"an item that begins twice":   itemEvent("added", "0", textItem) + itemEvent("added", "0", textItem) + completedEvent,
		"an item that ends twice":     itemEvent("done", "0", textItem) + itemEvent("done", "0", textItem) + completedEvent,
		"an item that does not end":   itemEvent("added", "0", textItem) + completedEvent,
		"an answer without a status":  `data: {"type":"response.completed","response":{"status":"dreaming"}}` + "\n\n",
		"an end without a response":   `data: {"type":"response.completed"}` + "\n\n",
	} {
		_, err := foldResponse(stream)
		require.ErrorIs(t, err, api.ErrProtocol, name)
		require.False(t, api.Retryable(err), name)
	}
}

// TestItemsOutOfOrderAreGivenInOrder also shows that items which a server does not end one by one are taken from the whole answer.
func TestItemsOutOfOrderAreGivenInOrder(t *testing.T) {
	second := strings.ReplaceAll(strings.ReplaceAll(textItem, "Hi", "there"), "msg_1", "msg_2")
	whole := `data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[` + textItem + "," + second + `]}}` + "\n\n"
	for name, stream := range map[string]string{
		"the second ends first":  itemEvent("added", "0", textItem) + itemEvent("added", "1", second) + itemEvent("done", "1", second) + itemEvent("done", "0", textItem) + completedEvent,
		"the second does not":    itemEvent("done", "0", textItem) + whole,
		"none ends":              createdEvent + whole,
		"the first does not":     itemEvent("done", "1", second) + whole,
		"they begin at 1":        itemEvent("done", "1", textItem) + itemEvent("done", "2", second) + completedEvent,
		"without an event line":  itemEvent("done", "0", textItem) + itemEvent("done", "1", second) + whole + "data: [DONE]\n\n",
		"with Windows line ends": strings.ReplaceAll(itemEvent("done", "0", textItem)+itemEvent("done", "1", second)+whole, "\n", "\r\n"),
		"with comments":          ": ping\n\n" + itemEvent("done", "0", textItem) + ": ping\n\n" + itemEvent("done", "1", second) + whole,
		"with null errors":       `data: {"type":"response.note","error":null}` + "\n\n" + itemEvent("done", "0", textItem) + itemEvent("done", "1", second) + whole,
	} {
		got, err := foldResponse(stream)
		require.NoError(t, err, name)
		require.Equal(t, "Hi\nthere", got.Blocks.Text(), name)
	}
}

func TestWhyAResponseEnds(t *testing.T) {
	for response, want := range map[string]content.Stop{
		`"status":"completed","output":[` + textItem + `]`:                                                                                                             content.StopEndTurn,
		`"status":"completed","output":[]`:                                                                                                                             content.StopEndTurn,
		`"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]`:                                                                        content.StopMaxTokens,
		`"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]`:                                                                           content.StopRefusal,
		`"status":"incomplete","incomplete_details":{"reason":"enlightenment"},"output":[]`:                                                                            "enlightenment",
		`"status":"incomplete","incomplete_details":null,"output":[]`:                                                                                                  content.StopUnknown,
		`"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]`:                                                            content.StopRefusal,
		`"status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]`:                                                           content.StopToolUse,
		`"status":"completed","output":[{"type":"computer_call","id":"cu_1","call_id":"c","action":{}}]`:                                                               content.StopToolUse,
		`"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":"}]`: content.StopMaxTokens,
	} {
		got := foldWhole(t, `{"object":"response",`+response+`}`)
		require.Equal(t, want, got.Stop, response)
	}
}

func TestACallCutOffIsTheFragment(t *testing.T) {
	got := foldWhole(t, `{"object":"response","status":"incomplete","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"city\":\"Os","status":"incomplete"}]}`)
	require.EqualValues(t, `{"city":"Os`, got.Blocks.ToolUses()[0].Input)
	got = foldWhole(t, `{"object":"response","status":"incomplete","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"","status":"incomplete"}]}`)
	require.EqualValues(t, "", got.Blocks.ToolUses()[0].Input)
}

// TestALoneSurrogateCostsNoAnswer ends an answer in the middle of a letter.
func TestALoneSurrogateCostsNoAnswer(t *testing.T) {
	got := foldWhole(t, `{"object":"response","status":"incomplete","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"city\":\"Os\ud83d"}]}`)
	require.EqualValues(t, "{\"city\":\"Os\uFFFD", got.Blocks.ToolUses()[0].Input)
}

// FuzzResponseStream gives the decoder any bytes: it must not panic, and what it takes as an answer must be one that can be sent
// back. Run it with -fuzzminimizetime 10x: making the long seed smaller would take all its time.
func FuzzResponseStream(f *testing.F) {
	f.Add(streamOf(f, longResponse))
	f.Add(createdEvent + itemEvent("added", "0", textItem) + itemEvent("done", "0", textItem) + completedEvent)
	f.Add(createdEvent + `data: {"type":"error","code":"server_error"}` + "\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		answer, err := foldResponse(stream)
		if err != nil {
			var failure *api.Error
			require.True(t, errors.As(err, &failure), "%T", err)
			return
		}
		requireSendsBack(t, answer.Blocks)
	})
}

// FuzzResponse does the same for whole answers.
func FuzzResponse(f *testing.F) {
	f.Add(longResponse)
	f.Add(`{"object":"response","status":"failed","error":{"code":"x"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		blocks, _, err := decodeResponse([]byte(body), nil, 0)
		if err != nil {
			return
		}
		if kept, err := content.Of(blocks...); err == nil {
			requireSendsBack(t, kept)
		}
	})
}

// requireSendsBack makes a request that holds the blocks, and reads it.
func requireSendsBack(t *testing.T, blocks content.Blocks) {
	req := hello()
	req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: blocks})
	body, _, err := ResponsesBody(req, "m", nil)
	require.NoError(t, err)
	decoded(t, string(body))
}
