package gemini_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// local lets the SDK talk to a fake of the API, so that the examples need neither key nor network.
func local(server *httptest.Server) *genai.ClientConfig {
	return &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPClient: server.Client(), HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
	}
}

func ExampleNew() {
	server := httptest.NewServer(fake.Gemini(fake.GeminiContent(content.Text{Text: "A graph without cycles."})))
	defer server.Close()

	model := gemini.New("gemini-2.5-flash", &gemini.Options{Options: api.Options{MaxTokens: 1000}, SDK: local(server)})
	answer, err := api.NewClient(model, nil).Send(context.Background(), api.Request{
		System:   []string{"Answer briefly."},
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("What is a DAG?")}},
	})
	fmt.Println(answer.Blocks.Text(), answer.Stop, err)
	// Output: A graph without cycles. end_turn <nil>
}

func ExampleNew_run() {
	type place struct {
		City string `json:"city"`
	}
	weather := executor.Func("get_weather", "Current weather for one city.",
		func(ctx context.Context, in place) (string, error) { return "snow in " + in.City, nil })

	// The call has no id, as the API's calls often have none, and a signature, which goes back with it.
	signature := content.Extra{API: gemini.API, JSON: `{"thoughtSignature":"c2lnbmVk"}`}
	model := fake.Gemini(
		fake.GeminiContent(content.ToolUse{Name: "get_weather", Input: `{"city":"Oslo"}`, Extra: signature}),
		fake.GeminiContent(content.Text{Text: "It snows in Oslo."}),
	)
	server := httptest.NewServer(model)
	defer server.Close()

	d := dag.New().Tools(weather).User("Weather in Oslo?")
	d, err := executor.Run(context.Background(), gemini.New("gemini-3-pro-preview", &gemini.Options{SDK: local(server)}), d)
	fmt.Println(d.Text(), err)

	_, contents, _ := strings.Cut(string(model.Bodies()[1]), `"contents":`)
	fmt.Println(strings.ReplaceAll(contents, `,{"role"`, ",\n"+` {"role"`))
	// Output:
	// It snows in Oslo. <nil>
	// [{"role":"user","parts":[{"text":"Weather in Oslo?"}]},
	//  {"role":"model","parts":[{"functionCall":{"name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":"c2lnbmVk"}]},
	//  {"role":"user","parts":[{"functionResponse":{"name":"get_weather","response":{"output":"snow in Oslo"}}}]}]}
}

func ExampleBody() {
	search := content.Tool{Name: "google_search", Extra: content.Extra{API: gemini.API, JSON: `{"googleSearch":{}}`}}
	body, notes, err := gemini.Body(api.Request{
		Tools:    []content.Tool{search},
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("What is new?")}},
		Options:  api.Options{Thinking: api.ThinkLow, Cache: api.CacheLong},
	}, "gemini-3-pro-preview", nil)
	fmt.Println(string(body))
	fmt.Println(notes, err)
	// Output:
	// {"tools":[{"googleSearch":{}}],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}},"contents":[{"role":"user","parts":[{"text":"What is new?"}]}]}
	// [option: Cache "long" is left out: the API caches by itself] <nil>
}

// On Vertex AI, the SDK finds the credentials of the program, or takes those that it is given.
func ExampleOptions_vertexAI() {
	model := gemini.New("gemini-2.5-pro", &gemini.Options{
		SDK: &genai.ClientConfig{Backend: genai.BackendVertexAI, Project: "my-project", Location: "europe-west1"},
	})
	fmt.Println(api.ModelOf(model))
	// Output: gemini-2.5-pro
}
