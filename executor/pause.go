package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Continuation is the state of a paused run beside its conversation. The conversation holds the messages, executions
// and declarations. The continuation holds the identity of the run (Run, ID, Parent), the pause (Reason, Message,
// Pending), the totals and the attributes. Provider, options and keys come from the agent that resumes the run.
//
// A pause of a [SubAgent], at any depth, pauses the whole run. Agents then lists the paused sub-agents, and Pending has
// their calls too, each with its Path.
//
// The calls in a continuation, and their approvals, are trusted: anybody able to change it decides which calls are
// executed. Read it from a store of your own, not from a browser.
//
// [ContinuationCodec] writes a continuation as JSON. Package encoding/json would write every attribute, also secrets,
// and does not check what it reads.
//
// A continuation belongs to one pause, and is meant to be resumed once. [ClaimOnce] ensures this in one process, and
// package durable in any number. A program with a database of its own compares and sets (Run, ID) in a Hook.Resume.
type Continuation struct {
	// Run is the ID of the run, the same at each of its pauses.
	Run string
	// ID is the ID of this pause. Parent is the ID of the pause that was resumed before it; "" at the first pause.
	ID, Parent string
	// Reason is content.StopApproval if any pending call waits for approval, and otherwise content.StopResults.
	Reason content.Stop
	// Message is the ID of the assistant's message with the open calls.
	Message node.ID
	// Pending lists the open calls, in call order. The calls of a sub-agent are listed in place of its own call.
	Pending []Pending
	// Agents lists the paused sub-agents, each before those below it; empty if there are none.
	Agents []PausedAgent
	// Totals has the totals of the run over all pauses. Its Reason is that of the pause.
	Totals node.StopReason
	// InnerTurns and InnerCalls count the turns and tool calls of runs inside tools so far, including those of Agents.
	// They count for Limits.Turns and Limits.Calls, and are not part of Totals.
	InnerTurns, InnerCalls int
	// Attributes has the attributes set by [WithAttributes].
	Attributes map[string]any
}

// Pending is a call that waits for approval or for its result.
type Pending struct {
	// ID names the call in replies. It is the provider's ID of the call, or one made from Index if that is empty or not
	// unique. The ID of a sub-agent's call consists of the IDs of the calls in Path and its own, separated by slashes.
	ID string
	// Path leads from this run to the sub-agent with the call. It has the call of each sub-agent on the way, as it is
	// executed, the outermost first. It is empty for a call of this run itself.
	Path []Call
	// Call is the call to execute, after all hooks.
	Call Call
	// Tool is the tool's name as the model wrote it.
	Tool string
	// Approval reports that a person has to approve the call. In a pause for approval, calls without Approval wait too.
	Approval bool
	// Deferred reports that the call is executed outside the run. After a pause for approval, the run pauses again for
	// its result.
	Deferred bool
	// Reason is the reason given by the hook; it may be empty.
	Reason string
	// Started is the time at which an earlier run started the call, without getting its result. The call is then in
	// doubt, unless the effect of its tool allows a second execution. It is zero for every other call.
	Started time.Time
}

// ErrPaused is in the chain of a [PausedError].
var ErrPaused = errors.New("the run is paused")

// PausedError reports that calls are pending. Keep the returned conversation together with the Continuation.
//
// A program may give up a pause, after Ctrl-C at the prompt for example:
//
//   - dag.DAG.CloseTools without arguments answers the open calls with an error result, so that the model reads that
//     they did not run.
//   - A message of the user may follow at once: the same answers are sent then, and dag.DAG.Validate reports the calls.
//   - [Agent.Run] with the conversation as it is asks the hooks about the calls again, and pauses with a new
//     Continuation.
type PausedError struct {
	Continuation Continuation
}

