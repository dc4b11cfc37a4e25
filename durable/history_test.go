package durable

import (
	"fmt"
	"slices"
	"sync"

	"github.com/plait-dev/plait/store"
)

// history is what happened in a world, in order: a model that knows nothing of engines.
type history struct {
	mu       sync.Mutex
	starts   map[store.Key]int             // how often a call began
	accepted map[store.Key]map[string]bool // the results that the store took, by their payload
	consumed map[store.Key]int             // by run and continuation
	faults   []string
}

func newHistory() *history {
	return &history{
		starts: map[store.Key]int{}, accepted: map[store.Key]map[string]bool{}, consumed: map[store.Key]int{},
	}
}

func (h *history) fault(format string, args ...any) {
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
}

// start notes that a call begins, and returns how often it has. After acceptance that is a fault, unless the process was
// frozen right before the call.
func (h *history) start(key store.Key, wasFrozen bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.accepted[key]) > 0 && !wasFrozen {
		h.fault("started after acceptance: %s", key)
	}
	h.starts[key]++
	return h.starts[key]
}

// accept notes that the store took a result, or took it for equal to the one it has.
func (h *history) accept(key store.Key, payload []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.accepted[key] == nil {
		h.accepted[key] = map[string]bool{}
	}
	h.accepted[key][string(payload)] = true
	if len(h.accepted[key]) == 2 {
		h.fault("accepted twice: %s", key)
	}
}

func (h *history) consume(key store.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.consumed[key]++
	if h.consumed[key] == 2 {
		h.fault("consumed twice: %s", key)
	}
}

// once notes the calls that began more than once.
func (h *history) once() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, n := range h.starts {
		if n > 1 {
			h.fault("started %d times: %s", n, key)
		}
	}
}

func (h *history) found() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(slices.Values(h.faults))
}
