package openai

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/servers"
	"github.com/plait-dev/plait/internal/wire"
)

// keeping selects the reasoning of this API to send.
type keeping int

const (
	keepSealed keeping = iota // reasoning with encrypted content
	keepAll                   // all: the API stores responses and finds their reasoning by its ID
	keepNone                  // none: the model does not reason, and refuses it
	keepOpen                  // reasoning with a text, encrypted or not, for a server that reads the text
)

// responsesTarget returns the API's rules for switching.
var responsesTarget = sync.OnceValue(func() dialect.Target {
	t, _ := dialect.TargetOf(ResponsesAPI)
	return t
})

// responsesSupport holds everything the items depend on besides the conversation.
type responsesSupport struct {
	keeping    keeping
	files      servers.Files
	compatible bool // a compatible server
	plain      bool // only messages, functions and their calls
}

// responsesEncodings holds the encodings of conversations: an encoding is identified by its address.
var responsesEncodings wire.Cache[responsesSupport, *dialect.Encoding]

func (s responsesSupport) encoding() *dialect.Encoding {
	target := s.target()
	return &dialect.Encoding{
		Rules: dialect.Rules{
			Accept: responsesAccepter{target, s.plain}.accept, ID: target.FitsID, Prune: s.keeping.prune,
			ItemID: itemID, Nameless: nameless, EndsOpen: endsInTrigger,
		},
		Append: s.keeping.appendItems, AppendAnswer: s.keeping.appendAnswers,
	}
}

// endsInTrigger reports whether m ends with the request to compact the conversation. Nothing may follow it.
func endsInTrigger(m content.Message) bool {
	o, ok := m.Blocks.At(m.Blocks.Len() - 1).(content.Opaque)
	return ok && o.API == ResponsesAPI && itemType(o) == "compaction_trigger"
}

// target returns the rules for switching. All compatible servers accept text; of other documents, they accept PDF at
// most.
func (s responsesSupport) target() dialect.Target {
	target := responsesTarget()
	if s.compatible {
		target.Documents.Types = []string{"application/pdf"}
	}
	return s.files.In(target)
}

// responsesAccepter makes blocks acceptable: by the rules for switching, plus this API's own rules for blocks.
type responsesAccepter struct {
	target dialect.Target
	plain  bool // see responsesSupport
}

// accept converts a block to one that the API accepts, without malformed IDs.
func (a responsesAccepter) accept(role content.Role, b content.Block, nested bool) (content.Block, string) {
	b, lost := withFitIDs(b)
	accepted, why := a.acceptFit(role, b, nested)
	return accepted, cmp.Or(why, lost)
}

// acceptFit is accept for a block with well-formed IDs. It has a case for each kind of block. A case without a return
// leaves the decision to the rules for switching.
func (a responsesAccepter) acceptFit(role content.Role, block content.Block, nested bool) (content.Block, string) {
	switch b := block.(type) {
	case content.Text, content.Image, content.Document, content.ToolResult:
	case content.Thinking:
		if b.Extra.API == ResponsesAPI {
			return b, "" // prune decides
		}

	case content.ToolUse:
		// If a server knows only functions, the call of a custom tool becomes a call of a function.
		if list, _ := extraOf(b.Extra); memberType(list) == customCall {
			if !a.plain {
				return acceptCustom(responsesTarget(), b)
			}
			b.Extra = content.Extra{}
			fit, why := a.target.Accept(role, b, nested)
			return fit, cmp.Or(why, "a call of a custom tool is sent as that of a function")
		} else if isClientCall(b) && (a.plain || value(list, "id") == "" && needsItemID(memberType(list))) {
			fit, why := a.target.Accept(role, asFunction(b), nested)
			return fit, cmp.Or(why, asFunctionWhy)
		}

	case content.Opaque:
		if b.API == ResponsesAPI {
			if why := misplaced(role, b, nested); why != "" {
				return nil, why
			}
			if kind := itemType(b); a.plain && kind != "message" && kind != "input_text" {
				return a.target.Accept(role, foreignTo(b), nested)
			}
			return b, ""
		}
		if text, ok := dialect.SystemText(b); ok && role == content.User && !nested && strings.TrimSpace(text) != "" {
			return dialect.SystemMessage(ResponsesAPI, text), "a system message in the line is in the form of another API"
		}

	case content.CutToolUse, content.Unknown: // never sent
	}
	return a.target.Accept(role, block, nested)
}

