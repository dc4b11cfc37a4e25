package api

import "fmt"

// RepairNote describes a change made for the provider to accept a request.
type RepairNote struct {
	// Kind is the kind of the change:
	//
	//	answered  a call without a result got an error result with the text content.NoResult
	//	orphan    a result without a call, or a second one for the same call, became text
	//	moved     results or calls were moved to the place required by the provider
	//	id        an empty, malformed or duplicate ID was replaced, for a call also in its result, or removed
	//	block     a block was replaced by one acceptable to the provider
	//	dropped   a block was dropped because the provider would refuse it, and no other block could replace it
	//	merged    consecutive messages of one role were joined
	//	end       a user message was added at the beginning or the end, as required by the provider
	//	tool      a tool definition was changed or dropped
	//	role      a message of an unknown role became the user's
	//	option    an option of the request was changed or dropped
	Kind string
	// Message is the index of the changed message in the request as sent. It is -1 if the message was dropped, or if
	// the note is about another part of the request.
	Message int
	// Detail describes the change and its reason.
	Detail string
}

// String returns one line with the message, the kind and the detail.
func (r RepairNote) String() string {
	if r.Message < 0 {
		return r.Kind + ": " + r.Detail
	}
	return fmt.Sprintf("message %d: %s: %s", r.Message, r.Kind, r.Detail)
}
