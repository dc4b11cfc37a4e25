package api

import (
	"fmt"
	"strconv"

	"github.com/plait-dev/plait/content"
)

// GoOn is what the user's side says where the provider wants it to speak and it said nothing.
const GoOn = "Continue."

// RepairKind says what was repaired.
type RepairKind string

// The kinds of repairs.
const (
	// RepairAnswered: a call without a result got an error result that says content.NoResult.
	RepairAnswered RepairKind = "answered"
	// RepairOrphan: a result without a call, or a second one for the same call, became text.
	RepairOrphan RepairKind = "orphan"
	// RepairMoved: results were put into the place and order the provider wants.
	RepairMoved RepairKind = "moved"
	// RepairID: a call's id that is empty, badly formed or used before was replaced, in the call and in its result.
	RepairID RepairKind = "id"
	// RepairBlock: a block was replaced by one that the provider takes.
	RepairBlock RepairKind = "block"
	// RepairDropped: a block that the provider would refuse, and that says nothing to it, was left out.
	RepairDropped RepairKind = "dropped"
	// RepairMerged: messages of one side in a row were made one.
	RepairMerged RepairKind = "merged"
	// RepairEnd: a user's message was added at the end, or at the beginning, where the provider wants one.
	RepairEnd RepairKind = "end"
	// RepairTool: a tool definition was changed or left out.
	RepairTool RepairKind = "tool"
	// RepairRole: a message of neither side became one of the user's.
	RepairRole RepairKind = "role"
	// RepairOption: an option of the request was changed or left out.
	RepairOption RepairKind = "option"
)

// RepairNote says what was changed in a request so that the provider takes it.
type RepairNote struct {
	Kind RepairKind
	// Message is the place of the message that was changed, among those that are sent; -1 where it is none of them, because
	// nothing of it is left or the note is of another part of the request.
	Message int
	// Detail says what and why.
	Detail string
}

// String says where, what kind and what in one line.
func (r RepairNote) String() string {
	if r.Message < 0 {
		return string(r.Kind) + ": " + r.Detail
	}
	return fmt.Sprintf("message %d: %s: %s", r.Message, r.Kind, r.Detail)
}

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
	// CallsLast says that an assistant's tool calls must come after everything else in its message. Defaults to false.
	CallsLast bool
	// EndsOpen reports whether the provider takes a conversation whose last message, of the assistant, is m. Defaults to never.
	EndsOpen func(m content.Message) bool
	// UserFirst says that the first message must be the user's. Defaults to false.
	UserFirst bool
}

