package fake_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

func ExampleCheckAnthropic() {
	err := fake.CheckAnthropic([]byte(`{"model":"claude-test","max_tokens":100,"messages":[
		{"role":"user","content":"Weather in Tokyo?"},
		{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Tokyo"}}]},
		{"role":"user","content":"Never mind."}]}`))
	fmt.Println(err)
	// Output: anthropic: invalid request (400 invalid_request_error): messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.
}

func ExampleCheckOpenAIChat() {
	err := fake.CheckOpenAIChat([]byte(`{"model":"gpt-test","messages":[
		{"role":"user","content":"Weather in Tokyo?"},
		{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]},
		{"role":"user","content":"Never mind."}]}`))
	fmt.Println(err)
	// Output: openai-chat: invalid request (400 invalid_request_error): An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1
}

func ExampleCheckOpenAIResponses() {
	err := fake.CheckOpenAIResponses([]byte(`{"model":"gpt-test","store":false,"input":[
		{"role":"user","content":"Weather in Tokyo?"},
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"…"},
		{"role":"user","content":"Never mind."}]}`))
	fmt.Println(err)
	// Output: openai-responses: invalid request (400 invalid_request_error): Item 'rs_1' of type 'reasoning' was provided without its required following item.
}

func ExampleCheckGemini() {
	body := []byte(`{"contents":[
		{"role":"user","parts":[{"text":"Weather in Tokyo?"}]},
		{"role":"model","parts":[{"functionCall":{"name":"get_weather","args":{"city":"Tokyo"}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"get_weather","response":{"output":"22°C"}}}]}]}`)
	fmt.Println(fake.CheckGemini("gemini-2.5-flash", body))
	fmt.Println(fake.CheckGemini("gemini-3-pro", body))
	// Output:
	// <nil>
	// gemini: invalid request (400 INVALID_ARGUMENT): Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:get_weather` , position 2. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.
}

// One shape serves all APIs: a provider under test is given the server's address, and asked.
func ExampleAPI() {
	model := fake.OpenAIChat(
		fake.OpenAIChatMessage(content.Text{Text: "Hello."}),
		fake.OpenAIFailure(429, "requests", "rate_limit_exceeded", "Slow down."),
	)
	server := httptest.NewServer(model)
	defer server.Close()
	for range 2 {
		req, err := http.NewRequestWithContext(context.Background(), "POST", server.URL+"/v1/chat/completions",
			strings.NewReader(`{"model":"gpt-test","messages":[{"role":"user","content":"Hi"}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Authorization", "Bearer none")
		res, err := server.Client().Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.StatusCode, res.Body.Close())
	}
	fmt.Println(len(model.Bodies()), model.Refused())
	// Output:
	// 200 <nil>
	// 429 <nil>
	// 2 []
}

// Runs at the same time send their requests in any order: answer by request.
func ExampleFunc() {
	model := fake.OpenAIChat(fake.Func(func(request []byte) fake.Reply {
		if strings.Contains(string(request), "Tokyo") {
			return fake.OpenAIChatMessage(content.Text{Text: "22°C."})
		}
		return fake.OpenAIChatMessage(content.Text{Text: "Where?"})
	}).Always())
	server := httptest.NewServer(model)
	defer server.Close()
	for _, question := range []string{"Weather?", "Weather in Tokyo?"} {
		req, err := http.NewRequestWithContext(context.Background(), "POST", server.URL+"/v1/chat/completions",
			strings.NewReader(`{"model":"gpt-test","messages":[{"role":"user","content":"`+question+`"}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Authorization", "Bearer none")
		res, err := server.Client().Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		answer, err := io.ReadAll(res.Body)
		fmt.Println(strings.Contains(string(answer), "22°C."), err, res.Body.Close())
	}
	// Output:
	// false <nil> <nil>
	// true <nil> <nil>
}

func ExampleAnthropic() {
	model := fake.Anthropic(fake.AnthropicMessage(content.Text{Text: "Hello."}))
	server := httptest.NewServer(model)
	defer server.Close()
	req, err := http.NewRequestWithContext(context.Background(), "POST", server.URL+"/v1/messages",
		strings.NewReader(`{"model":"claude-test","max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("x-api-key", "none")
	req.Header.Set("anthropic-version", "2023-06-01")
	res, err := server.Client().Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	fmt.Println(string(answer), err)
	fmt.Println(len(model.Bodies()), model.Refused())
	// Output:
	// {"id":"msg_fake","type":"message","role":"assistant","model":"claude-fake","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}} <nil>
	// 1 []
}
