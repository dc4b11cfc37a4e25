package fake_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

var (
	png = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\nrest"))
	pdf = base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 rest"))
)

// request is the body of a request with messages, and further members before them.
func request(messages string, more ...string) string {
	return `{"model":"claude-test","max_tokens":5000,` + strings.Join(append(more, ""), ",") + `"messages":[` + messages + `]}`
}

const (
	hi      = `{"role":"user","content":"Hi"}`
	use     = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	use2    = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]}`
	result  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}`
	enabled = `"thinking":{"type":"enabled","budget_tokens":1024}`
	thought = `{"type":"thinking","thinking":"hm","signature":"c2ln"}`
	loops   = "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set " +
		"of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this " +
		"requirement, disable `thinking`."
	unanswered = "`tool_use` ids were found without `tool_result` blocks immediately after: "
	mustAnswer = ". Each `tool_use` block must have a corresponding `tool_result` block in the next message."
	mustCall   = ". Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
	prefill    = "This model does not support assistant message prefill. The conversation must end with a user message."
)

func user(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

func assistant(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

func say(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }

func answer(id string) string {
	return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"1"}`, id)
}

func call(id string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"f","input":{}}`, id)
}

func image(media, data string) string {
	return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":%q,"data":%q}}`, media, data)
}

func document(media, data string) string {
	return strings.Replace(image(media, data), "image", "document", 1)
}

func tool(name, schema string, more ...string) string {
	return fmt.Sprintf(`{"name":%q,"input_schema":%s%s}`, name, schema, strings.Join(append([]string{""}, more...), ","))
}

func tools(list ...string) string { return `"tools":[` + strings.Join(list, ",") + `]` }

const object = `{"type":"object"}`

func marked(text, mark string) string {
	return fmt.Sprintf(`{"type":"text","text":%q,"cache_control":%s}`, text, mark)
}

func server(id string) string {
	return fmt.Sprintf(`{"type":"server_tool_use","id":%q,"name":"web_search","input":{}}`, id)
}

func found(id string) string {
	return fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":%q,"content":[]}`, id)
}

func strictTools(n int, schema string) string {
	var list []string
	for i := range n {
		list = append(list, tool(fmt.Sprintf("f%d", i), schema, `"strict":true`))
	}
	return tools(list...)
}

