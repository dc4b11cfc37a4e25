package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/sqlite"
)

// The queues of jobs, if the options choose no others.
const (
	RunQueue  = "plait_runs"
	CallQueue = "plait_calls"
)

// Options are options of [Open]. Nil is the same as the zero value: the engine then starts, answers and lists runs, and
// executes none.
type Options struct {
	// Agents are the agents of this process, by name. A run is stored with the name. Any process with an agent of that
	// name can continue it. An agent without a Name gets this one. Defaults to none.
	Agents map[string]executor.Agent
	// Concurrency is the maximum number of runs that this process executes at the same time. Defaults to 16.
	Concurrency int
	// RunQueue returns the queue for the runs of an agent. All processes with the agent, and those that start its runs,
	// need the same. Defaults to [RunQueue] for every agent.
	RunQueue func(agent string) string
	// Priority returns River's priority of the jobs of an agent's runs and calls, from 1 (first) to 4. It orders the jobs
	// that wait in one queue. Defaults to 1 for every agent.
	Priority func(agent string) int

	// Workers are the groups of tools whose deferred calls this process executes. Defaults to none.
	Workers []Worker
	// Call returns the options of a call that begins to wait, for somebody's approval or for its result. The process
	// that executes the run asks it. Defaults to the zero CallOptions for every call.
	Call func(agent string, p dag.Pending) CallOptions
	// AtDeadline returns the reply to a call at its deadline. Defaults to declining an approval, and to an error result
	// for any other call.
	AtDeadline func(agent string, p dag.Pending) executor.Reply

	// Attempts is how often a run is tried after failures of its provider, without a step in between. After that it is
	// parked. Defaults to 10.
	Attempts int
	// Losses is how many processes may be lost while they execute the same step of a run, before it is parked: it may be
	// crashing them. Defaults to 5.
	Losses int

	// Heartbeat is how often this process renews its row. After three times this long without a renewal it counts as
	// lost, and its jobs are given to others. All processes need the same. Defaults to 1 second.
	Heartbeat time.Duration
	// ShutdownTimeout is how long Serve, at its end, waits for work under way before interrupting it. Negative is no
	// wait. Defaults to 5 seconds.
	ShutdownTimeout time.Duration
	// Keep is how long finished jobs stay in River's tables. The conversations have the history. Defaults to 10 minutes.
	Keep time.Duration
	// Schema is the schema of River's tables in PostgreSQL. It must exist. Defaults to the first of the search path.
	Schema string
	// River changes the configuration of the River client of Serve: to add workers and periodic jobs of the program, or
	// to set PollOnly and FetchPollInterval behind PgBouncer. Defaults to no change.
	River func(config *river.Config)

	// Source provides IDs and times for nodes. Defaults to the source of dag.New.
	Source node.Source
	// Log receives errors while serving. Defaults to slog.Default().
	Log *slog.Logger

	clock func() time.Duration // replaced in tests. Defaults to bootTime
	now   func() time.Time     // replaced in tests. Defaults to time.Now

	wrap func(store.Transactor) store.Transactor // for tests: around the database. Defaults to nothing
}

// withDefaults returns the options with each default in place.
func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Concurrency <= 0 {
		opts.Concurrency = 16
	}
	if opts.Attempts <= 0 {
		opts.Attempts = 10
	}
	if opts.Losses <= 0 {
		opts.Losses = 5
	}
	if opts.Call == nil {
		opts.Call = func(string, dag.Pending) CallOptions { return CallOptions{} }
	}
	if opts.AtDeadline == nil {
		opts.AtDeadline = atDeadline
	}
	opts.Workers = slices.Clone(opts.Workers)
	for i := range opts.Workers {
		w := &opts.Workers[i]
		w.Queue = cmp.Or(w.Queue, CallQueue)
		if w.Concurrency <= 0 {
			w.Concurrency = 16
		}
	}
	if opts.RunQueue == nil {
		opts.RunQueue = func(string) string { return RunQueue }
	}
	if opts.Priority == nil {
		opts.Priority = func(string) int { return river.PriorityDefault }
	}

	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&opts.Heartbeat, time.Second},
		{&opts.ShutdownTimeout, 5 * time.Second},
		{&opts.Keep, 10 * time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.clock == nil {
		opts.clock = bootTime
	}
	if opts.now == nil {
		opts.now = time.Now
	}
	return opts
}