// Error returns the reason of the pause and the number of pending calls.
func (e *PausedError) Error() string {
	waits, what := "waits for its result", "results"
	if e.Continuation.Reason == content.StopApproval {
		waits, what = "waits for approval", "approval"
	}
	if n := len(e.Continuation.Pending); n != 1 {
		waits = fmt.Sprintf("%d tool calls wait for %s", n, what)
	} else {
		waits = "1 tool call " + waits
	}
	return fmt.Sprintf("executor: %v: %s", ErrPaused, waits)
}

// Unwrap returns ErrPaused.
func (e *PausedError) Unwrap() error { return ErrPaused }

// Reply answers a pending call. [Approved], [ApprovedWith] and [Declined] reply to a question for approval, [Returned]
// and [Failed] bring a result from outside. The zero value is no reply: Resume treats its call as unanswered, and it
// cannot be saved.
type Reply struct {
	kind   replyKind
	input  content.JSON
	reason string
	result Result
}

type replyKind int

const (
	noReply replyKind = iota
	approved
	declined
	returned
)

// Approved approves the call as it is.
func Approved() Reply { return Reply{kind: approved} }

// ApprovedWith approves the call with other arguments. They are checked against the tool's schema when the call runs.
// If they do not fit, the call fails with an error result for the model; Resume itself is not refused.
func ApprovedWith(input content.JSON) Reply { return Reply{kind: approved, input: input} }

// Declined refuses the call. The model reads the reason. An empty reason becomes "denied by user".
func Declined(reason string) Reply { return Reply{kind: declined, reason: reason} }

// Returned is the result of a call that was executed elsewhere.
func Returned(result Result) Reply { return Reply{kind: returned, result: result} }

// Failed is the result of a call that failed elsewhere.
func Failed(text string) Reply {
	return Returned(Result{Content: content.Words(text), IsError: true})
}

// Errors of [Agent.Resume], for errors.Is; a [ResumeError] names the call.
var (
	// ErrStale: the continuation is not the latest of this conversation. It was resumed before, it belongs to another
	// conversation, or the conversation was continued or joined with another since.
	ErrStale = errors.New("the continuation is not one of this conversation")
	// ErrUnknownCall: the call of a reply is not pending.
	ErrUnknownCall = errors.New("no such call waits")
	// ErrMissingReply: a call that waits for approval has no reply.
	ErrMissingReply = errors.New("a reply is missing")
	// ErrConflict: the call has another result already.
	ErrConflict = errors.New("the call has another result already")
	// ErrReply: the reply is of the wrong kind, such as a result for a call that needs approval.
	ErrReply = errors.New("the reply does not fit")
	// ErrNoAgent: the agent no longer has the sub-agent of a pending call.
	ErrNoAgent = errors.New("the sub-agent does not exist")
)

// ResumeError reports why a run cannot be resumed. No call was executed, and the conversation is unchanged.
type ResumeError struct {
	// Kind is one of the errors above; errors.Is finds it.
	Kind error
	// ID is the ID of the call or, for ErrStale, of the continuation.
	ID string
	// Err has details; it may be nil.
	Err error
}

// Error returns the kind of the error, the ID of the call or the continuation, and the details.
func (e *ResumeError) Error() string {
	text := fmt.Sprintf("executor: resume: %v: %s", e.Kind, safetext.Quote(e.ID, maxName))
	if e.Err != nil {
		text += ": " + safetext.Escape(e.Err.Error(), 500)
	}
	return text
}

