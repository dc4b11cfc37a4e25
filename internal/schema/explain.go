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

// dropNulls removes optional members with the value null, in place. A property keeps its null if its schema has no
// type.
func dropNulls(s *jsonschema.Schema, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			property := s.Properties[name]
			switch {
			case property == nil && s.AdditionalProperties != nil:
				dropNulls(s.AdditionalProperties, member)
			case property == nil: // it has no schema, so its nulls may have a meaning
			case member == nil && property.Type != "" && !slices.Contains(s.Required, name):
				// A model may write null for a member it leaves out.
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

// explain returns the problems of value, path by path in a stable order. It knows the keywords of inferred schemas. For
// other keywords Problems uses the error of the JSON Schema library.
func (c Check) explain(s *jsonschema.Schema, path string, value any) []string {
	if s.Type != "" && !fits(s.Type, value) {
		return problem(path, "must be %s, is %s", s.Type, TypeOf(value))
	}

	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return jsonschema.Equal(e, value) }) {
		return problem(path, "must be one of %s", words(s.Enum))
	}

	// A value of the right type may still be wrong inside.
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
		case s.AdditionalProperties == nil: // any other member is allowed
		case s.AdditionalProperties.Not != nil: // none is: the form of inferred schemas is {"not":{}}
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

// problem returns the only problem of a value: the path, cut if it is long, and the text.
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
	j, _ := content.ToJSON(values) // never fails: the values were decoded from JSON, or are strings
	return strings.Trim(strings.ReplaceAll(string(j), ",", ", "), "[]")
}

// TypeOf returns the JSON Schema type of a decoded value. It is "integer" for a whole number.
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

// fits reports whether value is of the type kind. An integer is a number, too.
func fits(kind string, value any) bool {
	is := TypeOf(value)
	return is == kind || kind == "number" && is == "integer"
}
