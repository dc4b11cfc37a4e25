package executor

import (
	"context"
	"slices"
)

// batch executes several calls at the same time. It is over when each call has its result. A tool that was given up may
// still be running then.
type batch struct {
	phase    *toolPhase
	calls    []*toolCall
	limit    int             // how many calls are executed at the same time; 0 or less is no limit
	deferred bool            // calls that have not begun are executed outside the run
	ctx      context.Context // for every call without a timeout of its own

	// phase.mu guards the fields below.
	next     int  // index of the first call that no worker has taken
	ready    int  // calls from this index on may not begin yet
	open     int  // number of calls without a result
	running  int  // number of calls that are executed now
	starting bool // a worker was started and has not begun
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
	r, n := b.phase.r, len(b.calls)
	b.ctx = r.ctx
	if timeout := r.agent.ToolTimeout; timeout > 0 {
		ctx, cancel := context.WithTimeout(r.ctx, timeout)
		defer cancel()
		b.ctx = ctx
	}

	// No limit means a worker for each call. The calls that begin later get a context of their own.
	if b.limit <= 0 || b.limit > n {
		b.limit = n
	}
	for i, c := range b.calls {
		c.batch, c.ownTimeout = b, i >= b.limit || c.timeout != r.agent.ToolTimeout || c.spent > 0 || c.base != nil
	}

	// Without Agent.Save, no start has to be saved before its call.
	b.phase.mu.Lock()
	if b.open = n; r.agent.Save == nil {
		b.ready = n
		b.startWorker()
	}
	b.phase.mu.Unlock()
	return b.wait()
}

// wait emits the events of the calls until each has its result. It returns false if the consumer left.
func (b *batch) wait() bool {
	r, ended := b.phase.r, b.ctx.Done()

	// Events are emitted here only, on the consumer's goroutine. Workers wake it.
	for b.phase.emitQueued() && (r.agent.Save == nil || b.begin()) {
		b.phase.mu.Lock()
		over := b.open == 0 && len(b.phase.queued) == 0
		b.phase.mu.Unlock()
		if over {
			return true
		}
		if r.agent.Save != nil && !r.flush() {
			return false
		}

		select {
		case <-b.phase.wake:
		case <-ended:
			b.expire()
			ended = r.ctx.Done()
		}
	}
	return false
}

// begin saves the start of further calls and releases them, until limit calls run. It returns false if the consumer
// left.
func (b *batch) begin() bool {
	r := b.phase.r
	b.phase.mu.Lock()

	// Of the released calls, those without a result are running.
	running := b.ready - (len(b.calls) - b.open)
	n := min(b.limit-running, len(b.calls)-b.ready)
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

// startWorker starts a worker if a call waits for one. phase.mu must be held.
//
// A worker starts the next one after it has taken a call, so at most one is being started. Tools that return at once
// then need a few goroutines in place of one each: a phase of 64 calls takes four fifths of the time.
func (b *batch) startWorker() {
	if !b.starting && b.running < b.limit && b.next < b.ready && b.phase.r.ctx.Err() == nil {
		b.starting = true
		b.phase.r.crew.start(b)
	}
}

// work is a worker: it executes calls until none is left. Nothing starts in a run that has ended.
func (b *batch) work() {
	b.phase.mu.Lock()
	b.starting = false
	for b.next < b.ready && b.running < b.limit && b.phase.r.ctx.Err() == nil {
		c := b.calls[b.next]
		b.next++
		if c.state != waiting {
			continue
		}

		c.state, c.started = running, b.phase.clock.Time()
		b.running++
		if c.ctx.Context = b.ctx; c.ownTimeout || b.ctx.Err() != nil {
			b.ownContext(c)
		}
		b.startWorker()

		// A tool may end this goroutine: then startWorker has another one go on with the calls.
		b.phase.mu.Unlock()
		c.execute()
		b.phase.mu.Lock()
	}
	b.phase.mu.Unlock()
}

// ownContext gives a call that begins a context of its own. phase.mu must be held.
func (b *batch) ownContext(c *toolCall) {
	c.ctx.Context = b.phase.r.ctx
	if c.base != nil {
		c.ctx.Context = c.base
	}
	if c.timeout <= 0 {
		return
	}

	ctx, cancel := context.WithTimeout(c.ctx.Context, max(c.timeout-c.spent, 1))
	stop := context.AfterFunc(ctx, func() {
		b.phase.mu.Lock()
		defer b.phase.mu.Unlock()
		b.giveUp(c)
	})
	c.ctx.Context, c.cancel = ctx, func() { stop(); cancel() }
}

// expire gives up calls when the timeout of the batch has passed or the run has ended. If the run has ended, it gives
// up all calls, otherwise the running ones without a timeout of their own.
func (b *batch) expire() {
	b.phase.mu.Lock()
	defer b.phase.mu.Unlock()
	for _, c := range b.calls {
		if b.phase.r.ctx.Err() != nil || c.state == running && !c.ownTimeout {
			b.giveUp(c)
		}
	}
}

// giveUp settles a call before its tool returns. A new worker replaces the one that still waits for the tool. phase.mu
// must be held.
func (b *batch) giveUp(c *toolCall) {
	// A call with a paused sub-agent is not running; the phase decides about it.
	if c.state != agentPaused && c.settle(c.unfinished(c.state != waiting), nil) {
		b.startWorker()
	}
}
