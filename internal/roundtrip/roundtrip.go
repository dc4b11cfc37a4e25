// Package roundtrip is what the providers do alike when they ask an API: in which order things happen, and which error it is when
// they go wrong.
package roundtrip

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// Call is one request, ready to be sent.
type Call struct {
	// API names the API, and Options are those of the request before those of the provider.
	API     string
	Options api.Options
	// Whole says that the answer comes at once, so that nothing is received while the model writes it.
	Whole bool
	Body  *wire.Parts
	Notes []api.RepairNote
}

// Trip is a request and what comes back.
type Trip struct {
	// Prepare makes the request.
	Prepare func() (Call, error)
	// Ask sends it, with the context of the watch, and yields the events of the answer. It may yield an api.Cut whenever it learns more of
	// the answer as a whole: Stream keeps the last one for an answer that breaks off.
	Ask func(watch *wire.Watch, c Call) iter.Seq2[api.Event, error]
	// Explain returns the *api.Error that an error of the SDK is; nil where it is none, and the connection failed.
	Explain func(err error) *api.Error
}

// Stream yields what comes back, by the rules of api.Provider.
func (t Trip) Stream(ctx context.Context) iter.Seq2[api.Event, error] {
	return api.Once(func(yield func(api.Event, error) bool) {
		c, err := t.Prepare()
		if err != nil {
			yield(nil, err)
			return
		}
		if len(c.Notes) > 0 && !yield(api.Repaired{Repairs: c.Notes}, nil) {
			return
		}
		idle := c.Options.Idle
		if idle == 0 && c.Whole {
			idle = wire.IdleWhole
		}
		watch := wire.NewWatch(ctx, idle, api.ErrStalled)
		defer watch.Stop()
		var known *api.Cut // nil until a part of the answer arrived
		for event, err := range t.Ask(watch, c) {
			if err != nil {
				if known == nil || yield(*known, nil) {
					yield(nil, t.failure(ctx, watch, c.API, err))
				}
				return
			}

			switch e := event.(type) {
			case api.Cut:
				known = &e
				continue
			case api.Finish:
				// Every request takes tokens: where none were reported, how many is not known.
				e.Usage.Incomplete = e.Usage.Incomplete || e.Usage == content.Usage{}
				event = e
			}
			if !yield(event, nil) {
				return
			}
		}
	})
}

// failure returns the error that a consumer of the stream gets for err.
func (t Trip) failure(ctx context.Context, watch *wire.Watch, name string, err error) error {
	if ended := ctx.Err(); ended != nil {
		if cause := context.Cause(ctx); cause != ended {
			return fmt.Errorf("%s: %w: %w", name, ended, cause)
		}
		return fmt.Errorf("%s: %w", name, ended)
	}
	if watch.Stalled() {
		// Not err: it is the cancellation of the watch's own context, which would look like one of the caller's.
		return &api.Error{Kind: api.ErrStalled, API: name, Err: errors.New(watch.Silence())}
	}
	var ours *api.Error
	if errors.As(err, &ours) {
		return err
	}
	if theirs := t.Explain(err); theirs != nil {
		return theirs
	}
	return &api.Error{Kind: api.ErrTransport, API: name, Err: err}
}

// Checked returns the options, or why no request can be made with them.
func Checked(name string, o api.Options) (api.Options, error) {
	err := o.Check()
	var e *api.Error
	if errors.As(err, &e) {
		e.API = name
	}
	return o, err
}

// Protocol is the error of an API that does not keep to its own rules.
func Protocol(name, format string, args ...any) error {
	return &api.Error{Kind: api.ErrProtocol, API: name, Err: fmt.Errorf(format, args...)}
}

// Cut is the error of an answer that broke off, because of err or without one.
func Cut(name string, err error) error {
	if errors.Is(err, wire.ErrTooLong) || errors.Is(err, bufio.ErrTooLong) {
		return Protocol(name, "%w", err) // asking again would bring as much
	}
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.Join(errors.New("the connection ended before the answer did"), err)
	}
	return &api.Error{Kind: api.ErrCut, API: name, Status: http.StatusOK, Err: err}
}

// KindOf tells the kind of an error by its HTTP status alone; nil where the status is none of an error.
func KindOf(status int) error {
	switch {
	case status < 400:
		return nil
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden:
		return api.ErrAuth
	case status == http.StatusNotFound:
		return api.ErrNotFound
	case status == http.StatusRequestEntityTooLarge:
		return api.ErrContextTooLong
	case status == http.StatusTooManyRequests:
		return api.ErrRateLimited
	case status == http.StatusServiceUnavailable, status == 529:
		return api.ErrOverloaded
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return api.ErrServer
	}
	return api.ErrInvalidRequest
}
