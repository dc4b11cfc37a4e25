package openai

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/stretchr/testify/require"
)

// TestStreamedAndWholeChatResponseAreEqual streams every recorded whole answer as the API does, and folds both.
func TestStreamedAndWholeChatResponseAreEqual(t *testing.T) {
	count := providertest.Tally{T: t, What: "whole answers, streamed"}
	for _, c := range chatCassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status != 200 || e.Streamed() {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				e.Response.Body = compact(t, e.Response.Body)
				whole, err := askChat(t, e)
				require.NoError(t, err)
				e.Response.Body = asChatStream(t, e.Response.Body)
				streamed, err := askChat(t, e)
				require.NoError(t, err)
				requireSameAnswer(t, whole, streamed)
			})
		}
	}
	count.Report()
}

func requireSameAnswer(t testing.TB, want, got api.Response) {
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

// asChatStream is a whole answer as the API streams it: texts and arguments in pieces, everything else at once.
func asChatStream(t testing.TB, body string) string {
	top, err := jsonx.Members(content.JSON(body))
	require.NoError(t, err)
	choices, top := jsonx.Take(top, "choices")
	usage, top := jsonx.Take(top, "usage")
	var all []jsonx.Raw
	require.NoError(t, choices.Decode(&all))
	one, err := jsonx.Members(content.JSON(all[0]))
	require.NoError(t, err)
	message, err := jsonx.Members(value(one, "message"))
	require.NoError(t, err)
	var out strings.Builder
	chunk := func(choices, usage string) {
		more := []jsonx.Member{{Name: "choices", Value: content.JSON(choices)}, {Name: "usage", Value: content.JSON(usage)}}
		fmt.Fprintf(&out, "data: %s\n\n", jsonx.Object(append(top, more...)))
	}
	delta := func(members ...jsonx.Member) {
		chunk(fmt.Sprintf(`[{"index":0,"delta":%s,"finish_reason":null}]`, jsonx.Object(members)), "null")
	}
	delta(jsonx.Member{Name: "role", Value: `"assistant"`}, jsonx.Member{Name: "content", Value: `""`})
	for _, m := range message {
		if said, ok := jsonx.Text(m.Value); ok && m.Name != "role" {
			for _, piece := range inPieces(said) {
				delta(jsonx.Member{Name: m.Name, Value: piece})
			}
		} else if m.Name == "tool_calls" {
			streamCalls(t, m.Value, delta)
		} else {
			delta(m)
		}
	}
	chunk(fmt.Sprintf(`[{"index":0,"delta":{},"finish_reason":%s}]`, value(one, "finish_reason")), "null")
	chunk("[]", string(usage))
	return out.String() + "data: [DONE]\n\n"
}

func streamCalls(t testing.TB, calls content.JSON, delta func(...jsonx.Member)) {
	var all []jsonx.Raw
	require.NoError(t, calls.Decode(&all))
	for i, one := range all {
		call, err := jsonx.Members(content.JSON(one))
		require.NoError(t, err)
		function, call := jsonx.Take(call, "function")
		inner, err := jsonx.Members(function)
		require.NoError(t, err)
		arguments, inner := jsonx.Take(inner, "arguments")
		said, _ := jsonx.Text(arguments)
		give := func(members ...jsonx.Member) {
			index := jsonx.Member{Name: "index", Value: content.JSON(fmt.Sprint(i))}
			item := jsonx.Object(append([]jsonx.Member{index}, members...))
			delta(jsonx.Member{Name: "tool_calls", Value: "[" + item + "]"})
		}
		begin := append(inner, jsonx.Member{Name: "arguments", Value: `""`})
		give(append(call, jsonx.Member{Name: "function", Value: jsonx.Object(begin)})...)
		for _, piece := range inPieces(said) {
			give(jsonx.Member{Name: "function", Value: jsonx.Object([]jsonx.Member{{Name: "arguments", Value: piece}})})
		}
	}
}

// inPieces cuts text into JSON strings of a few characters.
func inPieces(s string) []content.JSON {
	var pieces []content.JSON
	for r := []rune(s); len(r) > 0; {
		n := min(len(r), 5)
		pieces, r = append(pieces, jsonx.Quote(string(r[:n]))), r[n:]
	}
	return pieces
}

// longChat has every kind of delta: thinking under two names at once, details of it that are put together by their index, words,
// annotations, a refusal, a member that nobody knows, and two calls of which one has a signature of its server's.
const longChat = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

: a comment

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"reasoning":"Let me","reasoning_content":"Let me","reasoning_details":[{"index":0,"type":"reasoning.text","text":"Let me"}]}}],"error":null}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","reasoning":" see. ❄","reasoning_content":" see. ❄","reasoning_details":[{"index":0,"type":"reasoning.text","text":" see. ❄","signature":"c2ln"},{"index":1,"type":"reasoning.encrypted","data":"AAAA"}]}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":1,"delta":{"content":"another answer"}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"content":"It snows. \u2744"}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"content":" \ud83d\ude00"}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"url":"https://example.com/a"}}]}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"url":"https://example.com/b"}}],"mood":{"name":"good","score":1}}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"mood":{"score":2,"why":"sn"}}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"mood":{"why":"ow"}}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"refusal":"No more."}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": \"Oslo\","}}]}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" \"n\": 1.50}"}},{"index":1,"id":"call_2","type":"function","function":{"name":"now","arguments":""}}]}}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"chatcmpl-1","model":"m-1","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":42,"total_tokens":62,"prompt_tokens_details":{"cached_tokens":7,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":9}}}

data: [DONE]

`

func TestChatStreamKeepsAllContent(t *testing.T) {
	answer, err := askChat(t, providertest.Answered(longChat))
	require.NoError(t, err)
	want := []content.Block{
		content.Thinking{Text: "Let me see. ❄", Extra: content.Extra{API: ChatAPI, JSON: `{"field":"reasoning","reasoning_content":"Let me see. ❄","reasoning_details":[` +
			`{"index":0,"type":"reasoning.text","text":"Let me see. ❄","signature":"c2ln"},{"index":1,"type":"reasoning.encrypted","data":"AAAA"}]}`}},
		content.Text{Text: "It snows. ❄ 😀", Extra: content.Extra{API: ChatAPI, JSON: `{"annotations":[` +
			`{"type":"url_citation","url_citation":{"url":"https://example.com/a"}},{"type":"url_citation","url_citation":{"url":"https://example.com/b"}}]}`}},
		content.Text{Text: "No more.", Extra: content.Extra{API: ChatAPI, JSON: `{"type":"refusal"}`}},
		content.Opaque{API: ChatAPI, JSON: `{"mood":{"name":"good","score":2,"why":"snow"}}`},
		content.ToolUse{ID: "call_1", Name: "get_weather", Input: `{"city": "Oslo", "n": 1.50}`,
			Extra: content.Extra{API: ChatAPI, JSON: `{"extra_content":{"google":{"thought_signature":"c2ln"}}}`}},
		content.ToolUse{ID: "call_2", Name: "now", Input: "{}"},
	}
	require.Equal(t, want, answer.Blocks.Slice())
	require.Equal(t, content.StopToolUse, answer.Stop)
	require.Equal(t, content.Usage{Input: 10, Output: 42, CacheRead: 7, CacheWrite: 3, Reasoning: 9}, answer.Usage)
	require.Equal(t, "m-1", answer.Model)
	require.Equal(t, "chatcmpl-1", answer.ResponseID)
	require.Equal(t, `{"role":"assistant","content":"It snows. ❄ 😀","reasoning":"Let me see. ❄","reasoning_content":"Let me see. ❄","reasoning_details":[`+
		`{"index":0,"type":"reasoning.text","text":"Let me see. ❄","signature":"c2ln"},{"index":1,"type":"reasoning.encrypted","data":"AAAA"}],"annotations":[`+
		`{"type":"url_citation","url_citation":{"url":"https://example.com/a"}},{"type":"url_citation","url_citation":{"url":"https://example.com/b"}}],`+
		`"refusal":"No more.","mood":{"name":"good","score":2,"why":"snow"},"tool_calls":[`+
		`{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Oslo\", \"n\": 1.50}"},"extra_content":{"google":{"thought_signature":"c2ln"}}},`+
		`{"id":"call_2","type":"function","function":{"name":"now","arguments":"{}"}}]}`,
		string(appendChat(nil, content.Message{Role: content.Assistant, Blocks: answer.Blocks}, 0)), "it goes back under the names it came under")
}

func TestChatDeltasAddUpToTheText(t *testing.T) {
	var shown []string
	for event, err := range decodeChat(longChat) {
		require.NoError(t, err)
		if d, ok := event.(api.Delta); ok {
			shown = append(shown, fmt.Sprintf("%d %s %s %s", d.Index, d.Kind, d.Tool, d.Text))
		}
	}
	require.Equal(t, []string{
		"0 thinking  Let me", "0 thinking   see. ❄", "1 text  It snows. ❄", "1 text   😀", "2 text  No more.",
		`4 input get_weather {"city": "Oslo",`, `4 input get_weather  "n": 1.50}`,
	}, shown)
}

// decodeChat decodes a stream without a server.
func decodeChat(stream string) iter.Seq2[api.Event, error] {
	return streamedChat(&http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(stream))}, call{})
}

// foldChat returns the answer of a stream, or its error.
func foldChat(stream string) (api.Response, error) { return foldEvents(decodeChat(stream)) }

func foldEvents(events iter.Seq2[api.Event, error]) (api.Response, error) {
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

// TestACutChatStreamIsNeverAnAnswer cuts every recorded stream, and one of ours that has everything, after every byte (the longer
// ones at two hundred places, fewer with -short). Once the model's end is there the answer is.
func TestACutChatStreamIsNeverAnAnswer(t *testing.T) {
	streams := []string{longChat}
	t.Run("recorded", func(t *testing.T) {
		for _, c := range chatCassettes(t) {
			for _, e := range c.Exchanges {
				if e.Streamed() && e.Response.Status == 200 {
					streams = append(streams, string(e.Body(t)))
				}
			}
		}
	})
	for _, stream := range streams {
		whole, err := foldChat(stream)
		require.NoError(t, err)
		step := 1
		if stream != longChat {
			step += len(stream) / seedtest.Rounds(30, 200)
		}
		for at := 0; at < len(stream); at += step {
			got, err := foldChat(stream[:at])
			if err == nil {
				require.Equal(t, string(whole.Blocks.Append(nil)), string(got.Blocks.Append(nil)), "cut after byte %d", at)
				require.Equal(t, whole.Stop, got.Stop)
				require.Regexp(t, `"finish_reason": ?"`, stream[:at])
				continue
			}
			require.ErrorIs(t, err, api.ErrCut, "cut after byte %d", at)
		}
	}
}

