package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/report"
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

type ticket struct{ ID, Text string }

type class struct {
	Category string `json:"category" enum:"billing,bug,question"`
	Urgent   bool   `json:"urgent"`
}

// nightly classifies tickets in batches. Killed at any moment, it is started again in the same way.
func nightly(ctx context.Context, path string, tickets []ticket, sdk []option.RequestOption, o *batch.Options) (err error) {
	batches, err := batch.Open(path, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, batches.Close()) }()
	if id, set := os.LookupEnv("RESOLVE"); set { // after batch.ErrInDoubt
		if err := batches.Resolve(id); err != nil {
			return err
		}
	}

	prices := api.Prices{"claude-fake": {Input: 3, Output: 15}}.Times(0.5)
	agent := executor.Agent{
		System: "Classify the ticket.", Prices: prices,
		Provider: anthropic.New("claude-sonnet-4-5", &anthropic.Options{Batches: batches, SDK: sdk}),
	}
	type done struct {
		class
		dag.DAG
	}
	classify := func(ctx context.Context, t ticket) (done, error) {
		c, d, err := executor.RunFor[class](ctx, agent, dag.New().User(t.Text))
		return done{c, d}, err
	}

	var rows []report.Row
	for d, err := range executor.Each(ctx, len(tickets), slices.Values(tickets), classify) {
		if errors.Is(err, batch.ErrInDoubt) {
			return err
		}
		t := tickets[len(rows)]
		fmt.Println(t.ID, d.class, err)
		rows = append(rows, report.Of(t.ID, d.DAG, &report.Options{Prices: prices}))
	}
	sum := report.Sum(rows)
	fmt.Println(sum.Outcomes, sum.Money())
	return nil
}

// The requests of many runs are sent in one batch, at half the price. A second process with the same file finds them.
func ExampleOptions_batches() {
	claude := fake.Anthropic(fake.Func(func(request []byte) fake.Reply {
		if strings.Contains(string(request), "twice") {
			return fake.AnthropicMessage(content.Text{Text: `{"category":"billing","urgent":true}`})
		}
		return fake.AnthropicMessage(content.Text{Text: `{"category":"question","urgent":false}`})
	}).Always())
	server := httptest.NewServer(claude)
	defer server.Close()
	folder, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(folder)

	tickets := []ticket{{"T-1", "I was charged twice!"}, {"T-2", "Do you ship to Norway?"}, {"T-3", "Are you open on Sunday?"}}
	for range 2 {
		err := nightly(context.Background(), filepath.Join(folder, "nightly.batch"), tickets, local(server), &batch.Options{
			Requests: 3, Poll: time.Millisecond, // a real batch takes minutes: leave them out
		})
		fmt.Println(claude.Batches(), "batch", len(claude.Bodies()), "requests", err)
	}
	// Output:
	// T-1 {billing true} <nil>
	// T-2 {question false} <nil>
	// T-3 {question false} <nil>
	// map[ended:3] 0.0002
	// 1 batch 3 requests <nil>
	// T-1 {billing true} <nil>
	// T-2 {question false} <nil>
	// T-3 {question false} <nil>
	// map[ended:3] 0.0002
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
