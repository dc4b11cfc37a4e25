package executor

import (
	"sync"
	"time"
)

// crew counts the goroutines of a run. They execute calls and run hooks.
type crew struct {
	mu   sync.Mutex    // guards the fields below
	busy int           // number of goroutines
	idle chan struct{} // closed when there is none; nil unless join waits for it
}

// work is what a goroutine does. It may end the goroutine.
type work interface{ work() }

// start has a goroutine do the job.
func (w *crew) start(job work) {
	w.mu.Lock()
	w.busy++
	w.mu.Unlock()

	go func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.busy--; w.busy == 0 && w.idle != nil {
				close(w.idle)
				w.idle = nil
			}
		}()
		job.work()
	}()
}

// join waits until no goroutine is left, but not longer than grace.
func (w *crew) join(grace time.Duration) {
	w.mu.Lock()
	if w.busy == 0 || grace <= 0 {
		w.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	w.idle = idle
	w.mu.Unlock()

	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}
