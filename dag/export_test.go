package dag

import (
	"flag"
	"math/rand/v2"
	"testing"
)

// LocksFiles reports whether this platform has file locks.
const LocksFiles = locksFiles

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 takes a new one")

// RandomSeed returns the seed of a random test, from -seed or a new one. A test that fails prints it.
func RandomSeed(t testing.TB) uint64 {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run it again with -seed=%d", seed)
		}
	})
	return seed
}
