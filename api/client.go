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

	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/blockcodec"
)

// ClientOptions are the options of a [Client].
type ClientOptions struct {
	// Attempts is the total number of times a request is made while it fails with a [Retryable] error. 1 means no
	// retry. Defaults to 4.
	Attempts int
	// MinWait is the wait before the second attempt. It doubles before each further one, less a random part of up to a
	// quarter. Defaults to 1 second.
	MinWait time.Duration
	// MaxWait is the longest wait if the provider does not request one. Defaults to 30 seconds.
	MaxWait time.Duration
	// MaxRetryAfter is the longest wait a provider may request (Error.RetryAfter). The client waits exactly as long as
	// requested; a longer wait ends the request at once. Negative is no limit. Defaults to 1 hour.
	MaxRetryAfter time.Duration
	// MaxConcurrent limits the number of simultaneous requests; further ones wait. A request between two attempts does
	// not count. A request made while ranging over another stream of the same client needs at least two. Defaults to no
	// limit.
	MaxConcurrent int
	// RequestsPerMinute limits the rate of requests, retries included; they begin at even intervals. A request fails at
	// once with ErrRateLimited if it could not begin before the context's deadline. Defaults to no limit.
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
	// A negative one is no limit.
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = time.Hour
	}
	return c
}

// Client sends requests to a provider. It retries, checks that the provider keeps the rules of [Provider], and folds
// events into a [Response]. It is a Provider itself.
//
// The zero value has no provider and cannot be used: call [NewClient].
type Client struct {
	provider Provider
	options  ClientOptions
	pace     *pace // shared with the clients derived from this one by With
}

// NewClient returns a client of p. If p is a *Client and o is nil, NewClient returns p. If p is a *Client and o is not
// nil, the new client uses p's provider. So a request is never retried by two clients.
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

// Send sends the request and returns the whole response. Its errors are those of Stream. With an error it returns the
// part of a response with the most content of all attempts, like [Fold.Partial].
func (c *Client) Send(ctx context.Context, req Request) (Response, error) {
	return c.send(ctx, req, func(Event) error { return nil })
}

// SendFunc is Send, and calls f with each event of Stream as it arrives. An error of f cancels the request and is
// returned.
func (c *Client) SendFunc(ctx context.Context, req Request, f func(Event) error) (Response, error) {
	return c.send(ctx, req, f)
}

// Stream is the provider's Stream with retries: a failed attempt is followed by a [Retry] event and the events of the
// next one. Blocks are checked as by content.Of. Finish comes after the provider has ended.
//
// A client waits as long as the provider requests (Error.RetryAfter), and otherwise by its own options. It does not
// begin a wait longer than MaxRetryAfter, or one ending after the context's deadline. It then yields the error of the
// attempt at once, with the wait in its text.
//
// Errors:
//
//   - The error of the last attempt is yielded. If there were others before it, it is an *[AttemptsError] with all of
//     them.
//   - If the context ended, its error and its cause are in the chain.
//   - If the provider breaks the rules of [Provider], the error is ErrProtocol.
//   - If the response has no end, the error is ErrCut.
func (c *Client) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return Once(func(yield func(Event, error) bool) {
		_, err := c.send(ctx, req, emitTo(yield))
		if err != nil && !errors.Is(err, errLeft) {
			yield(nil, err)
		}
	})
}

// errLeft reports that the consumer of the stream left.
var errLeft = errors.New("api: the consumer of the stream left")

// emitTo returns a function that yields events, and returns errLeft once the consumer has left.
func emitTo(yield func(Event, error) bool) func(Event) error {
	return func(event Event) error {
		if !yield(event, nil) {
			return errLeft
		}
		return nil
	}
}

