package dialect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/memo"
)

// Rules describes the messages accepted by a provider's API. Repair ensures further rules for every API.
type Rules struct {
	// Accept converts a block into one that the API accepts. It returns the block itself if nothing has to change, a
	// replacement, or nil to drop it; the string gives the reason for a change. Accept must be idempotent. It is also
	// called for blocks inside tool results, with nested set. A block refused by content.Of is dropped. Defaults to
	// accepting every block.
	Accept func(role content.Role, b content.Block, nested bool) (content.Block, string)
	// ID reports whether the API accepts the ID of a call. It must accept "call_" followed by digits and "_", or all IDs
	// of nine small letters and digits: these are the replacements. Defaults to letters, digits, "_" and "-", 1 to 40 of
	// them.
	ID func(id string) bool
	// NoID allows a call and its result to have no ID: they are then matched by order. Defaults to false: such a call
	// gets an ID.
	NoID bool
	// CallsLast requires an assistant's tool calls to come after everything else in its message. Defaults to false.
	CallsLast bool
	// EndsOpen reports whether the API accepts a conversation that ends with m, a message of the assistant. Defaults to
	// never.
	EndsOpen func(m content.Message) bool
	// UserFirst requires the first message to be the user's. Defaults to false.
	UserFirst bool
	// Prune returns the blocks to drop or replace because of their neighbors. The messages keep all other rules. Prune
	// is called again with the result, until it returns none. It returns each block once, in any order. Defaults to none.
	//
	//   - Messages may begin in the middle of a conversation, with the assistant.
	//   - The decision about a message may depend only on that message, the one before and the one after.
	//   - If Waits holds for the message, it may also depend on those up to the next user message without tool results.
	Prune func(messages []content.Message) []Pruned
	// ItemID returns the provider's ID of an assistant's block, or of an opaque block of the user, or "" if it has
	// none. It is not the ID of a call, and no call gets the same one. If blocks share an ID, only the first keeps it;
	// the others are replaced by Nameless. Consecutive texts may share one: they may be parts of one item. Defaults to
	// none.
	ItemID func(b content.Block) string
	// Nameless returns the block without its ItemID, or nil to drop it. Defaults to dropping it.
	Nameless func(b content.Block) content.Block
	// Waits reports whether something in m, a message of the assistant, may be answered later than in the next message.
	// Defaults to never.
	Waits func(m content.Message) bool
}

// Pruned is a block to drop or replace.
type Pruned struct {
	// Message is the index of the message, Block that of the block in it.
	Message, Block int
	// With replaces the block; nil drops it.
	With content.Block
	// Why is the reason, for the note.
	Why string
}

// Repair returns messages with the fewest changes needed to keep rules, and a note for each change. In the result
//
//   - user and assistant alternate, and no message and no text in it is empty,
//   - every tool call is the assistant's, and has one result, in the next message, before anything else there and in
//     call order,
//   - every tool result belongs to a call of the message before it,
//   - every call ID is unique and well formed, or missing if the rules allow it,
//   - the last message is the user's, or an assistant's if the rules allow it at the end,
//   - every block is acceptable under the rules.
//
// Only refused parts are lost: a result without a call becomes text.
//
// Repair is deterministic and idempotent. A message does not affect the repair of the messages before it, except
// through the results of its calls. So a conversation keeps its prefix as it continues.
//
// Repair returns no messages for a conversation without content.
func Repair(messages []content.Message, rules Rules) ([]content.Message, []api.RepairNote) {
	r := newRepairer(rules)
	sent := messagesOf(r.repair(messages))
	return sent, r.notesBetween(0, len(messages))
}

