package executor

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
)

// Handler carries out calls of any tool. What it returns is turned into a result by [ResultOf], and an error into an error
// result. It is called concurrently.
type Handler func(ctx context.Context, call Call) (any, error)

// Agent runs conversations with one provider under one set of limits. The zero value is ready for [Agent.ExecuteTools]; Run and
// Stream need a Provider. An Agent is a value that no run changes: any number of runs may use the same one at once.
type Agent struct {
	// Provider is the model. It is put behind an api.Client, which retries, unless it is one already. Defaults to none.
	Provider api.Provider
	// Tools are declared to each conversation that does not declare them yet, and bound to it; where it begins with open calls,
	// these are carried out first. Defaults to none: those that
	// travel with the conversation are used.
	Tools []dag.Tool
	// Handler, if it is set, carries out every call, whatever tools are bound. It gets the arguments as a JSON object, but
	// unchecked. Defaults to none.
	Handler Handler

	// MaxTurns is how often the model is asked in one run. The tools that the last answer calls are run; then the run stops
	// with content.StopMaxTurns. Negative is no limit. Defaults to 50.
	MaxTurns int
	// MaxTokens is how many tokens, by Usage.Total, the run may take. Once they are reached nothing more is asked or called,
	// and the run stops with content.StopTokenLimit. Defaults to no limit.
	MaxTokens int64
	// MaxTime is how long the run may take. Then what is under way is cancelled, and the run stops with
	// content.StopTimeLimit. Defaults to no limit.
	MaxTime time.Duration

	// ToolTimeout is how long a tool call may take; [WithTimeout] sets it for one tool. Negative is no limit. Defaults to 30
	// seconds.
	ToolTimeout time.Duration
	// Parallel is how many calls of one answer run at the same time; with 1 they run one after the other, in call order.
	// Defaults to all of them.
	Parallel int
	// Grace is how long the end of a run waits for tools that were given up (by timeout or cancel) and have not returned yet,
	// so that no goroutine is left. Tools that ignore their context for longer are left behind. Negative is no wait.
	// Defaults to 1 second.
	Grace time.Duration
}

func (a Agent) withDefaults() Agent {
	if a.MaxTurns == 0 {
		a.MaxTurns = 50
	}
	if a.ToolTimeout == 0 {
		a.ToolTimeout = 30 * time.Second
	}
	if a.Grace == 0 {
		a.Grace = time.Second
	}
	return a
}

// Run asks the model, carries out the tools it calls, and repeats that until the model calls none. It returns the conversation
// with all that was said, and a StopReason node with the run's totals at its end.
//
//   - A conversation that begins with open calls, after a crash say, has them carried out first; what was carried out before is
//     kept.
//   - Calls decide whether the run goes on, not the model's stop reason. The calls of an answer that was cut off by the limit on
//     its tokens are not carried out, because their arguments may be cut off too: the model is told so.
//   - An answer that says nothing leaves no message. One that waits for a provider's own tools (content.StopPause) is asked to
//     go on.
//
// The conversation is valid beside any error, and a later Run goes on from it. Errors: those of [ErrUnbound], [ErrNoProvider]
// and dag.DAG.Err before anything is done; the provider's, after all retries; the context's cause when it ended. A limit is a
// stop reason, not an error.
func (a Agent) Run(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	for event, err := range a.Stream(ctx, d) {
		if end, ok := event.(End); ok {
			return end.DAG, err
		}
	}
	panic("executor: a stream without an End")
}

// Stream is Run, told event by event: see [Event] for their order. The last event is an [End], with the run's error beside
// it; no other event has one. Events are yielded on the goroutine of whoever ranges over them. The sequence can be ranged over
// once: a second time nothing is asked or called, and an End with api.ErrProtocol comes. Breaking off cancels what is under way and returns when no goroutine of the run is left, as far as tools return
// within [Agent.Grace].
func (a Agent) Stream(ctx context.Context, d dag.DAG) iter.Seq2[Event, error] {
	var used atomic.Bool
	return func(yield func(Event, error) bool) {
		r := newRun(ctx, a, d, yield)
		defer r.close()
		if used.Swap(true) {
			r.refuse(&api.Error{Kind: api.ErrProtocol, Message: "the events of one run were ranged over twice"})
			return
		}
		if err := r.begin(); err != nil {
			r.refuse(err)
			return
		}
		r.end(r.loop())
	}
}

// ExecuteTools carries out the open calls at the head of the conversation and closes the tool phase: one ToolExecution node for
// each call, and one message after them with every result in call order. Without open calls it returns d as it is.
//
// The conversation is valid beside any error, with every call answered. Errors: that of [ErrUnbound] and dag.DAG.Err before
// anything is done, and the context's cause when it ended.
func (a Agent) ExecuteTools(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	a.MaxTime = 0
	r := newRun(ctx, a, d, nil)
	defer r.close()
	if err := r.bind(); err != nil {
		return d, err
	}
	if _, err := r.tools(); err != nil {
		return r.d, err
	}
	if err := r.declare(); err != nil {
		return r.d, err
	}
	_, err := r.ended()
	return r.d, err
}

// Run runs d with the provider and the tools that travel with d. See [Agent.Run].
func Run(ctx context.Context, provider api.Provider, d dag.DAG) (dag.DAG, error) {
	return Agent{Provider: provider}.Run(ctx, d)
}

// Stream runs d with the provider and the tools that travel with d, and tells what happens. See [Agent.Stream].
func Stream(ctx context.Context, provider api.Provider, d dag.DAG) iter.Seq2[Event, error] {
	return Agent{Provider: provider}.Stream(ctx, d)
}

// ExecuteTools carries out the open calls of d with the tools that travel with it. See [Agent.ExecuteTools].
func ExecuteTools(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	return Agent{}.ExecuteTools(ctx, d)
}

// ExecuteToolsFunc carries out the open calls of d with one function for all tools. See [Agent.ExecuteTools].
func ExecuteToolsFunc(ctx context.Context, d dag.DAG, handler Handler) (dag.DAG, error) {
	return Agent{Handler: handler}.ExecuteTools(ctx, d)
}
