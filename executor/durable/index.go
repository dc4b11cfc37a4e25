package durable

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// State is the state of a run.
type State string

// The states of a run.
const (
	// Active: a job of the run is queued or running.
	Active State = "active"
	// Waiting: the run is paused until its pending calls have their replies or results.
	Waiting State = "waiting"
	// Parked: the run cannot continue by itself, for the reason of the run. Requeue continues it.
	Parked State = "parked"
	// Done: the run has ended, with the stop reason of its conversation.
	Done State = "done"
	// Failed: the run has ended with an error.
	Failed State = "failed"
	// Cancelled: the run was ended from outside.
	Cancelled State = "cancelled"
)

// Ended reports whether a run in this state has ended.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// busy returns the column busy of a run in this state.
func (s State) busy() int64 {
	if s.Ended() {
		return 0
	}
	return 1
}

// Run describes a run. It is read from an index; the conversation has everything else.
type Run struct {
	// ID is the ID of the run.
	ID string
	// Conversation and Head name the head that the run continues.
	Conversation, Head string
	// Agent is the name of the agent.
	Agent string
	// State is the state, and Reason the stop reason or the error; it may be empty.
	State  State
	Reason string
	// Began is the time of the start, and Changed that of the last change of the state.
	Began, Changed time.Time

	num   int64
	job   int64   // the unfinished job of the run, or 0
	start node.ID // the message of Start, or zero
}

func (r Run) target() target { return target{r.Conversation, r.Head} }

// runColumns are the columns for scanRun.
const runColumns = `num, id, conversation, head, agent, state, reason, job, start, began, changed`

// scanRun scans a row that ends with runColumns. before is for the columns before them.
func scanRun(rows store.Rows, before ...any) (r Run, err error) {
	var start []byte
	var began, changed int64
	err = rows.Scan(append(before, &r.num, &r.ID, &r.Conversation, &r.Head, &r.Agent, &r.State, &r.Reason, &r.job, &start,
		&began, &changed)...)
	copy(r.start[:], start)
	r.Began, r.Changed = time.UnixMicro(began), time.UnixMicro(changed)
	return r, err
}

// queryRuns returns the rows of the index for a condition.
func queryRuns(ctx context.Context, tx store.Tx, condition string, args ...any) ([]Run, error) {
	return scanRuns(ctx, tx, `SELECT `+runColumns+` FROM plait_index WHERE `+condition, args...)
}

// lockedRun returns the unfinished run of a head, if there is one, and locks its row.
func (e *Engine) lockedRun(ctx context.Context, tx store.Tx, t target) ([]Run, error) {
	return queryRuns(ctx, tx, `conversation = $1 AND head = $2 AND busy = 1`+e.queue.dialect().lock, t.conversation, t.head)
}

// lockedRuns returns the unfinished runs of several heads, without those that are locked by others, and locks them.
func (e *Engine) lockedRuns(ctx context.Context, tx store.Tx, heads []target) ([]Run, error) {
	var rows [][]any
	for _, t := range heads {
		rows = append(rows, []any{t.conversation, t.head})
	}
	table, args := listed(rows, "TEXT", "TEXT")
	return scanRuns(ctx, tx, `SELECT r.* FROM `+table+` AS g (name, branch), LATERAL (SELECT `+runColumns+`
		FROM plait_index WHERE conversation = g.name AND head = g.branch AND busy = 1 FOR UPDATE SKIP LOCKED) AS r`, args...)
}

// scanRuns returns the runs of a query for runColumns.
func scanRuns(ctx context.Context, tx store.Tx, text string, args ...any) (list []Run, err error) {
	err = query(ctx, tx, text, args, func(rows store.Rows) error {
		r, err := scanRun(rows)
		list = append(list, r)
		return err
	})
	return list, err
}

