// Package roundtrip implements the common part of a request to any provider: the order of the steps, and the errors for
// failing steps.
package roundtrip

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/secret"
	"github.com/plait-dev/plait/internal/wire"
)

// Call is one request, ready to be sent.
type Call struct {
	// API names the API. Options are the options of the request, with the provider's own as defaults.
	API     string
	Options api.Options
	// Whole reports whether the response comes in one piece: nothing is received while the model writes it.
	Whole bool
	Body  *wire.Parts
	Notes []api.RepairNote
}

// Trip is one request to an API and its response.
type Trip struct {
	// Prepare makes the request.
	Prepare func() (Call, error)
	// Ask sends the request with the context of the watch, and yields the events of the response. It may yield an
	// api.Cut whenever more is known about the response as a whole. Stream yields the last one if the response breaks
	// off.
	Ask func(watch *idle.Watch, c Call) iter.Seq2[api.Event, error]
	// Explain returns the *api.Error for an error of the SDK. It returns nil if the API sent no error, because the
	// connection failed.
	Explain func(err error) *api.Error
}

// Stream sends the request and yields the events of the response, by the rules of api.Provider.
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

		// Nothing arrives while the model writes a whole response, so it gets more time.
		limit := c.Options.Idle
		if limit == 0 && c.Whole {
			limit = idle.Whole
		}
		var secrets secret.Set // of the request, for errors without them
		watch := idle.NewWatch(secret.Collecting(ctx, &secrets), limit, api.ErrStalled)
		defer watch.Stop()

		var known *api.Cut // nil until a part of the response has arrived
		for event, err := range t.Ask(watch, c) {
			if err != nil {
				// The known facts about an interrupted response, such as its tokens, come before the error.
				if known == nil || yield(*known, nil) {
					yield(nil, withoutSecrets(t.failure(ctx, watch, c.API, err), &secrets))
				}
				return
			}

			switch e := event.(type) {
			case api.Cut:
				known = &e
				continue
			case api.Finish:
				// Every request takes tokens. If none were reported, the number is unknown.
				e.Usage.Incomplete = e.Usage.Incomplete || e.Usage == content.Usage{}
				event = e
			}

			if !yield(event, nil) {
				return
			}
		}
	})
}

// failure returns the error of the stream for err.
func (t Trip) failure(ctx context.Context, watch *idle.Watch, name string, err error) error {
	// The caller's context comes first: its end makes every other step fail too.
	if ended := ctx.Err(); ended != nil {
		if cause := context.Cause(ctx); cause != ended {
			return fmt.Errorf("%s: %w: %w", name, ended, cause)
		}
		return fmt.Errorf("%s: %w", name, ended)
	}

	if watch.Stalled() {
		// Do not use err: it is the cancellation of the watch's own context and would look like the caller's.
		return &api.Error{Kind: api.ErrStalled, API: name, Err: errors.New(watch.Silence())}
	}

	// An error of Plait's own has its kind already. Explain knows only errors of the SDK.
	var ours *api.Error
	if errors.As(err, &ours) {
		return err
	}

	// The SDKs report an address that is no URL only as text.
	if errors.Is(err, wire.ErrAddress) || strings.Contains(err.Error(), "WithBaseURL failed to parse url") {
		return &api.Error{Kind: api.ErrInvalidRequest, API: name, Err: err}
	}

	if theirs := t.Explain(err); theirs != nil {
		return theirs
	}
	return &api.Error{Kind: api.ErrTransport, API: name, Err: err}
}

// withoutSecrets returns an error without the secrets of the request: a server may repeat its key in an error, and the
// error of a connection names the address.
func withoutSecrets(err error, secrets *secret.Set) error {
	var e *api.Error
	if !errors.As(err, &e) {
		return secrets.Err(err)
	}

	clean, found := *e, false
	if cause := secrets.Err(e.Err); cause != nil && cause.Error() != e.Err.Error() {
		clean.Err, found = cause, true
	}
	for _, text := range []*string{&clean.Type, &clean.Message, &clean.RequestID, &clean.Body} {
		without := secret.InText(secrets.Text(*text))
		found = found || without != *text
		*text = without
	}
	if !found {
		return err
	}
	return &clean
}

