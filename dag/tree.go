package dag

import "hash/maphash"

// tree is a persistent map of values by name: a treap. It is a search tree by name and a heap by weight. Its shape
// depends only on the names, so two maps made from each other share most of their nodes. A tree is immutable; nil is
// empty.
type tree[V any] struct {
	name        string
	value       V
	weight      uint64
	left, right *tree[V]
}

// treeSeed makes weights unpredictable, so that nobody can choose names for which the tree becomes a list.
var treeSeed = maphash.MakeSeed()

func (t *tree[V]) get(name string) *tree[V] {
	for t != nil && t.name != name {
		if name < t.name {
			t = t.left
		} else {
			t = t.right
		}
	}
	return t
}

func (t *tree[V]) with(name string, value V) *tree[V] {
	// split leaves out an entry of that name, so the new one replaces it.
	less, more := t.split(name)
	return less.join((&tree[V]{name: name, value: value, weight: maphash.String(treeSeed, name)}).join(more))
}

func (t *tree[V]) without(name string) *tree[V] {
	less, more := t.split(name)
	return less.join(more)
}

// split returns the entries before name and the entries after it.
func (t *tree[V]) split(name string) (less, more *tree[V]) {
	// Only the nodes on the path to name are copied; the rest is shared.
	switch {
	case t == nil:
		return nil, nil
	case name < t.name:
		less, more = t.left.split(name)
		return less, &tree[V]{t.name, t.value, t.weight, more, t.right}
	case name > t.name:
		less, more = t.right.split(name)
		return &tree[V]{t.name, t.value, t.weight, t.left, less}, more
	}
	return t.left, t.right
}

// join returns the entries of both. All names of t must come before those of more.
func (t *tree[V]) join(more *tree[V]) *tree[V] {
	switch {
	case t == nil:
		return more
	case more == nil:
		return t
	case t.above(more):
		return &tree[V]{t.name, t.value, t.weight, t.left, t.right.join(more)}
	}
	return &tree[V]{more.name, more.value, more.weight, t.join(more.left), more.right}
}

// above reports whether t's root belongs above o's.
func (t *tree[V]) above(o *tree[V]) bool {
	return t.weight > o.weight || t.weight == o.weight && t.name < o.name
}

// all calls do for each entry, in the order of names.
func (t *tree[V]) all(do func(name string, value V)) {
	if t != nil {
		t.left.all(do)
		do(t.name, t.value)
		t.right.all(do)
	}
}

// since calls do, in the order of names, for each new or different entry in t, and with gone set for each entry only in
// old. same compares two values. Shared parts of the trees are skipped.
func (t *tree[V]) since(old *tree[V], same func(a, b V) bool, do func(name string, value V, gone bool)) {
	switch {
	case t == old:
	case old == nil || t != nil && t.above(old):
		// By its weight the root of t would be the root of old too: its name is only in t.
		less, more := old.split(t.name)
		t.left.since(less, same, do)
		do(t.name, t.value, false)
		t.right.since(more, same, do)
	case t == nil || old.above(t):
		// The name at the root of old is only in old.
		less, more := t.split(old.name)
		less.since(old.left, same, do)
		do(old.name, old.value, true)
		more.since(old.right, same, do)
	default:
		// Both roots have the same name.
		t.left.since(old.left, same, do)
		if !same(t.value, old.value) {
			do(t.name, t.value, false)
		}
		t.right.since(old.right, same, do)
	}
}

// beyond calls do, in the order of names, for each entry of t without an entry of that name in old. Shared parts of the
// trees are skipped.
func (t *tree[V]) beyond(old *tree[V], do func(name string, value V)) {
	switch {
	case t == nil || t == old:
	case old == nil:
		t.all(do)
	case t.above(old):
		// See since: the name at the root of t is only in t.
		less, more := old.split(t.name)
		t.left.beyond(less, do)
		do(t.name, t.value)
		t.right.beyond(more, do)
	case old.above(t):
		less, more := t.split(old.name)
		less.beyond(old.left, do)
		more.beyond(old.right, do)
	default:
		// Both roots have the same name.
		t.left.beyond(old.left, do)
		t.right.beyond(old.right, do)
	}
}
