package openai_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// local lets the SDK talk to a fake of the API, so that the examples need neither key nor network.
func local(server *httptest.Server) []option.RequestOption {
	return []option.RequestOption{option.WithAPIKey("none"), option.WithBaseURL(server.URL + "/v1")}
}

func ExampleNewChat() {
	server := httptest.NewServer(fake.OpenAIChat(fake.OpenAIChatMessage(content.Text{Text: "A graph without cycles."})))
	defer server.Close()

	model := openai.NewChat("gpt-4.1", &openai.Options{Options: api.Options{MaxTokens: 1000}, SDK: local(server)})
	answer, err := api.NewClient(model, nil).Send(context.Background(), api.Request{
		System:   []string{"Answer briefly."},
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("What is a DAG?")}},
	})
	fmt.Println(answer.Blocks.Text(), err)
	// Output: A graph without cycles. <nil>
}

func ExampleNewChat_run() {
	type place struct {
		City string `json:"city"`
	}
	weather := executor.Func("get_weather", "Current weather for one city.",
		func(ctx context.Context, in place) (string, error) { return "snow in " + in.City, nil })

	server := httptest.NewServer(fake.OpenAIChat(
		fake.OpenAIChatMessage(content.ToolUse{ID: "call_1", Name: "get_weather", Input: `{"city":"Oslo"}`}),
		fake.OpenAIChatMessage(content.Text{Text: "It snows in Oslo."}),
	))
	defer server.Close()

	d := dag.New().Tools(weather).User("Weather in Oslo?")
	d, err := executor.Run(context.Background(), openai.NewChat("gpt-4.1", &openai.Options{SDK: local(server)}), d)
	fmt.Println(d.Text(), err)
	// Output: It snows in Oslo. <nil>
}

// A compatible server's thinking goes back to it under the name it came under.
func ExampleNewChat_compatibleServer() {
	server := httptest.NewServer(fake.OpenAIChat(
		fake.OpenAIChatMessage(content.Thinking{Text: "2 and 2 is 4."}, content.Text{Text: "4"}),
	))
	defer server.Close()

	model := openai.NewChat("deepseek-reasoner", &openai.Options{MaxTokensName: "max_tokens", SDK: local(server)})
	question := content.Message{Role: content.User, Blocks: content.Words("2+2?")}
	answer, err := api.NewClient(model, nil).Send(context.Background(), api.Request{Messages: []content.Message{question}})
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _, err := openai.ChatBody(api.Request{Messages: []content.Message{
		question, {Role: content.Assistant, Blocks: answer.Blocks}, {Role: content.User, Blocks: content.Words("And 3+3?")},
	}}, "deepseek-reasoner", &openai.Options{NoStream: true})
	fmt.Println(string(body), err)
	// Output: {"model":"deepseek-reasoner","messages":[{"role":"user","content":"2+2?"},{"role":"assistant","content":"4","reasoning_content":"2 and 2 is 4."},{"role":"user","content":"And 3+3?"}]} <nil>
}

// A server that is named gets requests in the form that it reads, and the notes report what it would have ignored.
func ExampleOptions_server() {
	type city struct {
		Name string `json:"name"`
	}
	body, notes, err := openai.ChatBody(api.Request{
		Tools:    []content.Tool{{Name: "ls", Schema: `{"type":"object"}`}, {Name: "rm", Schema: `{"type":"object"}`}},
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Look around.")}},
		Options:  api.Options{MaxTokens: 500, ToolChoice: api.OneTool("ls")},
	}, "qwen3", &openai.Options{Server: compatible.LMStudio, NoStream: true})
	fmt.Println(string(body))
	fmt.Println(notes, err)

	// DeepSeek knows no schemas: the model is told.
	body, notes, err = openai.ChatBody(api.Request{
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("The capital of France?")}},
		Options:  api.Options{Output: api.Output[city]()},
	}, "deepseek-flash", &openai.Options{Server: compatible.DeepSeek, NoStream: true})
	fmt.Println(strings.Contains(string(body), `"response_format":{"type":"json_object"}`))
	fmt.Println(notes, err)
	// Output:
	// {"model":"qwen3","max_tokens":500,"tool_choice":"required","tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object","properties":{}}}}],"messages":[{"role":"user","content":"Look around."}]}
	// [option: the tool "ls" alone is declared: LM Studio does not accept its name as ToolChoice] <nil>
	// true
	// [option: the schema of Output is a system prompt: DeepSeek does not apply it] <nil>
}

func ExampleChatBody() {
	called, _ := content.Of(content.ToolUse{Name: "get weather", Input: `{"city":"Oslo"}`})
	body, repairs, err := openai.ChatBody(api.Request{Messages: []content.Message{
		{Role: content.User, Blocks: content.Words("Weather in Oslo?")},
		{Role: content.Assistant, Blocks: called},
	}}, "gpt-4.1", &openai.Options{NoStream: true})
	fmt.Println(string(body))
	for _, r := range repairs {
		fmt.Println(r)
	}
	fmt.Println(err)
	// Output:
	// {"model":"gpt-4.1","messages":[{"role":"user","content":"Weather in Oslo?"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}]},{"role":"tool","tool_call_id":"call_1","content":"Error: No result: the tool call was not completed."}]}
	// message 1: block: the tool's name "get weather" became "get_weather"
	// message 1: id: the call ID "" became "call_1"
	// message 2: answered: call 0 (get_weather) had no result
	// <nil>
}
