package durable

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/sqlite"
)

// riverClient is a client of River as a program makes it, beside an engine.
type riverClient interface {
	QueuePause(ctx context.Context, name string, opts *river.QueuePauseOpts) error
	QueueResume(ctx context.Context, name string, opts *river.QueuePauseOpts) error
	JobCancel(ctx context.Context, id int64) (*rivertype.JobRow, error)
	JobGet(ctx context.Context, id int64) (*rivertype.JobRow, error)
}

func (w *world) river() riverClient {
	w.Helper()
	switch db := w.db.(type) {
	case *postgres.DB:
		c, err := river.NewClient[pgx.Tx](riverpgxv5.New(db.Pool()), &river.Config{})
		require.NoError(w, err)
		return c
	case *sqlite.DB:
		pool, err := db.Pool(w.Context())
		require.NoError(w, err)
		w.Cleanup(func() { require.NoError(w, pool.Close()) })
		c, err := river.NewClient[*sql.Tx](riversqlite.New(pool), &river.Config{})
		require.NoError(w, err)
		return c
	}
	panic("no database of River")
}

// speaks gives an engine agents of some names, each of which notes its name when it is asked, and the note.
func speaks(names ...string) (change func(o *Options), asked func() []string) {
	var mu sync.Mutex
	var list []string
	agents := map[string]executor.Agent{}
	for _, name := range names {
		agents[name] = executor.Agent{Provider: apitest.NewScript(apitest.Func(func(api.Request) apitest.Turn {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, name)
			return apitest.Say("Hello.")
		}).Always())}
	}
	return func(o *Options) { o.Agents = agents }, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

func TestRunBeginsAtItsTime(t *testing.T) {
	onOne(t, func(w *world) {
		change, asked := speaks("a")
		e := w.engine(func(o *Options) {
			change(o)
			o.River = lookOften
		})
		later := w.start(e, StartRequest{Conversation: "later", Text: "Hello.", At: time.Now().Add(time.Hour)})
		soon := w.start(e, StartRequest{Conversation: "soon", Text: "Hello.", At: time.Now().Add(time.Second)})
		begin := time.Now()
		w.serve(e)
		require.Equal(w, Done, w.wait(e, soon).State)
		require.GreaterOrEqual(w, time.Since(begin), 500*time.Millisecond)
		require.Len(w, asked(), 1)

		// It can be cancelled before, as any run can.
		r, err := e.Run(w.Context(), later)
		require.NoError(w, err)
		require.Equal(w, Active, r.State)
		require.NoError(w, e.Cancel(w.Context(), later, "not needed"))
		require.Equal(w, 1, w.jobs(e)["cancelled"])
	})
}

func TestJobsOfAnUrgentAgentComeFirst(t *testing.T) {
	onOne(t, func(w *world) {
		change, asked := speaks("slow", "urgent")
		e := w.engine(func(o *Options) {
			change(o)
			o.Concurrency = 1
			o.Priority = func(agent string) int { return map[string]int{"slow": 4, "urgent": 1}[agent] }
		})
		var runs []string
		for i, agent := range []string{"slow", "slow", "urgent", "urgent"} {
			runs = append(runs, w.start(e, StartRequest{Agent: agent, Conversation: fmt.Sprint(i), Text: "Hello."}))
		}
		w.serve(e)
		for _, run := range runs {
			require.Equal(w, Done, w.wait(e, run).State)
		}
		require.Equal(w, []string{"urgent", "urgent", "slow", "slow"}, asked())
	})
}

func TestPausedQueueGivesNoRuns(t *testing.T) {
	onOne(t, func(w *world) {
		change, asked := speaks("a", "b")
		e := w.engine(func(o *Options) {
			change(o)
			o.RunQueue = func(agent string) string { return "queue_" + agent }
		})
		w.serve(e)
		require.Equal(w, Done, w.wait(e, w.start(e, StartRequest{Conversation: "0", Text: "Hello."})).State)

		client := w.river()
		require.NoError(w, client.QueuePause(w.Context(), "queue_a", nil))
		var held string
		require.Eventually(w, func() bool {
			// The queue is paused when a later run of the other one is done first.
			n := len(asked())
			held = w.start(e, StartRequest{Conversation: fmt.Sprint("a", n), Text: "Hello."})
			require.Equal(w, Done, w.wait(e, w.start(e, StartRequest{Agent: "b", Conversation: fmt.Sprint("b", n), Text: "Hello."})).State)
			r, err := e.Run(w.Context(), held)
			return err == nil && r.State == Active && len(asked()) == n+1
		}, time.Minute, 100*time.Millisecond)

		require.NoError(w, client.QueueResume(w.Context(), "queue_a", nil))
		require.Equal(w, Done, w.wait(e, held).State)
	})
}

func TestRunIsCancelledAfterItsJobWas(t *testing.T) {
	onEach(t, func(w *world) {
		change, asked := speaks("a")
		e := w.engine(change)
		run := w.start(e, StartRequest{Text: "Hello.", At: time.Now().Add(time.Hour)})
		r, err := e.Run(w.Context(), run)
		require.NoError(w, err)
		_, err = w.river().JobCancel(w.Context(), r.job)
		require.NoError(w, err)

		// The run does not end by that, and can be cancelled.
		r, err = e.Run(w.Context(), run)
		require.NoError(w, err)
		require.Equal(w, Active, r.State)
		require.NoError(w, e.Cancel(w.Context(), run, "not needed"))
		require.Equal(w, Cancelled, w.wait(e, run).State)
		require.Empty(w, asked())
	})
}

