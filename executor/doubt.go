package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Effect is what a second execution of the same call does. It decides about a call that was started and has no result,
// because the program ended while its tool ran: see [Agent.Save].
type Effect int

// The effects.
const (
	// EffectUnknown is the effect of a tool of which nothing is known: a second execution may do its work twice. The
	// call is in doubt, and [Hook.InDoubt] decides.
	EffectUnknown Effect = iota
	// EffectReadOnly is the effect of a tool that only reads. Its call is executed again.
	EffectReadOnly
	// EffectIdempotent is the effect of a tool that does the work of a call once, however often the call is executed.
	// Its call is executed again, with the same arguments and the same [IdempotencyKey].
	EffectIdempotent
)

// WithEffect returns t with an effect, which decides what becomes of its calls after a crash. A t of nil is the tool's
// Err.
func WithEffect(t Tool, e Effect) Tool { return effective{wrapped{t}, e} }

type effective struct {
	wrapped
	effect Effect
}

func (e effective) Effect() Effect { return e.effect }

// IdempotencyKey returns a key for the tool call that ctx belongs to: the ID of the message with the call, a slash, and
// the index of the call. It is the same whenever the call is executed again, also after a crash and in another process,
// and no other call has it. Give it to a service that does the work of a key only once. It returns "" if ctx is not
// that of a tool, of [Hook.After] or of [Hook.InDoubt].
func IdempotencyKey(ctx context.Context) string {
	key, _ := ctx.Value(idempotencyKey{}).(string)
	return key
}

// idempotencyKey is the key of the IdempotencyKey in a context.
type idempotencyKey struct{}

// key returns the call's IdempotencyKey.
func (c *toolCall) key() string {
	return c.phase.message.String() + "/" + strconv.Itoa(c.call.Index)
}

// effectOf returns the effect of the calls of a tool.
func effectOf(t Tool) Effect {
	if own, ok := as[interface{ Effect() Effect }](t); ok {
		return own.Effect()
	}
	return EffectUnknown
}

// startsOf returns the executions at the heads of d that were started and have no result, by the index of their call.
func startsOf(d dag.DAG) map[int]*node.ToolExecution {
	var starts map[int]*node.ToolExecution
	for _, h := range executionHeads(d) {
		e := h.Payload().(node.ToolExecution)
		if e.State != node.ExecutionStarted {
			continue
		}
		if starts == nil {
			starts = map[int]*node.ToolExecution{}
		}
		start := e // so that only a start is kept on the heap
		starts[e.Index] = &start
	}
	return starts
}

// saveStarts saves that calls are about to be executed, together with what is not saved yet: their message, or results
// before them. It reports whether they may begin, and whether the consumer left.
func (p *toolPhase) saveStarts(calls []*toolCall) (saved, left bool) {
	starts := make([]node.ToolExecution, len(calls))
	for i, c := range calls {
		starts[i] = node.ToolExecution{
			Index: c.call.Index, State: node.ExecutionStarted, Started: p.now(), Ran: c.changes(),
		}
	}

	r := p.r
	before := r.d
	d := before.AppendExecutions(starts...)
	if err := d.Err(); err != nil {
		r.failSave(err)
		return false, false
	}
	r.d = d
	r.save()

	// None of them has begun when the consumer leaves at an event before them: they must not be in doubt.
	if !r.flush() {
		r.d = before
		r.save()
		return false, true
	}
	return r.saveErr == nil, false
}

// decideAgain decides about a call that an earlier run started, and that has no result. Within is that of refusal.
func (r *run) decideAgain(c *toolCall, within bool) {
	if r.refusal(c.call, within) != "" {
		c.leaveInDoubt("")
		return
	}

	// Prepare and Before hooks do not see it again. It has to be the same call for the service that gets its key.
	c.ran = c.startedAs()
	// A sub-agent continues with its last saved step. Its own calls may be in doubt.
	err := r.find(c)
	if err == nil && (c.effect != EffectUnknown || c.resumes && c.kept != nil) {
		return
	}
	r.agent.Log.WarnContext(r.ctx, "plait: a tool call is in doubt: it was started, and has no result",
		"tool", safetext.Escape(c.ran.Name, maxName), "key", c.key(), "started", c.start.Started, "run", r.id)

	// Without a decision the call stays in doubt: executing it twice may do harm.
	d, hookErr := r.askInDoubtHooks(c)
	switch {
	case r.ctx.Err() != nil:
		c.leaveInDoubt("")
	case hookErr != nil:
		c.leaveInDoubt(r.hidden(c.ran.Name, hookErr).Error())
	case d.action == useResult:
		c.answer(d.result)
	case d.action == askApproval:
		c.approval, c.reason = true, c.whyAsk(d.reason)
	case d.action != executeAgain:
		c.leaveInDoubt(d.reason)
	case err != nil:
		c.leaveInDoubt(err.Error())
	}
}

// askInDoubtHooks returns the first decision of a hook that is not Allow.
func (r *run) askInDoubtHooks(c *toolCall) (Decision, error) {
	ctx := context.WithValue(r.ctx, idempotencyKey{}, c.key())
	for _, h := range r.agent.Hooks {
		if h.InDoubt == nil {
			continue
		}
		d, err := guard(ctx, &r.workers, h.InDoubt, c.ran)
		if err == nil && d.action == useResult {
			err = d.result.valid()
		}
		if err == nil && (d.action == modify || d.action == deferred) {
			err = errors.New("a hook's decision does not fit a call in doubt")
		}
		if err != nil || d.action != allow {
			return d, err
		}
	}
	return Decision{}, nil
}

// startedAs returns the call as it was started before.
func (c *toolCall) startedAs() Call {
	ran := c.call
	ran.Name, ran.Input = cmp.Or(c.start.Ran.Tool, ran.Name), cmp.Or(c.start.Ran.Input, ran.Input)
	return ran
}

// leaveInDoubt gives the call a result by which the model knows that the outcome is unknown. The reason may be empty.
func (c *toolCall) leaveInDoubt(reason string) {
	text := content.OutcomeUnknown
	if reason != "" {
		text += " (" + reason + ")"
	}
	c.inDoubt = true
	c.answer(failure("%s", text))
}

// fail answers a call that cannot be executed. A call that was started before is in doubt then.
func (c *toolCall) fail(err error) {
	if c.start != nil {
		c.leaveInDoubt(err.Error())
		return
	}
	c.answer(failure("%v", err))
}

// startedBefore returns when an earlier run started the call; zero if none did.
func (c *toolCall) startedBefore() time.Time {
	if c.start == nil {
		return time.Time{}
	}
	return c.start.Started
}

// whyAsk returns the reason for asking a person about a call in doubt.
func (c *toolCall) whyAsk(reason string) string {
	text := fmt.Sprintf("in doubt: it was started at %s, and the outcome is unknown", c.start.Started.Format(time.RFC3339))
	if reason != "" {
		text += ": " + reason
	}
	return text
}
