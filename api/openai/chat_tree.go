package openai

import (
	"strings"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// tree is a JSON value received in pieces. At most one of its fields is set. A piece is merged by its kind:
//
//   - A text is appended to the text so far.
//   - An object is merged member by member.
//   - A list is appended item by item. An item with an "index" is merged into the item with the same index.
//   - null changes nothing.
//   - Any other value replaces the one so far.
type tree struct {
	text   *strings.Builder
	object *members
	list   *items
	value  content.JSON
}

// members holds the members of an object received in pieces.
type members struct {
	names []string // in the order they came
	by    map[string]*tree
}

// items holds the items of a list received in pieces.
type items struct {
	all []*tree
	by  map[content.JSON]*tree // the items with an index, by it
}

// deepestPiece is the depth down to which pieces are merged. Deeper values are replaced.
const deepestPiece = 8

// whole lists members that always arrive complete, and with some servers repeatedly. Their texts are not appended.
var whole = map[string]bool{
	"id": true, "index": true, "type": true, "role": true, "name": true, "format": true, "object": true,
}

// add merges the next piece of the named member.
func (t *tree) add(name string, piece content.JSON, depth int) {
	switch kind := jsontext.Value(piece).Kind(); {
	case kind == 'n' || kind == 0:
	case kind == '"' && !whole[name]:
		s, _ := jsonx.Text(piece)
		// A piece of another kind replaces the value so far.
		if t.text == nil {
			*t = tree{text: &strings.Builder{}}
		}
		t.text.WriteString(s)
	case kind == '{' && depth < deepestPiece:
		t.addObject(piece, depth)
	case kind == '[' && depth < deepestPiece:
		t.addList(piece, depth)
	case piece == `""` && t.value != "": // an empty repetition of a member in whole
	default:
		*t = tree{value: piece}
	}
}

// addObject adds the members of piece to those added before. A piece of any other kind is ignored.
func (t *tree) addObject(piece content.JSON, depth int) {
	list, err := jsonx.Members(piece)
	if err != nil {
		return
	}

	if t.object == nil {
		*t = tree{object: &members{by: map[string]*tree{}}}
	}
	for _, m := range list {
		t.object.at(m.Name).add(m.Name, m.Value, depth+1)
	}
}

// at returns the member with the given name, creating it if needed.
func (m *members) at(name string) *tree {
	child := m.by[name]
	if child == nil {
		child = &tree{}
		m.names, m.by[name] = append(m.names, name), child
	}
	return child
}

func (t *tree) addList(piece content.JSON, depth int) {
	list, err := jsonx.Items(piece)
	if err != nil {
		*t = tree{value: piece}
		return
	}

	if t.list == nil {
		*t = tree{list: &items{by: map[content.JSON]*tree{}}}
	}
	for _, item := range list {
		t.list.next(item).add("", item, depth+1)
	}
}

// next returns the tree to merge item into.
func (l *items) next(item content.JSON) *tree {
	index := indexOf(item)
	if at := l.by[index]; at != nil && index != "" {
		return at
	}

	at := &tree{}
	l.all = append(l.all, at)
	if index != "" {
		l.by[index] = at
	}
	return at
}

// indexOf returns the number in the member "index" of item, or "".
func indexOf(item content.JSON) content.JSON {
	list, err := jsonx.Members(item)
	if err != nil {
		return ""
	}
	index, _ := jsonx.Take(list, "index")
	if jsontext.Value(index).Kind() != '0' {
		return ""
	}
	return index
}

// words returns t if it is a text, and "" otherwise.
func (t *tree) words() string {
	if t == nil {
		return ""
	}
	if t.text != nil {
		return t.text.String()
	}
	s, _ := jsonx.Text(t.value)
	return s
}

// nonEmpty reports whether t is not empty: a text with letters, an object with members, a list with items, or any other
// value.
func (t *tree) nonEmpty() bool {
	switch {
	case t.text != nil:
		return t.text.Len() > 0
	case t.object != nil:
		return len(t.object.names) > 0
	case t.list != nil:
		return len(t.list.all) > 0
	}
	return t.value != ""
}

// json returns the merged value.
func (t *tree) json() content.JSON { return content.JSON(t.append(nil)) }

func (t *tree) append(dst []byte) []byte {
	switch {
	case t.text != nil:
		return append(dst, jsonx.Quote(t.text.String())...)
	case t.object != nil:
		dst = append(dst, '{')
		for _, name := range t.object.names {
			dst = t.object.by[name].append(write.Name(dst, name))
		}
		return append(dst, '}')
	case t.list != nil:
		dst = append(dst, '[')
		for _, item := range t.list.all {
			dst = item.append(write.Comma(dst))
		}
		return append(dst, ']')
	case t.value == "":
		// Only null was received.
		return append(dst, "null"...)
	}
	return append(dst, t.value...)
}
