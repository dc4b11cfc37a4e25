package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// errTimeLimit is the cause of a context that Limits.Time ended.
var errTimeLimit = errors.New("executor: the run's time limit was reached")

// errLeft says that whoever ranged over the stream broke off.
var errLeft = errors.New("executor: the consumer left")

// run is one run of an agent. It is used by one goroutine; only its tools and hooks run on others.
type run struct {
	agent   Agent
	ctx     context.Context
	cancel  context.CancelFunc
	yield   func(Event, error) bool // nil: nobody listens
	workers workers
	ledger  ledger
	inside  *slot // the call that the run is inside of; nil: none

	given    dag.DAG // what the run was given
	d        dag.DAG
	view     *dag.Transcript // what the model is sent; it grows with d. nil: to be made
	bound    map[string]Tool // what can be called
	names    []string        // the declared names, in order
	declared bool            // the agent's tools and prompt are
	pushed   bool            // the model was asked to go on with what it said last, in words that the conversation does not hold
	provider api.Provider    // of the next turn
	options  api.Options

	id     string
	turn   int
	totals node.StopReason
	began  time.Time
	before time.Duration // what parts of the run before a pause took
	same   repeats
	nudge  []content.Message // what the run itself has to say next
	from   *Queue            // where unsaid comes from
	unsaid []content.Message // what was taken from a queue and not said or rejected yet

	cutOff bool         // the calls at hand may be cut off
	stop   content.Stop // the run stops for this when the calls at hand are answered

	resumed bool
	parent  string    // the pause that was resumed
	plans   []planned // what is to become of the calls that waited
}

func newRun(ctx context.Context, a Agent, d dag.DAG, yield func(Event, error) bool) *run {
	r := &run{
		agent: a.withDefaults(), given: d, d: d, yield: yield, workers: workers{idle: make(chan struct{}, 1)},
		provider: a.Provider, options: a.Options, inside: slotOf(ctx),
	}
	r.ledger.limits = r.agent.Limits
	if r.inside != nil {
		r.ledger.around = &r.inside.b.r.ledger
	}
	if a.Limits.Time > 0 {
		r.ctx, r.cancel = context.WithTimeoutCause(ctx, a.Limits.Time, errTimeLimit)
	} else {
		r.ctx, r.cancel = context.WithCancel(ctx)
	}
	return r
}

// close cancels what is under way and waits for it.
func (r *run) close() {
	r.cancel()
	r.from.putBack(r.unsaid)
	r.workers.join(r.agent.Grace)
}

// begin returns why there is nothing to run.
func (r *run) begin() error {
	if r.agent.Provider == nil {
		return ErrNoProvider
	}
	if err := tooDeep(r.inside); err != nil {
		return err
	}
	if err := r.bind(); err != nil {
		return err
	}
	if _, whole := r.answered(); whole && r.agent.Steering.Len() == 0 && r.agent.FollowUps.Len() == 0 {
		return ErrAnswered
	}
	return r.checkInput()
}

// bind finds what can run each declared tool.
func (r *run) bind() error {
	r.id = r.d.Source().ID().String()
	declared := r.withAgents()
	if err := declared.Err(); err != nil {
		return err
	}
	view := declared.Transcript()
	r.bound = map[string]Tool{}
	var unbound []string
	for _, def := range view.Tools {
		if def.Server() {
			continue
		}
		r.names = append(r.names, def.Name)
		found, _ := declared.Tool(def.Name)
		if tool, ok := found.(Tool); ok {
			if broken, ok := as[interface{ Err() error }](tool); ok && broken.Err() != nil {
				return broken.Err()
			}
			r.bound[def.Name] = tool
		} else {
			unbound = append(unbound, def.Name)
		}
	}
	if len(unbound) > 0 && r.agent.Handler == nil {
		return &UnboundError{Names: unbound}
	}
	r.began = r.d.Source().Time()
	if r.waits() && declared.Head() != r.d.Head() {
		return nil // a declaration would stand between the calls and their results: declare does it after them
	}
	r.d, r.view, r.declared = declared, &view, true
	return nil
}

