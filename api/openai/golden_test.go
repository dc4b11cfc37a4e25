package openai

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/option"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
)

// caseList is the cases of one API: those of all, and further ones.
type caseList []providertest.Case

func (l *caseList) add(name string, o api.Options, messages ...content.Message) {
	tools := []content.Tool{{Name: "get_weather", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`}}
	*l = append(*l, providertest.Case{Name: name, Request: api.Request{Tools: tools, Messages: messages, Options: o}})
}

// atModel adds one of the cases for another model.
func (l *caseList) atModel(model string, names ...string) {
	for _, c := range slices.Clone(*l) {
		if slices.Contains(names, c.Name) && c.Model == "" {
			c.Name, c.Model = c.Name+" at "+model, model
			*l = append(*l, c)
		}
	}
}

func says(role content.Role, blocks ...content.Block) content.Message {
	return providertest.Said(role, blocks...)
}

func TestChatBodiesAreAsWrittenDown(t *testing.T) {
	const user, assistant = content.User, content.Assistant
	own := func(json content.JSON) content.Extra { return content.Extra{API: ChatAPI, JSON: json} }
	opaque := func(json content.JSON) content.Block { return content.Opaque{API: ChatAPI, JSON: json} }
	text := func(s string) content.Block { return content.Text{Text: s} }
	hi := says(user, text("Hi."))

	cases := caseList(providertest.Cases(ChatAPI))
	cases.atModel("gpt-4o", `Thinking "off"`, `Thinking "low"`, "blocks: thinking of every sort", "blocks: media of the user")
	cases.atModel("ft:gpt-5", `Thinking "off"`, "blocks: thinking of every sort")
	cases.atModel("o3", "blocks: thinking of every sort")
	cases.atModel("chatgpt-4o-latest", `Thinking "low"`, "blocks: thinking of every sort")
	cases.atModel("gpt-audio", "blocks: members of its own that Plait models", "blocks: media of the user", "blocks: media in a result")
	cases.atModel("gpt-oss-120b", "blocks: thinking of every sort")
	for _, body := range []content.JSON{
		`{"stream_options":{"x":1}}`, `{"max_completion_tokens":9}`, `{"tool_choice":{"type":"custom","custom":{"name":"missing"}}}`, `{"tool_choice":{"type":"function","function":{"name":"get_weather"}}}`,
		`{"tool_choice":"required"}`, `{"store":true}`, `{"store":false}`,
	} {
		cases.add("Body "+string(body), api.Options{Body: body, MaxTokens: 5}, hi)
	}

	thought := func(text string, json content.JSON) content.Block {
		return content.Thinking{Text: text, Extra: own(json)}
	}
	cases.add("thinking under its member", api.Options{}, hi, says(assistant, thought("a", `{"field":"reasoning_content","reasoning_details":[{"x":1}]}`), text("Well.")), says(user, text("On.")))
	cases.add("thinking as a part", api.Options{}, hi, says(assistant, thought("a", `{"field":"content","x":1}`), text("Well.")), says(user, text("On.")))
	cases.add("thinking under a member of the message", api.Options{}, hi, says(assistant, thought("a", `{"field":"tool_calls","role":"x","y":1}`), text("Well.")), says(user, text("On.")))
	cases.add("thinking without a member", api.Options{}, hi, says(assistant, thought("a", `{"reasoning_opaque":"x"}`), text("Well.")), says(user, text("On.")))
	cases.add("empty thinking", api.Options{}, hi, says(assistant, thought("", `{"field":"reasoning"}`), text("Well.")), says(user, text("On.")))
	cases.add("two messages in one", api.Options{}, hi, says(assistant, thought("a", `{"field":"reasoning"}`), text("1")), says(assistant, thought("b", `{"field":"reasoning","z":[1]}`), text("2"), opaque(`{"z":[2],"y":3}`), opaque(`{"z":[4],"y":5}`)), says(user, text("On.")))
	cases.add("a refusal", api.Options{}, hi, says(assistant, content.Text{Text: "No.", Extra: own(`{"type":"refusal"}`)}), says(user, text("On.")))
	cases.add("a refusal at the end", api.Options{}, hi, says(assistant, content.Text{Text: "No.", Extra: own(`{"type":"refusal"}`)}))
	cases.add("what was said aloud", api.Options{}, hi, says(assistant, content.Text{Text: "Hey.", Extra: own(`{"audio":{"id":"audio_1","transcript":"Hey."}}`)}, content.Text{Text: "You.", Extra: own(`{"audio":{"id":"audio_2"}}`)}), says(user, text("On.")))
	cases.add("what was said aloud without an ID", api.Options{}, hi, says(assistant, content.Text{Text: "Hey.", Extra: own(`{"audio":7}`)}), says(user, text("On.")))
	cases.add("annotations", api.Options{}, hi, says(assistant, content.Text{Text: "a", Extra: own(`{"annotations":[1]}`)}, content.Text{Text: "b", Extra: own(`{"annotations":[2],"x":1}`)}), says(user, text("On.")))
	cases.add("a custom call", api.Options{}, hi, says(assistant, content.ToolUse{ID: "a", Name: "free text", Input: `"say \"it\""`, Extra: own(`{"type":"custom","custom":{"x":1},"y":2}`)}, content.ToolUse{ID: "b", Name: "free", Input: `{"no":"text"}`, Extra: own(`{"type":"custom"}`)}),
		says(user, content.ToolResult{CallID: "a"}, content.ToolResult{CallID: "b"}))
	cases.add("a call with members of its own", api.Options{}, hi, says(assistant, content.ToolUse{ID: "a", Name: "get_weather", Input: `{}`, Extra: own(`{"function":{"x":1,"name":"no"},"extra_content":{"y":2},"id":"no"}`)}), says(user, content.ToolResult{CallID: "a"}))
	for _, part := range []content.JSON{
		`{"type":"image_url","image_url":{"url":"https://example.org/a.png","detail":"low"}}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="},"x":1}`,
		`{"type":"image_url","image_url":{"url":"","x":1}}`, `{"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}}`, `{"type":"input_audio","input_audio":{"data":"SUQz"}}`,
		`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}`, `{"type":"file","file":{"file_id":"f"}}`, `{"type":"file","file":{"file_id":"f","file_data":"data:,"}}`,
		`{"type":"refusal","refusal":"No."}`, `{"type":"thinking","thinking":[]}`, `{"type":""}`, `{"role":"assistant"}`, `{"audio":{"id":"a"}}`,
	} {
		cases.add("an opaque "+string(part), api.Options{}, says(user, text("Hi."), opaque(part)), says(assistant, opaque(part), text("Well.")), says(user, text("On.")))
	}

	body := func(o Options) func(c providertest.Case) ([]byte, []api.RepairNote, error) {
		return func(c providertest.Case) ([]byte, []api.RepairNote, error) {
			model := "model-x"
			if c.Model != "" {
				model = c.Model
			}
			return ChatBody(c.Request, model, &o)
		}
	}
	providertest.RequireBodies(t, "chat_bodies.txt", cases, body(Options{}))

	few := slices.DeleteFunc(slices.Clone(cases), func(c providertest.Case) bool {
		return !slices.Contains([]string{"no options", "MaxTokens", "MaxTokens in Body", `Body {"stream_options":{"x":1}}`, "system prompts", "blocks: media of the user", "blocks: thinking of every sort"}, c.Name)
	})
	providertest.RequireBodies(t, "chat_bodies_older.txt", few, body(Options{SystemRole: "developer", MaxTokensName: "max_new_tokens", OmitThinking: true, Audio: true, NoStream: true}))
}

func TestResponsesBodiesAreAsWrittenDown(t *testing.T) {
	const user, assistant = content.User, content.Assistant
	own := func(json content.JSON) content.Extra { return content.Extra{API: ResponsesAPI, JSON: json} }
	opaque := func(json content.JSON) content.Block { return content.Opaque{API: ResponsesAPI, JSON: json} }
	text := func(s string) content.Block { return content.Text{Text: s} }
	hi, on := says(user, text("Hi.")), says(user, text("On."))

	cases := caseList(providertest.Cases(ResponsesAPI))
	cases.atModel("gpt-4o", "no options", `Thinking "off"`, `Thinking "low"`, "blocks: thinking of every sort")
	cases.atModel("ft:gpt-3.5", "no options")
	cases.atModel("openai/gpt-5-chat", "no options")
	for _, body := range []content.JSON{
		`{"reasoning":{"effort":"high"}}`, `{"reasoning":7}`, `{"text":{"verbosity":"low"}}`, `{"include":[]}`, `{"store":true}`, `{"max_output_tokens":"x"}`,
	} {
		cases.add("Body "+string(body), api.Options{Body: body, Thinking: api.ThinkLow, MaxTokens: 15, Output: api.Schema{Name: "o", JSON: `{"type":"object"}`}}, hi)
	}

	thought := func(id, sealed string, after string) content.Block {
		return content.Thinking{Text: "Hm.", Signature: sealed, Extra: own(content.JSON(`{"id":"` + id + `"` + after + `}`))}
	}
	part := func(text, item string, n int, after string) content.Block {
		return content.Text{Text: text, Extra: own(content.JSON(fmt.Sprintf(`{"plait":{"item":{"id":"%s"},"part":%d%s}}`, item, n, after)))}
	}
	after := func(id string) string { return `,"after":"` + id + `"` }
	called := func(id, item string, after string) content.Block {
		return content.ToolUse{ID: id, Name: "get_weather", Input: `{}`, Extra: own(content.JSON(`{"id":"` + item + `","plait":{"part":0` + after + `}}`))}
	}
	answered := says(user, content.ToolResult{CallID: "c", Content: content.Words("snow")})
	for _, store := range []content.JSON{"", `{"store":true}`} {
		o := api.Options{Body: store}
		cases.add("reasoning before a message"+string(store), o, hi, says(assistant, thought("rs_1", "sealed", ""), part("a", "msg_1", 0, after("rs_1")), part("b", "msg_1", 1, after("rs_1"))), on)
		cases.add("reasoning before a call"+string(store), o, hi, says(assistant, thought("rs_1", "sealed", ""), called("c", "fc_1", after("rs_1"))), answered)
		cases.add("reasoning without its item"+string(store), o, hi, says(assistant, thought("rs_1", "sealed", ""), text("Well.")), on)
		cases.add("reasoning that is not sealed"+string(store), o, hi, says(assistant, thought("rs_1", "", ""), part("a", "msg_1", 0, after("rs_1"))), on)
		cases.add("reasoning after reasoning"+string(store), o, hi, says(assistant, thought("rs_1", "sealed", ""), thought("rs_2", "sealed", `,"plait":{"after":"rs_1"}`), part("a", "msg_1", 0, after("rs_2"))), on)
		cases.add("reasoning before an item of the API's own"+string(store), o, hi, says(assistant, thought("rs_1", "", ""), opaque(`{"type":"web_search_call","id":"ws_1","status":"completed"}`), text("Well.")), on)
		cases.add("reasoning before a list of tools"+string(store), o, hi, says(assistant, thought("rs_1", "sealed", ""), opaque(`{"type":"mcp_list_tools","id":"l_1"}`), text("Well.")), on)
		cases.add("a reference"+string(store), o, hi, says(assistant, opaque(`{"type":"item_reference","id":"x"}`), text("Well.")), on)
	}
	cases.add("parts of two messages", api.Options{}, hi, says(assistant, part("a", "msg_1", 0, ""), part("b", "msg_1", 2, ""), part("c", "msg_1", 1, ""), part("d", "msg_2", 0, "")), on)
	cases.add("a message whose reasoning is gone", api.Options{}, hi, says(assistant, part("a", "msg_1", 0, after("rs_1"))), on)
	cases.add("an item twice", api.Options{}, hi, says(assistant, part("a", "msg_1", 0, ""), called("c", "fc_1", "")), answered, says(assistant, part("b", "msg_1", 0, ""), called("c2", "fc_1", "")), says(user, content.ToolResult{CallID: "c2"}))
	cases.add("a refusal", api.Options{}, hi, says(assistant, content.Text{Text: "No.", Extra: own(`{"type":"refusal","x":1,"plait":{"item":{"id":"msg_1","status":"completed"}}}`)}), on)
	cases.add("a custom call", api.Options{}, hi, says(assistant, content.ToolUse{ID: "c", Name: "free text", Input: `"say it"`, Extra: own(`{"type":"custom_tool_call","id":"ctc_1"}`)}, content.ToolUse{ID: "d", Name: "free", Input: `{}`, Extra: own(`{"type":"custom_tool_call"}`)}),
		says(user, content.ToolResult{CallID: "c", Content: content.Words("done")}, content.ToolResult{CallID: "d", IsError: true}))
	cases.add("IDs that the API would refuse", api.Options{}, hi, says(assistant, thought("x", "sealed", ""), part("a", "x", 0, after("x")), called("c", "x", "")), answered)
	for call, own := range clientCalls {
		answer := own.answer
		id := `"call_id":"k"`
		if call == "mcp_approval_request" {
			id = `"id":"mcpr_1"`
		}
		back := strings.Replace(id, `"id"`, `"approval_request_id"`, 1)
		asked, told := opaque(content.JSON(`{"type":"`+call+`",`+id+`}`)), opaque(content.JSON(`{"type":"`+answer+`",`+back+`}`))
		cases.add(call+" and its answer", api.Options{}, hi, says(assistant, asked), says(user, told, text("On.")))
		cases.add(call+" without an answer", api.Options{}, hi, says(assistant, asked, text("Well.")), on)
		cases.add(answer+" without a call", api.Options{}, hi, says(assistant, text("Well.")), says(user, told, text("On.")))
		cases.add(call+" that is answered twice", api.Options{}, hi, says(assistant, asked), says(user, told, told, text("On.")))
	}
	cases.add("a search that the API ran", api.Options{}, hi, says(assistant, opaque(`{"type":"tool_search_call","execution":"server","id":"ts_1"}`), text("Well.")), on)
	cases.add("a local shell's answer by its item", api.Options{}, hi, says(assistant, opaque(`{"type":"local_shell_call","call_id":"k"}`)), says(user, opaque(`{"type":"local_shell_call_output","id":"k"}`), text("On.")))
	for _, item := range []content.JSON{
		`{"x":1}`, `{"type":"function_call"}`, `{"type":"custom_tool_call_output"}`, `{"type":"reasoning"}`, `{"type":"message","role":"assistant","content":[]}`, `{"type":"message","role":"user","content":[]}`,
		`{"type":"input_text","text":"x"}`, `{"type":"input_odd"}`, `{"type":"image_generation_call","id":"ig_1"}`, `{"type":"mcp_list_tools","id":"l_1"}`, `{"type":"odd","id":"o_1"}`,
	} {
		within := says(user, text("x"), opaque(item)).Blocks
		cases.add("an opaque "+string(item), api.Options{}, says(user, text("Hi."), opaque(item)), says(assistant, opaque(item), called("c", "fc_1", "")), says(user, content.ToolResult{CallID: "c", Content: within}))
	}
	for _, kind := range slices.Sorted(maps.Keys(extensions)) {
		cases.add("a file of type "+kind, api.Options{}, says(user, content.Document{Source: content.Source{MediaType: kind, Data: "QQ=="}}))
	}
	slices.SortFunc(cases, func(a, b providertest.Case) int { return strings.Compare(a.Name, b.Name) }) // those made from maps come in any order

	body := func(o Options) func(c providertest.Case) ([]byte, []api.RepairNote, error) {
		return func(c providertest.Case) ([]byte, []api.RepairNote, error) {
			model := "model-x"
			if c.Model != "" {
				model = c.Model
			}
			return ResponsesBody(c.Request, model, &o)
		}
	}
	providertest.RequireBodies(t, "responses_bodies.txt", cases, body(Options{}))

	few := slices.DeleteFunc(slices.Clone(cases), func(c providertest.Case) bool {
		return !slices.Contains([]string{"MaxTokens of 1", "blocks: media of the user", "blocks: media in a result", "blocks: results of every sort"}, c.Name)
	})
	compatible := Options{NoStream: true, SDK: []option.RequestOption{option.WithBaseURL("http://127.0.0.1:1/v1")}}
	providertest.RequireBodies(t, "responses_bodies_compatible.txt", few, body(compatible))
}

// replyList is the replies of one API.
type replyList []providertest.Reply

func (l *replyList) whole(name, body string) {
	header := map[string]string{"Content-Type": "application/json", "X-Request-Id": "req_1"}
	*l = append(*l, providertest.Reply{Name: name, Header: header, Body: body})
}

func (l *replyList) stream(name string, events ...string) {
	body := ""
	for _, e := range events {
		body += "data: " + e + "\n\n"
	}
	header := map[string]string{"Content-Type": "text/event-stream", "X-Request-Id": "req_1"}
	*l = append(*l, providertest.Reply{Name: name, Header: header, Body: body})
}

func (l *replyList) fails(name string, status int, header map[string]string, body string) {
	*l = append(*l, providertest.Reply{Name: name, Status: status, Header: header, Body: body})
}

func TestChatEventsAreAsWrittenDown(t *testing.T) {
	var replies replyList
	const usage = `"usage":{"prompt_tokens":10,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":1},"completion_tokens_details":{"reasoning_tokens":5}}`
	whole := func(message, reason string) string {
		return `{"id":"chatcmpl_1","model":"model-x","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + reason + `"}],` + usage + `}`
	}
	replies.whole("a whole answer", whole(`{"role":"assistant","content":"Hi.","reasoning_content":"Hm.","annotations":[{"x":1}],"refusal":null,"odd":{"y":2},"tool_calls":[`+
		`{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\":1}","z":3},"w":4},{"id":"b","type":"custom","custom":{"name":"free","input":"say \"it\""}},{"id":"c","function":{"name":"bare"}}]}`, "tool_calls"))
	replies.whole("a whole answer in parts", whole(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"H"},{"type":"text","text":"m."}]},{"type":"text","text":"Hi."},{"type":"refusal","refusal":"No."},{"type":"odd","x":1},{"x":2},7]}`, "stop"))
	replies.whole("thinking as a text in parts", whole(`{"content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"Hi."}]}`, "stop"))
	replies.whole("a refusal", whole(`{"content":null,"refusal":"No."}`, "stop"))
	replies.whole("spoken", whole(`{"content":null,"audio":{"id":"audio_1","transcript":"Hey.","data":"x"}}`, "stop"))
	replies.whole("spoken without words", whole(`{"content":"Hi.","audio":{"id":"audio_1"},"odd":1}`, "stop"))
	replies.whole("details of thinking", whole(`{"content":"Hi.","reasoning":"Hm.","reasoning_content":"Hm.","reasoning_details":[{"type":"reasoning.text","text":"a"},{"summary":"b"},7]}`, "stop"))
	replies.whole("details of thinking alone", whole(`{"content":"Hi.","reasoning_details":[{"type":"reasoning.text","text":"a"},{"summary":"b"},7],"reasoning_signature":"s","thinking_blocks":[1],"reasoning_opaque":"o"}`, "stop"))
	replies.whole("a call of the first form", whole(`{"content":null,"function_call":{"name":"look","arguments":"{}"}}`, "function_call"))
	replies.whole("a call and a normal end", whole(`{"tool_calls":[{"id":"a","function":{"name":"look","arguments":{"an":"object"}}}]}`, "stop"))
	for _, reason := range []string{"stop", "tool_calls", "length", "content_filter", "odd"} {
		replies.whole("finish_reason "+reason, whole(`{"content":"Hi.","tool_calls":[{"id":"a","function":{"name":"look"}}]}`, reason))
	}
	replies.whole("other numbers", `{"choices":[{"index":1,"message":{"content":"no"}},{"message":{"content":"Hi."},"finish_reason":"stop","usage":{"prompt_tokens":2,"completion_tokens":-3,"prompt_cache_hit_tokens":9}}]}`)
	replies.whole("numbers that are none", `{"choices":[{"index":null,"message":{"content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":"x"},"id":7}`)
	replies.whole("no message", `{"choices":[]}`)
	replies.whole("a message that is none", `{"choices":[{"message":7}]}`)
	replies.whole("no completion", `[]`)
	replies.whole("no JSON", `{"choices`)
	replies.whole("an error", `{"error":{"message":"busy","type":"server_error","code":"overloaded"}}`)
	replies.whole("no error", `{"error":null,"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`)

	chunk := func(delta string) string {
		return `{"id":"chatcmpl_1","model":"model-x","choices":[{"index":0,"delta":` + delta + `}]}`
	}
	end := func(reason string) string {
		return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
	}
	const counted, done = `{"choices":[],` + usage + `}`, `[DONE]`
	replies.stream("every kind of piece", chunk(`{"role":"assistant","content":""}`), chunk(`{"reasoning":"H"}`), chunk(`{"reasoning":"m.","reasoning_details":[{"a":1}]}`), chunk(`{"content":"A"}`), chunk(`{"content":"b","odd":"x"}`), chunk(`{"odd":"y"}`),
		chunk(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}]}`), chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\""}}]}`),
		chunk(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"see","arguments":"{}"}},{"index":0,"function":{"arguments":":1}"}}]}`), end("tool_calls"), counted, done)
	replies.stream("calls without an index", chunk(`{"tool_calls":[{"id":"a","function":{"name":"look","arguments":"{}"}}]}`), chunk(`{"tool_calls":[{"id":"b","function":{"name":"see","arguments":"{"}}]}`), chunk(`{"tool_calls":[{"function":{"arguments":"}"}}]}`),
		chunk(`{"tool_calls":[{"function":{"name":"see","arguments":"{}"}}]}`), end("stop"), done)
	replies.stream("calls with one index", chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}}]}`), chunk(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"see","arguments":"{}"}}]}`), end("tool_calls"), done)
	replies.stream("a name in pieces", chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"lo"}}]}`), chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"ok","arguments":"{}"}}]}`), end("tool_calls"), done)
	replies.stream("a refusal and words", chunk(`{"content":"Hi."}`), chunk(`{"refusal":"N"}`), chunk(`{"refusal":"o."}`), end("stop"), done)
	replies.stream("cut off by its limit", chunk(`{"content":"Hi"}`), chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"look"}}]}`), end("length"), counted)
	replies.stream("no end", chunk(`{"content":"Hi"}`))
	replies.stream("an empty stream")
	replies.stream("an error", chunk(`{"content":"Hi"}`), `{"error":{"message":"busy","code":503}}`)
	replies.stream("an event that breaks off", chunk(`{"content":"Hi"}`), `{"choices`)
	replies.stream("an event that breaks off, and another", `{"choices`, counted)
	replies.stream("a chunk that is none", `{"choices":[{"delta":7}]}`)
	replies.stream("a chunk without a delta", `{"choices":[{"delta":null}]}`, end("stop"))

	errorReplies(&replies)
	providertest.RequireEvents(t, "chat_events.txt", replies, func(url string) api.Provider {
		return NewChat("model-x", &Options{SDK: sdkAt(url)})
	})
}

