package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// chatAnswer puts a message of the assistant together: from the deltas of a stream, or from a whole message, which is one delta.
// So both say the same. Its blocks come in the order thinking, words, refusal, what the API has beyond that, and calls.
//
// Members that Plait does not model are kept: those of thinking in its Extra, annotations in that of the text, others as a
// content.Opaque.
type chatAnswer struct {
	thought  tree // the text that is thinking, and
	field    string
	said     tree
	refusal  tree
	parts    []content.Block // parts of the content of other types
	further  members
	thinking members
	calls    []*chatCallParts
	byIndex  map[content.JSON]*chatCallParts
}

func newChatAnswer() *chatAnswer {
	return &chatAnswer{
		further: members{by: map[string]*tree{}}, thinking: members{by: map[string]*tree{}}, byIndex: map[content.JSON]*chatCallParts{},
	}
}

// chatCallParts is a tool call under construction.
type chatCallParts struct {
	id, name  string
	kind      string // "function", "custom"
	arguments strings.Builder
	further   members // of the call
	inner     members // of its function
}

// thoughtFields is the members of compatible servers that hold the model's thinking as a text, and thoughtMembers those that hold
// it in another form.
var (
	thoughtFields  = []string{"reasoning_content", "reasoning"}
	thoughtMembers = []string{"reasoning_details", "reasoning_signature", "thinking_blocks", "reasoning_opaque"}
)

// piece is what a delta shows: a part of a text, or of a call's arguments.
type piece struct {
	kind api.DeltaKind
	text string
	of   *tree
	call *chatCallParts
}

