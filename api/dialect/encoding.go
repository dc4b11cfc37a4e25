package dialect

import (
	"iter"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// Encoding describes how an API receives conversations: its rules and its JSON.
//
// Encode remembers its results with the conversation. If a conversation continues, or branches off anywhere, only its
// new messages are repaired and written; everything before is shared, not copied. This affects speed alone: the result
// is the same as without it.
//
// The memory takes about as much space as the conversation, for each API. Redacting drops it.
//
// An Encoding is identified by its address and must not change after its first use. It is safe for concurrent use.
type Encoding struct {
	// Rules describes the messages the API accepts.
	Rules Rules
	// Append appends m, a message that keeps the rules, to dst as one or more items of the API's list of messages, with
	// commas between them and none before the first. End is the number of messages after m. The result may depend only
	// on m and, while end is less than Far, on end.
	Append func(dst []byte, m content.Message, end int) []byte
	// AppendAnswer is used in place of Append for a message with tool results, if an API needs more of a call than its
	// ID there. Calls are those of the message before, in the order of the results. Defaults to Append.
	AppendAnswer func(dst []byte, calls []content.ToolUse, m content.Message, end int) []byte
}

// Far is the distance from the end of a conversation at which the bytes of a message are final.
const Far = 4

// Encode returns the conversation as the API receives it. It is a pure function of messages.
func (e *Encoding) Encode(messages []content.Message) Encoded {
	for p := range e.points(messages) {
		if encoded, ok := e.encodeFrom(p, messages); ok {
			return encoded
		}
	}
	encoded, _ := e.encodeFrom(nil, messages)
	return encoded
}

// Encoded is a conversation as an API receives it.
type Encoded struct {
	// Notes are the changes made.
	Notes []api.RepairNote

	settled *point            // nil if nothing is settled
	open    []content.Message // the messages after settled
	items   [][]byte
}

// Len returns the number of messages to send.
func (e Encoded) Len() int { return e.settled.len() + len(e.open) }

// Messages returns the messages to send.
func (e Encoded) Messages() []content.Message {
	all := make([]content.Message, e.Len())
	for i, m := range e.Backward() {
		all[i] = m
	}
	return all
}

// Backward yields the messages to send with their indexes, from the last to the first.
func (e Encoded) Backward() iter.Seq2[int, content.Message] {
	return func(yield func(int, content.Message) bool) {
		index := e.Len()
		for part := range e.partsBackward() {
			for _, m := range slices.Backward(part) {
				if index--; !yield(index, m) {
					return
				}
			}
		}
	}
}

// partsBackward yields the messages in parts, from the last part to the first: the open ones, and then the settled
// ones. The messages inside a part are in order.
func (e Encoded) partsBackward() iter.Seq[[]content.Message] {
	return func(yield func([]content.Message) bool) {
		if !yield(e.open) {
			return
		}
		for p := e.settled; p != nil; p = p.before {
			if !yield(p.repaired) {
				return
			}
		}
	}
}

// Items returns the items of the API's list of messages in pieces. Joined, the pieces are the list without its
// brackets. They are shared with other requests and must not be changed.
func (e Encoded) Items() [][]byte { return e.items }

// encodeFrom encodes messages after the point p, or all if p is nil. It reports false if the messages after p would
// change anything settled by p.
func (e *Encoding) encodeFrom(p *point, messages []content.Message) (Encoded, bool) {
	r := newRepairer(e.Rules)
	r.key = acceptedKey{e}
	if p != nil {
		r.settled, r.settledMessages, r.settledCalls, r.settledUses = true, p.out, p.calls, p.uses
		messages = messages[p.in:]
	}

	// Messages close to the end are not final. A message of the user would be joined to the settled one before it.
	drafts := r.repair(messages)
	if p != nil && (len(drafts) < Far || drafts[0].role != content.Assistant) {
		return Encoded{}, false
	}

	// Settle the final part. The counts are settled messages: original ones, and those of repaired.
	repaired := messagesOf(drafts)
	settledIn, settledOut := 0, 0
	var buffer []byte // for the bytes of one point after the other
	for _, cut := range e.cuts(messages, drafts) {
		first := drafts[cut].first
		if first == settledIn {
			continue // only an inserted message precedes the cut
		}
		notes, ids := r.notesBetween(settledIn, first), r.heldBetween(settledIn, first)
		p, buffer = e.settle(p, buffer[:0], messages[settledIn:first], repaired[settledOut:cut], notes, ids)
		settledIn, settledOut = first, cut
	}

	encoded := Encoded{settled: p, open: repaired[settledOut:]}
	encoded.Notes = append(p.allNotes(), r.notesBetween(settledIn, len(messages))...)
	encoded.items = append(p.pieces(), e.writeOpen(encoded))
	return encoded, true
}

// acceptedKey is the key for the accepted blocks of a message under an encoding.
type acceptedKey struct{ by *Encoding }

// writeOpen returns the items of the messages not yet settled.
func (e *Encoding) writeOpen(encoded Encoded) []byte {
	dst := make([]byte, 0, 2048)
	for i := range encoded.open {
		if i > 0 || encoded.settled != nil {
			dst = append(dst, ',')
		}
		dst = e.write(dst, encoded.open, i, len(encoded.open)-1-i)
	}
	return dst
}

// write appends messages[i], with end messages after it. Messages begins with the assistant or at the beginning of the
// conversation, so it has the calls for every tool result in it.
func (e *Encoding) write(dst []byte, messages []content.Message, i, end int) []byte {
	if m := messages[i]; e.AppendAnswer != nil && i > 0 && m.Role == content.User {
		if calls := messages[i-1].Blocks.ToolUses(); len(calls) > 0 {
			return e.AppendAnswer(dst, calls, m, end)
		}
	}
	return e.Append(dst, messages[i], end)
}
