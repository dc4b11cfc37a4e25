package providers

import (
	"context"
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
