package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/schema"
	"github.com/plait-dev/plait/internal/unwrap"
)

// Tool is a tool with a function. [Func] and [NewTool] make one. A program's own type needs these two methods.
//
// It may have further methods. The values of Timeout, Mode, Effect and Deferred are kept until the tools of the run
// change. Unwrap may be called at any time.
//
//   - Err() error: the reason why it cannot be declared. dag.DAG.Tools returns it.
//   - Timeout() time.Duration: how long a call may take, as with [WithTimeout].
//   - Mode() Mode: whether it may run beside others, as with [WithMode].
//   - Effect() Effect: the effect of executing a call twice, as with [WithEffect].
//   - Deferred() bool: whether its calls are executed outside the run, as with [DeferredTool].
//   - Owner() any: the owner of the tool, such as the connection to an MCP server; nil is the program. A tool of
//     somebody else never replaces another owner's: a run with both is refused ([ErrOwner]).
//   - Unwrap() Tool: the wrapped tool. Its further methods are used in place of missing ones.
type Tool interface {
	// Definition returns the declaration for the model. It returns the same at every call.
	Definition() content.Tool
	// Call executes one call. It is called concurrently. Input is a valid JSON object. An error, a panic or
	// runtime.Goexit becomes an error result for the model. Call should return soon after ctx ends.
	Call(ctx context.Context, call Call) (Result, error)
}

// Call is a tool call for tools, hooks and observers: the name of the tool, its arguments as a JSON object, and its
// index among the calls of its message. It is the type of [dag.DAG.OpenCalls].
type Call = dag.Call

// NewTool returns a tool with the given definition and function, for definitions known only at run time. Arguments are
// checked against def's schema before fn is called. An error in the schema is the tool's Err.
func NewTool(def content.Tool, fn func(context.Context, Call) (Result, error)) Tool {
	b := &bound{def: def, run: fn}
	check, err := schema.Parse(def.Schema)
	if fn == nil {
		err = errors.New("its function is nil")
	}
	if b.check = check; err != nil {
		b.err = toolError(def.Name, err)
	}
	return b
}

// bound is a definition with a function. Its Call has two steps, which a run takes one by one: prepare and run.
type bound struct {
	def   content.Tool
	run   func(context.Context, Call) (Result, error) // called with arguments that prepare has accepted
	check *schema.Schema                              // of the arguments
	nulls bool                                        // a member that is null and not required counts as absent
	err   error                                       // why the tool cannot be declared; nil for a valid one
}

func (b *bound) Definition() content.Tool { return b.def }

func (b *bound) Err() error { return b.err }

func (b *bound) Call(ctx context.Context, call Call) (Result, error) {
	call.Input = orEmpty(call.Input)
	if err := b.prepare(ctx, call.Input); err != nil {
		return Result{}, err
	}
	return b.run(ctx, call)
}

// prepare checks the arguments of a call. The error is an *argumentError, or that of ctx.
func (b *bound) prepare(ctx context.Context, input content.JSON) error {
	if b.err != nil {
		return b.err
	}
	check := schema.Check{Nulls: b.nulls, Unknown: "is not an argument of this tool"}
	problems, err := b.check.Problems(ctx, input, check)
	if err != nil || len(problems) == 0 {
		return err
	}
	return &argumentError{b.def.Name, problems, input}
}

// inSteps is a tool of this package, whose Call may be taken in steps. A program's own wrapper is none: its Call must be
// called as a whole.
type inSteps interface{ steps() *bound }

func (b *bound) steps() *bound { return b }

// toolError returns the Err of the tool with that name.
func toolError(name string, err error) error {
	return fmt.Errorf("%w: %s: %w", content.ErrTool, name, err)
}

// WithTimeout returns t with a timeout of its own in place of the [Agent]'s. If d is 0 or less, there is no timeout. If
// t is nil, the tool's Err is set.
func WithTimeout(t Tool, d time.Duration) Tool { return timed{wrapped{t}, d} }

type timed struct {
	wrapped
	timeout time.Duration
}

func (t timed) Timeout() time.Duration { return t.timeout }

// wrapped is a tool with something to add.
type wrapped struct{ Tool }

func (w wrapped) Unwrap() Tool { return w.Tool }

func (w wrapped) steps() *bound {
	if t, ok := w.Tool.(inSteps); ok {
		return t.steps()
	}
	return nil
}

func (w wrapped) Definition() content.Tool {
	if w.Tool == nil {
		return content.Tool{}
	}
	return w.Tool.Definition()
}

func (w wrapped) Err() error {
	if w.Tool == nil {
		return toolError("wrapped", errors.New("the tool is nil"))
	}
	if broken, ok := unwrap.As[interface{ Err() error }, Tool](w.Tool); ok {
		return broken.Err()
	}
	return nil
}

// WithMode returns t with a mode, for the strategy. If t is nil, the tool's Err is set.
func WithMode(t Tool, m Mode) Tool { return moded{wrapped{t}, m} }

type moded struct {
	wrapped
	mode Mode
}

func (m moded) Mode() Mode { return m.mode }

// DeferredTool returns a tool whose calls are executed outside the run. When the model calls it, the run pauses for the
// result: see [Continuation]. Arguments are checked against def's schema first. An error in the schema is the tool's
// Err.
func DeferredTool(def content.Tool) Tool {
	return deferredTool{NewTool(def, func(context.Context, Call) (Result, error) {
		return Result{}, errors.New("the tool is deferred: its calls are executed outside the run")
	}).(*bound)}
}

type deferredTool struct{ *bound }

func (deferredTool) Deferred() bool { return true }

// ownerOf returns the owner of a tool; nil is the program.
func ownerOf(t dag.Tool) any {
	if owned, ok := unwrap.As[owned, Tool](t); ok {
		return owned.Owner()
	}
	return nil
}

type owned interface{ Owner() any }

// checkOwners returns an error if one of the tools belongs to somebody and would replace another owner's: one before
// it, or one that the program itself has given to the conversation. Names that look alike count as one.
func checkOwners(d dag.DAG, tools []dag.Tool) error {
	var owners map[string]any // nil until a tool has an owner
	for i, t := range tools {
		if _, is := unwrap.As[owned, Tool](t); !is && owners == nil {
			continue
		}
		owner := ownerOf(t)
		if owner != nil && owners == nil {
			owners = map[string]any{}
			for _, before := range tools[:i] {
				owners[safetext.Name(before.Definition().Name)] = nil
			}
		}
		if owners == nil {
			continue
		}

		def := t.Definition()
		name := safetext.Name(def.Name)
		before, taken := owners[name]
		if own, bound := d.Tool(def.Name); bound && !taken {
			taken = ownerOf(own) == nil
		}
		if owner != nil && taken && before != owner {
			return fmt.Errorf("executor: the tool %s: %w", def.Name, ErrOwner)
		}
		owners[name] = owner
	}
	return nil
}
