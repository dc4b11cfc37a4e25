package anthropic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// provider is one of Anthropic's models.
type provider struct {
	model   string
	options Options
	// The methods of the SDK's client. A field with the client itself would make programs larger: if a
	// program calls methods by reflection, the linker keeps every method of every service of the SDK.
	post method
	get  method
}

// method is Post or Get of the SDK's client.
type method func(ctx context.Context, path string, params, res any, options ...option.RequestOption) error

var _ api.TokenCounter = (*provider)(nil)

// Model returns the name of the model.
func (p *provider) Model() string { return p.model }

// New returns a provider for the named model, such as "claude-sonnet-4-5". A nil o means all defaults. New sends
// nothing to the API: a missing key is an error of the first request, api.ErrAuth.
func New(model string, o *Options) api.Provider {
	p := &provider{model: model}
	if o != nil {
		p.options = *o
	}
	client := sdk.NewClient(p.options.SDK...)
	p.post, p.get = client.Post, client.Get
	return p
}

// Stream sends the request and yields the events of its response, by the rules of api.Provider.
func (p *provider) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return p.trip(req, "v1/messages", answer).Stream(ctx)
}

// CountTokens asks the API how many tokens the input of a request takes. See api.TokenCounter.
func (p *provider) CountTokens(ctx context.Context, req api.Request) (int64, error) {
	t := p.trip(req, "v1/messages/count_tokens", func(res *http.Response, _ bool) iter.Seq2[api.Event, error] {
		return roundtrip.Tokens(API, "input_tokens", res)
	})
	return t.CountOf(ctx, func(body *wire.Parts) (content.JSON, error) { return roundtrip.Keeping(body, counted...) })
}

// counted lists the members of a request accepted by the endpoint for counting.
var counted = []string{
	"model", "system", "tools", "messages", "tool_choice", "thinking", "output_config", "context_management",
	"mcp_servers",
}

// trip returns the round trip of a request to a path. read yields the events of its response.
func (p *provider) trip(
	req api.Request, path string, read func(res *http.Response, whole bool) iter.Seq2[api.Event, error],
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
			if b.options.Batches != nil && path == "v1/messages" {
				return roundtrip.InBatch(watch.Context, b.options.Batches, p.driver(b.options), c.Body, atOnce)
			}
			return func(yield func(api.Event, error) bool) {
				res, err := p.send(watch.Context, path, c.Body, b.options)
				if err != nil {
					yield(nil, err)
					return
				}

				// Each byte counts as a sign of life, and their number is limited.
				res.Body = wire.Bounded(watch.Body(res.Body))
				defer res.Body.Close()
				read(res, b.options.NoStream)(yield)
			}
		},
		Explain: explain,
	}
}

// send posts body unchanged. The caller closes the response.
func (p *provider) send(ctx context.Context, path string, body *wire.Parts, o Options) (*http.Response, error) {
	further := []option.RequestOption{option.WithRequestBody("application/json", body)}
	if !o.NoStream {
		further = append(further, option.WithHeader("Accept", "text/event-stream"))
	}
	return o.call(ctx, p.post, path, further...)
}

// fetch gets a path. The caller closes the response.
func (p *provider) fetch(ctx context.Context, path string, o Options) (*http.Response, error) {
	return o.call(ctx, p.get, path)
}

// call calls a method of the SDK.
func (o Options) call(
	ctx context.Context, do method, path string, further ...option.RequestOption,
) (*http.Response, error) {
	options := append([]option.RequestOption{
		option.WithMaxRetries(0), // api.Client retries
		option.WithMiddleware(o.carry),
	}, further...)

	// Headers of the options replace those of the SDK.
	for name, values := range o.Header {
		options = append(options, option.WithHeaderDel(name))
		for _, value := range values {
			options = append(options, option.WithHeaderAdd(name, value))
		}
	}

	var res *http.Response
	if err := do(ctx, path, nil, &res, options...); err != nil {
		if res != nil {
			res.Body.Close()
		}
		return nil, err
	}
	return res, nil
}

// errNoKey is the error of a request without a key: it could not succeed.
var errNoKey = errors.New("no API key: set ANTHROPIC_API_KEY, or give one in Options.SDK")

// badServer returns the error for an Options.Server unusable for requests.
func badServer(format string, args ...any) error {
	return &api.Error{Kind: api.ErrInvalidRequest, API: API, Err: fmt.Errorf("Options.Server: "+format, args...)}
}

// carry is the last middleware before the request is sent. It checks the address and the key: the SDK does not do so if
// there is any middleware.
func (o Options) carry(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	if req.URL.Host == "api.anthropic.com" {
		switch {
		case o.Server != "":
			return nil, badServer("the base URL is Anthropic's own, and not that of %s: set it in Options.SDK", o.Server)
		case req.Header.Get("X-Api-Key") == "" && req.Header.Get("Authorization") == "":
			return nil, errNoKey
		}
	}
	if err := wire.Ready(req); err != nil {
		return nil, err
	}
	wire.Sized(req)
	return next(req)
}

// answer yields the events of a response.
func answer(res *http.Response, whole bool) iter.Seq2[api.Event, error] {
	switch {
	case roundtrip.IsPage(res):
		return roundtrip.Page(API, res)
	case roundtrip.IsStream(res, whole):
		return streamed(res)
	}
	return atOnce(res)
}

// atOnce yields the events of a whole response, not streamed.
func atOnce(res *http.Response) iter.Seq2[api.Event, error] {
	return roundtrip.Whole(API, res, func(body []byte) ([]content.Block, api.Finish, error) {
		return decodeMessage(body, res.Header)
	})
}
