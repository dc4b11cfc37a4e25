package node

import "sync/atomic"

// line remembers the saved form of a node. The zero value remembers nothing. It is safe for concurrent use.
//
// A line is remembered from its second encoding on. A conversation that is saved in a journal or a store is encoded
// once, and does not hold its text twice. One that is saved as a whole again and again is encoded twice, and then
// copied: 50 ns in place of 1 µs for a node of 1.5 KB.
type line struct{ text atomic.Pointer[string] }

// encodedOnce is the text of a line that was encoded and is not remembered.
var encodedOnce = new(string)

// get returns the saved form if it is remembered, or "".
func (l *line) get() string {
	if text := l.text.Load(); text != nil {
		return *text
	}
	return ""
}

// encoded records that the node was encoded as text.
func (l *line) encoded(text []byte) {
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
