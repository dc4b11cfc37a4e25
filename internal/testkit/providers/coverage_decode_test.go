package providers

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

// decoded is a response as a program sees it.
type decoded struct {
	events []string // one a line
	blocks string   // as JSON
	finish api.Finish
	err    *api.Error
}

// decode has a response sent by the strict fake and decoded by the provider. The body may be a stream.
func (p provider) decode(t *testing.T, reply fake.Reply, noStream bool) (d decoded) {
	model := p.fake(reply)
	server := httptest.NewServer(model)
	defer server.Close()
	for event, err := range p.at(server, api.Options{}, noStream).Stream(t.Context(), greeting()) {
		if err != nil {
			require.ErrorAs(t, err, &d.err)
			break
		}
		d.events = append(d.events, fmt.Sprintf("%T %+v", event, event))
		switch e := event.(type) {
		case api.BlockEnd:
			list, err := content.Of(e.Block)
			require.NoError(t, err)
			d.blocks += string(list.Append(nil))
		case api.Finish:
			d.finish = e
		}
	}
	require.Empty(t, model.Refused())
	return d
}

// differs reports whether a program sees another response.
func (d decoded) differs(other decoded) bool {
	if (d.err == nil) != (other.err == nil) || d.err != nil && !errors.Is(d.err, other.err.Kind) {
		return true
	}
	return !slices.Equal(d.events, other.events)
}

