package executor

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// Handler executes calls of any tool. [ResultOf] converts its value to a result; an error becomes an error result. It
// is called concurrently.
type Handler func(ctx context.Context, call Call) (any, error)

// Agent runs conversations with one provider under one set of rules. The zero value is ready for [Agent.ExecuteTools];
// Run, Stream and Resume need a Provider. An Agent is a value, and a run never changes it: any number of runs may use
// the same Agent at once, and a copy with another field is another agent.
type Agent struct {
	// Name and Version name the agent in the node at the start of each run (node.RunStart): who said what, for readers
	// of the conversation. Version is that of the program, for example. Name defaults to none, and to the name of the
	// tool for a [SubAgent]. Version defaults to none.
	Name, Version string
	// RunID is the ID of the agent's next run, and RunMeta the metadata of the node at its start (node.RunStart). A
	// resumed run keeps its own. Defaults to a new ID for each run, and no metadata.
	RunID   string
	RunMeta node.Meta
	// Provider is the model. It is wrapped in an api.Client, which retries, unless it is one already. Defaults to none.
	Provider api.Provider
	// Options apply to every request, and have priority over the provider's own. Defaults to none.
	Options api.Options
	// System is the agent's system prompt. Each run sets it as the prompt named "agent" (dag.DAG.SetSystem), in place
	// of an earlier one by this or another agent. If there is none, and another prompt of the conversation has the same
	// text, nothing is added. Defaults to none: the prompts of the conversation are sent as they are.
	System string
	// Instructions returns the system prompt for one run, in place of System. It is called once, when a run begins or
	// is resumed, with the conversation as it was given; "" removes the prompt. An error refuses the run. A prompt that
	// changes between runs makes earlier thinking invalid (dag.DAG.Seen) and misses a provider's prompt cache.
	// Defaults to none.
	Instructions func(ctx context.Context, d dag.DAG) (string, error)
	// Tools are bound to each conversation, and declared unless they are declared already. If the conversation begins
	// with open calls, these are executed first. Defaults to none: the tools that travel with the conversation are
	// used.
	//
	// A loaded conversation may declare tools that the program no longer has. They stay declared in the graph, but are
	// left out of the requests ([RunStart.Unbound] names them). A call of such a tool is answered like a call of an
	// unknown tool. dag.DAG.WithdrawTools removes them from the conversation for good.
	Tools []dag.Tool
	// OnDemand are tools that a run can call once the conversation declares them, which something in the run does with
	// dag.DAG.Tools: a hook, for the tools that a model has searched for (package executor/toolsearch). Defaults to none.
	OnDemand []dag.Tool
	// Handler, if set, executes every call, whatever tools are bound. It gets the arguments as a JSON object, but
	// unchecked. Defaults to none.
	Handler Handler

	// Strategy decides which calls of a message run at the same time. Defaults to Parallel(0): all of them.
	Strategy Strategy
	// Hooks change what the run does, in order. Defaults to none.
	Hooks []Hook
	// Limits end a run. Defaults to 50 turns.
	Limits Limits
	// Prices has the prices of models. If api.Prices.Check rejects them, the run is refused.
	// Defaults to none: the cost of a run is then unknown (node.StopReason.CostKnown).
	Prices api.Prices

	// Save, if set, is called with the conversation after each step that adds to it:
	//
	//   - when a run begins,
	//   - with each response, before its tools are called,
	//   - with each tool result as soon as it is known,
	//   - before the next request, at a pause, and at the end.
	//
	// It is called before the step's MessageEnd, ToolEnd or TurnEnd is yielded, on the same goroutine, one call after
	// the other. To lose no response or result in a crash, append to a journal:
	//
	//	agent.Save = func(_ context.Context, d dag.DAG) error { return journal.Append(d) }
	//
	// The method Append of a store.Conversation has this form already.
	//
	// One call of Save covers what is known at the same time: a response and the start of its calls, a result and the
	// start of the next call, results that arrive while Save runs, the last result and the message with all results,
	// the last response and the end of the run. So Save is called at most once for each response and each tool call,
	// and once for the beginning of the run and of each sub-agent. There are three exceptions:
	//
	//   - Hooks that decide about calls (Prepare, Before, InDoubt) get the calls of a saved response. This costs one
	//     more call of Save in each turn with calls.
	//   - With a queue or a Next hook, the last response is saved before the end.
	//   - With SkipOnSteering, each batch of calls is saved when it ends.
	//
	// A conversation saved in the middle of a tool phase has the results so far. [Agent.Run] continues it:
	//
	//   - A call with a result is not executed again.
	//   - A call that was not started is executed.
	//   - A call that was started (node.ExecutionStarted) is executed again if the effect of its tool allows it
	//     ([WithEffect]). Otherwise it is in doubt: [Hook.InDoubt] decides, and by default the model reads that the
	//     outcome is unknown. A call counts as started from the save before its ToolStart.
	//   - A partly streamed response is lost when the program ends, and requested again. (A run that is cancelled or
	//     fails keeps it, with content.StopCut.)
	//
	// An error of Save ends the run: running tools are cancelled, the run's error wraps the error, and Save is not
	// called again. The steps of a [SubAgent] are steps of the run: Save gets the conversation of the run, with the
	// sub-agent's conversation as the Child of its call. A Save of the sub-agent's own is called before. The context
	// of Save is not cancelled with the run. Defaults to saving nothing.
	Save func(ctx context.Context, d dag.DAG) error

	// Steering holds messages of the user. When a run begins and after each turn, they are appended before the next
	// request. Defaults to none.
	Steering *Queue
	// FollowUps holds messages of the user for the end of a run. When the run would end with the model's response and
	// Steering is empty, they are appended and the run continues. Defaults to none.
	FollowUps *Queue
	// SkipOnSteering skips the remaining calls of a response if Steering has a message when a batch of calls ends. Each
	// skipped call gets an error result with the reason. Defaults to executing them.
	SkipOnSteering bool

	// ToolTimeout is how long a tool call may take; [WithTimeout] sets it for one tool. Negative is no limit. Defaults
	// to 30 seconds.
	ToolTimeout time.Duration
	// Grace is how long a run waits at its end for tools and hooks that are still running after their timeout or a
	// cancel. Tools and hooks that ignore their context for longer are left behind, each on its goroutine. Negative is
	// no wait. Defaults to 1 second.
	Grace time.Duration
	// HideErrors keeps the text of tools' errors and panics from the model. The model reads only which tool failed.
	// Defaults to sending the text.
	HideErrors bool
	// Log gets a warning for declared tools without a function, for each call of an unknown tool, and for each call in
	// doubt. The events and the conversation report the same. Defaults to none.
	Log *slog.Logger
}

