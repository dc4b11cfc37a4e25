package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// Hook changes the behavior of a run. Each function may be nil. If an [Agent] has several hooks, each function gets the
// result of the one before it.
//
// To observe a run without changing it, range over its events. Observe is for tracing, which also needs the contexts.
//
// A hook that fails or panics fails closed: the call is not executed, the message is rejected, or the run ends with its
// error. The same holds for a hook that has not returned when the run's context ends; it should return soon after. All
// but After are called one at a time, in order. None of this holds for Observe, which decides nothing.
type Hook struct {
	// Observe gets each event of a run when it happens, even if the run has no consumer. It also gets the events of the
	// runs inside its tool calls, as their own events. It returns ctx, or a context made from it with further values:
	//
	//   - For the RunStart, that becomes the context of the run. All later events come with it.
	//   - For the MessageStart of a response, it becomes the context of the request.
	//   - For a ToolStart, it becomes the context of the call, for its tool and the After hooks.
	//   - For every other event it is not used.
	//
	// err is the run's error, beside the End. A run may end without an End event, because its consumer left or a
	// provider panicked: Observe then gets an End without a conversation, and an error. A refused run has no events
	// here.
	//
	// Observe is called on the goroutine of the event's run, and must return soon. Runs inside tool calls have
	// goroutines of their own, so calls may overlap: lock shared state. If Observe panics, it misses the event.
	Observe func(ctx context.Context, event Event, err error) context.Context
	// Input gets each new user message of the run: those of its queues, and the conversation's last message. An error
	// rejects the message. A rejected message of a queue becomes a [Rejected] event. If the conversation's last message
	// is rejected, the run is refused with an error that has [ErrRejected] in its chain.
	Input func(ctx context.Context, m content.Message) (content.Message, error)
	// Send gets each request before it is sent, with the changes of the hooks before it. Retries send the same request.
	// An error ends the run. The changes are not part of the conversation, nor of node.Answer.Seen. Some providers
	// refuse thinking if system prompts, tools or messages are not changed the same way in later requests.
	Send func(ctx context.Context, req api.Request) (api.Request, error)
	// Prepare gets each call first, and may change its Name and Input. The tool is looked up, and the arguments are
	// checked, after it. The model reads an error as the result.
	Prepare func(ctx context.Context, call Call) (Call, error)
	// Before decides on each call with a known tool and valid arguments. All calls of a response are decided before the
	// first of them runs. The model reads an error as the result, and the call is not executed.
	Before func(ctx context.Context, call Call) (Decision, error)
	// InDoubt decides on a call without a result whose tool was running when the program ended, unless the effect of
	// the tool allows a second execution ([WithEffect]): then Prepare and Before decide again, and the call is executed
	// if they allow exactly what was started. InDoubt gets the call as it was executed.
	//
	//   - [ExecuteAgain] executes the call again. Hooks do not see it again.
	//   - [AskApproval] asks a person, with a reason that names the doubt. Approved executes the call again.
	//   - [UseResult] is for a program that has found out the outcome, by the [IdempotencyKey] for example.
	//   - [Deny] and [Allow] leave the call in doubt: the model reads that the outcome is unknown
	//     (content.OutcomeUnknown), and the reason of a Deny.
	//
	// The first decision other than Allow counts. After an error, and without a hook, the call is left in doubt. It is
	// executed a second time only if a hook or a person decides so.
	InDoubt func(ctx context.Context, call Call) (Decision, error)
	// After gets the result of a tool, failed or not, and returns the result for the model. It is not called for a call
	// that was not executed or was given up. It is called concurrently, within the time of the call. An error becomes
	// the result.
	After func(ctx context.Context, call Call, result Result) (Result, error)
	// TooLong gets the conversation when the provider refuses a request as too long (api.ErrContextTooLong). It returns
	// a shorter conversation, and the request is sent once more in the same turn. If no hook changes the conversation,
	// or the request is refused again, the run ends with the provider's error; an error of the hook is added to it.
	TooLong func(ctx context.Context, d dag.DAG) (dag.DAG, error)
	// Next gets each completed turn. The run continues with the conversation, provider and options of the turn that it
	// returns. An error ends the run.
	Next func(ctx context.Context, turn Turn) (Turn, error)
	// Resume is called before a pause is resumed, and for each continuing sub-agent with its own pause. An error refuses
	// it.
	Resume func(ctx context.Context, c Continuation) error
}

