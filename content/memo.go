package content

import "sync/atomic"

// Remember keeps something that was made of the list, such as its bytes in a provider's form, beside the list, for as long as the
// list itself is kept. What was remembered for the key before is forgotten. A list remembers for a few keys only, the latest
// ones, and the empty list nothing; so what is remembered must be something that can be made again. Keys are compared, as those of
// a map: one that cannot be compared panics.
func (b Blocks) Remember(key, value any) {
	if b.list != nil {
		b.list.memo.put(key, value)
	}
}

// Recall returns what is remembered for the key; nil when nothing is. It is safe for concurrent use, as Remember is.
func (b Blocks) Recall(key any) any {
	if b.list == nil {
		return nil
	}
	return b.list.memo.get(key)
}

// Forget drops everything that is remembered with the list. Whoever needs it makes it again.
func (b Blocks) Forget() {
	if b.list != nil {
		b.list.memo.entries.Store(nil)
	}
}

// mostRemembered is for how many keys a list remembers.
const mostRemembered = 8

// memo is a few values by key. The zero value is empty.
type memo struct{ entries atomic.Pointer[[]entry] }

type entry struct{ key, value any }

func (m *memo) get(key any) any {
	if held := m.entries.Load(); held != nil {
		for _, e := range *held {
			if e.key == key {
				return e.value
			}
		}
	}
	return nil
}

func (m *memo) put(key, value any) {
	for {
		held := m.entries.Load()
		entries := []entry{{key, value}}
		if held != nil {
			for _, e := range *held {
				if e.key != key && len(entries) < mostRemembered {
					entries = append(entries, e)
				}
			}
		}
		if m.entries.CompareAndSwap(held, &entries) {
			return
		}
	}
}
