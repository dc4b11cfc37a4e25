// Command adk does the work of the peers with google.golang.org/adk/v2.
package main

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/bench/internal/peer"
	"github.com/plait-dev/plait/bench/internal/probe"
)

func main() {
	peer.Serve(peer.Subject{Name: "adk", Version: "v2.2.0", Run: run, Probes: probe.Subject{Converse: converse}})
}

type fake struct{ loop *peer.Loop }

func (fake) Name() string { return "fake" }

func (f fake) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		parts := []*genai.Part{{Text: "Done."}}
		if f.loop.Next() {
			parts = make([]*genai.Part, f.loop.Tools)
			for i := range parts {
				parts[i] = &genai.Part{FunctionCall: &genai.FunctionCall{ID: ids[i], Name: "instant", Args: map[string]any{}}}
			}
		}
		yield(&model.LLMResponse{Content: &genai.Content{Role: "model", Parts: parts}, TurnComplete: true}, nil)
	}
}

// ids are the IDs of calls, made before anything is measured.
var ids = func() (ids [64]string) {
	for i := range ids {
		ids[i] = fmt.Sprint("call_", i)
	}
	return ids
}()

type none struct{}

type result struct {
	Output string `json:"output"`
}

func run(ctx context.Context, loop *peer.Loop) error {
	instant, err := functiontool.New(functiontool.Config{Name: "instant", Description: "Does nothing."},
		func(agent.Context, none) (result, error) { return result{"ok"}, nil })
	if err != nil {
		return err
	}

	a, err := llmagent.New(llmagent.Config{Name: "bench", Model: fake{loop}, Tools: []tool.Tool{instant}})
	if err != nil {
		return err
	}
	r, err := runner.NewInMemory("bench", a)
	if err != nil {
		return err
	}

	for _, err := range r.Run(ctx, "user", "session", genai.NewContentFromText("Go.", "user"), agent.RunConfig{}) {
		if err != nil {
			return err
		}
	}

	// A run beyond its deadline is an error, even if it ended without one.
	return ctx.Err()
}
