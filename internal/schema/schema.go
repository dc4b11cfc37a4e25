// Package schema infers JSON Schemas from Go types and checks a model's output against them. The problems are worded
// for the model. It is used for the arguments of tools and for the format of responses.
package schema

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	json "github.com/goccy/go-json/v2"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// Schema is a JSON Schema, ready to check values. It is safe for concurrent use.
type Schema struct {
	tree *jsonschema.Schema
	*index
}

func compile(tree *jsonschema.Schema) (*Schema, error) {
	x, err := newIndex(tree)
	if err != nil {
		return nil, err
	}
	return &Schema{tree, x}, nil
}

// Parse reads a schema. It rejects a schema with a cycle of references for the same value: checking a value against it
// would not end. It also rejects a schema beyond one of these limits:
//
//   - 1 MiB of text, 200 nested objects and lists, 16 MiB of JSON pointers to its subschemas
//   - 1,000,000 instructions of regular expressions
//   - 10,000 subschemas for one value
//
// A $ref is rejected in a schema with an $id inside, and so is an anchor that two subschemas have.
func Parse(text content.JSON) (*Schema, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("its schema has more than %d bytes", maxText)
	}
	if !text.IsObject() {
		return nil, errors.New("its schema is not a JSON object")
	}
	if jsonx.Depth(text) > maxDepth {
		return nil, fmt.Errorf("its schema nests deeper than %d", maxDepth)
	}
	var tree jsonschema.Schema
	if err := stdjson.Unmarshal([]byte(text), &tree); err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	return compile(&tree)
}

// Infer returns the schema of a type. It rejects a recursive type, a type without JSON, and a type that JSON cannot be
// decoded into. It does not panic, even if a method of the type does.
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
	return compile(tree)
}

// Member returns the schema of an object with one required member. The member's schema is s.
func (s *Schema) Member(name string) (*Schema, error) {
	return compile(&jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{name: s.tree.CloneSchemas()},
		Required:             []string{name},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	})
}

// Type returns the JSON type of all valid values: "object", "string" …; "" if there are several.
func (s *Schema) Type() string { return s.tree.Type }

// JSON returns the schema as it is declared.
func (s *Schema) JSON() (content.JSON, error) {
	text, err := s.tree.MarshalJSON()
	if len(s.tree.Properties) == 0 && s.tree.AdditionalProperties != nil && s.tree.AdditionalProperties.Not != nil {
		return `{"type":"object","properties":{},"additionalProperties":false}`, err // some APIs require properties
	}
	return Objects(content.JSON(text)), err
}

// Decode stores j in *v under the rules of an inferred schema: names are case-sensitive, an unknown or repeated name is
// an error, and a time.Duration is a string such as "90s".
func Decode(j content.JSON, v any) error {
	return json.Unmarshal([]byte(j), v, json.RejectUnknownMembers(true), durations)
}

// durations decodes a time.Duration from a string. null leaves it unchanged.
var durations = json.WithUnmarshalers(json.UnmarshalFunc(func(text []byte, d *time.Duration) error {
	var s *string
	if err := json.Unmarshal(text, &s); err != nil || s == nil {
		return err
	}
	parsed, err := time.ParseDuration(*s)
	*d = parsed
	return err
}))
