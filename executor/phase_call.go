package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// toolCall is one tool call in a run: the model's call, the decisions of hooks and replies about it, and its result. It
// gets its result once, from the tool, a decision, its timeout, or the end of the run. The first one counts, and a
// later result is dropped.
type toolCall struct {
	phase  *toolPhase
	index  int // in phase.calls, which may lack calls that were executed before
	number int // among the calls of the message

	// The run's goroutine writes these before it executes the calls of the phase.
	call     Call         // as the model wrote it
	ran      Call         // as it is executed, after repairs, hooks and replies
	repair   string       // how the arguments were repaired; "" if they were not
	isObject bool         // ran.Input is known to be a JSON object; false if it was not checked since it was set
	*task                 // executes the call; noTask until the tool is found
	approval bool         // a person has to approve it before any call of the phase is executed
	deferred bool         // it is executed outside the run; the strategy may set it too
	reason   string       // a hook's reason for approval or deferral
	early    bool         // it has its result without being executed here
	decided  node.Decided // who decided about it; evidence only

	// These are set if the call's sub-agent was paused before.
	head   *node.Node     // the unfinished execution of the call; nil if there is none
	kept   *node.Node     // has the conversation of the sub-agent; nil if none was paused
	resume *insideReplies // the replies for calls inside; nil if it is not resumed
	spent  time.Duration  // the part of timeout that the sub-agent used before

	// These are set if an earlier run started the call.
	start   *node.ToolExecution // the start; nil if there is none
	inDoubt bool                // it is not executed again, and nobody knows its outcome

	// The run's goroutine writes these while it executes the calls.
	base       context.Context // the observers' context for the call; nil if there are none
	batch      *batch          // nil until the call is part of one
	ownTimeout bool            // it has a context of its own instead of the batch's
	saved      bool            // its execution is part of the conversation

	ctx callContext // for the tool and the After hooks; set when the call begins

	execution node.Payload // a node.ToolExecution with the result; nil until executed makes it

	// phase.mu guards the fields below. Once the call is done, they do not change.
	state          state
	cancel         func() // ends ctx; nil if ctx is the context of the batch
	muted          bool   // one of its events was dropped; later ones are dropped too
	started, ended time.Time
	result         Result        // zero until it is done
	pause          *agentPause   // of the sub-agent, if the state is agentPaused
	keptTaken      bool          // the paused sub-agent continues
	inner          *innerOutcome // nil as long as there is no run inside the call
}

// innerOutcome holds the conversation and the usage so far of the runs inside a call.
type innerOutcome struct {
	child dag.DAG // the conversation of the last run
	usage content.Usage
}

// task executes the calls of a tool. A run makes it once for each tool.
type task struct {
	fn       func(context.Context, Call) (Result, error)
	prepare  func(context.Context, content.JSON) error // checks the arguments; nil if fn does
	timeout  time.Duration                             // 0 or less is no limit
	mode     Mode
	deferred bool      // calls are executed outside the run
	agent    *subAgent // the sub-agent that fn runs, or nil
	resumes  bool      // fn only runs the agent: after a crash it continues with the saved steps
	effect   Effect
}

// noTask is the task of a call whose tool is not found.
var noTask = new(task)

// state is the state of a call.
type state int

const (
	waiting state = iota
	running
	agentPaused // it was running, and its sub-agent has paused
	done        // it has its result
)

// callContext is the context of one call. callIn finds the call in it.
type callContext struct {
	context.Context
	call *toolCall
}

type callKey struct{}

// Value returns the call for callKey, and its IdempotencyKey.
func (c *callContext) Value(key any) any {
	switch key.(type) {
	case callKey:
		return c.call
	case idempotencyKey:
		return c.call.key()
	}
	return c.Context.Value(key)
}

// callIn returns the call that ctx belongs to, or nil.
func callIn(ctx context.Context) *toolCall {
	c, _ := ctx.Value(callKey{}).(*toolCall)
	return c
}

// answer gives the call its result without executing it.
func (c *toolCall) answer(result Result) {
	c.early = true
	c.phase.early++
	c.settle(result, nil)
}

// deny answers the call with a denial. An empty reason gets a text of its own.
func (c *toolCall) deny(reason string) {
	if reason == "" {
		reason = "Tool execution was blocked"
	}
	c.answer(failure(textDenied, reason))
}

