package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/stretchr/testify/require"
)

// TestStreamedAndWholeResponseAreEqual streams every recorded whole answer as the API does, and folds both.
func TestStreamedAndWholeResponseAreEqual(t *testing.T) {
	count := providertest.Tally{T: t, What: "whole answers, streamed"}
	for _, c := range cassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status != 200 || e.Streamed() {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				e.Response.Body = compact(t, e.Response.Body)
				whole, err := ask(t, e)
				require.NoError(t, err)
				e.Response.Body = asStream(t, e.Response.Body)
				streamed, err := ask(t, e)
				require.NoError(t, err)
				requireSameAnswer(t, whole, streamed)
			})
		}
	}
	count.Report()
}

func requireSameAnswer(t *testing.T, want, got api.Response) {
	t.Helper()
	want.Latency, got.Latency = 0, 0
	require.Equal(t, string(want.Blocks.Append(nil)), string(got.Blocks.Append(nil)))
	require.Equal(t, want.Finish, got.Finish)
}

func compact(t testing.TB, body string) string {
	v := jsonx.Raw(body)
	require.NoError(t, v.Compact())
	return string(v)
}

// asStream is a whole answer as the API streams it: text in pieces, arguments as partial_json, citations one by one.
func asStream(t testing.TB, body string) string {
	var out strings.Builder
	event := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "event: %s\ndata: {\"type\":%q,%s}\n\n", name, name, fmt.Sprintf(format, args...))
	}
	message, err := jsonx.Members(content.JSON(body))
	require.NoError(t, err)
	blocks, message := jsonx.Take(message, "content")
	usage, _ := jsonx.Take(message, "usage")
	reason, _ := jsonx.Take(message, "stop_reason")
	var raw []jsonx.Raw
	require.NoError(t, blocks.Decode(&raw))
	event("message_start", `"message":%s`, jsonx.Object(append(message, jsonx.Member{Name: "content", Value: "[]"})))
	out.WriteString("event: ping\ndata: {\"type\": \"ping\"}\n\n")
	for i, r := range raw {
		list, err := jsonx.Members(content.JSON(r))
		require.NoError(t, err)
		deltas := func(kind, name string, pieces ...string) {
			for _, p := range pieces {
				event("content_block_delta", `"index":%d,"delta":{"type":%q,%q:%s}`, i, kind, name, p)
			}
		}
		start := append([]jsonx.Member(nil), list...)
		for j, m := range start {
			switch m.Name {
			case "text", "thinking", "signature":
				start[j].Value = `""`
			case "input":
				start[j].Value = "{}"
			case "citations":
				start[j].Value = "[]"
			}
		}
		event("content_block_start", `"index":%d,"content_block":%s`, i, jsonx.Object(start))
		for _, m := range list {
			said, _ := jsonx.Text(m.Value)
			switch m.Name {
			case "text", "thinking", "signature":
				deltas(m.Name+"_delta", m.Name, inPieces(said)...)
			case "input":
				deltas("input_json_delta", "partial_json", append([]string{`""`}, inPieces(string(m.Value))...)...)
			case "citations":
				var all []jsonx.Raw
				require.NoError(t, m.Value.Decode(&all))
				for _, one := range all {
					deltas("citations_delta", "citation", string(one))
				}
			}
		}
		event("content_block_stop", `"index":%d`, i)
	}
	event("message_delta", `"delta":{"stop_reason":%s},"usage":%s`, reason, usage)
	out.WriteString("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	return out.String()
}

// inPieces cuts text into JSON strings of a few characters.
func inPieces(s string) []string {
	var pieces []string
	for r := []rune(s); len(r) > 0; {
		n := min(len(r), 5)
		pieces, r = append(pieces, string(jsonx.Quote(string(r[:n])))), r[n:]
	}
	return pieces
}

// longStream has every kind of block and delta.
const longStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":7,"cache_creation_input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me see. ❄"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\": \"sno"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"w\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com","page_age":null}]}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"text","text":"","citations":[]}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://example.com"}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"It snows. \u2744 \ud83d\ude00"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"novelty","state":"","score":0}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"novelty_delta","state":"half","score":1}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"novelty_delta","state":" whole","mood":"good"}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: news
data: {"type":"news","about":"nothing"}

