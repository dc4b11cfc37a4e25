package durable

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/store"
)

// TestThroughput measures. PLAIT_RUNS=1000 executes a thousand runs with four calls each, in three processes.
// PLAIT_BACKLOG=100000 does so beside that many jobs that nobody works, and a third as many running ones.
func TestThroughput(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("PLAIT_RUNS"))
	if err != nil {
		t.Skip("SKIPPED: PLAIT_RUNS=1000 measures that many durable runs")
	}
	t.Run("sqlite", func(t *testing.T) {
		measure(openWorld(t, filepath.Join(t.TempDir(), "runs.db")), runs, func() int { return 0 })
	})
	t.Run("postgres", func(t *testing.T) {
		cluster, err := pgtest.Start()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, cluster.Remove()) })
		url, err := cluster.Database()
		require.NoError(t, err)
		statements := countStatements(t, cluster, url)
		measure(openWorld(t, url), runs, statements)
	})
}

// countStatements makes a server count its statements. It returns a function that returns their number since its last
// call.
func countStatements(t *testing.T, cluster *pgtest.Cluster, url string) func() int {
	exec := func(statement string) (n int) {
		conn, err := pgx.Connect(context.Background(), url)
		require.NoError(t, err)
		defer conn.Close(context.Background())
		rows, err := conn.Query(context.Background(), statement)
		require.NoError(t, err)
		for rows.Next() {
			_ = rows.Scan(&n)
		}
		require.NoError(t, rows.Err())
		return n
	}
	exec(`ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`)
	require.NoError(t, cluster.Stop(false))
	require.NoError(t, cluster.Restart())
	exec(`CREATE EXTENSION pg_stat_statements`)
	return func() int {
		n := exec(`SELECT SUM(calls)::BIGINT FROM pg_stat_statements`)
		if os.Getenv("PLAIT_LOG") != "" {
			showStatements(t, url)
		}
		exec(`SELECT 1 FROM pg_stat_statements_reset()`)
		return n
	}
}

// showStatements prints the most frequent statements.
func showStatements(t *testing.T, url string) {
	conn, err := pgx.Connect(context.Background(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), `SELECT calls, total_exec_time::BIGINT,
		LEFT(REGEXP_REPLACE(query, '\s+', ' ', 'g'), 110) FROM pg_stat_statements ORDER BY calls DESC LIMIT 40`)
	require.NoError(t, err)
	for rows.Next() {
		var n, ms int64
		var text string
		require.NoError(t, rows.Scan(&n, &ms, &text))
		fmt.Println(n, ms, "ms", text)
	}
}

func measure(w *world, runs int, statements func() int) {
	e := w.engine(nil)
	began := time.Now()
	for i := range runs {
		w.start(e, StartRequest{Run: fmt.Sprint("r", i), Conversation: fmt.Sprint("c", i), Text: "Pay."})
	}
	w.Logf("starts a second: %.0f", float64(runs)/time.Since(began).Seconds())
	w.Logf("statements a start: %.1f", float64(statements())/float64(runs))

	if stranded, err := strconv.Atoi(os.Getenv("PLAIT_BACKLOG")); err == nil {
		w.backlog(e, stranded)
	}
	c := &children{w: w, history: filepath.Join(w.TempDir(), "history"), slots: 20, slow: 20 * time.Millisecond, defers: true}
	defer c.killAll()
	for range 3 {
		c.add()
	}
	began = time.Now()
	for w.busy() > 0 {
		time.Sleep(20 * time.Millisecond)
	}
	w.Logf("runs a second: %.0f", float64(runs)/time.Since(began).Seconds())
	w.Logf("statements a run: %.1f", float64(statements())/float64(runs))
	require.Len(w, c.starts("pay"), 2*runs)

	// On a busy machine this says more than the rate: on SQLite it is all there is.
	c.killAll()
	w.Logf("CPU of the processes: %v a run", (c.cpu / time.Duration(runs)).Round(10*time.Microsecond))

	// The killed processes are handed back first.
	for range 3 {
		c.add()
	}
	const idle = 20 * time.Second
	time.Sleep(idle / 2)
	statements()
	time.Sleep(idle)
	w.Logf("statements a second of an idle process: %.1f", float64(statements())/idle.Seconds()/3)

	// One hop: from the commit of Start to the end of a run with a call.
	var hops []time.Duration
	for i := range 20 {
		began := time.Now()
		w.wait(e, w.start(e, StartRequest{Conversation: fmt.Sprint("hop", i), Text: "Pay."}))
		hops = append(hops, time.Since(began))
	}
	slices.Sort(hops)
	w.Logf("a run of two jobs and four calls as jobs, alone: median %v, longest %v", hops[10], hops[19])
}

