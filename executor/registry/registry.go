// Package registry executes tool calls one at a time, for programs that have a loop of their own. [ParseCall] reads a
// call in any of the shapes in which providers write one.
//
//	var tools registry.Registry
//	err := tools.Register(weather)
//	record := tools.ExecuteCall(ctx, []byte(`{"type":"tool_use","name":"get_weather","input":{"city":"Tokyo"}}`))
//	fmt.Println(record.Success, record.Output)
//
// # Concurrency
//
// A [Registry] is safe for concurrent use, and so must be its tools.
//
// # Errors
//
// A call that fails is a [Record] with Success false, never a Go error. Errors of Register and Lookup hold
// [ErrRegistered], [ErrNotRegistered] or content.ErrTool; those of ParseCall are a *[CallError].
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Errors of a [Registry].
var (
	// ErrRegistered: a tool of that name is registered already.
	ErrRegistered = errors.New("tool already registered")
	// ErrNotRegistered: no tool of that name is registered. The text of an error about it begins with these words, a
	// colon and the name.
	//
	//lint:ignore ST1005 programs that match this text have it with a capital letter
	ErrNotRegistered = errors.New("Tool not registered")
)

// Registry runs tools one call at a time, for programs that have a loop of their own. Only what was registered can be
// called. A call is executed as [executor.Agent.ExecuteTools] executes it: with its arguments checked, a timeout, and
// panics caught.
//
// The zero value is ready to use, and safe for concurrent use. It must not be copied. The fields are set before its
// first use.
type Registry struct {
	// Timeout is how long a call may take; [executor.WithTimeout] sets it for one tool. Negative is no limit. Defaults
	// to 30 seconds.
	Timeout time.Duration
	// Log is told of each call of a tool that is not registered: a warning with the name, and without the arguments,
	// which may hold secrets. Defaults to slog.Default().
	Log *slog.Logger

	mu     sync.RWMutex
	list   []registered
	byName map[string]int // places in list
}

type registered struct {
	tool executor.Tool
	def  content.Tool
}

// Register adds tools: all of them, or none where one is refused. Errors: content.ErrTool for a nil tool and for a
// definition that no API takes or that a provider runs itself, what a tool's own Err returns, and [ErrRegistered] with
// the name of a tool that is there already or twice among tools.
func (r *Registry) Register(tools ...executor.Tool) error {
	fresh := make([]registered, len(tools))
	for i, t := range tools {
		made, err := registration(i, t)
		if err != nil {
			return err
		}
		fresh[i] = made
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.add(fresh)
}

func (r *Registry) add(fresh []registered) error {
	seen := make(map[string]bool, len(fresh))
	for _, f := range fresh {
		if _, has := r.byName[f.def.Name]; has || seen[f.def.Name] {
			return fmt.Errorf("%w: %s", ErrRegistered, f.def.Name)
		}
		seen[f.def.Name] = true
	}
	if r.byName == nil {
		r.byName = map[string]int{}
	}
	for _, f := range fresh {
		r.byName[f.def.Name] = len(r.list)
		r.list = append(r.list, f)
	}
	return nil
}

// registration asks tool i for its definition, and whether it can be called at all.
func registration(i int, t executor.Tool) (made registered, err error) {
	if t == nil {
		return made, fmt.Errorf("%w: tool %d is nil", content.ErrTool, i)
	}
	defer func() {
		if v := recover(); v != nil { // a nil pointer in an interface, most likely
			err = fmt.Errorf("%w: tool %d panicked when it was asked for its definition: %v", content.ErrTool, i, v)
		}
	}()
	if err := toolErr(t); err != nil {
		return made, err
	}
	made = registered{tool: t, def: t.Definition()}
	if made.def.Server() {
		return made, fmt.Errorf("%w: %s: the provider runs it itself", content.ErrTool, made.def.Name)
	}
	return made, made.def.Check()
}

// toolErr returns the error of the tool's own Err method, or of the one that it wraps.
func toolErr(t executor.Tool) error {
	for t != nil {
		if broken, ok := t.(interface{ Err() error }); ok {
			return broken.Err()
		}
		wrapper, ok := t.(interface{ Unwrap() executor.Tool })
		if !ok {
			break
		}
		t = wrapper.Unwrap()
	}
	return nil
}

// Tools returns the tools in the order of their registration, for [executor.Agent].Tools and dag.DAG.Tools.
func (r *Registry) Tools() []dag.Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	tools := make([]dag.Tool, len(r.list))
	for i, f := range r.list {
		tools[i] = f.tool
	}
	return tools
}

// Definitions returns what models are told of the tools, in the order of their registration.
func (r *Registry) Definitions() []content.Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	defs := make([]content.Tool, len(r.list))
	for i, f := range r.list {
		defs[i] = f.def
	}
	return defs
}

