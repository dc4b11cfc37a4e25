package executor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// A tool three sub-agents deep needs approval. The run pauses as a whole; the answer comes to another process, which makes the
// agents anew. What was executed before the pause is not executed again.
func ExampleSubAgent_approval() {
	type none struct{}
	say := func(name string) executor.Tool {
		return executor.Func(name, "", func(context.Context, none) (string, error) {
			fmt.Println("executed:", name)
			return name, nil
		})
	}

	// Each agent calls its sub-agent, and looks at something beside it.
	nested := func(name string, turns ...apitest.Turn) func(executor.Tool) executor.Tool {
		return func(inner executor.Tool) executor.Tool {
			return executor.SubAgent(name, "", executor.Agent{
				Provider: apitest.NewScript(turns...), Tools: []dag.Tool{inner, say("look_for_" + name)},
				Hooks: []executor.Hook{executor.RequireApproval("delete_branch")},
			})
		}
	}
	calls := func(names ...string) apitest.Turn {
		var uses []content.ToolUse
		for _, name := range names {
			use := content.ToolUse{ID: name, Name: name, Input: "{}"}
			if name == "review" || name == "cleanup" || name == "git" {
				use.Input = `{"task":"go on"}`
			}
			uses = append(uses, use)
		}
		return apitest.Call(uses...)
	}
	done := apitest.Say("Done.")

	// In a first process: all models call tools.
	before := nested("review", calls("cleanup", "look_for_review"))(
		nested("cleanup", calls("git"))(
			nested("git", calls("delete_branch"))(say("delete_branch"))))
	agent := executor.Agent{Provider: apitest.NewScript(calls("review")), Tools: []dag.Tool{before}}
	d, err := agent.Run(context.Background(), dag.New().User("Tidy up."))

	var paused *executor.PausedError
	if !errors.As(err, &paused) {
		panic(err)
	}
	for _, p := range d.Pending() {
		fmt.Println("approve?", p.Call.Name, "inside", len(p.Path), "sub-agents")
	}
	folder, _ := os.MkdirTemp("", "")
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "run.json")
	_ = d.Save(file)

	// In a second process: the same agents, whose models have something to say now.
	after := nested("review", done)(nested("cleanup", done)(nested("git", done)(say("delete_branch"))))
	agent = executor.Agent{Provider: apitest.NewScript(done), Tools: []dag.Tool{after}}
	d, _ = dag.Load(file)
	d, err = agent.Resume(context.Background(), d, executor.Approved(d.Pending()[0]))
	fmt.Println(d.Text(), err)
	// Output:
	// executed: look_for_review
	// approve? delete_branch inside 3 sub-agents
	// executed: delete_branch
	// Done. <nil>
}

// A fork knows the conversation: its request begins with the one that led to its call, which the provider has cached.
func ExampleFork() {
	model := apitest.NewScript(
		apitest.Call(apitest.Use("fork", executor.Task{Task: "Find what the error means."})),
		apitest.Say("The disk is full."), // the fork's response
		apitest.Say("Your disk is full."),
	)
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{
		executor.Fork("fork", "Does a task aside, and returns the result only.", executor.Limits{Turns: 20}),
	}}
	d, err := agent.Run(context.Background(), dag.New().User("It says ENOSPC. Why?"))

	for _, req := range model.Requests() {
		fmt.Printf("%d messages, the last one with %q\n", len(req.Messages), req.Messages[len(req.Messages)-1].Blocks.Text())
	}
	fmt.Println(d.Text(), err)
	// Output:
	// 1 messages, the last one with "It says ENOSPC. Why?"
	// 2 messages, the last one with "Find what the error means."
	// 3 messages, the last one with ""
	// Your disk is full. <nil>
}
