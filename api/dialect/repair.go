package dialect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// GoOn is what the user's side says where the provider wants it to speak and it said nothing.
const GoOn = "Continue."

// Rules says what a provider's API accepts, beyond what all of them want.
type Rules struct {
	// Accept returns the block as the provider takes it, which may be the block itself, another one that says the same as far
	// as it can be said, or nil to leave it out; and, if it is not the block itself, why. It must be idempotent, and is asked
	// for the blocks inside tool results too, with nested true. A block that content.Of would not take is left out. Defaults to
	// taking every block.
	Accept func(role content.Role, b content.Block, nested bool) (content.Block, string)
	// ID reports whether the provider takes a call's id. It must take "call_" followed by digits and "_". Defaults to letters,
	// digits, "_" and "-", 1 to 40 of them.
	ID func(id string) bool
	// NoID says that a call may have no id, and its result with it: their places tell which it is. Defaults to false: such a call
	// gets one.
	NoID bool
	// CallsLast says that an assistant's tool calls must come after everything else in its message. Defaults to false.
	CallsLast bool
	// EndsOpen reports whether the provider takes a conversation whose last message, of the assistant, is m. Defaults to never.
	EndsOpen func(m content.Message) bool
	// UserFirst says that the first message must be the user's. Defaults to false.
	UserFirst bool
	// Prune says which blocks of messages that keep all the other rules must be left out or replaced all the same, because of
	// what stands beside them. It is asked again, of what came out, until there are none. Messages may begin in the middle of a
	// conversation, with the assistant, and what is said of one may depend on no other but the one before it and the one after
	// it, or, where the rules say that it waits, on those up to the next message of the user that is no answer to calls. Defaults
	// to none.
	Prune func(messages []content.Message) []Pruned
	// ItemID returns the id that a block of the assistant, or an opaque one of the user's side, has with its provider beside that of
	// a call; "" where it has none. No call gets the same id. Of blocks with one id only the first keeps it, but for texts in a row, which may be parts of one item: the
	// others become what Nameless makes of them. Defaults to none.
	ItemID func(b content.Block) string
	// Nameless returns the block without its id, or nil to leave it out. Defaults to leaving it out.
	Nameless func(b content.Block) content.Block
	// Waits reports whether something in m, of the assistant, may be answered later than in the message after it. Defaults to
	// never.
	Waits func(m content.Message) bool
}

// Pruned is a block that is left out, or replaced.
type Pruned struct {
	// Message and Block are its place.
	Message, Block int
	// With stands in its place; nil leaves it out.
	With content.Block
	// Why says why.
	Why string
}

// Repair returns messages changed as little as it takes to keep rules, and a note for each change. In the result
//
//   - both sides take turns, and no message and no text in it is empty,
//   - every tool call is the assistant's, and is answered once, in the message after it, before anything else there and in call
//     order,
//   - every tool result answers a call of the message before it,
//   - every call id is unique and well formed, or not there where the rules let it be,
//   - the last message is the user's, or one that the rules let stand last,
//   - every block is one that the rules accept.
//
// Nothing that was said is lost but what the rules refuse: a result that answers no call becomes text. Repairing the same
// messages gives the same result, repairing the result changes nothing, and what stands before a message does not depend on
// what comes after it, but for the answers to its calls: a conversation that goes on keeps its prefix.
//
// Repair returns no messages for a conversation in which nothing is said.
func Repair(messages []content.Message, rules Rules) ([]content.Message, []api.RepairNote) {
	r := newRepairer(rules)
	said := messagesOf(r.repair(messages))
	return said, r.about(0, len(messages))
}

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

// input is a message to repair, made of the original messages from first to last.
type input struct {
	content.Message
	first, last int
	made        bool // not an original one
}

// turn is everything that one side says until the other one speaks, made of the original messages from first to last; first is
// -1 where it is made of none.
type turn struct {
	role        content.Role
	blocks      []content.Block
	source      content.Blocks // what its first message said, to be sent as it is when nothing was changed
	intact      bool           // nothing was
	joined      bool           // blocks is the turn's own, which appending does not have to copy
	goOn        bool           // it was put there for the provider, and says GoOn
	first, last int
	built       *content.Message // what it is as a message, once that was asked
}

func (t turn) calls() []int {
	var at []int
	for i, b := range t.blocks {
		if _, ok := b.(content.ToolUse); ok {
			at = append(at, i)
		}
	}
	return at
}

