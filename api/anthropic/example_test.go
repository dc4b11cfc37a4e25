package anthropic_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// local lets the SDK talk to a fake of the API, so that the examples need neither key nor network.
func local(server *httptest.Server) []option.RequestOption {
	return []option.RequestOption{option.WithoutEnvironmentDefaults(), option.WithAPIKey("none"), option.WithBaseURL(server.URL)}
}

func ExampleNew() {
	server := httptest.NewServer(fake.Anthropic(fake.AnthropicMessage(content.Text{Text: "A graph without cycles."})))
	defer server.Close()

	model := anthropic.New("claude-sonnet-4-5", &anthropic.Options{Options: api.Options{MaxTokens: 1000}, SDK: local(server)})
	answer, err := api.NewClient(model, nil).Send(context.Background(), api.Request{
		System:   []string{"Answer briefly."},
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("What is a DAG?")}},
	})
	fmt.Println(answer.Blocks.Text(), err)
	// Output: A graph without cycles. <nil>
}

func ExampleNew_run() {
	type place struct {
		City string `json:"city"`
	}
	weather := executor.Func("get_weather", "Current weather for one city.",
		func(ctx context.Context, in place) (string, error) { return "snow in " + in.City, nil })

	server := httptest.NewServer(fake.Anthropic(
		fake.AnthropicMessage(content.ToolUse{ID: "toolu_1", Name: "get_weather", Input: `{"city":"Oslo"}`}),
		fake.AnthropicMessage(content.Text{Text: "It snows in Oslo."}),
	))
	defer server.Close()

	d := dag.New().Tools(weather).User("Weather in Oslo?")
	d, err := executor.Run(context.Background(), anthropic.New("claude-sonnet-4-5", &anthropic.Options{SDK: local(server)}), d)
	fmt.Println(d.Text(), err)
	// Output: It snows in Oslo. <nil>
}

// The requests of many runs are sent in one batch, at half the price. A second process with the same file finds them.
func ExampleOptions_batches() {
	yes := fake.AnthropicMessage(content.Text{Text: "Yes."})
	claude := fake.Anthropic(yes, yes, yes)
	server := httptest.NewServer(claude)
	defer server.Close()
	folder, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(folder)

	for range 2 {
		nightly, err := batch.Open(filepath.Join(folder, "nightly.batch"), &batch.Options{
			Requests: 3, Poll: time.Millisecond, // a real batch takes minutes: leave them out
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		prices := api.Prices{"claude-fake": {Input: 3, Output: 15}}
		agent := executor.Agent{
			Provider: anthropic.New("claude-sonnet-4-5", &anthropic.Options{Batches: nightly, SDK: local(server)}),
			Prices:   prices.Times(0.5),
		}
		questions := slices.Values([]string{"Is 2 even?", "Is 4 even?", "Is 6 even?"})
		for d, err := range executor.Each(context.Background(), 1000, questions, func(ctx context.Context, q string) (dag.DAG, error) {
			return agent.Run(ctx, dag.New().User(q))
		}) {
			run, _ := d.LastRun()
			fmt.Println(d.Text(), fmt.Sprintf("$%.6f", run.Stop.Cost), err)
		}
		fmt.Println(claude.Batches(), "batch", len(claude.Bodies()), "requests", nightly.Close())
	}
	// Output:
	// Yes. $0.000053 <nil>
	// Yes. $0.000053 <nil>
	// Yes. $0.000053 <nil>
	// 1 batch 3 requests <nil>
	// Yes. $0.000053 <nil>
	// Yes. $0.000053 <nil>
	// Yes. $0.000053 <nil>
	// 1 batch 3 requests <nil>
}

func ExampleBody() {
	called, _ := content.Of(content.ToolUse{Name: "get weather", Input: `{"city":"Oslo"}`})
	body, repairs, err := anthropic.Body(api.Request{Messages: []content.Message{
		{Role: content.User, Blocks: content.Words("Weather in Oslo?")},
		{Role: content.Assistant, Blocks: called},
	}}, "claude-sonnet-4-5", &anthropic.Options{Options: api.Options{Cache: api.CacheOff, MaxTokens: 100}})
	fmt.Println(string(body))
	for _, r := range repairs {
		fmt.Println(r)
	}
	fmt.Println(err)
	// Output:
	// {"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Weather in Oslo?"}]},{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"get_weather","input":{"city":"Oslo"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"No result: the tool call was not completed."}],"is_error":true}]}]}
	// message 1: block: the tool's name "get weather" became "get_weather"
	// message 1: id: the call ID "" became "call_1"
	// message 2: answered: call 0 (get_weather) had no result
	// <nil>
}
