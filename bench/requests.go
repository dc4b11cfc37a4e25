package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	json "github.com/goccy/go-json"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/content"
)

// instantly is the body of every response. As a transport, it responds at once, without a network.
type instantly string

// RoundTrip reads the request to its end, as a network would, and returns the response.
func (t instantly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(t))),
		ContentLength: int64(len(t)),
	}, nil
}

const (
	anthropicResponse = `{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"Hello."}],` +
		`"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	input = `{"city":"Oslo","days":[1,2,3]}`
)

// report is the text of every message: about as long as typical responses and tool results.
var report = strings.Repeat("It snows in Oslo, and it will go on to do so until the evening, when it clears up from the west.\n", 15)

// request returns a request with n messages, or up to four more. Every second pair of messages has a tool call.
func request(n int) api.Request {
	said := func(role content.Role, blocks ...content.Block) content.Message {
		list, err := content.Of(blocks...)
		if err != nil {
			panic(err)
		}
		return content.Message{Role: role, Blocks: list}
	}

	r := api.Request{System: []string{"Be brief."}, Tools: []content.Tool{{
		Name: "get_weather", Description: "Weather.", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`,
	}}}
	text := content.Text{Text: report}
	for i := 0; len(r.Messages) < n; i++ {
		id := fmt.Sprintf("call_%d", i)
		r.Messages = append(r.Messages,
			said(content.User, text),
			said(content.Assistant, text, content.ToolUse{ID: id, Name: "get_weather", Input: input}),
			said(content.User, content.ToolResult{CallID: id, Content: content.Words(report)}),
			said(content.Assistant, text))
	}
	r.Messages = append(r.Messages, said(content.User, content.Text{Text: "And now?"}))
	return r
}

// anthropicParams is request(n) for the SDK.
func anthropicParams(n int) sdk.MessageNewParams {
	p := sdk.MessageNewParams{Model: "claude-x", MaxTokens: 1000, System: []sdk.TextBlockParam{{Text: "Be brief."}}}
	p.Tools = []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{
		Name: "get_weather", Description: sdk.String("Weather."),
		InputSchema: sdk.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}},
	}}}
	for i := 0; len(p.Messages) < n; i++ {
		id := fmt.Sprintf("call_%d", i)
		p.Messages = append(p.Messages, sdk.NewUserMessage(sdk.NewTextBlock(report)),
			sdk.NewAssistantMessage(sdk.NewTextBlock(report), sdk.NewToolUseBlock(id, json.RawMessage(input), "get_weather")),
			sdk.NewUserMessage(sdk.NewToolResultBlock(id, report, false)), sdk.NewAssistantMessage(sdk.NewTextBlock(report)))
	}
	p.Messages = append(p.Messages, sdk.NewUserMessage(sdk.NewTextBlock("And now?")))
	return p
}

// requests compares a whole request with Messages.New of the SDK. Both use a transport without a network.
func requests(n int, again, cold float64) pair.Case {
	return pair.Case{Name: "request/anthropic/" + short(n), Per: "request", Full: n > 1000, Variants: func() ([]pair.Variant, error) {
		http := &http.Client{Transport: instantly(anthropicResponse)}
		local := []option.RequestOption{
			option.WithoutEnvironmentDefaults(), option.WithAPIKey("none"), option.WithBaseURL("http://localhost"), option.WithHTTPClient(http),
		}
		ours := api.NewClient(anthropic.New("claude-x", &anthropic.Options{Options: api.Options{MaxTokens: 1000}, NoStream: true, SDK: local}), nil)
		theirs := sdk.NewClient(append(local, option.WithMaxRetries(0))...)

		sent, params := request(n), anthropicParams(n)
		ctx := context.Background()
		send := func(r api.Request) error {
			_, err := ours.Send(ctx, r)
			return err
		}

		// The first sending remembers the encoded messages. It is done here, because "sent before" measures later ones.
		if err := send(sent); err != nil {
			return nil, err
		}

		return []pair.Variant{
			{Name: "sent before", Run: func(s *pair.Sample) error {
				for range s.N {
					if err := send(sent); err != nil {
						return err
					}
				}
				return nil
			}},
			{Name: "Messages.New", Run: func(s *pair.Sample) error {
				for range s.N {
					if _, err := theirs.Messages.New(ctx, params, option.WithRequestTimeout(time.Minute)); err != nil {
						return err
					}
				}
				return nil
			}},
			{Name: "never sent", Max: max(1, 5000/n), Run: func(s *pair.Sample) error {
				s.Pause()
				fresh := make([]api.Request, s.N)
				for i := range fresh {
					fresh[i] = request(n)
				}
				s.Resume()

				for _, r := range fresh {
					if err := send(r); err != nil {
						return err
					}
				}
				return nil
			}},
		}, nil
	}, Goals: []pair.Goal{
		{Number: 7, Name: "sent before", Kind: pair.Faster, Limit: again},
		{Number: 7, Name: "never sent", Kind: pair.Faster, Ours: "never sent", Limit: cold},
	}}
}
