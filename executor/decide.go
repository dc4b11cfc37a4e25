package executor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/schema"
)

// beginRepeated is how textRepeated begins.
const beginRepeated = "You have called "

// What a model is told of a call that came to nothing.
const (
	textCutOff = "Tool call %q was not executed: the response hit the output token limit, so its arguments may be truncated. " +
		"Re-issue the tool call with complete arguments."
	textSpent      = "Tool call %q was not executed: the run reached its %s."
	textPerTurn    = "Tool call %q was not executed: ignored: max_tool_calls_per_turn=%d."
	textLoop       = "Not executed: the run was stopped for repeating this call with identical arguments."
	textRepeated   = beginRepeated + "%q with identical arguments %d times in a row. Its result will not change: go on with what you have, or try something else."
	textNoTools    = "Tool call %q was not executed: no tool may be called now. Answer without one."
	textOneCall    = "Tool call %q was not executed: only one tool may be called at a time."
	textOtherTool  = "Tool call %q was not executed: only the tool %q may be called now."
	textSkipped    = "Skipped due to queued user message."
	textDenied     = "Tool call denied: %s"
	textTooLarge   = "Tool call arguments are too large. Retry with smaller arguments."
	textTimeout    = "Tool exceeded timeout of %s."
	textNotStarted = "Operation cancelled before the tool was started."
	textCancelled  = "Operation cancelled while the tool was running; it may have had effects."
	textPanicked   = "Tool %q panicked: %v"
	textVanished   = "Tool %q ended without a result."
	textFailed     = "Tool %q failed without saying why."
	textHidden     = "Tool %q failed."
)

// mostArguments is how many bytes of arguments a call may have, beyond which it is not even looked at.
const mostArguments = 10 << 20

// planned is what is to become of one call.
type planned struct {
	call     Call // as the model made it
	ran      Call // as it is carried out
	repair   string
	answered *Result // it is not carried out, and this is why
	returned *Result // a deferred call's result, and no hook has seen this yet
	task
	approval bool // somebody has to approve it first
	deferred bool // it is executed outside the run
	reason   string
}

// task is what carries out one call.
type task struct {
	fn      func(context.Context, Call) (Result, error)
	timeout time.Duration // 0 or less: none
	mode    Mode
}

// decide says what is to become of each call, before any of them is carried out.
func (r *run) decide(open []Call) []planned {
	plans := make([]planned, len(open))
	for i, o := range open {
		p := &plans[i]
		p.call = normalized(o)
		p.ran = p.call
		if refusal := r.refusal(i, p.call); refusal != "" {
			p.answer(failure("%s", refusal))
			continue
		}
		if err := r.prepare(p); err != nil {
			p.answer(failure("%v", err))
			continue
		}
		r.authorize(p)
	}
	return plans
}

func (p *planned) answer(result Result) { p.answered = &result }

// refusal is what a call is answered where it must not be carried out, whatever it is; "" where it may.
func (r *run) refusal(place int, call Call) string {
	limits := &r.agent.Limits
	switch {
	case r.ctx.Err() != nil:
		return textNotStarted
	case r.cutOff:
		return fmt.Sprintf(textCutOff, call.Name)
	case r.stop == content.StopLoop:
		return textLoop
	case r.stop == content.StopTokenLimit:
		return fmt.Sprintf(textSpent, call.Name, "token limit")
	case r.stop == content.StopCostLimit:
		return fmt.Sprintf(textSpent, call.Name, "cost limit")
	case r.requested.ToolChoice == api.ToolsNone: // compatible servers do not always keep to what was asked for
		return fmt.Sprintf(textNoTools, call.Name)
	case r.requested.OneCall && call.Index > 0:
		return fmt.Sprintf(textOneCall, call.Name)
	case limits.CallsPerTurn > 0 && call.Index >= limits.CallsPerTurn:
		return fmt.Sprintf(textPerTurn, call.Name, limits.CallsPerTurn)
	case limits.Calls > 0 && r.totals.ToolCalls+place >= limits.Calls:
		r.stop = content.StopCallLimit
		return fmt.Sprintf(textSpent, call.Name, "limit on tool calls")
	}
	return ""
}

// prepare finds what carries out the call, and checks its arguments. Its error is for the model.
func (r *run) prepare(p *planned) (err error) {
	if len(p.ran.Input) > mostArguments {
		return refused(textTooLarge)
	}
	p.ran.Input, p.repair = repaired(p.ran.Input)
	for _, h := range r.agent.Hooks {
		if h.Prepare == nil {
			continue
		}
		index, id := p.ran.Index, p.ran.ID
		p.ran, err = guard(r.ctx, &r.workers, h.Prepare, p.ran)
		if err != nil {
			p.ran = p.call
			return r.hidden(p.call.Name, err)
		}
		p.ran.Index, p.ran.ID, p.ran.Input = index, id, orEmpty(p.ran.Input)
	}

	if only := r.requested.ToolChoice.Tool(); only != "" && p.ran.Name != only {
		return refused(fmt.Sprintf(textOtherTool, p.call.Name, only))
	}
	return r.find(p)
}

