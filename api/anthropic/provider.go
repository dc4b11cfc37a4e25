package anthropic

import (
	"context"
	"iter"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/plait-dev/plait/api"
)

// Provider is one of Anthropic's models.
type Provider struct {
	model   string
	options Options
	client  sdk.Client
}

// New returns the model of that name, such as "claude-sonnet-4-5".
func New(model string, o *Options) *Provider {
	p := &Provider{model: model, options: o.withDefaults()}
	p.client = sdk.NewClient(p.options.SDK...)
	return p
}

// Stream is api.Provider's.
func (p *Provider) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {}
}
