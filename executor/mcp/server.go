//lint:file-ignore SA1019 sampling is deprecated since 2026-07-28, and servers still use it

package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// ErrClosed: the Server was closed by [Server.Close].
var ErrClosed = errors.New("mcp: the server is closed")

// ErrLost: the connection broke off while a call was under way. Whether the call was executed is unknown.
var ErrLost = errors.New("the connection to the tool's server was lost during the call: its outcome is unknown")

// ErrToolName: two tools of a server have one name.
var ErrToolName = errors.New("the server has another tool of this name")

// Dial returns the transport of a new connection. It is called for the first connection, and again whenever a
// connection was lost.
type Dial func() (sdk.Transport, error)

// Command returns a Dial for a server that is a program, and that reads standard input and writes standard output. What
// the program writes to standard error is discarded; for more control, write a Dial with an sdk.CommandTransport.
func Command(name string, args ...string) Dial {
	return func() (sdk.Transport, error) {
		return &sdk.CommandTransport{Command: exec.Command(name, args...)}, nil
	}
}

// URL returns a Dial for a server behind HTTP (the protocol's streamable transport). The client adds what the server
// needs, such as a header with a token; nil is http.DefaultClient.
func URL(endpoint string, client *http.Client) Dial {
	return func() (sdk.Transport, error) {
		return &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: client}, nil
	}
}

// Options are the settings of [Connect]. The zero value is ready to use.
type Options struct {
	// Name is put before the name of each tool, with an underscore: "github" makes github_create_issue of create_issue.
	// Give it to each of several servers whose tools may have the same names: of two tools with one name an agent has
	// only the later one. Defaults to the names of the server alone.
	Name string
	// Include selects tools by the server's name for them. Defaults to all.
	Include func(tool string) bool
	// TrustHints takes the server's word for what a second execution of a call does (executor.WithEffect): its hint
	// readOnly is executor.EffectReadOnly, idempotent is executor.EffectIdempotent. Such a call is executed again if the
	// connection broke off during it, or the program ended. Defaults to false: no call is ever repeated by itself.
	TrustHints bool
	// Timeout is how long it may take to connect and to list the tools. Defaults to 30 seconds.
	Timeout time.Duration

	// Model answers the server's requests for a response of a model (sampling). The tokens count in the usage of the
	// call that ends next. Defaults to none: the server is told that sampling is not supported.
	Model api.Provider
	// Approve, if it is set, decides about each such request before it is sent. An error refuses it. Defaults to
	// allowing all of them.
	Approve func(ctx context.Context, request *sdk.CreateMessageParams) error
	// MaxTokens limits the response to such a request. Defaults to 4,096, and is never more than the server asks for.
	MaxTokens int
	// Elicit answers the server's questions to a person (elicitation). Defaults to none: the server is told that
	// elicitation is not supported.
	Elicit func(ctx context.Context, question *sdk.ElicitParams) (*sdk.ElicitResult, error)

	// Log gets a warning for each tool that is left out, and for each lost connection. Defaults to no log.
	Log *slog.Logger
}

// Server is a connection to an MCP server, and its tools. If the connection is lost, the next call makes a new one. A
// Server is safe for concurrent use.
type Server struct {
	dial   Dial
	opts   Options
	client *sdk.Client
	calls  calls

	// connecting is held by the one caller that connects or lists. It is a channel, so that others can give up waiting.
	connecting chan struct{}

	mu      sync.Mutex
	session *sdk.ClientSession // nil before the first connection and after one was lost
	tools   []executor.Tool
	leftOut []error
	stale   bool // the server has said that its list changed
	closed  bool
	waits   sync.WaitGroup // for the goroutines that wait for the end of sessions
}

// Connect connects to a server and lists its tools. The context is that of connecting, not of the connection: close it
// by [Server.Close]. Errors: those of dial and of the SDK, and the context's.
func Connect(ctx context.Context, dial Dial, opts *Options) (*Server, error) {
	if dial == nil {
		return nil, errors.New("mcp: the Dial is nil")
	}
	s := &Server{dial: dial, connecting: make(chan struct{}, 1)}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Timeout <= 0 {
		s.opts.Timeout = 30 * time.Second
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.New(slog.DiscardHandler)
	}
	s.client = sdk.NewClient(&sdk.Implementation{Name: "plait", Version: "v0"}, s.clientOptions())

	if _, err := s.connected(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) clientOptions() *sdk.ClientOptions {
	o := &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.stale = true
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			s.calls.progress(r.Params)
		},
		Capabilities: &sdk.ClientCapabilities{}, // no roots: the server's folders are its own settings
	}
	if s.opts.Model != nil {
		o.CreateMessageHandler = s.sample
	}
	if s.opts.Elicit != nil {
		o.ElicitationHandler = s.elicit
	}
	return o
}

// Tools returns the tools of the server, as it listed them last. Names that no provider accepts are changed: see
// [ToolName].
func (s *Server) Tools() []dag.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	tools := make([]dag.Tool, len(s.tools))
	for i, t := range s.tools {
		tools[i] = t
	}
	return tools
}

// LeftOut returns why tools of the server are not among [Server.Tools]: a schema that cannot be used, or a second tool
// of one name. Each error names its tool.
func (s *Server) LeftOut() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.leftOut)
}

