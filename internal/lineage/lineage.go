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

// CallerOf returns the message with the calls of the head h: the parent of an execution, and h itself for any other
// node.
func CallerOf(h *node.Node) *node.Node {
	if _, is := h.Payload().(node.ToolExecution); is && h.NumParents() == 1 {
		return h.Parent(0)
	}
	return h
}

// HasCalls reports whether n is a message of the model with tool calls.
func HasCalls(n *node.Node) bool {
	m, ok := n.Message()
	return ok && m.Role == content.Assistant && Has[content.ToolUse](m.Blocks)
}

// Has reports whether blocks hold a block of type B.
func Has[B content.Block](blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		if _, is := b.(B); is {
			return true
		}
	}
	return false
}

// Answered reports whether the conversation with that head ends with a message of the model without calls, and whether
// that is a whole response. A response that is not whole is for the model to continue.
func Answered(head *node.Node) (words, whole bool) {
	n := LastMessage(head)
	if n == nil {
		return false, false
	}
	m, _ := n.Message()
	words = m.Role == content.Assistant && !Has[content.ToolUse](m.Blocks)
	return words, words && m.Answer.Stop == content.StopEndTurn
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
