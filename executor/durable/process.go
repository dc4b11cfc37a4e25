package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Causes of contexts, and errors that end a job without a result of it.
var (
	// errLost: another process has the job, or it was cancelled.
	errLost = errors.New("durable: the job is no longer this process's")
	// errLapsed: this process was taken for lost, and its jobs were given to others.
	errLapsed = errors.New("durable: this process has missed its heartbeats, and its jobs were given to others")
	// errInterrupted: Serve ends.
	errInterrupted = errors.New("durable: the process ends")
)

// Serve executes the runs of the engine's agents and the calls of its workers until ctx is done. It then begins no more work, waits for that under
// way, and interrupts it after Options.ShutdownTimeout. An interrupted run continues from its last step, here or
// elsewhere.
func (e *Engine) Serve(ctx context.Context) error {
	if len(e.queues()) == 0 {
		return errors.New("durable: there is nothing to serve: the engine has neither agents nor workers")
	}
	if err := e.ready(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for {
		p := newProcess(e)
		err := p.serve(ctx)
		if !errors.Is(err, errLapsed) {
			return err
		}

		// Another process has handed this one's jobs back. It goes on under another name, so that nothing begun before
		// can be taken for its own.
		e.Log.WarnContext(ctx, "durable: serving again under another name", "cause", err)
	}
}

// process is one generation of Serve: a River client with its own name and its row of heartbeats.
type process struct {
	*Engine
	id string // of the client and the row

	calls   gather[target, *calling]    // that are about to begin
	results gather[struct{}, *delivery] // of calls

	mu   sync.Mutex                        // guards the fields below
	beat time.Duration                     // reading of the clock before the last successful beat
	work map[int64]context.CancelCauseFunc // by the ID of the running job
}

// newProcess returns a process with a name that no other one has.
func newProcess(e *Engine) *process {
	p := &process{Engine: e, id: uuid.Must(uuid.NewV7()).String(), work: map[int64]context.CancelCauseFunc{}}
	p.calls.run, p.results.run = p.prepare, p.acceptAll
	return p
}

// serve serves until ctx is done, or until the process has lapsed.
func (p *process) serve(ctx context.Context) error {
	if err := p.firstBeat(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	client, err := p.queue.client(p.config())
	if err != nil {
		return err
	}

	// The client outlives ctx: its jobs end because work sees the causes below.
	going := context.WithoutCancel(ctx)
	if err := client.Start(going); err != nil {
		return err
	}
	lapsed := p.beatUntilDone(ctx)

	// Wait for work under way, and interrupt it in time. After a lapse there is nothing to wait for.
	cause, wait := errInterrupted, p.ShutdownTimeout
	if lapsed {
		cause, wait = errLapsed, 0
	}
	beating, stopBeats := context.WithCancel(going)
	var beats sync.WaitGroup
	if !lapsed {
		beats.Go(func() { p.beatUntilDone(beating) })
	}
	interrupt := time.AfterFunc(max(wait, 0), func() { p.interrupt(cause) })
	err = stop(going, client, max(wait, 0)+stopTime)
	interrupt.Stop()
	stopBeats()
	beats.Wait()

	if lapsed {
		return errLapsed
	}
	p.lastBeat(going)
	return err
}

// stopTime is how long interrupted work and River's own services may take to end, twice: a silent network may hold them
// for ever.
const stopTime = 5 * time.Second

// stop stops a client, and gives it up if it does not stop.
func stop(ctx context.Context, c client, wait time.Duration) error {
	soft, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := c.Stop(soft); err == nil {
		return nil
	}
	hard, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return c.StopAndCancel(hard)
}

// config returns the configuration of the River client.
func (p *process) config() *river.Config {
	const far = 24 * time.Hour // heartbeats find lost processes; River must not give their jobs to others
	config := &river.Config{
		ID: p.id, Queues: p.queues(), Workers: river.NewWorkers(), Schema: p.Schema,
		FetchCooldown: 20 * time.Millisecond, FetchPollInterval: p.queue.dialect().poll,
		JobTimeout: -1, RescueStuckJobsAfter: far, JobStuckThreshold: far, MaxAttempts: p.Attempts,
		CompletedJobRetentionPeriod: p.Keep, CancelledJobRetentionPeriod: p.Keep, DiscardedJobRetentionPeriod: p.Keep,
		Logger: slog.New(quiet{p.Log.Handler()}),
		// The only way to give River a clock. It decides when scheduled jobs are due, for all processes.
		Test: river.TestConfig{Time: p.time},
	}
	river.AddWorker(config.Workers, &runWorker{process: p})
	river.AddWorker(config.Workers, &callWorker{process: p})
	river.AddWorker(config.Workers, &deadlineWorker{process: p})
	config.LeaderElectionDisabled = len(p.Agents) == 0 // it may not know the kinds of other processes
	if p.River != nil {
		p.River(config)
	}
	return config
}

// quiet is a slog.Handler for warnings and errors. River writes a line every few seconds otherwise.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// interrupt ends the contexts of all running jobs.
func (p *process) interrupt(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.work {
		cancel(cause)
	}
}

// do executes a job with a context that ends if the job is lost. A panic becomes an error.
func (p *process) do(ctx context.Context, job *rivertype.JobRow, f func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.mu.Lock()
	p.work[job.ID] = cancel
	p.mu.Unlock()

	defer func() {
		p.mu.Lock()
		delete(p.work, job.ID)
		p.mu.Unlock()
	}()
	return f(ctx)
}

// panicError is the panic of a provider, a hook or a tool.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("it panicked: %v", e.value) }

// guarded calls f, and returns a panic as an error.
func guarded(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
	}()
	return f()
}

// retry calls f until it succeeds, is refused, or ctx is done. A finished step is offered for as long as it takes: only
// the stored state can refuse it.
func (p *process) retry(ctx context.Context, f func(ctx context.Context) error) error {
	const first, longest = 20 * time.Millisecond, 2 * time.Second
	for wait := first; ; wait = min(2*wait, longest) {
		err := f(context.WithoutCancel(ctx))
		if err == nil || refused(err) {
			return err
		}

		p.Log.WarnContext(ctx, "durable: a step is not stored yet", "error", err)
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(jitter(wait)):
		}
	}
}

// refused reports whether an error is final: the state of the store does not allow the change. After any other error the
// change can be tried again.
func refused(err error) bool {
	var run *RunError
	var reply *executor.ResumeError
	for _, final := range []error{
		errLost, errLapsed, errRaced, store.ErrMoved, store.ErrRecord, store.ErrName, store.ErrNotStored, fs.ErrClosed,
		node.ErrParent,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return errors.As(err, &run) || errors.As(err, &reply)
}

// jitter returns d, up to a quarter more or less, so that processes do not try at the same time.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(max(d/2, 1)) }
