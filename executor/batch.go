package executor

import (
	"context"
	"slices"
	"time"
)

// batch executes several calls at the same time. It is over when each call has its result. A tool that was given up may
// still be running then.
type batch struct {
	phase    *toolPhase
	calls    []*toolCall
	limit    int             // how many calls are executed at the same time; 0 or less is no limit
	deferred bool            // calls that have not begun are executed outside the run
	ctx      context.Context // for every call without a timeout of its own
	shared   deadline        // ctx, if the agent has a timeout

	// phase.mu guards the fields below.
	next       int  // index of the first call without a worker
	ready      int  // calls from this index on may not begin yet
	open       int  // number of calls without a result
	maxWorkers int  // how many workers there may be
	workers    int  // number of workers, except those waiting for a tool that was given up
	starting   bool // a worker was started and has not begun
}

// execute executes the calls, at most limit at a time, and emits the events of each as they come. It returns false if
// the consumer left.
func (b *batch) execute() bool {
	// The consumer sees every start of the batch before its first result.
	for _, c := range b.calls {
		if !b.phase.emitStart(c) {
			return false
		}
	}

	// Calls with the agent's timeout share one context if they begin at once: one timer in place of one for each call.
	// The others get their own when they begin.
	r := b.phase.r
	b.ctx = r.ctx
	if timeout := r.agent.ToolTimeout; timeout > 0 {
		b.shared.Context, b.shared.at = r.ctx, time.Now().Add(timeout)
		b.ctx = &b.shared
		r.alarm.set(b, timeout)
		defer func() {
			r.alarm.stop()
			b.shared.end(context.Canceled)
		}()
	}

	// No limit means a worker for each call.
	workers := len(b.calls)
	if b.limit > 0 {
		workers = min(workers, b.limit)
	}
	b.start(workers)
	return b.begin(workers) && b.wait(workers)
}

// start makes the calls part of the batch and starts the first worker.
func (b *batch) start(workers int) {
	b.phase.mu.Lock()
	defer b.phase.mu.Unlock()
	agent := &b.phase.r.agent
	b.open, b.maxWorkers = len(b.calls), workers
	if agent.Save == nil {
		b.ready = len(b.calls) // no start has to be saved first
	}

	// A call that begins later, or has a timeout of its own, cannot share the context.
	for i, c := range b.calls {
		c.batch, c.ownTimeout = b, i >= workers || c.timeout != agent.ToolTimeout || c.spent > 0 || c.base != nil
	}
	b.startWorker()
}

// wait emits the events of the calls until each has its result. It returns false if the consumer left.
func (b *batch) wait(workers int) bool {
	// Events are emitted here only, on the consumer's goroutine. Workers wake it.
	r := b.phase.r
	for b.phase.emitQueued() && b.begin(workers) {
		if b.finished() {
			return true
		}
		if !r.flush() {
			return false
		}

		select {
		case <-b.phase.wake:
		case <-r.ctx.Done():
			b.expire()
		}
	}
	return false
}

// begin saves the start of further calls and releases them, until limit calls run. Without Agent.Save all calls are
// released from the start. It returns false if the consumer left.
func (b *batch) begin(limit int) bool {
	r := b.phase.r
	b.phase.mu.Lock()

	// Of the released calls, those without a result are running.
	running := b.ready - (len(b.calls) - b.open)
	n := min(limit-running, len(b.calls)-b.ready)
	unsaved := slices.ContainsFunc(b.phase.queued, func(e queuedEvent) bool { return e.update == nil })
	b.phase.mu.Unlock()

	// Results that are known must be saved first. Else a crash after this save would leave a finished call in doubt.
	if n <= 0 || unsaved || r.ctx.Err() != nil {
		return true
	}
	switch saved, left := b.phase.saveStarts(b.calls[b.ready : b.ready+n]); {
	case left:
		return false
	case !saved:
		return true
	}

	b.phase.mu.Lock()
	b.ready += n
	b.startWorker()
	b.phase.mu.Unlock()
	return true
}

