package river_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	riverqueue "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/durable/river"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

// item is the arguments of the tools.
type item struct {
	Name string `json:"name"`
}

// counter returns a tool.
func counter(name string, fn func(ctx context.Context, item string) (string, error)) executor.Tool {
	call := func(ctx context.Context, in item) (string, error) { return fn(ctx, in.Name) }
	return executor.Func(name, "Counts.", call)
}

func has(_ context.Context, item string) (string, error) { return "many " + item, nil }

// agentOf returns an agent whose model calls each tool once, and then returns "Done.".
func agentOf(tools ...executor.Tool) executor.Agent {
	var uses []content.ToolUse
	var all []dag.Tool
	for _, tool := range tools {
		uses, all = append(uses, apitest.Use(tool.Definition().Name, item{"bolts"})), append(all, tool)
	}
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		if len(req.Messages[len(req.Messages)-1].Blocks.ToolResults()) > 0 {
			return apitest.Say("Done.")
		}
		return apitest.Call(uses...)
	}).Always())
	return executor.Agent{Provider: model, Tools: all, Strategy: executor.DeferAll()}
}

// site is a front end, an engine and a worker, as three processes have them: each has a store of its own on one
// database.
type site struct {
	*testing.T
	pool   *pgxpool.Pool
	front  *durable.Engine
	engine *durable.Engine
	worker *durable.Worker
}

// newSite returns a site whose agent calls each of the tools once. ring changes the wake-ups; nil changes nothing.
func newSite(t *testing.T, opts *river.Options, change func([]store.Wake) []store.Wake, tools ...executor.Tool) *site {
	t.Helper()
	s := &site{T: t, pool: newPool(t, newDatabase(t))}
	ring := river.Ring(opts)
	open := func() *postgres.DB {
		return openWith(t, s.pool, &postgres.Options{Ring: func(ctx context.Context, tx pgx.Tx, w []store.Wake) error {
			if change != nil {
				w = change(w)
			}
			return ring(ctx, tx, w)
		}})
	}

	s.front = &durable.Engine{Store: open(), Settings: durable.Settings{Poll: 20 * time.Millisecond}}
	s.engine = &durable.Engine{
		Store: open(), Agents: map[string]executor.Agent{"a": agentOf(tools...)}, Settings: quiet(),
		CallOptions: func(dag.Pending) durable.CallOptions { return durable.CallOptions{Attempts: 2} },
	}
	s.worker = &durable.Worker{Store: open(), Tools: tools, Settings: quiet()}
	return s
}

// start starts runs, and returns their IDs.
func (s *site) start(runs int) (ids []string) {
	s.Helper()
	for i := range runs {
		id, err := s.front.Start(s.Context(), durable.StartRequest{
			Run: fmt.Sprint("run", i), Agent: "a", Conversation: fmt.Sprint("talk", i), Text: "Count.",
		})
		require.NoError(s, err)
		ids = append(ids, id)
	}
	return ids
}

// wait waits until the runs are done.
func (s *site) wait(runs ...string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	for _, run := range runs {
		r, err := s.front.Wait(ctx, run)
		require.NoError(s, err)
		require.Equal(s, store.RunDone, r.State, r.Reason)
	}
}

// serve runs river.Serve until stop is called.
func (s *site) serve(e *durable.Engine, w *durable.Worker, opts *river.Options) (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	served := make(chan error, 1)
	go func() { served <- river.Serve(ctx, s.pool, e, w, opts) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(s, <-served)
	})
	s.Cleanup(stop)
	return stop
}

// client starts a River client of the program's own. Without Serve beside it, only jobs lead to work.
func (s *site) client(e *durable.Engine, w *durable.Worker, opts *river.Options) *riverqueue.Client[pgx.Tx] {
	s.Helper()
	config := &riverqueue.Config{Logger: quiet().Log, FetchCooldown: riverqueue.FetchCooldownMin}
	require.NoError(s, river.Configure(config, e, w, opts))
	if opts != nil && opts.Config != nil {
		opts.Config(config)
	}
	client, err := riverqueue.NewClient(riverpgxv5.New(s.pool), config)
	require.NoError(s, err)
	require.NoError(s, client.Start(s.Context()))
	s.Cleanup(func() { require.NoError(s, client.Stop(context.Background())) })
	return client
}

