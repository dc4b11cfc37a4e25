package anthropic

import (
	"io"
	"reflect"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/stretchr/testify/require"
)

// The differences between a request that was recorded and the one that Plait makes of the same conversation that do not count,
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

// normalRequest is a request without them.
func normalRequest(t testing.TB, body string) map[string]any {
	t.Helper()
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &r, wire.Lenient), body)
	delete(r, "stream")
	if tools, ok := r["tools"].([]any); ok {
		for _, tool := range tools {
			delete(tool.(map[string]any), "cache_control")
		}
		if len(tools) == 0 {
			delete(r, "tools")
		}
	}
	if system := normalContent(r["system"]); len(system) > 0 {
		r["system"] = system
	} else {
		delete(r, "system")
	}
	for _, m := range r["messages"].([]any) {
		message := m.(map[string]any)
		message["content"] = normalContent(message["content"])
	}
	return r
}

func normalContent(v any) []any {
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
			normalContent(inner)
		}
		if block["type"] == "tool_result" {
			if block["is_error"] == false {
				delete(block, "is_error")
			}
			if inner := normalContent(block["content"]); len(inner) > 0 && block["content"] != "" {
				block["content"] = inner
			} else {
				delete(block, "content")
			}
		}
	}
	return list
}

// requireSame shows the difference only where there is one, because to show it takes long.
func requireSame(t testing.TB, want, got map[string]any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		require.Equal(t, want, got)
	}
}

func readAll(t testing.TB, r io.Reader) string {
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(b)
}
