package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/store/postgres"
)

// deadlocks counts the statements that the server ended because of a deadlock.
type deadlocks struct{ atomic.Int64 }

func (d *deadlocks) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (d *deadlocks) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if d.is(data.Err) {
		d.Add(1)
	}
}

// is reports whether an error is that of a statement in a deadlock.
func (d *deadlocks) is(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "40P01"
}

// impatient returns a pool whose connections look for a deadlock as soon as they wait, so that it is a statement of this
// pool that the server ends.
func impatient(t *testing.T, url string, found *deadlocks) *pgxpool.Pool {
	return newPool(t, url, func(c *pgxpool.Config) {
		c.ConnConfig.Tracer = found
		c.ConnConfig.RuntimeParams["deadlock_timeout"] = "1ms"
		c.ConnConfig.RuntimeParams["application_name"] = t.Name()
	})
}

func TestTransactionInADeadlockIsRunAgain(t *testing.T) {
	t.Parallel()
	var found deadlocks
	pool := impatient(t, pgtest.Database(t), &found)
	var transactions sqlstore.DB
	db, err := postgres.NewWrapped(t.Context(), pool, func(db sqlstore.DB) sqlstore.DB {
		transactions = db
		return db
	})
	require.NoError(t, err)
	defer db.Close()
	_, err = pool.Exec(t.Context(), `CREATE TABLE counters (id INT PRIMARY KEY, n INT); INSERT INTO counters VALUES (1, 0), (2, 0)`)
	require.NoError(t, err)

	// Two transactions change the same rows in opposite order. At first, each waits until the other has one of them.
	var all, both sync.WaitGroup
	both.Add(2)
	errs := make([]error, 2)
	for i := range errs {
		all.Go(func() {
			first := true
			errs[i] = transactions.Write(t.Context(), func(tx sqlstore.Tx) error {
				for _, row := range []int64{int64(1 + i), int64(2 - i)} {
					if _, err := tx.Exec(t.Context(), `UPDATE counters SET n = n + 1 WHERE id = $1`, row); err != nil {
						return err
					}
					if first {
						first = false
						both.Done()
						both.Wait()
					}
				}
				return nil
			})
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Positive(t, found.Load(), "there was a deadlock")

	var least int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT MIN(n) FROM counters`).Scan(&least))
	require.Equal(t, 2, least, "each transaction has changed each row")
}

func TestAppendInADeadlockIsRunAgain(t *testing.T) {
	var found deadlocks
	url := pgtest.Database(t)
	db, err := postgres.New(t.Context(), impatient(t, url, &found), postgres.Patient)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	appendAll(t, db, 1, 3)

	// Two transactions have a record of the append each, as if they had just inserted it.
	others := newPool(t, url, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["deadlock_timeout"] = "1s"
		c.ConnConfig.RuntimeParams["application_name"] = t.Name()
	})
	insert := func(n uint64) pgx.Tx {
		tx, err := others.Begin(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		r := record(n, 1000, n-1)
		_, err = tx.Exec(t.Context(), `INSERT INTO plait_nodes (conv, id, links, sum, line) SELECT num, $1, $2, $3, $4 FROM plait_conversations`,
			r.ID[:], r.Links[0][:], r.Sum[:], r.Line)
		require.NoError(t, err)
		return tx
	}
	one, other := insert(3), insert(4)
	waiting := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			var found int
			// Other tests wait for locks of the same server.
			err := others.QueryRow(t.Context(), `SELECT COUNT(DISTINCT pid) FROM pg_locks WHERE NOT granted AND pid IN (
				SELECT pid FROM pg_stat_activity WHERE application_name = $1)`, t.Name()).Scan(&found)
			return err == nil && found == n
		}, postgres.Patience, time.Millisecond)
	}

	// The append moves the head, and waits for the first record. The second transaction waits for the head. Then the
	// append goes on to the second record.
	var all sync.WaitGroup
	var appended, moved error
	all.Go(func() {
		a := next(3)
		a.Records, a.Nodes = append(a.Records, next(4).Records...), next(4).Nodes
		_, appended = db.Append(context.Background(), a)
	})
	waiting(1)
	all.Go(func() {
		_, moved = other.Exec(context.Background(), `UPDATE plait_heads SET version = version`)

		// The append may be at the head a second time before this one wakes up. Then it looked for a deadlock too early,
		// and the server ends this statement.
		if found.is(moved) {
			moved = nil
		}
		moved = errors.Join(moved, other.Rollback(context.Background()))
	})
	waiting(2)
	require.NoError(t, one.Rollback(t.Context()))
	all.Wait()

	require.NoError(t, moved)
	require.NoError(t, appended)
	require.Positive(t, found.Load(), "there was a deadlock")
	head, err := db.Head(t.Context(), "talk", "main")
	require.NoError(t, err)
	require.EqualValues(t, 3, head.Version)
	require.NoError(t, db.Check(t.Context()))
}