// Repair returns messages changed as little as it takes to keep rules, and a note for each change. In the result
//
//   - both sides take turns, and no message and no text in it is empty,
//   - every tool call is the assistant's, and is answered once, in the message after it, before anything else there and in call
//     order,
//   - every tool result answers a call of the message before it,
//   - every call id is unique and well formed,
//   - the last message is the user's, or one that the rules let stand last,
//   - every block is one that the rules accept.
//
// Nothing that was said is lost but what the rules refuse: a result that answers no call becomes text. Repairing the same
// messages gives the same result, repairing the result changes nothing, and what stands before a message does not depend on
// what comes after it, but for the answers to its calls: a conversation that goes on keeps its prefix.
//
// Repair returns no messages for a conversation in which nothing is said.
func Repair(messages []content.Message, rules Rules) ([]content.Message, []RepairNote) {
	if rules.ID == nil {
		rules.ID = plainID
	}
	r := repairer{rules: rules, used: map[string]bool{}}
	turns := r.turns(messages)
	for i := 0; i < len(turns); i++ {
		if turns[i].role == content.User {
			continue
		}
		if i+1 == len(turns) && len(turns[i].calls()) > 0 {
			turns = append(turns, turn{role: content.User, at: len(turns)})
		}
		if i+1 < len(turns) {
			r.pair(&turns[i], &turns[i+1])
		}
	}
	if len(turns) > 0 && turns[0].role == content.User {
		r.orphans(&turns[0]) // no call stands before it
	}
	turns = r.ends(turns)
	return r.finish(turns), r.notes
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

// turn is everything that one side says until the other one speaks.
type turn struct {
	role   content.Role
	blocks []content.Block
	at     int            // its place among the messages that are sent
	source content.Blocks // what its first message said, to be sent as it is when nothing was changed
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

type repairer struct {
	rules Rules
	notes []RepairNote
	used  map[string]bool // ids of calls so far
	calls int
}

func (r *repairer) note(kind RepairKind, message int, format string, args ...any) {
	r.notes = append(r.notes, RepairNote{Kind: kind, Message: message, Detail: fmt.Sprintf(format, args...)})
}

// turns filters the blocks and joins messages of one side in a row.
func (r *repairer) turns(messages []content.Message) []turn {
	var turns []turn
	for _, m := range messages {
		mark, at := len(r.notes), len(turns)
		if !m.Role.Valid() {
			r.note(RepairRole, at, "a message of the role %q became the user's", m.Role)
			m.Role = content.User
		}
		joins := at > 0 && turns[at-1].role == m.Role
		if joins {
			at--
		}
		blocks := r.accepted(m, at)
		switch {
		case len(blocks) == 0:
			for i := mark; i < len(r.notes); i++ {
				r.notes[i].Message = -1
			}
		case joins:
			r.note(RepairMerged, at, "two messages of the %s in a row", m.Role)
			turns[at].blocks = append(turns[at].blocks, blocks...)
		default:
			turns = append(turns, turn{role: m.Role, blocks: blocks, at: at, source: m.Blocks})
		}
	}
	return turns
}

// accepted returns what of m's blocks the provider takes.
func (r *repairer) accepted(m content.Message, at int) []content.Block {
	kept := make([]content.Block, 0, m.Blocks.Len())
	for _, b := range m.Blocks.All() {
		kept = append(kept, r.accept(m.Role, b, at)...)
	}
	if m.Blocks.Len() == 0 {
		r.note(RepairDropped, at, "an empty message of the %s", m.Role)
	}
	return kept
}

// accept returns what of b the provider takes.
func (r *repairer) accept(role content.Role, b content.Block, at int) []content.Block {
	switch b := b.(type) {
	case content.ToolUse:
		if role == content.User {
			r.note(RepairBlock, at, "a tool call of the user's side became text")
			return r.kept(role, content.Text{Text: "[Tool call " + b.Name + ": " + string(b.Input) + "]"}, at, false)
		}
	case content.ToolResult:
		if role == content.Assistant {
			r.note(RepairOrphan, at, "a tool result of the assistant's side became text")
			return r.spelledOut(b, role, at)
		}
		return []content.Block{r.result(b, at)}
	case content.Thinking:
		if role == content.User {
			r.note(RepairDropped, at, "thinking of the user's side")
			return nil
		}
	}
	return r.kept(role, b, at, false)
}

// kept is b as the provider takes it, in a list; or no list.
func (r *repairer) kept(role content.Role, b content.Block, at int, nested bool) []content.Block {
	if one := r.one(role, b, at, nested); one != nil {
		return []content.Block{one}
	}
	return nil
}

// one asks the rules about a block, after what holds everywhere.
func (r *repairer) one(role content.Role, b content.Block, at int, nested bool) content.Block {
	if t, ok := b.(content.Text); ok && t.Text == "" {
		r.note(RepairDropped, at, "an empty text")
		return nil
	}
	if _, ok := b.(content.Unknown); ok {
		r.note(RepairDropped, at, "a block of a type that this version does not know")
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
		r.note(RepairDropped, at, "%s", why)
	case taken != b || why != "":
		r.note(RepairBlock, at, "%s", why)
	}
	return taken
}

// sound returns the block that rules gave for another one, or nil if no message can hold it.
func sound(taken content.Block, why string) (content.Block, string) {
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
		r.note(RepairDropped, at, "the content of a tool result: %v", err)
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

// spelledOut is a result that answers no call, as text and whatever else it holds.
func (r *repairer) spelledOut(b content.ToolResult, role content.Role, at int) []content.Block {
	label := "[Result of a tool call that is not open here:]"
	if b.IsError {
		label = "[Error of a tool call that is not open here:]"
	}
	said := r.kept(role, content.Text{Text: label}, at, false)
	for _, inner := range b.Content.All() {
		said = append(said, r.kept(role, inner, at, false)...)
	}
	return said
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
	results, rest, order := r.match(said, calls, answer)
	for i, at := range calls {
		call := said.blocks[at].(content.ToolUse)
		id := r.unique(call.ID, said.at)
		if results[i] == nil {
			r.note(RepairAnswered, answer.at, "call %d (%s) had no result", i, call.Name)
			none := content.ToolResult{Content: content.Words(content.NoResult), IsError: true}
			results[i] = &none
		}
		call.ID, results[i].CallID = id, id
		said.blocks[at] = call
	}
	if !order {
		r.note(RepairMoved, answer.at, "results come first and in call order")
	}
	answer.blocks = answer.blocks[:0:0]
	for _, result := range results {
		answer.blocks = append(answer.blocks, *result)
	}
	answer.blocks = append(answer.blocks, rest...)
}

// callsLast puts the calls of said after everything else, and reports whether that changed anything.
func (r *repairer) callsLast(said *turn) bool {
	var rest, calls []content.Block
	moved := false
	for _, b := range said.blocks {
		if _, ok := b.(content.ToolUse); ok {
			calls = append(calls, b)
		} else {
			moved = moved || len(calls) > 0
			rest = append(rest, b)
		}
	}
	if moved {
		said.blocks = append(rest, calls...)
		r.note(RepairMoved, said.at, "the provider wants calls last")
	}
	return moved
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
			r.note(RepairOrphan, answer.at, "a result for the id %q answers no open call", result.CallID)
			rest = append(rest, r.spelledOut(result, content.User, answer.at)...)
		} else {
			rest = append(rest, answer.blocks[j])
		}
	}
	return results, rest, order
}

// orphans turns every result in t into text.
func (r *repairer) orphans(t *turn) {
	var kept []content.Block
	for _, b := range t.blocks {
		if result, ok := b.(content.ToolResult); ok {
			r.note(RepairOrphan, t.at, "a result for the id %q answers no open call", result.CallID)
			kept = append(kept, r.spelledOut(result, content.User, t.at)...)
		} else {
			kept = append(kept, b)
		}
	}
	t.blocks = kept
}

// unique returns id, or one in its place when it is badly formed or was used before. The replacement depends on nothing but
// how many calls there were before.
func (r *repairer) unique(id string, at int) string {
	r.calls++
	if r.rules.ID(id) && !r.used[id] {
		r.used[id] = true
		return id
	}
	fresh := "call_" + strconv.Itoa(r.calls)
	for n := 2; r.used[fresh]; n++ {
		fresh = "call_" + strconv.Itoa(r.calls) + "_" + strconv.Itoa(n)
	}
	r.note(RepairID, at, "the call id %q became %q", id, fresh)
	r.used[fresh] = true
	return fresh
}

// ends sees to the first and the last message.
func (r *repairer) ends(turns []turn) []turn {
	if len(turns) == 0 {
		return nil
	}
	if r.rules.UserFirst && turns[0].role == content.Assistant {
		for i := range r.notes {
			if r.notes[i].Message >= 0 {
				r.notes[i].Message++
			}
		}
		r.note(RepairEnd, 0, "the provider wants the user to speak first")
		turns = append([]turn{{role: content.User, blocks: []content.Block{content.Text{Text: GoOn}}}}, turns...)
	}
	last := turns[len(turns)-1]
	if last.role == content.Assistant && (r.rules.EndsOpen == nil || !r.rules.EndsOpen(last.message())) {
		r.note(RepairEnd, len(turns), "the provider wants the user to speak last")
		turns = append(turns, turn{role: content.User, blocks: []content.Block{content.Text{Text: GoOn}}})
	}
	return turns
}

func (t turn) message() content.Message {
	if same(t.blocks, t.source) {
		return content.Message{Role: t.role, Blocks: t.source}
	}
	blocks, _ := content.Of(t.blocks...) // each was part of a list before, or checked by sound
	return content.Message{Role: t.role, Blocks: blocks}
}

func (r *repairer) finish(turns []turn) []content.Message {
	messages := make([]content.Message, len(turns))
	for i, t := range turns {
		messages[i] = t.message()
	}
	return messages
}
