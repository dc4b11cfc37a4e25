package executor

import (
	"context"
	"sync"
	"time"
)

// deadline is the context of the calls of a batch that share the agent's timeout. It makes a channel and a timer only
// for a tool that waits for Done. Most tools do not, and making them takes a fifth of the time of a tool phase of one
// call.
type deadline struct {
	context.Context // of the run
	at              time.Time

	mu     sync.Mutex         // guards the fields below
	err    error              // why it ended, if it ended before the first call of Done; nil otherwise
	timed  context.Context    // has Done; nil until somebody asks for it
	cancel context.CancelFunc // of timed
}

// Deadline returns the end of the timeout, or that of the run if it comes first.
func (d *deadline) Deadline() (time.Time, bool) {
	if outer, ok := d.Context.Deadline(); ok && outer.Before(d.at) {
		return outer, true
	}
	return d.at, true
}

func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
		if d.err != nil {
			d.cancel() // the batch is over, or the deadline has passed and this has no effect
		}
	}
	return d.timed.Done()
}

func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.err != nil:
		return d.err
	case d.timed != nil:
		return d.timed.Err()
	}
	return d.Context.Err()
}

// Value asks timed first. Package context then finds the channel of Done there, and needs no goroutine to wait for it.
func (d *deadline) Value(key any) any {
	d.mu.Lock()
	inner := d.timed
	d.mu.Unlock()
	if inner == nil {
		inner = d.Context
	}
	return inner.Value(key)
}

// end ends the context with err, unless it has ended before.
func (d *deadline) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.timed != nil && err == context.DeadlineExceeded: // timed has a timer of its own
	case d.timed != nil:
		d.cancel()
	case d.err == nil:
		// The run may have ended first; its error is then the reason.
		if d.err = d.Context.Err(); d.err == nil {
			d.err = err
		}
	}
}

// alarm times out the running batch of a run. It is one timer, set again for each batch.
type alarm struct {
	mu    sync.Mutex  // guards the fields below
	timer *time.Timer // nil until the first batch
	batch *batch      // nil between batches
}

// set sets the alarm to the end of the batch's timeout.
func (a *alarm) set(b *batch, timeout time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.batch = b
	if a.timer == nil {
		a.timer = time.AfterFunc(timeout, a.ring)
		return
	}
	a.timer.Reset(timeout)
}

func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.batch = nil
	if a.timer != nil {
		a.timer.Stop()
	}
}

// ring times out the batch.
func (a *alarm) ring() {
	a.mu.Lock()
	b := a.batch
	a.mu.Unlock()

	// The timer of an earlier batch may fire too late to be stopped: check the time of this one.
	if b != nil && !time.Now().Before(b.shared.at) {
		b.shared.end(context.DeadlineExceeded)
		b.expire()
	}
}