// withAgents is the conversation with the agent's prompt and tools.
func (r *run) withAgents() dag.DAG {
	d := r.d
	if r.agent.System != "" && !slices.Contains(d.SystemPrompts(), content.Clean(r.agent.System)) {
		d = d.System(r.agent.System)
	}
	if len(r.agent.Tools) > 0 {
		d = d.Tools(r.agent.Tools...)
	}
	return d
}

// waits reports whether the conversation ends in a tool phase that is not closed.
func (r *run) waits() bool {
	heads := r.d.Heads()
	return len(r.d.OpenCalls()) > 0 || len(heads) > 0 && isExecution(heads[0])
}

// declare declares what bind could not declare while calls were open.
func (r *run) declare() error {
	if r.declared {
		return nil
	}
	d := r.withAgents()
	if err := d.Err(); err != nil {
		return err
	}
	r.d, r.view, r.declared = d, nil, true
	return nil
}

// answered reports whether the conversation ends with words of the model, and whether they are a whole answer of a run: others may be
// the beginning of one, for the model to go on with.
func (r *run) answered() (words, whole bool) {
	n := lastSaid(r.d)
	if n == nil {
		return false, false
	}
	m, _ := n.Message()
	words = m.Role == content.Assistant && len(m.Blocks.ToolUses()) == 0
	return words, words && m.Answer.Stop == content.StopEndTurn
}

// lastSaid is the last message on the way back from the single head; nil where there is none, or the way parts before it.
func lastSaid(d dag.DAG) *node.Node {
	for n := d.Head(); n != nil; n = n.Parent(0) {
		if _, ok := n.Message(); ok {
			return n
		}
		if n.NumParents() != 1 {
			break
		}
	}
	return nil
}

