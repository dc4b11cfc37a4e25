package lineage

import (
	"slices"

	"github.com/plait-dev/plait/node"
)

// Slots holds the execution of each call of a message, by the number of the call: nil for a call without one. It is a
// persistent tree: a conversation and the next one, with one more result, share all but a path of it.
type Slots struct {
	list  []*node.Node // of a leaf
	parts []*Slots     // of any other: each for as many calls as part, the last one perhaps for fewer
	part  int
	owner *byte // the edit that made this tree: it alone changes it. Only compared.
}

// slotsWidth is the largest number of executions in a leaf, and of parts in any other.
const slotsWidth = 16

// slotsOf returns the slots of a list, which it keeps.
func slotsOf(list []*node.Node) Slots {
	if len(list) <= slotsWidth {
		return Slots{list: list}
	}

	s := Slots{part: slotsWidth}
	for s.part*slotsWidth < len(list) {
		s.part *= slotsWidth
	}
	below := make([]Slots, 0, (len(list)+s.part-1)/s.part)
	s.parts = make([]*Slots, 0, cap(below))
	for part := range slices.Chunk(list, s.part) {
		below = append(below, slotsOf(part))
		s.parts = append(s.parts, &below[len(below)-1])
	}
	return s
}

// At returns the execution of the call with that number, or nil.
func (s *Slots) At(number int) *node.Node {
	for s.parts != nil {
		s, number = s.parts[number/s.part], number%s.part
	}
	return s.list[number]
}

// Set changes the execution of a call. What the edit does not own is copied first: other conversations share it.
func (s *Slots) Set(number int, n *node.Node, edit *byte) {
	if s.owner != edit {
		s.list, s.parts, s.owner = slices.Clone(s.list), slices.Clone(s.parts), edit
	}
	if s.parts == nil {
		s.list[number] = n
		return
	}

	below := &s.parts[number/s.part]
	if (*below).owner != edit {
		shared := *below
		*below = &Slots{list: shared.list, parts: shared.parts, part: shared.part}
	}
	(*below).Set(number%s.part, n, edit)
}
