// Package bell wakes goroutines that wait for news of a name.
package bell

import "sync"

// Bells has a bell for each name that somebody listens to. Its zero value is ready. Its methods can be called at the
// same time.
type Bells struct {
	mu     sync.Mutex // guards listen
	listen map[string]map[chan struct{}]bool
}

// Listen returns a channel that is filled when the bell of name rings, until stop is called. It has one slot: who is
// woken looks for all news, however often the bell has rung.
func (b *Bells) Listen(name string) (rung <-chan struct{}, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()

	c := make(chan struct{}, 1)
	if b.listen == nil {
		b.listen = map[string]map[chan struct{}]bool{}
	}
	if b.listen[name] == nil {
		b.listen[name] = map[chan struct{}]bool{}
	}
	b.listen[name][c] = true

	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listen[name], c)
		if len(b.listen[name]) == 0 {
			delete(b.listen, name)
		}
	}
}

// Ring wakes all who listen to name.
func (b *Bells) Ring(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.listen[name] {
		select {
		case c <- struct{}{}:
		default: // it is full already
		}
	}
}

// Names returns the names that somebody listens to, in no order.
func (b *Bells) Names() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.listen {
		names = append(names, name)
	}
	return names
}
