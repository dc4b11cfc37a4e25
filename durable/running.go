package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/pausing"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// running is a claimed run that this process executes.
type running struct {
	engine *Engine
	Settings
	store.ClaimedRun
	began time.Time // before the claim

	conversation *store.Conversation
	stored       []*node.Node    // the heads of the last commit
	pending      []node.CallKey  // the pending calls of the resumed continuation
	next         store.Step      // for the next commit, which sets Lease and Append
	over         bool            // a step has ended the lease: the run has paused or ended
	held         context.Context // done when the lease is lost or Serve interrupts: nothing is stored after that
}

// do executes the run up to its next pause or its end.
func (r *running) do(ctx context.Context) {
	held, stop := r.hold(ctx, r.engine.Store, r.ClaimedRun.Lease)
	defer stop()
	r.held = held

	if r.since(r.began) >= r.Settings.Lease {
		return // the process was frozen since the claim, and the lease has ended
	}
	if limit := r.engine.attempts(); r.Run.Claims > limit {
		r.park(ctx, fmt.Sprintf("it was claimed %s without a pause", describe.Count(limit, "time")))
		return
	}

	d, err := r.execute(held)
	switch {
	case r.over:
	case errors.Is(context.Cause(held), errInterrupted):
		// Another process continues from the last commit, as after a crash. This claim does not count.
		_ = r.engine.Store.Release(context.WithoutCancel(ctx), r.ClaimedRun.Lease, 0, true)
	case held.Err() != nil: // the lease is lost, or the run is cancelled: there is nothing to give back
	case err == nil || errors.Is(err, executor.ErrAnswered):
		r.finish(ctx, d, store.Step{End: store.RunDone, Reason: string(stopOf(d))})
	default:
		r.failed(ctx, d, err)
	}
}

// execute begins, continues or resumes the run.
func (r *running) execute(ctx context.Context) (dag.DAG, error) {
	c, err := open(ctx, r.engine.Store, r.Run.Conversation, r.Run.Head)
	if err != nil {
		return dag.DAG{}, &storeError{err}
	}
	r.conversation, r.stored = c, c.DAG().Heads()

	agent := r.engine.Agents[r.Run.Agent]
	agent.Save = r.save(agent.Save)
	d := c.DAG().WithSource(r.engine.Source)
	if r.Continuation == nil {
		return agent.Run(ctx, d)
	}

	paused, replies, err := r.replies()
	if err != nil {
		return d, &parkError{err}
	}

	r.next.Consume, r.pending = r.Continuation.ID, paused.Calls
	if paused.Reason == content.StopApproval {
		// An approval counts once, so consume it before the approved calls run. After a crash it cannot be used again.
		if _, err := r.commit(ctx, nil); err != nil {
			return d, &storeError{err}
		}
	}
	return agent.Resume(executor.WithAttributes(ctx, paused.Attributes), d, replies...)
}

// replies returns the continuation with the replies to its calls.
func (r *running) replies() (executor.Continuation, []executor.Reply, error) {
	paused, err := executor.ContinuationCodec{}.Decode(r.Continuation.Payload)
	if err != nil {
		return paused, nil, err
	}

	var replies []executor.Reply
	for _, result := range r.Continuation.Results {
		var reply executor.Reply
		if err := reply.UnmarshalJSON(result.Payload); err != nil {
			return paused, nil, fmt.Errorf("the reply to %s: %w", result.Key, err)
		}
		replies = append(replies, reply)
	}
	return paused, replies, nil
}

// storeError is a failure of the store. It is unknown whether the step was stored. The run is released, and the next
// claim continues from the stored state.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// parkError is an error of a run that no process can continue.
type parkError struct{ error }

func (e *parkError) Unwrap() error { return e.error }

// save returns the Save of the run's agent. It commits each step, and then calls own, the program's Save, which may be
// nil.
func (r *running) save(own func(context.Context, dag.DAG) error) func(context.Context, dag.DAG) error {
	return func(ctx context.Context, d dag.DAG) error {
		// Drop nodes appended after an interruption: another process continues from the last commit.
		if r.held.Err() != nil {
			return errInterrupted
		}

		// All results of a continuation are stored in the step that consumes it. Wait for the last one.
		if r.next.Consume != "" && waits(d, r.pending) {
			return nil
		}

		// Without a Save of the program, the last nodes are stored together with the pause. Otherwise store them now,
		// because the program's Save gets only stored nodes.
		if pausing.Marked(ctx) && own == nil {
			return nil
		}

		// Store the end of the run with its last step. After an error it may not be the end: failed decides whether the
		// run is tried again.
		if head := d.Head(); head != nil && !slices.Contains(r.stored, head) {
			stop, isEnd := head.Payload().(node.StopReason)
			if isEnd && stop.Reason != content.StopError {
				r.next.End, r.next.Reason = store.RunDone, string(stop.Reason)
			}
		}

		if err := r.store(ctx, d); err != nil {
			return &storeError{err}
		}
		if own != nil {
			return own(ctx, d)
		}
		return nil
	}
}

