package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// ClientOptions are the options of a [Client].
type ClientOptions struct {
	// Attempts is how often a request is made in all, as long as it fails with an error that [Retryable] approves.
	// Defaults to 4; 1 means no retry.
	Attempts int
	// MinWait is the wait before the second attempt. It doubles at each further one, less a random part of up to a quarter.
	// Defaults to 1 second.
	MinWait time.Duration
	// MaxWait is the longest wait where the provider does not say how long to wait. Defaults to 30 seconds.
	MaxWait time.Duration
	// MaxRetryAfter is the longest wait that a provider may ask for (Error.RetryAfter). The client waits exactly as long as it is
	// asked to; a longer wait than this ends the request at once. Negative is no limit. Defaults to 1 hour.
	MaxRetryAfter time.Duration
	// MaxConcurrent is the number of requests that the client makes at the same time; further ones wait. A request that waits to be
	// retried does not count. Whoever makes a request of the same client while ranging over a stream of it needs two. Defaults to no
	// limit.
	MaxConcurrent int
	// RequestsPerMinute is how many requests the client makes a minute, retries included, at even intervals. A request that could
	// not begin before the context's deadline fails at once with ErrRateLimited. Defaults to no limit.
	RequestsPerMinute int
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
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = time.Hour
	}

	return c
}

// Client makes requests of a provider: it retries, sees that the provider keeps the rules of [Provider], and folds events into
// a [Response]. It is a Provider itself.
// The zero value has no provider and cannot be used: call [NewClient].
type Client struct {
	provider Provider
	options  ClientOptions
	pace     *pace // shared with the clients that With makes of this one
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
	options := o.withDefaults()
	return &Client{provider: p, options: options, pace: newPace(options)}
}

// Send makes the request and returns the whole response. Its errors are those of Stream. Beside an error it returns what arrived of the
// response, as [Fold.Partial] does.
func (c *Client) Send(ctx context.Context, req Request) (Response, error) {
	return c.send(ctx, req, func(Event) bool { return true })
}

// SendFunc is Send, and calls f with each event of Stream as it arrives. An error of f cancels the request and is returned.
func (c *Client) SendFunc(ctx context.Context, req Request, f func(Event) error) (Response, error) {
	var stopped error
	response, err := c.send(ctx, req, func(event Event) bool {
		stopped = f(event)
		return stopped == nil
	})
	if stopped != nil {
		return Response{}, stopped
	}
	return response, err
}

// Stream is the provider's Stream with retries: a failed attempt is followed by a [Retry] event and the events of the next one.
// Its blocks are checked as by content.Of, and its Finish comes when the provider has ended.
//
// A client waits as long as the provider asks (Error.RetryAfter), and otherwise by its own options. A wait that would not end before
// the context's deadline, or is longer than MaxRetryAfter, is not begun: the error of the attempt is returned at once, and its
// text names the wait.
//
// The error of the last attempt is returned as it came. An end of the context is an error with the context's error and its cause
// in the chain. A provider that breaks the rules of [Provider] is ErrProtocol, an answer without an end ErrCut.
func (c *Client) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return Once(func(yield func(Event, error) bool) {
		_, err := c.send(ctx, req, func(event Event) bool { return yield(event, nil) })
		if err != nil && !errors.Is(err, errLeft) {
			yield(nil, err)
		}
	})
}

// errLeft reports that the consumer of a stream left.
var errLeft = errors.New("api: the consumer of the stream left")

// send makes the request, with retries. It calls emit with each event, and ends with errLeft once emit returns false. Beside any other
// error it returns what arrived of the response.
func (c *Client) send(ctx context.Context, req Request, emit func(Event) bool) (Response, error) {
	for number := 1; ; number++ {
		if ctx.Err() != nil {
			return Response{}, ended(ctx, ctx.Err())
		}
		end, err := c.pace.begin(ctx)
		if err != nil {
			return Response{}, ended(ctx, err)
		}

		attempt := attempt{emit: emit, start: time.Now()}
		func() {
			defer end()
			c.events(ctx, req)(attempt.take)
		}()
		if err = attempt.finish(); err == nil || attempt.left {
			return attempt.fold.response, err
		}

		part, arrived := attempt.partial()
		fail := func(err error) (Response, error) {
			if arrived && !emit(Cut{part.Finish}) {
				return Response{}, errLeft
			}
			return part, err
		}
		if number >= c.options.Attempts || !Retryable(err) || ctx.Err() != nil {
			return fail(ended(ctx, err))
		}
		wait, refused := c.wait(ctx, number, err)
		if refused != nil {
			return fail(refused)
		}

		if !emit(Retry{Attempt: number, Wait: wait, Err: err, Cut: Cut{part.Finish}}) {
			return Response{}, errLeft
		}
		if !sleep(ctx, wait) {
			return Response{}, fmt.Errorf("%w, while waiting to retry: %v", ended(ctx, ctx.Err()), err)
		}
	}
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
	emit  func(Event) bool
	start time.Time
	fold  Fold
	err   error // the first error, of the provider or of an event that breaks the rules
	left  bool  // emit returned false
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
	case Finish, Cut:
		return true // emitted when the provider has ended, so that nothing follows it
	case BlockEnd:
		event = BlockEnd{Index: e.Index, Block: a.fold.blocks[e.Index]}
	}
	a.left = !a.emit(event)
	return !a.left
}