// repairer repairs a conversation, or what follows a part of one that is settled.
type repairer struct {
	rules   Rules
	settled bool                 // something stands before that is not repaired again
	base    int                  // how many messages that is
	before  int                  // how many calls are in it
	used    func(id string) bool // whether one of them has the id

	// Of one round:
	calls int
	taken map[string]bool // ids

	key   any // what messages remember is accepted of them under; nil is nothing
	notes []tagged
	held  []held
}

// held is the id of an item, which no other gets, not even where the item is left out after all.
type held struct {
	id     string
	source int // the original message that it stood in
}

func newRepairer(rules Rules) *repairer {
	if rules.ID == nil {
		rules.ID = plainID
	}
	return &repairer{rules: rules, used: func(string) bool { return false }}
}

// tagged is a note under construction: its message is found when all is done.
type tagged struct {
	api.RepairNote
	source int  // the original message that it is about; -1 is one that was put before all others
	after  bool // it is about the message after that one
	gone   bool // nothing is left of it
}

func (r *repairer) note(kind api.RepairKind, source int, format string, args ...any) {
	r.notes = append(r.notes, tagged{RepairNote: api.RepairNote{Kind: kind, Detail: fmt.Sprintf(format, args...)}, source: source})
}

// noteTurn is note about a turn, which follows the turn before.
func (r *repairer) noteTurn(kind api.RepairKind, t, before *turn, format string, args ...any) {
	if t.first >= 0 || before == nil {
		r.note(kind, t.first, format, args...)
		return
	}
	r.note(kind, before.last, format, args...)
	r.notes[len(r.notes)-1].after = true
}

// repair returns the turns of the conversation.
func (r *repairer) repair(messages []content.Message) []turn {
	round := make([]input, len(messages))
	for i, m := range messages {
		round[i] = input{Message: m, first: i, last: i}
	}
	for {
		turns := r.round(round)
		emptied := slices.ContainsFunc(turns, func(t turn) bool { return len(t.blocks) == 0 })
		if !emptied && !r.prune(turns) {
			r.place(turns)
			return turns
		}
		round = round[:0:0]
		for i := range turns {
			if t := &turns[i]; !t.goOn {
				if len(t.blocks) == 0 {
					r.lose(t)
				}
				round = append(round, input{Message: t.message(), first: t.first, last: t.last, made: true})
			}
		}
		r.notes = slices.DeleteFunc(r.notes, func(n tagged) bool { return n.Kind == api.RepairEnd })
	}
}

// lose marks the notes about t, of which nothing is left.
func (r *repairer) lose(t *turn) {
	for i := range r.notes {
		if n := &r.notes[i]; n.source >= t.first && n.source <= t.last {
			n.gone = true
		}
	}
}

// round repairs everything but what Prune finds.
func (r *repairer) round(messages []input) []turn {
	r.calls, r.taken = r.before, map[string]bool{}
	turns := r.turns(messages)
	for i := 0; i < len(turns); i++ {
		r.reserve(&turns[i])
		if turns[i].role == content.User {
			continue
		}
		if i+1 == len(turns) && len(turns[i].calls()) > 0 {
			turns = append(turns, turn{role: content.User, first: -1, last: -1})
		}
		if i+1 < len(turns) {
			r.pair(&turns[i], &turns[i+1])
		}
	}
	if len(turns) > 0 && turns[0].role == content.User {
		r.orphans(&turns[0]) // no call stands before it
	}
	return r.ends(turns)
}

// reserve sees to it that no id of an item is there twice, and keeps these ids from calls.
func (r *repairer) reserve(t *turn) {
	if r.rules.ItemID == nil {
		return
	}
	var blocks []content.Block // nil as long as nothing is to be changed
	before := ""               // the id of the text before
	for i, b := range t.blocks {
		id := ""
		if _, opaque := b.(content.Opaque); opaque || t.role == content.Assistant {
			id = r.rules.ItemID(b)
		}
		_, text := b.(content.Text)
		again := id != "" && (id != before || !text) && r.isUsed(id)
		if again && blocks == nil {
			blocks = slices.Clone(t.blocks[:i])
		}
		switch {
		case again:
			blocks = r.rename(blocks, b, t.first)
			id = ""
		case blocks != nil:
			blocks = append(blocks, b)
		}
		if id != "" && !again {
			r.taken[id] = true
			r.held = append(r.held, held{id, t.first})
		}
		before = ""
		if text {
			before = id
		}
	}
	if blocks != nil {
		t.blocks, t.intact = blocks, false
	}
}