// hooks has the functions of an agent's hooks, those of each kind in order.
type hooks struct {
	observe []observer
	input   []func(context.Context, content.Message) (content.Message, error)
	send    []func(context.Context, api.Request) (api.Request, error)
	prepare []func(context.Context, Call) (Call, error)
	before  []func(context.Context, Call) (Decision, error)
	inDoubt []func(context.Context, Call) (Decision, error)
	after   []func(context.Context, Call, Result) (Result, error)
	tooLong []func(context.Context, dag.DAG) (dag.DAG, error)
	next    []func(context.Context, Turn) (Turn, error)
	resume  []func(context.Context, Continuation) error
}

// decide reports whether a function decides about calls before they are executed.
func (hs *hooks) decide() bool { return len(hs.prepare)+len(hs.before)+len(hs.inDoubt) > 0 }

// hooksOf sorts hooks by kind.
func hooksOf(list []Hook) (hs hooks) {
	for _, h := range list {
		if h.Observe != nil {
			hs.observe = append(hs.observe, h.Observe)
		}
		if h.Input != nil {
			hs.input = append(hs.input, h.Input)
		}
		if h.Send != nil {
			hs.send = append(hs.send, h.Send)
		}
		if h.Prepare != nil {
			hs.prepare = append(hs.prepare, h.Prepare)
		}
		if h.Before != nil {
			hs.before = append(hs.before, h.Before)
		}
		if h.InDoubt != nil {
			hs.inDoubt = append(hs.inDoubt, h.InDoubt)
		}
		if h.After != nil {
			hs.after = append(hs.after, h.After)
		}
		if h.TooLong != nil {
			hs.tooLong = append(hs.tooLong, h.TooLong)
		}
		if h.Next != nil {
			hs.next = append(hs.next, h.Next)
		}
		if h.Resume != nil {
			hs.resume = append(hs.resume, h.Resume)
		}
	}
	return hs
}

// Turn is a completed turn and the state that the run continues with.
type Turn struct {
	// Number counts the requests of the run, from 1.
	Number int
	// Message is the model's response; nil if it was empty.
	Message *node.Node
	// Executions and Results are those of its calls, in call order. Only Results have Terminate.
	Executions []node.ToolExecution
	Results    []Result

	// DAG is the conversation. The next turn continues it; a hook may append to it or replace it.
	DAG dag.DAG
	// Provider and Options are used for the next request.
	Provider api.Provider
	Options  api.Options
	// Stop is the reason for which the run is about to end: the model's stop reason if the response has no calls,
	// content.StopTerminated if every result set Terminate, or "" if the run continues. A hook that sets another reason
	// ends the run at once, even if messages wait in the queues. A hook that clears it continues the run.
	Stop content.Stop
}

// Decision is a hook's decision about a call. The zero value is [Allow].
type Decision struct {
	action action
	reason string
	input  content.JSON
	result Result

	rule string
}

type action int

const (
	allow action = iota
	deny
	modify
	useResult
	askApproval
	deferred
	executeAgain
)

// Allow executes the call, unless another hook decides otherwise.
func Allow() Decision { return Decision{} }

// Deny refuses the call. The model reads the reason. No further hook sees the call.
func Deny(reason string) Decision { return Decision{action: deny, reason: reason} }

// Modify executes the call with other arguments. Later hooks see them. They must be a JSON object. They are not checked
// against the tool's schema: the program may know more than the model.
func Modify(input content.JSON) Decision { return Decision{action: modify, input: input} }

// Rule names the rule of the program that decided in place of a person, such as "always allow ls". The name is kept in
// the execution (node.Decided).
func (d Decision) Rule(name string) Decision {
	d.rule = name
	return d
}

// UseResult answers the call with result and does not execute it. No further hook sees the call.
func UseResult(result Result) Decision { return Decision{action: useResult, result: result} }

// AskApproval asks a person to approve the call: the run pauses before any call of the message is executed. See
// [Agent.Resume].
func AskApproval(reason string) Decision { return Decision{action: askApproval, reason: reason} }

// Defer leaves the call to be executed outside the run: the run pauses for its result when the other calls of the
// message have theirs. See [Agent.Resume].
func Defer(reason string) Decision { return Decision{action: deferred, reason: reason} }

// ExecuteAgain executes a call in doubt a second time. It is for [Hook.InDoubt] only.
func ExecuteAgain() Decision { return Decision{action: executeAgain} }

// OutputLimit cuts the texts of tool results. A cut text ends with a note, which counts for the limit. Texts are cut
// between characters. Images and documents are kept as they are. The zero value cuts nothing.
type OutputLimit struct {
	// MaxBytes is the maximum size of all texts of a result, in bytes. Defaults to no limit.
	MaxBytes int
	// MaxLines is the maximum number of lines of all texts of a result. Defaults to no limit.
	MaxLines int
	// KeepFull keeps the whole output of a cut result in Result.Full, and so in the execution's node. Defaults to
	// dropping it.
	KeepFull bool
}