// send sends the request, with retries. It calls emit with each event, and returns the first error of emit. With any
// other error it returns the part of a response received so far.
func (c *Client) send(ctx context.Context, req Request, emit func(Event) error) (Response, error) {
	failed := failures{emit: emit}
	for number := 1; ; number++ {
		if ctx.Err() != nil {
			return failed.end(ended(ctx, ctx.Err()))
		}
		end, err := c.pace.begin(ctx)
		if err != nil {
			return failed.end(ended(ctx, err))
		}

		// The pace counts requests under way, so it ends even if the consumer panics.
		attempt := attempt{emit: emit, start: time.Now()}
		func() {
			defer end()
			c.events(ctx, req)(attempt.take)
		}()
		err = attempt.finish()
		switch {
		case attempt.stopped != nil:
			return Response{}, attempt.stopped
		case err == nil:
			return attempt.fold.response, nil
		}

		part := attempt.partial()
		failed.part = larger(failed.part, part)
		if number >= c.options.Attempts || !Retryable(err) || ctx.Err() != nil {
			return failed.end(ended(ctx, err))
		}
		wait, refused := c.wait(ctx, number, err)
		if refused != nil {
			return failed.end(refused)
		}

		// The events of this attempt are void from here on, and its usage is reported.
		if stopped := emit(Retry{Attempt: number, Wait: wait, Err: err, Cut: Cut{part.Finish}}); stopped != nil {
			return Response{}, stopped
		}
		failed.retried(err)
		if !sleep(ctx, wait) {
			return failed.end(fmt.Errorf("%w, while waiting to retry", ended(ctx, ctx.Err())))
		}
	}
}

// failures are the failed attempts of a request.
type failures struct {
	emit func(Event) error
	// The part with the most content. Its Usage is that of the last attempt, unless a Retry reported it.
	part    Response
	earlier []error // of the attempts with a Retry after them
}

// retried records an attempt that is followed by a Retry.
func (f *failures) retried(err error) {
	f.earlier = append(f.earlier, err)
	if f.part.Finish != (Finish{}) {
		f.part.Usage = content.Usage{Incomplete: true}
	}
}

// end emits what is known about the part of the response, and returns the part and the error of the request. The part
// was paid for, so the caller learns of it with every failure.
func (f *failures) end(err error) (Response, error) {
	if f.part.Finish != (Finish{}) {
		if stopped := f.emit(Cut{f.part.Finish}); stopped != nil {
			return Response{}, stopped
		}
	}
	if len(f.earlier) > 0 {
		err = &AttemptsError{Err: err, Earlier: f.earlier}
	}
	return f.part, err
}

// events returns the provider's sequence. Without a provider or a sequence it returns one with an error.
func (c *Client) events(ctx context.Context, req Request) iter.Seq2[Event, error] {
	// A nil *Client in the interface is no provider either.
	var none *Client
	if c.provider != nil && c.provider != Provider(none) {
		if events := c.provider.Stream(ctx, req); events != nil {
			return events
		}
	}

	return func(yield func(Event, error) bool) {
		yield(nil, protocol("the provider is nil, or returned a nil sequence"))
	}
}

// attempt passes on the events of one attempt. Its method take is the provider's yield function. A provider that
// continues after false does not panic, as it would in a range statement: its further events are dropped.
type attempt struct {
	emit    func(Event) error
	start   time.Time
	fold    Fold
	err     error // the first error, of the provider or about an invalid event
	stopped error // the error returned by emit
}

// take checks an event and emits it. It reports whether the provider may continue.
func (a *attempt) take(event Event, err error) bool {
	if a.err != nil || a.stopped != nil {
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
		return true // emitted after the provider has ended, so that nothing follows it
	case BlockEnd:
		// The Fold has checked the block and may hold a cleaned copy, as content.Of makes it.
		if clean := a.fold.blocks[e.Index]; clean != e.Block {
			event = BlockEnd{Index: e.Index, Block: clean}
		}
	}
	a.stopped = a.emit(event)
	return a.stopped == nil
}

// finish emits the Finish of a whole response. It returns the reason if there is no whole response, or the error of
// emit.
func (a *attempt) finish() error {
	switch {
	case a.stopped != nil:
		return a.stopped
	case a.err != nil:
		return a.err
	case !a.fold.finished:
		return &Error{Kind: ErrCut, Err: errors.New("the stream ended before the response was complete")}
	}

	if a.fold.response.Latency == 0 {
		a.fold.response.Latency = time.Since(a.start)
	}
	a.stopped = a.emit(a.fold.response.Finish)
	return a.stopped
}

