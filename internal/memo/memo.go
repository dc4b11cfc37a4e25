// Package memo caches results computed from an immutable value beside that value.
package memo

import "sync/atomic"

// maxEntries is the number of keys that a Memo keeps.
const maxEntries = 8

// Memo holds a few values by key: those set last. The zero value is empty. It is safe for concurrent use.
type Memo struct{ last atomic.Pointer[entry] }

// entry is a list of entries, the last one first. It is never changed: a list shares the end of the one before it.
type entry struct {
	key, value any
	before     *entry
}

// Get returns the value of the key, or nil.
func (m *Memo) Get(key any) any {
	for e := m.last.Load(); e != nil; e = e.before {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// Put sets the value of the key; nil removes it. If there are too many entries, Put drops the oldest.
func (m *Memo) Put(key, value any) {
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

// without returns the first of the entries, at most limit of them, without that of the key.
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
func (m *Memo) Clear() { m.last.Store(nil) }
