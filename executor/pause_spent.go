package executor

import (
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// This file is the one place for what a run keeps over its pauses and no other node has.

// spent returns what the run has used so far, for an execution of a pause.
func (r *run) spent() node.Spent {
	t := r.totals("")
	s := node.Spent{
		Run: r.id, Turns: t.Turns, Calls: t.ToolCalls, Usage: t.Usage, ToolUsage: t.ToolUsage, Elapsed: t.Elapsed,
		Cost: t.Cost, CostKnown: t.CostKnown,
	}
	r.meter.mu.Lock()
	defer r.meter.mu.Unlock()
	s.InnerTurns, s.InnerCalls = r.meter.turns.inner, r.meter.calls.inner
	return s
}

// spentIn returns what the run that paused in these phases has used; zero if there is no pause.
func spentIn(phases []lineage.Phase) (latest node.Spent) {
	var last *node.Node
	for _, p := range phases {
		if p.Spent == nil && p.Waiting > 0 { // the conversation is not that of a pause: the run went on
			for i := range p.List {
				last = lineage.Later(last, p.Executions.At(i))
			}
		}
		last = lineage.Later(last, p.Spent)
	}
	if last == nil {
		return latest
	}
	return last.Payload().(node.ToolExecution).Spent
}

// keepSpent records what the run has used so far in one of the executions of a pause that wait, the first one. If
// nothing new waits, that is an execution that stays: the one that had it before, or else the next one.
func (p *toolPhase) keepSpent(executions []node.ToolExecution) []node.ToolExecution {
	if len(executions) == 0 {
		return nil
	}
	spent := p.r.spent()
	for i := range executions {
		if executions[i].State.Unfinished() {
			executions[i].Spent = spent
			return executions
		}
	}
	calls, from := len(p.open.List), 0
	if p.open.Spent != nil {
		from = p.open.Of(p.open.Spent.Payload().(node.ToolExecution))
	}
	for i := range calls {
		execution := p.open.Executions.At((from + i) % calls)
		if p.stays > 0 && p.r.replies.leave(execution) {
			e := execution.Payload().(node.ToolExecution)
			e.Spent = spent
			return append(executions, e)
		}
	}
	return executions
}

// restore takes over the identity, the totals and the limits of the run that paused.
func (r *run) restore(s node.Spent) {
	if s.Run != "" {
		r.id = s.Run
	}
	r.turn, r.calls, r.before = s.Turns, s.Calls, s.Elapsed

	// The message with the calls was inspected before the pause. Restore the reasons to stop after it.
	open := 0
	for _, p := range r.open.Phases {
		if r.replies.given(p) {
			open += p.Open
		}
		if m, _ := p.Caller.Message(); m.Answer.Stop == content.StopContext {
			r.stop = content.StopContext
		}
	}
	if r.meter.begin(s, open) {
		r.stop = content.StopCallLimit
	}
	r.recount()
}
