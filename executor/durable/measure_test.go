package durable

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/store"
)

// TestThroughput measures, with PLAIT_RUNS=1000 so many runs with four calls each in three processes: alone, beside 32,768
// running jobs, and beside 100,000 jobs that nobody works. It also prints the statements and the CPU of a run, the
// statements of an idle process, the latency of a hop, the stall after a kill, and the times of lists over a million runs.
func TestThroughput(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("PLAIT_RUNS"))
	if err != nil {
		t.Skip("SKIPPED: PLAIT_RUNS=1000 measures that many durable runs")
	}
	t.Run("sqlite", func(t *testing.T) {
		measure(func() *world { return openWorld(t, filepath.Join(t.TempDir(), "runs.db")) }, runs, func() int { return 0 })
	})
	t.Run("postgres", func(t *testing.T) {
		cluster, counter := startCounting(t)
		measure(func() *world {
			url, err := cluster.Database()
			require.NoError(t, err)
			return openWorld(t, url)
		}, runs, counter.statements)
	})
}

// counter counts the statements of a server.
type counter struct {
	t   *testing.T
	url string // of a database without other uses
}

// startCounting starts a server of its own that counts its statements.
func startCounting(t *testing.T) (*pgtest.Cluster, *counter) {
	if pgtest.Missing() {
		t.Skip("SKIPPED: no PostgreSQL server is installed")
	}
	cluster, err := pgtest.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Remove()) })
	url, err := cluster.Database()
	require.NoError(t, err)

	c := &counter{t, url}
	c.query(`ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`, nil)
	require.NoError(t, cluster.Stop(false))
	require.NoError(t, cluster.Restart())
	c.query(`CREATE EXTENSION pg_stat_statements`, nil)
	return cluster, c
}

// query runs a statement on a connection of its own, and calls f for each row.
func (c *counter) query(statement string, f func(pgx.Rows)) {
	conn, err := pgx.Connect(context.Background(), c.url)
	require.NoError(c.t, err)
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), statement)
	require.NoError(c.t, err)
	for rows.Next() {
		if f != nil {
			f(rows)
		}
	}
	require.NoError(c.t, rows.Err())
}

// reads are the calls of a statement, and the blocks that they have read.
type reads struct {
	text          string
	calls, blocks int64
}

// take returns the statements since the last call, the most frequent first. With PLAIT_LOG it prints them.
func (c *counter) take() (list []reads) {
	c.query(`SELECT LEFT(REGEXP_REPLACE(query, '\s+', ' ', 'g'), 110), calls, shared_blks_hit + shared_blks_read
		FROM pg_stat_statements ORDER BY calls DESC`, func(rows pgx.Rows) {
		var r reads
		require.NoError(c.t, rows.Scan(&r.text, &r.calls, &r.blocks))
		if os.Getenv("PLAIT_LOG") != "" {
			fmt.Printf("%6d calls %8d blocks %s\n", r.calls, r.blocks, r.text)
		}
		list = append(list, r)
	})
	c.query(`SELECT 1 FROM pg_stat_statements_reset()`, nil)
	return list
}

// statements returns the number of statements since the last call.
func (c *counter) statements() (n int) {
	for _, r := range c.take() {
		n += int(r.calls)
	}
	return n
}

