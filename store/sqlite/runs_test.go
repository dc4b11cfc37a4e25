package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
	"github.com/plait-dev/plait/store/storetest"
)

func TestRuns(t *testing.T) {
	storetest.RunRuns(t, func(t *testing.T) store.Runs {
		db, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "runs.db"), nil)
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, db.Check(context.Background()))
			require.NoError(t, db.Close())
		})
		return db
	})
}