// sdkAt lets the SDK talk to a server. What the environment says is overruled.
func sdkAt(url string) []option.RequestOption {
	return []option.RequestOption{
		option.WithBaseURL(url + "/v1"), option.WithAPIKey("key"), option.WithHeaderDel("OpenAI-Organization"), option.WithHeaderDel("OpenAI-Project"),
	}
}

// errorReplies adds errors of every kind, in the shapes of OpenAI and of compatible servers.
func errorReplies(l *replyList) {
	for _, word := range slices.Sorted(maps.Keys(kinds)) {
		l.stream("an error of type "+word, `{"error":{"type":"`+word+`","message":"it failed"}}`)
	}
	json := map[string]string{"Content-Type": "application/json", "X-Request-Id": "req_1"}
	for _, words := range []string{
		"maximum context length", "the Context Window", "context length", "context size", "prompt is too long", "content management policy", "a Content Filter", "our safety system",
	} {
		l.fails("an error that says: "+words, 400, json, `{"error":{"message":"`+words+`","type":"invalid_request_error"}}`)
	}
	l.fails("a server's error that says: context size", 500, json, `{"error":{"message":"context size, safety system","type":"server_error"}}`)
	for _, status := range []int{400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529} {
		l.fails(fmt.Sprintf("status %d", status), status, json, `{"error":{"message":"it failed","type":"some_error","code":"some_code"}}`)
	}
	for _, body := range []string{
		`{"type":"error","code":"rate_limit","message":"slow"}`, `{"error":"words","code":"overloaded"}`, `{"detail":"words"}`, `{"status":"INVALID_ARGUMENT","message":"words"}`,
		`[{"error":{"code":429,"message":"words","status":"RESOURCE_EXHAUSTED"}}]`, `{"error":{"message":"words","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, `{"statusCode":401,"error_description":"words"}`,
		`{"error":{"code":"invalid_thing","message":"words"}}`, `{"error":{"code":"unsupported_thing"}}`, `{"error":{"type":"invalid_kind"}}`, `<html>`, ``,
	} {
		l.fails("an error of another shape: "+body, 418, json, body)
		if body != "" && body[0] == '{' {
			l.stream("in a stream: "+body, strings.Replace(body, `{`, `{"object":"error",`, 1))
		}
	}
	l.fails("the ID of Azure", 500, map[string]string{"Apim-Request-Id": "azure", "X-Ms-Request-Id": "ms"}, `{}`)
	l.fails("the ID of Microsoft", 500, map[string]string{"X-Ms-Request-Id": "ms"}, `{}`)
	for _, wait := range []string{"6m0s", "20ms", "1d2h", "3d", "7", "-7", "x", "5000d"} {
		header := map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": wait, "X-Ratelimit-Remaining-Tokens": "1", "X-Ratelimit-Reset-Tokens": "99h"}
		l.fails("a limit with nothing left until "+wait, 429, header, `{}`)
	}
	l.fails("two limits with nothing left", 429, map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1s", "X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "2s"}, `{}`)
	l.fails("two limits with nothing left, the first for longer", 429, map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "5s", "X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "4s"}, `{}`)
	l.fails("a wait that is asked for", 429, map[string]string{"Retry-After": "3", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1s"}, `{}`)
}

func TestResponsesEventsAreAsWrittenDown(t *testing.T) {
	var replies replyList
	const usage = `"usage":{"input_tokens":10,"output_tokens":20,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":1},"output_tokens_details":{"reasoning_tokens":5}}`
	response := func(status, output string) string {
		return `{"object":"response","id":"resp_1","model":"model-x","status":"` + status + `","output":` + output + `,` + usage + `}`
	}
	const (
		thought = `{"type":"reasoning","id":"rs_1","encrypted_content":"sealed","summary":[{"type":"summary_text","text":"Hm."}]}`
		message = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi.","annotations":[]},{"type":"refusal","refusal":"No."}]}`
		called  = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{\"at\":1}"}`
		custom  = `{"type":"custom_tool_call","id":"ctc_1","call_id":"call_2","name":"free","input":"say it"}`
		search  = `{"type":"web_search_call","id":"ws_1","status":"completed"}`
	)
	all := "[" + strings.Join([]string{thought, message, called, custom, search}, ",") + "]"
	replies.whole("a whole answer", response("completed", all))
	replies.whole("a refusal", response("completed", "["+message+"]"))
	replies.whole("words", response("completed", `[{"type":"message","content":[{"type":"output_text","text":"Hi."}]}]`))
	for _, item := range []string{
		`{"type":"message","role":"user","content":[]}`, `{"type":"message","content":[]}`, `{"type":"message","content":[{"type":"output_text","text":""}]}`, `{"type":"message","content":[{"type":"odd"}]}`, `{"type":"message","content":"x"}`, `{"type":"message","content":[7]}`,
		`{"type":"reasoning"}`, `{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"a"},{"text":"b"}]}`, `{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"plait":1}`,
		`{"type":"function_call","id":"fc_1","name":"look"}`, `{"type":"function_call","name":"look"}`, `{"type":"function_call","call_id":"c"}`, `{"type":"custom_tool_call","call_id":"c","name":"n","input":7}`, `{"type":"custom_tool_call","id":"c","name":"n","input":"x"}`, `{"x":1}`,
	} {
		replies.whole("an item "+item, response("completed", "["+item+"]"))
	}
	replies.whole("reasoning in a row", response("completed", `[`+thought+`,{"type":"reasoning","id":"rs_2","encrypted_content":"s"},`+search+`,{"type":"reasoning","id":"rs_3","encrypted_content":"s"},`+message+`]`))
	for _, reason := range []string{"max_output_tokens", "max_tokens", "content_filter", "odd", ""} {
		replies.whole("incomplete: "+reason, strings.Replace(response("incomplete", "[]"), `"output":`, `"incomplete_details":{"reason":"`+reason+`"},"output":`, 1))
	}
	replies.whole("failed", `{"object":"response","status":"failed","error":{"code":"server_error","message":"it failed"}}`)
	replies.whole("cancelled", `{"object":"response","status":"cancelled","error":null}`)
	replies.whole("another status", response("odd", "[]"))
	replies.whole("an error", `{"error":{"code":"rate_limit_exceeded","message":"slow"}}`)
	replies.whole("no response", `[]`)
	replies.whole("an item that is none", response("completed", `[7]`))

	const created = `{"type":"response.created","response":{"id":"resp_1","model":"model-x","status":"in_progress"}}`
	added := func(i int, item string) string {
		return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, item)
	}
	done := func(i int, item string) string {
		return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item)
	}
	delta := func(kind string, i int, more string) string {
		return fmt.Sprintf(`{"type":"response.%s.delta","output_index":%d,%s}`, kind, i, more)
	}
	over := func(kind, response string) string {
		return `{"type":"response.` + kind + `","response":` + response + `}`
	}
	replies.stream("every kind of piece", created, `{"type":"response.in_progress","response":7}`, added(0, thought), delta("reasoning_summary_text", 0, `"summary_index":0,"delta":"H"`), delta("reasoning_summary_text", 0, `"summary_index":0,"delta":"m."`),
		delta("reasoning_summary_text", 0, `"summary_index":1,"delta":"More."`), done(0, thought), added(1, message), delta("output_text", 1, `"content_index":0,"delta":"Hi."`), delta("refusal", 1, `"content_index":1,"delta":"No."`), done(1, message),
		added(2, called), delta("function_call_arguments", 2, `"delta":"{"`), delta("function_call_arguments", 2, `"delta":""`), done(2, called), added(3, custom), delta("custom_tool_call_input", 3, `"delta":"say"`), done(3, custom), added(4, search),
		`{"type":"response.web_search_call.completed"}`, done(4, search), over("completed", response("completed", all)), created)
	replies.stream("reasoning in two parts of an item each", created, added(0, thought), delta("reasoning_text", 0, `"content_index":0,"delta":"a"`), delta("reasoning_text", 0, `"content_index":1,"delta":"b"`), done(0, thought), added(1, thought), delta("reasoning_text", 1, `"content_index":0,"delta":"c"`), done(1, thought), over("completed", response("completed", "[]")))
	replies.stream("items that end in another order", created, added(0, called), added(1, message), done(1, message), done(0, called), over("completed", response("completed", "[]")))
	replies.stream("items without an index", `{"type":"response.output_item.added","item":{"id":"fc_1","name":"look"}}`, `{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{"}`, `{"type":"response.function_call_arguments.delta","item_id":"other","delta":"}"}`,
		`{"type":"response.output_item.done","item":`+called+`}`, `{"type":"response.output_item.added","item":{"id":"msg_1"}}`, `{"type":"response.output_text.delta","delta":"Hi."}`, `{"type":"response.output_item.done","item":{"type":"message","id":"new","content":[{"type":"output_text","text":"Hi."}]}}`, over("completed", `{}`))
	replies.stream("items that only the end has", created, over("completed", response("completed", all)))
	replies.stream("an item that only waits", created, done(1, message), over("completed", response("completed", "[]")))
	replies.stream("an item that does not end", created, added(0, called), over("completed", response("completed", "[]")))
	replies.stream("a piece of no item", created, delta("output_text", 0, `"delta":"x"`), added(0, message), delta("output_text", 5, `"delta":"x"`), delta("output_text", 0, `"content_index":-1,"delta":"x"`), over("completed", response("completed", all)))
	replies.stream("an item that begins twice", created, added(0, called), added(0, called))
	replies.stream("an item that begins after its end", created, added(0, called), done(0, called), added(0, called))
	replies.stream("an item that begins while it waits", created, done(1, called), added(1, called))
	replies.stream("an item that ends twice", created, done(0, called), done(0, called))
	replies.stream("an item that ends twice while it waits", created, done(1, called), done(1, called))
	replies.stream("an item that is none", created, done(0, `7`))
	for _, kind := range []string{"completed", "incomplete", "failed", "cancelled"} {
		replies.stream("the end "+kind, created, over(kind, `{"id":"resp_1","model":"model-x","error":{"code":"server_error","message":"it failed"}}`))
	}
	replies.stream("an end that is none", created, over("completed", `7`))
	replies.stream("an end of another status", created, over("completed", response("odd", "[]")))
	replies.stream("an error", created, `{"type":"error","code":"server_is_overloaded","message":"busy"}`)
	replies.stream("an event that is an error", `{"type":7,"error":{"code":"slow_down"}}`)
	replies.stream("an event that is none", `{"type":7}`)
	replies.stream("an event that breaks off", created, `{"type`)
	replies.stream("an event that breaks off, and another", created, `{"type`, created)
	replies.stream("no end", created)

	providertest.RequireEvents(t, "responses_events.txt", replies, func(url string) api.Provider {
		return NewResponses("model-x", &Options{SDK: sdkAt(url)})
	})
	limited := replies[:3]
	providertest.RequireEvents(t, "responses_events_limited.txt", limited, func(url string) api.Provider {
		o := Options{NoStream: true, SDK: sdkAt(url)}
		o.MaxTokens = 20
		return NewResponses("model-x", &o)
	})
}
