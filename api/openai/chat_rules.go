package openai

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/pattern"
)

var chatTarget = sync.OnceValue(func() dialect.Target {
	t, _ := dialect.TargetOf(ChatAPI)
	return t
})

// chatRules returns the rules of the API for a model with this support.
func chatRules(support chatSupport) dialect.Rules {
	accepter := chatAccepter{
		target: support.files.In(chatTarget()), thinking: support.thinking, thought: support.thought, plain: support.plain,
	}
	if !support.audio {
		accepter.target.Audio = dialect.Media{}
	}

	rules := dialect.Rules{
		Accept:    accepter.accept,
		ID:        support.fitsID,
		CallsLast: true,
		Prune:     aloneInChat,
	}
	if support.endsOpen {
		rules.EndsOpen = endsInWords
	}
	return rules
}

// nine matches IDs of calls accepted by Mistral.
var nine = pattern.Of(`^[a-zA-Z0-9]{9}$`)

// fitsID reports whether a request may contain the ID of a call.
func (s chatSupport) fitsID(id string) bool {
	if s.shortIDs {
		return nine().MatchString(id)
	}
	return chatTarget().FitsID(id)
}

// endsInWords reports whether m ends with text of the assistant. The API accepts such a message as the last one.
func endsInWords(m content.Message) bool {
	text, ok := m.Blocks.At(m.Blocks.Len() - 1).(content.Text)
	return ok && !isChatRefusal(text)
}

// aloneInChat finds the blocks that the API does not accept without others: the names of users without content, and
// thinking in assistant messages without anything else.
func aloneInChat(messages []content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	for i, m := range messages {
		if m.Role == content.User {
			found = append(found, namesAlone(i, m.Blocks.Slice())...)
			continue
		}
		if slices.ContainsFunc(m.Blocks.Slice(), isNotThinking) {
			continue
		}
		for j := range m.Blocks.Len() {
			found = append(found, dialect.Pruned{
				Message: i, Block: j, Why: "thinking in a message without other content",
			})
		}
	}
	return found
}

// namesAlone finds the names in message i without content between them and the next name, system message or end.
func namesAlone(i int, blocks []content.Block) []dialect.Pruned {
	var found []dialect.Pruned
	alone := true
	for j, b := range slices.Backward(blocks) {
		o, _ := b.(content.Opaque)
		named := userName(o) != ""
		if named && alone {
			found = append(found, dialect.Pruned{Message: i, Block: j, Why: "the name of a user without content"})
		}
		alone = named || isChatSystem(o)
	}
	return found
}

// isNotThinking reports whether b is anything but thinking.
func isNotThinking(b content.Block) bool {
	_, thinks := b.(content.Thinking)
	return !thinks
}

// chatAccepter makes blocks acceptable: by the rules for switching, plus this API's own rules for blocks.
type chatAccepter struct {
	target   dialect.Target
	thinking bool
	thought  string // see chatSupport
	plain    bool   // see chatSupport
}

// accept converts a block to one that the API accepts. It has a case for each kind of block. A case without a return
// leaves the decision to the rules for switching.
func (a *chatAccepter) accept(role content.Role, block content.Block, nested bool) (content.Block, string) {
	switch b := block.(type) {
	case content.Text, content.Document, content.ToolResult:
	case content.Image:
		if b.Source.FileID != "" {
			return content.Text{Text: "[image left out: it is an uploaded file, which the API does not accept]"},
				"image left out: it is an uploaded file"
		}
	case content.Thinking:
		if !a.thinking {
			return nil, "thinking, which the model does not accept"
		}
		if b.Extra.API == ChatAPI && b.Text == "" && len(thinkingMembers(b)) == 0 {
			return nil, "empty thinking"
		}
		if a.thought != "" && b.Extra.API == ChatAPI {
			return renamed(b, a.thought)
		}
	case content.ToolUse:
		// If a server knows only functions, the call of a custom tool becomes a call of a function.
		if isCustom(b.Extra) {
			if !a.plain {
				return acceptCustom(a.target, b)
			}
			b.Extra = content.Extra{}
			fit, why := a.target.Accept(role, b, nested)
			return fit, cmp.Or(why, "a call of a custom tool is sent as that of a function")
		}
	case content.Opaque:
		if b.API == ChatAPI {
			return a.own(role, b, nested)
		}
		if text, ok := dialect.SystemText(b); ok && role == content.User && !nested && strings.TrimSpace(text) != "" {
			return dialect.SystemMessage(ChatAPI, text), "a system message in the line is in the form of another API"
		}
	case content.CutToolUse, content.Unknown: // never sent
	}

	return a.target.Accept(role, block, nested)
}

