package openai

import (
	"slices"

	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// messageOwn lists the members of an assistant message that neither an Extra nor an Opaque may set.
var messageOwn = []string{"role", "content", "tool_calls", "function_call", "tool_call_id"}

// appendAssistant writes an assistant message: its content, its further members, its calls.
func appendAssistant(dst []byte, m content.Message) []byte {
	var said assistant
	for _, b := range m.Blocks.All() {
		said.take(b)
	}

	dst = append(dst, `{"role":"assistant"`...)

	// A message without content has null only beside something else; otherwise its content is an empty text.
	if len(said.parts) == 0 && (len(said.calls) > 0 || said.has("refusal") || said.has("audio")) {
		dst = append(dst, `,"content":null`...)
	} else {
		dst = appendParts(dst, said.parts)
	}

	dst = roundtrip.AppendMembers(dst, said.further)
	if len(said.calls) > 0 {
		dst = append(write.Name(dst, "tool_calls"), '[')
		begin := len(dst)
		for _, call := range said.calls {
			dst = appendCall(another(dst, begin), call)
		}
		dst = append(dst, ']')
	}

	return append(dst, '}')
}

// assistant is an assistant message under construction.
type assistant struct {
	parts   []content.Block // of the content
	further []jsonx.Member  // all members but role, content and calls
	calls   []content.ToolUse
}

// take adds a block to the message.
func (a *assistant) take(b content.Block) {
	switch b := b.(type) {
	case content.Text:
		a.text(b)
	case content.Thinking:
		// Thinking that came as a part of the content goes back as one.
		for _, m := range thinkingMembers(b) {
			if m.Name == "content" {
				a.parts = append(a.parts, content.Opaque{API: ChatAPI, JSON: m.Value})
			} else {
				a.add(m)
			}
		}
	case content.Opaque:
		// An Opaque with a type is a part of the content. Any other holds further members of the message.
		list, _ := jsonx.Members(b.JSON) // checked when the block was made
		if _, isPart := partType(list); isPart {
			a.parts = append(a.parts, b)
			return
		}

		for _, m := range ownMembers(list) {
			a.add(m)
		}
	case content.ToolUse:
		a.calls = append(a.calls, b)
	}
}

// text adds a text: as a refusal or as audio if its Extra marks it as such, otherwise as a content part. Annotations
// become a member of the message.
func (a *assistant) text(t content.Text) {
	list, _ := jsonx.Members(t.Extra.For(ChatAPI)) // checked when the block was made
	notes, list := jsonx.Take(list, "annotations")
	if notes != "" {
		a.add(jsonx.Member{Name: "annotations", Value: notes})
	}

	audio, list := jsonx.Take(list, "audio")
	switch id := audioID(audio); {
	case isChatRefusal(t):
		a.add(jsonx.Member{Name: "refusal", Value: jsonx.Quote(t.Text)})
	case id != "" && !a.has("audio"):
		a.add(jsonx.Member{Name: "audio", Value: jsonx.Object([]jsonx.Member{{Name: "id", Value: jsonx.Quote(id)}})})
	default:
		// A message refers to one audio at most: a further one is sent as its transcript.
		t.Extra = extra(list)
		a.parts = append(a.parts, t)
	}
}

// audioID returns the ID of the model's audio in the API's store, or "".
func audioID(audio content.JSON) string {
	list, err := jsonx.Members(audio)
	if err != nil {
		return ""
	}
	id, _, _ := jsonx.TakeText(list, "id")
	return id
}

func (a *assistant) has(name string) bool {
	return slices.ContainsFunc(a.further, func(m jsonx.Member) bool { return m.Name == name })
}

// add sets a further member. If it is already there, the values are merged: the message may have been joined from
// several in a row.
func (a *assistant) add(m jsonx.Member) {
	for i, old := range a.further {
		if old.Name == m.Name {
			if m.Name != "name" { // a message has one name
				a.further[i].Value = joined(old.Value, m.Value)
			}
			return
		}
	}
	a.further = append(a.further, m)
}

// joined merges two values: two texts are joined by a newline, two lists are concatenated. In all other cases the first
// value stays.
func joined(a, b content.JSON) content.JSON {
	first, ok := jsonx.Text(a)
	second, too := jsonx.Text(b)
	if ok && too {
		return jsonx.Quote(first + "\n" + second)
	}

	list, err := jsonx.Items(a)
	more, failed := jsonx.Items(b)
	if err != nil || failed != nil || len(list) == 0 && len(more) == 0 {
		return a
	}
	return jsonx.Array(append(list, more...))
}

// ownMembers returns the members of an Opaque allowed in a message.
func ownMembers(list []jsonx.Member) []jsonx.Member {
	var own []jsonx.Member
	for _, m := range list {
		if !slices.Contains(messageOwn, m.Name) {
			own = append(own, m)
		}
	}
	return own
}

// fieldMember is a member of a Thinking's Extra. Its value is the name of the message member with the text:
// "reasoning_content", "reasoning", or "content" for a content part. All other members of the Extra are members of the
// message.
const fieldMember = "field"

// thinkingMembers converts thinking back to its original members of the message.
func thinkingMembers(t content.Thinking) []jsonx.Member {
	list, err := jsonx.Members(t.Extra.For(ChatAPI))
	if err != nil {
		return nil
	}
	field, list, _ := jsonx.TakeText(list, fieldMember)

	own := ownMembers(list)
	switch {
	case field == "" || t.Text == "":
		return own
	case field == "content":
		part := append(write.String([]byte(`[{"type":"text"`), "text", t.Text), "}]"...)
		thought := jsonx.Object([]jsonx.Member{
			{Name: "type", Value: `"thinking"`}, {Name: "thinking", Value: content.JSON(part)},
		})
		return append([]jsonx.Member{{Name: "content", Value: thought}}, own...)
	case slices.Contains(messageOwn, field):
		// The text must not become the role or the calls of the message.
		return own
	}

	// The text replaces a member of the same name.
	_, own = jsonx.Take(own, field)
	return append([]jsonx.Member{{Name: field, Value: jsonx.Quote(t.Text)}}, own...)
}

// appendCall writes a tool call. Its arguments are a text in this API, and stay as the model wrote them.
func appendCall(dst []byte, call content.ToolUse) []byte {
	further, _ := jsonx.Members(call.Extra.For(ChatAPI)) // checked when the block was made
	kind, inner, input := "function", "arguments", string(call.Input)
	if isCustom(call.Extra) {
		kind, inner = "custom", "input"
		input, _ = jsonx.Text(call.Input) // a text: acceptCustom made sure
	}

	dst = write.String(append(dst, '{'), "id", call.ID)
	dst = write.String(dst, "type", kind)
	dst = write.String(append(write.Name(dst, kind), '{'), "name", call.Name)
	dst = write.String(dst, inner, input)

	nested, further := jsonx.Take(further, kind)
	dst = append(appendFurther(dst, nested, "name", inner), '}')
	return append(roundtrip.AppendMembers(dst, further, "id", "type", "index"), '}')
}

// extra keeps members without a field in the block.
func extra(rest []jsonx.Member) content.Extra {
	if len(rest) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: ChatAPI, JSON: jsonx.Object(rest)}
}
