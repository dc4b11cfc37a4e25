package providertest

import (
	"reflect"
	"testing"
)

// The differences between a request to Anthropic that was recorded and the one that Plait makes of the same conversation that do not count,
// because the model sees the same:
//
//   - the order of members, and space between them;
//   - content and system that is a string, which is one text block;
//   - cache_control on blocks and tools: it says what is cached, not what is read, and Plait places its own;
//   - is_error false, which is its absence; and content of a tool result that is empty, the same;
//   - citations null, which is their absence; and a caller of type "direct", which every call has that a model makes itself;
//   - "stream", which says how the answer comes;
//   - empty lists of tools and system prompts, which are their absence.
//
// What stands inside tool inputs, schemas and other opaque blocks must be equal as it is.

// NormalAnthropic is a request to Anthropic without them.
func NormalAnthropic(t testing.TB, body string) map[string]any {
	t.Helper()
	r := decodedBody(t, body)
	delete(r, "stream")
	if tools, ok := r["tools"].([]any); ok {
		for _, tool := range tools {
			delete(tool.(map[string]any), "cache_control")
		}
		if len(tools) == 0 {
			delete(r, "tools")
		}
	}
	if system := NormalAnthropicContent(r["system"]); len(system) > 0 {
		r["system"] = system
	} else {
		delete(r, "system")
	}
	for _, m := range r["messages"].([]any) {
		message := m.(map[string]any)
		message["content"] = NormalAnthropicContent(message["content"])
	}
	return r
}

// NormalAnthropicContent is the content of a message without them.
func NormalAnthropicContent(v any) []any {
	if s, ok := v.(string); ok {
		return []any{map[string]any{"type": "text", "text": s}}
	}
	list, _ := v.([]any)
	for _, b := range list {
		block := b.(map[string]any)
		delete(block, "cache_control")
		if block["citations"] == nil {
			delete(block, "citations")
		}
		if reflect.DeepEqual(block["caller"], map[string]any{"type": "direct"}) {
			delete(block, "caller")
		}
		if inner, ok := block["content"].([]any); ok && block["type"] == "mcp_tool_result" {
			NormalAnthropicContent(inner)
		}
		if block["type"] == "tool_result" {
			if block["is_error"] == false {
				delete(block, "is_error")
			}
			if inner := NormalAnthropicContent(block["content"]); len(inner) > 0 && block["content"] != "" {
				block["content"] = inner
			} else {
				delete(block, "content")
			}
		}
	}
	return list
}
