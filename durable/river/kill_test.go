package river_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/durable/river"
	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/store/postgres"
)

// fleet is a store that serves with River, for tests with processes.
type fleet struct {
	*postgres.DB
	pool *pgxpool.Pool
}

func openFleet(ctx context.Context, url string) (crashtest.Store, error) {
	pool, err := pgxpool.New(ctx, url+"&pool_max_conns=25")
	if err != nil {
		return nil, err
	}
	db, err := postgres.New(ctx, pool, patient(&postgres.Options{Ring: river.Ring(nil)}))
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &fleet{db, pool}, nil
}

// Serve implements crashtest.Server.
func (f *fleet) Serve(ctx context.Context, e *durable.Engine, w *durable.Worker) error {
	return river.Serve(ctx, f.pool, e, w, nil)
}

func (f *fleet) Close() error {
	defer f.pool.Close()
	return f.DB.Close()
}

// openAlone opens a store for one process, whose listeners are all that it needs.
func openAlone(ctx context.Context, url string) (crashtest.Store, error) {
	return postgres.Open(ctx, url+"&pool_max_conns=25", patient(&postgres.Options{}))
}

// PLAIT_RUNS=1000 executes a thousand runs, and measures.
func TestRunsFinishWhileProcessesDieAndFreeze(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: real processes, in -short")
	}
	database := func() string { return newDatabase(t) }
	crashtest.Runs{Open: openFleet, Alone: openAlone, Database: database, Runs: 30, Kills: 2}.Test(t)
}