// memberType returns the member "type", or "".
func memberType(list []jsonx.Member) string {
	kind, _, _ := jsonx.TakeText(list, "type")
	return kind
}

// itemType returns the "type" of an opaque block, or "".
func itemType(b content.Opaque) string { return opaqueText(b, "type") }

// opaqueText returns a string member of an opaque block, or "".
func opaqueText(b content.Opaque, name string) string {
	list, _ := jsonx.Members(b.JSON) // checked when the block was made
	text, _, _ := jsonx.TakeText(list, name)
	return text
}

// isPart reports whether an item type is a type of part of a user message.
func isPart(kind string) bool { return strings.HasPrefix(kind, "input_") }

// misplaced returns the reason if an item of this API is not allowed in a message of the role, or inside a tool result.
// It returns "" if it is allowed.
func misplaced(role content.Role, o content.Opaque, nested bool) string {
	kind := itemType(o)
	switch kind {
	case "":
		return "an item without a type"
	case "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning":
		// A complete item of these types is a block that Plait knows.
		return "an item of type " + kind + " that is incomplete"
	}

	switch {
	case nested && !isPart(kind),
		role == content.User && ofAssistant(kind, o),
		role == content.Assistant && ofUser(kind, o):
		return "an item of type " + kind + " where the API does not allow it"
	}
	return ""
}

// ofAssistant reports whether an item can only be in an assistant message.
func ofAssistant(kind string, o content.Opaque) bool {
	return kind == "message" && opaqueText(o, "role") == string(content.Assistant) ||
		strings.HasSuffix(kind, "_call") ||
		kind == "mcp_list_tools" || kind == "mcp_approval_request"
}

// ofUser reports whether an item can only be in a user message.
func ofUser(kind string, o content.Opaque) bool {
	return isPart(kind) || kind == "message" && opaqueText(o, "role") != string(content.Assistant)
}

// callKey returns the common key of a call of one of the API's own tools and its result: the type of the result and the
// ID of the call. It reports false for any other block, and for a call executed by the API itself. The API refuses a call
// without its result, and a result without its call.
func callKey(b content.Opaque) (answerKey, bool) {
	c, ok := clientCalls[itemType(b)]
	if !ok || ranByServer(b) {
		return answerKey{}, false
	}
	key := answerKey{kind: c.answer, id: opaqueText(b, c.id)}
	return key, key.id != ""
}

type answerKey struct{ kind, id string }

// ranByServer reports whether an item belongs to a tool search executed by the API itself. Such a call and its result
// are independent of each other.
func ranByServer(b content.Opaque) bool { return opaqueText(b, "execution") == "server" }

// keyOfAnswer returns the key of the call with b as its result.
func keyOfAnswer(b content.Opaque) (answerKey, bool) {
	key := answerKey{kind: itemType(b)}
	c, ok := clientAnswer(key.kind)
	if !ok || ranByServer(b) {
		return key, false
	}
	key.id = c.answered(opaqueText(b, c.of), opaqueText(b, "call_id"))
	return key, key.id != ""
}

// itemID implements dialect.Rules.ItemID. It returns the ID of an item, or "". Such IDs must be unique in the request.
// The prefix "item " separates the IDs of items known to Plait from those of calls.
func itemID(b content.Block) string {
	id := ""
	switch b := b.(type) {
	case content.Opaque:
		if b.API != ResponsesAPI || itemType(b) == "local_shell_call_output" { // its ID is the call's ID
			return ""
		}
		if key, ok := callKey(b); ok {
			return key.id
		}
		return opaqueText(b, "id")
	case content.Thinking:
		id = thoughtID(b)
	case content.ToolUse:
		list, _ := extraOf(b.Extra)
		id, _, _ = jsonx.TakeText(list, "id")
	case content.Text:
		item, _ := jsonx.Members(content.JSON(noteOf(b.Extra).Item)) // nil if the text was not a part of a message
		id, _, _ = jsonx.TakeText(item, "id")
	}

	if id != "" {
		id = "item " + id
	}
	return id
}

