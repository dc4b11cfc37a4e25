package mcp_test

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
)

// An agent uses the tools of an MCP server. Here the server is in the same program; mcp.Command starts one that is a
// program of its own, and mcp.URL connects to one behind HTTP.
func Example() {
	type city struct {
		Name string `json:"name" jsonschema:"the city's name"`
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "v1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "get_weather", Description: "The weather of a city."},
		func(_ context.Context, _ *sdk.CallToolRequest, in city) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Name + ": 22°C"}}}, nil, nil
		})

	ctx := context.Background()
	weather, err := mcp.Connect(ctx, func() (sdk.Transport, error) {
		ours, theirs := sdk.NewInMemoryTransports()
		_, err := server.Connect(ctx, theirs, nil)
		return ours, err
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer weather.Close()

	model := apitest.NewScript(
		apitest.Call(apitest.Use("get_weather", city{"Tokyo"})),
		apitest.Say("It is 22°C in Tokyo."),
	)
	agent := executor.Agent{Provider: model, Tools: weather.Tools()}
	d, err := agent.Run(ctx, dag.New().User("How warm is it in Tokyo?"))
	fmt.Println(d.Text(), err)
	// Output: It is 22°C in Tokyo. <nil>
}

// An agent is offered to MCP clients as a tool. A server over standard input and output ends with
// server.Run(ctx, &sdk.StdioTransport{}).
func ExampleAddAgent() {
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("It is 22°C in Tokyo."))}
	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "v1"}, nil)
	mcp.AddAgent(server, mcp.AgentTool{Name: "ask_weather", Description: "Answers questions about the weather.", Agent: agent})

	ctx := context.Background()
	ours, theirs := sdk.NewInMemoryTransports()
	if _, err := server.Connect(ctx, theirs, nil); err != nil {
		fmt.Println(err)
		return
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "v1"}, nil).Connect(ctx, ours, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	result, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "ask_weather", Arguments: map[string]any{"message": "How warm is it in Tokyo?"}})
	fmt.Println(result.StructuredContent, err)
	// Output: map[stop:end_turn text:It is 22°C in Tokyo.] <nil>
}
