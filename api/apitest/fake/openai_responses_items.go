package fake

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
)

// responsesItemKind describes one type of item.
type responsesItemKind struct {
	prefix   string // of its IDs; "" if it is unknown
	known    openAIMembers
	required string
}

var (
	responsesCallID = ofLength(1, 64)
	responsesID     = ofLength(1, 64)
	responsesStatus = oneOf("in_progress", "completed", "incomplete", "searching", "generating", "interpreting",
		"calling", "failed")
)

// responsesItems describes every type of item in a request. The members of server tools' items are not checked: they
// are the API's own.
var responsesItems = map[string]responsesItemKind{
	"message": {"msg",
		openAIMembers{"type": nil, "id": responsesID, "role": nil, "content": nil, "status": responsesStatus,
			"phase": oneOf("commentary", "final_answer")}, "role content"},
	"reasoning": {"rs",
		openAIMembers{"type": nil, "id": responsesID, "summary": nil, "content": nil,
			"encrypted_content": ofLength(1, 1<<30),
			"status":            responsesStatus}, "summary"},
	"function_call": {"fc",
		openAIMembers{"type": nil, "id": responsesID, "call_id": responsesCallID, "name": openAIToolName,
			"arguments": aString, "status": responsesStatus, "namespace": aString, "async": aBool, "caller": nil},
		"call_id name arguments"},
	"function_call_output": {"",
		openAIMembers{"type": nil, "id": responsesID, "call_id": responsesCallID, "output": nil,
			"status": responsesStatus, "name": aString, "namespace": aString, "caller": nil}, "call_id output"},
	"custom_tool_call": {"ctc",
		openAIMembers{"type": nil, "id": responsesID, "call_id": responsesCallID, "name": openAIToolName,
			"input": aString, "status": responsesStatus, "namespace": aString, "async": aBool, "caller": nil},
		"call_id name input"},
	"custom_tool_call_output": {"",
		openAIMembers{"type": nil, "id": responsesID, "call_id": responsesCallID, "output": nil,
			"status": responsesStatus, "caller": nil}, "call_id output"},
	"computer_call":           {"cu", nil, "id call_id"},
	"computer_call_output":    {"", nil, "call_id output"},
	"local_shell_call":        {"lsh", nil, "id call_id action"},
	"local_shell_call_output": {"", nil, "output"},
	"shell_call":              {"sh", nil, "call_id action"},
	"shell_call_output":       {"", nil, "call_id output"},
	"apply_patch_call":        {"apc", nil, "call_id operation"},
	"apply_patch_call_output": {"", nil, "call_id status"},
	"web_search_call":         {"ws", nil, "id"},
	"file_search_call":        {"fs", nil, "id queries"},
	"code_interpreter_call":   {"ci", nil, "id container_id"},
	"image_generation_call":   {"ig", nil, "id"},
	"mcp_list_tools":          {"mcpl", nil, "id server_label tools"},
	"mcp_approval_request":    {"mcpr", nil, "id name server_label arguments"},
	"mcp_approval_response":   {"", nil, "approval_request_id approve"},
	"mcp_call":                {"mcp", nil, "id name server_label arguments"},
	"tool_search_call":        {"tsc", nil, "arguments"},
	"tool_search_output":      {"tso", nil, "tools"},
	"additional_tools":        {"", nil, "tools"},
	"configuration_update":    {"", nil, ""},
	"compaction":              {"cmp", nil, "encrypted_content"},
	"compaction_trigger":      {"", nil, ""},
	"item_reference":          {"", openAIMembers{"type": nil, "id": responsesID}, "id"},
	"program":                 {"", nil, ""},
	"program_output":          {"", nil, ""},
}

// responsesRequestItem is one item of the input.
type responsesRequestItem struct {
	kind, role, id, call string
	caller               string // the call ID of the program that made this call, or the call of this output
}

// input checks the items of a conversation, and then the relations between them.
func (c *responsesCheck) input(v jsontext.Value) {
	if v.Kind() != '[' {
		c.wrong("input", "one of a string or array of input items", v)
		return
	}
	var items []responsesRequestItem
	for i, v := range c.list("input", "input items", v) {
		items = append(items, c.item(fmt.Sprintf("input[%d]", i), v))
	}

	c.uniqueItems(items)
	c.led(items)
	c.answered(items)
}

