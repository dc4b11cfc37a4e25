package otel_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/otel"
)

// A run is traced. A program sets up its providers as for its other traces, and needs no options; here the spans go to
// memory.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))

	type city struct {
		Name string `json:"name"`
	}
	weather := executor.Func("get_weather", "The weather of a city.", func(_ context.Context, in city) (string, error) {
		return in.Name + ": 22°C", nil
	})
	model := apitest.NewScript(
		apitest.Call(apitest.Use("get_weather", city{"Tokyo"})).As("anthropic", "claude"),
		apitest.Say("It is 22°C in Tokyo.").As("anthropic", "claude"),
	)
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{weather}}
	agent.Hooks = append(agent.Hooks, otel.Hook(&otel.Options{Agent: "weather", TracerProvider: provider}))

	d, err := agent.Run(context.Background(), dag.New().User("How warm is it in Tokyo?"))
	fmt.Println(d.Text(), err)
	fmt.Print(treeOf(spans.GetSpans()))
	// Output:
	// It is 22°C in Tokyo. <nil>
	// invoke_agent weather
	//   chat claude
	//   execute_tool get_weather
	//   chat claude
}
