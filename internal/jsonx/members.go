package jsonx

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// Raw is a JSON value. Decoding the values around it leaves it undecoded.
type Raw = jsontext.Value

// Member is one member of a JSON object, with its value byte for byte.
type Member struct {
	Name  string
	Value content.JSON
}

// Depth returns the maximum depth of brackets in a value. It uses one pass without recursion, and accepts invalid JSON.
// Call it before a recursive decoder.
func Depth(j content.JSON) int { return write.Depth(string(j)) }

// Members returns the members of an object in order.
func Members(j content.JSON) ([]Member, error) {
	if j.IsObject() {
		return scanMembers(string(j)), nil
	}
	return readMembers(j)
}

// readMembers is Members for any input, even if it is not one valid object.
func readMembers(j content.JSON) ([]Member, error) {
	dec := jsontext.NewDecoder(bytes.NewBufferString(string(j)))
	if open, err := dec.ReadToken(); err != nil {
		return nil, err
	} else if open.Kind() != '{' {
		return nil, fmt.Errorf("%w: not an object", content.ErrJSON)
	}

	// PeekKind returns no kind at invalid JSON. The next read returns the error.
	var list []Member
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}

		m := Member{Name: name.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		m.Value = content.JSON(value)
		list = append(list, m)
	}

	_, err := dec.ReadToken()
	return list, err
}

// Object returns the object with these members, without spaces between them.
func Object(list []Member) content.JSON { return content.JSON(AppendObject(nil, list)) }

// AppendObject appends the object with these members, without spaces between them.
func AppendObject(dst []byte, list []Member) []byte {
	dst = append(dst, '{')
	for _, m := range list {
		dst = append(write.Name(dst, m.Name), m.Value...)
	}
	return append(dst, '}')
}

// Items returns the items of a list; none for null.
func Items(j content.JSON) ([]content.JSON, error) {
	var raw []Raw
	if err := j.Decode(&raw); err != nil {
		return nil, err
	}

	items := make([]content.JSON, len(raw))
	for i, item := range raw {
		items[i] = content.JSON(item)
	}
	return items, nil
}

// Array returns the list with these items, without spaces between them.
func Array(items []content.JSON) content.JSON {
	dst := []byte{'['}
	for _, item := range items {
		dst = append(write.Comma(dst), item...)
	}
	return content.JSON(append(dst, ']'))
}

// MapMembers returns the object with the value of each member replaced by the result of to. It returns j itself if no
// value changes, or if j is not an object.
func MapMembers(j content.JSON, to func(Member) content.JSON) content.JSON {
	list, err := Members(j)
	if err != nil {
		return j
	}

	changed := false
	for i, m := range list {
		list[i].Value = to(m)
		changed = changed || list[i].Value != m.Value
	}

	if !changed {
		return j
	}
	return Object(list)
}

// MapItems returns the list with each item replaced by the result of to. It returns j itself if no item changes, or if
// j is not a list.
func MapItems(j content.JSON, to func(content.JSON) content.JSON) content.JSON {
	items, err := Items(j)
	if err != nil {
		return j
	}

	changed := false
	for i, item := range items {
		items[i] = to(item)
		changed = changed || items[i] != item
	}

	if !changed {
		return j
	}
	return Array(items)
}

// Take returns the value of the named member, and list without it. If there is none, it returns "" and list. It does
// not change list.
func Take(list []Member, name string) (content.JSON, []Member) {
	for i, m := range list {
		if m.Name == name {
			rest := append(append([]Member(nil), list[:i]...), list[i+1:]...)
			return m.Value, rest
		}
	}
	return "", list
}

// With returns list and the members of more, except those with a name in list.
func With(list, more []Member) []Member {
	if len(more) == 0 {
		return list
	}

	has := make(map[string]bool, len(list))
	for _, m := range list {
		has[m.Name] = true
	}

	all := append([]Member(nil), list...)
	for _, m := range more {
		if !has[m.Name] {
			all = append(all, m)
		}
	}
	return all
}

// Text decodes a JSON string, and reports whether j is one. Invalid UTF-8 and lone surrogates are replaced.
func Text(j content.JSON) (string, bool) {
	if !strings.HasPrefix(string(j), `"`) {
		return "", false
	}

	// Most strings need no decoding.
	if inner := string(j[1:max(1, len(j)-1)]); strings.HasSuffix(string(j[1:]), `"`) && plain(inner) {
		return inner, true
	}

	var s string
	err := json.Unmarshal([]byte(j), &s, Lenient)
	return s, err == nil
}

// plain reports whether the JSON string of s is s between quotes.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.ValidString(s)
}

// TakeText is Take for a string member. It reports false, and leaves list as it is, if the member is missing or not a
// string.
func TakeText(list []Member, name string) (string, []Member, bool) {
	j, rest := Take(list, name)
	s, ok := Text(j)
	if !ok {
		return "", list, false
	}
	return s, rest, true
}

// Lenient holds the options for decoding a server's response: a lone surrogate or a repeated name must not fail a whole
// response.
var Lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// Quote returns s as a JSON string.
func Quote(s string) content.JSON { return content.JSON(write.Quote(nil, s)) }
