package acp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/internal/safetext"
)

// maxServers is how many MCP servers a session may have.
const maxServers = 50

// toolbox has the MCP servers of a session. A nil value has none.
type toolbox struct{ servers []*mcp.Server }

// connect connects to the MCP servers that the client names, all at the same time.
func (s *server) connect(ctx context.Context, named []sdk.McpServer) (*toolbox, error) {
	switch {
	case len(named) == 0:
		return nil, nil
	case s.MCP == nil:
		return nil, invalid("the agent accepts no MCP servers of the client")
	case len(named) > maxServers:
		return nil, invalid("a session has at most %d MCP servers", maxServers)
	}

	box := &toolbox{servers: make([]*mcp.Server, len(named))}
	errs := make([]error, len(named))
	var connecting sync.WaitGroup
	for i, server := range named {
		connecting.Go(func() {
			name, dial := dialOf(server)
			o := *s.MCP
			o.Name = name
			box.servers[i], errs[i] = mcp.Connect(ctx, dial, &o)
			if errs[i] != nil {
				errs[i] = fmt.Errorf("the MCP server %s: %w", safetext.Quote(name, 40), errs[i])
			}
		})
	}
	connecting.Wait()

	// The client knows the servers: it may read why they cannot be used.
	if err := errors.Join(errs...); err != nil {
		box.close()
		return nil, &sdk.RequestError{Code: -32603, Message: safetext.Escape(err.Error(), 1000)}
	}
	return box, nil
}

// dialOf returns the name of a server, and how it is reached.
func dialOf(server sdk.McpServer) (name string, dial mcp.Dial) {
	switch {
	case server.Stdio != nil:
		return server.Stdio.Name, func() (mcpsdk.Transport, error) {
			cmd := exec.Command(server.Stdio.Command, server.Stdio.Args...)
			cmd.Env = os.Environ()
			for _, v := range server.Stdio.Env {
				cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
			}
			return &mcpsdk.CommandTransport{Command: cmd}, nil
		}
	case server.Http != nil:
		return server.Http.Name, mcp.URL(server.Http.Url, &mcp.URLOptions{Client: withHeader(server.Http.Headers)})
	case server.Sse != nil:
		client := withHeader(server.Sse.Headers)
		return server.Sse.Name, func() (mcpsdk.Transport, error) {
			return &mcpsdk.SSEClientTransport{Endpoint: server.Sse.Url, HTTPClient: client}, nil
		}
	}
	return "", func() (mcpsdk.Transport, error) { return nil, errors.New("it is of an unknown kind") }
}

// withHeader returns a client whose requests have the header.
func withHeader(header []sdk.HttpHeader) *http.Client {
	return &http.Client{Transport: headerTransport(header)}
}

type headerTransport []sdk.HttpHeader

// RoundTrip implements http.RoundTripper.
func (h headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for _, field := range h {
		r.Header.Set(field.Name, field.Value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// list returns the tools of the servers.
func (b *toolbox) list() (tools []dag.Tool) {
	if b == nil {
		return nil
	}
	for _, server := range b.servers {
		tools = append(tools, server.Tools()...)
	}
	return tools
}

// hooks returns the hooks of the servers.
func (b *toolbox) hooks() (hooks []executor.Hook) {
	if b == nil {
		return nil
	}
	for _, server := range b.servers {
		hooks = append(hooks, server.Hook())
	}
	return hooks
}

// close ends the servers, all at the same time. How they end does not matter any more.
func (b *toolbox) close() {
	if b == nil {
		return
	}
	var ending sync.WaitGroup
	for _, server := range b.servers {
		if server != nil {
			ending.Go(func() { _ = server.Close() })
		}
	}
	ending.Wait()
}
