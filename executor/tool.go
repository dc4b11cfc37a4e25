package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/schema"
)

// Tool is a tool that can be executed. [Func] and [NewTool] make one from a function. A program's own type needs these
// two methods.
//
// It may have further methods. What Timeout, Mode, Effect and Deferred return is kept until the tools of the run
// change. Unwrap may be called at any time.
//
//   - Err() error: why it cannot be declared. dag.DAG.Tools returns it.
//   - Timeout() time.Duration: how long a call may take, as with [WithTimeout].
//   - Mode() Mode: whether it may run beside others, as with [WithMode].
//   - Effect() Effect: what a second execution of a call does, as with [WithEffect].
//   - Deferred() bool: whether its calls are executed outside the run, as with [DeferredTool].
//   - Unwrap() Tool: the tool that it wraps, whose further methods then count where it has none of its own.
type Tool interface {
	// Definition returns the declaration that the model gets. It returns the same at every call.
	Definition() content.Tool
	// Call executes one call. It is called concurrently. Input is a valid JSON object. An error, a panic or
	// runtime.Goexit becomes an error result, for the model to read. It should return soon after ctx ends.
	Call(ctx context.Context, call Call) (Result, error)
}

// Call is a tool call as tools, hooks and observers get it: the name of the tool, its arguments as a JSON object, and
// which of the calls of its message it is. It is the type of [dag.DAG.OpenCalls].
type Call = dag.Call

// NewTool returns a tool with the given definition and function, for definitions that are known only at run time.
// Arguments are checked against def's schema before fn is called. A schema that cannot be used is the tool's Err.
func NewTool(def content.Tool, fn func(context.Context, Call) (Result, error)) Tool {
	b := &bound{def: def, fn: fn}
	b.check, b.err = schema.Parse(def.Schema)
	if fn == nil {
		b.err = errors.New("its function is nil")
	}
	return b
}

// bound is a definition with a function.
type bound struct {
	def   content.Tool
	fn    func(context.Context, Call) (Result, error)
	check *schema.Schema
	err   error
}

func (b *bound) Definition() content.Tool { return b.def }

func (b *bound) Err() error { return toolError(b.def.Name, b.err) }

func (b *bound) Call(ctx context.Context, call Call) (Result, error) {
	return callChecked(ctx, b, call)
}

func (b *bound) prepare(input content.JSON) error {
	if b.err != nil {
		return b.Err()
	}
	return verify(b.check, b.def.Name, input, false)
}

func (b *bound) run(ctx context.Context, call Call) (Result, error) { return b.fn(ctx, call) }

// stepped is a tool whose Call checks the arguments first, and that lets the two steps be taken apart.
type stepped interface {
	prepare(input content.JSON) error
	run(ctx context.Context, call Call) (Result, error)
}

func callChecked(ctx context.Context, t stepped, call Call) (Result, error) {
	call.Input = orEmpty(call.Input)
	if err := t.prepare(call.Input); err != nil {
		return Result{}, err
	}
	return t.run(ctx, call)
}

func toolError(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", content.ErrTool, name, err)
}

// WithTimeout returns t with a timeout of its own in place of the [Agent]'s. A d of 0 or less is no timeout at all. A t
// of nil is the tool's Err.
func WithTimeout(t Tool, d time.Duration) Tool { return timed{wrapped{t}, d} }

type timed struct {
	wrapped
	timeout time.Duration
}

func (t timed) Timeout() time.Duration { return t.timeout }

// wrapped is a tool with something to add.
type wrapped struct{ Tool }

func (w wrapped) Unwrap() Tool { return w.Tool }

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
	if broken, ok := as[interface{ Err() error }](w.Tool); ok {
		return broken.Err()
	}
	return nil
}

// WithMode returns t with a mode, which strategies ask for. A t of nil is the tool's Err.
func WithMode(t Tool, m Mode) Tool { return moded{wrapped{t}, m} }

type moded struct {
	wrapped
	mode Mode
}

func (m moded) Mode() Mode { return m.mode }

// DeferredTool returns a tool whose calls are executed outside the run: a run whose model calls it pauses for the
// result. See [Continuation]. Arguments are checked against def's schema first. A schema that cannot be used is the
// tool's Err.
func DeferredTool(def content.Tool) Tool {
	return deferredTool{NewTool(def, func(context.Context, Call) (Result, error) {
		return Result{}, errors.New("the tool is deferred: its calls are executed outside the run")
	}).(*bound)}
}

type deferredTool struct{ *bound }

func (deferredTool) Deferred() bool { return true }

// as finds the further methods T of t, or of the tools that it wraps.
func as[T any](t Tool) (T, bool) {
	for t != nil {
		if found, ok := t.(T); ok {
			return found, true
		}
		wrapper, ok := t.(interface{ Unwrap() Tool })
		if !ok {
			break
		}
		t = wrapper.Unwrap()
	}
	var none T
	return none, false
}
