package openai_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
)

func ExampleNewResponses() {
	server := httptest.NewServer(fake.OpenAIResponses(fake.OpenAIResponse(content.Text{Text: "Hello there."}))) // in place of the API
	defer server.Close()

	model := openai.NewResponses("gpt-5", &openai.Options{
		SDK: []option.RequestOption{option.WithAPIKey("key"), option.WithBaseURL(server.URL + "/v1")},
	})
	answer, err := api.NewClient(model, nil).Send(context.Background(), api.Request{
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
	})
	fmt.Println(answer.Blocks.Text(), answer.Stop, err)
	// Output: Hello there. end_turn <nil>
}

func ExampleResponsesBody() {
	req := api.Request{
		System:   []string{"Answer briefly."},
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
		Options:  api.Options{MaxTokens: 100, Thinking: api.ThinkLow},
	}
	body, notes, err := openai.ResponsesBody(req, "gpt-5", nil)
	fmt.Println(string(body))
	fmt.Println(notes, err)
	// Output:
	// {"model":"gpt-5","instructions":"Answer briefly.","store":false,"include":["reasoning.encrypted_content"],"max_output_tokens":100,"reasoning":{"effort":"low","summary":"auto"},"stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello"}]}]}
	// [] <nil>
}
