package content

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/internal/safetext"
)

// ErrJSON is in the chain of every error about text that is not JSON.
var ErrJSON = errors.New("not valid JSON")

// maxInlineDepth is how deep a JSON value may nest and still be written as JSON inside a saved node. A deeper one is written
// as a string, so that no value that was accepted can push a whole node past a decoder's own limit.
const maxInlineDepth = 256

// JSON is one JSON value as text, byte for byte as it was written. The zero value is "no value". A JSON made by a program or a
// model may also hold text that is not JSON at all (a tool call cut off by a token limit): [JSON.Valid] tells.
type JSON string

// ToJSON encodes v. Object members of maps are sorted, nothing is HTML-escaped, bytes that are not UTF-8 are replaced by U+FFFD,
// and what cannot be encoded (NaN, a channel) is an error in whose chain ErrJSON stands.
func ToJSON(v any) (_ JSON, err error) {
	defer func() {
		if panicked := recover(); panicked != nil { // in a MarshalJSON of v's
			err = fmt.Errorf("%w: encoding %T panicked: %v", ErrJSON, v, panicked)
		}
	}()
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrJSON, err)
	}
	return JSON(b), nil
}

// Valid reports whether j is exactly one JSON value by RFC 7493: valid UTF-8, no lone surrogates and no member name twice in
// an object. Nesting deeper than 10,000 is not valid.
func (j JSON) Valid() bool { return jsontext.Value(j).IsValid() }

// IsObject reports whether j is a valid JSON object.
func (j JSON) IsObject() bool {
	return strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "{") && j.Valid()
}

// Decode stores j in *v by the rules of encoding/json/v2: names match exactly, and nothing is stored in *v when j is not
// valid.
func (j JSON) Decode(v any) error {
	if !j.Valid() {
		return fmt.Errorf("%w: %s", ErrJSON, safetext.Quote(string(j), mostQuoted))
	}
	return json.Unmarshal([]byte(j), v)
}

// MarshalJSON returns j as it is, and null for the zero value, so that a JSON inside a Go value is encoded as what it holds. Text
// that is not JSON is ErrJSON.
func (j JSON) MarshalJSON() ([]byte, error) {
	switch {
	case j == "":
		return []byte("null"), nil
	case !j.Valid():
		return nil, fmt.Errorf("%w: %s", ErrJSON, safetext.Quote(string(j), mostQuoted))
	}
	return []byte(j), nil
}

// Canonical returns j in the form that digests are taken of: members sorted by name, no space between tokens, strings with the
// fewest escapes, numbers as they were written (1 and 1.0 differ, and no digit is lost). The rule is that of RFC 8785 but for
// numbers. Text that is not valid JSON, or nests deeper than 256, is returned as a JSON string that holds it; no value is null.
func (j JSON) Canonical() JSON {
	if c, ok := j.canonical(); ok {
		return c
	}
	return JSON(appendString(nil, string(j)))
}

func (j JSON) canonical() (JSON, bool) {
	if j == "" {
		return "null", true
	}
	if j.Depth() > maxInlineDepth {
		return "", false
	}
	v := jsontext.Value(j)
	err := v.Format(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return JSON(v), err == nil
}

// inline reports whether j can stand as it is inside a line of a saved file, and be found there again byte for byte: space
// around it would be lost.
func (j JSON) inline() bool {
	return !strings.ContainsAny(string(j), "\n\r") && strings.Trim(string(j), " \t") == string(j) &&
		j.Depth() <= maxInlineDepth && j.Valid()
}

// Depth is how deep brackets nest in the text. It is counted in one pass without recursion, and does not ask whether the text is
// JSON; decoders that would recurse are guarded by it.
func (j JSON) Depth() int {
	deepest, now := 0, 0
	for i := 0; i < len(j); i++ {
		switch j[i] {
		case '"':
			i = endOfString(string(j), i+1)
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// endOfString returns where the quote is that ends the string whose first character is at i; len(j) when there is none. Most of
// a conversation is long strings, so they are not looked at byte by byte.
func endOfString(j string, i int) int {
	for {
		quote := strings.IndexByte(j[i:], '"')
		if quote < 0 {
			return len(j)
		}
		backslashes := 0
		for backslashes < quote && j[i+quote-1-backslashes] == '\\' {
			backslashes++
		}
		i += quote
		if backslashes%2 == 0 {
			return i
		}
		i++
	}
}

// AppendJSON appends `"name":value` to an object under construction, and the comma before it where one is needed. A value that
// cannot stand there unchanged (it is not JSON, spans lines, or nests too deep) becomes `"name_text":"…"` and so keeps its
// bytes. An absent value appends nothing.
func AppendJSON(dst []byte, name string, j JSON) []byte {
	switch {
	case j == "":
		return dst
	case j.inline():
		return append(appendName(dst, name), j...)
	default:
		return appendString(appendName(dst, name+"_text"), string(j))
	}
}

// AppendCanonicalJSON is AppendJSON for the form that digests are taken of: the value is in canonical form, and one that has none
// becomes `"name_text":"…"`.
func AppendCanonicalJSON(dst []byte, name string, j JSON) []byte {
	if j == "" {
		return dst
	}
	if c, ok := j.canonical(); ok {
		return append(appendName(dst, name), c...)
	}
	return appendString(appendName(dst, name+"_text"), string(j))
}

// AppendString appends `"name":"value"` to an object under construction, and nothing for the empty string.
func AppendString(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendString(appendName(dst, name), value)
}

// AppendRaw appends `"name":` and leaves the value to the caller.
func AppendRaw(dst []byte, name string) []byte { return appendName(dst, name) }

func appendName(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendString(dst, name), ':')
}

func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error only tells of bytes that it replaced by U+FFFD
	return dst
}

// Clean returns s with every byte that is not UTF-8 replaced by U+FFFD: the form in which text is kept.
func Clean(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// mostQuoted is how many bytes of a value an error text quotes.
const mostQuoted = 60
