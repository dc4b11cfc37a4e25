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

	"github.com/plait-dev/plait/internal/pgtest"
	"github.com/plait-dev/plait/store"
)

// TestThroughput measures. PLAIT_RUNS=1000 executes a thousand runs with four calls each, in three processes.
func TestThroughput(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("PLAIT_RUNS"))
	if err != nil {
		t.Skip("PLAIT_RUNS is the number of runs")
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

	const idle = 5 * time.Second
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
