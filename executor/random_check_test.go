package executor_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// checkConversation checks I1: every call of an assistant's message has exactly one result, in the message after it, in call order. Where
// the run paused, the calls of the last message may be open.
func (w *witness) checkConversation(invariant string, d dag.DAG, paused bool) {
	if !w.check(invariant, d.Err() == nil, "the conversation has an error: %v", d.Err()) {
		return
	}
	messages := d.Messages()
	for i, m := range messages {
		calls := m.Blocks.ToolUses()
		if len(calls) == 0 || m.Role != content.Assistant {
			continue
		}
		if i == len(messages)-1 {
			w.check(invariant, paused, "the last message's calls have no results")
			continue
		}
		if paused && !slices.ContainsFunc(messages[i+1:], func(m content.Message) bool { return len(m.Blocks.ToolResults()) == 0 }) {
			continue // some of them have
		}
		results := messages[i+1].Blocks.ToolResults()
		if !w.check(invariant, len(results) == len(calls), "message %d has %d calls, and then come %d results", i, len(calls), len(results)) {
			continue
		}
		for k, r := range results {
			w.check("I3", r.CallID == calls[k].ID, "result %d of message %d is that of another call", k, i)
		}
		if i+2 < len(messages) {
			w.check(invariant, len(messages[i+2].Blocks.ToolResults()) == 0, "a second message with results")
		}
	}
}

// checkLeg checks what is left when a run, or a part of one, has ended.
func (w *world) checkLeg(l *leg) {
	p, d := l.plot, l.end.DAG
	w.check("I4", p.ended, "the run has no End")
	if !p.began() {
		w.checkRefused(l)
		return
	}
	if p.paused {
		c := p.continuation
		l.pause = &c
		w.checkPause(l)
	} else {
		w.checkConversation("I1", d, false)
		w.check("I1", len(d.OpenCalls()) == 0, "calls are open")
		_, notes := dialect.Repair(d.Messages(), dialect.Rules{EndsOpen: func(content.Message) bool { return true }})
		for _, note := range notes {
			w.check("I1", expected(note), "the conversation needs repair: %v", note)
		}
		w.checkReason(l)
	}
	for _, n := range l.before.Heads() {
		w.check("I1", kept(d, n) || w.replaced(d), "what was said before is lost")
	}
	w.checkSpent(l)
	w.checkHidden(d)
	w.checkLimits(l)
}

// kept reports whether d has n or, where a paused sub-agent went on from n, the conversation that n has.
func kept(d dag.DAG, n *node.Node) bool {
	e, _ := n.Payload().(node.ToolExecution)
	if !e.State.Paused() {
		return d.Contains(n)
	}
	for _, other := range d.Nodes() {
		later, ok := other.Payload().(node.ToolExecution)
		if !ok || later.Index != e.Index || other.NumParents() != 1 || other.Parent(0).ID() != n.Parent(0).ID() {
			continue
		}
		child := dag.FromNode(other)
		for _, h := range e.Child.Slice() {
			if !kept(child, h) {
				return false
			}
		}
		return true
	}
	return false
}

// expected reports whether a conversation that the executor made may need the repair: ids that a model used twice, messages of one side in a
// row, and the calls of an answer that was cut off.
func expected(note api.RepairNote) bool {
	switch note.Kind {
	case "id", "merged":
		return true
	}
	return note.Kind == "dropped" && note.Detail == "a tool call of a response that was cut off"
}

// replaced reports whether a hook replaced something of the conversation.
func (w *world) replaced(d dag.DAG) bool { return len(w.agent.Hooks) > 0 }

