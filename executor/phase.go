package executor

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// phase is a tool phase that is over.
type phase struct {
	executions []node.ToolExecution
	results    []Result
}

// terminates reports whether all results ask to end the run.
func (p phase) terminates() bool {
	for _, r := range p.results {
		if !r.Terminate {
			return false
		}
	}
	return len(p.results) > 0
}

// tools carries out the calls that are open at the head, and closes the phase. Where calls have to wait for somebody, the error is a
// *PausedError.
func (r *run) tools() (phase, error) {
	open := r.d.OpenCalls()
	if len(open) == 0 {
		return r.closeExecuted()
	}
	said := r.said()
	plans := r.plans // where an earlier part of the run decided
	if r.plans = nil; plans == nil {
		r.look(said)
		plans = r.decide(open)
	}
	b := newBatch(r, plans)
	if approval(plans) && r.ctx.Err() == nil {
		return phase{}, r.pause(b, content.StopApproval)
	}
	if !b.run() {
		return phase{}, errLeft
	}
	if b.deferred() {
		if r.ctx.Err() == nil {
			return phase{}, r.pause(b, content.StopResults)
		}
		if !b.giveUpDeferred() {
			return phase{}, errLeft
		}
	}
	return r.closePhase(b)
}

// closeBranches executes the calls that are open at some of several heads, one tool phase after the other. The other heads stay.
func (r *run) closeBranches() (content.Stop, error) {
	for _, branch := range openBranches(r.d) {
		heads, tools := r.d.Heads(), r.ledger.toolUsage()
		r.d = r.d.WithHeads(branch...)
		said := r.said()
		done, err := r.tools()
		r.d = r.d.WithHeads(instead(heads, branch, r.d.Heads())...)
		if err != nil {
			return r.badStop(err), err
		}
		ended := TurnEnd{
			Turn: r.turn, Message: said, Executions: done.executions, ToolUsage: r.ledger.toolUsage().Minus(tools), DAG: r.d,
		}
		if !r.tell(ended) {
			return "", errLeft
		}
		if r.stop != "" {
			return r.stop, nil
		}
	}

	// What bind could not declare while calls were open.
	if r.waits() {
		return "", nil
	}
	if err := r.declare(); err != nil {
		return content.StopError, err
	}
	return "", nil
}

// openBranches returns the heads of each tool phase that is not closed, where the conversation has other heads beside them.
func openBranches(d dag.DAG) [][]*node.Node {
	heads := d.Heads()
	if len(heads) < 2 {
		return nil
	}

	// Heads of one phase are the message with the calls, or executions of it.
	var order []node.ID
	phases := map[node.ID][]*node.Node{}
	for _, h := range heads {
		said := phaseOf(h)
		if phases[said.ID()] == nil {
			order = append(order, said.ID())
		}
		phases[said.ID()] = append(phases[said.ID()], h)
	}
	if len(order) < 2 {
		return nil
	}

	var open [][]*node.Node
	for _, id := range order {
		said := phaseOf(phases[id][0])
		if m, _ := said.Message(); m.Role == content.Assistant && len(m.Blocks.ToolUses()) > 0 {
			open = append(open, phases[id])
		}
	}
	return open
}

// phaseOf returns the message that the execution h is of; h itself where it is no execution.
func phaseOf(h *node.Node) *node.Node {
	if isExecution(h) && h.NumParents() == 1 {
		return h.Parent(0)
	}
	return h
}

// instead returns heads with now in place of the first of gone, and without the others.
func instead(heads, gone, now []*node.Node) []*node.Node {
	var list []*node.Node
	for _, h := range heads {
		switch slices.Index(gone, h) {
		case -1:
			list = append(list, h)
		case 0:
			list = append(list, now...)
		}
	}
	return list
}

// look finds out what the message with the calls means for all of them.
func (r *run) look(said *node.Node) {
	m, _ := said.Message()
	r.cutOff = m.Answer.Stop == content.StopMaxTokens || m.Answer.Stop == content.StopContext
	r.stop, r.totals.Detail = r.ledger.reached()
	if m.Answer.Stop == content.StopContext {
		r.stop = content.StopContext // the next request would be longer still
	}
	if r.repeats(m.Blocks.ToolUses()) {
		r.stop, r.nudge = content.StopLoop, nil
	}
}

// repeats counts the calls of an answer, and reports whether the run is to stop. Where the model is only to be told, it is, next.
func (r *run) repeats(calls []content.ToolUse) (stop bool) {
	limit := r.agent.Limits.Repeats
	if limit <= 0 {
		return false
	}
	words, stop := r.same.add(calls, limit)
	if r.nudge = nil; words != "" {
		r.nudge = []content.Message{{Role: content.User, Blocks: content.Words(words)}}
	}
	return stop
}

