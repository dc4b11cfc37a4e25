package dag

import (
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// diffOp is the kind of a change between two conversations.
type diffOp string

// Changes of a node, of a part of a node, and of a line.
const (
	// In both conversations.
	opSame diffOp = "same"
	// Only in the old conversation, and only in the new one.
	opRemoved diffOp = "removed"
	opAdded   diffOp = "added"
	// With other content.
	opChanged diffOp = "changed"
)

// Difference is the result of [Diff]. Its String is for people, and MarshalJSON has every change for programs. The zero
// value does not represent equal conversations: only Diff makes a Difference.
type Difference struct {
	// Common is the number of nodes with the same digests at the beginning of both conversations, in the order of
	// [DAG.Nodes].
	Common int
	// Old and New are the first nodes with different digests; nil if that conversation has no further node. Their own
	// content may be the same.
	Old, New *node.Node
	// OldHeads and NewHeads are the heads of the conversations.
	OldHeads, NewHeads []*node.Node

	changes          []nodeChange // in order
	after            int          // the number of nodes with the same content after the last change
	equal            bool
	oldName, newName int // digits in the short names of the nodes
}

// nodeChange is a different node. A node with the same content in the same position is not a change, even if its digest
// differs because of a node before it. Parts returns the difference.
type nodeChange struct {
	// Op is any but opSame.
	Op diffOp
	// Old is the node in the old conversation, and nil if it was added. New is the node in the new conversation, and
	// nil if it was removed.
	Old, New *node.Node
	// Before is the number of nodes with the same content directly before this change: since the previous change or the
	// common beginning.
	Before int
}

// Diff compares two conversations, the old one and the new one, node by node in the order of [DAG.Nodes]. It finds the
// first nodes with different digests, which is cheap for shared nodes, and then the nodes with the same content after
// them.
//
//   - IDs, times, metadata, usage and refs do not count.
//   - The time is near-linear in the nodes and their content. For very different conversations, Diff may miss some
//     common nodes.
//   - Child conversations are compared as a whole. To compare two of them in detail, call Diff with the results of
//     [FromNode].
func Diff(old, new DAG) Difference {
	d := Difference{equal: Equal(old, new), OldHeads: old.Heads(), NewHeads: new.Heads()}
	a, b := old.Nodes(), new.Nodes()
	if d.equal {
		d.Common = len(b)
		return d
	}

	d.oldName, d.newName = describe.NameLength(old.nameable()), describe.NameLength(new.nameable())

	// Count the common beginning. A digest covers all nodes before its own, so this reads no content of shared nodes.
	for d.Common < min(len(a), len(b)) && sameDigest(a[d.Common], b[d.Common]) {
		d.Common++
	}
	a, b = a[d.Common:], b[d.Common:]
	if len(a) > 0 {
		d.Old = a[0]
	}
	if len(b) > 0 {
		d.New = b[0]
	}

	// The digests after a change differ even where the content is the same: compare the rest by content.
	d.changes, d.after = compare(a, b).changes()
	return d
}

// Equal reports whether both conversations have the same content, as the function [Equal] does.
func (d Difference) Equal() bool { return d.equal }

func sameDigest(a, b *node.Node) bool { return a == b || a.Digest() == b.Digest() }

// pair is an index in each of two lists; -1 for none.
type pair struct{ old, new int }

// lone reports whether p has an index in one list only.
func (p pair) lone() bool { return p.old < 0 || p.new < 0 }

// pairUp pairs equal elements of two lists. Between those, it pairs elements of the same kind. The pairs keep the order
// of both lists.
func pairUp(old, new, oldKinds, newKinds []int) []pair {
	var pairs []pair
	to := align(old, new)
	for i, j := 0, 0; ; i, j = i+1, j+1 {
		// Find the next equal pair.
		iEnd, jEnd := i, len(new)
		for iEnd < len(old) && to[iEnd] < 0 {
			iEnd++
		}
		if iEnd < len(old) {
			jEnd = to[iEnd]
		}

		// Between two equal pairs, elements of the same kind count as changed forms of each other.
		kin := align(oldKinds[i:iEnd], newKinds[j:jEnd])
		for k, first := 0, j; i < iEnd; i, k = i+1, k+1 {
			if kin[k] < 0 {
				pairs = append(pairs, pair{i, -1})
				continue
			}

			// The new elements before the partner of i have none themselves.
			for ; j < first+kin[k]; j++ {
				pairs = append(pairs, pair{-1, j})
			}
			pairs = append(pairs, pair{i, j})
			j++
		}

		// The remaining new elements have no partner.
		for ; j < jEnd; j++ {
			pairs = append(pairs, pair{-1, j})
		}

		if i == len(old) {
			return pairs
		}
		pairs = append(pairs, pair{i, j})
	}
}

// interned assigns the same number to equal values.
type interned[K comparable] map[K]int

func (m interned[K]) number(k K) int {
	n, known := m[k]
	if !known {
		n = len(m)
		m[k] = n
	}
	return n
}

func numbers[T any, K comparable](m interned[K], list []T, key func(T) K) []int {
	out := make([]int, len(list))
	for i, x := range list {
		out[i] = m.number(key(x))
	}
	return out
}

// comparison holds the nodes of two conversations after their common beginning.
type comparison struct {
	old, new         []*node.Node
	oldKeys, newKeys []int  // of each node; equal for the same content
	pairs            []pair // of nodes, in the order of both conversations
}

func compare(old, new []*node.Node) *comparison {
	c := &comparison{old: old, new: new}

	// A redaction copies the nodes after it. Copies with the same payload are equal: do not compare their content.
	again := 0
	for again < min(len(old), len(new)) && old[len(old)-1-again].Payload() == new[len(new)-1-again].Payload() {
		again++
	}

	old, new = old[:len(old)-again], new[:len(new)-again]
	keys, kinds := interned[key]{}, interned[string]{}
	c.oldKeys, c.newKeys = numbers(keys, old, keyOf), numbers(keys, new, keyOf)
	c.pairs = pairUp(c.oldKeys, c.newKeys, numbers(kinds, old, kindOf), numbers(kinds, new, kindOf))

	// The keys of numbers are 0 or more: a negative one is equal only to its counterpart.
	for i := range again {
		c.oldKeys, c.newKeys = append(c.oldKeys, -1-i), append(c.newKeys, -1-i)
		c.pairs = append(c.pairs, pair{len(old) + i, len(new) + i})
	}
	return c
}

// changes returns the changes, and the number of equal nodes after the last one.
func (c *comparison) changes() (changes []nodeChange, after int) {
	same := 0
	for _, p := range c.pairs {
		change := nodeChange{Before: same}
		if p.old >= 0 {
			change.Old = c.old[p.old]
		}
		if p.new >= 0 {
			change.New = c.new[p.new]
		}

		switch {
		case p.new < 0:
			change.Op = opRemoved
		case p.old < 0:
			change.Op = opAdded
		case c.oldKeys[p.old] != c.newKeys[p.new] || differs(change.Old, change.New):
			// A pair of one kind with other content, or with other content that has no text form.
			change.Op = opChanged
		default:
			same++
			continue
		}

		changes = append(changes, change)
		same = 0
	}
	return changes, same
}

// differs reports whether two nodes with the same fields differ in content without a field. This is so if their parents
// have the same digests, and they themselves have different ones.
func differs(a, b *node.Node) bool {
	if sameDigest(a, b) || a.NumParents() != b.NumParents() {
		return false
	}
	for i := range a.NumParents() {
		if !sameDigest(a.Parent(i), b.Parent(i)) {
			return false
		}
	}
	return true
}

// kindOf returns the kind of a node for pairUp. Only nodes of the same kind can be changed forms of each other.
func kindOf(n *node.Node) string {
	d := describe.Of(n)

	// An execution of another tool is another call, and not a changed one.
	if d.Sort == describe.Call {
		return "call " + d.Called.Tool
	}
	return d.Word
}
