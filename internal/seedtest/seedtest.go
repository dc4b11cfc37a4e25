// Package seedtest gives random tests the seed of their generators.
package seedtest

import (
	"os"
	"strconv"
	"testing"
)

// First returns the seed of a random test: the number in PLAIT_SEED, or 1. A test with several rounds uses First,
// First + 1 and so on.
//
// Without the variable, a test does the same each time: if it fails, the change at hand broke it. To search for unknown
// defects, .ci/explore sets the variable to one number after the other.
func First(t testing.TB) uint64 {
	t.Helper()
	value := os.Getenv("PLAIT_SEED")
	if value == "" {
		return 1
	}
	first, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("PLAIT_SEED must be a number: %v", err)
	}
	return first
}