// execute runs the call and settles it, or pauses it with its sub-agent.
func (c *toolCall) execute() {
	returned := false
	defer func() {
		if !returned {
			c.vanished(recover())
		}
	}()

	result, err := c.fn(&c.ctx, c.ran)
	if err == nil {
		err = result.valid()
	}

	var pause *agentPause
	switch {
	case err != nil:
		if pause = c.pausedBy(err); pause == nil {
			result = c.failed(result, err)
		}
	case len(c.phase.r.hooks.after) > 0:
		result = c.runAfterHooks(result)
	}

	returned = true
	c.phase.mu.Lock()
	defer c.phase.mu.Unlock()
	c.settle(result, pause)
}

// vanished settles a call whose tool panicked with v, or ended its goroutine. v is nil in the second case.
func (c *toolCall) vanished(v any) {
	// The After hooks may do the same, so the settle is deferred.
	result := failure(textVanished, c.ran.Name)
	defer func() {
		c.phase.mu.Lock()
		defer c.phase.mu.Unlock()
		c.settle(result, nil)
		c.batch.startWorker() // this one may be ending
	}()
	if v != nil {
		result = c.runAfterHooks(c.errorResult(fmt.Sprintf(textPanicked, c.ran.Name, v)))
	}
}

// pausedBy returns the pause in err if it is one of the call's sub-agent, or nil.
func (c *toolCall) pausedBy(err error) *agentPause {
	// A call whose context has ended cannot wait: it gets its result now.
	var pause *pausedError
	if errors.As(err, &pause) && pause.call == c && c.ctx.Err() == nil {
		return &pause.agentPause
	}
	return nil
}

// failed returns the result of a call whose tool returned an error, so that the model sees it.
func (c *toolCall) failed(result Result, err error) Result {
	// An error after the end of the context is due to that end, even if its text gives another reason.
	if c.ctx.Err() != nil {
		return c.unfinished(true)
	}

	// Wrong arguments are the model's mistake. HideErrors does not apply, because the model needs the text to do
	// better.
	var arguments *argumentError
	if errors.As(err, &arguments) {
		return c.runAfterHooks(failure("%v", err))
	}

	// A failed tool may still have done work worth keeping: a child conversation, tokens, details.
	failed := c.errorResult(fmt.Sprint(err))
	if result.valid() == nil {
		failed.Child, failed.Usage, failed.Details = result.Child, result.Usage, result.Details
	}
	return c.runAfterHooks(failed)
}

// runAfterHooks passes the result through the After hooks.
func (c *toolCall) runAfterHooks(result Result) Result {
	for _, after := range c.phase.r.hooks.after {
		changed, err := safely(func() (Result, error) { return after(&c.ctx, c.ran, result) })
		if err == nil {
			err = changed.valid()
		}

		// A hook's error after the end of the context is due to that end.
		switch {
		case err != nil && c.ctx.Err() != nil:
			return c.unfinished(true)
		case err != nil:
			return c.errorResult(fmt.Sprint(err))
		}
		result = changed
	}
	return result
}

// errorResult returns the result for a tool or hook that failed with text. HideErrors replaces the text.
func (c *toolCall) errorResult(text string) Result {
	switch {
	case c.phase.r.agent.HideErrors:
		text = fmt.Sprintf(textHidden, c.ran.Name)
	case text == "":
		text = fmt.Sprintf(textFailed, c.ran.Name)
	}
	return Result{Content: content.Words(text), IsError: true}
}

// unfinished returns the result of a call whose context ended before it had one.
func (c *toolCall) unfinished(started bool) Result {
	switch {
	case !started:
		return failure(textNotStarted)
	case c.phase.r.ctx.Err() != nil:
		return failure(textCancelled)
	}
	return failure(textTimeout, c.timeout)
}