// checkRefused: a run that is refused is an End alone and changes nothing.
func (w *world) checkRefused(l *leg) {
	w.check("I4", dag.Equal(l.before, l.end.DAG), "a run that was refused changed the conversation")
	if !w.check("I4", l.err != nil, "a run was refused without an error") {
		return
	}
	known := errors.Is(l.err, executor.ErrAnswered) || errors.Is(l.err, executor.ErrRejected)
	var resume *executor.ResumeError
	known = known || l.plot.resumed != nil && errors.As(l.err, &resume) || wasOver(l.err)
	known = known || errors.Is(l.err, context.DeadlineExceeded) || errors.Is(l.err, errCancelled) // while a hook looked at something
	known = known || w.agent.Limits.Time > 0 && strings.Contains(l.err.Error(), "time limit")
	w.check("I4", known, "the run was refused: %v", l.err)
}

// wasOver reports whether the run's time was over before it began.
func wasOver(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errCancelled) ||
		strings.Contains(err.Error(), "time limit")
}

// checkReason: the reason fits the error.
func (w *world) checkReason(l *leg) {
	switch reason := l.end.Stop.Reason; reason {
	case content.StopCancelled:
		w.check("I4", errors.Is(l.err, errCancelled) || errors.Is(l.err, context.Canceled), "cancelled: %v", l.err)
	case content.StopDeadline:
		w.check("I4", errors.Is(l.err, context.DeadlineExceeded), "deadline: %v", l.err)
	case content.StopError:
		w.check("I4", l.err != nil, "an error that is none")
	default:
		w.check("I4", l.err == nil && reason != "", "%q beside %v", reason, l.err)
	}
}

// checkPause checks I7: the continuation is of this run, its id is new, and names the pause before as its parent.
func (w *world) checkPause(l *leg) {
	c, d := l.pause, l.end.DAG
	var paused *executor.PausedError
	w.check("I7", errors.As(l.err, &paused) && paused.Continuation().ID == c.ID, "the error is of another pause: %v", l.err)
	w.check("I7", l.end.Stop.Reason == c.Reason, "the totals of the end are %v, and of the pause %v", l.end.Stop, c)
	open := map[node.CallKey]executor.Call{}
	for _, call := range d.OpenCalls() {
		open[call.Key()] = call
	}
	waiting := map[node.CallKey]bool{}
	for _, p := range d.Pending() {
		key := p.Key
		if len(p.Path) > 0 {
			key = p.Path[0]
		} else {
			w.check("I7", open[p.Key].Name == p.Tool, "pending %v is open as %v", p, open[p.Key])
		}
		waiting[key] = true
	}
	w.check("I7", len(open) == len(waiting) || c.Reason == content.StopApproval, "%d calls are open, and %d wait", len(open), len(waiting))
	w.check("I7", len(waiting) > 0, "nothing waits")
	w.check("I7", c.Attributes["tenant"] == "t1", "the attributes of the run are lost")
	w.checkConversation("I1", d, true)
	before := l.plot.resumed
	if before == nil {
		w.check("I7", c.Parent == "" && c.ID != "", "the first pause %q has the parent %q", c.ID, c.Parent)
		return
	}
	w.check("I7", l.end.Stop.Elapsed >= w.elapsed, "totals shrink: %v, then %v", w.elapsed, l.end.Stop.Elapsed)
	if c.ID != before.continuation.ID { // else nothing came of it
		w.check("I7", c.Parent == before.continuation.ID, "the pause %q has the parent %q instead of %q", c.ID, c.Parent, before.continuation.ID)
	}
}

// checkSpent: the totals are what the models were paid, those of sub-agents included (I7).
func (w *world) checkSpent(l *leg) {
	w.mu.Lock()
	spent, given := w.spent, w.given
	w.mu.Unlock()
	stop := l.end.Stop
	w.check("I7", stop.Usage == spent[0] || w.again > 0, "the model took %v, and the totals say %v", spent[0], stop.Usage)
	inside := spent[1].Plus(spent[2]).Plus(spent[3])
	ran := stop.Reason != content.StopCancelled && stop.Reason != content.StopDeadline && stop.Reason != content.StopTimeLimit
	if ran && !given {
		w.check("I7", stop.ToolUsage.Total() >= inside.Total(), "models inside of tools took %v, and the totals say %v", inside, stop.ToolUsage)
	}
	if limit := w.agent.Limits.Time; limit > 0 && !l.plot.paused {
		w.check("I7", stop.Elapsed <= limit+w.slept, "the run took %v, and its limit is %v", stop.Elapsed, limit)
	}
}

