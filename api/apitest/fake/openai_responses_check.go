package fake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
)

// CheckOpenAIResponses returns nil for a request body acceptable to OpenAI's Responses API. Otherwise it returns an
// *[api.Error] with the API's own error text and status 400, or 404 for a reference to a missing item. It checks these
// rules, observed at the API:
//
//   - Every call of a function, of a custom tool or of the computer has one output after it, and every output has its
//     call. Call IDs are unique and have at most 64 characters.
//   - A reasoning item is followed by the item it led to. It has no content, and has its encrypted content if nothing
//     is stored.
//   - An item's ID has the prefix of its type. IDs are unique.
//   - A user's parts are input_text, input_image and input_file; an assistant's are output_text and refusal.
//   - Tool names are well formed. Schemas are objects in a form accepted by the API. Strict ones follow the rules of
//     strict schemas.
//   - Numbers are in their ranges. The values of include and the text format are known.
//   - There are no members unknown to the API.
//
// The content of a previous_response_id, a conversation or an item_reference is not known here. A request with one may
// have outputs for calls outside the request.
func CheckOpenAIResponses(body []byte) error {
	c := responsesCheck{openAICheck: openAICheck{api: responsesAPI}}
	if o := c.body(body); o != nil {
		c.request(o, body)
	}
	return c.result()
}

// responsesCheck is the state of a check of a request to the Responses API.
type responsesCheck struct {
	openAICheck
	tools  []string        // the names of functions and custom tools, and the types of others
	unseen bool            // a part of the conversation is stored by the API
	stored bool            // the API stores this turn, and so may have stored others
	prompt strings.Builder // the text of the input
}

var responsesIncludes = oneOf("file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
	"message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
	"reasoning.encrypted_content", "message.output_text.logprobs")

var responsesRequest = openAIMembers{
	"input": nil, "tools": nil, "tool_choice": nil, "access_programs": nil,
	"background": aBool,
	"context_management": listOf("objects",
		shaped(openAIMembers{"type": aString, "compact_threshold": anInteger(1, 1<<31)}, "type")),
	"conversation":           nil,
	"include":                listOf("strings", responsesIncludes),
	"instructions":           aString,
	"max_output_tokens":      anInteger(16, 1<<31),
	"max_tool_calls":         anInteger(1, 1<<31),
	"metadata":               openAIMetadata,
	"model":                  aString,
	"moderation":             shaped(openAIMembers{"model": aString}, "model"),
	"parallel_tool_calls":    aBool,
	"previous_response_id":   aString,
	"prompt":                 shaped(openAIMembers{"id": aString, "version": aString, "variables": nil}, "id"),
	"prompt_cache_key":       ofLength(0, 64),
	"prompt_cache_options":   openAICaching,
	"prompt_cache_retention": openAIPinned,
	"reasoning": shaped(openAIMembers{"effort": openAIEfforts, "summary": oneOf("concise", "detailed", "auto"),
		"context": oneOf("auto", "current_turn", "all_turns"), "mode": aString}),
	"safety_identifier": ofLength(0, 64),
	"service_tier":      openAITiers,
	"store":             aBool,
	"stream":            aBool,
	"stream_options":    shaped(openAIMembers{"include_obfuscation": aBool}),
	"temperature":       aDecimal(0, 2),
	"text":              shaped(openAIMembers{"format": nil, "verbosity": oneOf("low", "medium", "high")}),
	"top_logprobs":      anInteger(0, 20),
	"top_p":             aDecimal(0, 1),
	"truncation":        oneOf("auto", "disabled"),
	"user":              aString,
}

func (c *responsesCheck) request(o object, body []byte) {
	if o["model"] == nil && o["prompt"] == nil {
		c.required("", jsontext.Value(body), o, "model")
	}
	if o["messages"] != nil {
		c.fail("", "unsupported_parameter",
			"Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. Try "+
				"again with the new parameter. See the API documentation for more information: "+
				"https://platform.openai.com/docs/api-reference/responses/create.")
	}

	c.object("", jsontext.Value(body), responsesRequest)

	if o["conversation"] != nil && o["previous_response_id"] != nil {
		c.fail("", "mutually_exclusive_parameters",
			"Mutually exclusive parameters: ''. Ensure you are only providing one of: 'pre..._id' or "+
				"'conversation'.")
	}

	// The API stores a turn unless store is false. With a stored part the fake cannot see all calls, so an output need not
	// have its call in the request.
	c.stored = string(o["store"]) != "false"
	c.unseen = o["conversation"] != nil || o["previous_response_id"] != nil || o["prompt"] != nil
	if o["input"] == nil && !c.unseen {
		c.fail("", "missing_required_parameter",
			`One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`)
	}

	c.checkTools("tools", o["tools"])
	c.choose(o["tool_choice"])

	if v := o["input"]; v.Kind() == '"' {
		c.prompt.WriteString(text(v))
	} else if v != nil {
		c.input(v)
	}

	if o["text"] != nil {
		c.format(withoutNulls(o["text"])["format"])
	}
}

