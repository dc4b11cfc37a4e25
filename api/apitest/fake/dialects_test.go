package fake_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

// dialect is one of the fakes, and how it is spoken to.
type dialect struct {
	fake       func(...fake.Reply) *fake.API
	say        func(...content.Block) fake.Reply
	whole      string // the path of a request that wants its answer at once
	streaming  string // and of one that wants a stream
	body       string // of a request that wants its answer at once
	streamBody string
	bad        string // a body that is refused
	refusal    string // what the refusal is, as JSON
	failure    fake.Reply
	joined     func(t *testing.T, chunks []map[string]any) any // what a stream says
	end        string                                          // what only a whole stream holds
}

var dialects = map[string]dialect{
	"OpenAI Chat": {
		fake: fake.OpenAIChat, say: fake.OpenAIChatMessage, whole: "/v1/chat/completions", streaming: "/v1/chat/completions",
		body: chat(chatHi), streamBody: chat(chatHi, `"stream":true,"stream_options":{"include_usage":true}`), bad: chat(chatHi + "," + chatCall),
		refusal: `{"error":{"message":"` + mustFollow + `a","type":"invalid_request_error","param":"messages.[2].role","code":null}}`,
		failure: fake.OpenAIFailure(429, "tokens", "rate_limit_exceeded", "Rate limit reached"),
		joined:  joinedChat, end: "[DONE]",
	},
	"OpenAI Responses": {
		fake: fake.OpenAIResponses, say: fake.OpenAIResponse, whole: "/v1/responses", streaming: "/v1/responses",
		body: responses(itemHi), streamBody: responses(itemHi, `"stream":true`), bad: responses(itemHi + "," + itemCall),
		refusal: `{"error":{"message":"No tool output found for function call a.","type":"invalid_request_error","param":"input","code":null}}`,
		failure: fake.OpenAIFailure(500, "server_error", "", "Sorry"),
		joined:  joinedResponse, end: "response.completed",
	},
	"Gemini": {
		fake: fake.Gemini, say: fake.GeminiContent, whole: "/v1beta/models/gemini-3-pro:generateContent",
		streaming: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", body: gemini(gHi), streamBody: gemini(gHi), bad: gemini(gHi + "," + gHello),
		refusal: `{"error":{"code":400,"message":"Please ensure that multiturn requests end with a user role or a function response.","status":"INVALID_ARGUMENT"}}`,
		failure: fake.GeminiFailure(503, "UNAVAILABLE", "The model is overloaded."),
		joined:  joinedGemini, end: "finishReason",
	},
	"Gemini on Vertex": {
		fake: fake.Gemini, say: fake.GeminiContent, whole: "/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro:generateContent",
		streaming: "/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse", body: gemini(gHi), streamBody: gemini(gHi),
		bad: `[]`, refusal: `{"error":{"code":400,"message":"Invalid JSON payload received. Root element must be a message.","status":"INVALID_ARGUMENT"}}`,
		failure: fake.GeminiFailure(429, "RESOURCE_EXHAUSTED", "Resource exhausted."),
		joined:  joinedGemini, end: "finishReason",
	},
}

// eachDialect runs a test for each of the fakes.
func eachDialect(t *testing.T, test func(t *testing.T, d dialect)) {
	for name, d := range dialects {
		t.Run(name, func(t *testing.T) { test(t, d) })
	}
}

var spoken = []content.Block{
	content.Thinking{Text: "Let me think about it", Signature: "c2ln"}, content.Text{Text: "Grüße, 世界 and all the rest"},
	content.ToolUse{ID: "a", Name: "f", Input: `{"city":"Zürich"}`}, content.ToolUse{ID: "b", Name: "g", Input: `{}`},
}