// settle gives the call its result or, with the pause of its sub-agent, leaves it without one. It does nothing for a call
// that has a result, and reports whether it did anything. phase.mu must be held while the phase is executed.
func (c *toolCall) settle(result Result, pause *agentPause) bool {
	// A tool may return after its call was given up, by its timeout or the end of the run: its late result is dropped.
	if c.state == done || pause != nil && c.state != running {
		return false
	}

	p, b := c.phase, c.batch
	c.ended = p.clock.Time()
	if c.state == waiting {
		c.started = c.ended
	}
	if c.cancel != nil {
		c.cancel()
	}
	if b != nil && c.state != agentPaused { // a call with a paused sub-agent has left its batch before
		b.open--
		if c.state == running {
			b.running--
		}
	}

	// Without a consumer, the results are looked at together.
	var event queuedEvent
	if pause != nil {
		c.state, c.pause, c.innerRun().child = agentPaused, pause, pause.dag
	} else {
		c.state, c.result = done, result
		p.finished++
		p.usage = p.usage.Plus(result.Usage)
		if p.r.yield != nil && !c.early {
			event.call = c
		}
	}
	if event.call != nil || pause != nil || b == nil || b.open == 0 {
		p.notify(event)
	}
	return true
}

// executed returns the execution of a call that is done or whose sub-agent is paused. It is made here, and not on the
// tool's goroutine, which would need a larger stack for it.
func (c *toolCall) executed() node.Payload {
	if c.execution != nil {
		return c.execution
	}
	var inner innerOutcome
	if c.inner != nil {
		inner = *c.inner
	}
	result := &c.result
	e := node.ToolExecution{
		CallID: c.call.ID, Index: c.call.Index, Tool: c.call.Name, Input: c.call.Input,
		Result: result.Content, IsError: result.IsError, Started: c.started, Ended: c.ended,
		Usage: inner.usage.Plus(result.Usage), Details: result.Details, Full: result.Full, Decided: c.decided,
	}
	if c.ran != c.call {
		e.Ran = c.changes()
	}
	if c.inDoubt {
		e.State, e.Started, e.Ended = node.ExecutionInDoubt, c.start.Started, time.Time{}
	}

	// If the result has no conversation, keep the one of the run inside the call, as far as it got.
	heads := result.Child.Heads()
	if len(heads) == 0 {
		heads = inner.child.Heads()
	}
	e.Child = node.ListOf(heads...)
	c.execution = e
	return e
}

// changes returns the differences of the executed call from the model's call.
func (c *toolCall) changes() node.Ran {
	var ran node.Ran
	if c.ran.Name != c.call.Name {
		ran.Tool = c.ran.Name
	}
	if c.ran.Input != c.call.Input {
		ran.Input = c.ran.Input
	}
	return ran
}

// forwardKey is the key in the context of a sub-agent's run for the call that forwards its events.
type forwardKey struct{}

// forwards reports whether ctx is that of a sub-agent's run in the call, whose events nobody reads but the call.
func (c *toolCall) forwards(ctx context.Context) bool {
	return c != nil && ctx.Value(forwardKey{}) == c
}

// forward emits an event of a run inside the call, if somebody reads it.
func (c *toolCall) forward(event Event) {
	if !c.phase.r.heard {
		return
	}
	path := []Call{c.call}
	if e, ok := event.(Child); ok {
		path, event = append(path, e.Path...), e.Event
	}
	c.phase.update(c, Child{Turn: c.phase.turn, Path: path, Event: event})
}

// keepChild keeps the conversation of a run inside the call, as far as it got.
func (c *toolCall) keepChild(d dag.DAG) {
	c.phase.mu.Lock()
	defer c.phase.mu.Unlock()
	if c.state == running {
		c.innerRun().child = d
	}
}

// innerRun returns the outcome of the runs inside the call, for changing it. phase.mu must be held while the phase is
// executed.
func (c *toolCall) innerRun() *innerOutcome {
	if c.inner == nil {
		c.inner = new(innerOutcome)
	}
	return c.inner
}

// takeKept claims the paused sub-agent of the call, which continues once. It returns false after the first time.
func (c *toolCall) takeKept() bool {
	c.phase.mu.Lock()
	defer c.phase.mu.Unlock()
	first := !c.keptTaken
	c.keptTaken = true
	return first
}

// addUsage adds the usage of a run inside the call.
func (c *toolCall) addUsage(u content.Usage) {
	c.phase.mu.Lock()
	defer c.phase.mu.Unlock()
	if c.state == running {
		inner := c.innerRun()
		inner.usage = inner.usage.Plus(u)
	}
}
