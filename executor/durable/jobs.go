package durable

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// runJob is the arguments of a job that continues a run. Jobs hold names and IDs only: everything else is in the
// conversation.
type runJob struct {
	Run          string `json:"run"`
	Conversation string `json:"conversation"`
	Head         string `json:"head"`
	Agent        string `json:"agent"`
	// Message is the ID of the message that the run began with, or zero.
	Message node.ID `json:"message,omitzero"`
	// Resumed reports that the run waited before, and has the jobs of its pending calls.
	Resumed bool `json:"resumed,omitempty"`
}

// Kind implements river.JobArgs.
func (runJob) Kind() string { return kindRun }

// jobOf returns the arguments of the next job of a run.
func jobOf(r Run) runJob {
	return runJob{Run: r.ID, Conversation: r.Conversation, Head: r.Head, Agent: r.Agent, Message: r.start}
}

func (j runJob) target() target { return target{j.Conversation, j.Head} }

// callJob is the arguments of a job that executes a deferred call.
type callJob struct {
	Run          string `json:"run"`
	Conversation string `json:"conversation"`
	Head         string `json:"head"`
	Call         string `json:"call"`
}

// Kind implements river.JobArgs.
func (callJob) Kind() string { return kindCall }

func (j callJob) target() target { return target{j.Conversation, j.Head} }

// deadlineJob is the arguments of a job that replies to a call in place of somebody who did not.
type deadlineJob callJob

// Kind implements river.JobArgs.
func (deadlineJob) Kind() string { return kindDeadline }

func (j deadlineJob) target() target { return target{j.Conversation, j.Head} }

// The kinds of jobs.
const (
	kindRun      = "plait_run"
	kindCall     = "plait_call"
	kindDeadline = "plait_deadline"
)

// kinds is a list of the kinds of this package, for conditions.
const kinds = `('` + kindRun + `', '` + kindCall + `', '` + kindDeadline + `')`

