// Package replay executes a recorded conversation again: its tool calls with today's tools, to find what changed ([Tools]),
// or another model with the recorded results ([Recording]).
//
//	calls, err := replay.Tools(ctx, agent, recorded, false, nil)
package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// Call is one tool call of a recorded conversation, executed again.
type Call struct {
	// Message is the assistant's message with the call.
	Message *node.Node
	// Was is the recorded execution, and Is the new one.
	Was, Is node.ToolExecution
	// Same reports whether the two results count as the same; see Tools.
	Same bool
}

// String returns the two results of the call on one line.
func (c Call) String() string {
	shown := func(e node.ToolExecution) string {
		text := strings.Join(strings.Fields(e.Result.Text()), " ")
		if e.IsError {
			text = "✗ " + text
		}
		return safetext.Escape(text, 200)
	}
	text := safetext.Escape(c.Was.Tool, 100) + safetext.Escape(string(c.Was.Input), 200) + " → " + shown(c.Is)
	if !c.Same {
		text += ", recorded → " + shown(c.Was)
	}
	return text
}

// Tools executes the tool calls of a recorded conversation again, to find changes in their results. It uses the tools of
// the agent and those bound to d. The agent's hooks apply, and its limits apply to each tool phase. No request is sent,
// except by sub-agents.
//
// The function same reports whether a result counts as unchanged. If it is nil, the content and IsError are compared.
// The calls come in the order of d. Calls without a recorded result are left out. With first, Tools stops at the first
// result that differs.
//
// Errors are those of [executor.Agent.ExecuteTools], and an [executor.UnboundError] for a declared tool without a function.
// Beside an error it returns the calls replayed so far.
func Tools(
	ctx context.Context, a executor.Agent, d dag.DAG, first bool, same func(was, is node.ToolExecution) bool,
) ([]Call, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	if same == nil {
		same = sameResult
	}

	var all []Call
	for _, closing := range d.Nodes() {
		// The parents of a results message are the executions, and their one parent is the message with the calls.
		recorded := executionsBefore(closing)
		if len(recorded) == 0 || len(closing.Parent(0).Parents()) != 1 {
			continue
		}

		// Execute the calls again, in the conversation that ends with their message.
		message := closing.Parent(0).Parent(0)
		at := d.WithHeads(message)
		if err := unbound(a, at); err != nil {
			return all, err
		}
		again, err := a.ExecuteTools(ctx, at)
		if err != nil {
			return all, err
		}

		// The agent's declarations may follow the results.
		now := executionsBefore(lineage.LastMessage(again.Head()))
		for _, was := range recorded {
			i := slices.IndexFunc(now, func(is node.ToolExecution) bool { return is.Index == was.Index })
			if i < 0 {
				continue
			}
			c := Call{Message: message, Was: was, Is: now[i], Same: same(was, now[i])}
			if all = append(all, c); first && !c.Same {
				return all, nil
			}
		}
	}
	return all, nil
}

// unbound returns an error if the conversation declares tools that have no function, there or in the agent.
func unbound(a executor.Agent, d dag.DAG) error {
	if a.Handler != nil {
		return nil
	}
	var names []string
	for _, def := range shared.Of(&d).Tools {
		_, bound := d.Tool(def.Name)
		own := slices.ContainsFunc(a.Tools, func(t dag.Tool) bool { return t.Definition().Name == def.Name })
		if !def.Server() && !bound && !own {
			names = append(names, def.Name)
		}
	}
	if len(names) > 0 {
		return &executor.UnboundError{Names: names}
	}
	return nil
}

func sameResult(was, is node.ToolExecution) bool {
	return was.IsError == is.IsError && was.Result.Equal(is.Result)
}

// NotRecordedError reports a call without a result in the recording, and the most similar recorded call.
type NotRecordedError struct {
	Call executor.Call
	// Nearest is the recorded call of the same tool with the most similar arguments, or nil.
	Nearest *node.ToolExecution
}

