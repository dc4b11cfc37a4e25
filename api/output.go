package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/schema"
)

// Schema is the form of a response in JSON. The zero value is none. Make one with [Output], or by hand from an existing
// JSON Schema; [Options.Check] validates it.
type Schema struct {
	// Name names the form, for providers that require a name: letters, digits, "_" and "-", 64 at most.
	Name string
	// JSON is its JSON Schema, an object with "type" set to "object".
	JSON content.JSON
	err  error // why Output could not infer the schema
}

// problem returns why the schema is invalid, or "".
func (s Schema) problem() string {
	switch {
	case s == Schema{}:
		return ""
	case s.err != nil:
		return s.err.Error()
	case !formNamed().MatchString(s.Name):
		return fmt.Sprintf("its name %s does not match %s", safetext.Quote(s.Name, 100), formNamed())
	}

	var top struct {
		Type string `json:"type"`
	}
	if err := s.JSON.Decode(&top); err != nil {
		return "its schema: " + err.Error()
	}
	if top.Type != "object" {
		return `the "type" of its schema is not "object"`
	}
	return ""
}

var formNamed = pattern.Of(`^[a-zA-Z0-9_-]{1,64}$`)

// Output returns the schema of a response for [Decode] to turn into a T. It is for Options.Output:
//
//	req.Options.Output = api.Output[Plan]()
//	…
//	plan, err := api.Decode[Plan](answer.Blocks.Text())
//
// The schema is inferred from T as executor.Func infers the schema of a tool's arguments:
//
//   - A field is required unless its tag has omitempty or omitzero or it is a pointer.
//   - `jsonschema:"…"` describes a field.
//   - `enum:"a,b,c"` or a method Enum() []any lists the allowed values.
//
// The schema has the name of the type, or "answer" for a type without a name of its own.
//
// Providers require an object. Any other T (a slice, a string, a number, a type with an Enum method) is wrapped in an
// object with the one member "answer". Decode unwraps it.
//
// If no schema can be inferred from T (a recursive type, a channel, any), a request with it fails with
// ErrInvalidRequest.
func Output[T any]() Schema { return formOf(reflect.TypeFor[T]()).Schema }

// OutputError reports a response not in the requested form. Its chain has io.ErrUnexpectedEOF if the response breaks off,
// mostly at a limit of tokens.
type OutputError struct {
	// Form is the name of the form, as in [Schema].
	Form string
	// Problems are the problems, each with its path, such as "steps[2].title: is required", worded for the model.
	Problems []string
	// Answer is the text of the response.
	Answer string
	// Err is the reason if there is one besides Problems, or nil.
	Err error
}

// Error returns one line with the first three problems and the number of further ones.
func (e *OutputError) Error() string {
	const limit = 3
	shown := strings.Join(e.Problems[:min(limit, len(e.Problems))], "; ")
	if more := len(e.Problems) - limit; more > 0 {
		shown += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("the response does not have the requested form: %s: %s",
		safetext.Escape(e.Form, maxShown), safetext.Escape(shown, maxShown))
}

// Unwrap returns Err.
func (e *OutputError) Unwrap() error { return e.Err }

// Decode turns a response in the form Output[T] into a T. Answer is its text: Response.Blocks.Text(), or dag.DAG.Text
// of a conversation with the response at its end.
//
//   - Decode is strict: a value is an error if it does not fit the schema. So are unknown members, names in another
//     case, and duplicate names.
//   - An optional member may be null.
//   - Space around the JSON is ignored.
//   - The JSON may be in a code block between lines of three backquotes, with other text around it, if there is only
//     one such block. Models write one if their API has no option for the form.
//
// Every error is an *[OutputError], and the T is then zero.
func Decode[T any](answer string) (T, error) {
	var value, none T
	f := formOf(reflect.TypeFor[T]())
	if err := f.decode(safetext.UTF8(answer), &value); err != nil {
		return none, err
	}
	return value, nil
}

// wrap is the name of the member around a value other than an object.
const wrap = "answer"

// form is the schema of a type.
type form struct {
	Schema
	check   *schema.Schema
	wrapped bool // the value is the member wrap of an object
}

// forms caches the forms of types: a reflect.Type to a *form.
var forms sync.Map

// formOf returns the form of a type.
func formOf(t reflect.Type) *form {
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	f, _ := forms.LoadOrStore(t, newForm(t))
	return f.(*form)
}

func newForm(t reflect.Type) *form {
	f := &form{Schema: Schema{Name: formName(t)}}
	f.check, f.err = schema.Infer(t)
	if f.err == nil && f.check.Type() == "" {
		f.err = fmt.Errorf("the JSON type of %s is not known", t)
	}

	// Providers accept only an object at the top.
	if f.err == nil && f.check.Type() != "object" {
		f.wrapped = true
		f.check, f.err = f.check.Member(wrap)
	}
	if f.err == nil {
		f.JSON, f.err = f.check.JSON()
	}
	return f
}

// unfit matches the parts of a type's name to remove from the name of a form: package paths, and characters other than
// letters, digits, "_" and "-".
var unfit = pattern.Of(`[^\[\],]*[/.]|[^a-zA-Z0-9_-]+`)

// formName returns the name of a type as the name of a form. Type arguments are part of it, without their packages.
func formName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	// A predeclared type, such as int, and a type without a name, such as a slice.
	if t.PkgPath() == "" {
		return wrap
	}

	name := strings.Trim(unfit().ReplaceAllString(t.Name(), "_"), "_")
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	if name = name[:min(len(name), 64)]; name == "" {
		return wrap
	}
	return name
}

