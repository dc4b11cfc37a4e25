package executor_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// A request that is too large is refused before it is sent. CountTokens asks the provider's API; a scripted model has
// none, so here the count is an estimate.
func ExampleHook_tokens() {
	model := apitest.NewScript(apitest.Say("Hello."))
	limit := executor.Hook{Send: func(ctx context.Context, req api.Request) (api.Request, error) {
		n, err := api.CountTokens(ctx, model, req)
		if err == nil && n.Input > 1000 {
			err = fmt.Errorf("the request takes %d tokens (estimated: %v)", n.Input, n.Estimated)
		}
		return req, err
	}}
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{limit}}

	d, err := agent.Run(context.Background(), dag.New().User("Hello"))
	fmt.Println(d.Text(), err)
	_, err = agent.Run(context.Background(), d.User(strings.Repeat("again ", 1000)))
	fmt.Println(err)
	// Output:
	// Hello. <nil>
	// the request takes 1515 tokens (estimated: true)
}
