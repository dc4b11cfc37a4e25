package api

import "fmt"

// RepairKind is the kind of a repair.
type RepairKind string

// The kinds of repairs.
const (
	// RepairAnswered: a call without a result got an error result with the text content.NoResult.
	RepairAnswered RepairKind = "answered"
	// RepairOrphan: a result without a call, or a second one for the same call, became text.
	RepairOrphan RepairKind = "orphan"
	// RepairMoved: results or calls were moved to the place required by the provider.
	RepairMoved RepairKind = "moved"
	// RepairID: an empty, malformed or duplicate ID was replaced, for a call also in its result, or removed.
	RepairID RepairKind = "id"
	// RepairBlock: a block was replaced by one acceptable to the provider.
	RepairBlock RepairKind = "block"
	// RepairDropped: a block was dropped because the provider would refuse it, and no other block could replace it.
	RepairDropped RepairKind = "dropped"
	// RepairMerged: consecutive messages of one role were joined.
	RepairMerged RepairKind = "merged"
	// RepairEnd: a user message was added at the beginning or the end, as required by the provider.
	RepairEnd RepairKind = "end"
	// RepairTool: a tool definition was changed or dropped.
	RepairTool RepairKind = "tool"
	// RepairRole: a message of an unknown role became the user's.
	RepairRole RepairKind = "role"
	// RepairOption: an option of the request was changed or dropped.
	RepairOption RepairKind = "option"
)

// RepairNote describes a change made for the provider to accept a request.
type RepairNote struct {
	Kind RepairKind
	// Message is the index of the changed message in the request as sent. It is -1 if the message was dropped, or if
	// the note is about another part of the request.
	Message int
	// Detail describes the change and its reason.
	Detail string
}

// String returns one line with the message, the kind and the detail.
func (r RepairNote) String() string {
	if r.Message < 0 {
		return string(r.Kind) + ": " + r.Detail
	}
	return fmt.Sprintf("message %d: %s: %s", r.Message, r.Kind, r.Detail)
}