func TestFakesPlayTheirRepliesInOrder(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect) {
		said := d.say(spoken...)
		model := d.fake(said, d.failure)
		url := serve(t, model)
		status, header, body := ask(t, url+d.whole, d.body)
		require.Equal(t, 200, status)
		require.Equal(t, "application/json", header.Get("content-type"))
		require.Equal(t, said.Body, body)
		status, _, body = ask(t, url+d.streaming, d.streamBody)
		require.Equal(t, d.failure.Status, status)
		require.Equal(t, d.failure.Body, body)
		status, _, body = ask(t, url+d.whole, d.body)
		require.Equal(t, 400, status)
		require.Contains(t, body, "no reply left: this is request 3")
		require.Len(t, model.Bodies(), 3)
		model.Bodies()[0][0] = 'x'
		require.Equal(t, d.body, string(model.Bodies()[0]), "a caller may change what Bodies returned")
		require.Len(t, model.Refused(), 1)
	})
}

func TestFakesRefuseInTheirOwnShape(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect) {
		model := d.fake(d.say())
		url := serve(t, model)
		status, _, body := ask(t, url+d.whole, d.bad)
		require.Equal(t, 400, status)
		require.JSONEq(t, d.refusal, body)
		status, _, _ = ask(t, url+"/v1/elsewhere", d.body)
		require.Equal(t, 404, status)
		res, err := http.Get(url + d.whole)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.GreaterOrEqual(t, res.StatusCode, 404, "another method")
		res, err = http.Post(url+d.whole, "application/json", strings.NewReader(d.body))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Contains(t, []int{401, 403}, res.StatusCode, "no key")
		require.Len(t, model.Refused(), 4)
		status, _, _ = ask(t, url+d.whole, d.body)
		require.Equal(t, 200, status, "a refused request takes no reply")
	})
}

func TestFakesReturnEmptyResponsesByDefault(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect) {
		url := serve(t, d.fake(fake.Reply{}, fake.Reply{}, fake.Reply{Header: http.Header{"X-Test": {"1"}}, Status: 201}))
		_, _, body := ask(t, url+d.whole, d.body)
		require.Equal(t, d.say().Body, body)
		_, header, body := ask(t, url+d.streaming, d.streamBody)
		require.Contains(t, header.Get("content-type"), "text/event-stream")
		require.Contains(t, body, d.end)
		status, header, _ := ask(t, url+d.whole, d.body)
		require.Equal(t, 201, status)
		require.Equal(t, "1", header.Get("x-test"))
	})
}

func TestFakesStreamWhatTheyWereGiven(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect) {
		for _, blocks := range [][]content.Block{spoken, spoken[1:2], spoken[2:3], spoken[2:], spoken[:1], nil} {
			said := d.say(blocks...)
			url := serve(t, d.fake(said))
			status, header, body := ask(t, url+d.streaming, d.streamBody)
			require.Equal(t, 200, status)
			require.Contains(t, header.Get("content-type"), "text/event-stream")
			require.Contains(t, body, d.end)
			joined, err := json.Marshal(d.joined(t, chunks(t, body)))
			require.NoError(t, err)
			require.JSONEq(t, said.Body, string(joined))
		}
	})
}

func TestFakesCutStreamsWhereAsked(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect) {
		for _, blocks := range [][]content.Block{spoken, spoken[1:2], spoken[:1]} {
			said := d.say(blocks...)
			said.Cut = true
			_, _, body := ask(t, serve(t, d.fake(said))+d.streaming, d.streamBody)
			require.NotEmpty(t, chunks(t, body))
			require.NotContains(t, body, d.end)
			if len(blocks) == 1 {
				require.NotContains(t, body, "item.done")
			}
		}
	})
}

func TestFakesSendAStreamAsItIs(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect) {
		stream := "data: {\"error\":{}}\n\n"
		_, header, body := ask(t, serve(t, d.fake(fake.Reply{Body: stream}))+d.whole, d.body)
		require.Equal(t, stream, body)
		require.Contains(t, header.Get("content-type"), "text/event-stream")
	})
}

func TestFakesAnswerManyAtOnce(t *testing.T) {
	eachDialect(t, func(t *testing.T, d dialect) {
		model := d.fake(make([]fake.Reply, 20)...)
		url := serve(t, model)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if status, _, _ := ask(t, url+d.whole, d.body); status != 200 {
					t.Errorf("status %d", status)
				}
			})
		}
		wg.Wait()
		require.Len(t, model.Bodies(), 20)
		require.Empty(t, model.Refused())
	})
}

