// Command files is an agent that works with the files of a folder, with the tools of an MCP server. By default the
// server is a small one in this program, and the model is scripted. With a command it starts that server instead:
//
//	go run ./examples/files
//	go run ./examples/files npx -y @modelcontextprotocol/server-filesystem /tmp
package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing/fstest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
)

func main() {
	ctx := context.Background()
	dial := inProgram(ctx, fstest.MapFS{
		"notes/monday.md":  {Data: []byte("Call Ada. Buy bolts.")},
		"notes/tuesday.md": {Data: []byte("Rest.")},
	})
	if args := os.Args[1:]; len(args) > 0 {
		dial = mcp.Command(args[0], args[1:]...)
	}
	if err := run(ctx, os.Stdout, dial); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dial mcp.Dial) error {
	server, err := mcp.Connect(ctx, dial, nil)
	if err != nil {
		return err
	}
	defer server.Close()

	for _, tool := range server.Tools() {
		def := tool.Definition()
		about, _, _ := strings.Cut(def.Description, "\n")
		fmt.Fprintf(out, "%-16s %s\n", def.Name, about)
	}

	agent := executor.Agent{
		Provider: apitest.NewScript(
			apitest.Call(apitest.Use("list_directory", path{"notes"})),
			apitest.Call(apitest.Use("read_file", path{"notes/monday.md"}), apitest.Use("read_file", path{"../secrets"})),
			apitest.Say("On Monday: call Ada, buy bolts."),
		),
		Tools: server.Tools(),
		Hooks: []executor.Hook{server.Hook()}, // follows changes of the server's list
	}
	d, err := agent.Run(ctx, dag.New().User("What is to be done on Monday?"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%v\n", d)
	return err
}

// path is the arguments of both tools.
type path struct {
	Path string `json:"path"`
}

// inProgram returns a connection to a server with two tools for a file system. Package fs refuses names leading out of
// it.
func inProgram(ctx context.Context, files fs.FS) mcp.Dial {
	server := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "v1"}, nil)

	// AddTool turns an error into a failed result, for the model to read.
	text := func(s string, err error) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}, nil, err
	}

	sdk.AddTool(server, &sdk.Tool{Name: "list_directory", Description: "Lists a folder."},
		func(_ context.Context, _ *sdk.CallToolRequest, in path) (*sdk.CallToolResult, any, error) {
			entries, err := fs.ReadDir(files, in.Path)
			var names strings.Builder
			for _, e := range entries {
				fmt.Fprintln(&names, e.Name())
			}
			return text(names.String(), err)
		})
	sdk.AddTool(server, &sdk.Tool{Name: "read_file", Description: "Reads a file."},
		func(_ context.Context, _ *sdk.CallToolRequest, in path) (*sdk.CallToolResult, any, error) {
			data, err := fs.ReadFile(files, in.Path)
			return text(string(data), err)
		})

	// Each connection has a pair of transports: one end for the server, and the other for the agent.
	return func() (sdk.Transport, error) {
		ours, theirs := sdk.NewInMemoryTransports()
		_, err := server.Connect(ctx, theirs, nil)
		return ours, err
	}
}
