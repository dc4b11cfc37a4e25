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

// maxInlineDepth is the nesting limit of a value written as JSON inside a saved node. A deeper value is written as a
// string, so that no accepted value can make a whole node exceed a decoder's own limit.
const maxInlineDepth = 256

// JSON is one JSON value as text, byte for byte as it was written. The zero value means no value. A JSON may also hold
// text that is not JSON, such as the arguments of a tool call cut off by a token limit. [JSON.Valid] reports whether it
// is JSON.
type JSON string

// ToJSON encodes v. Members of maps are sorted, nothing is HTML-escaped, and bytes that are not UTF-8 are replaced by
// U+FFFD. For a value that cannot be encoded (NaN, a channel) it returns an error with ErrJSON in its chain.
func ToJSON(v any) (_ JSON, err error) {
	defer func() {
		if panicked := recover(); panicked != nil { // in a MarshalJSON method of v
			err = fmt.Errorf("%w: encoding %T panicked: %v", ErrJSON, v, panicked)
		}
	}()

	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrJSON, err)
	}
	return JSON(b), nil
}

// Valid reports whether j is exactly one JSON value as defined by RFC 7493: valid UTF-8, no lone surrogates, and no
// duplicate member names in an object. Nesting deeper than 10,000 is not valid.
func (j JSON) Valid() bool { return jsontext.Value(j).IsValid() }

// IsObject reports whether j is a valid JSON object.
func (j JSON) IsObject() bool {
	return strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "{") && j.Valid()
}

// Decode stores j in *v by the rules of encoding/json/v2: names match exactly. If j is not valid, *v is unchanged.
func (j JSON) Decode(v any) error {
	if !j.Valid() {
		return fmt.Errorf("%w: %s", ErrJSON, safetext.Quote(string(j), mostQuoted))
	}
	return json.Unmarshal([]byte(j), v)
}

// MarshalJSON returns j unchanged, or null for the zero value, so that a JSON inside a Go value is encoded as the JSON
// value it holds. For text that is not JSON the error is ErrJSON.
func (j JSON) MarshalJSON() ([]byte, error) {
	switch {
	case j == "":
		return []byte("null"), nil
	case !j.Valid():
		return nil, fmt.Errorf("%w: %s", ErrJSON, safetext.Quote(string(j), mostQuoted))
	}
	return []byte(j), nil
}

// Canonical returns j in the form used to compute digests: members sorted by name, no space between tokens, strings
// with the fewest escapes, numbers as they were written (1 and 1.0 differ, and no digit is lost). Except for numbers,
// this is the form of RFC 8785. Text that is not valid JSON, or nests deeper than 256, becomes a JSON string; the zero
// value becomes null.
func (j JSON) Canonical() JSON {
	if c, ok := j.canonical(); ok {
		return c
	}
	return JSON(appendString(nil, string(j)))
}

// canonical returns the canonical form, and whether j has one.
func (j JSON) canonical() (JSON, bool) {
	if j == "" {
		return "null", true
	}
	if j.Depth() > maxInlineDepth {
		return "", false
	}

	v := jsontext.Value(j)
	err := v.Format(
		jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return JSON(v), err == nil
}

// inline reports whether j can be written unquoted on a line of a saved file and read back byte for byte. Space around
// it would be lost.
func (j JSON) inline() bool {
	return !strings.ContainsAny(string(j), "\n\r") && strings.Trim(string(j), " \t") == string(j) &&
		j.Depth() <= maxInlineDepth && j.Valid()
}

// Depth returns how deep brackets nest in the text. It uses one pass without recursion, and accepts text that is not
// JSON. Call it before a decoder that recurses.
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

// endOfString returns the index of the quote that ends the string starting at i, after its opening quote. It returns
// len(j) if there is none. Most of a conversation is long strings, so it skips from quote to quote.
func endOfString(j string, i int) int {
	for {
		quote := strings.IndexByte(j[i:], '"')
		if quote < 0 {
			return len(j)
		}

		// An even number of backslashes before the quote escape each other, not the quote.
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

// AppendJSON appends `"name":value` to an object under construction, after a comma if one is needed. A value that
// cannot be written unchanged (it is not JSON, has line breaks or surrounding space, or nests too deep) becomes
// `"name_text":"…"`, a string that keeps its bytes. The zero value appends nothing.
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

// AppendCanonicalJSON is like AppendJSON, but for the form used to compute digests: the value is in canonical form. A
// value without one becomes `"name_text":"…"`.
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
	dst, _ = jsontext.AppendQuote(dst, s) // an error only reports bytes replaced by U+FFFD
	return dst
}

// Clean returns s in the form text is stored in: bytes that are not UTF-8 are replaced by U+FFFD.
func Clean(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// mostQuoted is the limit on the bytes of a value quoted in an error.
const mostQuoted = 60
