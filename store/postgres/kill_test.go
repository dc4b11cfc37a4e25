package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/crashtest"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// newDatabases returns a function that returns the URL of a new database each time.
func newDatabases(t *testing.T) func() string {
	return func() string { return pgtest.Database(t) }
}

// PLAIT_KILLS=1000 kills a thousand times.
func TestAcknowledgedAppendsSurviveKills(t *testing.T) {
	t.Parallel()
	crashtest.Appends{Open: openStore, Database: newDatabases(t), Kills: 5}.Test(t)
}

func TestCrashedServerLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: a server is started several times, in -short")
	}
	pgtest.Database(t) // skips where there is no server
	cluster, err := pgtest.Start()
	require.NoError(t, err)
	defer func() { require.NoError(t, cluster.Remove()) }()

	t.Run("an open program", func(t *testing.T) { surviveACrash(t, cluster) })
	t.Run("acknowledged appends", func(t *testing.T) {
		database := func() string {
			url, err := cluster.Database()
			require.NoError(t, err)
			return url
		}
		crashtest.Appends{Open: openStore, Database: database, Kills: seedtest.Rounds(2, 20), Server: cluster}.Test(t)
	})
}
