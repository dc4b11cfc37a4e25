package executor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Effect describes the effect of executing the same call twice. It decides about a call without a result whose tool was
// running when the program ended: see [Agent.Save]. Hooks that decide about calls decide about it once more before it is
// executed again: it is in doubt unless they allow exactly what was started.
type Effect int

// The effects.
const (
	// EffectUnknown: a second execution may do the tool's work twice. The call is in doubt, and [Hook.InDoubt] decides.
	EffectUnknown Effect = iota
	// EffectReadOnly: the tool only reads. Its call is executed again.
	EffectReadOnly
	// EffectIdempotent: the tool does the work of a call once, however often the call is executed. Its call is executed
	// again, with the same arguments and the same [IdempotencyKey].
	EffectIdempotent
)

// WithEffect returns t with an effect, which decides about its unfinished calls after a crash. If t is nil, the tool's
// Err is set.
func WithEffect(t Tool, e Effect) Tool { return effective{wrapped{t}, e} }

type effective struct {
	wrapped
	effect Effect
}

func (e effective) Effect() Effect { return e.effect }

// IdempotencyKey returns a key for the tool call of ctx: the call's key (node.CallKey) and, if a hook or a person changed
// its arguments, a short hash of the arguments that are executed. A repeated execution of the call has the same key,
// even after a crash, in another process, and in a worker ([Agent.Work]). No other call has it, and no other arguments.
// Pass it to a service that does the work for a key only once. It returns "" if ctx is not the context of a tool, of
// [Hook.After] or of [Hook.InDoubt].
func IdempotencyKey(ctx context.Context) string {
	key, _ := ctx.Value(idempotencyKey{}).(string)
	return key
}

// idempotencyKey is the key of the IdempotencyKey in a context.
type idempotencyKey struct{}

// key returns the call's IdempotencyKey.
func (c *toolCall) key() string {
	if p := c.phase.r.elsewhere; p != nil {
		return idempotencyKeyOf(p.Key, p.Input, c.ran.Input)
	}
	return idempotencyKeyOf(c.call.Key(), c.call.Input, c.ran.Input)
}

// idempotencyKeyOf returns the key of a call with the arguments as the model wrote them and as they are executed.
func idempotencyKeyOf(key node.CallKey, asked, ran content.JSON) string {
	if asked = orEmpty(asked); ran == asked || canonical(ran) == canonical(asked) {
		return key.String()
	}

	// A service that remembers keys must not answer one operation with the result of another.
	sum := sha256.Sum256([]byte(canonical(ran)))
	return key.String() + "-" + hex.EncodeToString(sum[:6])
}

