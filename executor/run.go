package executor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// errTimeLimit is the cause of a context that Limits.Time ended.
var errTimeLimit = errors.New("executor: the run's time limit was reached")

// errLeft says that whoever ranged over the stream broke off.
var errLeft = errors.New("executor: the consumer left")

// run is one run of an agent. It is used by one goroutine; only its tools and hooks run on others.
type run struct {
	agent   Agent
	ctx     context.Context
	cancel  context.CancelFunc
	yield   func(Event, error) bool // nil: nobody listens
	workers workers
	ledger  ledger
	inside  *slot // the call that the run is inside of; nil: none

	given    dag.DAG // what the run was given
	d        dag.DAG
	view     *dag.Transcript // what the model is sent; it grows with d. nil: to be made
	bound    map[string]Tool // what can be called
	names    []string        // the declared names, in order
	declared bool            // the agent's tools and prompt are
	pushed   bool            // the model was asked to go on with what it said last, in words that the conversation does not hold
	provider api.Provider    // of the next turn
	options  api.Options

	id     string
	turn   int
	totals node.StopReason
	began  time.Time
	before time.Duration // what parts of the run before a pause took
	same   repeats
	nudge  []content.Message // what the run itself has to say next
	from   *Queue            // where unsaid comes from
	unsaid []content.Message // what was taken from a queue and not said or rejected yet

	cutOff bool         // the calls at hand may be cut off
	stop   content.Stop // the run stops for this when the calls at hand are answered

	resumed bool
	parent  string    // the pause that was resumed
	plans   []planned // what is to become of the calls that waited
}

func newRun(ctx context.Context, a Agent, d dag.DAG, yield func(Event, error) bool) *run {
	r := &run{
		agent: a.withDefaults(), given: d, d: d, yield: yield, workers: workers{idle: make(chan struct{}, 1)},
		provider: a.Provider, options: a.Options, inside: slotOf(ctx),
	}
	r.ledger.limits = r.agent.Limits
	if r.inside != nil {
		r.ledger.around = &r.inside.b.r.ledger
	}
	if a.Limits.Time > 0 {
		r.ctx, r.cancel = context.WithTimeoutCause(ctx, a.Limits.Time, errTimeLimit)
	} else {
		r.ctx, r.cancel = context.WithCancel(ctx)
	}
	return r
}

// close cancels what is under way and waits for it.
func (r *run) close() {
	r.cancel()
	r.from.putBack(r.unsaid)
	r.workers.join(r.agent.Grace)
}

// begin returns why there is nothing to run.
func (r *run) begin() error {
	if r.agent.Provider == nil {
		return ErrNoProvider
	}
	if err := tooDeep(r.inside); err != nil {
		return err
	}
	if err := r.bind(); err != nil {
		return err
	}
	if _, whole := r.answered(); whole && r.agent.Steering.Len() == 0 && r.agent.FollowUps.Len() == 0 {
		return ErrAnswered
	}
	return r.checkInput()
}

// bind finds what can run each declared tool.
func (r *run) bind() error {
	r.id = r.d.Source().ID().String()
	declared := r.withAgents()
	if err := declared.Err(); err != nil {
		return err
	}
	view := declared.Transcript()
	r.bound = map[string]Tool{}
	var unbound []string
	for _, def := range view.Tools {
		if def.Server() {
			continue
		}
		r.names = append(r.names, def.Name)
		found, _ := declared.Tool(def.Name)
		if tool, ok := found.(Tool); ok {
			if broken, ok := as[interface{ Err() error }](tool); ok && broken.Err() != nil {
				return broken.Err()
			}
			r.bound[def.Name] = tool
		} else {
			unbound = append(unbound, def.Name)
		}
	}
	if len(unbound) > 0 && r.agent.Handler == nil {
		return &UnboundError{Names: unbound}
	}
	r.began = r.d.Source().Time()
	if r.waits() && declared.Head() != r.d.Head() {
		return nil // a declaration would stand between the calls and their results: declare does it after them
	}
	r.d, r.view, r.declared = declared, &view, true
	return nil
}

// withAgents is the conversation with the agent's prompt and tools.
func (r *run) withAgents() dag.DAG {
	d := r.d
	if r.agent.System != "" && !slices.Contains(d.SystemPrompts(), content.Clean(r.agent.System)) {
		d = d.System(r.agent.System)
	}
	if len(r.agent.Tools) > 0 {
		d = d.Tools(r.agent.Tools...)
	}
	return d
}

// waits reports whether the conversation ends in a tool phase that is not closed.
func (r *run) waits() bool {
	heads := r.d.Heads()
	return len(r.d.OpenCalls()) > 0 || len(heads) > 0 && isExecution(heads[0])
}

// declare declares what bind could not declare while calls were open.
func (r *run) declare() error {
	if r.declared {
		return nil
	}
	d := r.withAgents()
	if err := d.Err(); err != nil {
		return err
	}
	r.d, r.view, r.declared = d, nil, true
	return nil
}

// tell yields an event and reports whether anybody still listens.
func (r *run) tell(event Event) bool {
	if r.inside != nil {
		switch event.(type) {
		case RunStart, TurnEnd:
			r.inside.keep(r.d)
		}
	}
	return r.yield == nil || r.yield(event, nil)
}

// refuse ends a run that has not begun.
func (r *run) refuse(err error) {
	if r.inside != nil {
		r.inside.keep(r.given)
	}
	r.yield(End{DAG: r.given}, err)
}

// sum sums the run up.
func (r *run) sum(reason content.Stop) {
	r.totals.Reason = reason
	r.totals.Elapsed = r.before + r.d.Source().Time().Sub(r.began)
	r.totals.ToolUsage = r.ledger.toolUsage()
	r.totals.Cost = r.ledger.spentCost()
}

// end writes down why the run ended, and its totals.
func (r *run) end(reason content.Stop, err error) {
	var paused *PausedError
	switch {
	case errors.Is(err, errLeft):
		return
	case errors.As(err, &paused):
		if r.yield(Paused{paused.Continuation}, nil) {
			r.yield(End{DAG: r.d, Stop: r.totals}, err)
		}
		return
	}
	r.sum(reason)
	if d := r.d.Append(r.totals); d.Err() == nil {
		r.d = d
	}
	if r.inside != nil {
		r.inside.keep(r.d)
	}
	r.yield(End{DAG: r.d, Stop: r.totals}, err)
}
