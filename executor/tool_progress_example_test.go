package executor_test

import (
	"context"
	"fmt"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// A tool with a JSON schema of its own. It reports its progress and returns a text with an image.
func ExampleProgress() {
	def := content.Tool{
		Name: "draw", Description: "Draws a square.",
		Schema: `{"type":"object","properties":{"width":{"type":"integer","minimum":1}},"required":["width"]}`,
	}
	draw := executor.NewTool(def, func(ctx context.Context, call executor.Call) (executor.Result, error) {
		for step := 1; step <= 2; step++ {
			if err := executor.Progress(ctx, fmt.Sprintf("step %d of 2", step)); err != nil {
				return executor.Result{}, err
			}
		}
		return executor.ResultOf([]content.Block{content.Text{Text: "A square:"}, content.ImageOf("image/png", []byte("png"))})
	})
	model := apitest.NewScript(apitest.Call(apitest.Use("draw", map[string]int{"width": 8})), apitest.Say("Here it is."))

	for event, err := range executor.Stream(context.Background(), model, dag.New().Tools(draw).User("Draw a square.")) {
		switch e := event.(type) {
		case executor.ToolUpdate:
			fmt.Println(e.Call.Name, "reports", e.Content.Text())
		case executor.ToolEnd:
			fmt.Println(e.Execution.Tool, "returns", e.Execution.Result.Text(), e.Execution.Result.Len(), "blocks")
		case executor.End:
			fmt.Println(e.DAG.Text(), err)
		}
	}
	// Output:
	// draw reports step 1 of 2
	// draw reports step 2 of 2
	// draw returns A square: 2 blocks
	// Here it is. <nil>
}
