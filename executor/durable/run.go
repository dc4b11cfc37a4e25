package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// runWorker works the jobs of runs.
type runWorker struct {
	river.WorkerDefaults[runJob]
	process *process
}

// NextRetry implements river.Worker.
func (w *runWorker) NextRetry(job *river.Job[runJob]) time.Time {
	return w.process.time.Now().Add(retryAfter(job.Attempt))
}

// retryAfter returns the wait after a failed attempt: 2 seconds, then twice as long each time, up to about 17 minutes.
func retryAfter(attempt int) time.Duration { return jitter(time.Second << min(attempt, 10)) }

// Work implements river.Worker.
func (w *runWorker) Work(ctx context.Context, job *river.Job[runJob]) error {
	return w.process.do(ctx, job.JobRow, func(ctx context.Context) error {
		return w.process.run(ctx, claim{job.ID, job.Attempt, job.MaxAttempts}, job.Args)
	})
}

// running is a run that this process executes.
type running struct {
	*process
	claim
	args runJob
	ctx  context.Context // ends if the job is lost, or the process ends

	own    func(context.Context, dag.DAG) error // the agent's own Save; nil is none
	paused dag.DAG                              // the conversation of a pause, for its last step
	waited map[waiting]bool                     // the calls that waited at the beginning of this attempt, and have their jobs
	pended bool                                 // calls were pending then

	mu           sync.Mutex // guards the fields below: storeUnstored runs beside the run
	conversation *store.Conversation
	stored       []*node.Node // the heads of the last step that was stored
	unstored     *unstored    // the step after it; nil is none
	failure      error        // unstored could not be stored
	steps        int          // steps of this attempt
	over         bool         // a step has finished the job
	inbox        inbox        // what the run has taken
}

// unstored is a step that waits for the one that follows, to be stored with it.
type unstored struct {
	d     dag.DAG
	taken []int64 // the rows of the inbox that d has
	timer *time.Timer
}

// soon is how long a step waits for the one that follows. A process that is lost meanwhile has lost the step: the response
// is asked for again, and results are taken from the inbox again. A step with the start or the end of a call that the run
// executes itself does not wait.
const soon = 20 * time.Millisecond

// run executes a run up to its next pause or its end. An error is River's to retry.
func (p *process) run(ctx context.Context, c claim, args runJob) error {
	r := &running{process: p, claim: c, args: args, ctx: ctx}
	row, arrived, err := p.arrived(ctx, args.Run)
	switch {
	case errors.Is(err, ErrNoRun):
		return nil
	case errors.Is(err, errDamaged):
		return r.only(Parked, err.Error())
	case err != nil:
		return river.JobSnooze(time.Second) // the database failed: this is no attempt of the run
	case row.State.Ended(), row.job != c.id:
		return nil // a job that comes twice, or late
	}

	p.feeds.begin(args.Run)
	defer p.feeds.end(args.Run)

	var d dag.DAG
	err = guarded(func() (err error) {
		d, err = r.execute(ctx, arrived)
		return err
	})
	var paused *executor.PausedError
	if err == nil || errors.As(err, &paused) {
		r.forgetUnstored() // the last step has it
	} else if failed := r.storeUnstored(); failed != nil {
		err = errors.Join(err, &storeError{failed})
	}

	cause := context.Cause(ctx)
	switch {
	case r.over:
		return nil
	case errors.Is(cause, errLost), errors.Is(cause, errLapsed), errors.Is(err, errLost), errors.Is(err, errLapsed):
		return notMine // the process with the job continues from the last step
	case cause != nil:
		return r.giveBack()
	case err == nil, errors.Is(err, executor.ErrAnswered):
		return r.end(d, Done, string(stopOf(d)))
	default:
		return r.failed(d, err)
	}
}

