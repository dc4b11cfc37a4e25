package openai

import (
	"reflect"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/stretchr/testify/require"
)

// responsesRecording is a request of a cassette, imported.
type responsesRecording struct {
	model    string
	options  Options
	dag      dag.DAG
	messages []content.Message
}

// importResponses imports a request. What ImportResponses puts into the options of the request goes into those of the provider, as a
// program would have it.
func importResponses(t testing.TB, body string) responsesRecording {
	t.Helper()
	req, model, err := ImportResponses([]byte(body))
	require.NoError(t, err)
	r := responsesRecording{
		model: model, messages: req.Messages, dag: dag.New(), options: Options{Options: req.Options, NoStream: !asksForStream(t, body)},
	}
	for _, prompt := range req.System {
		r.dag = r.dag.System(prompt)
	}
	for _, def := range req.Tools {
		r.dag = r.dag.Tools(def)
	}
	for _, m := range req.Messages {
		if m.Role == content.User {
			r.dag = r.dag.User("", m.Blocks.Slice()...)
		} else {
			r.dag = r.dag.Assistant("", m.Blocks.Slice()...)
		}
	}
	require.NoError(t, r.dag.Err())
	return r
}

// The differences between a request that was recorded and the one that Plait makes of the same conversation that do not count,
// because the model sees the same:
//
//   - the order of members, and space between them; "stream", which says how the answer comes;
//   - "store" true and no "include", which are their absence, and members that are null;
//   - "input" that is a string, which is one message of the user; content that is a string, which is one part; "type" of a message;
//     several messages of the user in a row, which are one; an output of one text, which is a string;
//   - system prompts in messages of the role system or developer at the front, which are "instructions"; several are joined;
//   - "strict" true of a function, which is its absence; "detail" auto of a picture, the same; empty lists of tools;
//   - empty annotations, logprobs and content of reasoning, and a caller of type "direct", which are their absence.
//
// What stands inside arguments, schemas and opaque items must be equal as it is.

func decoded(t testing.TB, body string) map[string]any {
	t.Helper()
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &r, wire.Lenient), body)
	return r
}

// normalResponses is a request without those differences.
func normalResponses(t testing.TB, body string) map[string]any {
	t.Helper()
	r := decoded(t, body)
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
		normalTool(tool.(map[string]any))
	}
	system, items := normalItems(r["input"])
	if said, ok := r["instructions"].(string); ok {
		system = append([]string{said}, system...)
	}
	if delete(r, "instructions"); len(system) > 0 {
		r["instructions"] = strings.Join(system, "\n\n")
	}
	r["input"] = items
	return r
}

func normalTool(tool map[string]any) {
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

// normalItems returns the system prompts at the front, and the other items.
func normalItems(input any) (system []string, items []any) {
	list, ok := input.([]any)
	if !ok {
		list = []any{map[string]any{"role": "user", "content": input}}
	}
	for _, one := range list {
		item := one.(map[string]any)
		normalItem(item)
		role, _ := item["role"].(string)
		before, _ := last(items).(map[string]any)
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

func normalItem(item map[string]any) {
	withoutNull(item)
	if item["type"] == "message" {
		delete(item, "type")
	}
	switch item["type"] {
	case nil:
		kind := "input_text"
		if item["role"] == "assistant" {
			kind = "output_text"
		}
		item["content"] = normalParts(item["content"], kind)
	case "reasoning":
		if list, ok := item["content"].([]any); ok && len(list) == 0 {
			delete(item, "content")
		}
	case "function_call":
		if caller, ok := item["caller"].(map[string]any); ok && caller["type"] == "direct" {
			delete(item, "caller")
		}
	case "function_call_output", "custom_tool_call_output":
		item["output"] = normalParts(item["output"], "input_text")
	}
}

func normalParts(v any, kind string) []any {
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

func sameValue(a, b any) bool { return reflect.DeepEqual(a, b) }
