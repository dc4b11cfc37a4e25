package openai

import (
	"context"
	"iter"

	"github.com/plait-dev/plait/api"
)

// chatProvider is a model behind the Chat Completions API.
type chatProvider struct {
	model     string
	options   Options
	transport *transport
}

var _ api.Provider = (*chatProvider)(nil)

// Model returns the name of the model.
func (c *chatProvider) Model() string { return c.model }

// NewChat returns a model behind the Chat Completions API, such as "gpt-4.1". It is safe for concurrent use. A nil o means all defaults. NewChat sends no
// request: a missing key is reported by the first request, as api.ErrAuth.
func NewChat(model string, o *Options) api.Provider {
	return &chatProvider{model: model, options: o.orNone(), transport: newTransport(ChatAPI, "chat/completions", model, o)}
}

// Stream sends the request and yields the events of its response, under the contract of api.Provider.
func (c *chatProvider) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return c.transport.stream(
		ctx,
		func() (call, error) { return chatCall(req, c.model, &c.options, c.transport.server) },
		answered{streamedChat, wholeChat},
	)
}