// nameless implements dialect.Rules.Nameless. It returns b without its item ID, or nil for reasoning and opaque items,
// because they need one. Items after dropped reasoning lose their IDs as well.
func nameless(b content.Block) content.Block {
	switch b := b.(type) {
	case content.ToolUse:
		if isClientCall(b) {
			return asFunction(b)
		}
		list, _ := jsonx.Members(b.Extra.For(ResponsesAPI)) // checked when the block was made
		_, list = jsonx.Take(list, "id")
		b.Extra = content.Extra{API: ResponsesAPI, JSON: jsonx.Object(list)}
		return b
	case content.Text:
		list, note := extraOf(b.Extra)
		return withNote(b, list, note.withoutID())
	}
	return nil
}

// prune finds the blocks refused by the API because another block is missing: reasoning without the item after it,
// calls of the API's own tools without their results, and results without their calls.
func (k keeping) prune(messages []content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	open := map[answerKey]bool{} // calls of the last assistant message without a result so far
	for i, m := range messages {
		if m.Role == content.Assistant {
			found = append(found, k.unsendable(i, m)...)
			found = append(found, unthought(i, m)...)
			open = map[answerKey]bool{}
		}

		// The results of the API's own tools are in the message itself or in the user's message after it.
		var next content.Message
		if m.Role == content.Assistant && i+1 < len(messages) {
			next = messages[i+1]
		}
		found = append(found, unanswered(i, m, next, open)...)

		if k != keepAll {
			found = append(found, referred(i, m)...)
		}
	}
	return onceEach(found)
}

// referred finds items with a reference to another item by its ID. Only an API with this item in its store can resolve
// it.
func referred(i int, m content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	for j, b := range m.Blocks.All() {
		if o, ok := b.(content.Opaque); ok && itemType(o) == "item_reference" {
			found = append(found, dialect.Pruned{
				Message: i, Block: j, Why: "a reference to an item that the API did not store",
			})
		}
	}
	return found
}

// onceEach keeps one entry for each block. An entry that drops the block has precedence over one that replaces it.
func onceEach(found []dialect.Pruned) []dialect.Pruned {
	slices.SortStableFunc(found, func(a, b dialect.Pruned) int {
		return cmp.Or(a.Message-b.Message, a.Block-b.Block, cmp.Compare(bit(a.With != nil), bit(b.With != nil)))
	})
	return slices.CompactFunc(found, func(a, b dialect.Pruned) bool {
		return a.Message == b.Message && a.Block == b.Block
	})
}

// bit returns 1 for true and 0 for false.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unanswered finds the calls of the API's own tools in m without a result in m or next, and the results in m without an
// open call. It updates open.
func unanswered(i int, m, next content.Message, open map[answerKey]bool) []dialect.Pruned {
	var found []dialect.Pruned
	var later map[answerKey]int
	for j, b := range m.Blocks.All() {
		o, ok := b.(content.Opaque)
		if !ok {
			continue
		}

		if key, ok := callKey(o); ok {
			// Few messages have such a call, so look for results only after finding one.
			if later == nil {
				later = lastAnswers(m.Blocks, next.Blocks)
			}
			// Only a result after the call counts. Without any, later[key] is 0.
			if open[key] = later[key] > j; !open[key] {
				found = append(found, dialect.Pruned{
					Message: i, Block: j, Why: "a call without a result (" + itemType(o) + ")",
				})
			}
		} else if key, ok := keyOfAnswer(o); ok {
			if !open[key] {
				found = append(found, dialect.Pruned{
					Message: i, Block: j, Why: "a result without an open call (" + key.kind + ")",
				})
			}
			delete(open, key)
		}
	}
	return found
}

// lastAnswers returns the index of the last result for each call. Indexes continue from blocks to next.
func lastAnswers(blocks, next content.Blocks) map[answerKey]int {
	last := map[answerKey]int{}
	for n, list := range []content.Blocks{blocks, next} {
		for j, b := range list.All() {
			if o, ok := b.(content.Opaque); ok {
				if key, ok := keyOfAnswer(o); ok {
					last[key] = n*blocks.Len() + j
				}
			}
		}
	}
	return last
}

