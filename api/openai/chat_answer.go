package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// chatAnswer builds the blocks of an assistant message. It reads the deltas of a stream, or a whole message as a single
// delta. Both forms of a response therefore give the same blocks, in this order: thinking, text, audio, refusal,
// content parts of other types, further members, tool calls.
//
// Members without a field in Plait are kept: those about thinking in the Extra of the Thinking, annotations in the
// Extra of the Text, all others as a content.Opaque.
type chatAnswer struct {
	thought  tree                            // the text of the thinking
	field    string                          // the member it came in, "content" for a content part; "" at first
	said     tree                            // the text of the message
	refusal  tree                            // the text of a refusal
	parts    []content.Block                 // content parts of other types
	further  members                         // members without a field in Plait
	thinking members                         // members with thinking in other forms than a text
	calls    []*chatCallParts                // in the order of their first pieces
	byIndex  map[content.JSON]*chatCallParts // the calls with an index
}

func newChatAnswer() *chatAnswer {
	return &chatAnswer{
		further:  members{by: map[string]*tree{}},
		thinking: members{by: map[string]*tree{}},
		byIndex:  map[content.JSON]*chatCallParts{},
	}
}

// chatCallParts is a tool call under construction.
type chatCallParts struct {
	id, name  string
	kind      string // "function", "custom"; "" before it is known
	arguments strings.Builder
	further   members // further members of the call
	inner     members // further members of its function
}

// Compatible servers send the model's thinking as a text in one of thoughtFields, or in another form in thoughtMembers.
var (
	thoughtFields  = []string{"reasoning_content", "reasoning"}
	thoughtMembers = []string{"reasoning_details", "reasoning_signature", "thinking_blocks", "reasoning_opaque"}
)

// piece is a displayable part of a delta: a fragment of a text, or of the arguments of a call.
type piece struct {
	kind api.DeltaKind
	text string
	of   *tree          // the text it extends; nil for a call
	call *chatCallParts // the call it extends; nil for a text
}

// add merges the next delta and returns the pieces to show. If whole is set, the delta is a complete message.
func (a *chatAnswer) add(delta content.JSON, whole bool) ([]piece, error) {
	list, err := jsonx.Members(delta)
	if err != nil {
		return nil, err
	}

	var shown []piece
	for _, m := range list {
		switch {
		case m.Name == "role" || m.Value == "null":
		case m.Name == "content":
			shown = append(shown, a.content(m.Value)...)
		case m.Name == "refusal":
			shown = append(shown, grow(api.DeltaText, &a.refusal, m.Value)...)
		case slices.Contains(thoughtFields, m.Name) && a.isField(m):
			shown = append(shown, grow(api.DeltaThinking, &a.thought, m.Value)...)

		// A second copy of the thinking, or thinking in another form than text.
		case slices.Contains(thoughtFields, m.Name), slices.Contains(thoughtMembers, m.Name):
			a.thinking.at(m.Name).add(m.Name, m.Value, 0)

		case m.Name == "tool_calls":
			shown = append(shown, a.addCalls(m.Value, whole)...)
		case m.Name == "function_call":
			shown = append(shown, a.legacy(m.Value)...)
		default:
			a.further.at(m.Name).add(m.Name, m.Value, 0)
		}
	}
	return shown, nil
}

// grow appends the text in value to t and returns it as a piece. Anything but a non-empty text is ignored.
func grow(kind api.DeltaKind, t *tree, value content.JSON) []piece {
	s, _ := jsonx.Text(value)
	if s == "" {
		return nil
	}
	t.add("", value, 0)
	return []piece{{kind: kind, text: s, of: t}}
}

// isField reports whether m holds the text of the thinking. The first member with a text decides: if a server sends the
// same thinking under two names, it is shown once.
func (a *chatAnswer) isField(m jsonx.Member) bool {
	if text, ok := jsonx.Text(m.Value); !ok || text == "" {
		return false
	}
	if a.field == "" {
		a.field = m.Name
	}
	return a.field == m.Name
}

