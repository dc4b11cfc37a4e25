package executor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// plot follows the events of a run, or of one inside a call, and checks that they tell the story that [executor.Event] promises: I2, I3
// and I4.
type plot struct {
	w       *witness
	inside  bool      // of a call
	ordered bool      // by executor.Ordered
	resumed *plot     // the part of the run before this one
	queues  *arrivals // what came out of the queues; nil where nobody asks

	id              string
	events          int
	ended, paused   bool
	pausedAtZero    bool // before the model was asked at all: no turn tells what the tools took until then
	continuation    executor.Continuation
	turn            int
	inTurn, asked   bool         // between TurnStart and TurnEnd; and the model has been asked
	open            content.Role // the message that is being said
	said            *node.Node   // what the model said in this turn
	phase           map[int]*act // the calls of this turn by index; nil: none are open
	closed          *node.Node   // the message with their results
	last            executor.Event
	usage, ofTools  content.Usage // as told by TurnEnd
	turns, executed int
	around          *plot         // of the run that it is inside of
	allTurns        int           // with those of runs inside calls
	toolUsage       content.Usage // as told by ToolEnd
	lines           []string      // the story, in a form that does not depend on which of two tools is faster
	dag             dag.DAG       // as told last
	turned          *node.Node    // the end of the conversation after the last turn
	nodes           map[node.ID]bool
}

// act is the story of one call.
type act struct {
	call           executor.Call
	started, ended bool
	child          *plot
	before         *plot // the child's story before the pause; nil where it was not paused
	children       int
	execution      node.ToolExecution
	lines          []string
}

// arrivals is what came out of the queues of a script, in order.
type arrivals struct {
	delivered, rejected map[string][]int
}

func newArrivals() *arrivals { return &arrivals{map[string][]int{}, map[string][]int{}} }

func newPlot(w *witness, resumed *plot) *plot {
	p := &plot{w: w, resumed: resumed, nodes: map[node.ID]bool{}}
	if resumed != nil {
		p.id, p.turn, p.usage, p.ofTools, p.turns = resumed.id, resumed.turn, resumed.usage, resumed.ofTools, resumed.turns
		p.pausedAtZero, p.allTurns = resumed.pausedAtZero, resumed.allTurns
		p.executed, p.toolUsage, p.queues = resumed.executed, resumed.toolUsage, resumed.queues
	} else {
		p.queues = newArrivals()
	}
	return p
}

// began reports whether this part of the run was not refused.
func (p *plot) began() bool { return p.events > 1 }

func (p *plot) check(invariant string, holds bool, format string, args ...any) bool {
	return p.w.check(invariant, holds, format, args...)
}

