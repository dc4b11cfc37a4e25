package sqlstore

import (
	"context"
	"time"

	"github.com/plait-dev/plait/store"
)

// Stats implements store.Runs. Both queries read plait_runs_busy: ended runs cost nothing.
func (d *Driver) Stats(ctx context.Context) (s store.RunStats, err error) {
	err = d.readRuns(ctx, func(t *runsTx) error {
		s = store.RunStats{}
		if err := t.readClock(); err != nil {
			return err
		}
		if err := t.countStates(&s); err != nil {
			return err
		}
		return t.countCalls(&s)
	})
	if err != nil {
		return store.RunStats{}, err
	}
	return s, nil
}

// countStates counts the unfinished runs.
func (t *runsTx) countStates(s *store.RunStats) error {
	return each(t.ctx, t.tx, `SELECT state, COUNT(*), MIN(changed), SUM(CASE WHEN lease_until <= $1 THEN 1 ELSE 0 END)
		FROM plait_runs WHERE busy = 1 GROUP BY state`, []any{t.now.UnixNano()}, func(scan func(...any) error) error {
		var state string
		var count, oldest, unleased int64
		if err := scan(&state, &count, &oldest, &unleased); err != nil {
			return err
		}

		// Only a running run is lost without a lease: no worker holds the others.
		age := t.age(oldest)
		switch store.RunState(state) {
		case store.RunReady:
			s.Ready, s.OldestReady = int(count), age
		case store.RunRunning:
			s.Running, s.Lost = int(count), int(unleased)
		case store.RunWaiting:
			s.Waiting, s.OldestWaiting = int(count), age
		case store.RunParked:
			s.Parked, s.OldestParked = int(count), age
		}
		return nil
	})
}

// countCalls counts the calls of the latest pauses. The kinds are those of store.CallStats, with - for a call with a
// result.
func (t *runsTx) countCalls(s *store.RunStats) error {
	// The first matching case counts. A late call is exhausted even under a lease, and a call without attempts only
	// after the lease. The continuation of a run is '' once it is consumed: its calls are then not joined.
	now := t.now.UnixNano()
	query := `SELECT kind, COUNT(*), MIN(changed), SUM(again), SUM(claimed), SUM(doubt) FROM (
		SELECT CASE
			WHEN t.done = 1 THEN '-'
			WHEN t.external = 1 THEN 'external'
			WHEN t.deadline > 0 AND t.deadline <= $1 THEN 'exhausted'
			WHEN t.lease_until > $2 THEN 'claimed'
			WHEN t.attempts > 0 AND t.claims >= t.attempts THEN 'exhausted'
			ELSE 'ready' END AS kind,
			r.changed AS changed,
			CASE WHEN t.claims > 1 THEN 1 ELSE 0 END AS again,
			CASE WHEN t.claims > 0 THEN 1 ELSE 0 END AS claimed,
			CASE WHEN t.outcome = $3 THEN 1 ELSE 0 END AS doubt
		FROM plait_runs r JOIN plait_tasks t ON t.run = r.num AND t.pause = r.continuation
		WHERE r.busy = 1) calls GROUP BY kind`

	return each(t.ctx, t.tx, query, []any{now, now, string(store.OutcomeInDoubt)}, func(scan func(...any) error) error {
		var kind string
		var count, oldest, again, claimed, doubt int64
		if err := scan(&kind, &count, &oldest, &again, &claimed, &doubt); err != nil {
			return err
		}

		switch kind {
		case "-": // of the calls with a result, only those in doubt are counted
			s.InDoubt = int(doubt)
		case "external":
			s.Calls.External = int(count)
		case "exhausted":
			s.Calls.Exhausted = int(count)
		case "claimed":
			s.Calls.Claimed = int(count)
			s.Calls.Repeated += int(again)
		case "ready":
			s.Calls.Ready, s.Calls.OldestReady, s.Calls.Lost = int(count), t.age(oldest), int(claimed)
			s.Calls.Repeated += int(again)
		}
		return nil
	})
}

// age returns the time since a stored one.
func (t *runsTx) age(since int64) time.Duration { return time.Duration(t.now.UnixNano() - since) }