// partial returns the received part of a failed response, or the zero Response if there is none.
func (a *attempt) partial() Response {
	a.fold.finished = false // also if the provider failed after its Finish
	part := a.fold.Partial()
	if part.Finish == (Finish{}) {
		return part
	}

	part.Stop = content.StopCut
	if part.Latency == 0 {
		part.Latency = time.Since(a.start)
	}
	return part
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

// wait returns the time between an attempt that failed with err and the next one. It returns an error if the wait would
// be longer than MaxRetryAfter or end after the context's deadline.
func (c *Client) wait(ctx context.Context, attempt int, err error) (time.Duration, error) {
	wait, requested := c.backoff(attempt), false
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		wait, requested = e.RetryAfter, true
	}

	if limit := c.options.MaxRetryAfter; requested && limit > 0 && wait > limit {
		return 0, fmt.Errorf("%w; not retried: the provider asks to wait %s, and the maximum is %s",
			err, idle.Seconds(wait), idle.Seconds(limit))
	}

	// Waiting for the deadline would gain nothing: return the error at once.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		reason := "the next attempt would be after"
		if requested {
			reason = "the provider asks to wait"
		}
		return 0, fmt.Errorf("%w; not retried: %s %s, and the context ends in %s",
			err, reason, idle.Seconds(wait), idle.Seconds(time.Until(deadline)))
	}
	return wait, nil
}

