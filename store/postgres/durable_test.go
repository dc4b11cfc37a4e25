package postgres_test

import (
	"testing"

	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/internal/pgtest"
	"github.com/plait-dev/plait/store"
)

func TestProcessesShareDurableRuns(t *testing.T) {
	url := pgtest.Database(t)
	crashtest.TestShared(t, func() store.Runs { return openAt(t, url, nil) })
}
