// Package seedtest has the seed of random tests and the number of their rounds.
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

// Long reports whether PLAIT_LONG is set: tests then search long for what they may find. .ci/long sets it.
func Long() bool { return os.Getenv("PLAIT_LONG") != "" }

// All reports whether PLAIT_ALL or PLAIT_LONG is set. Tests then try everything of which the everyday run takes a sample:
// each kind of database, each recording, each drawing. .ci/run sets PLAIT_ALL.
func All() bool { return os.Getenv("PLAIT_ALL") != "" || Long() }

// Sample reports whether the i-th of many is tried: each of them with [All], otherwise one of every so many.
func Sample(i, every int) bool { return All() || i%every == 0 }

// Rounds returns long if PLAIT_LONG is set, and everyday otherwise: a number of rounds or the size of an input. Everyday
// takes every branch of what is tested, and as little time as it can. With -short, which the race detector is used with,
// it is quarter of that, but at least 1.
func Rounds(everyday, long int) int {
	switch {
	case Long():
		return long
	case testing.Short():
		return max(1, everyday/4)
	}
	return everyday
}
