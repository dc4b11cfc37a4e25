package openai

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

var chatTarget, _ = dialect.TargetOf(ChatAPI)

// chatRules is what the API accepts for a model that takes this.
func chatRules(takes chatTaking) dialect.Rules {
	accepter := chatAccepter{target: chatTarget, thinking: takes.thinking}
	if !takes.audio {
		accepter.target.Audio = dialect.Media{}
	}
	return dialect.Rules{
		Accept:    accepter.accept,
		ID:        chatTarget.FitsID,
		CallsLast: true,
		EndsOpen:  endsInWords,
		Prune:     mute,
	}
}

// endsInWords reports whether m ends with what the assistant says in words, which the API lets stand last.
func endsInWords(m content.Message) bool {
	said, ok := m.Blocks.At(m.Blocks.Len() - 1).(content.Text)
	return ok && !isChatRefusal(said)
}

// mute finds the assistant's messages that hold nothing but thinking.
func mute(messages []content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	for i, m := range messages {
		if m.Role != content.Assistant || slices.ContainsFunc(m.Blocks.Slice(), speaks) {
			continue
		}
		for j := range m.Blocks.Len() {
			found = append(found, dialect.Pruned{Message: i, Block: j, Why: "thinking in a message that says nothing else"})
		}
	}
	return found
}

func speaks(b content.Block) bool {
	_, thinks := b.(content.Thinking)
	return !thinks
}

// chatAccepter is the rules for switching, and what this API takes of its own blocks.
type chatAccepter struct {
	target   dialect.Target
	thinking bool
}

// accept is the table of what the API does with each kind of block. Where a row returns nothing, the rules for switching decide.
func (a *chatAccepter) accept(role content.Role, block content.Block, nested bool) (content.Block, string) {
	switch b := block.(type) {
	case content.Text, content.Document, content.ToolResult:
	case content.Image:
		if b.Source.FileID != "" {
			return content.Text{Text: "[image left out: it is a file, and the API shows no files]"}, "image left out: it is a file"
		}
	case content.Thinking:
		if !a.thinking {
			return nil, "thinking, which this model is not sent"
		}
		if b.Extra.API == ChatAPI && b.Text == "" && len(thinkingMembers(b)) == 0 {
			return nil, "thinking that says nothing"
		}
	case content.ToolUse:
		if isCustom(b.Extra) {
			return acceptCustom(b)
		}
	case content.Opaque:
		if b.API == ChatAPI {
			return a.own(role, b, nested)
		}
	case content.CutToolUse, content.Unknown: // never sent
	}
	return a.target.Accept(role, block, nested)
}

// own takes blocks of the API that Plait does not model: a part of a message's content, told by its "type", and, on the
// assistant's side, further members of a message.
func (a *chatAccepter) own(role content.Role, b content.Opaque, nested bool) (content.Block, string) {
	list, err := wire.Members(b.JSON)
	if err != nil {
		return nil, "a block of the API's own that is no object"
	}
	switch kind, isPart := partType(list); {
	case !isPart && role == content.Assistant && !nested && len(ownMembers(list)) > 0:
		return b, ""
	case !isPart || kind == "":
		return nil, "a block of the API's own that cannot stand there"
	case !slices.Contains(modelled, kind):
		return b, ""
	}
	part := decodePart(content.JSON(b.JSON))
	if _, still := part.(content.Opaque); still || role == content.Assistant {
		return nil, "a part of type " + string(wire.Quote(typeOf(b.JSON))) + " that the API would refuse"
	}
	taken, why := a.target.Accept(role, part, nested)
	if why == "" {
		why = "a part of the API's own is sent as the block that it is"
	}
	return taken, why
}

func partType(list []wire.Member) (kind string, ok bool) {
	j, _ := wire.Take(list, "type")
	kind, _ = wire.Text(j)
	return kind, j != ""
}

func typeOf(j content.JSON) string {
	list, _ := wire.Members(j) // it was checked
	kind, _ := partType(list)
	return kind
}

// modelled is the types of parts that Plait has blocks for.
var modelled = []string{"text", "refusal", "image_url", "input_audio", "file", "thinking"}

// acceptCustom takes a call of a custom tool, whose input is any text: a JSON string in ours.
func acceptCustom(b content.ToolUse) (content.Block, string) {
	why := ""
	if name := chatTarget.Name(b.Name); name != b.Name {
		b.Name, why = name, "the tool's name does not fit"
	}
	if _, ok := wire.Text(b.Input); !ok || !b.Input.Valid() {
		b.Input, why = wire.Quote(string(b.Input)), strings.TrimPrefix(why+"; the input of a custom tool is text", "; ")
	}
	return b, why
}

func isCustom(e content.Extra) bool {
	further := e.For(ChatAPI)
	return further != "" && typeOf(further) == "custom"
}

// isChatRefusal reports whether a text of the assistant is what it says in the place of an answer, which the API has a member for.
func isChatRefusal(t content.Text) bool {
	further := t.Extra.For(ChatAPI)
	return further != "" && typeOf(further) == "refusal"
}
