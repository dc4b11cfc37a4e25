// Command openaiagents does the work of the peers with github.com/nlpodyssey/openai-agents-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nlpodyssey/openai-agents-go/agents"
	"github.com/nlpodyssey/openai-agents-go/agentstesting"
	"github.com/nlpodyssey/openai-agents-go/tracing"
	"github.com/nlpodyssey/openai-agents-go/usage"

	"github.com/plait-dev/plait/bench/internal/peer"
)

func main() {
	// Without tracing, the library logs each span it leaves out. The log is not measured.
	logger := slog.New(slog.DiscardHandler)
	slog.SetDefault(logger)
	agents.SetLogger(logger)
	tracing.SetLogger(logger)
	peer.Serve(peer.Subject{Name: "openai-agents-go", Version: "v0.1.0", Run: run})
}

type fake struct{ loop *peer.Loop }

func (f fake) GetResponse(context.Context, agents.ModelResponseParams) (*agents.ModelResponse, error) {
	if !f.loop.Next() {
		return &agents.ModelResponse{Output: []agents.TResponseOutputItem{agentstesting.GetTextMessage("Done.")}, Usage: usage.NewUsage()}, nil
	}
	calls := make([]agents.TResponseOutputItem, f.loop.Tools)
	for i := range calls {
		calls[i] = agentstesting.GetFunctionToolCall("instant", "{}")
		calls[i].ID, calls[i].CallID = ids[i], ids[i]
	}
	return &agents.ModelResponse{Output: calls, Usage: usage.NewUsage()}, nil
}

func (fake) StreamResponse(context.Context, agents.ModelResponseParams, agents.ModelStreamResponseCallback) error {
	return errors.New("not used here")
}

// ids are the IDs of calls, made before anything is measured.
var ids = func() (ids [64]string) {
	for i := range ids {
		ids[i] = fmt.Sprint("call_", i)
	}
	return ids
}()

func run(ctx context.Context, loop *peer.Loop) error {
	agent := agents.New("bench").WithModelInstance(fake{loop}).WithTools(agentstesting.GetFunctionTool("instant", "ok"))
	runner := agents.Runner{Config: agents.RunConfig{MaxTurns: uint64(loop.Total + 2), TracingDisabled: true}}
	_, err := runner.Run(ctx, agent, "Go.")
	return err
}
