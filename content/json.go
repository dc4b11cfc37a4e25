package content

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/safetext"
)

// ErrJSON is in the chain of every error about text that is not JSON.
var ErrJSON = errors.New("not valid JSON")

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
func (j JSON) Valid() bool { return write.Valid(string(j)) }

// IsObject reports whether j is a valid JSON object.
func (j JSON) IsObject() bool {
	return strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "{") && j.Valid()
}

// Decode stores j in *v by the rules of encoding/json/v2: names match exactly. If j is not valid, *v is unchanged.
func (j JSON) Decode(v any) error {
	if !j.Valid() {
		return fmt.Errorf("%w: %s", ErrJSON, safetext.Quote(string(j), maxQuoted))
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
		return nil, fmt.Errorf("%w: %s", ErrJSON, safetext.Quote(string(j), maxQuoted))
	}
	return []byte(j), nil
}

// UnmarshalJSON stores the JSON value as it is written, and null as the zero value.
func (j *JSON) UnmarshalJSON(data []byte) error {
	if *j = JSON(data); *j == "null" {
		*j = ""
	}
	return nil
}

// Canonical returns j in the form used to compute digests: members sorted by name, no space between tokens, strings
// with the fewest escapes, numbers as they were written (1 and 1.0 differ, and no digit is lost). Except for numbers,
// this is the form of RFC 8785. Text that is not valid JSON, or nests deeper than 256, becomes a JSON string; the zero
// value becomes null.
func (j JSON) Canonical() JSON {
	if c, ok := write.Canonical(string(j)); ok {
		return JSON(c)
	}
	return JSON(write.Quote(nil, string(j)))
}

// maxQuoted is the limit on the bytes of a value quoted in an error.
const maxQuoted = 60
