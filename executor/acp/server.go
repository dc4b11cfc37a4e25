package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/internal/front"
	"github.com/plait-dev/plait/store"
)

// Options are the options of [Serve].
type Options struct {
	// Store keeps the sessions, one conversation or head of a conversation each. Required.
	Store *store.Store
	// Prefix selects the conversations that the client may list, load and delete: those with keys that begin with it. The
	// ID of a session is the rest of the key. Defaults to all of the store.
	Prefix string
	// Sessions is how many sessions may be open at once. Defaults to 100.
	Sessions int

	// Modes are the ways of working that the client offers to its user, such as one that asks before each call. The first
	// one is in effect at first. Defaults to none.
	Modes []Choice
	// Models are the models that the client offers to its user. The first one is in effect at first. Defaults to none:
	// the agent's own.
	Models []Choice

	// View returns how the client shows a call, apart from the calls of this package's own tools. Defaults to the name of
	// the tool and the arguments.
	View func(call executor.Call) View
	// MCP are the options for MCP servers that the client names; their tools have the name of the server as a prefix. It
	// starts programs that the client names: set it for clients that may start programs here, such as an editor of the
	// same user. Defaults to refusing sessions with MCP servers.
	MCP *mcp.Options
	// Log gets the error of each run that fails. Defaults to none.
	Log *slog.Logger
}

// Choice is a mode or a model.
type Choice struct {
	// ID is required, and unique among the choices of its kind. That of a model is stored in the conversation. A mode is
	// not, because it may allow calls: a session is loaded with the first one.
	ID string
	// Name is for the user. Defaults to the ID.
	Name string
	// Description is for the user. Defaults to none.
	Description string
	// Agent returns the agent with this choice. Defaults to the agent as it is.
	Agent func(executor.Agent) executor.Agent
}

// View is how a client shows a call.
type View struct {
	// Title describes the call for the user. Defaults to the name of the tool.
	Title string
	// Kind selects a sign for the call. Defaults to sdk.ToolKindOther.
	Kind sdk.ToolKind
	// Locations are the files that the call is about.
	Locations []sdk.ToolCallLocation
	// Content is shown before there is a result, such as a diff (sdk.ToolDiffContent).
	Content []sdk.ToolCallContent
}

// Serve runs an agent for one client until the client ends the connection, or ctx ends. Then the runs under way are
// cancelled; each step that was saved is in the store. in and out are closed at the end.
//
// The error is nil if the client has ended the connection. Otherwise it has the cause of ctx in its chain, or names what
// the client has sent that is no message.
func Serve(ctx context.Context, agent executor.Agent, in io.ReadCloser, out io.WriteCloser, o *Options) error {
	s := &server{agent: agent, sessions: map[string]*session{}}
	if o != nil {
		s.Options = *o
	}
	if s.Store == nil {
		return errors.New("acp: Serve needs Options.Store")
	}
	if s.Sessions <= 0 {
		s.Sessions = 100
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}

	s.conn = newConn(s.begin)
	err := s.conn.run(ctx, in, out)
	for _, open := range s.sessions {
		open.end()
	}
	return err
}

// server serves one client.
type server struct {
	Options
	agent  executor.Agent
	conn   *conn
	client *hello // nil before the client has sent it; written by begin alone

	mu       sync.Mutex
	sessions map[string]*session // those that are open, by ID
}

// hello is what is used of the first request. Newer clients send more, in forms that the SDK may refuse.
type hello struct {
	Capabilities capabilities `json:"clientCapabilities"`
	Info         struct {
		Name string `json:"name"`
	} `json:"clientInfo"`
}

// capabilities are what the client can do for the agent.
type capabilities struct {
	Fs       sdk.FileSystemCapabilities `json:"fs"`
	Terminal bool                       `json:"terminal"`
}

// begin implements handler.
func (s *server) begin(ctx context.Context, method string, params json.RawMessage) func() (any, error) {
	switch {
	case method == sdk.AgentMethodInitialize:
		response, err := s.initialize(params)
		return func() (any, error) { return response, err }
	case s.client == nil:
		return refuse(invalid("send initialize first"))
	}

	switch method {
	case sdk.AgentMethodAuthenticate:
		return do(ctx, params, func(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
			return sdk.AuthenticateResponse{}, nil // there are no methods to choose from
		})
	case sdk.AgentMethodSessionNew:
		return do(ctx, params, s.newSession)
	case sdk.AgentMethodSessionLoad:
		return do(ctx, params, s.load)
	case sdk.AgentMethodSessionResume:
		return do(ctx, params, s.resume)
	case sdk.AgentMethodSessionFork:
		return do(ctx, params, s.fork)
	case sdk.AgentMethodSessionList:
		return do(ctx, params, s.list)
	case sdk.AgentMethodSessionClose:
		return do(ctx, params, s.closeSession)
	case methodDelete:
		return do(ctx, params, s.delete)
	case sdk.AgentMethodSessionSetMode:
		return do(ctx, params, s.setMode)
	case sdk.AgentMethodSessionSetConfigOption:
		return do(ctx, params, s.setOption)
	case sdk.AgentMethodSessionPrompt:
		return s.prompt(ctx, params)
	case sdk.AgentMethodSessionCancel:
		return s.cancel(params)
	}
	return refuse(sdk.NewMethodNotFound(method))
}

// initialize answers with what the agent can do. Whatever version the client asks for, the answer is version 1.
func (s *server) initialize(params json.RawMessage) (any, error) {
	request, err := decode[hello](params)
	if err != nil {
		return nil, err
	}
	if s.client != nil {
		return nil, invalid("initialize was sent before")
	}
	s.client = &request

	// The SDK's own type does not know that sessions can be deleted.
	sessions := map[string]any{}
	for _, name := range []string{"list", "resume", "close", "fork", "delete"} {
		sessions[name] = struct{}{}
	}
	return map[string]any{
		"protocolVersion": sdk.ProtocolVersionNumber,
		"agentCapabilities": map[string]any{
			"loadSession":         true,
			"promptCapabilities":  sdk.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
			"mcpCapabilities":     sdk.McpCapabilities{Http: s.MCP != nil, Sse: s.MCP != nil},
			"sessionCapabilities": sessions,
		},
		"agentInfo":   sdk.Implementation{Name: cmp.Or(s.agent.Name, "plait"), Version: cmp.Or(s.agent.Version, "v0")},
		"authMethods": []any{},
	}, nil
}

// session returns an open session.
func (s *server) session(id sdk.SessionId) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.sessions[string(id)]; open != nil {
		return open, nil
	}
	return nil, errNoSession
}

// errNoSession is the protocol's error for something that does not exist.
var errNoSession = &sdk.RequestError{Code: -32002, Message: "the session is not open: load or resume it"}

// errCancelled is the cause of the end of a run that the client has cancelled.
var errCancelled = errors.New("cancelled by the client")

// errorOf returns an error of a request for the client. The text of an unknown error may hold private data.
func errorOf(err error) *sdk.RequestError {
	var request *sdk.RequestError
	if errors.As(err, &request) {
		return request
	}
	if errors.Is(err, store.ErrName) || errors.Is(err, store.ErrNotStored) && !errors.Is(err, store.ErrRecord) {
		return &sdk.RequestError{Code: errNoSession.Code, Message: "there is no session with this ID"}
	}
	return &sdk.RequestError{Code: -32603, Message: front.Kind(err)}
}

// choice returns the choice with an ID.
func choice(all []Choice, id string) (Choice, bool) {
	i := slices.IndexFunc(all, func(c Choice) bool { return c.ID == id })
	if i < 0 {
		return Choice{}, false
	}
	return all[i], true
}