// backoff returns the wait after an attempt if the provider does not request one.
func (c *Client) backoff(attempt int) time.Duration {
	wait := c.options.MaxWait

	// Shifting there and back detects an overflow.
	if attempt < 32 && c.options.MinWait<<(attempt-1)>>(attempt-1) == c.options.MinWait {
		wait = min(wait, c.options.MinWait<<(attempt-1))
	}

	// The random part spreads the retries of requests that failed together.
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

// A block is checked once, when it arrives.
var (
	checkBlock = blockcodec.Check.(func(content.Block) (content.Block, error))
	blockList  = blockcodec.List.(func([]content.Block) content.Blocks)
)

// Fold combines the events of one response. The zero value is ready to use.
type Fold struct {
	blocks   []content.Block
	open     map[int][]*piece // the deltas of blocks without a BlockEnd, by block index
	last     *piece           // of open: the last delta's, of block lastOf; nil after a BlockEnd
	lastOf   int
	response Response
	kept     Response // the part with the most content of earlier attempts
	begun    bool     // an event was added, so Repaired is too late
	known    bool     // a Cut was added: response.Finish holds its content
	finished bool     // a Finish was added: response is whole
}

// piece joins consecutive deltas of one kind.
type piece struct {
	kind  DeltaKind
	tool  string
	shown strings.Builder
}

// Add adds the next event. If the event breaks the rules of [Provider], Add changes nothing and returns an error with
// ErrProtocol in its chain. A [Retry] begins a new response.
func (f *Fold) Add(event Event) error {
	if f.finished {
		return protocol("%T after the end of the response", event)
	}

	switch e := event.(type) {
	case Retry:
		if e.Cut.Finish != (Finish{}) {
			f.response.Finish, f.known = e.Cut.Finish, true
		}
		// The next attempt may begin with Repaired, so begun stays false.
		*f = Fold{kept: f.Partial()}
		return nil
	case Repaired:
		if f.begun {
			return protocol("%T is not the first event", event)
		}
		f.response.Repairs = e.Repairs
	case Delta:
		f.addDelta(e)
	case Cut:
		if err := e.checkDetails(); err != nil {
			return err
		}
		f.response.Finish, f.known = e.Finish, true
	case BlockEnd:
		if err := f.add(e); err != nil {
			return err
		}
	case Finish:
		if err := e.checkDetails(); err != nil {
			return err
		}
		f.finish(e)
	default:
		return protocol("unknown event %T", event)
	}

	f.begun = true
	return nil
}

// add adds a whole block. It must be the next one, and valid in an assistant's message.
func (f *Fold) add(e BlockEnd) error {
	if e.Index != len(f.blocks) {
		return protocol("block %d after %d blocks", e.Index, len(f.blocks))
	}

	block, err := checkBlock(e.Block)
	if err != nil {
		return protocol("block %d: %w", e.Index, err)
	}
	if _, result := block.(content.ToolResult); result {
		return protocol("block %d is a tool result, which a response cannot contain", e.Index)
	}

	// The whole block replaces its deltas.
	f.blocks = append(f.blocks, block)
	delete(f.open, e.Index)
	f.last = nil
	return nil
}

// addDelta keeps a piece of a block, in case the response breaks off before its BlockEnd.
func (f *Fold) addDelta(d Delta) {
	// Most deltas continue the one before: finding its piece in the map takes as long as the rest.
	if f.last == nil || f.lastOf != d.Index || f.last.kind != d.Kind || f.last.tool != d.Tool {
		if d.Index < len(f.blocks) {
			return
		}
		f.last, f.lastOf = f.pieceOf(d), d.Index
	}
	f.last.shown.WriteString(d.Text)
}

// pieceOf returns the piece for d: the last one of its block, or a new one.
func (f *Fold) pieceOf(d Delta) *piece {
	if f.open == nil {
		f.open = map[int][]*piece{}
	}
	pieces := f.open[d.Index]
	if n := len(pieces); n > 0 && pieces[n-1].kind == d.Kind && pieces[n-1].tool == d.Tool {
		return pieces[n-1]
	}

	p := &piece{kind: d.Kind, tool: d.Tool}
	f.open[d.Index] = append(pieces, p)
	return p
}

// Partial returns the received part of a response that broke off, or the whole response if it did not. In a response
// that broke off, Stop is content.StopCut and Usage is incomplete. Its blocks are
//
//   - the whole blocks, with tool calls as content.CutToolUse: calls of a response that broke off are not executed,
//   - then the deltas of further blocks: text as content.Text, thinking as content.Thinking without a signature, and
//     the arguments of a tool call as content.CutToolUse.
//
// If several attempts broke off, Partial returns the part with the most content: a part without any does not replace
// it. Its Usage is that of the last attempt, because each [Retry] has the usage of the attempt before it.
//
// If nothing arrived, Partial returns the zero Response with Repairs.
func (f *Fold) Partial() Response {
	if f.finished {
		return f.response
	}
	return larger(f.kept, f.current())
}

// larger returns the part with more content of an earlier and a later attempt. Its Usage is that of the later one.
func larger(earlier, later Response) Response {
	if len(earlier.Blocks.Append(nil)) <= len(later.Blocks.Append(nil)) {
		return later
	}
	earlier.Usage = later.Usage
	earlier.Usage.Incomplete = true
	return earlier
}

// current returns the received part of the current attempt.
func (f *Fold) current() Response {
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

	// The error is always nil: add checked the whole blocks, and block returns valid ones.
	part.Blocks, _ = content.Of(blocks...)

	// An empty delta, too, shows that the model had begun.
	if part.Blocks.Len() > 0 || f.open != nil || f.known {
		part.Stop, part.Usage.Incomplete = content.StopCut, true
	}
	return part
}

// block returns the piece as a block, or nil if it is empty.
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

// checkDetails returns an error if Details is neither empty nor an object.
func (e Finish) checkDetails() error {
	if e.Details != "" && !e.Details.IsObject() {
		return protocol("Finish.Details is not a JSON object%s", reason(e.Details))
	}
	return nil
}

// finish adds the end of the response. The response is then whole.
func (f *Fold) finish(e Finish) {
	if e.Stop == "" {
		e.Stop = content.StopUnknown
	}
	f.response.Finish, f.response.Blocks = e, blockList(f.blocks)
	f.finished = true
}

// Response returns the whole response. It returns an error with ErrCut in its chain if there was no Finish.
func (f *Fold) Response() (Response, error) {
	if !f.finished {
		return Response{}, &Error{Kind: ErrCut, Err: errors.New("the response is not complete")}
	}
	return f.response, nil
}

// protocol returns an error about a provider that breaks the rules of [Provider].
func protocol(format string, args ...any) error {
	return &Error{Kind: ErrProtocol, Err: fmt.Errorf(format, args...)}
}
