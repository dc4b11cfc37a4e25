package anthropic

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/content"
)

// rawJSON is a value that is left as it is while what surrounds it is decoded.
type rawJSON = jsontext.Value

// member is one member of a JSON object, its value byte for byte.
type member struct {
	name  string
	value content.JSON
}

// members returns the members of an object in order.
func members(j content.JSON) ([]member, error) {
	dec := jsontext.NewDecoder(bytes.NewBufferString(string(j)))
	if open, err := dec.ReadToken(); err != nil {
		return nil, err
	} else if open.Kind() != '{' {
		return nil, fmt.Errorf("%w: not an object", content.ErrJSON)
	}
	var list []member
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = content.JSON(value)
		list = append(list, m)
	}
	_, err := dec.ReadToken()
	return list, err
}

// object is the object with these members, without space between them.
func object(list []member) content.JSON {
	dst := []byte{'{'}
	for _, m := range list {
		dst = append(content.AppendRaw(dst, m.name), m.value...)
	}
	return content.JSON(append(dst, '}'))
}

// take removes the member of that name from list and returns its value; "" when there is none.
func take(list []member, name string) (content.JSON, []member) {
	for i, m := range list {
		if m.name == name {
			rest := append(append([]member(nil), list[:i]...), list[i+1:]...)
			return m.value, rest
		}
	}
	return "", list
}

// text decodes a JSON string.
func text(j content.JSON) (string, bool) {
	if !strings.HasPrefix(string(j), `"`) {
		return "", false
	}
	var s string
	err := json.Unmarshal([]byte(j), &s, lenient)
	return s, err == nil
}

// takeText is take for a member that is a string.
func takeText(list []member, name string) (string, []member, bool) {
	j, rest := take(list, name)
	s, ok := text(j)
	if !ok {
		return "", list, false
	}
	return s, rest, true
}

// lenient reads what a server sent: a lone surrogate or a repeated name must not cost a whole answer.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// appendString appends a member that is a string, also when it is empty.
func appendString(dst []byte, name, value string) []byte {
	if value == "" {
		return append(content.AppendRaw(dst, name), '"', '"')
	}
	return content.AppendString(dst, name, value)
}

// quote is s as a JSON string.
func quote(s string) content.JSON {
	b, _ := jsontext.AppendQuote(nil, s) // the error only tells of bytes that it replaced by U+FFFD
	return content.JSON(b)
}
