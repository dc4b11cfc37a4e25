package anthropic

import (
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// assembly builds one block of a stream, in the form it has in a whole response. It does not depend on the type of the
// block. A delta changes a member in one of these ways:
//
//   - A text is appended to the member of the same name.
//   - partial_json is appended to the text of "input".
//   - A "citation" is appended to the list "citations".
//   - Any other value replaces the member.
type assembly struct {
	kind, tool string
	members    []jsonx.Member
	// Growing members, by name. Their values in members are placeholders until block.
	texts map[string]*strings.Builder
	input strings.Builder
	// Citations from deltas; members holds those of the start.
	citations []string
	// Set by content_block_stop.
	done bool
}

// estimatedTokens is a member of thinking deltas. It is no part of the block, and a signed block with it is refused.
const estimatedTokens = "estimated_tokens"

// assemble returns the assembly for the block begun by a content_block_start.
func assemble(start content.JSON) (*assembly, error) {
	list, err := jsonx.Members(start)
	if err != nil {
		return nil, err
	}

	a := &assembly{members: list, texts: map[string]*strings.Builder{}}
	a.kind, _, _ = jsonx.TakeText(list, "type")
	if a.kind == "tool_use" || isServerCall(a.kind) {
		a.tool, _, _ = jsonx.TakeText(list, "name")
		if toolset, _, _ := jsonx.TakeText(list, toolsetName); toolset != "" {
			a.tool = toolset + "_" + a.tool
		}
	}
	return a, nil
}

// add applies a delta. It returns the text to emit, or an empty kind if there is none.
func (a *assembly) add(delta content.JSON) (api.DeltaKind, string, error) {
	list, err := jsonx.Members(delta)
	if err != nil {
		return "", "", err
	}

	// Members known only to a newer version of the API are kept too: texts grow, other values are set.
	var kind api.DeltaKind
	var shown string
	for _, m := range list {
		text, isText := jsonx.Text(m.Value)
		switch {
		case m.Name == "type", m.Name == estimatedTokens:
		case m.Name == "partial_json" && isText:
			a.input.WriteString(text)
			kind, shown = api.DeltaInput, text
		case m.Name == "citation":
			a.citations = append(a.citations, string(m.Value))
		case isText:
			a.grow(m.Name, text)
			switch m.Name {
			case "text":
				kind, shown = api.DeltaText, text
			case "thinking":
				kind, shown = api.DeltaThinking, text
			}
		default:
			a.set(m.Name, m.Value)
		}
	}

	return kind, shown, nil
}

// grow appends text to a member.
func (a *assembly) grow(name, text string) {
	b := a.texts[name]
	if b == nil {
		b = &strings.Builder{}
		a.texts[name] = b
		start, _, _ := jsonx.TakeText(a.members, name)
		b.WriteString(start)
		a.set(name, `""`) // reserves its position among the members
	}

	b.WriteString(text)
}

// set replaces a member, or appends it.
func (a *assembly) set(name string, value content.JSON) {
	for i := range a.members {
		if a.members[i].Name == name {
			a.members[i].Value = value
			return
		}
	}
	a.members = append(a.members, jsonx.Member{Name: name, Value: value})
}

// emptyCall reports whether the block is a tool call without any arguments so far.
func (a *assembly) emptyCall() bool { return a.kind == "tool_use" && blank(a.input.String()) }

// block returns the finished block.
func (a *assembly) block() (content.Block, error) {
	for name, text := range a.texts {
		a.set(name, jsonx.Quote(text.String()))
	}
	if len(a.citations) > 0 {
		a.set("citations", a.allCitations())
	}

	// Arguments cut off early are not valid JSON. They are passed on as a string.
	input := content.JSON(a.input.String())
	switch {
	case blank(string(input)):
	case input.Valid():
		a.set("input", input)
	default:
		a.set("input", jsonx.Quote(string(input)))
	}

	b, err := decodeBlock(jsonx.Object(a.members))
	if call, ok := b.(content.ToolUse); ok && !blank(string(input)) {
		call.Input = input // as the model wrote it, even if it is cut off
		b = call
	}
	return b, err
}

// allCitations returns the list of the citations of the block's start and of its deltas.
func (a *assembly) allCitations() content.JSON {
	all := strings.Join(a.citations, ",")

	// The start has a list, possibly empty, or null.
	start, _ := jsonx.Take(a.members, "citations")
	if held := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(string(start), "["), "]")); held != "" &&
		held != "null" {
		all = held + "," + all
	}
	return content.JSON("[" + all + "]")
}
