package main

import (
	"context"
	"encoding/json"
	"iter"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/bench/internal/probe"
)

type output struct {
	Output string `json:"output"`
}

// converse leaves the history to the library's session.
func converse(ctx context.Context, c *probe.Conversation, prompt string) (string, error) {
	look, err := functiontool.New(functiontool.Config{Name: "look", Description: "Tells the weather."},
		func(ctx agent.Context, in probe.City) (output, error) {
			text, err := c.Look(ctx, in)
			return output{text}, err
		})
	if err != nil {
		return "", err
	}
	tools := []tool.Tool{look}
	if c.Recursive {
		grow, err := functiontool.New(functiontool.Config{Name: "grow", Description: "Grows a tree."},
			func(ctx agent.Context, in probe.Tree) (output, error) {
				text, err := c.Grow(ctx, in)
				return output{text}, err
			})
		if err != nil {
			return "", err
		}
		tools = append(tools, grow)
	}

	a, err := llmagent.New(llmagent.Config{Name: "probed", Model: scripted{c}, Tools: tools})
	if err != nil {
		return "", err
	}
	sessions, ok := c.State.(session.Service)
	if !ok {
		sessions = session.InMemoryService()
		c.State = sessions
		if err := begin(ctx, sessions, c.History); err != nil {
			return "", err
		}
	}
	r, err := runner.New(runner.Config{AppName: "probed", Agent: a, SessionService: sessions, AutoCreateSession: true})
	if err != nil {
		return "", err
	}

	var text string
	for event, err := range r.Run(ctx, "user", "session", genai.NewContentFromText(prompt, "user"), agent.RunConfig{}) {
		if err != nil {
			return "", err
		}
		if event.Content != nil {
			for _, p := range event.Content.Parts {
				text = p.Text
			}
		}
	}
	return text, nil
}

// begin makes the session with a history.
func begin(ctx context.Context, sessions session.Service, history []probe.Message) error {
	made, err := sessions.Create(ctx, &session.CreateRequest{AppName: "probed", UserID: "user", SessionID: "session"})
	if err != nil {
		return err
	}
	for _, m := range history {
		event := session.NewEvent(ctx, "earlier")
		event.Author, event.Content = "user", genai.NewContentFromText(m.Text, "user")
		if m.Role == "assistant" {
			event.Author, event.Content = "probed", &genai.Content{Role: "model", Parts: parts("", m.Calls)}
		}
		if err := sessions.AppendEvent(ctx, made.Session, event); err != nil {
			return err
		}
	}
	return nil
}

// scripted is the model of a conversation.
type scripted struct{ c *probe.Conversation }

func (scripted) Name() string { return "scripted" }

func (s scripted) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		var request []probe.Message
		for _, m := range r.Contents {
			sent := probe.Message{Role: m.Role}
			for _, p := range m.Parts {
				switch {
				case p.FunctionCall != nil:
					args, _ := json.Marshal(p.FunctionCall.Args) // what cannot be encoded is no JSON
					sent.Calls = append(sent.Calls, probe.Call{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Args: string(args)})
				case p.FunctionResponse != nil:
					text, _ := p.FunctionResponse.Response["output"].(string)
					sent.Results = append(sent.Results, probe.Result{ID: p.FunctionResponse.ID, Text: text})
				default:
					sent.Text += p.Text
				}
			}
			request = append(request, sent)
		}

		a := s.c.Respond(request)
		if a.Err != nil {
			yield(nil, a.Err)
			return
		}
		response := &model.LLMResponse{Content: &genai.Content{Role: "model", Parts: parts(a.Text, a.Calls)}, TurnComplete: true, FinishReason: genai.FinishReasonStop}
		if a.Cut {
			response.FinishReason = genai.FinishReasonMaxTokens
		}
		yield(response, nil)
	}
}

// parts returns a message. The library wants arguments as a map: those that are no JSON are empty.
func parts(text string, calls []probe.Call) []*genai.Part {
	var list []*genai.Part
	if text != "" {
		list = append(list, &genai.Part{Text: text})
	}
	for _, call := range calls {
		args := map[string]any{}
		_ = json.Unmarshal([]byte(call.Args), &args)
		list = append(list, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID, Name: call.Name, Args: args}})
	}
	return list
}
