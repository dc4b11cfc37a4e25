// Package durable runs agents in a way that survives the end of a process. Each step of a run is stored. While a run
// waits for tool calls or for a person, nothing of it is in memory. Any process with its agent can continue it.
//
//	db := store.Memory() // or a database
//	engine := &durable.Engine{Store: db, Agents: map[string]executor.Agent{"support": agent}}
//	worker := &durable.Worker{Store: db, Tools: []executor.Tool{refund}}
//	go engine.Serve(ctx)
//	go worker.Serve(ctx)
//
//	id, err := engine.Start(ctx, durable.StartRequest{Agent: "support", Conversation: "customer 7", Text: "Refund A-7."})
//	end, err := engine.Wait(ctx, id)
//
// # Roles
//
//   - An [Engine] starts runs, and executes the runs of its agents: it sends requests to models, and pauses for calls
//     that are deferred (executor.DeferredTool, executor.DeferAll) or need approval.
//   - A [Worker] executes the deferred calls of its tools.
//
// Any number of both, in any number of processes, share a [store.Runs]. The stored state alone decides. Wake-ups only
// shorten the wait: every engine and every worker also looks for work by itself, every Poll.
//
// # Promises
//
//   - A stored step is not lost. If its process is lost, a run continues from its last step.
//   - A call has one accepted result: the first. A continuation is consumed once, together with its results.
//   - If its process is lost, a call is executed again as often as its tool's effect (executor.WithEffect) or its
//     [CallOptions] allow. By default that is never: the model then reads that the outcome is unknown.
//   - No call is claimed after its result was accepted or its run was cancelled. No call begins after its lease has
//     ended, except in the moment between the check of the lease and the call.
//   - A slow, frozen or disconnected process does no harm. Another one can claim its work when the lease ends.
//
// A tool with an effect outside can still be executed twice: if a process dies between the effect and the result, if
// the lease ends in that moment before the call, or if a process whose lease had ended delivers its result between
// another's claim and call. Use [CallKey] as its idempotency key.
//
// # Concurrency
//
// Engines and workers are safe for concurrent use. Set their fields before the first use, and do not copy them. Serve
// waits for its goroutines before it returns, except for tools that do not return within executor.Agent.Grace.
//
// # Errors
//
// Errors are those of package store. A failure of the store while serving is logged, and the operation is tried again.
package durable
