package openai

import (
	"context"
	"iter"

	"github.com/plait-dev/plait/api"
)

// Chat is a model behind the Chat Completions API. It is safe for concurrent use. Create one with [NewChat].
type Chat struct {
	model     string
	options   Options
	transport *transport
}

var _ api.Provider = (*Chat)(nil)

// Model returns the name of the model.
func (c *Chat) Model() string { return c.model }

// NewChat returns the model with the given name, such as "gpt-4.1". A nil o means all defaults. NewChat sends no
// request: a missing key is reported by the first request, as api.ErrAuth.
func NewChat(model string, o *Options) *Chat {
	return &Chat{model: model, options: o.orNone(), transport: newTransport(ChatAPI, "chat/completions", model, o)}
}

// Stream sends the request and yields the events of its response, under the contract of api.Provider.
func (c *Chat) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return c.transport.stream(
		ctx,
		func() (call, error) { return chatCall(req, c.model, &c.options, c.transport.server) },
		answered{streamedChat, wholeChat},
	)
}