// TestCompatibleServersMayStreamCallsInTheirOwnWay has every form of tool calls that servers were seen to stream.
func TestCompatibleServersMayStreamCallsInTheirOwnWay(t *testing.T) {
	for name, deltas := range map[string][]string{
		"as OpenAI does": {
			`[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]`, `[{"index":0,"function":{"arguments":"{\"x\":"}}]`,
			`[{"index":0,"function":{"arguments":"1}"}}]`, `[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]`},
		"without an index": {
			`[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`, `[{"function":{"arguments":"1}"}}]`, `[{"id":"b","function":{"name":"g","arguments":"{}"}}]`},
		"whole, each with index 0": {
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]`, `[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]`},
		"with the id and name again and again": {
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`, `[{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}]`,
			`[{"index":1,"id":"b","function":{"name":"g","arguments":""}}]`, `[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]`},
		"with an empty id and name": {
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`, `[{"index":0,"id":"","type":"","function":{"name":"","arguments":"1}"}}]`,
			`[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]`, `[{"index":1,"id":null,"function":{"name":null,"arguments":""}}]`},
		"with arguments that are an object": {
			`[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}},{"index":1,"id":"b","function":{"arguments":{},"name":"g"}}]`},
		"with a new id for each piece": {
			`[{"index":0,"id":"a","function":{"name":"f"}}]`, `[{"index":0,"id":"a2","function":{"arguments":"{\"x\":1}"}}]`,
			`[{"index":1,"id":"b","function":{"name":"g"}}]`, `[{"index":1,"id":"b2","function":{"arguments":"{}"}}]`},
	} {
		var stream strings.Builder
		for _, d := range deltas {
			fmt.Fprintf(&stream, "data: {\"choices\":[{\"delta\":{\"tool_calls\":%s}}]}\n\n", d)
		}
		stream.WriteString("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
		answer, err := foldChat(stream.String())
		require.NoError(t, err, name)
		require.Equal(t, []content.Block{
			content.ToolUse{ID: "a", Name: "f", Input: `{"x":1}`}, content.ToolUse{ID: "b", Name: "g", Input: `{}`},
		}, answer.Blocks.Slice(), name)
		require.Equal(t, content.StopToolUse, answer.Stop, "the model waits for results, whatever the server calls it")
	}
}

// TestThinkingIsSentBackUnderItsMemberName takes the forms of thinking that compatible servers have.
func TestThinkingIsSentBackUnderItsMemberName(t *testing.T) {
	for message, words := range map[string]string{
		`{"role":"assistant","content":"4","reasoning_content":"2+2"}`:                                                                            "2+2",
		`{"role":"assistant","content":"4","reasoning":"2+2"}`:                                                                                    "2+2",
		`{"role":"assistant","content":"4","reasoning":"2+2","reasoning_details":[{"type":"reasoning.summary","summary":"2+2"}]}`:                 "2+2",
		`{"role":"assistant","content":"4","reasoning_details":[{"type":"reasoning.text","text":"2+2"},{"type":"reasoning.text","text":"is 4"}]}`: "2+2\nis 4",
		`{"role":"assistant","content":"4","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`:                                      "",
		`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"2+2"}]},{"type":"text","text":"4"}]}`:               "2+2",
	} {
		answer, err := askChat(t, providertest.Answered(`{"choices":[{"message":`+message+`,"finish_reason":"stop"}]}`))
		require.NoError(t, err, message)
		thought, ok := answer.Blocks.At(0).(content.Thinking)
		require.True(t, ok, message)
		require.Equal(t, words, thought.Text)
		require.Equal(t, "4", answer.Blocks.Text())
		body, repairs, err := ChatBody(api.Request{Messages: goOnFrom(answer.Blocks)}, "m", nil)
		require.NoError(t, err)
		require.Empty(t, repairs)
		require.Contains(t, string(body), message)
		body, _, err = ChatBody(api.Request{Messages: goOnFrom(answer.Blocks)}, "m", &Options{OmitThinking: true})
		require.NoError(t, err)
		require.Contains(t, string(body), `{"role":"assistant","content":"4"}`)
	}
}

