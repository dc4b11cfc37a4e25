package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/store"
)

func TestCounterCountsEachTransactionOnce(t *testing.T) {
	ctx := context.Background()
	c := &durable.Counter{Runs: store.Memory()}
	begin := func(run string) {
		_, err := c.Begin(ctx, store.BeginRequest{Run: run, Agent: "a", Append: store.AppendRequest{Conversation: run, Head: "main"}})
		require.NoError(t, err)
	}
	claim := func(lease time.Duration) store.Lease {
		claimed, err := c.ClaimRuns(ctx, store.ClaimRunsRequest{Agents: []string{"a"}, Formats: []int{1}, Lease: lease})
		require.NoError(t, err)
		if len(claimed) == 0 {
			return store.Lease{}
		}
		return claimed[0].Lease
	}
	commit := func(s store.Step) error {
		_, err := c.Commit(ctx, s)
		return err
	}

	// One run loses its worker, pauses, and is cancelled. Another one ends.
	begin("first")
	lost := claim(-time.Second)
	lease := claim(time.Hour)
	require.ErrorIs(t, c.Renew(ctx, lost, time.Hour), store.ErrLeaseLost)
	require.ErrorIs(t, commit(store.Step{Lease: lost, End: store.RunDone}), store.ErrLeaseLost)
	require.NoError(t, c.Renew(ctx, lease, time.Hour))
	require.NoError(t, commit(store.Step{Lease: lease, Pause: &store.Pause{Continuation: "p", Format: 1, Tasks: []store.Task{
		{Key: store.Key{Call: "call"}, Tool: "t", Attempts: 1}, {Key: store.Key{Call: "open"}, Tool: "other"},
	}}}))
	begin("second")
	require.NoError(t, commit(store.Step{Lease: claim(time.Hour), End: store.RunDone}))
	require.Zero(t, claim(time.Hour))

	// A call is given back, and ends in doubt.
	call := func(lease time.Duration) store.ClaimedTask {
		tasks, err := c.ClaimTasks(ctx, store.ClaimTasksRequest{Tools: []string{"t"}, Lease: lease})
		require.NoError(t, err)
		return tasks[0]
	}
	require.NoError(t, c.Release(ctx, call(time.Hour).Lease, 0, true))
	key := call(-time.Second).Lease.Key
	swept, err := c.Sweep(ctx, store.SweepRequest{Grace: time.Hour})
	require.NoError(t, err)
	require.Len(t, swept.Expired, 1)
	_, err = c.Accept(ctx, store.Result{Key: key, Outcome: store.OutcomeInDoubt})
	require.NoError(t, err)
	require.NoError(t, c.Cancel(ctx, "first", ""))
	_, err = c.Accept(ctx, store.Result{Key: store.Key{Run: "first", Continuation: "p", Call: "open"}})
	require.ErrorIs(t, err, store.ErrRunEnded)

	// A caller that has given up is no error of the store.
	gone, cancel := context.WithCancel(ctx)
	cancel()
	require.Error(t, c.Cancel(gone, "second", ""))

	require.Equal(t, durable.Counts{
		Begun: 2, Claims: 6, EmptyClaims: 1, Runs: 3, Calls: 2, Repeated: 1, Steps: 2, Paused: 1, Done: 1, Cancelled: 1,
		Results: 1, InDoubt: 1, Renewals: 1, LeasesLost: 1, Refused: 1, Released: 1, Sweeps: 1, Expired: 1,
	}, c.Counts())
}
