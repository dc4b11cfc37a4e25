package river_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/storetest"
)

func TestRunsWithRing(t *testing.T) {
	pool := newPool(t, newDatabase(t))
	storetest.RunRuns(t, func(t *testing.T) store.Runs {
		db := openStore(t, pool, nil)
		_, err := pool.Exec(t.Context(), `TRUNCATE plait_conversations, plait_nodes, plait_heads, plait_blobs,
			plait_uses, plait_runs, plait_pauses, plait_tasks, river_job`)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Check(context.Background())) })
		return db
	})
}