// names returns the number of members with a name in the blocks and in the details of the response.
func (d decoded) names(name string) int {
	text := strings.ReplaceAll(string(d.finish.Details)+d.blocks, `\`, "")
	return strings.Count(text, `"`+name+`":`)
}

// streamOf returns the events of a response as the fake streams it.
func (p provider) streamOf(t *testing.T, body string) []string {
	model := p.fake(fake.Reply{Body: body})
	var kept *httptest.ResponseRecorder
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		kept = httptest.NewRecorder()
		model.ServeHTTP(kept, r)
		w.WriteHeader(http.StatusTeapot)
	})
	for range p.at(server, api.Options{}, false).Stream(t.Context(), greeting()) {
	}
	require.Empty(t, model.Refused())
	return strings.SplitAfter(strings.TrimSuffix(kept.Body.String(), "\n\n"), "\n\n")
}

// everything is a response of an API with items of many kinds. Its item 1 is streamed in pieces.
func everything(api string) string {
	items := []string{}
	switch api {
	case "anthropic":
		items = append(items, `{"type":"text","text":"Hello."}`, `{"type":"text","text":"Hello there."}`)
	case "openai-responses":
		items = append(items,
			`{"type":"custom_tool_call","id":"ctc_1","call_id":"call_0","name":"f","input":"a text"}`,
			`{"type":"message","role":"assistant","id":"x","status":"completed","content":[{"type":"output_text","text":"No.","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"I will not."}]}`)
	}
	for _, item := range ownToolsOf[api].items {
		items = append(items, item.json)
	}
	return fmt.Sprintf(ownToolsOf[api].response, strings.Join(items, ","))
}

// streamEvent tells what becomes of a kind of event. It is understood if a program sees another response in a stream
// without the events of the kind, in a stream of nothing but one, or in a stream with one while item 1 is open.
func streamEvent(t *testing.T, p provider, name, sample string) (outcome, reason string) {
	decode := func(events ...string) decoded { return p.decode(t, fake.Reply{Body: strings.Join(events, "")}, false) }
	const none = "data: {}\n\n"
	events := p.streamOf(t, everything(p.name))
	base := decode(events...)
	require.Nil(t, base.err)

	is := func(event string) bool { return strings.HasPrefix(event, "event: "+name+"\n") }
	if at := slices.IndexFunc(events, is); at >= 0 {
		changes := decode(slices.DeleteFunc(slices.Clone(events), is)...).differs(base) || decode(none, events[at]).differs(decode(none))
		return understoodIf(p, name, changes)
	}
	added := slices.Insert(events, afterItem1(events), "event: "+name+"\ndata: "+sample+"\n\n")
	return understoodIf(p, name, decode(added...).differs(base))
}

// afterItem1 returns the index after the event that begins item 1.
func afterItem1(events []string) int {
	return 1 + slices.IndexFunc(events, func(event string) bool {
		return strings.HasPrefix(event, "event: content_block_start") && strings.Contains(event, `"index":1`) ||
			strings.HasPrefix(event, "event: response.output_item.added") && strings.Contains(event, `"output_index":1`)
	})
}

// streamDelta tells what becomes of a kind of delta of Anthropic's, added to an open block.
func streamDelta(t *testing.T, p provider, name, sample string) (outcome, reason string) {
	events := p.streamOf(t, everything(p.name))
	base := p.decode(t, fake.Reply{Body: strings.Join(events, "")}, false)
	delta := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":" + sample + "}\n\n"
	events = slices.Insert(events, afterItem1(events), delta)
	return understoodIf(p, name, p.decode(t, fake.Reply{Body: strings.Join(events, "")}, false).differs(base))
}

// understoodIf returns the outcome of a kind that changes what a program sees, or not.
func understoodIf(p provider, name string, changes bool) (outcome, reason string) {
	if changes {
		return understood, ""
	}
	for _, list := range nothingLost {
		if list.api == p.name && slices.Contains(strings.Fields(list.names), name) {
			return ignored, list.reason
		}
	}
	return dropped, "a program sees nothing of it"
}

// nothingLost lists the kinds that a program sees nothing of, with the reason.
var nothingLost = []struct{ api, reason, names string }{
	{"openai-responses", "progress: the finished item has all of it",
		`response.code_interpreter_call.completed response.code_interpreter_call.in_progress response.code_interpreter_call.interpreting
		response.code_interpreter_call_code.delta response.code_interpreter_call_code.done response.compaction.compacting
		response.content_part.added response.content_part.done response.custom_tool_call_input.done response.file_search_call.completed
		response.file_search_call.in_progress response.file_search_call.searching response.function_call_arguments.done
		response.image_generation_call.completed response.image_generation_call.generating response.image_generation_call.in_progress
		response.image_generation_call.partial_image response.mcp_call.completed response.mcp_call.failed response.mcp_call.in_progress
		response.mcp_call_arguments.delta response.mcp_call_arguments.done response.mcp_list_tools.completed response.mcp_list_tools.failed
		response.mcp_list_tools.in_progress response.output_text.annotation.added response.output_text.done response.queued
		response.reasoning_summary_part.added response.reasoning_summary_part.done response.reasoning_summary_text.done
		response.reasoning_text.done response.refusal.done response.shell_call_command.added response.shell_call_command.delta
		response.shell_call_command.done response.shell_call_output_content.delta response.shell_call_output_content.done
		response.web_search_call.completed response.web_search_call.in_progress response.web_search_call.searching`},
	{"anthropic", "it is always the assistant", "role"},
	{"openai-chat", "it is always the assistant", "role"},
	{"openai-chat", "the type of every response", "object"},
	{"openai-chat", "the time on the server: the conversation has its own", "created"},
	{"openai-chat", "the sum of the others", "total_tokens"},
	{"gemini", "the sum of the others", "totalTokenCount"},
	{"openai-responses", "the sum of the others", "total_tokens"},
	{"openai-responses", "the type of every response", "object"},
	{"openai-responses", "the time on the server: the conversation has its own", "created_at completed_at"},
	{"openai-responses", "read with the status that it explains", "error incomplete_details"},
	{"openai-responses", "it repeats the request",
		`background conversation instructions max_output_tokens max_tool_calls metadata parallel_tool_calls previous_response_id prompt
		prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier temperature text tool_choice tools
		top_logprobs top_p truncation user`},
	{"openai-responses", "the API has no option that asks for audio",
		`response.audio.delta response.audio.done response.audio.transcript.delta response.audio.transcript.done`},
}

// stops are Plait's reasons for the end of a response.
var stops = []content.Stop{
	content.StopEndTurn, content.StopToolUse, content.StopMaxTokens, content.StopSequence, content.StopPause, content.StopRefusal,
	content.StopContext, content.StopUnknown,
}

// ending tells how a response with a reason of its end is decoded: by the stop reason, or by the kind of the error.
func ending(t *testing.T, p provider, name, body string) (outcome, reason string) {
	whole := p.decode(t, fake.Reply{Body: body}, true)
	streamed := p.decode(t, fake.Reply{Body: strings.Join(p.streamOf(t, body), "")}, false)
	require.Equal(t, whole.finish.Stop, streamed.finish.Stop, name)
	require.Equal(t, whole.err == nil, streamed.err == nil, name)
	switch {
	case whole.err != nil:
		require.Equal(t, api.Retryable(whole.err), api.Retryable(streamed.err), name)
		return refused, "error: " + whole.err.Kind.Error()
	case slices.Contains(stops, whole.finish.Stop):
		return understood, string(whole.finish.Stop)
	}
	require.Equal(t, name, string(whole.finish.Stop))
	return kept, ""
}

func anthropicStop(t *testing.T, p provider, name, _ string) (outcome, reason string) {
	return ending(t, p, name, strings.Replace(fake.AnthropicMessage(content.Text{Text: "Hello."}).Body, "end_turn", name, 1))
}

func responsesStatus(t *testing.T, p provider, name, _ string) (outcome, reason string) {
	return ending(t, p, name, strings.Replace(fake.OpenAIResponse(content.Text{Text: "Hello."}).Body, `"status":"completed","error"`, `"status":"`+name+`","error"`, 1))
}

func geminiFinish(t *testing.T, p provider, name, _ string) (outcome, reason string) {
	return ending(t, p, name, strings.Replace(fake.GeminiContent(content.Text{Text: "Hello."}).Body, "STOP", name, 1))
}

func geminiBlock(t *testing.T, p provider, name, _ string) (outcome, reason string) {
	body := `{"promptFeedback":{"blockReason":"` + name + `"},"usageMetadata":{"promptTokenCount":10},"modelVersion":"gemini-fake"}`
	outcome, reason = ending(t, p, string(content.StopRefusal), body)
	require.Contains(t, string(p.decode(t, fake.Reply{Body: body}, true).finish.Details), name)
	return outcome, reason
}

// anthropicError sends an error in a stream and by itself. The status of the latter is that of any gateway.
func anthropicError(t *testing.T, p provider, name, _ string) (outcome, reason string) {
	inside := p.decode(t, fake.Reply{Body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"" + name + "\",\"message\":\"It failed.\"}}\n\n"}, false)
	return understood, "error: " + inside.err.Kind.Error()
}

func responsesError(t *testing.T, p provider, name, _ string) (outcome, reason string) {
	body := `{"id":"r","object":"response","model":"m","status":"failed","error":{"code":"` + name + `","message":"It failed."},"output":[],"usage":null}`
	_, reason = ending(t, p, name, body)
	return understood, reason
}

// The smallest responses of each API, whose members are changed.
var (
	anthropicMessage = map[string]any{
		"type": "message", "role": "assistant", "id": "m", "model": "m", "content": []any{map[string]any{"type": "text", "text": "Hello."}},
		"stop_reason": "end_turn", "usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
	}
	responsesResponse = map[string]any{
		"object": "response", "id": "r", "model": "m", "status": "completed", "output": []any{map[string]any{
			"type": "message", "id": "msg_1", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": "Hello."}},
		}},
	}
	chatResponse = map[string]any{
		"object": "chat.completion", "id": "c", "model": "m",
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": "Hello."}}},
	}
	geminiCandidate = map[string]any{"content": map[string]any{"parts": []any{map[string]any{"text": "Hello."}}}, "finishReason": "STOP"}
	geminiResponse  = map[string]any{"candidates": []any{geminiCandidate}, "modelVersion": "m", "usageMetadata": map[string]any{"promptTokenCount": 1}}
)

const chatMessage = `{"object":"chat.completion","id":"c","model":"m","choices":[{"index":0,"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`

// inUsage returns a response with the place of its usage.
func inUsage(name string, response map[string]any) string {
	has := maps.Clone(response)
	has[name] = "PLACE"
	text, err := json.Marshal(has, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return strings.Replace(string(text), `"PLACE"`, "%s", 1)
}

// member tells what becomes of a member of an object in a response. The object is at the place of %s in the body; base
// are its members.
func member(body string, base map[string]any) func(*testing.T, provider, string, string) (string, string) {
	return func(t *testing.T, p provider, name, sample string) (outcome, reason string) {
		decode := func(object map[string]any) decoded {
			text, err := json.Marshal(object, json.Deterministic(true))
			require.NoError(t, err)
			return p.decode(t, fake.Reply{Body: strings.Replace(body, "%s", string(text), 1)}, true)
		}
		without := maps.Clone(base)
		delete(without, name)
		with := maps.Clone(base)
		if with[name] == nil {
			require.NoError(t, json.Unmarshal([]byte(sample), new(any)))
			with[name] = jsontext.Value(sample)
		}

		has, lacks := decode(with), decode(without)
		if outcome, reason = understoodIf(p, name, has.differs(lacks)); outcome != understood {
			return outcome, reason
		}
		if lacks.err == nil && has.names(name) > lacks.names(name) {
			return kept, ""
		}
		return understood, ""
	}
}

// chatDelta tells what becomes of a member of a delta, in a chunk before the last one.
func chatDelta(t *testing.T, p provider, name, sample string) (outcome, reason string) {
	events := p.streamOf(t, fake.OpenAIChatMessage(content.Text{Text: "Hello."}).Body)
	chunk := func(delta string) string {
		return `data: {"id":"chatcmpl-fake","object":"chat.completion.chunk","model":"gpt-fake","choices":[{"index":0,"delta":` + delta + "}]}\n\n"
	}
	decode := func(delta string) decoded {
		return p.decode(t, fake.Reply{Body: strings.Join(slices.Insert(slices.Clone(events), 2, chunk(delta)), "")}, false)
	}
	return understoodIf(p, name, decode(`{"`+name+`":`+sample+`}`).differs(decode(`{}`)))
}

func chatFinish(t *testing.T, p provider, name, _ string) (outcome, reason string) {
	message := []content.Block{content.Text{Text: "Hello."}}
	if strings.HasSuffix(name, "call") || strings.HasSuffix(name, "calls") {
		message = append(message, content.ToolUse{ID: "call_1", Name: "get_weather", Input: "{}"})
	}
	body := fake.OpenAIChatMessage(message...).Body
	return ending(t, p, name, strings.NewReplacer(`"finish_reason":"stop"`, `"finish_reason":"`+name+`"`, `"finish_reason":"tool_calls"`, `"finish_reason":"`+name+`"`).Replace(body))
}

func responsesIncomplete(t *testing.T, p provider, name, _ string) (outcome, reason string) {
	body := strings.NewReplacer(`"status":"completed","error"`, `"status":"incomplete","error"`, `"incomplete_details":null`, `"incomplete_details":{"reason":"`+name+`"}`).
		Replace(fake.OpenAIResponse(content.Text{Text: "Hello."}).Body)
	return ending(t, p, name, body)
}