// Session returns the connection, for all that is not translated: prompts, resources, completion. It connects again if
// the connection was lost. The session must not be closed.
func (s *Server) Session(ctx context.Context) (*sdk.ClientSession, error) { return s.connected(ctx) }

// Hook follows changes of the server's list in a run: after a turn in which the server said that its list changed, the
// next turn declares the new tools, and withdraws those that are gone. If the new list cannot be read, the tools stay as
// they are.
//
// Between runs, give the agent Tools again.
func (s *Server) Hook() executor.Hook {
	return executor.Hook{Next: func(ctx context.Context, turn executor.Turn) (executor.Turn, error) {
		before, after, changed := s.refresh(ctx)
		if !changed || turn.Stop != "" {
			return turn, nil
		}

		var gone []string
		for _, old := range before {
			name := old.Definition().Name
			if !slices.ContainsFunc(after, func(t dag.Tool) bool { return t.Definition().Name == name }) {
				gone = append(gone, name)
			}
		}
		turn.DAG = turn.DAG.WithdrawTools(gone...).Tools(after...)
		return turn, nil
	}}
}

// refresh lists the tools again if the server said that they changed.
func (s *Server) refresh(ctx context.Context) (before, after []dag.Tool, changed bool) {
	s.mu.Lock()
	stale := s.stale
	s.mu.Unlock()
	if !stale {
		return nil, nil, false
	}

	before = s.Tools()
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	session, err := s.connected(ctx)
	if err == nil {
		err = s.list(ctx, session)
	}
	if err != nil {
		s.opts.Log.WarnContext(ctx, "the changed tools of an MCP server cannot be listed", "server", s.opts.Name, "error", err)
		return nil, nil, false
	}
	return before, s.Tools(), true
}

// connected returns the session. It connects, and lists the tools, where there is none.
func (s *Server) connected(ctx context.Context) (*sdk.ClientSession, error) {
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	s.mu.Lock()
	session, closed := s.session, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case session != nil:
		return session, nil
	}

	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, fmt.Errorf("no connection within %v", s.opts.Timeout))
	defer cancel()
	transport, err := s.dial()
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	session, err = s.client.Connect(ctx, transport, nil)
	if err != nil {
		return nil, fmt.Errorf("mcp: connecting: %w", ended(ctx, err))
	}
	if err := s.list(ctx, session); err != nil {
		return nil, errors.Join(fmt.Errorf("mcp: listing the tools: %w", ended(ctx, err)), session.Close())
	}
	return session, s.keep(session)
}

// keep makes session that of the server, until it ends.
func (s *Server) keep(session *sdk.ClientSession) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(ErrClosed, session.Close())
	}
	s.session = session

	s.waits.Go(func() {
		err := session.Wait()
		s.mu.Lock()
		lost := s.session == session
		if lost {
			s.session = nil
		}
		s.mu.Unlock()

		// A session that ended by itself still has a goroutine that listens for changes.
		_ = session.Close()
		if lost {
			s.opts.Log.Warn("the connection to an MCP server was lost", "server", s.opts.Name, "error", err)
		}
	})
	return nil
}

// ended adds the cause of the context to an error that the context's end caused.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// maxTools is how many tools of a server are read. No provider accepts as many.
const maxTools = 10_000

// list reads the tools of the server.
func (s *Server) list(ctx context.Context, session *sdk.ClientSession) error {
	// What changes while the list is read is in it, or is announced after it.
	s.mu.Lock()
	s.stale = false
	s.mu.Unlock()

	var tools []executor.Tool
	var leftOut []error
	names := map[string]bool{}
	if c := session.InitializeResult(); c != nil && c.Capabilities != nil && c.Capabilities.Tools != nil {
		for def, err := range session.Tools(ctx, nil) {
			switch {
			case err != nil:
				return err
			case len(tools)+len(leftOut) == maxTools:
				return fmt.Errorf("the server has more than %d tools", maxTools)
			case s.opts.Include != nil && !s.opts.Include(def.Name):
				continue
			}

			tool, err := s.tool(def)
			if err == nil && names[tool.Definition().Name] {
				err = toolError(def.Name, ErrToolName)
			}
			if err != nil {
				leftOut = append(leftOut, err)
				s.opts.Log.WarnContext(ctx, "a tool of an MCP server is left out", "server", s.opts.Name, "error", err)
				continue
			}
			names[tool.Definition().Name] = true
			tools = append(tools, tool)
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools, s.leftOut = tools, leftOut
	return nil
}

// Close ends the connection; calls under way fail. A program started by [Command] has 5 seconds to end, and is killed
// then. Close returns the error of the connection's end. Closing again does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	session := s.session
	s.session, s.closed = nil, true
	s.mu.Unlock()

	var err error
	if session != nil {
		err = session.Close()
	}
	s.waits.Wait()
	return err
}

// forget drops a session that a call found lost before its end was noticed.
func (s *Server) forget(session *sdk.ClientSession) {
	s.mu.Lock()
	found := s.session == session
	if found {
		s.session = nil
	}
	s.mu.Unlock()
	if found {
		_ = session.Close()
	}
}

// toolError names the tool that an error is about.
func toolError(name string, err error) error {
	return fmt.Errorf("tool %q: %w", content.Clean(name), err)
}