// add goes on with the next delta, and returns what it shows. Whole says that it is a whole message.
func (a *chatAnswer) add(delta content.JSON, whole bool) ([]piece, error) {
	list, err := wire.Members(delta)
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

// grow adds a text to t and shows it.
func grow(kind api.DeltaKind, t *tree, value content.JSON) []piece {
	said, _ := wire.Text(value)
	if said == "" {
		return nil
	}
	t.add("", value, 0)
	return []piece{{kind: kind, text: said, of: t}}
}

// isField reports whether m is the text of the thinking: the first member that says something decides, so that a server that says
// it twice, under two names, is shown once.
func (a *chatAnswer) isField(m wire.Member) bool {
	if said, ok := wire.Text(m.Value); !ok || said == "" {
		return false
	}
	if a.field == "" {
		a.field = m.Name
	}
	return a.field == m.Name
}

// content takes the words: a text, or a list of parts, in which some servers hold their thinking as well.
func (a *chatAnswer) content(value content.JSON) []piece {
	if shown := grow(api.DeltaText, &a.said, value); shown != nil {
		return shown
	}
	var list []wire.Raw
	if value.Decode(&list) != nil {
		return nil
	}
	var shown []piece
	for _, item := range list {
		shown = append(shown, a.part(content.JSON(item))...)
	}
	return shown
}

func (a *chatAnswer) part(part content.JSON) []piece {
	list, err := wire.Members(part)
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
		if a.field == "" {
			a.field = "content"
		}
		var inner []wire.Raw
		if thinking.Decode(&inner) != nil {
			return grow(api.DeltaThinking, &a.thought, thinking)
		}
		var shown []piece
		for _, one := range inner {
			if words, err := wire.Members(content.JSON(one)); err == nil {
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

// addCalls takes pieces of tool calls.
func (a *chatAnswer) addCalls(value content.JSON, whole bool) []piece {
	var list []wire.Raw
	if value.Decode(&list) != nil {
		return nil
	}
	var shown []piece
	for _, item := range list {
		parts, err := wire.Members(content.JSON(item))
		if err != nil {
			continue
		}
		call := a.callOf(content.JSON(item), parts, whole)
		if said := call.add(parts); said != "" {
			shown = append(shown, piece{kind: api.DeltaInput, text: said, call: call})
		}
	}
	return shown
}

// callOf returns the call that a piece belongs to: by its index, and where a server gives none, or always the same, by its id and
// name, which begin a call.
func (a *chatAnswer) callOf(item content.JSON, parts []wire.Member, whole bool) *chatCallParts {
	id, name := firstText(parts, "id"), ""
	for _, kind := range []string{"function", "custom"} {
		if inner, err := wire.Members(value(parts, kind)); err == nil {
			name += firstText(inner, "name")
		}
	}
	index := indexOf(item)
	at := a.byIndex[index]
	if index == "" && len(a.calls) > 0 {
		at = a.calls[len(a.calls)-1]
	}
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

// isOver reports whether a piece with this id and name begins another call.
func (c *chatCallParts) isOver(id, name string, index content.JSON) bool {
	switch {
	case name == "":
		return false
	case id != "" && c.id != "":
		return id != c.id
	}
	return index == "" && c.name != "" && c.arguments.Len() > 0
}

// add takes a piece of the call, and returns what it adds to the arguments.
func (c *chatCallParts) add(parts []wire.Member) string {
	shown := ""
	for _, m := range parts {
		switch m.Name {
		case "index":
		case "id":
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

func (c *chatCallParts) addInner(function content.JSON) string {
	list, err := wire.Members(function)
	if err != nil {
		return ""
	}
	if name := textOf(value(list, "name")); name != c.name && c.arguments.Len() == 0 {
		c.name += name
	}
	shown := ""
	for _, m := range list {
		switch m.Name {
		case "name":
		case "arguments", "input":
			said, ok := wire.Text(m.Value)
			if !ok && m.Value != "null" {
				said = string(m.Value) // an object, where the API has its text
			}
			c.arguments.WriteString(said)
			shown += said
		default:
			c.inner.at(m.Name).add(m.Name, m.Value, 0)
		}
	}
	return shown
}

// legacy takes the one call of the API's first form, which has no id.
func (a *chatAnswer) legacy(function content.JSON) []piece {
	if len(a.calls) == 0 {
		a.calls = append(a.calls, &chatCallParts{further: members{by: map[string]*tree{}}, inner: members{by: map[string]*tree{}}})
	}
	call := a.calls[len(a.calls)-1]
	if said := call.addInner(function); said != "" {
		return []piece{{kind: api.DeltaInput, text: said, call: call}}
	}
	return nil
}

func textOf(j content.JSON) string {
	said, _ := wire.Text(j)
	return said
}

// place is the index that the block of a piece has, as far as can be told before the end.
func (a *chatAnswer) place(p piece) int {
	at := 0
	for _, stands := range []struct {
		of    *tree
		count int
	}{
		{&a.thought, count(a.thinks())}, {&a.said, count(a.said.says())}, {nil, count(a.speaks())}, {&a.refusal, count(a.refusal.says())},
	} {
		if p.of != nil && p.of == stands.of {
			return at
		}
		at += stands.count
	}
	return at + len(a.parts) + count(a.hasMore()) + slices.Index(a.calls, p.call)
}

func count(there bool) int {
	if there {
		return 1
	}
	return 0
}

// speaks reports whether the answer is said aloud, too, and hasMore whether anything else will be an Opaque.
func (a *chatAnswer) speaks() bool {
	audio := a.further.by["audio"]
	return audio != nil && audio.object != nil && audio.object.by["id"].words() != ""
}

func (a *chatAnswer) hasMore() bool {
	return slices.ContainsFunc(a.further.names, func(name string) bool {
		return a.further.by[name].says() && (name != "annotations" || !a.said.says()) && (name != "audio" || !a.speaks())
	})
}

// own is the members that Plait does not model, and the annotations apart where there is a text that they are about.
func (a *chatAnswer) own() (list []wire.Member, annotations content.JSON) {
	list = a.further.list()
	if a.said.says() {
		annotations, list = wire.Take(list, "annotations")
	}
	return list, annotations
}

func (a *chatAnswer) thinks() bool { return a.thought.says() || a.thinking.says() }

func (m *members) says() bool {
	for _, t := range m.by {
		if t.says() {
			return true
		}
	}
	return false
}

// list is the members that say something, in the order they came.
func (m *members) list() []wire.Member {
	var list []wire.Member
	for _, name := range m.names {
		if t := m.by[name]; t.says() {
			list = append(list, wire.Member{Name: name, Value: t.json()})
		}
	}
	return list
}

// blocks is what was said. Whole says that the answer was not cut off.
func (a *chatAnswer) blocks(whole bool) []content.Block {
	var blocks []content.Block
	if a.thinks() {
		blocks = append(blocks, a.thinkingBlock())
	}
	further, annotations := a.own()
	if a.said.says() {
		t := content.Text{Text: a.said.words()}
		if annotations != "" {
			t.Extra = extra([]wire.Member{{Name: "annotations", Value: annotations}})
		}
		blocks = append(blocks, t)
	}
	if audio, rest := wire.Take(further, "audio"); a.speaks() {
		blocks, further = append(blocks, spoken(audio)), rest
	}
	if a.refusal.says() {
		blocks = append(blocks, content.Text{Text: a.refusal.words(), Extra: content.Extra{API: ChatAPI, JSON: `{"type":"refusal"}`}})
	}
	blocks = append(blocks, a.parts...)
	if len(further) > 0 {
		blocks = append(blocks, content.Opaque{API: ChatAPI, JSON: wire.Object(further)})
	}
	for _, call := range a.calls {
		blocks = append(blocks, call.block(whole))
	}
	return blocks
}

func (a *chatAnswer) thinkingBlock() content.Block {
	var list []wire.Member
	if a.field != "" {
		list = append(list, wire.Member{Name: fieldMember, Value: wire.Quote(a.field)})
	}
	words := a.thought.words()
	if words == "" {
		words = detailsText(a.thinking.by["reasoning_details"])
	}
	list = append(list, a.thinking.list()...)
	return content.Thinking{Text: words, Extra: content.Extra{API: ChatAPI, JSON: wire.Object(list)}}
}

// detailsText is the words in OpenRouter's reasoning_details.
func detailsText(details *tree) string {
	if details == nil || details.list == nil {
		return ""
	}
	var words []string
	for _, item := range details.list.all {
		if item.object == nil {
			continue
		}
		for _, name := range []string{"text", "summary"} {
			if said := item.object.by[name].words(); said != "" {
				words = append(words, said)
			}
		}
	}
	return strings.Join(words, "\n")
}

// spoken is what the model said aloud, as text: it goes back by its id.
func spoken(audio content.JSON) content.Block {
	list, _ := wire.Members(audio) // it has an id
	words, _, _ := wire.TakeText(list, "transcript")
	return content.Text{Text: cmp.Or(words, "[audio]"), Extra: extra([]wire.Member{{Name: "audio", Value: audio}})}
}

// block is the finished call. Its arguments are as the model wrote them. Where it wrote none, they are an empty object, but not
// where the answer was cut off.
func (c *chatCallParts) block(whole bool) content.Block {
	call := content.ToolUse{ID: c.id, Name: c.name, Input: content.JSON(c.arguments.String())}
	further := c.further.list()
	kind := "function"
	if c.kind == "custom" {
		kind, call.Input = "custom", wire.Quote(c.arguments.String())
		further = append(further, wire.Member{Name: "type", Value: `"custom"`})
	} else if call.Input == "" && whole {
		call.Input = "{}"
	}
	if inner := c.inner.list(); len(inner) > 0 {
		further = append(further, wire.Member{Name: kind, Value: wire.Object(inner)})
	}
	call.Extra = extra(further)
	return call
}
