// Command genkit does the work of the peers with github.com/firebase/genkit/go.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/plait-dev/plait/bench/internal/peer"
	"github.com/plait-dev/plait/bench/internal/probe"
)

func main() {
	// By default genkit logs every turn. The log is not measured.
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError})))
	peer.Serve(peer.Subject{Name: "genkit", Version: "v1.12.0", Run: run, Probes: probe.Subject{Converse: converse, Reload: reload}})
}

// ids are the IDs of calls, made before anything is measured.
var ids = func() (ids [64]string) {
	for i := range ids {
		ids[i] = fmt.Sprint("call_", i)
	}
	return ids
}()

type none struct{}

func run(ctx context.Context, loop *peer.Loop) error {
	g := genkit.Init(ctx)
	model := genkit.DefineModel(g, "bench/fake", &ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true, Tools: true, SystemRole: true}},
		func(_ context.Context, r *ai.ModelRequest, _ func(context.Context, *ai.ModelResponseChunk) error) (*ai.ModelResponse, error) {
			parts := []*ai.Part{ai.NewTextPart("Done.")}
			if loop.Next() {
				parts = make([]*ai.Part, loop.Tools)
				for i := range parts {
					parts[i] = ai.NewToolRequestPart(&ai.ToolRequest{Name: "instant", Ref: ids[i], Input: map[string]any{}})
				}
			}
			return &ai.ModelResponse{Request: r, FinishReason: ai.FinishReasonStop, Message: ai.NewModelMessage(parts...)}, nil
		})

	instant := genkit.DefineTool(g, "instant", "Does nothing.", func(*ai.ToolContext, none) (string, error) { return "ok", nil })
	_, err := genkit.Generate(ctx, g, ai.WithModel(model), ai.WithPrompt("Go."), ai.WithTools(instant), ai.WithMaxTurns(loop.Total+2))
	return err
}
