package executor

import (
	"sync"
	"time"
)

// workers is the goroutines of a run: those that execute calls and those that run hooks. One of them waits for the next
// job when it has nothing to do: a job on a new goroutine takes about 2 µs more, most of it to grow its stack.
type workers struct {
	mu      sync.Mutex    // guards the fields below
	busy    int           // the goroutines that run a job
	single  bool          // it is a tool phase alone: waiting for another job would cost more than it saves
	waiting bool          // a goroutine waits for the next job, or is about to
	jobs    chan work     // to the goroutine that waits; has room for a job; nil until one waits
	joined  bool          // no goroutine waits any more
	idle    chan struct{} // closed when none is busy; nil unless somebody waits for that
}

// work is something to run on a goroutine of its own.
type work interface {
	// run does it. It may end its goroutine.
	run()
	// over is called after run, also if that has ended its goroutine.
	over()
}

// start runs the job on a goroutine: on the one that waits, or on a new one.
func (w *workers) start(j work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy++
	if w.waiting {
		w.waiting = false
		w.jobs <- j
		return
	}
	go w.serve(j)
}

func (w *workers) serve(j work) {
	defer func() {
		if j != nil { // the job has ended the goroutine
			w.done(false)
			j.over()
		}
	}()

	for j != nil {
		j.run()

		// Whoever waits for the job may start the next one at once, so that this goroutine has to be free before.
		next := w.done(true)
		j.over()
		j = nil
		if next != nil {
			j = <-next
		}
	}
}

// done counts the end of a job. If the goroutine is to wait for the next one, done returns the channel that sends it;
// it sends nil, or is closed, when there is none.
func (w *workers) done(mayWait bool) <-chan work {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy--; w.busy == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}

	if !mayWait || w.waiting || w.joined || w.single {
		return nil
	}
	if w.jobs == nil {
		w.jobs = make(chan work, 1)
	}
	w.waiting = true
	return w.jobs
}

// join waits until no worker is busy, but not longer than grace.
func (w *workers) join(grace time.Duration) {
	w.mu.Lock()
	w.joined, w.waiting = true, false
	if w.jobs != nil {
		close(w.jobs)
	}
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
