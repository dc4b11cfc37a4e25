// Package executor runs conversations: it sends requests to a model and executes the calls of its responses until there
// are none.
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
// A Go function becomes a tool by [Func]: its schema is inferred, and its arguments are checked before it sees them.
// There are three ways to execute what a model calls:
//
//   - By hand: [dag.DAG.OpenCalls] returns the calls, [dag.DAG.CloseTools] takes the results.
//   - One tool phase: [ExecuteTools] with the tools that travel with the conversation, [ExecuteToolsFunc] with one
//     function for all of them.
//   - The whole loop: [Run], and [Stream] for those who want to watch.
//
// An [Agent] bundles a provider with tools, options and rules, for many runs.
//
// # A turn, from top to bottom
//
//   - Messages in [Agent.Steering] are appended; after a response without calls, those in [Agent.FollowUps].
//   - The request is made of the conversation, shown to each Hook.Send, and the model is asked.
//   - What becomes of each call is decided, in call order, before the first one runs: may it run at all ([Limits]);
//     Hook.Prepare; is there such a tool; do the arguments fit; Hook.Before, which allows, denies, changes, answers,
//     asks for approval, or defers.
//   - If a call needs approval, the run pauses before any call is executed.
//   - The [Strategy] decides which calls run at the same time. Each has its timeout, and its result goes through
//     Hook.After.
//   - If calls are deferred, the run pauses for their results. [Agent.Resume] continues it, in this process
//     or another.
//   - The results become one message, in call order. Each Hook.Next sees the turn, and may change what comes next, or
//     end the run.
//
// One mechanism each: who watches ranges over the events; who decides is a [Hook]; who waits is a [Continuation]; a
// conversation inside a call is a [SubAgent]. [Only], [RequireApproval], [OutputLimit], [Underscores], [AskAgain],
// [ClaimOnce] and [RunFor] are made of these from outside, and so is a program's own.
//
// # What always holds
//
//   - Every call of an answer gets exactly one result, in call order, before anything else is said: also when its tool
//     fails, panics, never comes back or does not exist, and when the run is cancelled in between.
//   - A call whose outcome nobody waits for is answered too. Only a paused run has open calls.
//   - One tool's failure never touches another's result. The model reads the error of a tool; it is no Go error.
//   - The conversation that comes back is valid beside any error, and a later run continues it.
//
// # Concurrency
//
// Everything here is safe for concurrent use, an Agent's runs included. The tools called in one answer run at the same
// time, so that a tool must be safe for concurrent use as well; [Agent.Strategy] and [WithMode] limit that.
//
// A tool should return soon after its context ends. One that does not is answered on time all the same: its late result
// is dropped, but its goroutine lives until it returns, because Go has no way to end it. The same holds for hooks.
//
// # Errors
//
// [ErrUnbound] marks a tool that the program declares without a function, and [ErrNoProvider] an Agent without a
// provider; both come before anything is done. A model's failure is an *api.Error, after all retries. The end of the
// context is its error and its cause. The conversation's own error (dag.DAG.Err) is returned at once. A run that pauses
// returns a *[PausedError], which is no failure, and one that cannot be resumed a *[ResumeError].
package executor
