package openai

import (
	"context"
	"iter"

	"github.com/plait-dev/plait/api"
)

// Responses is a model behind the Responses API. It is safe for concurrent use. Make it with [NewResponses].
//
// Nothing is kept at OpenAI between two requests: each carries the whole conversation, and the model's reasoning encrypted in it
// (see [ResponsesBody]).
type Responses struct {
	model     string
	options   Options
	transport *transport
}

var _ api.Provider = (*Responses)(nil)

// NewResponses returns the model of that name, such as "gpt-5". A nil o is all defaults. Nothing is asked of the API yet: a missing
// key is an error of the first request, api.ErrAuth.
func NewResponses(model string, o *Options) *Responses {
	return &Responses{model: model, options: o.orNone(), transport: newTransport(ResponsesAPI, "responses", o)}
}

// Stream sends the request and yields what comes back, by the rules of api.Provider.
func (r *Responses) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return r.transport.stream(ctx, func() (call, error) { return responsesCall(req, r.model, &r.options, r.transport.server) }, answered{streamedResponse, wholeResponse})
}
