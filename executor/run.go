package executor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// errTimeLimit is the cause of a context that Limits.Time ended.
var errTimeLimit = errors.New("executor: the run's time limit was reached")

// errLeft reports that the consumer of the events left.
var errLeft = errors.New("executor: the consumer left")

// run is one run of an agent. One goroutine uses it; only tools and hooks run on others.
type run struct {
	agent  Agent
	hooks  hooks
	ctx    context.Context
	cancel context.CancelFunc
	crew   crew
	meter  meter

	inside    *toolCall    // the call around the run, if it runs inside a tool; else nil
	elsewhere *dag.Pending // the call of another conversation that is executed here; see Agent.Work

	given   // what the run was called with
	record  // the conversation, and who gets it
	binding // what is declared
	model   // what is requested
	inputs  // what is said to the model meanwhile
	gate    // what decides about the open calls

	id     string
	turn   int    // counts the requests, those before a pause included
	calls  int    // counts the calls with a result
	detail string // of the stop reason
	began  time.Time
	before time.Duration // the time used before the last pause
}

// given is the conversation that a run was called with, and what is open in it. It is written before the run begins.
type given struct {
	initial dag.DAG
	broken  error // why the run cannot begin, or nil

	open lineage.Open // zero until it is read

	looked     bool                                 // for calls that were started on other branches
	unresolved map[node.CallKey]*node.ToolExecution // those calls
}

func newRun(ctx context.Context, a Agent, d dag.DAG, yield func(Event, error) bool) *run {
	var broken error
	if ctx == nil {
		ctx, broken = context.Background(), errNoContext
	}

	// A failed chain refuses the run. Return the conversation from before the failed step: one with the error would be
	// refused again and again.
	if err := d.Err(); err != nil {
		d, broken = d.WithoutErr(), cmp.Or(broken, err)
	}

	// The events of a run inside a call are observed with those of the run around.
	var hooks hooks
	if len(a.Hooks) > 0 {
		hooks = hooksOf(a.Hooks)
	}
	inside, heard, observers := callIn(ctx), yield != nil, hooks.observe
	if inside != nil {
		observers = append(observers, inside.phase.r.observers...)
		if inside.forwards(ctx) {
			heard = inside.phase.r.heard
		}
	}

	// Saving and observing need events, even without a consumer.
	if yield == nil && (a.Save != nil || len(observers) > 0) {
		yield = func(Event, error) bool { return true }
	}

	r := &run{
		agent: a.withDefaults(), hooks: hooks, inside: inside,
		given: given{initial: d, broken: broken},
		record: record{
			d: d, yield: yield, observers: observers, heard: heard || len(observers) > 0,
			showsPhases: yield != nil || len(hooks.next) > 0,
		},
		model: model{provider: a.Provider, options: a.Options},
	}
	l := a.Limits
	r.meter.limits, r.meter.prices = l, a.Prices
	r.meter.limited = l.Tokens > 0 || l.Cost > 0 || l.Turns > 0 || l.Calls > 0
	if inside != nil {
		r.meter.around, r.meter.call = &inside.phase.r.meter, inside
		r.meter.limited = r.meter.limited || r.meter.around.limited
	}
	if a.Limits.Time > 0 {
		r.ctx, r.cancel = context.WithTimeoutCause(ctx, a.Limits.Time, errTimeLimit)
	} else {
		r.ctx, r.cancel = context.WithCancel(ctx)
	}
	return r
}

// close cancels the run's tools and hooks and waits for them.
func (r *run) close() {
	r.cancel()
	if len(r.undelivered) > 0 {
		r.from.putBack(r.undelivered)
	}
	r.crew.join(r.agent.Grace)
}

// begin prepares the run. An error refuses it.
func (r *run) begin() error {
	if isNil(r.agent.Provider) {
		return errNoProvider
	}
	if r.inside != nil {
		if err := tooDeep(r.inside); err != nil {
			return err
		}
	}
	if err := r.bind(); err != nil {
		return err
	}

	// After a whole response there is nothing to respond to, unless a queue has messages.
	if _, whole := lineage.Answered(r.d.Head()); whole && r.agent.Steering.Len() == 0 && r.agent.FollowUps.Len() == 0 {
		return ErrAnswered
	}
	if len(r.hooks.input) == 0 {
		return nil
	}
	return r.checkInput()
}

// refuse returns the End of a run that does not begin.
func (r *run) refuse(err error) (End, error) {
	if r.inside != nil {
		r.inside.keepChild(r.initial)
	}
	return End{DAG: r.initial}, err
}

// totals returns what the run has used until now, with the reason for which it ends.
func (r *run) totals(reason content.Stop) node.StopReason {
	elapsed, m := r.before+r.d.Source().Time().Sub(r.began), &r.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	return node.StopReason{
		Reason: reason, Detail: r.detail, Turns: r.turn, ToolCalls: r.calls, Elapsed: elapsed,
		Usage: m.own, ToolUsage: m.tools, Cost: m.cost, CostKnown: m.prices != nil && m.unpriced == "" && !m.partial,
	}
}

// end appends the StopReason node and returns the End.
func (r *run) end(reason content.Stop, err error) (End, error) {
	var paused *PausedError
	switch {
	case errors.Is(err, errLeft):
		return End{}, errLeft
	case errors.As(err, &paused):
		// A paused run is not over, so it gets no StopReason.
		if r.inside != nil {
			r.inside.keepChild(r.d)
		}

		totals := r.totals(paused.Reason)
		r.save()

		// Nobody reads the continuation of a sub-agent without a consumer. Making it at each depth would be quadratic.
		c := Continuation{Reason: paused.Reason}
		if r.yield != nil && (r.heard || !r.inside.forwards(r.ctx)) {
			c = paused.Continuation()
		}
		if !emit(r, Paused{c, r.d}) {
			return End{}, errLeft
		}
		return End{DAG: r.d, Stop: totals}, r.withSaveError(err)
	}

	// The conversation itself records how the run ended, for readers of the file. A run that ended with the calls that
	// it was given has no start yet.
	if !r.started {
		if startErr := r.start(); startErr != nil {
			err = errors.Join(err, startErr)
		}
	}
	totals := r.totals(reason)
	if d := r.d.Append(totals); d.Err() == nil {
		r.d = d
	} else {
		err = errors.Join(err, d.Err()) // the conversation has no StopReason: report it to the caller
	}
	if r.inside != nil {
		r.inside.keepChild(r.d)
	}
	if r.agent.Save != nil {
		r.save()
		if !r.flush() {
			return End{}, errLeft
		}
		err = r.withSaveError(err)
	}
	return End{DAG: r.d, Stop: totals}, err
}