// Hook returns a hook that cuts the results of a run.
func (l OutputLimit) Hook() Hook {
	return Hook{After: func(_ context.Context, _ Call, r Result) (Result, error) {
		short, cut := cutBlocks(r.Content, l.MaxBytes, l.MaxLines)
		if !cut {
			return r, nil
		}

		if l.KeepFull && r.Full.Len() == 0 {
			r.Full = r.Content
		}
		r.Content = short
		return r, nil
	}}
}

// Only denies every tool but those with the given names.
func Only(names ...string) Hook {
	allowed := make(map[string]bool, len(names))
	for _, name := range names {
		allowed[name] = true
	}
	return Hook{Before: func(_ context.Context, call Call) (Decision, error) {
		if allowed[call.Name] {
			return Allow(), nil
		}
		return Deny("tool access denied by default"), nil
	}}
}

// RequireApproval asks for approval of every call of the tools with the given names, or of every call if no name is
// given.
func RequireApproval(names ...string) Hook {
	asked := make(map[string]bool, len(names))
	for _, name := range names {
		asked[name] = true
	}
	return Hook{Before: func(_ context.Context, call Call) (Decision, error) {
		if len(asked) == 0 || asked[call.Name] {
			return AskApproval(""), nil
		}
		return Allow(), nil
	}}
}

// Underscores replaces dots by underscores in the names of calls. Some models write foo.bar for a tool named foo_bar.
func Underscores() Hook {
	return Hook{Prepare: func(_ context.Context, call Call) (Call, error) {
		call.Name = strings.ReplaceAll(call.Name, ".", "_")
		return call, nil
	}}
}

// AskAgain asks once for an answer if a model called tools and then ended without text. Tools are switched off for that
// request. If the run continues after it, the agent's own choice of tools (api.Options.ToolChoice) is no longer set.
func AskAgain() Hook {
	const words = "Please provide your final answer."
	return Hook{Next: func(_ context.Context, turn Turn) (Turn, error) {
		if lastUserText(turn.DAG) == words {
			// The model was asked. Ask once only, and allow tools again.
			turn.Options.ToolChoice = ""
			return turn, nil
		}
		if turn.Stop == content.StopEndTurn && hasNoText(turn.Message) && usedTools(turn.DAG) {
			turn.DAG, turn.Stop = turn.DAG.User(words), ""
			turn.Options.ToolChoice = api.ToolsNone
		}
		return turn, nil
	}}
}

func hasNoText(n *node.Node) bool {
	if n == nil {
		return true
	}
	message, _ := n.Message()
	return strings.TrimSpace(message.Blocks.Text()) == ""
}

// usedTools reports whether the conversation holds the result of a tool.
func usedTools(d dag.DAG) bool {
	for _, m := range shared.Of(d.Heads()).Messages {
		if len(m.Blocks.ToolResults()) > 0 {
			return true
		}
	}
	return false
}

// lastUserText returns the text of the last user message.
func lastUserText(d dag.DAG) string {
	messages := shared.Of(d.Heads()).Messages
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == content.User {
			return messages[i].Blocks.Text()
		}
	}
	return ""
}

// errPanicked is in the chain of the error for a panic of a hook.
var errPanicked = errors.New("panicked")

// errEnded is the error for a hook that ended its goroutine: runtime.Goexit.
var errEnded = fmt.Errorf("a hook %w: it ended its goroutine", errPanicked)

// guard calls a hook on its own goroutine and returns its results. It returns an error if the hook panics, or if ctx
// ends first.
func guard[In, Out any](
	ctx context.Context, w *crew, hook func(context.Context, In) (Out, error), in In,
) (out Out, err error) {
	if ctx.Err() != nil {
		return out, errorOf(ctx)
	}

	// The channel has room for a token, so that a hook can end after it was given up.
	c := &hookCall[In, Out]{ctx: ctx, hook: hook, in: in, err: errEnded, ended: make(chan struct{}, 1)}
	w.start(c)

	// A hook that ignores the context is left behind; w counts it until it ends.
	select {
	case <-c.ended:
		return c.out, c.err
	case <-ctx.Done():
		return out, errorOf(ctx)
	}
}

// hookCall is a call of a hook on a goroutine of its own.
type hookCall[In, Out any] struct {
	ctx   context.Context
	hook  func(context.Context, In) (Out, error)
	in    In
	ended chan struct{} // receives a token when the fields below are set
	out   Out
	err   error // errEnded unless the hook returns or panics
}

func (c *hookCall[In, Out]) work() {
	defer func() {
		if v := recover(); v != nil {
			c.err = fmt.Errorf("a hook %w: %v", errPanicked, v)
		}
		c.ended <- struct{}{}
	}()
	c.out, c.err = c.hook(c.ctx, c.in)
}
