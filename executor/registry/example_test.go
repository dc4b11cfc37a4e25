package registry_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/registry"
)

type Forecast struct {
	City string `json:"city" jsonschema:"the city's name"`
}

var temperatures = map[string]string{"Tokyo": "22°C", "Paris": "18°C"}

var weather = executor.Func("get_weather", "Current weather for one city.",
	func(_ context.Context, in Forecast) (string, error) {
		return in.City + ": " + temperatures[in.City], nil
	})

// Only what was registered can be called, and whatever goes wrong is in the record.
func ExampleRegistry_Execute() {
	type Sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	add := executor.Func("add", "Adds two numbers.", func(_ context.Context, in Sum) (int, error) { return in.A + in.B, nil })

	r := registry.Registry{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if err := r.Register(add); err != nil {
		panic(err)
	}
	ctx := context.Background()

	done := r.Execute(ctx, "add", map[string]any{"a": 5, "b": 3})
	fmt.Println(done.Success, done.Output)

	blocked := r.Execute(ctx, "rm_rf", map[string]any{"path": "/"})
	fmt.Println(blocked.Success, blocked.Error)

	line, err := done.MarshalJSON() // for logs, with latency_ms
	fmt.Println(strings.Contains(string(line), `"tool_name":"add","success":true,"output":"8"`), err)
	// Output:
	// true 8
	// false Tool not registered: rm_rf (only registered tools can be called)
	// true <nil>
}

// A call is taken as the Chat Completions API sends it.
func ExampleRegistry_ExecuteCall() {
	var r registry.Registry
	if err := r.Register(weather); err != nil {
		panic(err)
	}
	for _, call := range []string{
		`{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Tokyo\"}"}}`,
		`{"function":{"name":"get_weather","arguments":{"city":"Paris"}}}`,
		`{"id":"call_2","function":{"name":"get_weather","arguments":"[\"Tokyo\"]"}}`,
	} {
		done := r.ExecuteCall(context.Background(), []byte(call))
		fmt.Println(done.Tool, done.Success, done.Output+done.Error)
	}
	// Output:
	// get_weather true Tokyo: 22°C
	// get_weather true Paris: 18°C
	// get_weather false not a tool call that can be executed: function.arguments are not a JSON object
}
