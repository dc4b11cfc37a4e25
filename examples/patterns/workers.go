package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// Plan is what the planner answers.
type Plan struct {
	Tasks []string `json:"tasks"`
}

// workers lets a planner divide the work, runs a worker for each task, four at a time, and lets a writer put their
// answers together. A planner that shall decide again after each answer gets the worker as a tool instead
// (executor.SubAgent).
func workers(ctx context.Context, out io.Writer) error {
	planner := executor.Agent{Provider: apitest.NewScript(apitest.Say(`{"tasks":["Prices of trains","Prices of planes"]}`))}
	worker := executor.Agent{Provider: apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		if strings.Contains(req.Messages[0].Blocks.Text(), "train") {
			return apitest.Say("Trains: 49 €.")
		}
		return apitest.Say("Planes: 120 €.")
	}).Always())}
	writer := executor.Agent{Provider: apitest.NewScript(apitest.Say("Take the train."))}

	question := "How do I get to Paris for less?"
	plan, _, err := executor.RunFor[Plan](ctx, planner, dag.New().User(question))
	if err != nil {
		return err
	}

	notes := dag.New().User(question)
	for d, err := range executor.Each(ctx, 4, slices.Values(plan.Tasks), func(ctx context.Context, task string) (dag.DAG, error) {
		return worker.Run(ctx, dag.New().User(task))
	}) {
		if err != nil {
			return err
		}
		notes = notes.User(d.Text())
	}
	d, err := writer.Run(ctx, notes)
	fmt.Fprintln(out, d)
	return err
}
