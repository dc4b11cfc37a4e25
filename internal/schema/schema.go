// Package schema makes JSON Schemas of Go types and checks what a model wrote against them, in words that the model can act on.
// The arguments of tools and the form of answers are both its.
package schema

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	json "github.com/goccy/go-json/v2"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/plait-dev/plait/content"
)

// Schema is a JSON Schema, ready to check values. It is safe for concurrent use.
type Schema struct {
	tree     *jsonschema.Schema
	resolved *jsonschema.Resolved
}

func resolve(tree *jsonschema.Schema) (*Schema, error) {
	resolved, err := tree.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return &Schema{tree, resolved}, nil
}

// Parse reads a schema. One that comes back to itself for one and the same value, or that applies too many schemas to one value,
// is refused: checking against it would never end.
func Parse(text content.JSON) (*Schema, error) {
	if !text.IsObject() {
		return nil, errors.New("its schema is not a JSON object")
	}
	var tree jsonschema.Schema
	if err := stdjson.Unmarshal([]byte(text), &tree); err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	made, err := resolve(&tree)
	if err != nil {
		return nil, err
	}
	return made, newPlaces(&tree).check()
}

// Infer makes the schema of a type. What it refuses is a recursive type, a type that has no JSON, and one that no JSON can be
// decoded into; it does not panic, whatever the methods of the type do.
func Infer(t reflect.Type) (made *Schema, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the schema of %s: panic: %v", t, v)
		}
	}()
	tree, err := infer(t)
	if err != nil {
		return nil, err
	}
	return resolve(tree)
}

// Member returns the schema of an object that has one member, which s describes.
func (s *Schema) Member(name string) (*Schema, error) {
	return resolve(&jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{name: s.tree.CloneSchemas()}, Required: []string{name},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	})
}

// Type is the JSON type of all values that fit: "object", "string" …; "" where they are of several.
func (s *Schema) Type() string { return s.tree.Type }

// JSON returns the schema as it is declared.
func (s *Schema) JSON() (content.JSON, error) {
	text, err := s.tree.MarshalJSON()
	if len(s.tree.Properties) == 0 && s.tree.AdditionalProperties != nil && s.tree.AdditionalProperties.Not != nil {
		return `{"type":"object","properties":{},"additionalProperties":false}`, err // some APIs want to see properties
	}
	return Objects(content.JSON(text)), err
}

// Check says how values are checked.
type Check struct {
	// Nulls lets null stand for a member that is not required.
	Nulls bool
	// Unknown is what is said of a member that the schema does not know, such as "is not an argument of this tool".
	Unknown string
}

// Problems lists what is wrong with a value, each with its place; nothing when it fits.
func (s *Schema) Problems(j content.JSON, c Check) []string {
	var value any
	if err := j.Decode(&value); err != nil {
		return []string{"root: " + err.Error()}
	}
	if c.Nulls {
		dropNulls(s.tree, value)
	}
	err := s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	problems := c.explain(s.tree, "", value)
	if len(problems) == 0 {
		problems = []string{"root: " + strings.TrimPrefix(err.Error(), "validating root: ")}
	}
	return problems
}

// Decode stores j in *v by the rules that an inferred schema tells of: names match case by case, a name that is not known or
// given twice is an error, and a time.Duration is a string such as "90s".
func Decode(j content.JSON, v any) error {
	return json.Unmarshal([]byte(j), v, json.RejectUnknownMembers(true), durations)
}

var durations = json.WithUnmarshalers(json.UnmarshalFunc(func(text []byte, d *time.Duration) error {
	var s *string
	if err := json.Unmarshal(text, &s); err != nil || s == nil {
		return err
	}
	parsed, err := time.ParseDuration(*s)
	*d = parsed
	return err
}))
