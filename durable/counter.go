package durable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/plait-dev/plait/store"
)

// Counter is a store that counts the operations of the engines and workers on it. Give one to the engines and workers
// of a process, and publish its Counts with those of [store.Runs].Stats:
//
//	counter := &durable.Counter{Runs: db}
//	engine := &durable.Engine{Store: counter, …}
//
// A Counter is safe for concurrent use. It must not be copied.
type Counter struct {
	// Runs is the store.
	store.Runs

	mu     sync.Mutex
	counts Counts // guarded by mu
}

// Counts are the numbers of a [Counter] since it was made. They never decrease. Their rates and ratios show the work of
// a process; the state of all runs is in store.RunStats.
type Counts struct {
	// Begun counts started runs.
	Begun int64
	// Claims counts queries for work, and EmptyClaims the queries without a result.
	Claims, EmptyClaims int64
	// Runs and Calls count claimed runs and calls. Repeated counts those of both that were claimed before: their worker
	// was lost, or has given them back.
	Runs, Calls, Repeated int64
	// Steps counts stored steps of runs. Paused, Done, Failed and Parked count the steps with this end.
	Steps, Paused, Done, Failed, Parked int64
	// Cancelled counts successful calls of Cancel.
	Cancelled int64
	// Results counts accepted results. InDoubt and Timeouts count those with these outcomes.
	Results, InDoubt, Timeouts int64
	// Renewals counts renewed leases. LeasesLost counts steps and releases refused because the lease was lost. A
	// refused renewal is not counted, because it also happens when a run ends or is cancelled.
	Renewals, LeasesLost int64
	// Refused counts transactions refused for another reason, such as a second result or a cancelled run.
	Refused int64
	// Released counts runs and calls that were given back, to be tried again or because the process ends.
	Released int64
	// Sweeps counts sweeps. Woken counts their wake-ups, and Expired the calls they found exhausted or late.
	Sweeps, Woken, Expired int64
	// Errors counts errors of the store itself, such as a lost connection.
	Errors int64
}

// Counts returns the current numbers.
func (c *Counter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// count calls fn with the numbers if a transaction has succeeded, and otherwise counts its error.
func (c *Counter) count(ctx context.Context, err error, fn func(n *Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()

	switch {
	case err == nil:
		fn(&c.counts)
	case errors.Is(err, store.ErrLeaseLost):
		c.counts.LeasesLost++
	case refused(err):
		c.counts.Refused++
	case ctx.Err() == nil: // not an error of the store if the caller has given up
		c.counts.Errors++
	}
}

// Begin implements store.Runs.
func (c *Counter) Begin(ctx context.Context, b store.BeginRequest) (store.Run, error) {
	r, err := c.Runs.Begin(ctx, b)
	c.count(ctx, err, func(n *Counts) { n.Begun++ })
	return r, err
}

// ClaimRuns implements store.Runs.
func (c *Counter) ClaimRuns(ctx context.Context, q store.ClaimRunsRequest) ([]store.ClaimedRun, error) {
	claimed, err := c.Runs.ClaimRuns(ctx, q)
	c.count(ctx, err, func(n *Counts) {
		countClaim(n, &n.Runs, claimed, func(r store.ClaimedRun) int { return r.Run.Claims })
	})
	return claimed, err
}

// ClaimTasks implements store.Runs.
func (c *Counter) ClaimTasks(ctx context.Context, q store.ClaimTasksRequest) ([]store.ClaimedTask, error) {
	claimed, err := c.Runs.ClaimTasks(ctx, q)
	c.count(ctx, err, func(n *Counts) {
		countClaim(n, &n.Calls, claimed, func(t store.ClaimedTask) int { return t.Attempt })
	})
	return claimed, err
}

// countClaim counts a query for work, and adds the claimed work to kind. claims returns how often a piece of work was
// claimed.
func countClaim[W any](n *Counts, kind *int64, claimed []W, claims func(W) int) {
	n.Claims++
	*kind += int64(len(claimed))
	if len(claimed) == 0 {
		n.EmptyClaims++
	}

	for _, work := range claimed {
		if claims(work) > 1 {
			n.Repeated++
		}
	}
}

// Renew implements store.Runs.
func (c *Counter) Renew(ctx context.Context, l store.Lease, d time.Duration) error {
	err := c.Runs.Renew(ctx, l, d)
	if !refused(err) {
		c.count(ctx, err, func(n *Counts) { n.Renewals++ })
	}
	return err
}

// Release implements store.Runs.
func (c *Counter) Release(ctx context.Context, l store.Lease, d time.Duration, unused bool) error {
	err := c.Runs.Release(ctx, l, d, unused)
	c.count(ctx, err, func(n *Counts) { n.Released++ })
	return err
}

// Commit implements store.Runs.
func (c *Counter) Commit(ctx context.Context, s store.Step) (store.Head, error) {
	head, err := c.Runs.Commit(ctx, s)
	c.count(ctx, err, func(n *Counts) {
		n.Steps++
		if s.Pause != nil {
			n.Paused++
		}
		switch s.End {
		case store.RunDone:
			n.Done++
		case store.RunFailed:
			n.Failed++
		case store.RunParked:
			n.Parked++
		}
	})
	return head, err
}

// Accept implements store.Runs.
func (c *Counter) Accept(ctx context.Context, r store.Result) (ready bool, err error) {
	ready, err = c.Runs.Accept(ctx, r)
	c.count(ctx, err, func(n *Counts) {
		n.Results++
		switch r.Outcome {
		case store.OutcomeInDoubt:
			n.InDoubt++
		case store.OutcomeTimeout:
			n.Timeouts++
		}
	})
	return ready, err
}

// Cancel implements store.Runs.
func (c *Counter) Cancel(ctx context.Context, run, reason string) error {
	err := c.Runs.Cancel(ctx, run, reason)
	c.count(ctx, err, func(n *Counts) { n.Cancelled++ })
	return err
}

// Sweep implements store.Runs.
func (c *Counter) Sweep(ctx context.Context, s store.SweepRequest) (store.Swept, error) {
	swept, err := c.Runs.Sweep(ctx, s)
	c.count(ctx, err, func(n *Counts) {
		n.Sweeps++
		n.Woken += int64(swept.Woken)
		n.Expired += int64(len(swept.Expired))
	})
	return swept, err
}
