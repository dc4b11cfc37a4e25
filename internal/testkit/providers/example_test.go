package providers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// A conversation that was begun with Claude goes on with GPT, and then with Claude again.
func Example() {
	claudeServer := httptest.NewServer(fake.Anthropic(
		fake.AnthropicMessage(content.Text{Text: "It is 22°C in Tokyo."}), fake.AnthropicMessage(content.Text{Text: "You are welcome."})))
	defer claudeServer.Close()
	gptServer := httptest.NewServer(fake.OpenAIResponses(fake.OpenAIResponse(content.Text{Text: "That is 72°F."})))
	defer gptServer.Close()
	claude, gpt := providers[0].at(claudeServer, api.Options{}, false), providers[2].at(gptServer, api.Options{}, false)

	d := dag.New().User("How warm is it in Tokyo?")
	for _, turn := range []struct {
		model api.Provider
		next  string
	}{{claude, "In Fahrenheit?"}, {gpt, "Thank you."}, {claude, "Bye."}} {
		var err error
		if d, err = executor.Run(context.Background(), turn.model, d); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Text())
		d = d.User(turn.next)
	}
	// Output:
	// It is 22°C in Tokyo.
	// That is 72°F.
	// You are welcome.
}

// Claude searches the web and calls a tool that needs approval. The paused conversation is saved, GPT continues it, and
// then Claude again. GPT reads the search as text; Claude gets it back as it came.
func Example_pausedCall() {
	claudeServer := httptest.NewServer(fake.Anthropic(
		fake.AnthropicMessage(
			content.Thinking{Text: "A flight or a train?", Signature: "sig"},
			content.Opaque{API: "anthropic", JSON: `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"Oslo by train"}}`},
			content.Opaque{API: "anthropic", JSON: `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`},
			content.ToolUse{ID: "toolu_1", Name: "book", Input: `{"seats":2}`},
		),
		fake.AnthropicMessage(content.Text{Text: "You are welcome."})))
	defer claudeServer.Close()
	gptServer := httptest.NewServer(fake.OpenAIResponses(fake.OpenAIResponse(content.Text{Text: "Two seats are booked."})))
	defer gptServer.Close()
	claude, gpt := providers[0].at(claudeServer, api.Options{}, false), providers[2].at(gptServer, api.Options{}, false)

	type trip struct {
		Seats int `json:"seats"`
	}
	book := executor.Func("book", "Books seats.", func(context.Context, trip) (string, error) { return "booked", nil })
	agent := executor.Agent{
		Provider: claude,
		Tools:    []dag.Tool{book},
		Hooks: []executor.Hook{{
			Before: func(context.Context, executor.Call) (executor.Decision, error) {
				return executor.AskApproval("it costs money"), nil
			},
			Observe: func(ctx context.Context, event executor.Event, _ error) context.Context {
				if repaired, ok := event.(executor.Repaired); ok {
					for _, note := range repaired.Repairs {
						fmt.Println(note)
					}
				}
				return ctx
			},
		}},
	}

	d, err := agent.Run(context.Background(), dag.New().User("Book two seats to Oslo."))
	var paused *executor.PausedError
	fmt.Println("paused:", errors.As(err, &paused))
	var file bytes.Buffer
	if err := d.Write(&file); err != nil {
		panic(err)
	}

	// Another process loads the conversation, and another model continues it.
	d, err = dag.Read(&file)
	if err != nil {
		panic(err)
	}
	agent.Provider = gpt
	d, err = agent.Resume(context.Background(), d, executor.Approved(d.Pending()[0]))
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Text())

	agent.Provider = claude
	d, err = agent.Run(context.Background(), d.User("Thank you."))
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Text())
	// Output:
	// paused: true
	// message 1: dropped: thinking that only anthropic can read
	// message 1: block: a block that only anthropic can read became text
	// message 1: dropped: a block that only anthropic can read
	// Two seats are booked.
	// You are welcome.
}
