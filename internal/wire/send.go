package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults of api.Options.Idle.
const (
	// Idle is the default while an answer is streamed. Coding agents that stream from these APIs use 5 minutes, and so do Node's
	// fetch and Envoy; models that think have been silent for minutes.
	Idle = 5 * time.Minute
	// IdleWhole is the default until an answer begins that comes at once: nothing is sent while the model writes it. It is the
	// timeout of the official SDKs.
	IdleWhole = 10 * time.Minute
)

// Seconds returns a duration as a person reads it in an error: "300 s", "2.5 s".
func Seconds(d time.Duration) string {
	if d < 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'g', 2, 64) + " s"
	}
	return strconv.FormatInt(int64(d.Round(time.Second)/time.Second), 10) + " s"
}

// Watch ends a request when the provider sends nothing for too long. Its Context is for the request; Stop must be called at the
// request's end.
type Watch struct {
	Context context.Context
	cancel  context.CancelCauseFunc
	idle    time.Duration
	timer   *time.Timer
	err     error
	begun   atomic.Bool // a byte of the answer was received
}

// NewWatch begins to watch. After idle without a sign of life the context ends with err as its cause. Idle 0 is the default, and a
// negative one no limit.
func NewWatch(ctx context.Context, idle time.Duration, err error) *Watch {
	w := &Watch{idle: idle, err: err}
	w.Context, w.cancel = context.WithCancelCause(ctx)
	if idle == 0 {
		w.idle = Idle
	}
	if w.idle > 0 {
		w.timer = time.AfterFunc(w.idle, func() { w.cancel(err) })
	}
	return w
}

// Stop ends the watch and the request's context.
func (w *Watch) Stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(nil)
}

// Stalled reports whether the watch ended the request.
func (w *Watch) Stalled() bool { return errors.Is(context.Cause(w.Context), w.err) }

// Body returns a body whose every byte is a sign of life.
func (w *Watch) Body(body io.ReadCloser) io.ReadCloser { return &watched{body, w} }

// Silence describes a stall: how long nothing was received, and where in the answer.
func (w *Watch) Silence() string {
	if w.begun.Load() {
		return "nothing received for " + Seconds(w.idle) + " in the middle of the answer"
	}
	return "nothing received for " + Seconds(w.idle)
}

type watched struct {
	io.ReadCloser
	watch *Watch
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.begun.Store(true)
	}
	if n > 0 && b.watch.timer != nil && b.watch.Context.Err() == nil {
		b.watch.timer.Reset(b.watch.idle)
	}
	return n, err
}

// Parts is a request's body in parts, so that what many requests share is not copied for each. It is an io.ReadCloser; [Parts.Sized]
// lets a request know its length.
type Parts struct {
	parts [][]byte
	mu    sync.Mutex
	rest  [][]byte // what was not read yet, but for the first at bytes
	at    int
}

// NewParts returns the body made of parts, which must not be changed any more.
func NewParts(parts ...[]byte) *Parts { return &Parts{parts: parts, rest: parts} }

// Len is how many bytes the body has in all.
func (p *Parts) Len() int {
	n := 0
	for _, part := range p.parts {
		n += len(part)
	}
	return n
}

// Bytes is the whole body in one piece.
func (p *Parts) Bytes() []byte {
	dst := make([]byte, 0, p.Len())
	for _, part := range p.parts {
		dst = append(dst, part...)
	}
	return dst
}

// Read reads what is left of the body.
func (p *Parts) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.rest) > 0 {
		if left := p.rest[0][p.at:]; len(left) > 0 {
			n := copy(b, left)
			p.at += n
			return n, nil
		}
		p.rest, p.at = p.rest[1:], 0
	}
	return 0, io.EOF
}

// Close does nothing: the parts are memory.
func (p *Parts) Close() error { return nil }

// Send sets p as the body of req, its length known, so that it is sent in one go and can be sent again. It also lets an
// http.Transport send the request once more when a kept-alive connection turns out to be closed and no byte of a response
// was received: servers close idle connections at any time.
func (p *Parts) Send(req *http.Request) {
	// The transport repeats a POST only if it has this header. An empty list is not sent (see http.Transport).
	const idempotencyKey = "Idempotency-Key"
	if _, given := req.Header[idempotencyKey]; !given {
		req.Header[idempotencyKey] = []string{}
	}

	req.Body = NewParts(p.parts...)
	req.ContentLength = int64(p.Len())
	req.TransferEncoding = nil
	req.GetBody = func() (io.ReadCloser, error) { return NewParts(p.parts...), nil }
}

// Sized gives req a length where its body is still a *Parts, and leaves it alone where something else made another body of it.
func Sized(req *http.Request) {
	if p, ok := req.Body.(*Parts); ok {
		p.Send(req)
	}
}