// unsendable finds the reasoning in m not to be sent: reasoning that is not kept, and reasoning without the item after
// it. The API also refuses the opaque items right after such reasoning: they become text. For other items, appendItems
// leaves out the ID.
func (k keeping) unsendable(i int, m content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	led := false // the item after the reasoning at j is its outcome
	for j := m.Blocks.Len() - 1; j >= 0; j-- {
		t, ok := m.Blocks.At(j).(content.Thinking)
		if !ok {
			continue
		}

		// In a row of reasoning items, all depend on the item after the last one.
		if j+1 < m.Blocks.Len() {
			_, thinks := m.Blocks.At(j + 1).(content.Thinking)
			led = (led || !thinks) && follows(m.Blocks.At(j+1), thoughtID(t))
		}

		if why := k.whyDropped(t, led); why != "" {
			found = append(found, dialect.Pruned{Message: i, Block: j, Why: why})
			found = append(found, asText(i, m.Blocks, j+1)...)
		}
	}
	return found
}

// whyDropped returns the reason why reasoning is left out, or "" if it is kept.
func (k keeping) whyDropped(t content.Thinking, led bool) string {
	switch {
	case k == keepNone:
		return "reasoning, which the model does not accept"
	case k == keepOpen:
		if t.Text == "" {
			return "reasoning without a text"
		}
	case t.Signature == "" && (k == keepSealed || thoughtID(t) == ""):
		// The API can find such reasoning only in its store, by the ID.
		return "reasoning without its encrypted content"
	}

	if !led {
		return "reasoning without the item after it"
	}
	return ""
}

// follows reports whether the model wrote item b right after the reasoning with the given ID.
func follows(b content.Block, id string) bool {
	var n ownNote
	switch b := b.(type) {
	case content.Opaque:
		return itemFollows(b)
	case content.Text:
		// A message without an ID has another origin than reasoning with one: it cannot be its outcome.
		if n = noteOf(b.Extra); id != "" && itemID(b) == "" {
			return false
		}
	case content.ToolUse:
		n = noteOf(b.Extra)
	case content.Thinking:
		n = noteOf(b.Extra)
	}
	return n.After != nil && *n.After == id
}

// itemFollows reports whether a model can write an item right after reasoning.
func itemFollows(o content.Opaque) bool {
	switch kind := itemType(o); kind {
	case "mcp_list_tools", "additional_tools", "configuration_update":
		return false
	case "message":
		return opaqueText(o, "id") != ""
	}
	_, answer := keyOfAnswer(o)
	return !answer
}

// asText replaces the consecutive opaque items from index j on by their texts.
func asText(i int, blocks content.Blocks, j int) []dialect.Pruned {
	var found []dialect.Pruned
	for ; j < blocks.Len(); j++ {
		o, ok := blocks.At(j).(content.Opaque)
		if !ok {
			break
		}

		// Accept converts an item to a text if it belongs to another API.
		text, _ := responsesTarget().Accept(content.Assistant, foreignTo(o), false)
		found = append(found, dialect.Pruned{
			Message: i, Block: j, With: text, Why: "an item whose reasoning is left out (" + itemType(o) + ")",
		})
	}
	return found
}

func thoughtID(t content.Thinking) string {
	list, _ := jsonx.Members(t.Extra.For(ResponsesAPI)) // checked when the block was made
	id, _, _ := jsonx.TakeText(list, "id")
	return id
}

// extraOf returns the further members of a block, and the ownNote among them.
func extraOf(e content.Extra) ([]jsonx.Member, ownNote) {
	var n ownNote
	if j := e.For(ResponsesAPI); j == "" || j == "{}" {
		return nil, n
	}

	list, _ := jsonx.Members(e.JSON) // checked when the block was made
	noted, list := jsonx.Take(list, own)
	_ = json.Unmarshal([]byte(noted), &n) // an invalid note counts as none
	return list, n
}

func noteOf(e content.Extra) ownNote {
	_, n := extraOf(e)
	return n
}
