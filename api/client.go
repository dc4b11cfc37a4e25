package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/plait-dev/plait/content"
)

// ClientOptions are the options of a [Client].
type ClientOptions struct {
	// Attempts is how often a request is made in all, as long as it fails with an error that [Retryable] approves.
	// Defaults to 4; 1 means no retry.
	Attempts int
	// MinWait is the wait before the second attempt. It doubles at each further one, less a random part of up to a quarter.
	// Defaults to 1 second.
	MinWait time.Duration
	// MaxWait is the longest wait, also where the provider asks for a longer one. Defaults to 30 seconds.
	MaxWait time.Duration
}

func (o *ClientOptions) withDefaults() ClientOptions {
	var c ClientOptions
	if o != nil {
		c = *o
	}
	if c.Attempts <= 0 {
		c.Attempts = 4
	}
	if c.MinWait <= 0 {
		c.MinWait = time.Second
	}
	if c.MaxWait <= 0 {
		c.MaxWait = 30 * time.Second
	}
	return c
}

// Client makes requests of a provider: it retries, sees that the provider keeps the rules of [Provider], and folds events into
// a [Response]. It is a Provider itself.
type Client struct {
	provider Provider
	options  ClientOptions
}

// NewClient returns a client of p. A p that is a *Client already is returned as it is when o is nil, so that nothing is ever
// retried twice over.
func NewClient(p Provider, o *ClientOptions) *Client {
	if c, ok := p.(*Client); ok {
		if o == nil {
			return c
		}
		p = c.provider
	}
	return &Client{provider: p, options: o.withDefaults()}
}

// Send makes the request and returns the whole answer.
func (c *Client) Send(ctx context.Context, req Request) (Response, error) {
	var fold Fold
	for event, err := range c.Stream(ctx, req) {
		if err != nil {
			return Response{}, err
		}
		if err := fold.Add(event); err != nil {
			return Response{}, err
		}
	}
	return fold.Response()
}

// Stream is the provider's Stream with retries: a failed attempt is followed by a [Retry] event and the events of the next one.
// The last error is returned as it came.
func (c *Client) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for attempt := 1; ; attempt++ {
			err, goOn := c.attempt(ctx, req, yield)
			if !goOn {
				return
			}
			if attempt >= c.options.Attempts || !Retryable(err) || ctx.Err() != nil {
				yield(nil, err)
				return
			}
			wait := c.wait(attempt, err)
			if !yield(Retry{Attempt: attempt, Wait: wait, Err: err}, nil) {
				return
			}
			if err := sleep(ctx, wait); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// attempt makes the request once. It returns the error it ended with, and whether there is anything left to do: there is not
// when the answer is complete or the consumer left.
func (c *Client) attempt(ctx context.Context, req Request, yield func(Event, error) bool) (failure error, goOn bool) {
	var fold Fold
	start := time.Now()
	for event, err := range c.provider.Stream(ctx, req) {
		if end, ok := event.(Finish); ok {
			end.Latency = time.Since(start)
			event = end
		}
		if err == nil {
			err = fold.Add(event)
		}
		if err != nil {
			return err, true
		}
		if !yield(event, nil) {
			return nil, false
		}
	}
	if !fold.finished {
		return &Error{Kind: ErrCut, Err: errors.New("the provider ended without an end of the answer")}, true
	}
	return nil, false
}

// wait is the time between attempt and the next one: what the provider asks for, or exponential.
func (c *Client) wait(attempt int, err error) time.Duration {
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		return min(e.RetryAfter, c.options.MaxWait)
	}
	wait := c.options.MaxWait
	if attempt < 32 && c.options.MinWait<<(attempt-1)>>(attempt-1) == c.options.MinWait {
		wait = min(wait, c.options.MinWait<<(attempt-1))
	}
	return wait - time.Duration(rand.Int64N(int64(wait)/4+1))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Fold puts the events of one answer together. The zero value is ready to use.
type Fold struct {
	blocks   []content.Block
	response Response
	finished bool
}

// Add takes the next event. An event that breaks the rules of [Provider] is an error with ErrProtocol in its chain. A [Retry]
// begins anew.
func (f *Fold) Add(event Event) error {
	if f.finished {
		return protocol("%T after the end of the answer", event)
	}
	switch e := event.(type) {
	case Repaired:
		f.response.Repairs = e.Repairs
	case Retry:
		*f = Fold{}
	case Delta:
	case BlockEnd:
		if e.Index != len(f.blocks) {
			return protocol("block %d after %d blocks", e.Index, len(f.blocks))
		}
		if _, result := e.Block.(content.ToolResult); result {
			return protocol("block %d is a tool result, which an assistant cannot give", e.Index)
		}
		f.blocks = append(f.blocks, e.Block)
	case Finish:
		blocks, err := content.Of(f.blocks...)
		if err != nil {
			return protocol("%w", err)
		}
		f.response.Finish, f.response.Blocks = e, blocks
		f.finished = true
	default:
		return protocol("unknown event %T", event)
	}
	return nil
}

// Response returns the whole answer; an error with ErrCut in its chain when the answer has no end yet.
func (f *Fold) Response() (Response, error) {
	if !f.finished {
		return Response{}, &Error{Kind: ErrCut, Err: errors.New("the answer has no end")}
	}
	return f.response, nil
}

func protocol(format string, args ...any) error {
	return &Error{Kind: ErrProtocol, Err: fmt.Errorf(format, args...)}
}
