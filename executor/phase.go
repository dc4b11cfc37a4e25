package executor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// toolPhase executes the tool calls of one message, from the decisions about them to the message with their results.
// The run's goroutine decides about the calls, executes them batch by batch, and emits their events.
type toolPhase struct {
	open   lineage.Phase // as it was decided
	r      *run
	turn   int
	clock  node.Source
	calls  []*toolCall // in call order; without those that stay as they are
	stays  int         // number of open calls that stay: nobody replied to them
	single [1]batch    // the plan of the default strategy

	early    int           // number of calls with an early result
	emitted  int           // the events of early results before this index were emitted
	asks     bool          // a call needs a person's approval
	finished int           // number of calls with a result; guarded by mu
	wake     chan struct{} // receives a token for each change of the calls; it has room for one
	room     chan struct{} // holds a token for each update that is not emitted yet; nil without a consumer

	mu     sync.Mutex    // guards the fields below, and the state of calls and batches
	queued []queuedEvent // not emitted yet
	usage  content.Usage // the sum of the usage in the results
}

// queuedEvent is an event of a call that is not emitted yet: an update, a step of its sub-agent, or its result if both
// are nil. A step is saved, not emitted.
type queuedEvent struct {
	call   *toolCall
	update Event
	step   *agentStep
}

// maxUpdates is the maximum number of queued updates of a phase. A tool that makes more of them waits.
const maxUpdates = 64

// newPhase returns a phase with calls of an open phase, by their numbers.
func newPhase(r *run, open lineage.Phase, numbers []int) *toolPhase {
	n := len(numbers)
	p := &toolPhase{
		open: open, r: r, turn: r.turn, clock: r.d.Source(), calls: make([]*toolCall, n),
		wake: make(chan struct{}, 1),
	}
	if r.yield != nil {
		p.queued, p.room = make([]queuedEvent, 0, n), make(chan struct{}, maxUpdates)
	}
	calls := make([]toolCall, n)
	for i, number := range numbers {
		c, use := &calls[i], open.Call(number)
		c.phase, c.index, c.number, c.ctx.call, c.task = p, i, number, c, noTask
		c.call = Call{
			Name: use.Name, Input: orEmpty(use.Input), Message: open.Caller.ID(), Index: open.At[number], ID: use.ID,
		}
		c.ran = c.call
		p.calls[i] = c
	}
	return p
}

// apart returns a call that is part of no phase, for asking hooks about it.
func (r *run) apart(call, ran Call) *toolCall {
	c := &toolCall{phase: newPhase(r, lineage.Phase{}, nil), call: call, ran: ran, task: noTask}
	c.ctx.call = c
	return c
}

// execute executes the open calls, batch by batch, except deferred calls and calls whose sub-agent stays paused. It
// returns false if the consumer left.
func (p *toolPhase) execute() bool {
	calls := p.calls
	if stays := func(c *toolCall) bool { return c.state != waiting || c.deferred }; slices.ContainsFunc(calls, stays) {
		calls = slices.DeleteFunc(slices.Clone(calls), stays)
	}

	// The default strategy is one batch with all calls.
	p.single[0].phase, p.single[0].calls = p, calls
	plan := p.single[:min(1, len(calls))]
	sequential := func(c *toolCall) bool { return c.mode == ModeSequential }
	if len(calls) > 0 && (p.r.agent.Strategy != nil || slices.ContainsFunc(calls, sequential)) {
		var err error
		if plan, err = p.plan(calls); err != nil {
			for _, c := range calls { // none is executed
				if !p.refuse(p.r.hidden(c.ran.Name, err).Error(), c) {
					return false
				}
			}
		}
	}

	executed := false
	for i := range plan {
		// A limit or the end of the context may be reached between two batches.
		b := &plan[i]
		if p.r.ctx.Err() != nil || executed && p.r.agent.SkipOnSteering && p.r.agent.Steering != nil {
			refusal, left := p.refusal()
			if left || refusal != "" && !p.refuse(refusal, b.calls...) {
				return false
			}
			if refusal != "" {
				continue
			}
		}

		if b.deferred {
			b.calls = deferCalls(b.calls)
		}
		executed = executed || len(b.calls) > 0
		if !b.execute() {
			return false
		}
	}
	return p.early == 0 || p.emitEarly(len(p.calls))
}

// plan returns the batches of the calls, as the strategy makes them.
func (p *toolPhase) plan(calls []*toolCall) ([]batch, error) {
	ready := make([]Ready, len(calls))
	for i, c := range calls {
		ready[i] = Ready{c.ran, c.mode}
	}
	batches, err := p.askStrategy(ready)
	plan := make([]batch, len(batches))
	for i, made := range batches {
		b := &plan[i]
		b.phase, b.calls, b.limit, b.deferred = p, make([]*toolCall, len(made.Calls)), made.Limit, made.Defer
		for j, index := range made.Calls {
			b.calls[j] = calls[index]
		}
	}
	return plan, err
}

