package jsonx

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// Reasons for refusing a member.
var (
	ErrAbsent    = errors.New("it is missing")
	ErrNotObject = errors.New("it is no JSON object")
	ErrNotText   = errors.New("it is no string")

	errNotInteger = errors.New("it is no integer that fits")
	errNotNumber  = errors.New("it is no number that fits")
	errNotFlag    = errors.New("it is neither true nor false")
	errNotList    = errors.New("it is no list")
	errUnknown    = errors.New("it does not belong there")
	errTwoForms   = errors.New("it is there twice, also as a string")
)

// Error is an error in one member of a JSON text.
type Error struct {
	// Path locates the member, such as "pending/0/index": a JSON Pointer (RFC 6901) without its first slash. It is ""
	// for the whole text.
	Path string
	Err  error
}

// maxError is the limit on the bytes of an error's text.
const maxError = 1000

// Error returns the path and the reason. It is safe to print, even for a hostile text.
func (e *Error) Error() string {
	text := e.Err.Error()
	if e.Path != "" {
		text = safetext.Cut(e.Path, maxError/2) + ": " + text
	}
	return safetext.Escape(text, maxError)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Reader reads the members of an object by name. The readers of a text and of the objects inside it share one error,
// the first: the caller reads all members in a row and checks once. Values read after an error are meaningless.
//
// Unread members are ignored, unless Only refuses them.
type Reader struct {
	path  string // with a final slash; "" for the whole text
	list  []Member
	first *failure // shared by all readers of the text
}

type failure struct{ err *Error }

// Read returns the reader of the object in a text. The text may nest no deeper than depth, and must be valid as
// content.JSON.Valid defines it: no name may be there twice in an object, at any depth. The whole text is checked here,
// once.
func Read(text content.JSON, depth int) Reader {
	r := Reader{first: &failure{}}

	// Depth comes first: it does not recurse, as a parser may.
	if deep := Depth(text); deep > depth {
		r.Refuse(fmt.Errorf("it nests %d deep; the limit is %d", deep, depth))
		return r
	}
	if !text.IsObject() {
		r.first.err = notObject(text)
		return r
	}
	r.list = scanMembers(string(text))
	return r
}

// notObject returns the error for a text other than one valid object. A syntax error has the path of a duplicate name,
// or of the broken member.
func notObject(text content.JSON) *Error {
	dec := jsontext.NewDecoder(strings.NewReader(string(text)))
	err := dec.SkipValue()
	if err == nil {
		// The text is one valid value, so it must be one of another type.
		if _, more := dec.ReadToken(); more == io.EOF {
			return &Error{Err: ErrNotObject}
		}
		err = errors.New("there is more after its end")
	}

	path, syntax := "", (*jsontext.SyntacticError)(nil)
	if errors.As(err, &syntax) {
		path = strings.TrimPrefix(string(syntax.JSONPointer), "/")
		err = fmt.Errorf("%w, after byte %d", syntax.Err, syntax.ByteOffset)
	}
	return &Error{path, fmt.Errorf("it is %w: %w", content.ErrJSON, err)}
}

// Err returns the first error of the text, or nil.
func (r Reader) Err() *Error { return r.first.err }

// Members returns all members, in order.
func (r Reader) Members() []Member { return r.list }

// Fail records an error about a member, unless there is an error already.
func (r Reader) Fail(name string, err error) { r.fail(r.at(name), err) }

// Refuse is Fail for the object itself.
func (r Reader) Refuse(err error) { r.fail(strings.TrimSuffix(r.path, "/"), err) }

func (r Reader) fail(path string, err error) {
	if r.first.err == nil {
		r.first.err = &Error{path, err}
	}
}

// at returns the path of a member.
func (r Reader) at(name string) string { return r.path + escaped.Replace(name) }

// escaped replaces the two special characters of a JSON Pointer.
var escaped = strings.NewReplacer("~", "~0", "/", "~1")

// Has reports whether there is a member with the given name.
func (r Reader) Has(name string) bool { return r.OptValue(name) != "" }

// Only refuses members with other names.
func (r Reader) Only(names ...string) {
	for _, m := range r.list {
		if !slices.Contains(names, m.Name) {
			r.Fail(m.Name, errUnknown)
		}
	}
}

// Value returns the value of a required member.
func (r Reader) Value(name string) content.JSON {
	value := r.OptValue(name)
	if value == "" {
		r.Fail(name, ErrAbsent)
	}
	return value
}

// OptValue returns the value of a member, or "" if it is missing.
func (r Reader) OptValue(name string) content.JSON {
	for _, m := range r.list {
		if m.Name == name {
			return m.Value
		}
	}
	return ""
}

// Text returns a required string.
func (r Reader) Text(name string) string {
	text, ok := Text(r.Value(name))
	if !ok {
		r.Fail(name, ErrNotText)
	}
	return text
}

// OptText returns a string, or missing if there is none.
func (r Reader) OptText(name, missing string) string {
	if !r.Has(name) {
		return missing
	}
	return r.Text(name)
}

// Int returns a required integer.
func (r Reader) Int(name string) int { return int(r.integer(name, strconv.IntSize)) }

// OptInt64 returns an integer, or 0 if it is missing.
func (r Reader) OptInt64(name string) int64 {
	if !r.Has(name) {
		return 0
	}
	return r.integer(name, 64)
}

func (r Reader) integer(name string, bits int) int64 {
	n, err := strconv.ParseInt(string(r.Value(name)), 10, bits)
	if err != nil {
		r.Fail(name, errNotInteger)
	}
	return n
}

// Number returns a required number.
func (r Reader) Number(name string) float64 {
	f, err := strconv.ParseFloat(string(r.Value(name)), 64)
	if err != nil {
		r.Fail(name, errNotNumber)
	}
	return f
}

// Flag returns a boolean, or false if it is missing.
func (r Reader) Flag(name string) bool {
	switch r.OptValue(name) {
	case "true":
		return true
	case "false", "":
	default:
		r.Fail(name, errNotFlag)
	}
	return false
}

// JSON returns a value written by the function JSON of package write, in either of its two forms; "" if it is missing.
func (r Reader) JSON(name string) content.JSON {
	if !r.Has(name + "_text") {
		return r.OptValue(name)
	}
	if r.Has(name) {
		r.Fail(name, errTwoForms)
	}
	return content.JSON(r.Text(name + "_text"))
}

// Object returns the reader of a required object.
func (r Reader) Object(name string) Reader { return r.inner(r.at(name), r.Value(name)) }

// inner returns the reader of the object j, a part of a checked text.
func (r Reader) inner(path string, j content.JSON) Reader {
	in := Reader{path: path + "/", first: r.first}
	if !strings.HasPrefix(string(j), "{") {
		in.Refuse(ErrNotObject)
		return in
	}
	in.list = scanMembers(string(j))
	return in
}

// Named yields the name and the reader of each member, in order. All of them must be objects. It ends after the first
// error.
func (r Reader) Named() iter.Seq2[string, Reader] {
	return func(yield func(string, Reader) bool) {
		for _, m := range r.list {
			if !yield(m.Name, r.inner(r.at(m.Name), m.Value)) || r.first.err != nil {
				return
			}
		}
	}
}

// Texts returns a required list of strings.
func (r Reader) Texts(name string) []string {
	list := r.Value(name)
	if !strings.HasPrefix(string(list), "[") {
		r.Fail(name, errNotList)
		return nil
	}

	var texts []string
	for item := range scanItems(string(list)) {
		text, ok := Text(item)
		if !ok {
			r.Fail(name, ErrNotText)
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}