// content merges the content of a message: a text or a list of parts. Some servers put thinking into that list.
func (a *chatAnswer) content(value content.JSON) []piece {
	if shown := grow(api.DeltaText, &a.said, value); shown != nil {
		return shown
	}

	list, err := jsonx.Items(value)
	if err != nil {
		return nil
	}

	var shown []piece
	for _, item := range list {
		shown = append(shown, a.part(item)...)
	}
	return shown
}

// part merges a content part. A part of an unknown type becomes an Opaque; one without a type is dropped.
func (a *chatAnswer) part(part content.JSON) []piece {
	list, err := jsonx.Members(part)
	if err != nil {
		return nil
	}

	kind, _ := partType(list)
	switch text, thinking := value(list, "text"), value(list, "thinking"); kind {
	case "text":
		return grow(api.DeltaText, &a.said, text)
	case "refusal":
		return grow(api.DeltaText, &a.refusal, value(list, "refusal"))
	case "thinking":
		// Remember where the thinking came, to send it back there.
		if a.field == "" {
			a.field = "content"
		}

		// The thinking is a text, or a list of text parts.
		inner, err := jsonx.Items(thinking)
		if err != nil {
			return grow(api.DeltaThinking, &a.thought, thinking)
		}

		var shown []piece
		for _, one := range inner {
			if words, err := jsonx.Members(one); err == nil {
				shown = append(shown, grow(api.DeltaThinking, &a.thought, value(words, "text"))...)
			}
		}
		return shown
	}

	if kind != "" {
		a.parts = append(a.parts, content.Opaque{API: ChatAPI, JSON: part})
	}
	return nil
}

// addCalls merges pieces of tool calls. If whole is set, each piece is a call of its own.
func (a *chatAnswer) addCalls(value content.JSON, whole bool) []piece {
	list, err := jsonx.Items(value)
	if err != nil {
		return nil
	}

	var shown []piece
	for _, item := range list {
		parts, err := jsonx.Members(item)
		if err != nil {
			continue
		}
		call := a.callOf(item, parts, whole)
		if s := call.add(parts); s != "" {
			shown = append(shown, piece{kind: api.DeltaInput, text: s, call: call})
		}
	}
	return shown
}

// callOf returns the call for a piece, creating it if needed. The index identifies a call. If the server sends no
// index, or the same one for all calls, an ID and a name begin a new call.
func (a *chatAnswer) callOf(item content.JSON, parts []jsonx.Member, whole bool) *chatCallParts {
	id, name := firstText(parts, "id"), ""
	for _, kind := range []string{"function", "custom"} {
		if inner, err := jsonx.Members(value(parts, kind)); err == nil {
			name += firstText(inner, "name")
		}
	}

	// Without an index, a piece continues the last call.
	index := indexOf(item)
	at := a.byIndex[index]
	if index == "" && len(a.calls) > 0 {
		at = a.calls[len(a.calls)-1]
	}

	// A whole message has one piece for each call.
	if at != nil && !whole && !at.isOver(id, name, index) {
		return at
	}

	at = &chatCallParts{further: members{by: map[string]*tree{}}, inner: members{by: map[string]*tree{}}}
	a.calls = append(a.calls, at)
	if index != "" {
		a.byIndex[index] = at
	}
	return at
}

// isOver reports whether a piece with this ID, name and index begins another call.
func (c *chatCallParts) isOver(id, name string, index content.JSON) bool {
	switch {
	case name == "":
		return false
	case id != "" && c.id != "":
		return id != c.id
	}

	// Without IDs to compare, a name after arguments begins another call.
	return index == "" && c.name != "" && c.arguments.Len() > 0
}