// execute begins or continues the run. arrived is its inbox.
func (r *running) execute(ctx context.Context, arrived []message) (dag.DAG, error) {
	// A conversation that was removed is not made again: nothing is asked.
	c, err := r.store.Head(ctx, r.args.Conversation, r.args.Head)
	if err != nil {
		return dag.DAG{}, &storeError{err}
	}
	r.conversation, r.stored = c, c.DAG().Heads()

	agent, known := r.Agents[r.args.Agent]
	if !known {
		return c.DAG(), fmt.Errorf("durable: this process has no agent %q", r.args.Agent)
	}
	if err := r.take(ctx, arrived); err != nil {
		return c.DAG(), &storeError{err}
	}
	agent.Steering = r.inbox.steering
	agent.Name = cmp.Or(agent.Name, r.args.Agent)
	agent.RunID = r.args.Run
	if agent.RunMeta, err = agent.RunMeta.With(agentMeta, r.args.Agent); err != nil {
		return c.DAG(), err
	}
	r.own = agent.Save
	agent.Save = r.save

	d := c.DAG().WithSource(r.Source)
	if r.pended = len(d.Pending()) > 0; r.args.Resumed && r.pended {
		r.waited = waitingIn(d)
	}
	replies, used, err := r.inbox.replies(d)
	r.inbox.used = used
	switch {
	case err != nil:
		return d, err
	case len(replies) > 0:
		return r.drain(agent.ResumeStream(ctx, d, replies...))
	case len(r.waited) > 0:
		// Nothing is decided again: the run waits on. The jobs of its calls are still there.
		return d, executor.PausedAt(d)
	}
	return r.drain(agent.Stream(ctx, d))
}

// drain executes the run of a stream. Its events go to those who follow the run.
func (r *running) drain(events iter.Seq2[executor.Event, error]) (d dag.DAG, err error) {
	for e, failed := range events {
		if end, is := e.(executor.End); is {
			d, err = end.DAG, failed // run sends the end of the attempt when its outcome is stored
			continue
		}
		r.feeds.send(r.args.Run, e)
	}
	return d, err
}

// storeError is a failure of the store.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// pauses reports whether d is the conversation of a pause: a call waits since the last step that was stored, and none is
// being executed.
func (r *running) pauses(d dag.DAG) bool {
	waits := false
	for _, h := range d.Heads() {
		e, ok := h.Payload().(node.ToolExecution)
		if ok && e.State == node.ExecutionStarted {
			return false
		}
		waits = waits || ok && e.State.Paused() && !slices.Contains(r.stored, h)
	}
	return waits
}

// save is the Save of the run's agent. It stores each step, and then calls the program's own Save.
func (r *running) save(ctx context.Context, d dag.DAG) error {
	// Drop nodes appended after an interruption: another process continues from the last step.
	if cause := context.Cause(r.ctx); cause != nil {
		return cause
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	// The nodes of a pause are stored together with its jobs.
	if r.pauses(d) {
		return nil
	}

	// Store the end of the run with its last step. An error may not be the end: failed decides whether the run is
	// tried again from the last step.
	state, reason := State(""), ""
	if head := d.Head(); head != nil && !slices.Contains(r.stored, head) {
		_, isStart := head.Payload().(node.RunStart)
		stop, isEnd := head.Payload().(node.StopReason)
		switch {
		case isStart: // alone it is no progress; it is stored with the first response
			return nil
		case isEnd && stop.Reason == content.StopError:
			return nil
		case isEnd:
			state, reason = Done, string(stop.Reason)
		}
	}

	if state == "" && r.mayWait(d) {
		if err := r.postpone(d); err != nil {
			return &storeError{err}
		}
		return nil
	}
	if err := r.stepLocked(d, state, reason); err != nil {
		return &storeError{err}
	}
	if r.own != nil {
		if err := r.own(ctx, d); err != nil {
			return err
		}
	}
	if r.over {
		return nil
	}

	// Tools are called right after Save: others must not count this process as lost at this moment.
	if err := r.untilAlive(r.ctx); err != nil {
		return &storeError{err}
	}
	return nil
}

// mayWait reports whether a step may wait for the one that follows: the run executes no call, before it or after it.
func (r *running) mayWait(d dag.DAG) bool {
	executes := func(h *node.Node) bool {
		e, is := h.Payload().(node.ToolExecution)
		return is && e.State == node.ExecutionStarted
	}
	return r.own == nil && !slices.ContainsFunc(r.stored, executes) && !slices.ContainsFunc(d.Heads(), executes)
}

// postpone lets a step wait for the one that follows. It returns the error of an earlier one.
func (r *running) postpone(d dag.DAG) error {
	if r.failure != nil {
		return r.failure
	}
	if r.unstored == nil {
		r.unstored = &unstored{timer: time.AfterFunc(soon, func() { _ = r.storeUnstored() })}
	}
	r.unstored.d, r.unstored.taken = d, r.inbox.given(d)
	if asksNext(d) {
		return r.more(r.ctx)
	}
	return nil
}

// storeUnstored stores the step that waits.
func (r *running) storeUnstored() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.unstored; u != nil && r.failure == nil {
		r.unstored = nil
		u.timer.Stop()
		r.failure = r.write(u.d, u.taken, "", "")
	}
	return r.failure
}

