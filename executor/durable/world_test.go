package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/sqlite"
)

// world is a database, and the engines that share it.
type world struct {
	*testing.T
	url string // a file of SQLite, or the URL of a server
	db  store.Transactor

	stubborn  bool // serve again after an error
	polls     bool // River looks for jobs, and is not notified
	impatient bool // River looks often for what is due soon
}

// onEach runs a test on each kind of database, beside other tests.
func onEach(t *testing.T, test func(w *world)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { onSQLite(t, test) })
	t.Run("postgres", func(t *testing.T) { onPostgres(t, test) })
}

// onOne runs a test on SQLite, and on PostgreSQL too with PLAIT_ALL. It is for tests that send no statement to
// PostgreSQL but those that tests of onEach send: every day, one kind of database is enough for them.
func onOne(t *testing.T, test func(w *world)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { onSQLite(t, test) })
	t.Run("postgres", func(t *testing.T) {
		if !seedtest.All() {
			t.Skip("SKIPPED: on PostgreSQL with PLAIT_ALL=1, as in .ci/run")
		}
		onPostgres(t, test)
	})
}

func onSQLite(t *testing.T, test func(w *world)) {
	t.Parallel()
	test(openWorld(t, newFile(t)))
}

// newFile returns a file with a database of SQLite that has no rows. It is a copy: to make the tables takes 15 ms.
func newFile(t *testing.T) string {
	t.Helper()
	tables, err := emptyTables()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "runs.db")
	require.NoError(t, os.WriteFile(path, tables, 0o600))
	return path
}

// emptyTables makes the tables in a file of SQLite, once, and returns its bytes.
var emptyTables = sync.OnceValues(func() (data []byte, err error) {
	folder, err := os.MkdirTemp("", "plait-durable-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "runs.db")
	db, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return nil, err
	}
	e, err := Open(context.Background(), db, nil)
	if err == nil {
		err = errors.Join(e.ready(context.Background()), e.Close())
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func onPostgres(t *testing.T, test func(w *world)) {
	t.Parallel()
	if pgtest.Missing() {
		t.Skip("SKIPPED: no PostgreSQL server is installed")
	}
	test(openWorld(t, pgtest.Database(t)))
}

func openWorld(t *testing.T, url string) *world {
	w := &world{T: t, url: url}
	w.db = w.open()
	return w
}

// again runs a test on a new database of the same kind, as a subtest, and reports whether it succeeded. Connections are
// closed at its end: a server has few, and a test may need hundreds of databases.
func (w *world) again(name string, test func(w *world)) bool {
	w.Helper()
	return w.Run(name, func(t *testing.T) {
		if filepath.IsAbs(w.url) {
			test(openWorld(t, newFile(t)))
		} else {
			test(openWorld(t, pgtest.Database(t)))
		}
	})
}

// open opens the database once more, as another process does. It is closed at the end of the test.
func (w *world) open() store.Transactor {
	w.Helper()
	db, closeDB, err := openDatabase(w.Context(), w.url)
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, closeDB()) })
	return db
}

// openDatabase opens a file of SQLite, or a database of a server.
func openDatabase(ctx context.Context, url string) (store.Transactor, func() error, error) {
	if filepath.IsAbs(url) {
		db, err := sqlite.Open(ctx, url, nil)
		if err != nil {
			return nil, nil, err
		}
		return db, db.Close, nil
	}
	// Tests that begin at the same time wait for each other: one server makes the tables of all.
	db, err := postgres.Open(ctx, url+"&pool_max_conns=8", &postgres.Options{LockTimeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	return db, db.Close, nil
}

// heartbeat is that of the tests.
const heartbeat = 300 * time.Millisecond

// engine opens an engine. It is closed at the end of the test.
func (w *world) engine(change func(o *Options)) *Engine {
	w.Helper()
	opts := &Options{Heartbeat: heartbeat, ShutdownTimeout: 10 * time.Second, Log: logOf(w.T)}
	if w.polls {
		opts.River = func(config *river.Config) { config.PollOnly, config.FetchPollInterval = true, 50*time.Millisecond }
	}
	if w.impatient {
		opts.River = func(config *river.Config) { config.FetchPollInterval = often }
	}
	if change != nil {
		change(opts)
	}
	e, err := Open(w.Context(), w.db, opts)
	require.NoError(w, err)
	if opts.wrap == nil {
		require.NoError(w, e.ready(w.Context()))
	}
	w.Cleanup(func() { require.NoError(w, e.Close()) })
	return e
}

// often is how often River looks for jobs in a test that waits for it. By default it is every 5 or 30 seconds.
const often = 50 * time.Millisecond

// lookOften lets River look often for jobs that are due at any time. The interval for those that are not due soon has no
// exported field.
func lookOften(config *river.Config) {
	config.FetchPollInterval = often
	interval := reflect.ValueOf(config).Elem().FieldByName("schedulerInterval")
	*(*time.Duration)(interval.Addr().UnsafePointer()) = often
}

// logOf returns a log for a test: none, or standard error with PLAIT_LOG.
func logOf(*testing.T) *slog.Logger {
	if os.Getenv("PLAIT_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// serve serves an engine until stop is called, at the latest at the end of the test.
func (w *world) serve(e *Engine) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		err := e.Serve(ctx)
		// On a busy machine a process may be too late for its heartbeat.
		for err != nil && (w.stubborn || errors.Is(err, errLapsed)) && ctx.Err() == nil {
			err = e.Serve(ctx)
		}
		if w.stubborn {
			err = nil
		}
		served <- err
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(w, <-served)
		})
	}
	w.Cleanup(stop)
	return stop
}