// jobs returns a text for each job, in the order in which they were inserted.
func (s *site) jobs(expression string) (texts []string) {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), `SELECT `+expression+` FROM river_job ORDER BY id`)
	require.NoError(s, err)
	texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s, err)
	return texts
}

// newestFirst lets River fetch the newest jobs first. It fetches those with the earliest time first.
const newestFirst = `
	CREATE FUNCTION newest_first() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		NEW.scheduled_at := NEW.scheduled_at - NEW.id * INTERVAL '1 hour';
		RETURN NEW;
	END $$;
	CREATE TRIGGER newest_first BEFORE INSERT ON river_job FOR EACH ROW EXECUTE FUNCTION newest_first()`

func TestJobsLeadToWork(t *testing.T) {
	for name, c := range map[string]struct {
		change   func([]store.Wake) []store.Wake
		database string // a statement
	}{
		"delivered once":        {},
		"delivered three times": {change: func(w []store.Wake) []store.Wake { return slices.Repeat(w, 3) }},
		"delivered in reverse":  {database: newestFirst},
	} {
		t.Run(name, func(t *testing.T) {
			var executed atomic.Int32
			count := func(ctx context.Context, item string) (string, error) {
				executed.Add(1)
				return has(ctx, item)
			}
			s := newSite(t, nil, c.change, counter("bolts", count), counter("nuts", count))
			s.engine.Concurrency, s.worker.Concurrency = 2, 2
			_, err := s.pool.Exec(t.Context(), c.database)
			require.NoError(t, err)
			const runs = 5
			ids := s.start(runs)
			client := s.client(s.engine, s.worker, nil)
			completed, cancel := client.Subscribe(riverqueue.EventKindJobCompleted)
			defer cancel()
			s.wait(ids...)
			require.EqualValues(t, 2*runs, executed.Load())

			// The jobs that came too late find nothing, and are completed too.
			seen := 0
			for range s.jobs(`state`) {
				<-completed
				seen++
			}
			require.GreaterOrEqual(t, seen, 4*runs) // the run, two calls, the run again
		})
	}
}

func TestWorkIsFoundWithoutJobs(t *testing.T) {
	none := func([]store.Wake) []store.Wake { return nil }
	s := newSite(t, nil, none, counter("bolts", has))
	s.engine.Poll, s.worker.Poll = 20*time.Millisecond, 20*time.Millisecond
	s.serve(s.engine, nil, nil)
	s.serve(nil, s.worker, nil)
	s.wait(s.start(3)...)
	require.Empty(t, s.jobs(`state`))
}

func TestJobsAreCommittedWithTheirWork(t *testing.T) {
	errRefused := errors.New("refused")
	pool := newPool(t, newDatabase(t))
	var refuse error
	ring := river.Ring(nil)
	db := openWith(t, pool, &postgres.Options{Ring: func(ctx context.Context, tx pgx.Tx, w []store.Wake) error {
		return errors.Join(ring(ctx, tx, w), refuse)
	}})
	s := &site{T: t, pool: pool}
	ctx := t.Context()
	both := func(step func() error) {
		t.Helper()
		before := s.jobs(`state`)
		refuse = errRefused
		require.ErrorIs(t, step(), errRefused)
		require.Equal(t, before, s.jobs(`state`))
		refuse = nil
		require.NoError(t, step())
	}

	both(func() error {
		_, err := db.Begin(ctx, store.BeginRequest{
			Run: "run1", Agent: "a", Append: store.AppendRequest{Conversation: "talk", Head: "main"},
		})
		return err
	})
	claimed, err := db.ClaimRuns(ctx, store.ClaimRunsRequest{Agents: []string{"a"}, Lease: time.Hour})
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	both(func() error {
		tasks := []store.Task{{Key: store.Key{Call: "1"}, Tool: "bolts"}, {Key: store.Key{Call: "2"}, Tool: "nuts"}}
		_, err := db.Commit(ctx, store.Step{
			Lease: claimed[0].Lease, Pause: &store.Pause{Continuation: "c1", Format: 1, Tasks: tasks},
		})
		return err
	})
	for _, call := range []string{"1", "2"} {
		key := store.Key{Run: "run1", Continuation: "c1", Call: call}
		accept := func() error {
			_, err := db.Accept(ctx, store.Result{Key: key, Outcome: store.OutcomeOK, Payload: []byte("{}")})
			return err
		}
		if call == "1" {
			require.NoError(t, accept())
			require.Len(t, s.jobs(`state`), 3, "a result that is not the last one wakes nobody")
		} else {
			both(accept)
		}
	}

	require.Equal(t, []string{
		`plait_runs {"run": "run1", "wake": "run", "agent": "a", "generation": 1}`,
		`plait_calls {"run": "run1", "call": "1", "tool": "bolts", "wake": "task", "agent": "a", "continuation": "c1"}`,
		`plait_calls {"run": "run1", "call": "2", "tool": "nuts", "wake": "task", "agent": "a", "continuation": "c1"}`,
		`plait_runs {"run": "run1", "wake": "run", "agent": "a", "generation": 3}`,
	}, s.jobs(`queue || ' ' || CASE queue WHEN 'plait_calls' THEN args - 'generation' ELSE args END`))
}

