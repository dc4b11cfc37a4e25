package gemini

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
	"testing/iotest"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/internal/wire"
)

// TestStreamedAndWholeResponseAreEqual streams every recorded whole answer as the API does, and folds both.
func TestStreamedAndWholeResponseAreEqual(t *testing.T) {
	count := providertest.Tally{T: t, What: "whole answers, streamed"}
	for _, c := range cassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status != 200 || e.Streamed() || unanswered(e) {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				e.Response.Body = compact(t, e.Response.Body)
				whole, err := ask(t, e)
				require.NoError(t, err)
				for _, apart := range []bool{false, true} {
					e.Response.Body = asStream(t, compact(t, e.Response.Body), apart)
					streamed, err := ask(t, e)
					if whole.Stop == content.StopUnknown {
						require.ErrorIs(t, err, api.ErrCut, "a stream has a reason at its end")
						return
					}
					require.NoError(t, err)
					requireSameAnswer(t, whole, streamed)
					e.Response.Body = asList(t, e.Response.Body)
					listed, err := ask(t, e)
					require.NoError(t, err)
					requireSameAnswer(t, whole, listed)
					e.Response.Body = compact(t, c.Exchanges[i].Response.Body)
				}
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

// asStream is a whole answer as the API streams it: text in pieces, everything else in one, and what is said about the answer with
// the last. A signature of a text comes with its last piece, or apart, on a part whose text is empty.
func asStream(t testing.TB, body string, apart bool) string {
	answer, err := jsonx.Members(content.JSON(body))
	require.NoError(t, err)
	candidates, answer := jsonx.Take(answer, "candidates")
	var list []jsonx.Raw
	require.NoError(t, candidates.Decode(&list))
	candidate, err := jsonx.Members(content.JSON(list[0]))
	require.NoError(t, err)
	said, candidate := jsonx.Take(candidate, "content")
	var parts []jsonx.Raw
	if members, err := jsonx.Members(said); err == nil {
		if value, _ := jsonx.Take(members, "parts"); value != "" {
			require.NoError(t, value.Decode(&parts))
		}
	}
	var pieces []string
	for _, part := range parts {
		pieces = append(pieces, inPieces(t, content.JSON(part), apart)...)
	}
	if len(pieces) == 0 {
		pieces = []string{`{"text":""}`}
	}
	var out strings.Builder
	for i, piece := range pieces {
		now := []jsonx.Member{{Name: "content", Value: content.JSON(`{"parts":[` + piece + `],"role":"model"}`)}}
		if i == len(pieces)-1 {
			now = append(now, candidate...)
		}
		chunk := append([]jsonx.Member{{Name: "candidates", Value: "[" + jsonx.Object(now) + "]"}}, answer...)
		fmt.Fprintf(&out, "data: %s\r\n\r\n", jsonx.Object(chunk))
	}
	return out.String()
}

// asList is a stream as the API gives it where events are not asked for: a list of chunks.
func asList(t testing.TB, stream string) string {
	var chunks []string
	for data, err := range roundtrip.Events(strings.NewReader(stream)) {
		require.NoError(t, err)
		chunks = append(chunks, string(data))
	}
	return "[" + strings.Join(chunks, ",\r\n") + "]"
}

func inPieces(t testing.TB, part content.JSON, apart bool) []string {
	list, err := jsonx.Members(part)
	require.NoError(t, err)
	said, rest, ok := jsonx.TakeText(list, "text")
	if !ok || said == "" {
		return []string{string(part)}
	}
	signature, rest := jsonx.Take(rest, thoughtSignature)
	var pieces []string
	piece := func(words string, more ...jsonx.Member) {
		members := append([]jsonx.Member{{Name: "text", Value: jsonx.Quote(words)}}, rest...)
		pieces = append(pieces, string(jsonx.Object(append(members, more...))))
	}
	sign := jsonx.Member{Name: thoughtSignature, Value: signature}
	for r := []rune(said); len(r) > 0; {
		n := min(len(r), 1+len(said)/5)
		if n == len(r) && signature != "" && !apart {
			piece(string(r), sign)
		} else {
			piece(string(r[:n]))
		}
		r = r[n:]
	}
	if signature != "" && apart {
		piece("", sign)
	}
	return pieces
}

// longStream has every kind of part, and what stands between events.
const longStream = `: a comment

data: {"candidates": [{"content": {"parts": [{"text": "Let me ","thought": true}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 10,"totalTokenCount": 10},"modelVersion": "gemini-x","responseId": "r1"}

event: message
id: 7
data: {"candidates": [{"content": {"parts": [{"text": "see. ❄","thought": true}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"executableCode": {"language": "PYTHON","code": "1+1","id": "x1"},"thoughtSignature": "Y29kZQ=="},{"text": ""}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"codeExecutionResult": {"outcome": "OUTCOME_OK","output": "2\n"}}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"text": "another candidate"}]},"index": 1},{"content": {"parts": [{"text": "It "}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"text": "another candidate"}]},"finishReason": "STOP","index": 1}]}

data: {"candidates": [{"content": {"parts": [{"text": "snows. \u2744"},{"text": " \ud83d\ude00"}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"text": "","thoughtSignature": "dGV4dA"}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"text": "More."}],"role": "model"},"index": 0,"groundingMetadata": {}}]}

data: {"candidates": [{"content": {"parts": [{"novelty": {"n": 12345678901234567890}},{"inlineData": {"mimeType": "image/png","data": "iVBO-_=="}}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"functionCall": {"name": "get_weather","args": {"city": "Oslo", "n": 12345678901234567890}},"thoughtSignature": "Y2FsbA-_"}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"functionCall": {"name": "now","id": "c2","willContinue": false}}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "STOP","index": 0,"groundingMetadata": {"webSearchQueries": ["snow"]}}],"usageMetadata": {"promptTokenCount": 100,"cachedContentTokenCount": 30,"candidatesTokenCount": 20,"thoughtsTokenCount": 9,"toolUsePromptTokenCount": 5,"totalTokenCount": 134}}

`

func TestStreamKeepsAllContent(t *testing.T) {
	answer, err := fold(longStream)
	require.NoError(t, err)
	own := func(j content.JSON) content.Extra { return content.Extra{API: API, JSON: j} }
	want := []content.Block{
		content.Thinking{Text: "Let me see. ❄", Extra: own("{}")},
		content.Opaque{API: API, JSON: `{"executableCode": {"language": "PYTHON","code": "1+1","id": "x1"},"thoughtSignature": "Y29kZQ=="}`},
		content.Opaque{API: API, JSON: `{"codeExecutionResult": {"outcome": "OUTCOME_OK","output": "2\n"}}`},
		content.Text{Text: "It snows. ❄ 😀", Extra: own(`{"thoughtSignature":"dGV4dA"}`)},
		content.Text{Text: "More."},
		content.Opaque{API: API, JSON: `{"novelty": {"n": 12345678901234567890}}`},
		content.Image{Source: content.Source{MediaType: "image/png", Data: "iVBO+/=="}},
		content.ToolUse{Name: "get_weather", Input: `{"city": "Oslo", "n": 12345678901234567890}`, Extra: own(`{"thoughtSignature":"Y2FsbA-_"}`)},
		content.ToolUse{ID: "c2", Name: "now", Input: "{}", Extra: own(`{"functionCall":{"willContinue":false},"groundingMetadata":{"webSearchQueries": ["snow"]}}`)},
	}
	require.Equal(t, want, answer.Blocks.Slice())
	require.Equal(t, content.StopToolUse, answer.Stop)
	require.Equal(t, content.Usage{Input: 75, CacheRead: 30, Output: 29, Reasoning: 9}, answer.Usage)
	require.Equal(t, "gemini-x", answer.Model)
	require.Equal(t, "r1", answer.ResponseID)
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
		"0 thinking  Let me ", "0 thinking  see. ❄", "3 text  It ", "3 text  snows. ❄", "3 text   😀", "4 text  More.",
		`7 input get_weather {"city": "Oslo", "n": 12345678901234567890}`, "8 input now {}",
	}, shown)
}

