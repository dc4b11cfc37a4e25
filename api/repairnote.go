package api

import "fmt"

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
