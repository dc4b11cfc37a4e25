package sqlite

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/store"
)

// jumping is the clock of a machine that somebody sets.
type jumping struct {
	mu     sync.Mutex
	offset time.Duration        // guarded by mu
	next   func() time.Duration // of each reading, unless it is nil; guarded by mu
}

func (j *jumping) now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.next != nil {
		j.offset = j.next()
	}
	return time.Now().Add(j.offset)
}

func (j *jumping) set(offset time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.offset = offset
}

func openJumping(t *testing.T, j *jumping) crashtest.Store {
	t.Helper()
	same := func(db sqlstore.DB) sqlstore.DB { return db }
	db, err := openClock(t.Context(), newFiles(t)(), same, j.now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// The clock of the store is the machine's. If it jumps, leases end early or late, and no claim holds twice.
func TestLeaseWhenTheClockJumps(t *testing.T) {
	ctx := t.Context()
	claim := func(db store.Runs, worker string) []store.ClaimedRun {
		claimed, err := db.ClaimRuns(ctx, store.ClaimRunsRequest{
			Worker: worker, Agents: []string{"a"}, Lease: time.Minute,
		})
		require.NoError(t, err)
		return claimed
	}
	begin := func(db store.Runs) {
		_, err := db.Begin(ctx, store.BeginRequest{Run: "run", Agent: "a", Append: store.AppendRequest{
			Conversation: "talk", Head: "main",
		}})
		require.NoError(t, err)
	}

	t.Run("forward", func(t *testing.T) {
		var clock jumping
		db := openJumping(t, &clock)
		begin(db)
		first := claim(db, "first")[0].Lease
		require.Empty(t, claim(db, "second"))

		// The lease has ended. Its worker does not know, and learns it at its next step.
		clock.set(time.Hour)
		require.Len(t, claim(db, "second"), 1)
		_, err := db.Commit(ctx, store.Step{Lease: first, End: store.RunDone})
		require.ErrorIs(t, err, store.ErrLeaseLost)
		require.ErrorIs(t, db.Renew(ctx, first, time.Minute), store.ErrLeaseLost)
	})

	t.Run("back", func(t *testing.T) {
		var clock jumping
		db := openJumping(t, &clock)
		begin(db)
		first := claim(db, "first")[0].Lease

		// The lease lasts until the clock has caught up, or until its worker renews it or gives it up.
		clock.set(-time.Hour)
		require.Empty(t, claim(db, "second"))
		require.NoError(t, db.Renew(ctx, first, time.Minute))
		clock.set(-time.Hour + 2*time.Minute)
		second := claim(db, "second")
		require.Len(t, second, 1)
		require.NoError(t, db.Release(ctx, second[0].Lease, 0, true))
		clock.set(-2 * time.Hour)
		require.Empty(t, claim(db, "third"), "it was given back in the future")
		clock.set(0)
		require.Len(t, claim(db, "third"), 1)
	})
}

// The clock jumps by up to an hour, forward or back, at every transaction. Work that was claimed or given back in the
// future waits until the clock is there: the next process finishes it then.
func TestRunsFinishAfterTheClockHasJumped(t *testing.T) {
	same := func(db sqlstore.DB) sqlstore.DB { return db }
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 0))
		clock := &jumping{next: func() time.Duration {
			jumps := []time.Duration{-time.Hour, 0, time.Hour, time.Duration(random.Int64N(int64(time.Hour)))}
			return jumps[random.IntN(len(jumps))]
		}}
		later := &jumping{offset: 2 * time.Hour}

		p := points(t)
		p.Open = func(ctx context.Context, path string, _ func(sqlstore.DB) sqlstore.DB) (crashtest.Store, error) {
			return openClock(ctx, path, same, later.now)
		}
		path := p.Database()
		db, err := openClock(t.Context(), path, same, clock.now)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		require.Empty(t, p.Survive(t, path, db, func() {}), "seed %d", seed)
	}
}