// Checked returns the options, or an error if no request can be made with them.
func Checked(name string, o api.Options) (api.Options, error) {
	err := o.Check()
	var e *api.Error
	if errors.As(err, &e) {
		e.API = name
	}
	return o, err
}

// Protocol returns an error for an API that breaks its own rules.
func Protocol(name, format string, args ...any) error {
	return &api.Error{Kind: api.ErrProtocol, API: name, Err: fmt.Errorf(format, args...)}
}

// Cut returns the error for an interrupted response. err is the reason, or nil.
func Cut(name string, err error) error {
	if errors.Is(err, wire.ErrTooLong) || errors.Is(err, bufio.ErrTooLong) {
		return Protocol(name, "%w", err) // not ErrCut: a retry would receive as much again
	}
	const ended = "the connection ended before the response"
	switch {
	case err == nil:
		err = errors.New(ended)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf(ended+": %w", err)
	}
	return &api.Error{Kind: api.ErrCut, API: name, Status: http.StatusOK, Err: err}
}

// IsPage reports whether a successful response is a page for people: of a proxy, a login, or another service.
func IsPage(res *http.Response) bool {
	return res.StatusCode < 300 && strings.Contains(strings.ToLower(res.Header.Get("Content-Type")), "html")
}

// Page yields the error of a response that is a page, with its text. A retry would get the same page.
func Page(name string, res *http.Response) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		text, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
		if err != nil && len(text) == 0 {
			yield(nil, Cut(name, err))
			return
		}
		yield(nil, &api.Error{Kind: api.ErrProtocol, API: name, Status: res.StatusCode, Body: string(text),
			Err: errors.New("the server sent an HTML page: the base URL may be that of another service")})
	}
}

// IsStream reports whether a response is read as a stream. Its content type decides, because a server may not respect
// the request; for other content types, whole does: whether a whole response was requested.
func IsStream(res *http.Response, whole bool) bool {
	kind := res.Header.Get("Content-Type")
	return strings.Contains(kind, "event-stream") || !strings.Contains(kind, "json") && !whole
}

// Whole yields the events of a response that is not streamed: its blocks, and its end.
func Whole(
	name string, res *http.Response, decode func(body []byte) ([]content.Block, api.Finish, error),
) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		body, err := io.ReadAll(res.Body)
		if err != nil {
			yield(nil, Cut(name, err))
			return
		}

		blocks, finish, err := decode(body)
		if err != nil {
			yield(nil, err)
			return
		}
		End(blocks, finish)(yield)
	}
}

// End yields the blocks of a response that ended, and its end.
func End(blocks []content.Block, finish api.Finish) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for i, b := range blocks {
			if !yield(api.BlockEnd{Index: i, Block: b}, nil) {
				return
			}
		}
		yield(finish, nil)
	}
}

// RefusesInput reports whether an error message, in lower case, is about an unsupported image or audio. llama.cpp sends
// it with status 500, but a retry would fail as well.
func RefusesInput(message string) bool {
	return strings.Contains(message, "image input is not supported") ||
		strings.Contains(message, "audio input is not supported")
}

// KindOf returns the kind of an error from its HTTP status alone, or nil if the status is not an error.
func KindOf(status int) error {
	switch {
	case status < 400:
		return nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return api.ErrAuth
	case status == http.StatusPaymentRequired:
		return api.ErrQuota
	case status == http.StatusNotFound:
		return api.ErrNotFound
	case status == http.StatusRequestEntityTooLarge:
		return api.ErrContextTooLong
	case status == http.StatusTooManyRequests:
		return api.ErrRateLimited
	case status == http.StatusServiceUnavailable, status == 529: // 529 is Anthropic's own status for it
		return api.ErrOverloaded
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		// A retry may succeed: the SDKs of Anthropic and OpenAI also repeat a request after 408 and 409.
		return api.ErrServer
	}
	return api.ErrInvalidRequest
}
