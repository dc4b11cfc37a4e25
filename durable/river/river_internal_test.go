package river

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/internal/pgtest"
	"github.com/plait-dev/plait/store"
)

// other is a job of the program.
type other struct{}

func (other) Kind() string { return "other" }

func TestOnlyOldJobsOfWakeUpsAreDeleted(t *testing.T) {
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, pgtest.Database(t))
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, Migrate(ctx, pool, nil))
	require.NoError(t, Migrate(ctx, pool, nil), "a second time")
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	require.NoError(t, err)

	states := []string{"completed", "discarded", "cancelled", "completed", "running", "available"}
	require.NoError(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var wakes []store.Wake
		for i := range states {
			wakes = append(wakes, store.Wake{Kind: store.WakeRun, Generation: i})
		}
		if err := Ring(nil)(ctx, tx, append(wakes, store.Wake{Kind: store.WakeStopped})); err != nil {
			return err
		}
		_, err := client.InsertTx(ctx, tx, other{}, nil)
		return err
	}))

	// The fourth has ended just now; the others and the program's job an hour ago, if they have ended.
	for i, state := range append(states, "completed") {
		_, err := pool.Exec(ctx, `UPDATE river_job SET state = $2::text::river_job_state, finalized_at = CASE
				WHEN $2::text IN ('running', 'available') THEN NULL
				WHEN $1 = 4 THEN now()
				ELSE now() - INTERVAL '1 hour'
			END WHERE id = $1`, i+1, state)
		require.NoError(t, err)
	}
	require.NoError(t, deleteJobs(ctx, client, time.Minute))

	rows, err := pool.Query(ctx, `SELECT id FROM river_job ORDER BY id`)
	require.NoError(t, err)
	left, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	require.Equal(t, []int64{4, 5, 6, 7}, left)
}

func TestOnlyAnOldJobHasATimeout(t *testing.T) {
	h := &handler{engine: &durable.Engine{}, worker: &durable.Worker{Settings: durable.Settings{Lease: time.Minute}}}
	aged := func(age time.Duration) *river.Job[wakeUp] {
		return &river.Job[wakeUp]{JobRow: &rivertype.JobRow{AttemptedAt: new(time.Now().Add(-age))}}
	}
	require.EqualValues(t, -1, h.Timeout(aged(0)))
	require.EqualValues(t, -1, h.Timeout(aged(9*time.Minute)))
	require.Equal(t, 10*time.Minute, h.Timeout(aged(11*time.Minute)))
	require.Equal(t, 10*time.Minute, h.Timeout(aged(24*time.Hour)))

	// The longer lease counts, and an engine alone has its default.
	require.Equal(t, 5*time.Minute, (&handler{engine: &durable.Engine{}}).Timeout(aged(time.Hour)))
}

// If the clock of this machine is ahead of the database's, a new job looks like an old one, and River sets a deadline.
func TestDeadlineOfAJobDoesNotInterruptItsWork(t *testing.T) {
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	ctx, end := withoutTimeout(late)
	<-late.Done()
	require.NoError(t, ctx.Err())
	end()
	require.ErrorIs(t, ctx.Err(), context.Canceled)

	stopped, stop := context.WithCancel(t.Context())
	ctx, end = withoutTimeout(stopped)
	defer end()
	stop()
	<-ctx.Done()
}

// TestJobsKeepTheTextsOfTheirKeys: a job with NUL in it would undo the transaction of the run.
func TestJobsKeepTheTextsOfTheirKeys(t *testing.T) {
	odd := "a\x00\xff\x1a"
	want := store.Wake{
		Kind: store.WakeTask, Key: store.Key{Run: "r" + odd, Continuation: "p" + odd, Call: odd}, Agent: odd, Tool: odd, Generation: 2,
	}
	job, err := json.Marshal(argsOf(want))
	require.NoError(t, err)
	require.NotContains(t, string(job), `\u0000`)
	var args wakeUp
	require.NoError(t, json.Unmarshal(job, &args))
	require.Equal(t, want, args.wake())
}
