// Command fantasy does the work of the peers with charm.land/fantasy.
package main

import (
	"context"
	"errors"
	"fmt"

	"charm.land/fantasy"

	"github.com/plait-dev/plait/bench/internal/peer"
	"github.com/plait-dev/plait/bench/internal/probe"
)

func main() {
	peer.Serve(peer.Subject{Name: "fantasy", Version: "v0.41.2", Run: run, History: history, Probes: probe.Subject{Converse: converse, Reload: reload}})
}

type fake struct{ loop *peer.Loop }

func (f fake) Generate(context.Context, fantasy.Call) (*fantasy.Response, error) {
	if !f.loop.Next() {
		return &fantasy.Response{Content: fantasy.ResponseContent{fantasy.TextContent{Text: "Done."}}, FinishReason: fantasy.FinishReasonStop}, nil
	}
	content := make(fantasy.ResponseContent, f.loop.Tools)
	for i := range content {
		content[i] = fantasy.ToolCallContent{ToolCallID: ids[i], ToolName: "instant", Input: "{}"}
	}
	return &fantasy.Response{Content: content, FinishReason: fantasy.FinishReasonToolCalls}, nil
}

var errUnused = errors.New("not used here")

func (fake) Stream(context.Context, fantasy.Call) (fantasy.StreamResponse, error) {
	return nil, errUnused
}

func (fake) GenerateObject(context.Context, fantasy.ObjectCall) (*fantasy.ObjectResponse, error) {
	return nil, errUnused
}

func (fake) StreamObject(context.Context, fantasy.ObjectCall) (fantasy.ObjectStreamResponse, error) {
	return nil, errUnused
}

func (fake) Provider() string { return "fake" }
func (fake) Model() string    { return "fake" }

// ids are the IDs of calls, made before anything is measured.
var ids = func() (ids [64]string) {
	for i := range ids {
		ids[i] = fmt.Sprint("call_", i)
	}
	return ids
}()

type none struct{}

func run(ctx context.Context, loop *peer.Loop) error {
	// By default, fantasy executes tools one after the other.
	tool := fantasy.NewParallelAgentTool("instant", "Does nothing.", func(context.Context, none, fantasy.ToolCall) (fantasy.ToolResponse, error) {
		return fantasy.NewTextResponse("ok"), nil
	})
	agent := fantasy.NewAgent(fake{loop}, fantasy.WithTools(tool), fantasy.WithStopConditions(fantasy.StepCountIs(loop.Total+1)))
	_, err := agent.Generate(ctx, fantasy.AgentCall{Prompt: "Go."})
	return err
}

func history(turns, tools int) (peer.History, error) {
	user := func(text string) fantasy.Message { return fantasy.NewUserMessage(text) }
	h := peer.Messages[fantasy.Message]{List: []fantasy.Message{user("Go.")}, Next: user("And now?")}
	for range turns {
		var asked, answered []fantasy.MessagePart
		for i := range tools {
			asked = append(asked, fantasy.ToolCallPart{ToolCallID: ids[i], ToolName: "instant", Input: "{}"})
			answered = append(answered, fantasy.ToolResultPart{ToolCallID: ids[i], Output: fantasy.ToolResultOutputContentText{Text: "ok"}})
		}
		h.List = append(h.List,
			fantasy.Message{Role: fantasy.MessageRoleAssistant, Content: asked},
			fantasy.Message{Role: fantasy.MessageRoleTool, Content: answered})
	}
	return h, nil
}