// plainID reports whether id has 1 to 40 letters, digits, "_" and "-", and nothing else.
func plainID(id string) bool {
	if id == "" || len(id) > 40 {
		return false
	}
	for _, c := range []byte(id) {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// input is a message to repair.
type input struct {
	content.Message
	first, last int  // the range of original messages it comes from; -1 if none
	rebuilt     bool // built from a draft of the round before, so not an original message
}

// draft is a message under construction: consecutive messages of one role, joined.
type draft struct {
	role        content.Role
	blocks      []content.Block
	source      content.Blocks   // blocks of the first message, sent unchanged if intact
	intact      bool             // blocks equals source
	joined      bool             // blocks is owned by the draft, so append need not copy it
	goOn        bool             // inserted for the provider; its text is GoOn
	first, last int              // the range of original messages it comes from; -1 if none
	built       *content.Message // cache of message; nil until then, and after a change
}

// calls returns the indexes of the tool calls.
func (d draft) calls() []int {
	var calls []int
	for i, b := range d.blocks {
		if _, ok := b.(content.ToolUse); ok {
			calls = append(calls, i)
		}
	}
	return calls
}

// repairer repairs a conversation, or the part of one after its settled messages. Settled messages are final: they were
// repaired before.
type repairer struct {
	rules Rules

	settled         bool                 // settled messages precede; false means the beginning of the conversation
	settledMessages int                  // the number of settled messages, as repaired
	settledCalls    int                  // the number of calls in them
	settledUses     func(id string) bool // reports whether they use the ID

	calls int             // the number of calls up to now; reset by each round
	taken map[string]bool // the IDs used up to now, without settled ones; reset by each round

	key   any // the key in memo.OfBlocks for the accepted blocks of a message; nil turns that memory off
	notes []pendingNote
	held  []heldID
}

// heldID is the ID of an item. No other item or call gets it, even if the item is dropped later.
type heldID struct {
	id     string
	source int // the original message of the item
}

func newRepairer(rules Rules) *repairer {
	if rules.ID == nil {
		rules.ID = plainID
	}
	return &repairer{rules: rules, settledUses: func(string) bool { return false }}
}

// pendingNote is a note with Message not yet known: setNoteMessages sets it at the end.
type pendingNote struct {
	api.RepairNote
	source int  // the original message; -1 for a message inserted before all others
	after  bool // the note is about the message after source
	gone   bool // the message was dropped
}

// note appends a note about the original message source.
func (r *repairer) note(kind string, source int, format string, args ...any) {
	note := api.RepairNote{Kind: kind, Detail: fmt.Sprintf(format, args...)}
	r.notes = append(r.notes, pendingNote{RepairNote: note, source: source})
}

// noteDraft appends a note about d. Before is the draft before d, or nil if d is the first.
func (r *repairer) noteDraft(kind string, d, before *draft, format string, args ...any) {
	if d.first >= 0 || before == nil {
		r.note(kind, d.first, format, args...)
		return
	}

	// An inserted draft comes from no original message: the note refers to the message before it.
	r.note(kind, before.last, format, args...)
	r.notes[len(r.notes)-1].after = true
}

// repair returns the conversation as drafts that keep the rules. Dropping a block can break another rule, so it repeats
// the round until no draft is empty and Prune finds nothing.
func (r *repairer) repair(messages []content.Message) []draft {
	inputs := make([]input, len(messages))
	for i, m := range messages {
		inputs[i] = input{Message: m, first: i, last: i}
	}

	for {
		drafts := r.round(inputs)
		emptied := slices.ContainsFunc(drafts, func(d draft) bool { return len(d.blocks) == 0 })
		if !emptied && !r.prune(drafts) {
			r.setNoteMessages(drafts)
			return drafts
		}

		inputs = inputs[:0:0]
		for i := range drafts {
			d := &drafts[i]
			// An inserted message is inserted again if the next round needs it.
			if d.goOn {
				continue
			}
			if len(d.blocks) == 0 {
				r.markGone(d)
			}
			inputs = append(inputs, input{Message: d.message(), first: d.first, last: d.last, rebuilt: true})
		}

		// The next round decides again about the first and the last message.
		r.notes = slices.DeleteFunc(r.notes, func(n pendingNote) bool { return n.Kind == "end" })
	}
}

// markGone marks the notes about the empty draft d. It will be dropped.
func (r *repairer) markGone(d *draft) {
	for i := range r.notes {
		if n := &r.notes[i]; n.source >= d.first && n.source <= d.last {
			n.gone = true
		}
	}
}

// round applies all rules but Prune.
func (r *repairer) round(messages []input) []draft {
	r.calls, r.taken = r.settledCalls, map[string]bool{}
	drafts := r.join(messages)

	for i := 0; i < len(drafts); i++ {
		r.uniqueItems(&drafts[i])
		if drafts[i].role == content.User {
			continue
		}

		// Calls at the end need a message for their results.
		if i+1 == len(drafts) && len(drafts[i].calls()) > 0 {
			drafts = append(drafts, draft{role: content.User, first: -1, last: -1})
		}
		if i+1 < len(drafts) {
			r.pair(&drafts[i], &drafts[i+1])
		}
	}

	// Pairing covers only messages after an assistant's: no call precedes the first one.
	if len(drafts) > 0 && drafts[0].role == content.User {
		r.orphans(&drafts[0])
	}
	return r.fixEnds(drafts)
}

// uniqueItems renames or drops the items of d with a used ID. It reserves the other IDs, to keep calls from getting
// them.
func (r *repairer) uniqueItems(d *draft) {
	if r.rules.ItemID == nil {
		return
	}

	var blocks []content.Block // nil until something has to change
	textBefore := ""           // the item ID of the block before if that block is a text
	for i, b := range d.blocks {
		id := ""
		if _, opaque := b.(content.Opaque); opaque || d.role == content.Assistant {
			id = r.rules.ItemID(b)
		}

		// Consecutive texts with one ID are parts of one item.
		_, text := b.(content.Text)
		again := id != "" && (id != textBefore || !text) && r.isUsed(id)
		if again && blocks == nil {
			blocks = slices.Clone(d.blocks[:i])
		}

		switch {
		case again:
			blocks = r.appendNameless(blocks, b, d.first)
			id = ""
		case blocks != nil:
			blocks = append(blocks, b)
		}

		if id != "" {
			r.taken[id] = true
			r.held = append(r.held, heldID{id, d.first})
		}
		textBefore = ""
		if text {
			textBefore = id
		}
	}

	if blocks != nil {
		d.blocks, d.intact = blocks, false
	}
}

// appendNameless appends b without its item ID, because another item has the same ID. If b cannot be without one, it is
// dropped.
func (r *repairer) appendNameless(dst []content.Block, b content.Block, source int) []content.Block {
	if r.rules.Nameless != nil {
		if nameless, _ := checked(r.rules.Nameless(b), ""); nameless != nil {
			r.note("id", source, "an item whose ID was used before is sent without its ID")
			return append(dst, nameless)
		}
	}

	r.note("dropped", source, "an item whose ID was used before")
	return dst
}

// prune applies the findings of Prune, and reports whether there were any.
func (r *repairer) prune(drafts []draft) bool {
	if r.rules.Prune == nil {
		return false
	}

	// Go through a message from its last block: dropping it does not shift the others.
	found := r.rules.Prune(messagesOf(drafts))
	slices.SortStableFunc(found, func(a, b Pruned) int { return cmp.Or(a.Message-b.Message, b.Block-a.Block) })

	for _, f := range found {
		d := &drafts[f.Message]
		var before *draft
		if f.Message > 0 {
			before = &drafts[f.Message-1]
		}

		// The blocks may be shared with the conversation, so a copy is changed.
		d.blocks, d.intact, d.built = slices.Clone(d.blocks), false, nil
		if f.With == nil {
			d.blocks = slices.Delete(d.blocks, f.Block, f.Block+1)
			r.noteDraft("dropped", d, before, "%s", f.Why)
		} else {
			d.blocks[f.Block] = f.With
			r.noteDraft("block", d, before, "%s", f.Why)
		}
	}
	return len(found) > 0
}

// setNoteMessages sorts the notes by their message and sets RepairNote.Message: the index in the result, or -1 if the
// message is not in it.
func (r *repairer) setNoteMessages(drafts []draft) {
	slices.SortStableFunc(r.notes, func(a, b pendingNote) int { return a.source - b.source })

	// Notes and drafts are both in the order of the messages, so one walk finds the draft of each note.
	index := 0
	for i := range r.notes {
		n := &r.notes[i]
		for index < len(drafts) && (drafts[index].first < 0 || drafts[index].last < n.source) && n.source >= 0 {
			index++
		}
		switch {
		case n.source < 0:
			n.Message = 0
		case n.gone || index == len(drafts) || drafts[index].first > n.source:
			n.Message = -1
		case n.after:
			n.Message = r.settledMessages + index + 1
		default:
			n.Message = r.settledMessages + index
		}
	}
}

// notesBetween returns the notes about the original messages in [first, end).
func (r *repairer) notesBetween(first, end int) []api.RepairNote {
	var notes []api.RepairNote
	for _, n := range r.notes {
		if max(n.source, 0) >= first && max(n.source, 0) < end {
			notes = append(notes, n.RepairNote)
		}
	}
	return notes
}

// heldBetween returns the item IDs in the original messages in [first, end).
func (r *repairer) heldBetween(first, end int) []string {
	var ids []string
	for _, h := range r.held {
		if h.source >= first && h.source < end {
			ids = append(ids, h.id)
		}
	}
	return ids
}

// join keeps the accepted blocks of each message and joins consecutive messages of one role.
func (r *repairer) join(messages []input) []draft {
	drafts := make([]draft, 0, len(messages)+1) // calls at the end get a message for their results
	for _, m := range messages {
		firstNote, n := len(r.notes), len(drafts)
		if !m.Role.Valid() {
			r.note("role", m.first, "a message with the role %q became a user message", m.Role)
			m.Role = content.User
		}

		part := r.accepted(m)
		switch {
		case len(part.blocks) == 0:
			// Nothing of the message is sent, so its notes belong to no message of the result.
			for i := firstNote; i < len(r.notes); i++ {
				r.notes[i].gone = true
			}
		case n > 0 && drafts[n-1].role == m.Role:
			if m.first >= 0 {
				r.note("merged", m.first, "two %s messages in a row", m.Role)
			}
			drafts[n-1].join(m, part.blocks)
		default:
			d := draft{role: m.Role, blocks: part.blocks, source: m.Blocks, intact: part.intact, first: m.first, last: m.last}
			drafts = append(drafts, d)
		}
	}
	return drafts
}

// join appends blocks, the accepted blocks of m.
func (d *draft) join(m input, blocks []content.Block) {
	// Until the first join the blocks may be shared with the memory of the message.
	if !d.joined {
		d.blocks, d.joined = slices.Clip(d.blocks), true
	}
	d.blocks, d.intact = append(d.blocks, blocks...), false

	d.last = max(d.last, m.last)
	if d.first < 0 {
		d.first = m.first
	}
}

// acceptedPart holds the blocks of a message accepted under the rules. It is remembered with the message and must not
// change.
type acceptedPart struct {
	role   content.Role
	blocks []content.Block
	intact bool // blocks are exactly those of the message
	notes  []pendingNote
}

// accepted returns the accepted blocks of m. An original message is converted once and remembered.
func (r *repairer) accepted(m input) acceptedPart {
	remember := r.key != nil && !m.rebuilt
	if remember {
		if part, ok := memo.OfBlocks(m.Blocks).Get(r.key).(*acceptedPart); ok && part.role == m.Role {
			for _, n := range part.notes {
				n.source = m.first
				r.notes = append(r.notes, n)
			}
			return *part
		}
	}

	firstNote := len(r.notes)
	part := acceptedPart{role: m.Role, blocks: make([]content.Block, 0, m.Blocks.Len())}
	for _, b := range m.Blocks.All() {
		part.blocks = r.accept(part.blocks, m.Role, b, m.first)
	}
	if m.Blocks.Len() == 0 && !m.rebuilt {
		r.note("dropped", m.first, "an empty %s message", m.Role)
	}
	// A copy of the notes: setNoteMessages changes them in place.
	part.intact, part.notes = same(part.blocks, m.Blocks), slices.Clone(r.notes[firstNote:])

	if remember {
		memo.OfBlocks(m.Blocks).Put(r.key, &part)
	}
	return part
}

// accept appends block as the API accepts it: unchanged, converted, as several blocks, or not at all. Source is the
// original message of the block.
func (r *repairer) accept(dst []content.Block, role content.Role, block content.Block, source int) []content.Block {
	switch b := block.(type) {
	case content.ToolUse:
		if role == content.User {
			r.note("block", source, "a tool call in a user message became text")
			text := content.Text{Text: "[Tool call " + b.Name + ": " + string(b.Input) + "]"}
			return r.appendConverted(dst, role, text, source)
		}
	case content.ToolResult:
		if role == content.Assistant {
			r.note("orphan", source, "a tool result in an assistant message became text")
			return r.appendOrphan(dst, b, role, source)
		}
		// Whether the result has a call is not known yet: see pair.
		return append(dst, r.result(b, source))
	case content.Thinking:
		if role == content.User {
			r.note("dropped", source, "thinking in a user message")
			return dst
		}
	}
	return r.appendConverted(dst, role, block, source)
}

// appendConverted appends b as the API accepts it, or nothing.
func (r *repairer) appendConverted(dst []content.Block, role content.Role, b content.Block, source int) []content.Block {
	if converted := r.convert(role, b, source, false); converted != nil {
		return append(dst, converted)
	}
	return dst
}

// convert returns b as the API accepts it, or nil. The first checks hold for every API; Rules.Accept decides about the
// rest.
func (r *repairer) convert(role content.Role, b content.Block, source int, nested bool) content.Block {
	if t, ok := b.(content.Text); ok && t.Text == "" {
		r.note("dropped", source, "an empty text block")
		return nil
	}
	if _, ok := b.(content.CutToolUse); ok {
		r.note("dropped", source, "a tool call of a response that was cut off")
		return nil
	}
	if _, ok := b.(content.Unknown); ok {
		r.note("dropped", source, "a block of a type that this version does not know")
		return nil
	}
	if r.rules.Accept == nil {
		return b
	}

	// A replacement comes from the rules of a provider: it may be invalid in any message.
	converted, why := r.rules.Accept(role, b, nested)
	if converted != nil && converted != b {
		converted, why = checked(converted, why)
	}
	switch {
	case converted == nil:
		r.note("dropped", source, "%s", why)
	case converted != b || why != "":
		r.note("block", source, "%s", why)
	}
	return converted
}

// checked returns a replacement made by Rules, or nil and the reason if it is invalid in any message.
func checked(replacement content.Block, why string) (content.Block, string) {
	if replacement == nil {
		return nil, why
	}

	list, err := content.Of(replacement)
	if err != nil {
		return nil, err.Error()
	}
	if t, ok := list.At(0).(content.Text); ok && t.Text == "" {
		return nil, why
	}
	return list.At(0), why
}

// result returns b with the content accepted by the API. A call must have a result: if b itself is refused, an empty
// one replaces it.
func (r *repairer) result(b content.ToolResult, source int) content.Block {
	var kept []content.Block
	for _, inner := range b.Content.All() {
		if converted := r.convert(content.User, inner, source, true); converted != nil {
			kept = append(kept, converted)
		}
	}
	if !same(kept, b.Content) {
		b.Content = r.resultContent(kept, source)
	}

	if converted := r.convert(content.User, b, source, false); converted != nil {
		return converted
	}
	return content.ToolResult{CallID: b.CallID, IsError: b.IsError}
}

// resultContent returns kept as the content of a tool result, or no content if a result cannot hold it.
func (r *repairer) resultContent(kept []content.Block, source int) content.Blocks {
	list, err := content.Of(kept...)
	if err == nil {
		_, err = content.Of(content.ToolResult{Content: list})
	}
	if err != nil {
		r.note("dropped", source, "the content of a tool result: %v", err)
		return content.Blocks{}
	}
	return list
}

// same reports whether list holds exactly these blocks.
func same(blocks []content.Block, list content.Blocks) bool {
	if len(blocks) != list.Len() {
		return false
	}
	for i, b := range blocks {
		if b != list.At(i) {
			return false
		}
	}
	return true
}

// appendOrphan appends a result without a call: a label as text, and the blocks of its content.
func (r *repairer) appendOrphan(dst []content.Block, b content.ToolResult, role content.Role, source int) []content.Block {
	label := "[Result of a tool call that is not open here:]"
	if b.IsError {
		label = "[Error of a tool call that is not open here:]"
	}

	dst = r.appendConverted(dst, role, content.Text{Text: label}, source)
	for _, inner := range b.Content.All() {
		dst = r.appendConverted(dst, role, inner, source)
	}
	return dst
}

// pair gives every call of assistant exactly one result at the beginning of answer, the next message. Other results
// there become text.
func (r *repairer) pair(assistant, answer *draft) {
	calls := assistant.calls()
	if len(calls) == 0 {
		r.orphans(answer)
		return
	}
	if r.rules.CallsLast && r.callsLast(assistant) {
		calls = assistant.calls()
	}

	// The usual case changes nothing and copies nothing.
	if r.paired(assistant, calls, answer) {
		return
	}

	// The drafts share their blocks with the conversation until here.
	assistant.blocks, assistant.intact, answer.intact = slices.Clone(assistant.blocks), false, false
	found := r.match(assistant, calls, answer)
	for i, index := range calls {
		call := assistant.blocks[index].(content.ToolUse)
		id := r.unique(call.ID, assistant.first)
		if found.results[i] == nil {
			r.noteDraft("answered", answer, assistant, "call %d (%s) had no result", i, call.Name)
			found.results[i] = &content.ToolResult{Content: content.Words(content.NoResult), IsError: true}
		}
		call.ID, found.results[i].CallID = id, id
		assistant.blocks[index] = call
	}
	if !found.inOrder {
		r.noteDraft("moved", answer, assistant, "results must be first and in call order")
	}

	// Results first: the APIs want them right after the calls.
	answer.blocks = answer.blocks[:0:0]
	for _, result := range found.results {
		answer.blocks = append(answer.blocks, *result)
	}
	answer.blocks = append(answer.blocks, found.rest...)
}

// paired reports whether nothing has to change, the usual case: the calls have good IDs, and answer begins with their
// results, in order, and has no others. It then records the IDs as taken.
func (r *repairer) paired(assistant *draft, calls []int, answer *draft) bool {
	if len(answer.blocks) < len(calls) {
		return false
	}

	for i, index := range calls {
		id := assistant.blocks[index].(content.ToolUse).ID
		result, ok := answer.blocks[i].(content.ToolResult)
		if !ok || result.CallID != id || !r.rules.ID(id) || r.isUsed(id) || repeats(assistant, calls[:i], id) {
			return false
		}
	}
	for _, b := range answer.blocks[len(calls):] {
		if _, ok := b.(content.ToolResult); ok {
			return false
		}
	}

	// Nothing has to change: take the IDs.
	for _, index := range calls {
		r.taken[assistant.blocks[index].(content.ToolUse).ID] = true
	}
	r.calls += len(calls)
	return true
}

// repeats reports whether one of the calls has the ID. It returns true for more than 32 calls: match takes linear time,
// this search quadratic.
func repeats(assistant *draft, calls []int, id string) bool {
	return len(calls) > 32 || slices.ContainsFunc(calls, func(index int) bool {
		return assistant.blocks[index].(content.ToolUse).ID == id
	})
}

// callsLast moves the calls of assistant behind everything else, and reports whether anything changed.
func (r *repairer) callsLast(assistant *draft) bool {
	var rest, calls []content.Block
	moved := false
	for _, b := range assistant.blocks {
		if _, ok := b.(content.ToolUse); ok {
			calls = append(calls, b)
		} else {
			moved = moved || len(calls) > 0
			rest = append(rest, b)
		}
	}
	if !moved {
		return false
	}

	assistant.blocks, assistant.intact = append(rest, calls...), false
	r.note("moved", assistant.first, "tool calls must be last")
	return true
}

// matched is the content of a message with the results of calls.
type matched struct {
	results []*content.ToolResult // by call; nil for a call without a result
	rest    []content.Block       // everything else, orphaned results as text
	inOrder bool                  // the results came first and in call order
}

// match assigns the results in answer to the calls of assistant:
//
//   - the n-th result with an ID belongs to the n-th call with the same ID,
//   - results without an ID belong to the remaining calls, in order.
func (r *repairer) match(assistant *draft, calls []int, answer *draft) matched {
	found := matched{results: make([]*content.ToolResult, len(calls)), inOrder: true}
	open := map[string][]int{} // indexes into calls, by call ID
	for i, index := range calls {
		id := assistant.blocks[index].(content.ToolUse).ID
		open[id] = append(open[id], i)
	}

	// Results with the ID of a call.
	callOf := make([]int, len(answer.blocks)) // by block of answer: an index into calls, or -1
	for j, b := range answer.blocks {
		callOf[j] = -1
		if result, ok := b.(content.ToolResult); ok && len(open[result.CallID]) > 0 {
			callOf[j] = open[result.CallID][0]
			open[result.CallID] = open[result.CallID][1:]
			found.results[callOf[j]] = &result
		}
	}

	// Results without an ID.
	next := 0
	for j, b := range answer.blocks {
		if result, ok := b.(content.ToolResult); ok && callOf[j] < 0 && result.CallID == "" {
			for next < len(found.results) && found.results[next] != nil {
				next++
			}
			if next < len(found.results) {
				callOf[j], found.results[next] = next, &result
			}
		}
	}

	// Everything else.
	lastCall := -1
	for j, b := range answer.blocks {
		if callOf[j] >= 0 {
			found.inOrder = found.inOrder && callOf[j] > lastCall && len(found.rest) == 0
			lastCall = callOf[j]
			continue
		}
		if result, ok := b.(content.ToolResult); ok {
			r.note("orphan", answer.first, "no open call has the ID %q of a result", result.CallID)
			found.rest = r.appendOrphan(found.rest, result, content.User, answer.first)
		} else {
			found.rest = append(found.rest, b)
		}
	}
	return found
}

// orphans turns every tool result in d into text.
func (r *repairer) orphans(d *draft) {
	if !d.hasResult() {
		return
	}

	var kept []content.Block
	for _, b := range d.blocks {
		if result, ok := b.(content.ToolResult); ok {
			r.note("orphan", d.first, "no open call has the ID %q of a result", result.CallID)
			kept = r.appendOrphan(kept, result, content.User, d.first)
		} else {
			kept = append(kept, b)
		}
	}
	d.blocks, d.intact = kept, false
}

// unique returns id, or a replacement if it is malformed or was used before. The replacement depends only on the number
// of calls before. It stays the same when the conversation continues.
func (r *repairer) unique(id string, source int) string {
	// Count calls with a good ID as well: the replacement must not depend on the IDs before.
	r.calls++
	if id == "" && r.rules.NoID {
		return ""
	}
	if r.rules.ID(id) && !r.isUsed(id) {
		r.taken[id] = true
		return id
	}

	fresh := r.replacement(1)
	for n := 2; r.isUsed(fresh); n++ {
		fresh = r.replacement(n)
	}
	r.note("id", source, "the call ID %q became %q", id, fresh)
	r.taken[fresh] = true
	return fresh
}

// replacement returns the n-th replacement for the ID of the current call: "call_3", "call_3_2" and so on or, if the
// API does not accept these, "c000023up".
func (r *repairer) replacement(n int) string {
	id := "call_" + strconv.Itoa(r.calls)
	if n > 1 {
		id += "_" + strconv.Itoa(n)
	}
	if r.rules.ID(id) {
		return id
	}

	// Each call has 32,768 replacements of its own.
	const first = 12 * 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 // "c00000000" in base 36
	return strconv.FormatInt(first+int64(r.calls)<<15+int64(n), 36)
}

func (r *repairer) isUsed(id string) bool { return r.taken[id] || r.settledUses(id) }

// fixEnds inserts a user message before the first and after the last message if the rules require one there.
func (r *repairer) fixEnds(drafts []draft) []draft {
	if len(drafts) == 0 {
		return nil
	}

	goOn := draft{role: content.User, blocks: []content.Block{content.Text{Text: content.GoOn}}, goOn: true, first: -1, last: -1}
	if r.rules.UserFirst && !r.settled && drafts[0].role == content.Assistant {
		r.note("end", -1, "the first message must be a user message")
		drafts = append([]draft{goOn}, drafts...)
	}

	// An empty message is dropped in the next round.
	last := drafts[len(drafts)-1]
	if last.role == content.User || len(last.blocks) == 0 {
		return drafts
	}
	if r.rules.EndsOpen == nil || !r.rules.EndsOpen(last.message()) {
		r.note("end", last.last, "the last message must be a user message")
		r.notes[len(r.notes)-1].after = true
		drafts = append(drafts, goOn)
	}
	return drafts
}

// message returns the draft as a message: the original one if nothing changed.
func (d *draft) message() content.Message {
	if d.built == nil {
		m := content.Message{Role: d.role, Blocks: d.source}
		if !d.intact && !same(d.blocks, d.source) {
			// The error is always nil: each block was part of a list before, or passed checked.
			m.Blocks, _ = content.Of(d.blocks...)
		}
		d.built = &m
	}
	return *d.built
}

func messagesOf(drafts []draft) []content.Message {
	messages := make([]content.Message, len(drafts))
	for i := range drafts {
		messages[i] = drafts[i].message()
	}
	return messages
}
