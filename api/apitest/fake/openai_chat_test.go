package fake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
)

// chatExceptions are recorded requests that were accepted and are refused here, with the reason.
var chatExceptions = map[string]string{}

// chatUnknowable are recorded refusals that no check of a body can know, with the reason.
var chatUnknowable = map[string]string{
	"openai-chat/openinference--openai-test-input-value-image-hiding-testinputvalueimagehiding-test-input-value-hides-regular-u.json#0": "the " +
		"picture is not at its address",
	"openai-chat/pydantic-ai--models-test-openai-test-openai-o1-mini-system-role-system.json#0":          "the model takes no system prompt",
	"openai-chat/pydantic-ai--models-test-openai-test-openai-web-search-tool-model-not-supported.json#0": "the model cannot search",
}

func checkChat(_ string, body []byte) error { return fake.CheckOpenAIChat(body) }

func TestOpenAIChatAcceptsRecordedRequests(t *testing.T) {
	acceptsRecorded(t, "openai-chat", "/chat/completions", chatExceptions, checkChat)
}

func TestOpenAIChatRefusesRecordedRefusals(t *testing.T) {
	refusesRecorded(t, "openai-chat", "/chat/completions", chatUnknowable, checkChat)
}

// chat is the body of a request with messages, and further members before them.
func chat(messages string, more ...string) string {
	return `{"model":"gpt-test",` + strings.Join(append(more, ""), ",") + `"messages":[` + messages + `]}`
}

const (
	chatHi     = `{"role":"user","content":"Hi"}`
	chatCall   = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	chatCalls  = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":""}}]}`
	chatAnswer = `{"role":"tool","tool_call_id":"a","content":"1"}`
	mustFollow = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following " +
		"tool_call_ids did not have response messages: "
	emptyObject = `{"type":"object","properties":{}}`
	atLeastOne  = ": empty array. Expected an array with minimum length 1, but got an empty array instead."
	topLevel    = "Invalid schema for function 'f': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
	required    = "'required' is required to be supplied and to be an array including every key in properties. "
	unsupported = "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp']."
)

func chatUser(parts ...string) string {
	return `{"role":"user","content":[` + strings.Join(parts, ",") + `]}`
}

func chatTool(name, schema string, more ...string) string {
	return fmt.Sprintf(`{"type":"function","function":{"name":%q,"parameters":%s%s}}`, name, schema, strings.Join(append([]string{""}, more...), ","))
}

func chatPicture(url string) string {
	return fmt.Sprintf(`{"type":"image_url","image_url":{"url":%q}}`, url)
}

// many is n tools.
func many(n int, tool func(name, schema string, more ...string) string) string {
	var list []string
	for i := range n {
		list = append(list, tool(fmt.Sprintf("f%d", i), emptyObject))
	}
	return tools(list...)
}

