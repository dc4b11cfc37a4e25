package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

func TestProcessesShareDurableRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	crashtest.TestShared(t, func() store.Runs {
		db, err := sqlite.Open(context.Background(), path, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	})
}
