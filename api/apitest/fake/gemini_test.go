package fake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
)

// geminiExceptions are recorded requests that were accepted and are refused here, with the reason.
var geminiExceptions = map[string]string{}

// geminiUnknowable are recorded refusals that no check of a body can know, with the reason.
var geminiUnknowable = map[string]string{
	"gemini/crewAI--llms-google-test-google-streaming-returns-usage-metrics.json#0": noKey,
	"gemini/crewAI--llms-google-test-google-streaming-returns-usage-metrics.json#1": noKey,
	"gemini/crewAI--llms-google-test-google-streaming-returns-usage-metrics.json#2": noKey,
	"gemini/mirascope--test-authentication-error-google-gemini-2-5-flash.json#0":    noKey,
}

const noKey = "the key is not valid"

func checkGemini(path string, body []byte) error {
	_, model, _ := strings.Cut(path, "/models/")
	model, _, _ = strings.Cut(model, ":")
	return fake.CheckGemini(model, body)
}

func TestGeminiAcceptsRecordedRequests(t *testing.T) {
	acceptsRecorded(t, "gemini", "enerateContent", geminiExceptions, checkGemini)
}

func TestGeminiRefusesRecordedRefusals(t *testing.T) {
	refusesRecorded(t, "gemini", "enerateContent", geminiUnknowable, checkGemini)
}

// gemini is the body of a request with contents, and further members before them.
func gemini(contents string, more ...string) string {
	return `{` + strings.Join(append(more, ""), ",") + `"contents":[` + contents + `]}`
}

