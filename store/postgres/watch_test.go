package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

// looks counts the reads of a database.
type looks struct {
	sqlstore.DB
	snapshots, reads atomic.Int64
}

func (l *looks) Snapshot(ctx context.Context, f func(sqlstore.Tx) error) error {
	l.snapshots.Add(1)
	return l.DB.Snapshot(ctx, f)
}

func (l *looks) Read(ctx context.Context, f func(sqlstore.Tx) error) error {
	l.reads.Add(1)
	return l.DB.Read(ctx, f)
}

// All watchers of a process share one look in each interval, and each still sees what another process does.
func TestWatchersShareOnePoll(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	var counted *looks
	db, err := postgres.NewWrapped(t.Context(), newPool(t, url, func(*pgxpool.Config) {}), func(db sqlstore.DB) sqlstore.DB {
		counted = &looks{DB: db}
		return counted
	})
	require.NoError(t, err)
	defer db.Close()
	other, err := postgres.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer other.Close()

	const watchers, conversations = 60, 20
	key := func(n int) string { return fmt.Sprint("c", n%conversations) }
	talks := map[string]*store.Conversation{}
	for n := range conversations {
		c, err := store.New(other).Conversation(t.Context(), key(n))
		require.NoError(t, err)
		require.NoError(t, c.Append(t.Context(), dag.New().User("Hello.")))
		talks[key(n)] = c
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all, begun sync.WaitGroup
	begun.Add(watchers)
	var moved [watchers]atomic.Bool
	for n := range watchers {
		all.Go(func() {
			for h, err := range db.Watch(ctx, key(n)) {
				switch {
				case err != nil:
				case h.Version == 1:
					begun.Done()
				default:
					moved[n].Store(true)
				}
			}
		})
	}
	begun.Wait()

	// Nobody looks more than a second time while nothing happens.
	before := counted.reads.Load()
	require.Eventually(t, func() bool { return counted.reads.Load() >= before+3 }, time.Minute, time.Millisecond)
	require.LessOrEqual(t, counted.snapshots.Load(), int64(2*watchers))

	for _, c := range talks {
		require.NoError(t, c.Append(t.Context(), c.DAG().User("More.")))
	}
	for n := range watchers {
		require.Eventually(t, moved[n].Load, time.Minute, time.Millisecond)
	}
	require.LessOrEqual(t, counted.snapshots.Load(), int64(4*watchers))
	stop()
	all.Wait()
}
