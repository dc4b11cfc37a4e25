package fake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
)

// responsesExceptions are recorded requests that were accepted and are refused here, with the reason.
var responsesExceptions = map[string]string{
	"openai-responses/req_llm--openai-gpt-4-1-object-streaming.json#0": "a tool in the form of Chat Completions beside its own, which was ignored",
}

// responsesUnknowable are recorded refusals that no check of a body can know, with the reason.
var responsesUnknowable = map[string]string{
	"openai-responses/mirascope--test-model-not-found-openai-gpt-4o-responses.json#0":                                                        noModel,
	"openai-responses/mirascope--test-model-not-found-openai-gpt-4o-responses.json#1":                                                        noModel,
	"openai-responses/opentelemetry-python-contrib--instrumentation-genai-opentelemetry-instrumentation-openai-v2-test-responses-cre.json#0": noModel,
	"openai-responses/pydantic-ai--test-model-name-suggestions-test-inferred-model-name-suggestion.json#0":                                   noModel,
	"openai-responses/rig--openai-error-envelope-nonexistent-model-error-preserves-status-and-body.json#0":                                   noModel,
	"openai-responses/rig--openai-response-identity-edge-provider-error-response-surfaces-cleanly.json#0":                                    noModel,
	"openai-responses/pydantic-ai--models-test-multimodal-tool-returns-test-multimodal-tool-return-matrix-direct-url-audio-openai-re.json#1": "what " +
		"is at the file's address",
}

const noModel = "there is no such model"

func checkResponses(_ string, body []byte) error { return fake.CheckOpenAIResponses(body) }

func TestOpenAIResponsesAcceptsRecordedRequests(t *testing.T) {
	acceptsRecorded(t, "openai-responses", "/responses", responsesExceptions, checkResponses)
}

func TestOpenAIResponsesRefusesRecordedRefusals(t *testing.T) {
	refusesRecorded(t, "openai-responses", "/responses", responsesUnknowable, checkResponses)
}

// responses is the body of a request with items, and further members before them.
func responses(items string, more ...string) string {
	return `{"model":"gpt-test",` + strings.Join(append(more, ""), ",") + `"input":[` + items + `]}`
}

const (
	itemHi     = `{"role":"user","content":"Hi"}`
	itemCall   = `{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{}"}`
	itemOutput = `{"type":"function_call_output","call_id":"a","output":"1"}`
	itemSaid   = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]}`
	itemReason = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"}`
	itemCustom = `{"type":"custom_tool_call","id":"ctc_1","call_id":"a","name":"f","input":"x"}`

	withoutNext = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
	itemPicture = "Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got "
)

func itemUser(parts ...string) string {
	return `{"role":"user","content":[` + strings.Join(parts, ",") + `]}`
}

func responsesTool(name, schema string, more ...string) string {
	return fmt.Sprintf(`{"type":"function","name":%q,"parameters":%s%s}`, name, schema, strings.Join(append([]string{""}, more...), ","))
}

// swap is s with one thing in the place of another.
func swap(s, old, replacement string) string { return strings.Replace(s, old, replacement, 1) }