func properties(n int, schema string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"p%d":%s`, i, schema))
	}
	return `{"type":"object","properties":{` + strings.Join(list, ",") + `}}`
}

const (
	five = `{"type":"ephemeral"}`
	hour = `{"type":"ephemeral","ttl":"1h"}`
)

// refusals has, for each rule, a body that breaks only that one, and what the API says.
var refusals = []refusalCase{
	// Pairing.
	{"a call without a result", request(hi + "," + use + "," + hi), "messages.1: " + unanswered + "a" + mustAnswer},
	{"two calls without results", request(hi + "," + use2 + "," + hi), "messages.1: " + unanswered + "a, b" + mustAnswer},
	{"one of two calls without a result", request(hi + "," + use2 + "," + result), "messages.1: " + unanswered + "b" + mustAnswer},
	{"a result in the message after next", request(hi + "," + use + "," + hi + "," + assistant(say("x")) + "," + result), "messages.1: " + unanswered + "a" + mustAnswer},
	{"text before the result", request(hi + "," + use + "," + user(say("x"), answer("a"))), "messages.1: " + unanswered + "a" + mustAnswer},
	{"a message before the result's", request(hi + "," + use + "," + hi + "," + result), "messages.1: " + unanswered + "a" + mustAnswer},
	{"a result without a call", request(hi + "," + assistant(say("x")) + "," + user(say("y"), answer("z"))),
		"messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: z" + mustCall},
	{"a result at the beginning", request(result), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a" + mustCall},
	{"two results of one call", request(hi + "," + use + "," + user(answer("a"), answer("a"))),
		"messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a"},
	{"an id twice in a message", request(hi + "," + assistant(call("a"), call("a")) + "," + result), "messages.1.content.1: `tool_use` ids must be unique"},
	{"an id twice in a conversation", request(hi + "," + use + "," + result + "," + use + "," + result), "messages.3.content.0: `tool_use` ids must be unique"},
	{"text after a call", request(hi + "," + assistant(call("a"), say("x")) + "," + result), prefill},
	{"a bad id", request(hi + "," + assistant(call("a:1")) + "," + user(answer("a:1"))),
		"messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
	{"an empty id", request(hi + "," + assistant(call("")) + "," + user(answer(""))),
		"messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
	{"a bad name in a call", request(hi + "," + strings.Replace(use, `"f"`, `"f g"`, 1) + "," + result),
		"messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"},
	{"input that is no object", request(hi + "," + strings.Replace(use, `{}`, `"x"`, 1) + "," + result),
		"messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
	{"no input", request(hi + "," + strings.Replace(use, `,"input":{}`, ``, 1) + "," + result), "messages.1.content.0.tool_use.input: Field required"},
	// Server tools.
	{"a result of a server tool without its call", request(hi + "," + assistant(found("srvtoolu_1"), say("x")) + "," + hi),
		"messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1. Each `web_search_tool_result` " +
			"block must have a corresponding `server_tool_use` block before it."},
	{"a server tool's call without its result", request(hi + "," + assistant(server("srvtoolu_1"), say("x")) + "," + hi),
		"messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block"},
	{"a server tool whose turn ended", request(hi + "," + assistant(server("srvtoolu_1"), call("a")) + "," + result + "," + assistant(say("x")) + "," + hi),
		"messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block"},
	{"a server tool, and text beside the results", request(hi + "," + assistant(server("srvtoolu_1"), call("a")) + "," + user(answer("a"), say("x"))),
		"messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block"},
	{"a caller that is no call", request(hi + "," + assistant(strings.Replace(call("a"), `"name"`, `"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"},"name"`, 1)) + "," + result),
		"messages.1.content.0: the caller srvtoolu_1 is no call of a server tool before it"},
	{"a server tool that calls, without its container", request(hi + "," + assistant(server("srvtoolu_1"), strings.Replace(call("a"), `"name"`, `"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"},"name"`, 1)) + "," + result),
		"container_id is required when there are pending tool uses generated by code execution with tools."},
	{"a server tool's id that is a client's", request(hi + "," + assistant(server("toolu_1"), found("toolu_1")) + "," + hi),
		"messages.1.content.0.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"},
	// Results.
	{"an error that says nothing", request(hi + "," + use + "," + user(`{"type":"tool_result","tool_use_id":"a","is_error":true}`)),
		"messages.2.content.0.tool_result: content cannot be empty if `is_error` is true"},
	{"an error with a picture", request(hi + "," + use + "," + user(`{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[`+image("image/png", png)+`]}`)),
		"messages.2.content.0.tool_result: all content must be type `text` if `is_error` is true"},
	{"a result in a result", request(hi + "," + use + "," + user(`{"type":"tool_result","tool_use_id":"a","content":[`+answer("a")+`]}`)),
		"messages.2.content.0.tool_result.content.0: Input tag 'tool_result' found using 'type' does not match any of the expected tags: " +
			"'document', 'image', 'search_result', 'text', 'tool_reference'"},
	{"empty text in a result", request(hi + "," + use + "," + user(`{"type":"tool_result","tool_use_id":"a","content":[`+say("")+`]}`)),
		"messages: text content blocks must be non-empty"},
	{"blank text in a result", request(hi + "," + use + "," + user(`{"type":"tool_result","tool_use_id":"a","content":[`+say(" ")+`]}`)),
		"messages: text content blocks must contain non-whitespace text"},
	// Messages.
	{"no messages", request(""), "messages: at least one message is required"},
	{"an empty message", request(hi + "," + assistant() + "," + hi),
		"messages.1: all messages must have non-empty content except for the optional final assistant message"},
	{"an empty string", request(`{"role":"user","content":""}`),
		"messages.0: all messages must have non-empty content except for the optional final assistant message"},
	{"empty text", request(user(say("x"), say(""))), "messages: text content blocks must be non-empty"},
	{"blank text", request(user(say(" \n"))), "messages: text content blocks must contain non-whitespace text"},
	{"a blank string", request(`{"role":"user","content":" "}`), "messages: text content blocks must contain non-whitespace text"},
	{"a role that is none", request(`{"role":"tool","content":"x"}`), "messages.0.role: Input should be 'user' or 'assistant'"},
	{"a system role", request(`{"role":"system","content":"x"},` + hi), "messages.0.role: Input should be 'user' or 'assistant'"},
	{"the assistant last", request(hi + "," + assistant(say("x"))), prefill},
	{"an open call last", request(hi + "," + use), prefill},
	{"a finished server tool last", request(hi + "," + assistant(server("srvtoolu_1"), found("srvtoolu_1"))), prefill},
	{"a call of the user", request(user(call("a"))), "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages"},
	{"a result of the assistant", request(hi + "," + assistant(answer("a")) + "," + hi), "messages.1.content.0: `tool_result` blocks can only be in `user` messages"},
	{"a picture of the assistant", request(hi + "," + assistant(image("image/png", png)) + "," + hi), "messages.1.content.0: `image` blocks can only be in `user` messages"},
	{"an unknown block", request(user(`{"type":"hologram"}`)), "messages.0.content.0: Input tag 'hologram' found using 'type' does not match any of " +
		"the expected tags: 'text', 'image', 'document', 'tool_use', 'tool_result', 'thinking', 'redacted_thinking' and those of server tools"},
	{"an unknown member", request(user(`{"type":"text","text":"x","mood":1}`)), "messages.0.content.0.text.mood: Extra inputs are not permitted"},
	{"an unknown member of a message", request(`{"role":"user","content":"x","name":"y"}`), "messages.0.name: Extra inputs are not permitted"},
	// Thinking.
	{"thinking without a signature", request(hi + "," + assistant(`{"type":"thinking","thinking":"x","signature":""}`, say("x")) + "," + hi),
		"messages.1.content.0: Invalid `signature` in `thinking` block"},
	{"thinking without the member", request(hi + "," + assistant(`{"type":"thinking","thinking":"x"}`, say("x")) + "," + hi),
		"messages.1.content.0.thinking.signature: Field required"},
	{"redacted thinking without data", request(hi + "," + assistant(`{"type":"redacted_thinking"}`, say("x")) + "," + hi),
		"messages.1.content.0.redacted_thinking.data: Field required"},
	{"thinking at the end", request(hi + "," + assistant(say("x"), thought) + "," + hi),
		"messages.1: The final block in an assistant message cannot be `thinking`."},
	{"a loop without thinking", request(hi+","+use+","+result, enabled),
		"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. " + loops},
	{"a loop whose thinking is later", request(hi+","+use+","+result+","+assistant(thought, call("b"))+","+user(answer("b")), enabled),
		"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. " + loops},
	{"a loop begun anew beside results", request(hi+","+assistant(thought, call("a"))+","+user(answer("a"), say("x"))+","+assistant(call("b"))+","+user(answer("b")), enabled),
		"messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. " + loops},
	{"a mark on thinking", request(hi + "," + assistant(strings.TrimSuffix(thought, "}")+`,"cache_control":`+five+`}`, say("x")) + "," + hi),
		"messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"},
	{"a budget above max_tokens", request(hi, `"thinking":{"type":"enabled","budget_tokens":5000}`),
		"`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at " +
			"https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"},
	{"a budget too small", request(hi, `"thinking":{"type":"enabled","budget_tokens":1023}`),
		"thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
	{"a temperature below 0", request(hi, `"temperature":-0.1`), "temperature: range: 0..1"},
	{"a temperature above 1", request(hi, `"temperature":1.1`), "temperature: range: 0..1"},
	{"a temperature beyond numbers", request(hi, `"temperature":1e999`), "temperature: range: 0..1"},
	{"a temperature above 1 while thinking", request(hi, enabled, `"temperature":2`), "temperature: range: 0..1"},
	{"a temperature that is text", request(hi, `"temperature":"1"`), "temperature: Input should be a valid number"},
	{"thinking with temperature", request(hi, enabled, `"temperature":0.5`),
		"`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at " +
			"https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking"},
	{"thinking with top_k", request(hi, enabled, `"top_k":5`),
		"`top_k` must be unset when thinking is enabled. Please consult our documentation at " +
			"https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking"},
	{"thinking with a forced tool", request(hi, tools(tool("f", object)), enabled, `"tool_choice":{"type":"any"}`),
		"Thinking may not be enabled when tool_choice forces tool use."},
	{"thinking of no type", request(hi, `"thinking":{}`), "thinking.type: Field required"},
	// Images and documents.
	{"an image type", request(user(image("image/bmp", png))),
		"messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"},
	{"an image too large", request(user(say("x"), image("image/png", strings.Repeat("A", 6096280)))),
		"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6096280 bytes > 5242880 bytes"},
	{"an image in bad base64", request(user(image("image/png", "iVBOR_"))), "messages.0.content.0.image.source.base64: invalid base64 data"},
	{"an image that is another", request(user(image("image/jpeg", png))), "messages.0.content.0.image.source.base64: The image was specified " +
		"using the image/jpeg media type, but the image appears to be a image/png image"},
	{"an image that is none", request(user(image("image/png", "AAAA"))), "messages.0.content.0.image.source.base64.data: Could not process image"},
	{"an image in a result", request(hi + "," + use + "," + user(`{"type":"tool_result","tool_use_id":"a","content":[`+image("image/jpeg", png)+`]}`)),
		"messages.2.content.0.tool_result.content.0.image.source.base64: The image was specified using the image/jpeg media type, but the image " +
			"appears to be a image/png image"},
	{"an image by http", request(user(`{"type":"image","source":{"type":"url","url":"http://x/y.png"}}`)),
		"messages.0.content.0.image.source.url: Only HTTPS URLs are supported."},
	{"an image without a source", request(user(`{"type":"image"}`)), "messages.0.content.0.image.source: Field required"},
	{"a document type", request(user(document("text/html", pdf))), "messages.0.content.0.document.source.base64.media_type: Input should be 'application/pdf'"},
	{"a PDF that is none", request(user(document("application/pdf", png))), "messages.0.content.0.document.source.base64.data: The PDF specified was not valid."},
	{"a text document of another type", request(user(`{"type":"document","source":{"type":"text","media_type":"text/html","data":"x"}}`)),
		"messages.0.content.0.document.source.text.media_type: Input should be 'text/plain'"},
	// Tools.
	{"a tool's name", request(hi, tools(tool("f g", object))), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"},
	{"two tools of a name", request(hi, tools(tool("f", object), tool("f", object))), "tools: Tool names must be unique."},
	{"a schema without a type", request(hi, tools(tool("f", `{}`))), "tools.0.custom.input_schema.type: Field required"},
	{"a schema of another type", request(hi, tools(tool("f", `{"type":"string"}`))), "tools.0.custom.input_schema.type: Input should be 'object'"},
	{"a schema that is true", request(hi, tools(tool("f", `true`))), "tools.0.custom.input_schema: Input does not match the expected shape."},
	{"a schema with a union", request(hi, tools(tool("f", `{"type":"object","anyOf":[]}`))),
		"tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"},
	{"a property's name", request(hi, tools(tool("f", `{"type":"object","properties":{"a b":{}}}`))),
		"tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"},
	{"no schema", request(hi, tools(`{"name":"f"}`)), "tools.0.custom.input_schema: Field required"},
	{"an unknown member of a tool", request(hi, tools(tool("f", object, `"color":1`))), "tools.0.custom.color: Extra inputs are not permitted"},
	{"21 strict tools", request(hi, strictTools(21, object)), "Too many strict tools (21). The maximum number of strict tools supported is 20"},
	{"25 optional parameters", request(hi, strictTools(1, properties(25, `{}`))), "Schemas contains too many optional parameters (25), which would " +
		"make grammar compilation inefficient. Reduce the number of optional parameters in your tool schemas (limit: 24)."},
	{"17 unions", request(hi, strictTools(1, properties(17, `{"type":["string","null"]}`))), "Schemas contains too many parameters with union types " +
		"(17 parameters with type arrays or anyOf). Reduce the number of nullable or union-typed parameters (limit: 16)."},
	{"a choice without tools", request(hi, `"tool_choice":{"type":"auto"}`), "tool_choice: tool_choice may only be specified while providing tools."},
	{"a choice of no tool", request(hi, tools(tool("f", object)), `"tool_choice":{"type":"tool","name":"g"}`), "Tool 'g' not found in provided tools"},
	// Caching.
	{"6 marks", request(user(marked("a", five), marked("b", five), marked("c", five), marked("e", five)), `"system":[`+marked("d", five)+`]`, tools(tool("f", object, `"cache_control":`+five))),
		"A maximum of 4 blocks with cache_control may be provided. Found 6."},
	{"an hour after five minutes", request(user(marked("a", hour)), `"system":[`+marked("d", five)+`]`),
		"messages.0.content.0.text.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. " +
			"Note that blocks are processed in the following order: `tools`, `system`, `messages`."},
	{"a mark on empty text", request(user(marked("", five))), "messages.0.content.0.text: cache_control cannot be set for empty text blocks"},
	{"a mark of another age", request(user(marked("a", `{"type":"ephemeral","ttl":"1d"}`))), "messages.0.content.0.text.cache_control.ttl: Input should be '5m' or '1h'"},
	// The rest.
	{"no max_tokens", `{"model":"m","messages":[` + hi + `]}`, "max_tokens: Field required"},
	{"max_tokens of 0", `{"model":"m","max_tokens":0,"messages":[` + hi + `]}`, "max_tokens: must be greater than or equal to 1"},
	{"no model", `{"max_tokens":1,"messages":[` + hi + `]}`, "model: Field required"},
	{"an unknown member of the request", request(hi, `"frobnicate":true`), "frobnicate: Extra inputs are not permitted"},
	{"an empty system prompt", request(hi, `"system":[`+say("")+`]`), "system: text content blocks must be non-empty"},
	{"a blank system prompt", request(hi, `"system":" "`), "system: text content blocks must contain non-whitespace text"},
	{"a stream that is neither", request(hi, `"stream":"yes"`), "stream: Input should be a valid boolean"},
	{"max_tokens in words", `{"model":"m","max_tokens":"many","messages":[` + hi + `]}`, "max_tokens: Input should be a valid integer"},
	{"an empty model", `{"model":"","max_tokens":1,"messages":[` + hi + `]}`, "model: String should have at least 1 character"},
	{"no messages at all", `{"model":"m","max_tokens":1}`, "messages: Field required"},
	{"messages that are no list", `{"model":"m","max_tokens":1,"messages":{}}`, "messages: Input should be a valid list"},
	{"a message that is no object", request(`"x"`), "messages.0: Input should be a valid dictionary"},
	{"a message without content", request(`{"role":"user"}`), "messages.0.content: Field required"},
	{"content that is a number", request(`{"role":"user","content":7}`), "messages.0.content: Input should be a valid list"},
	{"text that is a number", request(user(`{"type":"text","text":7}`)), "messages.0.content.0.text.text: Input should be a valid string"},
	{"citations that are no list", request(user(`{"type":"text","text":"x","citations":{}}`)), "messages.0.content.0.text.citations: Input should be a valid list"},
	{"is_error in words", request(hi + "," + use + "," + user(`{"type":"tool_result","tool_use_id":"a","is_error":"no"}`)),
		"messages.2.content.0.tool_result.is_error: Input should be a valid boolean"},
	{"a place of an image", request(user(`{"type":"image","source":{"type":"ftp"}}`)),
		"messages.0.content.0.image.source: Input tag 'ftp' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'"},
	{"an image of text", request(user(`{"type":"image","source":{"type":"text","media_type":"text/plain","data":"x"}}`)),
		"messages.0.content.0.image.source: Input tag 'text' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'"},
	{"a file without an id", request(user(`{"type":"image","source":{"type":"file","file_id":""}}`)),
		"messages.0.content.0.image.source.file.file_id: String should have at least 1 character"},
	{"a text document of nothing", request(user(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":" "}}`)),
		"messages.0.content.0.document.source.text.data: String should have at least 1 character"},
	{"a choice that is none", request(hi, tools(tool("f", object)), `"tool_choice":{"type":"maybe"}`),
		"tool_choice: Input tag 'maybe' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'"},
	{"thinking of another type", request(hi, `"thinking":{"type":"hard"}`),
		"thinking: Input tag 'hard' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'"},
	{"adaptive thinking with a budget", request(hi, `"thinking":{"type":"adaptive","budget_tokens":2000}`),
		"thinking.adaptive.budget_tokens: Extra inputs are not permitted"},
	{"a system prompt of another type", request(hi, `"system":[{"type":"image","text":"x"}]`), "system.0.type: Input should be 'text'"},
	{"a mark on an empty system prompt", request(hi, `"system":[`+marked("", five)+`]`), "system.0: cache_control cannot be set for empty text blocks"},
	{"a mark of no type", request(user(marked("x", `{}`))), "messages.0.content.0.text.cache_control.type: Input should be 'ephemeral'"},
	{"24 optional parameters", request(hi, strictTools(1, properties(24, `{}`))),
		"Schema is too complex for compilation. Try reducing the number of tools or simplifying tool schemas."},
	{"not JSON", `{"model":`, "The request body is not valid JSON"},
	{"a member twice", `{"model":"m","model":"m","max_tokens":1,"messages":[` + hi + `]}`, "The request body is not valid JSON"},
}

func TestAnthropicRefusesWhatTheAPIRefuses(t *testing.T) {
	for _, test := range refusals {
		t.Run(test.rule, func(t *testing.T) {
			err := fake.CheckAnthropic([]byte(test.body))
			var refusal *api.Error
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, test.says, refusal.Message)
			require.Equal(t, 400, refusal.Status)
			require.Equal(t, "invalid_request_error", refusal.Type)
			require.ErrorIs(t, err, api.ErrInvalidRequest)
		})
	}
}

func TestAnthropicAcceptsWhatTheAPIAccepts(t *testing.T) {
	for name, body := range map[string]string{
		"text":                                  request(hi),
		"turns of one side in a row":            request(hi + "," + hi + "," + assistant(say("x")) + "," + assistant(say("y")) + "," + hi),
		"the assistant first":                   request(assistant(say("x")) + "," + hi),
		"calls and results":                     request(hi + "," + use2 + "," + user(answer("b"), answer("a"), say("x"))),
		"results over two messages":             request(hi + "," + use2 + "," + user(answer("a")) + "," + user(answer("b"), say("x"))),
		"an empty result":                       request(hi + "," + use + "," + user(`{"type":"tool_result","tool_use_id":"a"}`)),
		"blank text beside a call":              request(hi + "," + assistant(say(" "), call("a")) + "," + result),
		"blank text beside text":                request(user(say(" "), say("x"))),
		"a picture in a result":                 request(hi + "," + use + "," + user(`{"type":"tool_result","tool_use_id":"a","content":[`+image("image/png", png)+`]}`)),
		"a PDF":                                 request(user(document("application/pdf", pdf))),
		"a compaction":                          request(assistant(`{"type":"compaction","content":"So far: x.","encrypted_content":null}`, say("x")) + "," + hi),
		"a paused server tool":                  request(hi + "," + assistant(say("x"), server("srvtoolu_1"))),
		"a server tool's result":                request(hi + "," + assistant(server("srvtoolu_1"), found("srvtoolu_1"), say("x")) + "," + hi),
		"a server tool that calls":              request(hi+","+assistant(server("srvtoolu_1"), strings.Replace(call("a"), `"name"`, `"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"},"name"`, 1))+","+result, `"container":"c"`),
		"a server tool beside a call":           request(hi + "," + assistant(server("srvtoolu_1"), call("a")) + "," + result),
		"its result in a later message":         request(hi + "," + assistant(server("srvtoolu_1"), call("a")) + "," + result + "," + assistant(found("srvtoolu_1"), say("x")) + "," + hi),
		"a loop with thinking":                  request(hi+","+assistant(thought, call("a"))+","+result, enabled),
		"a loop that thought once":              request(hi+","+assistant(thought, call("a"))+","+result+","+assistant(call("b"))+","+user(answer("b")), enabled),
		"a closed loop without thinking":        request(hi+","+use+","+result+","+assistant(say("x"))+","+hi, enabled),
		"adaptive thinking, none said":          request(hi+","+use+","+result, `"thinking":{"type":"adaptive"}`),
		"redacted thinking":                     request(hi+","+assistant(`{"type":"redacted_thinking","data":"x"}`, call("a"))+","+result, enabled),
		"4 marks, an hour before five minutes":  request(user(marked("a", five), marked("b", five)), `"system":[`+marked("c", hour)+`]`, tools(tool("f", object, `"cache_control":`+hour))),
		"a server tool's definition":            request(hi, tools(`{"type":"web_search_20250305","name":"web_search","max_uses":3}`)),
		"a document of blocks":                  request(user(`{"type":"document","source":{"type":"content","content":[` + say("x") + `]}}`)),
		"a text document":                       request(user(`{"type":"document","title":"t","source":{"type":"text","media_type":"text/plain","data":"x"}}`)),
		"files and links":                       request(user(`{"type":"image","source":{"type":"file","file_id":"f"}}`, `{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}`)),
		"20 strict tools":                       request(hi, strictTools(20, properties(1, `{}`))),
		"tool blocks, though none are declared": request(hi + "," + use + "," + result),
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, fake.CheckAnthropic([]byte(body))) })
	}
}

