package executor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"maps"
	"sync"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// Continuation names a pause, for programs that want a token of it: to claim it once, to show it, to send it to a
// worker. It holds no state: the conversation has all of it, and [ContinuationOf] makes the Continuation again.
//
// Nothing is executed because of a Continuation. [Agent.Resume] takes the conversation and replies.
type Continuation struct {
	// Run is the ID of the run, the same at each of its pauses.
	Run string
	// ID identifies the pause. It is made from the pending executions in the conversation, and is current exactly as
	// long as these are what is pending.
	ID string
	// Parent is the ID of the pause that was resumed before; "" at the first pause, and if the Continuation was made
	// again from the conversation.
	Parent string
	// Reason is content.StopApproval if any pending call waits for approval, and otherwise content.StopResults.
	Reason content.Stop
	// Calls are the keys of the pending calls, in the order of dag.DAG.Pending.
	Calls []node.CallKey
	// Attributes has the attributes of the run: see [WithAttributes]. They are in no conversation. Give them to the
	// context of Resume.
	Attributes map[string]any
}

// ContinuationOf returns the continuation of the calls that are pending in d. It is zero if none is.
func ContinuationOf(d dag.DAG) Continuation {
	c := Continuation{Reason: content.StopResults}
	sum := sha256.New()
	open := shared.OpenAt(&d).Phases
	for w := range lineage.Pending(open) {
		if c.Calls == nil {
			c.Calls = make([]node.CallKey, 0, len(open[0].List))
		}
		id, e := w.Node.ID(), w.Node.Payload().(node.ToolExecution)
		sum.Write(id[:])
		c.Calls = append(c.Calls, node.CallKey{Message: w.Node.Parent(0).ID(), Index: e.Index})
		if e.State == node.ExecutionAwaitingApproval {
			c.Reason = content.StopApproval
		}
	}
	if len(c.Calls) == 0 {
		return Continuation{}
	}
	c.ID, c.Run = idOf(sum), spentIn(open).Run
	return c
}

// pauseID returns the ID of the continuation of what is pending in the phases.
func pauseID(phases []lineage.Phase) string {
	sum, pending := sha256.New(), false
	for w := range lineage.Pending(phases) {
		id := w.Node.ID()
		sum.Write(id[:])
		pending = true
	}
	if !pending {
		return ""
	}
	return idOf(sum)
}

// idOf returns a text of the size of a UUID.
func idOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:16]) }

func keyOf(execution *node.Node) node.CallKey {
	key, _ := execution.Call()
	return key
}

// ErrPaused is in the chain of a [PausedError].
var ErrPaused = errors.New("the run is paused")

// PausedError reports that calls are pending. They are in the returned conversation: dag.DAG.Pending lists them, and
// [Agent.Resume] takes the replies. Nothing but the conversation has to be kept.
//
// A program may give up a pause, after Ctrl-C at the prompt for example:
//
//   - dag.DAG.CloseTools without arguments answers the open calls with an error result, so that the model reads that
//     they did not run.
//   - A message of the user may follow at once: the same answers are sent then, and dag.DAG.Validate reports the calls.
//   - [Agent.Run] with the conversation as it is asks the hooks about the calls again, and pauses anew.
type PausedError struct {
	// Reason is content.StopApproval if any pending call waits for approval, and otherwise content.StopResults.
	Reason content.Stop
	// Unused are the decisions of the Resume that were not used: a hook asks about another call of the message first. The
	// next Resume needs them again, beside the new ones.
	Unused []Reply

	d          dag.DAG
	run        string          // its ID; "" takes the one in d
	parent     []lineage.Phase // where the run had paused before; nil in a run that was not resumed
	attributes map[string]any  // of the run
}

// PausedAt returns the error for a conversation with pending calls.
func PausedAt(d dag.DAG) *PausedError {
	reason := content.StopResults
	for _, p := range shared.OpenAt(&d).Phases {
		if p.Approval > 0 {
			reason = content.StopApproval
		}
	}
	return &PausedError{Reason: reason, d: d}
}

// Continuation returns the continuation of the pause. It is made at each call, and lists all pending calls.
func (e *PausedError) Continuation() Continuation {
	c := ContinuationOf(e.d)
	c.Run, c.Attributes = cmp.Or(e.run, c.Run), maps.Clone(e.attributes)
	if c.Parent = pauseID(e.parent); c.ID == c.Parent {
		c.Parent = "" // nothing has changed
	}
	return c
}

// Error returns the reason of the pause and the number of pending calls.
func (e *PausedError) Error() string {
	waits, what := "waits for its result", "results"
	if e.Reason == content.StopApproval {
		waits, what = "waits for approval", "approval"
	}
	if n := len(ContinuationOf(e.d).Calls); n != 1 {
		waits = fmt.Sprintf("%d tool calls wait for %s", n, what)
	} else {
		waits = "1 tool call " + waits
	}
	if len(e.Unused) > 0 {
		waits += "; not used yet: " + describe.Count(len(e.Unused), "decision")
	}
	return fmt.Sprintf("executor: %v: %s", ErrPaused, waits)
}

