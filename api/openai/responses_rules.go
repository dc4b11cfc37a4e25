package openai

import (
	"cmp"
	"slices"
	"strings"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// keeping is which of the API's own reasoning a request carries.
type keeping int

const (
	keepSealed keeping = iota // that with encrypted content
	keepAll                   // all, where the API stores answers and finds the rest by its id
	keepNone                  // none: the model does not reason, and refuses it
)

// responsesTarget is what the API accepts.
var responsesTarget, _ = dialect.TargetOf(ResponsesAPI)

// responsesEncodings is how the API wants conversations, by what is kept; compatibleEncodings is how compatible servers do.
var (
	responsesEncodings  = responsesEncodingsFor(responsesTarget)
	compatibleEncodings = responsesEncodingsFor(compatibleTarget())
)

// compatibleTarget is the rules of the API for a compatible server. Such servers read PDF at most, and all of them read text.
func compatibleTarget() dialect.Target {
	target := responsesTarget
	target.Documents.Types = []string{"application/pdf"}
	return target
}

func responsesEncodingsFor(target dialect.Target) (all [3]*dialect.Encoding) {
	for _, k := range []keeping{keepSealed, keepAll, keepNone} {
		all[k] = &dialect.Encoding{
			Rules: dialect.Rules{
				Accept: responsesAccepter{target}.accept, ID: target.FitsID, Prune: k.prune,
				ItemID: itemID, Nameless: nameless,
			},
			Append: appendItems, AppendAnswer: appendAnswers,
		}
	}
	return all
}

// responsesAccepter is the rules for switching, and what this API takes of its own blocks.
type responsesAccepter struct{ target dialect.Target }

// accept takes a block, without ids that the API would refuse.
func (a responsesAccepter) accept(role content.Role, b content.Block, nested bool) (content.Block, string) {
	b, lost := withFitIDs(b)
	taken, why := a.acceptFit(role, b, nested)
	return taken, cmp.Or(why, lost)
}

// acceptFit is the table of what the API does with each kind of block, for one whose ids fit. Where a row returns nothing, the rules for
// switching decide.
func (a responsesAccepter) acceptFit(role content.Role, block content.Block, nested bool) (content.Block, string) {
	switch b := block.(type) {
	case content.Text, content.Image, content.Document, content.ToolResult:
	case content.Thinking:
		if b.Extra.API == ResponsesAPI {
			return b, "" // prune decides
		}
	case content.ToolUse:
		if list, _ := extraOf(b.Extra); memberType(list) == customCall {
			return acceptCustomCall(b)
		}
	case content.Opaque:
		if b.API == ResponsesAPI {
			if why := misplaced(role, b, nested); why != "" {
				return nil, why
			}
			return b, ""
		}
	case content.CutToolUse, content.Unknown: // never sent
	}
	return a.target.Accept(role, block, nested)
}

// acceptCustomCall takes a call of a custom tool, whose input is a JSON string.
func acceptCustomCall(b content.ToolUse) (content.Block, string) {
	why := ""
	if name := responsesTarget.Name(b.Name); name != b.Name {
		b.Name, why = name, "the tool's name does not fit"
	}
	if _, ok := wire.Text(b.Input); !ok || !b.Input.Valid() {
		b.Input, why = wire.Quote(string(b.Input)), "the input of a custom tool is text"
	}
	return b, why
}

// memberType is the member "type"; "" where there is none.
func memberType(list []wire.Member) string {
	kind, _, _ := wire.TakeText(list, "type")
	return kind
}

// itemType is the "type" of an opaque block; "" where it has none.
func itemType(b content.Opaque) string { return opaqueText(b, "type") }

// opaqueText is a member of an opaque block that is a string.
func opaqueText(b content.Opaque, name string) string {
	list, _ := wire.Members(b.JSON) // it was checked when the block was made
	said, _, _ := wire.TakeText(list, name)
	return said
}

// isPart reports whether an item of that type is a part of a user's message rather than an item.
func isPart(kind string) bool { return strings.HasPrefix(kind, "input_") }

// misplaced says why an item of the API's own cannot stand on that side, or inside a result; "" where it can.
func misplaced(role content.Role, o content.Opaque, nested bool) string {
	kind := itemType(o)
	switch kind {
	case "":
		return "an item without a type"
	case "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning":
		return "an item of type " + kind + " that is not whole"
	}
	switch {
	case nested && !isPart(kind), role == content.User && ofAssistant(kind, o), role == content.Assistant && ofUser(kind, o):
		return "an item of type " + kind + " in a place where none can stand"
	}
	return ""
}

// ofAssistant reports whether only the assistant's side can show an item, and ofUser whether only the user's can.
func ofAssistant(kind string, o content.Opaque) bool {
	return kind == "message" && opaqueText(o, "role") == string(content.Assistant) || strings.HasSuffix(kind, "_call") ||
		kind == "mcp_list_tools" || kind == "mcp_approval_request"
}

func ofUser(kind string, o content.Opaque) bool {
	return isPart(kind) || kind == "message" && opaqueText(o, "role") != string(content.Assistant)
}

// answers is the types of calls that the API's own tools make and a program answers, each with the type of the answer. The API
// refuses a call without its answer, and an answer without its call.
var answers = map[string]string{
	"computer_call": "computer_call_output", "local_shell_call": "local_shell_call_output", "shell_call": "shell_call_output",
	"apply_patch_call": "apply_patch_call_output", "tool_search_call": "tool_search_output", "mcp_approval_request": "mcp_approval_response",
}

// callKey is what a call of the API's own has in common with its answer: the answer's type and the call's id. It is no key where
// the block is no such call, or one that the API itself answers.
func callKey(b content.Opaque) (answerKey, bool) {
	kind := itemType(b)
	answer, ok := answers[kind]
	if !ok || ranByServer(b) {
		return answerKey{}, false
	}

	key := answerKey{kind: answer, id: opaqueText(b, "call_id")}
	if kind == "mcp_approval_request" {
		key.id = opaqueText(b, "id")
	}
	return key, key.id != ""
}

type answerKey struct{ kind, id string }

// ranByServer reports whether an item of a tool search belongs to one that the API ran itself. It stands with or without the other.
func ranByServer(b content.Opaque) bool { return opaqueText(b, "execution") == "server" }

// keyOfAnswer is the key of the call that b answers.
func keyOfAnswer(b content.Opaque) (answerKey, bool) {
	key := answerKey{kind: itemType(b)}
	if ranByServer(b) {
		return key, false
	}

	switch key.kind {
	case "computer_call_output", "shell_call_output", "apply_patch_call_output", "tool_search_output":
		key.id = opaqueText(b, "call_id")
	case "local_shell_call_output":
		if key.id = opaqueText(b, "call_id"); key.id == "" {
			key.id = opaqueText(b, "id")
		}
	case "mcp_approval_response":
		key.id = opaqueText(b, "approval_request_id")
	}
	return key, key.id != ""
}

// itemID is dialect.Rules.ItemID: the id of an item, which must be the only one with it. Those of items that Plait models are kept apart
// from the ids of calls.
func itemID(b content.Block) string {
	id := ""
	switch b := b.(type) {
	case content.Opaque:
		if b.API != ResponsesAPI || itemType(b) == "local_shell_call_output" { // which has its call's
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
		id, _, _ = wire.TakeText(list, "id")
	case content.Text:
		item, _ := wire.Members(content.JSON(noteOf(b.Extra).Item)) // none where it is no part of a message
		id, _, _ = wire.TakeText(item, "id")
	}
	if id != "" {
		id = "item " + id
	}
	return id
}

// nameless is dialect.Rules.Nameless. Reasoning and opaque items are left out, and what came after the reasoning loses its id with it.
func nameless(b content.Block) content.Block {
	switch b := b.(type) {
	case content.ToolUse:
		list, _ := wire.Members(b.Extra.For(ResponsesAPI)) // it was checked when the block was made
		_, list = wire.Take(list, "id")
		b.Extra = content.Extra{API: ResponsesAPI, JSON: wire.Object(list)}
		return b
	case content.Text:
		b.Extra.JSON = withoutItemID(b.Extra.JSON)
		return b
	}
	return nil
}

// withoutItemID takes the id out of what Plait noted of the item that a text is a part of.
func withoutItemID(extra content.JSON) content.JSON {
	list, _ := wire.Members(extra) // it was checked when the block was made
	for i, m := range list {
		if m.Name != own {
			continue
		}
		noted, _ := wire.Members(m.Value)
		for j, n := range noted {
			if n.Name == "item" {
				item, _ := wire.Members(n.Value)
				_, item = wire.Take(item, "id")
				noted[j].Value = wire.Object(item)
			}
		}
		list[i].Value = wire.Object(noted)
	}
	return wire.Object(list)
}

// prune leaves out what the API takes only beside something else: reasoning without the item that it led to, and calls and answers
// of the API's own tools one without the other.
func (k keeping) prune(messages []content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	open := map[answerKey]bool{} // by the calls of the message before
	for i, m := range messages {
		if m.Role == content.Assistant {
			found = append(found, k.unsaid(i, m)...)
			open = map[answerKey]bool{}
		}
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

// referred finds the items that name another one in the place of saying it: only an API that stored that one knows it.
func referred(i int, m content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	for j, b := range m.Blocks.All() {
		if o, ok := b.(content.Opaque); ok && itemType(o) == "item_reference" {
			found = append(found, dialect.Pruned{Message: i, Block: j, Why: "a reference to an item that was not stored"})
		}
	}
	return found
}

// onceEach keeps one of those that are about the same block: one that leaves it out, where there is such.
func onceEach(found []dialect.Pruned) []dialect.Pruned {
	slices.SortStableFunc(found, func(a, b dialect.Pruned) int {
		return cmp.Or(a.Message-b.Message, a.Block-b.Block, cmp.Compare(bit(a.With != nil), bit(b.With != nil)))
	})
	return slices.CompactFunc(found, func(a, b dialect.Pruned) bool { return a.Message == b.Message && a.Block == b.Block })
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unanswered finds the calls of the API's own in m that neither m nor next answers, and the answers in m to no open call.
func unanswered(i int, m, next content.Message, open map[answerKey]bool) []dialect.Pruned {
	var found []dialect.Pruned
	var later map[answerKey]int
	for j, b := range m.Blocks.All() {
		o, ok := b.(content.Opaque)
		if !ok {
			continue
		}
		if key, ok := callKey(o); ok {
			if later == nil {
				later = lastAnswers(m.Blocks, next.Blocks)
			}
			if open[key] = later[key] > j; !open[key] {
				found = append(found, dialect.Pruned{Message: i, Block: j, Why: "a call that was not answered (" + itemType(o) + ")"})
			}
		} else if key, ok := keyOfAnswer(o); ok {
			if !open[key] {
				found = append(found, dialect.Pruned{Message: i, Block: j, Why: "an answer to no open call (" + key.kind + ")"})
			}
			delete(open, key)
		}
	}
	return found
}

// lastAnswers is the place of the last answer to each call, counted through both lists.
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

// unsaid finds the reasoning in m that cannot be sent: what is not to be kept, and what has lost the item that came after it. The API
// refuses opaque items right after it, too: they become text. Of the others, appendItems leaves out the ids.
func (k keeping) unsaid(i int, m content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	led := false // whether what the model wrote after the reasoning at j stands there
	for j := m.Blocks.Len() - 1; j >= 0; j-- {
		t, ok := m.Blocks.At(j).(content.Thinking)
		if !ok {
			continue
		}
		if j+1 < m.Blocks.Len() {
			_, thinks := m.Blocks.At(j + 1).(content.Thinking)
			led = (led || !thinks) && follows(m.Blocks.At(j+1), thoughtID(t))
		}
		if why := k.leaves(t, led); why != "" {
			found = append(found, dialect.Pruned{Message: i, Block: j, Why: why})
			found = append(found, inWords(i, m.Blocks, j+1)...)
		}
	}
	return found
}

// leaves says why reasoning is left out; "" when it is kept.
func (k keeping) leaves(t content.Thinking, led bool) string {
	switch {
	case k == keepNone:
		return "reasoning, which the model does not take"
	case t.Signature == "" && (k == keepSealed || thoughtID(t) == ""):
		return "reasoning without its encrypted content"
	case !led:
		return "reasoning without the item that came after it"
	}
	return ""
}

// follows reports whether b is an item that the model wrote after the reasoning with that id.
func follows(b content.Block, id string) bool {
	var n ownNote
	switch b := b.(type) {
	case content.Opaque:
		return itemFollows(b)
	case content.Text:
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

// inWords makes texts of the opaque items that stand from j on in a row, as for another provider.
func inWords(i int, blocks content.Blocks, j int) []dialect.Pruned {
	var found []dialect.Pruned
	for ; j < blocks.Len(); j++ {
		o, ok := blocks.At(j).(content.Opaque)
		if !ok {
			break
		}
		said, _ := responsesTarget.Accept(content.Assistant, content.Opaque{API: "none", JSON: o.JSON}, false)
		found = append(found, dialect.Pruned{Message: i, Block: j, With: said, Why: "an item whose reasoning is left out (" + itemType(o) + ")"})
	}
	return found
}

func thoughtID(t content.Thinking) string {
	list, _ := wire.Members(t.Extra.For(ResponsesAPI)) // it was checked when the block was made
	id, _, _ := wire.TakeText(list, "id")
	return id
}

// extraOf returns the further members of a block that are the API's, and what Plait noted beside them.
func extraOf(e content.Extra) ([]wire.Member, ownNote) {
	var n ownNote
	if j := e.For(ResponsesAPI); j == "" || j == "{}" {
		return nil, n
	}
	list, _ := wire.Members(e.JSON) // it was checked when the block was made
	noted, list := wire.Take(list, own)
	_ = json.Unmarshal([]byte(noted), &n) // what is no note is none
	return list, n
}

func noteOf(e content.Extra) ownNote {
	_, n := extraOf(e)
	return n
}