// rename appends b, whose id was used before, as it can be sent without.
func (r *repairer) rename(dst []content.Block, b content.Block, at int) []content.Block {
	if r.rules.Nameless != nil {
		if nameless, _ := sound(r.rules.Nameless(b), ""); nameless != nil {
			r.note(api.RepairID, at, "an item whose id was used before is sent without")
			return append(dst, nameless)
		}
	}
	r.note(api.RepairDropped, at, "an item whose id was used before")
	return dst
}

// prune carries out what Prune asks for, and reports whether it asked for anything.
func (r *repairer) prune(turns []turn) bool {
	if r.rules.Prune == nil {
		return false
	}
	found := r.rules.Prune(messagesOf(turns))
	slices.SortStableFunc(found, func(a, b Pruned) int { return cmp.Or(a.Message-b.Message, b.Block-a.Block) }) // the last block first
	for _, f := range found {
		t := &turns[f.Message]
		var before *turn
		if f.Message > 0 {
			before = &turns[f.Message-1]
		}
		t.blocks, t.intact, t.built = slices.Clone(t.blocks), false, nil
		if f.With == nil {
			t.blocks = slices.Delete(t.blocks, f.Block, f.Block+1)
			r.noteTurn(api.RepairDropped, t, before, "%s", f.Why)
		} else {
			t.blocks[f.Block] = f.With
			r.noteTurn(api.RepairBlock, t, before, "%s", f.Why)
		}
	}
	return len(found) > 0
}

// place finds the message of each note.
func (r *repairer) place(turns []turn) {
	slices.SortStableFunc(r.notes, func(a, b tagged) int { return a.source - b.source })
	at := 0
	for i := range r.notes {
		n := &r.notes[i]
		for at < len(turns) && (turns[at].first < 0 || turns[at].last < n.source) && n.source >= 0 {
			at++
		}
		switch {
		case n.source < 0:
			n.Message = 0
		case n.gone || at == len(turns) || turns[at].first > n.source:
			n.Message = -1
		case n.after:
			n.Message = r.base + at + 1
		default:
			n.Message = r.base + at
		}
	}
}

// about returns the notes about the original messages from first to the one before end.
func (r *repairer) about(first, end int) []api.RepairNote {
	var notes []api.RepairNote
	for _, n := range r.notes {
		if max(n.source, 0) >= first && max(n.source, 0) < end {
			notes = append(notes, n.RepairNote)
		}
	}
	return notes
}

// holds returns the ids of items in the original messages from first to the one before end.
func (r *repairer) holds(first, end int) []string {
	var ids []string
	for _, h := range r.held {
		if h.source >= first && h.source < end {
			ids = append(ids, h.id)
		}
	}
	return ids
}

// turns filters the blocks and joins messages of one side in a row.
func (r *repairer) turns(messages []input) []turn {
	var turns []turn
	for _, m := range messages {
		mark, at := len(r.notes), len(turns)
		if !m.Role.Valid() {
			r.note(api.RepairRole, m.first, "a message of the role %q became the user's", m.Role)
			m.Role = content.User
		}
		kept := r.accepted(m)
		switch {
		case len(kept.blocks) == 0:
			for i := mark; i < len(r.notes); i++ {
				r.notes[i].gone = true
			}
		case at > 0 && turns[at-1].role == m.Role:
			if m.first >= 0 {
				r.note(api.RepairMerged, m.first, "two messages of the %s in a row", m.Role)
			}
			turns[at-1].join(m, kept.blocks)
		default:
			turns = append(turns, turn{role: m.Role, blocks: kept.blocks, source: m.Blocks, intact: kept.intact, first: m.first, last: m.last})
		}
	}
	return turns
}

// join makes m, of which the provider takes blocks, a part of the turn.
func (t *turn) join(m input, blocks []content.Block) {
	if !t.joined { // until now the blocks may be what is remembered with the message
		t.blocks, t.joined = slices.Clip(t.blocks), true
	}
	t.blocks, t.intact = append(t.blocks, blocks...), false
	t.last = max(t.last, m.last)
	if t.first < 0 {
		t.first = m.first
	}
}

