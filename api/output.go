package api

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/schema"
	"github.com/plait-dev/plait/internal/wire"
)

// Schema is the form of an answer in JSON. The zero value is none. It is made by [Output], or by hand of a schema that a program
// has; then [Options.Check] sees that it can be asked for.
type Schema struct {
	// Name names the form, for providers that want a name: letters, digits, "_" and "-", 64 at most.
	Name string
	// JSON is its JSON Schema, an object whose "type" is "object".
	JSON content.JSON
	err  error
}

// problem says why the form cannot be asked for; "" when it can.
func (s Schema) problem() string {
	switch {
	case s == Schema{}:
		return ""
	case s.err != nil:
		return s.err.Error()
	case !formNamed.MatchString(s.Name):
		return fmt.Sprintf("its name %s does not match %s", safetext.Quote(s.Name, 100), formNamed)
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

var formNamed = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Output asks for an answer that [Decode] turns into a T. It is for Options.Output:
//
//	req.Options.Output = api.Output[Plan]()
//	…
//	plan, err := api.Decode[Plan](answer.Blocks.Text())
//
// The schema is made of T as executor.Func makes that of a tool's arguments: a field is required unless its tag says omitempty or
// omitzero or it is a pointer, `jsonschema:"…"` describes it, and `enum:"a,b,c"` or a method Enum() []any lists what it may be.
// Its name is that of the type, and "answer" where the type has none of its own.
//
// Providers want an object. A T that is none (a slice, a string, a number, a type with an Enum method) is asked for as an object
// with the one member "answer", which Decode takes out again.
//
// Where no schema can be made of T (a recursive type, a channel, any), a request with it is ErrInvalidRequest.
func Output[T any]() Schema { return formOf(reflect.TypeFor[T]()).Schema }

// ErrOutput is in the chain of every error about an answer that is not in the form that was asked for.
var ErrOutput = errors.New("the answer is not in the form that was asked for")

// OutputError says what is wrong with an answer. Its chain holds ErrOutput, and io.ErrUnexpectedEOF where the answer breaks off
// (a limit of tokens, most often).
type OutputError struct {
	// Form is the name of the form, as in [Schema].
	Form string
	// Problems is what is wrong, each with its place, such as "steps[2].title: is required", in words for the model.
	Problems []string
	// Answer is what was said.
	Answer string
	// Err is the reason, where there is another one than ErrOutput.
	Err error
}

// Error says on one line what is wrong: the first three problems, and how many more there are.
func (e *OutputError) Error() string {
	const most = 3
	shown := strings.Join(e.Problems[:min(most, len(e.Problems))], "; ")
	if more := len(e.Problems) - most; more > 0 {
		shown += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%v: %s: %s", ErrOutput, wire.OneLine(e.Form), wire.OneLine(shown))
}

// Unwrap returns ErrOutput and the reason, where there is one.
func (e *OutputError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrOutput}
	}
	return []error{ErrOutput, e.Err}
}

// Decode turns an answer in the form Output[T] into a T. The answer is text: Response.Blocks.Text(), or dag.DAG.Text of a
// conversation that ends in it.
//
// It is strict: what does not fit the schema is an error, and so are members that the schema does not know, names in another case
// and names given twice. A member that need not be there may be null. Space around the JSON does not matter. A model that was only
// told of the form, because its API has no such option, may put the JSON between lines of three backquotes, with words before and
// after: where there is one such block, and no more, it is what is decoded.
//
// Every error is an *[OutputError], and beside it stands the zero T.
func Decode[T any](answer string) (T, error) {
	var value, none T
	f := formOf(reflect.TypeFor[T]())
	if err := f.decode(content.Clean(answer), &value); err != nil {
		return none, err
	}
	return value, nil
}

// wrap is the member that holds what is no object itself.
const wrap = "answer"

// form is what is made of a type, once.
type form struct {
	Schema
	check   *schema.Schema
	wrapped bool
}

var forms sync.Map // reflect.Type to *form

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
		f.err = fmt.Errorf("nothing says what the JSON of %s is", t)
	}
	if f.err == nil && f.check.Type() != "object" {
		f.wrapped = true
		f.check, f.err = f.check.Member(wrap)
	}
	if f.err == nil {
		f.JSON, f.err = f.check.JSON()
	}
	return f
}

