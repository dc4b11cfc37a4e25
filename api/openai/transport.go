package openai

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/internal/wire"
)

// transport sends requests to one of the APIs, through the SDK.
type transport struct {
	api    string // the name of the API
	path   string // relative to the base URL
	model  string
	do     sender
	server server
}

func newTransport(name, path, model string, o *Options) *transport {
	send := senderOf(append(environment(o), o.orNone().SDK...))
	return &transport{api: name, path: path, model: model, do: send, server: serverOf(send, o)}
}

// call is one request, ready to be sent.
type call struct {
	options Options // those of the request over those of the provider
	body    *wire.Parts
	notes   []api.RepairNote
	streams bool
	limit   int // a response with this many tokens was cut off, even if the server reports otherwise; 0 is no limit
}

// answered holds an API's functions for reading a response: streamed as events, or whole.
type answered struct {
	streamed, whole func(res *http.Response, c call) iter.Seq2[api.Event, error]
}

// stream sends a request and yields the events of its response, under the contract of api.Provider.
func (t *transport) stream(ctx context.Context, make func() (call, error), read answered) iter.Seq2[api.Event, error] {
	return t.trip(make, read).Stream(ctx)
}

// trip returns a request, for its events or for a count of its tokens.
func (t *transport) trip(make func() (call, error), read answered) roundtrip.Trip {
	var c call
	return roundtrip.Trip{
		Prepare: func() (out roundtrip.Call, err error) {
			c, err = make()
			return roundtrip.Call{
				API: t.api, Options: c.options.Options, Whole: !c.streams, Body: c.body, Notes: c.notes,
			}, err
		},
		Ask: func(watch *idle.Watch, _ roundtrip.Call) iter.Seq2[api.Event, error] {
			return t.events(watch, c, read)
		},
		Explain: func(error) *api.Error { return nil }, // outermost returns an error response as an *api.Error
	}
}

// events sends a call and yields the events of its response.
func (t *transport) events(watch *idle.Watch, c call, read answered) iter.Seq2[api.Event, error] {
	if b := c.options.Batches; b != nil {
		read := func(res *http.Response) iter.Seq2[api.Event, error] { return read.whole(res, c) }
		return roundtrip.InBatch(watch.Context, b, t.driver(c.options), c.body, read)
	}
	return func(yield func(api.Event, error) bool) {
		res, err := t.send(watch, c)
		if err != nil {
			yield(nil, err)
			return
		}
		defer res.Body.Close()
		if roundtrip.IsPage(res) {
			roundtrip.Page(t.api, res)(yield)
			return
		}

		how := read.whole
		if roundtrip.IsStream(res, !c.streams) {
			how = read.streamed
		}
		how(res, c)(yield)
	}
}

// send posts the body unchanged. The caller closes the response.
func (t *transport) send(watch *idle.Watch, c call) (*http.Response, error) {
	var further []option.RequestOption
	if c.streams {
		further = append(further, option.WithHeader("Accept", "text/event-stream"))
	}
	return t.call(watch, http.MethodPost, t.path, "application/json", c.body, c.options, further...)
}

// call sends a request; body is nil for one without. The caller closes the response.
func (t *transport) call(
	watch *idle.Watch, method, path, kind string, body *wire.Parts, o Options, further ...option.RequestOption,
) (*http.Response, error) {
	options := append([]option.RequestOption{option.WithMaxRetries(0)}, further...) // api.Client retries
	if body != nil {
		options = append(options, option.WithRequestBody(kind, body))
	}

	// Headers of the options replace those of the SDK.
	for name, values := range o.Header {
		options = append(options, option.WithHeaderDel(name))
		for _, value := range values {
			options = append(options, option.WithHeaderAdd(name, value))
		}
	}

	var res *http.Response
	ctx := context.WithValue(watch.Context, sending{}, &sent{t.api, method, path, body, watch})
	if err := t.do(ctx, &res, options...); err != nil {
		if res != nil {
			res.Body.Close()
		}
		return nil, err
	}
	return res, nil
}

// sending is the context key of a *sent. The *sent describes the request to outermost.
type sending struct{}

type sent struct {
	api    string
	method string
	path   string      // relative to the base URL
	body   *wire.Parts // nil for none
	watch  *idle.Watch
}

// outermost is the middleware around all others. It
//
//   - sends the request to its path: see senderOf,
//   - checks the address and collects the secrets, for errors without them,
//   - sets the length of the request's body: the SDK does so only for a body in one slice,
//   - watches the response for stalls and bounds its length,
//   - returns an error response as an error.
func outermost(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	if s, ok := req.Context().Value(looking{}).(*server); ok {
		s.look(req)
		return nil, errLooked
	}

	s, ok := req.Context().Value(sending{}).(*sent)
	if !ok {
		return next(req)
	}

	s.aim(req)
	if err := wire.Ready(req); err != nil {
		return nil, err
	}
	if s.body != nil {
		s.body.Send(req)
	}
	res, err := next(req)
	if err != nil || res == nil || res.Body == nil {
		return res, err
	}

	limit := wire.Bounded
	if s.body == nil { // a file of results
		limit = func(body io.ReadCloser) io.ReadCloser { return wire.BoundedTo(body, roundtrip.MaxResults) }
	}
	res.Body = limit(s.watch.Body(res.Body))
	if res.StatusCode < 400 {
		return res, nil
	}

	// Only the beginning of an error's body is kept.
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
	if err != nil && len(body) == 0 {
		return nil, err
	}
	return nil, newError(s.api, res.StatusCode, res.Header, body)
}
