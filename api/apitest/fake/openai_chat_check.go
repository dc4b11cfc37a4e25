package fake

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
)

// CheckOpenAIChat returns nil for a request body acceptable to OpenAI's Chat Completions API. Otherwise it returns an
// *[api.Error] with status 400 and the API's own error text. It checks these rules, observed at the API:
//
//   - Tool messages follow directly after an assistant's tool calls, one for each call ID, and nowhere else. IDs are
//     unique in their message and have at most 40 characters.
//   - A message has content, except an assistant's with tool calls or a refusal. Only a user's message has images,
//     audio and files.
//   - Tool names are well formed. There are at most 128 tools. Schemas are objects in a form accepted by the API;
//     strict ones follow the rules of strict schemas. tool_choice and parallel_tool_calls come only with tools.
//   - Numbers are in their ranges. There are at most 4 stop sequences and 16 pairs of metadata. Metadata comes with
//     store.
//   - Images have an accepted type and are images.
//   - There are no members unknown to the API.
//
// If the behavior of the API is unknown, or differs between models, the strictest behavior observed counts.
func CheckOpenAIChat(body []byte) error { return checkChat(body, false) }

// CheckOpenAICompatible is like [CheckOpenAIChat] for other servers with OpenAI's API. It accepts members unknown to
// OpenAI, such as the "reasoning_content" of an assistant's message.
func CheckOpenAICompatible(body []byte) error { return checkChat(body, true) }

func checkChat(body []byte, compatible bool) error {
	c := chatCheck{openAICheck: openAICheck{api: chatAPI, compatible: compatible}}
	if o := c.body(body); o != nil {
		c.request(o, body)
	}
	return c.result()
}

// chatCheck is the state of a check of a request to Chat Completions.
type chatCheck struct {
	openAICheck
	model  string
	tools  []string
	prompt strings.Builder // all text, for the rule about the word "json"
}

// chatMessage is a message's part in the rules about several messages.
type chatMessage struct {
	role   string
	calls  []string // call IDs
	answer string   // the call ID of a tool message
}

var chatRequest = openAIMembers{
	"model": aString, "messages": nil, "tools": nil, "tool_choice": nil, "response_format": nil, "stop": chatStop,
	"audio": nil, "modalities": nil, "moderation": nil, "prediction": nil, "web_search_options": nil, "function_call": nil,
	"functions": nil, "logit_bias": nil,
	"frequency_penalty":      aDecimal(-2, 2),
	"presence_penalty":       aDecimal(-2, 2),
	"temperature":            aDecimal(0, 2),
	"top_p":                  aDecimal(0, 1),
	"logprobs":               aBool,
	"top_logprobs":           anInteger(0, 20),
	"max_completion_tokens":  anInteger(1, 1<<31),
	"max_tokens":             anInteger(1, 1<<31),
	"n":                      anInteger(1, 8),
	"seed":                   anInteger(-1<<63, 1<<63),
	"metadata":               openAIMetadata,
	"parallel_tool_calls":    aBool,
	"prompt_cache_key":       ofLength(0, 64),
	"safety_identifier":      ofLength(0, 64),
	"prompt_cache_retention": openAIPinned,
	"prompt_cache_options":   openAICaching,
	"reasoning_effort":       openAIEfforts,
	"service_tier":           openAITiers,
	"store":                  aBool,
	"stream":                 aBool,
	"stream_options":         shaped(openAIMembers{"include_usage": aBool, "include_obfuscation": aBool}),
	"user":                   aString,
	"verbosity":              oneOf("low", "medium", "high"),
}

func chatStop(c *openAICheck, path string, v jsontext.Value) {
	if v.Kind() == '"' {
		return
	}
	if v.Kind() != '[' {
		c.wrong(path, "one of a string or array of strings", v)
		return
	}

	list := c.list(path, "strings", v)
	c.atMost(path, len(list), 4)
	listOf("strings", aString)(c, path, v)
}