// busy returns the number of unfinished runs.
func (w *world) busy() (n int64) {
	require.NoError(w, w.db.View(w.Context(), func(tx store.Tx) error {
		return query(w.Context(), tx, `SELECT COUNT(*) FROM plait_index WHERE busy = 1`, nil, func(rows store.Rows) error {
			return rows.Scan(&n)
		})
	}))
	return n
}

// numbers is a table of the numbers from 1 to the parameter.
func (w *world) numbers(e *Engine, limit int) string {
	if e.queue.dialect().oneBeat {
		return fmt.Sprintf(`generate_series(1, %d) AS numbers (n)`, limit)
	}
	return fmt.Sprintf(`(WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < %d) SELECT n FROM up) AS numbers`,
		limit)
}

// backlog inserts jobs that nobody works, and a third as many running jobs of a process that is alive.
func (w *world) backlog(e *Engine, stranded int) {
	w.Helper()
	d := e.queue.dialect()
	by := map[bool]string{true: `ARRAY['alive']`, false: `JSONB('["alive"]')`}[d.oneBeat]
	args := map[bool]string{true: `'{}'`, false: `JSONB('{}')`}[d.oneBeat]
	require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
		for _, statement := range []string{
			`INSERT INTO plait_beats (id, beat) VALUES ('alive', ` + tx.Now() + ` + 3600000000)`,
			`INSERT INTO ` + d.jobs + ` (args, kind, max_attempts, queue, state, attempt, attempted_by, attempted_at)
				SELECT ` + args + `, 'plait_call', 5, 'plait_calls', 'running', 1, ` + by + `, ` + d.now + `
				FROM ` + w.numbers(e, stranded/3),
			`INSERT INTO ` + d.jobs + ` (args, kind, max_attempts, queue, state)
				SELECT ` + args + `, 'plait_call', 5, 'for_nobody', 'available' FROM ` + w.numbers(e, stranded),
		} {
			if _, err := tx.Exec(w.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Jobs that nobody works, and running jobs of others, do not hold up a run. PLAIT_BACKLOG measures it.
func TestBacklogDoesNotHoldUpRuns(t *testing.T) {
	onEach(t, func(w *world) {
		var c counting
		e := w.engine(func(o *Options) {
			defers("count", 4)(o)
			works(c.tool("count"))(o)
		})
		w.backlog(e, 3_000)
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "Count."}))
		require.Equal(w, Done, r.State, r.Reason)
		require.EqualValues(w, 4, c.total.Load())
		require.Equal(w, 3_000, w.jobs(e)["available"])
		require.Equal(w, 1_000, w.jobs(e)["running"])
	})
}

// TestListsOverManyRuns measures. PLAIT_SCALE=1 lists pages of a million runs.
func TestListsOverManyRuns(t *testing.T) {
	onEach(t, func(w *world) {
		runs := 2_000
		if os.Getenv("PLAIT_SCALE") != "" {
			runs = 1_000_000
		}
		e := w.engine(nil)
		const batch = 100_000
		for from := 0; from < runs; from += batch {
			numbers := w.numbers(e, min(batch, runs-from))
			require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
				_, err := tx.Exec(w.Context(), fmt.Sprintf(`INSERT INTO plait_index
					(id, conversation, head, agent, state, reason, busy, job, start, began, changed)
					SELECT 'r' || (n + %[1]d), 'c' || (n + %[1]d), 'main', 'a',
					CASE WHEN n %% 1000 = 0 THEN 'parked' ELSE 'done' END, '',
					CASE WHEN n %% 1000 = 0 THEN 1 ELSE 0 END, 0, $1, n, n FROM %[2]s`, from, numbers), []byte{})
				return err
			}))
		}

		for name, q := range map[string]RunsRequest{
			"the newest": {}, "parked": {States: []State{Parked}}, "unfinished": {States: []State{Active, Waiting, Parked}},
			"of a conversation": {Conversation: "c7"}, "a page in the middle": {After: fmt.Sprint("r", runs/2)},
			"of nobody": {States: []State{Failed}}, "of an agent": {Agent: "a"},
		} {
			var best time.Duration
			for range 5 {
				began := time.Now()
				_, err := e.Runs(w.Context(), q)
				require.NoError(w, err)
				if took := time.Since(began); best == 0 || took < best {
					best = took
				}
			}
			w.Logf("%s of %d runs: %v", name, runs, best)
		}
	})
}
