package sqlite

import (
	"testing"

	"github.com/plait-dev/plait/internal/testkit/crashtest"
)

// PLAIT_KILLS=1000 kills a thousand times.
func TestAcknowledgedAppendsSurviveKills(t *testing.T) {
	t.Parallel()
	crashtest.Appends{Open: openStore, Database: newFiles(t), Kills: 5}.Test(t)
}

func TestKillsShowWhatWasAcknowledgedTooEarly(t *testing.T) {
	crashtest.Appends{Open: openStore, Database: newFiles(t)}.TestControl(t)
}
