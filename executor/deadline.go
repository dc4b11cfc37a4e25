package executor

import (
	"context"
	"sync"
	"time"
)

// deadline is the context of the calls of a batch that share the agent's timeout. It makes a channel and a timer only
// for a tool that waits for Done: most do not, and making them is a fifth of what a tool phase of one call costs.
type deadline struct {
	context.Context // of the run
	at              time.Time

	mu     sync.Mutex         // guards the fields below
	err    error              // why it ended, if it did before somebody asked for Done; nil otherwise
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
			d.cancel() // the batch is over; or the deadline has passed, and this changes nothing
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

// Value leads to timed, so that package context finds the channel of Done there and needs no goroutine to wait for it.
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
	case d.timed != nil && err == context.DeadlineExceeded: // its own timer ends it
	case d.timed != nil:
		d.cancel()
	case d.err == nil:
		if d.err = d.Context.Err(); d.err == nil {
			d.err = err
		}
	}
}

// alarm times out the batch of a run that is being executed. It is one timer, set again for each batch.
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

// ring times out the batch. The alarm may be that of an earlier batch, which came too late to be stopped.
func (a *alarm) ring() {
	a.mu.Lock()
	b := a.batch
	a.mu.Unlock()
	if b != nil && !time.Now().Before(b.shared.at) {
		b.shared.end(context.DeadlineExceeded)
		b.expire()
	}
}
