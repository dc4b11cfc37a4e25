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
	if c, ok := p.(*Client); ok && c != nil {
		if o == nil {
			return c
		}
		p = c.provider
	}
	return &Client{provider: p, options: o.withDefaults()}
}

// Send makes the request and returns the whole answer. Its errors are those of Stream.
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
// Its blocks are checked as by content.Of, and its Finish comes when the provider has ended.
//
// The error of the last attempt is returned as it came. An end of the context is an error with the context's error and its cause
// in the chain. A provider that breaks the rules of [Provider] is ErrProtocol, an answer without an end ErrCut.
func (c *Client) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return Once(func(yield func(Event, error) bool) {
		for number := 1; ; number++ {
			if ctx.Err() != nil {
				yield(nil, ended(ctx, ctx.Err()))
				return
			}
			attempt := attempt{yield: yield, start: time.Now()}
			c.events(ctx, req)(attempt.take)
			err := attempt.finish()
			if err == nil {
				return
			}
			if number >= c.options.Attempts || !Retryable(err) || ctx.Err() != nil {
				yield(nil, ended(ctx, err))
				return
			}
			wait := c.wait(number, err)
			if !yield(Retry{Attempt: number, Wait: wait, Err: err}, nil) {
				return
			}
			if !sleep(ctx, wait) {
				yield(nil, fmt.Errorf("%w, while waiting to retry: %v", ended(ctx, ctx.Err()), err))
				return
			}
		}
	})
}

// events is the provider's sequence; one with an error where there is none.
func (c *Client) events(ctx context.Context, req Request) iter.Seq2[Event, error] {
	var none *Client
	if c.provider != nil && c.provider != Provider(none) {
		if events := c.provider.Stream(ctx, req); events != nil {
			return events
		}
	}
	return func(yield func(Event, error) bool) {
		yield(nil, protocol("there is no provider, or it gave no sequence"))
	}
}

// attempt makes a request once and hands its events on. The provider calls take itself, not by a range statement, so that one
// that goes on after it was told to stop is in the wrong and does no harm.
type attempt struct {
	yield func(Event, error) bool
	start time.Time
	fold  Fold
	end   *Finish // held back until the provider has ended, so that nothing follows it
	err   error
	left  bool // the consumer left
}

func (a *attempt) take(event Event, err error) bool {
	if a.err != nil || a.left {
		return false
	}
	if err == nil {
		err = a.fold.Add(event)
	}
	if err != nil {
		a.err = err
		return false
	}
	switch e := event.(type) {
	case Finish:
		end := a.fold.response.Finish
		a.end = &end
		return true
	case BlockEnd:
		event = BlockEnd{Index: e.Index, Block: a.fold.blocks[e.Index]}
	}
	a.left = !a.yield(event, nil)
	return !a.left
}

// finish hands on the end of the answer when there is one, and otherwise returns why not. It returns no error when the consumer
// left.
func (a *attempt) finish() error {
	switch {
	case a.left:
		return nil
	case a.err != nil:
		return a.err
	case a.end == nil:
		return &Error{Kind: ErrCut, Err: errors.New("the provider ended without an end of the answer")}
	}
	if a.end.Latency == 0 {
		a.end.Latency = time.Since(a.start)
	}
	a.yield(*a.end, nil)
	return nil
}

// ended returns err with the context's error and its cause in the chain, if err is due to the end of the context.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil || !Retryable(err) && !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)) {
		return err
	}
	for _, why := range []error{ctx.Err(), context.Cause(ctx)} {
		if !errors.Is(err, why) {
			err = fmt.Errorf("%w: %w", why, err)
		}
	}
	return err
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

// sleep waits for d and reports whether the context was alive until then.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Fold puts the events of one answer together. The zero value is ready to use.
type Fold struct {
	blocks   []content.Block
	response Response
	begun    bool
	finished bool
}

// Add takes the next event. An event that breaks the rules of [Provider] is an error with ErrProtocol in its chain, and changes
// nothing. A [Retry] begins anew.
func (f *Fold) Add(event Event) error {
	if f.finished {
		return protocol("%T after the end of the answer", event)
	}
	switch e := event.(type) {
	case Retry:
		*f = Fold{}
		return nil
	case Repaired:
		if f.begun {
			return protocol("%T is not the first event", event)
		}
		f.response.Repairs = e.Repairs
	case Delta:
	case BlockEnd:
		if err := f.add(e); err != nil {
			return err
		}
	case Finish:
		return f.finish(e)
	default:
		return protocol("unknown event %T", event)
	}
	f.begun = true
	return nil
}

func (f *Fold) add(e BlockEnd) error {
	if e.Index != len(f.blocks) {
		return protocol("block %d after %d blocks", e.Index, len(f.blocks))
	}
	block, err := content.Of(e.Block)
	if err != nil {
		return protocol("block %d: %w", e.Index, err)
	}
	if _, result := block.At(0).(content.ToolResult); result {
		return protocol("block %d is a tool result, which an assistant cannot give", e.Index)
	}
	f.blocks = append(f.blocks, block.At(0))
	return nil
}

func (f *Fold) finish(e Finish) error {
	blocks, err := content.Of(f.blocks...)
	if err != nil {
		return protocol("%w", err)
	}
	if e.Stop == "" {
		e.Stop = content.StopUnknown
	}
	f.response.Finish, f.response.Blocks = e, blocks
	f.finished = true
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