// item checks one item by itself.
func (c *responsesCheck) item(path string, v jsontext.Value) responsesRequestItem {
	// Only a message may leave out its type.
	o := c.objectOf(path, v)
	kind := "message"
	if o["type"] != nil {
		kind = text(o["type"])
	}

	about, ok := responsesItems[kind]
	if !ok {
		c.choice(path, kind, responsesKinds()...)
		return responsesRequestItem{}
	}
	if about.known != nil {
		c.object(path, v, about.known)
	}

	// Most types of items need no ID. A given one must begin with the prefix of its type.
	c.required(path, v, o, strings.Fields(about.required)...)
	item := responsesRequestItem{kind: kind, role: text(o["role"]), id: text(o["id"]), call: text(o["call_id"])}
	if o["caller"] != nil {
		item.caller = text(c.objectOf(path+".caller", o["caller"])["caller_id"])
	}
	if kind == "local_shell_call_output" && item.call == "" {
		// Its ID is that of the call (ResponseInputItemLocalShellCallOutputParam of the SDK).
		item.call, item.id = item.id, ""
	}
	if item.id != "" && about.prefix != "" && !strings.HasPrefix(item.id, about.prefix) {
		c.fail(path+".id", "invalid_value", "Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", path,
			item.id, about.prefix)
	}

	c.within(path, item, o)
	return item
}