// Unwrap returns ErrPaused.
func (e *PausedError) Unwrap() error { return ErrPaused }

// Errors of [Agent.Resume], for errors.Is; a [ResumeError] names the call.
var (
	// ErrStale: the reply was given to something else than what the conversation shows now, or a Resume hook refuses
	// the pause.
	ErrStale = errors.New("the reply is not to what the conversation shows now")
	// ErrUnknownCall: the call of a reply is not pending.
	ErrUnknownCall = errors.New("the call is not pending")
	// ErrMissingReply: a call that waits for approval has no reply.
	ErrMissingReply = errors.New("a call that waits for approval has no reply")
	// ErrConflict: the call has another reply already.
	ErrConflict = errors.New("the call has another reply already")
	// ErrReply: the reply is of the wrong kind, such as a result for a call that needs approval.
	ErrReply = errors.New("the reply does not fit its call")
	// errNoAgent: the agent no longer has the sub-agent of a pending call.
	errNoAgent = errors.New("the sub-agent does not exist")
)

// ResumeError reports why a run cannot be resumed. No call was executed, and the conversation is unchanged.
type ResumeError struct {
	// Kind is one of the errors above; errors.Is finds it.
	Kind error
	// Call is the key of the call. It is zero if a Resume hook refuses the pause.
	Call node.CallKey
	// Err has details; it may be nil.
	Err error
}

// Error returns the kind of the error, the call, and the details.
func (e *ResumeError) Error() string {
	text := fmt.Sprintf("executor: resume: %v", e.Kind)
	if e.Call != (node.CallKey{}) {
		text += ": call " + e.Call.String()
	}
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

// pause appends an unfinished execution for each call that waits for somebody, and returns the *PausedError. The results
// so far become part of the conversation.
func (r *run) pause(p *toolPhase) error {
	// Emit the known results before the pause, and keep them in the conversation.
	if p.early > 0 && !p.emitEarly(len(p.calls)) {
		return errLeft
	}
	var executions []node.ToolExecution
	for _, c := range p.calls {
		if c.state == done && !c.saved {
			executions = append(executions, c.executed().(node.ToolExecution))
		}
	}
	executions = append(executions, p.waitingExecutions()...)

	// Count the results now: the resumed run begins with these totals.
	r.calls += p.finished
	r.meter.spend(ownTool, "", p.usage)
	d := r.d.AppendExecutions(p.keepSpent(executions)...)
	if err := d.Err(); err != nil {
		return err
	}
	r.d = d
	return r.paused()
}

// waitingExecutions returns an unfinished execution for each call that waits for somebody from now on.
func (p *toolPhase) waitingExecutions() []node.ToolExecution {
	var list []node.ToolExecution
	for _, c := range p.calls {
		e := node.ToolExecution{
			Index: c.call.Index, Ran: c.changes(), Note: c.reason, Decided: c.decided, Started: c.startedBefore(),
		}
		switch {
		case c.state == done:
			continue
		case c.state == agentPaused:
			e = c.executed().(node.ToolExecution)
			e.Ended = c.started
			e.State, e.Child = node.ExecutionState(c.pause.reason), node.ListOf(c.pause.dag.Heads()...)
		case c.approval:
			e.State, e.Deferred = node.ExecutionAwaitingApproval, c.deferred
		case c.deferred && !p.asks:
			e.State = node.ExecutionAwaitingResults
		default:
			continue // undecided: the next run decides
		}
		list = append(list, e)
	}
	return list
}

// paused returns the *PausedError of a run whose calls wait. While one of several branches is executed, it returns
// errPhasePaused: closeBranches completes the error once every branch was executed.
func (r *run) paused() error {
	if r.beside != nil {
		return errPhasePaused
	}

	e := PausedAt(r.d)
	e.run, e.parent, e.attributes = r.id, r.parent, Attributes(r.ctx)
	if r.replies != nil {
		e.Unused = r.replies.unused(r.d)
	}
	return e
}

// unused returns the decisions about calls that d still shows as they were when somebody decided.
func (rs *replies) unused(d dag.DAG) (list []Reply) {
	given := map[node.CallKey]Reply{}
	for key, p := range rs.own {
		given[key] = p.Reply
	}
	for _, in := range rs.inside {
		for _, p := range in.list {
			given[p.Call] = p.Reply
		}
	}
	for w := range lineage.Pending(shared.OpenAt(&d).Phases) {
		if reply, is := given[keyOf(w.Node)]; is && !reply.IsResult() && reply.Shown == Shown(dag.PendingOf(w.Node)) {
			list = append(list, reply)
		}
	}
	return list
}

// ClaimOnce returns a hook that refuses a pause it has seen before. Share one such hook among all agents that resume. Put
// it last: a pause stays claimed even if a later hook refuses it. It remembers pauses in this process alone: among
// several processes, the compare-and-set of the conversation's head in a store does the same.
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