func (a Agent) withDefaults() Agent {
	if a.Limits.Turns == 0 {
		a.Limits.Turns = 50
	}
	if a.Limits.Depth == 0 {
		a.Limits.Depth = 8
	}
	if a.ToolTimeout == 0 {
		a.ToolTimeout = 30 * time.Second
	}
	if a.Grace == 0 {
		a.Grace = time.Second
	}
	if a.Log == nil {
		a.Log = discard
	}
	return a
}

var discard = slog.New(slog.DiscardHandler)

// Run sends the conversation to the model, executes the calls of the response, and repeats this until a response has
// no calls. It returns the conversation with every message, between a RunStart node with the name of the agent and a
// StopReason node with the run's totals; see dag.DAG.LastRun.
//
//   - Calls that are open when the run begins, after a crash for example, are executed first. Earlier executions are
//     kept, and paused sub-agents continue in their conversations. A call that was started and has no result may be in
//     doubt: see [Agent.Save].
//   - A call that is open at any head is executed, however many heads there are. The other heads stay as they are.
//   - Calls continue the run, whatever the model's stop reason. If a response reached its limit of tokens, its last call
//     is not executed, because its arguments may be cut off. It gets an error result. The second such response in a row
//     ends the run: see [Limits.Turns].
//   - An empty response leaves no message. After a response that waits for a provider's own tools (content.StopPause),
//     the conversation is sent again.
//   - If calls need approval or are deferred ([AskApproval], [Defer], [DeferAll]), the run pauses: the error is a
//     *[PausedError], and dag.DAG.Pending lists the calls for [Agent.Resume].
//
// The conversation is valid beside any error, and a later Run continues it. If a step of the chain failed
// (dag.DAG.Err), it is the conversation before that step. Errors:
//
//   - Before anything is done: no provider, a nil context, [UnboundError], an invalid limit, [ErrAnswered],
//     [ErrRejected], an error of Instructions, and dag.DAG.Err.
//   - [ErrPaused].
//   - The provider's error, after all retries.
//   - A hook's error.
//   - The context's error and its cause, if the context ended.
//
// A limit is a stop reason, not an error.
func (a Agent) Run(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	return unobserved(newRun(ctx, a, d, nil), (*run).begin)
}