var responsesRefusals = []refusalCase{
	// Pairing.
	{"a call without an output", responses(itemHi + "," + itemCall + "," + itemHi), "No tool output found for function call a."},
	{"a call at the end", responses(itemHi + "," + itemCall), "No tool output found for function call a."},
	{"an output without a call", responses(itemHi + "," + itemOutput), "No tool call found for function call output with call_id a."},
	{"an output before its call", responses(itemHi + "," + itemOutput + "," + itemCall), "No tool call found for function call output with call_id a."},
	{"an output of another type", responses(itemHi + "," + itemCustom + "," + itemOutput), "No tool call found for function call output with call_id a."},
	{"two outputs of one call", responses(itemHi + "," + itemCall + "," + itemOutput + "," + itemOutput), "No tool call found for function call output with call_id a."},
	{"two outputs of one call, beside what is stored", responses(itemHi+","+itemCall+","+itemOutput+","+itemOutput, `"previous_response_id":"resp_1"`),
		"No tool call found for function call output with call_id a."},
	{"a custom call without an output", responses(itemHi + "," + itemCustom), "No tool output found for custom tool call a."},
	{"a custom output without a call", responses(itemHi + `,{"type":"custom_tool_call_output","call_id":"a","output":"1"}`),
		"No tool call found for custom tool call output with call_id a."},
	{"an output without the program of its call", responses(itemHi + "," + swap(itemCall, `"id"`, `"caller":{"type":"program","caller_id":"p"},"id"`) + "," + itemOutput),
		"The function call output with call_id a has another caller than its call."},
	{"a computer's call without an output", responses(itemHi + `,{"type":"computer_call","id":"cu_1","call_id":"a"}`), "No tool output found for computer call a."},
	{"a shell's output without a call", responses(itemHi + `,{"type":"shell_call_output","call_id":"a","output":[]}`),
		"No tool call found for shell call output with call_id a."},
	{"a call id twice", responses(itemHi + "," + itemCall + "," + swap(itemCall, "fc_1", "fc_2") + "," + itemOutput), "Duplicate function call found with call_id a."},
	{"a call id too long", responses(itemHi + "," + swap(itemCall, `"a"`, `"`+strings.Repeat("a", 65)+`"`)),
		"Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead."},
	{"an empty call id", responses(itemHi + "," + swap(itemCall, `"a"`, `""`)),
		"Invalid 'input[1].call_id': empty string. Expected a string with minimum length 1, but got an empty string instead."},
	{"no call id", responses(itemHi + "," + swap(itemCall, `"call_id":"a",`, ``)), "Missing required parameter: 'input[1].call_id'."},
	{"no arguments", responses(itemHi + "," + swap(itemCall, `,"arguments":"{}"`, ``)), "Missing required parameter: 'input[1].arguments'."},
	{"arguments that are an object", responses(itemHi + "," + swap(itemCall, `"{}"`, `{}`)), "Invalid type for 'input[1].arguments': expected a string, but got an object instead."},
	{"a bad name in a call", responses(itemHi + "," + swap(itemCall, `"f"`, `"f g"`)),
		"Invalid 'input[1].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
	{"no output", responses(itemHi + "," + itemCall + "," + swap(itemOutput, `,"output":"1"`, ``)), "Missing required parameter: 'input[2].output'."},
	// Ids.
	{"an id of another type", responses(itemHi + "," + swap(itemCall, "fc_1", "call_1")), "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'."},
	{"a custom call's id of another type", responses(itemHi + "," + swap(itemCustom, "ctc_1", "fc_1")), "Invalid 'input[1].id': 'fc_1'. Expected an ID that begins with 'ctc'."},
	{"a search's id of another type", responses(itemHi + `,{"type":"web_search_call","id":"x","status":"completed"}`), "Invalid 'input[1].id': 'x'. Expected an ID that begins with 'ws'."},
	{"a message's id of another type", responses(itemHi + "," + swap(itemSaid, "msg_1", "x")), "Invalid 'input[1].id': 'x'. Expected an ID that begins with 'msg'."},
	{"an id too long", responses(itemHi + "," + swap(itemSaid, "msg_1", "msg_"+strings.Repeat("x", 61))),
		"Invalid 'input[1].id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead."},
	{"an id twice", responses(itemHi + "," + itemSaid + "," + itemSaid), "Duplicate item found with id msg_1. Remove duplicate items from your input and try again."},
	// Reasoning.
	{"reasoning at the end", responses(itemHi + "," + itemReason), withoutNext},
	{"reasoning before the user", responses(itemHi + "," + itemReason + "," + itemHi), withoutNext},
	{"reasoning before an output", responses(itemHi + "," + itemCall + "," + itemReason + "," + itemOutput), withoutNext},
	{"reasoning before a message of another", responses(itemHi + "," + itemReason + `,{"role":"assistant","content":"42"},` + itemHi), withoutNext},
	{"reasoning in plain text", responses(itemHi + "," + swap(itemReason, `"summary"`, `"content":[{"type":"reasoning_text","text":"hm"}],"summary"`) + "," + itemSaid),
		"Invalid 'input[1].content': array too long. Expected an array with maximum length 0, but got an array with length 1 instead."},
	{"reasoning without a summary", responses(itemHi + `,{"type":"reasoning","id":"rs_1","encrypted_content":"x"},` + itemSaid), "Missing required parameter: 'input[1].summary'."},
	{"a summary of another type", responses(itemHi + "," + swap(itemReason, "summary_text", "text") + "," + itemSaid), "Invalid value: 'text'. Supported values are: 'summary_text'."},
	{"reasoning that is nowhere", responses(itemHi + `,{"type":"reasoning","summary":[]},` + itemSaid), "Missing required parameter: 'input[1].id'."},
	{"reasoning of an empty secret", responses(itemHi + "," + swap(itemReason, "gAAA", "") + "," + itemSaid),
		"Invalid 'input[1].encrypted_content': empty string. Expected a string with minimum length 1, but got an empty string instead."},
	// Messages.
	{"a role that is none", responses(`{"role":"tool","content":"x"}`), "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'."},
	{"no role", responses(`{"content":"x"}`), "Missing required parameter: 'input[0].role'."},
	{"no content", responses(`{"role":"user"}`), "Missing required parameter: 'input[0].content'."},
	{"content that is a number", responses(`{"role":"user","content":7}`),
		"Invalid type for 'input[0].content': expected one of a string or array of objects, but got an integer instead."},
	{"a user's text of an assistant", responses(itemHi + `,{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`),
		"Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."},
	{"an assistant's text of a user", responses(itemUser(`{"type":"output_text","text":"x"}`)),
		"Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', and 'input_file'."},
	{"a part of Chat Completions", responses(itemUser(`{"type":"text","text":"x"}`)),
		"Invalid value: 'text'. Supported values are: 'input_text', 'input_image', and 'input_file'."},
	{"a part without text", responses(itemUser(`{"type":"input_text"}`)), "Missing required parameter: 'input[0].content[0].text'."},
	{"a part of no type", responses(itemUser(`{"text":"x"}`)), "Missing required parameter: 'input[0].content[0].type'."},
	{"an unknown member of a part", responses(itemUser(`{"type":"input_text","text":"x","cache_control":{}}`)), "Unknown parameter: 'input[0].content[0].cache_control'."},
	{"an unknown member of a message", responses(`{"role":"user","content":"x","bogus":1}`), "Unknown parameter: 'input[0].bogus'."},
	{"an unknown member of a call", responses(itemHi + "," + swap(itemCall, `"id"`, `"index":0,"id"`) + "," + itemOutput), "Unknown parameter: 'input[1].index'."},
	{"a status that is none", responses(itemHi + "," + swap(itemSaid, "completed", "done")), "Invalid value: 'done'. Supported values are: 'in_progress', " +
		"'completed', 'incomplete', 'searching', 'generating', 'interpreting', 'calling', and 'failed'."},
	{"an output of an assistant's text", responses(itemHi + "," + itemCall + "," + swap(itemOutput, `"1"`, `[{"type":"output_text","text":"x"}]`)),
		"Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', and 'input_file'."},
	// Pictures and files.
	{"a picture as an object", responses(itemUser(`{"type":"input_image","image_url":{"url":"https://x"}}`)),
		"Invalid type for 'input[0].content[0].image_url': expected a string, but got an object instead."},
	{"no picture", responses(itemUser(`{"type":"input_image"}`)), "Missing required parameter: 'input[0].content[0].image_url'."},
	{"a picture that is a document", responses(itemUser(`{"type":"input_image","image_url":"data:application/pdf;base64,` + pdf + `"}`)),
		"Invalid 'input[0].content[0].image_url'. " + itemPicture + "unsupported MIME type 'application/pdf'."},
	{"a picture that is none", responses(itemUser(`{"type":"input_image","image_url":"data:image/png;base64,AAAA"}`)), unsupported},
	{"a file without a name", responses(itemUser(`{"type":"input_file","file_data":"data:application/pdf;base64,` + pdf + `"}`)),
		"Missing required parameter: 'input[0].content[0].filename'."},
	{"a file of sound", responses(itemUser(`{"type":"input_file","filename":"a","file_data":"data:audio/mpeg;base64,AAAA"}`)),
		"Invalid file data: 'input[0].content[0].file_data'. Expected a base64-encoded data URL with a valid file MIME type (e.g. " +
			"'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type 'audio/mpeg'. Please see " +
			"https://platform.openai.com/docs/assistants/tools/file-search#supported-files for supported file types."},
	// Tools.
	{"a tool of Chat Completions", responses(itemHi, tools(chatTool("f", emptyObject))), "Unknown parameter: 'tools[0].function'."},
	{"a tool without a name", responses(itemHi, tools(`{"type":"function","parameters":`+emptyObject+`}`)), "Missing required parameter: 'tools[0].name'."},
	{"a tool of no type", responses(itemHi, tools(`{"name":"f"}`)), "Missing required parameter: 'tools[0].type'."},
	{"tools that are no list", responses(itemHi, `"tools":"x"`), "Invalid type for 'tools': expected an array of tools, but got a string instead."},
	{"129 tools", responses(itemHi, many(129, responsesTool)),
		"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead."},
	{"a tool's name with a dot", responses(itemHi, tools(responsesTool("f.g", emptyObject))),
		"Invalid 'tools[0].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
	{"a strict tool with an option", responses(itemHi, tools(responsesTool("f", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `"strict":true`))),
		"Invalid schema for function 'f': In context=(), " + required + "Missing 'b'."},
	{"a schema with a union", responses(itemHi, tools(responsesTool("f", `{"type":"object","properties":{},"oneOf":[]}`))), topLevel},
	{"a tool within a namespace", responses(itemHi, tools(`{"type":"namespace","name":"n","tools":[`+responsesTool("f", `{}`)+`]}`)),
		`Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"', got 'type: "None"'.`},
	{"a choice that is none", responses(itemHi, tools(responsesTool("f", emptyObject)), `"tool_choice":"any"`),
		"Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'."},
	{"a choice that is a number", responses(itemHi, `"tool_choice":7`),
		"Invalid type for 'tool_choice': expected one of an object or 'none', 'auto', or 'required', but got an integer instead."},
	{"a choice without a name", responses(itemHi, tools(responsesTool("f", emptyObject)), `"tool_choice":{"type":"function"}`),
		"Missing required parameter: 'tool_choice.name'."},
	{"a choice of Chat Completions", responses(itemHi, tools(responsesTool("f", emptyObject)), `"tool_choice":{"type":"function","function":{"name":"f"}}`),
		"Missing required parameter: 'tool_choice.name'."},
	{"a choice of no tool", responses(itemHi, tools(responsesTool("f", emptyObject)), `"tool_choice":{"type":"function","name":"g"}`),
		"Tool choice 'function' not found in 'tools' parameter."},
	{"a choice of a server tool that is not there", responses(itemHi, tools(responsesTool("f", emptyObject)), `"tool_choice":{"type":"web_search"}`),
		"Tool choice 'web_search' not found in 'tools' parameter."},
	{"a choice without tools", responses(itemHi, `"tool_choice":"required"`), "Tool choice 'required' must be specified with 'tools' parameter."},
	// The form of the answer.
	{"a format that is none", responses(itemHi, `"text":{"format":{"type":"xml"}}`), "Invalid value: 'xml'. Supported values are: 'json_object', 'json_schema', and 'text'."},
	{"a format of no type", responses(itemHi, `"text":{"format":{}}`), "Missing required parameter: 'text.format.type'."},
	{"JSON that nobody speaks of", responses(itemHi, `"text":{"format":{"type":"json_object"}}`),
		"Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'."},
	{"a format without a name", responses(itemHi, `"text":{"format":{"type":"json_schema","schema":`+emptyObject+`}}`), "Missing required parameter: 'text.format.name'."},
	{"a strict format that is open", responses(itemHi, `"text":{"format":{"type":"json_schema","name":"x","strict":true,"schema":`+emptyObject+`}}`),
		"Invalid schema for response_format 'x': In context=(), 'additionalProperties' is required to be supplied and to be false."},
	{"response_format", responses(itemHi, `"response_format":{"type":"text"}`), "Unknown parameter: 'response_format'."},
	// The rest.
	{"no model", `{"input":"ping"}`, "Missing required parameter: 'model'."},
	{"no input", `{"model":"m"}`, `One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`},
	{"messages", `{"model":"m","input":"x","messages":[]}`, "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. Try again with " +
		"the new parameter. See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses/create."},
	{"input that is an object", `{"model":"m","input":{"a":1}}`, "Invalid type for 'input': expected one of a string or array of input items, but got an object instead."},
	{"an item that is a string", responses(`"x"`), "Invalid type for 'input[0]': expected an object, but got a string instead."},
	{"an unknown member", responses(itemHi, `"max_tokens":1`), "Unknown parameter: 'max_tokens'."},
	{"stop sequences", responses(itemHi, `"seed":1`), "Unknown parameter: 'seed'."},
	{"too few tokens", responses(itemHi, `"max_output_tokens":15`), "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead."},
	{"a temperature above 2", responses(itemHi, `"temperature":2.5`), "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead."},
	{"an effort that is none", responses(itemHi, `"reasoning":{"effort":"bogus"}`),
		"Invalid value: 'bogus'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', and 'max'."},
	{"a summary that is none", responses(itemHi, `"reasoning":{"summary":"bogus"}`), "Invalid value: 'bogus'. Supported values are: 'concise', 'detailed', and 'auto'."},
	{"an unknown member of reasoning", responses(itemHi, `"reasoning":{"bogus":1}`), "Unknown parameter: 'reasoning.bogus'."},
	{"an inclusion that is none", responses(itemHi, `"include":["bogus.thing"]`), "Invalid value: 'bogus.thing'. Supported values are: 'file_search_call.results', " +
		"'web_search_call.results', 'web_search_call.action.sources', 'message.input_image.image_url', 'computer_call_output.output.image_url', " +
		"'code_interpreter_call.outputs', 'reasoning.encrypted_content', and 'message.output_text.logprobs'."},
	{"a truncation that is none", responses(itemHi, `"truncation":"bogus"`), "Invalid value: 'bogus'. Supported values are: 'auto' and 'disabled'."},
	{"usage of a stream", responses(itemHi, `"stream":true,"stream_options":{"include_usage":true}`), "Unknown parameter: 'stream_options.include_usage'."},
	{"17 pairs of metadata", responses(itemHi, `"metadata":`+pairs(17)),
		"Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got an object with 17 properties instead."},
	{"two memories", responses(itemHi, `"conversation":"conv_1","previous_response_id":"resp_1"`),
		"Mutually exclusive parameters: ''. Ensure you are only providing one of: 'pre..._id' or 'conversation'."},
	{"not JSON", `{"model":`, noJSON},
}

func TestOpenAIResponsesRefusesWhatTheAPIRefuses(t *testing.T) {
	refusesEach(t, responsesRefusals, fake.CheckOpenAIResponses)
}

func TestOpenAIResponsesRefusesAnUnknownItem(t *testing.T) {
	err := fake.CheckOpenAIResponses([]byte(responses(`{"type":"tool_use"}`)))
	require.ErrorContains(t, err, "Invalid value: 'tool_use'. Supported values are: 'additional_tools', 'apply_patch_call', ")
}

func TestOpenAIResponsesDoesNotFindWhatWasNotStored(t *testing.T) {
	for id, items := range map[string]string{
		"rs_1": swap(itemReason, `,"encrypted_content":"gAAA"`, ``) + "," + itemSaid,
		"rs_2": `{"type":"item_reference","id":"rs_2"}`,
	} {
		require.NoError(t, fake.CheckOpenAIResponses([]byte(responses(itemHi+","+items))))
		err := fake.CheckOpenAIResponses([]byte(responses(itemHi+","+items, `"store":false`)))
		var refusal *api.Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, "Item with id '"+id+"' not found. Items are not persisted when `store` is set to false. Try again with `store` set to "+
			"true, or remove this item from your input.", refusal.Message)
		require.Equal(t, 404, refusal.Status)
		require.ErrorIs(t, err, api.ErrNotFound)
	}
}

func TestOpenAIResponsesAcceptsWhatTheAPIAccepts(t *testing.T) {
	for name, body := range map[string]string{
		"a string":                          `{"model":"m","input":"ping"}`,
		"messages":                          responses(`{"role":"developer","content":"x"},{"role":"system","content":"x"},` + itemHi + `,{"role":"assistant","content":"x"},` + itemHi),
		"an assistant's message last":       responses(itemHi + "," + itemSaid),
		"calls and outputs":                 responses(itemHi + "," + itemCall + "," + itemOutput + "," + itemSaid + "," + itemHi),
		"two calls, then two outputs":       responses(itemHi + "," + itemCall + "," + swap(swap(itemCall, "fc_1", "fc_2"), `"a"`, `"b"`) + "," + swap(itemOutput, `"a"`, `"b"`) + "," + itemOutput),
		"a call without an id":              responses(itemHi + "," + swap(itemCall, `"id":"fc_1",`, ``) + "," + itemOutput),
		"a custom call":                     responses(itemHi + "," + itemCustom + `,{"type":"custom_tool_call_output","call_id":"a","output":"1"}`),
		"a call that is stored":             responses(itemOutput, `"previous_response_id":"resp_1"`),
		"a call of a conversation":          responses(itemOutput, `"conversation":{"id":"conv_1"}`),
		"a call that is referred to":        responses(itemHi + `,{"type":"item_reference","id":"fc_1"},` + itemOutput),
		"reasoning and its call":            responses(itemHi+","+itemReason+","+itemCall+","+itemOutput, `"store":false,"include":["reasoning.encrypted_content"]`),
		"reasoning and a call without ids":  responses(itemHi + "," + swap(itemReason, `"id":"rs_1",`, ``) + "," + swap(itemCall, `"id":"fc_1",`, ``) + "," + itemOutput),
		"reasoning twice, then a message":   responses(itemHi + "," + itemReason + "," + swap(itemReason, "rs_1", "rs_2") + "," + itemSaid + "," + itemHi),
		"reasoning and a search":            responses(itemHi + "," + itemReason + `,{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}},` + itemSaid),
		"an output of parts":                responses(itemHi + "," + itemCall + `,{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x"},{"type":"input_image","file_id":"f"}]}`),
		"pictures and files":                responses(itemUser(`{"type":"input_image","image_url":"data:image/png;base64,`+png+`"}`, `{"type":"input_image","image_url":"https://x/y.png","detail":"low"}`, `{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,`+pdf+`"}`, `{"type":"input_file","file_url":"https://x"}`)),
		"a refusal":                         responses(itemHi + `,{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},` + itemHi),
		"a phase":                           responses(itemHi + "," + swap(itemSaid, `"status"`, `"phase":"commentary","status"`) + "," + itemHi),
		"tools of all kinds":                responses(itemHi, tools(responsesTool("f", emptyObject, `"strict":false`), `{"type":"custom","name":"g"}`, `{"type":"web_search"}`), `"tool_choice":{"type":"web_search"}`),
		"a loose schema, strict not spoken": responses(itemHi, tools(responsesTool("f", `{"type":"object","properties":{"a":{"type":"string"}}}`))),
		"a chosen tool":                     responses(itemHi, tools(responsesTool("f", emptyObject)), `"tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":false`),
		"JSON that is spoken of":            responses(itemUser(`{"type":"input_text","text":"JSON, please"}`), `"text":{"format":{"type":"json_object"},"verbosity":"low"}`),
		"a choice of several":               responses(itemHi, tools(responsesTool("f", emptyObject)), `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]},"text":{}`),
		"no tools":                          responses(itemHi, `"tools":[],"tool_choice":"auto","previous_response_id":null`),
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, fake.CheckOpenAIResponses([]byte(body))) })
	}
}

func FuzzCheckOpenAIResponses(f *testing.F) {
	neverPanics(f, responsesRefusals, fake.CheckOpenAIResponses)
}