// TestASignatureStaysWithItsPart says of a few orders of parts which become one block.
func TestASignatureStaysWithItsPart(t *testing.T) {
	for parts, want := range map[string]string{
		`{"text":"a"},{"text":"","thoughtSignature":"c2ln"}`:                                                 `{"text":"a","thoughtSignature":"c2ln"}`,
		`{"text":"a","thoughtSignature":"c2ln"},{"text":"b"}`:                                                `{"text":"a","thoughtSignature":"c2ln"},{"text":"b"}`,
		`{"text":"a","thoughtSignature":"c2ln"},{"text":"","thoughtSignature":"dHdv"}`:                       `{"text":"a","thoughtSignature":"c2ln"},{"text":"","thoughtSignature":"dHdv"}`,
		`{"text":"","thoughtSignature":"c2ln"}`:                                                              `{"text":"","thoughtSignature":"c2ln"}`,
		`{"functionCall":{"name":"f","args":{}}},{"text":"","thoughtSignature":"c2ln"}`:                      `{"functionCall":{"name":"f","args":{}}},{"text":"","thoughtSignature":"c2ln"}`,
		`{"text":"a","thought":true},{"text":"","thought":true,"thoughtSignature":"c2ln"}`:                   `{"text":"a","thought":true,"thoughtSignature":"c2ln"}`,
		`{"text":"a","thought":true,"thoughtSignature":"c2ln"},{"text":"b","thought":true}`:                  `{"text":"a","thought":true,"thoughtSignature":"c2ln"},{"text":"b","thought":true}`,
		`{"text":"a","thought":true},{"text":"b"}`:                                                           `{"text":"a","thought":true},{"text":"b"}`,
		`{"text":"a","partMetadata":{"k":1}},{"text":"b"}`:                                                   `{"text":"a","partMetadata":{"k":1}},{"text":"b"}`,
		`{"text":"a"},{"text":"b","partMetadata":{"k":1}}`:                                                   `{"text":"a"},{"text":"b","partMetadata":{"k":1}}`,
		`{"fileData":{"mimeType":"video/mp4","fileUri":"https://x/y"},"videoMetadata":{"startOffset":"1s"}}`: `{"fileData":{"mimeType":"video/mp4","fileUri":"https://x/y"},"videoMetadata":{"startOffset":"1s"}}`,
	} {
		body := `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"STOP"}]}`
		answer, err := foldWhole(body)
		require.NoError(t, err, parts)
		made := []byte{}
		for _, b := range answer.Blocks.All() {
			if len(made) > 0 {
				made = append(made, ',')
			}
			made = appendPart(made, b)
		}
		require.Equal(t, want, string(made), parts)
	}
}

