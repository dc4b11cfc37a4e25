package providertest

import (
	"testing"
)

// A recorded request of Chat Completions and Plait's request for the same conversation may differ in these points. The
// model sees the same:
//
//   - the order of members, and white space between them;
//   - content: a string equals one text part; null or empty content of an assistant equals an absent one;
//   - refusal null and empty annotations equal absent ones;
//   - system prompts at the beginning are apart from the messages;
//   - the name in a tool's message, unknown to the API;
//   - "stream", for the form of the response, and the option to report usage in a stream;
//   - a tool's strict false and empty description equal absent ones.
//
// Arguments and schemas must be equal without these rules; arguments are compared byte for byte.

// NormalChat returns a request of Chat Completions without these differences.
func NormalChat(t testing.TB, body string) map[string]any {
	t.Helper()
	r := decodedBody(t, body)
	delete(r, "stream")
	delete(r, "stream_options")

	var messages, system []any
	for _, m := range r["messages"].([]any) {
		message := NormalChatMessage(m.(map[string]any))
		if message["role"] == "system" && len(messages) == 0 {
			system = append(system, message)
		} else {
			messages = append(messages, message)
		}
	}
	r["messages"], r["system"] = messages, system

	for _, tool := range listOf(r["tools"]) {
		function := tool.(map[string]any)["function"].(map[string]any)
		if function["strict"] == false {
			delete(function, "strict")
		}
		if function["description"] == "" {
			delete(function, "description")
		}
	}
	return r
}

func listOf(v any) []any {
	all, _ := v.([]any)
	return all
}

// NormalChatMessage returns a message without these differences.
func NormalChatMessage(m map[string]any) map[string]any {
	delete(m, "name")
	if m["refusal"] == nil {
		delete(m, "refusal")
	}
	if len(listOf(m["annotations"])) == 0 {
		delete(m, "annotations")
	}
	if s, ok := m["content"].(string); ok {
		m["content"] = []any{map[string]any{"type": "text", "text": s}}
	}
	if said := listOf(m["content"]); len(said) == 0 ||
		m["role"] == "assistant" && said[0].(map[string]any)["text"] == "" {
		delete(m, "content")
	}
	return m
}
