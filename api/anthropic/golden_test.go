package anthropic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
)

func TestBodiesAreAsWrittenDown(t *testing.T) {
	opaque := func(json content.JSON) content.Block { return content.Opaque{API: API, JSON: json} }
	cases := providertest.Cases(API)
	add := func(name string, o api.Options, messages ...content.Message) {
		req := api.Request{System: []string{"Be brief.", "Rhyme."}, Tools: []content.Tool{weather}, Messages: messages, Options: o}
		cases = append(cases, providertest.Case{Name: name, Request: req})
	}
	hi := user(said("Hi."))

	for _, body := range []content.JSON{
		`{"thinking":{"type":"enabled","budget_tokens":1}}`, `{"thinking":{"type":"adaptive"},"temperature":1}`, `{"thinking":7}`, `{"thinking":{"display":"omitted"}}`,
		`{"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"}}}`, `{"tool_choice":{"type":"tool","name":"missing"}}`,
		`{"tool_choice":{"type":"any"}}`, `{"tool_choice":7}`, `{"cache_control":{"type":"ephemeral"}}`, `{"output_config":{"effort":"low"}}`,
	} {
		add("Body "+string(body), api.Options{Body: body}, hi)
		add("Body "+string(body)+" and Thinking", api.Options{Body: body, Thinking: api.ThinkTokens(2000)}, hi)
	}
	begun := []content.Message{hi, assistant(call("a")), user(result("a"))}
	add("thinking in a turn that began without", api.Options{Thinking: api.ThinkTokens(2000)}, begun...)
	add("thinking after more than results", api.Options{Thinking: api.ThinkTokens(2000)}, hi, assistant(thought("s"), call("a")), user(result("a"), said("More.")))
	add("thinking after stale thinking", api.Options{Thinking: api.ThinkTokens(2000)}, hi, assistant(content.Thinking{Text: "Old.", Signature: "s", Stale: true}, call("a")), user(result("a")))
	add("stale thinking that the API would drop", api.Options{Body: `{"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"}}}`}, hi,
		assistant(content.Thinking{Text: "Old.", Signature: "s", Stale: true}, said("Well.")), user(said("On.")))

	const search, found = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
	add("a server tool", api.Options{}, hi, assistant(opaque(search), opaque(found), said("Well.")), user(said("On.")))
	add("a call of a server tool without its result", api.Options{}, hi, assistant(opaque(search), said("Well.")), user(said("On.")))
	add("a server tool's result without a call", api.Options{}, hi, assistant(opaque(found), said("Well.")), user(said("On.")))
	add("a server tool's call at the end", api.Options{}, hi, assistant(said("Well."), opaque(search)))
	add("an incomplete call of a server tool", api.Options{}, hi, assistant(opaque(`{"type":"server_tool_use","id":"x","name":"web_search","input":{}}`), said("Well.")), user(said("On.")))
	called := content.ToolUse{ID: "toolu_1", Name: "get_weather", Input: `{}`, Extra: own(`{"caller":{"type":"code_execution","tool_id":"srvtoolu_1"}}`)}
	add("a server tool that calls a tool", api.Options{}, hi, assistant(opaque(search), called), user(result("toolu_1")), assistant(opaque(found), said("Well.")), user(said("On.")))
	for _, kind := range []content.JSON{
		`{"type":"document","source":{"type":"content","content":[]}}`, `{"type":"document","source":{"type":"odd"}}`, `{"type":"search_result","source":"x","title":"t","content":[]}`,
		`{"type":"container_upload","file_id":"f"}`, `{"type":"tool_reference","tool_name":"x"}`, `{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}`,
		`{"type":"thinking","thinking":"x","signature":"s"}`, `{"type":"tool_use","id":"a","name":"b","input":{}}`, `{"type":7}`,
	} {
		within, err := content.Of(opaque(kind), said("x"))
		if err != nil {
			t.Fatal(err)
		}
		add("an opaque "+string(kind), api.Options{}, user(said("Hi."), opaque(kind)), assistant(opaque(kind), call("a")), user(content.ToolResult{CallID: "a", Content: within}))
	}

	mark := func(ttl string) content.Extra {
		return own(content.JSON(`{"cache_control":{"type":"ephemeral"` + ttl + `}}`))
	}
	marked := func(ttl string) content.Block { return content.Text{Text: "Marked.", Extra: mark(ttl)} }
	add("own markers that nobody asked for", api.Options{Cache: api.CacheOff}, user(marked("")))
	add("markers of five turns", api.Options{Cache: api.CacheLong}, user(said("1")), assistant(said("2")), user(said("3")), assistant(said("4")), user(said("5")))

	for _, prefill := range []bool{false, true} {
		file := map[bool]string{false: "bodies.txt", true: "bodies_prefill.txt"}[prefill]
		if prefill {
			cases = cases[len(cases)-3:]
			add("the assistant at the end", api.Options{}, hi, assistant(said("Well,  ")))
			add("thinking at the end", api.Options{Thinking: api.ThinkTokens(2000)}, hi, assistant(thought("s"), said("Well,")))
		}
		providertest.RequireBodies(t, file, cases, func(c providertest.Case) ([]byte, []api.RepairNote, error) {
			return Body(c.Request, "claude-x", &Options{Prefill: prefill, NoStream: prefill})
		})
	}
}

