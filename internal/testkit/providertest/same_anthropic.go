package providertest

import (
	"reflect"
	"testing"
)

// A recorded request to Anthropic and Plait's request for the same conversation may differ in these points. The model
// sees the same:
//
//   - the order of members, and white space between them;
//   - content and system: a string equals one text block;
//   - cache_control on blocks and tools: it controls caching only, and Plait places its own;
//   - is_error false, or an empty content of a tool result, equals an absent one;
//   - citations null equals none; a caller of type "direct" equals none, because every call of the model itself has it;
//   - "stream": it selects the form of the response;
//   - empty lists of tools and system prompts equal absent ones.
//
// Tool inputs, schemas and other opaque blocks must be equal without these rules.

// NormalAnthropic returns a request to Anthropic without these differences.
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

// NormalAnthropicContent returns the content of a message without these differences.
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
			// An empty string is now one empty text block, but equals absent content.
			if inner := NormalAnthropicContent(block["content"]); len(inner) > 0 && block["content"] != "" {
				block["content"] = inner
			} else {
				delete(block, "content")
			}
		}
	}
	return list
}
