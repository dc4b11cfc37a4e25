package river

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/store"
)

// The queues of wake-ups, if Options.Job does not choose others.
const (
	Runs  = "plait_runs"
	Calls = "plait_calls"
)

// Options are options of this package's functions. Nil is the same as the zero value. All processes that share a
// database should have the same.
type Options struct {
	// Job changes how the job of a wake-up is inserted: its queue or its priority, for example. The queue may depend
	// only on w.Agent if w.Kind is store.WakeRun, and on w.Tool if it is store.WakeTask, because these choose the
	// queues that a process works. Defaults to no change.
	Job func(w store.Wake, job *river.InsertOpts)
	// Config changes the configuration of the River client that Serve makes. Defaults to no change.
	Config func(c *river.Config)
	// Schema is the schema of River's tables. Defaults to the first one of the search path that has them.
	Schema string
	// Keep is how long Serve keeps jobs that are done. Negative leaves them to River, which keeps them for a day.
	// Defaults to 10 minutes.
	Keep time.Duration
}

// withDefaults returns the options with each default in place.
func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Keep == 0 {
		opts.Keep = 10 * time.Minute
	}
	return opts
}

// insertOpts returns how the job of a wake-up is inserted.
func (o *Options) insertOpts(w store.Wake) *river.InsertOpts {
	// One attempt: if it fails, the engine or the worker finds the work when it looks for it.
	job := &river.InsertOpts{Queue: Calls, MaxAttempts: 1}
	if w.Kind == store.WakeRun {
		job.Queue = Runs
	}
	if o.Job != nil {
		o.Job(w, job)
	}
	return job
}

// wakeUp is the arguments of a job.
type wakeUp struct {
	Wake         store.WakeKind `json:"wake"`
	Run          string         `json:"run"`
	Continuation string         `json:"continuation,omitempty"`
	Call         string         `json:"call,omitempty"`
	Agent        string         `json:"agent,omitempty"`
	Tool         string         `json:"tool,omitempty"`
	Generation   int            `json:"generation"`
}

// kind is the kind of all jobs, both for runs and for calls, so that every client knows it: the client that River
// elects to rescue lost jobs discards jobs of kinds that it does not know.
const kind = "plait_wake"

// Kind implements river.JobArgs.
func (wakeUp) Kind() string { return kind }

func argsOf(w store.Wake) wakeUp {
	// Jobs are kept as JSON in a form that has no NUL, which the IDs that models give to calls may have.
	safe := safetext.Armor
	return wakeUp{
		Wake: w.Kind, Run: safe(w.Key.Run), Continuation: safe(w.Key.Continuation), Call: safe(w.Key.Call),
		Agent: safe(w.Agent), Tool: safe(w.Tool), Generation: w.Generation,
	}
}

func (a wakeUp) wake() store.Wake {
	text := safetext.Unarmor
	return store.Wake{
		Kind: a.Wake, Key: store.Key{Run: text(a.Run), Continuation: text(a.Continuation), Call: text(a.Call)},
		Agent: text(a.Agent), Tool: text(a.Tool), Generation: a.Generation,
	}
}

// Ring returns a function for postgres.Options.Ring. It inserts a job for each wake-up of a run or a call. Every
// process that changes runs needs it, also one that only starts them.
func Ring(opts *Options) func(ctx context.Context, tx pgx.Tx, wakes []store.Wake) error {
	o := opts.withDefaults()
	client := sync.OnceValues(func() (*river.Client[pgx.Tx], error) {
		// River notifies a queue at most once in each cooldown of the client that inserts. A job that is inserted
		// within the cooldown waits until a client polls, so the cooldown is the shortest possible.
		return river.NewClient(riverpgxv5.New(nil), &river.Config{
			FetchCooldown: river.FetchCooldownMin, Schema: o.Schema, Logger: slog.New(slog.DiscardHandler),
		})
	})

	return func(ctx context.Context, tx pgx.Tx, wakes []store.Wake) error {
		var jobs []river.InsertManyParams
		for _, w := range wakes {
			if w.Kind == store.WakeRun || w.Kind == store.WakeTask {
				jobs = append(jobs, river.InsertManyParams{Args: argsOf(w), InsertOpts: o.insertOpts(w)})
			}
		}
		if len(jobs) == 0 {
			return nil
		}

		c, err := client()
		if err != nil {
			return err
		}
		_, err = c.InsertManyTx(ctx, tx, jobs)
		return err
	}
}

// Migrate makes River's tables, or brings them to the version that this package needs. It is the same as the command
// "river migrate-up". With Options.Schema, the schema must exist.
func Migrate(ctx context.Context, pool *pgxpool.Pool, opts *Options) error {
	o := opts.withDefaults()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{
		Schema: o.Schema, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
