package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
)

// toolName returns the name of a server's tool in requests to models: the name of the server, an underscore, and the
// name of the tool, or the tool's name alone if the server's is empty.
//
// Providers accept a letter or an underscore first, then letters, digits, "_" and "-", 64 characters in all. A name
// that breaks this rule is cleaned and cut, and gets six digits of a hash at its end. The result does not depend on
// other tools, so a tool has the same name in each run. If two tools of a server get one name, the second one is left
// out.
func toolName(server, tool string) string {
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
func (s *Server) tool(def *sdk.Tool) (*owned, error) {
	schema, err := content.ToJSON(def.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", content.ErrTool, err)
	}
	description := def.Description
	if description == "" {
		description = def.Title
	}

	// The model reads both in every request. A part of a description may say the opposite of the whole, so cut none.
	limits := s.opts.Limits
	if err := cmp.Or(
		over("Description", len(description), limits.Description),
		over("Schema", len(schema), limits.Schema),
		over("SchemaDepth", jsonx.Depth(schema), limits.SchemaDepth),
	); err != nil {
		return nil, err
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

	o := &owned{server: s, name: def.Name, effect: effect, def: content.Tool{
		Name: toolName(s.opts.Name, def.Name), Description: safetext.UTF8(description), Schema: schema,
	}}
	made := executor.NewTool(o.def, func(ctx context.Context, call executor.Call) (executor.Result, error) {
		return s.call(ctx, o, call.Input)
	})
	o.Tool = executor.WithEffect(made, effect)

	// Leave out a tool that cannot be declared: a run with it would be refused.
	if err := o.def.Check(); err != nil {
		return nil, err
	}
	return o, made.(interface{ Err() error }).Err()
}

// call calls a tool of the server. If the connection is lost, the call is sent once more, provided that it was not sent
// yet or may be repeated.
func (s *Server) call(ctx context.Context, o *owned, input content.JSON) (executor.Result, error) {
	repeatable := o.effect != executor.EffectUnknown
	for attempt := 1; ; attempt++ {
		c, err := s.connected(ctx)
		if err != nil {
			return executor.Result{}, err
		}

		// The run may not know yet that the list has changed, or may not follow it. A new connection has a new list.
		if !s.lists(o) {
			return executor.Result{}, errToolWithdrawn
		}

		// The order matters: an error of sending may be due to the end of the call's or the connection's context.
		answer, err := s.send(ctx, c, o.name, input)
		unsent := false // the connection was closed before the call was sent
		switch {
		case err == nil:
			return resultOf(answer)
		case ctx.Err() != nil:
			return executor.Result{}, context.Cause(ctx)
		case c.ctx.Err() != nil:
			err = context.Cause(c.ctx)
		case lost(err):
			s.drop(c, err)
			unsent = errors.Is(err, sdk.ErrConnectionClosed)
			err = errLost
		default:
			if !answered(err) {
				s.retire(c)
			}
			return executor.Result{}, fmt.Errorf("the call of the tool's server failed: %w", err)
		}

		if !repeatable && !unsent || attempt == 2 || !errors.Is(err, errLost) {
			return executor.Result{}, err
		}
	}
}

// lists reports whether a tool is in the server's last list, with this definition.
func (s *Server) lists(o *owned) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.tools, o)
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
	if errors.Is(err, errOrigin) || errors.Is(err, dag.ErrLimit) {
		return false // this side refused what the server sent: asking again would bring the same
	}
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

// refusal is the error of a server's request that this side refused. It does not mean that the connection is lost.
type refusal struct{ error }

func (e *refusal) Unwrap() error { return e.error }

// elicit passes a server's question on to a person.
func (s *Server) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	if err := s.calls.request(); err != nil {
		return nil, &refusal{err}
	}
	response, err := s.opts.Elicit(ctx, r.Params)
	if err != nil {
		return nil, &refusal{err}
	}
	return response, nil
}

// calls tracks the calls under way.
type calls struct {
	limits Limits

	mu       sync.Mutex               // guards the fields below
	last     int                      // the number of the last token
	underWay map[string]*callUnderWay // by the token of the call in notifications of progress
	asked    int                      // the requests of the server itself
}

// callUnderWay passes the progress of a call on to the run. It is guarded by calls.mu.
type callUnderWay struct {
	ctx     context.Context
	passed  int         // the number of updates
	updates chan string // nil before the first one
	ended   chan struct{}
}

func (c *calls) begin(ctx context.Context) (token string, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	token = fmt.Sprint("call-", c.last)
	if c.underWay == nil {
		c.underWay = map[string]*callUnderWay{}
	}
	call := &callUnderWay{ctx: ctx}
	c.underWay[token] = call

	return token, func() {
		c.mu.Lock()
		delete(c.underWay, token)
		updates := call.updates
		c.mu.Unlock()

		// The updates come before the result.
		if updates != nil {
			close(updates)
			<-call.ended
		}
	}
}

// request counts a request of the server itself. It refuses one over the limit.
func (c *calls) request() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if allowed := c.limits.Requests * max(c.last, 1); c.asked > allowed {
		return &limitError{"Requests", c.limits.Requests}
	}
	return nil
}

// progress passes a notification on to the run. It drops a notification for a call that is over, and one over the
// limit. It must not wait for the run: the SDK keeps what the server sends meanwhile.
func (c *calls) progress(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.underWay[token]
	if call == nil || call.passed == c.limits.Progress {
		return
	}

	const longest = 4 << 10
	text := safetext.UTF8(safetext.Cut(p.Message, longest))
	amount := fmt.Sprint(p.Progress)
	if p.Total > 0 {
		amount += fmt.Sprint("/", p.Total)
	}
	if text == "" {
		text = amount
	} else {
		text += " (" + amount + ")"
	}

	if call.updates == nil {
		const held = 16
		call.updates, call.ended = make(chan string, held), make(chan struct{})
		go func() {
			defer close(call.ended)
			for text := range call.updates {
				_ = executor.Progress(call.ctx, text) // a text is always a result
			}
		}()
	}
	select {
	case call.updates <- text:
		call.passed++
	default:
	}
}