// add merges a piece of the call and returns the text it appends to the arguments.
func (c *chatCallParts) add(parts []jsonx.Member) string {
	shown := ""
	for _, m := range parts {
		switch m.Name {
		case "index":
		case "id":
			// The first ID stays: some servers send an empty or a new one with each further piece.
			c.id = cmp.Or(c.id, textOf(m.Value))
		case "type":
			c.kind = cmp.Or(c.kind, textOf(m.Value))
		case "function", "custom":
			shown += c.addInner(m.Value)
		default:
			c.further.at(m.Name).add(m.Name, m.Value, 0)
		}
	}
	return shown
}

// addInner merges a piece of the call's function, and returns the text it appends to the arguments.
func (c *chatCallParts) addInner(function content.JSON) string {
	list, err := jsonx.Members(function)
	if err != nil {
		return ""
	}

	// Some servers repeat the name in each piece: only a different one continues it, and only before the arguments.
	if name := textOf(value(list, "name")); name != c.name && c.arguments.Len() == 0 {
		c.name += name
	}

	shown := ""
	for _, m := range list {
		switch m.Name {
		case "name":
		case "arguments", "input":
			text, ok := jsonx.Text(m.Value)
			if !ok && m.Value != "null" {
				text = string(m.Value) // an object instead of its text, from some servers
			}
			c.arguments.WriteString(text)
			shown += text
		default:
			c.inner.at(m.Name).add(m.Name, m.Value, 0)
		}
	}
	return shown
}

// legacy merges the only call of "function_call", the oldest form of the API. It has no ID.
func (a *chatAnswer) legacy(function content.JSON) []piece {
	if len(a.calls) == 0 {
		a.calls = append(a.calls, &chatCallParts{
			further: members{by: map[string]*tree{}}, inner: members{by: map[string]*tree{}},
		})
	}

	call := a.calls[len(a.calls)-1]
	if s := call.addInner(function); s != "" {
		return []piece{{kind: api.DeltaInput, text: s, call: call}}
	}
	return nil
}

func textOf(j content.JSON) string {
	text, _ := jsonx.Text(j)
	return text
}

// place returns the index of p's block, as far as it is known before the end of the response. The order is the one in
// blocks.
func (a *chatAnswer) place(p piece) int {
	// The blocks in front of the parts and the calls, each with its text. Audio has no deltas.
	at := 0
	for _, block := range []struct {
		of    *tree
		count int
	}{
		{&a.thought, count(a.thinks())},
		{&a.said, count(a.said.nonEmpty())},
		{nil, count(a.hasAudio())},
		{&a.refusal, count(a.refusal.nonEmpty())},
	} {
		if p.of != nil && p.of == block.of {
			return at
		}
		at += block.count
	}
	return at + len(a.parts) + count(a.hasMore()) + slices.Index(a.calls, p.call)
}

func count(there bool) int {
	if there {
		return 1
	}
	return 0
}

// hasAudio reports whether the message has audio.
func (a *chatAnswer) hasAudio() bool {
	audio := a.further.by["audio"]
	return audio != nil && audio.object != nil && audio.object.by["id"].words() != ""
}

// hasMore reports whether any further member becomes part of an Opaque. Annotations of a text and audio do not.
func (a *chatAnswer) hasMore() bool {
	return slices.ContainsFunc(a.further.names, func(name string) bool {
		return a.further.by[name].nonEmpty() &&
			(name != "annotations" || !a.said.nonEmpty()) &&
			(name != "audio" || !a.hasAudio())
	})
}

// own returns the further members. If there is a text, its annotations are returned apart.
func (a *chatAnswer) own() (list []jsonx.Member, annotations content.JSON) {
	list = a.further.list()
	if a.said.nonEmpty() {
		annotations, list = jsonx.Take(list, "annotations")
	}
	return list, annotations
}

func (a *chatAnswer) thinks() bool { return a.thought.nonEmpty() || a.thinking.nonEmpty() }

func (m *members) nonEmpty() bool {
	for _, t := range m.by {
		if t.nonEmpty() {
			return true
		}
	}
	return false
}