// deferCalls defers calls, except those with a paused sub-agent: they have begun here, and it returns them.
func deferCalls(calls []*toolCall) (begun []*toolCall) {
	for _, c := range calls {
		if c.resume != nil {
			begun = append(begun, c)
			continue
		}
		c.deferred = true
	}
	return begun
}

// askStrategy returns the batches of the strategy. A program's own strategy is guarded like a hook: it may panic or
// hang.
func (p *toolPhase) askStrategy(calls []Ready) ([]Batch, error) {
	strategy := p.r.agent.Strategy
	if strategy == nil {
		return strategy.batches(calls), nil
	}
	ask := func(_ context.Context, calls []Ready) ([]Batch, error) { return strategy.batches(calls), nil }
	return guard(p.r.ctx, &p.r.crew, ask, calls)
}

// refusal returns the error text for a batch that may not begin, or "". It also reports whether the consumer left.
func (p *toolPhase) refusal() (text string, left bool) {
	if p.r.ctx.Err() != nil {
		return textNotStarted, false
	}

	// Emit the results so far: the consumer may react to them with a steering message.
	if !p.r.flush() {
		return "", true
	}
	switch {
	case p.r.ctx.Err() != nil:
		return textNotStarted, false
	case p.r.agent.Steering.Len() > 0:
		return textSkipped, false
	}
	return "", false
}

// refuse gives calls an error result without executing them. It returns false if the consumer left.
func (p *toolPhase) refuse(text string, calls ...*toolCall) bool {
	for _, c := range calls {
		if !p.emitStart(c) {
			return false
		}
		p.settle(c, failure("%s", text))
		if !p.emitQueued() {
			return false
		}
	}
	return true
}

// settle gives a call that is not being executed its result.
func (p *toolPhase) settle(c *toolCall, result Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.settle(result, nil)
}

// giveUp gives an error result to the calls that are still open when the run has ended. It returns false if the consumer
// left.
func (p *toolPhase) giveUp() bool {
	if p.stays > 0 {
		p.takeBack()
	}
	for _, c := range p.calls {
		switch {
		case c.state == done:
		case c.state == agentPaused: // its start was emitted
			p.settle(c, failure(textCancelled))
			if !p.emitQueued() {
				return false
			}
		case c.resume != nil:
			// Its sub-agent began before the pause, so it may have had effects.
			if !p.refuse(textCancelled, c) {
				return false
			}
		default:
			if !p.refuse(textNotStarted, c) {
				return false
			}
		}
	}
	return true
}

// takeBack makes calls of those that stayed.
func (p *toolPhase) takeBack() {
	var numbers []int
	for i := range p.open.List {
		if p.r.replies.leave(p.open.Executions.At(i)) {
			numbers = append(numbers, i)
		}
	}
	for _, c := range newPhase(p.r, p.open, numbers).calls {
		c.phase, c.index = p, len(p.calls)
		p.calls = append(p.calls, c)
	}
	p.stays = 0
}

// emitStart emits the start of a call, after the events of earlier calls with an early result.
func (p *toolPhase) emitStart(c *toolCall) bool {
	if p.early > 0 && !p.emitEarly(c.index) {
		return false
	}
	stays := emit(p.r, ToolStart{
		Turn: p.turn, Call: c.call, Ran: c.ran, Repair: c.repair, Repeated: c.start != nil,
	})

	// A tool's context has the values that the observers add at its ToolStart, such as a span.
	c.base = p.r.observed
	return stays
}

// emitEarly emits the events of calls with an early result, up to the index before.
func (p *toolPhase) emitEarly(before int) bool {
	for ; p.emitted < before; p.emitted++ {
		c := p.calls[p.emitted]
		if !c.early {
			continue
		}
		if !p.emitStart(c) {
			return false
		}
		if p.r.agent.Save != nil {
			p.keep(c)
		}
		if !emit(p.r, ToolEnd{Turn: p.turn, Execution: c.executed().(node.ToolExecution)}) {
			return false
		}
	}
	return true
}

// emitQueued emits the queued events. Results may be held.
func (p *toolPhase) emitQueued() bool {
	p.mu.Lock()
	// New events are appended behind these, so all stays as it is.
	all := p.queued
	p.queued = p.queued[len(p.queued):]
	p.mu.Unlock()

	// Keep all results first: emitting an update may save, and one save should have them all.
	if p.r.agent.Save != nil {
		for _, e := range all {
			switch {
			case e.step != nil:
				p.addAgentStep(e.call, *e.step)
			case e.update == nil:
				p.keep(e.call)
			}
		}
	}

	for _, e := range all {
		stays := true
		switch {
		case e.step != nil:
		case e.update == nil:
			stays = emit(p.r, ToolEnd{Turn: p.turn, Execution: e.call.executed().(node.ToolExecution)})
		default:
			// Make room for the tool's next update: it waits while the consumer is slow.
			<-p.room
			stays = emit(p.r, e.update)
		}
		if !stays {
			return false
		}
	}
	return true
}

