// Package idle ends a request when the provider sends nothing for too long. It does not import net/http: a program with
// a scripted model does not compile it.
package idle

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"time"
)

// The defaults of api.Options.Idle.
const (
	// Default is the default while a response is streamed. Thinking models have been silent for minutes. Coding agents
	// for these APIs wait 5 minutes, and so do Node's fetch and Envoy.
	Default = 5 * time.Minute
	// Whole is the default until the beginning of an unstreamed response: the server sends nothing while the model
	// writes it. It is the timeout of the official SDKs.
	Whole = 10 * time.Minute
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
		w.idle = Default
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

// Body returns a body. Reading from it restarts the timer.
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

	// An ended request must not get a running timer again.
	if n > 0 && b.watch.timer != nil && b.watch.Context.Err() == nil {
		b.watch.timer.Reset(b.watch.idle)
	}
	return n, err
}
