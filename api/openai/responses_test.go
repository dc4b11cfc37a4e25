package openai

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

func TestResponsesKeepsTheRules(t *testing.T) {
	for name, o := range map[string]Options{
		"streamed": {}, "whole": {NoStream: true}, "at llama.cpp": {Server: compatible.LlamaCPP}, "at Ollama": {Server: compatible.Ollama},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T, s conformance.Scenario) api.Provider {
				if s == conformance.Breaks && o.NoStream {
					return nil // an answer that comes whole cannot break off in its middle
				}
				sent := &conformance.Recorder{Next: responsesScenario(s)}
				return sent.Of(localResponses(t, o, sent))
			})
		})
	}
}

// localResponses is a model behind a handler.
func localResponses(t testing.TB, o Options, h http.Handler) api.Provider {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o.SDK = localSDK(server)
	return NewResponses("gpt-test", &o)
}

// responsesScenario is a strict fake of the API that behaves as s says.
func responsesScenario(s conformance.Scenario) http.Handler {
	hello := fake.OpenAIResponse(content.Text{Text: "Hello there."})
	var replies []fake.Reply
	switch s {
	case conformance.Hangs:
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			r.Body.Close() // only then is it seen that the client is gone
			<-r.Context().Done()
		})
	case conformance.Calls:
		hello = fake.OpenAIResponse(content.Text{Text: "Let me see."}, content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":"Tokyo"}`})
	case conformance.FailsOnce:
		replies = append(replies, fake.Reply{Status: 503, Body: `{"error":{"message":"Overloaded","type":"server_error","param":null,"code":"server_is_overloaded"}}`})
	case conformance.Breaks:
		hello.Cut = true
	}
	for range 40 {
		replies = append(replies, hello)
	}
	return fake.OpenAIResponses(replies...)
}

// askResponses makes one request.
func askResponses(model api.Provider, req api.Request) (api.Response, error) {
	return api.NewClient(model, &api.ClientOptions{Attempts: 1}).Send(context.Background(), req)
}

// responsesBodyOf is the body of a request that the strict fake takes, decoded, and how the request was changed.
func responsesBodyOf(t testing.TB, req api.Request, model string, o *Options) (map[string]any, []api.RepairNote) {
	t.Helper()
	body, notes, err := ResponsesBody(req, model, o)
	require.NoError(t, err)
	require.NoError(t, fake.CheckOpenAIResponses(body), string(body))
	return decoded(t, string(body)), notes
}

func userSays(blocks ...content.Block) content.Message {
	return content.Message{Role: content.User, Blocks: must(blocks...)}
}

func assistantSays(blocks ...content.Block) content.Message {
	return content.Message{Role: content.Assistant, Blocks: must(blocks...)}
}

// itemsSent is the items of a request of these messages after "?", and its notes.
func itemsSent(t testing.TB, o *Options, messages ...content.Message) ([]any, []api.RepairNote) {
	t.Helper()
	req := api.Request{Messages: append([]content.Message{userSays(content.Text{Text: "?"})}, messages...)}
	body, notes := responsesBodyOf(t, req, "gpt-test", o)
	return body["input"].([]any)[1:], notes
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	j, err := content.ToJSON(v)
	require.NoError(t, err)
	return string(j)
}

func TestReasoningIsSentBesideTheItemThatFollowedIt(t *testing.T) {
	const thought = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VhbGVk"}`
	const call = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}`
	const words = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hm.","annotations":[]}]}`
	const search = `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`
	result := userSays(content.ToolResult{CallID: "call_1", Content: content.Words("22°C")})
	for name, c := range map[string]struct {
		said []content.Block
		want string
	}{
		"all": {itemBlocks(thought, call), `["reasoning rs_1","function_call fc_1"]`},
		"two in a row": {itemBlocks(thought, strings.ReplaceAll(thought, "rs_1", "rs_2"), words),
			`["reasoning rs_1","reasoning rs_2","message msg_1"]`},
		"not the reasoning":       {itemBlocks(thought, call)[1:], `["function_call "]`},
		"a message without it":    {itemBlocks(thought, words)[1:], `["message "]`},
		"a message that had none": {itemBlocks(words), `["message msg_1"]`},
		"a search in words":       {itemBlocks(`{"type":"reasoning","id":"rs_1","summary":[]}`, search, words), `["message ","message "]`},
		"not what came after it":  {append(itemBlocks(thought, call)[:1], itemBlocks(`{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"eA=="}`, words)...), `["reasoning rs_2","message msg_1"]`},
	} {
		var got []string
		items, _ := itemsSent(t, nil, assistantSays(c.said...), result)
		for _, item := range items {
			item := item.(map[string]any)
			kind, _ := item["type"].(string)
			if item["role"] == "user" || kind == "function_call_output" {
				break
			}
			if kind == "" {
				kind = "message"
			}
			id, _ := item["id"].(string)
			got = append(got, kind+" "+id)
		}
		require.Equal(t, c.want, jsonOf(t, got), name)
	}
}

