package providertest

import (
	"strings"
	"testing"
)

// A recorded request to Gemini and Plait's request for the same conversation may differ in these points. The model sees
// the same:
//
//   - the order of members, and white space between them; null members equal absent ones;
//   - the two names of each member: "file_data" and "fileData";
//   - contents of the same role in a row equal one with all their parts; a content without a role is the user's;
//   - the role of the system instruction; "model", because it is in the URL; empty objects and lists of options;
//   - parts with nothing but an empty text; "thought" false equals none; absent "args" equal empty ones;
//   - the alphabet of signatures and data: base64 or base64url, padded or not;
//   - the number of entries of "tools" for the functions, and the order of the other tools;
//   - a function's schema in "parameters", as in OpenAPI (types in capitals), or in "parametersJsonSchema"; empty
//     descriptions.
//
// Arguments, responses and schemas must be equal without these rules.

// NormalGemini returns a request to Gemini without these differences.
func NormalGemini(t testing.TB, body string) map[string]any {
	t.Helper()
	r := decodedBody(t, body)
	r = camel(r)
	delete(r, "model")

	if system, ok := r["systemInstruction"].(map[string]any); ok {
		delete(system, "role")
	}

	normalGeminiTools(r)
	r["contents"] = normalContents(r["contents"].([]any))

	for name, v := range r {
		if m, ok := v.(map[string]any); ok && len(m) == 0 {
			delete(r, name)
		}
	}
	return r
}

// camel returns the object with member names such as "fileData", and without null members.
func camel(m map[string]any) map[string]any {
	named := map[string]any{}

	for name, v := range m {
		words := strings.Split(name, "_")
		for i := 1; i < len(words); i++ {
			// Between two underscores in a row, there is an empty word.
			if words[i] != "" {
				words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
			}
		}
		if v != nil {
			named[strings.Join(words, "")] = v
		}
	}
	return named
}

func normalGeminiTools(r map[string]any) {
	entries, _ := r["tools"].([]any)
	delete(r, "tools")
	tools := map[string]any{}

	for _, entry := range entries {
		for name, v := range camel(entry.(map[string]any)) {
			if name != "functionDeclarations" {
				tools[name] = v
				continue
			}
			for _, f := range v.([]any) {
				function := camel(f.(map[string]any))

				// The schema may have two names: keep one.
				if schema, ok := function["parameters"]; ok {
					function["parametersJsonSchema"] = schema
					delete(function, "parameters")
				}
				function["parametersJsonSchema"] = lowerTypes(function["parametersJsonSchema"])
				if function["description"] == "" {
					delete(function, "description")
				}
				tools["function "+function["name"].(string)] = function
			}
		}
	}

	if len(tools) > 0 {
		r["tools"] = tools
	}
}

// lowerTypes returns a schema with its types in lower case.
func lowerTypes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if kind, ok := inner.(string); ok && name == "type" {
				inner = strings.ToLower(kind)
			}
			v[name] = lowerTypes(inner)
		}
	case []any:
		for i := range v {
			v[i] = lowerTypes(v[i])
		}
	}
	return v
}

func normalContents(list []any) []any {
	var merged []any
	last := ""
	for _, v := range list {
		c := v.(map[string]any)
		role, _ := c["role"].(string)
		if role == "" {
			role = "user"
		}

		parts := NormalGeminiParts(c["parts"])
		if role == last {
			one := merged[len(merged)-1].(map[string]any)
			one["parts"] = append(one["parts"].([]any), parts...)
			continue
		}
		merged, last = append(merged, map[string]any{"role": role, "parts": parts}), role
	}
	return merged
}

// NormalGeminiParts returns the parts of a content without these differences.
func NormalGeminiParts(v any) []any {
	list, _ := v.([]any)
	parts := []any{}
	for _, p := range list {
		part := camel(p.(map[string]any))

		if part["thought"] == false {
			delete(part, "thought")
		}

		if signature, ok := part["thoughtSignature"].(string); ok {
			part["thoughtSignature"] = normalBase64(signature)
		}
		if inline, ok := part["inlineData"].(map[string]any); ok {
			inline["data"] = normalBase64(inline["data"].(string))
		}
		if call, ok := part["functionCall"].(map[string]any); ok && call["args"] == nil {
			call["args"] = map[string]any{}
		}
		// Plait writes the text of a result as "output", also an empty one.
		if result, ok := part["functionResponse"].(map[string]any); ok && result["response"] == nil {
			result["response"] = map[string]any{"output": ""}
		}
		if file, ok := part["fileData"].(map[string]any); ok {
			part["fileData"] = camel(file)
		}

		if part["text"] == "" && len(part) == 1 {
			continue
		}

		parts = append(parts, part)
	}
	return parts
}

func normalBase64(s string) string {
	return strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
}
