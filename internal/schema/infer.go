package schema

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/plait-dev/plait/content"
)

// infer returns the schema of a type. The type may be other than an object.
func infer(t reflect.Type) (*jsonschema.Schema, error) {
	// The library derives a schema from the kind of a type. Some types have another JSON form. Their schemas come from
	// here.
	own := map[reflect.Type]*jsonschema.Schema{}
	special(t, own, map[reflect.Type]bool{})

	tree, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, err
	}

	if err := decodable(t, map[reflect.Type]bool{}); err != nil {
		return nil, err
	}

	return tree, refine(t, tree)
}

// OwnForm reports whether the JSON of a type is not derived from its fields, because the type has a method for it or,
// like time.Time, a known JSON form.
func OwnForm(t reflect.Type) bool { return specialSchema(t) != nil }

// decodable returns an error for a type that JSON cannot be decoded into. The map seen ends the recursion of recursive
// types.
func decodable(t reflect.Type, seen map[reflect.Type]bool) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	// A type seen before is checked by its first visit.
	if seen[t] || specialSchema(t) != nil {
		return nil
	}
	seen[t] = true

	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("nothing can be decoded into %s, an interface with methods", t)
		}
	case reflect.Slice, reflect.Array, reflect.Map:
		return decodable(t.Elem(), seen)
	case reflect.Struct:
		return decodableFields(t, seen)
	}
	return nil
}

// decodableFields is decodable for the fields of a struct. It also rejects unsupported tags and names.
func decodableFields(t reflect.Type, seen map[reflect.Type]bool) error {
	names := map[string]string{} // the names of fields by their names in JSON
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")

		// An embedded struct may be unexported: the JSON has its exported fields.
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}

		if name == "" && !field.Anonymous {
			name = field.Name
		}

		err := decodable(field.Type, seen)
		switch {
		case err != nil:
		case tag == "-,":
			err = errors.New("its tag json:\"-,\" is not supported")
		case slices.Contains(strings.Split(options, ","), "string"):
			err = errors.New("its tag option string is not supported")
		case field.Anonymous && !field.IsExported() && field.Type.Kind() == reflect.Pointer:
			err = errors.New("a pointer to an unexported struct cannot be embedded")
		case name != "" && names[name] != "":
			err = fmt.Errorf("field %s has the JSON name %q as well", names[name], name)
		}

		if err != nil {
			return fmt.Errorf("field %s of %s: %w", field.Name, t, err)
		}
		names[name] = field.Name
	}
	return nil
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

// enumerated is a type with a list of its values.
type enumerated interface{ Enum() []any }

// special finds t and the types inside t whose JSON does not follow from their kind, and adds their schemas to own.
func special(t reflect.Type, own map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	// A type may contain itself. Infer rejects it later, with a better error than endless recursion.
	if seen[t] {
		return
	}
	seen[t] = true

	// Its fields do not matter then: this is the schema of the whole value.
	if s := specialSchema(t); s != nil {
		own[t] = s
		return
	}

	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			special(t.Field(i).Type, own, seen)
		}
	case reflect.Slice, reflect.Array, reflect.Map:
		special(t.Elem(), own, seen)
	}
}

// specialSchema returns the schema of a type whose JSON does not follow from its kind, and nil for any other type.
func specialSchema(t reflect.Type) *jsonschema.Schema {
	// The order matters: time.Time has a method for decoding too, and a list of values says more than such a method.
	switch {
	case t == timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == durationType:
		return &jsonschema.Schema{Type: "string", Description: `a duration, such as "90s" or "1h30m"`}
	case t.Kind() == reflect.Interface:
		return nil
	case decodes[enumerated](t):
		values, kind := plain(reflect.New(t).Interface().(enumerated).Enum())
		return &jsonschema.Schema{Type: kind, Enum: values}
	case decodes[stdjson.Unmarshaler](t):
		return &jsonschema.Schema{}
	case decodes[encoding.TextUnmarshaler](t):
		return &jsonschema.Schema{Type: "string"}
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() == reflect.Uint8:
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	}
	return nil
}

// decodes reports whether t or *t implements T.
func decodes[T any](t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[T]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[T]())
}

// plain returns enum values as they are when decoded from JSON, and the JSON type of the last one.
func plain(values []any) ([]any, string) {
	list, kind := make([]any, len(values)), ""
	for i, v := range values {
		j, _ := content.ToJSON(v) // a value without JSON becomes null: no argument equals it
		_ = j.Decode(&list[i])
		kind = TypeOf(list[i])
	}
	return list, kind
}

// refine completes an inferred schema: pointer fields are optional, enum tags limit the values, and null is not allowed
// in place of an absent member.
func refine(t reflect.Type, s *jsonschema.Schema) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	// A null member would mean the same as an absent one.
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}

	switch {
	case t.Kind() == reflect.Struct && s.Type == "object":
		return refineFields(t, s)
	case s.Items != nil:
		return refine(t.Elem(), s.Items)
	case t.Kind() == reflect.Map && s.AdditionalProperties != nil:
		return refine(t.Elem(), s.AdditionalProperties)
	}
	return nil
}

// refineFields is refine for the properties of a struct.
func refineFields(t reflect.Type, s *jsonschema.Schema) error {
	// The fields of embedded structs are visible fields, and members of the same object.
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name != "":
			return fmt.Errorf(
				"the embedded field %s has the JSON name %q: give it a field name as well", field.Name, name)
		case field.Anonymous || !field.IsExported() || name == "-":
			continue
		case name == "":
			name = field.Name
		}

		property := s.Properties[name]
		if property == nil {
			continue
		}

		// A pointer may be nil, so its member is optional.
		if field.Type.Kind() == reflect.Pointer {
			s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
		}

		if err := refine(field.Type, property); err != nil {
			return err
		}

		if tag := field.Tag.Get("enum"); tag != "" {
			if err := limitTo(property, strings.Split(tag, ",")); err != nil {
				return fmt.Errorf("the enum of field %s: %w", field.Name, err)
			}
		}
	}
	return nil
}

// limitTo allows s, or its elements if s is a list or a map, only the given words.
func limitTo(s *jsonschema.Schema, words []string) error {
	switch {
	case s.Items != nil:
		return limitTo(s.Items, words)
	case s.Type == "object" && s.AdditionalProperties != nil:
		return limitTo(s.AdditionalProperties, words)
	}

	for _, word := range words {
		word = strings.TrimSpace(word)
		var value any = word

		// The words are JSON, unless they are strings.
		if s.Type != "string" {
			value = nil
			if err := content.JSON(word).Decode(&value); err != nil || !slices.Contains(typesOf(s), TypeOf(value)) {
				return fmt.Errorf("%q is no %s", word, s.Type)
			}
		}

		s.Enum = append(s.Enum, value)
	}
	return nil
}