func TestJobOfARunThatIsOverIsCompleted(t *testing.T) {
	s := newSite(t, nil, nil, counter("bolts", has))
	run := s.start(1)[0]
	require.NoError(t, s.front.Cancel(t.Context(), run, "changed my mind"))
	client := s.client(s.engine, s.worker, nil)
	completed, cancel := client.Subscribe(riverqueue.EventKindJobCompleted)
	defer cancel()
	job := (<-completed).Job
	require.Equal(t, 1, job.Attempt)
	require.Empty(t, job.Errors)
	r, err := s.front.Wait(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, store.RunCancelled, r.State)
}

func TestProcessThatStopsGivesItsWorkBack(t *testing.T) {
	begun, calls := make(chan struct{}), atomic.Int32{}
	stuck := func(ctx context.Context, item string) (string, error) {
		if calls.Add(1) == 1 {
			close(begun)
			<-ctx.Done()
			return "", ctx.Err()
		}
		return has(ctx, item)
	}

	// Both jobs are fetched, and one of them waits for the only slot.
	s := newSite(t, nil, nil, counter("bolts", stuck), counter("nuts", stuck))
	s.worker.Concurrency, s.worker.ShutdownTimeout = 1, -1
	s.serve(s.engine, nil, nil)
	stop := s.serve(nil, s.worker, &river.Options{Config: func(c *riverqueue.Config) {
		c.Queues[river.Calls] = riverqueue.QueueConfig{MaxWorkers: 2}
	}})
	run := s.start(1)[0]
	<-begun
	stop()

	// Each of the two calls has a job for another process: the one that waited, and a new one of the call that was
	// interrupted. The first job of that call is completed, or available if Serve had found the call without it.
	available := map[string]bool{}
	for _, job := range s.jobs(`concat(queue, ' ', state, ' ', args->>'tool')`)[1:] { // without that of the run
		require.Regexp(t, "^plait_calls (available|completed) ", job)
		if tool, is := strings.CutPrefix(job, "plait_calls available "); is {
			available[tool] = true
		}
	}
	require.Equal(t, map[string]bool{"bolts": true, "nuts": true}, available)

	s.serve(nil, &durable.Worker{Store: s.worker.Store, Tools: s.worker.Tools, Settings: quiet()}, nil)
	s.wait(run)
	require.EqualValues(t, 3, calls.Load())
}

// discarded returns a function that waits until River discards a job, and returns the kind of its wake-up.
func (s *site) discarded() (next func() string) {
	s.Helper()
	_, err := s.pool.Exec(s.Context(), `
		CREATE FUNCTION discarded() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_notify('discarded', NEW.args->>'wake');
			RETURN NEW;
		END $$;
		CREATE TRIGGER discarded AFTER UPDATE ON river_job FOR EACH ROW
			WHEN (NEW.state = 'discarded') EXECUTE FUNCTION discarded()`)
	require.NoError(s, err)

	conn, err := s.pool.Acquire(s.Context())
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, conn.Hijack().Close(context.Background())) })
	_, err = conn.Exec(s.Context(), `LISTEN discarded`)
	require.NoError(s, err)

	return func() string {
		ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
		defer cancel()
		news, err := conn.Conn().WaitForNotification(ctx)
		require.NoError(s, err)
		return news.Payload
	}
}

