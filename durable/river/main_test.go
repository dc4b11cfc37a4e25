package river_test

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/durable/river"
	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/internal/pgtest"
	"github.com/plait-dev/plait/store/postgres"
)

func TestMain(m *testing.M) {
	crashtest.Main(openFleet)
	skipExamples()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := pgtest.Stop(); err != nil {
			println(err.Error())
			code = 1
		}
		os.Exit(code)
	}))
}

// skipExamples skips the examples where no server is installed. An example cannot do so itself.
func skipExamples() {
	flag.Parse()
	if !pgtest.Missing() {
		return
	}
	println("SKIPPED: examples, because no PostgreSQL server is installed")
	if err := flag.Set("test.skip", "^Example"); err != nil {
		panic(err)
	}
}

// quiet are settings that log nothing.
func quiet() durable.Settings {
	return durable.Settings{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// patience is how long tests wait for what must happen. Only a test that hangs waits for so long.
const patience = 5 * time.Minute

// patient returns options whose guards do not end the transactions of a busy machine. It may pause a process in one,
// for longer than the defaults allow.
func patient(opts *postgres.Options) *postgres.Options {
	o := *opts
	o.IdleTimeout, o.LockTimeout, o.StatementTimeout = patience, patience, patience
	return &o
}

// newDatabase returns the URL of a new database with River's tables.
func newDatabase(t testing.TB) string {
	t.Helper()
	url := pgtest.Database(t)
	require.NoError(t, river.Migrate(t.Context(), newPool(t, url), nil))
	return url
}

// newPool returns a pool that is closed when the test ends.
func newPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url+"&pool_max_conns=20")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// openStore opens a store whose wake-ups are jobs, with listeners of its own: it learns of other stores' commits by
// River alone.
func openStore(t testing.TB, pool *pgxpool.Pool, opts *river.Options) *postgres.DB {
	t.Helper()
	return openWith(t, pool, &postgres.Options{Ring: river.Ring(opts)})
}

func openWith(t testing.TB, pool *pgxpool.Pool, opts *postgres.Options) *postgres.DB {
	t.Helper()
	db, err := postgres.New(context.Background(), pool, patient(opts))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