// goOnFrom is a conversation in which the answer was given.
func goOnFrom(answer content.Blocks) []content.Message {
	return []content.Message{
		{Role: content.User, Blocks: content.Words("Q")}, {Role: content.Assistant, Blocks: answer}, {Role: content.User, Blocks: content.Words("And?")},
	}
}

func TestSpokenResponseIsSentBackByItsID(t *testing.T) {
	answer, err := foldChat(`data: {"choices":[{"delta":{"audio":{"id":"audio_1","transcript":"Hel"}}}]}

data: {"choices":[{"delta":{"audio":{"transcript":"lo","data":"AAAA","expires_at":7}},"finish_reason":"stop"}]}

`)
	require.NoError(t, err)
	require.Equal(t, "Hello", answer.Blocks.Text())
	body, repairs, err := ChatBody(api.Request{Messages: goOnFrom(answer.Blocks)}, "m", nil)
	require.NoError(t, err)
	require.Empty(t, repairs)
	require.Contains(t, string(body), `{"role":"assistant","content":null,"audio":{"id":"audio_1"}}`)
}

// TestCallAfterASpokenResponseHasTheIndexOfItsBlock counts audio as the one block that it becomes.
func TestCallAfterASpokenResponseHasTheIndexOfItsBlock(t *testing.T) {
	stream := decodeChat(`data: {"choices":[{"delta":{"audio":{"id":"audio_1","transcript":"Hello"}}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}

data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}

`)
	shown, called := -1, -1
	for event, err := range stream {
		require.NoError(t, err)
		switch e := event.(type) {
		case api.Delta:
			shown = e.Index
		case api.BlockEnd:
			if _, isCall := e.Block.(content.ToolUse); isCall {
				called = e.Index
			}
		}
	}
	require.Equal(t, 1, called)
	require.Equal(t, called, shown)
}

