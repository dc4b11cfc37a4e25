package anthropic

import (
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// assembly is a block of a stream on its way to the form it has in an answer that comes whole. It knows three ways in which
// deltas build a member, and so needs not know the types of blocks: text is appended to the member of the same name,
// partial_json is the text of "input", and each "citation" is one more of "citations". Any other value replaces the member.
type assembly struct {
	kind, tool string
	members    []wire.Member
	texts      map[string]*strings.Builder // of members that grow
	input      strings.Builder
	citations  []string
	done       bool
}

// assemble begins with the block as content_block_start has it.
func assemble(start content.JSON) (*assembly, error) {
	list, err := wire.Members(start)
	if err != nil {
		return nil, err
	}
	a := &assembly{members: list, texts: map[string]*strings.Builder{}}
	a.kind, _, _ = wire.TakeText(list, "type")
	if a.kind == "tool_use" || isServerCall(a.kind) {
		a.tool, _, _ = wire.TakeText(list, "name")
	}
	return a, nil
}

// add takes a delta, and returns the piece to show, if it has any.
func (a *assembly) add(delta content.JSON) (api.DeltaKind, string, error) {
	list, err := wire.Members(delta)
	if err != nil {
		return "", "", err
	}
	var kind api.DeltaKind
	var shown string
	for _, m := range list {
		said, isText := wire.Text(m.Value)
		switch {
		case m.Name == "type":
		case m.Name == "partial_json" && isText:
			a.input.WriteString(said)
			kind, shown = api.DeltaInput, said
		case m.Name == "citation":
			a.citations = append(a.citations, string(m.Value))
		case isText:
			a.grow(m.Name, said)
			switch m.Name {
			case "text":
				kind, shown = api.DeltaText, said
			case "thinking":
				kind, shown = api.DeltaThinking, said
			}
		default:
			a.set(m.Name, m.Value)
		}
	}
	return kind, shown, nil
}

func (a *assembly) grow(name, said string) {
	b := a.texts[name]
	if b == nil {
		b = &strings.Builder{}
		a.texts[name] = b
		start, _, _ := wire.TakeText(a.members, name)
		b.WriteString(start)
		a.set(name, `""`) // keeps its place
	}
	b.WriteString(said)
}

func (a *assembly) set(name string, value content.JSON) {
	for i := range a.members {
		if a.members[i].Name == name {
			a.members[i].Value = value
			return
		}
	}
	a.members = append(a.members, wire.Member{Name: name, Value: value})
}

// emptyCall reports whether the block is a tool call that no arguments were written of.
func (a *assembly) emptyCall() bool { return a.kind == "tool_use" && blank(a.input.String()) }

// block returns the finished block.
func (a *assembly) block() (content.Block, error) {
	for name, said := range a.texts {
		a.set(name, wire.Quote(said.String()))
	}
	if len(a.citations) > 0 {
		a.set("citations", a.allCitations())
	}
	input := content.JSON(a.input.String())
	switch {
	case blank(string(input)):
	case input.Valid():
		a.set("input", input)
	default:
		a.set("input", wire.Quote(string(input)))
	}
	b, err := decodeBlock(wire.Object(a.members))
	if call, ok := b.(content.ToolUse); ok && !blank(string(input)) {
		call.Input = input // as the model wrote it, also where it broke off
		b = call
	}
	return b, err
}

// allCitations is those that the block began with and those that came.
func (a *assembly) allCitations() content.JSON {
	all := strings.Join(a.citations, ",")
	start, _ := wire.Take(a.members, "citations")
	if held := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(string(start), "["), "]")); held != "" && held != "null" {
		all = held + "," + all
	}
	return content.JSON("[" + all + "]")
}