// saveStarts saves the start of calls before they are executed, together with their message and earlier results that
// are not saved yet. It reports whether the calls may begin, and whether the consumer left.
func (p *toolPhase) saveStarts(calls []*toolCall) (saved, left bool) {
	starts := make([]node.ToolExecution, len(calls))
	for i, c := range calls {
		starts[i] = node.ToolExecution{
			Index: c.call.Index, State: node.ExecutionStarted, Started: p.clock.Time(), Ran: c.changes(), Decided: c.decided,
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

	// The consumer may leave at an earlier event, before any of the calls has begun. Save again without the starts, or
	// the calls would be in doubt.
	if !r.flush() {
		r.d = before
		r.save()
		return false, true
	}
	return r.saveErr == nil, false
}

// decideAgain decides about a call that an earlier run started and that has no result. within is as for refusal.
func (r *run) decideAgain(c *toolCall, within bool) {
	// The text of the refusal says that the call was not executed, and nobody knows that here.
	if r.refusal(c, within) != "" {
		c.leaveInDoubt("")
		return
	}

	// The same arguments as before: a service may know the key of the call.
	c.ran = startedAs(c.call, c.start)

	// A sub-agent continues with its last saved step. Its own calls may be in doubt.
	err := r.find(c)
	if err == nil && (c.effect != EffectUnknown || c.resumes && c.kept != nil) {
		r.repeat(c)
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

// repeat decides about a call that may be executed again, with the arguments of its start in c.ran. The conversation may
// come from somebody else, so the hooks decide about the model's call once more: it is executed only if they allow
// exactly what was started. A person who is asked sees what was started.
func (r *run) repeat(c *toolCall) {
	fresh := r.apart(c.call, c.call)
	fresh.number = c.number
	err := r.prepare(fresh)
	if err == nil {
		r.authorize(fresh)
	}

	same := fresh.ran.Name == c.ran.Name && canonical(fresh.ran.Input) == canonical(c.ran.Input)
	switch {
	case r.ctx.Err() != nil:
		c.leaveInDoubt("")
	case err != nil:
		c.leaveInDoubt(err.Error())
	case fresh.early:
		c.leaveInDoubt("it may not be executed again")
	case fresh.approval:
		c.approval, c.reason = true, c.whyAsk(fresh.reason)
	case !same:
		c.leaveInDoubt("it was started with other arguments than it would have now")
	}
}

// askInDoubtHooks returns the first decision of a hook other than Allow.
func (r *run) askInDoubtHooks(c *toolCall) (Decision, error) {
	ctx := context.WithValue(r.ctx, idempotencyKey{}, c.key())
	for _, inDoubt := range r.hooks.inDoubt {
		d, err := guard(ctx, &r.crew, inDoubt, c.ran)
		if err == nil && d.action == useResult {
			err = d.result.valid()
		}

		// No other arguments: a service that knows the key of the call must get the same ones.
		if err == nil && (d.action == modify || d.action == deferred) {
			err = errors.New("a hook's decision does not fit a call in doubt")
		}
		if err != nil || d.action != allow {
			return d, err
		}
	}
	return Decision{}, nil
}

// startedAs returns the call as the execution e has it.
func startedAs(call Call, e *node.ToolExecution) Call {
	call.Name, call.Input = cmp.Or(e.Ran.Tool, call.Name), cmp.Or(e.Ran.Input, call.Input)
	return call
}

// leaveInDoubt answers the call with a result that names its outcome unknown. The reason may be empty.
func (c *toolCall) leaveInDoubt(reason string) {
	text := content.OutcomeUnknown
	if reason != "" {
		text += " (" + reason + ")"
	}
	c.inDoubt = true
	c.answer(failure("%s", text))
}

// fail answers a call that cannot be executed. A call that was started before is left in doubt.
func (c *toolCall) fail(err error) {
	if c.start != nil {
		c.leaveInDoubt(err.Error())
		return
	}
	c.answer(failure("%v", err))
}

// startedBefore returns the time at which an earlier run started the call, or zero.
func (c *toolCall) startedBefore() time.Time {
	if c.start == nil {
		return time.Time{}
	}
	return c.start.Started
}

// whyAsk returns the reason for asking a person about a call in doubt.
func (c *toolCall) whyAsk(reason string) string {
	text := fmt.Sprintf("in doubt: it was started at %s, and the outcome is unknown", c.start.Started.Format(time.RFC3339))
	if c.start.Note == textNoStarts {
		text = textNoStarts
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// textNoStarts is the reason for asking about a call of a conversation whose writer recorded no starts.
const textNoStarts = "in doubt: the conversation was imported without the starts of its calls, so it may have been executed"

// unrecorded returns a start for the calls of a message in a conversation whose writer recorded no starts
// (lineage.NoStarts), as of the time of the message: nobody knows whether they were started. It returns nil if a run of
// this package made the message.
func (r *run) unrecorded(caller *node.Node) *node.ToolExecution {
	if run, _ := r.d.LastRun(); run.Start != (node.RunStart{}) {
		return nil
	}
	return &node.ToolExecution{State: node.ExecutionStarted, Started: caller.Time(), Note: textNoStarts}
}

// unresolved returns the executions without the tool's own result among all nodes of a conversation: their calls may have
// been executed, on whatever branch they are asked about. The run of that branch has ended, or somebody has answered for
// the tool.
func unresolved(d dag.DAG) map[node.CallKey]*node.ToolExecution {
	all, heads := map[node.CallKey]*node.ToolExecution{}, d.Heads()
	for _, ref := range d.Refs() {
		heads = append(heads, ref.Heads...)
	}
	for _, n := range d.WithHeads(heads...).Nodes() {
		e, is := n.Payload().(node.ToolExecution)
		if !is || e.State != node.ExecutionStarted && e.State != node.ExecutionInDoubt {
			continue
		}
		if key, ok := n.Call(); ok {
			all[key] = &e
		}
	}
	return all
}