// A run takes few statements, and each of them reads few blocks, also beside many jobs that nobody works.
func TestRunTakesFewStatements(t *testing.T) {
	if !seedtest.All() {
		t.Skip("SKIPPED: on PostgreSQL with PLAIT_ALL=1, as in .ci/run")
	}
	cluster, counter := startCounting(t)
	for _, stranded := range []int{0, 20_000} {
		t.Run(fmt.Sprintf("beside %d jobs", stranded), func(t *testing.T) {
			url, err := cluster.Database()
			require.NoError(t, err)
			w := openWorld(t, url)
			e := w.engine(nil)
			w.backlog(e, 0, stranded)
			const runs = 60
			for i := range runs {
				w.start(e, StartRequest{Run: fmt.Sprint("r", i), Conversation: fmt.Sprint("c", i), Text: "Pay."})
			}

			counter.query(`ANALYZE`, nil) // plans depend on what the server knows about the tables
			counter.take()
			for range 3 {
				w.serve(w.engine(func(o *Options) {
					agent, workers := byWorkers(childAgent(io.Discard, 0, false))
					o.Agents, o.Workers = map[string]executor.Agent{"a": agent}, workers
				}))
			}
			for i := range runs {
				_, err := e.Wait(t.Context(), fmt.Sprint("r", i))
				require.NoError(t, err)
			}

			n := int64(0)
			for _, r := range counter.take() {
				n += r.calls
				if r.calls >= runs {
					require.Less(t, r.blocks/r.calls, int64(200), r.text)
				}
			}
			require.Less(t, n/runs, int64(50), "statements a run")
		})
	}
}

// measure prints all figures of one kind of database. world returns an empty one.
func measure(world func() *world, runs int, statements func() int) {
	w := world()
	e := w.engine(nil)
	c := &children{w: w, history: filepath.Join(w.TempDir(), "history"), slots: 20, slow: 20 * time.Millisecond, defers: true}
	defer c.killAll()
	alone := w.throughput(e, c, runs, statements)

	// On a busy machine this says more than the rate: on SQLite it is all there is.
	c.killAll()
	w.Logf("CPU of the processes: %v a run", (c.cpu / time.Duration(runs)).Round(10*time.Microsecond))
	w.idle(c, statements)
	w.hops(e)
	c.killAll()

	for _, b := range []struct {
		name              string
		running, stranded int
	}{{"32,768 running jobs", 32_768, 0}, {"100,000 jobs that nobody works", 0, 100_000}} {
		w := world()
		e := w.engine(nil)
		w.backlog(e, b.running, b.stranded)
		c := &children{w: w, history: filepath.Join(w.TempDir(), b.name), slots: 20, slow: 20 * time.Millisecond, defers: true}
		w.Logf("beside %s:", b.name)
		rate := w.throughput(e, c, runs, statements)
		w.Logf("%.2f of the rate alone", rate/alone)
		c.killAll()
	}

	handedBackSoon(world())
	lists(world(), 1_000_000)
}

// throughput starts runs, executes them in three processes, and returns their number in a second.
func (w *world) throughput(e *Engine, c *children, runs int, statements func() int) (rate float64) {
	began := time.Now()
	for i := range runs {
		w.start(e, StartRequest{Run: fmt.Sprint("r", i), Conversation: fmt.Sprint("c", i), Text: "Pay."})
	}
	w.Logf("starts a second: %.0f", float64(runs)/time.Since(began).Seconds())
	w.Logf("statements a start: %.1f", float64(statements())/float64(runs))

	for range 3 {
		c.add()
	}
	began = time.Now()
	for w.busy() > 0 {
		time.Sleep(20 * time.Millisecond)
	}
	rate = float64(runs) / time.Since(began).Seconds()
	w.Logf("runs a second: %.0f", rate)
	w.Logf("statements a run: %.1f", float64(statements())/float64(runs))
	require.Len(w, c.starts("pay"), 2*runs)
	return rate
}

// idle counts the statements of three processes that have nothing to do.
func (w *world) idle(c *children, statements func() int) {
	// The killed processes are handed back first.
	for range 3 {
		c.add()
	}
	const idle = 20 * time.Second
	time.Sleep(idle / 2)
	statements()
	time.Sleep(idle)
	w.Logf("statements a second of an idle process: %.1f", float64(statements())/idle.Seconds()/3)
}

