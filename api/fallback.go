package api

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"
)

// Fallback returns a provider that sends a request to first, and to the others in order while they fail with an error
// that another provider may not have: if it is [Retryable], or one of ErrQuota, ErrAuth, ErrNotFound, ErrContextTooLong
// and ErrProtocol. The others are about the request itself: an invalid option, refused content, the end of the context.
//
//   - A [Retry] comes before the events of the next provider. Its Err is why the previous one failed, and its Wait is
//     0. The part of the response before it is void, so a fallback is possible in the middle of a response.
//   - Finish.API and Finish.Model name the provider of the response.
//   - A provider with a requested wait (Error.RetryAfter) is skipped until the wait is over. If all are waiting, no
//     request is sent. The error is then that of the provider with the shortest remaining wait, with RetryAfter set to
//     that time.
//   - If all fail, the error is an *[AttemptsError] with all of them. It unwraps to the last [Retryable] one, so that a
//     Client retries, and to the last one if there is none.
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

type fallback struct {
	members []*member
}

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

		var failed []error
		for i, m := range ready {
			attempt := attempt{emit: emitTo(yield), start: time.Now()}
			// The method of Client handles a nil provider, and one that returns a nil sequence.
			(&Client{provider: m.provider}).events(ctx, req)(attempt.take)
			err := attempt.finish()
			if err == nil || attempt.stopped != nil {
				return
			}

			m.failed(err)
			failed = append(failed, err)
			cut := Cut{attempt.partial().Finish}

			// The last provider has failed, or another one would not help: report the errors.
			if i == len(ready)-1 || !elsewhere(err) || ctx.Err() != nil {
				if cut.Finish == (Finish{}) || yield(cut, nil) {
					yield(nil, joined(failed))
				}
				return
			}
			if !yield(Retry{Attempt: i + 1, Err: err, Cut: cut}, nil) {
				return
			}
		}
	})
}

// joined returns the error of a request that failed with each of the providers in a row.
func joined(failed []error) error {
	if len(failed) == 1 {
		return failed[0]
	}

	// A request that cannot be repaired elsewhere is reported as such, whatever failed before it.
	last := len(failed) - 1
	if elsewhere(failed[last]) {
		for i, err := range failed {
			if Retryable(err) {
				last = i
			}
		}
	}
	return &AttemptsError{Err: failed[last], Earlier: slices.Concat(failed[:last], failed[last+1:])}
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
