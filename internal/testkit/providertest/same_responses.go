package providertest

import (
	"maps"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
)

// A recorded request of Responses and Plait's request for the same conversation may differ in these points. The model
// sees the same:
//
//   - the order of members, and white space between them; "stream", for the form of the response;
//   - "store" true, an empty "include" and null members equal absent ones;
//   - "input": a string equals one message of the user; content: a string equals one part; "type" of a message; several
//     messages of the user in a row equal one; an output of one text equals a string;
//   - system prompts in messages of the role system or developer at the front equal "instructions"; several are joined;
//   - "strict" true of a function, and "detail" auto of an image, equal absent ones; empty lists of tools;
//   - empty annotations, logprobs and content of reasoning, and a caller of type "direct", equal absent ones.
//
// Arguments, schemas and opaque items must be equal without these rules.

// NormalResponses returns a request of Responses without these differences.
func NormalResponses(t testing.TB, body string) map[string]any {
	t.Helper()
	r := decodedBody(t, body)
	delete(r, "stream")
	withoutNull(r)

	if r["store"] == true {
		delete(r, "store")
	}
	for _, name := range []string{"include", "tools"} {
		if list, ok := r[name].([]any); ok && len(list) == 0 {
			delete(r, name)
		}
	}

	tools, _ := r["tools"].([]any)
	for _, tool := range tools {
		normalResponsesTool(tool.(map[string]any))
	}

	// System prompts may be messages at the front, instructions, or both.
	system, items := normalResponsesItems(r["input"])
	if said, ok := r["instructions"].(string); ok {
		system = append([]string{said}, system...)
	}
	if delete(r, "instructions"); len(system) > 0 {
		r["instructions"] = strings.Join(system, "\n\n")
	}

	r["input"] = items
	return r
}

func normalResponsesTool(tool map[string]any) {
	withoutNull(tool)
	if tool["strict"] == true {
		delete(tool, "strict")
	}
	if tool["description"] == "" {
		delete(tool, "description")
	}
}

func withoutNull(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if inner == nil {
				delete(v, name)
			}
			withoutNull(inner)
		}
	case []any:
		for _, inner := range v {
			withoutNull(inner)
		}
	}
}

// normalResponsesItems returns the system prompts at the front of the input, and the other items.
func normalResponsesItems(input any) (system []string, items []any) {
	list, ok := input.([]any)
	if !ok {
		list = []any{map[string]any{"role": "user", "content": input}}
	}

	for _, one := range list {
		item := one.(map[string]any)
		NormalResponsesItem(item)

		role, _ := item["role"].(string)
		before, _ := last(items).(map[string]any)

		// Only system prompts at the front equal instructions: a later one stays an item.
		switch {
		case len(items) == 0 && (role == "system" || role == "developer"):
			for _, part := range item["content"].([]any) {
				system = append(system, part.(map[string]any)["text"].(string))
			}
		case role == "user" && before["role"] == "user":
			before["content"] = append(before["content"].([]any), item["content"].([]any)...)
		default:
			items = append(items, item)
		}
	}
	return system, items
}

func last(items []any) any {
	if len(items) == 0 {
		return nil
	}
	return items[len(items)-1]
}

// NormalResponsesItem removes these differences from an item.
func NormalResponsesItem(item map[string]any) {
	withoutNull(item)
	if item["type"] == "message" {
		delete(item, "type")
	}

	switch item["type"] {
	// An item without a type is a message.
	case nil:
		kind := "input_text"
		if item["role"] == "assistant" {
			kind = "output_text"
		}
		item["content"] = normalResponsesParts(item["content"], kind)
	case "reasoning":
		if list, ok := item["content"].([]any); ok && len(list) == 0 {
			delete(item, "content")
		}
	case "function_call":
		if caller, ok := item["caller"].(map[string]any); ok && caller["type"] == "direct" {
			delete(item, "caller")
		}
	case "function_call_output", "custom_tool_call_output":
		item["output"] = normalResponsesParts(item["output"], "input_text")
	}
}

func normalResponsesParts(v any, kind string) []any {
	if said, ok := v.(string); ok {
		return []any{map[string]any{"type": kind, "text": said}}
	}
	list, _ := v.([]any)
	for _, one := range list {
		part := one.(map[string]any)
		withoutNull(part)

		for _, name := range []string{"annotations", "logprobs"} {
			if empty, ok := part[name].([]any); ok && len(empty) == 0 {
				delete(part, name)
			}
		}

		if part["type"] == "input_image" && part["detail"] == "auto" {
			delete(part, "detail")
		}
	}
	return list
}

// A program may send a response back without the parts not needed by the API. ResponsesSentBack ignores these, beyond
// the differences of NormalResponses:
//
//   - the "id" and "status" of items;
//   - annotations and logprobs of texts, and the additions of "include" to an item: the sources of a search, the
//     outputs of code;
//   - the bytes of arguments, if they are the same JSON.

// ResponsesSentBack returns a normal request without the optional parts of responses.
func ResponsesSentBack(request map[string]any) map[string]any {
	// Items are cloned: the caller's request stays as it is.
	var items []any
	for _, one := range request["input"].([]any) {
		item := maps.Clone(one.(map[string]any))
		delete(item, "id")
		delete(item, "status")

		switch item["type"] {
		case "function_call":
			var arguments any
			if json.Unmarshal([]byte(item["arguments"].(string)), &arguments) == nil {
				item["arguments"] = arguments
			}
		case "code_interpreter_call":
			delete(item, "outputs")
		case "web_search_call":
			if action, ok := item["action"].(map[string]any); ok {
				action = maps.Clone(action)
				delete(action, "sources")
				item["action"] = action
			}
		}

		if parts, ok := item["content"].([]any); ok && item["role"] == "assistant" {
			item["content"] = withoutRemarks(parts)
		}

		items = append(items, item)
	}

	request = maps.Clone(request)
	request["input"] = items
	return request
}

func withoutRemarks(parts []any) []any {
	var all []any
	for _, one := range parts {
		part := maps.Clone(one.(map[string]any))
		delete(part, "annotations")
		delete(part, "logprobs")
		all = append(all, part)
	}
	return all
}
