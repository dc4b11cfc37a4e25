package main

import (
	"context"
	"errors"

	"trpc.group/trpc-go/trpc-agent-go/agent"
	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/runner"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"
	"trpc.group/trpc-go/trpc-agent-go/tool"
	"trpc.group/trpc-go/trpc-agent-go/tool/function"

	"github.com/plait-dev/plait/bench/internal/probe"
)

// converse leaves the history to the library's session.
func converse(ctx context.Context, c *probe.Conversation, prompt string) (string, error) {
	tools := []tool.Tool{function.NewFunctionTool(c.Look, function.WithName("look"), function.WithDescription("Tells the weather."))}
	if c.Recursive {
		tools = append(tools, function.NewFunctionTool(c.Grow, function.WithName("grow"), function.WithDescription("Grows a tree.")))
	}
	a := llmagent.New("probed", llmagent.WithModel(scripted{c}), llmagent.WithTools(tools), llmagent.WithEnableParallelTools(true))

	sessions, ok := c.State.(*inmemory.SessionService)
	if !ok {
		sessions = inmemory.NewSessionService()
		c.State = sessions
	}
	var options []agent.RunOption
	if len(c.History) > 0 {
		var messages []model.Message
		for _, m := range c.History {
			messages = append(messages, model.Message{Role: model.Role(m.Role), Content: m.Text, ToolCalls: callsOf(m.Calls)})
		}
		options = append(options, agent.WithMessages(append(messages, model.NewUserMessage(prompt))))
	}
	r := runner.NewRunner("probed", a, runner.WithSessionService(sessions))
	events, err := r.Run(ctx, "user", "session", model.NewUserMessage(prompt), options...)
	if err != nil {
		return "", err
	}

	// Read all events, also after an error, until the run closes the channel.
	var text string
	var failed error
	for e := range events {
		if e.Error != nil {
			failed = errors.New(e.Error.Message)
		}
		if len(e.Choices) > 0 && e.Choices[0].Message.Role == model.RoleAssistant {
			text = e.Choices[0].Message.Content
		}
	}
	return text, failed
}

func callsOf(calls []probe.Call) []model.ToolCall {
	var list []model.ToolCall
	for _, call := range calls {
		list = append(list, model.ToolCall{ID: call.ID, Type: "function", Function: model.FunctionDefinitionParam{Name: call.Name, Arguments: []byte(call.Args)}})
	}
	return list
}

// scripted is the model of a conversation.
type scripted struct{ c *probe.Conversation }

func (scripted) Info() model.Info { return model.Info{Name: "scripted"} }

func (s scripted) GenerateContent(_ context.Context, r *model.Request) (<-chan *model.Response, error) {
	var request []probe.Message
	for _, m := range r.Messages {
		sent := probe.Message{Role: string(m.Role), Text: m.Content}
		for _, call := range m.ToolCalls {
			sent.Calls = append(sent.Calls, probe.Call{ID: call.ID, Name: call.Function.Name, Args: string(call.Function.Arguments)})
		}
		if m.Role == model.RoleTool {
			sent.Results = []probe.Result{{ID: m.ToolID, Text: m.Content}}
		}
		request = append(request, sent)
	}

	a := s.c.Respond(request)
	if a.Err != nil {
		return nil, a.Err
	}
	reason := "stop"
	switch {
	case a.Cut:
		reason = "length"
	case len(a.Calls) > 0:
		reason = "tool_calls"
	}
	message := model.Message{Role: model.RoleAssistant, Content: a.Text, ToolCalls: callsOf(a.Calls)}
	out := make(chan *model.Response, 1)
	out <- &model.Response{ID: "r", Object: "chat.completion", Choices: []model.Choice{{Message: message, FinishReason: &reason}}, Done: true}
	close(out)
	return out, nil
}
