package front

import (
	"container/list"
	"sync"
)

// defaultThreads is how many conversations Threads keep if nothing else is said.
const defaultThreads = 1000

// Threads is the order in which the conversations of a store in memory were used. A nil value does nothing.
type Threads struct {
	most int

	mu    sync.Mutex
	order *list.List // of *thread; the one used last comes first
	byKey map[string]*list.Element
}

// thread is a conversation of the store.
type thread struct {
	key   string
	users int // requests or sessions that use it now
}

// NewThreads returns the order for at most this many conversations; 1,000 for 0 or less.
func NewThreads(most int) *Threads {
	if most <= 0 {
		most = defaultThreads
	}
	return &Threads{most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

// Use enters a conversation for the time until done is called. It calls drop for each conversation beyond the maximum,
// the one used least recently first. A conversation in use is never dropped.
func (t *Threads) Use(key string, drop func(key string)) (done func()) {
	if t == nil {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()

	at := t.byKey[key]
	if at == nil {
		at = t.order.PushFront(&thread{key: key})
		t.byKey[key] = at
	}
	t.order.MoveToFront(at)
	at.Value.(*thread).users++
	t.shrink(drop)

	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		at.Value.(*thread).users--
		t.shrink(drop)
	}
}

// shrink drops what is beyond the maximum. The lock stays held while it is dropped: a new request for the conversation
// begins an empty one. t.mu must be held.
func (t *Threads) shrink(drop func(key string)) {
	for at := t.order.Back(); at != nil && t.order.Len() > t.most; {
		before := at.Prev()
		if old := at.Value.(*thread); old.users == 0 {
			t.order.Remove(at)
			delete(t.byKey, old.key)
			drop(old.key)
		}
		at = before
	}
}
