package executor

import (
	"context"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
)

// Handler carries out calls of any tool. What it returns is turned into a result by [ResultOf], and an error into an error
// result. It is called concurrently.
type Handler func(ctx context.Context, call Call) (any, error)

// Agent runs conversations with one provider under one set of rules. The zero value is ready for [Agent.ExecuteTools]; Run, Stream and
// Resume need a Provider. An Agent is a value that no run changes: any number of runs may use the same one at once, and a copy with
// another field is another agent.
type Agent struct {
	// Provider is the model. It is put behind an api.Client, which retries, unless it is one already. Defaults to none.
	Provider api.Provider
	// Options are those of every request. They go before those that the provider was made with. Defaults to none.
	Options api.Options
	// System is a system prompt, for conversations that do not have it yet. Defaults to none.
	System string
	// Tools are declared to each conversation that does not declare them yet, and bound to it; where it begins with open calls,
	// these are carried out first. Defaults to none: those that travel with the conversation are used.
	Tools []dag.Tool
	// Handler, if it is set, carries out every call, whatever tools are bound. It gets the arguments as a JSON object, but
	// unchecked. Defaults to none.
	Handler Handler

	// Strategy says which calls of an answer run together. Defaults to Parallel(0): all of them.
	Strategy Strategy
	// Hooks change what the run does, in order. Defaults to none.
	Hooks []Hook
	// Limits say where the run stops by itself. Defaults to 50 turns.
	Limits Limits

	// Steering is asked for messages of the user when a run begins and after each turn; what it gives is said before the model is
	// asked again. Defaults to none.
	Steering *Queue
	// FollowUps is asked for messages of the user when the run would end with the model's answer, and Steering has none. What it gives
	// is said, and the run goes on. Defaults to none.
	FollowUps *Queue
	// SkipOnSteering answers the calls that have not begun, when a wave of calls is over and Steering has a message, with an error that
	// says so. Defaults to carrying them out.
	SkipOnSteering bool

	// ToolTimeout is how long a tool call may take; [WithTimeout] sets it for one tool. Negative is no limit. Defaults to 30
	// seconds.
	ToolTimeout time.Duration
	// Grace is how long the end of a run waits for tools and hooks that were given up (by timeout or cancel) and have not returned
	// yet, so that no goroutine is left. Those that ignore their context for longer are left behind. Negative is no wait.
	// Defaults to 1 second.
	Grace time.Duration
	// HideErrors keeps the text of tools' errors and panics from the model: it is told only which tool failed. Defaults to
	// telling it.
	HideErrors bool
	// Log gets a warning for each call of a tool that is not there. Defaults to slog.Default().
	Log *slog.Logger
}

func (a Agent) withDefaults() Agent {
	a.Limits = a.Limits.withDefaults()
	if a.ToolTimeout == 0 {
		a.ToolTimeout = 30 * time.Second
	}
	if a.Grace == 0 {
		a.Grace = time.Second
	}
	if a.Log == nil {
		a.Log = slog.Default()
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
//   - A run whose calls wait for somebody, by [Confirm], [Defer] or [Deferred], pauses: the error is a *[PausedError] with the
//     [Continuation] for [Agent.Resume], and the calls are open in the conversation.
//
// The conversation is valid beside any error, and a later Run goes on from it. Errors: those of [ErrUnbound], [ErrNoProvider],
// [ErrAnswered], [ErrRejected] and dag.DAG.Err before anything is done; [ErrPaused]; the provider's, after all retries; a hook's; the
// context's cause when it ended. A limit is a stop reason, not an error.
func (a Agent) Run(ctx context.Context, d dag.DAG) (dag.DAG, error) { return fold(a.Stream(ctx, d)) }

// Stream is Run, told event by event: see [Event] for their order. The last event is an [End], with the run's error beside
// it; no other event has one. Events are yielded on the goroutine of whoever ranges over them. The sequence can be ranged over
// once: a second time nothing is asked or called, and an End with api.ErrProtocol comes. Breaking off cancels what is under way and
// returns when no goroutine of the run is left, as far as tools return within [Agent.Grace].
func (a Agent) Stream(ctx context.Context, d dag.DAG) iter.Seq2[Event, error] {
	return stream(func(yield func(Event, error) bool) *run { return newRun(ctx, a, d, yield) }, (*run).begin)
}

// Resume goes on with a run that paused: d is the conversation that came with c, or one that was loaded from its file. Replies are by
// the ids of c.Pending.
//
// Where the run waits for approval, every call that asked for it needs a reply of [Approved], [ApprovedWith] or [Declined]. No hook is
// asked about the calls again; then they are carried out, or wait for results.
//
// Where it waits for results, [Returned] and [Failed] are replies. They may come in any order, and in parts: as long as some are
// missing the run pauses again, with another Continuation whose Parent is this one. A result that the conversation has already may
// come again. What a result asks for by Terminate counts only where all results come at once, because it is not saved.
//
// Errors: before anything is done a *[ResumeError] that says what is wrong with c or with which reply, and those of Run; then those
// of Run. A run whose context ends while hooks look at c or at a result is refused, so that no result is lost.
func (a Agent) Resume(ctx context.Context, d dag.DAG, c Continuation, replies map[string]Reply) (dag.DAG, error) {
	return fold(a.ResumeStream(ctx, d, c, replies))
}

// ResumeStream is Resume, told event by event, as Stream is Run.
func (a Agent) ResumeStream(ctx context.Context, d dag.DAG, c Continuation, replies map[string]Reply) iter.Seq2[Event, error] {
	if a.Limits.Time > 0 {
		a.Limits.Time = max(a.Limits.Time-c.Totals.Elapsed, 1)
	}
	return stream(func(yield func(Event, error) bool) *run { return newRun(c.attach(ctx), a, d, yield) },
		func(r *run) error { return r.resume(c, replies) })
}

// stream is the sequence of a run's events, for a single use.
func stream(start func(yield func(Event, error) bool) *run, begin func(*run) error) iter.Seq2[Event, error] {
	var used atomic.Bool
	return func(yield func(Event, error) bool) {
		r := start(yield)
		defer r.close()
		if used.Swap(true) {
			r.refuse(errTwice)
			return
		}
		if err := begin(r); err != nil {
			r.refuse(err)
			return
		}
		r.end(r.loop())
	}
}

// fold returns what the End of a run says.
func fold(events iter.Seq2[Event, error]) (dag.DAG, error) {
	for event, err := range events {
		if end, ok := event.(End); ok {
			return end.DAG, err
		}
	}
	panic("executor: a stream without an End")
}

// ExecuteTools carries out the open calls at the head of the conversation and closes the tool phase: one ToolExecution node for
// each call, and one message after them with every result in call order. Without open calls it returns d, with what the agent declares.
//
// The conversation is valid beside any error, with every call answered, but for a *[PausedError]. Errors: that of [ErrUnbound] and
// dag.DAG.Err before anything is done, [ErrPaused], and the context's cause when it ended.
func (a Agent) ExecuteTools(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	a.Limits.Time = 0
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
