package postgres_test

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/plait-dev/plait/internal/testkit/crashtest"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/storetest"
)

func TestMain(m *testing.M) {
	crashtest.Main(openStore)

	// Most tests wait for the server.
	flag.Parse()
	_ = flag.Set("test.parallel", "8")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := pgtest.Stop(); err != nil {
			println(err.Error())
			code = 1
		}
		os.Exit(code)
	}))
}

// noWait are options with which a statement does not wait for a lock.
var noWait = &postgres.Options{
	IdleTimeout: postgres.Patience, LockTimeout: time.Millisecond, StatementTimeout: postgres.Patience,
}

// openStore opens a database for tests with processes.
func openStore(ctx context.Context, url string) (crashtest.Store, error) {
	return postgres.Open(ctx, url+"&pool_max_conns=20", postgres.Patient)
}

// openNew opens a new database, and closes it when the test ends.
func openNew(t testing.TB, opts *postgres.Options) *postgres.DB {
	t.Helper()
	return openAt(t, pgtest.Database(t), opts)
}

// openAt opens a database, and closes it when the test ends. No options are those of a patient test.
func openAt(t testing.TB, url string, opts *postgres.Options) *postgres.DB {
	t.Helper()
	if opts == nil {
		opts = postgres.Patient
	}
	db, err := postgres.Open(context.Background(), url, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// openEmptied opens a database that the cases of a suite share, without what the cases before have stored.
func openEmptied(t *testing.T, url string) *postgres.DB {
	t.Helper()
	db := openAt(t, url, nil)
	_, err := db.Pool().Exec(t.Context(), `TRUNCATE plait_conversations, plait_nodes, plait_heads, plait_index,
		plait_inbox, plait_beats`)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Check(context.Background())) })
	return db
}

func TestTransactor(t *testing.T) {
	t.Parallel()
	storetest.RunTransactor(t, func(t *testing.T) store.Transactor { return openNew(t, nil) })
}

func TestReopened(t *testing.T) {
	url := pgtest.Database(t)
	storetest.RunReopened(t, func(t *testing.T) store.Driver { return openAt(t, url, nil) })
}

func TestDriver(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	storetest.Run(t, func(t *testing.T) store.Driver { return openEmptied(t, url) })
}