func TestReasoningThatIsNotSealedGoesBackWhereAnswersAreStored(t *testing.T) {
	said := assistantSays(itemBlocks(`{"type":"reasoning","id":"rs_1","summary":[]}`, `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hm."}]}`)...)
	again := userSays(content.Text{Text: "Well?"})
	items, notes := itemsSent(t, nil, said, again)
	require.Len(t, items, 2)
	require.Contains(t, notes[0].Detail, "encrypted")
	items, notes = itemsSent(t, &Options{Options: api.Options{Body: `{"store":true}`}}, said, again)
	require.Len(t, items, 3)
	require.Empty(t, notes)
}

func TestAModelThatDoesNotReasonIsNotSentReasoning(t *testing.T) {
	said := assistantSays(itemBlocks(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"eA=="}`,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hm."}]}`)...)
	req := api.Request{Messages: []content.Message{said, userSays(content.Text{Text: "Well?"})}, Options: api.Options{Thinking: api.ThinkHigh}}
	for model, reasons := range map[string]bool{"gpt-4o": false, "ft:gpt-4.1:x": false, "openai/gpt-4o-mini": false, "gpt-5-chat-latest": false, "gpt-5": true,
		"o3": true, "gpt-7": true, "openai/gpt-oss-120b": true} {
		body, _ := responsesBodyOf(t, req, model, nil)
		require.Equal(t, reasons, body["include"] != nil, model)
		require.Equal(t, reasons, body["reasoning"] != nil, model)
		require.Equal(t, reasons, len(body["input"].([]any)) == 3, model)
	}
}

func TestPartsOfAMessageBecomeOneItemAgain(t *testing.T) {
	const message = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"final_answer","content":[` +
		`{"type":"output_text","text":"One.","annotations":[{"type":"x"}],"logprobs":[]},{"type":"refusal","refusal":"No."}]}`
	blocks := itemBlocks(message, strings.ReplaceAll(message, "msg_1", "msg_2"))
	require.Len(t, blocks, 4)
	items, _ := itemsSent(t, nil, assistantSays(blocks...), userSays(content.Text{Text: "!"}))
	require.JSONEq(t, "["+message+","+strings.ReplaceAll(message, "msg_1", "msg_2")+"]", jsonOf(t, items[:2]))
}

func TestResultsOfEveryKind(t *testing.T) {
	call := func(id string) string {
		return `{"type":"function_call","id":"fc_` + id + `","call_id":"` + id + `","name":"f","arguments":"{}"}`
	}
	custom := `{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"run","input":"x = 1"}`
	picture := content.Image{Source: content.Source{MediaType: "image/png", Data: tinyPNG}}
	said := assistantSays(itemBlocks(call("a"), call("b"), custom, call("d"), call("e"))...)
	require.EqualValues(t, `"x = 1"`, said.Blocks.ToolUses()[2].Input)
	items, notes := itemsSent(t, nil, said, userSays(
		content.ToolResult{CallID: "a", Content: content.Words("22°C")},
		content.ToolResult{CallID: "b", Content: must(content.Text{Text: "Look:"}, picture)},
		content.ToolResult{CallID: "c", Content: content.Words("done")},
		content.ToolResult{CallID: "d", Content: content.Words("no such city"), IsError: true},
		content.ToolResult{CallID: "e", Content: must(picture), IsError: true},
		content.Text{Text: "Well?"}, picture,
	))
	require.Empty(t, notes)
	const image = `{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,` + tinyPNG + `"}`
	require.JSONEq(t, `[
		{"type":"function_call_output","call_id":"a","output":"22°C"},
		{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"Look:"},`+image+`]},
		{"type":"custom_tool_call_output","call_id":"c","output":"done"},
		{"type":"function_call_output","call_id":"d","output":"Error: no such city"},
		{"type":"function_call_output","call_id":"e","output":[{"type":"input_text","text":"Error"},`+image+`]},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"Well?"},`+image+`]}]`, jsonOf(t, items[5:]))
	require.JSONEq(t, custom, jsonOf(t, items[2]))
}

