// Command branches tries three system prompts on one question, each on a fork of the same conversation, at the same
// time. A judge picks the best answer, and the conversation continues from it. The others stay in the graph, which is
// saved as branches.json. The models are scripted.
//
//	go run ./examples/branches
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	if err := run(context.Background(), os.Stdout, "branches.json"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var prompts = []string{"Answer in one word.", "Answer like a pirate.", "Answer with a reason."}

// Verdict is the judge's output.
type Verdict struct {
	Best int `json:"best" jsonschema:"the number of the best answer, from 1"`
}

func run(ctx context.Context, out io.Writer, file string) error {
	question := dag.New().User("Which city should I visit in May?")

	var branches []dag.DAG
	var all strings.Builder
	agent := executor.Agent{Provider: model}
	for d, err := range executor.Each(ctx, 3, slices.Values(prompts), func(ctx context.Context, prompt string) (dag.DAG, error) {
		return agent.Run(ctx, question.SetSystem("style", prompt)) // a fork: nothing is copied
	}) {
		if err != nil {
			return err
		}
		branches = append(branches, d)
		fmt.Fprintf(&all, "%d. %s\n", len(branches), d.Text())
	}
	fmt.Fprint(out, all.String())

	verdict, _, err := executor.RunFor[Verdict](ctx, executor.Agent{Provider: judge},
		dag.New().System("Pick the best answer.").User(all.String()))
	if err != nil {
		return err
	}
	if verdict.Best < 1 || verdict.Best > len(branches) {
		return fmt.Errorf("the judge picked %d of %d answers", verdict.Best, len(branches))
	}
	fmt.Fprintf(out, "The judge picks %d.\n\n", verdict.Best)

	// Only the best branch is sent from now on. The others stay in the graph.
	best := branches[verdict.Best-1]
	for i, other := range branches {
		if i != verdict.Best-1 {
			best = best.SubGraph(other.SystemPrompt("style"), other)
		}
	}
	d, err := agent.Run(ctx, best.User("And in June?"))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, d)
	return d.Save(file)
}

// model answers in the style of its system prompt.
var model = apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
	switch last := req.Messages[len(req.Messages)-1].Blocks.Text(); {
	case strings.Contains(last, "June"):
		return apitest.Say("Tallinn, because its nights are white then.")
	case strings.Contains(fmt.Sprint(req.System), "pirate"):
		return apitest.Say("Arr, Lisbon!")
	case strings.Contains(fmt.Sprint(req.System), "reason"):
		return apitest.Say("Kyoto, because it is warm and not yet humid.")
	}
	return apitest.Say("Vienna.")
}).Always())

var judge = apitest.NewScript(apitest.Say(`{"best":3}`).Always())
