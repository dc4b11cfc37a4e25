// The program counted is a streamed run with two tool calls. A test counts the functions that it passes.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/coverage"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	tool := executor.NewTool(content.Tool{Name: "look", Schema: `{"type":"object"}`},
		func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{Content: content.Words("a result")}, nil
		})
	model := apitest.NewScript(apitest.Call(apitest.Use("look", nil), apitest.Use("look", nil)), apitest.Say("Done."))
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{tool}}

	// Making the tool and the model is no part of the run.
	if err := coverage.ClearCounters(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	calls := 0
	for event, err := range agent.Stream(context.Background(), dag.New().User("Go.")) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if _, ok := event.(executor.ToolEnd); ok {
			calls++
		}
	}
	fmt.Println(calls)
}
