//go:build !disk

package storefaults

import "testing"

func TestSimulatedDisk(t *testing.T) {
	t.Skip("SKIPPED: go test -tags disk runs SQLite on a simulated disk, as .ci/run does; its driver takes half a minute to compile")
}
