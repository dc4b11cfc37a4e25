package node_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// TestIDsIncrease makes IDs in several goroutines. Each goroutine gets increasing UUIDv7s, and no two are the same.
func TestIDsIncrease(t *testing.T) {
	const goroutines, each = 4, 2000
	lists := make([][]node.ID, goroutines)
	var wait sync.WaitGroup
	for g := range lists {
		wait.Go(func() {
			for range each {
				lists[g] = append(lists[g], node.Source{}.ID())
			}
		})
	}
	wait.Wait()

	compare := func(a, b node.ID) int { return slices.Compare(a[:], b[:]) }
	for _, list := range lists {
		require.True(t, slices.IsSortedFunc(list, compare))
		require.EqualValues(t, 7, list[0].Version())
		require.Equal(t, "RFC4122", list[0].Variant().String())
	}

	all := slices.Concat(lists...)
	slices.SortFunc(all, compare)
	require.Len(t, slices.Compact(all), goroutines*each)

	// The last 62 bits are random.
	random := map[[8]byte]bool{}
	for _, id := range all {
		random[[8]byte(id[8:])] = true
	}
	require.Len(t, random, goroutines*each)
}

// TestClockOfASourceDoesNotReachIDs makes nodes with a clock in the future and with one before 1970. IDs that are made
// then have the time of the system's clock.
func TestClockOfASourceDoesNotReachIDs(t *testing.T) {
	future := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{future, time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC)} {
		source := node.Source{Now: func() time.Time { return at }}

		n, err := node.New(source, node.Custom{Name: "note", JSON: "{}"}, node.Meta{})
		require.NoError(t, err)
		require.True(t, at.Equal(n.Time()))

		for _, id := range []node.ID{n.ID(), source.ID(), node.Source{}.ID()} {
			seconds, _ := id.Time().UnixTime()
			require.Less(t, seconds, future.Unix(), "a node of %d", at.Year())
		}
	}
}