// forgetUnstored drops the step that waits: a later one has it, or it is another process's.
func (r *running) forgetUnstored() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropUnstored()
}

func (r *running) dropUnstored() {
	if r.unstored != nil {
		r.unstored.timer.Stop()
		r.unstored = nil
	}
}

// notMine is the result of a job that another process has, or that was cancelled. It never completes a job: should the
// row still be this process's, it becomes available again.
var notMine = river.JobSnooze(time.Second)

// step stores the new nodes of d, and with a state other than "" finishes the job.
func (r *running) step(d dag.DAG, state State, reason string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stepLocked(d, state, reason)
}

// stepLocked is step while r.mu is held. A step that waits is stored with this one.
func (r *running) stepLocked(d dag.DAG, state State, reason string) error {
	r.dropUnstored()
	if err := r.write(d, r.inbox.given(d), state, reason); err != nil || r.over || !asksNext(d) {
		return err
	}
	return r.more(r.ctx)
}

// write is stepLocked with the rows of the inbox that d has.
func (r *running) write(d dag.DAG, taken []int64, state State, reason string) error {
	if state == "" && len(taken) == 0 && slices.Equal(d.Heads(), r.stored) {
		return nil
	}

	// A step of a process that others count as lost could start tools a second time.
	if err := r.untilAlive(r.ctx); err != nil {
		return err
	}
	err := r.retry(r.ctx, func(ctx context.Context) error {
		return r.conversation.AppendWith(ctx, d, func(ctx context.Context, a store.AppendRequest) (h store.Head, err error) {
			for range maxRaces {
				a.Taken = taken
				if state == "" {
					h, err = r.appendIfHeld(ctx, a, r.claim)
				} else {
					h, err = r.last(ctx, a, state, reason)
				}

				// Somebody has redacted the conversation: the head has another version, and the same nodes.
				var conflict *store.ConflictError
				if !errors.As(err, &conflict) || !sameNodes(conflict.Current, r.stored) {
					break
				}
				a.Expect = conflict.Current.Version
			}
			return h, err
		})
	})
	if err != nil {
		return err
	}
	r.stored, r.steps, r.over = d.Heads(), r.steps+1, state != ""
	r.inbox.forget(taken)
	if state.Ended() || state == Parked {
		r.ends.bells.Ring(r.args.Run)
	}
	return nil
}

// asksNext reports whether the next thing that a run does is a request: its last node is a message of the user.
func asksNext(d dag.DAG) bool {
	if d.Head() == nil {
		return false
	}
	m, is := d.Head().Message()
	return is && m.Role == content.User
}

// last is the transaction of the last step of a job: it ends the job, too.
func (r *running) last(ctx context.Context, a store.AppendRequest, state State, reason string) (h store.Head, err error) {
	err = r.db.Update(ctx, func(tx store.Tx) (err error) {
		if err := r.finishRun(ctx, tx, state, reason); err != nil {
			// The reply to an earlier try may have been lost: then the head is where this step moves it.
			if now, headErr := tx.Head(ctx, a.Conversation, a.Head); headErr == nil && isAt(now, a) {
				h = now
				return errStored
			}
			return err
		}
		if h, err = tx.Append(ctx, a); err != nil {
			return err
		}
		return r.next(ctx, tx, state, reason)
	})
	if errors.Is(err, errStored) {
		err = nil
	}
	return h, err
}