// Unwrap returns Kind and Err.
func (e *ResumeError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// pause returns a *PausedError whose continuation lists the calls of p without a result. The results so far become part
// of the conversation.
func (r *run) pause(p *toolPhase, reason content.Stop) error {
	// Emit the known results before the pause, and keep them in the conversation.
	if !p.emitEarly(len(p.calls)) {
		return errLeft
	}
	caller := r.caller()
	names := callNames(caller)
	var executions []node.ToolExecution
	for _, e := range p.unsaved() {
		executions = append(executions, e.(node.ToolExecution))
	}
	d := r.d.AppendExecutions(append(executions, p.pausedAgents()...)...)
	if err := d.Err(); err != nil {
		return err
	}
	r.d = d

	// Count the results now: the resumed run begins with these totals.
	n, usage := p.results()
	r.totals.ToolCalls += n
	r.toolsTook(usage)

	c := Continuation{
		Run: r.id, ID: r.d.Source().ID().String(), Parent: r.parent, Reason: reason, Message: caller.ID(),
		Attributes: maps.Clone(Attributes(r.ctx)),
	}
	for _, call := range p.open() {
		if sub := call.waitingAgent(); sub != nil {
			c.include(call.ran, names, sub.continuation)
			continue
		}
		c.Pending = append(c.Pending, Pending{
			ID: names[call.call.Index], Call: call.ran, Tool: call.call.Name,
			Approval: call.approval, Deferred: call.deferred, Reason: call.reason, Started: call.startedBefore(),
		})
	}

	// One call that needs approval is enough: the others are executed after the decision.
	if slices.ContainsFunc(c.Pending, asksApproval) {
		c.Reason = content.StopApproval
	}

	r.sum(c.Reason)
	c.Totals = r.totals
	c.InnerTurns, c.InnerCalls = r.ledger.inner()
	return &PausedError{c}
}

// callNames returns a unique name for each call of a message, by index: the ID of the call, or a name made from the
// index if the ID is empty or not unique.
func callNames(caller *node.Node) []string {
	m, _ := caller.Message()
	calls := m.Blocks.ToolUses()
	times := map[string]int{}
	for _, c := range calls {
		times[c.ID]++
	}
	names := make([]string, len(calls))
	for i, c := range calls {
		if names[i] = c.ID; c.ID == "" || times[c.ID] > 1 {
			// The made name must differ from the ID of every call, also of a later one.
			names[i] = "call_" + strconv.Itoa(i)
			for n := 2; times[names[i]] > 0; n++ {
				names[i] = "call_" + strconv.Itoa(i) + "_" + strconv.Itoa(n)
			}
			times[names[i]] = 1
		}
	}
	return names
}

// attach returns ctx with the attributes of the paused run. Attributes that ctx has already win.
func (c Continuation) attach(ctx context.Context) context.Context {
	if len(c.Attributes) == 0 {
		return ctx
	}
	given := Attributes(ctx)
	return WithAttributes(WithAttributes(ctx, c.Attributes), given)
}

// resume prepares a run that continues after the pause c. It calls the Resume hooks unless asked is set.
func (r *run) resume(c Continuation, replies map[string]Reply, asked bool) error {
	if r.broken != nil {
		return r.broken
	}

	// Check for a used continuation first, so that it gives the same error whatever has happened to the conversation
	// since.
	if err := c.stale(r.d); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}

	r.turn = c.Totals.Turns
	p, err := r.reply(c, replies, false)
	if err != nil {
		return err
	}
	if !asked {
		if err := r.askResumeHooks(c, r.agent.Hooks, c.ID, p.agents()); err != nil {
			return err
		}
	}

	// A result from outside passes the After hooks, like that of a tool. If the context ends meanwhile, the run is
	// refused, so that the result is not lost.
	for i := range p.calls {
		if call := &p.calls[i]; call.outside != nil {
			result, err := r.afterDeferred(call.call, call.ran, *call.outside)
			if err != nil {
				return err
			}
			call.answer(result)
		}
	}

	// Take over the identity, the totals and the limits of the paused run.
	r.id, r.parent, r.resumed, r.replied = c.Run, c.ID, true, p
	r.totals, r.before = c.Totals, c.Totals.Elapsed
	r.totals.Reason, r.totals.Detail = "", ""

	// The message with the calls was inspected before the pause. Restore the reasons to stop after it.
	if m, _ := r.caller().Message(); m.Answer.Stop == content.StopContext {
		r.stop = content.StopContext
	}
	if r.ledger.begin(c, len(p.calls)) {
		r.stop = content.StopCallLimit
	}
	r.recount()
	return nil
}

