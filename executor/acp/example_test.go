package acp_test

import (
	"context"
	"fmt"
	"io"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/acp"
	"github.com/plait-dev/plait/store"
)

// An agent for editors. The editor starts the program, and Serve uses its standard input and output. Here another agent
// is in place of the editor.
func ExampleServe() {
	type place struct{ City string }
	weather := executor.Func("get_weather", "The weather of a city.", func(ctx context.Context, _ place) (string, error) {
		return "22°C, says " + acp.SessionOf(ctx).Dir(), nil
	})
	agent := executor.Agent{
		Provider: apitest.NewScript(
			apitest.Call(apitest.Use("get_weather", place{"Tokyo"})), apitest.Say("It is 22°C."),
		),
		Tools: append(acp.ClientTools(), acp.PlanTool(), weather),
		Hooks: []executor.Hook{executor.RequireApproval("write_file", "edit_file", "run_command")},
	}
	sessions := store.New(store.Memory()) // or the driver of a database

	ctx := context.Background()
	in, toAgent := io.Pipe() // in a program: os.Stdin, os.Stdout
	fromAgent, out := io.Pipe()
	served := make(chan error)
	go func() {
		err := acp.Serve(ctx, agent, in, out, &acp.Options{Store: sessions})
		served <- err
	}()

	editor := acp.Remote{Dir: "/project", Dial: func(context.Context) (io.ReadWriteCloser, error) {
		return pair{fromAgent, toAgent}, nil
	}}
	d, err := editor.Run(ctx, "How warm is it in Tokyo?")
	fmt.Println(d.Text(), err)
	fmt.Println(<-served)
	// Output:
	// It is 22°C. <nil>
	// <nil>
}

// Claude Code as a sub-agent. Its questions for permission are answered by the program; here they are all declined.
func ExampleRemote() {
	coder := acp.Remote{Dial: acp.Command("npx", "-y", "@agentclientprotocol/claude-agent-acp"), Dir: "/project"}
	agent := executor.Agent{Tools: []dag.Tool{coder.Tool("claude", "Writes code in the working directory.")}}
	fmt.Println(agent.Tools[0].Definition().Name)
	// Output:
	// claude
}
