package main

import (
	"context"
	"fmt"
	"io"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// Route is what the router answers: a Go value, so that it cannot be misread.
type Route struct {
	To string `json:"to" jsonschema:"code, or law"`
}

// router lets a small model choose who answers. Unlike a hand-off, the one who is chosen begins with the question alone.
func router(ctx context.Context, out io.Writer) error {
	clerk := executor.Agent{Provider: apitest.NewScript(apitest.Say(`{"to":"law"}`)), System: "Who should answer?"}
	experts := map[string]executor.Agent{
		"code": {Provider: apitest.NewScript(), System: "You program."},
		"law":  {Provider: apitest.NewScript(apitest.Say("Two weeks, if nothing else was agreed.")), System: "You know the law."},
	}

	question := dag.New().User("How long is the notice period?")
	route, _, err := executor.RunFor[Route](ctx, clerk, question)
	if err != nil {
		return err
	}
	expert, ok := experts[route.To]
	if !ok {
		return fmt.Errorf("the router chose %q", route.To)
	}
	d, err := expert.Run(ctx, question)
	fmt.Fprintf(out, "%s: %s\n", route.To, d.Text())
	return err
}
