package api

import (
	"context"
	"errors"
	"iter"

	"github.com/plait-dev/plait/content"
)

// TokenCounter is a [Provider] that can ask its API for the number of input tokens of a request, without a response of
// the model. If the API cannot count, the error has errors.ErrUnsupported in its chain; otherwise it is an error as of
// Stream.
//
// Anthropic's Messages, OpenAI's Responses and Gemini count; Chat Completions does not. A [Client], [With] and
// [Fallback] count if their provider does.
type TokenCounter interface {
	Provider
	CountTokens(ctx context.Context, req Request) (int64, error)
}

// TokenCount is how many tokens the input of a request takes: system prompts, tools and messages.
type TokenCount struct {
	Input int64
	// Estimated is set if no API has counted: see [EstimateTokens].
	Estimated bool
}

// CountTokens returns the number of input tokens of a request. It asks the provider's API, with the request in the
// provider's form. If the API cannot count, or the server has no such endpoint ([ErrNotFound]), the count is an
// estimate. Any other error is returned.
//
// Each API has limits of its own on how often it counts. To decide before each request of a long run, estimate, and
// count when it comes close.
func CountTokens(ctx context.Context, p Provider, req Request) (TokenCount, error) {
	n, err := count(ctx, p, req)
	switch {
	case err == nil:
		return TokenCount{Input: n}, nil
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, ErrNotFound):
		return TokenCount{Input: EstimateTokens(req), Estimated: true}, nil
	}
	return TokenCount{}, err
}

// count calls CountTokens of p. If p does not have it, the error is errors.ErrUnsupported.
func count(ctx context.Context, p Provider, req Request) (int64, error) {
	if c, ok := p.(TokenCounter); ok {
		return c.CountTokens(ctx, req)
	}
	return 0, errors.ErrUnsupported
}

// EstimateTokens estimates the number of input tokens of a request: a quarter of the bytes of its texts, tool
// definitions, arguments and results, and four for each message. The estimate is about right for English, too low for
// Chinese or Japanese, and does not count images and documents.
func EstimateTokens(req Request) int64 {
	size := 0
	for _, prompt := range req.System {
		size += len(prompt)
	}
	for _, t := range req.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range req.Messages {
		size += sizeOf(m.Blocks) + 16
	}
	return int64(size+3) / 4
}

func sizeOf(blocks content.Blocks) (size int) {
	for _, b := range blocks.All() {
		switch b := b.(type) {
		case content.Text:
			size += len(b.Text)
		case content.Thinking:
			size += len(b.Text)
		case content.ToolUse:
			size += len(b.Name) + len(b.Input)
		case content.CutToolUse:
			size += len(b.Name) + len(b.Input)
		case content.ToolResult:
			size += sizeOf(b.Content)
		case content.Opaque:
			size += len(b.JSON)
		}
	}
	return size
}

// CountTokens asks the provider's API for a count, with retries as for Stream. See [TokenCounter].
func (c *Client) CountTokens(ctx context.Context, req Request) (int64, error) {
	var unsupported error
	counting := func(ctx context.Context, req Request) (int64, error) {
		n, err := count(ctx, c.provider, req)
		if errors.Is(err, errors.ErrUnsupported) {
			unsupported = err
		}
		return n, err
	}
	response, err := (&Client{provider: counted(counting), options: c.options, pace: c.pace}).Send(ctx, req)
	if unsupported != nil {
		return 0, unsupported // without the text Send adds to errors no provider should return
	}
	return response.Usage.Input, err
}

// CountTokens asks the provider's API for a count. See [TokenCounter].
func (w with) CountTokens(ctx context.Context, req Request) (int64, error) {
	req.Options = req.Options.Over(w.options)
	return count(ctx, w.provider, req)
}

// CountTokens asks the first provider. See [TokenCounter].
func (f *fallback) CountTokens(ctx context.Context, req Request) (int64, error) {
	return count(ctx, f.members[0].provider, req)
}

// counted is a provider with an empty response and the count as its usage, so that a Client can retry it.
type counted func(ctx context.Context, req Request) (int64, error)

func (c counted) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return Once(func(yield func(Event, error) bool) {
		n, err := c(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(Finish{Stop: content.StopEndTurn, Usage: content.Usage{Input: n}}, nil)
	})
}
