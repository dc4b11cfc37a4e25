package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
)

// ToolName returns the name of a server's tool in requests to models: the name of the server, an underscore, and the
// name of the tool, or the tool's name alone if the server's is empty.
//
// Providers accept a letter or an underscore first, then letters, digits, "_" and "-", 64 characters in all. A name
// that breaks this rule is cleaned and cut, and gets six digits of a hash at its end. The result does not depend on
// other tools, so a tool has the same name in each run. If two tools of a server get one name, the second one is left
// out ([ErrToolName]).
func ToolName(server, tool string) string {
	const limit, digits = 64, 6
	whole := tool
	if server != "" {
		whole = server + "_" + tool
	}

	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, whole)
	if name == "" || name[0] == '-' || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	if name == whole && len(name) <= limit {
		return name
	}

	// Two different names may be equal after cleaning. The hash distinguishes them.
	sum := sha256.Sum256([]byte(whole))
	return name[:min(len(name), limit-digits-1)] + "_" + hex.EncodeToString(sum[:])[:digits]
}

// tool makes a tool from the server's definition.
func (s *Server) tool(def *sdk.Tool) (executor.Tool, error) {
	schema, err := content.ToJSON(def.InputSchema)
	if err != nil {
		return nil, toolError(def.Name, err)
	}
	description := def.Description
	if description == "" {
		description = def.Title
	}

	// A server may declare wrong hints. They are used only if the program trusts them.
	effect := executor.EffectUnknown
	if hints := def.Annotations; s.opts.TrustHints && hints != nil {
		switch {
		case hints.ReadOnlyHint:
			effect = executor.EffectReadOnly
		case hints.IdempotentHint:
			effect = executor.EffectIdempotent
		}
	}

	made := executor.NewTool(
		content.Tool{Name: ToolName(s.opts.Name, def.Name), Description: safetext.UTF8(description), Schema: schema},
		func(ctx context.Context, call executor.Call) (executor.Result, error) {
			return s.call(ctx, def.Name, call.Input, effect != executor.EffectUnknown)
		},
	)

	// Leave out a tool that cannot be declared: a run with it would be refused.
	if err := made.Definition().Check(); err != nil {
		return nil, toolError(def.Name, err)
	}
	if err := made.(interface{ Err() error }).Err(); err != nil {
		return nil, toolError(def.Name, err)
	}
	return owned{executor.WithEffect(made, effect), s}, nil
}

// owned is a tool of a server.
type owned struct {
	executor.Tool
	server *Server
}

// Unwrap returns the tool with its further methods.
func (o owned) Unwrap() executor.Tool { return o.Tool }

// Err returns nil: the server's method tool has checked the tool already.
func (owned) Err() error { return nil }

// owns reports whether a tool is one of this server, wrapped or not.
func (s *Server) owns(t dag.Tool) bool {
	for {
		if o, ok := t.(owned); ok {
			return o.server == s
		}
		wrapper, ok := t.(interface{ Unwrap() executor.Tool })
		if !ok {
			return false
		}
		t = wrapper.Unwrap()
	}
}

// call calls a tool of the server. If the connection is lost, the call is sent once more, provided that it was not sent
// yet or may be repeated.
func (s *Server) call(ctx context.Context, name string, input content.JSON, repeatable bool) (executor.Result, error) {
	for attempt := 1; ; attempt++ {
		c, err := s.connected(ctx)
		if err != nil {
			return executor.Result{}, err
		}

		// The order matters: an error of sending may be due to the end of the call's or the connection's context.
		answer, err := s.send(ctx, c, name, input)
		unsent := false // the connection was closed before the call was sent
		switch {
		case err == nil:
			return s.result(answer)
		case ctx.Err() != nil:
			return executor.Result{}, context.Cause(ctx)
		case c.ctx.Err() != nil:
			err = context.Cause(c.ctx)
		case lost(err):
			s.drop(c, err)
			unsent = errors.Is(err, sdk.ErrConnectionClosed)
			err = ErrLost
		default:
			if !answered(err) {
				s.retire(c)
			}
			return executor.Result{}, fmt.Errorf("the call of the tool's server failed: %w", err)
		}

		if !repeatable && !unsent || attempt == 2 || !errors.Is(err, ErrLost) {
			return executor.Result{}, err
		}
	}
}

// send makes one attempt at a call. It ends with the context, and with the connection.
func (s *Server) send(ctx context.Context, c *connection, name string, input content.JSON) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()

	params := &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(input)}
	token, done := s.calls.begin(ctx)
	defer done()
	params.SetProgressToken(token)
	return c.CallTool(ctx, params)
}

// lost reports whether an error of a call means that the connection, or the server's session, is gone.
func lost(err error) bool {
	var network net.Error
	return errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, sdk.ErrSessionMissing) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.As(err, &network)
}

// answered reports whether the connection surely works after an error of a call: the server returned the error, or this
// side refused a request of the server.
func answered(err error) bool {
	var refused *jsonrpc.Error
	var own *refusal
	return errors.As(err, &refused) || errors.As(err, &own)
}

// calls tracks the calls under way.
type calls struct {
	mu    sync.Mutex                 // guards the fields below
	last  int                        // the number of the last token
	ctxs  map[string]context.Context // by the token of the call in notifications of progress
	usage content.Usage              // of responses to the server's own requests, until takeUsage
}

func (c *calls) begin(ctx context.Context) (token string, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	token = fmt.Sprint("call-", c.last)
	if c.ctxs == nil {
		c.ctxs = map[string]context.Context{}
	}
	c.ctxs[token] = ctx

	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ctxs, token)
	}
}

// progress passes a notification on to the run. It drops a notification for a call that is over.
func (c *calls) progress(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	ctx := c.ctxs[token]
	c.mu.Unlock()
	if ctx == nil {
		return
	}

	text := safetext.UTF8(p.Message)
	amount := fmt.Sprint(p.Progress)
	if p.Total > 0 {
		amount += fmt.Sprint("/", p.Total)
	}
	if text == "" {
		text = amount
	} else {
		text += " (" + amount + ")"
	}
	_ = executor.Progress(ctx, text) // a text is always a result
}

// spend adds usage for the next result to take.
func (c *calls) spend(u content.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usage = c.usage.Plus(u)
}

// takeUsage returns the usage since the last result.
func (c *calls) takeUsage() content.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.usage
	c.usage = content.Usage{}
	return u
}