// checkHidden: with HideErrors no error of a tool or hook is told to the model.
func (w *world) checkHidden(d dag.DAG) {
	if !w.agent.HideErrors {
		return
	}
	for _, m := range d.Messages() {
		for _, r := range m.Blocks.ToolResults() {
			w.check("HideErrors", !strings.Contains(r.Content.Text(), errSecret.Error()), "the model was told %q", r.Content.Text())
		}
	}
}

// checkLimits: no more is asked and called than the limits allow (I5, I10).
func (w *world) checkLimits(l *leg) {
	limits, p := w.agent.Limits, l.plot
	turns := limits.Turns
	if turns == 0 {
		turns = 50
	}
	w.check("I10", turns < 0 || p.turns <= turns, "%d turns, and the limit is %d", p.turns, turns)
	w.check("I10", limits.Turns <= 0 || p.allTurns <= limits.Turns, "%d turns with those inside, and the limit is %d", p.allTurns, limits.Turns)
	ran := 0
	for _, n := range l.end.DAG.Nodes() {
		m, ok := n.Message()
		if !ok || m.Role != content.Assistant {
			continue
		}
		here := 0
		for _, c := range m.Blocks.ToolUses() {
			if w.seen(numberOf(c.ID, c.Input)).ran > 0 {
				here++
			}
		}
		w.check("I5", limits.CallsPerTurn <= 0 || here <= limits.CallsPerTurn, "%d calls of a turn, and the limit is %d", here, limits.CallsPerTurn)
		ran += here
	}
	ran += w.ranInside(l.end.DAG)
	w.check("I5", limits.Calls <= 0 || ran <= limits.Calls, "%d calls, and the limit is %d", ran, limits.Calls)
}

// ranInside counts the calls of runs inside calls that ran.
func (w *world) ranInside(d dag.DAG) (ran int) {
	for _, n := range d.Nodes() {
		e, ok := n.Payload().(node.ToolExecution)
		if !ok || e.Child.Len() == 0 {
			continue
		}
		child := dag.New().WithHeads(e.Child.Slice()...)
		ran += w.ranInside(child)
		for _, m := range child.Messages() {
			for _, c := range m.Blocks.ToolUses() {
				if w.seen(numberOf(c.ID, c.Input)).ran > 0 {
					ran++
				}
			}
		}
	}
	return ran
}

// checkQueues checks I8: each message that was put into a queue was said once, in order, or told as rejected, or is still there.
func (w *world) checkQueues() {
	for _, q := range w.queues {
		said, rejected := w.arrived.delivered[q.name], w.arrived.rejected[q.name]
		w.check("I8", slices.IsSorted(said), "%s messages were said in the order %v", q.name, said)
		w.check("I8", slices.IsSorted(rejected), "%s messages were rejected in the order %v", q.name, rejected)
		left, sent := q.left()
		w.check("I8", slices.IsSorted(slices.Concat(said, left)), "%s messages %v wait, and %v were said", q.name, left, said)
		all := slices.Concat(said, rejected, left)
		slices.Sort(all)
		fine := len(all) == sent
		for i, n := range all {
			fine = fine && i == n
		}
		w.check("I8", fine, "of %d %s messages %v were said, %v rejected, and %v are left", sent, q.name, said, rejected, left)
	}
}

// checkSingleUse: a stream that was ranged over does nothing a second time.
func (w *world) checkSingleUse(seq iter.Seq2[executor.Event, error]) {
	n := 0
	for event, err := range seq {
		_, end := event.(executor.End)
		w.check("I4", end && errors.Is(err, api.ErrProtocol), "a stream that was ranged over gives a %T beside %v", event, err)
		n++
	}
	w.check("I4", n == 1, "a stream that was ranged over gives %d events", n)
}
