package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

// heldCommit is a database whose transactions for writing wait before they commit, after those that make the tables.
type heldCommit struct {
	sqlstore.DB
	ready   atomic.Bool
	written chan struct{} // receives before each wait
	commit  chan struct{} // closed to commit
}

func (h *heldCommit) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	return h.DB.Write(ctx, func(tx sqlstore.Tx) error {
		if err := f(tx); err != nil || !h.ready.Load() {
			return err
		}
		select {
		case h.written <- struct{}{}:
		case <-h.commit:
		}
		<-h.commit
		return nil
	})
}

// unreachedRecord makes a database with a conversation of three records. No head reaches the last one. It returns the
// append of a record that is linked to it.
func unreachedRecord(t *testing.T) (url string, a store.AppendRequest) {
	url = pgtest.Database(t)
	db := openAt(t, url, nil)
	appendAll(t, db, 1, 3)
	side := store.AppendRequest{
		Conversation: "talk", Head: "side", Records: []store.Record{record(3, 1000, 2)}, Nodes: []node.ID{id(3)},
	}
	_, err := db.Append(t.Context(), side)
	require.NoError(t, err)
	require.NoError(t, db.RemoveHead(t.Context(), "talk", "side", 1))

	a = next(4)
	a.Expect = 2
	return url, a
}

// waiting waits until a connection with this name waits for a lock.
func waiting(t *testing.T, pool *pgxpool.Pool, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var found bool
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE NOT granted AND application_name = $1)`, name).Scan(&found)
		return err == nil && found
	}, postgres.Patience, time.Millisecond)
}

// A statement that waits for Prune has begun before its end, and still sees what was removed.
func TestAppendThatWaitsForPruneIsRefused(t *testing.T) {
	for name, send := range map[string]func(*postgres.DB, store.AppendRequest) error{
		"one statement": func(db *postgres.DB, a store.AppendRequest) error {
			_, _, err := db.AppendIf(context.Background(), a, `SELECT 1`)
			return err
		},
		"in a transaction": func(db *postgres.DB, a store.AppendRequest) error {
			return db.Update(context.Background(), func(tx store.Tx) error {
				_, err := tx.Append(context.Background(), a)
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, a := unreachedRecord(t)
			pool := newPool(t, url, func(*pgxpool.Config) {})
			held := heldCommit{written: make(chan struct{}), commit: make(chan struct{})}
			pruning, err := postgres.NewWrapped(t.Context(), pool, func(db sqlstore.DB) sqlstore.DB {
				held.DB = db
				return &held
			})
			require.NoError(t, err)
			defer pruning.Close()
			held.ready.Store(true)

			pruned := make(chan error, 1)
			go func() {
				_, err := pruning.Prune(context.Background(), "talk", false)
				pruned <- err
			}()
			<-held.written
			appended := make(chan error, 1)
			db := openAt(t, url+"&application_name=append", nil)
			go func() { appended <- send(db, a) }()
			waiting(t, pool, "append")
			close(held.commit)

			require.NoError(t, <-pruned)
			require.ErrorIs(t, <-appended, node.ErrParent)
			require.NoError(t, db.Check(t.Context()))
		})
	}
}

// A statement may get the lock without waiting, and yet have begun before Prune.
func TestAppendThatBeganBeforePruneIsRefused(t *testing.T) {
	url, a := unreachedRecord(t)
	pool := newPool(t, url, func(*pgxpool.Config) {})
	holding, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = holding.Rollback(context.Background()) }()
	_, err = holding.Exec(t.Context(), `SELECT PG_ADVISORY_XACT_LOCK(1)`)
	require.NoError(t, err)

	db := openAt(t, url+"&application_name=append", nil)
	appended := make(chan error, 1)
	go func() {
		_, _, err := db.AppendIf(context.Background(), a, `SELECT PG_ADVISORY_XACT_LOCK(1)`)
		appended <- err
	}()
	waiting(t, pool, "append")
	removed, err := db.Prune(t.Context(), "talk", false)
	require.NoError(t, err)
	require.Equal(t, 1, removed.Records)
	require.NoError(t, holding.Rollback(t.Context()))

	require.ErrorIs(t, <-appended, node.ErrParent)
	require.NoError(t, db.Check(t.Context()))
}
