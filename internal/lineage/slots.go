package lineage

import (
	"slices"

	"github.com/plait-dev/plait/node"
)

// Slots holds the execution of each call of a message, by the number of the call: nil for a call without one. It is a
// persistent tree: a conversation and the next one, with one more result, share all but a path of it.
type Slots struct {
	list  []*node.Node // of a leaf
	parts *slotParts   // of any other
	owner *byte        // the edit that made this tree: it alone changes it. Only compared.
}

// slotParts are the trees below one.
type slotParts struct {
	list []*Slots // each for as many calls as size, the last one perhaps for fewer
	size int
}

// slotsWidth is the largest number of executions in a leaf, and of parts in any other.
const slotsWidth = 16

// slotsOf returns the slots of a list, which it keeps.
func slotsOf(list []*node.Node) Slots {
	if len(list) <= slotsWidth {
		return Slots{list: list}
	}

	parts := &slotParts{size: slotsWidth}
	for parts.size*slotsWidth < len(list) {
		parts.size *= slotsWidth
	}
	for part := range slices.Chunk(list, parts.size) {
		below := slotsOf(part)
		parts.list = append(parts.list, &below)
	}
	return Slots{parts: parts}
}

// At returns the execution of the call with that number, or nil.
func (s *Slots) At(number int) *node.Node {
	for s.parts != nil {
		s, number = s.parts.list[number/s.parts.size], number%s.parts.size
	}
	return s.list[number]
}

// Set changes the execution of a call. What the edit does not own is copied first: other conversations share it.
func (s *Slots) Set(number int, n *node.Node, edit *byte) {
	if s.owner != edit {
		s.list, s.owner = slices.Clone(s.list), edit
		if s.parts != nil {
			s.parts = &slotParts{slices.Clone(s.parts.list), s.parts.size}
		}
	}
	if s.parts == nil {
		s.list[number] = n
		return
	}

	below := &s.parts.list[number/s.parts.size]
	if (*below).owner != edit {
		*below = &Slots{list: (*below).list, parts: (*below).parts}
	}
	(*below).Set(number%s.parts.size, n, edit)
}
