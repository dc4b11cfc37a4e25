package promptcache_test

import (
	"fmt"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/promptcache"
	"github.com/plait-dev/plait/node"
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