// finish emits the Finish of a whole response. It returns errLeft if the consumer left, and otherwise why there is no whole response.
func (a *attempt) finish() error {
	switch {
	case a.left:
		return errLeft
	case a.err != nil:
		return a.err
	case !a.fold.finished:
		return &Error{Kind: ErrCut, Err: errors.New("the provider ended without an end of the answer")}
	}

	if a.fold.response.Latency == 0 {
		a.fold.response.Latency = time.Since(a.start)
	}
	a.emit(a.fold.response.Finish)
	return nil
}

// partial returns what arrived of a response that failed, and whether anything arrived.
func (a *attempt) partial() (part Response, arrived bool) {
	a.fold.finished = false // also if the provider failed after its Finish
	part = a.fold.Partial()
	if part.Finish == (Finish{}) {
		return part, false
	}

	part.Stop = content.StopCut
	if part.Latency == 0 {
		part.Latency = time.Since(a.start)
	}
	return part, true
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

// wait returns the time between an attempt that failed with err and the next one. It returns an error instead if that wait is not
// worth beginning.
func (c *Client) wait(ctx context.Context, attempt int, err error) (time.Duration, error) {
	wait, asked := c.backoff(attempt), false
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		wait, asked = e.RetryAfter, true
	}

	if most := c.options.MaxRetryAfter; asked && most > 0 && wait > most {
		return 0, fmt.Errorf("%w; not retried: the provider asks to wait %s, and the longest wait is %s", err, wire.Seconds(wait), wire.Seconds(most))
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		who := "the next attempt would be after"
		if asked {
			who = "the provider asks to wait"
		}
		return 0, fmt.Errorf("%w; not retried: %s %s, and the context ends in %s", err, who, wire.Seconds(wait), wire.Seconds(time.Until(deadline)))
	}
	return wait, nil
}

// backoff returns the wait after an attempt where the provider asks for none.
func (c *Client) backoff(attempt int) time.Duration {
	wait := c.options.MaxWait
	if attempt < 32 && c.options.MinWait<<(attempt-1)>>(attempt-1) == c.options.MinWait {
		wait = min(wait, c.options.MinWait<<(attempt-1))
	}

	// Requests that failed together must not be made again together.
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
	open     map[int][]*piece // what deltas showed of blocks that have no BlockEnd yet, by their indexes
	response Response
	begun    bool // an event came
	known    bool // a Cut came: response.Finish holds what it reported
	finished bool
}

// piece is deltas in a row of one kind.
type piece struct {
	kind  DeltaKind
	tool  string
	shown strings.Builder
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
		f.show(e)
	case Cut:
		f.response.Finish, f.known = e.Finish, true
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
	delete(f.open, e.Index)
	return nil
}

// show keeps a piece of a block, in case the answer breaks off before its BlockEnd.
func (f *Fold) show(d Delta) {
	if d.Index < len(f.blocks) {
		return
	}
	if f.open == nil {
		f.open = map[int][]*piece{}
	}

	pieces := f.open[d.Index]
	if n := len(pieces); n == 0 || pieces[n-1].kind != d.Kind || pieces[n-1].tool != d.Tool {
		pieces = append(pieces, &piece{kind: d.Kind, tool: d.Tool})
		f.open[d.Index] = pieces
	}
	pieces[len(pieces)-1].shown.WriteString(d.Text)
}

// Partial returns what arrived of an answer that broke off; the whole answer where it did not. Its Stop is content.StopCut and its usage
// incomplete. Its blocks are
//
//   - the whole blocks, but tool calls as content.CutToolUse: no call of an answer that broke off is executed;
//   - then what deltas showed of further blocks: text as content.Text, thinking as content.Thinking without a signature, and the arguments
//     of a tool call as content.CutToolUse.
//
// It is zero, but for Repairs, where nothing arrived.
func (f *Fold) Partial() Response {
	if f.finished {
		return f.response
	}
	part := f.response
	blocks := make([]content.Block, 0, len(f.blocks)+len(f.open))
	for _, b := range f.blocks {
		if call, ok := b.(content.ToolUse); ok {
			b = content.CutToolUse{Name: call.Name, Input: call.Input}
		}
		blocks = append(blocks, b)
	}

	for _, index := range slices.Sorted(maps.Keys(f.open)) {
		for _, p := range f.open[index] {
			if b := p.block(); b != nil {
				blocks = append(blocks, b)
			}
		}
	}

	part.Blocks, _ = content.Of(blocks...) // none that content.Of refuses: see add and block
	if part.Blocks.Len() > 0 || f.known {
		part.Stop, part.Usage.Incomplete = content.StopCut, true
	}
	return part
}

// block returns the piece as a block; nil where it holds nothing.
func (p *piece) block() content.Block {
	shown := p.shown.String()
	switch {
	case p.kind == DeltaText && shown != "":
		return content.Text{Text: shown}
	case p.kind == DeltaThinking && shown != "":
		return content.Thinking{Text: shown}
	case p.kind == DeltaInput && (shown != "" || p.tool != ""):
		return content.CutToolUse{Name: p.tool, Input: content.JSON(shown)}
	}
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
