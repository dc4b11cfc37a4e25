// Command eino does the work of the peers with github.com/cloudwego/eino.
package main

import (
	"context"
	"fmt"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/plait-dev/plait/bench/internal/peer"
	"github.com/plait-dev/plait/bench/internal/probe"
)

func main() {
	peer.Serve(peer.Subject{Name: "eino", Version: "v0.9.20", Run: run, History: history, Probes: probe.Subject{Converse: converse, Reload: reload}})
}

type instant struct{}

func (instant) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "instant", Desc: "Does nothing.", ParamsOneOf: schema.NewParamsOneOfByParams(nil)}, nil
}

func (instant) InvokableRun(context.Context, string, ...tool.Option) (string, error) {
	return "ok", nil
}

type fake struct{ loop *peer.Loop }

func (f fake) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	if !f.loop.Next() {
		return schema.AssistantMessage("Done.", nil), nil
	}
	return schema.AssistantMessage("", calls(f.loop.Tools)), nil
}

func (f fake) Stream(ctx context.Context, in []*schema.Message, o ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := f.Generate(ctx, in, o...)
	return schema.StreamReaderFromArray([]*schema.Message{m}), err
}

func (f fake) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return f, nil }

func calls(n int) []schema.ToolCall {
	list := make([]schema.ToolCall, n)
	for i := range list {
		list[i] = schema.ToolCall{ID: ids[i], Type: "function", Function: schema.FunctionCall{Name: "instant", Arguments: "{}"}}
	}
	return list
}

// ids are the IDs of calls, made before anything is measured.
var ids = func() (ids [64]string) {
	for i := range ids {
		ids[i] = fmt.Sprint("call_", i)
	}
	return ids
}()

func run(ctx context.Context, loop *peer.Loop) error {
	// A turn takes two steps: one for the model, one for its tools. 12 is eino's default.
	agent, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: fake{loop}, MaxStep: 2*loop.Total + 12,
		ToolsConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{instant{}}},
	})
	if err != nil {
		return err
	}
	_, err = agent.Generate(ctx, []*schema.Message{schema.UserMessage("Go.")})
	return err
}

func history(turns, tools int) (peer.History, error) {
	h := peer.Messages[*schema.Message]{List: []*schema.Message{schema.UserMessage("Go.")}, Next: schema.UserMessage("And now?")}
	for range turns {
		h.List = append(h.List, schema.AssistantMessage("", calls(tools)))
		for i := range tools {
			h.List = append(h.List, schema.ToolMessage("ok", ids[i], schema.WithToolName("instant")))
		}
	}
	return h, nil
}
