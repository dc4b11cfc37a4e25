// Command smallrequests compares what is sent to four APIs, with and without two ways to send less:
//
//   - Three hundred pages are read. Old results are left out of the requests (package executor/contextedit).
//   - An agent has five hundred tools. It finds the ones it needs (package executor/toolsearch).
//
// Each model is a strict fake of its API, which checks every request: nothing leaves this machine.
//
//	go run ./examples/smallrequests
package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"

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
	"github.com/plait-dev/plait/executor/contextedit"
	"github.com/plait-dev/plait/executor/toolsearch"
)

func main() {
	if err := run(context.Background(), os.Stdout, 300); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type page struct {
	Number int `json:"number"`
}

func run(ctx context.Context, out io.Writer, pages int) error {
	if err := readBook(ctx, out, pages); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return useTools(ctx, out)
}

// readBook compares requests with all results and without the old ones.
func readBook(ctx context.Context, out io.Writer, pages int) error {
	load := executor.Func("load", "Loads a page of the book.", func(_ context.Context, in page) (string, error) {
		return fmt.Sprintf("Page %d. %s", in.Number, strings.Repeat("Once upon a time. ", 100)), nil
	})
	begin := dag.New().System("You read.").Tools(load, contextedit.ReadResult()).User("Read the whole book.")
	edit := contextedit.Results{Budget: 20_000, Keep: 5_000}
	all := executor.Agent{Limits: executor.Limits{Turns: pages + 1}}
	edited := all
	edited.Hooks = []executor.Hook{edit.Hook()}

	return compare(out, "results", func(agent executor.Agent) error {
		_, err := agent.Run(ctx, begin)
		return err
	}, func() (list []content.ToolUse) {
		for i := range pages {
			list = append(list, apitest.Use("load", page{i + 1}))
		}
		return list
	}, way{"all", all}, way{"edited", edited})
}

// useTools compares requests with all tools and with those that were found.
func useTools(ctx context.Context, out io.Writer) error {
	type filter struct {
		Customer string `json:"customer" jsonschema:"the customer's number or name"`
		From     string `json:"from" jsonschema:"the first day, as 2026-01-31"`
		Limit    int    `json:"limit" jsonschema:"how many to return at most"`
	}
	var tools []executor.Tool
	for _, verb := range []string{"list", "get", "create", "update", "delete", "export", "import", "archive", "share", "count"} {
		for i := range 50 {
			tools = append(tools, executor.Func(fmt.Sprintf("%s_form_%d", verb, i),
				fmt.Sprintf("Can %s the documents of form %d. The result is a table with one line for each document.", verb, i),
				func(context.Context, filter) (string, error) { return "one document", nil }))
		}
	}
	all := executor.Agent{}
	for _, t := range tools {
		all.Tools = append(all.Tools, t)
	}

	return compare(out, "tools", func(agent executor.Agent) error {
		_, err := agent.Run(ctx, dag.New().User("What came in on form 31?"))
		return err
	}, func() (list []content.ToolUse) {
		list = append(list, apitest.Use("find_tools", map[string]string{"words": "list documents of form 31"}))
		for range 10 {
			list = append(list, apitest.Use("list_form_31", filter{Limit: 1}))
		}
		return list
	}, way{"all", all}, way{"found", toolsearch.Add(executor.Agent{}, tools...)})
}

// way is an agent and its name in the table.
type way struct {
	name  string
	agent executor.Agent
}

// compare lets each model make the calls, one in a turn, and prints a table.
func compare(
	out io.Writer, title string, run func(executor.Agent) error, calls func() []content.ToolUse, ways ...way,
) error {
	fmt.Fprintf(out, "%-17s %-9s %12s %8s %8s\n", "", title, "tokens sent", "cached", "price")
	for _, m := range models() {
		for _, w := range ways {
			model := m.api(answers(m, calls())...)
			server := httptest.NewServer(model)
			w.agent.Provider = m.at(server.URL)
			err := run(w.agent)
			server.Close()
			if err != nil {
				return err
			}

			sent, cached := count(model.Bodies())
			fmt.Fprintf(out, "%-17s %-9s %12d %7d%% %8.2f\n", m.name, w.name, sent, 100*cached/sent, price(sent, cached))
		}
	}
	return nil
}

// answers returns the replies of a model that makes the calls, one in a turn.
func answers(m model, calls []content.ToolUse) (list []fake.Reply) {
	for i, call := range calls {
		call.ID = fmt.Sprintf("call_%d", i+1) // a fake sends a call as it is, so each needs an ID
		list = append(list, m.reply(append(m.thinks(i), call)...))
	}
	return append(list, m.reply(content.Text{Text: "The end."}))
}

// count returns the tokens of all requests, a quarter of their bytes, and how many of them were the beginning of the
// request before: a cache of prompts has these.
func count(bodies [][]byte) (sent, cached int) {
	var before []byte
	for _, body := range bodies {
		same := 0
		for same < min(len(before), len(body)) && before[same] == body[same] {
			same++
		}
		sent, cached, before = sent+len(body)/4, cached+same/4, body
	}
	return sent, cached
}

// price is in dollars, at 3 for a million tokens and 0.30 for cached ones.
func price(sent, cached int) float64 { return (3*float64(sent-cached) + 0.3*float64(cached)) / 1e6 }

// model is an API, its fake, and the provider for an address.
type model struct {
	name   string
	api    func(...fake.Reply) *fake.API
	reply  func(...content.Block) fake.Reply
	thinks func(turn int) []content.Block
	at     func(url string) api.Provider
}

func models() []model {
	nothing := func(int) []content.Block { return nil }
	return []model{
		{"anthropic", fake.Anthropic, fake.AnthropicMessage, func(turn int) []content.Block {
			// Claude's thinking is bound to what stood before it.
			return []content.Block{content.Thinking{Text: "Go on.", Signature: fmt.Sprint("signature ", turn)}}
		}, func(url string) api.Provider {
			return anthropic.New("claude-sonnet-4-5", &anthropic.Options{
				Options: api.Options{Cache: api.CacheOff}, // its markers move, and count would see a change
				SDK:     []anthropicoption.RequestOption{anthropicoption.WithAPIKey("key"), anthropicoption.WithBaseURL(url)},
			})
		}},
		{"openai-responses", fake.OpenAIResponses, fake.OpenAIResponse, nothing, func(url string) api.Provider {
			return openai.NewResponses("gpt-5", &openai.Options{
				SDK: []openaioption.RequestOption{openaioption.WithAPIKey("key"), openaioption.WithBaseURL(url + "/v1")},
			})
		}},
		{"openai-chat", fake.OpenAIChat, fake.OpenAIChatMessage, nothing, func(url string) api.Provider {
			return openai.NewChat("gpt-4.1", &openai.Options{
				SDK: []openaioption.RequestOption{openaioption.WithAPIKey("key"), openaioption.WithBaseURL(url + "/v1")},
			})
		}},
		{"gemini", fake.Gemini, fake.GeminiContent, nothing, func(url string) api.Provider {
			return gemini.New("gemini-2.5-flash", &gemini.Options{
				SDK: &genai.ClientConfig{APIKey: "key", HTTPOptions: genai.HTTPOptions{BaseURL: url}},
			})
		}},
	}
}
