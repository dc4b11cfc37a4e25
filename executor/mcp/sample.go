//lint:file-ignore SA1019 sampling is deprecated since 2026-07-28, and servers still use it

package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// refusal is the error of a server's request that this side refused. It does not mean that the connection is lost.
type refusal struct{ error }

func (e *refusal) Unwrap() error { return e.error }

// elicit passes a server's question on to a person.
func (s *Server) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	if err := s.calls.request(); err != nil {
		return nil, &refusal{err}
	}
	response, err := s.opts.Elicit(ctx, r.Params)
	if err != nil {
		return nil, &refusal{err}
	}
	return response, nil
}

// sample sends a server's request for a model's response to the model.
func (s *Server) sample(ctx context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
	if err := s.calls.request(); err != nil {
		return nil, &refusal{err}
	}
	if s.opts.Approve != nil {
		if err := s.opts.Approve(ctx, r.Params); err != nil {
			return nil, &refusal{fmt.Errorf("sampling was refused: %w", err)}
		}
	}

	request, err := s.sampling(r.Params)
	if err != nil {
		return nil, &refusal{err}
	}
	answer, err := api.NewClient(s.opts.Model, nil).Send(ctx, request)

	// A request that failed may have used tokens too.
	s.calls.spend(answer.Usage)
	if err != nil {
		return nil, &refusal{err}
	}
	return &sdk.CreateMessageResult{
		Role: "assistant", Model: answer.Model, StopReason: stopReason(answer.Stop),
		Content: &sdk.TextContent{Text: answer.Blocks.Text()},
	}, nil
}

// sampling translates the request. It ignores the server's preferences for a model and for context of other servers.
func (s *Server) sampling(p *sdk.CreateMessageParams) (api.Request, error) {
	const defaultTokens = 4096
	tokens := s.opts.MaxTokens
	if tokens <= 0 {
		tokens = defaultTokens
	}

	// A server may ask for less than the program allows, not for more.
	if p.MaxTokens > 0 {
		tokens = int(min(int64(tokens), p.MaxTokens))
	}

	request := api.Request{Options: api.Options{MaxTokens: tokens, StopSequences: p.StopSequences}}
	if p.SystemPrompt != "" {
		request.System = []string{safetext.UTF8(p.SystemPrompt)}
	}
	for i, m := range p.Messages {
		role := content.Role(m.Role)
		if !role.Valid() {
			return request, fmt.Errorf("message %d has the role %q", i, safetext.UTF8(string(m.Role)))
		}
		blocks, err := content.Of(block(m.Content))
		if err != nil {
			return request, fmt.Errorf("message %d: %w", i, err)
		}
		request.Messages = append(request.Messages, content.Message{Role: role, Blocks: blocks})
	}
	return request, nil
}

// stopReason translates a stop reason to the protocol's. A stop reason unknown to the protocol stays as it is.
func stopReason(stop content.Stop) string {
	switch stop {
	case content.StopEndTurn:
		return "endTurn"
	case content.StopSequence:
		return "stopSequence"
	case content.StopMaxTokens:
		return "maxTokens"
	}
	return string(stop)
}
