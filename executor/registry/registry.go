// Package registry executes tool calls one at a time, for programs with a loop of their own.
//
//	var tools registry.Registry
//	err := tools.Register(weather)
//	record := tools.Execute(ctx, "get_weather", `{"city":"Tokyo"}`)
//	fmt.Println(record.Success, record.Output)
//
// # Concurrency
//
// A [Registry] is safe for concurrent use. Its tools must be safe for concurrent use too.
//
// # Errors
//
// A failed call is a [Record] with Success false, never a Go error. An error of Register is about two tools of one
// name, holds content.ErrTool, or is the error of a tool's own Err method.
package registry

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Registry executes tool calls one at a time, for programs with a loop of their own. Only registered tools can be
// called. A call is executed as by [executor.Agent.ExecuteTools]: its arguments are checked, it has a timeout, and
// panics are caught.
//
// The zero value is ready to use. A Registry is safe for concurrent use, and must not be copied. Set the fields before
// the first use.
type Registry struct {
	// Timeout is the time limit of a call; [executor.WithTimeout] sets it for one tool. A negative value means no
	// limit. Defaults to 30 seconds.
	Timeout time.Duration
	// Log receives a warning for each call of a tool that is not registered. The warning has the tool's name, but not
	// the arguments, because they may hold secrets. Defaults to slog.Default().
	Log *slog.Logger

	mu     sync.RWMutex   // guards list and byName
	list   []registered   // in the order of registration
	byName map[string]int // indexes in list
}

type registered struct {
	tool executor.Tool
	def  content.Tool
}

// Register adds tools: all of them, or none if one is refused. Errors:
//
//   - content.ErrTool: a tool is nil, its definition is not valid, or its provider runs it itself.
//   - The error of a tool's own Err method.
//   - An error with the name: a tool is registered already, or is twice among tools.
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

