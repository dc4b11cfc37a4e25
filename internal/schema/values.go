package schema

import (
	"io"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
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

// typesOf returns the values of TypeOf that the keyword type accepts, nil for all of them. An integer is a number, too.
func typesOf(s *jsonschema.Schema) []string {
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if slices.Contains(types, "number") {
		types = append(slices.Clone(types), "integer")
	}
	return types
}

// values are the values of an enum or a const.
type values struct {
	scalars map[any]bool
	others  []any // objects and lists
	steps   int64 // of a comparison with others
}

func newValues(all []any) *values {
	v := &values{scalars: map[any]bool{}}
	for _, each := range all {
		switch each.(type) {
		case map[string]any, []any:
			v.others, v.steps = append(v.others, each), v.steps+size(each)
		default:
			v.scalars[each] = true
		}
	}
	return v
}

// size returns the number of values in a value, itself included.
func size(value any) int64 {
	n := int64(1)
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			n += size(member)
		}
	case []any:
		for _, element := range value {
			n += size(element)
		}
	}
	return n
}

// among reports whether value equals one of the values.
func (c *checker) among(all *values, value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		same := func(each any) bool { return jsonschema.Equal(each, value) }
		return c.spend(all.steps) && slices.ContainsFunc(all.others, same)
	}
	return all.scalars[value]
}

// unique reports whether the elements of list differ. The library compares them, by their hashes.
func (c *checker) unique(list []any) bool {
	return c.weigh(list) && uniqueItems().Validate(list) == nil
}

var uniqueItems = sync.OnceValue(func() *jsonschema.Resolved {
	made, _ := (&jsonschema.Schema{UniqueItems: true}).Resolve(nil) // never fails
	return made
})

// weigh spends the steps of hashing value. It reports whether the check continues.
func (c *checker) weigh(value any) bool {
	const stepsHash = 5
	ok := c.spend(stepsHash)
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			ok = ok && c.weigh(member)
		}
	case []any:
		for _, element := range value {
			ok = ok && c.weigh(element)
		}
	}
	return ok
}

// matches reports whether text matches p. A long match ends with the context.
func (c *checker) matches(p *pattern, text string) bool {
	steps := 1 + int64(len(text))*p.steps
	switch {
	case !c.spend(steps):
		return false
	case steps < stepsLook:
		return p.MatchString(text)
	}
	found := p.MatchReader(&runes{c, text, 0})
	return found && !c.over
}

// runes reads a text for a regular expression.
type runes struct {
	c    *checker
	text string
	next int
}

// ReadRune implements io.RuneReader. It looks at the context from time to time.
func (r *runes) ReadRune() (rune, int, error) {
	const each = 1000
	if r.next%each == 0 {
		r.c.ended()
	}
	if r.next++; r.text == "" || r.c.over {
		return 0, 0, io.EOF
	}
	char, size := utf8.DecodeRuneInString(r.text)
	r.text = r.text[size:]
	return char, size, nil
}