// kept is what of a message the provider takes. It is remembered with the message and does not change.
type kept struct {
	role   content.Role
	blocks []content.Block
	intact bool // all of it, as it is
	notes  []tagged
}

// accepted returns what of m's blocks the provider takes.
func (r *repairer) accepted(m input) kept {
	if r.key != nil && !m.made {
		if k, ok := m.Blocks.Recall(r.key).(*kept); ok && k.role == m.Role {
			for _, n := range k.notes {
				n.source = m.first
				r.notes = append(r.notes, n)
			}
			return *k
		}
	}
	mark := len(r.notes)
	k := kept{role: m.Role, blocks: make([]content.Block, 0, m.Blocks.Len())}
	for _, b := range m.Blocks.All() {
		k.blocks = r.accept(k.blocks, m.Role, b, m.first)
	}
	if m.Blocks.Len() == 0 && !m.made {
		r.note(api.RepairDropped, m.first, "an empty message of the %s", m.Role)
	}
	k.intact, k.notes = same(k.blocks, m.Blocks), slices.Clone(r.notes[mark:])
	if r.key != nil && !m.made {
		m.Blocks.Remember(r.key, &k)
	}
	return k
}

// accept appends what of block the provider takes.
func (r *repairer) accept(dst []content.Block, role content.Role, block content.Block, at int) []content.Block {
	switch b := block.(type) {
	case content.ToolUse:
		if role == content.User {
			r.note(api.RepairBlock, at, "a tool call of the user's side became text")
			return r.keep(dst, role, content.Text{Text: "[Tool call " + b.Name + ": " + string(b.Input) + "]"}, at)
		}
	case content.ToolResult:
		if role == content.Assistant {
			r.note(api.RepairOrphan, at, "a tool result of the assistant's side became text")
			return r.spellOut(dst, b, role, at)
		}
		return append(dst, r.result(b, at))
	case content.Thinking:
		if role == content.User {
			r.note(api.RepairDropped, at, "thinking of the user's side")
			return dst
		}
	}
	return r.keep(dst, role, block, at)
}

// keep appends b as the provider takes it, if it does.
func (r *repairer) keep(dst []content.Block, role content.Role, b content.Block, at int) []content.Block {
	if one := r.one(role, b, at, false); one != nil {
		return append(dst, one)
	}
	return dst
}

// one asks the rules about a block, after what holds everywhere.
func (r *repairer) one(role content.Role, b content.Block, at int, nested bool) content.Block {
	if t, ok := b.(content.Text); ok && t.Text == "" {
		r.note(api.RepairDropped, at, "an empty text")
		return nil
	}
	if _, ok := b.(content.CutToolUse); ok {
		r.note(api.RepairDropped, at, "a tool call of an answer that was cut off")
		return nil
	}
	if _, ok := b.(content.Unknown); ok {
		r.note(api.RepairDropped, at, "a block of a type that this version does not know")
		return nil
	}
	if r.rules.Accept == nil {
		return b
	}
	taken, why := r.rules.Accept(role, b, nested)
	if taken != nil && taken != b {
		taken, why = sound(taken, why)
	}
	switch {
	case taken == nil:
		r.note(api.RepairDropped, at, "%s", why)
	case taken != b || why != "":
		r.note(api.RepairBlock, at, "%s", why)
	}
	return taken
}

// sound returns the block that rules gave for another one, or nil if no message can hold it.
func sound(taken content.Block, why string) (content.Block, string) {
	if taken == nil {
		return nil, why
	}
	checked, err := content.Of(taken)
	if err != nil {
		return nil, err.Error()
	}
	if t, ok := checked.At(0).(content.Text); ok && t.Text == "" {
		return nil, why
	}
	return checked.At(0), why
}

// result returns b with the content that the provider takes.
func (r *repairer) result(b content.ToolResult, at int) content.Block {
	var kept []content.Block
	for _, inner := range b.Content.All() {
		if one := r.one(content.User, inner, at, true); one != nil {
			kept = append(kept, one)
		}
	}
	if !same(kept, b.Content) {
		b.Content = r.blocks(kept, at)
	}
	if taken := r.one(content.User, b, at, false); taken != nil {
		return taken
	}
	return content.ToolResult{CallID: b.CallID, IsError: b.IsError}
}