// finished reports whether every call has its result and no event is left to emit.
func (b *batch) finished() bool {
	b.phase.mu.Lock()
	defer b.phase.mu.Unlock()
	return b.open == 0 && len(b.phase.queued) == 0
}

// startWorker starts a worker if a call waits for one. phase.mu must be held.
//
// A worker starts the next one after it has taken a call, so at most one is being started. Tools that return at once
// then need a few goroutines in place of one each: a phase of 64 calls takes four fifths of the time.
func (b *batch) startWorker() {
	if b.starting || b.workers == b.maxWorkers || b.next == b.ready || b.phase.r.ctx.Err() != nil {
		return
	}
	b.starting = true
	b.workers++
	b.phase.r.workers.start(b)
}

// run is a worker: it executes calls until none is left. It also ends after a call that was given up, because another
// worker has replaced it.
func (b *batch) run() {
	b.phase.mu.Lock()
	b.starting = false
	b.phase.mu.Unlock()

	// The tool may end this goroutine with runtime.Goexit, so leave is deferred.
	var c *toolCall
	defer func() { b.leave(c) }()

	for c = b.take(); c != nil; c = b.take() {
		if !c.execute() {
			break
		}
	}
}

// over does nothing: the phase waits for the results of the calls, not for workers.
func (b *batch) over() {}

// leave ends a worker. c is its last call, or nil. Another worker replaces it if calls wait.
func (b *batch) leave(c *toolCall) {
	b.phase.mu.Lock()
	defer b.phase.mu.Unlock()
	if c == nil || !c.givenUp {
		b.workers--
	}
	b.startWorker()
}

// take returns the next call to execute, or nil. Nothing starts in a run that has ended.
func (b *batch) take() *toolCall {
	b.phase.mu.Lock()
	defer b.phase.mu.Unlock()
	defer b.startWorker()

	for b.next < b.ready && b.phase.r.ctx.Err() == nil {
		c := b.calls[b.next]
		b.next++
		if c.state == waiting {
			c.state, c.started = running, b.phase.now()
			b.setContext(c)
			return c
		}
	}
	return nil
}

// setContext gives a call that begins its context. phase.mu must be held.
func (b *batch) setContext(c *toolCall) {
	base := b.phase.r.ctx
	if c.base != nil {
		base = c.base
	}
	switch {
	case !c.ownTimeout && b.ctx.Err() == nil:
		c.ctx.Context = b.ctx

	// A call that begins after the batch's timeout comes here too: expire gave up only the calls running then.
	case c.timeout > 0:
		ctx, cancel := context.WithTimeout(base, max(c.timeout-c.spent, 1))
		stop := context.AfterFunc(ctx, func() { b.giveUp(c) })
		c.ctx.Context, c.cancel = ctx, func() { stop(); cancel() }

	default:
		c.ctx.Context = base
	}
}

// expire gives up calls when the timeout of the batch has passed or the run has ended. If the run has ended, it gives
// up all calls, otherwise the running ones without a timeout of their own.
func (b *batch) expire() {
	b.phase.mu.Lock()
	defer b.phase.mu.Unlock()
	for _, c := range b.calls {
		if b.phase.r.ctx.Err() != nil || c.state == running && !c.ownTimeout {
			b.giveUpLocked(c)
		}
	}
}

// giveUp settles a call whose own timeout has passed.
func (b *batch) giveUp(c *toolCall) {
	b.phase.mu.Lock()
	defer b.phase.mu.Unlock()
	b.giveUpLocked(c)
}

// giveUpLocked settles a call before its tool returns. A new worker replaces the one that still waits for the tool.
// phase.mu must be held.
func (b *batch) giveUpLocked(c *toolCall) {
	if c.state == agentPaused {
		return // it is not running; the phase decides about it
	}

	started := c.state != waiting
	if c.settleLocked(c.unfinished(started)) && started {
		c.givenUp = true
		b.workers--
		b.startWorker()
	}
}