func said(role string, parts ...string) string {
	return `{"role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
}

const (
	gHi        = `{"role":"user","parts":[{"text":"Hi"}]}`
	gHello     = `{"role":"model","parts":[{"text":"Hello"}]}`
	gCall      = `{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}`
	gBare      = `{"functionCall":{"name":"f","args":{}}}`
	gAnswer    = `{"functionResponse":{"name":"f","response":{"output":1}}}`
	callTurn   = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
	answerTurn = "Please ensure that function response turn comes immediately after a function call turn."
	equal      = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
	badName    = "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), " +
		"colons (:), or dashes (-), with a maximum length of 64.\n"
	generated = "type.googleapis.com/google.ai.generativelanguage.v1beta."
)

func unsigned(name string, position int) string {
	return fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and "+
		"missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. "+
		"Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", name, position)
}

func unmatched(name string) string {
	return "Please ensure that each function response part has the id and the name of a function call part of the function call turn: '" + name + "'."
}

func functions(list ...string) string {
	return `"tools":[{"functionDeclarations":[` + strings.Join(list, ",") + `]}]`
}

func function(name, schema string) string {
	return fmt.Sprintf(`{"name":%q,"parameters":%s}`, name, schema)
}

func config(members string) string { return `"generationConfig":{` + members + `}` }

func inline(mediaType, data string) string {
	return fmt.Sprintf(`{"inlineData":{"mimeType":%q,"data":%q}}`, mediaType, data)
}

var geminiRefusals = []refusalCase{
	// Pairing.
	{"a call without a response", gemini(gHi + "," + said("model", gCall) + "," + gHi), equal},
	{"one of two calls without a response", gemini(gHi + "," + said("model", gCall, gBare) + "," + said("user", gAnswer)), equal},
	{"two responses to one call", gemini(gHi + "," + said("model", gCall) + "," + said("user", gAnswer, gAnswer)), equal},
	{"a response without a call", gemini(gHi + "," + gHello + "," + said("user", gAnswer)), answerTurn},
	{"a response at the beginning", gemini(said("user", gAnswer)), answerTurn},
	{"a response too late", gemini(gHi + "," + said("model", gCall) + "," + said("user", gAnswer) + "," + gHello + "," + said("user", gAnswer)), answerTurn},
	{"words before the response", gemini(gHi + "," + said("model", gCall) + "," + said("user", `{"text":"x"}`, gAnswer)), answerTurn},
	{"a message before the response", gemini(gHi + "," + said("model", gCall) + "," + gHi + "," + said("user", gAnswer)), answerTurn},
	{"a response of the model", gemini(gHi + "," + said("model", gAnswer) + "," + gHi), answerTurn},
	{"a call at the beginning", gemini(said("model", gCall) + "," + said("user", gAnswer)), callTurn},
	{"a call of the user", gemini(gHi + "," + gHello + "," + said("user", gCall)), callTurn},
	{"a response of another name", gemini(gHi + "," + said("model", gCall) + "," + said("user", strings.Replace(gAnswer, `"f"`, `"g"`, 1))), unmatched("g")},
	{"a response of another id", gemini(gHi + "," + said("model", strings.Replace(gCall, `"name"`, `"id":"1","name"`, 1)) + "," +
		said("user", strings.Replace(gAnswer, `"name"`, `"id":"2","name"`, 1))), unmatched("f")},
	{"two responses to the first of two calls", gemini(gHi + "," + said("model", gCall, strings.Replace(gBare, `"f"`, `"g"`, 1)) + "," + said("user", gAnswer, gAnswer)), unmatched("f")},
	{"the model last", gemini(gHi + "," + gHello), "Please ensure that multiturn requests end with a user role or a function response."},
	{"a call last", gemini(gHi + "," + said("model", gCall)), "Please ensure that multiturn requests end with a user role or a function response."},
	// Signatures.
	{"a call that is not signed", gemini(gHi + "," + said("model", gBare) + "," + said("user", gAnswer)), unsigned("f", 2)},
	{"a second step that is not signed", gemini(gHi + "," + said("model", gCall) + "," + said("user", gAnswer) + "," + said("model", gBare) + "," + said("user", gAnswer)), unsigned("f", 4)},
	{"a signature on the second call", gemini(gHi + "," + said("model", gBare, gCall) + "," + said("user", gAnswer, gAnswer)), unsigned("f", 2)},
	{"an empty signature", gemini(gHi + "," + said("model", strings.Replace(gCall, "c2ln", "", 1)) + "," + said("user", gAnswer)), unsigned("f", 2)},
	{"words beside responses begin no turn", gemini(gHi + "," + said("model", gBare) + "," + said("user", gAnswer, `{"text":"x"}`)), unsigned("f", 2)},
	{"a signature in bad base64", gemini(gHi + "," + said("model", strings.Replace(gCall, "c2ln", "c2!n", 1)) + "," + said("user", gAnswer)),
		`Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for "c2!n"`},
	// Contents.
	{"no contents", gemini(""), "* GenerateContentRequest.contents: contents is not specified\n"},
	{"no contents at all", `{}`, "* GenerateContentRequest.contents: contents is not specified\n"},
	{"a content without parts", gemini(gHi + "," + said("model") + "," + gHi), "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.\n"},
	{"a part that says nothing", gemini(said("user", `{"text":"x"}`, `{}`)),
		"* GenerateContentRequest.contents[0].parts[1].data: required oneof field 'data' must have one initialized field\n"},
	{"a part that says two things", gemini(gHi + "," + said("model", `{"text":"x","functionCall":{"name":"f"}}`)),
		"Invalid value at 'contents[1].parts[0]' (oneof), oneof field 'data' is already set. Cannot set 'function_call'"},
	{"a role that is none", gemini(said("assistant", `{"text":"x"}`)), "Please use a valid role: user, model."},
	{"content of another API", gemini(`{"role":"user","content":"x"}`), `Invalid JSON payload received. Unknown name "content" at 'contents[0]': Cannot find field.`},
	{"a content that is a string", gemini(`"x"`), `Invalid value at 'contents[0]' (` + generated + `Content), "x"`},
	{"a part that is a string", gemini(said("user", `"x"`)), `Invalid value at 'contents[0].parts[0]' (` + generated + `Part), "x"`},
	{"text that is a number", gemini(said("user", `{"text":7}`)), "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 7"},
	{"text that is a list", gemini(said("user", `{"text":[]}`)),
		`Invalid JSON payload received. Unknown name "text" at 'contents[0].parts[0]': Proto field is not repeating, cannot start list.`},
	{"an unknown part", gemini(said("user", `{"hologram":1}`)), `Invalid JSON payload received. Unknown name "hologram" at 'contents[0].parts[0]': Cannot find field.`},
	{"a call without a name", gemini(gHi + "," + said("model", `{"functionCall":{"args":{}}}`)),
		"* GenerateContentRequest.contents[1].parts[0].function_call.name: Name cannot be empty.\n"},
	{"a bad name in a call", gemini(gHi + "," + said("model", `{"functionCall":{"name":"f g"}}`)), "* GenerateContentRequest.contents[1].parts[0].function_call.name: " + badName},
	{"arguments that are a string", gemini(gHi + "," + said("model", `{"functionCall":{"name":"f","args":"{}"}}`)),
		`Invalid value at 'contents[1].parts[0].function_call.args' (type.googleapis.com/google.protobuf.Struct), "{}"`},
	{"a response that is a list", gemini(gHi + "," + said("model", gCall) + "," + said("user", `{"functionResponse":{"name":"f","response":[1]}}`)),
		`Invalid JSON payload received. Unknown name "response" at 'contents[2].parts[0].function_response': Proto field is not repeating, cannot start list.`},
	{"a response that is a string", gemini(gHi + "," + said("model", gCall) + "," + said("user", `{"functionResponse":{"name":"f","response":"x"}}`)),
		`Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com/google.protobuf.Struct), "x"`},
	{"a call's type of another API", gemini(gHi + "," + said("model", `{"functionCall":{"name":"f","type":"function"}}`)),
		`Invalid JSON payload received. Unknown name "type" at 'contents[1].parts[0].function_call': Cannot find field.`},
	{"a thought that is a string", gemini(gHi + "," + said("model", `{"text":"x","thought":"yes"}`)), `Invalid value at 'contents[1].parts[0].thought' (TYPE_BOOL), "yes"`},
	// Bytes.
	{"bytes in bad base64", gemini(said("user", inline("image/png", "data:x"))),
		`Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding failed for "data:x"`},
	{"bytes of an unknown type", gemini(said("user", inline("application/msword", "AAAA"))), "Unsupported MIME type: application/msword"},
	{"a GIF", gemini(said("user", inline("image/gif", "AAAA"))), "Unsupported MIME type: image/gif"},
	{"bytes of no type", gemini(said("user", `{"inlineData":{"data":"AAAA"}}`)), "Unsupported MIME type: "},
	{"no bytes", gemini(said("user", inline("image/png", ""))), "* GenerateContentRequest.contents[0].parts[0].inline_data.data: data must not be empty.\n"},
	{"a picture that is none", gemini(said("user", inline("image/png", "AAAA"))),
		"Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"},
	{"a PDF that is none", gemini(said("user", inline("application/pdf", png))), "The document has no pages."},
	// The system instruction.
	{"a system instruction of nothing", gemini(gHi, `"systemInstruction":{"parts":[]}`), "* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty.\n"},
	{"a system instruction that is a string", gemini(gHi, `"systemInstruction":"x"`), `Invalid value at 'system_instruction' (` + generated + `Content), "x"`},
	{"a system instruction with an empty part", gemini(gHi, `"systemInstruction":{"parts":[{}]}`),
		"* GenerateContentRequest.system_instruction.parts[0].data: required oneof field 'data' must have one initialized field\n"},
	// Tools.
	{"a function's name", gemini(gHi, functions(function("f g", `{}`))), "* GenerateContentRequest.tools[0].function_declarations[0].name: " + badName},
	{"a function's name that begins with a digit", gemini(gHi, functions(function("1f", `{}`))), "* GenerateContentRequest.tools[0].function_declarations[0].name: " + badName},
	{"a function's name too long", gemini(gHi, functions(function(strings.Repeat("f", 65), `{}`))), "* GenerateContentRequest.tools[0].function_declarations[0].name: " + badName},
	{"two functions of a name", gemini(gHi, functions(function("f", `{}`), function("f", `{}`))), "Duplicate function declaration found: f"},
	{"two functions of a name in two tools", gemini(gHi, `"tools":[{"functionDeclarations":[{"name":"f"}]},{"function_declarations":[{"name":"f"}]}]`),
		"Duplicate function declaration found: f"},
	{"a tool of another API", gemini(gHi, `"tools":[{"type":"function","name":"f"}]`), `Invalid JSON payload received. Unknown name "name" at 'tools[0]': Cannot find field.`},
	{"a schema's word of JSON Schema", gemini(gHi, functions(function("f", `{"type":"object","additionalProperties":false}`))),
		`Invalid JSON payload received. Unknown name "additionalProperties" at 'tools[0].function_declarations[0].parameters': Cannot find field.`},
	{"a schema's word within", gemini(gHi, functions(function("f", `{"type":"object","properties":{"a":{"type":"string"},"b":{"anyOf":[{"const":1}]}}}`))),
		`Invalid JSON payload received. Unknown name "const" at 'tools[0].function_declarations[0].parameters.properties[1].value.any_of[0]': Cannot find field.`},
	{"a schema of two types", gemini(gHi, functions(function("f", `{"type":["object","null"]}`))),
		`Invalid JSON payload received. Unknown name "type" at 'tools[0].function_declarations[0].parameters': Proto field is not repeating, cannot start list.`},
	{"a schema of no known type", gemini(gHi, functions(function("f", `{"type":"thing"}`))),
		`Invalid value at 'tools[0].function_declarations[0].parameters.type' (` + generated + `Type), "thing"`},
	{"a schema that requires another", gemini(gHi, functions(function("f", `{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`))),
		"* GenerateContentRequest.tools[0].function_declarations[0].parameters.required[0]: property is not defined\n"},
	{"a list of nothing", gemini(gHi, functions(function("f", `{"type":"object","properties":{"a":{"type":"ARRAY"}}}`))),
		"* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[0].value.items: missing field.\n"},
	{"an enum of numbers", gemini(gHi, functions(function("f", `{"type":"object","properties":{"a":{"type":"integer","enum":["1"]}}}`))),
		"* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[0].value.enum: only allowed for STRING type\n"},
	{"an enum that holds a number", gemini(gHi, functions(function("f", `{"type":"object","properties":{"a":{"type":"string","enum":[1]}}}`))),
		"Invalid value at 'tools[0].function_declarations[0].parameters.properties[0].value.enum[0]' (TYPE_STRING), 1"},
	{"an enum of nothing", gemini(gHi, functions(function("f", `{"type":"object","properties":{"a":{"type":"string","enum":[""]}}}`))),
		"* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[0].value.enum[0]: cannot be empty\n"},
	{"a format of strings", gemini(gHi, functions(function("f", `{"type":"object","properties":{"a":{"type":"string","format":"uri"}}}`))),
		"* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[0].value.format: only 'enum' and 'date-time' are supported for STRING type\n"},
	{"properties of a string", gemini(gHi, functions(function("f", `{"type":"string","properties":{"a":{}}}`))),
		"* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties: only allowed for OBJECT type\n"},
	{"properties that are a list", gemini(gHi, functions(function("f", `{"type":"object","properties":[]}`))),
		`Invalid JSON payload received. Unknown name "properties" at 'tools[0].function_declarations[0].parameters': Proto field is not repeating, cannot start list.`},
	{"a schema that is bottomless", gemini(gHi, functions(function("f", strings.Repeat(`{"items":`, 102)+"{}"+strings.Repeat("}", 102)))),
		"* GenerateContentRequest.tools[0].function_declarations[0].parameters" + strings.Repeat(".items", 101) + ": the schema nests too deeply.\n"},
	{"two schemas", gemini(gHi, functions(`{"name":"f","parameters":{},"parametersJsonSchema":{}}`)),
		"* GenerateContentRequest.tools[0].function_declarations[0]: parameters and parameters_json_schema cannot be set together.\n"},
	{"a JSON schema that is true", gemini(gHi, functions(`{"name":"f","parametersJsonSchema":true}`)),
		"* GenerateContentRequest.tools[0].function_declarations[0].parameters_json_schema: schema must be an object.\n"},
	{"functions after a search", gemini(gHi, `"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"f"}]}]`),
		"Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."},
	{"a search beside functions", gemini(gHi, `"tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}]`),
		"Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."},
	{"a config without functions", gemini(gHi, `"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}`), "Function calling config is set without function_declarations."},
	{"a mode that is none", gemini(gHi, functions(function("f", `{}`)), `"toolConfig":{"functionCallingConfig":{"mode":"required"}}`),
		`Invalid value at 'tool_config.function_calling_config.mode' (` + generated + `FunctionCallingConfig.Mode), "required"`},
	{"an allowed function that is not declared", gemini(gHi, functions(function("f", `{}`)), `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}`),
		"* GenerateContentRequest.tool_config.function_calling_config.allowed_function_names[0]: function 'g' is not declared.\n"},
	{"allowed functions in another mode", gemini(gHi, functions(function("f", `{}`)), `"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["f"]}}`),
		"Allowed function names should be set only when function calling mode is ANY."},
	// The generation config.
	{"a temperature above 2", gemini(gHi, config(`"temperature":2.1`)), "* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n"},
	{"a temperature in words", gemini(gHi, config(`"temperature":"hot"`)), `Invalid value at 'generation_config.temperature' (TYPE_FLOAT), "hot"`},
	{"a temperature beyond numbers", gemini(gHi, config(`"temperature":1e999`)), "* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n"},
	{"a top_p above 1", gemini(gHi, config(`"topP":1.1`)), "* GenerateContentRequest.generation_config.top_p: top_p must be in the range [0.0, 1.0].\n"},
	{"no tokens", gemini(gHi, config(`"maxOutputTokens":0`)), "* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.\n"},
	{"half a token", gemini(gHi, config(`"maxOutputTokens":1.5`)), "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), 1.5"},
	{"hexadecimal tokens", gemini(gHi, config(`"maxOutputTokens":"0x1p4"`)), `Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), "0x1p4"`},
	{"tokens that are not a number", gemini(gHi, config(`"maxOutputTokens":"NaN"`)), `Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), "NaN"`},
	{"infinitely many tokens", gemini(gHi, config(`"maxOutputTokens":"Infinity"`)), `Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), "Infinity"`},
	{"a temperature that is not a number", gemini(gHi, config(`"temperature":"NaN"`)), "* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n"},
	{"an infinite temperature", gemini(gHi, config(`"temperature":"-Infinity"`)), "* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n"},
	{"a temperature by another name of NaN", gemini(gHi, config(`"temperature":"nan"`)), `Invalid value at 'generation_config.temperature' (TYPE_FLOAT), "nan"`},
	{"a temperature after a space", gemini(gHi, config(`"temperature":" 1"`)), `Invalid value at 'generation_config.temperature' (TYPE_FLOAT), " 1"`},
	{"6 stops", gemini(gHi, config(`"stopSequences":["a","b","c","d","e","f"]`)), "* GenerateContentRequest.generation_config.stop_sequences: the number of stop_sequences must not exceed 5.\n"},
	{"a member of another API", gemini(gHi, `"max_tokens":5`), `Invalid JSON payload received. Unknown name "max_tokens": Cannot find field.`},
	{"an unknown member of the config", gemini(gHi, config(`"maxTokens":5`)), `Invalid JSON payload received. Unknown name "maxTokens" at 'generation_config': Cannot find field.`},
	{"a budget and a level", gemini(gHi, config(`"thinkingConfig":{"thinkingBudget":100,"thinkingLevel":"LOW"}`)), "You can only set only one of thinking budget and thinking level."},
	{"a level that is none", gemini(gHi, config(`"thinkingConfig":{"thinkingLevel":"EXTREME"}`)),
		`Invalid value at 'generation_config.thinking_config.thinking_level' (` + generated + `ThinkingConfig.ThinkingLevel), "EXTREME"`},
	{"a schema without its type", gemini(gHi, config(`"responseJsonSchema":{}`)),
		"* GenerateContentRequest.generation_config.response_mime_type: response_mime_type must be `application/json` or `text/x.enum` when a response schema is set.\n"},
	{"a type that is none", gemini(gHi, config(`"responseMimeType":"text/html"`)),
		"* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and `text/x.enum`.\n"},
	{"two schemas of the answer", gemini(gHi, config(`"responseMimeType":"application/json","responseSchema":{},"responseJsonSchema":{}`)),
		"* GenerateContentRequest.generation_config: response_schema and response_json_schema cannot be set together.\n"},
	{"an answer's word of JSON Schema", gemini(gHi, config(`"responseMimeType":"application/json","responseSchema":{"$ref":"x"}`)),
		`Invalid JSON payload received. Unknown name "$ref" at 'generation_config.response_schema': Cannot find field.`},
	{"a modality that is none", gemini(gHi, config(`"responseModalities":["SMELL"]`)),
		`Invalid value at 'generation_config.response_modalities[0]' (` + generated + `GenerationConfig.Modality), "SMELL"`},
	// The rest.
	{"a cached content and tools", gemini(gHi, `"cachedContent":"cachedContents/x"`, functions(function("f", `{}`))),
		"CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config."},
	{"a cached content and a system instruction", gemini(gHi, `"cachedContent":"cachedContents/x","systemInstruction":{"parts":[{"text":"x"}]}`),
		"CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config."},
	{"a harm that is none", gemini(gHi, `"safetySettings":[{"category":"BOREDOM"}]`),
		`Invalid value at 'safety_settings[0].category' (` + generated + `HarmCategory), "BOREDOM"`},
	{"not JSON", `{"contents":`, "Invalid JSON payload received. Expected a value."},
	{"a list", `[]`, "Invalid JSON payload received. Root element must be a message."},
}

