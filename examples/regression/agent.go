// Package regression shows how a recorded run becomes a test of its agent: agent_test.go replays testdata/session.json,
// without a model and without a network. If a tool returns a different result than then, the test fails and names the
// call.
//
//	go test ./examples/regression
//	go test ./examples/regression -record    # record the session again, with a scripted model in place of a real one
package regression

import (
	"context"
	"fmt"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// Order is the arguments of the tool.
type Order struct {
	Item  string `json:"item"`
	Count int    `json:"count"`
}

// Price is the price of one item, in cents.
var Price = map[string]int{"bolts": 12, "nuts": 8}

// Tools returns the agent's tools, for the test.
func Tools() []dag.Tool {
	return []dag.Tool{executor.Func("quote", "Returns the price of an order.", func(_ context.Context, in Order) (string, error) {
		cents, ok := Price[in.Item]
		if !ok {
			return "", fmt.Errorf("nothing is called %q", in.Item)
		}
		cents *= in.Count
		return fmt.Sprintf("%d.%02d", cents/100, cents%100), nil
	})}
}