// start starts a run of agent "a".
func (w *world) start(e *Engine, s StartRequest) string {
	w.Helper()
	if s.Agent == "" {
		s.Agent = "a"
	}
	if s.Conversation == "" {
		s.Conversation = "c"
	}
	run, err := e.Start(w.Context(), s)
	require.NoError(w, err)
	return run
}

// wait waits for the end of a run.
func (w *world) wait(e *Engine, run string) Run {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	r, err := e.Wait(ctx, run)
	require.NoError(w, err, "%+v\n%s", r, w.jobsOf(e, run))
	return r
}

// text returns the text of a conversation's last answer.
func (w *world) text(conversation string) string {
	w.Helper()
	return w.load(conversation).Text()
}

// load returns a conversation, which must be valid.
func (w *world) load(conversation string) dag.DAG {
	w.Helper()
	c, err := store.New(w.db).Conversation(w.Context(), conversation)
	require.NoError(w, err)
	require.Empty(w, c.DAG().Validate())
	return c.DAG()
}

// jobs returns the states of River's jobs, with their number.
func (w *world) jobs(e *Engine) map[string]int {
	w.Helper()
	states := map[string]int{}
	require.NoError(w, w.db.View(w.Context(), func(tx store.Tx) error {
		return query(w.Context(), tx, `SELECT CAST(state AS TEXT), COUNT(*) FROM `+e.queue.dialect().jobs+` GROUP BY state`,
			nil, func(rows store.Rows) error {
				var state string
				var n int64
				err := rows.Scan(&state, &n)
				states[state] = int(n)
				return err
			})
	}))
	return states
}

// jobsOf describes the jobs of a run, for a failed test.
func (w *world) jobsOf(e *Engine, run string) (text string) {
	d := e.queue.dialect()
	if r, err := e.Run(context.Background(), run); err == nil {
		if c, err := e.Store().Head(context.Background(), r.Conversation, r.Head); err == nil {
			text += fmt.Sprintln("version", c.Version())
			for _, p := range c.DAG().Pending() {
				text += fmt.Sprintln("pending", p.Key, p.Tool, p.Approval, p.Started)
			}
		}
		_ = w.db.View(context.Background(), func(tx store.Tx) error {
			list, err := queryInbox(context.Background(), tx, r.Conversation, r.Head, "")
			for _, m := range list {
				text += fmt.Sprintln("inbox", m.num, m.Call, m.Arrived, string(m.Payload))
			}
			return err
		})
	}
	_ = w.db.View(context.Background(), func(tx store.Tx) error {
		return query(context.Background(), tx, `SELECT id, CAST(state AS TEXT), attempt, `+d.worker+`, CAST(attempted_at AS TEXT),
			CAST(finalized_at AS TEXT), CAST(errors AS TEXT) FROM `+d.jobs+` WHERE `+d.run+` = $1`, []any{run},
			func(rows store.Rows) error {
				var id, attempt int64
				var state string
				var worker, began, ended, errs *string
				if err := rows.Scan(&id, &state, &attempt, &worker, &began, &ended, &errs); err != nil {
					return err
				}
				show := func(s *string) string {
					if s == nil {
						return "-"
					}
					return *s
				}
				text += fmt.Sprintln("job", id, state, attempt, show(worker), show(began), show(ended), show(errs))
				return nil
			})
	})
	return text
}

// item is the arguments of the tools of the tests.
type item struct {
	Name string `json:"name" jsonschema:"the item"`
}

// tool returns a tool that calls f.
func tool(name string, f func(ctx context.Context, item string) (string, error)) executor.Tool {
	return executor.Func(name, "Counts.", func(ctx context.Context, in item) (string, error) { return f(ctx, in.Name) })
}

// calls is a model that calls a tool n times at once, and then repeats the results.
func calls(name string, n int) api.Provider {
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		results := req.Messages[len(req.Messages)-1].Blocks.ToolResults()
		if len(results) == 0 {
			var uses []content.ToolUse
			for i := range n {
				uses = append(uses, apitest.Use(name, item{fmt.Sprint("bolts ", i)}))
			}
			return apitest.Call(uses...)
		}
		text := ""
		for _, r := range results {
			text += r.Content.Text() + ". "
		}
		return apitest.Say(text)
	}).Always())
}

// counting counts the executions of a tool by idempotency key.
type counting struct {
	mu    sync.Mutex
	times map[string]int
	total atomic.Int64
}

// tool returns the tool.
func (c *counting) tool(name string) executor.Tool {
	return tool(name, func(ctx context.Context, item string) (string, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.times == nil {
			c.times = map[string]int{}
		}
		c.times[executor.IdempotencyKey(ctx)]++
		c.total.Add(1)
		return fmt.Sprint("many ", item), nil
	})
}

// checks is a database that can be checked.
type checks interface {
	Check(ctx context.Context) error
}

// jobsOfKind returns the IDs of the jobs of a kind.
func (w *world) jobsOfKind(e *Engine, kind string) (ids []int64) {
	w.Helper()
	require.NoError(w, w.db.View(w.Context(), func(tx store.Tx) error {
		return query(w.Context(), tx, `SELECT id FROM `+e.queue.dialect().jobs+` WHERE kind = $1`, []any{kind},
			func(rows store.Rows) error {
				var id int64
				err := rows.Scan(&id)
				ids = append(ids, id)
				return err
			})
	}))
	return ids
}