func checkGemini3(body []byte) error { return fake.CheckGemini("gemini-3-pro", body) }

func checkGemini2(body []byte) error { return fake.CheckGemini("models/gemini-2.5-flash", body) }

func TestGeminiRefusesWhatTheAPIRefuses(t *testing.T) { refusesEach(t, geminiRefusals, checkGemini3) }

func TestGeminiRefusesWhatOlderModelsRefuse(t *testing.T) {
	cases := []refusalCase{
		{"a level", gemini(gHi, config(`"thinkingConfig":{"thinkingLevel":"LOW"}`)), "thinking_level is not supported by this model"},
		{"a search beside functions", gemini(gHi, `"tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}]`), "Tool use with function calling is unsupported"},
		{"JSON beside functions", gemini(gHi, functions(function("f", `{}`)), config(`"responseMimeType":"application/json"`)),
			"Function calling with a response mime type: 'application/json' is unsupported"},
	}
	refusesEach(t, cases, checkGemini2)
	require.NoError(t, checkGemini3([]byte(cases[0].body)))
	require.NoError(t, checkGemini3([]byte(cases[2].body)))
}

func TestGeminiAcceptsWhatTheAPIAccepts(t *testing.T) {
	for name, body := range map[string]string{
		"text":                              gemini(gHi),
		"a content without a role":          gemini(`{"parts":[{"text":"x"}]}`),
		"lists of one, not written as such": `{"contents":{"parts":{"text":"x"}}}`,
		"names with underscores":            `{"contents":[{"role":"user","parts":[{"inline_data":{"mime_type":"image/png","data":"` + png + `"}}]}],"generation_config":{"max_output_tokens":5}}`,
		"turns of one side in a row":        gemini(gHi + "," + gHi + "," + gHello + "," + gHello + "," + gHi),
		"the model first":                   gemini(gHello + "," + gHi),
		"calls and responses":               gemini(gHi + "," + said("model", gCall, gBare) + "," + said("user", gAnswer, gAnswer, `{"text":"x"}`)),
		"a response by the role function":   gemini(gHi + "," + said("model", gCall) + "," + said("function", gAnswer)),
		"responses in two contents":         gemini(gHi + "," + said("model", gCall, gBare) + "," + said("user", gAnswer) + "," + said("user", gAnswer)),
		"responses by their ids": gemini(gHi + "," + said("model", strings.Replace(gCall, `"name"`, `"id":"1","name"`, 1), strings.Replace(gBare, `"name"`, `"id":"2","name"`, 1)) + "," +
			said("user", strings.Replace(gAnswer, `"name"`, `"id":"2","name"`, 1), strings.Replace(gAnswer, `"name"`, `"id":"1","name"`, 1))),
		"an earlier turn that is not signed": gemini(gHi + "," + said("model", gBare) + "," + said("user", gAnswer) + "," + gHello + "," + gHi),
		"a signature that is a word":         gemini(gHi + "," + said("model", strings.Replace(gCall, "c2ln", "skip_thought_signature_validator", 1)) + "," + said("user", gAnswer)),
		"an empty text with a signature":     gemini(gHi + "," + said("model", `{"text":"","thoughtSignature":"c2ln"}`) + "," + gHi),
		"a thought":                          gemini(gHi + "," + said("model", `{"text":"hm","thought":true}`, `{"text":"x"}`) + "," + gHi),
		"pictures and files":                 gemini(said("user", inline("image/png", png), inline("application/pdf", pdf), inline("text/csv", "YSxi"), `{"fileData":{"mimeType":"audio/mpeg","fileUri":"https://x"}}`)),
		"a picture in a response":            gemini(gHi + "," + said("model", gCall) + "," + said("user", `{"functionResponse":{"name":"f","response":{},"parts":[`+inline("image/png", png)+`]}}`)),
		"a search":                           gemini(gHi, `"tools":[{"googleSearch":{}}]`),
		"a search beside functions":          gemini(gHi, `"tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}],"toolConfig":{"includeServerSideToolInvocations":true}`),
		"a schema":                           gemini(gHi, functions(function("f:g.h-i", `{"type":"OBJECT","properties":{"a":{"type":"string","enum":["x"],"nullable":true},"b":{"type":"array","items":{"anyOf":[{"type":"integer"}]}}},"required":["a"]}`))),
		"a JSON schema":                      gemini(gHi, functions(`{"name":"f","parametersJsonSchema":{"type":"object","additionalProperties":false}}`)),
		"allowed functions":                  gemini(gHi, functions(function("f", `{}`)), `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}`),
		"a config":                           gemini(gHi, config(`"temperature":2,"topP":1,"maxOutputTokens":"5","stopSequences":["a"],"responseMimeType":"application/json","responseJsonSchema":{"$defs":{}},"thinkingConfig":{"thinkingBudget":-1,"includeThoughts":true}`)),
		"a whole number with an exponent":    gemini(gHi, config(`"maxOutputTokens":1e2,"candidateCount":1.0,"seed":"-2E1","temperature":"5e-1"`)),
		"nulls":                              gemini(gHi, `"systemInstruction":null,"tools":null,"toolConfig":null,"generationConfig":null,"safetySettings":null`),
		"a cached content":                   gemini(gHi, `"cachedContent":"cachedContents/x"`),
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, checkGemini3([]byte(body))) })
	}
	require.NoError(t, checkGemini2([]byte(gemini(gHi+","+said("model", gBare)+","+said("user", gAnswer)))), "older models sign nothing")
}

func FuzzCheckGemini(f *testing.F) { neverPanics(f, geminiRefusals, checkGemini3) }
