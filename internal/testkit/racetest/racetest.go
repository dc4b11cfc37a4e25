// Package racetest tells tests whether they run under the race detector.
package racetest

import "testing"

// SkipCounting skips a test with counts of allocations. Under the race detector, sync.Pool drops values at random, and
// the counts differ from run to run.
func SkipCounting(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("SKIPPED: under the race detector, the number of allocations is random")
	}
}
