package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/dag"
)

// errClosed: the Server was closed by [Server.Close].
var errClosed = errors.New("mcp: the server is closed")

// errLost: the connection was lost during a call. Whether the call was executed is unknown.
var errLost = errors.New("the connection to the tool's server was lost during the call: its outcome is unknown")

// Options are the settings of [Connect]. The zero value is ready to use.
type Options struct {
	// Name is a prefix for the names of the tools: with "github", create_issue becomes github_create_issue. Set it for
	// servers whose tools may have equal names: a run is refused if a server's tool has the name of another server's, or
	// of one before it that is the program's own (executor.ErrOwner). Defaults to no prefix.
	Name string
	// Include selects tools by the server's name for them. Defaults to all.
	Include func(tool string) bool
	// Limits are limits for what the server may send.
	Limits Limits
	// TrustHints relies on the server's hints about repeated calls (executor.WithEffect): readOnly becomes
	// executor.EffectReadOnly, and idempotent executor.EffectIdempotent. Such a call is executed again if the
	// connection is lost during it, or if the program ends. Defaults to false: no call is repeated automatically.
	TrustHints bool
	// Timeout is how long it may take to connect and to list the tools. Defaults to 30 seconds.
	Timeout time.Duration

	// Elicit answers the server's questions to a person (elicitation). Defaults to none: elicitation is not
	// offered to the server.
	Elicit func(ctx context.Context, question *sdk.ElicitParams) (*sdk.ElicitResult, error)

	// Log gets a warning for each tool that is left out, for each change that the Hook makes in a run, and for each lost
	// connection. Defaults to no log.
	Log *slog.Logger
}

// Server is a connection to an MCP server, and its tools. If the connection is lost, the next call makes a new one. A
// Server is safe for concurrent use.
type Server struct {
	dial   Dial
	opts   Options
	client *sdk.Client
	calls  calls

	// connecting is a lock for connecting and listing. It is a channel, so that a waiting caller can give up.
	connecting chan struct{}
	subscribed chan struct{} // has a token when the server has acknowledged that it announces changes

	mu      sync.Mutex  // guards the fields below
	current *connection // nil before the first connection and after one was lost
	tools   []*owned    // in the last list, with the definitions of the first
	leftOut []error
	known   map[string]*owned // each tool that was ever in tools, with its last definition there, by name
	changes int               // how often the server has announced that its list changed
	listed  int               // the value of changes when the list was read last
	closed  bool
	waits   sync.WaitGroup // for the goroutines that wait for the end of connections
}

// connection is a session with a context for its calls. Closing a session waits for its calls; end cancels them.
type connection struct {
	*sdk.ClientSession
	ctx context.Context
	end context.CancelCauseFunc
}

// Connect connects to a server and lists its tools. The context is only for connecting. Close the connection with
// [Server.Close]. Errors: those of dial, of the SDK and of the context.
func Connect(ctx context.Context, dial Dial, opts *Options) (*Server, error) {
	if dial == nil {
		return nil, errors.New("mcp: the Dial is nil")
	}
	s := &Server{dial: dial, connecting: make(chan struct{}, 1), subscribed: make(chan struct{}, 1)}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Timeout <= 0 {
		s.opts.Timeout = 30 * time.Second
	}
	s.opts.Limits = s.opts.Limits.withDefaults()
	s.calls.limits = s.opts.Limits
	if s.opts.Log == nil {
		s.opts.Log = slog.New(slog.DiscardHandler)
	}
	s.client = sdk.NewClient(&sdk.Implementation{Name: "plait", Version: "v0"}, s.clientOptions())
	s.client.AddReceivingMiddleware(s.noteSubscription)

	if _, err := s.connected(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) clientOptions() *sdk.ClientOptions {
	o := &sdk.ClientOptions{
		// Only count the changes: refresh reads the list after the next turn.
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changes++
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			s.calls.progress(r.Params)
		},
		Capabilities: &sdk.ClientCapabilities{}, // no roots: the server's folders are its own settings
	}
	if s.opts.Elicit != nil {
		o.ElicitationHandler = s.elicit
	}
	return o
}

// noteSubscription notes that the server has begun to announce changes.
func (s *Server) noteSubscription(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if method == "notifications/subscriptions/acknowledged" {
			select {
			case s.subscribed <- struct{}{}:
			default:
			}
		}
		return next(ctx, method, r)
	}
}

