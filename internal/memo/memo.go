// Package memo caches results computed from an immutable value beside that value.
package memo

import "sync/atomic"

// maxEntries is the number of keys that a Memo keeps.
const maxEntries = 8

// Memo holds a few values by key: those set last. The zero value is empty. It is safe for concurrent use.
type Memo struct{ entries atomic.Pointer[[]entry] }

type entry struct{ key, value any }

// Get returns the value of the key, or nil.
func (m *Memo) Get(key any) any {
	if held := m.entries.Load(); held != nil {
		for _, e := range *held {
			if e.key == key {
				return e.value
			}
		}
	}
	return nil
}

// Put sets the value of the key; nil removes it. If there are too many entries, Put drops the oldest.
func (m *Memo) Put(key, value any) {
	// The entries are never changed in place: build a new list and retry if another goroutine was faster.
	for {
		held := m.entries.Load()
		if held == nil && value == nil {
			return
		}

		entries := make([]entry, 0, 1)
		if value != nil {
			entries = append(entries, entry{key, value})
		}

		if held != nil {
			for _, e := range *held {
				if e.key != key && len(entries) < maxEntries {
					entries = append(entries, e)
				}
			}
		}

		next := &entries
		if len(entries) == 0 {
			next = nil
		}

		if m.entries.CompareAndSwap(held, next) {
			return
		}
	}
}

// Clear drops all entries.
func (m *Memo) Clear() { m.entries.Store(nil) }