func responsesKinds() []string {
	var kinds []string
	for kind := range responsesItems {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// within checks the content of an item.
func (c *responsesCheck) within(path string, item responsesRequestItem, o object) {
	switch item.kind {
	case "message":
		if c.choice(path+".role", item.role, "assistant", "system", "developer", "user") {
			c.parts(path+".content", item.role, o["content"])
		}
	case "reasoning":
		c.reasoning(path, item.id, o)
	case "function_call_output", "custom_tool_call_output":
		c.parts(path+".output", "user", o["output"])
	case "additional_tools", "tool_search_output":
		c.checkTools(path+".tools", o["tools"])
	case "item_reference":
		// The stored item may be a call, so an output need not have its call here.
		c.unseen = true
		if !c.stored {
			c.notPersisted(item.id)
		}
	}
}

func (c *responsesCheck) notPersisted(id string) {
	c.failAs(http.StatusNotFound, "input", "",
		"Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again "+
			"with `store` set to true, or remove this item from your input.", id)
}

func (c *responsesCheck) reasoning(path, id string, o object) {
	// Reasoning in plain text is from a model with open weights. OpenAI accepts only an empty list.
	if o["content"] != nil {
		c.atMost(path+".content", len(c.list(path+".content", "objects", o["content"])), 0)
	}
	listOf("objects",
		shaped(openAIMembers{"type": oneOf("summary_text"), "text": aString}, "type", "text"))(&c.openAICheck,
		path+".summary", o["summary"])

	// Without its encrypted content, the API must find the reasoning under its ID among the stored items.
	switch {
	case o["encrypted_content"] != nil:
	case id == "":
		c.fail(path+".id", "missing_required_parameter", "Missing required parameter: '%s.id'.", path)
	case !c.stored:
		c.notPersisted(id)
	}
}

var (
	responsesInput = map[string]openAIMembers{
		"input_text": {"type": nil, "text": aString, "prompt_cache_breakpoint": openAIPoint},
		"input_image": {"type": nil, "image_url": aString, "file_id": aString,
			"detail": oneOf("low", "high", "auto", "original"), "prompt_cache_breakpoint": openAIPoint},
		"input_file": {"type": nil, "file_id": aString, "file_data": aString, "file_url": aString, "filename": aString, "detail": oneOf("low", "high", "auto"),
			"prompt_cache_breakpoint": openAIPoint},
	}
	responsesOutput = map[string]openAIMembers{
		"output_text": {"type": nil, "text": aString, "annotations": listOf("objects", anyValue), "logprobs": nil},
		"refusal":     {"type": nil, "refusal": aString},
	}
)

func anyValue(*openAICheck, string, jsontext.Value) {}

// parts checks the content of a message, or the output of a call.
func (c *responsesCheck) parts(path, role string, v jsontext.Value) {
	switch v.Kind() {
	case jsontext.KindInvalid:
		return // absent
	case '"':
		c.prompt.WriteString(text(v) + "\n")
		return
	case '[':
	default:
		c.wrong(path, "one of a string or array of objects", v)
		return
	}

	known, names := responsesInput, []string{"input_text", "input_image", "input_file"}
	if role == "assistant" {
		known, names = responsesOutput, []string{"output_text", "refusal"}
	}

	for i, v := range c.list(path, "objects", v) {
		at := fmt.Sprintf("%s[%d]", path, i)
		kind := text(c.objectOf(at, v, "type")["type"])
		if !c.choice(at, kind, names...) {
			return
		}

		o := c.object(at, v, known[kind])
		c.prompt.WriteString(text(o["text"]) + "\n")
		c.part(at, kind, v, o)
	}
}

func (c *responsesCheck) part(path, kind string, v jsontext.Value, o object) {
	switch kind {
	case "input_text", "output_text":
		c.required(path, v, o, "text")
	case "refusal":
		c.required(path, v, o, "refusal")
	// An uploaded image or file is known by its ID. A linked file has a URL.
	case "input_image":
		if o["file_id"] == nil {
			c.required(path, v, o, "image_url")
			c.image(path+".image_url", text(o["image_url"]))
		}
	case "input_file":
		if o["file_id"] == nil && o["file_url"] == nil {
			c.required(path, v, o, "file_data", "filename")
			c.file(path+".file_data", text(o["file_data"]))
		}
	}
}

func (c *responsesCheck) uniqueItems(items []responsesRequestItem) {
	seen := map[string]bool{}
	for _, item := range items {
		if item.id != "" && seen[item.id] {
			c.fail("input", "",
				"Duplicate item found with id %s. Remove duplicate items from your input and try again.", item.id)
		}
		seen[item.id] = true
	}
}

// led checks that each reasoning item is followed by its outcome: more reasoning, a call, or an assistant's message.
func (c *responsesCheck) led(items []responsesRequestItem) {
	for i, item := range items {
		if item.kind == "reasoning" && (i+1 == len(items) || !leads(item, items[i+1])) {
			c.fail("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.",
				item.id)
		}
	}
}

// leads reports whether next can be the outcome of a reasoning item. If the reasoning has an ID, a message must have
// one too: a message without one has another origin. A call has its call ID.
func leads(reasoning, next responsesRequestItem) bool {
	switch next.kind {
	case "message":
		return next.role == "assistant" && (next.id != "" || reasoning.id == "")
	case "reasoning", "item_reference", "compaction", "mcp_approval_request", "program":
		return true
	}
	return strings.HasSuffix(next.kind, "_call")
}

// responsesPairs lists the calls in need of an output, with their names in the API's errors.
var responsesPairs = []struct{ call, output, named string }{
	{"function_call", "function_call_output", "function call"},
	{"custom_tool_call", "custom_tool_call_output", "custom tool call"},
	{"computer_call", "computer_call_output", "computer call"},
	{"local_shell_call", "local_shell_call_output", "local shell call"},
	{"shell_call", "shell_call_output", "shell call"},
	{"apply_patch_call", "apply_patch_call_output", "apply patch call"},
}

// answered checks that every call has its output, with its caller, and every output its call.
func (c *responsesCheck) answered(items []responsesRequestItem) {
	for _, pair := range responsesPairs {
		open, called := map[string]bool{}, map[string]bool{}
		caller := map[string]string{}
		for _, item := range items {
			switch item.kind {
			case pair.call:
				if called[item.call] {
					c.fail("input", "", "Duplicate %s found with call_id %s.", pair.named, item.call)
				}
				open[item.call], called[item.call], caller[item.call] = true, true, item.caller
			case pair.output:
				// The call may be stored by the API. But a call in this request has only one output.
				if !open[item.call] && (called[item.call] || !c.unseen) {
					c.fail("input", "", "No tool call found for %s output with call_id %s.", pair.named, item.call)
				}
				delete(open, item.call)

				// A program continues with the outputs that name it (openai/openai-agents-python, pull request 3833). What
				// the API does with others was not observed, so none is accepted.
				if called[item.call] && item.caller != caller[item.call] {
					c.fail("input", "", "The %s output with call_id %s has another caller than its call.", pair.named, item.call)
				}
			}
		}

		for _, item := range items {
			if item.kind == pair.call && open[item.call] {
				c.fail("input", "", "No tool output found for %s %s.", pair.named, item.call)
			}
		}
	}
}