func TestRiverKeepsTheErrorsOfAttempts(t *testing.T) {
	onOne(t, func(w *world) {
		fails := true
		w.impatient = true
		e := w.engine(func(o *Options) {
			o.Attempts = 2
			model := apitest.NewScript(apitest.Func(func(api.Request) apitest.Turn {
				if fails {
					fails = false
					return apitest.Fail(&api.Error{Kind: api.ErrOverloaded, Message: "come back"})
				}
				return apitest.Say("Hello.")
			}).Always())
			once := api.NewClient(model, &api.ClientOptions{Attempts: 1})
			o.Agents = map[string]executor.Agent{"a": {Provider: once}}
		})
		w.serve(e)
		run := w.start(e, StartRequest{Text: "Hello."})
		r, err := e.Run(w.Context(), run)
		require.NoError(w, err)
		require.Equal(w, Done, w.wait(e, run).State)
		job, err := w.river().JobGet(w.Context(), r.job)
		require.NoError(w, err)
		require.Len(w, job.Errors, 1)
		require.Contains(w, job.Errors[0].Error, "come back")
		require.Equal(w, 2, job.Attempt)
	})
}

func TestMiddlewareAndJobsOfTheProgram(t *testing.T) {
	onOne(t, func(w *world) {
		change, _ := speaks("a")
		var mu sync.Mutex
		kinds := map[string]int{}
		var e *Engine
		e = w.engine(func(o *Options) {
			change(o)
			o.Keep = time.Hour
			o.River = func(c *river.Config) {
				require.Equal(w, time.Hour, c.CompletedJobRetentionPeriod)
				c.FetchPollInterval = often
				c.Middleware = append(c.Middleware, river.WorkerMiddlewareFunc(
					func(ctx context.Context, job *rivertype.JobRow, next func(context.Context) error) error {
						mu.Lock()
						kinds[job.Kind]++
						mu.Unlock()
						return next(ctx)
					}))
				river.AddWorker(c.Workers, &daily{engine: &e})
				c.PeriodicJobs = append(c.PeriodicJobs, river.NewPeriodicJob(river.PeriodicInterval(time.Hour),
					func() (river.JobArgs, *river.InsertOpts) { return dailyArgs{}, &river.InsertOpts{Queue: RunQueue} },
					&river.PeriodicJobOpts{RunOnStart: true}))
			}
		})
		w.serve(e)
		require.Eventually(w, func() bool {
			list, err := e.Runs(w.Context(), RunsRequest{States: []State{Done}})
			return err == nil && len(list) > 0
		}, time.Minute, 10*time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		require.NotZero(w, kinds["daily"])
		require.NotZero(w, kinds[kindRun])
	})
}

// dailyArgs is a job of the program that starts a run.
type dailyArgs struct{}

func (dailyArgs) Kind() string { return "daily" }

type daily struct {
	river.WorkerDefaults[dailyArgs]
	engine **Engine
}

func (d *daily) Work(ctx context.Context, job *river.Job[dailyArgs]) error {
	id := fmt.Sprint("daily ", job.ID)
	_, err := (*d.engine).Start(ctx, StartRequest{Run: id, Agent: "a", Conversation: id, Text: "Hello."})
	return err
}

// A model that waits: a tool whose result comes with the deadline of its call.
func TestDeadlineIsATimer(t *testing.T) {
	onOne(t, func(w *world) {
		nap := executor.DeferredTool(content.Tool{Name: "nap", Description: "Waits.", Schema: `{"type":"object"}`})
		e := w.engine(func(o *Options) {
			o.Agents = map[string]executor.Agent{"a": {Provider: calls("nap", 1), Tools: []dag.Tool{nap}}}
			o.Call = func(string, dag.Pending) CallOptions { return CallOptions{External: true, Deadline: time.Millisecond} }
			o.AtDeadline = func(_ string, p dag.Pending) executor.Reply {
				result, err := executor.ResultOf("awake")
				require.NoError(w, err)
				return executor.Returned(p, result)
			}
		})
		w.serve(e)
		require.Equal(w, Done, w.wait(e, w.start(e, StartRequest{Text: "Wait."})).State)
		require.Equal(w, "awake. ", w.text("c"))
	})
}

func TestStartForAnUnknownAgentIsLogged(t *testing.T) {
	onOne(t, func(w *world) {
		var log bytes.Buffer
		e := w.engine(func(o *Options) {
			o.Agents = map[string]executor.Agent{"a": {}}
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		w.start(e, StartRequest{Conversation: "one", Text: "Hello"})
		require.NotContains(w, log.String(), "agent=")
		w.start(e, StartRequest{Conversation: "two", Agent: "b", Text: "Hello"})
		require.Contains(w, log.String(), "level=WARN")
		require.Contains(w, log.String(), "agent=b")
	})
}
