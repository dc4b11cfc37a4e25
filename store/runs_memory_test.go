package store_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/storetest"
)

func TestMemoryKeepsTheRulesOfRuns(t *testing.T) {
	storetest.RunRuns(t, func(*testing.T) store.Runs { return store.Memory() })
}

func TestNumberOfRunsToRemoveAtATimeIsLimited(t *testing.T) {
	for limit, want := range map[int]int{-1: 100, 0: 100, 1: 1, 10_000: 10_000, 10_001: 10_000} {
		require.Equal(t, want, store.PruneRunsRequest{Limit: limit}.Max())
	}
}

// The suite cannot wait. Here time is not real.
func TestSweepWakesUnclaimedWorkLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, runs := context.Background(), store.Memory()
		begin := store.BeginRequest{Run: "r", Agent: "agent", Append: store.AppendRequest{Conversation: "c", Head: "main"}}
		_, err := runs.Begin(ctx, begin)
		require.NoError(t, err)

		began := time.Now()
		var woken []int
		sweepFor := func(d time.Duration) {
			for until := time.Now().Add(d); time.Now().Before(until); {
				time.Sleep(time.Second)
				swept, err := runs.Sweep(ctx, store.SweepRequest{Grace: 10 * time.Second})
				require.NoError(t, err)
				if swept.Woken > 0 {
					woken = append(woken, int(time.Since(began).Seconds()))
				}
			}
		}

		sweepFor(150 * time.Second)
		require.Equal(t, []int{10, 30, 70, 150}, woken)

		// A lease that ends begins anew.
		claimed, err := runs.ClaimRuns(ctx, store.ClaimRunsRequest{Agents: []string{"agent"}, Lease: time.Minute})
		require.NoError(t, err)
		require.Len(t, claimed, 1)
		woken = nil
		sweepFor(120 * time.Second)
		require.Equal(t, []int{220, 240}, woken)
	})
}
