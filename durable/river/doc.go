// Package river wakes durable runs with jobs of River (github.com/riverqueue/river), a job queue in PostgreSQL.
//
// A worker in a process of its own:
//
//	pool, err := pgxpool.New(ctx, "postgres://plait@db.example.com/sessions")
//	if err != nil {
//		return err
//	}
//	db, err := postgres.New(ctx, pool, &postgres.Options{Ring: river.Ring(nil)})
//	if err != nil {
//		return err
//	}
//	worker := &durable.Worker{Store: db, Tools: []executor.Tool{refund}}
//	return river.Serve(ctx, pool, nil, worker, nil)
//
// # Jobs are doorbells
//
// The tables of store/postgres alone decide what is done. [Ring] inserts a job for each wake-up in the transaction that
// makes the work available: a pause is committed with the jobs of its calls, and the last result with the job that
// resumes the run. A job holds the key of the run or call, and nothing else.
//
// The process that gets a job claims the work with durable.Engine.Handle or durable.Worker.Handle. If there is nothing
// to claim, because the run has ended, another process has the work, or the job came twice, the job is completed all
// the same. Lost jobs are found by durable.Engine.Serve and durable.Worker.Serve, which [Serve] runs beside River.
// Nothing depends on the state of a job.
//
// # Settings of the jobs
//
//   - Runs are in the queue "plait_runs", calls in "plait_calls". [Options.Job] chooses others, such as one for each
//     tool. A process works the queues of its own agents and tools. If processes with different tools share a queue,
//     some jobs come to the wrong one. They are completed there, and the work waits until it is looked for, at most
//     durable.Settings.Poll.
//   - A job is tried once. After a failure of the database, the next look finds the work.
//   - Jobs are not unique. Wake-ups for the same work differ in their generation, and a job of a lost process must not
//     keep the next one out.
//   - A job has no timeout, because leases decide. River discards the job of a lost process after
//     river.Config.RescueStuckJobsAfter, an hour by default, and not before ten leases. It does the same to the job of
//     work that takes so long, which does no harm.
//   - If no other program uses River's tables, [Options.Config] can set RescueStuckJobsAfter to a few minutes. In tables that
//     are shared, River would also discard other programs' jobs that run longer: the client that is elected does so for all.
//   - Jobs that are done are deleted after [Options.Keep].
//
// # Connections
//
// Each process with [Serve] holds one connection of the pool to listen. The others are in use for the milliseconds of a
// transaction, not for the seconds of work, so a pool of 8 serves a process of 256 slots.
//
// # Errors
//
// Those of River, pgx and package durable.
package river
