package node

import "sync/atomic"

// line remembers the saved form of a node. The zero value remembers nothing. It is safe for concurrent use.
//
// A line is remembered from its second encoding on. A journal or a store encodes each node once, so its nodes do not
// hold their text twice. If a conversation is saved as a whole again and again, its nodes are encoded twice and then
// copied, which takes 50 ns in place of 1 µs for a node of 1.5 KB.
type line struct{ text atomic.Pointer[string] }

// encodedOnce marks a line that was encoded once and is not remembered yet.
var encodedOnce = new(string)

// get returns the saved form if it is remembered, or "".
func (l *line) get() string {
	if text := l.text.Load(); text != nil {
		return *text
	}
	return ""
}

// encoded records an encoding of the node, and remembers the text the second time.
func (l *line) encoded(text []byte) {
	// Two goroutines may encode the node for the first time at once. They count as one.
	switch l.text.Load() {
	case nil:
		l.text.CompareAndSwap(nil, encodedOnce)
	case encodedOnce:
		l.set(string(text))
	}
}

// set remembers a saved form; "" forgets it.
func (l *line) set(text string) {
	if text == "" {
		l.text.Store(nil)
		return
	}
	l.text.Store(&text)
}
