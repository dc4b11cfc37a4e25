package dialect

import (
	"iter"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// Encoding is how an API wants conversations: by which rules, and in which form. What it made of a conversation is remembered with
// the conversation: one that goes on, or branches off anywhere, has only what is new repaired and written; what stood before is
// shared, not copied. That is never seen but by the clock: the result is what it would be without.
//
// What is remembered takes about as much memory as the conversation, for each API. Redacting drops it, and so does content.Blocks.Forget
// for one message, and dag.DAG.Forget for a conversation that is kept and not sent for a while.
//
// An Encoding is used by its address, and not changed once it was used. It is safe for concurrent use.
type Encoding struct {
	// Rules is what the API accepts.
	Rules Rules
	// Append appends a message that keeps the rules to dst: the items that the API's list of messages has for it, one or more,
	// with commas between them and none before the first. End is how many messages follow m; what is appended must not depend
	// on it where it is Far or more, and otherwise on nothing but m.
	Append func(dst []byte, m content.Message, end int) []byte
	// AppendAnswer is Append for a message that answers calls, which are those of the message before it, in the order of its
	// results; for an API whose results say more of the call than its id. Defaults to Append.
	AppendAnswer func(dst []byte, calls []content.ToolUse, m content.Message, end int) []byte
}

// Far is the distance from a conversation's end from where on the bytes of a message do not change any more.
const Far = 4

// Encode redrafts the conversation as the API wants it. It is a pure function of messages.
func (e *Encoding) Encode(messages []content.Message) Encoded {
	for p := range e.points(messages) {
		if encoded, ok := e.goOn(p, messages); ok {
			return encoded
		}
	}
	encoded, _ := e.goOn(nil, messages)
	return encoded
}

// Encoded is a conversation as an API wants it.
type Encoded struct {
	// Notes says what was changed.
	Notes []api.RepairNote

	settled *point
	said    []content.Message // after that point
	items   [][]byte
}

// Len is how many messages are sent.
func (e Encoded) Len() int { return e.settled.len() + len(e.said) }

// Messages redrafts what is sent.
func (e Encoded) Messages() []content.Message {
	all := make([]content.Message, e.Len())
	for i, m := range e.Backward() {
		all[i] = m
	}
	return all
}

// Backward yields what is sent with its place, from the last message to the first.
func (e Encoded) Backward() iter.Seq2[int, content.Message] {
	return func(yield func(int, content.Message) bool) {
		at := e.Len()
		for part := range e.partsBackward() {
			for _, m := range slices.Backward(part) {
				if at--; !yield(at, m) {
					return
				}
			}
		}
	}
}

func (e Encoded) partsBackward() iter.Seq[[]content.Message] {
	return func(yield func([]content.Message) bool) {
		if !yield(e.said) {
			return
		}
		for p := e.settled; p != nil; p = p.before {
			if !yield(p.said) {
				return
			}
		}
	}
}

// Items redrafts the items of the API's list of messages in pieces, which make the list when they are put one after the other.
// They are shared with other requests and must not be changed.
func (e Encoded) Items() [][]byte { return e.items }

// goOn encodes messages from the point p on, nil being the beginning. It is not ok where what p settles would be another thing in
// this conversation.
func (e *Encoding) goOn(p *point, messages []content.Message) (Encoded, bool) {
	r := newRepairer(e.Rules)
	r.key = accepting{e}
	if p != nil {
		r.settled, r.settledMessages, r.settledCalls, r.settledUses = true, p.out, p.calls, p.uses
		messages = messages[p.in:]
	}
	drafts := r.repair(messages)
	if p != nil && (len(drafts) < Far || drafts[0].role != content.Assistant) {
		return Encoded{}, false
	}
	said := messagesOf(drafts)
	given, done := 0, 0 // how many messages are settled, as they were given and as they are said
	for _, cut := range e.cuts(messages, drafts) {
		first := drafts[cut].first
		if first == given {
			continue // nothing stands before but what was put there
		}
		p = e.settle(p, messages[given:first], said[done:cut], r.notesBetween(given, first), r.heldBetween(given, first))
		given, done = first, cut
	}
	encoded := Encoded{settled: p, said: said[done:], Notes: append(p.allNotes(), r.notesBetween(given, len(messages))...)}
	encoded.items = append(p.pieces(), e.open(encoded))
	return encoded, true
}

// accepting is the key under which messages remember what of them an encoding accepts.
type accepting struct{ by *Encoding }

// open writes the messages that are not settled.
func (e *Encoding) open(encoded Encoded) []byte {
	dst := make([]byte, 0, 2048)
	for i := range encoded.said {
		if i > 0 || encoded.settled != nil {
			dst = append(dst, ',')
		}
		dst = e.write(dst, encoded.said, i, len(encoded.said)-1-i)
	}
	return dst
}

// write appends message i of a stretch. A stretch begins with the assistant, or with the conversation, so that the calls that a
// message answers are always in it.
func (e *Encoding) write(dst []byte, said []content.Message, i, end int) []byte {
	if m := said[i]; e.AppendAnswer != nil && i > 0 && m.Role == content.User {
		if calls := said[i-1].Blocks.ToolUses(); len(calls) > 0 {
			return e.AppendAnswer(dst, calls, m, end)
		}
	}
	return e.Append(dst, said[i], end)
}