// query calls f for each row of a query.
func query(ctx context.Context, tx store.Tx, query string, args []any, f func(store.Rows) error) (err error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() {
		if closed := rows.Close(); err == nil {
			err = closed
		}
	}()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// runOf returns the run with an ID. lock is "", or locks the row.
func runOf(ctx context.Context, tx store.Tx, id, lock string) (Run, error) {
	list, err := queryRuns(ctx, tx, `id = $1`+lock, id)
	if err != nil {
		return Run{}, err
	}
	if len(list) == 0 {
		return Run{}, &RunError{Run: id, Err: ErrNoRun}
	}
	return list[0], nil
}

// setState writes the state of a run with its next job; 0 is none. It reports whether the run was unfinished.
func setState(ctx context.Context, tx store.Tx, id string, state State, reason string, job int64) (bool, error) {
	changed, err := tx.Exec(ctx, `UPDATE plait_index SET state = $1, reason = $2, busy = $3, job = $4, changed = `+tx.Now()+`
		WHERE id = $5 AND busy = 1`, string(state), reason, state.busy(), job, id)
	return changed == 1, err
}

// Run returns a run. The error holds ErrNoRun if there is none.
func (e *Engine) Run(ctx context.Context, id string) (r Run, err error) {
	err = e.db.View(ctx, func(tx store.Tx) (err error) {
		r, err = runOf(ctx, tx, id, "")
		return err
	})
	return r, err
}

// RunsRequest selects runs for [Engine.Runs].
type RunsRequest struct {
	// States, Conversation and Agent select runs. Each defaults to all.
	States              []State
	Conversation, Agent string
	// After is the last run of the page before; "" is the first page.
	After string
	// Limit is the maximum number of runs. Defaults to 100.
	Limit int
}

// Runs returns one page of runs, the newest first.
func (e *Engine) Runs(ctx context.Context, q RunsRequest) (list []Run, err error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}

	err = e.db.View(ctx, func(tx store.Tx) (err error) {
		below := int64(1) << 62
		if q.After != "" {
			after, err := runOf(ctx, tx, q.After, "")
			if err != nil {
				return err
			}
			below = after.num
		}

		condition, args := `num < $1`, []any{below}
		if len(q.States) > 0 {
			var names []string
			for _, state := range q.States {
				args = append(args, string(state))
				names = append(names, parameter(len(args)))
			}
			condition += ` AND state IN (` + strings.Join(names, ", ") + `)`
			if !slices.ContainsFunc(q.States, State.Ended) {
				condition += ` AND busy = 1` // there is an index of these
			}
		}
		for column, value := range map[string]string{"conversation": q.Conversation, "agent": q.Agent} {
			if value != "" {
				args = append(args, value)
				condition += ` AND ` + column + ` = ` + parameter(len(args))
			}
		}
		args = append(args, int64(q.Limit))
		list, err = queryRuns(ctx, tx, condition+` ORDER BY num DESC LIMIT `+parameter(len(args)), args...)
		return err
	})
	return list, err
}

// Prune removes up to limit runs from the index that ended before a time, the oldest first, and returns how many. With
// dryRun it only counts. Their conversations stay. The ID of a removed run can be used again.
func (e *Engine) Prune(ctx context.Context, before time.Time, limit int, dryRun bool) (removed int, err error) {
	if dryRun {
		err = e.db.View(ctx, func(tx store.Tx) error {
			return query(ctx, tx, `SELECT COUNT(*) FROM (
				SELECT num FROM plait_index WHERE busy = 0 AND changed < $1 LIMIT $2) AS old`,
				[]any{before.UnixMicro(), int64(limit)}, func(rows store.Rows) error { return rows.Scan(&removed) })
		})
		return removed, err
	}
	err = e.db.Update(ctx, func(tx store.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM plait_index WHERE num IN (
			SELECT num FROM plait_index WHERE busy = 0 AND changed < $1 ORDER BY num LIMIT $2)`,
			before.UnixMicro(), int64(limit))
		removed = int(n)
		return err
	})
	return removed, err
}
