package executor

import (
	"sync"
	"time"
)

// workers manages the goroutines of a run. They execute calls and run hooks. One idle goroutine is kept for the next
// job: a job on a new goroutine takes about 2 µs more, mostly to grow its stack.
type workers struct {
	mu      sync.Mutex    // guards the fields below
	busy    int           // number of goroutines running a job
	single  bool          // for a single tool phase: keeping an idle goroutine would cost more than it saves
	waiting bool          // a goroutine is idle, or about to be
	jobs    chan work     // to the idle goroutine; has room for a job; nil until a goroutine is idle
	joined  bool          // join was called: no goroutine stays idle any more
	idle    chan struct{} // closed when no goroutine is busy; nil unless join waits for it
}

// work is a job for a goroutine.
type work interface {
	// run does the job. It may end its goroutine.
	run()
	// over is called after run, even if run has ended its goroutine.
	over()
}

// start runs the job on the idle goroutine, or on a new one.
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

		// over wakes the goroutine that waits for the job. It may start the next job at once, so be idle before that.
		next := w.done(true)
		j.over()
		j = nil
		if next != nil {
			j = <-next
		}
	}
}

// done counts the end of a job. If the goroutine becomes the idle one, done returns the channel for its next job. The
// channel is closed when there is no other job.
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
		// A job that was sent before is still received from a closed channel.
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