// askResumeHooks returns an error if a Resume hook refuses the continuation. It calls the hooks, and then those of each
// continuing sub-agent with the sub-agent's own continuation. id is the ID of the whole run's continuation.
func (r *run) askResumeHooks(c Continuation, hooks []Hook, id string, agents []*agentResume) error {
	for _, h := range hooks {
		if h.Resume == nil {
			continue
		}
		ask := func(ctx context.Context, c Continuation) (struct{}, error) { return struct{}{}, h.Resume(ctx, c) }
		if _, err := guard(r.ctx, &r.workers, ask, c); err != nil {
			if r.ctx.Err() != nil {
				return errorOf(r.ctx)
			}
			return &ResumeError{Kind: ErrStale, ID: id, Err: err}
		}
	}

	// A sub-agent that stays paused is not resumed, so its hooks are not asked.
	for _, s := range agents {
		if s.held {
			continue
		}
		if err := r.askResumeHooks(s.continuation, s.hooks, id, s.below); err != nil {
			return err
		}
	}
	return nil
}

// stale returns a *ResumeError with ErrStale if c is not the latest pause of d.
func (c Continuation) stale(d dag.DAG) error {
	stale := func(format string, args ...any) error {
		return &ResumeError{Kind: ErrStale, ID: c.ID, Err: fmt.Errorf(format, args...)}
	}
	if c.Reason == "" {
		return stale("it is empty, and not from a paused run")
	}
	if c.Reason != content.StopApproval && c.Reason != content.StopResults {
		return stale("its reason is %s", c.Reason)
	}

	// Every head must belong to the paused tool phase: the message with the calls, or one of their executions.
	inside, outside := 0, 0
	executed, starts := map[int]bool{}, startsOf(d)
	for _, h := range d.Heads() {
		e, isExecution := h.Payload().(node.ToolExecution)

		switch {
		case h.ID() == c.Message && callsTools(h):
			inside++
		case isExecution && h.NumParents() == 1 && h.Parent(0).ID() == c.Message:
			inside++
			executed[e.Index] = executed[e.Index] || !e.State.Unfinished()
		default:
			outside++
		}
	}
	switch {
	case inside == 0:
		return stale("its calls are not open at the head of the conversation")
	case outside > 0:
		return stale("the conversation has %d other heads beside its calls: resume it without them, and join them afterwards", outside)
	}

	// A result or a start since the pause shows that it was resumed before.
	pending, agents := c.own()
	for _, p := range pending {
		if executed[p.Call.Index] {
			return stale("it was resumed before: call %q has its result", p.ID)
		}
		if start, ok := starts[p.Call.Index]; ok && !start.Started.Equal(p.Started) {
			return stale("it was resumed before: call %q was started, and its outcome is unknown", p.ID)
		}
	}

	// The same holds for the calls of paused sub-agents.
	for _, a := range agents {
		if executed[a.Path[0].Index] {
			return stale("it was resumed before: the sub-agent of call %d has its result", a.Path[0].Index)
		}
		if _, ok := starts[a.Path[0].Index]; ok {
			return stale("it was resumed before: the sub-agent of call %d was started, and its outcome is unknown", a.Path[0].Index)
		}
	}
	return nil
}

