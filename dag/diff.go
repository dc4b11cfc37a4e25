package dag

import (
	"slices"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// Op says what became of something from one conversation to the other.
type Op string

// What becomes of a node, of a part of what it says, and of a line.
const (
	// Same is in both.
	Same Op = "same"
	// Removed is in the old one alone, and Added in the new one alone.
	Removed Op = "removed"
	Added   Op = "added"
	// Changed says something else.
	Changed Op = "changed"
	// Moved says the same in another place: earlier, later, or after other nodes.
	Moved Op = "moved"
)

// Difference is what two conversations do not have in common. Its String is for people, and MarshalJSON for programs.
type Difference struct {
	// Common is how many nodes both begin with: the same by digest, in the order of [DAG.Nodes].
	Common int
	// Old and New are the first nodes that are not the same by digest; nil where that conversation has no further node. What
	// they say themselves may be the same.
	Old, New *node.Node
	// Changes is what is different, in order.
	Changes []Change
	// After is how many nodes say the same in both after the last change.
	After int
	// OldHeads and NewHeads are where the conversations end.
	OldHeads, NewHeads []*node.Node

	equal bool
}

// Change is a node that differs. A node that says the same in both conversations, in the same place, is none, although its digest
// differs after something that was changed. [Change.Parts] tells how it differs.
type Change struct {
	// Op is Removed, Added, Changed or Moved.
	Op Op
	// Old is the node in the old conversation, nil for one that was added; New the one in the new, nil for one that was removed.
	Old, New *node.Node
	// Before is how many nodes say the same in both between the change before this one, or the common beginning, and this one.
	Before int
}

// Diff compares two conversations, the old one and the new one, node by node in the order of [DAG.Nodes]. It finds where their
// digests part, which shared nodes make cheap, and then which of the nodes after that say the same. Ids, times, metadata, usage
// and refs do not count. The time is near-linear in the nodes and their content: where two conversations differ in much, less may
// be found to be the same than could be. Of conversations that hang on a node Diff says whether they are the same; to see how they
// differ, compare what [FromNode] returns.
func Diff(old, new DAG) Difference {
	d := Difference{equal: Equal(old, new), OldHeads: old.Heads(), NewHeads: new.Heads()}
	a, b := old.Nodes(), new.Nodes()
	if d.equal {
		d.Common = len(b)
		return d
	}
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
	d.Changes, d.After = compare(a, b).changes()
	return d
}

// Equal reports whether both conversations say the same, as the function [Equal] does.
func (d Difference) Equal() bool { return d.equal }

func sameDigest(a, b *node.Node) bool { return a == b || a.Digest() == b.Digest() }

// pair is two places, one in each of two lists; -1 where there is none.
type pair struct{ old, new int }

func (p pair) lone() bool { return p.old < 0 || p.new < 0 }

// pairUp pairs what is equal in two lists, and of what is left between that what is of one kind, in the order of both.
func pairUp(old, new, oldKinds, newKinds []int) []pair {
	var pairs []pair
	to := align(old, new)
	for i, j := 0, 0; ; i, j = i+1, j+1 {
		iEnd, jEnd := i, len(new)
		for iEnd < len(old) && to[iEnd] < 0 {
			iEnd++
		}
		if iEnd < len(old) {
			jEnd = to[iEnd]
		}
		kin := align(oldKinds[i:iEnd], newKinds[j:jEnd])
		for k, first := 0, j; i < iEnd; i, k = i+1, k+1 {
			if kin[k] < 0 {
				pairs = append(pairs, pair{i, -1})
				continue
			}
			for ; j < first+kin[k]; j++ {
				pairs = append(pairs, pair{-1, j})
			}
			pairs = append(pairs, pair{i, j})
			j++
		}
		for ; j < jEnd; j++ {
			pairs = append(pairs, pair{-1, j})
		}
		if i == len(old) {
			return pairs
		}
		pairs = append(pairs, pair{i, j})
	}
}

// interned gives equal values equal numbers.
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

// comparison is the nodes of two conversations after their common beginning.
type comparison struct {
	old, new         []*node.Node
	oldKeys, newKeys []int  // equal for nodes that say the same
	pairs            []pair // in the order of both
}

func compare(old, new []*node.Node) *comparison {
	c := &comparison{old: old, new: new}
	again := 0 // nodes at the end that say the very same, as those that an edit has made anew do
	for again < min(len(old), len(new)) && old[len(old)-1-again].Payload() == new[len(new)-1-again].Payload() {
		again++
	}
	head, end := old[:len(old)-again], new[:len(new)-again]
	keys, kinds := interned[key]{}, interned[string]{}
	c.oldKeys, c.newKeys = numbers(keys, head, keyOf), numbers(keys, end, keyOf)
	c.pairs = pairUp(c.oldKeys, c.newKeys, numbers(kinds, head, kindOf), numbers(kinds, end, kindOf))
	for i := range again {
		c.oldKeys, c.newKeys = append(c.oldKeys, -1-i), append(c.newKeys, -1-i)
		c.pairs = append(c.pairs, pair{len(head) + i, len(end) + i})
	}
	return c
}

// changes returns what is different, and how many nodes are the same after it.
func (c *comparison) changes() ([]Change, int) {
	var changes []Change
	same := 0
	elsewhere, places := c.elsewhere(), c.places()
	for _, p := range c.pairs {
		change := Change{Before: same}
		if p.old >= 0 {
			change.Old = c.old[p.old]
		}
		if p.new >= 0 {
			change.New = c.new[p.new]
		}
		switch from, moved := elsewhere[p]; {
		case moved && p.new < 0:
			continue // is told where it moved to
		case moved:
			change.Op, change.Old = Moved, c.old[from.old]
		case p.new < 0:
			change.Op = Removed
		case p.old < 0:
			change.Op = Added
		case c.oldKeys[p.old] != c.newKeys[p.new] || differs(change.Old, change.New):
			change.Op = Changed
		case places.moved(change.Old, change.New):
			change.Op = Moved
		default:
			same++
			continue
		}
		changes = append(changes, change)
		same = 0
	}
	return changes, same
}

// elsewhere pairs what was removed with what was added, where both say the same; each knows the other's place.
func (c *comparison) elsewhere() map[pair]pair {
	removed := map[int][]int{} // places by key
	for _, p := range c.pairs {
		if p.new < 0 {
			removed[c.oldKeys[p.old]] = append(removed[c.oldKeys[p.old]], p.old)
		}
	}
	moved := map[pair]pair{}
	for _, p := range c.pairs {
		if p.old >= 0 {
			continue
		}
		if from := removed[c.newKeys[p.new]]; len(from) > 0 {
			removed[c.newKeys[p.new]] = from[1:]
			gone := pair{from[0], -1}
			moved[p], moved[gone] = gone, p
		}
	}
	return moved
}

// differs reports whether two nodes that are spelled alike have other content all the same: what they follow is the same, and
// their digests are not.
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

// places tells what nodes follow, in terms that both conversations share.
type places struct {
	*comparison
	common    interned[node.Digest] // numbers of nodes of the common beginning
	olds, new map[node.ID]int       // the pair of a node after it
	before    [][]int               // what a node without a counterpart follows, by its pair; nil for one that has one
}

// maxPlaces is how many nodes before a node are looked at.
const maxPlaces = 64

func (c *comparison) places() *places {
	p := &places{comparison: c, common: interned[node.Digest]{}, olds: map[node.ID]int{}, new: map[node.ID]int{}}
	p.before = make([][]int, len(c.pairs))
	for i, at := range c.pairs {
		if at.old >= 0 {
			p.olds[c.old[at.old].ID()] = i
		}
		if at.new >= 0 {
			p.new[c.new[at.new].ID()] = i
		}
		switch {
		case at.new < 0:
			_, p.before[i] = p.follows(c.old[at.old], p.olds)
		case at.old < 0:
			_, p.before[i] = p.follows(c.new[at.new], p.new)
		}
	}
	return p
}

// follows returns the parents of n: those that have a counterpart, and also with the others replaced by what they follow.
func (p *places) follows(n *node.Node, at map[node.ID]int) (paired, all []int) {
	paired, all = []int{}, []int{}
	for i := 0; i < n.NumParents() && len(all) < maxPlaces; i++ {
		parent := n.Parent(i)
		k, after := at[parent.ID()]
		switch {
		case !after:
			k = -1 - p.common.number(parent.Digest())
		case p.pairs[k].lone():
			for _, b := range p.before[k] {
				if !slices.Contains(all, b) {
					all = append(all, b)
				}
			}
			continue
		}
		paired = append(paired, k)
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return paired, all
}

// moved reports whether two nodes that say the same follow different nodes, apart from what was added and removed.
func (p *places) moved(a, b *node.Node) bool {
	pairedA, allA := p.follows(a, p.olds)
	pairedB, allB := p.follows(b, p.new)
	return !slices.Equal(pairedA, pairedB) && !slices.Equal(allA, allB)
}

// kindOf is what two nodes must have in common so that one can be the other, changed.
func kindOf(n *node.Node) string {
	d := describe.Of(n)
	if d.Sort == describe.Call {
		return "call " + d.Called.Tool
	}
	return d.Word
}
