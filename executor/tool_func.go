package executor

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/schema"
)

// Func returns a tool that calls a function. It infers the schema of the arguments from In: a struct (struct{} for a
// tool without arguments) or a map with string keys. Arguments are decoded strictly, by the rules of encoding/json/v2:
// names are case-sensitive, and an unknown name or a duplicate one is refused.
//
//   - A field is required unless it is a pointer, or its tag has the option omitempty or omitzero. If a model sends
//     null for a field that is not required, the field is not set.
//   - The tag `jsonschema:"…"` describes the field to the model.
//   - The tag `enum:"a,b,c"` lists the values of a field, or of the elements of a slice or map. A type lists the values
//     of all its fields by a method Enum() []any.
//   - Structs, slices, arrays, maps and embedded structs nest. Members unknown to the schema are refused.
//   - time.Time is an RFC 3339 string, time.Duration a string such as "90s", []byte a base64 string, and a type with an
//     UnmarshalText method a string. A type with an UnmarshalJSON method, or any, accepts any value.
//
// Arguments are checked against the schema before fn is called; the model receives all problems at once. [ResultOf]
// converts the return value of fn to a result. An error becomes an error result.
//
// Some types cannot be In. They have no schema (a recursive type, a channel), or can never be decoded (a field of an
// interface type with methods, two fields with one JSON name, the tag option string). The error is then the tool's Err:
// dag.DAG.Tools returns it, with content.ErrTool in its chain.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error)) Tool {
	b := &bound{def: content.Tool{Name: name, Description: safetext.UTF8(description)}, nulls: true}
	b.run = func(ctx context.Context, call Call) (Result, error) {
		var in In
		if err := schema.Decode(call.Input, &in); err != nil {
			return Result{}, &argumentError{tool: name, problems: []string{"root: " + err.Error()}, input: call.Input}
		}
		out, err := fn(ctx, in)
		if err != nil {
			return Result{}, err
		}
		return ResultOf(out)
	}

	b.check, b.err = inferSchema(reflect.TypeFor[In]())
	switch {
	case fn == nil:
		b.err = errors.New("its function is nil")
	case b.err == nil:
		b.def.Schema, b.err = b.check.JSON()
	}
	if b.err == nil {
		b.err = usable(reflect.TypeFor[Out]())
	}
	if b.err != nil {
		b.err = toolError(name, b.err)
	}
	return b
}

// usable returns an error for a type that cannot become a result, to report it when the tool is declared.
func usable(out reflect.Type) error {
	switch {
	case out == reflect.TypeFor[[]byte]():
		return errBytes
	case out.Kind() == reflect.Func || out.Kind() == reflect.Chan:
		return fmt.Errorf("it returns %s, which is not a JSON value", out)
	}
	return nil
}

// isNil reports whether v is nil, or holds a nil pointer, map or slice.
func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return r.IsNil()
	}
	return false
}