// add appends all of fresh, or nothing if a name is not unique. r.mu must be held.
func (r *Registry) add(fresh []registered) error {
	seen := make(map[string]bool, len(fresh))
	for _, f := range fresh {
		if _, has := r.byName[f.def.Name]; has || seen[f.def.Name] {
			return fmt.Errorf("tool already registered: %s", f.def.Name)
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

// registration checks tool i, and returns it with its definition.
func registration(i int, t executor.Tool) (made registered, err error) {
	if t == nil {
		return made, fmt.Errorf("%w: tool %d is nil", content.ErrTool, i)
	}
	defer func() {
		if v := recover(); v != nil { // a nil pointer in an interface, most likely
			err = fmt.Errorf("%w: tool %d panicked in its Definition method: %v", content.ErrTool, i, v)
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

// toolErr returns the error of the tool's Err method. If the tool has none, the one of the tool it wraps counts.
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

// Tools returns the tools in the order of registration, for [executor.Agent].Tools and dag.DAG.Tools.
func (r *Registry) Tools() []dag.Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()

	tools := make([]dag.Tool, len(r.list))
	for i, f := range r.list {
		tools[i] = f.tool
	}
	return tools
}

// Definitions returns the definitions sent to models, in the order of registration.
func (r *Registry) Definitions() []content.Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()

	defs := make([]content.Tool, len(r.list))
	for i, f := range r.list {
		defs[i] = f.def
	}
	return defs
}

// lookup returns the tool of exactly that name: case matters, and space is not trimmed. If there is none, the text of the
// error begins with "Tool not registered: " and the name. The name in the text is cut after 100 bytes, and characters
// that are not printable are escaped.
func (r *Registry) lookup(name string) (executor.Tool, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()

	i, has := r.byName[name]
	if !has {
		//lint:ignore ST1005 programs that match this text have it with a capital letter
		return nil, fmt.Errorf("Tool not registered: %s (only registered tools can be called)",
			safetext.Escape(name, maxName))
	}
	return r.list[i].tool, nil
}

// Execute executes one call. Every failure is a failed [Record]; Execute never panics. A call of a tool that is not
// registered is blocked and logged.
//
// args holds the arguments: nil for none, JSON as a content.JSON or a string, or any other value, encoded by
// content.ToJSON. The result must be a JSON object, valid according to content.JSON.Valid. Otherwise
// the tool is not called.
//
// Execute returns when the tool does. It waits for a tool that ignores the end of its context as long as
// [executor.Agent].Grace defines, and then abandons it. The Record's Latency does not include this wait.
func (r *Registry) Execute(ctx context.Context, name string, args any) Record {
	return r.execute(ctx, executor.Call{Name: name}, func() (content.JSON, error) { return arguments(args) })
}

// ExecuteCall is Execute for a call in the form of the Chat Completions API:
//
//	{"id":…,"function":{"name":…,"arguments":…}}
//
// Only the name is required. Arguments are a string that holds a JSON object, or the object itself; without them, with an
// empty string and with null they are {}. Further members are ignored. The call must be valid according to
// content.JSON.Valid, which refuses a duplicate name in an object. Anything else is a failed [Record], and no tool is
// called. For calls of other APIs, decode the name and the arguments, and call Execute.
func (r *Registry) ExecuteCall(ctx context.Context, call []byte) Record {
	parsed, err := parseCall(call)
	if err != nil && parsed.Name == "" {
		return failedRecord("", err.Error())
	}

	// A known name is looked up first, also beside bad arguments: a tool that is not registered is logged.
	return r.execute(ctx, parsed, func() (content.JSON, error) { return parsed.Input, err })
}

// execute executes the call with the input returned by the function. The function is called only for a registered tool.
func (r *Registry) execute(ctx context.Context, call executor.Call, input func() (content.JSON, error)) (rec Record) {
	defer func() {
		if v := recover(); v != nil { // outside the tool: encoding the arguments, a definition, the logger
			rec = failedRecord(call.Name,
				fmt.Sprintf("The call of tool %s panicked: %v", safetext.Quote(call.Name, maxName), v))
		}
	}()
	if ctx == nil {
		ctx = context.Background()
	}

	tool, err := r.lookup(call.Name)
	if err != nil {
		return r.block(ctx, call.Name, err)
	}

	if call.Input, err = input(); err != nil {
		return failedRecord(call.Name, err.Error())
	}
	return r.run(ctx, tool, call)
}

// block logs a call of a tool that is not registered, and returns its record.
func (r *Registry) block(ctx context.Context, name string, err error) Record {
	log := r.Log
	if log == nil {
		log = slog.Default()
	}
	log.WarnContext(ctx, "blocked a call of an unregistered tool",
		slog.String("tool", safetext.Escape(name, maxName)))
	return failedRecord(name, err.Error())
}

// run executes the call in a conversation with no other content.
func (r *Registry) run(ctx context.Context, tool executor.Tool, call executor.Call) Record {
	d := dag.New().WithSource(node.Source{Now: steady()}).Tools(tool).
		Assistant("", content.ToolUse{ID: call.ID, Name: call.Name, Input: call.Input})
	d, err := executor.Agent{ToolTimeout: r.Timeout, Log: r.Log}.ExecuteTools(ctx, d)

	for _, n := range slices.Backward(d.Nodes()) {
		if done, ok := n.Payload().(node.ToolExecution); ok && !done.State.Unfinished() {
			return recordOf(call.Name, done)
		}
	}
	return failedRecord(call.Name, fmt.Sprint("The call has no result: ", err))
}

// steady returns a clock that does not jump when the system's clock is set, so that no latency is negative.
func steady() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began)) }
}

// arguments converts the arguments given to Execute to a JSON object.
func arguments(args any) (input content.JSON, err error) {
	switch a := args.(type) {
	case content.JSON:
		input = a
	case string:
		input = content.JSON(a)
	default:
		if input, err = content.ToJSON(args); err != nil {
			return "", fmt.Errorf("the arguments cannot be encoded: %w", err)
		}
	}
	if input, err = object(input); err != nil {
		return "", fmt.Errorf("the arguments are %w", err)
	}
	return input, nil
}

// maxName is the limit on the bytes of a tool's name in logs and errors.
const maxName = 100
