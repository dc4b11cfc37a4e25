package api

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"
)

// Fallback returns a provider that asks first and, where that fails for want of capacity or because of an outage, the others in
// their order. It goes on to the next one for the errors that [Retryable] approves: ErrRateLimited, ErrOverloaded, ErrServer,
// ErrTransport, ErrCut and ErrStalled. Every other error is returned as it is, because another provider does not mend it.
//
//   - A [Retry] comes before the events of the next provider; its Err is why the one before failed, and its Wait is 0. What was shown of an
//     answer until then is void, so a fallback is possible in the middle of an answer, too.
//   - Finish.API and Finish.Model name the provider that answered.
//   - A provider that asked to wait (Error.RetryAfter) is passed over until then. Where all of them did, no one is asked: the error of
//     the one whose wait ends first is returned, with the time that is left.
//   - Where all fail, the error of the last one is returned.
//
// A [Client] of the returned provider retries all of them, from the first. A conversation that changes the provider loses what only its
// origin can read: docs/switching.md has the rules. The options of a request go to every provider: [With] gives one its own.
func Fallback(first Provider, others ...Provider) Provider {
	f := &fallback{}
	for _, p := range slices.Concat([]Provider{first}, others) {
		f.members = append(f.members, &member{provider: p})
	}
	return f
}

type fallback struct{ members []*member }

// member is a provider, and what is known of its state.
type member struct {
	provider Provider

	mu    sync.Mutex // guards the fields below
	until time.Time  // when it may be asked again; zero for at any time
	err   *Error     // why not before
}

func (f *fallback) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return Once(func(yield func(Event, error) bool) {
		ready, busy := f.ready(time.Now())
		if len(ready) == 0 {
			yield(nil, busy)
			return
		}

		for i, m := range ready {
			attempt := attempt{emit: func(event Event) bool { return yield(event, nil) }, start: time.Now()}
			(&Client{provider: m.provider}).events(ctx, req)(attempt.take)
			err := attempt.finish()
			if err == nil || attempt.left {
				return
			}

			m.failed(err)
			part, arrived := attempt.partial()
			cut := Cut{part.Finish}
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

// ready returns the members that may be asked now, in their order. If there is none, it returns the error of the one whose wait ends
// first.
func (f *fallback) ready(now time.Time) (ready []*member, busy error) {
	var soonest time.Time
	for _, m := range f.members {
		m.mu.Lock()
		if !m.until.After(now) {
			ready = append(ready, m)
		} else if busy == nil || m.until.Before(soonest) {
			still := *m.err
			still.RetryAfter = m.until.Sub(now)
			busy, soonest = &still, m.until
		}
		m.mu.Unlock()
	}
	return ready, busy
}

// failed remembers how long the provider asks to wait.
func (m *member) failed(err error) {
	var e *Error
	if !errors.As(err, &e) || e.RetryAfter <= 0 || !Retryable(err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until, m.err = time.Now().Add(e.RetryAfter), e
}
