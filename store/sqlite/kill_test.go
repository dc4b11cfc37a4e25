//go:build unix

package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/plait-dev/plait/internal/crashtest"
)

// newFiles returns a function that returns the path of a new file each time.
func newFiles(t *testing.T) func() string {
	dir, n := t.TempDir(), 0
	return func() string {
		n++
		return filepath.Join(dir, fmt.Sprint(n, ".db"))
	}
}

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