// errStored ends a transaction that an earlier try has committed.
var errStored = errors.New("durable: the step is stored already")

// isAt reports whether a head is where an append moves it. It may have another version since, after a redaction.
func isAt(h store.Head, a store.AppendRequest) bool {
	return h.Version > a.Expect && slices.Equal(h.Nodes, a.Nodes)
}

// isStored reports whether an append has been made, although it was refused: its new nodes are at the head. Without new
// nodes that cannot be told from a redaction.
func isStored(h store.Head, a store.AppendRequest) bool { return len(a.Records) > 0 && isAt(h, a) }

// sameNodes reports whether a head is at these nodes.
func sameNodes(h store.Head, nodes []*node.Node) bool {
	return slices.EqualFunc(h.Nodes, nodes, func(id node.ID, n *node.Node) bool { return n.ID() == id })
}

// finishRun ends the attempt of the run's job, and writes the state of the run. It returns errLost as finish does, also if
// the run was cancelled.
func (r *running) finishRun(ctx context.Context, tx store.Tx, state State, reason string) error {
	job := int64(0)
	if state == Waiting || state == Parked {
		job = r.claim.id
	}
	if !r.queue.dialect().writesInWith {
		if err := r.finish(ctx, tx, r.claim, state); err != nil {
			return err
		}
		unfinished, err := setState(ctx, tx, r.args.Run, state, reason, job)
		if err == nil && !unfinished {
			err = errLost
		}
		return err
	}

	n, err := tx.Exec(ctx, `WITH finished AS (`+r.finishQuery(state)+` RETURNING id)
		UPDATE plait_index SET state = $3, reason = $4, busy = $5, job = $6, changed = `+tx.Now()+`
		WHERE id = $7 AND busy = 1 AND EXISTS (SELECT 1 FROM finished)`,
		r.claim.id, int64(r.claim.attempt), string(state), reason, state.busy(), job, r.args.Run)
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// next does what follows the state of a run whose job is finished. If messages are waiting, a run that is done continues
// with them.
func (r *running) next(ctx context.Context, tx store.Tx, state State, reason string) error {
	if err := r.release(ctx, tx); err != nil {
		return err
	}
	switch state {
	case Waiting:
		return r.pause(ctx, tx)
	case Parked:
		return r.note(ctx, tx, r.claim.id, noted{Parked: reason})
	}
	if state != Done {
		return nil
	}

	// The row of the run is locked now: nobody sends a message any more.
	waiting, err := hasMessages(ctx, tx, r.args.Conversation, r.args.Head)
	if err != nil || !waiting {
		return err
	}
	job, err := r.insertRun(ctx, tx, r.args, 0)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE plait_index SET state = $1, reason = '', busy = 1, job = $2 WHERE id = $3`,
		string(Active), job, r.args.Run)
	return err
}

// rest stores a pause, and then calls the program's own Save.
func (r *running) rest(d dag.DAG, reason string) error {
	r.paused = d
	err := r.end(d, Waiting, reason)
	if err == nil && r.own != nil {
		if failed := r.own(context.WithoutCancel(r.ctx), d); failed != nil {
			r.Log.WarnContext(r.ctx, "durable: the agent's own Save failed at a pause", "run", r.args.Run, "error", failed)
		}
	}
	return err
}

// pause inserts the jobs of the calls of a paused run. It continues at once if the replies came before.
func (r *running) pause(ctx context.Context, tx store.Tx) error {
	if err := r.pauseJobs(ctx, tx, r.args, r.paused, r.waited); err != nil {
		return err
	}
	if !r.pended {
		return nil // nobody could reply to these calls before this pause
	}
	replied, err := repliedCalls(ctx, tx, r.args.target())
	if err != nil {
		return err
	}
	return r.wake(ctx, tx, r.paused, replied, Run{
		ID: r.args.Run, Conversation: r.args.Conversation, Head: r.args.Head, Agent: r.args.Agent, job: r.claim.id,
		start: r.args.Message,
	})
}

// end stores the last step of the run.
func (r *running) end(d dag.DAG, state State, reason string) error {
	return r.settled(r.step(d, state, reason))
}

// settled returns the error of a last step for River: nil if there is nothing to retry.
func (r *running) settled(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errLost), errors.Is(err, errLapsed):
		return notMine
	case errors.Is(err, store.ErrMoved):
		return r.only(Failed, err.Error())
	case context.Cause(r.ctx) != nil:
		return r.giveBack()
	}
	return err
}

// failed handles the error of a run: it ends, parks or continues it later.
func (r *running) failed(d dag.DAG, err error) error {
	var panicked *panicError
	var unstored *storeError
	var paused *executor.PausedError
	var stale *executor.ResumeError

	switch {
	case errors.As(err, &paused):
		return r.rest(d, string(paused.Reason))
	case errors.As(err, &stale), errors.Is(err, errDamaged):
		return r.only(Parked, err.Error())
	case errors.As(err, &panicked):
		r.Log.ErrorContext(r.ctx, "durable: a run panicked", "run", r.args.Run, "panic", panicked.value,
			"stack", string(panicked.stack))
		return r.only(Parked, err.Error())
	case errors.Is(err, dag.ErrVersion):
		// A newer version of Plait has written to the conversation: leave the run to a program that can read it.
		r.Log.WarnContext(r.ctx, "durable: a run is left to a newer program", "run", r.args.Run, "error", err)
		return river.JobSnooze(30 * time.Second)
	case deleted(err) && errors.As(err, &unstored):
		return r.only(Cancelled, "the conversation was deleted")
	case errors.Is(err, store.ErrMoved):
		return r.only(Failed, err.Error())
	case errors.As(err, &unstored), api.Retryable(err):
		return r.later(d, err)
	}
	return r.end(d, Failed, err.Error())
}

// only finishes the job and writes a state, without nodes.
func (r *running) only(state State, reason string) error {
	return r.close(func(ctx context.Context, tx store.Tx) error {
		if err := r.finishRun(ctx, tx, state, reason); err != nil {
			return err
		}
		return r.next(ctx, tx, state, reason)
	})
}

// close finishes the job with a transaction.
func (r *running) close(f func(context.Context, store.Tx) error) error {
	err := r.retry(r.ctx, func(ctx context.Context) error {
		return r.db.Update(ctx, func(tx store.Tx) error { return f(ctx, tx) })
	})
	r.ends.bells.Ring(r.args.Run)
	if errors.Is(err, errLost) {
		return notMine
	}
	return err
}

// again finishes the job and inserts another one for the run.
func (r *running) again(wait time.Duration) error {
	return r.close(func(ctx context.Context, tx store.Tx) error {
		if err := r.finish(ctx, tx, r.claim, Active); err != nil {
			return err
		}
		if err := r.release(ctx, tx); err != nil {
			return err
		}
		job, err := r.insertRun(ctx, tx, r.args, wait)
		if err != nil {
			return err
		}
		_, err = setState(ctx, tx, r.args.Run, Active, "", job)
		return err
	})
}

// giveBack gives the run to another process, because this one ends.
func (r *running) giveBack() error { return r.again(0) }

// later tries the run again after a while. River counts the attempts and keeps their errors. They begin anew after a
// step, because the run then continues.
func (r *running) later(d dag.DAG, err error) error {
	r.Log.WarnContext(r.ctx, "durable: a run is tried again later", "run", r.args.Run, "error", err)
	switch {
	case r.steps > 0:
		return r.again(retryAfter(1))
	case r.attempt >= r.attempts:
		return r.only(Parked, fmt.Sprintf("it failed %s without a step in between: %v", describe.Count(r.attempt, "time"), err))
	}
	return err
}

// textLosses is the reason of a run that is parked because of lost processes.
func textLosses(losses int) string {
	return fmt.Sprintf("%d processes were lost while they executed the same step of it", losses)
}

// stopOf returns the stop reason of the conversation's last run.
func stopOf(d dag.DAG) content.Stop {
	if d.Head() != nil {
		if stop, ok := d.Head().Payload().(node.StopReason); ok {
			return stop.Reason
		}
	}
	return content.StopEndTurn
}