event: content_block_start
data: {"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{},"caller":{"type":"direct"}}}

event: content_block_delta
data: {"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Oslo\", \"n\": 1.50}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":5}

event: content_block_start
data: {"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":6}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":42,"output_tokens_details":{"thinking_tokens":9}}}

event: message_stop
data: {"type":"message_stop"}

`

func TestStreamKeepsAllContent(t *testing.T) {
	answer, err := ask(t, providertest.Answered(longStream))
	require.NoError(t, err)
	want := []content.Block{
		content.Thinking{Text: "Let me see. ❄", Signature: "c2ln", Extra: content.Extra{API: API, JSON: "{}"}},
		content.Opaque{API: API, JSON: `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "snow"}}`},
		content.Opaque{API: API, JSON: `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com","page_age":null}]}`},
		content.Text{Text: "It snows. ❄ 😀", Extra: content.Extra{API: API, JSON: `{"citations":[{"type":"web_search_result_location","url":"https://example.com"}]}`}},
		content.Opaque{API: API, JSON: `{"type":"novelty","state":"half whole","score":1,"mood":"good"}`},
		content.ToolUse{ID: "toolu_1", Name: "get_weather", Input: `{"city": "Oslo", "n": 1.50}`, Extra: content.Extra{API: API, JSON: `{"caller":{"type":"direct"}}`}},
		content.ToolUse{ID: "toolu_2", Name: "now", Input: "{}"},
	}
	require.Equal(t, want, answer.Blocks.Slice())
	require.Equal(t, content.StopToolUse, answer.Stop)
	require.Equal(t, content.Usage{Input: 10, Output: 42, CacheRead: 7, CacheWrite: 3, Reasoning: 9}, answer.Usage)
	require.Equal(t, "claude-x", answer.Model)
	require.Equal(t, "msg_1", answer.ResponseID)
}

func TestDeltasAddUpToTheText(t *testing.T) {
	var shown []string
	for event, err := range decodeAll(longStream) {
		require.NoError(t, err)
		if d, ok := event.(api.Delta); ok {
			shown = append(shown, fmt.Sprintf("%d %s %s %s", d.Index, d.Kind, d.Tool, d.Text))
		}
	}
	require.Equal(t, []string{
		"0 thinking  Let me see. ❄",
		`1 input web_search {"query": "sno`, `1 input web_search w"}`,
		"3 text  It snows. ❄ 😀",
		`5 input get_weather {"city": "Oslo", "n": 1.50}`,
	}, shown)
}

// decodeAll decodes a stream without a server.
func decodeAll(stream string) func(func(api.Event, error) bool) {
	return streamed(&http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(stream))})
}

// fold returns the answer of a stream, or its error.
func fold(stream string) (api.Response, error) {
	var f api.Fold
	for event, err := range decodeAll(stream) {
		if err == nil {
			err = f.Add(event)
		}
		if err != nil {
			return api.Response{}, err
		}
	}
	return f.Response()
}

// TestACutStreamIsNeverAnAnswer cuts every recorded stream, and one of ours that has everything, after every byte (the longer
// ones at a thousand places, fewer with the race detector or -short).
func TestACutStreamIsNeverAnAnswer(t *testing.T) {
	streams := []string{longStream}
	for _, c := range recordedStreams(t) {
		streams = append(streams, c.Response.Body)
	}
	for _, stream := range streams {
		whole, err := fold(stream)
		require.NoError(t, err)
		end := strings.LastIndex(stream, `"message_stop"`) + len(`"message_stop"`) // all but the brackets behind it
		step := 1
		if stream != longStream {
			step += len(stream) / seedtest.Rounds(50, 1000) // of recorded ones, some places
		}
		for at := 0; at < len(stream); at += step {
			got, err := fold(stream[:at])
			if err == nil {
				require.Greater(t, at, end, "a stream cut after byte %d is taken as an answer", at)
				requireSameAnswer(t, whole, got)
				continue
			}
			require.ErrorIs(t, err, api.ErrCut, "cut after byte %d", at)
		}
	}
}

func recordedStreams(t *testing.T) []providertest.Exchange {
	var found []providertest.Exchange
	t.Run("recorded", func(t *testing.T) {
		for _, c := range cassettes(t) {
			for _, e := range c.Exchanges {
				if e.Streamed() && e.Response.Status == 200 && !inStreamError(e) {
					found = append(found, e)
				}
			}
		}
	})
	return found
}

// TestACutConnectionIsCut breaks the connection in the middle of a chunked response, so that the reader gets an error.
func TestACutConnectionIsCut(t *testing.T) {
	for _, at := range []int{1, 100, 700, len(longStream) - 60} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, longStream[:at])
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		_, err := send(server, nil)
		server.Close()
		require.ErrorIs(t, err, api.ErrCut)
		require.True(t, api.Retryable(err))
	}
}

func send(server *httptest.Server, o *Options) (api.Response, error) {
	var options Options
	if o != nil {
		options = *o
	}
	options.SDK = localSDK(server.URL, server.Client())
	return api.NewClient(New("claude", &options), &api.ClientOptions{Attempts: 1}).Send(context.Background(), hello())
}

func TestALastEventWithoutItsBlankLineCounts(t *testing.T) {
	for _, end := range []string{"", "\n"} {
		got, err := fold(strings.TrimSpace(longStream) + end)
		require.NoError(t, err)
		require.Equal(t, 7, got.Blocks.Len())
	}
}

func TestWindowsLineEndsAndNoEventLines(t *testing.T) {
	want, err := fold(longStream)
	require.NoError(t, err)
	got, err := fold(strings.ReplaceAll(longStream, "\n", "\r\n"))
	require.NoError(t, err)
	requireSameAnswer(t, want, got)
	var bare strings.Builder
	for line := range strings.Lines(longStream) {
		if !strings.HasPrefix(line, "event:") {
			bare.WriteString(line)
		}
	}
	got, err = fold(bare.String())
	require.NoError(t, err)
	requireSameAnswer(t, want, got)
}

