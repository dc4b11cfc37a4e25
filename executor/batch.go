package executor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// batch is the calls of one answer while they are carried out. Each call has a slot, and a slot is settled once: by the result
// of its call, by the call's timeout, or by the end of the run, whichever comes first. What comes later finds the slot settled
// and is dropped. The batch is over when every slot is settled, whether or not every tool has returned.
type batch struct {
	r      *run
	slots  []slot
	clock  node.Source
	shared context.Context // of the calls that start at once, with the usual timeout
	wake   chan struct{}   // told when a slot was settled

	mu      sync.Mutex
	next    int   // the first slot that nobody has looked at
	atOnce  int   // how many more calls start right away
	open    int   // slots that are not settled
	settled []int // slots that were settled and not reported yet, in order
}

type state int

const (
	waiting state = iota
	running
	done
)

type slot struct {
	place int // among the slots
	call  Call
	task
	state state
	ctx   context.Context
	leave func() // ends ctx; nil where it is shared

	started, ended time.Time
	result         Result
}

func newBatch(r *run, size int) *batch {
	return &batch{r: r, clock: r.d.Source(), slots: make([]slot, 0, size), settled: make([]int, 0, size), wake: make(chan struct{}, 1)}
}

// add takes one more call. One that cannot be carried out is settled right away; refusal, if there is one, says why none can.
func (b *batch) add(call Call, refusal string) {
	b.open++
	b.slots = append(b.slots, slot{place: len(b.slots), call: call})
	s := &b.slots[len(b.slots)-1]
	s.call.Input = orEmpty(call.Input)
	if refusal != "" {
		b.settle(s, failure(refusal, call.Name))
		return
	}
	var err error
	if s.task, err = b.r.prepare(s.call); err != nil {
		b.settle(s, failure("%v", err))
	}
}

// run carries out all calls and reports each one's end. It returns false when nobody listens any more.
func (b *batch) run() bool {
	if b.open == 0 {
		return b.report()
	}
	workers := b.open
	if limit := b.r.agent.Parallel; limit > 0 {
		workers = min(workers, limit)
	}
	b.atOnce = workers
	cancel := func() {}
	b.shared = b.r.ctx
	if timeout := b.r.agent.ToolTimeout; timeout > 0 {
		b.shared, cancel = context.WithTimeout(b.r.ctx, timeout)
	}
	defer cancel()
	defer context.AfterFunc(b.shared, b.expire)()
	b.start(workers)
	for b.report() {
		if b.over() {
			return true
		}
		select {
		case <-b.wake:
		case <-b.r.ctx.Done():
			b.expire()
		}
	}
	return false
}

func (b *batch) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open == 0 && len(b.settled) == 0
}

// report tells of the slots that were settled since it was last called.
func (b *batch) report() bool {
	b.mu.Lock()
	news := b.settled
	b.settled = b.settled[len(b.settled):]
	b.mu.Unlock()
	if b.r.yield == nil {
		return true
	}
	for _, i := range news {
		if !b.r.tell(ToolEnd{Turn: b.r.turn, Execution: b.slots[i].execution()}) {
			return false
		}
	}
	return true
}

// executions returns what became of each call, in call order.
func (b *batch) executions() []node.ToolExecution {
	list := make([]node.ToolExecution, len(b.slots))
	for i := range b.slots {
		list[i] = b.slots[i].execution()
	}
	return list
}

func (s *slot) execution() node.ToolExecution {
	return node.ToolExecution{
		CallID: s.call.ID, Index: s.call.Index, Tool: s.call.Name, Input: s.call.Input,
		Result: s.result.Content, IsError: s.result.IsError, Started: s.started, Ended: s.ended,
	}
}

// start lets n more workers carry out calls.
func (b *batch) start(n int) {
	b.r.workers.add(n)
	for range n {
		go b.work()
	}
}

// work carries out calls until there are none, or until one was given up: then another worker has taken its place.
func (b *batch) work() {
	finished := false
	defer func() {
		if !finished { // the tool ended this goroutine
			b.start(1)
		}
		b.r.workers.done()
	}()
	for s := b.take(); s != nil; s = b.take() {
		if !b.carryOut(s) {
			break
		}
	}
	finished = true
}

