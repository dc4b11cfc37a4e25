package agui

import (
	"container/list"
	"sync"
)

// defaultThreads is the default of Options.Threads.
const defaultThreads = 1000

// threads is the order in which the conversations of the default store were used. A nil value does nothing.
type threads struct {
	most int

	mu    sync.Mutex
	order *list.List // of *thread; the one used last comes first
	byKey map[string]*list.Element
}

// thread is a conversation of the default store.
type thread struct {
	key  string
	runs int // requests that use it now
}

func newThreads(most int) *threads {
	if most <= 0 {
		most = defaultThreads
	}
	return &threads{most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

// use enters a conversation for the time until done is called. It calls drop for each conversation beyond the maximum,
// the one used least recently first. A conversation in use is never dropped.
func (t *threads) use(key string, drop func(key string)) (done func()) {
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
	at.Value.(*thread).runs++
	t.shrink(drop)

	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		at.Value.(*thread).runs--
		t.shrink(drop)
	}
}

// shrink drops what is beyond the maximum. The lock stays held while it is dropped: a new request for the conversation
// begins an empty one. t.mu must be held.
func (t *threads) shrink(drop func(key string)) {
	for at := t.order.Back(); at != nil && t.order.Len() > t.most; {
		before := at.Prev()
		if old := at.Value.(*thread); old.runs == 0 {
			t.order.Remove(at)
			delete(t.byKey, old.key)
			drop(old.key)
		}
		at = before
	}
}
