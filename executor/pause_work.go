package executor

import (
	"context"
	"fmt"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// Begin records that a call which waits for its result is begun elsewhere, and returns the conversation with the start.
// Save it before the tool is called: without a result, the call is then in doubt for everybody, also after the pause was
// given up. Begin marks the calls of the conversation itself, not those inside its sub-agents.
//
// Errors: ErrUnknownCall if the call does not wait for its result, and ErrConflict if it was begun before.
func Begin(d dag.DAG, call node.CallKey) (dag.DAG, error) {
	c, waits := openCallAt(d, call)
	if !waits {
		return d, &ResumeError{Kind: ErrUnknownCall, Call: call}
	}
	e := c.execution.Payload().(node.ToolExecution)
	switch {
	case e.State != node.ExecutionAwaitingResults || e.Child.Len() > 0:
		return d, &ResumeError{Kind: ErrUnknownCall, Call: call}
	case !e.Started.IsZero():
		return d, &ResumeError{Kind: ErrConflict, Call: call, Err: fmt.Errorf("another process began to execute it at %s", e.Started)}
	}
	e.Started = d.Source().Time()
	return c.append(e)
}

// Accept appends the result of a call that waits for it, and returns the conversation. Nothing else is executed: the
// next [Agent.Run] or [Agent.Resume] continues, once every call has its result. The same result again changes nothing.
// It is for programs that keep results as they come; Resume passes a result through the After hooks, and Accept does
// not.
//
// Errors are those of Resume about a reply.
func Accept(d dag.DAG, reply Reply) (dag.DAG, error) {
	if err := reply.unfit(); err != nil {
		return d, err
	}
	c, waits := openCallAt(d, reply.Call)
	if !waits || !c.execution.Payload().(node.ToolExecution).State.Paused() {
		r := newRun(context.Background(), Agent{}, d, nil)
		defer r.close()
		return d, r.hadResult(reply)
	}
	placed := placedReply{Reply: reply, waits: c.execution}
	if err := placed.fits(); err != nil {
		return d, err
	}
	if reply.kind != returned {
		return d, reply.refuse(ErrReply, "only a result can be accepted without a run")
	}

	e := c.execution.Payload().(node.ToolExecution)
	if e.Started.IsZero() {
		e.Started = d.Source().Time()
	}
	result := reply.result
	done := node.ToolExecution{
		Index: e.Index, Ran: e.Ran, Started: e.Started, Ended: d.Source().Time(), Result: result.Content,
		IsError: result.IsError, Usage: result.Usage, Details: result.Details, Full: result.Full, Decided: reply.decided(),
	}
	if e.Spent == (node.Spent{}) {
		return c.append(done)
	}

	// What the run has spent moves to the next call that waits, as long as one does. After the last call comes the first
	// one: a search from the beginning would pass all calls with a result each time.
	calls := len(c.phase.List)
	for i := 1; i < calls; i++ {
		other := c.phase.Executions.At((c.number + i) % calls)
		if other == nil {
			continue
		}
		if moved := other.Payload().(node.ToolExecution); moved.State.Paused() {
			moved.Spent = e.Spent
			return c.append(done, moved)
		}
	}
	done.Spent = e.Spent
	return c.append(done)
}

// openCall is a call without a result, and where it is open.
type openCall struct {
	d         dag.DAG
	phase     lineage.Phase
	alone     bool // the phase is the only branch of d
	number    int
	execution *node.Node // the unfinished execution of the call
}

// openCallAt finds a call with an unfinished execution at the heads.
func openCallAt(d dag.DAG, call node.CallKey) (openCall, bool) {
	open := shared.OpenAt(&d)
	for _, p := range open.Phases {
		number := p.Number(call.Index)
		if p.Caller.ID() == call.Message && number >= 0 && p.Started(number) != nil {
			return openCall{d, p, open.Branches == 1, number, p.Started(number)}, true
		}
	}
	return openCall{}, false
}

// append appends executions of calls of the message.
func (c openCall) append(list ...node.ToolExecution) (dag.DAG, error) {
	at := c.d
	if !c.alone {
		at = c.d.WithHeads(c.phase.Heads...)
	}

	after := at.AppendExecutions(list...)
	switch err := after.Err(); {
	case err != nil:
		return c.d, err
	case c.alone:
		return after, nil
	}
	return after.WithHeads(lineage.Replace(c.d.Heads(), c.phase.Heads, after.Heads())...), nil
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
