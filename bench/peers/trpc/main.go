// Command trpc does the work of the peers with trpc.group/trpc-go/trpc-agent-go.
package main

import (
	"context"
	"errors"
	"fmt"

	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/runner"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"
	"trpc.group/trpc-go/trpc-agent-go/tool"
	"trpc.group/trpc-go/trpc-agent-go/tool/function"

	"github.com/plait-dev/plait/bench/internal/peer"
	"github.com/plait-dev/plait/bench/internal/probe"
)

func main() {
	peer.Serve(peer.Subject{Name: "trpc-agent-go", Version: "v1.11.0", Run: run, Probes: probe.Subject{Converse: converse}})
}

type fake struct{ loop *peer.Loop }

func (fake) Info() model.Info { return model.Info{Name: "fake"} }

func (f fake) GenerateContent(context.Context, *model.Request) (<-chan *model.Response, error) {
	message, reason := model.NewAssistantMessage("Done."), "stop"
	if f.loop.Next() {
		calls := make([]model.ToolCall, f.loop.Tools)
		for i := range calls {
			calls[i] = model.ToolCall{ID: ids[i], Type: "function", Function: model.FunctionDefinitionParam{Name: "instant", Arguments: []byte("{}")}}
		}
		message, reason = model.Message{Role: model.RoleAssistant, ToolCalls: calls}, "tool_calls"
	}
	out := make(chan *model.Response, 1)
	out <- &model.Response{ID: "r", Object: "chat.completion", Choices: []model.Choice{{Message: message, FinishReason: &reason}}, Done: true}
	close(out)
	return out, nil
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
	instant := function.NewFunctionTool(func(context.Context, none) (string, error) { return "ok", nil },
		function.WithName("instant"), function.WithDescription("Does nothing."))

	// By default, tools are executed one after the other. A limit of 0 is no limit.
	agent := llmagent.New("bench", llmagent.WithModel(fake{loop}), llmagent.WithTools([]tool.Tool{instant}),
		llmagent.WithEnableParallelTools(true), llmagent.WithMaxLLMCalls(0), llmagent.WithMaxToolIterations(0))

	// By default, a session keeps only its last 1,000 events.
	sessions := inmemory.NewSessionService(inmemory.WithSessionEventLimit(1 << 20))
	r := runner.NewRunner("bench", agent, runner.WithSessionService(sessions))
	events, err := r.Run(ctx, "user", "session", model.NewUserMessage("Go."))
	if err != nil {
		return err
	}

	// Read all events, also after an error, until the run closes the channel.
	var failed error
	for e := range events {
		if e.Error != nil {
			failed = errors.New(e.Error.Message)
		}
	}
	return errors.Join(failed, r.Close(), sessions.Close())
}
