package gemini

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/wire"
)

// provider is one of Google's models.
type provider struct {
	model   string
	options Options

	mu sync.Mutex
	// Made by the first request. Guarded by mu.
	client *client
}

var _ api.TokenCounter = (*provider)(nil)

// Model returns the name of the model.
func (p *provider) Model() string { return p.model }

// New returns a provider for the named model, such as "gemini-2.5-flash". A nil o means all defaults. New sends
// nothing: a missing key is an error of the first request, api.ErrAuth.
func New(model string, o *Options) api.Provider {
	p := &provider{model: model}
	if o != nil {
		p.options = *o
	}
	return p
}

// Stream sends the request and yields the events of its response, by the rules of api.Provider.
func (p *provider) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return p.trip(req, false, answer).Stream(ctx)
}

// CountTokens asks the API how many tokens the input of a request takes. See api.TokenCounter.
func (p *provider) CountTokens(ctx context.Context, req api.Request) (int64, error) {
	t := p.trip(req, true, func(res *http.Response) iter.Seq2[api.Event, error] {
		if res.StatusCode < 200 || res.StatusCode > 299 {
			return failed(res)
		}
		return roundtrip.Tokens(API, "totalTokens", res)
	})
	return t.CountOf(ctx, p.counted)
}

// counted returns the body for counting. Vertex AI takes the members of a request, and the Gemini API a whole request.
func (p *provider) counted(body *wire.Parts) (content.JSON, error) {
	if p.options.vertex() {
		return roundtrip.Keeping(body, "contents", "systemInstruction", "tools", "generationConfig")
	}

	list, err := jsonx.Members(content.JSON(body.Bytes()))
	name := write.Quote(nil, "models/"+strings.TrimPrefix(p.model, "models/"))
	request := jsonx.Object(append([]jsonx.Member{{Name: "model", Value: content.JSON(name)}}, list...))
	return jsonx.Object([]jsonx.Member{{Name: "generateContentRequest", Value: request}}), err
}

// trip returns a request, for its events or for a count of its tokens, with read as the reader of its response.
func (p *provider) trip(
	req api.Request, counts bool, read func(res *http.Response) iter.Seq2[api.Event, error],
) roundtrip.Trip {
	b := newBuilder(&p.options, req, p.model)
	return roundtrip.Trip{
		Prepare: func() (roundtrip.Call, error) {
			body, err := b.body(req)
			return roundtrip.Call{
				API: API, Options: b.options.Options, Whole: b.options.NoStream, Body: body, Notes: b.Notes,
			}, err
		},
		Ask: func(watch *idle.Watch, c roundtrip.Call) iter.Seq2[api.Event, error] {
			if b.options.Batches != nil && !counts {
				return roundtrip.InBatch(watch.Context, b.options.Batches, p.driver(b.options), c.Body, read)
			}
			return func(yield func(api.Event, error) bool) {
				// The client is made here, not in New: a missing key is an error of the request.
				client, err := p.connected(watch.Context)
				if err != nil {
					yield(nil, err)
					return
				}

				ctx, cancel := limited(watch.Context, client.timeout)
				defer cancel()

				// The SDK makes the address and the authorization. The carrier sends the body and keeps the response.
				s := &sent{ctx: ctx, body: c.Body, header: b.options.Header, streams: !b.options.NoStream, counts: counts}
				res, err := s.post(client, p.model)
				if err != nil {
					yield(nil, err)
					return
				}

				defer res.Body.Close()
				res.Body = wire.Bounded(watch.Body(res.Body))
				read(res)(yield)
			}
		},
		Explain: explain,
	}
}

// connected returns the SDK's client. If it cannot be made, the next request tries again.
func (p *provider) connected(ctx context.Context) (*client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.client == nil {
		connected, err := connect(ctx, p.options.SDK)
		if err != nil {
			return nil, err
		}
		p.client = connected
	}
	return p.client, nil
}

// limited returns a context that ends after the timeout, if there is one. The SDK's own timeout has no effect: it ends
// with the empty response of the carrier.
func limited(ctx context.Context, timeout *time.Duration) (context.Context, context.CancelFunc) {
	if timeout == nil || *timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, *timeout)
}

// answer yields the events of a response. Its content type decides whether it is read as a stream, because a server may
// not respect the request.
func answer(res *http.Response) iter.Seq2[api.Event, error] {
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		return failed(res)
	case roundtrip.IsPage(res):
		return roundtrip.Page(API, res)
	case strings.Contains(res.Header.Get("Content-Type"), "event-stream"):
		return streamed(res)
	}
	return whole(res)
}

// failed yields the error of a response with an unsuccessful status.
func failed(res *http.Response) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		body, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
		if err != nil && len(body) == 0 {
			yield(nil, err)
			return
		}
		yield(nil, newError(res.StatusCode, res.Header, body))
	}
}