// blocks makes a list of what rules accepted for the inside of a tool result, without what cannot be there.
func (r *repairer) blocks(kept []content.Block, at int) content.Blocks {
	made, err := content.Of(kept...)
	if err == nil {
		_, err = content.Of(content.ToolResult{Content: made})
	}
	if err != nil {
		r.note(api.RepairDropped, at, "the content of a tool result: %v", err)
		return content.Blocks{}
	}
	return made
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

// spellOut appends a result that answers no call, as text and whatever else it holds.
func (r *repairer) spellOut(dst []content.Block, b content.ToolResult, role content.Role, at int) []content.Block {
	label := "[Result of a tool call that is not open here:]"
	if b.IsError {
		label = "[Error of a tool call that is not open here:]"
	}
	dst = r.keep(dst, role, content.Text{Text: label}, at)
	for _, inner := range b.Content.All() {
		dst = r.keep(dst, role, inner, at)
	}
	return dst
}

// pair gives every call of said its result in answer, and answer nothing else that is a result.
func (r *repairer) pair(said, answer *turn) {
	calls := said.calls()
	if len(calls) == 0 {
		r.orphans(answer)
		return
	}
	if r.rules.CallsLast && r.callsLast(said) {
		calls = said.calls()
	}
	if r.paired(said, calls, answer) {
		return
	}
	said.blocks, said.intact, answer.intact = slices.Clone(said.blocks), false, false
	results, rest, order := r.match(said, calls, answer)
	for i, at := range calls {
		call := said.blocks[at].(content.ToolUse)
		id := r.unique(call.ID, said.first)
		if results[i] == nil {
			r.noteTurn(api.RepairAnswered, answer, said, "call %d (%s) had no result", i, call.Name)
			none := content.ToolResult{Content: content.Words(content.NoResult), IsError: true}
			results[i] = &none
		}
		call.ID, results[i].CallID = id, id
		said.blocks[at] = call
	}
	if !order {
		r.noteTurn(api.RepairMoved, answer, said, "results come first and in call order")
	}
	answer.blocks = answer.blocks[:0:0]
	for _, result := range results {
		answer.blocks = append(answer.blocks, *result)
	}
	answer.blocks = append(answer.blocks, rest...)
}

// paired reports whether the calls have good ids, and their results stand first in answer, in order, and no others after them, as
// it usually is. Then the ids are taken, and nothing need be done.
func (r *repairer) paired(said *turn, calls []int, answer *turn) bool {
	if len(answer.blocks) < len(calls) {
		return false
	}
	for i, at := range calls {
		call := said.blocks[at].(content.ToolUse)
		result, ok := answer.blocks[i].(content.ToolResult)
		if !ok || result.CallID != call.ID || !r.rules.ID(call.ID) || r.isUsed(call.ID) || repeats(said, calls[:i], call.ID) {
			return false
		}
	}
	for _, b := range answer.blocks[len(calls):] {
		if _, ok := b.(content.ToolResult); ok {
			return false
		}
	}
	for _, at := range calls {
		r.taken[said.blocks[at].(content.ToolUse).ID] = true
	}
	r.calls += len(calls)
	return true
}

// repeats reports whether one of the calls has the id. Answers of very many calls go the long way, which is as long as they are.
func repeats(said *turn, calls []int, id string) bool {
	return len(calls) > 32 || slices.ContainsFunc(calls, func(at int) bool { return said.blocks[at].(content.ToolUse).ID == id })
}

// callsLast puts the calls of said after everything else, and reports whether that changed anything.
func (r *repairer) callsLast(said *turn) bool {
	moved, called := false, false
	for _, b := range said.blocks {
		_, call := b.(content.ToolUse)
		moved = moved || called && !call
		called = called || call
	}
	if !moved {
		return false
	}
	var rest, calls []content.Block
	for _, b := range said.blocks {
		if _, ok := b.(content.ToolUse); ok {
			calls = append(calls, b)
		} else {
			rest = append(rest, b)
		}
	}
	said.blocks, said.intact = append(rest, calls...), false
	r.note(api.RepairMoved, said.first, "the provider wants calls last")
	return true
}

// match finds, in answer, the result of each call: the n-th result with an id is that of the n-th call with it, and results
// without an id are those of the calls that are left, in order. It returns the results by call, everything else that answer
// says, and whether the results stood first and in order.
func (r *repairer) match(said *turn, calls []int, answer *turn) (results []*content.ToolResult, rest []content.Block, order bool) {
	results = make([]*content.ToolResult, len(calls))
	open := map[string][]int{} // calls by id
	for i, at := range calls {
		id := said.blocks[at].(content.ToolUse).ID
		open[id] = append(open[id], i)
	}
	taken := make([]int, len(answer.blocks)) // the call that the block answers, or -1
	for j, b := range answer.blocks {
		taken[j] = -1
		if result, ok := b.(content.ToolResult); ok && len(open[result.CallID]) > 0 {
			taken[j] = open[result.CallID][0]
			open[result.CallID] = open[result.CallID][1:]
			results[taken[j]] = &result
		}
	}
	next := 0
	for j, b := range answer.blocks {
		if result, ok := b.(content.ToolResult); ok && taken[j] < 0 && result.CallID == "" {
			for next < len(results) && results[next] != nil {
				next++
			}
			if next < len(results) {
				taken[j], results[next] = next, &result
			}
		}
	}
	order = true
	for j, last := 0, -1; j < len(taken); j++ {
		if taken[j] >= 0 {
			order = order && taken[j] > last && len(rest) == 0
			last = taken[j]
			continue
		}
		if result, ok := answer.blocks[j].(content.ToolResult); ok {
			r.note(api.RepairOrphan, answer.first, "a result for the id %q answers no open call", result.CallID)
			rest = r.spellOut(rest, result, content.User, answer.first)
		} else {
			rest = append(rest, answer.blocks[j])
		}
	}
	return results, rest, order
}

// orphans turns every result in t into text.
func (r *repairer) orphans(t *turn) {
	if !t.answers() {
		return
	}
	var kept []content.Block
	for _, b := range t.blocks {
		if result, ok := b.(content.ToolResult); ok {
			r.note(api.RepairOrphan, t.first, "a result for the id %q answers no open call", result.CallID)
			kept = r.spellOut(kept, result, content.User, t.first)
		} else {
			kept = append(kept, b)
		}
	}
	t.blocks, t.intact = kept, false
}

// unique returns id, or one in its place when it is badly formed or was used before. The replacement depends on nothing but
// how many calls there were before.
func (r *repairer) unique(id string, at int) string {
	r.calls++
	if id == "" && r.rules.NoID {
		return ""
	}
	if r.rules.ID(id) && !r.isUsed(id) {
		r.taken[id] = true
		return id
	}
	fresh := "call_" + strconv.Itoa(r.calls)
	for n := 2; r.isUsed(fresh); n++ {
		fresh = "call_" + strconv.Itoa(r.calls) + "_" + strconv.Itoa(n)
	}
	r.note(api.RepairID, at, "the call id %q became %q", id, fresh)
	r.taken[fresh] = true
	return fresh
}

func (r *repairer) isUsed(id string) bool { return r.taken[id] || r.used(id) }

// ends sees to the first and the last message.
func (r *repairer) ends(turns []turn) []turn {
	if len(turns) == 0 {
		return nil
	}
	goOn := turn{role: content.User, blocks: []content.Block{content.Text{Text: GoOn}}, goOn: true, first: -1, last: -1}
	if r.rules.UserFirst && !r.settled && turns[0].role == content.Assistant {
		r.note(api.RepairEnd, -1, "the provider wants the user to speak first")
		turns = append([]turn{goOn}, turns...)
	}
	last := turns[len(turns)-1]
	if last.role == content.Assistant && len(last.blocks) > 0 && (r.rules.EndsOpen == nil || !r.rules.EndsOpen(last.message())) {
		r.note(api.RepairEnd, last.last, "the provider wants the user to speak last")
		r.notes[len(r.notes)-1].after = true
		turns = append(turns, goOn)
	}
	return turns
}

// message returns the turn as a message, which is the source itself where nothing was changed.
func (t *turn) message() content.Message {
	if t.built == nil {
		said := content.Message{Role: t.role, Blocks: t.source}
		if !t.intact && !same(t.blocks, t.source) {
			said.Blocks, _ = content.Of(t.blocks...) // each was part of a list before, or checked by sound
		}
		t.built = &said
	}
	return *t.built
}

func messagesOf(turns []turn) []content.Message {
	messages := make([]content.Message, len(turns))
	for i := range turns {
		messages[i] = turns[i].message()
	}
	return messages
}
