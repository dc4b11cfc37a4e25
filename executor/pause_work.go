package executor

import (
	"context"
	"fmt"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// Begin records that a call which waits for its result is begun elsewhere, and returns the conversation with the start.
// Save it before the tool is called: without a result, the call is then in doubt for everybody, also after the pause was
// given up. Begin marks the calls of the conversation itself, not those inside its sub-agents.
//
// Errors: ErrUnknownCall if the call does not wait for its result, and ErrConflict if it was begun before.
func Begin(d dag.DAG, call node.CallKey) (dag.DAG, error) {
	p, n := waitingCall(d, call)
	if n == nil {
		return d, &ResumeError{Kind: ErrUnknownCall, Call: call}
	}
	e := n.Payload().(node.ToolExecution)
	switch {
	case e.State != node.ExecutionAwaitingResults || e.Child.Len() > 0:
		return d, &ResumeError{Kind: ErrUnknownCall, Call: call}
	case !e.Started.IsZero():
		return d, &ResumeError{Kind: ErrConflict, Call: call, Err: fmt.Errorf("it was begun at %s", e.Started)}
	}
	e.Started = d.Source().Time()
	return appendTo(d, p, e)
}

// Accept appends the result of a call that waits for it, and returns the conversation. Nothing else is executed: the
// next [Agent.Run] or [Agent.Resume] continues, once every call has its result. The same result again changes nothing.
// It is for programs that keep results as they come; Resume passes a result through the After hooks, and Accept does
// not.
//
// Errors are those of Resume about a reply.
func Accept(d dag.DAG, reply Reply) (dag.DAG, error) {
	if err := reply.check(); err != nil {
		return d, reply.refuse(ErrReply, "%w", err)
	}
	r := newRun(context.Background(), Agent{}, d, nil)
	defer r.close()

	p, n := waitingCall(d, reply.Call)
	if n == nil || !n.Payload().(node.ToolExecution).State.Paused() {
		return d, r.hadResult(reply)
	}
	placed := placedReply{Reply: reply, waits: n}
	if err := placed.fits(); err != nil {
		return d, err
	}
	if reply.kind != returned {
		return d, reply.refuse(ErrReply, "only a result can be accepted without a run")
	}

	e := n.Payload().(node.ToolExecution)
	if e.Started.IsZero() {
		e.Started = d.Source().Time()
	}
	result := reply.result
	done := node.ToolExecution{
		Index: e.Index, Ran: e.Ran, Started: e.Started, Ended: d.Source().Time(), Result: result.Content,
		IsError: result.IsError, Usage: result.Usage, Details: result.Details, Full: result.Full, Decided: reply.decided(),
	}
	if e.Spent == (node.Spent{}) {
		return appendTo(d, p, done)
	}

	// What the run has spent moves to another call that waits, as long as one does.
	for _, other := range p.Started {
		if other != nil && other != n && other.Payload().(node.ToolExecution).State.Paused() {
			moved := other.Payload().(node.ToolExecution)
			moved.Spent = e.Spent
			return appendTo(d, p, done, moved)
		}
	}
	done.Spent = e.Spent
	return appendTo(d, p, done)
}

// waitingCall returns the unfinished execution of a call at the heads, and its phase.
func waitingCall(d dag.DAG, call node.CallKey) (lineage.Phase, *node.Node) {
	for _, b := range lineage.Branches(d.Heads()) {
		if b.Last.ID() != call.Message {
			continue
		}
		if p, open := b.Phase(); open {
			if i := p.Number(call.Index); i >= 0 {
				return p, p.Started[i]
			}
		}
	}
	return lineage.Phase{}, nil
}

// appendTo appends executions to one of the open phases at the heads.
func appendTo(d dag.DAG, p lineage.Phase, list ...node.ToolExecution) (dag.DAG, error) {
	// Usually the phase is the whole conversation.
	heads := d.Heads()
	whole, at := len(p.Heads) == len(heads), d
	if !whole {
		at = d.WithHeads(p.Heads...)
	}

	after := at.AppendExecutions(list...)
	if err := after.Err(); err != nil {
		return d, err
	}
	if whole {
		return after, nil
	}
	return after.WithHeads(p.Replace(heads, after.Heads())...), nil
}

// Work executes a deferred call, on a worker for example, and returns the reply with its result. It executes the call
// as [Agent.ExecuteTools] does: the arguments are checked, the hooks apply, there is a timeout, and a panic becomes an
// error result. The tool has the [IdempotencyKey] of the call in its conversation. Whoever calls Work decides that the
// call may be executed: do so because of a job, not because of what a conversation says.
//
// Errors are those of ExecuteTools, with a reply for any of them but an end of the context.
func (a Agent) Work(ctx context.Context, p dag.Pending) (Reply, error) {
	use := content.ToolUse{ID: p.Call.ID, Name: p.Call.Name, Input: p.Call.Input}
	a.Limits.Time, a.Save = 0, nil
	r := newRun(ctx, a, dag.New().Assistant("", use), nil)
	defer r.close()
	r.elsewhere = &p
	r.showsPhases = true

	reply := ReturnedFor(p.Key, Result{})
	reply.Shown = Shown(p)
	if err := r.bind(); err != nil {
		reply.result = failedWith(err.Error())
		return reply, err
	}
	closed, err := r.executePhase(r.open.Phases[0])
	if err == nil {
		_, err = r.ended()
	}
	if len(closed.results) == 1 {
		reply.result = closed.results[0]
		reply.result.Child = dag.DAG{} // a conversation cannot be sent
	} else if err != nil {
		reply.result = failedWith(err.Error())
	}
	return reply, err
}
