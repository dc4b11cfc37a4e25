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
	// Idle is the default while a response is streamed. Models that think have been silent for minutes. Coding agents
	// that use these APIs wait 5 minutes, and so do Node's fetch and Envoy.
	Idle = 5 * time.Minute
	// IdleWhole is the default until a response that is not streamed begins: the server sends nothing while the model
	// writes it. It is the timeout of the official SDKs.
	IdleWhole = 10 * time.Minute
)

// Seconds formats a duration for an error message: "300 s", "2.5 s".
func Seconds(d time.Duration) string {
	if d < 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'g', 2, 64) + " s"
	}
	return strconv.FormatInt(int64(d.Round(time.Second)/time.Second), 10) + " s"
}

// Watch ends a request if the provider sends nothing for too long. Its Context is for the request. Stop must be called
// at the end of the request.
type Watch struct {
	Context context.Context
	cancel  context.CancelCauseFunc
	idle    time.Duration
	timer   *time.Timer // nil if there is no limit
	err     error       // the cause if the watch ends the request
	begun   atomic.Bool // a byte of the response was received
}

// NewWatch starts a watch. If nothing is received for the duration idle, the context ends with err as its cause. An
// idle of 0 means the default, a negative one no limit.
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

// Body returns a body whose reads restart the timer.
func (w *Watch) Body(body io.ReadCloser) io.ReadCloser { return &watched{body, w} }

// Silence describes a stall: how long nothing was received, and whether the response had begun.
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

// Parts is a request body in several parts, so that requests can share parts without copying them. It is an
// io.ReadCloser. [Parts.Send] sets the length of the request.
type Parts struct {
	parts [][]byte

	mu   sync.Mutex // guards rest and at
	rest [][]byte   // the parts that were not read completely
	at   int        // the number of bytes of rest[0] that were read
}

// NewParts returns the body made of parts. The caller must not change them afterwards.
func NewParts(parts ...[]byte) *Parts { return &Parts{parts: parts, rest: parts} }

// Len returns the length of the body in bytes.
func (p *Parts) Len() int {
	n := 0
	for _, part := range p.parts {
		n += len(part)
	}
	return n
}

// Bytes returns a copy of the whole body in one slice.
func (p *Parts) Bytes() []byte {
	dst := make([]byte, 0, p.Len())
	for _, part := range p.parts {
		dst = append(dst, part...)
	}
	return dst
}

// Read implements io.Reader. It continues after the last byte read.
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

// Send sets p as the body of req, with its length, so that it is sent in one piece and can be sent again. It also lets
// an http.Transport repeat the request if a kept-alive connection turns out to be closed before any byte of a response
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

// Sized calls Send if the body of req is still a *Parts. If something else replaced the body, Sized does nothing.
func Sized(req *http.Request) {
	if p, ok := req.Body.(*Parts); ok {
		p.Send(req)
	}
}