func TestEventsAreAsWrittenDown(t *testing.T) {
	json := map[string]string{"Content-Type": "application/json", "Request-Id": "req_1"}
	var replies []providertest.Reply
	whole := func(name, body string) {
		replies = append(replies, providertest.Reply{Name: name, Header: json, Body: body})
	}
	stream := func(name string, events ...string) {
		body := ""
		for _, e := range events {
			body += "event: x\ndata: " + e + "\n\n"
		}
		header := map[string]string{"Content-Type": "text/event-stream", "Request-Id": "req_1"}
		replies = append(replies, providertest.Reply{Name: name, Header: header, Body: body})
	}
	fails := func(name string, status int, header map[string]string, body string) {
		replies = append(replies, providertest.Reply{Name: name, Status: status, Header: header, Body: body})
	}

	const usage = `"usage":{"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}`
	message := func(content, stop string) string {
		return `{"type":"message","id":"msg_1","model":"claude-x","role":"assistant","content":` + content + `,"stop_reason":` + stop + `,"stop_sequence":null,` + usage + `}`
	}
	whole("a whole answer", message(`[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"Hi.","citations":[{"x":1}]},`+
		`{"type":"tool_use","id":"toolu_1","name":"look","input":{"a":1},"caller":{"type":"direct"}},{"type":"server_tool_use","id":"srvtoolu_1","name":"s","input":{}},{"type":"odd"}]`, `"tool_use"`))
	for _, stop := range []string{"end_turn", "max_tokens", "stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded", "odd", ""} {
		whole("stop reason "+stop, message(`[{"type":"text","text":"Hi."}]`, `"`+stop+`"`))
	}
	whole("a stop sequence", strings.Replace(message(`[]`, `"end_turn"`), `"stop_sequence":null`, `"stop_sequence":"END"`, 1))
	whole("a cut call", message(`[{"type":"tool_use","id":"toolu_1","name":"look","input":{}}]`, `"max_tokens"`))
	whole("no usage", `{"type":"message","content":[],"stop_reason":"end_turn"}`)
	whole("not a message", `{"type":"completion","content":[]}`)
	whole("no object", `[]`)
	whole("not JSON", `{"type":`)
	whole("a block that is none", message(`[7]`, `"end_turn"`))
	whole("an error", `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`)

	start := `{"type":"message_start","message":{"id":"msg_1","model":"claude-x","content":[],` + usage + `}}`
	begin := func(i, block string) string {
		return `{"type":"content_block_start","index":` + i + `,"content_block":` + block + `}`
	}
	delta := func(i, piece string) string {
		return `{"type":"content_block_delta","index":` + i + `,"delta":` + piece + `}`
	}
	stop := func(i string) string { return `{"type":"content_block_stop","index":` + i + `}` }
	end := func(reason string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":30}}`
	}
	const over = `{"type":"message_stop"}`
	text := begin("0", `{"type":"text","text":""}`)
	stream("every kind of block", start, `{"type":"ping"}`, begin("0", `{"type":"thinking","thinking":"","signature":""}`), delta("0", `{"type":"thinking_delta","thinking":"H"}`),
		delta("0", `{"type":"thinking_delta","thinking":"m."}`), delta("0", `{"type":"signature_delta","signature":"s"}`), stop("0"),
		begin("1", `{"type":"text","text":"A","citations":[{"a":1}]}`), delta("1", `{"type":"text_delta","text":"b"}`), delta("1", `{"type":"citations_delta","citation":{"b":2}}`), stop("1"),
		begin("2", `{"type":"tool_use","id":"t","name":"look","input":{}}`), delta("2", `{"type":"input_json_delta","partial_json":"{\"a\""}`), delta("2", `{"type":"input_json_delta","partial_json":":1}"}`), stop("2"),
		begin("3", `{"type":"odd","x":1}`), delta("3", `{"type":"odd_delta","x":2,"y":3}`), stop("3"), end("tool_use"), over, `{"type":"ping"}`)
	stream("a call without arguments", start, begin("0", `{"type":"tool_use","id":"t","name":"look","input":{}}`), stop("0"), end("tool_use"), over)
	stream("a call that was cut off", start, begin("0", `{"type":"tool_use","id":"t","name":"look","input":{}}`), delta("0", `{"type":"input_json_delta","partial_json":"{\"a"}`), stop("0"), end("max_tokens"), over)
	stream("a call without arguments that was cut off", start, begin("0", `{"type":"tool_use","id":"t","name":"look","input":{}}`), stop("0"), end("max_tokens"), over)
	stream("a block that does not stop", start, text, delta("0", `{"type":"text_delta","text":"x"}`), end("end_turn"), over)
	stream("no beginning", over)
	stream("no message_start", text, delta("0", `{"type":"text_delta","text":"x"}`), stop("0"), end("end_turn"), over)
	stream("no end", start, text, delta("0", `{"type":"text_delta","text":"x"}`))
	stream("an empty stream")
	stream("a block too far", start, begin("1", `{"type":"text","text":""}`))
	stream("a block that is none", start, begin("0", `7`))
	stream("a delta that is none", start, text, delta("0", `7`))
	stream("a delta of no block", start, delta("0", `{"type":"text_delta","text":"x"}`))
	stream("a delta of a block that stopped", start, text, stop("0"), delta("0", `{"type":"text_delta","text":"x"}`))
	stream("a stop of no block", start, stop("-1"))
	stream("a block that cannot be read", start, begin("0", `{"type":"text","text":7}`), stop("0"), over)
	stream("an end that is none", start, `{"type":"message_delta","delta":{"stop_reason":7}}`)
	stream("an event that is none", start, `{"type":7}`)
	stream("an event that is no JSON", start, `{"type`)
	stream("an event that breaks off, and another", start, `{"type`, over)
	stream("an error", start, `{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"req_2"}`)

	for _, kind := range []string{
		"authentication_error", "permission_error", "billing_error", "not_found_error", "rate_limit_error", "throttlingException", "ThrottlingException",
		"invalid_request_error", "validationException", "ValidationException", "request_too_large", "exceed_context_size_error", "api_error", "timeout_error",
	} {
		stream("an error of type "+kind, `{"type":"error","error":{"type":"`+kind+`","message":"it failed"}}`)
	}
	for _, words := range []string{"prompt is too long", "would exceed context limit", "Input is too long", "exceeds the available context size", "blocked by the Content Filter"} {
		fails("an error that says: "+words, 400, json, `{"type":"error","error":{"type":"invalid_request_error","message":"`+words+`"}}`)
	}
	for _, status := range []int{400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 503, 504, 529} {
		fails(fmt.Sprintf("status %d", status), status, json, `{"type":"error","error":{"type":"some_error","message":"it failed"}}`)
	}
	fails("a gateway's error", 502, map[string]string{"X-Request-Id": "gateway"}, `{"message":"bad gateway"}`)
	fails("an error of Bedrock", 429, map[string]string{"X-Amzn-Requestid": "amazon", "Retry-After": "7"}, `{"message":"slow down"}`)
	fails("an error with an ID", 429, map[string]string{"X-Request-Id": "gateway", "Retry-After-Ms": "1500", "Retry-After": "7"}, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"},"request_id":"req_3"}`)
	fails("an error that is no JSON", 500, nil, `<html>`)

	providertest.RequireEvents(t, "events.txt", replies, func(url string) api.Provider {
		return New("claude-x", &Options{SDK: []option.RequestOption{option.WithoutEnvironmentDefaults(), option.WithBaseURL(url), option.WithAPIKey("key")}})
	})
}