// TestDeltasHaveTheIndexOfTheirBlock streams a response with a block of every kind.
func TestDeltasHaveTheIndexOfTheirBlock(t *testing.T) {
	var stream strings.Builder
	for _, delta := range []string{
		`"reasoning":"Let me see."`, `"content":"Snow"`, `"content":"."`, `"audio":{"id":"audio_1","transcript":"Snow."}`,
		`"refusal":"No more."`, `"content":[{"type":"picture","of":"snow"}]`, `"mood":"good"`,
		`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`,
		`"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"[]"}}]`,
	} {
		fmt.Fprintf(&stream, "data: {\"choices\":[{\"delta\":{%s}}]}\n\n", delta)
	}
	stream.WriteString("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n")

	shown, blocks := map[int]string{}, []string{}
	for event, err := range decodeChat(stream.String()) {
		require.NoError(t, err)
		switch e := event.(type) {
		case api.Delta:
			shown[e.Index] += e.Text
		case api.BlockEnd:
			blocks = append(blocks, fmt.Sprintf("%d %T", e.Index, e.Block))
		}
	}
	require.Equal(t, []string{
		"0 content.Thinking", "1 content.Text", "2 content.Text", "3 content.Text", "4 content.Opaque", "5 content.Opaque",
		"6 content.ToolUse", "7 content.ToolUse",
	}, blocks)
	require.Equal(t, map[int]string{0: "Let me see.", 1: "Snow.", 3: "No more.", 6: "{}", 7: "[]"}, shown)
}