// list returns the members with a value, in the order they came.
func (m *members) list() []jsonx.Member {
	var list []jsonx.Member
	for _, name := range m.names {
		if t := m.by[name]; t.nonEmpty() {
			list = append(list, jsonx.Member{Name: name, Value: t.json()})
		}
	}
	return list
}

// blocks returns the content of the message. If whole is not set, the response was cut off.
func (a *chatAnswer) blocks(whole bool) []content.Block {
	var blocks []content.Block
	if a.thinks() {
		blocks = append(blocks, a.thinkingBlock())
	}

	further, annotations := a.own()
	if a.said.nonEmpty() {
		t := content.Text{Text: a.said.words()}
		if annotations != "" {
			t.Extra = extra([]jsonx.Member{{Name: "annotations", Value: annotations}})
		}
		blocks = append(blocks, t)
	}

	if audio, rest := jsonx.Take(further, "audio"); a.hasAudio() {
		blocks, further = append(blocks, spoken(audio)), rest
	}

	if a.refusal.nonEmpty() {
		blocks = append(blocks, content.Text{
			Text: a.refusal.words(), Extra: content.Extra{API: ChatAPI, JSON: `{"type":"refusal"}`},
		})
	}

	// Parts and members unknown to Plait are kept, and go back to the API.
	blocks = append(blocks, a.parts...)
	if len(further) > 0 {
		blocks = append(blocks, content.Opaque{API: ChatAPI, JSON: jsonx.Object(further)})
	}

	for _, call := range a.calls {
		blocks = append(blocks, call.block(whole))
	}
	return blocks
}

func (a *chatAnswer) thinkingBlock() content.Block {
	var list []jsonx.Member
	if a.field != "" {
		list = append(list, jsonx.Member{Name: fieldMember, Value: jsonx.Quote(a.field)})
	}

	// OpenRouter may send the text of the thinking only among its details.
	words := a.thought.words()
	if words == "" {
		words = detailsText(a.thinking.by["reasoning_details"])
	}

	list = append(list, a.thinking.list()...)
	return content.Thinking{Text: words, Extra: content.Extra{API: ChatAPI, JSON: jsonx.Object(list)}}
}

// detailsText returns the text in OpenRouter's reasoning_details, one line for each item with a text.
func detailsText(details *tree) string {
	if details == nil || details.list == nil {
		return ""
	}

	var words []string
	for _, item := range details.list.all {
		if item.object == nil {
			continue
		}

		// A "reasoning.text" has a text, a "reasoning.summary" a summary. An encrypted item has neither.
		for _, name := range []string{"text", "summary"} {
			if text := item.object.by[name].words(); text != "" {
				words = append(words, text)
			}
		}
	}
	return strings.Join(words, "\n")
}

// spoken returns audio as a Text with its transcript. A later request refers to the audio by its ID.
func spoken(audio content.JSON) content.Block {
	list, _ := jsonx.Members(audio) // valid: hasAudio found an ID in it
	words, _, _ := jsonx.TakeText(list, "transcript")
	return content.Text{Text: cmp.Or(words, "[audio]"), Extra: extra([]jsonx.Member{{Name: "audio", Value: audio}})}
}

// block returns the finished call, with the arguments as the model wrote them. Missing arguments become an empty
// object, unless the response was cut off.
func (c *chatCallParts) block(whole bool) content.Block {
	call := content.ToolUse{ID: c.id, Name: c.name, Input: content.JSON(c.arguments.String())}
	further := c.further.list()

	// The input of a custom tool is any text, held as a JSON string.
	kind := "function"
	if c.kind == "custom" {
		kind, call.Input = "custom", jsonx.Quote(c.arguments.String())
		further = append(further, jsonx.Member{Name: "type", Value: `"custom"`})
	} else if call.Input == "" && whole {
		call.Input = "{}"
	}

	if inner := c.inner.list(); len(inner) > 0 {
		further = append(further, jsonx.Member{Name: kind, Value: jsonx.Object(inner)})
	}

	call.Extra = extra(further)
	return call
}