var chatRefusals = []refusalCase{
	// Pairing.
	{"a call without an answer", chat(chatHi + "," + chatCall + "," + chatHi), mustFollow + "a"},
	{"a call at the end", chat(chatHi + "," + chatCall), mustFollow + "a"},
	{"two calls without answers", chat(chatHi + "," + chatCalls + "," + chatHi), mustFollow + "a, b"},
	{"one of two calls without an answer", chat(chatHi + "," + chatCalls + "," + chatAnswer), mustFollow + "b"},
	{"a message between call and answer", chat(chatHi + "," + chatCall + "," + chatHi + "," + chatAnswer), mustFollow + "a"},
	{"an answer without a call", chat(chatHi + "," + chatAnswer),
		"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."},
	{"an answer too late", chat(chatHi + "," + chatCall + "," + chatAnswer + "," + chatHi + "," + chatAnswer),
		"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."},
	{"an answer to another id", chat(chatHi + "," + chatCall + `,{"role":"tool","tool_call_id":"z","content":"1"}`),
		"Invalid parameter: 'tool_call_id' of 'z' not found in 'tool_calls' of previous message."},
	{"two answers to one call", chat(chatHi + "," + chatCall + "," + chatAnswer + "," + chatAnswer),
		"Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[2] and messages[3]."},
	{"an answer to nobody", chat(chatHi + "," + chatCall + `,{"role":"tool","content":"1"}`),
		"Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."},
	{"an id twice in a message", chat(chatHi + "," + strings.Replace(chatCalls, `"b"`, `"a"`, 1) + "," + chatAnswer),
		"Invalid parameter: Duplicate value for 'tool_call_id' of 'a' in message[1]."},
	{"an id too long", chat(chatHi + "," + strings.Replace(chatCall, `"a"`, `"`+strings.Repeat("a", 41)+`"`, 1)),
		"Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead."},
	{"an empty id", chat(chatHi + "," + strings.Replace(chatCall, `"a"`, `""`, 1)),
		"Invalid 'messages[1].tool_calls[0].id': empty string. Expected a string with minimum length 1, but got an empty string instead."},
	{"no id", chat(chatHi + "," + strings.Replace(chatCall, `"id":"a",`, ``, 1)), "Missing required parameter: 'messages[1].tool_calls[0].id'."},
	{"an id that is null", chat(chatHi + "," + strings.Replace(chatCall, `"a"`, `null`, 1)),
		"Invalid type for 'messages[1].tool_calls[0].id': expected a string, but got null instead."},
	{"no type of a call", chat(chatHi + "," + strings.Replace(chatCall, `"type":"function",`, ``, 1)), "Missing required parameter: 'messages[1].tool_calls[0].type'."},
	{"arguments that are an object", chat(chatHi + "," + strings.Replace(chatCall, `"{}"`, `{}`, 1)),
		"Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead."},
	{"no arguments", chat(chatHi + "," + strings.Replace(chatCall, `,"arguments":"{}"`, ``, 1)),
		"Missing required parameter: 'messages[1].tool_calls[0].function.arguments'."},
	{"no function", chat(chatHi + `,{"role":"assistant","tool_calls":[{"id":"a","type":"function"}]},` + chatAnswer),
		"Missing required parameter: 'messages[1].tool_calls[0].function'."},
	{"a bad name in a call", chat(chatHi + "," + strings.Replace(chatCall, `"f"`, `"f g"`, 1)),
		"Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
	{"no calls", chat(chatHi + `,{"role":"assistant","content":"x","tool_calls":[]}`), "Invalid 'messages[1].tool_calls'" + atLeastOne},
	{"an index of a stream", chat(chatHi + "," + strings.Replace(chatCall, `{"id"`, `{"index":0,"id"`, 1)), "Unknown parameter: 'messages[1].tool_calls[0].index'."},
	// Messages.
	{"no messages", chat(""), "Invalid 'messages'" + atLeastOne},
	{"no messages at all", `{"model":"m"}`, "Missing required parameter: 'messages'."},
	{"messages that are no list", `{"model":"m","messages":"ping"}`, "Invalid type for 'messages': expected an array of objects, but got a string instead."},
	{"a message that is no object", chat(`"ping"`), "Invalid type for 'messages[0]': expected an object, but got a string instead."},
	{"a role that is none", chat(`{"role":"bogus","content":"x"}`),
		"Invalid value: 'bogus'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."},
	{"no role", chat(`{"content":"x"}`), "Missing required parameter: 'messages[0].role'."},
	{"no content", chat(`{"role":"user"}`), "Invalid value for 'content': expected a string, got null."},
	{"content that is null", chat(chatHi + `,{"role":"assistant","content":null}`), "Invalid value for 'content': expected a string, got null."},
	{"content that is a number", chat(`{"role":"user","content":7}`),
		"Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an integer instead."},
	{"a part that is a string", chat(chatUser(`"x"`)), "Invalid type for 'messages[0].content[0]': expected an object, but got a string instead."},
	{"a part of no type", chat(chatUser(`{"text":"x"}`)), "Missing required parameter: 'messages[0].content[0].type'."},
	{"a part of another API", chat(chatUser(`{"type":"input_text","text":"x"}`)),
		"Invalid value: 'input_text'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'."},
	{"a part without text", chat(chatUser(`{"type":"text"}`)), "Missing required parameter: 'messages[0].content[0].text'."},
	{"a picture of a tool", chat(chatHi + "," + chatCall + `,{"role":"tool","tool_call_id":"a","content":[` + chatPicture("https://x/y.png") + `]}`),
		"Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL."},
	{"a picture of an assistant", chat(chatHi + `,{"role":"assistant","content":[` + chatPicture("https://x/y.png") + `]}`),
		"Invalid 'messages[1]'. Image URLs are only allowed for messages with role 'user', but this message with role 'assistant' contains an image URL."},
	{"sound for a model that does not hear", chat(chatUser(`{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`)),
		"Invalid 'messages[0]'. Content blocks are expected to be either text or image_url type."},
	{"a refusal of the user", chat(chatUser(`{"type":"refusal","refusal":"no"}`)),
		"Invalid 'messages[0]'. Content blocks are expected to be either text or image_url type."},
	{"a name with a space", chat(`{"role":"user","name":"a b","content":"x"}`),
		`Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the pattern '^[^\s<|\\/>]+$'.`},
	{"a cache mark of another API", chat(chatUser(`{"type":"text","text":"x","cache_control":{}}`)), "Unknown parameter: 'messages[0].content[0].cache_control'."},
	{"reasoning of a compatible server", chat(chatHi + `,{"role":"assistant","content":"x","reasoning_content":"hm"},` + chatHi),
		"Unknown parameter: 'messages[1].reasoning_content'."},
	// Pictures and files.
	{"a picture nowhere", chat(chatUser(chatPicture("picture.png"))),
		"Invalid 'messages[0].content[0].image_url.url'. Expected a valid URL, but got a value with an invalid format."},
	{"a picture that is a string", chat(chatUser(`{"type":"image_url","image_url":"https://x"}`)),
		"Invalid type for 'messages[0].content[0].image_url': expected an object, but got a string instead."},
	{"a picture in bad base64", chat(chatUser(chatPicture("data:image/png;base64,iVBOR_"))),
		"Invalid 'messages[0].content[0].image_url.url'. Expected a base64-encoded data URL with an image MIME type (e.g. " +
			"'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got an invalid base64-encoded value."},
	{"a picture of nothing", chat(chatUser(chatPicture("data:image/png;base64,"))),
		"Invalid 'messages[0].content[0].image_url.url'. Expected a base64-encoded data URL with an image MIME type (e.g. " +
			"'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got empty base64-encoded bytes."},
	{"a picture in plain text", chat(chatUser(chatPicture("data:image/png,x"))),
		"Invalid 'messages[0].content[0].image_url.url'. Expected a base64-encoded data URL with an image MIME type (e.g. " +
			"'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value without the ';base64,' separator."},
	{"a picture that is a document", chat(chatUser(chatPicture("data:application/pdf;base64," + pdf))),
		"Invalid 'messages[0].content[0].image_url.url'. Expected a base64-encoded data URL with an image MIME type (e.g. " +
			"'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got unsupported MIME type 'application/pdf'."},
	{"a picture that is none", chat(chatUser(chatPicture("data:image/png;base64,AAAA"))), unsupported},
	{"a bitmap", chat(chatUser(chatPicture("data:image/bmp;base64,Qk0AAAAA"))), unsupported},
	{"a detail that is none", chat(chatUser(`{"type":"image_url","image_url":{"url":"https://x","detail":"most"}}`)),
		"Invalid value: 'most'. Supported values are: 'auto', 'low', 'high', and 'original'."},
	{"a file without a name", chat(chatUser(`{"type":"file","file":{"file_data":"data:application/pdf;base64,` + pdf + `"}}`)),
		"Missing required parameter: 'messages[0].content[0].file.file_id'."},
	{"a file that is no data URL", chat(chatUser(`{"type":"file","file":{"filename":"a","file_data":"` + pdf + `"}}`)),
		"Invalid file data: 'messages[0].content[0].file.file_data'. Expected a base64-encoded data URL with a valid file MIME type (e.g. " +
			"'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got a value without the 'data:' prefix."},
	{"a file of sound", chat(chatUser(`{"type":"file","file":{"filename":"a","file_data":"data:audio/mpeg;base64,AAAA"}}`)),
		"Invalid file data: 'messages[0].content[0].file.file_data'. Expected a base64-encoded data URL with a valid file MIME type (e.g. " +
			"'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type 'audio/mpeg'. Please see " +
			"https://platform.openai.com/docs/assistants/tools/file-search#supported-files for supported file types."},
	{"sound in bad base64", strings.Replace(chat(chatUser(`{"type":"input_audio","input_audio":{"data":"?","format":"wav"}}`)), "gpt-test", "gpt-audio", 1),
		"Invalid 'messages[0].content[0].input_audio.data'. Expected a base64-encoded value."},
	// Tools.
	{"no tools", chat(chatHi, `"tools":[]`), "Invalid 'tools'" + atLeastOne},
	{"129 tools", chat(chatHi, many(129, chatTool)),
		"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead."},
	{"a tool of no type", chat(chatHi, tools(`{"function":{"name":"f"}}`)), "Missing required parameter: 'tools[0].type'."},
	{"a tool of another API", chat(chatHi, tools(`{"type":"web_search"}`)), "Invalid value: 'web_search'. Supported values are: 'function' and 'custom'."},
	{"a tool without a function", chat(chatHi, tools(`{"type":"function"}`)), "Missing required parameter: 'tools[0].function'."},
	{"a tool without a name", chat(chatHi, tools(`{"type":"function","function":{}}`)), "Missing required parameter: 'tools[0].function.name'."},
	{"a tool with an empty name", chat(chatHi, tools(chatTool("", emptyObject))),
		"Invalid 'tools[0].function.name': empty string. Expected a string with minimum length 1, but got an empty string instead."},
	{"a tool's name too long", chat(chatHi, tools(chatTool(strings.Repeat("f", 65), emptyObject))),
		"Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 65 instead."},
	{"a tool's name with a dot", chat(chatHi, tools(chatTool("f.g", emptyObject))),
		"Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
	{"a tool of the Responses API", chat(chatHi, tools(`{"type":"function","name":"f","parameters":`+emptyObject+`}`)), "Unknown parameter: 'tools[0].parameters'."},
	{"a custom tool without its part", chat(chatHi, tools(`{"type":"custom"}`)), "Missing required parameter: 'tools[0].custom'."},
	{"a choice without tools", chat(chatHi, `"tool_choice":"auto"`), "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."},
	{"parallel calls without tools", chat(chatHi, `"parallel_tool_calls":false`),
		"Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified."},
	{"a choice that is none", chat(chatHi, tools(chatTool("f", emptyObject)), `"tool_choice":"any"`),
		"Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'."},
	{"a choice that is a number", chat(chatHi, tools(chatTool("f", emptyObject)), `"tool_choice":7`),
		"Invalid type for 'tool_choice': expected one of one of 'none', 'auto', or 'required' or object, but got an integer instead."},
	{"a choice of no tool", chat(chatHi, tools(chatTool("f", emptyObject)), `"tool_choice":{"type":"function","function":{"name":"g"}}`),
		"Invalid value for 'function_call': no function named 'g' was specified in the 'functions' parameter."},
	{"a choice without a function", chat(chatHi, tools(chatTool("f", emptyObject)), `"tool_choice":{"type":"function"}`),
		"Missing required parameter: 'tool_choice.function'."},
	{"a choice without a name", chat(chatHi, tools(chatTool("f", emptyObject)), `"tool_choice":{"type":"function","function":{}}`),
		"Missing required parameter: 'tool_choice.function.name'."},
	// Schemas.
	{"a schema without a type", chat(chatHi, tools(chatTool("f", `{}`))),
		`Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"', got 'type: "None"'.`},
	{"a schema of a string", chat(chatHi, tools(chatTool("f", `{"type":"string"}`))),
		`Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"', got 'type: "string"'.`},
	{"a schema that is true", chat(chatHi, tools(chatTool("f", `true`))), "Invalid schema for function 'f': true is not of type 'object', 'boolean'."},
	{"a schema with a union", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{},"anyOf":[]}`))), topLevel},
	{"a schema with an enum", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{},"enum":[1]}`))), topLevel},
	{"a schema without properties", chat(chatHi, tools(chatTool("f", `{"type":"object"}`))),
		"Invalid schema for function 'f': In context=(), object schema missing properties."},
	{"a list of nothing", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{"a":{"type":"array"}}}`))),
		"Invalid schema for function 'f': In context=('properties', 'a'), array schema missing items."},
	{"a list of nothing, deep within", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{"a":{"anyOf":[{"type":"array","items":{"type":["array","null"]}}]}}}`))),
		"Invalid schema for function 'f': In context=('properties', 'a', 'anyOf', '0', 'items'), array schema missing items."},
	{"a schema that is bottomless", chat(chatHi, tools(chatTool("f", strings.Repeat(`{"type":"object","properties":{"a":`, 101)+"true"+strings.Repeat("}}", 101)))),
		"Invalid schema for function 'f': Expected at most 10 levels of nesting."},
	{"a property that is a string", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{"a":"string"}}`))),
		`Invalid schema for function 'f': In context=('properties', 'a'), "string" is not of type 'object', 'boolean'.`},
	{"a strict schema that is open", chat(chatHi, tools(chatTool("f", emptyObject, `"strict":true`))),
		"Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false."},
	{"a strict schema with an option", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`, `"strict":true`))),
		"Invalid schema for function 'f': In context=(), " + required + "Missing 'a'."},
	{"a strict schema that requires another", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`, `"strict":true`))),
		"Invalid schema for function 'f': In context=(), " + required + "Extra required key 'a' supplied."},
	{"a strict schema with allOf", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{"a":{"allOf":[]}},"required":["a"],"additionalProperties":false}`, `"strict":true`))),
		"Invalid schema for function 'f': In context=('properties', 'a'), 'allOf' is not permitted."},
	{"a strict schema of no type", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`, `"strict":true`))),
		"Invalid schema for function 'f': In context=('properties', 'a'), schema must have a 'type' key."},
	{"a strict schema that refers to nothing", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false}`, `"strict":true`))),
		"Invalid schema for function 'f': In context=('properties', 'a'), reference can only point to definitions defined at the top level of the schema."},
	{"a strict definition that is open", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{},"additionalProperties":false,"$defs":{"b":{"type":"object","properties":{}}}}`, `"strict":true`))),
		"Invalid schema for function 'f': In context=('$defs', 'b'), 'additionalProperties' is required to be supplied and to be false."},
	// The form of the answer.
	{"a format that is none", chat(chatHi, `"response_format":{"type":"xml"}`), "Invalid value: 'xml'. Supported values are: 'json_object', 'json_schema', and 'text'."},
	{"a format of no type", chat(chatHi, `"response_format":{}`), "Missing required parameter: 'response_format.type'."},
	{"a format that is a string", chat(chatHi, `"response_format":"json"`), "Invalid type for 'response_format': expected an object, but got a string instead."},
	{"JSON that nobody speaks of", chat(chatHi, `"response_format":{"type":"json_object"}`),
		"'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."},
	{"a format without its schema", chat(chatHi, `"response_format":{"type":"json_schema"}`), "Missing required parameter: 'response_format.json_schema'."},
	{"a format without a name", chat(chatHi, `"response_format":{"type":"json_schema","json_schema":{}}`), "Missing required parameter: 'response_format.json_schema.name'."},
	{"a format of a list", chat(chatHi, `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"array","items":{}}}}`),
		`Invalid schema for response_format 'x': schema must be a JSON Schema of 'type: "object"', got 'type: "array"'.`},
	{"a strict format that is open", chat(chatHi, `"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":`+emptyObject+`}}`),
		"Invalid schema for response_format 'x': In context=(), 'additionalProperties' is required to be supplied and to be false."},
	// The rest.
	{"no model", `{"messages":[` + chatHi + `]}`, "you must provide a model parameter"},
	{"a model that is a number", `{"model":7,"messages":[` + chatHi + `]}`, "Invalid type for 'model': expected a string, but got an integer instead."},
	{"an unknown member", chat(chatHi, `"frobnicate":1`), "Unknown parameter: 'frobnicate'."},
	{"a member of the Responses API", chat(chatHi, `"reasoning":{"effort":"low"}`), "Unknown parameter: 'reasoning'."},
	{"a temperature above 2", chat(chatHi, `"temperature":99.0`), "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 99.0 instead."},
	{"a temperature below 0", chat(chatHi, `"temperature":-1`), "Invalid 'temperature': decimal below minimum value. Expected a value >= 0, but got -1 instead."},
	{"a temperature beyond numbers", chat(chatHi, `"temperature":1e999`), "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 1e999 instead."},
	{"a temperature in words", chat(chatHi, `"temperature":"hot"`), "Invalid type for 'temperature': expected a decimal, but got a string instead."},
	{"a seed that is no integer", chat(chatHi, `"seed":1.5`), "Invalid type for 'seed': expected an integer, but got a decimal number instead."},
	{"no tokens", chat(chatHi, `"max_completion_tokens":0`), "Invalid 'max_completion_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead."},
	{"9 answers", chat(chatHi, `"n":9`), "Invalid 'n': integer above maximum value. Expected a value <= 8, but got 9 instead."},
	{"max_tokens of a model that reasons", strings.Replace(chat(chatHi, `"max_tokens":10`), "gpt-test", "gpt-5.2", 1),
		"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."},
	{"two limits", chat(chatHi, `"max_tokens":10,"max_completion_tokens":10`), "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."},
	{"5 stops", chat(chatHi, `"stop":["a","b","c","d","e"]`), "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead."},
	{"a stop that is an object", chat(chatHi, `"stop":{}`), "Invalid type for 'stop': expected one of a string or array of strings, but got an object instead."},

	{"a custom call without its part", chat(chatHi + `,{"role":"assistant","tool_calls":[{"id":"a","type":"custom"}]},` + chatAnswer),
		"Missing required parameter: 'messages[1].tool_calls[0].custom'."},
	{"a strict schema in a list, open", chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{}}}},"required":["a"],"additionalProperties":false}`, `"strict":true`))),
		"Invalid schema for function 'f': In context=('properties', 'a', 'items'), 'additionalProperties' is required to be supplied and to be false."},
	{"a stop that is a number", chat(chatHi, `"stop":[7]`), "Invalid type for 'stop[0]': expected a string, but got an integer instead."},
	{"a stream that is neither", chat(chatHi, `"stream":"yes"`), "Invalid type for 'stream': expected a boolean, but got a string instead."},
	{"options of no stream", chat(chatHi, `"stream_options":{"include_usage":true}`), "The 'stream_options' parameter is only allowed when 'stream' is enabled."},
	{"an unknown option of a stream", chat(chatHi, `"stream":true,"stream_options":{"x":1}`), "Unknown parameter: 'stream_options.x'."},
	{"top_logprobs alone", chat(chatHi, `"top_logprobs":1`), "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."},
	{"metadata that is not stored", chat(chatHi, `"metadata":{"a":"b"}`), "The 'metadata' parameter is only allowed when 'store' is enabled."},
	{"17 pairs of metadata", chat(chatHi, `"store":true,"metadata":`+pairs(17)), "Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got an object with 17 properties instead."},
	{"a number in metadata", chat(chatHi, `"store":true,"metadata":{"k":7}`), "Invalid type for 'metadata.k': expected a string, but got an integer instead."},
	{"a long value in metadata", chat(chatHi, `"store":true,"metadata":{"k":"`+strings.Repeat("x", 513)+`"}`),
		"Invalid 'metadata.k': string too long. Expected a string with maximum length 512, but got a string with length 513 instead."},
	{"a long key in metadata", chat(chatHi, `"store":true,"metadata":{"`+strings.Repeat("k", 70)+`":"v"}`),
		"Invalid property name in 'metadata': 'kkk...kkk' is too long. Expected a string with maximum length 64, but got a string with length 70 instead."},
	{"a long key in metadata, beyond ASCII", chat(chatHi, `"store":true,"metadata":{"`+strings.Repeat("é", 70)+`":"v"}`),
		"Invalid property name in 'metadata': 'ééé...ééé' is too long. Expected a string with maximum length 64, but got a string with length 70 instead."},
	{"metadata in words", chat(chatHi, `"store":true,"metadata":"x"`), "Invalid type for 'metadata': expected a metadata object, but got a string instead."},
	{"a long cache key", chat(chatHi, `"prompt_cache_key":"`+strings.Repeat("k", 65)+`"`),
		"Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 65 instead."},
	{"a tier that is none", chat(chatHi, `"service_tier":"bogus"`), "Invalid value: 'bogus'. Supported values are: 'auto', 'default', 'fast', 'flex', and 'priority'."},
	{"a tier that is an object", chat(chatHi, `"service_tier":{}`),
		"Invalid type for 'service_tier': expected one of 'auto', 'default', 'fast', 'flex', or 'priority', but got an object instead."},
	{"an effort that is none", chat(chatHi, `"reasoning_effort":"hard"`),
		"Invalid value: 'hard'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', and 'max'."},
	{"not JSON", `{"model":`, noJSON},
	{"a member twice", `{"model":"m","model":"m","messages":[` + chatHi + `]}`, noJSON},
	{"a list", `[]`, noJSON},
}

