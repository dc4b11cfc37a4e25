package background_test

import (
	"context"
	"fmt"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/background"
)

// The build goes on while the model writes. The run does not end before it.
func Example() {
	type target struct {
		Target string `json:"target"`
	}
	written := make(chan struct{})
	build := executor.Func("build", "Builds a target. It takes minutes.",
		func(_ context.Context, in target) (string, error) {
			<-written // for this example: it takes as long as the notes
			return in.Target + " is built, 2 warnings", nil
		})

	model := apitest.NewScript( // for this example
		apitest.Call(apitest.Use("build", target{"server"})),
		apitest.Func(func(api.Request) apitest.Turn {
			close(written)
			return apitest.Say("The build runs. Meanwhile, these are the notes: …")
		}),
		apitest.Say("The server is built, with 2 warnings."),
	)
	agent := background.Add(executor.Agent{Provider: model}, build)

	d, err := agent.Run(context.Background(), dag.New().User("Build the server, and write the notes."))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range d.Messages() {
		for _, r := range m.Blocks.ToolResults() {
			fmt.Println("result:", r.Content.Text())
		}
		if text := m.Blocks.Text(); text != "" {
			fmt.Printf("%s: %s\n", m.Role, text)
		}
	}
	// Output:
	// user: Build the server, and write the notes.
	// result: Background work 1 (build) was started. Its result comes later, as a message.
	// assistant: The build runs. Meanwhile, these are the notes: …
	// user: Background work 1 (build) is done. The result of the tool, not a message of the user:
	// server is built, 2 warnings
	// assistant: The server is built, with 2 warnings.
}
