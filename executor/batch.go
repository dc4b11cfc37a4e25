package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// batch is the calls of one answer while they are carried out, wave by wave. Each call has a slot, and a slot is settled once: by the
// result of its call, by the call's timeout, or by the end of the run, whichever comes first. What comes later finds the slot settled
// and is dropped. A wave is over when every slot of it is settled, whether or not every tool has returned.
type batch struct {
	r      *run
	turn   int
	slots  []slot
	clock  node.Source
	wake   chan struct{} // told when there is news
	room   chan struct{} // holds one token for each update that was not reported
	shared context.Context
	told   int // the first slot of those that were settled before, and whose events were not told

	mu     sync.Mutex
	wave   []int // the places that are carried out now
	number int   // of the wave, from 1
	next   int   // the first of wave that nobody has looked at
	open   int   // slots of the wave that are not settled
	news   []news
}

// news is what was not reported yet: an update of a call or, where there is none, its end.
type news struct {
	place  int
	update Event
}

type state int

const (
	waiting state = iota
	running
	done
)

type slot struct {
	*planned
	place int // among the slots
	b     *batch
	state state
	ctx   callContext
	own   bool   // its context ends by itself, not with that of the wave
	leave func() // ends ctx; nil where it is that of the wave
	mute  bool   // an event of it was dropped
	saved bool   // its result is part of the conversation. Written by the run's goroutine alone

	started, ended time.Time
	result         Result
	child          dag.DAG       // the conversation of a run inside the call, as far as it got
	usage          content.Usage // what runs inside the call took
}

// callContext is the context of one call. It knows the call.
type callContext struct {
	context.Context
	slot *slot
}

type slotKey struct{}

// Value returns the slot for slotKey.
func (c *callContext) Value(key any) any {
	if _, ours := key.(slotKey); ours {
		return c.slot
	}
	return c.Context.Value(key)
}

// slotOf returns the call that ctx belongs to; nil where there is none.
func slotOf(ctx context.Context) *slot {
	s, _ := ctx.Value(slotKey{}).(*slot)
	return s
}

// mostUpdates is how many updates of a batch wait to be reported, before a tool that makes more of them has to wait.
const mostUpdates = 64

// newBatch returns the batch of the calls that are planned. It works with plans from here on.
func newBatch(r *run, plans []planned) *batch {
	b := &batch{
		r: r, turn: r.turn, clock: r.d.Source(), slots: make([]slot, len(plans)), wake: make(chan struct{}, 1), room: make(chan struct{}, mostUpdates),
		news: make([]news, 0, len(plans)),
	}
	for i := range plans {
		s := &b.slots[i]
		s.planned, s.place, s.b = &plans[i], i, b
		s.ctx.slot = s
		if s.answered != nil {
			s.state, s.result = done, *s.answered
			s.started = b.now()
			s.ended = s.started
		}
	}
	return b
}

// run carries out what is to be carried out here. It returns false when nobody listens any more.
func (b *batch) run() bool {
	calls, places := make([]Ready, 0, len(b.slots)), make([]int, 0, len(b.slots))
	for i := range b.slots {
		if s := &b.slots[i]; s.state == waiting && !s.deferred {
			calls, places = append(calls, Ready{s.ran, s.mode}), append(places, i)
		}
	}
	waves, err := b.waves(calls)
	if err != nil {
		for _, i := range places {
			if !b.answer([]int{i}, b.r.hidden(b.slots[i].ran.Name, err).Error()) {
				return false
			}
		}
	}
	for _, w := range waves {
		for i, at := range w.Calls {
			w.Calls[i] = places[at]
		}
		switch refusal := b.refusal(); {
		case refusal != "":
			if !b.answer(w.Calls, refusal) {
				return false
			}
		case w.Defer:
			for _, i := range w.Calls {
				b.slots[i].deferred = true
			}
		case !b.carryOutWave(w):
			return false
		}
	}
	return b.tellSettled(len(b.slots))
}

// waves asks the strategy. A program's own is a hook like any other: it may panic or hang.
func (b *batch) waves(calls []Ready) ([]Wave, error) {
	strategy := b.r.agent.Strategy
	if len(calls) == 0 || strategy == nil {
		return strategy.waves(calls), nil
	}
	ask := func(_ context.Context, calls []Ready) ([]Wave, error) { return strategy.waves(calls), nil }
	return guard(b.r.ctx, &b.r.workers, ask, calls)
}

// refusal is why no further wave begins; "" where one may.
func (b *batch) refusal() string {
	switch {
	case b.r.ctx.Err() != nil:
		return textNotStarted
	case b.wave != nil && b.r.agent.SkipOnSteering && b.r.agent.Steering.Len() > 0:
		return textSkipped
	}
	return ""
}