func (p *plot) tell(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// feed takes the next event.
func (p *plot) feed(event executor.Event, err error) {
	p.check("I4", !p.ended, "%T after the End", event)
	p.events++
	first := p.events == 1
	switch e := event.(type) {
	case executor.RunStart:
		p.check("I4", first && err == nil, "a RunStart that is not the first event")
		p.check("I7", p.resumed == nil || e.Run == p.id, "the run %s goes on as %s", p.id, e.Run)
		p.id, p.dag = e.Run, e.DAG
		p.tell("run")
		p.enterOpenPhase()
		p.last = event
		return
	case executor.End:
		p.ended = true
		p.end(e, err, first)
		return
	}
	p.check("I4", !first, "the first event is a %T", event)
	p.check("I4", err == nil, "an error beside a %T: %v", event, err)
	p.check("I4", !p.paused, "a %T after the pause", event)
	p.middle(event)
	p.last = event
}

func (p *plot) middle(event executor.Event) {
	switch e := event.(type) {
	case executor.TurnStart:
		p.turns++
		for q := p; q != nil; q = q.around {
			q.allTurns++
		}
		p.check("I4", !p.inTurn && e.Turn == p.turn+1, "turn %d begins in turn %d (inside: %v)", e.Turn, p.turn, p.inTurn)
		p.turn, p.inTurn, p.asked, p.said, p.closed, p.phase = e.Turn, true, false, nil, nil, nil
		p.tell("turn %d", e.Turn)
	case executor.Rejected:
		p.check("I8", !p.inTurn && p.open == "", "a message is rejected inside of a turn")
		p.arrived(p.queues.rejected, e.Message.Blocks.Text())
		p.tell("rejected %s", e.Message.Blocks.Text())
	case executor.MessageStart:
		p.messageStart(e)
	case executor.MessageDelta:
		p.check("I4", p.open == content.Assistant && e.Turn == p.turn, "a delta outside of an answer")
	case executor.Repaired:
		p.check("I4", p.open == content.Assistant && e.Turn == p.turn, "repairs outside of an answer")
	case executor.Retry:
		p.check("I4", p.open == content.Assistant && e.Turn == p.turn, "a retry outside of an answer")
	case executor.MessageEnd:
		p.messageEnd(e)
	case executor.ToolStart:
		p.toolStart(e)
	case executor.ToolUpdate:
		if a := p.running(e.Turn, e.Call.Index, event); a != nil {
			a.lines = append(a.lines, "update "+e.Content.Text())
			p.check("I2", e.Call.ID == a.call.ID, "an update of %v says it is of %v", a.call, e.Call)
		}
	case executor.Child:
		p.childEvent(e)
	case executor.ToolEnd:
		p.toolEnd(e)
	case executor.TurnEnd:
		p.turnEnd(e)
	case executor.Paused:
		p.pause(e)
	default:
		p.check("I4", false, "an unknown event %T", event)
	}
}

// enterOpenPhase: what is open at the beginning is carried out first, in turn 0 or in the turn of the pause.
func (p *plot) enterOpenPhase() {
	heads := p.dag.Heads()
	executed := len(heads) > 0 && isExecution(heads[0])
	if len(p.dag.OpenCalls()) == 0 && !executed {
		p.check("I7", p.resumed == nil, "a resumed run has nothing open")
		return
	}
	p.inTurn, p.asked, p.phase = true, true, map[int]*act{}
	p.said = saidBefore(heads[0])
	for _, o := range p.dag.OpenCalls() {
		p.phase[o.Index] = &act{before: p.resumed.pausedIn(o.Index)}
	}
}

// waits reports whether the sub-agent of the call has paused.
func (a *act) waits() bool { return a.child != nil && a.child.paused && a.child.ended }

// pausedIn is the story of the sub-agent that paused in a call, up to its pause; nil where none did.
func (p *plot) pausedIn(index int) *plot {
	switch {
	case p == nil || p.phase[index] == nil:
		return nil
	case p.phase[index].child != nil:
		return p.phase[index].child
	}
	return p.phase[index].before
}

func isExecution(n *node.Node) bool {
	_, ok := n.Payload().(node.ToolExecution)
	return ok
}

func saidBefore(head *node.Node) *node.Node {
	if isExecution(head) && head.NumParents() == 1 {
		return head.Parent(0)
	}
	return head
}

func (p *plot) messageStart(e executor.MessageStart) {
	p.check("I4", p.inTurn && p.open == "" && e.Turn == p.turn, "a message of %s begins in turn %d (inside: %v, open: %q)", e.Role, p.turn, p.inTurn, p.open)
	p.open = e.Role
	switch {
	case e.Role == content.Assistant:
		p.check("I4", !p.asked, "the model is asked twice in a turn")
		p.asked = true
	case p.phase != nil:
		p.check("I2", p.closed == nil, "two messages with results")
		for i, a := range p.phase {
			p.check("I2", a.ended, "the results are told before the end of call %d", i)
		}
	default:
		p.check("I8", !p.asked, "the user says something after the answer, in the same turn")
	}
}

func (p *plot) messageEnd(e executor.MessageEnd) {
	if !p.check("I4", p.open != "" && e.Turn == p.turn, "a message ends that did not begin") {
		return
	}
	role := p.open
	p.open = ""
	if e.Node == nil {
		p.check("I4", role == content.Assistant, "a message of the user came to nothing")
		p.tell("nothing")
		return
	}
	m, ok := e.Node.Message()
	p.check("I4", ok && m.Role == role, "a message of %s ended as %s", role, m.Role)
	p.check("I4", !p.nodes[e.Node.ID()], "a message ended twice")
	p.nodes[e.Node.ID()] = true
	p.dag = dag.FromNode(e.Node)
	p.tell("%s: %s %d", role, m.Blocks.Text(), m.Blocks.Len())
	switch {
	case role == content.Assistant:
		p.said = e.Node
		for _, i := range indexesOf(m) {
			if p.phase == nil {
				p.phase = map[int]*act{}
			}
			p.phase[i] = &act{}
		}
	case p.phase != nil:
		p.closed = e.Node
		p.flush()
		p.checkResults(m.Blocks.ToolResults())
	default:
		if name, n, ok := tagged(m.Blocks.Text()); ok && !p.inside {
			p.check("I8", !p.w.isRefused(name, n), "%s message %d was said, and a hook had rejected it", name, n)
		}
		p.arrived(p.queues.delivered, m.Blocks.Text())
	}
}

// indexesOf returns the indexes of the blocks with the calls of a message.
func indexesOf(m node.Message) (indexes []int) {
	for i, b := range m.Blocks.All() {
		if _, is := b.(content.ToolUse); is {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// flush tells what became of the calls, call by call.
func (p *plot) flush() {
	for i := range 100 {
		if a := p.phase[i]; a != nil {
			for _, line := range a.lines {
				p.tell("  call %d: %s", i, line)
			}
			a.lines = nil
		}
	}
}

// checkResults: the results are in call order, one for each call, and those that were told (I1, I3).
func (p *plot) checkResults(results []content.ToolResult) {
	said, _ := p.said.Message()
	calls, indexes := said.Blocks.ToolUses(), indexesOf(said)
	if !p.check("I1", len(results) == len(calls), "%d results of %d calls", len(results), len(calls)) {
		return
	}
	for i, r := range results {
		p.check("I3", r.CallID == calls[i].ID, "result %d has the id %q of another call than %q", i, r.CallID, calls[i].ID)
		p.check("I1", r.Content.Text() != content.NoResult, "call %d has no result", i)
		p.tell("  result %d: %v %s", i, r.IsError, r.Content.Text())
		if a := p.phase[indexes[i]]; a != nil {
			same := a.execution.Result.Equal(r.Content) && a.execution.IsError == r.IsError
			p.check("I3", same, "call %d ended with %q, and its result is %q", i, a.execution.Result.Text(), r.Content.Text())
		}
	}
}

// toolStart: each call starts once, after all that started with it and stand before it, and before any of them runs.
func (p *plot) toolStart(e executor.ToolStart) {
	a := p.phase[e.Call.Index]
	if !p.check("I2", a != nil && p.inTurn && e.Turn == p.turn && p.closed == nil && p.open == "", "call %d starts where none is open", e.Call.Index) {
		return
	}
	p.check("I2", !a.started, "call %d starts twice", e.Call.Index)
	a.started, a.call = true, e.Call
	a.lines = append(a.lines, fmt.Sprintf("start %s %s as %s %s %q", e.Call.Name, e.Call.Input, e.Ran.Name, e.Ran.Input, e.Repair))
	p.check("I2", e.Ran.Index == e.Call.Index && e.Ran.ID == e.Call.ID, "%v runs as %v", e.Call, e.Ran)
	if p.ordered {
		return
	}
	for i, other := range p.phase {
		if !other.started || other.ended || other.waits() || i == e.Call.Index {
			continue
		}
		p.check("I2", i < e.Call.Index, "call %d starts after call %d, which runs beside it", e.Call.Index, i)
		seen := p.w.seen(numberOf(other.call.ID, other.call.Input))
		p.check("I2", seen.ran == 0 || p.inside, "call %d runs before call %d has started, which runs beside it", i, e.Call.Index)
		if n := numberOf(other.call.ID, other.call.Input); n != 0 {
			p.check("I2", seen.never == "" || seen.never == unfinished, "call %d starts before the end of call %d, which is not carried out: %s", e.Call.Index, i, seen.never)
		}
	}
}

// running is the call that an event is of: a call that runs, and nothing else.
func (p *plot) running(turn, index int, event executor.Event) *act {
	a := p.phase[index]
	if !p.check("I2", a != nil && a.started && !a.ended && turn == p.turn && p.open == "", "a %T of call %d, which does not run", event, index) {
		return nil
	}
	return a
}

func (p *plot) childEvent(e executor.Child) {
	if !p.check("I2", len(e.Path) > 0, "a Child without a path") {
		return
	}
	a := p.running(e.Turn, e.Path[0].Index, e)
	if a == nil {
		return
	}
	if a.child == nil {
		a.child = newPlot(p.w, a.before)
		a.child.inside, a.child.around = true, p
	}
	if _, begins := e.Event.(executor.RunStart); begins && len(e.Path) == 1 {
		a.children++
		p.check("I5", a.children == 1, "call %d was carried out %d times", e.Path[0].Index, a.children)
	}
	if len(e.Path) == 1 {
		a.child.feed(e.Event, nil)
	} else {
		e.Path, e.Turn = e.Path[1:], a.child.turn
		a.child.feed(e, nil)
	}
}

func (p *plot) toolEnd(e executor.ToolEnd) {
	index := e.Execution.Index
	a := p.running(e.Turn, index, e)
	if a == nil {
		return
	}
	p.executed++
	p.toolUsage = p.toolUsage.Plus(e.Execution.Usage)
	a.ended, a.execution = true, e.Execution
	p.check("I2", e.Execution.CallID == a.call.ID && e.Execution.Tool == a.call.Name, "%v ends as %v", a.call, e.Execution)
	p.check("I2", !e.Execution.Ended.Before(e.Execution.Started), "call %d ended before it started", index)
	a.lines = append(a.lines, fmt.Sprintf("end %v %s %v", e.Execution.IsError, e.Execution.Result.Text(), e.Execution.Usage))
	if a.child != nil {
		p.checkChild(a)
	}
	if strings.Contains(a.execution.Result.Text(), "timeout of") || strings.Contains(a.execution.Result.Text(), "cancelled") {
		p.w.mu.Lock()
		p.w.given = true
		p.w.raced = p.w.raced || a.child != nil
		p.w.mu.Unlock()
	}
	start, direct := p.last.(executor.ToolStart)
	if n := numberOf(a.call.ID, a.call.Input); n != 0 && !p.ordered {
		seen := p.w.seen(n)
		p.check("I2", seen.ran > 0 || seen.never == "" || seen.never == unfinished || direct && start.Call.Index == index,
			"call %d is not carried out (%s) and does not end at once", index, seen.never)
	}
	if p.ordered && direct {
		return
	}
	if last, ok := p.last.(executor.ToolEnd); ok && p.ordered {
		p.check("I3", last.Execution.Index < index, "ordered ends are not in call order")
	}
}

// checkChild: the conversation of a run inside the call hangs on the execution, as far as it was told.
func (p *plot) checkChild(a *act) {
	for _, line := range a.child.lines {
		a.lines = append(a.lines, "| "+line)
	}
	heads := a.execution.Child.Slice()
	if !p.check("I1", len(heads) > 0, "a run inside call %d left no conversation", a.call.Index) {
		return
	}
	child := dag.New().WithHeads(heads...)
	if head := child.Head(); head != nil && endedByOuterLimit(head) {
		// Which of several sub-agents gets the last turn, call or token of a run around them is left to chance.
		p.w.mu.Lock()
		p.w.raced = true
		p.w.mu.Unlock()
	}
	if told := a.child.toldHead(); told != nil {
		p.check("I1", child.Contains(told), "the conversation of a run inside call %d lacks what was told of it", a.call.Index)
	}
	if !a.child.ended && len(child.OpenCalls()) == 0 {
		p.w.checkConversation("I1", child, false)
	}
	if a.child.ended {
		p.w.checkConversation("I1", child, a.child.paused || a.before != nil && !a.child.began())
	}
}

// endedByOuterLimit reports whether n is the end of a run that a limit of a run around it has ended.
func endedByOuterLimit(n *node.Node) bool {
	stop, ok := n.Payload().(node.StopReason)
	return ok && strings.Contains(stop.Detail, "a run around this one")
}

// toldHead is the end of the conversation after the last turn that was told; nil where none was.
func (p *plot) toldHead() *node.Node {
	return p.turned
}

func (p *plot) turnEnd(e executor.TurnEnd) {
	p.check("I4", p.inTurn && p.open == "" && e.Turn == p.turn, "turn %d ends in turn %d (inside: %v, open: %q)", e.Turn, p.turn, p.inTurn, p.open)
	p.inTurn = false
	p.check("I4", e.Message == nil || p.said != nil && e.Message.ID() == p.said.ID(), "the turn ends with another message than was said")
	calls := 0
	if e.Message != nil {
		m, _ := e.Message.Message()
		calls = len(m.Blocks.ToolUses())
	}
	p.check("I1", p.phase == nil || p.closed != nil, "the turn ends without results")
	p.check("I1", len(e.Executions) == calls, "%d executions of %d calls", len(e.Executions), calls)
	for i, x := range e.Executions {
		p.check("I3", i == 0 || x.Index > e.Executions[i-1].Index, "execution %d is of call %d", i, x.Index)
	}
	p.check("I1", len(e.DAG.OpenCalls()) == 0, "calls are open at the end of a turn")
	for id := range p.nodes {
		p.check("I4", e.DAG.Node(id) != nil, "a message that was said is not in the conversation")
	}
	clear(p.nodes) // what is there now stays until a hook replaces it
	p.dag, p.turned = e.DAG, e.DAG.Head()
	p.usage, p.ofTools = p.usage.Plus(e.Usage), p.ofTools.Plus(e.ToolUsage)
	p.w.checkConversation("I1", e.DAG, false)
	p.tell("turn end %d %v %v", e.Turn, e.Usage, e.ToolUsage)
}

func (p *plot) pause(e executor.Paused) {
	p.paused, p.continuation, p.pausedAtZero = true, e.Continuation, p.pausedAtZero || p.turn == 0
	p.check("I4", p.inTurn && p.open == "" && p.phase != nil && p.closed == nil, "a pause where no call is open")
	p.flush()
	c := e.Continuation
	p.check("I7", c.Run == p.id, "the continuation is of the run %s and not of %s", c.Run, p.id)
	p.check("I7", c.Reason == content.StopApproval || c.Reason == content.StopResults, "paused for %q", c.Reason)
}

// pausedWith checks the conversation of a pause: what waits in it (I7).
func (p *plot) pausedWith(d dag.DAG) {
	c := executor.ContinuationOf(d)
	p.check("I7", c.ID == p.continuation.ID && c.Run == p.continuation.Run && slices.Equal(c.Calls, p.continuation.Calls) && c.Reason == p.continuation.Reason,
		"the conversation shows the pause %v, and %v was told", c, p.continuation)
	pending, last, asks, all := map[int]bool{}, -1, false, d.Pending()
	for _, x := range all {
		p.tell("pending %s %s %v %v %s", x.Call.Name, x.Call.Input, x.Approval, x.Deferred, x.Note)
		if len(x.Path) > 0 {
			p.pausedAgent(x.Path[0].Index, pending)
			continue
		}
		asks = asks || x.Approval
		p.check("I3", x.Call.Index > last, "pending calls are not in call order")
		last = x.Call.Index
		pending[last] = true
		a := p.phase[last]
		if p.check("I2", a != nil && !a.started, "call %d waits, and is not open or has started", last) {
			n := numberOf(x.Call.ID, x.Call.Input)
			p.check("I5", p.w.seen(n).ran == 0, "call %d waits, and was carried out", last)
		}
	}
	for i, a := range p.phase {
		p.check("I1", pending[i] != a.ended || asks && !a.ended && !a.started, "call %d waits: %v, and has ended: %v", i, pending[i], a.ended)
		if asks && a.ended {
			n := numberOf(a.call.ID, a.call.Input)
			s := p.w.seen(n)
			p.check("I5", n == 0 || s.ran == 0 || s.never != "", "call %d was carried out before others were approved", i)
		}
	}
}

// pausedAgent: a sub-agent that waits has told so in this part of the run, or is where it was (I7).
func (p *plot) pausedAgent(index int, pending map[int]bool) {
	if pending[index] {
		return
	}
	pending[index] = true
	a := p.phase[index]
	if !p.check("I2", a != nil, "the sub-agent of call %d waits, and the call is not open", index) {
		return
	}
	if a.started {
		p.check("I7", a.waits(), "the sub-agent of call %d waits, and did not tell so", index)
	}
	p.check("I7", p.pausedIn(index) != nil, "the sub-agent of call %d waits, and never began", index)
}

// end checks the End: one, last, in no turn but at a pause, and with what it says in the conversation (I4).
func (p *plot) end(e executor.End, err error, alone bool) {
	p.tell("end %v: %s %d %d %v %v", err, e.Stop.Reason, e.Stop.Turns, e.Stop.ToolCalls, e.Stop.Usage, e.Stop.ToolUsage)
	if alone {
		p.check("I4", e.Stop == node.StopReason{}, "a refused run says why it ended: %v", e.Stop)
		p.check("I4", p.inside || err != nil, "a run was refused without an error")
		return
	}
	p.dag = e.DAG
	p.check("I4", p.open == "" && p.inTurn == p.paused, "the run ends inside of a turn or message")
	p.check("I4", p.inside || errors.Is(err, executor.ErrPaused) == p.paused, "the pause and the error are at odds: %v", err)
	if p.paused {
		p.pausedWith(e.DAG)
	}
	if !p.paused {
		head := e.DAG.Head()
		if p.check("I4", head != nil, "the conversation has no single head") {
			stop, ok := head.Payload().(node.StopReason)
			p.check("I4", ok && stop == e.Stop, "the conversation ends in %v, and the run in %v", head, e.Stop)
		}
	}
	p.check("I7", e.Stop.Turns == p.turns, "%d turns, and the totals say %d", p.turns, e.Stop.Turns)
	p.check("I7", e.Stop.ToolCalls == p.executed, "%d calls, and the totals say %d", p.executed, e.Stop.ToolCalls)
	if !p.paused {
		missing := p.resumed != nil && e.Stop.Usage.Incomplete // a failed attempt before the pause, which no TurnEnd counts
		p.check("I7", p.usage == e.Stop.Usage || missing, "turns took %v, and the totals say %v", p.usage, e.Stop.Usage)
		p.check("I7", p.ofTools == e.Stop.ToolUsage || p.pausedAtZero || p.w.wasGiven(), "turns say that tools took %v, and the totals say %v", p.ofTools, e.Stop.ToolUsage)
		p.check("I7", p.toolUsage == e.Stop.ToolUsage || p.w.wasGiven(), "executions took %v, and the totals say %v", p.toolUsage, e.Stop.ToolUsage)
	}
}

func (w *witness) wasGiven() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.given
}

// arrived notes a message of a queue.
func (p *plot) arrived(list map[string][]int, text string) {
	if name, n, ok := tagged(text); ok && !p.inside {
		p.check("I8", !slices.Contains(p.queues.delivered[name], n) && !slices.Contains(p.queues.rejected[name], n), "%s message %d was told twice", name, n)
		list[name] = append(list[name], n)
	}
}
