// Command providers asks four APIs for the weather, one after the other, in one conversation: each model continues the
// text and calls of the one before. Each is a strict fake of its API: nothing leaves this machine. With real models,
// leave out the base URLs.
//
//	go run ./examples/providers
package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"

	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	openaioption "github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// city is the arguments of the tool. Each model makes one such call.
type city struct {
	City string `json:"city"`
}

func run(ctx context.Context, out io.Writer) error {
	weather := executor.Func("get_weather", "The weather of a city.", func(_ context.Context, in city) (string, error) {
		return map[string]string{"Tokyo": "22°C", "Paris": "18°C", "Cairo": "31°C", "Oslo": "9°C"}[in.City], nil
	})

	d := dag.New().System("You know the weather.").Tools(weather)
	for _, each := range models() {
		server := httptest.NewServer(each.api)
		defer server.Close()
		var err error
		if d, err = executor.Run(ctx, each.at(server.URL), d.User("How is it in "+each.city+"?")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, d)
	return err
}

// model is one of the four: the city it is asked about, a fake of its API, and the provider for an address.
type model struct {
	city string
	api  *fake.API
	at   func(url string) api.Provider
}

func models() []model {
	// A fake sends a call as it is, so each needs an ID. A script would make one.
	call := func(in string) content.ToolUse {
		use := apitest.Use("get_weather", city{in})
		use.ID = "call_" + in
		return use
	}
	say := func(text string) content.Block { return content.Text{Text: text} }

	return []model{
		{"Tokyo", fake.Anthropic(fake.AnthropicMessage(call("Tokyo")), fake.AnthropicMessage(say("22°C in Tokyo."))),
			func(url string) api.Provider {
				return anthropic.New("claude-sonnet-4-5", &anthropic.Options{
					SDK: []anthropicoption.RequestOption{anthropicoption.WithAPIKey("key"), anthropicoption.WithBaseURL(url)},
				})
			}},
		{"Paris", fake.OpenAIResponses(fake.OpenAIResponse(call("Paris")), fake.OpenAIResponse(say("18°C in Paris."))),
			func(url string) api.Provider {
				return openai.NewResponses("gpt-5", &openai.Options{
					SDK: []openaioption.RequestOption{openaioption.WithAPIKey("key"), openaioption.WithBaseURL(url + "/v1")},
				})
			}},
		{"Cairo", fake.OpenAIChat(fake.OpenAIChatMessage(call("Cairo")), fake.OpenAIChatMessage(say("31°C in Cairo."))),
			func(url string) api.Provider {
				return openai.NewChat("gpt-4.1", &openai.Options{
					SDK: []openaioption.RequestOption{openaioption.WithAPIKey("key"), openaioption.WithBaseURL(url + "/v1")},
				})
			}},
		{"Oslo", fake.Gemini(fake.GeminiContent(call("Oslo")), fake.GeminiContent(say("9°C in Oslo."))),
			func(url string) api.Provider {
				return gemini.New("gemini-2.5-flash", &gemini.Options{
					SDK: &genai.ClientConfig{APIKey: "key", HTTPOptions: genai.HTTPOptions{BaseURL: url}},
				})
			}},
	}
}