func TestCallsOfTheAPIsOwnToolsNeedTheirAnswers(t *testing.T) {
	opaque := func(j content.JSON) content.Block { return content.Opaque{API: ResponsesAPI, JSON: j} }
	click := opaque(`{"type":"computer_call","id":"cu_1","call_id":"call_1","action":{"type":"click"}}`)
	shot := opaque(`{"type":"computer_call_output","call_id":"call_1","output":{"type":"computer_screenshot","image_url":"https://example.com/x.png"}}`)
	items, notes := itemsSent(t, nil, assistantSays(click), userSays(shot))
	require.Empty(t, notes)
	require.Len(t, items, 2)
	items, notes = itemsSent(t, nil, assistantSays(click), userSays(content.Text{Text: "Never mind."}))
	require.Len(t, items, 0, "the user's messages became one")
	require.Contains(t, notes[0].Detail, "computer_call")
	items, _ = itemsSent(t, nil, userSays(shot, content.Text{Text: "Look."}))
	require.Len(t, items, 0)
}

func TestResponsesOptionsAreSent(t *testing.T) {
	half := 0.5
	req := hello()
	req.System = []string{"Be brief.", " ", "Be kind."}
	req.Tools = []content.Tool{
		{Name: "f", Description: "d", Schema: `{"type":"object"}`}, {Name: "f", Schema: `{"type":"object"}`},
		{Name: "run", Schema: `{"type":"object"}`, Extra: content.Extra{API: ResponsesAPI, JSON: `{"type":"custom","format":{"type":"text"}}`}},
		{Name: "search", Extra: content.Extra{API: ResponsesAPI, JSON: `{"type":"web_search"}`}},
		{Name: "strict", Schema: `{"type":"object","properties":{}}`, Extra: content.Extra{API: ResponsesAPI, JSON: `{"strict":true}`}},
	}
	req.Tools[4].Schema = `{"type":"object","properties":{},"additionalProperties":false,"required":[]}`
	req.Options = api.Options{
		MaxTokens: 5, Temperature: &half, StopSequences: []string{"x"}, ToolChoice: api.OneTool("run"), OneCall: true, Thinking: api.ThinkHigh,
		Output: api.Schema{Name: "form", JSON: `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`},
		Cache:  api.CacheLong,
		Body:   `{"text":{"verbosity":"low"},"reasoning":{"summary":"detailed"},"previous_response_id":"resp_1","top_p":1}`,
	}
	body, notes := responsesBodyOf(t, req, "gpt-test", &Options{NoStream: true})
	delete(body, "input")
	require.JSONEq(t, `{"model":"gpt-test","instructions":"Be brief.\n\nBe kind.","store":false,"include":["reasoning.encrypted_content"],
		"max_output_tokens":16,"temperature":0.5,"tool_choice":{"type":"custom","name":"run"},"parallel_tool_calls":false,
		"reasoning":{"effort":"high","summary":"detailed"},"prompt_cache_retention":"24h","top_p":1,
		"text":{"verbosity":"low","format":{"type":"json_schema","name":"form","strict":true,
			"schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}},
		"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{}},"strict":false},
			{"type":"custom","name":"run","format":{"type":"text"}},{"type":"web_search"},
			{"type":"function","name":"strict","parameters":{"type":"object","properties":{},"additionalProperties":false,"required":[]},"strict":true}]}`, jsonOf(t, body))
	var details []string
	for _, n := range notes {
		details = append(details, n.Detail)
	}
	require.Equal(t, []string{
		`"previous_response_id" in Options.Body is left out`, `the tool "f" is left out: it is declared twice`, "a system prompt of white space",
		"MaxTokens 5 became 16, the minimum of the API", "stop sequences are left out: the API does not have them",
	}, details)
}