// responsesFunction holds the members of a function's declaration.
var responsesFunction = openAIMembers{"type": nil, "name": openAIToolName, "description": aString, "parameters": nil, "strict": aBool,
	"async": aBool, "defer_loading": aBool, "allowed_callers": nil, "output_schema": nil}

// responsesTools lists the types of tools.
var responsesTools = []string{"function", "custom", "web_search", "web_search_2025_08_26", "web_search_preview",
	"web_search_preview_2025_03_11", "file_search", "computer", "computer_use_preview", "code_interpreter", "image_generation", "mcp",
	"local_shell", "shell", "apply_patch", "namespace", "tool_search"}

// checkTools checks the list of tools at a path.
func (c *responsesCheck) checkTools(path string, v jsontext.Value) {
	if v == nil {
		return
	}

	list := c.list(path, "tools", v)
	c.atMost(path, len(list), 128)

	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		o := c.objectOf(at, v, "type")
		kind := text(o["type"])
		if !c.choice(at+".type", kind, responsesTools...) {
			return
		}

		switch kind {
		case "function":
			c.function(at, v)
		case "custom":
			o := c.object(at, v, openAIMembers{"type": nil, "name": openAIToolName, "description": aString,
				"format": nil, "async": aBool, "defer_loading": aBool, "allowed_callers": nil}, "name")
			c.tools = append(c.tools, text(o["name"]))
		case "namespace":
			c.checkTools(at+".tools", o["tools"])
		default:
			// The members of the API's own tools are not checked. A tool choice names them by their type.
			c.tools = append(c.tools, kind)
		}
	}
}

func (c *responsesCheck) function(path string, v jsontext.Value) {
	o := c.object(path, v, responsesFunction, "name")
	c.tools = append(c.tools, text(o["name"]))
	if o["parameters"] != nil {
		s := openAISchema{&c.openAICheck, "function '" + text(o["name"]) + "'", path + ".parameters", "invalid_function_parameters",
			string(o["strict"]) == "true", o["parameters"]}
		s.check()
	}
}

// choose checks tool_choice.
func (c *responsesCheck) choose(v jsontext.Value) {
	switch v.Kind() {
	case jsontext.KindInvalid:
		return // absent
	case '"':
		word := text(v)
		if c.choice("tool_choice", word, "none", "auto", "required"); word == "required" && len(c.tools) == 0 {
			c.fail("tool_choice", "", "Tool choice 'required' must be specified with 'tools' parameter.")
		}
		return
	case '{':
	default:
		c.wrong("tool_choice", "one of an object or 'none', 'auto', or 'required'", v)
		return
	}

	o := c.objectOf("tool_choice", v, "type")

	// A program's tool is chosen by its name, a tool of the API by its type.
	switch kind := text(o["type"]); kind {
	case "allowed_tools", "mcp":
	case "function", "custom":
		c.required("tool_choice", v, o, "name")
		c.object("tool_choice", v, openAIMembers{"type": nil, "name": aString})
		c.chosen(text(o["name"]), kind)
	default:
		c.choice("tool_choice.type", kind, responsesTools...)
		c.chosen(kind, kind)
	}
}

func (c *responsesCheck) chosen(name, shown string) {
	if !slices.Contains(c.tools, name) {
		c.fail("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", shown)
	}
}

// format checks text.format.
func (c *responsesCheck) format(v jsontext.Value) {
	if v == nil {
		return
	}

	const path = "text.format"
	o := c.objectOf(path, v, "type")
	kind := text(o["type"])
	c.choice(path+".type", kind, "json_object", "json_schema", "text")

	switch kind {
	case "json_object":
		if !strings.Contains(strings.ToLower(c.prompt.String()), "json") {
			c.fail(path, "",
				"Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.")
		}
	case "json_schema":
		c.outputSchema(path, path+".schema", "invalid_json_schema", v, "type")
	}
}
