// Package lineage gives several heads of a conversation their meaning, in one place.
//
// Heads that belong to one message are its open tool phase: the message itself, or executions of its calls (a fan). All
// other heads are branches. Every rule about calls (one result for each, directly after it) holds within a branch.
package lineage

import (
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// Branch is one of the branches at the heads of a conversation.
type Branch struct {
	// Last is the message whose executions the heads are, or else the only head.
	Last *node.Node
	// Heads are the heads of the branch, in order. The slice may be that of the caller and must not be changed.
	Heads []*node.Node
}

// Branches groups heads into branches, in the order of their first heads.
func Branches(heads []*node.Node) []Branch {
	if len(heads) == 0 {
		return nil
	}

	// Usually there is one branch, and it needs no map.
	last := CallerOf(heads[0])
	other := slices.IndexFunc(heads, func(h *node.Node) bool { return CallerOf(h).ID() != last.ID() })
	if other < 0 {
		return []Branch{{last, heads}}
	}

	branches := []Branch{{last, slices.Clone(heads[:other])}}
	at := map[node.ID]int{last.ID(): 0}
	for _, h := range heads[other:] {
		last := CallerOf(h)
		i, known := at[last.ID()]
		if !known {
			i = len(branches)
			at[last.ID()] = i
			branches = append(branches, Branch{Last: last})
		}
		branches[i].Heads = append(branches[i].Heads, h)
	}
	return branches
}

// Caller returns the message of the model with the calls of the branch, or nil if the branch does not end in an open
// tool phase.
func (b Branch) Caller() *node.Node {
	if !HasCalls(b.Last) {
		return nil
	}
	return b.Last
}

// Replace returns heads with now in place of the first head of the branch, and without its other heads.
func (b Branch) Replace(heads, now []*node.Node) []*node.Node {
	if len(b.Heads) == len(heads) {
		return now // the branch is the whole conversation
	}
	gone := make(map[*node.Node]bool, len(b.Heads))
	for _, h := range b.Heads {
		gone[h] = true
	}

	var list []*node.Node
	for _, h := range heads {
		switch {
		case h == b.Heads[0]:
			list = append(list, now...)
		case !gone[h]:
			list = append(list, h)
		}
	}
	return list
}

// CallerOf returns the message with the calls of the head h: the parent of an execution, and h itself for any other
// node.
func CallerOf(h *node.Node) *node.Node {
	if h.NumParents() == 1 && IsExecution(h) {
		return h.Parent(0)
	}
	return h
}

// IsExecution reports whether n is the execution of a call.
func IsExecution(n *node.Node) bool {
	_, ok := n.Payload().(node.ToolExecution)
	return ok
}

// IsUnfinished reports whether n is an execution without a result.
func IsUnfinished(n *node.Node) bool {
	e, ok := n.Payload().(node.ToolExecution)
	return ok && e.State.Unfinished()
}

// HasCalls reports whether n is a message of the model with tool calls.
func HasCalls(n *node.Node) bool {
	m, ok := n.Message()
	if !ok || m.Role != content.Assistant {
		return false
	}
	for _, b := range m.Blocks.All() {
		if _, is := b.(content.ToolUse); is {
			return true
		}
	}
	return false
}

// ExecutionsBefore returns the executions before the results message n.
func ExecutionsBefore(n *node.Node) []node.ToolExecution {
	list := make([]node.ToolExecution, 0, n.NumParents())
	for i := range n.NumParents() {
		if e, ok := n.Parent(i).Payload().(node.ToolExecution); ok {
			list = append(list, e)
		}
	}
	return list
}

// LastMessage returns the last message up to n, which may be nil, or nil. It does not search across a node with several
// parents.
func LastMessage(n *node.Node) *node.Node {
	for ; n != nil; n = n.Parent(0) {
		if _, ok := n.Message(); ok {
			return n
		}
		if n.NumParents() != 1 {
			break
		}
	}
	return nil
}