// insertRun inserts a job for a run, and returns its ID. The job begins after a wait.
func (e *Engine) insertRun(ctx context.Context, tx store.Tx, job runJob, wait time.Duration) (int64, error) {
	ids, err := e.queue.insert(ctx, tx, []river.InsertManyParams{e.runParams(job, wait)})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// runParams returns what inserts a job for a run.
func (e *Engine) runParams(job runJob, wait time.Duration) river.InsertManyParams {
	opts := &river.InsertOpts{Queue: e.RunQueue(job.Agent), Priority: e.Priority(job.Agent), MaxAttempts: e.Attempts}
	if wait > 0 {
		opts.ScheduledAt = e.time.Now().Add(wait)
	}
	return river.InsertManyParams{Args: job, InsertOpts: opts}
}

// claim identifies one attempt of a job: no other attempt may finish it.
type claim struct {
	id       int64
	attempt  int
	attempts int // the maximum
}

// check returns errLost if the attempt no longer has its job: another process has it, or the run was cancelled. The job
// is locked until the transaction ends.
func (e *Engine) check(ctx context.Context, tx store.Tx, c claim) error {
	found := false
	err := query(ctx, tx, e.checkQuery(), []any{c.id, int64(c.attempt)}, func(rows store.Rows) error {
		found = true
		return rows.Scan(new(int64))
	})
	if err == nil && !found {
		err = errLost
	}
	return err
}

// checkQuery returns the query of check, with the ID and the attempt as parameters.
func (e *Engine) checkQuery() string {
	d := e.queue.dialect()
	return `SELECT id FROM ` + d.jobs + ` WHERE id = $1 AND attempt = $2 AND state = 'running'` + d.lock
}

// appendIfHeld appends nodes if the attempt still has its job, in one statement if possible.
func (e *Engine) appendIfHeld(ctx context.Context, a store.AppendRequest, c claim) (store.Head, error) {
	return e.appendIf(ctx, a, e.checkQuery(), c.id, int64(c.attempt))
}

// appendIfAllHeld is appendIfHeld for several attempts, each with the ID and the attempt: all still have their jobs.
func (e *Engine) appendIfAllHeld(ctx context.Context, a store.AppendRequest, claims [][]any) (store.Head, error) {
	table, args := listed(claims, "BIGINT", "BIGINT")
	query := `SELECT COUNT(*) FROM ` + table + ` AS g (job, attempt), LATERAL (SELECT id FROM ` + e.queue.dialect().jobs + `
		WHERE id = g.job AND attempt = g.attempt AND state = 'running' FOR UPDATE SKIP LOCKED) AS j
		HAVING COUNT(*) = ` + parameter(len(args)+1)
	return e.appendIf(ctx, a, query, append(args, int64(len(claims)))...)
}

// appendIf appends nodes if a query has a row, which shows that attempts still have their jobs.
func (e *Engine) appendIf(ctx context.Context, a store.AppendRequest, query string, args ...any) (store.Head, error) {
	h, held, err := e.db.AppendIf(ctx, a, query, args...)
	switch {
	case err == nil && !held:
		// The reply to an earlier try may have been lost: then the head is where this append moves it.
		if now, err := e.db.Head(ctx, a.Conversation, a.Head); err == nil && isAt(now, a) {
			return now, nil
		}
		err = errLost
	case err != nil:
		var conflict *store.ConflictError
		if errors.As(err, &conflict) && isStored(conflict.Current, a) {
			return conflict.Current, nil
		}
	}
	return h, err
}

// finish ends an attempt of a job, or returns errLost as check does. The job of a run that waits or is parked becomes
// pending: an unfinished run has exactly one unfinished job.
func (e *Engine) finish(ctx context.Context, tx store.Tx, c claim, state State) error {
	n, err := tx.Exec(ctx, e.finishQuery(state), c.id, int64(c.attempt))
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// finishQuery returns the statement of finish, with the ID and the attempt as parameters.
func (e *Engine) finishQuery(state State) string {
	d := e.queue.dialect()
	becomes := `state = 'completed', finalized_at = ` + d.now
	if state == Waiting || state == Parked {
		becomes = `state = 'pending'`
	}
	return `UPDATE ` + d.jobs + ` SET ` + becomes + ` WHERE id = $1 AND attempt = $2 AND state = 'running'`
}

// activate makes a run that waits or is parked active, with a new job in place of its pending one. The row of the run is
// locked.
func (e *Engine) activate(ctx context.Context, tx store.Tx, r Run, job int64) error {
	d := e.queue.dialect()
	release := `UPDATE ` + d.jobs + ` SET state = 'completed', finalized_at = ` + d.now + ` WHERE id = $1 AND state = 'pending'`
	if d.writesInWith {
		_, err := tx.Exec(ctx, `WITH released AS (`+release+`)
			UPDATE plait_index SET state = 'active', reason = '', job = $2, changed = `+tx.Now()+` WHERE id = $3`, r.job, job, r.ID)
		return err
	}

	if _, err := tx.Exec(ctx, release, r.job); err != nil {
		return err
	}
	_, err := setState(ctx, tx, r.ID, Active, "", job)
	return err
}

// note changes the metadata of a job.
func (e *Engine) note(ctx context.Context, tx store.Tx, job int64, n noted) error {
	d := e.queue.dialect()
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE `+d.jobs+` SET metadata = `+d.merged("$1")+` WHERE id = $2`, string(text), job)
	return err
}

// working are the states of jobs that somebody works, or will.
const working = `'available', 'running', 'scheduled', 'retryable'`

// cancelJobs cancels the jobs of a run that have one of the states. A process that executes one notices it at its next
// beat.
func (e *Engine) cancelJobs(ctx context.Context, tx store.Tx, run, states string) error {
	d := e.queue.dialect()
	_, err := tx.Exec(ctx, `UPDATE `+d.jobs+` SET state = 'cancelled', finalized_at = `+d.now+`
		WHERE state IN (`+states+`) AND kind IN `+kinds+` AND `+d.run+` = $1`, run)
	return err
}

// parameter returns the name of a parameter of a statement.
func parameter(n int) string { return "$" + strconv.Itoa(n) }

// list returns IDs with commas between them.
func list(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ",")
}