// Error names both calls.
func (e *NotRecordedError) Error() string {
	text := fmt.Sprintf("the call was not recorded: %s%s", safetext.Escape(e.Call.Name, 100), safetext.Escape(string(e.Call.Input), 300))
	if e.Nearest != nil {
		text += "; the nearest is " + safetext.Escape(e.Nearest.Tool, 100) + safetext.Escape(string(e.Nearest.Input), 300)
	}
	return text
}

// Recording returns the results of a recorded conversation's tool calls, to try another model with the same tools. Make
// it with [NewRecording], and use it as [executor.Agent.Handler]:
//
//	tape := replay.NewRecording(d)
//	again, err := executor.Agent{Provider: other, Handler: tape.Handle}.Run(ctx, tape.Start())
//	fmt.Println(dag.Diff(d, again), tape.Missed())
//
// A call is identified by its tool and its arguments; the order of their members does not matter. If a call was
// recorded several times, each use returns the next result. The last result is returned again and again. A Recording is
// safe for concurrent use. The zero value holds no results.
type Recording struct {
	start dag.DAG

	mu     sync.Mutex                      // guards the fields below
	takes  map[string][]node.ToolExecution // the results not used yet, at least one, by recordedAs
	calls  []node.ToolExecution            // all recorded calls
	missed []*NotRecordedError
}

// NewRecording returns the results that were recorded in d.
func NewRecording(d dag.DAG) *Recording {
	r := &Recording{start: d, takes: map[string][]node.ToolExecution{}}
	begun := false
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Role == content.Assistant && !begun {
			r.start, begun = d.WithHeads(n.Parents()...), true
		}
		if e, ok := n.Payload().(node.ToolExecution); ok && !e.State.Unfinished() {
			key := recordedAs(e.Tool, e.Input)
			r.takes[key] = append(r.takes[key], e)
			r.calls = append(r.calls, e)
		}
	}
	return r
}

func recordedAs(tool string, input content.JSON) string { return tool + "\x00" + canonical(input) }

// canonical returns arguments in a form independent of the order of members, and {} for none.
func canonical(input content.JSON) string {
	if text := strings.TrimSpace(string(input)); text == "" || text == "null" {
		return "{}"
	}
	return string(input.Canonical())
}

// Start returns the conversation as it was before the first answer of a model.
func (r *Recording) Start() dag.DAG { return r.start }

// Handle returns the recorded result of a call. If there is none, the error is a *[NotRecordedError].
func (r *Recording) Handle(_ context.Context, call executor.Call) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	key := recordedAs(call.Name, call.Input)
	takes := r.takes[key]
	if len(takes) == 0 {
		miss := &NotRecordedError{Call: call, Nearest: r.nearest(call)}
		r.missed = append(r.missed, miss)
		return nil, miss
	}

	// Keep the last result, for a model that repeats a call more often than it was recorded.
	if len(takes) > 1 {
		r.takes[key] = takes[1:]
	}
	return executor.Result{Content: takes[0].Result, IsError: takes[0].IsError}, nil
}

// Missed returns the calls that had no recorded result, in the order in which they were executed. Calls that run at the
// same time come in any order.
func (r *Recording) Missed() []*NotRecordedError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*NotRecordedError(nil), r.missed...)
}

// nearest returns the recorded call of the same tool with the most similar arguments, measured by the length of their
// common beginning and end.
func (r *Recording) nearest(call executor.Call) *node.ToolExecution {
	var best *node.ToolExecution
	longest := -1
	input := canonical(call.Input)
	for i := range r.calls {
		e := &r.calls[i]
		if e.Tool != call.Name {
			continue
		}
		if n := inCommon(input, canonical(e.Input)); n > longest {
			best, longest = e, n
		}
	}
	return best
}

// inCommon returns the number of bytes in the common beginning and end of two texts.
func inCommon(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	a, b = a[n:], b[n:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
		n++
	}
	return n
}

// executionsBefore returns the executions before the results message n.
func executionsBefore(n *node.Node) []node.ToolExecution {
	list := make([]node.ToolExecution, 0, n.NumParents())
	for i := range n.NumParents() {
		if e, ok := n.Parent(i).Payload().(node.ToolExecution); ok {
			list = append(list, e)
		}
	}
	return list
}
