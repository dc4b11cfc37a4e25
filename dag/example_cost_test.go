package dag_test

import (
	"fmt"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// What a conversation cost: each answer has the model and the tokens beside it. A model without a price is told apart from one
// that costs nothing.
func ExampleDAG_Nodes_cost() {
	prices := api.Prices{"claude-sonnet-4-5": {Input: 3, Output: 15}, "gpt-5": {Input: 1.25, Output: 10}}

	answer := func(model, text string, u content.Usage) node.Message {
		return node.Message{Role: content.Assistant, Blocks: content.Words(text), Answer: node.Answer{Model: model, Usage: u}}
	}
	d := dag.New().
		User("What is a DAG?").Append(answer("claude-sonnet-4-5-20250929", "A graph without cycles.", content.Usage{Input: 1000, Output: 200})).
		User("And a tree?").Append(answer("gpt-5-2025-08-07", "A DAG with one parent each.", content.Usage{Input: 2000, Output: 100})).
		User("And a forest?").Append(answer("some-model", "Many trees.", content.Usage{Input: 3000, Output: 50}))

	total := 0.0
	for _, n := range d.Nodes() {
		m, ok := n.Message()
		if !ok || m.Answer.Model == "" {
			continue
		}
		cost, known := prices.Cost(m.Answer.Model, m.Answer.Usage)
		if !known {
			fmt.Println("no price for", m.Answer.Model)
		}
		total += cost
	}
	fmt.Printf("%.4f\n", total)
	// Output:
	// no price for some-model
	// 0.0095
}