func TestWhatAnAnswerCannotHoldPanics(t *testing.T) {
	for name, d := range dialects {
		require.Panics(t, func() { d.say(content.ToolResult{}) }, name)
	}
	require.Panics(t, func() { fake.AnthropicMessage(content.ToolResult{}) })
}

func TestGeminiStreamsServerSentEventsOnly(t *testing.T) {
	url := serve(t, fake.Gemini(fake.GeminiContent()))
	status, _, body := ask(t, url+"/v1beta/models/gemini-3-pro:streamGenerateContent", gemini(gHi))
	require.Equal(t, 400, status)
	require.Contains(t, body, "alt=sse")
}

func TestOpenAIResponsesRemembersWhatCameWithReasoning(t *testing.T) {
	model := fake.OpenAIResponses(fake.OpenAIResponse(content.Thinking{Redacted: "x"}, content.ToolUse{ID: "a", Name: "f", Input: `{}`}),
		fake.Reply{}, fake.Reply{}, fake.Reply{}, fake.Reply{})
	url := serve(t, model)
	status, _, _ := ask(t, url+"/v1/responses", responses(itemHi))
	require.Equal(t, 200, status)
	alone := responses(itemHi + "," + swap(itemCall, "fc_1", "fc_fake1") + "," + itemOutput)
	status, _, body := ask(t, url+"/v1/responses", alone)
	require.Equal(t, 400, status)
	require.Contains(t, body, "Item 'fc_fake1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_fake0'.")
	status, _, _ = ask(t, url+"/v1/responses", swap(alone, `"id":"fc_fake1",`, ``))
	require.Equal(t, 200, status, "a call without its id")
	status, _, _ = ask(t, url+"/v1/responses", responses(itemHi+","+swap(itemReason, "rs_1", "rs_fake0")+","+swap(itemCall, "fc_1", "fc_fake1")+","+itemOutput))
	require.Equal(t, 200, status, "both")
	require.Len(t, model.Refused(), 1)

	status, _, _ = ask(t, url+"/v1/responses", swap(alone, `"input"`, `"previous_response_id":null,"input"`))
	require.Equal(t, 400, status, "a null response")
	for _, stored := range []string{`"previous_response_id":"resp_1"`, `"conversation":"conv_1"`} {
		status, _, _ = ask(t, url+"/v1/responses", swap(alone, `"input"`, stored+`,"input"`))
		require.Equal(t, 200, status, stored)
	}
}

func TestOpenAIResponsesExpectsNoReasoningBeforeItemsWithoutIDs(t *testing.T) {
	model := fake.OpenAIResponses(fake.OpenAIResponse(content.Thinking{Redacted: "x"},
		content.Opaque{API: "openai-responses", JSON: `{"type":"message","role":"assistant","status":"completed","content":[]}`}), fake.Reply{})
	url := serve(t, model)
	for range 2 {
		status, _, body := ask(t, url+"/v1/responses", responses(itemHi))
		require.Equal(t, 200, status, body)
	}
}