func (c *chatCheck) request(o object, body []byte) {
	if o["model"] == nil {
		c.fail("", "", "you must provide a model parameter")
	}

	// Only the first failure counts: this order decides about the reported one.
	c.object("", jsontext.Value(body), chatRequest, "messages")
	c.model = text(o["model"])
	c.checkTools(o["tools"])
	c.choose(o["tool_choice"])

	if _, ok := o["parallel_tool_calls"]; ok && o["tools"] == nil {
		c.onlyWithTools("parallel_tool_calls")
	}

	// Check the format after the messages: JSON without a schema needs the word "json" in their text.
	c.options(o)
	messages := c.messages(o["messages"])
	c.format(o["response_format"])
	c.contents(o["messages"])
	c.answered(messages)
}

func (c *chatCheck) onlyWithTools(name string) {
	c.fail(name, "", "Invalid value for '%s': '%s' is only allowed when 'tools' are specified.", name, name)
}

// reasoners matches the models without max_tokens.
var reasoners = regexp.MustCompile(`^(o[1-9]|gpt-5)`)

// options checks the members with conditions on other members.
func (c *chatCheck) options(o object) {
	if o["stream_options"] != nil && string(o["stream"]) != "true" {
		c.fail("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if o["top_logprobs"] != nil && string(o["logprobs"]) != "true" {
		c.fail("top_logprobs", "", "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.")
	}
	// Other servers accept metadata without store.
	if o["metadata"] != nil && string(o["store"]) != "true" && !c.compatible {
		c.fail("metadata", "", "The 'metadata' parameter is only allowed when 'store' is enabled.")
	}

	if o["max_tokens"] == nil {
		return
	}
	if o["max_completion_tokens"] != nil {
		c.fail("max_tokens", "invalid_parameter_combination",
			"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	if reasoners.MatchString(c.model) {
		c.fail("max_tokens", "unsupported_parameter",
			"Unsupported parameter: 'max_tokens' is not supported with this model. Use "+
				"'max_completion_tokens' instead.")
	}
}

// checkTools checks the tools.
func (c *chatCheck) checkTools(v jsontext.Value) {
	if v == nil {
		return
	}
	list := c.list("tools", "objects", v)
	c.notEmpty("tools", len(list))
	c.atMost("tools", len(list), 128)

	for i, v := range list {
		path := fmt.Sprintf("tools[%d]", i)
		// The API accepts a name beside the function, as in the Responses API.
		o := c.object(path, v,
			openAIMembers{"type": oneOf("function", "custom"), "function": nil, "custom": nil, "name": aString}, "type")
		if text(o["type"]) == "custom" {
			c.required(path, v, o, "custom")
			c.custom(path, o["custom"])
			continue
		}

		c.required(path, v, o, "function")
		c.function(within(path, "function"), o["function"])
	}
}

func (c *chatCheck) custom(path string, v jsontext.Value) {
	if v == nil {
		return
	}
	o := c.object(within(path, "custom"), v,
		openAIMembers{"name": openAIToolName, "description": aString, "format": nil}, "name")
	c.tools = append(c.tools, text(o["name"]))
}

func (c *chatCheck) function(path string, v jsontext.Value) {
	if v == nil {
		return
	}
	o := c.object(path, v,
		openAIMembers{"name": openAIToolName, "description": aString, "parameters": nil, "strict": aBool}, "name")
	c.tools = append(c.tools, text(o["name"]))
	if o["parameters"] != nil {
		s := openAISchema{&c.openAICheck, "function '" + text(o["name"]) + "'", path + ".parameters", "invalid_function_parameters",
			string(o["strict"]) == "true", o["parameters"]}
		s.check()
	}
}

// choose checks tool_choice.
func (c *chatCheck) choose(v jsontext.Value) {
	if v == nil {
		return
	}
	switch v.Kind() {
	case '"':
		c.choice("tool_choice", text(v), "none", "auto", "required")
	case '{':
		c.chooseOne(v)
	default:
		c.wrong("tool_choice", "one of one of 'none', 'auto', or 'required' or object", v)
	}

	// Even "none" and "auto" are refused without tools.
	if len(c.tools) == 0 {
		c.onlyWithTools("tool_choice")
	}
}

func (c *chatCheck) chooseOne(v jsontext.Value) {
	o := c.object("tool_choice", v,
		openAIMembers{"type": aString, "function": nil, "custom": nil, "allowed_tools": nil}, "type")
	kind := text(o["type"])
	if kind == "allowed_tools" {
		return
	}
	if kind != "custom" {
		kind = "function"
	}

	c.required("tool_choice", v, o, kind)
	if o[kind] == nil {
		return
	}

	// The error text names the older parameters of the API: function_call and functions.
	named := c.object("tool_choice."+kind, o[kind], openAIMembers{"name": aString}, "name")
	if name := text(named["name"]); !slices.Contains(c.tools, name) {
		c.fail("function_call", "",
			"Invalid value for 'function_call': no function named '%s' was specified in the 'functions' parameter.", name)
	}
}

// format checks response_format.
func (c *chatCheck) format(v jsontext.Value) {
	if v == nil {
		return
	}
	o := c.object("response_format", v,
		openAIMembers{"type": oneOf("json_object", "json_schema", "text"), "json_schema": nil}, "type")
	switch text(o["type"]) {
	case "json_object":
		if !strings.Contains(strings.ToLower(c.prompt.String()), "json") {
			c.fail("messages", "",
				"'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
	case "json_schema":
		c.required("response_format", v, o, "json_schema")
		c.outputSchema("response_format.json_schema", "response_format", "", o["json_schema"])
	}
}

// outputSchema checks the schema of an output, and the members beside it.
func (c *openAICheck) outputSchema(path, param, code string, v jsontext.Value, more ...string) {
	if v == nil {
		return
	}
	known := openAIMembers{"name": openAIToolName, "description": aString, "schema": nil, "strict": aBool}
	for _, name := range more {
		known[name] = nil
	}

	o := c.object(path, v, known, "name", "schema")
	if o["schema"] != nil {
		s := openAISchema{c, "response_format '" + text(o["name"]) + "'", param, code, string(o["strict"]) == "true",
			o["schema"]}
		s.check()
	}
}

var (
	chatName    = matching(`^[^\s<|\\/>]+$`, 64)
	chatCallID  = ofLength(1, 40)
	chatMembers = map[string]openAIMembers{
		"system":    {"role": nil, "content": nil, "name": chatName},
		"developer": {"role": nil, "content": nil, "name": chatName},
		"user":      {"role": nil, "content": nil, "name": chatName},
		"assistant": {"role": nil, "content": nil, "name": chatName, "refusal": aString, "audio": nil,
			"annotations": nil, "function_call": nil, "tool_calls": nil},
		"tool":     {"role": nil, "content": nil, "name": chatName, "tool_call_id": nil},
		"function": {"role": nil, "content": nil, "name": chatName},
	}
)

// messages checks each message by itself, and returns them for the rules about several messages.
func (c *chatCheck) messages(v jsontext.Value) []chatMessage {
	list := c.list("messages", "objects", v)
	c.notEmpty("messages", len(list))

	var messages []chatMessage
	for i, v := range list {
		path := fmt.Sprintf("messages[%d]", i)

		// Read the role first: the other members depend on it.
		head := c.objectOf(path, v, "role")
		role := text(head["role"])
		if !c.choice(path+".role", role, "system", "assistant", "user", "function", "tool", "developer") {
			continue
		}

		o := c.object(path, v, chatMembers[role])
		m := chatMessage{role: role, answer: text(o["tool_call_id"])}
		c.parts(i, role, o["content"])

		if role == "tool" && o["tool_call_id"] == nil {
			c.fail(fmt.Sprintf("messages.[%d].tool_call_id", i), "",
				"Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
		}

		if role == "assistant" {
			m.calls = c.calls(path+".tool_calls", o["tool_calls"])
		}
		messages = append(messages, m)
	}
	return messages
}

// objectOf reads an object with any members. The required ones must be present.
func (c *openAICheck) objectOf(path string, v jsontext.Value, required ...string) object {
	if v.Kind() != '{' {
		c.wrong(path, "an object", v)
		return object{}
	}
	o := withoutNulls(v)
	c.required(path, v, o, required...)
	return o
}

// contents checks that every message has content. The API makes this check last.
func (c *chatCheck) contents(v jsontext.Value) {
	for i, v := range c.list("messages", "objects", v) {
		o := withoutNulls(v)
		instead := text(o["role"]) == "assistant" &&
			(o["tool_calls"] != nil || o["function_call"] != nil || o["refusal"] != nil || o["audio"] != nil)
		if o["content"] == nil && !instead {
			c.fail(fmt.Sprintf("messages.[%d].content", i), "",
				"Invalid value for 'content': expected a string, got null.")
		}
	}
}

func (c *chatCheck) calls(path string, v jsontext.Value) []string {
	if v == nil {
		return nil
	}
	list := c.list(path, "objects", v)
	c.notEmpty(path, len(list))

	var ids []string
	for i, v := range list {
		path := fmt.Sprintf("%s[%d]", path, i)
		o := c.object(path, v,
			openAIMembers{"id": chatCallID, "type": oneOf("function", "custom"), "function": nil, "custom": nil},
			"id", "type")
		ids = append(ids, text(o["id"]))
		if text(o["type"]) == "custom" {
			c.required(path, v, o, "custom")
			shapedIf(&c.openAICheck, path+".custom", o["custom"],
				openAIMembers{"name": openAIToolName, "input": aString}, "name", "input")
			continue
		}

		// The arguments are text of any form, even empty.
		c.required(path, v, o, "function")
		shapedIf(&c.openAICheck, path+".function", o["function"],
			openAIMembers{"name": openAIToolName, "arguments": aString}, "name", "arguments")
	}
	return ids
}

// shapedIf checks an optional object.
func shapedIf(c *openAICheck, path string, v jsontext.Value, known openAIMembers, required ...string) {
	if v != nil {
		c.object(path, v, known, required...)
	}
}

// chatParts holds the members of each kind of content.
var chatParts = map[string]openAIMembers{
	"text":        {"type": nil, "text": aString, "prompt_cache_breakpoint": openAIPoint},
	"image_url":   {"type": nil, "image_url": chatImage, "prompt_cache_breakpoint": openAIPoint},
	"input_audio": {"type": nil, "input_audio": chatAudio, "prompt_cache_breakpoint": openAIPoint},
	"file":        {"type": nil, "file": chatFile, "prompt_cache_breakpoint": openAIPoint},
	"refusal":     {"type": nil, "refusal": aString},
}

// parts checks the content of message i.
func (c *chatCheck) parts(i int, role string, v jsontext.Value) {
	path := fmt.Sprintf("messages[%d]", i)
	switch v.Kind() {
	case jsontext.KindInvalid:
		return // absent
	case '"':
		c.prompt.WriteString(text(v) + "\n")
		return
	case '[':
	default:
		c.wrong(path+".content", "one of a string or array of objects", v)
	}

	for j, v := range c.list(path+".content", "objects", v) {
		at := fmt.Sprintf("%s.content[%d]", path, j)
		kind := text(c.objectOf(at, v, "type")["type"])
		if !c.choice(at+".type", kind, "text", "image_url", "input_audio", "refusal", "audio", "file") {
			return
		}

		c.side(path, role, kind)
		o := c.object(at, v, chatParts[kind], kind)
		c.prompt.WriteString(text(o["text"]) + "\n")
	}
}

// side checks that a message of the role may have content of the kind.
func (c *chatCheck) side(path, role, kind string) {
	switch {
	case kind == "text", role == "assistant" && kind == "refusal",
		role == "user" && (kind == "image_url" || kind == "file"):
	case role == "user" && kind == "input_audio" && strings.Contains(c.model, "audio"): // other models refuse audio
	case kind == "image_url":
		c.fail(path, "invalid_value",
			"Invalid '%s'. Image URLs are only allowed for messages with role 'user', but this message with role '%s' "+
				"contains an image URL.", path, role)
	default:
		c.fail(path, "invalid_value",
			"Invalid '%s'. Content blocks are expected to be either text or image_url type.", path)
	}
}

func chatImage(c *openAICheck, path string, v jsontext.Value) {
	o := c.object(path, v, openAIMembers{"url": aString, "detail": oneOf("auto", "low", "high", "original")}, "url")
	c.image(path+".url", text(o["url"]))
}

func chatAudio(c *openAICheck, path string, v jsontext.Value) {
	o := c.object(path, v, openAIMembers{"data": aString, "format": oneOf("wav", "mp3")}, "data", "format")
	c.base64(path+".data", text(o["data"]))
}

func chatFile(c *openAICheck, path string, v jsontext.Value) {
	o := c.object(path, v, openAIMembers{"file_id": aString, "file_data": aString, "filename": aString})
	switch {
	case o["file_id"] != nil:
	case o["file_data"] == nil || o["filename"] == nil:
		c.fail(path+".file_id", "missing_required_parameter", "Missing required parameter: '%s.file_id'.", path)
	default:
		c.file(path+".file_data", text(o["file_data"]))
	}
}

// answered checks that every tool call has its tool message and every tool message its call.
func (c *chatCheck) answered(messages []chatMessage) {
	for i := 0; i < len(messages); i++ {
		m := messages[i]

		// The tool messages after calls are skipped below, so this one follows none.
		if m.role == "tool" {
			c.fail(fmt.Sprintf("messages.[%d].role", i), "",
				"Invalid parameter: messages with role 'tool' must be a response to a preceeding "+
					"message with 'tool_calls'.")
		}

		if len(m.calls) == 0 {
			continue
		}

		// Only the tool messages right after the calls can have their results.
		c.uniqueCalls(i, m.calls)
		from := i + 1
		for i+1 < len(messages) && messages[i+1].role == "tool" {
			i++
		}
		c.answers(m.calls, messages[from:i+1], from)
	}
}

func (c *chatCheck) uniqueCalls(i int, ids []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			c.fail(fmt.Sprintf("messages.[%d].tool_calls", i), "",
				"Invalid parameter: Duplicate value for 'tool_call_id' of '%s' in message[%d].", id, i)
		}
		seen[id] = true
	}
}

// answers checks the tool messages after a message with calls. From is the index of the first of them.
func (c *chatCheck) answers(calls []string, answers []chatMessage, from int) {
	called, given := map[string]bool{}, map[string]int{}
	for _, id := range calls {
		called[id] = true
	}

	for n, answer := range answers {
		at := from + n
		param := fmt.Sprintf("messages.[%d].tool_call_id", at)

		if !called[answer.answer] {
			c.fail(param, "",
				"Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.",
				answer.answer)
		}
		if before, ok := given[answer.answer]; ok {
			c.fail(param, "",
				"Invalid parameter: Duplicate value for 'tool_call_id' of '%s', in messages[%d] and messages[%d].",
				answer.answer, before, at)
		}
		given[answer.answer] = at
	}

	// Every call needs its result before any other message.
	var missing []string
	for _, id := range calls {
		if _, ok := given[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		c.fail(fmt.Sprintf("messages.[%d].role", from+len(answers)), "",
			"An assistant message with 'tool_calls' must be followed by tool messages "+
				"responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s",
			strings.Join(missing, ", "))
	}
}