const sharedID = "cross-provider/pydantic-ai-test-tool-search-test-cross-provider-capability-replay-google-gemini-3-flash-preview-anthropic-cla.json#"

// recordedExceptions are recorded requests that were accepted and are refused here, with the reason.
var recordedExceptions = map[string]string{
	"anthropic/activeagent--anthropic-response-format-json-object.json#0": "prefill: the older model it was sent to takes it, the newest do not",
	sharedID + "3": "a call id used again in a later turn: taken here, refused in other logs",
	sharedID + "4": "the same conversation, one step further",
}

func TestAnthropicAcceptsRecordedRequests(t *testing.T) {
	accepted, excepted := 0, 0
	recorded(t, "anthropic", "/messages", func(name, _, body string, status int, _ string) {
		if status != 200 {
			return
		}
		err := fake.CheckAnthropic([]byte(body))
		if reason, ok := recordedExceptions[name]; ok {
			require.Error(t, err, "%s is listed as an exception (%s), but accepted", name, reason)
			excepted++
			return
		}
		require.NoError(t, err, name)
		accepted++
	})
	require.Equal(t, len(recordedExceptions), excepted, "exceptions that were not met")
	t.Logf("%d recorded requests accepted, %d listed exceptions", accepted, excepted)
}

// recordedElsewhere are recorded refusals that no rule here is about.
var recordedElsewhere = map[string]string{
	"anthropic/req_llm--anthropic-claude-haiku-4-5-20251001-object-basic.json#0": "the schema of an output format",
}