// reply returns the phase of the pending calls, decided by the replies. It returns an error if the continuation or the
// replies do not fit the conversation. With held, replies may be missing.
func (r *run) reply(c Continuation, replies map[string]Reply, held bool) (*toolPhase, error) {
	stale := func(format string, args ...any) error {
		return &ResumeError{Kind: ErrStale, ID: c.ID, Err: fmt.Errorf(format, args...)}
	}

	// Each open call must be named by the continuation. Named calls are removed from open; none may be left at the end.
	open := map[int]Call{}
	for _, call := range r.d.OpenCalls() {
		open[call.Index] = normalized(call)
	}

	names := callNames(r.caller())
	kept, starts := keptAgents(r.d), startsOf(r.d)
	own, agents := c.own()
	reason := c.ownReason()
	p := newPhase(r, len(own)+len(agents))
	for i := range p.calls {
		// Both lists are in call order: take the call that comes first.
		var pending Pending
		var agent *PausedAgent
		if len(agents) > 0 && (len(own) == 0 || agents[0].Path[0].Index < own[0].Call.Index) {
			agent, agents = &agents[0], agents[1:]
			pending.Call = agent.Path[0]
		} else {
			pending, own = own[0], own[1:]
		}

		// Do not trust the continuation here: the conversation decides which calls are open.
		index := pending.Call.Index
		if index < 0 || index >= len(names) || agent == nil && names[index] != pending.ID {
			return nil, stale("no call of the message is %q", pending.ID)
		}
		call, isOpen := open[index]
		if !isOpen {
			return nil, stale("call %q is not open", names[index])
		}
		delete(open, index)

		// Index and ID come from the conversation. Name and arguments come from the continuation, because a hook may
		// have changed them.
		to := &p.calls[i]
		to.call, to.ran, to.kept = call, pending.Call, kept[index]
		to.ran.Index, to.ran.ID, to.ran.Input = call.Index, call.ID, orEmpty(pending.Call.Input)
		if agent != nil {
			if err := r.replyAgent(to, c, *agent, names, replies); err != nil {
				return nil, err
			}
			continue
		}
		to.approval, to.deferred, to.reason = pending.Approval, pending.Deferred, pending.Reason
		to.start = starts[index]

		// The replies will come later. Only the continuation is checked.
		if held {
			continue
		}
		if err := r.replyTo(to, reason, pending.ID, replies[pending.ID]); err != nil {
			return nil, err
		}
	}
	for _, call := range open {
		return nil, stale("call %d is open, and does not wait", call.Index)
	}
	return p, r.checkReplies(p, replies, names)
}

// replyTo applies the reply to one call in a pause for reason. id is the call's ID in replies.
func (r *run) replyTo(c *toolCall, reason content.Stop, id string, reply Reply) error {
	// A pause for results takes only results. A pause for approval takes only approvals and denials.
	fits := reply.kind == noReply || (reply.kind == returned) == (reason == content.StopResults)
	switch {
	case !fits, reply.kind != noReply && reason == content.StopApproval && !c.approval:
		return &ResumeError{Kind: ErrReply, ID: id, Err: fmt.Errorf("the run waits: %s", reason)}
	case reply.kind == noReply && reason == content.StopApproval && c.approval:
		return &ResumeError{Kind: ErrMissingReply, ID: id}

	case reply.kind == declined && c.start != nil:
		c.leaveInDoubt(cmp.Or(reply.reason, "a person decided not to execute it again"))
		return nil
	case reply.kind == declined:
		c.deny(cmp.Or(reply.reason, "denied by user"))
		return nil
	case reply.kind == returned:
		if err := reply.result.valid(); err != nil {
			return &ResumeError{Kind: ErrReply, ID: id, Err: err}
		}
		c.outside = &reply.result
		return nil
	case reason == content.StopResults: // no reply yet
		c.deferred = true
		return nil
	}

	// The call is approved, or needed no approval. Arguments changed by a hook before the pause are not checked again.
	c.approval = false
	if reply.input != "" {
		c.ran.Input = reply.input
	}
	var misfit *argumentError
	if err := r.find(c); err != nil && (c.fn == nil || reply.input != "" || !errors.As(err, &misfit)) {
		c.fail(err)
	}
	return nil
}

