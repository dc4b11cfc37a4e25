package openai

import (
	"strings"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// tree is a JSON value that comes in pieces: texts are put one after the other, objects member by member, and lists item by item;
// an item with an "index" goes on with the item of that index. Any other value replaces the one before, and null changes nothing.
type tree struct {
	text   *strings.Builder
	object *members
	list   *items
	value  content.JSON
}

type members struct {
	names []string
	by    map[string]*tree
}

type items struct {
	all []*tree
	by  map[content.JSON]*tree // those with an index
}

// deepestPiece is how deep pieces are put together; below that they replace what was there.
const deepestPiece = 8

// whole is the members whose text is not continued: it comes whole, again and again with some servers.
var whole = map[string]bool{"id": true, "index": true, "type": true, "role": true, "name": true, "format": true, "object": true}

// add goes on with the next piece of the member of that name.
func (t *tree) add(name string, piece content.JSON, depth int) {
	switch kind := jsontext.Value(piece).Kind(); {
	case kind == 'n' || kind == 0:
	case kind == '"' && !whole[name]:
		said, _ := wire.Text(piece)
		if t.text == nil {
			*t = tree{text: &strings.Builder{}}
		}
		t.text.WriteString(said)
	case kind == '{' && depth < deepestPiece:
		t.addObject(piece, depth)
	case kind == '[' && depth < deepestPiece:
		t.addList(piece, depth)
	case piece == `""` && t.value != "":
	default:
		*t = tree{value: piece}
	}
}

func (t *tree) addObject(piece content.JSON, depth int) {
	list, err := wire.Members(piece)
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

func (m *members) at(name string) *tree {
	child := m.by[name]
	if child == nil {
		child = &tree{}
		m.names, m.by[name] = append(m.names, name), child
	}
	return child
}

func (t *tree) addList(piece content.JSON, depth int) {
	var list []wire.Raw
	if piece.Decode(&list) != nil {
		*t = tree{value: piece}
		return
	}
	if t.list == nil {
		*t = tree{list: &items{by: map[content.JSON]*tree{}}}
	}
	for _, item := range list {
		t.list.next(content.JSON(item)).add("", content.JSON(item), depth+1)
	}
}

// next returns where an item goes.
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

// indexOf is the "index" of an item, a number; "" when it has none.
func indexOf(item content.JSON) content.JSON {
	list, err := wire.Members(item)
	if err != nil {
		return ""
	}
	index, _ := wire.Take(list, "index")
	if jsontext.Value(index).Kind() != '0' {
		return ""
	}
	return index
}

// words is the text of t, where it is one.
func (t *tree) words() string {
	if t == nil {
		return ""
	}
	if t.text != nil {
		return t.text.String()
	}
	said, _ := wire.Text(t.value)
	return said
}

// says reports whether there is anything in t but nothing: no text, no member, no item.
func (t *tree) says() bool {
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

// json is the value that came.
func (t *tree) json() content.JSON { return content.JSON(t.append(nil)) }

func (t *tree) append(dst []byte) []byte {
	switch {
	case t.text != nil:
		return append(dst, wire.Quote(t.text.String())...)
	case t.object != nil:
		dst = append(dst, '{')
		for _, name := range t.object.names {
			dst = t.object.by[name].append(content.AppendRaw(dst, name))
		}
		return append(dst, '}')
	case t.list != nil:
		dst = append(dst, '[')
		for i, item := range t.list.all {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst)
		}
		return append(dst, ']')
	case t.value == "":
		return append(dst, "null"...)
	}
	return append(dst, t.value...)
}