// awaitSubscription waits until the server announces changes: one between the list and this moment would be missed. From
// version 2026-07-28 of the protocol on, a server does so when it has acknowledged it. One that does not is not waited
// for any longer.
func (s *Server) awaitSubscription(ctx context.Context, session *sdk.ClientSession) {
	const patience = time.Second
	r := session.InitializeResult()
	if r == nil || r.ProtocolVersion < "2026-07-28" || r.Capabilities == nil || r.Capabilities.Tools == nil ||
		!r.Capabilities.Tools.ListChanged {
		return
	}

	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.subscribed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Tools returns the tools in the server's last list that have the definitions of the first one. Names are changed if
// providers do not accept them, and begin with the name of the server (see [Options]).
func (s *Server) Tools() []dag.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	tools := make([]dag.Tool, len(s.tools))
	for i, t := range s.tools {
		tools[i] = t
	}
	return tools
}

// LeftOut returns an error for each tool in the server's last list that is not in [Server.Tools], unless
// [Options.Include] excludes it. It names the tool and the reason: another tool has the name, the tool is new or changed,
// a limit (dag.ErrLimit), or a definition that is not valid (content.ErrTool). Another error reports that the list was cut
// off, with dag.ErrLimit where a limit is the reason.
func (s *Server) LeftOut() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.leftOut)
}

// Session returns the connection, for features that are not translated: prompts, resources, completion. It connects
// again if the connection was lost. Do not close the session.
func (s *Server) Session(ctx context.Context) (*sdk.ClientSession, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	return c.ClientSession, nil
}

// refresh lists the tools again if the server has announced a change.
func (s *Server) refresh(ctx context.Context) {
	s.mu.Lock()
	stale := s.changes != s.listed
	s.mu.Unlock()
	if !stale {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	c, err := s.connected(ctx)
	if err == nil {
		err = s.relist(ctx, c)
	}

	// The tools stay as they are, and the next turn tries again.
	if err != nil {
		s.opts.Log.WarnContext(ctx, "the changed tools of an MCP server cannot be listed", "server", s.opts.Name, "error", err)
	}
}

// relist is list with the connecting lock.
func (s *Server) relist(ctx context.Context, c *connection) error {
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
		return s.list(ctx, c.ClientSession)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connected returns the connection. If there is none, it connects and lists the tools.
func (s *Server) connected(ctx context.Context) (*connection, error) {
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	s.mu.Lock()
	current, closed := s.current, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case current != nil:
		return current, nil
	}

	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, fmt.Errorf("no connection within %v", s.opts.Timeout))
	defer cancel()
	transport, err := s.dial() // a new one, because a transport of the SDK is used once
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	select {
	case <-s.subscribed: // of a connection before
	default:
	}
	var refused atomic.Pointer[originError]
	session, err := s.client.Connect(ctx, s.opts.Limits.guard(transport, &refused), nil)
	if err != nil {
		// The SDK may report that the connection ended, and not the request that was refused.
		if origin := refused.Load(); origin != nil && !errors.Is(err, errOrigin) {
			err = origin
		}
		return nil, fmt.Errorf("mcp: connecting: %w", ended(ctx, err))
	}

	// A server that was started again may have other tools.
	s.awaitSubscription(ctx, session)
	if err := s.list(ctx, session); err != nil {
		return nil, errors.Join(fmt.Errorf("mcp: listing the tools: %w", ended(ctx, err)), session.Close())
	}
	return s.keep(session)
}

// keep makes session the server's connection, until the session ends.
func (s *Server) keep(session *sdk.ClientSession) (*connection, error) {
	c := &connection{ClientSession: session}
	c.ctx, c.end = context.WithCancelCause(context.Background())

	// Close may have been called while this connection was made.
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.current = c
		s.waits.Go(func() { s.drop(c, session.Wait()) })
	}
	s.mu.Unlock()
	if closed {
		return nil, errors.Join(errClosed, session.Close())
	}
	return c, nil
}

// drop ends a lost connection and its calls. The next call makes a new connection.
func (s *Server) drop(c *connection, err error) {
	s.mu.Lock()
	found := s.current == c
	if found {
		s.current = nil
	}
	s.mu.Unlock()
	if found {
		s.opts.Log.Warn("the connection to an MCP server was lost", "server", s.opts.Name, "error", err)
	}
	c.end(errLost)

	// Close waits for the calls to end, so do not wait for Close here.
	go func() { _ = c.Close() }()
}

// retire replaces a connection that may no longer work: its last response was too long, or could not be decoded.
// Further calls make a new connection. Calls under way may still end on the old one.
func (s *Server) retire(c *connection) {
	s.mu.Lock()
	if s.current == c {
		s.current = nil
	}
	s.mu.Unlock()
	go func() { _ = c.Close() }()
}

// ended adds the cause of the context to err if the context has ended.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// Close ends the connection. Calls under way fail. A program started by [Command] has 5 seconds to end
// by itself, gets SIGTERM, and is killed after 5 more seconds. Close returns the error of closing the connection.
// Closing again does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	c := s.current
	s.current, s.closed = nil, true
	s.mu.Unlock()

	var err error
	if c != nil {
		c.end(errClosed)
		err = c.Close()
	}
	s.waits.Wait()
	return err
}
