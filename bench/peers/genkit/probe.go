package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/plait-dev/plait/bench/internal/probe"
)

// converse keeps the messages: those that came before, and those of a response.
func converse(ctx context.Context, c *probe.Conversation, prompt string) (string, error) {
	messages, ok := c.State.([]*ai.Message)
	if !ok {
		for _, m := range c.History {
			sent := ai.NewUserTextMessage(m.Text)
			if m.Role == "assistant" {
				sent = ai.NewModelMessage(parts("", m.Calls)...)
			}
			messages = append(messages, sent)
		}
	}
	messages = append(messages, ai.NewUserTextMessage(prompt))
	c.State = messages

	g := genkit.Init(ctx)
	model := genkit.DefineModel(g, "bench/scripted", &ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true, Tools: true, SystemRole: true}},
		func(_ context.Context, r *ai.ModelRequest, _ func(context.Context, *ai.ModelResponseChunk) error) (*ai.ModelResponse, error) {
			a := c.Respond(messagesOf(r))
			if a.Err != nil {
				return nil, a.Err
			}
			reason := ai.FinishReasonStop
			if a.Cut {
				reason = ai.FinishReasonLength
			}
			return &ai.ModelResponse{Request: r, FinishReason: reason, Message: ai.NewModelMessage(parts(a.Text, a.Calls)...)}, nil
		})

	tools := []ai.ToolRef{genkit.DefineTool(g, "look", "Tells the weather.", func(ctx *ai.ToolContext, in probe.City) (string, error) { return c.Look(ctx, in) })}
	if c.Recursive {
		tools = append(tools, genkit.DefineTool(g, "grow", "Grows a tree.", func(ctx *ai.ToolContext, in probe.Tree) (string, error) { return c.Grow(ctx, in) }))
	}
	response, err := genkit.Generate(ctx, g, ai.WithModel(model), ai.WithMessages(messages...), ai.WithTools(tools...))
	if err != nil {
		return "", err
	}
	c.State = response.History()
	return response.Text(), nil
}

func messagesOf(r *ai.ModelRequest) []probe.Message {
	var request []probe.Message
	for _, m := range r.Messages {
		sent := probe.Message{Role: string(m.Role)}
		for _, p := range m.Content {
			switch {
			case p.ToolRequest != nil:
				args, _ := json.Marshal(p.ToolRequest.Input) // what cannot be encoded is no JSON
				sent.Calls = append(sent.Calls, probe.Call{ID: p.ToolRequest.Ref, Name: p.ToolRequest.Name, Args: string(args)})
			case p.ToolResponse != nil:
				text, ok := p.ToolResponse.Output.(string)
				if !ok {
					out, _ := json.Marshal(p.ToolResponse.Output)
					text = string(out)
				}
				sent.Results = append(sent.Results, probe.Result{ID: p.ToolResponse.Ref, Text: text})
			default:
				sent.Text += p.Text
			}
		}
		request = append(request, sent)
	}
	return request
}

// parts returns a message. The library wants arguments as values: those that are no JSON are a string.
func parts(text string, calls []probe.Call) []*ai.Part {
	var list []*ai.Part
	if text != "" {
		list = append(list, ai.NewTextPart(text))
	}
	for _, call := range calls {
		var input any
		if err := json.Unmarshal([]byte(call.Args), &input); err != nil {
			input = call.Args
		}
		list = append(list, ai.NewToolRequestPart(&ai.ToolRequest{Name: call.Name, Ref: call.ID, Input: input}))
	}
	return list
}

// reload loads a saved message with a part of an unknown type.
func reload() (string, error) {
	saved, err := json.Marshal([]*ai.Message{ai.NewUserTextMessage("Weather?")})
	if err != nil {
		return "", err
	}
	changed := strings.Replace(string(saved), `"content":[`, `"content":[{`+probe.Unknown+`},`, 1)
	var list []*ai.Message
	if err := json.Unmarshal([]byte(changed), &list); err != nil {
		return "", err
	}
	again, err := json.Marshal(list)
	return string(again), err
}
