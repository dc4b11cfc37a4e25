package main

import (
	"context"
	"encoding/json"
	"strings"

	"charm.land/fantasy"

	"github.com/plait-dev/plait/bench/internal/probe"
)

// converse keeps the messages: those that came before, and those of the steps of a result.
func converse(ctx context.Context, c *probe.Conversation, prompt string) (string, error) {
	messages, ok := c.State.([]fantasy.Message)
	if !ok {
		for _, m := range c.History {
			sent := fantasy.NewUserMessage(m.Text)
			if m.Role == "assistant" {
				sent = fantasy.Message{Role: fantasy.MessageRoleAssistant}
				for _, call := range m.Calls {
					sent.Content = append(sent.Content, fantasy.ToolCallPart{ToolCallID: call.ID, ToolName: call.Name, Input: call.Args})
				}
			}
			messages = append(messages, sent)
		}
	}

	tools := []fantasy.AgentTool{fantasy.NewParallelAgentTool("look", "Tells the weather.", func(ctx context.Context, in probe.City, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
		text, err := c.Look(ctx, in)
		return fantasy.NewTextResponse(text), err
	})}
	if c.Recursive {
		tools = append(tools, fantasy.NewAgentTool("grow", "Grows a tree.", func(ctx context.Context, in probe.Tree, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
			text, err := c.Grow(ctx, in)
			return fantasy.NewTextResponse(text), err
		}))
	}
	result, err := fantasy.NewAgent(scripted{c}, fantasy.WithTools(tools...)).Generate(ctx, fantasy.AgentCall{Prompt: prompt, Messages: messages})
	messages = append(messages, fantasy.NewUserMessage(prompt))
	if result == nil {
		c.State = messages
		return "", err
	}
	for _, step := range result.Steps {
		messages = append(messages, step.Messages...)
	}
	c.State = messages
	return result.Response.Content.Text(), err
}

// scripted is the model of a conversation.
type scripted struct{ c *probe.Conversation }

func (s scripted) Generate(_ context.Context, r fantasy.Call) (*fantasy.Response, error) {
	var request []probe.Message
	for _, m := range r.Prompt {
		sent := probe.Message{Role: string(m.Role)}
		for _, part := range m.Content {
			switch p := part.(type) {
			case fantasy.TextPart:
				sent.Text += p.Text
			case fantasy.ToolCallPart:
				sent.Calls = append(sent.Calls, probe.Call{ID: p.ToolCallID, Name: p.ToolName, Args: p.Input})
			case fantasy.ToolResultPart:
				sent.Results = append(sent.Results, probe.Result{ID: p.ToolCallID, Text: textOf(p.Output)})
			}
		}
		request = append(request, sent)
	}

	a := s.c.Respond(request)
	if a.Err != nil {
		return nil, a.Err
	}
	response := &fantasy.Response{FinishReason: fantasy.FinishReasonStop}
	if a.Text != "" {
		response.Content = append(response.Content, fantasy.TextContent{Text: a.Text})
	}
	for _, call := range a.Calls {
		response.FinishReason = fantasy.FinishReasonToolCalls
		response.Content = append(response.Content, fantasy.ToolCallContent{ToolCallID: call.ID, ToolName: call.Name, Input: call.Args})
	}
	if a.Cut {
		response.FinishReason = fantasy.FinishReasonLength
	}
	return response, nil
}

func textOf(output fantasy.ToolResultOutputContent) string {
	switch o := output.(type) {
	case fantasy.ToolResultOutputContentText:
		return o.Text
	case fantasy.ToolResultOutputContentError:
		return o.Error.Error()
	}
	return ""
}

func (scripted) Stream(context.Context, fantasy.Call) (fantasy.StreamResponse, error) {
	return nil, errUnused
}

func (scripted) GenerateObject(context.Context, fantasy.ObjectCall) (*fantasy.ObjectResponse, error) {
	return nil, errUnused
}

func (scripted) StreamObject(context.Context, fantasy.ObjectCall) (fantasy.ObjectStreamResponse, error) {
	return nil, errUnused
}

func (scripted) Provider() string { return "fake" }
func (scripted) Model() string    { return "fake" }

// reload loads a saved message with a part of an unknown type.
func reload() (string, error) {
	saved, err := json.Marshal([]fantasy.Message{fantasy.NewUserMessage("Weather?")})
	if err != nil {
		return "", err
	}
	changed := strings.Replace(string(saved), `"content":[`, `"content":[{"type":"hologram","data":{`+probe.Unknown+`}},`, 1)
	var list []fantasy.Message
	if err := json.Unmarshal([]byte(changed), &list); err != nil {
		return "", err
	}
	again, err := json.Marshal(list)
	return string(again), err
}
