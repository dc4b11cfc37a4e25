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

// sweep wakes for work that nobody took, and answers the calls that nobody can execute any more.
func (p *pool) sweep(ctx context.Context) error {
	swept, err := p.store.Sweep(ctx, store.Sweep{Grace: 5 * p.Poll})
	if err != nil {
		return err
	}

	for _, task := range swept.Expired {
		// A result that comes first is as good.
		if _, err := p.store.Accept(ctx, expired(task)); err != nil && !refused(err) {
			return err
		}
	}
	return nil
}

// Texts that the model reads as the result of a call that came to none.
const (
	textInDoubt   = content.OutcomeUnknown
	textExhausted = "The call was given up: the process that executed it was lost %d times."
	textLate      = "The call was given up: it had no result by its deadline."
)

// expired returns the result of a call that nobody can execute any more.
func expired(task store.TaskState) store.Result {
	r := store.Result{Key: task.Task.Key}
	text := textInDoubt
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