// Lookup returns the tool of exactly that name: case counts, and nothing is trimmed. Where there is none, the error's
// chain holds [ErrNotRegistered], and its text begins "Tool not registered: " and the name. In there the name is cut
// after 100 bytes, and what cannot be printed is escaped.
func (r *Registry) Lookup(name string) (executor.Tool, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	i, has := r.byName[name]
	if !has {
		return nil, fmt.Errorf("%w: %s (only registered tools can be called)", ErrNotRegistered, safetext.Escape(name, mostName))
	}
	return r.list[i].tool, nil
}

// Execute executes one call. Whatever goes wrong is a failed [Record]; it never panics. A tool that is not registered
// is not looked for anywhere else: the call is blocked and logged.
//
// args is the arguments: nil for none, JSON as a content.JSON, json.RawMessage, []byte or string, or a value that is
// encoded by content.ToJSON. They must come to a JSON object, by the rules of content.JSON.Valid; without one the tool
// is not called.
//
// It returns when the tool does. A tool that ignores the end of its context is waited for as [executor.Agent].Grace
// says and then left behind; the Record's Latency is without that.
func (r *Registry) Execute(ctx context.Context, name string, args any) Record {
	return r.execute(ctx, executor.Call{Name: name}, func() (content.JSON, string) { return arguments(args) })
}

// ExecuteCall is Execute for a call as a provider wrote it: see [ParseCall]. What ParseCall refuses is a failed
// [Record], and no tool is called.
func (r *Registry) ExecuteCall(ctx context.Context, call []byte) Record {
	parsed, err := ParseCall(call)
	if err == nil {
		return r.execute(ctx, parsed, func() (content.JSON, string) { return parsed.Input, "" })
	}
	var refused *CallError
	if !errors.As(err, &refused) || refused.Tool == "" {
		return failedRecord("", err.Error())
	}
	return r.execute(ctx, executor.Call{Name: refused.Tool}, func() (content.JSON, string) { return "", err.Error() })
}

// execute executes the call with the input that comes, or says why none comes. It is asked for only where there is a
// tool.
func (r *Registry) execute(ctx context.Context, call executor.Call, input func() (content.JSON, string)) (rec Record) {
	defer func() {
		if v := recover(); v != nil { // in what is no part of a call: encoding the arguments, a definition, the logger
			rec = failedRecord(call.Name, fmt.Sprintf("The call of tool %s panicked: %v", safetext.Quote(call.Name, mostName), v))
		}
	}()
	if ctx == nil {
		ctx = context.Background()
	}
	tool, err := r.Lookup(call.Name)
	if err != nil {
		return r.block(ctx, call.Name, err)
	}
	var reason string
	if call.Input, reason = input(); reason != "" {
		return failedRecord(call.Name, reason)
	}
	return r.run(ctx, tool, call)
}

// block answers a call of a tool that is not registered.
func (r *Registry) block(ctx context.Context, name string, err error) Record {
	log := r.Log
	if log == nil {
		log = slog.Default()
	}
	log.WarnContext(ctx, "blocked a call of a tool that is not registered", slog.String("tool", safetext.Escape(name, mostName)))
	return failedRecord(name, err.Error())
}

// run executes the call in a conversation that holds nothing else.
func (r *Registry) run(ctx context.Context, tool executor.Tool, call executor.Call) Record {
	d := dag.New().WithSource(node.Source{Now: steady()}).Tools(tool).
		Assistant("", content.ToolUse{ID: call.ID, Name: call.Name, Input: call.Input})
	d, err := executor.Agent{ToolTimeout: r.Timeout, Log: r.Log}.ExecuteTools(ctx, d)
	for _, n := range slices.Backward(d.Nodes()) {
		if done, ok := n.Payload().(node.ToolExecution); ok {
			return recordOf(call.Name, done)
		}
	}
	return failedRecord(call.Name, fmt.Sprint("The call came to no result: ", err))
}

// steady is a clock that does not jump when the system's clock is set: a call must not take less than no time.
func steady() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began)) }
}

// arguments turns what Execute was given into a JSON object, or says why there is none.
func arguments(args any) (input content.JSON, reason string) {
	input, err := argumentsJSON(args)
	if err != nil {
		return "", "The arguments cannot be encoded: " + err.Error()
	}
	if text := strings.TrimSpace(string(input)); text == "" || text == "null" {
		return "{}", ""
	}
	if reason = notAnObject(input); reason != "" {
		return "", "The arguments are not a JSON object: " + reason
	}
	return input, ""
}

func argumentsJSON(args any) (content.JSON, error) {
	switch a := args.(type) {
	case nil:
		return "", nil
	case content.JSON:
		return a, nil
	case string:
		return content.JSON(a), nil
	case []byte:
		return content.JSON(a), nil
	case json.RawMessage:
		return content.JSON(a), nil
	}
	return content.ToJSON(args)
}

// mostName is how many bytes of a tool's name are shown in logs and errors.
const mostName = 100
