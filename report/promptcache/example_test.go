package promptcache_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report/promptcache"
)

// What was read from the prompt cache, and where it was lost: the third request has another system prompt.
func ExampleCalls() {
	answer := func(text string, u content.Usage) node.Message {
		return node.Message{Role: content.Assistant, Blocks: content.Words(text),
			Answer: node.Answer{API: "anthropic", Model: "claude-sonnet-4-5", Usage: u}}
	}
	rules := strings.Repeat("Answer in one sentence. ", 200)

	d := dag.New().SetSystem("agent", "Today is Monday. "+rules).
		User("What is a DAG?").Append(answer("A graph without cycles.", content.Usage{CacheWrite: 1210})).
		User("And a tree?").Append(answer("A DAG with one parent each.", content.Usage{CacheRead: 1210, CacheWrite: 20})).
		SetSystem("agent", "Today is Tuesday. "+rules).
		User("And a forest?").Append(answer("Many trees.", content.Usage{CacheWrite: 1250}))

	for _, call := range promptcache.Calls(d, nil) {
		fmt.Println(call)
	}
	// Output:
	// 0 of 1,210 tokens predicted, 0 read: it is the first request
	// 1,210 of 1,230 tokens predicted, 1,210 read
	// 0 of 1,250 tokens predicted, 0 read: system prompt 1 changed
}

// After each turn of a run, a hook sees what its request found in the cache.
func ExampleCalls_run() {
	search := executor.Func("search", "Search the web.", func(context.Context, struct{ Query string }) (string, error) {
		return "Oslo has 700,000 inhabitants.", nil
	})
	model := apitest.NewScript(
		apitest.Call(content.ToolUse{Name: "search", Input: `{"Query":"Oslo"}`}).As("openai-responses", "gpt-5").Usage(content.Usage{Input: 2000}),
		apitest.Say("700,000.").As("openai-responses", "gpt-5").Usage(content.Usage{Input: 130, CacheRead: 1920}),
	)

	show := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
		calls := promptcache.Calls(turn.DAG, nil)
		fmt.Println(calls[len(calls)-1])
		return turn, nil
	}}
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{search}, Hooks: []executor.Hook{show}}
	if _, err := agent.Run(context.Background(), dag.New().User("How many people live in Oslo?")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0 of 2,000 tokens predicted, 0 read: it is the first request
	// 1,920 of 2,050 tokens predicted, 1,920 read
}