// renamed returns thinking under the server's name for it, and the reason for a change. Members other than its text are
// for the server that wrote them.
func renamed(b content.Thinking, name string) (content.Block, string) {
	list, _ := jsonx.Members(b.Extra.JSON) // checked when the block was made
	came, further, _ := jsonx.TakeText(list, fieldMember)

	switch {
	case came == name && len(further) == 0:
		return b, ""
	case b.Text == "":
		return nil, "thinking without a text, which only its own server can read"
	case came != name && name == "content":
		return nil, "thinking that did not come as a part of the content, which the server refuses"
	}

	b.Extra.JSON = jsonx.Object([]jsonx.Member{{Name: fieldMember, Value: jsonx.Quote(name)}})
	if came == name {
		return b, "members of thinking that only its own server can read"
	}
	return b, "thinking is sent as " + string(jsonx.Quote(name)) + ", as the server reads it"
}

// own accepts this API's blocks unknown to Plait. A block with a "type" is a content part; on the assistant's side, one
// without a type holds further members of the message.
func (a *chatAccepter) own(role content.Role, b content.Opaque, nested bool) (content.Block, string) {
	list, err := jsonx.Members(b.JSON)
	if err != nil {
		return nil, "a block of this API that is not an object"
	}
	switch kind, isPart := partType(list); {
	case role == content.User && !nested && (isChatSystem(b) || userName(b) != ""):
		return b, ""
	case !isPart && role == content.Assistant && !nested && len(ownMembers(list)) > 0:
		return b, ""
	case !isPart || kind == "":
		return nil, "a block of this API that is not allowed here"
	case !slices.Contains(modelled, kind):
		if a.plain {
			return a.target.Accept(role, foreignTo(b), nested)
		}
		return b, ""
	}

	// A part of a type known to Plait: only the converted block can be judged.
	part := decodePart(content.JSON(b.JSON))
	if _, still := part.(content.Opaque); still || role == content.Assistant {
		return nil, "a part of type " + string(jsonx.Quote(typeOf(b.JSON))) + " that the API does not accept"
	}

	accepted, why := a.target.Accept(role, part, nested)
	if why == "" {
		why = "a part of this API is sent as a block that Plait knows"
	}
	return accepted, why
}

// foreignTo returns a block as one of another API. The rules for switching then keep its readable parts.
func foreignTo(b content.Opaque) content.Opaque { return content.Opaque{API: "none", JSON: b.JSON} }

// partType returns the member "type"; ok reports whether there is one.
func partType(list []jsonx.Member) (kind string, ok bool) {
	j, _ := jsonx.Take(list, "type")
	kind, _ = jsonx.Text(j)
	return kind, j != ""
}

// typeOf returns the "type" of an object, or "".
func typeOf(j content.JSON) string {
	list, _ := jsonx.Members(j) // checked when the block was made
	kind, _ := partType(list)
	return kind
}

// modelled lists the types of content parts Plait has a block for.
var modelled = []string{"text", "refusal", "image_url", "input_audio", "file", "thinking"}

// acceptCustom converts a call of a custom tool. Its input is any text; Plait holds it as a JSON string.
func acceptCustom(target dialect.Target, b content.ToolUse) (content.Block, string) {
	why := ""
	if name := target.Name(b.Name); name != b.Name {
		b.Name, why = name, "the tool's name is not one that the API accepts"
	}
	if _, ok := jsonx.Text(b.Input); !ok || !b.Input.Valid() {
		b.Input, why = jsonx.Quote(string(b.Input)), strings.TrimPrefix(why+"; the input of a custom tool is text", "; ")
	}
	return b, why
}

// isCustom reports whether an Extra belongs to a custom tool or to a call of one.
func isCustom(e content.Extra) bool {
	further := e.For(ChatAPI)
	return further != "" && typeOf(further) == "custom"
}

// isChatRefusal reports whether a text is a refusal. Refusals have a message member of their own.
func isChatRefusal(t content.Text) bool {
	further := t.Extra.For(ChatAPI)
	return further != "" && typeOf(further) == "refusal"
}