// find finds what carries out the call as it is now, and checks its arguments.
func (r *run) find(p *planned) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = r.hidden(p.ran.Name, fmt.Errorf(textPanicked, p.ran.Name, v))
		}
	}()
	if !p.ran.Input.IsObject() {
		return &argumentError{p.ran.Name, []string{"root: " + notObject(p.ran.Input)}, p.ran.Input}
	}
	p.timeout = r.agent.ToolTimeout
	if handle := r.agent.Handler; handle != nil {
		p.fn = handle.call
		return nil
	}
	tool, ok := r.bound[p.ran.Name]
	if !ok {
		r.agent.Log.WarnContext(r.ctx, "plait: a model called a tool that is not there", "tool", safetext.Escape(p.ran.Name, mostName), "run", r.id)
		return r.notFound(p.ran.Name)
	}
	if own, ok := as[interface{ Timeout() time.Duration }](tool); ok {
		p.timeout = own.Timeout()
	}
	if own, ok := as[interface{ Mode() Mode }](tool); ok {
		p.mode = own.Mode()
	}
	if own, ok := as[interface{ Deferred() bool }](tool); ok {
		p.deferred = own.Deferred()
	}
	p.fn = tool.Call
	if s, ok := steps(tool); ok {
		p.fn = s.run
		return s.prepare(p.ran.Input)
	}
	return nil
}

// authorize asks the hooks what they decide about the call.
func (r *run) authorize(p *planned) {
	for _, h := range r.agent.Hooks {
		if h.Before == nil {
			continue
		}
		d, err := guard(r.ctx, &r.workers, h.Before, p.ran)
		if err == nil && d.action == modify && !d.input.IsObject() {
			err = fmt.Errorf("a hook's arguments are no JSON object: %s", notObject(d.input))
		}
		if err == nil && d.action == useResult {
			err = d.result.valid()
		}
		if err != nil {
			p.answer(failure("%v", r.hidden(p.ran.Name, err)))
			return
		}
		if d.action == modify {
			p.ran.Input = d.input
		}
		if d.checked {
			if err := r.find(p); err != nil {
				p.answer(failure("%v", err))
				return
			}
		}
		switch d.action {
		case deny:
			p.deny(d.reason)
			return
		case useResult:
			p.answer(d.result)
			return
		case askApproval:
			p.approval, p.reason = true, d.reason
		case deferred:
			p.deferred, p.reason = true, d.reason
		}
	}
}

func (p *planned) deny(reason string) {
	if reason == "" {
		reason = "Tool execution was blocked"
	}
	p.answer(failure(textDenied, reason))
}

// hidden is the error as the model may read it.
func (r *run) hidden(tool string, err error) error {
	if r.ctx.Err() != nil {
		return refused(textNotStarted)
	}
	if r.agent.HideErrors {
		return refused(fmt.Sprintf(textHidden, tool))
	}
	if text := fmt.Sprint(err); text != "" {
		return refused(text)
	}
	return refused(fmt.Sprintf(textFailed, tool))
}

// repaired is arguments as a JSON object, where they are one in a wrapping that cannot be mistaken, and how they were repaired. Others
// are returned as they are.
func repaired(input content.JSON) (content.JSON, string) {
	if input.IsObject() {
		return input, ""
	}
	text := strings.TrimSpace(string(input))
	if inner, ok := unfenced(text); ok && content.JSON(inner).IsObject() {
		return content.JSON(inner), "the arguments stood between backquotes"
	}
	var once string
	if content.JSON(text).Decode(&once) == nil && content.JSON(once).IsObject() {
		return content.JSON(once), "the arguments were JSON inside of a JSON string"
	}
	return input, ""
}

// unfenced returns what stands between lines of three backquotes, where there is nothing else.
func unfenced(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return "", false
	}
	head, rest, ok := strings.Cut(rest, "\n")
	if head = strings.TrimSpace(head); !ok || head != "" && !strings.EqualFold(head, "json") {
		return "", false
	}
	rest, ok = strings.CutSuffix(strings.TrimSpace(rest), "```")
	return strings.TrimSpace(rest), ok
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
		switch wrapped := t.(type) {
		case timed:
			t = wrapped.Tool
		case moded:
			t = wrapped.Tool
		default:
			s, ok := t.(stepped)
			return s, ok
		}
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
	return refused(fmt.Sprintf("Tool %s not found. %s", safetext.Quote(name, mostName), text))
}

// refused is an error in words for the model.
type refused string

func (r refused) Error() string { return string(r) }

// normalized returns the call with {} in place of arguments that the model did not write.
func normalized(call Call) Call {
	call.Input = orEmpty(call.Input)
	return call
}

// orEmpty is the arguments of a call that gave none: nothing at all, or null.
func orEmpty(input content.JSON) content.JSON {
	if text := strings.TrimSpace(string(input)); text == "" || text == "null" {
		return "{}"
	}
	return input
}

// safely calls fn, and returns an error where it panics.
func safely[T any](fn func() (T, error)) (value T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a hook %w: %v", errPanicked, v)
		}
	}()
	return fn()
}

var errTwice = &api.Error{Kind: api.ErrProtocol, Message: "the events of one run were ranged over twice"}
