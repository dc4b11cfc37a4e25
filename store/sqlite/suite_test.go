package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
	"github.com/plait-dev/plait/store/storetest"
)

// openChecked opens a new database, which is checked when the test ends.
func openChecked(t *testing.T) *sqlite.DB {
	return openCheckedAt(t, filepath.Join(t.TempDir(), "sessions.db"))
}

func openCheckedAt(t *testing.T, path string) *sqlite.DB {
	// A watcher is woken by the appends of its own program, and need not look for them.
	db, err := sqlite.Open(context.Background(), path, &sqlite.Options{Poll: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Check(context.Background()))
		require.NoError(t, db.Close())
	})
	return db
}

func TestDriver(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Driver { return openChecked(t) })
}

func TestReopened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sessions.db")
	storetest.RunReopened(t, func(t *testing.T) store.Driver { return openCheckedAt(t, path) })
}

func TestTransactor(t *testing.T) {
	storetest.RunTransactor(t, func(t *testing.T) store.Transactor { return openChecked(t) })
}

func TestDriverInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Driver {
		db, err := sqlite.Open(context.Background(), ":memory:", nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	})
}