// TestAnswersInARowAreOneMessage joins what two answers have under the same member.
func TestAnswersInARowAreOneMessage(t *testing.T) {
	answer := func(thought, refusal, cited string) content.Message {
		body := fmt.Sprintf(`{"choices":[{"message":{"role":"assistant","content":null,"reasoning":%q,"refusal":%q,"cited":[%q]},`+
			`"finish_reason":"stop"}]}`, thought, refusal, cited)
		response := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
		got, err := foldEvents(wholeChat(response, call{}))
		require.NoError(t, err)
		return content.Message{Role: content.Assistant, Blocks: got.Blocks}
	}

	body, _, err := ChatBody(api.Request{Messages: []content.Message{
		{Role: content.User, Blocks: content.Words("Q")},
		answer("One.", "No.", "a"),
		answer("Two.", "Never.", "b"),
		{Role: content.User, Blocks: content.Words("And?")},
	}}, "m", nil)
	require.NoError(t, err)
	require.Contains(t, string(body), `{"role":"assistant","content":null,`+
		`"reasoning":"One.\nTwo.","refusal":"No.\nNever.","cited":["a","b"]}`)
}

func TestUnknownPartOfAResponseIsSentBackAsASinglePart(t *testing.T) {
	const message = `{"role":"assistant","content":[{"type":"picture","of":"snow"}]}`
	answer, err := askChat(t, providertest.Answered(`{"choices":[{"message":`+message+`,"finish_reason":"stop"}]}`))
	require.NoError(t, err)

	body, repairs, err := ChatBody(api.Request{Messages: goOnFrom(answer.Blocks)}, "m", nil)
	require.NoError(t, err)
	require.Empty(t, repairs)
	require.Contains(t, string(body), message)
}