// recount counts what was called since the user last spoke, as the run did before its pause.
func (r *run) recount() {
	if r.agent.Limits.Repeats <= 0 {
		return
	}

	// What may be a warning of the run's own does not end the search: which it is shows going forward.
	messages := r.transcript().Messages
	from := len(messages) - 1
	for ; from > 0; from-- {
		m := messages[from]
		if m.Role == content.User && len(m.Blocks.ToolResults()) == 0 && !strings.HasPrefix(m.Blocks.Text(), beginRepeated) {
			break
		}
	}

	for _, m := range messages[max(from, 0):] {
		switch calls := m.Blocks.ToolUses(); {
		case len(calls) > 0:
			r.repeats(calls)
		case m.Role != content.User || len(m.Blocks.ToolResults()) > 0:
		case len(r.nudge) > 0 && m.Blocks.Equal(r.nudge[0].Blocks):
			r.nudge = nil // it was told
		default:
			r.same, r.nudge = repeats{}, nil
		}
	}
}

// approval reports whether a call has to be approved first.
func approval(plans []planned) bool {
	for i := range plans {
		if plans[i].approval && plans[i].answered == nil {
			return true
		}
	}
	return false
}

// deferred reports whether calls are deferred: their results come from outside.
func (b *batch) deferred() bool {
	for i := range b.slots {
		if b.slots[i].state == waiting {
			return true
		}
	}
	return false
}

// giveUpDeferred answers the calls that would be deferred, in a run that has ended.
func (b *batch) giveUpDeferred() bool {
	var places []int
	for i := range b.slots {
		if b.slots[i].state == waiting {
			places = append(places, i)
		}
	}
	return b.answer(places, textNotStarted)
}

// closePhase makes the results a part of the conversation.
func (r *run) closePhase(b *batch) (phase, error) {
	settled := b.settled()
	r.totals.ToolCalls += len(settled)
	if !r.tell(MessageStart{Turn: r.turn, Role: content.User}) {
		return phase{}, errLeft
	}
	d := r.d.CloseTools(b.unsaved()...)
	r.resumed = false
	if err := r.append(d); err != nil {
		return phase{}, err
	}
	r.toolsTook(b.usage())
	if r.yield == nil {
		return phase{}, nil // nobody asks
	}
	p := executed(r.d.Head())
	for i := range b.slots {
		s := &b.slots[i]
		p.results[s.call.Index] = s.result
	}
	return p, nil
}

// executionsBefore is what became of the calls whose results n holds.
func executionsBefore(n *node.Node) []node.ToolExecution {
	list := make([]node.ToolExecution, 0, n.NumParents())
	for i := range n.NumParents() {
		if e, ok := n.Parent(i).Payload().(node.ToolExecution); ok {
			list = append(list, e)
		}
	}
	return list
}

// closeExecuted closes a phase whose every call was carried out before, and whose results nobody put together.
func (r *run) closeExecuted() (phase, error) {
	heads := r.d.Heads()
	if len(heads) == 0 || !isExecution(heads[0]) {
		return phase{}, nil
	}
	closed := r.d.CloseTools()
	if closed.Err() != nil {
		return phase{}, nil // executions of no call: they say what they say
	}
	if !r.tell(MessageStart{Turn: r.turn, Role: content.User}) {
		return phase{}, errLeft
	}
	if err := r.append(closed); err != nil {
		return phase{}, err
	}
	return executed(r.d.Head()), nil
}

// executed is a phase of calls that were carried out before n, the message with their results.
func executed(n *node.Node) phase {
	p := phase{executions: executionsBefore(n)}
	p.results = make([]Result, len(p.executions))
	for i, e := range p.executions {
		p.results[i] = Result{Content: e.Result, IsError: e.IsError, Details: e.Details, Usage: e.Usage, Full: e.Full}
	}
	return p
}

func isExecution(n *node.Node) bool {
	_, ok := n.Payload().(node.ToolExecution)
	return ok
}

// said is the message whose calls are open; nil where there is none.
func (r *run) said() *node.Node {
	for _, h := range r.d.Heads() {
		if isExecution(h) && h.NumParents() == 1 {
			h = h.Parent(0)
		}
		if _, ok := h.Message(); ok {
			return h
		}
	}
	return nil
}

func callsOf(n *node.Node) []content.ToolUse {
	m, _ := n.Message()
	return m.Blocks.ToolUses()
}
