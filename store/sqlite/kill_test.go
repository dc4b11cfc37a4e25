package sqlite

import (
	"testing"

	"github.com/plait-dev/plait/internal/crashtest"
)

// PLAIT_KILLS=1000 kills a thousand times.
func TestAcknowledgedAppendsSurviveKills(t *testing.T) {
	crashtest.Appends{Open: openStore, Database: newFiles(t), Kills: 5}.Test(t)
}

func TestKillsShowWhatWasAcknowledgedTooEarly(t *testing.T) {
	crashtest.Appends{Open: openStore, Database: newFiles(t)}.TestControl(t)
}

// PLAIT_RUNS=1000 executes a thousand runs, and measures.
func TestRunsFinishWhileProcessesDieAndFreeze(t *testing.T) {
	crashtest.Runs{Open: openStore, Database: newFiles(t), Runs: 30, Kills: 2}.Test(t)
}
