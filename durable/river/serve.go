package river

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/store"
)

// Serve executes runs with e and calls with w until ctx is done, as their own Serve does, and is woken by River
// meanwhile. Each of them may be nil. pool is the pool that their store uses, with River's tables in its database; see
// [Migrate].
//
// When ctx is done, no job is fetched and nothing is claimed any more. Work under way continues for
// durable.Settings.ShutdownTimeout, and is then interrupted.
func Serve(ctx context.Context, pool *pgxpool.Pool, e *durable.Engine, w *durable.Worker, opts *Options) error {
	o := opts.withDefaults()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	config := &river.Config{Schema: o.Schema, Logger: slog.New(quiet{logOf(e, w).Handler()})}
	if err := configure(config, &handler{engine: e, worker: w, stopping: ctx}, o); err != nil {
		return err
	}
	if o.Config != nil {
		o.Config(config)
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}

	// The client outlives ctx: jobs end because the handler sees ctx, and their states are written before the client
	// stops.
	going := context.WithoutCancel(ctx)
	if err := client.Start(going); err != nil {
		return err
	}

	var all sync.WaitGroup
	errs := make(chan error, 2)
	serve := func(serve func(context.Context) error) {
		all.Go(func() {
			errs <- serve(ctx)
			cancel() // after a mistake in the setup
		})
	}
	if e != nil {
		serve(e.Serve)
	}
	if w != nil {
		serve(w.Serve)
	}
	if o.Keep > 0 {
		all.Go(func() { deleteUntilDone(ctx, client, o.Keep, config.Logger) })
	}

	<-ctx.Done()
	err = client.Stop(going)
	all.Wait()
	close(errs)
	for served := range errs {
		err = errors.Join(err, served)
	}
	return err
}

// Configure adds the wake-ups of e and w to the configuration of a program's own River client: a worker, and the queues
// with durable.Settings.Concurrency workers each. Each of e and w may be nil.
//
// The program starts the client, and calls Serve of e and w beside it, which finds work whose job was lost. To stop, it
// ends both. The client decides how long jobs are kept.
func Configure(config *river.Config, e *durable.Engine, w *durable.Worker, opts *Options) error {
	return configure(config, &handler{engine: e, worker: w, stopping: context.Background()}, opts.withDefaults())
}

func configure(config *river.Config, h *handler, o Options) error {
	if (h.engine == nil || len(h.engine.Agents) == 0) && (h.worker == nil || len(h.worker.Tools) == 0) {
		return errors.New("river: there is neither an engine with agents nor a worker with tools")
	}

	// Configure gets the configuration of a program, which may have workers and queues of its own.
	if config.Workers == nil {
		config.Workers = river.NewWorkers()
	}
	if err := river.AddWorkerSafely(config.Workers, h); err != nil {
		return err
	}
	if config.Queues == nil {
		config.Queues = map[string]river.QueueConfig{}
	}

	add := func(w store.Wake, slots int) {
		name := o.insertOpts(w).Queue
		queue := config.Queues[name]
		queue.MaxWorkers = max(queue.MaxWorkers, slots) // several agents and tools may share a queue
		config.Queues[name] = queue
	}
	if e := h.engine; e != nil {
		for agent := range e.Agents {
			add(store.Wake{Kind: store.WakeRun, Agent: agent}, slotsOf(e.Settings))
		}
	}
	if w := h.worker; w != nil {
		for _, tool := range w.Tools {
			add(store.Wake{Kind: store.WakeTask, Tool: tool.Definition().Name}, slotsOf(w.Settings))
		}
	}
	return nil
}

// handler works the jobs.
type handler struct {
	river.WorkerDefaults[wakeUp]
	engine   *durable.Engine
	worker   *durable.Worker
	stopping context.Context // of Serve
}

// lostAfter is after how many leases a job that is still running may belong to a lost process.
const lostAfter = 10

// Timeout implements river.Worker. River calls it before it executes a job, which has no timeout. The elected client
// also calls it for a job that has been running for long. It discards the job unless the job is younger than its
// timeout, or has none.
func (h *handler) Timeout(job *river.Job[wakeUp]) time.Duration {
	const none = -1
	lost := lostAfter * h.lease()
	if job.AttemptedAt == nil || time.Since(*job.AttemptedAt) < lost {
		return none
	}
	return lost
}

// lease returns the longest lease of the engine and the worker.
func (h *handler) lease() (longest time.Duration) {
	if h.engine != nil {
		longest = leaseOf(h.engine.Settings)
	}
	if h.worker != nil {
		longest = max(longest, leaseOf(h.worker.Settings))
	}
	return longest
}

// Work implements river.Worker.
func (h *handler) Work(ctx context.Context, job *river.Job[wakeUp]) error {
	ctx, cancel := withoutTimeout(ctx)
	defer cancel()
	defer context.AfterFunc(h.stopping, cancel)()

	err := h.handle(ctx, job.Args.wake())
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return river.JobSnooze(0) // nothing was begun: the job is for another process
	}
	return err
}

// withoutTimeout returns a context that ends when ctx is cancelled, but not at its deadline. A job has a deadline if
// the clock of this machine is far ahead of the database's: Timeout takes the job for an old one then.
func withoutTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			cancel()
		}
	})
	return working, func() {
		stop()
		cancel()
	}
}

func (h *handler) handle(ctx context.Context, wake store.Wake) error {
	switch {
	case wake.Kind == store.WakeRun && h.engine != nil:
		return h.engine.Handle(ctx, wake)
	case wake.Kind == store.WakeTask && h.worker != nil:
		return h.worker.Handle(ctx, wake)
	}

	// The job is for other processes that share the queue. It is over all the same, and they find the work by polling.
	return nil
}

// deleteEvery is how often jobs that are done are deleted, and deleteLimit how many in one statement.
const (
	deleteEvery = time.Minute
	deleteLimit = 10_000
)

// deleteUntilDone deletes jobs of wake-ups that ended before the time of keep.
//
// River deletes old jobs too, but all kinds after the same time, which the elected client sets. Programs can share its
// tables, and this package must not decide for them.
func deleteUntilDone(ctx context.Context, client *river.Client[pgx.Tx], keep time.Duration, log *slog.Logger) {
	for {
		if err := deleteJobs(ctx, client, keep); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "river: cannot delete old jobs", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(deleteEvery):
		}
	}
}

func deleteJobs(ctx context.Context, client *river.Client[pgx.Tx], keep time.Duration) error {
	old := river.NewJobDeleteManyParams().First(deleteLimit).Kinds(kind).
		States(rivertype.JobStateCompleted, rivertype.JobStateCancelled, rivertype.JobStateDiscarded).
		Where("finalized_at < now() - @keep::interval", river.NamedArgs{"keep": keep})
	for {
		deleted, err := client.JobDeleteMany(ctx, old)
		if err != nil || len(deleted.Jobs) < deleteLimit {
			return err
		}
	}
}

// slotsOf returns the number of slots, with its default.
func slotsOf(s durable.Settings) int {
	if s.Concurrency > 0 {
		return s.Concurrency
	}
	return 16
}

// leaseOf returns the lease, with its default.
func leaseOf(s durable.Settings) time.Duration {
	if s.Lease > 0 {
		return s.Lease
	}
	return 30 * time.Second
}

func logOf(e *durable.Engine, w *durable.Worker) *slog.Logger {
	switch {
	case e != nil && e.Log != nil:
		return e.Log
	case w != nil && w.Log != nil:
		return w.Log
	}
	return slog.Default()
}

// quiet is a slog.Handler for warnings and errors. River writes a line every few seconds otherwise.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}