func TestResponsesChoicesAndLevels(t *testing.T) {
	tools := []content.Tool{{Name: "f", Schema: `{"type":"object"}`},
		{Name: "m", Extra: content.Extra{API: ResponsesAPI, JSON: `{"type":"mcp","server_label":"s","server_url":"https://example.com"}`}}}
	for choice, want := range map[api.ToolChoice]string{
		api.ToolsAuto: "null", api.ToolsAny: `"required"`, api.ToolsNone: `"none"`, api.OneTool("f"): `{"name":"f","type":"function"}`,
		api.OneTool("m"): `{"server_label":"s","type":"mcp"}`, api.OneTool("absent"): "null",
	} {
		req := hello()
		req.Tools, req.Options.ToolChoice = tools, choice
		body, notes := responsesBodyOf(t, req, "gpt-test", nil)
		require.Equal(t, want, jsonOf(t, body["tool_choice"]))
		require.Equal(t, choice == api.OneTool("absent"), len(notes) > 0)
		req.Tools = nil
		body, _ = responsesBodyOf(t, req, "gpt-test", nil)
		require.Nil(t, body["tool_choice"])
	}
	for level, want := range map[api.Thinking]string{
		"": "null", api.ThinkOff: `{"effort":"none"}`, api.ThinkAuto: `{"summary":"auto"}`, api.ThinkLow: `{"effort":"low","summary":"auto"}`,
		"xhigh": `{"effort":"xhigh","summary":"auto"}`, api.ThinkTokens(1000): `{"summary":"auto"}`,
	} {
		req := hello()
		req.Options.Thinking = level
		body, notes := responsesBodyOf(t, req, "gpt-test", nil)
		require.Equal(t, want, jsonOf(t, body["reasoning"]))
		require.Equal(t, level.Tokens() > 0, len(notes) > 0)
	}
}

func TestResponsesRefusesOptionsAndEmptyConversations(t *testing.T) {
	_, _, err := ResponsesBody(hello(), "m", &Options{Options: api.Options{MaxTokens: -1}})
	require.ErrorIs(t, err, api.ErrInvalidRequest)
	_, _, err = ResponsesBody(api.Request{}, "m", nil)
	require.ErrorIs(t, err, api.ErrNothing)
	require.Equal(t, "openai-responses: no message to send", err.Error())
}

func TestStrictSchemas(t *testing.T) {
	for schema, want := range map[content.JSON]bool{
		`{"type":"object","properties":{},"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"$ref":"#/$defs/b"}},"required":["a","b"],"additionalProperties":false,` +
			`"$defs":{"b":{"type":"object","additionalProperties":false}}}`: true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"number"}}]}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{}},"additionalProperties":false}`:                                                                                        false,
		`{"type":"object","properties":{"a":{}},"required":["a"]}`:                                                                                                    false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                                                        false,
		`{"type":"object","properties":{"a":{"type":["object","null"]}},"required":["a"],"additionalProperties":false}`:                                               false,
		`{"type":"object","properties":{"a":{"oneOf":[{}]}},"required":["a"],"additionalProperties":false}`:                                                           false,
		`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}`:                                                                     false,
		`{"type":"object","anyOf":[],"additionalProperties":false}`:                                                                                                   false,
		`{"type":"object","required":7,"additionalProperties":false}`:                                                                                                 false,
		`{"type":"array"}`: false, `true`: false, `{`: false, ``: false,
		content.JSON(strings.Repeat(`{"type":"array","items":`, 200) + "{}" + strings.Repeat("}", 200)): false,
	} {
		require.Equal(t, want, strictSchema(schema), schema)
	}
}

func TestAReferenceIsSentOnlyWhereAnswersAreStored(t *testing.T) {
	req := api.Request{Messages: []content.Message{
		{Role: content.User, Blocks: content.Words("Go on.")},
		{Role: content.Assistant, Blocks: must(content.Opaque{API: ResponsesAPI, JSON: `{"type":"item_reference","id":"msg_1"}`})},
		{Role: content.User, Blocks: content.Words("And now?")},
	}}
	body, notes, err := ResponsesBody(req, "gpt-5", nil)
	require.NoError(t, err)
	require.NotContains(t, string(body), "item_reference")
	require.NotEmpty(t, notes)
	body, _, err = ResponsesBody(req, "gpt-5", &Options{Options: api.Options{Body: `{"store":true}`}})
	require.NoError(t, err)
	require.Contains(t, string(body), `{"type":"item_reference","id":"msg_1"}`)
}
