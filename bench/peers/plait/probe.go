package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/bench/internal/probe"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func converse(ctx context.Context, c *probe.Conversation, prompt string) (string, error) {
	d, ok := c.State.(dag.DAG)
	if !ok {
		d = historyOf(c.History)
	}

	tools := []dag.Tool{executor.Func("look", "Tells the weather.", c.Look)}
	if c.Recursive {
		// Func refuses a Go type that contains itself. A schema may do it.
		tools = append(tools, executor.NewTool(content.Tool{Name: "grow", Description: "Grows a tree.", Schema: treeSchema},
			func(ctx context.Context, call executor.Call) (executor.Result, error) {
				text, err := c.Grow(ctx, probe.Tree{})
				return executor.Result{Content: content.Words(text)}, err
			}))
	}
	provider := anthropic.New("claude-x", &anthropic.Options{SDK: []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithAPIKey("none"), option.WithBaseURL("http://localhost"),
		option.WithHTTPClient(&http.Client{Transport: scripted{c}}),
	}})

	// The conversation has everything up to an error.
	d, err := executor.Agent{Provider: provider, Tools: tools}.Run(ctx, d.User(prompt))
	c.State = d
	return d.Text(), err
}

const treeSchema = `{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}}},"required":["children"]}`

func historyOf(messages []probe.Message) dag.DAG {
	d := dag.New()
	for _, m := range messages {
		var blocks []content.Block
		for _, call := range m.Calls {
			blocks = append(blocks, content.ToolUse{ID: call.ID, Name: call.Name, Input: content.JSON(call.Args)})
		}
		if m.Role == "user" {
			d = d.User(m.Text, blocks...)
		} else {
			d = d.Assistant(m.Text, blocks...)
		}
	}
	return d
}

// scripted is a transport with the model of a conversation behind it, in the form of the Messages API. What it gets has
// passed the whole provider.
type scripted struct{ c *probe.Conversation }

// RoundTrip answers one request with a stream of events.
func (s scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct {
		Messages []struct {
			Role    string
			Content []struct {
				Text, ID, Name string
				Input          json.RawMessage
				ToolUseID      string          `json:"tool_use_id"`
				Content        json.RawMessage // of a result
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}

	var request []probe.Message
	for _, m := range body.Messages {
		sent := probe.Message{Role: m.Role}
		for _, b := range m.Content {
			switch {
			case b.ToolUseID != "" || b.Content != nil:
				sent.Results = append(sent.Results, probe.Result{ID: b.ToolUseID, Text: string(b.Content)})
			case b.Input != nil:
				sent.Calls = append(sent.Calls, probe.Call{ID: b.ID, Name: b.Name, Args: string(b.Input)})
			default:
				sent.Text += b.Text
			}
		}
		request = append(request, sent)
	}

	a := s.c.Respond(request)
	status, kind, answer := http.StatusOK, "text/event-stream", events(a)
	if a.Err != nil {
		// An error of this kind is not retried.
		status, kind = http.StatusBadRequest, "application/json"
		answer = fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, a.Err.Error())
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(answer)),
	}, nil
}

// events returns the events of a response.
func events(a probe.Answer) string {
	var out strings.Builder
	event := func(kind, rest string) { fmt.Fprintf(&out, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest) }
	event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[],`+
		`"usage":{"input_tokens":1,"output_tokens":1}}`)
	stop := "end_turn"
	block := func(i int, start, delta string) {
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, i, start))
		event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, i, delta))
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
	}

	if a.Text != "" {
		block(0, `{"type":"text","text":""}`, fmt.Sprintf(`{"type":"text_delta","text":%q}`, a.Text))
	}
	for i, call := range a.Calls {
		stop = "tool_use"
		block(i, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, call.ID, call.Name),
			fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, call.Args))
	}
	if a.Cut {
		stop = "max_tokens"
	}
	event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q},"usage":{"output_tokens":1}`, stop))
	event("message_stop", "")
	return out.String()
}

// reload loads a saved conversation with a block of an unknown type.
func reload() (string, error) {
	var saved strings.Builder
	if err := dag.New().User("Weather?").Write(&saved); err != nil {
		return "", err
	}
	at := strings.Index(saved.String(), `[{"type":"text"`)
	if at < 0 {
		return "", fmt.Errorf("no blocks in %s", &saved)
	}
	d, err := dag.Read(strings.NewReader(saved.String()[:at+1] + `{"type":"hologram",` + probe.Unknown + `},` + saved.String()[at+1:]))
	if err != nil {
		return "", err
	}
	var again strings.Builder
	err = d.Write(&again)
	return again.String(), err
}