func TestAnthropicRefusesRecordedRefusals(t *testing.T) {
	refused := 0
	recorded(t, "anthropic", "/messages", func(name, _, body string, status int, response string) {
		if status != 400 || recordedElsewhere[name] != "" {
			return
		}
		var refusal *api.Error
		require.ErrorAs(t, fake.CheckAnthropic([]byte(body)), &refusal, name)
		require.Contains(t, response, refusal.Message, name)
		refused++
	})
	t.Logf("%d recorded refusals, in the API's own words", refused)
}

var places, named = regexp.MustCompile(`\.\d+`), regexp.MustCompile(`: [\w, ]+\. Each`)

func post(t *testing.T, url, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/messages", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("x-api-key", "none")
	req.Header.Set("anthropic-version", "2023-06-01")
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, res.Header, string(data)
}

func serve(t *testing.T, model *fake.API) string {
	server := httptest.NewServer(model)
	t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return server.URL
}

func TestAnthropicPlaysItsAnswersInOrder(t *testing.T) {
	model := fake.Anthropic(
		fake.AnthropicMessage(content.Text{Text: "Hello"}, content.ToolUse{ID: "a", Name: "f", Input: `{"x":1}`}),
		fake.AnthropicFailure(529, "overloaded_error", "Overloaded"),
	)
	url := serve(t, model)
	status, header, body := post(t, url, request(hi))
	require.Equal(t, 200, status)
	require.Equal(t, "application/json", header.Get("content-type"))
	require.JSONEq(t, `{"id":"msg_fake","type":"message","role":"assistant","model":"claude-fake","content":[{"type":"text","text":"Hello"},
		{"type":"tool_use","id":"a","name":"f","input":{"x":1}}],"stop_reason":"tool_use","stop_sequence":null,
		"usage":{"input_tokens":10,"output_tokens":5}}`, body)
	status, _, body = post(t, url, request(hi, `"stream":true`))
	require.Equal(t, 529, status)
	require.Contains(t, body, `"overloaded_error"`)
	status, _, body = post(t, url, request(hi))
	require.Equal(t, 400, status)
	require.Contains(t, body, "no reply left")
	require.Len(t, model.Bodies(), 3)
	require.Equal(t, request(hi), string(model.Bodies()[0]))
	require.Len(t, model.Refused(), 1)
}