// Stream is Run as a sequence of events; see [Event] for their order. Rules:
//
//   - The last event is an [End], with the run's error beside it. No other event has an error.
//   - Events are yielded on the goroutine that ranges over them.
//   - The sequence can be ranged over once. The second time does nothing and yields an End with api.ErrProtocol.
//   - Breaking off cancels the run and waits for its goroutines. Tools that do not return within [Agent.Grace] are left
//     behind.
//
// Events are for showing a run. To save it step by step, set [Agent.Save]: it needs no events, and Run calls it too.
func (a Agent) Stream(ctx context.Context, d dag.DAG) iter.Seq2[Event, error] {
	return stream(func(yield func(Event, error) bool) *run { return newRun(ctx, a, d, yield) }, (*run).begin)
}

// Resume continues a run that paused, with replies to the calls that wait. d is the conversation that came with the
// pause, or the same loaded from a file; dag.DAG.Pending lists the calls. Nothing else has to be kept of a pause. The
// context needs the attributes of the run again ([WithAttributes]), if its tools use any.
//
//   - A call that waits for approval is decided by [Approved], [ApprovedWith] or [Declined]. If one call of a message has
//     a reply, each call of that message that waits for approval needs one. Then the calls are executed, or the run
//     pauses for results. Prepare and Before hooks do not see an approved call again. Calls beside it that nobody
//     decided about are decided now. If a hook asks about one of them, the run pauses, and [PausedError.Unused] has the
//     decisions: the next Resume needs them too.
//   - A call that waits for its result gets it by [Returned], [Failed] or [ReturnedFor]. Results may come in any order,
//     and in parts: while some are missing, the run pauses again. Terminate of a result counts only if all results come
//     at once, because it is not saved.
//   - The same holds for the calls inside paused sub-agents, which replies name in the same way. A sub-agent without any
//     reply stays paused. The agent needs a [SubAgent] with the name of the call, as before the pause, and so on down
//     the path. If it has none, nothing is done, and the error is a ResumeError.
//   - A branch whose calls wait and have no reply stays as it is.
//   - The same result again changes nothing.
//
// What the conversation says about approval is never believed: a call is executed because of the reply, and a reply to
// a call inside a sub-agent approves that call alone. Two Resumes of the same value with the same approval execute the
// call twice, with one [IdempotencyKey]: a store's compare-and-set of the head prevents it, and [ClaimOnce] in one
// process. After a crash in a resumed run, use [Agent.Run]: it decides about all open calls, and asks again.
//
// Errors: before anything is executed, a *[ResumeError] about one of the replies, and the errors of Run; then those of
// Run. If the context ends while hooks check the pause or a result, the run is refused, so that no result is lost.
func (a Agent) Resume(ctx context.Context, d dag.DAG, replies ...Reply) (dag.DAG, error) {
	return unobserved(resumed(ctx, a, d, nil), func(r *run) error { return r.resume(replies) })
}