// waits reports whether one of the calls still waits in d.
func waits(d dag.DAG, calls []node.CallKey) bool {
	return slices.ContainsFunc(d.Pending(), func(p dag.Pending) bool { return slices.Contains(calls, p.Key) })
}

// store commits the next step with the new nodes of d. It does nothing if there is nothing to commit.
func (r *running) store(ctx context.Context, d dag.DAG) error {
	more := r.next.Consume != "" || r.next.Pause != nil || r.next.End != ""
	if !more && slices.Equal(d.Heads(), r.stored) {
		return nil
	}

	err := r.conversation.AppendWith(ctx, d, func(ctx context.Context, a store.AppendRequest) (store.Head, error) {
		return r.commit(ctx, &a)
	})
	if err == nil {
		r.stored = d.Heads()
	}
	return err
}

// commit commits the next step. a holds the nodes; nil appends none.
func (r *running) commit(ctx context.Context, a *store.AppendRequest) (store.Head, error) {
	step := r.next
	step.Lease, step.Append = r.ClaimedRun.Lease, a
	head, err := r.engine.Store.Commit(ctx, step)
	if err == nil {
		r.next, r.over = store.Step{}, step.Pause != nil || step.End != ""
	}
	return head, err
}

// failed handles the error of a run: it stores a pause, parks the run, releases it to be tried again, or ends it as
// failed.
func (r *running) failed(ctx context.Context, d dag.DAG, err error) {
	var paused *executor.PausedError
	var unstored *storeError
	var unreadable *parkError
	var stale *executor.ResumeError

	switch {
	case errors.Is(err, executor.ErrVersion):
		r.leave(ctx, err)
	case errors.As(err, &paused):
		pause, err := r.engine.pauseOf(r.Run, paused.Continuation, d)
		if err != nil {
			r.finish(ctx, d, store.Step{End: store.RunParked, Reason: err.Error()}) // with the nodes before the pause
			return
		}
		r.finish(ctx, d, store.Step{Pause: pause})

	case errors.As(err, &unreadable), errors.As(err, &stale):
		r.park(ctx, err.Error())
	case errors.As(err, &unstored) && leaseEnded(err):
		r.report(ctx, err) // there is nothing to give back
	case errors.As(err, &unstored), api.Retryable(err):
		r.later(ctx, err)
	default:
		r.finish(ctx, d, store.Step{End: store.RunFailed, Reason: err.Error()})
	}
}

// leaseEnded reports whether the store has refused a step because the run belongs to nobody or to another process.
func leaseEnded(err error) bool {
	return errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrRunEnded) || errors.Is(err, store.ErrNoRun)
}

// later releases the run, to be claimed again after a while. The wait doubles with each claim.
func (r *running) later(ctx context.Context, err error) {
	r.Log.WarnContext(ctx, "durable: a run is tried again later", "run", r.Run.ID, "error", err)
	wait := r.Poll << min(r.Run.Claims, 8)

	// If the release fails, the lease ends by itself.
	_ = r.engine.Store.Release(context.WithoutCancel(ctx), r.ClaimedRun.Lease, wait, false)
}

// leave gives back a run that a newer version of Plait has written to, for a program that can read it. The claim does
// not count, so that the run is not parked meanwhile.
func (r *running) leave(ctx context.Context, err error) {
	r.Log.WarnContext(ctx, "durable: a run is left to a newer program", "run", r.Run.ID, "error", err)

	// If the release fails, the lease ends by itself.
	_ = r.engine.Store.Release(context.WithoutCancel(ctx), r.ClaimedRun.Lease, r.Settings.Lease, true)
}

// park sets the run aside. Its continuation is kept.
func (r *running) park(ctx context.Context, reason string) {
	r.next = store.Step{End: store.RunParked, Reason: reason}
	r.report(ctx, r.retry(ctx, func(ctx context.Context) error {
		_, err := r.commit(ctx, nil)
		return err
	}))
}

// finish stores the last step of this process: the new nodes of d, with a pause or an end.
func (r *running) finish(ctx context.Context, d dag.DAG, step store.Step) {
	step.Consume = r.next.Consume
	r.next = step
	r.report(ctx, r.retry(ctx, func(ctx context.Context) error { return r.store(ctx, d) }))
}

func (r *running) report(ctx context.Context, err error) {
	if err != nil {
		r.Log.WarnContext(ctx, "durable: a step was not stored", "run", r.Run.ID, "error", err)
	}
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