// checkInput shows the message that the conversation ends in to the hooks, also where something is declared after it.
func (r *run) checkInput() error {
	last := r.d.Head()
	var after []*node.Node
	for last != nil && last.NumParents() == 1 && sayNothing(last.Payload()) {
		after, last = append(after, last), last.Parent(0)
	}
	if last == nil {
		return nil
	}
	said, ok := last.Message()
	if !ok || said.Role != content.User || len(said.Blocks.ToolResults()) > 0 {
		return nil
	}
	m, err := r.filter(content.Message{Role: said.Role, Blocks: said.Blocks})
	if r.ctx.Err() != nil && err != nil {
		return context.Cause(r.ctx) // no hook rejected it, and none took it
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	if m.Blocks.Equal(said.Blocks) {
		return nil
	}
	said.Blocks = m.Blocks
	d := r.d.WithHeads(last.Parents()...).AppendMeta(said, last.Meta())
	for _, n := range slices.Backward(after) {
		d = d.AppendMeta(n.Payload(), n.Meta())
	}
	r.d, r.view = d, nil
	return d.Err()
}

// sayNothing reports whether a node may stand behind the last message without anything being said there.
func sayNothing(p node.Payload) bool {
	switch p.(type) {
	case node.System, node.Tools, node.Custom:
		return true
	}
	return false
}

// filter shows a message of the user to the hooks.
func (r *run) filter(m content.Message) (content.Message, error) {
	for _, h := range r.agent.Hooks {
		if h.Input == nil {
			continue
		}
		changed, err := guard(r.ctx, &r.workers, h.Input, m)
		if err != nil {
			return m, err
		}
		if m.Blocks = changed.Blocks; m.Blocks.Len() == 0 {
			return m, dag.ErrEmpty
		}
		if err := holdable(m.Blocks); err != nil {
			return m, fmt.Errorf("a hook's message is none of a user: %w", err)
		}
	}
	return m, nil
}

// loop is the run: carry out what is open; then ask, answer the calls, and ask again, until the model calls nothing more or the run has
// to stop.
func (r *run) loop() (content.Stop, error) {
	if !r.tell(RunStart{Run: r.id, DAG: r.d}) {
		return "", errLeft
	}
	input, stop, err := r.leftOpen()
	for stop == "" && err == nil {
		var turn Turn
		if turn, stop, err = r.takeTurn(input); stop == "" && err == nil {
			input, stop, err = r.goOn(turn)
		}
	}
	return stop, err
}

// leftOpen carries out what an earlier run left open, and returns what is to be said next.
func (r *run) leftOpen() (input []content.Message, stop content.Stop, err error) {
	words, whole := r.answered()
	if !r.waits() {
		if stop, err = r.ended(); stop != "" {
			return nil, stop, err
		}
		if stop = r.limit(); stop != "" {
			return nil, stop, nil
		}
		if input, err = r.poll(words || r.view != nil && len(r.view.Messages) == 0); err != nil {
			stop, err = r.failed(err)
			return nil, stop, err
		}
		if whole && len(input) == 0 {
			return nil, content.StopError, ErrAnswered // all of it was rejected
		}
		return input, "", nil
	}
	said, usage := r.said(), content.Usage{}
	if r.resumed { // the turn that paused ends here
		m, _ := said.Message()
		usage = m.Answer.Usage
	}
	turn, stop, err := r.closeTurn(said, usage, "")
	if stop == "" && err == nil {
		input, stop, err = r.goOn(turn)
	}
	return input, stop, err
}

// takeTurn says the input, asks the model, and carries out what it calls.
func (r *run) takeTurn(input []content.Message) (Turn, content.Stop, error) {
	r.turn++
	r.totals.Turns++
	if !r.tell(TurnStart{Turn: r.turn}) {
		return Turn{}, "", errLeft
	}
	if err := r.say(input); err != nil {
		return r.failedTurn(err)
	}
	answer, err := r.ask()
	if err != nil {
		return r.failedTurn(err)
	}
	said, err := r.take(answer)
	if err != nil {
		return r.failedTurn(err)
	}
	stop := answer.Stop
	if calls(answer) || stop == content.StopPause {
		stop = ""
	}
	return r.closeTurn(said, answer.Usage, stop)
}

func calls(answer api.Response) bool { return len(answer.Blocks.ToolUses()) > 0 }

// failedTurn ends a turn in which the model failed, and returns why the run ends.
func (r *run) failedTurn(err error) (Turn, content.Stop, error) {
	if errors.Is(err, errLeft) || !r.tell(TurnEnd{Turn: r.turn, DAG: r.d}) {
		return Turn{}, "", errLeft
	}
	stop, err := r.failed(err)
	return Turn{}, stop, err
}

// closeTurn carries out the open calls and ends the turn. Stop is why the model wants the run to end.
func (r *run) closeTurn(said *node.Node, usage content.Usage, stop content.Stop) (turn Turn, fatal content.Stop, err error) {
	tools := r.ledger.toolUsage()
	if r.resumed && r.turn > 0 { // what was taken before the pause is of this turn too
		usage = answeredBy(said).Usage
		for _, h := range r.d.Heads() {
			if e, ok := h.Payload().(node.ToolExecution); ok {
				tools = minus(tools, e.Usage)
			}
		}
	}
	done, err := r.tools()
	if err != nil {
		return turn, r.badStop(err), err
	}
	if err := r.declare(); err != nil {
		return turn, content.StopError, err
	}
	turn = Turn{Number: r.turn, Message: said, Executions: done.executions, Results: done.results, DAG: r.d, Provider: r.provider, Options: r.options, Stop: stop}
	if done.terminates() {
		turn.Stop = content.StopTerminated
	}
	ended := TurnEnd{
		Turn: r.turn, Message: said, Executions: done.executions, Usage: usage,
		ToolUsage: minus(r.ledger.toolUsage(), tools), DAG: r.d,
	}
	if !r.tell(ended) {
		return turn, "", errLeft
	}
	return turn, r.stop, nil
}

func answeredBy(said *node.Node) node.Answer {
	m, _ := said.Message()
	return m.Answer
}

func minus(a, b content.Usage) content.Usage {
	return a.Plus(content.Usage{
		Input: -b.Input, Output: -b.Output, CacheRead: -b.CacheRead, CacheWrite: -b.CacheWrite, Reasoning: -b.Reasoning,
	})
}

// goOn decides whether there is another turn, and returns what is to be said in it first.
func (r *run) goOn(turn Turn) (input []content.Message, stop content.Stop, err error) {
	if stop, err = r.ended(); stop != "" {
		if turn.Stop != "" {
			return nil, turn.Stop, nil // it was over before
		}
		return nil, stop, err
	}
	wanted := turn.Stop
	if turn, err = r.next(turn); err != nil {
		stop, err = r.failed(err)
		return nil, stop, err
	}
	if turn.Stop != "" && turn.Stop != wanted {
		return nil, turn.Stop, nil
	}
	limit := r.limit()
	final := turn.Stop != ""
	if final && (limit != "" || r.agent.Steering.Len() == 0 && r.agent.FollowUps.Len() == 0) {
		return nil, turn.Stop, nil
	}
	if limit != "" {
		return nil, limit, nil
	}
	if input, err = r.poll(final); err != nil {
		stop, err = r.failed(err)
		return nil, stop, err
	}
	if final && len(input) == 0 {
		return nil, turn.Stop, nil // all of it was rejected
	}
	return input, "", nil
}

// next shows the turn to the hooks, and takes from it what the run goes on with.
func (r *run) next(turn Turn) (Turn, error) {
	asked := false
	for _, h := range r.agent.Hooks {
		if h.Next == nil {
			continue
		}
		asked = true
		changed, err := guard(r.ctx, &r.workers, h.Next, turn)
		if err == nil {
			err = changed.DAG.Err()
		}
		if err != nil {
			return turn, err
		}
		turn = changed
	}
	if !asked {
		return turn, nil
	}
	if turn.Provider == nil {
		return turn, ErrNoProvider
	}
	if !slices.Equal(turn.DAG.Heads(), r.d.Heads()) {
		r.view = nil
	}
	r.d, r.provider, r.options = turn.DAG, turn.Provider, turn.Options
	if closed := r.d.CloseTools(); closed.Err() == nil { // no hook is to leave a call without a result
		r.d, r.view = closed, nil
	}
	return turn, r.rebind()
}

// rebind finds what runs tools that a hook declared.
func (r *run) rebind() error {
	if r.view != nil {
		return nil
	}
	view := r.d.Transcript()
	r.view = &view
	r.names = nil
	for _, def := range view.Tools {
		if def.Server() {
			continue
		}
		r.names = append(r.names, def.Name)
		if found, _ := r.d.Tool(def.Name); found != nil {
			if tool, ok := found.(Tool); ok {
				r.bound[def.Name] = tool
				continue
			}
		}
		if r.bound[def.Name] == nil && r.agent.Handler == nil {
			return &UnboundError{Names: []string{def.Name}}
		}
	}
	return nil
}

// poll takes what waits in the queues: FollowUps are asked where the run would end.
func (r *run) poll(final bool) ([]content.Message, error) {
	input := r.nudge
	r.nudge = nil
	fresh, err := r.accepted(r.agent.Steering)
	if err == nil && final && len(fresh) == 0 {
		fresh, err = r.accepted(r.agent.FollowUps)
	}
	if len(fresh) > 0 {
		r.same = repeats{}
	}
	return append(input, fresh...), err
}

// accepted takes messages from a queue until one was accepted by the hooks, or none is left.
func (r *run) accepted(q *Queue) ([]content.Message, error) {
	for {
		taken := q.take()
		r.from, r.unsaid = q, slices.Clone(taken)
		var input []content.Message
		for _, m := range taken {
			changed, err := r.filter(m)
			if err == nil {
				input = append(input, changed)
				continue
			}
			if r.ctx.Err() != nil {
				return nil, err // no hook rejected it: it goes back
			}
			r.unsaid = slices.Delete(r.unsaid, len(input), len(input)+1)
			if !r.tell(Rejected{Message: m, Err: err}) {
				return nil, errLeft
			}
		}
		if len(taken) == 0 || len(input) > 0 {
			return input, nil
		}
	}
}

// say makes the input a part of the conversation.
func (r *run) say(input []content.Message) error {
	for i, m := range input {
		if !r.tell(MessageStart{Turn: r.turn, Role: content.User}) {
			return errLeft
		}
		said := r.d.Append(node.Message{Role: content.User, Blocks: m.Blocks})
		if said.Err() == nil && len(input)-i <= len(r.unsaid) { // the run's own words come first
			r.unsaid = r.unsaid[1:]
		}
		if err := r.append(said); err != nil {
			return err
		}
	}
	return nil
}

// ended returns the reason and the error of a run whose context ended; no reason while it has not.
func (r *run) ended() (content.Stop, error) {
	cause := context.Cause(r.ctx)
	switch {
	case cause == nil:
		return "", nil
	case errors.Is(cause, errTimeLimit):
		return content.StopTimeLimit, nil
	case errors.Is(r.ctx.Err(), context.DeadlineExceeded):
		return content.StopDeadline, cause
	}
	return content.StopCancelled, cause
}

// limit returns the limit that the run has reached, if there is one.
func (r *run) limit() content.Stop {
	stop, detail := r.ledger.reached()
	if limits := r.agent.Limits; stop == "" && limits.Turns > 0 && r.totals.Turns >= limits.Turns {
		stop = content.StopMaxTurns
	}
	if stop != "" {
		r.totals.Detail = detail
	}
	return stop
}

// ask makes one request.
func (r *run) ask() (api.Response, error) {
	if r.view == nil {
		view := r.d.Transcript()
		r.view = &view
	}
	r.pushed = r.ownTurn()
	req, err := r.send(api.Request{ // who appends to one of these gets a copy
		System: slices.Clip(r.view.System), Tools: slices.Clip(r.view.Tools), Messages: slices.Clip(r.view.Messages), Options: r.options,
	})
	if err != nil {
		return api.Response{}, err
	}
	if !r.tell(MessageStart{Turn: r.turn, Role: content.Assistant, Request: req}) {
		return api.Response{}, errLeft
	}
	answer, err := r.hear(req)
	if err != nil && !errors.Is(err, errLeft) && !r.tell(MessageEnd{Turn: r.turn}) {
		err = errLeft
	}
	return answer, err
}

// send shows the request to the hooks.
func (r *run) send(req api.Request) (api.Request, error) {
	own := false
	for _, h := range r.agent.Hooks {
		if h.Send == nil {
			continue
		}
		if !own { // what the hooks change is no part of the conversation
			req.System, req.Tools, req.Messages = slices.Clone(req.System), slices.Clone(req.Tools), slices.Clone(req.Messages)
			own = true
		}
		changed, err := guard(r.ctx, &r.workers, h.Send, req)
		if err != nil {
			return req, err
		}
		req = changed
	}
	return req, nil
}

// hear asks the model and tells what it says.
func (r *run) hear(req api.Request) (api.Response, error) {
	var answer api.Fold
	for event, err := range api.NewClient(r.provider, nil).Stream(r.ctx, req) {
		if err == nil {
			err = answer.Add(event)
		}
		if err != nil {
			return api.Response{}, err
		}
		var told Event
		switch e := event.(type) {
		case api.Finish:
			continue
		case api.Repaired:
			r.pushed = r.pushed || slices.ContainsFunc(e.Repairs, asksToGoOn)
			told = Repaired{Turn: r.turn, Repairs: e.Repairs}
		case api.Retry:
			told = Retry{Turn: r.turn, Retry: e}
		default:
			told = MessageDelta{Turn: r.turn, Event: e}
		}
		if !r.tell(told) {
			return api.Response{}, errLeft
		}
	}
	return answer.Response()
}

// failed returns the reason and the error of a run in which something failed with err.
func (r *run) failed(err error) (content.Stop, error) {
	if errors.Is(err, errLeft) {
		return "", err
	}
	if stop, cause := r.ended(); stop != "" {
		return stop, cause
	}
	r.totals.Detail = err.Error()
	return content.StopError, err
}

// badStop is the reason of a run that an error of our own ended.
func (r *run) badStop(err error) content.Stop {
	if errors.Is(err, errLeft) || errors.Is(err, ErrPaused) {
		return ""
	}
	return content.StopError
}

// take makes the answer a part of the conversation, and returns its node. An answer that says nothing leaves only its usage behind.
func (r *run) take(answer api.Response) (*node.Node, error) {
	r.totals.Usage = r.totals.Usage.Plus(answer.Usage)
	r.ledger.spend(answer.Model, answer.Usage)
	r.countAround(answer.Usage)
	if silent(answer) {
		if !r.tell(MessageEnd{Turn: r.turn}) {
			return nil, errLeft
		}
		return nil, nil
	}
	err := r.append(r.d.Append(node.Message{Role: content.Assistant, Blocks: answer.Blocks, Answer: node.Answer{
		API: answer.API, Model: answer.Model, ResponseID: answer.ResponseID,
		Stop: answer.Stop, Usage: answer.Usage, Latency: answer.Latency, Seen: r.seen(answer),
	}}))
	return r.d.Head(), err
}

// seen returns what the model had seen when it thought so; zero where it did not think.
func (r *run) seen(answer api.Response) node.Digest {
	if !slices.ContainsFunc(answer.Blocks.Slice(), func(b content.Block) bool { _, thinks := b.(content.Thinking); return thinks }) {
		return node.Digest{}
	}
	view := *r.view
	if r.pushed {
		view.Messages = append(slices.Clip(view.Messages), content.Message{Role: content.User, Blocks: content.Words(api.GoOn)})
	}
	return view.Seen()
}

// ownTurn reports whether the model has the last word already, and was not paused there.
func (r *run) ownTurn() bool {
	last := len(r.view.Messages) - 1
	if last < 0 || r.view.Messages[last].Role != content.Assistant {
		return false
	}
	said := lastSaid(r.d)
	if said == nil {
		return true
	}
	m, _ := said.Message()
	return m.Answer.Stop != content.StopPause
}

// asksToGoOn reports whether a repair put words of the user at the end of a request.
func asksToGoOn(note api.RepairNote) bool { return note.Kind == api.RepairEnd && note.Message > 0 }

// countAround counts what this run took with the calls that it is inside of.
func (r *run) countAround(u content.Usage) {
	for in := r.inside; in != nil; in = in.b.r.inside {
		in.count(u)
	}
}

// toolsTook counts what tools say they took.
func (r *run) toolsTook(u content.Usage) {
	r.ledger.take(u)
	r.countAround(u)
}

// silent reports whether the answer says nothing: it has no block but empty texts.
func silent(answer api.Response) bool {
	for _, b := range answer.Blocks.All() {
		if t, isText := b.(content.Text); !isText || t.Text != "" {
			return false
		}
	}
	return true
}

// append goes on with d, whose head is a new message, and tells its end.
func (r *run) append(d dag.DAG) error {
	if err := d.Err(); err != nil {
		return err
	}
	r.d = d
	if said, ok := d.Head().Message(); ok && r.view != nil {
		r.view.Messages = append(r.view.Messages, content.Message{Role: said.Role, Blocks: said.Blocks})
	}
	if !r.tell(MessageEnd{Turn: r.turn, Node: d.Head()}) {
		return errLeft
	}
	return nil
}

// tell yields an event and reports whether anybody still listens.
func (r *run) tell(event Event) bool {
	if r.inside != nil {
		switch event.(type) {
		case RunStart, TurnEnd:
			r.inside.keep(r.d)
		}
	}
	return r.yield == nil || r.yield(event, nil)
}

// refuse ends a run that has not begun.
func (r *run) refuse(err error) {
	if r.inside != nil {
		r.inside.keep(r.given)
	}
	r.yield(End{DAG: r.given}, err)
}

// sum sums the run up.
func (r *run) sum(reason content.Stop) {
	r.totals.Reason = reason
	r.totals.Elapsed = r.before + r.d.Source().Time().Sub(r.began)
	r.totals.ToolUsage = r.ledger.toolUsage()
	r.totals.Cost = r.ledger.spentCost()
}

// end writes down why the run ended, and its totals.
func (r *run) end(reason content.Stop, err error) {
	var paused *PausedError
	switch {
	case errors.Is(err, errLeft):
		return
	case errors.As(err, &paused):
		if r.yield(Paused{paused.Continuation}, nil) {
			r.yield(End{DAG: r.d, Stop: r.totals}, err)
		}
		return
	}
	r.sum(reason)
	if d := r.d.Append(r.totals); d.Err() == nil {
		r.d = d
	}
	if r.inside != nil {
		r.inside.keep(r.d)
	}
	r.yield(End{DAG: r.d, Stop: r.totals}, err)
}