const noJSON = "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The " +
	"OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please " +
	"contact us through our help center at help.openai.com.)"

// pairs is an object of n strings.
func pairs(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"k%d":"v"`, i))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func TestOpenAIChatRefusesWhatTheAPIRefuses(t *testing.T) {
	refusesEach(t, chatRefusals, fake.CheckOpenAIChat)
}

func TestOpenAIChatAcceptsWhatTheAPIAccepts(t *testing.T) {
	strict := `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"},"c":{"type":["string","null"],"enum":["x",null]}},"required":["a","c"],` +
		`"additionalProperties":false,"$defs":{"b":{"type":"object","properties":{},"required":[],"additionalProperties":false}}}`
	for name, body := range map[string]string{
		"text":                          chat(chatHi),
		"turns of one side in a row":    chat(chatHi + "," + chatHi + `,{"role":"assistant","content":"x"},{"role":"assistant","content":"y"}`),
		"calls and answers":             chat(chatHi + "," + chatCalls + `,{"role":"tool","tool_call_id":"b","content":"2"},` + chatAnswer + "," + chatHi),
		"an id again in a later turn":   chat(chatHi + "," + chatCall + "," + chatAnswer + "," + chatCall + "," + chatAnswer),
		"an answer of parts":            chat(chatHi + "," + chatCall + `,{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"1"}]}`),
		"an empty string":               chat(`{"role":"user","content":""}`),
		"no parts":                      chat(`{"role":"user","content":[]}`),
		"a refusal":                     chat(chatHi + `,{"role":"assistant","refusal":"No."},` + chatHi),
		"a refusal in a part":           chat(chatHi + `,{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},` + chatHi),
		"pictures":                      chat(chatUser(chatPicture("https://x/y.png"), chatPicture("data:image/jpeg;base64,"+png))),
		"a file":                        chat(chatUser(`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}}`)),
		"an uploaded file":              chat(chatUser(`{"type":"file","file":{"file_id":"file-1"}}`)),
		"sound for a model that hears":  strings.Replace(chat(chatUser(`{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`)), "gpt-test", "gpt-audio", 1),
		"128 tools":                     chat(chatHi, many(128, chatTool)),
		"a chosen tool":                 chat(chatHi, tools(chatTool("f", emptyObject)), `"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false`),
		"a function without parameters": chat(chatHi, tools(`{"type":"function","function":{"name":"f"}}`)),
		"a strict schema":               chat(chatHi, tools(chatTool("f", strict, `"strict":true`))),
		"a custom tool":                 chat(chatHi, tools(`{"type":"custom","custom":{"name":"f"}}`), `"tool_choice":{"type":"custom","custom":{"name":"f"}}`),
		"a format":                      chat(chatHi, `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":`+strict+`,"strict":true}}`),
		"JSON that is spoken of":        chat(`{"role":"user","content":"Some Json."}`, `"response_format":{"type":"json_object"}`),
		"a stop":                        chat(chatHi, `"stop":"a"`),
		"no stop in the list":           chat(chatHi, `"stop":[]`),
		"a name beside the function":    chat(chatHi, `"tools":[{"type":"function","name":"f","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`),
		"a custom call":                 chat(chatHi + `,{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"x"}}]},` + chatAnswer),
		"a choice of several":           chat(chatHi, tools(chatTool("f", emptyObject)), `"tool_choice":{"type":"allowed_tools","allowed_tools":{}}`),
		"a schema that holds itself":    chat(chatHi, tools(chatTool("f", `{"type":"object","properties":{"a":{"$ref":"#"},"b":true},"required":["a","b"],"additionalProperties":false}`, `"strict":true`))),
		"nulls":                         chat(chatHi, `"tools":null,"tool_choice":null,"stop":null,"temperature":null`),
		"the edges of numbers":          chat(chatHi, `"temperature":2,"top_p":1,"n":8,"max_completion_tokens":1,"stop":["a","b","c","d"],"store":true,"metadata":`+pairs(16)),
		"a stream with usage":           chat(chatHi, `"stream":true,"stream_options":{"include_usage":true}`),
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, fake.CheckOpenAIChat([]byte(body))) })
	}
}

func TestOpenAICompatibleTakesMembersThatOpenAIDoesNotKnow(t *testing.T) {
	for _, body := range []string{
		chat(chatHi+`,{"role":"assistant","content":"x","reasoning_content":"hm"},`+chatHi, `"thinking":{"type":"enabled"}`),
		chat(chatHi, `"metadata":{"a":"b"}`),
	} {
		require.Error(t, fake.CheckOpenAIChat([]byte(body)))
		require.NoError(t, fake.CheckOpenAICompatible([]byte(body)))
	}
	require.Error(t, fake.CheckOpenAICompatible([]byte(chat(chatHi+","+chatCall))))
}

func FuzzCheckOpenAIChat(f *testing.F) { neverPanics(f, chatRefusals, fake.CheckOpenAIChat) }