// decode stores the answer in *value.
func (f *form) decode(answer string, value any) error {
	if f.err != nil {
		return f.fault(answer, f.err, "its type: "+f.err.Error())
	}

	text, why := jsonIn(answer)
	if why != "" {
		return f.fault(answer, nil, why)
	}
	if err := syntaxError(text); err != nil {
		return f.fault(answer, err, syntaxProblem(text, err))
	}

	// The whole text is checked before it is decoded, so the model learns of all problems at once.
	check := schema.Check{Nulls: true, Unknown: "is not a member of the form"}
	problems, _ := f.check.Problems(context.Background(), text, check) // the error is that of the context
	if len(problems) > 0 {
		return f.fault(answer, nil, problems...)
	}

	if f.wrapped {
		list, _ := jsonx.Members(text) // the error is nil: text fits the schema, so it is an object
		text, _ = jsonx.Take(list, wrap)
	}
	if err := schema.Decode(text, value); err != nil {
		return f.fault(answer, err, "root: "+err.Error())
	}
	return nil
}

// fault returns an OutputError about the answer.
func (f *form) fault(answer string, err error, problems ...string) error {
	for i, problem := range problems {
		problems[i] = safetext.Cut(problem, 1000)
	}
	return &OutputError{Form: f.Name, Problems: problems, Answer: answer, Err: err}
}

// jsonIn returns the JSON in an answer, or why there is none.
func jsonIn(answer string) (content.JSON, string) {
	text := strings.TrimSpace(answer)
	if text == "" {
		return "", "root: the response has no text"
	}
	// Backquotes inside an object belong to its texts.
	if strings.HasPrefix(text, "{") {
		return content.JSON(text), ""
	}

	switch blocks := fenced(text); len(blocks) {
	case 0:
		return content.JSON(text), ""
	case 1:
		return content.JSON(blocks[0]), ""
	default:
		return "", fmt.Sprintf("root: the response has %d fenced blocks, and must have one", len(blocks))
	}
}

// fenced returns the code blocks: the texts between lines of three backquotes. The last block may lack its end.
func fenced(text string) (blocks []string) {
	inside := false
	start, offset := 0, 0 // of the block, and of the line
	for line := range strings.Lines(text) {
		mark := strings.TrimSpace(line)
		switch {
		case !inside && strings.HasPrefix(mark, "```"):
			inside, start = true, offset+len(line)
		case inside && len(mark) >= 3 && strings.Trim(mark, "`") == "":
			inside = false
			blocks = append(blocks, text[start:offset])
		}
		offset += len(line)
	}

	if inside {
		blocks = append(blocks, text[start:])
	}
	return blocks
}

// syntaxError returns the decoder's error if j is not JSON.
func syntaxError(j content.JSON) error {
	var value jsontext.Value
	return json.Unmarshal([]byte(j), &value)
}

// syntaxProblem returns a decoder's error as a problem for OutputError.
func syntaxProblem(j content.JSON, err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("%s: the response is cut off here, after %d bytes of JSON", pathOf(err), len(j))
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%s: not JSON: %v, at byte %d", pathOf(err), syntax.Err, syntax.ByteOffset)
	}
	return "root: not JSON: " + err.Error()
}

// pathOf returns the path of a decoder's error, in the form of the paths of other problems.
func pathOf(err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) || syntax.JSONPointer == "" {
		return "root"
	}

	var path strings.Builder
	for token := range syntax.JSONPointer.Tokens() {
		// The pointer does not tell an index from a name of digits. Both are shown as an index.
		switch _, err := strconv.ParseUint(token, 10, 64); {
		case err == nil:
			path.WriteString("[" + token + "]")
		case path.Len() > 0:
			path.WriteString("." + token)
		default:
			path.WriteString(token)
		}
	}
	return safetext.Cut(path.String(), 200)
}