func TestOpenAIResponsesGivesEachItemItsOwnID(t *testing.T) {
	said := fake.OpenAIResponse(content.Thinking{Redacted: "x"}, content.Text{Text: `"id":"msg_fake7"`})
	model := fake.OpenAIResponses(said, said, fake.Reply{})
	url := serve(t, model)
	items := itemHi
	for _, ids := range [][2]string{{"rs_fake0", "msg_fake1"}, {"rs_fake2", "msg_fake3"}} {
		_, _, body := ask(t, url+"/v1/responses", responses(items))
		var response struct {
			Output []struct {
				ID string `json:"id"`
			} `json:"output"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &response))
		require.Equal(t, ids[0], response.Output[0].ID)
		require.Equal(t, ids[1], response.Output[1].ID)
		require.Contains(t, body, `\"msg_fake7\"`, "the text is kept")
		items += "," + swap(itemReason, "rs_1", ids[0]) + "," + swap(itemSaid, "msg_1", ids[1]) + "," + itemHi
	}
	status, _, body := ask(t, url+"/v1/responses", responses(items))
	require.Equal(t, 200, status, body)
}

// chunks is the data of a stream's events.
func chunks(t *testing.T, stream string) []map[string]any {
	t.Helper()
	var list []map[string]any
	scan := bufio.NewScanner(strings.NewReader(stream))
	for scan.Buffer(nil, 1<<25); scan.Scan(); {
		data, ok := strings.CutPrefix(scan.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk map[string]any
		require.NoError(t, json.Unmarshal([]byte(data), &chunk))
		list = append(list, chunk)
	}
	require.NoError(t, scan.Err())
	return list
}

// joinedChat puts the chunks of a chat completion together, independently of how it was taken apart.
func joinedChat(t *testing.T, chunks []map[string]any) any {
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	var calls []any
	var finish, usage any
	for _, chunk := range chunks {
		for _, choice := range chunk["choices"].([]any) {
			delta := choice.(map[string]any)["delta"].(map[string]any)
			if f := choice.(map[string]any)["finish_reason"]; f != nil {
				finish = f
			}
			for name, v := range delta {
				switch s, ok := v.(string); {
				case name == "tool_calls":
					calls = addCall(t, calls, v.([]any)[0].(map[string]any))
					message["tool_calls"] = calls
				case ok && s != "" && name != "role":
					before, _ := message[name].(string)
					message[name] = before + s
				case !ok && v != nil:
					message[name] = v
				}
			}
		}
		if chunk["usage"] != nil {
			usage = chunk["usage"]
		}
	}
	return map[string]any{"id": "chatcmpl-fake", "created": 1700000000, "model": "gpt-fake", "object": "chat.completion", "usage": usage,
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": finish}}}
}

func addCall(t *testing.T, calls []any, call map[string]any) []any {
	index := int(call["index"].(float64))
	if index == len(calls) {
		delete(call, "index")
		return append(calls, call)
	}
	require.Less(t, index, len(calls))
	function := calls[index].(map[string]any)["function"].(map[string]any)
	function["arguments"] = function["arguments"].(string) + call["function"].(map[string]any)["arguments"].(string)
	return calls
}

// joinedResponse puts the deltas of a response together, and checks them against what comes whole.
func joinedResponse(t *testing.T, chunks []map[string]any) any {
	var items []any
	pieces := map[string]string{}
	for i, chunk := range chunks {
		require.EqualValues(t, i, chunk["sequence_number"])
		kind := chunk["type"].(string)
		at := fmt.Sprint(chunk["output_index"], chunk["content_index"], chunk["summary_index"])
		if delta, ok := chunk["delta"]; ok {
			pieces[at] += delta.(string)
		}
		for _, whole := range []string{"text", "arguments", "refusal"} {
			if said, ok := chunk[whole]; ok {
				require.Equal(t, said, pieces[at], kind)
			}
		}
		switch kind {
		case "response.output_item.done":
			items = append(items, chunk["item"])
		case "response.completed":
			response := chunk["response"].(map[string]any)
			require.Equal(t, append([]any{}, items...), response["output"])
			return response
		}
	}
	t.Fatal("no end")
	return nil
}

// joinedGemini puts the chunks of a content together: texts of one kind in a row become one.
func joinedGemini(t *testing.T, chunks []map[string]any) any {
	parts := []any{}
	response := chunks[len(chunks)-1]
	candidate := response["candidates"].([]any)[0].(map[string]any)
	for _, chunk := range chunks {
		said := chunk["candidates"].([]any)[0].(map[string]any)["content"].(map[string]any)
		list, _ := said["parts"].([]any)
		for _, p := range list {
			part := p.(map[string]any)
			last := map[string]any{}
			if len(parts) > 0 {
				last = parts[len(parts)-1].(map[string]any)
			}
			if words, ok := part["text"].(string); ok && last["text"] != nil && last["thought"] == part["thought"] {
				part["text"] = last["text"].(string) + words
				parts[len(parts)-1] = part
				continue
			}
			parts = append(parts, part)
		}
	}
	candidate["content"] = map[string]any{"parts": parts, "role": "model"}
	return response
}

func TestFakesReturnContentOfTheirAPIOnly(t *testing.T) {
	opaque := func(j content.JSON) content.Block { return content.Opaque{JSON: j} }
	signed := content.ToolUse{ID: "a", Name: "f", Input: `{}`, Extra: content.Extra{API: "gemini", JSON: `{"thoughtSignature":"c2ln"}`}}
	for body, want := range map[string]string{
		fake.OpenAIChatMessage(opaque(`{"refusal":"No."}`)).Body:                                    `"refusal":"No."`,
		fake.OpenAIResponse(opaque(`{"type":"web_search_call","id":"ws_1"}`)).Body:                  `"output":[{"type":"web_search_call","id":"ws_1"}]`,
		fake.GeminiContent(opaque(`{"executableCode":{}}`), signed).Body:                            `"parts":[{"executableCode":{}},{"functionCall":{"args":{},"id":"a","name":"f"},"thoughtSignature":"c2ln"}]`,
		fake.OpenAIChatMessage(signed).Body:                                                         `"tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"}]`,
		fake.AnthropicMessage(content.Opaque{API: "anthropic", JSON: `{"type":"compaction"}`}).Body: `"content":[{"type":"compaction"}]`,
	} {
		require.Contains(t, body, want)
	}
}

func TestACompatibleServerTakesItsOwnReasoningBack(t *testing.T) {
	say := fake.OpenAIChatMessage(content.Thinking{Text: "Hm, so it is"}, content.Text{Text: "Yes."}, content.Opaque{JSON: `{"provider_fields":{"a":1}}`})
	model := fake.OpenAICompatible(say, fake.Reply{})
	url := serve(t, model)
	_, _, stream := ask(t, url+"/v1/chat/completions", chat(chatHi, `"stream":true,"stream_options":{"include_usage":true}`))
	joined, err := json.Marshal(joinedChat(t, chunks(t, stream)))
	require.NoError(t, err)
	require.JSONEq(t, say.Body, string(joined))
	status, _, body := ask(t, url+"/v1/chat/completions", chat(chatHi+`,{"role":"assistant","content":"Yes.","reasoning_content":"Hm, so it is"},`+chatHi))
	require.Equal(t, 200, status, body)
}

func TestGeminiStreamsAnswersWithoutContent(t *testing.T) {
	for _, body := range []string{
		`{"promptFeedback":{"blockReason":"SAFETY"}}`,
		`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","index":0}]}`,
	} {
		_, _, stream := ask(t, serve(t, fake.Gemini(fake.Reply{Body: body}))+"/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", gemini(gHi))
		require.Equal(t, "data: "+body+"\n\n", stream)
	}
}

func TestOpenAIResponsesStreamsWhatToolsDo(t *testing.T) {
	custom := content.Opaque{JSON: `{"type":"custom_tool_call","id":"ctc_1","call_id":"a","name":"f","input":"some input"}`}
	other := content.Opaque{JSON: `{"type":"mcp_list_tools","id":"mcpl_1","server_label":"x","tools":[]}`}
	search := content.Opaque{JSON: `{"type":"web_search_call","id":"ws_1","status":"completed"}`}
	said := fake.OpenAIResponse(custom, other, search)
	said.Cut = true
	_, _, stream := ask(t, serve(t, fake.OpenAIResponses(said))+"/v1/responses", responses(itemHi, `"stream":true`))
	var types []string
	for _, chunk := range chunks(t, stream) {
		types = append(types, strings.TrimPrefix(chunk["type"].(string), "response."))
	}
	require.Equal(t, []string{"created", "in_progress", "output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.delta",
		"custom_tool_call_input.done", "output_item.done", "output_item.added", "output_item.done", "output_item.added",
		"web_search_call.in_progress", "web_search_call.searching"}, types)
}