// take returns the next call to carry out, or nil. Nothing starts in a run that has ended.
func (b *batch) take() *slot {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.next < len(b.slots) && b.r.ctx.Err() == nil {
		s := &b.slots[b.next]
		b.next++
		if s.state == waiting {
			s.state, s.started = running, b.now()
			b.enter(s)
			return s
		}
	}
	return nil
}

// enter gives the call its context: the shared one, where its timeout is the usual one and begins now; else one of its own.
func (b *batch) enter(s *slot) {
	b.atOnce--
	switch {
	case s.timeout == b.r.agent.ToolTimeout && b.atOnce >= 0:
		s.ctx = b.shared
	case s.timeout > 0:
		ctx, cancel := context.WithTimeout(b.r.ctx, s.timeout)
		stop := context.AfterFunc(ctx, func() { b.giveUp(s) })
		s.ctx, s.leave = ctx, func() { stop(); cancel() }
	default:
		s.ctx = b.r.ctx
	}
}

func (b *batch) now() time.Time { return b.clock.Time() }

// carryOut runs one call and settles its slot. It reports whether the slot was still open.
func (b *batch) carryOut(s *slot) (ours bool) {
	returned := false
	defer func() {
		if returned {
			return
		}
		result := failure(textVanished, s.call.Name) // runtime.Goexit
		if v := recover(); v != nil {
			result = failure(textPanicked, s.call.Name, v)
		}
		ours = b.settle(s, result)
	}()
	result := b.outcome(s)
	returned = true
	return b.settle(s, result)
}

// outcome calls the tool and makes a result of whatever it returns.
func (b *batch) outcome(s *slot) Result {
	result, err := s.fn(s.ctx, s.call)
	if err == nil {
		err = result.valid()
	}
	switch {
	case err == nil:
		return result
	case s.ctx.Err() != nil:
		return b.verdict(s, true)
	}
	text := fmt.Sprint(err)
	if text == "" {
		text = fmt.Sprintf(textFailed, s.call.Name)
	}
	return Result{Content: content.Words(text), IsError: true}
}

// verdict is the result of a call whose context ended before it had one.
func (b *batch) verdict(s *slot, started bool) Result {
	switch {
	case !started:
		return failure(textNotStarted)
	case b.r.ctx.Err() != nil:
		return failure(textCancelled)
	}
	return failure(textTimeout, s.timeout)
}

// settle gives the slot its result, unless it has one.
func (b *batch) settle(s *slot, result Result) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settleLocked(s, result)
}

func (b *batch) settleLocked(s *slot, result Result) bool {
	if s.state == done {
		return false
	}
	s.ended, s.result = b.now(), result
	if s.state == waiting {
		s.started = s.ended
	}
	s.state = done
	if s.leave != nil {
		s.leave()
	}
	b.open--
	b.settled = append(b.settled, s.place)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// expire gives up what the end of the shared context concerns: everything when the run has ended, else the calls that share
// its timeout.
func (b *batch) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.slots {
		s := &b.slots[i]
		if b.r.ctx.Err() != nil || s.state == running && s.ctx == b.shared {
			b.giveUpLocked(s)
		}
	}
}

// giveUp settles a call whose own timeout has passed.
func (b *batch) giveUp(s *slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.giveUpLocked(s)
}

// giveUpLocked settles a call without its tool, and lets another worker take the place of the one that waits for it.
func (b *batch) giveUpLocked(s *slot) {
	started := s.state != waiting
	if b.settleLocked(s, b.verdict(s, started)) && started && b.next < len(b.slots) {
		b.start(1)
	}
}

// workers counts the goroutines that carry out calls.
type workers struct {
	n    atomic.Int64
	idle chan struct{}
}

func (w *workers) add(n int) { w.n.Add(int64(n)) }

func (w *workers) done() {
	if w.n.Add(-1) == 0 {
		select {
		case w.idle <- struct{}{}:
		default:
		}
	}
}

// join waits until no worker is left, but not longer than grace.
func (w *workers) join(grace time.Duration) {
	if w.n.Load() == 0 || grace <= 0 {
		return
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for w.n.Load() != 0 {
		select {
		case <-w.idle:
		case <-timer.C:
			return
		}
	}
}
