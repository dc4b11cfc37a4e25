package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

// crowd is a store with one connection. While the test holds that connection, appends wait for it.
type crowd struct {
	*postgres.DB
	url        string
	pool       *pgxpool.Pool
	statements *statements
}

// notWaiting is the number of appends that wait for a connection: one alone, and one in each of two groups. Those after
// them wait for the next group.
const notWaiting = 3

func newCrowd(t *testing.T) crowd {
	c := crowd{url: pgtest.Database(t), statements: &statements{}}
	c.pool = newPool(t, c.url, func(config *pgxpool.Config) {
		config.MaxConns, config.ConnConfig.Tracer = 1, c.statements
	})

	var err error
	c.DB, err = postgres.New(t.Context(), c.pool, noWait)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// talk returns the append of record n to a conversation of its own.
func talk(conversation int, n uint64) store.AppendRequest {
	a := next(n)
	a.Conversation = fmt.Sprint("talk", conversation)
	return a
}

// first makes conversations with one record each.
func (c crowd) first(t *testing.T, conversations int) {
	t.Helper()
	for i := range conversations {
		_, err := c.Append(t.Context(), talk(i, 1))
		require.NoError(t, err)
	}
}

// together runs appends at the same time, in their order.
func (c crowd) together(t *testing.T, appends []store.AppendRequest) []error {
	t.Helper()
	conn, err := c.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()

	var all sync.WaitGroup
	errs := make([]error, len(appends))
	for i, a := range appends {
		all.Go(func() { _, errs[i] = c.Append(t.Context(), a) })
		require.Eventually(t, func() bool { return c.Began()+c.Waiting() == i+1 }, postgres.Patience, 100*time.Microsecond)
	}

	c.statements.Store(0)
	conn.Release()
	all.Wait()
	return errs
}

func TestAppendsThatWaitShareAStatement(t *testing.T) {
	c := newCrowd(t)
	const conversations = notWaiting + 64
	c.first(t, conversations)

	var appends []store.AppendRequest
	for i := range conversations {
		appends = append(appends, talk(i, 2))
	}
	for _, err := range c.together(t, appends) {
		require.NoError(t, err)
	}
	require.EqualValues(t, notWaiting+1, c.statements.Load())

	for i := range conversations {
		h, err := c.Head(t.Context(), fmt.Sprint("talk", i), "main")
		require.NoError(t, err)
		require.Equal(t, store.Head{Name: "main", Version: 2, Nodes: []node.ID{id(2)}}, h)
	}
	require.NoError(t, c.Check(t.Context()))
}

func TestLargeAppendsShareNoStatement(t *testing.T) {
	c := newCrowd(t)
	c.first(t, notWaiting+4)
	var appends []store.AppendRequest
	for i := range notWaiting + 4 {
		a := talk(i, 2)
		a.Records[0] = record(2, 400_000, 1)
		appends = append(appends, a)
	}
	for _, err := range c.together(t, appends) {
		require.NoError(t, err)
	}
	require.EqualValues(t, notWaiting+2, c.statements.Load(), "groups of 1 MiB hold two of 400 kB")
}

func TestAppendThatFailsDoesNotFailItsGroup(t *testing.T) {
	c := newCrowd(t)
	const conversations = notWaiting + 8
	c.first(t, conversations)
	var appends []store.AppendRequest
	for i := range conversations {
		appends = append(appends, talk(i, 2))
	}

	// In the group: a stored ID with another line, a version that was moved, and one head twice.
	const duplicate, moved, twice = notWaiting, notWaiting + 1, notWaiting + 2
	appends[duplicate].Records = []store.Record{record(1, 10)}
	appends[duplicate].Nodes = []node.ID{id(1)}
	appends[moved].Expect = 7
	again := talk(twice, 2)
	again.Records[0] = record(3, 10, 1)
	again.Nodes = []node.ID{id(3)}
	appends = append(appends, again)

	errs := c.together(t, appends)
	require.ErrorIs(t, errs[duplicate], dag.ErrDuplicateID)
	var conflict *store.ConflictError
	require.ErrorAs(t, errs[moved], &conflict)
	require.EqualValues(t, 1, conflict.Current.Version)

	// One of the two wins.
	winner, loser := errs[twice], errs[conversations]
	if winner != nil {
		winner, loser = loser, winner
	}
	require.NoError(t, winner)
	require.ErrorAs(t, loser, &conflict)
	require.EqualValues(t, 2, conflict.Current.Version)

	for i := range conversations {
		if i != duplicate && i != moved && i != twice {
			require.NoError(t, errs[i])
		}
	}
	require.NoError(t, c.Check(t.Context()))
}

func TestGroupDoesNotWaitForALock(t *testing.T) {
	for name, lock := range map[string]string{
		"of a head":         `SELECT FROM plait_heads h JOIN plait_conversations c ON c.num = h.conv WHERE c.name = $1 FOR UPDATE OF h`,
		"of a conversation": `SELECT FROM plait_conversations WHERE name = $1 FOR UPDATE`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			c.first(t, notWaiting+4)
			tx, err := newPool(t, c.url, func(*pgxpool.Config) {}).Begin(t.Context())
			require.NoError(t, err)
			const locked = notWaiting + 1
			_, err = tx.Exec(t.Context(), lock, fmt.Sprint("talk", locked))
			require.NoError(t, err)

			var appends []store.AppendRequest
			for i := range notWaiting + 4 {
				appends = append(appends, talk(i, 2))
			}
			for i, err := range c.together(t, appends) {
				if i != locked {
					require.NoError(t, err)
					continue
				}
				var server *pgconn.PgError
				require.ErrorAs(t, err, &server)
				require.Equal(t, "55P03", server.Code, "lock not available")
			}
			require.NoError(t, tx.Rollback(t.Context()))
		})
	}
}

func TestCallersMayLeaveTheirGroup(t *testing.T) {
	c := newCrowd(t)
	c.first(t, notWaiting+4)
	conn, err := c.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()

	// All callers give up while no connection is free, those of running groups too.
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	errs := make([]error, notWaiting+4)
	for i := range errs {
		all.Go(func() { _, errs[i] = c.Append(ctx, talk(i, 2)) })
	}
	require.Eventually(t, func() bool { return c.Waiting() == 4 }, postgres.Patience, 100*time.Microsecond)
	cancel()
	all.Wait()
	for _, err := range errs {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Zero(t, c.Waiting())

	conn.Release()
	for i := range errs {
		_, err := c.Append(t.Context(), talk(i, 2))
		require.NoError(t, err)
	}
	require.NoError(t, c.Check(t.Context()))
}
