package executor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/schema"
	"github.com/plait-dev/plait/node"
)

// What a model is told of a call that came to nothing.
const (
	textCutOff = "Tool call %q was not executed: the response hit the output token limit, so its arguments may be truncated. " +
		"Re-issue the tool call with complete arguments."
	textSpent      = "Tool call %q was not executed: the run reached its token limit."
	textTimeout    = "Tool exceeded timeout of %s."
	textNotStarted = "Operation cancelled before the tool was started."
	textCancelled  = "Operation cancelled while the tool was running; it may have had effects."
	textPanicked   = "Tool %q panicked: %v"
	textVanished   = "Tool %q ended without a result."
	textFailed     = "Tool %q failed without saying why."
)

// tools carries out the calls that are open at the head, and closes the phase. It returns a reason where the message that
// called them ends the run.
func (r *run) tools() (content.Stop, error) {
	open := r.d.OpenCalls()
	if len(open) == 0 {
		return "", r.closeExecuted()
	}
	stop := r.stopOfHead()
	refusal := r.refusal(stop)
	b := newBatch(r, len(open))
	for _, o := range open {
		call := Call{Name: o.Name, Input: o.Input, Index: o.Index, ID: o.ID}
		if !r.tell(ToolStart{Turn: r.turn, Call: call}) {
			return "", errLeft
		}
		b.add(call, refusal)
		if !b.report() {
			return "", errLeft
		}
	}
	r.totals.ToolCalls += len(open)
	if !b.run() {
		return "", errLeft
	}
	if err := r.append(r.d.CloseTools(b.executions()...)); err != nil {
		return content.StopError, err
	}
	if !r.tell(TurnEnd{Turn: r.turn, DAG: r.d}) {
		return "", errLeft
	}
	if stop == content.StopContext {
		return stop, nil // the next request would be longer still
	}
	return "", nil
}

// closeExecuted closes a phase whose every call was carried out before, and whose results nobody put together.
func (r *run) closeExecuted() error {
	if heads := r.d.Heads(); len(heads) == 0 || !isExecution(heads[0]) {
		return nil
	}
	if closed := r.d.CloseTools(); closed.Err() == nil {
		return r.append(closed)
	}
	return nil // executions of no call: they say what they say
}

func isExecution(n *node.Node) bool {
	_, ok := n.Payload().(node.ToolExecution)
	return ok
}

// stopOfHead is why the model stopped in the message whose calls are open.
func (r *run) stopOfHead() content.Stop {
	for _, h := range r.d.Heads() {
		if isExecution(h) && h.NumParents() == 1 {
			h = h.Parent(0)
		}
		if said, ok := h.Message(); ok {
			return said.Answer.Stop
		}
	}
	return ""
}

// refusal is what every call is answered where none may be carried out; "" where they may.
func (r *run) refusal(stop content.Stop) string {
	switch {
	case stop == content.StopMaxTokens || stop == content.StopContext:
		return textCutOff
	case r.spent():
		return textSpent
	}
	return ""
}

// task is what carries out one call.
type task struct {
	fn      func(context.Context, Call) (Result, error)
	timeout time.Duration // 0 or less: none
}

// prepare returns the task for a call, or an error, for the model, that says why there is none.
func (r *run) prepare(call Call) (t task, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = refused(fmt.Sprintf(textPanicked, call.Name, v))
		}
	}()
	if !call.Input.IsObject() {
		return t, &argumentError{call.Name, []string{"root: " + notObject(call.Input)}, call.Input}
	}
	t.timeout = r.agent.ToolTimeout
	if handle := r.agent.Handler; handle != nil {
		t.fn = handle.call
		return t, nil
	}
	tool, ok := r.bound[call.Name]
	if !ok {
		return t, r.notFound(call.Name)
	}
	if own, ok := as[interface{ Timeout() time.Duration }](tool); ok {
		t.timeout = own.Timeout()
	}
	t.fn = tool.Call
	if s, ok := steps(tool); ok {
		t.fn = s.run
		return t, s.prepare(call.Input)
	}
	return t, nil
}

func notObject(input content.JSON) string {
	var value any
	if err := input.Decode(&value); err != nil {
		return err.Error()
	}
	return "must be object, is " + schema.TypeOf(value)
}

// steps returns the two steps of a tool that no wrapper of a program's own stands before.
func steps(t Tool) (stepped, bool) {
	for {
		wrapped, ok := t.(timed)
		if !ok {
			s, ok := t.(stepped)
			return s, ok
		}
		t = wrapped.Tool
	}
}

func (h Handler) call(ctx context.Context, call Call) (Result, error) {
	out, err := h(ctx, call)
	if err != nil {
		return Result{}, err
	}
	return ResultOf(out)
}

// notFound tells the model which tools there are.
func (r *run) notFound(name string) error {
	const most = 30
	known := r.names[:min(len(r.names), most)]
	text := "There are no tools."
	if len(known) > 0 {
		text = "Available tools: " + strings.Join(known, ", ")
	}
	if more := len(r.names) - len(known); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return refused(fmt.Sprintf("Tool %q not found. %s", schema.Excerpt(name, 100), text))
}

// refused is an error in words for the model.
type refused string

func (r refused) Error() string { return string(r) }

// orEmpty is the arguments of a call that gave none: nothing at all, or null.
func orEmpty(input content.JSON) content.JSON {
	if text := strings.TrimSpace(string(input)); text == "" || text == "null" {
		return "{}"
	}
	return input
}
