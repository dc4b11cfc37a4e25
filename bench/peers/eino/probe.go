package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/plait-dev/plait/bench/internal/probe"
)

// converse keeps the messages itself: the library returns the last one, and nothing after an error.
func converse(ctx context.Context, c *probe.Conversation, prompt string) (string, error) {
	messages, ok := c.State.([]*schema.Message)
	if !ok {
		for _, m := range c.History {
			messages = append(messages, &schema.Message{Role: schema.RoleType(m.Role), Content: m.Text, ToolCalls: callsOf(m.Calls)})
		}
	}
	messages = append(messages, schema.UserMessage(prompt))
	c.State = messages

	look, err := utils.InferTool("look", "Tells the weather.", c.Look)
	if err != nil {
		return "", err
	}
	tools := []tool.BaseTool{look}
	if c.Recursive {
		grow, err := utils.InferTool("grow", "Grows a tree.", c.Grow)
		if err != nil {
			return "", err
		}
		tools = append(tools, grow)
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{ToolCallingModel: scripted{c}, ToolsConfig: compose.ToolsNodeConfig{Tools: tools}})
	if err != nil {
		return "", err
	}
	last, err := agent.Generate(ctx, messages)
	if err != nil {
		return "", err
	}
	c.State = append(messages, last)
	return last.Content, nil
}

func callsOf(calls []probe.Call) []schema.ToolCall {
	var list []schema.ToolCall
	for _, call := range calls {
		list = append(list, schema.ToolCall{ID: call.ID, Type: "function", Function: schema.FunctionCall{Name: call.Name, Arguments: call.Args}})
	}
	return list
}

// scripted is the model of a conversation.
type scripted struct{ c *probe.Conversation }

func (s scripted) Generate(_ context.Context, in []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	var request []probe.Message
	for _, m := range in {
		sent := probe.Message{Role: string(m.Role), Text: m.Content}
		for _, call := range m.ToolCalls {
			sent.Calls = append(sent.Calls, probe.Call{ID: call.ID, Name: call.Function.Name, Args: call.Function.Arguments})
		}
		if m.Role == schema.Tool {
			sent.Results = []probe.Result{{ID: m.ToolCallID, Text: m.Content}}
		}
		request = append(request, sent)
	}

	a := s.c.Respond(request)
	if a.Err != nil {
		return nil, a.Err
	}
	m := schema.AssistantMessage(a.Text, callsOf(a.Calls))
	m.ResponseMeta = &schema.ResponseMeta{FinishReason: "stop"}
	if a.Cut {
		m.ResponseMeta.FinishReason = "length"
	}
	return m, nil
}

func (s scripted) Stream(ctx context.Context, in []*schema.Message, o ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := s.Generate(ctx, in, o...)
	return schema.StreamReaderFromArray([]*schema.Message{m}), err
}

func (s scripted) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return s, nil }

// reload loads a saved message with a part of an unknown type.
func reload() (string, error) {
	saved, err := json.Marshal([]*schema.Message{{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{{Type: "text", Text: "Weather?"}}}})
	if err != nil {
		return "", err
	}
	changed := strings.Replace(string(saved), `[{"type":"text"`, `[{"type":"hologram",`+probe.Unknown+`},{"type":"text"`, 1)
	var list []*schema.Message
	if err := json.Unmarshal([]byte(changed), &list); err != nil {
		return "", err
	}
	again, err := json.Marshal(list)
	return string(again), err
}
