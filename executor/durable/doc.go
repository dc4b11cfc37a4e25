// Package durable runs agents in a way that survives the end of a process. The conversation in a database is the truth,
// and River (github.com/riverqueue/river) has the work. While a run waits for tool calls or for a person, nothing of it
// is in memory.
//
//	engine, err := durable.Open(ctx, db, &durable.Options{
//		Agents:  map[string]executor.Agent{"support": agent},
//		Workers: []durable.Worker{{Tools: []executor.Tool{find}}},
//	})
//	go engine.Serve(ctx)
//
//	id, err := engine.Start(ctx, durable.StartRequest{Agent: "support", Conversation: "customer 7", Text: "Refund A-7."})
//	end, err := engine.Wait(ctx, id)
//
// The database is a file of store/sqlite, for the processes of one machine, or store/postgres, for those of many.
//
// # Where things are
//
//   - What a call is and where it stands is in the conversation: dag.DAG.Pending lists the calls that wait.
//   - A run is a job that names a conversation, its head and an agent. A deferred call (executor.DeferredTool,
//     executor.DeferAll) is a job that names a conversation and a call. Jobs hold IDs only, and are inserted in the
//     transaction of the nodes they belong to.
//   - Replies and messages that have arrived and are not yet in the conversation are in its inbox. The run takes them in
//     the transaction that appends them: exactly once.
//   - Lists of runs ([Engine.Runs]) are read from an index.
//
// # Promises
//
//   - A stored step is not lost. If its process is lost, a run continues from its last step within about 4 heartbeats.
//   - A call has one accepted result: the first.
//   - A call of unknown effect (executor.WithEffect) is begun once. If its process is lost, or its run is cancelled, the
//     model reads that the outcome is unknown.
//   - Nothing is appended to a cancelled run, and a removed conversation is not made again.
//   - A slow, frozen or disconnected process does no harm: it begins nothing when others may count it as lost.
//
// A tool with an effect outside can still be executed twice, if its effect allows a repetition. Use
// executor.IdempotencyKey as its idempotency key.
//
// # Concurrency
//
// An [Engine] is safe for concurrent use, and any number of them in any number of processes share a database. Serve waits
// for its goroutines before it returns, except for tools that ignore their context.
//
// # Errors
//
// A [RunError] names a run, with one of ErrNoRun, ErrRunExists, ErrRunEnded, ErrBusy and ErrNotBusy. Errors about replies
// are those of executor.Agent.Resume, and all others those of the database. A failure of the database while serving is
// logged, and the step is offered again until the database accepts or refuses it.
package durable