// Engine starts, answers, lists and executes durable runs. Make one with [Open]. It is safe for concurrent use.
type Engine struct {
	Options
	db    store.Transactor
	store *store.Store // the conversations of db
	queue queue
	time  *databaseTime
	ends  ends
	feeds feeds

	making sync.Mutex // held while the tables of River are made; guards made
	made   bool       // the tables of River are there
}

// Open returns an engine on a database: a *sqlite.DB in a file, or a *postgres.DB. The first change, such as Start or
// Serve, makes the tables of River if they are not there, which is safe for several processes at once. Close the engine
// before the database.
func Open(ctx context.Context, db store.Transactor, opts *Options) (*Engine, error) {
	e := &Engine{Options: opts.withDefaults(), db: db, store: store.New(db)}
	e.time = &databaseTime{clock: e.clock, now: e.now}
	for agent := range e.Agents {
		if err := store.CheckName(agent); err != nil {
			return nil, fmt.Errorf("durable: the name of an agent: %w", err)
		}
	}

	var err error
	switch db := db.(type) {
	case *postgres.DB:
		e.queue, err = newPostgresQueue(db, e)
	case *sqlite.DB:
		e.queue, err = newSQLiteQueue(ctx, db, e)
	default:
		return nil, fmt.Errorf("durable: a %T has no queue for jobs: %w", db, errors.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}

	if e.wrap != nil {
		e.db = e.wrap(db)
		e.store = store.New(e.db)
	}
	e.ends.init(e)
	return e, nil
}

// Store returns the conversations of the database.
func (e *Engine) Store() *store.Store { return e.store }

// ready makes the tables of River, before the first change.
func (e *Engine) ready(ctx context.Context) error {
	e.making.Lock()
	defer e.making.Unlock()
	if e.made {
		return nil
	}
	if err := e.queue.migrate(ctx, e.db); err != nil {
		return fmt.Errorf("durable: cannot make the tables of River: %w", err)
	}
	e.made = true
	return nil
}

// Close closes the engine's own connections. Serve must have returned.
func (e *Engine) Close() error {
	e.ends.stop()
	return e.queue.close()
}

// queues returns the queues that this process works, with their slots.
func (e *Engine) queues() map[string]river.QueueConfig {
	queues := map[string]river.QueueConfig{}
	for _, agent := range slices.Sorted(maps.Keys(e.Agents)) {
		queues[e.RunQueue(agent)] = river.QueueConfig{MaxWorkers: e.Concurrency}
	}
	for _, w := range e.Workers {
		queues[w.Queue] = river.QueueConfig{MaxWorkers: w.Concurrency}
	}
	return queues
}

// Errors of an [Engine], for errors.Is; a [RunError] names the run.
var (
	// ErrNoRun: there is no run with this ID.
	ErrNoRun = errors.New("there is no such run")
	// ErrRunExists: another run has the ID.
	ErrRunExists = errors.New("another run has this ID")
	// ErrRunEnded: the run has ended.
	ErrRunEnded = errors.New("the run has ended")
	// ErrBusy: the head of the conversation has an unfinished run.
	ErrBusy = errors.New("the head has an unfinished run")
	// ErrNotBusy: the head of the conversation has no unfinished run.
	ErrNotBusy = errors.New("the head has no unfinished run")
	// ErrNoMessage: there is no such message in the inbox, or a run has taken it.
	ErrNoMessage = errors.New("the message is not in the inbox")
)

// RunError is an error about one run.
type RunError struct {
	// Run is the ID of the run, or the conversation and the head if there is none.
	Run string
	// Err is one of the errors above.
	Err error
	// Detail may be empty.
	Detail string
}

// Error returns the run, the error and the detail.
func (e *RunError) Error() string {
	text := fmt.Sprintf("durable: run %s: %v", safetext.Quote(e.Run, 80), e.Err)
	if e.Detail != "" {
		text += ": " + safetext.Escape(e.Detail, 500)
	}
	return text
}

// Unwrap returns Err.
func (e *RunError) Unwrap() error { return e.Err }
