package api

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"
)

// Fallback returns a provider that sends a request to first, and to the others in order while they fail for lack of
// capacity or because of an outage: with a [Retryable] error (ErrRateLimited, ErrOverloaded, ErrServer, ErrTransport,
// ErrCut or ErrStalled). Any other error is returned unchanged, because another provider would not help.
//
//   - A [Retry] comes before the events of the next provider. Its Err is why the previous one failed, and its Wait is
//     0. The part of the response before it is void, so a fallback is possible in the middle of a response.
//   - Finish.API and Finish.Model name the provider of the response.
//   - A provider with a requested wait (Error.RetryAfter) is skipped until the wait is over. If all are waiting, no
//     request is sent. The error is then that of the provider with the shortest remaining wait, with RetryAfter set to
//     that time.
//   - If all fail, the error of the last one is returned.
//
// A [Client] of the returned provider retries all of them, from the first. Changing the provider loses the parts of a
// conversation that only their origin can read: see docs/switching.md. The options of a request go to every provider;
// use [With] for options of one provider.
func Fallback(first Provider, others ...Provider) Provider {
	f := &fallback{}
	for _, p := range slices.Concat([]Provider{first}, others) {
		f.members = append(f.members, &member{provider: p})
	}
	return f
}

type fallback struct{ members []*member }

// member is a provider and the wait it requested.
type member struct {
	provider Provider

	mu    sync.Mutex // guards the fields below
	until time.Time  // no request is sent before; zero if no wait was requested
	err   *Error     // the error with the requested wait
}

func (f *fallback) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return Once(func(yield func(Event, error) bool) {
		ready, busy := f.ready(time.Now())
		if len(ready) == 0 {
			yield(nil, busy)
			return
		}

		for i, m := range ready {
			attempt := attempt{emit: emitTo(yield), start: time.Now()}
			// The method of Client handles a nil provider, and one that returns a nil sequence.
			(&Client{provider: m.provider}).events(ctx, req)(attempt.take)
			err := attempt.finish()
			if err == nil || attempt.stopped != nil {
				return
			}

			m.failed(err)
			part, arrived := attempt.partial()
			cut := Cut{part.Finish}

			// The last provider has failed, or another one would not help: report the error.
			if i == len(ready)-1 || !Retryable(err) || ctx.Err() != nil {
				if !arrived || yield(cut, nil) {
					yield(nil, err)
				}
				return
			}
			if !yield(Retry{Attempt: i + 1, Err: err, Cut: cut}, nil) {
				return
			}
		}
	})
}

// ready returns the members without a wait, in order. If there are none, it returns the error with the shortest
// remaining wait.
func (f *fallback) ready(now time.Time) (ready []*member, busy error) {
	var soonest time.Time
	for _, m := range f.members {
		m.mu.Lock()
		if !m.until.After(now) {
			ready = append(ready, m)
		} else if busy == nil || m.until.Before(soonest) {
			// Return a copy, with the remaining time: an earlier caller has the error itself.
			current := *m.err
			current.RetryAfter = m.until.Sub(now)
			busy, soonest = &current, m.until
		}
		m.mu.Unlock()
	}
	return ready, busy
}

// failed records the wait requested by the error, if any.
func (m *member) failed(err error) {
	var e *Error
	if !errors.As(err, &e) || e.RetryAfter <= 0 || !Retryable(err) {
		return
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	m.until, m.err = time.Now().Add(e.RetryAfter), e
}