// keep appends the execution of a call to the conversation, for the next save. Without Agent.Save, the executions are
// appended together when the phase is closed.
func (p *toolPhase) keep(c *toolCall) {
	if c.saved {
		return
	}
	if d := p.r.d.AppendExecutions(c.executed().(node.ToolExecution)); d.Err() == nil {
		p.r.d, c.saved = d, true
	}
}

// update queues an event of a running call. It waits while too many are queued, and drops an event of a call that is
// over.
func (p *toolPhase) update(c *toolCall, event Event) {
	if p.r.yield == nil {
		return
	}

	// Try without waiting first: if there is room, an update counts even if the call's context has just ended.
	hasRoom := true
	select {
	case p.room <- struct{}{}:
	default:
		select {
		case p.room <- struct{}{}:
		case <-c.ctx.Done():
			hasRoom = false
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if !hasRoom {
		c.muted = true // a later event must not come without this one
		return
	}
	if c.state != running || c.muted {
		<-p.room // give back the room that was taken above
		return
	}
	p.notify(queuedEvent{call: c, update: event})
}

// notify makes the run's goroutine look at the calls again, and queues an event for emitQueued unless it is zero. p.mu
// must be held.
func (p *toolPhase) notify(e queuedEvent) {
	if e.call != nil {
		p.queued = append(p.queued, e)
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// closedPhase is a tool phase whose results are part of the conversation.
type closedPhase struct {
	terminates bool // every result has Terminate

	// The fields below are zero if nobody reads them; see run.showsPhases.
	executions []node.ToolExecution
	results    []Result
	usage      content.Usage // of the executions that the run made
}

// errPhasePaused reports that calls of one branch of several wait for somebody.
var errPhasePaused = errors.New("executor: calls of the phase wait")

// executePhase executes the open calls of the phase at the head and closes it. It does nothing for the zero phase. If
// calls wait for somebody, the error is that of paused.
func (r *run) executePhase(open lineage.Phase) (closedPhase, error) {
	if open.Caller == nil {
		return closedPhase{}, nil
	}

	// A resumed run leaves the calls alone that nobody replied to.
	replied := r.replies != nil && r.replies.given(open)
	if r.replies != nil && !replied && open.Waiting > 0 {
		return closedPhase{}, r.paused()
	}

	// Hooks may take long, to ask a person for example, so emit the held events first.
	if r.agent.Save != nil && r.hooks.decide() && !r.flush() {
		return closedPhase{}, errLeft
	}
	p := r.decide(open, replied)

	// Nothing is executed before the decision: a person may deny the call because of the calls beside it.
	if p.asks && r.ctx.Err() == nil {
		return closedPhase{}, r.pause(p)
	}
	if !p.execute() {
		return closedPhase{}, errLeft
	}

	// The calls still open are deferred, or their sub-agents are paused. A run that has ended does not pause for them.
	if p.finished < len(p.calls)+p.stays {
		if r.ctx.Err() == nil {
			return closedPhase{}, r.pause(p)
		}
		if !p.giveUp() {
			return closedPhase{}, errLeft
		}
	}
	return r.closePhase(p)
}

// closeBranches executes the open calls of a conversation with several branches, one tool phase after the other. Heads
// without open calls stay. If calls of any branch wait for somebody, the error is a *PausedError.
func (r *run) closeBranches() step {
	waits := false
	for _, open := range r.open.Phases {
		stop, err := r.closeBranch(open)
		switch {
		case errors.Is(err, errPhasePaused):
			waits = true
		case err != nil:
			return r.failed(err)
		case stop != "":
			return step{stop: stop}
		}
	}
	if waits {
		return step{err: r.paused()}
	}
	return step{}
}

// closeBranch executes the open calls of one branch of several, and returns the reason to stop after it, or "".
func (r *run) closeBranch(open lineage.Phase) (content.Stop, error) {
	heads := r.d.Heads()

	// The phase runs on its branch alone. r.beside adds the other heads to each conversation that is saved or emitted.
	r.d = r.d.WithHeads(open.Heads...)
	r.beside = func(d dag.DAG) dag.DAG { return d.WithHeads(lineage.Replace(heads, open.Heads, d.Heads())...) }
	done, err := r.executePhase(open)
	r.d, r.beside = r.beside(r.d), nil
	if err != nil {
		return "", err
	}

	ended := TurnEnd{
		Turn: r.turn, Message: open.Caller, Executions: done.executions, ToolUsage: done.usage, DAG: r.d,
	}
	if !emit(r, ended) || !r.flush() {
		return "", errLeft
	}
	return r.stop, nil
}

// inspect checks a message with calls before they are decided. It sets which call may be cut off, and the reason to stop
// the run after them.
func (r *run) inspect(caller *node.Node) {
	m, _ := caller.Message()
	r.cutOff = 0
	if m.Answer.Stop == content.StopMaxTokens || m.Answer.Stop == content.StopContext {
		r.cutOff = len(m.Blocks.ToolUses()) // the model wrote the calls one after the other
	}

	// The response itself may have used up the tokens or the money. Its calls are then refused.
	r.stop, r.detail = "", ""
	if r.meter.limited {
		r.stop, r.detail = r.meter.reached()
	}
	if m.Answer.Stop == content.StopContext {
		r.stop = content.StopContext // the next request would be longer still
	}
	if r.stop == "" && r.stalls.cut >= maxCut {
		r.stop = content.StopMaxTokens
	}
	if r.agent.Limits.Repeats > 0 && r.repeats(m.Blocks) {
		r.stop, r.nudge = content.StopLoop, nil
	}
}

// repeats counts the calls of a message, and reports whether the run must stop for repeating them. It sets r.nudge to a
// warning for the next request, if one is due.
func (r *run) repeats(blocks content.Blocks) (stop bool) {
	warning, stop := r.same.add(blocks.ToolUses(), r.agent.Limits.Repeats)
	if r.nudge = nil; warning != "" {
		r.nudge = []content.Message{{Role: content.User, Blocks: content.Words(warning)}}
	}
	return stop
}

// recount restores the count of repeated calls after a pause, from the calls since the last message of the user.
func (r *run) recount() {
	if r.agent.Limits.Repeats <= 0 {
		return
	}

	// A message that may be a warning of the run does not end the search. The second loop distinguishes the two.
	messages := r.transcript().Messages
	from := len(messages) - 1
	for ; from > 0; from-- {
		m := messages[from]
		if m.Role == content.User && len(m.Blocks.ToolResults()) == 0 && !strings.HasPrefix(m.Blocks.Text(), beginRepeated) {
			break
		}
	}

	for _, m := range messages[max(from, 0):] {
		switch {
		case lineage.Has[content.ToolUse](m.Blocks):
			r.repeats(m.Blocks)
		case m.Role != content.User || lineage.Has[content.ToolResult](m.Blocks):
		case len(r.nudge) > 0 && m.Blocks.Equal(r.nudge[0].Blocks):
			r.nudge = nil // the warning was sent
		default:
			r.same, r.nudge = repeats{}, nil
		}
	}
}

// closePhase adds the message with the results to the conversation.
func (r *run) closePhase(p *toolPhase) (closedPhase, error) {
	r.calls += p.finished
	if !emit(r, MessageStart{Turn: r.turn, Role: content.User}) {
		return closedPhase{}, errLeft
	}

	// The heads have changed since the phase was opened if executions were saved.
	open := p.open
	if r.agent.Save != nil {
		open = shared.OpenAt(&r.d).Phases[0]
	}
	unsaved := make([]node.Payload, 0, len(p.calls))
	for _, c := range p.calls {
		if !c.saved {
			unsaved = append(unsaved, c.executed())
		}
	}
	if err := shared.CloseTools(&r.d, open, unsaved); err != nil {
		return closedPhase{}, err
	}
	if err := r.append(r.d); err != nil {
		return closedPhase{}, err
	}
	r.meter.spend(ownTool, "", p.usage)

	// The paused turn is complete now, and what its calls used before the pause is part of it.
	n, paused := r.d.Head(), r.resumed
	r.resumed = false

	// Terminate is not saved with an execution: a call that was executed before does not end the run.
	closed := closedPhase{terminates: len(p.calls) == n.NumParents()}
	if r.showsPhases {
		closed.executions, closed.results = make([]node.ToolExecution, n.NumParents()), make([]Result, n.NumParents())
		for i := range closed.executions {
			e := n.Parent(i).Payload().(node.ToolExecution)
			closed.executions[i] = e
			closed.results[i] = Result{Content: e.Result, IsError: e.IsError, Details: e.Details, Usage: e.Usage, Full: e.Full}
			if paused {
				closed.usage = closed.usage.Plus(e.Usage)
			}
		}
	}
	for _, c := range p.calls {
		closed.terminates = closed.terminates && c.result.Terminate
		if r.showsPhases {
			closed.results[c.number] = c.result
		}
		if r.showsPhases && !paused {
			closed.usage = closed.usage.Plus(closed.executions[c.number].Usage)
		}
	}
	return closed, nil
}
