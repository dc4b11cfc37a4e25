// Package memo caches results computed from an immutable value beside that value, such as the encoding of a list of
// blocks in a provider's format. The results are kept as long as the value is.
package memo

import "sync/atomic"

// maxEntries is the maximum number of keys in a Memo.
const maxEntries = 8

// Users cannot see the Memo of a value. The packages of these values set the functions below. The parameters have no
// type because those packages import this one.
var (
	// OfBlocks returns the Memo of a content.Blocks, or nil for the empty list.
	OfBlocks func(blocks any) *Memo
	// OfNode returns the Memo of a *node.Node, for values computed from the node and its ancestors.
	OfNode func(n any) *Memo
	// AloneOf returns a pointer to the list of a *node.Node alone: a *[1]*node.Node. The list is a part of the node,
	// and must not be changed.
	AloneOf func(n any) any
	// SameNode reports whether two values of *node.Node are one node, perhaps redacted in one of them. It compares the
	// nodes before them by ID alone.
	SameNode func(a, b any) bool
	// AppendNode appends the saved form of a *node.Node, as its method Append does, and never remembers it. It is for a
	// reader that needs all forms of a long conversation just once more.
	AppendNode func(n any, dst []byte) []byte
	// AppendPortable appends what the method MarshalJSON of a *node.Node returns.
	AppendPortable func(n any, dst []byte) []byte
)

// Memo holds a few values by key: the last ones set. The caller must be able to compute a value again. The zero value
// and nil are empty, and nil stays so. It is safe for concurrent use.
//
// Keys are compared as the keys of a map: an incomparable key panics.
type Memo struct{ last atomic.Pointer[entry] }

// entry is a list of entries, the last one first. It is never changed: a list shares the end of the one before it.
type entry struct {
	key, value any
	before     *entry
}

// Get returns the value of the key, or nil.
func (m *Memo) Get(key any) any {
	if m == nil {
		return nil
	}
	for e := m.last.Load(); e != nil; e = e.before {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// Put sets the value of the key; nil removes it. If there are too many entries, Put drops the oldest.
func (m *Memo) Put(key, value any) {
	if m == nil {
		return
	}

	// Retry if another goroutine was faster.
	for {
		held := m.last.Load()
		next := held.without(key, maxEntries)
		if value != nil {
			next = &entry{key, value, held.without(key, maxEntries-1)}
		}
		if m.last.CompareAndSwap(held, next) {
			return
		}
	}
}

// without returns the first of the entries, at most limit of them, except the entry of the key.
func (e *entry) without(key any, limit int) *entry {
	if e == nil || limit == 0 {
		return nil
	}
	if e.key == key {
		return e.before.without(key, limit)
	}

	before := e.before.without(key, limit-1)
	if before == e.before {
		return e
	}
	return &entry{e.key, e.value, before}
}

// Clear drops all entries.
func (m *Memo) Clear() {
	if m != nil {
		m.last.Store(nil)
	}
}