func TestCallOfACustomToolIsSentBackAsText(t *testing.T) {
	message := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"run","input":"SELECT \"x\""}}]}`
	answer, err := askChat(t, providertest.Answered(`{"choices":[{"message":`+message+`,"finish_reason":"tool_calls"}]}`))
	require.NoError(t, err)
	call := answer.Blocks.ToolUses()[0]
	require.Equal(t, content.JSON(`"SELECT \"x\""`), call.Input, "a text, for the program")
	body, _, err := ChatBody(api.Request{Messages: goOnFrom(answer.Blocks)}, "m", nil)
	require.NoError(t, err)
	require.Contains(t, string(body), message)
}

// TestAChatCallCutOffIsNoEmptyObject ends an answer at its limit before, and in the middle of, a call's arguments.
func TestAChatCallCutOffIsNoEmptyObject(t *testing.T) {
	stream := func(written, reason string) string {
		return `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"n","arguments":"` + written + `"}}]}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n"
	}
	for written, want := range map[string]content.JSON{``: "", `{\"city\":\"Os`: `{"city":"Os`} {
		got, err := foldChat(stream(written, "length"))
		require.NoError(t, err)
		require.Equal(t, want, got.Blocks.ToolUses()[0].Input)
		require.Equal(t, content.StopMaxTokens, got.Stop)
	}
	got, err := foldChat(stream("", "tool_calls"))
	require.NoError(t, err)
	require.EqualValues(t, "{}", got.Blocks.ToolUses()[0].Input, "a call that ended has no arguments because it takes none")
}

func TestFinishReasons(t *testing.T) {
	for said, want := range map[string]content.Stop{
		"stop": content.StopEndTurn, "tool_calls": content.StopToolUse, "function_call": content.StopToolUse, "length": content.StopMaxTokens,
		"content_filter": content.StopRefusal, "enlightenment": "enlightenment",
	} {
		got, err := foldChat(`data: {"choices":[{"delta":{"content":"x"},"finish_reason":"` + said + `"}]}` + "\n\n")
		require.NoError(t, err)
		require.Equal(t, want, got.Stop)
	}
	got, err := askChat(t, providertest.Answered(`{"choices":[{"message":{"content":"x"}}]}`))
	require.NoError(t, err)
	require.Equal(t, content.StopUnknown, got.Stop)
}

func TestTheFirstFormOfCallsIsRead(t *testing.T) {
	got, err := foldChat(`data: {"choices":[{"delta":{"function_call":{"name":"f","arguments":"{\"x\""}}}]}

data: {"choices":[{"delta":{"function_call":{"arguments":":1}"}},"finish_reason":"function_call"}]}

`)
	require.NoError(t, err)
	require.Equal(t, []content.Block{content.ToolUse{Name: "f", Input: `{"x":1}`}}, got.Blocks.Slice())
}

func TestAChatStreamThatBreaksTheProtocol(t *testing.T) {
	end := "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n"
	for name, stream := range map[string]string{
		"an event that is not JSON":     "data: {\"choices\":\n\n" + end,
		"an event of the wrong shape":   "data: {\"choices\":7}\n\n" + end,
		"an event that is no object":    "data: [1]\n\n" + end,
		"a delta that is not an object": "data: {\"choices\":[{\"delta\":3}]}\n\n" + end,
	} {
		_, err := foldChat(stream)
		require.ErrorIs(t, err, api.ErrProtocol, name)
		require.False(t, api.Retryable(err), name)
	}
}