// TestACallCutOffIsNoEmptyObject ends an answer at max_tokens before, and in the middle of, a call's arguments.
func TestACallCutOffIsNoEmptyObject(t *testing.T) {
	for written, want := range map[string]content.JSON{``: "", `{\"city\":\"Os`: `{"city":"Os`} {
		stream := callStream(written, "max_tokens")
		got, err := fold(stream)
		require.NoError(t, err)
		require.Equal(t, want, got.Blocks.ToolUses()[0].Input)
		require.Equal(t, content.StopMaxTokens, got.Stop)
	}
	got, err := fold(callStream("", "tool_use"))
	require.NoError(t, err)
	require.EqualValues(t, "{}", got.Blocks.ToolUses()[0].Input, "a call that ended has no arguments because it takes none")
}

func callStream(written, reason string) string {
	return `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"` + written + `"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`
}

func TestAStreamThatBreaksTheProtocol(t *testing.T) {
	begin := "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{}}}\n\n"
	end := "data: {\"type\":\"message_stop\"}\n\n"
	for name, stream := range map[string]string{
		"an event that is not JSON":     begin + "data: {\"type\":\n\n" + end,
		"an event of the wrong shape":   begin + "data: {\"type\":7}\n\n" + end,
		"a block out of order":          begin + "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" + end,
		"a block that is no object":     begin + "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":[]}\n\n" + end,
		"a delta of no block":           begin + "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n" + end,
		"an end without a beginning":    end,
		"a text that is not a string":   begin + "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":7}\n\n" + end,
		"a delta that is not an object": begin + "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":3}\n\n" + end,
	} {
		_, err := fold(stream)
		require.ErrorIs(t, err, api.ErrProtocol, name)
		require.False(t, api.Retryable(err), name)
	}
}

func TestUnknownStopReasonsAreKept(t *testing.T) {
	for said, want := range map[string]content.Stop{
		"end_turn": content.StopEndTurn, "tool_use": content.StopToolUse, "max_tokens": content.StopMaxTokens,
		"stop_sequence": content.StopSequence, "pause_turn": content.StopPause, "refusal": content.StopRefusal,
		"model_context_window_exceeded": content.StopContext, "enlightenment": "enlightenment", "": content.StopUnknown,
	} {
		got, err := fold(callStream(`{}`, said))
		require.NoError(t, err)
		require.Equal(t, want, got.Stop)
	}
}

// FuzzStream gives the decoder any bytes: it must not panic, and what it takes as an answer must be one that can be kept. Run it
// with -fuzzminimizetime 10x: making the long seed smaller would take all its time.
func FuzzStream(f *testing.F) {
	f.Add(longStream)
	f.Add(callStream(`{\"a\":`, "max_tokens"))
	f.Add("data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		answer, err := fold(stream)
		if err != nil {
			var failure *api.Error
			require.True(t, errors.As(err, &failure), "%T", err)
			return
		}
		requireResendable(t, answer.Blocks)
	})
}

// FuzzMessage does the same for whole answers.
func FuzzMessage(f *testing.F) {
	f.Add(`{"type":"message","id":"m","model":"c","content":[{"type":"text","text":"hi","citations":[{"a":1}]},{"type":"tool_use","id":"a","name":"b","input":{"x":[1]}},{"type":"thinking","thinking":"","signature":"s"},{"type":"redacted_thinking","data":"x"},{"type":"new","a":null}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`)
	f.Add(`{"type":"error","error":{"type":"api_error","message":"no"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		blocks, _, err := decodeMessage([]byte(body), nil)
		if err != nil {
			return
		}
		if kept, err := content.Of(blocks...); err == nil {
			requireResendable(t, kept)
		}
	})
}

// requireResendable makes a request that holds the blocks, and reads it: they must be JSON, and repairing must not fail.
func requireResendable(t *testing.T, blocks content.Blocks) {
	body, _, err := Body(api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("?")}, {Role: content.Assistant, Blocks: blocks}}}, "m", nil)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(body, &v, jsonx.Lenient), string(body))
}

func TestEndlessResponseIsAnErrorWithoutRetry(t *testing.T) {
	for kind, read := range map[string]func(*http.Response) iter.Seq2[api.Event, error]{
		"streamed": streamed,
		"whole":    atOnce,
	} {
		endless := io.NopCloser(&repeating{"event: ping\ndata: {\"type\":\"ping\"}\n\n"})
		res := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: wire.BoundedTo(endless, 1<<20)}
		var last error
		for _, err := range read(res) {
			last = err
		}
		require.ErrorIs(t, last, api.ErrProtocol, kind)
		require.ErrorIs(t, last, wire.ErrTooLong, kind)
		require.False(t, api.Retryable(last), kind)
	}
}

// repeating is its text, again and again.
type repeating struct{ text string }

func (r *repeating) Read(p []byte) (int, error) {
	n := 0
	for n+len(r.text) <= len(p) {
		n += copy(p[n:], r.text)
	}
	if n == 0 {
		n = copy(p, r.text[:len(p)])
		r.text = r.text[n:] + r.text[:n]
	}
	return n, nil
}
