package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/secret"
)

// Limits for the calls of tools of MCP servers.
const (
	serverToolTimeout = 5 * time.Minute
	serverToolOutput  = 100_000 // bytes of text of a result for the model
)

// serverGrace is the time after which a program that ignores the end of its input gets SIGTERM. After twice this time it
// is killed. A test replaces it.
var serverGrace = time.Second

// mcpFlag registers the flag for MCP servers.
func (r *runner) mcpFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&r.mcp, "mcp", nil,
		"execute the tools of this MCP server: a `COMMAND` with\narguments, or a URL; NAME=COMMAND puts NAME_ before\ntheir names; may be given several times")
}

// connect starts the servers of --mcp, or connects to them. End them by disconnect.
func (r *runner) connect(ctx context.Context) error {
	named := map[string]string{} // the servers, by the names of their tools
	for _, spec := range r.mcp {
		if terminal, _ := terminalOf(r.err); terminal && !r.quiet {
			r.say("connecting to %s", safetext.Line(secret.InText(spec), 60))
		}
		server, err := connectServer(ctx, spec)
		if err != nil {
			return fmt.Errorf("--mcp %s: %w", safetext.Escape(secret.InText(spec), 200), err)
		}
		r.servers = append(r.servers, server)

		for _, err := range server.LeftOut() {
			r.say("--mcp %s: a tool is left out: %v", secret.InText(spec), err)
		}

		// The model distinguishes tools by their names alone.
		for _, tool := range server.Tools() {
			name := tool.Definition().Name
			if other, twice := named[name]; twice {
				return fmt.Errorf("%q and %q both have a tool %s: name one server, as in --mcp 'other=%s'", other, spec, name, spec)
			}
			named[name] = spec
		}
	}
	return nil
}

// disconnect ends the servers, all at the same time. How they end does not matter any more.
func (r *runner) disconnect() {
	var ending sync.WaitGroup
	for _, s := range r.servers {
		ending.Go(func() { _ = s.Close() })
	}
	ending.Wait()
	r.servers = nil
}

// bind gives an agent the tools of the servers.
func (r *runner) bind(a *executor.Agent) {
	if len(r.servers) == 0 {
		return
	}
	for _, s := range r.servers {
		a.Tools = append(a.Tools, s.Tools()...)
		a.Hooks = append(a.Hooks, s.Hook())
	}
	a.Hooks = append(a.Hooks, executor.OutputLimit{MaxBytes: serverToolOutput, KeepFull: true}.Hook())
	a.ToolTimeout = serverToolTimeout
}

// serverName matches the name before the command of a server. Environment variables are in upper case.
var serverName = pattern.Of(`^([a-z][a-z0-9_-]*)=(.+)$`)

// connectServer connects to the server of one --mcp.
func connectServer(ctx context.Context, spec string) (*mcp.Server, error) {
	var o mcp.Options
	if found := serverName().FindStringSubmatch(spec); found != nil {
		o.Name, spec = found[1], found[2]
	}
	if isAddress(spec) {
		return connectURL(ctx, spec, &o)
	}

	command, err := splitCommand(spec)
	if err != nil {
		return nil, err
	}
	printed := &lastLines{}
	server, err := mcp.Connect(ctx, program(command, printed), &o)
	// A server that does not start usually prints the reason.
	if text := printed.String(); err != nil && text != "" {
		err = fmt.Errorf("%w; the server printed: %s", err, text)
	}
	return server, err
}

// connectURL connects to a server behind HTTP, with the token of plait mcp login.
func connectURL(ctx context.Context, address string, o *mcp.Options) (*mcp.Server, error) {
	server, err := mcp.Connect(ctx, mcp.URL(address, &mcp.URLOptions{OAuth: &mcp.OAuth{Tokens: loginOf(address).update}}), o)
	if errors.Is(err, mcp.ErrLogin) {
		err = fmt.Errorf("%w; run: plait mcp login %s", err, safetext.Escape(secret.URL(address), 200))
	}
	return server, err
}

// program returns the dial of a server started as a program. It gets a process group of its own: Ctrl-C in a terminal
// does not end it.
func program(command []string, printed *lastLines) mcp.Dial {
	return func() (sdk.Transport, error) {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stderr = printed
		ownGroup(cmd)
		cmd.WaitDelay = serverGrace // a child of the program may hold its standard error open
		return &groupTransport{sdk.CommandTransport{Command: cmd, TerminateDuration: serverGrace}}, nil
	}
}

// groupTransport is a CommandTransport whose end ends the children of the program, too.
type groupTransport struct{ sdk.CommandTransport }

func (t *groupTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := mcp.Limits{}.Guard(&t.CommandTransport).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &groupConnection{c, t.Command}, nil
}

type groupConnection struct {
	sdk.Connection
	cmd *exec.Cmd
}

func (c *groupConnection) Close() error {
	err := c.Connection.Close()
	killGroup(c.cmd)
	return err
}

// splitCommand splits a command at spaces. Quotes and backslashes work as in a shell; nothing else does.
func splitCommand(text string) ([]string, error) {
	var list []string
	var word strings.Builder
	inWord := false
	quote := rune(0)
	escaped := false

	// A word may be empty, as '' is: inWord, not the length, reports a word.
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			inWord, escaped = true, true
		case r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			inWord, quote = true, r
		case unicode.IsSpace(r):
			if inWord {
				list = append(list, word.String())
				word.Reset()
			}
			inWord = false
		default:
			inWord = true
			word.WriteRune(r)
		}
	}

	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		list = append(list, word.String())
	}
	if len(list) == 0 {
		return nil, errors.New("the command is empty")
	}
	return list, nil
}

// lastLines keeps the end of a server's standard error, for an error text.
type lastLines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastLines) Write(p []byte) (int, error) {
	const kept = 600
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	l.text = l.text[max(len(l.text)-kept, 0):]
	return len(p), nil
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.text))
}

// toolNames returns the names of tools.
func toolNames(tools []dag.Tool) map[string]bool {
	names := map[string]bool{}
	for _, tool := range tools {
		names[tool.Definition().Name] = true
	}
	return names
}
