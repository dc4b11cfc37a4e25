package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/store"
)

// sweepUntilDone looks for lost work every Poll.
func (p *pool) sweepUntilDone(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(jitter(p.Poll)):
		}
		if err := p.sweep(ctx); err != nil && ctx.Err() == nil {
			p.Log.WarnContext(ctx, "durable: cannot sweep", "error", err)
		}
	}
}

// sweep repeats wake-ups for work that nobody took, and stores an error result for calls that can no longer be
// executed.
func (p *pool) sweep(ctx context.Context) error {
	swept, err := p.store.Sweep(ctx, store.SweepRequest{Grace: 5 * p.Poll})
	if err != nil {
		return err
	}

	for _, task := range swept.Expired {
		// If the call got a result meanwhile, the store refuses this one.
		if _, err := p.store.Accept(ctx, expired(task)); err != nil && !refused(err) {
			return err
		}
	}
	return nil
}

// Texts for the model in place of a result.
const (
	textInDoubt   = content.OutcomeUnknown
	textExhausted = "The call was given up: the process that executed it was lost %d times."
	textLate      = "The call was given up: it had no result by its deadline."
)

// expired returns the error result for a call that can no longer be executed.
func expired(task store.TaskState) store.Result {
	r := store.Result{Key: task.Task.Key}
	text := textInDoubt

	// If attempts are left, the deadline has passed. If the only attempt was used, the call may have been executed.
	switch {
	case task.Claims == 0 || task.Task.Attempts == 0 || task.Claims < task.Task.Attempts:
		r.Outcome, text = store.OutcomeTimeout, textLate
	case task.Task.Attempts == 1:
		r.Outcome = store.OutcomeInDoubt
	default:
		r.Outcome, text = store.OutcomeError, fmt.Sprintf(textExhausted, task.Claims)
	}

	r.Payload, _ = failure(r.Key, text).MarshalJSON() // a text can be encoded
	return r
}