// answer settles calls that are not carried out.
func (b *batch) answer(places []int, text string) bool {
	for _, i := range places {
		if !b.start(i) {
			return false
		}
		b.settle(&b.slots[i], failure("%s", text))
		if !b.report() {
			return false
		}
	}
	return true
}

// carryOutWave carries out the calls of one wave and reports each one's end.
func (b *batch) carryOutWave(w Wave) bool {
	for _, i := range w.Calls {
		if !b.start(i) {
			return false
		}
	}
	cancel := func() {}
	b.shared = b.r.ctx
	if timeout := b.r.agent.ToolTimeout; timeout > 0 {
		b.shared, cancel = context.WithTimeout(b.r.ctx, timeout)
	}
	defer cancel()
	workers := len(w.Calls)
	if w.Limit > 0 {
		workers = min(workers, w.Limit)
	}
	b.mu.Lock()
	b.wave, b.next, b.open = w.Calls, 0, len(w.Calls)
	b.number++
	wave := b.number
	for i, at := range b.wave {
		s := &b.slots[at]
		s.own = i >= workers || s.timeout != b.r.agent.ToolTimeout
	}
	b.mu.Unlock()
	defer context.AfterFunc(b.shared, func() { b.expire(wave) })()
	b.work(workers, wave)
	for b.report() {
		if b.over() {
			return true
		}
		select {
		case <-b.wake:
		case <-b.r.ctx.Done():
			b.expire(wave)
		}
	}
	return false
}

// start tells that a call begins, after everything that was settled before it.
func (b *batch) start(place int) bool {
	return b.tellSettled(place) && b.tellStart(place)
}

func (b *batch) tellStart(place int) bool {
	if b.r.yield == nil {
		return true
	}
	s := &b.slots[place]
	return b.r.tell(ToolStart{Turn: b.turn, Call: s.call, Ran: s.ran, Repair: s.repair})
}

// tellSettled tells of the calls before a place that were settled without being carried out.
func (b *batch) tellSettled(before int) bool {
	for ; b.told < before; b.told++ {
		s := &b.slots[b.told]
		if s.answered == nil {
			continue
		}
		if !b.tellStart(b.told) || b.r.yield != nil && !b.end(s) {
			return false
		}
	}
	return true
}

func (b *batch) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open == 0 && len(b.news) == 0
}

// report tells what happened since it was last called.
func (b *batch) report() bool {
	b.mu.Lock()
	all := b.news
	b.news = b.news[len(b.news):]
	b.mu.Unlock()
	if b.r.yield == nil {
		return true
	}
	for _, n := range all {
		if n.update == nil {
			if !b.end(&b.slots[n.place]) {
				return false
			}
			continue
		}
		<-b.room
		if !b.r.tell(n.update) {
			return false
		}
	}
	return true
}

