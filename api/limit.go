package api

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/plait-dev/plait/api/internal/idle"
)

// pace keeps the requests of a Client within its limits. A nil pace has no limits.
type pace struct {
	slots     chan struct{} // holds one element for each request under way; nil for no limit
	perMinute int           // RequestsPerMinute, for the error text
	limiter   *rate.Limiter // nil for no limit
}

func newPace(o ClientOptions) *pace {
	p := &pace{perMinute: o.RequestsPerMinute}
	if o.MaxConcurrent > 0 {
		p.slots = make(chan struct{}, o.MaxConcurrent)
	}
	if o.RequestsPerMinute > 0 {
		// No bursts: the APIs enforce a limit a minute as one a second.
		p.limiter = rate.NewLimiter(rate.Limit(float64(o.RequestsPerMinute)/60), 1)
	}
	return p
}

// begin waits until a request may be sent. End must be called when the request is over. Begin returns the context's
// error, or ErrRateLimited if the wait would end after the context's deadline.
func (p *pace) begin(ctx context.Context) (end func(), err error) {
	end = func() {}
	if p == nil {
		return end, nil
	}

	// First the slot: requests waiting for one must not begin all at once.
	if p.slots != nil {
		select {
		case p.slots <- struct{}{}:
			end = func() { <-p.slots }
		case <-ctx.Done():
			return end, ctx.Err()
		}
	}

	if err := p.waitInterval(ctx); err != nil {
		end()
		return func() {}, err
	}
	return end, nil
}

// waitInterval waits until enough time has passed since the last request.
func (p *pace) waitInterval(ctx context.Context) error {
	if p.limiter == nil {
		return nil
	}

	reservation := p.limiter.Reserve()
	wait := reservation.Delay()
	if deadline, ok := ctx.Deadline(); ok && wait > time.Until(deadline) {
		reservation.Cancel()
		return &Error{Kind: ErrRateLimited, RetryAfter: wait, Err: fmt.Errorf(
			"the client's own limit of %d requests a minute: the next one is allowed in %s, and the context ends in %s",
			p.perMinute, idle.Seconds(wait), idle.Seconds(time.Until(deadline)))}
	}
	if wait > 0 && !sleep(ctx, wait) {
		reservation.Cancel() // a later request may use it
		return ctx.Err()
	}
	return nil
}