// hops measures from the commit of Start to the end of a run with jobs of calls, alone.
func (w *world) hops(e *Engine) {
	var hops []time.Duration
	for i := range 20 {
		began := time.Now()
		w.wait(e, w.start(e, StartRequest{Conversation: fmt.Sprint("hop", i), Text: "Pay."}))
		hops = append(hops, time.Since(began))
	}
	slices.Sort(hops)
	w.Logf("a run of three hops, of which one has four calls of 20 ms, alone: median %v, longest %v; a hop: %v",
		hops[10], hops[19], (hops[10]-20*time.Millisecond)/3)
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
	if e.queue.dialect().writesInWith {
		return fmt.Sprintf(`generate_series(1, %d) AS numbers (n)`, limit)
	}
	return fmt.Sprintf(`(WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < %d) SELECT n FROM up) AS numbers`,
		limit)
}

// backlog inserts running jobs of a process that is alive, and jobs that nobody works.
func (w *world) backlog(e *Engine, running, stranded int) {
	w.Helper()
	d := e.queue.dialect()
	by := map[bool]string{true: `ARRAY['alive']`, false: `JSONB('["alive"]')`}[d.writesInWith]
	args := map[bool]string{true: `'{}'`, false: `JSONB('{}')`}[d.writesInWith]
	require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
		for _, statement := range []string{
			`INSERT INTO plait_beats (id, beat) VALUES ('alive', ` + tx.Now() + ` + 3600000000)`,
			`INSERT INTO ` + d.jobs + ` (args, kind, max_attempts, queue, state, attempt, attempted_by, attempted_at)
				SELECT ` + args + `, 'plait_call', 5, 'plait_calls', 'running', 1, ` + by + `, ` + d.now + `
				FROM ` + w.numbers(e, running),
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

func TestJobsOfAKilledProcessAreHandedBackSoon(t *testing.T) { onEach(t, handedBackSoon) }

// handedBackSoon measures the time from a kill until another process has finished the run.
func handedBackSoon(w *world) {
	c := &children{w: w, history: filepath.Join(w.TempDir(), "history"), slots: 4, slow: time.Hour, defers: true}
	defer c.killAll()
	e := w.engine(func(o *Options) { o.Heartbeat = childBeat })
	c.add()
	run := w.start(e, StartRequest{Text: "Pay."})
	require.Eventually(w, func() bool {
		_, err := os.Stat(c.history)
		return err == nil && len(c.starts("pay")) == 2
	}, 20*time.Second, 10*time.Millisecond)

	// The other process has served for a while.
	c.slow = 0
	c.add()
	time.Sleep(2500 * time.Millisecond)
	killed := time.Now()
	c.kill(0)
	r := w.wait(e, run)
	require.Equal(w, Done, r.State, r.Reason)
	w.Log("from a kill to the end of the run elsewhere: ", time.Since(killed))
	require.Less(w, time.Since(killed), 30*time.Second) // on an idle machine it takes less than 3
	for _, times := range c.starts("pay") {
		require.Equal(w, 1, times) // it was under way: in doubt, and not repeated
	}
	for _, times := range c.starts("look") {
		require.Equal(w, 2, times)
	}
}

// Jobs that nobody works, and running jobs of others, do not hold up a run. TestThroughput measures it.
func TestBacklogDoesNotHoldUpRuns(t *testing.T) {
	onOne(t, func(w *world) {
		var c counting
		e := w.engine(func(o *Options) {
			defers("count", 4)(o)
			works(c.tool("count"))(o)
		})
		w.backlog(e, 1_000, 3_000)
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "Count."}))
		require.Equal(w, Done, r.State, r.Reason)
		require.EqualValues(w, 4, c.total.Load())
		require.Equal(w, 3_000, w.jobs(e)["available"])
		require.Eventually(w, func() bool { return w.jobs(e)["running"] == 1_000 }, 10*time.Second, 10*time.Millisecond)
	})
}

// Pages of all kinds can be listed. TestThroughput does so over a million runs.
func TestListsOverManyRuns(t *testing.T) {
	onEach(t, func(w *world) { lists(w, 2_000) })
}

// lists lists pages of so many runs, and prints the times.
func lists(w *world, runs int) {
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
}
