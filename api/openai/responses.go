package openai

import (
	"context"
	"iter"

	"github.com/plait-dev/plait/api"
)

// Responses is a model behind the Responses API. It is safe for concurrent use. Create one with [NewResponses].
//
// OpenAI stores nothing between two requests: each request carries the whole conversation, including the model's
// encrypted reasoning (see [ResponsesBody]).
type Responses struct {
	model     string
	options   Options
	transport *transport
}

var _ api.Provider = (*Responses)(nil)

// NewResponses returns the model with that name, such as "gpt-5". A nil o means all defaults. NewResponses sends no
// request: a missing key is reported by the first request, as api.ErrAuth.
func NewResponses(model string, o *Options) *Responses {
	return &Responses{model: model, options: o.orNone(), transport: newTransport(ResponsesAPI, "responses", o)}
}

// Stream sends the request and yields the events of its response, under the contract of api.Provider.
func (r *Responses) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return r.transport.stream(
		ctx,
		func() (call, error) { return responsesCall(req, r.model, &r.options, r.transport.server) },
		answered{streamedResponse, wholeResponse},
	)
}