// update takes an event of a call that is running, and waits where too many were not reported yet. It drops the event where the call
// is settled.
func (b *batch) update(s *slot, event Event) {
	if b.r.yield == nil {
		return
	}
	taken := true
	select {
	case b.room <- struct{}{}:
	default:
		select {
		case b.room <- struct{}{}:
		case <-s.ctx.Done():
			taken = false
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !taken {
		s.mute = true // or what comes after it would be told without it
		return
	}
	if s.state != running || s.mute {
		<-b.room
		return
	}
	b.tidings(news{s.place, event})
}

// tidings leaves news behind for report. The batch is locked.
func (b *batch) tidings(n news) {
	b.news = append(b.news, n)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// settled returns what became of the calls that have a result, in call order.
func (b *batch) settled() []node.ToolExecution {
	list := make([]node.ToolExecution, 0, len(b.slots))
	for i := range b.slots {
		if b.slots[i].state == done {
			list = append(list, b.slots[i].execution())
		}
	}
	return list
}

// usage is what the tools say they took.
func (b *batch) usage() (sum content.Usage) {
	for i := range b.slots {
		sum = sum.Plus(b.slots[i].result.Usage)
	}
	return sum
}

func (s *slot) execution() node.ToolExecution {
	e := node.ToolExecution{
		CallID: s.call.ID, Index: s.call.Index, Tool: s.call.Name, Input: s.call.Input,
		Result: s.result.Content, IsError: s.result.IsError, Started: s.started, Ended: s.ended,
		Usage: s.usage.Plus(s.result.Usage), Details: s.result.Details, Full: s.result.Full,
	}
	if s.ran.Name != s.call.Name {
		e.Ran.Tool = s.ran.Name
	}
	if s.ran.Input != s.call.Input {
		e.Ran.Input = s.ran.Input
	}
	child := s.result.Child
	if child.Len() == 0 {
		child = s.child
	}
	if heads := child.Heads(); len(heads) > 0 {
		e.Child = node.ListOf(heads...)
	}
	return e
}

// work lets n more workers carry out calls of the wave.
func (b *batch) work(n, wave int) {
	b.r.workers.add(n)
	for range n {
		go b.carryOutCalls(wave)
	}
}

// carryOutCalls carries out calls of a wave until there are none, or until one was given up: then another worker has taken its place.
func (b *batch) carryOutCalls(wave int) {
	finished := false
	defer func() {
		if !finished { // the tool ended this goroutine
			b.work(1, wave)
		}
		b.r.workers.done()
	}()
	for s := b.take(wave); s != nil; s = b.take(wave) {
		if !b.carryOut(s) {
			break
		}
	}
	finished = true
}

// take returns the next call of the wave to carry out, or nil. Nothing starts in a run that has ended.
func (b *batch) take(wave int) *slot {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.number == wave && b.next < len(b.wave) && b.r.ctx.Err() == nil {
		s := &b.slots[b.wave[b.next]]
		b.next++
		if s.state == waiting {
			s.state, s.started = running, b.now()
			b.enter(s)
			return s
		}
	}
	return nil
}

// enter gives the call its context: that of the wave, where its timeout is the usual one and begins now; else one of its own.
func (b *batch) enter(s *slot) {
	switch {
	case !s.own && b.shared.Err() == nil:
		s.ctx.Context = b.shared
	case s.timeout > 0: // also where the wave's timeout was over before the call began: expire has passed it by
		ctx, cancel := context.WithTimeout(b.r.ctx, s.timeout)
		stop := context.AfterFunc(ctx, func() { b.giveUp(s) })
		s.ctx.Context, s.leave = ctx, func() { stop(); cancel() }
	default:
		s.ctx.Context = b.r.ctx
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
		result := failure(textVanished, s.ran.Name)   // runtime.Goexit
		defer func() { ours = b.settle(s, result) }() // also where a hook ends the goroutine now
		if v := recover(); v != nil {
			result = b.after(s, b.failed(s, fmt.Sprintf(textPanicked, s.ran.Name, v)))
		}
	}()
	result := b.outcome(s)
	returned = true
	return b.settle(s, result)
}

// outcome calls the tool and makes a result of whatever it returns.
func (b *batch) outcome(s *slot) Result {
	result, err := s.fn(&s.ctx, s.ran)
	if err == nil {
		err = result.valid()
	}
	if err == nil {
		return b.after(s, result)
	}
	var arguments *argumentError
	switch {
	case s.ctx.Err() != nil:
		return b.verdict(s, true)
	case errors.As(err, &arguments):
		return b.after(s, failure("%v", err))
	}
	failed := b.failed(s, fmt.Sprint(err))
	if result.valid() == nil {
		failed.Child, failed.Usage, failed.Details = result.Child, result.Usage, result.Details
	}
	return b.after(s, failed)
}

// failed is the result of a tool that failed with text.
func (b *batch) failed(s *slot, text string) Result {
	switch {
	case b.r.agent.HideErrors:
		text = fmt.Sprintf(textHidden, s.ran.Name)
	case text == "":
		text = fmt.Sprintf(textFailed, s.ran.Name)
	}
	return Result{Content: content.Words(text), IsError: true}
}

// after gives the result to the hooks.
func (b *batch) after(s *slot, result Result) Result {
	for _, h := range b.r.agent.Hooks {
		if h.After == nil {
			continue
		}
		changed, err := safely(func() (Result, error) { return h.After(&s.ctx, s.ran, result) })
		if err == nil {
			err = changed.valid()
		}
		switch {
		case err != nil && s.ctx.Err() != nil:
			return b.verdict(s, true)
		case err != nil:
			return b.failed(s, fmt.Sprint(err))
		}
		result = changed
	}
	return result
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
	b.tidings(news{place: s.place})
	return true
}

// expire gives up what the end of a wave's context concerns: everything when the run has ended, else the calls that share its
// timeout.
func (b *batch) expire(wave int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.number != wave {
		return // it comes too late: its calls are over, and the next ones have a time of their own
	}
	for _, i := range b.wave {
		if s := &b.slots[i]; b.r.ctx.Err() != nil || s.state == running && !s.own {
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
	if b.settleLocked(s, b.verdict(s, started)) && started && b.next < len(b.wave) {
		b.work(1, b.number)
	}
}

// workers counts the goroutines of a run: those that carry out calls, and those that hooks run on.
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
