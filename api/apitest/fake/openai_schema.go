package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/internal/safetext"
)

// openAISchema checks a JSON schema as OpenAI's APIs do.
type openAISchema struct {
	c           *openAICheck
	owner       string // such as "function 'f'"
	param, code string
	strict      bool
	root        jsontext.Value
}

func (s *openAISchema) fail(format string, args ...any) {
	s.c.fail(s.param, s.code, "Invalid schema for %s: %s", s.owner, fmt.Sprintf(format, args...))
}

// in fails the check for a part of the schema. Context is its position.
func (s *openAISchema) in(context []string, format string, args ...any) {
	var quoted []string
	for _, step := range context {
		quoted = append(quoted, "'"+step+"'")
	}
	tuple := strings.Join(quoted, ", ")
	if len(quoted) == 1 {
		tuple += ","
	}
	s.fail("In context=(%s), %s", tuple, fmt.Sprintf(format, args...))
}

// openAISubschema holds the keywords of a schema used by the rules.
type openAISubschema struct {
	Type                 jsontext.Value            `json:"type"`
	Ref                  string                    `json:"$ref"`
	Properties           map[string]jsontext.Value `json:"properties"`
	Required             []string                  `json:"required"`
	AdditionalProperties jsontext.Value            `json:"additionalProperties"`
	Items                jsontext.Value            `json:"items"`
	AnyOf                []jsontext.Value          `json:"anyOf"`
	Defs                 map[string]jsontext.Value `json:"$defs"`
	Enum                 []jsontext.Value          `json:"enum"`
	Const                jsontext.Value            `json:"const"`
}

// check checks the schema as a whole: it must describe an object.
func (s *openAISchema) check() {
	var top object
	if s.root.Kind() != '{' || json.Unmarshal(s.root, &top) != nil {
		s.fail("%s is not of type 'object', 'boolean'.", s.root)
		return
	}

	// The API's text calls a missing type None.
	kind := "None"
	if v, ok := top["type"]; ok {
		kind = strings.Trim(string(v), `"`)
	}

	if kind != "object" {
		s.fail(`schema must be a JSON Schema of 'type: "object"', got 'type: "%s"'.`, kind)
	}

	for _, union := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if _, ok := top[union]; ok {
			s.fail("schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.")
		}
	}

	// The schema as a whole needs properties, even if they are empty.
	if _, ok := top["properties"]; !ok {
		s.in(nil, "object schema missing properties.")
	}
	s.sub(nil, s.root)
}

// maxSchemaDepth is more than the depth of any schema accepted by the API.
const maxSchemaDepth = 100

// sub checks a part of the schema and, recursively, its own parts.
func (s *openAISchema) sub(context []string, v jsontext.Value) {
	var sub openAISubschema
	// A schema of true or false has no parts.
	if v.Kind() == 't' || v.Kind() == 'f' {
		return
	}

	if len(context) > maxSchemaDepth {
		s.fail("Expected at most 10 levels of nesting.")
		return
	}
	if v.Kind() != '{' || json.Unmarshal(v, &sub) != nil {
		s.in(context, "%s is not of type 'object', 'boolean'.", shortly(v))
		return
	}

	if isType(sub.Type, "array") && sub.Items == nil {
		s.in(context, "array schema missing items.")
	}
	if s.strict {
		s.strictly(context, v, sub)
	}

	down := func(v jsontext.Value, steps ...string) { s.sub(slices.Concat(context, steps), v) }
	for _, name := range slices.Sorted(maps.Keys(sub.Properties)) {
		down(sub.Properties[name], "properties", name)
	}
	if sub.Items.Kind() == '{' {
		down(sub.Items, "items")
	}
	for i, one := range sub.AnyOf {
		down(one, "anyOf", fmt.Sprint(i))
	}
	for _, name := range slices.Sorted(maps.Keys(sub.Defs)) {
		down(sub.Defs[name], "$defs", name)
	}
}

// notStrict lists the keywords forbidden in strict schemas.
var notStrict = []string{"allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "patternProperties",
	"propertyNames", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedProperties",
	"unevaluatedItems"}

// strictly checks the rules for each part of a strict schema.
func (s *openAISchema) strictly(context []string, v jsontext.Value, sub openAISubschema) {
	var all object
	_ = json.Unmarshal(v, &all) // it is an object

	for _, keyword := range notStrict {
		if _, ok := all[keyword]; ok {
			s.in(context, "'%s' is not permitted.", keyword)
		}
	}

	if sub.Ref != "" && !s.resolves(sub.Ref) {
		s.in(context, "reference can only point to definitions defined at the top level of the schema.")
	}
	// The type of the whole schema was checked before.
	if len(context) > 0 && sub.Type == nil && sub.Ref == "" && sub.AnyOf == nil && sub.Enum == nil && sub.Const == nil {
		s.in(context, "schema must have a 'type' key.")
	}
	if !isType(sub.Type, "object") {
		return
	}

	if string(sub.AdditionalProperties) != "false" {
		s.in(context, "'additionalProperties' is required to be supplied and to be false.")
	}

	const every = "'required' is required to be supplied and to be an array including every key in properties. "
	for _, name := range slices.Sorted(maps.Keys(sub.Properties)) {
		if !slices.Contains(sub.Required, name) {
			s.in(context, every+"Missing '%s'.", name)
		}
	}

	for _, name := range sub.Required {
		if _, ok := sub.Properties[name]; !ok {
			s.in(context, every+"Extra required key '%s' supplied.", name)
		}
	}
}

// resolves reports whether a reference points to the schema itself or to one of its definitions.
func (s *openAISchema) resolves(ref string) bool {
	if ref == "#" {
		return true
	}
	var top object
	_ = json.Unmarshal(s.root, &top) // it is an object
	kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
	var defs object
	return (kind == "$defs" || kind == "definitions") && json.Unmarshal(top[kind], &defs) == nil && defs[name] != nil
}

// isType reports whether a schema's type is kind, or includes it.
func isType(v jsontext.Value, kind string) bool {
	if v.Kind() == '[' {
		var kinds []string
		return json.Unmarshal(v, &kinds) == nil && slices.Contains(kinds, kind)
	}
	return text(v) == kind
}

// shortly returns the beginning of a value, for an error text.
func shortly(v jsontext.Value) string {
	return safetext.Cut(string(v), 100)
}
