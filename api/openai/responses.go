package openai

import (
	"context"
	"iter"
	"net/http"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/internal/wire"
)

// responsesProvider is a model behind the Responses API.
type responsesProvider struct {
	model     string
	options   Options
	transport *transport
}

var _ api.TokenCounter = (*responsesProvider)(nil)

// Model returns the name of the model.
func (r *responsesProvider) Model() string { return r.model }

// NewResponses returns a model behind the Responses API, such as "gpt-5". It is safe for concurrent use. A nil o means
// all defaults. NewResponses sends no request: a missing key is reported by the first request, as api.ErrAuth.
//
// OpenAI stores nothing between two requests: each request carries the whole conversation, including the model's
// encrypted reasoning (see [ResponsesBody]).
func NewResponses(model string, o *Options) api.Provider {
	return &responsesProvider{model: model, options: o.orNone(), transport: newTransport(ResponsesAPI, "responses", model, o)}
}

// Stream sends the request and yields the events of its response, under the contract of api.Provider.
func (r *responsesProvider) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return r.transport.stream(
		ctx,
		func() (call, error) { return responsesCall(req, r.model, &r.options, r.transport.server) },
		answered{streamedResponse, wholeResponse},
	)
}

// counted lists the members of a request accepted by the endpoint for counting.
var counted = []string{
	"model", "instructions", "tools", "input", "tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation",
	"conversation", "previous_response_id",
}

// CountTokens asks the API how many tokens the input of a request takes. See api.TokenCounter.
func (r *responsesProvider) CountTokens(ctx context.Context, req api.Request) (int64, error) {
	// A copy, because the transport itself keeps the path of its requests.
	counting := *r.transport
	counting.path += "/input_tokens"
	read := func(res *http.Response, _ call) iter.Seq2[api.Event, error] {
		return roundtrip.Tokens(ResponsesAPI, "input_tokens", res)
	}

	return counting.trip(func() (call, error) {
		c, err := responsesCall(req, r.model, &r.options, r.transport.server)
		if err != nil {
			return c, err
		}

		// The tokens of the input do not depend on the other members, and the endpoint refuses them.
		body, err := roundtrip.Keeping(c.body, counted...)
		c.body, c.streams, c.options.Batches = wire.NewParts([]byte(body)), false, nil
		return c, err
	}, answered{read, read}).Count(ctx)
}
