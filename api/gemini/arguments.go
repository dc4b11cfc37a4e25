package gemini

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// partialCall is a call whose arguments arrive in pieces, each with the JSON path of its place. Vertex AI streams calls
// so if streamFunctionCallArguments is set. The last piece of a call has no willContinue.
type partialCall struct {
	call      content.ToolUse // without its arguments
	rest      []jsonx.Member  // the further members of the parts
	arguments argument
}

// pieceOf returns the functionCall of a part and the part's other members. It is ok if the call is a piece: it says
// that it continues, has pieces of arguments, or continues an open one without a name.
func pieceOf(part content.JSON, open bool) (call, rest []jsonx.Member, ok bool) {
	list, err := jsonx.Members(part)
	if err != nil {
		return nil, nil, false
	}
	value, rest := jsonx.Take(list, "functionCall")
	if call, err = jsonx.Members(value); err != nil {
		return nil, nil, false
	}
	name, _, _ := jsonx.TakeText(call, "name")
	pieces, _ := jsonx.Take(call, "partialArgs")
	return call, rest, continues(call) || pieces != "" || open && name == ""
}

func continues(list []jsonx.Member) bool {
	value, _ := jsonx.Take(list, "willContinue")
	return value == "true"
}

// add adds a piece of the call. It reports whether the call is complete.
func (p *partialCall) add(call, rest []jsonx.Member) (done bool, err error) {
	done = !continues(call)
	_, call = jsonx.Take(call, "willContinue")
	if name, _, ok := jsonx.TakeText(call, "name"); ok {
		p.call.Name = name
	}
	if id, _, ok := jsonx.TakeText(call, "id"); ok {
		p.call.ID = id
	}
	p.rest = jsonx.With(p.rest, rest)

	if args, _ := jsonx.Take(call, "args"); args != "" && args != "null" {
		list, err := jsonx.Members(args)
		if err != nil {
			return false, err
		}
		for _, m := range list {
			p.arguments.member(m.Name).set(m.Value)
		}
	}

	pieces, _ := jsonx.Take(call, "partialArgs")
	if pieces == "" || pieces == "null" {
		return done, nil
	}
	items, err := jsonx.Items(pieces)
	if err != nil {
		return false, err
	}
	for _, piece := range items {
		if err := p.arguments.add(piece); err != nil {
			return false, err
		}
	}
	return done, nil
}

// block returns the call. The arguments of one that was cut off are no valid JSON.
func (p *partialCall) block(whole bool) content.ToolUse {
	call := p.call
	call.Input, call.Extra = content.JSON(p.arguments.append(nil)), extra(p.rest)
	if p.arguments.members == nil {
		call.Input = "{}"
	}
	if !whole {
		call.Input = call.Input[:len(call.Input)-1]
	}
	return call
}

// argument is a value under construction. Its members are in the order in which the model began them.
type argument struct {
	value   content.JSON     // a number, a bool, null, or a value that came whole
	text    *strings.Builder // a text
	members []*namedArgument
	items   []*argument
}

type namedArgument struct {
	name string
	argument
}

// maxPath is the largest number of steps in a JSON path.
const maxPath = 100

var errPath = errors.New("a piece of arguments whose jsonPath is not the place of a value")

// add adds a piece of a value.
func (a *argument) add(piece content.JSON) error {
	list, err := jsonx.Members(piece)
	if err != nil {
		return err
	}
	path, list, _ := jsonx.TakeText(list, "jsonPath")
	at, err := a.at(path)
	if err != nil {
		return err
	}

	for _, m := range list {
		switch text, isText := jsonx.Text(m.Value); {
		case m.Name == "stringValue" && isText:
			if at.text == nil {
				*at = argument{text: &strings.Builder{}}
			}
			at.text.WriteString(text)
		case m.Name == "numberValue", m.Name == "boolValue":
			at.set(m.Value)
		case m.Name == "nullValue":
			at.set("null")
		}
	}
	return nil
}

func (a *argument) set(value content.JSON) { *a = argument{value: value} }

// at returns the value at a JSON path such as "$.places[0]['name']", which is added if it is missing.
func (a *argument) at(path string) (*argument, error) {
	fail := func() (*argument, error) { return nil, fmt.Errorf("%w: %.100q", errPath, path) }
	rest, ok := strings.CutPrefix(path, "$")
	if !ok || rest == "" {
		return fail()
	}

	for steps := 0; rest != ""; steps++ {
		if steps == maxPath {
			return fail()
		}
		name, after, ok := nextStep(rest)
		if !ok {
			return fail()
		}

		// An index without quotes is that of a list. Lists grow at their end.
		if index, err := strconv.Atoi(name); err == nil && rest[0] == '[' && rest[1] != '\'' && rest[1] != '"' {
			if index < 0 || index > len(a.items) {
				return fail()
			}
			if index == len(a.items) {
				a.items = append(a.items, &argument{})
			}
			a = a.items[index]
		} else {
			a = a.member(name)
		}
		rest = after
	}
	return a, nil
}

// nextStep returns the first name or index of a path, and the path after it.
func nextStep(path string) (name, rest string, ok bool) {
	if after, dotted := strings.CutPrefix(path, "."); dotted {
		end := strings.IndexAny(after, ".[")
		if end < 0 {
			end = len(after)
		}
		return after[:end], after[end:], end > 0
	}
	inner, bracketed := strings.CutPrefix(path, "[")
	if !bracketed || inner == "" {
		return "", "", false
	}

	quote := inner[0]
	if quote != '\'' && quote != '"' {
		name, rest, ok = strings.Cut(inner, "]")
		_, err := strconv.Atoi(name)
		return name, rest, ok && err == nil
	}
	var unquoted strings.Builder
	for i := 1; i < len(inner); i++ {
		switch c := inner[i]; {
		case c == '\\' && i+1 < len(inner):
			i++
			unquoted.WriteByte(inner[i])
		case c == quote:
			rest, ok = strings.CutPrefix(inner[i+1:], "]")
			return unquoted.String(), rest, ok
		default:
			unquoted.WriteByte(c)
		}
	}
	return "", "", false
}

// member returns the named member, which is added if it is missing.
func (a *argument) member(name string) *argument {
	for _, m := range a.members {
		if m.name == name {
			return &m.argument
		}
	}
	m := &namedArgument{name: name}
	a.members = append(a.members, m)
	return &m.argument
}

// append appends the value.
func (a *argument) append(dst []byte) []byte {
	switch {
	case a.members != nil:
		dst = append(dst, '{')
		for _, m := range a.members {
			dst = m.append(write.Name(dst, m.name))
		}
		return append(dst, '}')
	case a.items != nil:
		dst = append(dst, '[')
		for _, item := range a.items {
			dst = item.append(write.Comma(dst))
		}
		return append(dst, ']')
	case a.text != nil:
		return write.Quote(dst, a.text.String())
	case a.value != "":
		return append(dst, a.value...)
	}
	return append(dst, `""`...)
}
