// Command langchaingo does the work of the peers with github.com/tmc/langchaingo.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"

	"github.com/plait-dev/plait/bench/internal/peer"
)

func main() {
	peer.Serve(peer.Subject{Name: "langchaingo", Version: "v0.1.14", Run: run})
}

type instant struct{}

func (instant) Name() string                                 { return "instant" }
func (instant) Description() string                          { return "Does nothing." }
func (instant) Call(context.Context, string) (string, error) { return "ok", nil }

type fake struct{ loop *peer.Loop }

func (f fake) GenerateContent(context.Context, []llms.MessageContent, ...llms.CallOption) (*llms.ContentResponse, error) {
	if !f.loop.Next() {
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "Done."}}}, nil
	}
	calls := make([]llms.ToolCall, f.loop.Tools)
	for i := range calls {
		calls[i] = llms.ToolCall{ID: ids[i], Type: "function", FunctionCall: &llms.FunctionCall{Name: "instant", Arguments: "{}"}}
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{ToolCalls: calls}}}, nil
}

func (fake) Call(context.Context, string, ...llms.CallOption) (string, error) {
	return "", errors.New("not used here")
}

// ids are the IDs of calls, made before anything is measured.
var ids = func() (ids [64]string) {
	for i := range ids {
		ids[i] = fmt.Sprint("call_", i)
	}
	return ids
}()

func run(ctx context.Context, loop *peer.Loop) error {
	agent := agents.NewOpenAIFunctionsAgent(fake{loop}, []tools.Tool{instant{}})
	_, err := chains.Run(ctx, agents.NewExecutor(agent, agents.WithMaxIterations(loop.Total+2)), "Go.")
	return err
}
