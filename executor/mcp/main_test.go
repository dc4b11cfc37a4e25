package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	_ "github.com/plait-dev/plait/internal/testkit/quick"
)

// serverVariable makes the test binary an MCP server on standard input and output; its value selects which.
const serverVariable = "PLAIT_TEST_MCP"

// fileVariable is a file that the tool dies_once makes at its first call.
const fileVariable = "PLAIT_TEST_MCP_FILE"

func TestMain(m *testing.M) {
	role := os.Getenv(serverVariable)
	if server, ok := hostiles[role]; ok {
		server().serve(os.Stdin, os.Stdout)
		return
	}
	switch role {
	case "":
		goleak.VerifyTestMain(m)
	case "server":
		if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "silent":
		io.Copy(io.Discard, os.Stdin) // until the client gives up
	case "noise":
		fmt.Println("Listening on port 8080!")
	}
}

// newServer returns a server with a tool for each form of result.
func newServer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "v1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "greet", Description: "Greets."},
		func(_ context.Context, _ *sdk.CallToolRequest, in struct {
			Name string `json:"name" jsonschema:"whom to greet"`
		}) (*sdk.CallToolResult, any, error) {
			if in.Name == "nobody" {
				return nil, nil, fmt.Errorf("nobody is here")
			}
			return text("Hello, " + in.Name), nil, nil
		})
	addRaw(server, "media", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "first"},
			&sdk.ImageContent{MIMEType: "image/png", Data: []byte("png")},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("wav")},
			&sdk.ResourceLink{URI: "file:///a.txt", Name: "a.txt", MIMEType: "text/plain"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b.txt", MIMEType: "text/plain", Text: "b"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c.pdf", MIMEType: "application/pdf", Blob: []byte("pdf")}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///d.png", MIMEType: "image/png", Blob: []byte("png")}},
		}}, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "measure"},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, map[string]any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{}}, map[string]any{"celsius": 21.5}, nil
		})
	addRaw(server, "die", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	server.AddTool(&sdk.Tool{
		Name: "dies_once", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
	}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if f, err := os.OpenFile(os.Getenv(fileVariable), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = f.Close()
			os.Exit(3)
		}
		return text("second call"), nil
	})
	addRaw(server, "huge", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", 20<<20)), nil
	})
	addRaw(server, "pid", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(fmt.Sprint(os.Getpid())), nil
	})
	return server
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// addRaw adds a tool without arguments.
func addRaw(server *sdk.Server, name string, handler sdk.ToolHandler) {
	server.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, handler)
}