func TestOddMembersOfACompatibleServerAreTolerated(t *testing.T) {
	for name, stream := range map[string]string{
		"ids and models that are no texts": `data: {"id":7,"model":null,"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`,
		"a usage of another shape":         `data: {"usage":[],"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`,
		"an error that is null":            `data: {"error":null,"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`,
		"a delta that is null":             "data: {\"choices\":[{\"delta\":null}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}",
		"half a letter":                    `data: {"choices":[{"delta":{"content":"x","mood":"\ud83d"},"finish_reason":"stop"}]}`,
		"Windows line ends":                "event: message\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n",
		"no choices for a while":           "data: {\"choices\":[]}\n\ndata: {\"choices\":null}\n\ndata: {}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}",
	} {
		got, err := foldChat(stream)
		require.NoError(t, err, name)
		require.Equal(t, "x", got.Blocks.Text(), name)
	}
}

// FuzzChatStream gives the decoder any bytes: it must not panic, and what it takes as an answer must be one that can be kept and
// sent back. Run it with -fuzzminimizetime 10x: making the long seed smaller would take all its time.
func FuzzChatStream(f *testing.F) {
	f.Add(longChat)
	f.Add("data: {\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"{\"}},\"finish_reason\":\"length\"}]}\n\n")
	f.Add("data: {\"error\":{\"message\":\"no\",\"code\":502}}\n\n")
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"text\":\"a\"}]},{\"type\":\"x\"}],\"audio\":{\"id\":\"a\"}},\"finish_reason\":\"stop\"}]}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		answer, err := foldChat(stream)
		requireAnswerOrError(t, answer, err)
	})
}

// FuzzChatMessage does the same for whole answers.
func FuzzChatMessage(f *testing.F) {
	f.Add(`{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi","refusal":null,"annotations":[{"a":1}],"reasoning":"r","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	f.Add(`{"choices":[{"message":{"content":null,"tool_calls":[{"type":"custom","custom":{"name":"f","input":"x"}},{"index":3}]}}]}`)
	f.Add(`{"error":"no"}`)
	f.Fuzz(func(t *testing.T, body string) {
		answer, err := foldEvents(wholeChat(&http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, call{}))
		requireAnswerOrError(t, answer, err)
	})
}

// requireAnswerOrError wants an *api.Error, or an answer of which a request can be made.
func requireAnswerOrError(t *testing.T, answer api.Response, err error) {
	if err != nil {
		var failure *api.Error
		require.True(t, errors.As(err, &failure), "%T", err)
		return
	}
	body, _, err := ChatBody(api.Request{Messages: goOnFrom(answer.Blocks)}, "m", nil)
	require.NoError(t, err)
	require.True(t, content.JSON(body).Valid(), "%s", body)
}

// TestUsageOfAChatStreamThatBreaksOffInsideItIsIncomplete keeps an answer whose last chunk was cut off: all but the usage is there.
func TestUsageOfAChatStreamThatBreaksOffInsideItIsIncomplete(t *testing.T) {
	const said = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\n"
	const usage = `data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}`
	for at := range len(usage) {
		server := newServer(t, "text/event-stream", said+usage[:at])
		answer, err := sendChat(server, Options{})
		require.NoError(t, err)
		require.Equal(t, "Hi", answer.Blocks.Text())
		require.Equal(t, content.Usage{Incomplete: true}, answer.Usage, "part of a count is none")
	}
	answer, err := sendChat(newServer(t, "text/event-stream", said+usage), Options{})
	require.NoError(t, err)
	require.Equal(t, content.Usage{Input: 7, Output: 1}, answer.Usage)
}
