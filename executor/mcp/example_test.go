package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

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

// A server asks for a login. A web service has Login send its user to the address, and wait for the request to Redirect; a
// program for one user opens a browser ("plait mcp login" does).
func ExampleOAuth() {
	address, person, stop := serverWithLogin()
	defer stop()
	login := &mcp.OAuth{
		Redirect: "https://app.example.com/callback",
		Login: func(_ context.Context, address string) (url.Values, error) {
			fmt.Println("Please log in.")
			return person(address)
		},
	}

	ctx := context.Background()
	notes, err := mcp.Connect(ctx, mcp.URL(address, &mcp.URLOptions{OAuth: login}), &mcp.Options{Timeout: 10 * time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer notes.Close()
	fmt.Println(notes.Tools()[0].Definition().Name)
	// Output:
	// Please log in.
	// read_note
}

// serverWithLogin starts a server, which is its own authorization server, and returns a person who allows everything.
func serverWithLogin() (address string, person func(address string) (url.Values, error), stop func()) {
	notes := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "v1"}, nil)
	sdk.AddTool(notes, &sdk.Tool{Name: "read_note", Description: "Reads a note."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return nil, nil, nil
		})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return notes }, nil)

	server := httptest.NewUnstartedServer(nil)
	address = "http://" + server.Listener.Addr().String()
	answer := func(value any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(value)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", answer(map[string]any{
		"issuer": address, "authorization_endpoint": address + "/login", "token_endpoint": address + "/token",
		"registration_endpoint": address + "/register", "code_challenge_methods_supported": []string{"S256"},
	}))
	mux.HandleFunc("/register", answer(map[string]string{"client_id": "plait"}))
	mux.HandleFunc("/token", answer(map[string]any{"access_token": "secret", "token_type": "Bearer"}))
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
	server.Config.Handler = mux
	server.Start()

	person = func(address string) (url.Values, error) {
		login, err := url.Parse(address)
		return url.Values{"code": {"allowed"}, "state": login.Query()["state"]}, err
	}
	return address + "/mcp", person, server.Close
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
