package schema

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

func dropNulls(s *jsonschema.Schema, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			property := s.Properties[name]
			switch {
			case property == nil && s.AdditionalProperties != nil:
				dropNulls(s.AdditionalProperties, member)
			case property == nil:
			case member == nil && property.Type != "" && !slices.Contains(s.Required, name):
				delete(value, name)
			default:
				dropNulls(property, member)
			}
		}
	case []any:
		for _, element := range value {
			if s.Items != nil {
				dropNulls(s.Items, element)
			}
		}
	}
}

// explain lists what is wrong with value, path by path, in an order that does not change. It knows the keywords that inferred
// schemas use; what it does not find, the library's own error tells.
func (c Check) explain(s *jsonschema.Schema, path string, value any) []string {
	if s.Type != "" && !fits(s.Type, value) {
		return problem(path, "must be %s, is %s", s.Type, TypeOf(value))
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return jsonschema.Equal(e, value) }) {
		return problem(path, "must be one of %s", words(s.Enum))
	}
	switch value := value.(type) {
	case map[string]any:
		return c.explainObject(s, path, value)
	case []any:
		return c.explainArray(s, path, value)
	case float64:
		switch {
		case s.Minimum != nil && value < *s.Minimum:
			return problem(path, "must be at least %v", *s.Minimum)
		case s.Maximum != nil && value > *s.Maximum:
			return problem(path, "must be at most %v", *s.Maximum)
		}
	}
	return nil
}

func (c Check) explainObject(s *jsonschema.Schema, path string, value map[string]any) (problems []string) {
	for _, name := range s.Required {
		if _, has := value[name]; !has {
			problems = append(problems, problem(join(path, name), "is required")...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		switch below := s.Properties[name]; {
		case below != nil:
			problems = append(problems, c.explain(below, join(path, name), value[name])...)
		case s.AdditionalProperties == nil:
		case s.AdditionalProperties.Not != nil:
			problems = append(problems, problem(join(path, name), "%s", c.Unknown)...)
		default:
			problems = append(problems, c.explain(s.AdditionalProperties, join(path, name), value[name])...)
		}
	}
	return problems
}

func (c Check) explainArray(s *jsonschema.Schema, path string, value []any) (problems []string) {
	switch {
	case s.MinItems != nil && len(value) < *s.MinItems:
		return problem(path, "must have at least %d items", *s.MinItems)
	case s.MaxItems != nil && len(value) > *s.MaxItems:
		return problem(path, "must have at most %d items", *s.MaxItems)
	case s.Items == nil:
		return nil
	}
	for i, element := range value {
		problems = append(problems, c.explain(s.Items, fmt.Sprintf("%s[%d]", path, i), element)...)
	}
	return problems
}

func problem(path, format string, args ...any) []string {
	if path == "" {
		path = "root"
	}
	return []string{safetext.Cut(path, 200) + ": " + fmt.Sprintf(format, args...)}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func words(values []any) string {
	j, _ := content.ToJSON(values) // they were decoded from JSON, or are strings
	return strings.Trim(strings.ReplaceAll(string(j), ",", ", "), "[]")
}

// TypeOf is the JSON Schema type of a decoded value.
func TypeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func fits(kind string, value any) bool {
	is := TypeOf(value)
	return is == kind || kind == "number" && is == "integer"
}
