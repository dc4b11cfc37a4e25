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
	stored       []*node.Node    // the heads that were stored last
	next         store.Step      // what goes with the next commit; Lease and Append are set by it
	over         bool            // the lease has ended with a step
	held         context.Context // done when the lease is lost, or Serve gives the run up: the agent stores nothing then
}

// do executes the run up to its next pause or its end.
func (r *running) do(ctx context.Context) {
	held, stop := r.hold(ctx, r.engine.Store, r.ClaimedRun.Lease)
	defer stop()
	r.held = held
	if time.Since(r.began) >= r.Settings.Lease {
		return // the process was frozen: the run is somebody else's by now
	}
	if most := r.engine.attempts(); r.Run.Claims > most {
		r.park(ctx, fmt.Sprintf("it lost its process %d times", most))
		return
	}

	d, err := r.execute(held)
	switch {
	case r.over:
	case held.Err() != nil:
		// Interrupted, as in a crash: the steps that were stored hold. A lost lease cannot be given back.
		_ = r.engine.Store.Release(context.WithoutCancel(ctx), r.ClaimedRun.Lease, 0, true)
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
	r.next.Consume = r.Continuation.ID
	if paused.Reason == content.StopApproval {
		// An approval is used once: consume it before the calls that it lets run.
		if _, err := r.commit(ctx, nil); err != nil {
			return d, &storeError{err}
		}
	}
	return agent.Resume(ctx, d, paused, replies)
}

// replies returns the continuation with the replies to its calls.
func (r *running) replies() (executor.Continuation, map[string]executor.Reply, error) {
	paused, err := executor.ContinuationCodec{}.Decode(r.Continuation.Payload)
	if err != nil {
		return paused, nil, err
	}
	replies := map[string]executor.Reply{}
	for _, result := range r.Continuation.Results {
		var reply executor.Reply
		if err := reply.UnmarshalJSON(result.Payload); err != nil {
			return paused, nil, fmt.Errorf("the reply to %s: %w", result.Key, err)
		}
		replies[result.Key.Call] = reply
	}
	return paused, replies, nil
}

// storeError is a failure of the store. Whether the step was stored is unknown: the run goes on from what is there.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// parkError is why no process can go on with the run.
type parkError struct{ error }

func (e *parkError) Unwrap() error { return e.error }

// save returns the Save of the run's agent. own is that of the program; it may be nil.
func (r *running) save(own func(context.Context, dag.DAG) error) func(context.Context, dag.DAG) error {
	return func(ctx context.Context, d dag.DAG) error {
		if r.held.Err() != nil { // what the agent makes of the interruption is not part of the run
			return errInterrupted
		}

		// Results come with the step that consumes their continuation: all of them in one step, or none.
		if r.next.Consume != "" && len(d.OpenCalls()) > 0 {
			return nil
		}

		// The end of the run comes with its last step. A failure is looked at first: it may be worth another attempt.
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

// store commits the next step, with what is new in d.
func (r *running) store(ctx context.Context, d dag.DAG) error {
	more := r.next.Consume != "" || r.next.Pause != nil || r.next.End != ""
	if !more && slices.Equal(d.Heads(), r.stored) {
		return nil
	}
	err := r.conversation.AppendBy(ctx, d, func(ctx context.Context, a store.Append) (store.Head, error) {
		return r.commit(ctx, &a)
	})
	if err == nil {
		r.stored = d.Heads()
	}
	return err
}

// commit commits the next step, with nodes or without.
func (r *running) commit(ctx context.Context, a *store.Append) (store.Head, error) {
	step := r.next
	step.Lease, step.Append = r.ClaimedRun.Lease, a
	head, err := r.engine.Store.Commit(ctx, step)
	if err == nil {
		r.next, r.over = store.Step{}, step.Pause != nil || step.End != ""
	}
	return head, err
}

// failed decides about a run that came to no end of its own.
func (r *running) failed(ctx context.Context, d dag.DAG, err error) {
	var paused *executor.PausedError
	var unstored *storeError
	var unreadable *parkError
	var stale *executor.ResumeError
	switch {
	case errors.As(err, &paused):
		pause, err := r.engine.pauseOf(r.Run, paused.Continuation)
		if err != nil {
			r.park(ctx, err.Error())
			return
		}
		r.finish(ctx, d, store.Step{Pause: pause})

	case errors.As(err, &unreadable), errors.As(err, &stale):
		r.park(ctx, err.Error())
	case errors.As(err, &unstored), api.Retryable(err):
		r.later(ctx, err)
	default:
		r.finish(ctx, d, store.Step{End: store.RunFailed, Reason: err.Error()})
	}
}

// later gives the run back, to be claimed again after a while.
func (r *running) later(ctx context.Context, err error) {
	r.Log.WarnContext(ctx, "durable: a run is tried again later", "run", r.Run.ID, "error", err)
	wait := r.Poll << min(r.Run.Claims, 8)
	_ = r.engine.Store.Release(context.WithoutCancel(ctx), r.ClaimedRun.Lease, wait, false) // or the lease ends by itself
}

// park sets the run aside. Its continuation is kept.
func (r *running) park(ctx context.Context, reason string) {
	r.next = store.Step{End: store.RunParked, Reason: reason}
	r.report(ctx, r.retry(ctx, func(ctx context.Context) error {
		_, err := r.commit(ctx, nil)
		return err
	}))
}

// finish stores the last step of this process: what is new in d, with a pause or an end.
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

// stopOf returns the reason for which the conversation's last run has ended.
func stopOf(d dag.DAG) content.Stop {
	if d.Head() != nil {
		if stop, ok := d.Head().Payload().(node.StopReason); ok {
			return stop.Reason
		}
	}
	return content.StopEndTurn
}
