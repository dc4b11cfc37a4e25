package providertest

import (
	"testing"
)

// The differences between a request of Chat Completions that was recorded and the one that Plait makes of the same conversation that do not count,
// because the model sees the same:
//
//   - the order of members, and space between them;
//   - content that is a string, which is one text part; content of an assistant that is null or empty, which is its absence;
//   - refusal null and annotations that are empty, which are their absence;
//   - where system prompts stand among the messages: a conversation of Plait has them apart, and they are sent in front;
//   - the name in a tool's message, which the API does not know;
//   - "stream", which says how the answer comes, and that a stream is to tell the usage;
//   - a tool's strict false and empty description, which are their absence.
//
// What stands inside arguments and schemas must be equal as it is; arguments are compared byte for byte.

// NormalChat is a request of Chat Completions without them.
func NormalChat(t testing.TB, body string) map[string]any {
	t.Helper()
	r := decodedBody(t, body)
	delete(r, "stream")
	delete(r, "stream_options")
	var messages, system []any
	for _, m := range r["messages"].([]any) {
		message := NormalChatMessage(m.(map[string]any))
		if message["role"] == "system" {
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

// NormalChatMessage is a message without them.
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
	if said := listOf(m["content"]); len(said) == 0 || m["role"] == "assistant" && said[0].(map[string]any)["text"] == "" {
		delete(m, "content")
	}
	return m
}