// unfit is what cannot be in the name of a form: the paths of packages, and all that is no letter, digit, "_" or "-".
var unfit = regexp.MustCompile(`[^\[\],]*[/.]|[^a-zA-Z0-9_-]+`)

func formName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "" {
		return wrap
	}
	name := strings.Trim(unfit.ReplaceAllString(t.Name(), "_"), "_")
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
	if err := broken(text); err != nil {
		return f.fault(answer, err, syntaxProblem(text, err))
	}
	if problems := f.check.Problems(text, schema.Check{Nulls: true, Unknown: "is not a member of the form"}); len(problems) > 0 {
		return f.fault(answer, nil, problems...)
	}
	if f.wrapped {
		list, _ := wire.Members(text) // it fits the schema, so it is an object with that member
		text, _ = wire.Take(list, wrap)
	}
	if err := schema.Decode(text, value); err != nil {
		return f.fault(answer, err, "root: "+err.Error())
	}
	return nil
}

func (f *form) fault(answer string, err error, problems ...string) error {
	for i, problem := range problems {
		problems[i] = safetext.Cut(problem, 1000)
	}
	return &OutputError{Form: f.Name, Problems: problems, Answer: answer, Err: err}
}

// jsonIn finds the JSON in an answer, or says why there is none.
func jsonIn(answer string) (content.JSON, string) {
	text := strings.TrimSpace(answer)
	if text == "" {
		return "", "root: the answer holds no text"
	}
	if strings.HasPrefix(text, "{") {
		return content.JSON(text), ""
	}
	switch blocks := fenced(text); len(blocks) {
	case 0:
		return content.JSON(text), ""
	case 1:
		return content.JSON(blocks[0]), ""
	default:
		return "", fmt.Sprintf("root: the answer holds %d blocks between backquotes, and none says that it is the one", len(blocks))
	}
}

// fenced returns what stands between lines of three backquotes; the last block may lack its end.
func fenced(text string) (blocks []string) {
	inside, start, at := false, 0, 0
	for line := range strings.Lines(text) {
		mark := strings.TrimSpace(line)
		switch {
		case !inside && strings.HasPrefix(mark, "```"):
			inside, start = true, at+len(line)
		case inside && len(mark) >= 3 && strings.Trim(mark, "`") == "":
			inside = false
			blocks = append(blocks, text[start:at])
		}
		at += len(line)
	}
	if inside {
		blocks = append(blocks, text[start:])
	}
	return blocks
}

// broken says where j is no JSON.
func broken(j content.JSON) error {
	var value jsontext.Value
	return json.Unmarshal([]byte(j), &value)
}

// syntaxProblem is a decoder's error in the words of a problem.
func syntaxProblem(j content.JSON, err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("%s: the answer breaks off here, after %d bytes of JSON", placeOf(err), len(j))
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%s: not JSON: %v, at byte %d", placeOf(err), syntax.Err, syntax.ByteOffset)
	}
	return "root: not JSON: " + err.Error()
}

// placeOf is where a decoder's error was found, written as the places of other problems are.
func placeOf(err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) || syntax.JSONPointer == "" {
		return "root"
	}
	var place strings.Builder
	for token := range syntax.JSONPointer.Tokens() {
		switch _, err := strconv.ParseUint(token, 10, 64); {
		case err == nil:
			place.WriteString("[" + token + "]")
		case place.Len() > 0:
			place.WriteString("." + token)
		default:
			place.WriteString(token)
		}
	}
	return safetext.Cut(place.String(), 200)
}
