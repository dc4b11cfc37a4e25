package store

import (
	"context"
	"time"
)

// Retention removes old runs and unreachable nodes from a database. The zero value removes all ended runs, and all
// nodes out of reach of the heads.
//
// It never removes an unfinished run, a head, or a node within reach of a head or a ref. A paused run needs its
// conversation and its calls, and a fork is a head: both stay whole.
type Retention struct {
	// OlderThan is the minimum time since the end of a run, in the store's clock. A removed run is unknown: its ID can
	// be used again, and the error for a late result is ErrNoRun in place of ErrRunEnded. So choose it longer than any
	// program repeats a call.
	OlderThan time.Duration
	// DryRun only counts, and removes nothing.
	DryRun bool
	// Batch is the maximum number of runs in one transaction. Defaults to 100, and is at most 10,000.
	Batch int
}

// Retained holds the counts of [Retention.Apply]: removed things or, with DryRun, things to remove.
type Retained struct {
	// Runs and Calls are the removed runs with their calls, RunBytes the size of their continuations, calls and
	// results.
	Runs, Calls int
	RunBytes    int64
	// Nodes are the removed nodes, and Blobs the removed large texts and images. NodeBytes is the size of both.
	Nodes, Blobs int
	NodeBytes    int64
}

// Apply removes old runs. Then it removes the unreachable nodes of each conversation. Its transactions are short. After
// each one it rests for as long as the transaction took, to give other writers their turn. It can be stopped at any
// time, and repeated. After an error the counts may be too low.
func (r Retention) Apply(ctx context.Context, runs Runs) (done Retained, err error) {
	request := PruneRunsRequest{OlderThan: r.OlderThan, Limit: r.Batch, DryRun: r.DryRun}
	for {
		began := time.Now()
		pruned, err := runs.PruneRuns(ctx, request)
		if err != nil {
			return done, err
		}
		if pruned.Last == "" {
			break
		}

		done.Runs, done.Calls, done.RunBytes = done.Runs+pruned.Runs, done.Calls+pruned.Calls, done.RunBytes+pruned.Bytes
		request.After = pruned.Last

		// Rest for as long as the transaction took, for other writers.
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(time.Since(began)):
		}
	}

	s := New(runs, nil)
	for key, err := range s.Conversations(ctx, "") {
		if err != nil {
			return done, err
		}

		pruned, err := s.Prune(ctx, key, r.DryRun) // a database rests after each of its transactions
		if err != nil {
			return done, err
		}
		done.Nodes, done.Blobs, done.NodeBytes = done.Nodes+pruned.Records, done.Blobs+pruned.Blobs, done.NodeBytes+pruned.Bytes
	}
	return done, nil
}
