//go:build disk

package storefaults

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
	"github.com/plait-dev/plait/store/storetest"
)

// openFile opens a store in a file, with the driver of this module in place of the one that store/sqlite imports.
func openFile(t *testing.T) *sqlite.DB {
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "sessions.db"))
	pool, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String())
	require.NoError(t, err)
	db, err := sqlite.New(context.Background(), pool, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Check(context.Background()))
		require.NoError(t, db.Close())
		require.NoError(t, pool.Close())
	})
	return db
}

// openSimulated opens a store on a simulated disk, with one connection.
func openSimulated(t *testing.T) *sqlite.DB {
	db, err := newDisk().open(8)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Check(context.Background()))
		require.NoError(t, db.close())
	})
	return db.DB
}

func TestDriver(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Driver { return openFile(t) })
}

func TestDriverOnSimulatedDisk(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Driver { return openSimulated(t) })
}

func TestTransactor(t *testing.T) {
	storetest.RunTransactor(t, func(t *testing.T) store.Transactor { return openFile(t) })
}

func TestTransactorOnSimulatedDisk(t *testing.T) {
	storetest.RunTransactor(t, func(t *testing.T) store.Transactor { return openSimulated(t) })
}