// The job of a lost process stays in River's table, until the client that is elected discards it. A job that is as old,
// and whose process lives, is discarded too: its work continues.
func TestJobOfALostProcessIsDiscarded(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := newSite(t, nil, nil, counter("bolts", func(_ context.Context, item string) (string, error) {
		close(begun)
		<-finish
		return "many " + item, nil
	}))
	s.worker.Timeout = -1

	// Serve would look for work by itself too, and could execute the call before its job is fetched.
	s.client(s.engine, s.worker, &river.Options{Config: func(c *riverqueue.Config) { c.LeaderElectionDisabled = true }})
	run := s.start(1)[0]
	<-begun

	// The call runs for two hours, and so does the job of a process that is lost. A younger one stays.
	next := s.discarded()
	_, err := s.pool.Exec(t.Context(), `
		UPDATE river_job SET attempted_at = now() - INTERVAL '2 hours' WHERE args->>'wake' = 'task'`)
	require.NoError(t, err)
	for _, age := range []string{"30 minutes", "2 hours"} {
		_, err := s.pool.Exec(t.Context(), `INSERT INTO river_job (kind, args, max_attempts, attempt, state, attempted_at, attempted_by)
			VALUES ('plait_wake', '{"wake": "lost"}', 1, 1, 'running', now() - $1::text::interval, '{"lost"}')`, age)
		require.NoError(t, err)
	}
	s.serve(nil, &durable.Worker{Store: s.worker.Store, Tools: s.worker.Tools, Settings: quiet()}, nil)
	require.ElementsMatch(t, []string{"task", "lost"}, []string{next(), next()})

	close(finish)
	s.wait(run)
	require.Subset(t, s.jobs(`concat(args->>'wake', ' ', state)`), []string{"lost running", "lost discarded", "task discarded"})
}

func TestToolsCanHaveQueuesOfTheirOwn(t *testing.T) {
	opts := &river.Options{Job: func(w store.Wake, job *riverqueue.InsertOpts) {
		if w.Tool == "render" {
			job.Queue, job.Priority = "gpu", 2
		}
	}}
	render, count := counter("render", has), counter("count", has)
	s := newSite(t, opts, nil, render, count)
	s.client(s.engine, nil, opts)
	for _, tool := range []executor.Tool{render, count} {
		s.client(nil, &durable.Worker{Store: s.worker.Store, Tools: []executor.Tool{tool}, Settings: quiet()}, opts)
	}
	s.wait(s.start(3)...)
	for _, job := range s.jobs(`concat(args->>'tool', ' ', queue, ' ', priority)`) {
		require.Contains(t, []string{"render gpu 2", "count plait_calls 1", " plait_runs 1"}, job)
	}
}

func TestWorkersWithOtherToolsCanShareAQueue(t *testing.T) {
	tools := []executor.Tool{counter("bolts", has), counter("nuts", has)}
	s := newSite(t, nil, nil, tools...)
	s.serve(s.engine, nil, nil)
	for _, tool := range tools {
		settings := quiet()
		settings.Poll = 50 * time.Millisecond
		w := &durable.Worker{Store: openStore(t, s.pool, nil), Tools: []executor.Tool{tool}, Settings: settings}
		s.serve(nil, w, nil)
	}
	s.wait(s.start(4)...)
}

func TestServeRefusesAMistakeInTheSetup(t *testing.T) {
	pool := newPool(t, newDatabase(t))
	for _, c := range []struct {
		engine *durable.Engine
		worker *durable.Worker
		err    string
	}{
		{nil, nil, "neither an engine with agents nor a worker with tools"},
		{&durable.Engine{}, &durable.Worker{}, "neither an engine with agents nor a worker with tools"},
		{nil, &durable.Worker{Tools: []executor.Tool{counter("bolts", has)}, Settings: quiet()}, "it has no Store"},
	} {
		require.ErrorContains(t, river.Serve(t.Context(), pool, c.engine, c.worker, nil), c.err)
	}
}