// afterDeferred passes the result of a deferred call through the After hooks, within the agent's timeout for a call. An
// error of the hooks becomes an error result; the returned error is that of the run's context.
func (r *run) afterDeferred(call, ran Call, result Result) (Result, error) {
	if !slices.ContainsFunc(r.agent.Hooks, func(h Hook) bool { return h.After != nil }) {
		return result, nil
	}
	ctx, cancel := r.ctx, func() {}
	if r.agent.ToolTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.agent.ToolTimeout)
	}
	defer cancel()

	// Use a separate call: a hook that was given up may still use it while the run continues.
	c := &newPhase(r, 1).calls[0]
	c.call, c.ran, c.ctx.Context = call, ran, ctx
	after := func(_ context.Context, result Result) (Result, error) { return c.runAfterHooks(result), nil }
	changed, err := guard(ctx, &r.workers, after, result)
	switch {
	case err == nil:
		return changed, nil
	case r.ctx.Err() != nil:
		return Result{}, errorOf(r.ctx)
	case ctx.Err() != nil:
		return failure(textTimeout, r.agent.ToolTimeout), nil
	}
	return failure("%v", r.hidden(ran.Name, err)), nil
}

// checkReplies returns an error for a reply to a call that is not pending. A repeated reply with the result that the
// conversation has already is fine. Replies to calls of paused sub-agents are checked with the sub-agents.
func (r *run) checkReplies(p *toolPhase, replies map[string]Reply, names []string) error {
	executed := map[string]node.ToolExecution{}
	for _, h := range r.d.Heads() {
		e, ok := h.Payload().(node.ToolExecution)
		if ok && e.Index >= 0 && e.Index < len(names) && !e.State.Unfinished() {
			executed[names[e.Index]] = e
		}
	}

	// A reply may name a call of the run, a call inside a paused sub-agent, or a call that has its result.
	pending, nested := map[string]bool{}, map[string]bool{}
	for i := range p.calls {
		c := &p.calls[i]
		if c.resume == nil {
			pending[names[c.call.Index]] = true
			continue
		}
		for _, id := range c.resume.ids {
			nested[id] = true
		}
	}

	// The same result may come again: its sender may not have learned that it had arrived.
	for id, reply := range replies {
		had, has := executed[id]
		switch {
		case has && reply.kind == returned && !r.hasResult(had, reply.result):
			return &ResumeError{Kind: ErrConflict, ID: id}
		case has && reply.kind == returned, pending[id] && !has, nested[id] && !slices.Contains(names, id):
		default:
			return &ResumeError{Kind: ErrUnknownCall, ID: id}
		}
	}
	return nil
}

// hasResult reports whether an execution has the result, before or after the After hooks.
func (r *run) hasResult(had node.ToolExecution, result Result) bool {
	// The execution has the result as it came, or cut with the whole in Full, or as the After hooks return it.
	same := func(a, b content.Blocks, failed bool) bool { return a.Equal(b) && had.IsError == failed }
	if same(had.Result, result.Content, result.IsError) || had.Full.Len() > 0 && same(had.Full, result.Content, result.IsError) {
		return true
	}
	if result.valid() != nil {
		return false
	}
	call := Call{Name: had.Tool, Input: had.Input, Index: had.Index, ID: had.CallID}
	result, err := r.afterDeferred(call, call, result)
	return err == nil && same(had.Result, result.Content, result.IsError)
}

// ClaimOnce returns a hook that refuses a continuation it has seen before. Share one such hook among all agents that
// resume. Put it last: a continuation stays claimed even if a later hook refuses it.
func ClaimOnce() Hook {
	var used onceOnly
	return Hook{Resume: func(_ context.Context, c Continuation) error {
		if !used.take(c.Run + "/" + c.ID) {
			return errors.New("it was resumed before")
		}
		return nil
	}}
}

// onceOnly is a set of keys that can be taken once.
type onceOnly struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (o *onceOnly) take(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[key] {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[key] = true
	return true
}