func responseOfBody(body string) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// decodeAll decodes a stream without a server.
func decodeAll(stream string) iter.Seq2[api.Event, error] { return streamed(responseOfBody(stream)) }

// fold returns the answer of a stream, or its error, and foldWhole that of an answer that came at once.
func fold(stream string) (api.Response, error) { return foldAll(decodeAll(stream)) }

func foldWhole(body string) (api.Response, error) { return foldAll(whole(responseOfBody(body))) }

func foldAll(events iter.Seq2[api.Event, error]) (api.Response, error) {
	var f api.Fold
	for event, err := range events {
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
		end := strings.LastIndex(stream, `"finishReason"`)
		end += strings.LastIndexAny(stream[end:], "}") // the last event has to be whole
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
	for _, c := range cassettes(t) {
		for _, e := range c.Exchanges {
			if e.Streamed() && e.Response.Status == 200 {
				found = append(found, e)
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}

// TestACutConnectionIsCut breaks the connection in the middle of a chunked response, so that the reader gets an error. After the
// answer's end that does no harm.
func TestACutConnectionIsCut(t *testing.T) {
	for _, at := range []int{1, 100, 700, len(longStream) - 60, len(longStream)} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, longStream[:at])
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		_, err := send(server, nil)
		server.Close()
		if at == len(longStream) {
			require.NoError(t, err)
			continue
		}
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
	return api.NewClient(New("gemini-x", &options), &api.ClientOptions{Attempts: 1}).Send(context.Background(), hello())
}

func TestStreamsInOtherForms(t *testing.T) {
	want, err := fold(longStream)
	require.NoError(t, err)
	for name, stream := range map[string]string{
		"windows line ends":        strings.ReplaceAll(longStream, "\n", "\r\n"),
		"no blank line at the end": strings.TrimSpace(longStream),
		"no space after data":      strings.ReplaceAll(longStream, "data: ", "data:"),
		"data in two lines":        strings.ReplaceAll(longStream, `"candidates": [`, "\"candidates\":\ndata: ["),
		"a proxy's end":            longStream + "data: [DONE]\n\n",
		"rubbish after the end":    longStream + "data: {\"candi",
	} {
		got, err := fold(stream)
		require.NoError(t, err, name)
		requireSameAnswer(t, want, got)
	}
	got, err := foldWhole(longStream) // a stream whose content type says something else
	require.NoError(t, err)
	requireSameAnswer(t, want, got)
}

func TestAStreamThatBreaksTheProtocol(t *testing.T) {
	end := "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"
	for name, stream := range map[string]string{
		"an event that is not JSON":    "data: {\"candidates\":\n\n" + end,
		"an event of the wrong shape":  "data: {\"candidates\":7}\n\n" + end,
		"an event that is a list":      "data: [1]\n\n" + end,
		"a part that is no object":     "data: {\"candidates\":[{\"content\":{\"parts\":[7]}}]}\n\n" + end,
		"parts that are no list":       "data: {\"candidates\":[{\"content\":{\"parts\":{}}}]}\n\n" + end,
		"a finish reason that is none": "data: {\"candidates\":[{\"finishReason\":7}]}\n\n",
	} {
		_, err := fold(stream)
		require.ErrorIs(t, err, api.ErrProtocol, name)
		require.False(t, api.Retryable(err), name)
	}
}

func TestALoneSurrogateDoesNotCostTheAnswer(t *testing.T) {
	answer, err := foldWhole(`{"candidates":[{"content":{"parts":[{"text":"a\ud800b"},{"executableCode":{"code":"\udfff","code":"x"}}]},"finishReason":"STOP"}]}`)
	require.NoError(t, err)
	require.Equal(t, "a\uFFFDb", answer.Blocks.Text())
	require.Equal(t, 2, answer.Blocks.Len())
}

func TestWhyAnAnswerEnds(t *testing.T) {
	said := func(reason string, parts string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `]},"finishReason":"` + reason + `"}]}`
	}
	call := `{"functionCall":{"name":"f","args":{}}}`
	for _, c := range []struct {
		reason, parts string
		want          content.Stop
	}{
		{"STOP", `{"text":"x"}`, content.StopEndTurn}, {"STOP", call, content.StopToolUse}, {"STOP", `{"text":"x"},` + call + `,{"text":""}`, content.StopToolUse},
		{"MAX_TOKENS", `{"text":"x"}`, content.StopMaxTokens}, {"MAX_TOKENS", call, content.StopMaxTokens},
		{"SAFETY", ``, content.StopRefusal}, {"RECITATION", `{"text":"x"}`, content.StopRefusal}, {"BLOCKLIST", ``, content.StopRefusal},
		{"PROHIBITED_CONTENT", ``, content.StopRefusal}, {"SPII", ``, content.StopRefusal}, {"IMAGE_SAFETY", ``, content.StopRefusal},
		{"LANGUAGE", ``, "LANGUAGE"}, {"OTHER", ``, "OTHER"}, {"FINISH_REASON_UNSPECIFIED", ``, content.StopUnknown},
	} {
		for _, read := range []func(string) (api.Response, error){foldWhole, func(body string) (api.Response, error) { return fold("data: " + body + "\n\n") }} {
			got, err := read(said(c.reason, c.parts))
			require.NoError(t, err, c.reason)
			require.Equal(t, c.want, got.Stop, c.reason)
		}
	}
	for reason, want := range map[string]error{
		"MALFORMED_FUNCTION_CALL": api.ErrServer, "UNEXPECTED_TOOL_CALL": api.ErrServer, "MISSING_THOUGHT_SIGNATURE": api.ErrInvalidRequest,
	} {
		_, err := foldWhole(said(reason, ""))
		require.ErrorIs(t, err, want)
		require.Equal(t, want == api.ErrServer, api.Retryable(err), "the model may do better the next time")
	}
}

func TestARefusedPromptIsARefusal(t *testing.T) {
	body := `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":7},"modelVersion":"m"}`
	for _, read := range []func(string) (api.Response, error){foldWhole, func(body string) (api.Response, error) { return fold("data: " + body + "\n\n") }} {
		got, err := read(body)
		require.NoError(t, err)
		require.Equal(t, content.StopRefusal, got.Stop)
		require.Zero(t, got.Blocks.Len())
		require.EqualValues(t, 7, got.Usage.Input)
	}
}

// TestFactsAboutAResponseAreKept has the facts in the Extra of the last block, or in the details if it has none.
func TestFactsAboutAResponseAreKept(t *testing.T) {
	const (
		about = `"groundingMetadata":{"a":"\ud800"},"citationMetadata":{"b":2},"urlContextMetadata":{"c":3}`
		kept  = `"groundingMetadata":{"a":"�"},"citationMetadata":{"b":2},"urlContextMetadata":{"c":3}`
		facts = `"turnToken":"t","promptFeedback":{"safetyRatings":[1]},"finishMessage":"Done.","avgLogprobs":-0.5,"safetyRatings":[2]`
	)
	text := content.Text{Text: "Hi."}
	opaque := content.Opaque{API: API, JSON: `{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`}
	said := text
	said.Extra = own(`{` + kept + `}`)
	for parts, want := range map[string]struct {
		blocks  []content.Block
		details string
	}{
		`{"text":"Hi."}`:                        {[]content.Block{said}, `{` + facts + `}`},
		`{"text":"Hi."},` + string(opaque.JSON): {[]content.Block{text, opaque}, `{` + facts + `,` + kept + `}`},
		``:                                      {nil, `{` + facts + `,` + kept + `}`},
	} {
		body := `{"turnToken":"t","promptFeedback":{"safetyRatings":[1]},"candidates":[{"content":{"parts":[` + parts + `]},"finishReason":"STOP","finishMessage":"Done.","avgLogprobs":-0.5,"safetyRatings":[2],` + about + `}],"usageMetadata":{"promptTokenCount":7},"modelVersion":"m","responseId":"r"}`
		for _, read := range []func(string) (api.Response, error){foldWhole, func(body string) (api.Response, error) { return fold("data: " + body + "\n\n") }} {
			got, err := read(body)
			require.NoError(t, err, parts)
			require.Equal(t, want.blocks, got.Blocks.Slice(), parts)
			require.JSONEq(t, want.details, string(got.Details), parts)
		}
	}

	plain, err := foldWhole(`{"candidates":[{"index":0,"content":{"parts":[{"text":"Hi."}]},"finishReason":"STOP"}],"modelVersion":"m","responseId":"r"}`)
	require.NoError(t, err)
	require.Empty(t, plain.Details, "a response without further facts has no details")
}

// FuzzStream gives the decoder any bytes: it must not panic, and what it takes as an answer must be one that can be kept. Run it
// with -fuzzminimizetime 10x: making the long seed smaller would take all its time.
func FuzzStream(f *testing.F) {
	f.Add(longStream)
	f.Add("data: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"Overloaded\"}}\n\n")
	f.Add("{\n\"error\": {}}")
	f.Fuzz(func(t *testing.T, stream string) { requireAnswerOrError(t, decodeAll(stream)) })
}

// FuzzWhole does the same for whole answers.
func FuzzWhole(f *testing.F) {
	f.Add(`{"candidates":[{"content":{"parts":[{"text":"hi","thoughtSignature":"c2ln"},{"functionCall":{"name":"f","args":{"x":[1]}}},{"text":"t","thought":true},{"executableCode":{}},{"inlineData":{"mimeType":"image/png","data":"aaaa"}}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`)
	f.Add(`[{"error":{"code":500}}]`)
	f.Add(longStream)
	f.Fuzz(func(t *testing.T, body string) { requireAnswerOrError(t, whole(responseOfBody(body))) })
}

func requireAnswerOrError(t *testing.T, events iter.Seq2[api.Event, error]) {
	answer, err := foldAll(events)
	if err != nil {
		var failure *api.Error
		require.True(t, errors.As(err, &failure), "%T", err)
		return
	}
	requireResendable(t, answer.Blocks)
}

// requireResendable makes a request that holds the blocks, and reads it: they must be JSON, and repairing must not fail.
func requireResendable(t *testing.T, blocks content.Blocks) {
	body, _, err := Body(api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("?")}, {Role: content.Assistant, Blocks: blocks}}}, "gemini-3", nil)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(body, &v, jsonx.Lenient), string(body))
}

func TestEndlessResponseIsAnErrorWithoutRetry(t *testing.T) {
	for kind, read := range map[string]func(*http.Response) iter.Seq2[api.Event, error]{"streamed": streamed, "whole": whole} {
		res := responseOfBody("")
		res.Body = io.NopCloser(io.MultiReader(strings.NewReader(longStream[:200]), iotest.ErrReader(wire.ErrTooLong)))
		var last error
		for _, err := range read(res) {
			last = err
		}
		require.ErrorIs(t, last, api.ErrProtocol, kind)
		require.ErrorIs(t, last, wire.ErrTooLong, kind)
		require.False(t, api.Retryable(last), kind)
	}
}
