// Package write appends JSON to a buffer, member by member: the writing half of [jsonx]. It imports no other package of
// Plait: package content can use it too.
//
// An object is opened and closed by the caller; everything between is appended with its comma:
//
//	dst = append(dst, '{')
//	dst = write.OptString(write.Int(dst, "index", 0), "tool", name)
//	dst = append(dst, '}')
//
// Members are written in the order of the calls. The functions beginning with Opt leave out a member with the zero
// value. In text, each byte of invalid UTF-8 is replaced by U+FFFD.
//
// [jsonx]: https://pkg.go.dev/github.com/plait-dev/plait/internal/jsonx
package write

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
)

// MaxDepth is the nesting limit of a value written as JSON inside a saved node. A deeper value is written as a string:
// no accepted value can make a whole node exceed a decoder's own limit.
const MaxDepth = 256

// Comma appends a comma if dst needs one before the next member of an object or item of an array.
func Comma(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' && dst[n-1] != '[' {
		dst = append(dst, ',')
	}
	return dst
}

// Quote appends s as a JSON string.
func Quote(dst []byte, s string) []byte {
	// Make room for a long text at once: a buffer growing step by step copies it several times.
	if free := cap(dst) - len(dst); len(s) > 4<<10 && free < len(s) {
		dst = slices.Grow(dst, len(s)+len(s)/8)
	}
	dst, _ = jsontext.AppendQuote(dst, s) // an error only reports bytes replaced by U+FFFD
	return dst
}

// Name appends `"name":`, after a comma if one is needed. The caller appends the value.
func Name(dst []byte, name string) []byte { return append(Quote(Comma(dst), name), ':') }

// UUID appends a UUID as a JSON string, in lower-case hexadecimal digits with hyphens.
func UUID(dst []byte, id [16]byte) []byte {
	dst = hex.AppendEncode(append(dst, '"'), id[:4])
	for _, part := range [][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		dst = hex.AppendEncode(append(dst, '-'), part)
	}
	return append(dst, '"')
}

// Time appends a time as a JSON string, in the form of RFC 3339, with nanoseconds if it has any.
func Time(dst []byte, t time.Time) []byte {
	return append(t.AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
}

// String appends a string member, even if the value is empty.
func String(dst []byte, name, value string) []byte { return Quote(Name(dst, name), value) }

// OptString is String, but leaves out an empty value.
func OptString(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return String(dst, name, value)
}

// Int appends an integer member, even if the value is 0.
func Int[N ~int | ~int64](dst []byte, name string, value N) []byte {
	return strconv.AppendInt(Name(dst, name), int64(value), 10)
}

// OptInt is Int, but leaves out 0.
func OptInt[N ~int | ~int64](dst []byte, name string, value N) []byte {
	if value == 0 {
		return dst
	}
	return Int(dst, name, value)
}

// OptTrue appends a member with the value true, and nothing if value is false.
func OptTrue(dst []byte, name string, value bool) []byte {
	if !value {
		return dst
	}
	return append(Name(dst, name), "true"...)
}

// OptValue appends a member with the encoding of a struct of numbers and flags, and nothing for the zero value. The
// value must be encodable.
func OptValue[V comparable](dst []byte, name string, value V) []byte {
	var zero V
	if value == zero {
		return dst
	}
	b, _ := json.Marshal(value) // the caller passes only encodable values
	return append(Name(dst, name), b...)
}

// JSON appends a member with JSON text as its value. A value is written unchanged, except if it is not JSON, has line
// breaks or surrounding space, or nests too deep. Then it becomes `"name_text":"…"`, a string with the same bytes.
// [Either] reads both. The empty text appends nothing.
func JSON[J ~string](dst []byte, name string, value J) []byte {
	switch {
	case value == "":
		return dst
	case Inline(string(value)):
		return append(Name(dst, name), value...)
	default:
		return String(dst, name+"_text", string(value))
	}
}

// Either returns a value written by [JSON] in one of its two forms: as JSON, or as a string.
func Either[J ~string](raw jsontext.Value, text string) J {
	if raw != nil {
		return J(raw)
	}
	return J(text)
}

// Form selects the form of JSON values inside an object. The zero value is the saved form.
type Form struct {
	// Canonical selects the form used to compute digests.
	Canonical bool
}

// JSON appends a member as the function [JSON] does. In the canonical form the value comes from [Canonical], and a
// value without one becomes `"name_text":"…"`.
func (f Form) JSON(dst []byte, name, value string) []byte {
	if !f.Canonical || value == "" {
		return JSON(dst, name, value)
	}
	if c, ok := Canonical(value); ok {
		return append(Name(dst, name), c...)
	}
	return String(dst, name+"_text", value)
}

// Extra appends a member "extra": the value of a content.Extra for an API. It appends nothing if both are empty.
func (f Form) Extra(dst []byte, api, value string) []byte {
	if api == "" && value == "" {
		return dst
	}
	dst = OptString(append(Name(dst, "extra"), '{'), "api", api)
	return append(f.JSON(dst, "json", value), '}')
}

// Canonical returns the form of JSON text used to compute digests, and whether there is one: the text must be valid and
// nest no deeper than MaxDepth. Members are sorted by name, there is no space between tokens, strings have the fewest
// escapes, and numbers stay as they are. The form of the empty text is null.
func Canonical(text string) (string, bool) {
	if text == "" {
		return "null", true
	}
	if Depth(text) > MaxDepth {
		return "", false
	}

	v := jsontext.Value(text)
	err := v.Format(
		jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return string(v), err == nil
}

// Inline reports whether JSON text can be written unquoted on a line of a saved file and read back byte for byte. Space
// around it would be lost.
func Inline(text string) bool {
	return !strings.ContainsAny(text, "\n\r") && strings.Trim(text, " \t") == text && Depth(text) <= MaxDepth && Valid(text)
}

// Valid reports whether text is exactly one JSON value as defined by RFC 7493. The text may be megabytes long, and is
// not copied: IsValid only reads its bytes.
func Valid(text string) bool {
	return jsontext.Value(unsafe.Slice(unsafe.StringData(text), len(text))).IsValid()
}

// Depth returns the maximum depth of brackets in the text. It uses one pass without recursion, and accepts invalid
// JSON. Call it before a recursive decoder.
func Depth(text string) int {
	deepest, now := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i+1)
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// endOfString returns the index of the closing quote for a string starting at i, after its opening quote. It returns
// len(text) if there is none. Most of a conversation is long strings, so it skips from quote to quote.
func endOfString(text string, i int) int {
	for {
		quote := strings.IndexByte(text[i:], '"')
		if quote < 0 {
			return len(text)
		}

		// An even number of backslashes before the quote escape each other, not the quote.
		backslashes := 0
		for backslashes < quote && text[i+quote-1-backslashes] == '\\' {
			backslashes++
		}
		i += quote
		if backslashes%2 == 0 {
			return i
		}
		i++
	}
}
