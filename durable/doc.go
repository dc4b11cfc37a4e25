// Package durable runs agents whose runs outlive the processes that execute them. Each step of a run is stored. While
// it waits for tool calls or for a person, nothing of it is in memory. Any process that has its agent can continue it.
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
//   - An [Engine] starts runs, and executes the runs of the agents that it has: it sends requests to models, and pauses
//     for calls that are deferred (executor.DeferredTool, executor.DeferAll) or need approval.
//   - A [Worker] executes the deferred calls of the tools that it has.
//
// Any number of both, in any number of processes, share a [store.Runs]. The stored state alone decides. Wake-ups
// only shorten the wait: every engine and every worker also looks for work by itself, every Poll.
//
// # Promises
//
//   - What was stored is not lost. A run that lost its process continues from its last step.
//   - A call has one accepted result: the first. A continuation is consumed once, together with its results.
//   - A call whose process was lost is executed again as often as its tool's effect (executor.WithEffect) or its
//     [CallOptions] allow. By default that is never: the model then reads that the outcome is unknown.
//   - No call is claimed after its result was accepted or its run was cancelled, and none begins after its lease has
//     ended, except in the moment between the check of the lease and the call. In the moment between the claim and the
//     call, a result can arrive from a process whose lease had ended. A tool with an effect outside can be executed
//     twice for such reasons, or if a process dies between the effect and the result: use [CallKey] as its idempotency
//     key.
//   - A process that is slow, frozen or cut off does no harm. Another one can claim its work when the lease ends.
//
// # Concurrency
//
// Engines and workers are safe for concurrent use. Set their fields before the first use, and do not copy them. Serve
// returns when no goroutine of it is left, as far as tools return within executor.Agent.Grace.
//
// # Errors
//
// Those of package store. A failure of the store while serving is logged, and tried again.
package durable
