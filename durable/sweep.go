package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// sweepUntilDone looks for work that was lost, every Poll.
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

// sweep rings again for work that nobody took, and stores an error result for calls that cannot be executed any more.
func (p *pool) sweep(ctx context.Context) error {
	swept, err := p.store.Sweep(ctx, store.SweepRequest{Grace: 5 * p.Poll})
	if err != nil {
		return err
	}

	for _, task := range swept.Expired {
		// Refused if the call got a result meanwhile: that one holds.
		if _, err := p.store.Accept(ctx, expired(task)); err != nil && !refused(err) {
			return err
		}
	}
	return nil
}

// Texts that the model reads in place of a result.
const (
	textInDoubt   = content.OutcomeUnknown
	textExhausted = "The call was given up: the process that executed it was lost %d times."
	textLate      = "The call was given up: it had no result by its deadline."
)

// expired returns the result for a call that cannot be executed any more.
func expired(task store.TaskState) store.Result {
	r := store.Result{Key: task.Task.Key}
	text := textInDoubt

	// With attempts left, it is the deadline that has passed. With one attempt, the call may have been executed.
	switch {
	case task.Claims == 0 || task.Task.Attempts == 0 || task.Claims < task.Task.Attempts:
		r.Outcome, text = store.OutcomeTimeout, textLate
	case task.Task.Attempts == 1:
		r.Outcome = store.OutcomeInDoubt
	default:
		r.Outcome, text = store.OutcomeError, fmt.Sprintf(textExhausted, task.Claims)
	}

	r.Payload, _ = executor.Failed(text).MarshalJSON() // a text can be encoded
	return r
}