func TestAnthropicRefusesOverHTTP(t *testing.T) {
	model := fake.Anthropic(fake.AnthropicMessage())
	url := serve(t, model)
	status, _, body := post(t, url, request(hi+","+use+","+hi))
	require.Equal(t, 400, status)
	require.JSONEq(t, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: `+unanswered+"a"+mustAnswer+`"},
		"request_id":"req_fake"}`, body)
	require.Len(t, model.Refused(), 1)
	res, err := http.Post(url+"/v1/messages", "application/json", strings.NewReader(request(hi)))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 401, res.StatusCode, "no key")
}

func TestAnthropicStreamsWhatItWasGiven(t *testing.T) {
	said := fake.AnthropicMessage(
		content.Thinking{Text: "Let me think about it", Signature: "c2ln"}, content.Thinking{Redacted: "xyz"},
		content.Text{Text: "Grüße, 世界 and all the rest"}, content.ToolUse{ID: "a", Name: "f", Input: `{"city":"Zürich"}`},
		content.Opaque{API: "anthropic", JSON: content.JSON(found("srvtoolu_1"))},
	)
	status, header, body := post(t, serve(t, fake.Anthropic(said)), request(hi, `"stream":true`))
	require.Equal(t, 200, status)
	require.Contains(t, header.Get("content-type"), "text/event-stream")
	require.JSONEq(t, said.Body, accumulate(t, body))
}

func TestAnthropicStreamsAreCutWhereAsked(t *testing.T) {
	said := fake.AnthropicMessage(content.Text{Text: "Hello"})
	said.Cut = true
	_, _, body := post(t, serve(t, fake.Anthropic(said)), request(hi, `"stream":true`))
	require.Contains(t, body, "content_block_delta")
	require.NotContains(t, body, "content_block_stop")
	require.NotContains(t, body, "message_stop")
}

// accumulate puts a stream together again, independently of how it was taken apart.
func accumulate(t *testing.T, stream string) string {
	t.Helper()
	var message map[string]any
	var blocks []any
	partial := map[int]string{}
	for scan := bufio.NewScanner(strings.NewReader(stream)); scan.Scan(); {
		data, ok := strings.CutPrefix(scan.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type    string
			Index   int
			Message map[string]any
			Block   map[string]any `json:"content_block"`
			Delta   map[string]any
			Usage   any
		}
		require.NoError(t, json.Unmarshal([]byte(data), &e))
		switch e.Type {
		case "message_start":
			message = e.Message
		case "content_block_start":
			require.Len(t, blocks, e.Index)
			blocks = append(blocks, e.Block)
		case "content_block_delta":
			b := blocks[e.Index].(map[string]any)
			switch e.Delta["type"] {
			case "text_delta":
				b["text"] = b["text"].(string) + e.Delta["text"].(string)
			case "thinking_delta":
				b["thinking"] = b["thinking"].(string) + e.Delta["thinking"].(string)
			case "signature_delta":
				b["signature"] = e.Delta["signature"]
			case "input_json_delta":
				partial[e.Index] += e.Delta["partial_json"].(string)
			}
		case "message_delta":
			message["stop_reason"], message["stop_sequence"], message["usage"] = e.Delta["stop_reason"], e.Delta["stop_sequence"], e.Usage
		}
	}
	for i, text := range partial {
		var input any
		require.NoError(t, json.Unmarshal([]byte(text), &input))
		blocks[i].(map[string]any)["input"] = input
	}
	message["content"] = blocks
	b, err := json.Marshal(message)
	require.NoError(t, err)
	return string(b)
}

func TestAnthropicAnswersManyAtOnce(t *testing.T) {
	answers := make([]fake.Reply, 20)
	model := fake.Anthropic(answers...)
	url := serve(t, model)
	var wg sync.WaitGroup
	for range answers {
		wg.Go(func() {
			status, _, _ := post(t, url, request(hi))
			if status != 200 {
				t.Errorf("status %d", status)
			}
		})
	}
	wg.Wait()
	require.Len(t, model.Bodies(), 20)
	require.Empty(t, model.Refused())
}

func FuzzCheckAnthropic(f *testing.F) {
	for _, test := range refusals {
		if len(test.body) < 10_000 {
			f.Add([]byte(test.body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		first := fake.CheckAnthropic(body) // must not panic
		second := fake.CheckAnthropic(body)
		require.Equal(t, first, second)
	})
}
