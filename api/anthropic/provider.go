package anthropic

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/api"
)

// Provider is one of Anthropic's models. It is safe for concurrent use. Make it with [New].
type Provider struct {
	model   string
	options Options
	client  sdk.Client
}

var _ api.Provider = (*Provider)(nil)

// New returns the model of that name, such as "claude-sonnet-4-5". A nil o is all defaults. Nothing is asked of the API yet: a
// missing key is an error of the first request, api.ErrAuth.
func New(model string, o *Options) *Provider {
	p := &Provider{model: model, options: o.withDefaults()}
	p.client = sdk.NewClient(p.options.SDK...)
	return p
}

// Stream sends the request and yields what comes back, by the rules of api.Provider.
func (p *Provider) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return api.Once(func(yield func(api.Event, error) bool) {
		body, repairs, err := Body(req, p.model, &p.options)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(repairs) > 0 && !yield(api.Repaired{Repairs: repairs}, nil) {
			return
		}
		res, err := p.send(ctx, body)
		if err != nil {
			yield(nil, failure(ctx, err))
			return
		}
		defer res.Body.Close()
		for event, err := range p.answer(res) {
			if err != nil {
				yield(nil, failure(ctx, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	})
}

// send posts the bytes as they are. The caller closes the response.
func (p *Provider) send(ctx context.Context, body []byte) (*http.Response, error) {
	options := []option.RequestOption{option.WithMaxRetries(0)} // api.Client retries
	for _, beta := range p.options.Betas {
		options = append(options, option.WithHeaderAdd("anthropic-beta", beta))
	}
	if !p.options.NoStream {
		options = append(options, option.WithHeader("Accept", "text/event-stream"))
	}
	var res *http.Response
	if err := p.client.Post(ctx, "v1/messages", body, &res, options...); err != nil {
		if res != nil {
			res.Body.Close()
		}
		return nil, err
	}
	return res, nil
}

// answer yields the events of a response, streamed or whole, whatever was asked for.
func (p *Provider) answer(res *http.Response) iter.Seq2[api.Event, error] {
	res.Body = &bounded{ReadCloser: res.Body, left: maxAnswer}
	kind := res.Header.Get("Content-Type")
	switch {
	case strings.Contains(kind, "event-stream"):
		return streamed(res)
	case strings.Contains(kind, "json"), p.options.NoStream:
		return whole(res.Body, res.Header)
	}
	return streamed(res)
}

// whole yields the events of an answer that comes at once.
func whole(body io.Reader, header http.Header) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		data, err := io.ReadAll(body)
		if err != nil {
			yield(nil, cut(err))
			return
		}
		blocks, finish, err := decodeMessage(data, header)
		if err != nil {
			yield(nil, err)
			return
		}
		for i, b := range blocks {
			if !yield(api.BlockEnd{Index: i, Block: b}, nil) {
				return
			}
		}
		yield(finish, nil)
	}
}

// maxAnswer is the most bytes that an answer may have: far more than a model writes, far less than fills a machine.
const maxAnswer = 256 << 20

// errTooLong marks an answer of more bytes than that.
var errTooLong = errors.New("the answer is too long")

// bounded is a body that ends with errTooLong where it goes on for too long.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