// ResumeStream is Resume as a sequence of events, as Stream is Run.
func (a Agent) ResumeStream(ctx context.Context, d dag.DAG, replies ...Reply) iter.Seq2[Event, error] {
	return stream(func(yield func(Event, error) bool) *run { return resumed(ctx, a, d, yield) },
		func(r *run) error { return r.resume(replies) })
}

// resumed returns the run that continues after the pause of d, with the rest of its time limit.
func resumed(ctx context.Context, a Agent, d dag.DAG, yield func(Event, error) bool) *run {
	if a.Limits.Time > 0 {
		a.Limits.Time = max(a.Limits.Time-spentIn(shared.OpenAt(&d).Phases).Elapsed, 1) // 0 would be no limit
	}
	return newRun(ctx, a, d, yield)
}

// stream returns the sequence of a run's events, for a single use.
func stream(start func(yield func(Event, error) bool) *run, begin func(*run) error) iter.Seq2[Event, error] {
	var used atomic.Bool
	return func(yield func(Event, error) bool) {
		r := start(yield)
		defer r.close()

		// Every refusal is an End event, so that a consumer has one way to learn of an error.
		if used.Swap(true) {
			yield(r.refuse(errTwice))
			return
		}
		if end, err := r.loop(begin); !errors.Is(err, errLeft) {
			yield(end, err)
		}
	}
}

// unobserved runs r, which has no consumer of events, and returns the conversation and the error of its End.
func unobserved(r *run, begin func(*run) error) (dag.DAG, error) {
	defer r.close()
	end, err := r.loop(begin)
	return end.DAG, err
}

// ExecuteTools executes the open calls at the head of the conversation and closes the tool phase: one ToolExecution
// node for each call, and one message after them with every result in call order. Without open calls it returns d with
// the agent's declarations.
//
// The conversation is valid beside any error. Every call has its result, except after a *[PausedError]. Errors:
//
//   - Before anything is done: a nil context, [UnboundError], an invalid limit, an error of Instructions, and
//     dag.DAG.Err.
//   - [ErrPaused].
//   - The context's error and its cause, if the context ended.
func (a Agent) ExecuteTools(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	a.Limits.Time = 0 // it limits runs, and this is a single tool phase
	r := newRun(ctx, a, d, nil)
	defer r.close()
	r.single = true

	if err := r.bind(); err != nil {
		return r.initial, err
	}

	// Save in any case: results or a pause may not be saved yet.
	var err error
	switch {
	case r.open.Branches > 1:
		err = r.closeBranches().err
	case len(r.open.Phases) == 1:
		_, err = r.executePhase(r.open.Phases[0])
	}
	if err == nil {
		err = r.start()
	}
	r.save()
	if err != nil {
		return r.d, r.withSaveError(err)
	}
	_, err = r.ended()
	return r.d, err
}

// Run runs d with the provider and the tools that travel with d. See [Agent.Run].
func Run(ctx context.Context, provider api.Provider, d dag.DAG) (dag.DAG, error) {
	return Agent{Provider: provider}.Run(ctx, d)
}

// Stream runs d with the provider and the tools that travel with d, and yields the events. See [Agent.Stream].
func Stream(ctx context.Context, provider api.Provider, d dag.DAG) iter.Seq2[Event, error] {
	return Agent{Provider: provider}.Stream(ctx, d)
}

// ExecuteTools executes the open calls of d with the tools that travel with it. See [Agent.ExecuteTools].
func ExecuteTools(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	return Agent{}.ExecuteTools(ctx, d)
}

// ExecuteToolsFunc executes the open calls of d with one function for all tools. See [Agent.ExecuteTools].
func ExecuteToolsFunc(ctx context.Context, d dag.DAG, handler Handler) (dag.DAG, error) {
	return Agent{Handler: handler}.ExecuteTools(ctx, d)
}
