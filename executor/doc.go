// Package executor runs conversations. It sends requests to a model and executes the tool calls of its responses, until
// a response has none.
//
// The smallest whole program:
//
//	type Forecast struct {
//		City string `json:"city" jsonschema:"the city's name"`
//	}
//
//	weather := executor.Func("get_weather", "Current weather for one city.",
//		func(ctx context.Context, in Forecast) (string, error) { return lookup(ctx, in.City) })
//
//	d := dag.New().Tools(weather).User("Weather in Tokyo, Paris and New York?")
//	d, err := executor.Run(ctx, model, d) // d is valid even when err is not nil
//	fmt.Println(d.Text())
//
// [Func] turns a Go function into a tool. It infers the schema, and checks the arguments before each call. There are
// three ways to execute tool calls:
//
//   - By hand: [dag.DAG.OpenCalls] returns the calls, and [dag.DAG.CloseTools] appends the results.
//   - One tool phase: [ExecuteTools] uses the tools declared in the conversation, [ExecuteToolsFunc] one function for
//     all of them.
//   - The whole loop: [Run] runs to the end, [Stream] also yields events.
//
// An [Agent] combines a provider with tools, options and rules, for many runs.
//
// # A turn, step by step
//
//   - The messages in [Agent.Steering] are appended; after a response without calls, those in [Agent.FollowUps].
//   - The request is built from the conversation, passed to each Hook.Send, and sent to the model.
//   - Each call is decided, in call order, before the first one is executed. The checks are: [Limits]; Hook.Prepare; is
//     the tool known; are the arguments valid; Hook.Before. A Before hook allows, denies or changes the call, supplies
//     its result, requires approval, or defers it.
//   - If a call needs approval, the run pauses before any call is executed.
//   - The [Strategy] selects the calls for each batch. With [Agent.Save], their start is saved. Each call has its
//     timeout, and its result passes through Hook.After.
//   - If calls are deferred, the run pauses for their results. [Agent.Resume] continues it, in this process
//     or another. If a sub-agent pauses, at any depth, the run pauses too, with the calls of all of them in one
//     [Continuation]; each sub-agent continues where it was.
//   - The results become one message, in call order. Each Hook.Next receives the turn, and may change the next one, or
//     end the run.
//
// There is one mechanism for each purpose: events to observe (and Hook.Observe to trace), a [Hook] to decide, a
// [Continuation] to wait, and a [SubAgent] for a conversation inside a call. [Only], [RequireApproval], [OutputLimit],
// [Underscores], [AskAgain], [ClaimOnce] and [RunFor] use only these exported mechanisms. A program can add its own in
// the same way.
//
// # Guarantees
//
//   - Every call of a response gets exactly one result, in call order, before any other message. This holds even if its
//     tool fails, panics, never returns or does not exist, and if the run is cancelled in between.
//   - A call gets a result even if nobody waits for it. Only a pause or a crash leaves calls open. After a crash, run
//     the conversation as it is, and give a new message to [Agent.Steering]: a message appended after open calls ends
//     their phase.
//   - With [Agent.Save], a call with a saved result is never executed again. A call that was under way when the program
//     ended is never repeated silently: see [WithEffect] and [Hook.InDoubt]. No library can promise that a tool runs
//     exactly once.
//   - A failed tool never affects another tool's result. Its error is sent to the model; it is not a Go error.
//   - The returned conversation is valid beside any error, and a later run continues it.
//
// # Concurrency
//
// Everything in this package is safe for concurrent use, including the runs of an Agent. The tool calls of one response
// run at the same time, so a tool must be safe for concurrent use too. [Agent.Strategy] and [WithMode] limit that.
//
// A tool should return soon after its context ends. If it does not, its call gets an error result on time, and the late
// result is dropped. Its goroutine lives until the tool returns, because Go cannot end a goroutine from outside. The
// same holds for hooks.
//
// # Errors
//
//   - [UnboundError]: the program declares a tool without a function, or the Agent has no provider. Both
//     are returned before the run begins.
//   - An *api.Error: the model failed, after all retries.
//   - The error of the context and its cause: the context ended.
//   - The conversation's own error (dag.DAG.Err): it is returned at once.
//   - A *[PausedError]: the run paused. This is not a failure.
//   - A *[ResumeError]: the run cannot be resumed.
package executor
