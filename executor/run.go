package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// errTimeLimit is the cause of a context that Limits.Time ended.
var errTimeLimit = errors.New("executor: the run's time limit was reached")

// errLeft reports that the consumer of the events left.
var errLeft = errors.New("executor: the consumer left")

// run is one run of an agent. One goroutine uses it; only tools and hooks run on others.
type run struct {
	agent  Agent
	hooks  hooks
	ctx    context.Context
	cancel context.CancelFunc
	crew   crew
	meter  meter

	inside    *toolCall    // the call around the run, if it runs inside a tool; else nil
	elsewhere *dag.Pending // the call of another conversation that is executed here; see Agent.Work

	given   // what the run was called with
	record  // the conversation, and who gets it
	binding // what is declared
	model   // what is requested
	inputs  // what is said to the model meanwhile
	gate    // what decides about the open calls

	id     string
	turn   int
	totals node.StopReason
	began  time.Time
	before time.Duration // the time used before the last pause
}

// given is the conversation that a run was called with, and what is open in it. It is written before the run begins.
type given struct {
	initial dag.DAG
	broken  error // why the run cannot begin, or nil

	open    lineage.Open // zero until it is read

	looked     bool                                 // for calls that were started on other branches
	unresolved map[node.CallKey]*node.ToolExecution // those calls
}

func newRun(ctx context.Context, a Agent, d dag.DAG, yield func(Event, error) bool) *run {
	var broken error
	if ctx == nil {
		ctx, broken = context.Background(), ErrNoContext
	}

	// A failed chain refuses the run. Return the conversation from before the failed step: one with the error would be
	// refused again and again.
	if err := d.Err(); err != nil {
		d, broken = d.WithoutErr(), cmp.Or(broken, err)
	}

	// The events of a run inside a call are observed with those of the run around.
	var hooks hooks
	if len(a.Hooks) > 0 {
		hooks = hooksOf(a.Hooks)
	}
	inside, heard, observers := callIn(ctx), yield != nil, hooks.observe
	if inside != nil {
		observers = append(observers, inside.phase.r.observers...)
		if inside.forwards(ctx) {
			heard = inside.phase.r.heard
		}
	}

	// Saving and observing need events, even without a consumer.
	if yield == nil && (a.Save != nil || len(observers) > 0) {
		yield = func(Event, error) bool { return true }
	}

	r := &run{
		agent: a.withDefaults(), hooks: hooks, inside: inside,
		given: given{initial: d, broken: broken},
		record: record{
			d: d, yield: yield, observers: observers, heard: heard || len(observers) > 0,
			showsPhases: yield != nil || len(hooks.next) > 0,
		},
		model: model{provider: a.Provider, options: a.Options},
	}
	l := a.Limits
	r.meter.limits, r.meter.prices = l, a.Prices
	r.meter.limited = l.Tokens > 0 || l.Cost > 0 || l.Turns > 0 || l.Calls > 0
	if inside != nil {
		r.meter.around, r.meter.call = &inside.phase.r.meter, inside
		r.meter.limited = r.meter.limited || r.meter.around.limited
	}
	if a.Limits.Time > 0 {
		r.ctx, r.cancel = context.WithTimeoutCause(ctx, a.Limits.Time, errTimeLimit)
	} else {
		r.ctx, r.cancel = context.WithCancel(ctx)
	}
	return r
}

// close cancels the run's tools and hooks and waits for them.
func (r *run) close() {
	r.cancel()
	if len(r.undelivered) > 0 {
		r.from.putBack(r.undelivered)
	}
	r.crew.join(r.agent.Grace)
}

// begin prepares the run. An error refuses it.
func (r *run) begin() error {
	if isNil(r.agent.Provider) {
		return ErrNoProvider
	}
	if r.inside != nil {
		if err := tooDeep(r.inside); err != nil {
			return err
		}
	}
	if err := r.bind(); err != nil {
		return err
	}

	// After a whole response there is nothing to respond to, unless a queue has messages.
	if _, whole := lineage.Answered(r.d.Head()); whole && r.agent.Steering.Len() == 0 && r.agent.FollowUps.Len() == 0 {
		return ErrAnswered
	}
	if len(r.hooks.input) == 0 {
		return nil
	}
	return r.checkInput()
}

// bind declares the agent's prompt and tools and finds the function of each declared tool.
func (r *run) bind() error {
	if r.broken != nil {
		return r.broken
	}
	if r.agent.Limits.Cost != 0 || r.agent.Prices != nil {
		if err := r.agent.checkMoney(); err != nil {
			return err
		}
	}
	r.prompt = r.agent.System
	if r.agent.Instructions != nil {
		text, err := guard(r.ctx, &r.crew, r.agent.Instructions, r.d)
		if err != nil {
			return fmt.Errorf("executor: the agent's instructions: %w", err)
		}
		r.prompt = text
	}

	r.id = r.d.Source().ID().String()
	if r.open.Heads == nil {
		r.open = lineage.OpenAt(r.d.Heads())
	}
	at := r.d
	if len(r.open.Phases) > 0 {
		at = r.declaring()
	}
	declared := r.withAgents(at)
	if err := declared.Err(); err != nil {
		return err
	}
	if err := checkOwners(r.d, r.agent.Tools); err != nil {
		return err
	}
	if err := r.bindTools(declared); err != nil {
		return err
	}
	if len(r.unbound) > 0 {
		r.agent.Log.WarnContext(r.ctx, "plait: declared tools have no implementation, and are left out of the requests", "tools", r.unbound, "run", r.id)
	}

	// A declaration must not come between open calls and their results. It was checked above, to refuse it as early as
	// possible; start appends it after the results.
	r.began = r.d.Source().Time()
	if r.open.Unclosed && !slices.Equal(declared.Heads(), at.Heads()) {
		return nil
	}
	r.declared = true
	if at.Head() != r.d.Head() {
		declared = declared.WithHeads(r.open.Heads...)
	}
	r.d = declared
	return nil
}

// declaring returns the conversation that declarations are compared with. In an open tool phase, that is the one of the
// message with the calls: executions declare nothing, and its transcript is remembered.
func (r *run) declaring() dag.DAG {
	if r.open.Branches == 1 && len(r.open.Phases) == 1 && r.open.Heads[0] != r.open.Phases[0].Caller {
		return r.d.WithHeads(r.open.Phases[0].Caller)
	}
	return r.d
}

// bindTools finds the function of each tool that d declares.
func (r *run) bindTools(d dag.DAG) error {
	r.shared = shared.Of(d.Heads())
	var hollow []string // declared by the program itself, without a function
	before := r.bound   // a hook may return a conversation without its tools' functions
	tools := make([]boundTool, 0, len(r.shared.Tools))
	r.unbound = nil
	for _, def := range r.shared.Tools {
		if def.Server() { // the provider executes its calls
			continue
		}

		// A loaded conversation, for example, declares tools without having their functions.
		found, travels := d.Tool(def.Name)
		tool, runs := found.(Tool)
		if !runs {
			if b := before.get(def.Name); b != nil && b.tool != nil {
				tool, runs = b.tool, true
			}
		}
		if runs {
			if broken, ok := as[interface{ Err() error }](tool); ok && broken.Err() != nil {
				return broken.Err()
			}
		}

		// A tool without a function is left out of the requests. If the program itself declared it, report the mistake.
		switch {
		case runs, r.agent.Handler != nil:
			tools = append(tools, boundTool{name: def.Name, tool: tool})
		case travels, r.strict:
			hollow = append(hollow, def.Name)
		default:
			r.unbound = append(r.unbound, def.Name)
		}
	}
	r.bound = toolset{tools: tools}
	if len(tools) > maxUnindexed {
		r.bound.index = make(map[string]int, len(tools))
		for i := range tools {
			r.bound.index[tools[i].name] = i
		}
	}
	if len(hollow) > 0 {
		return &UnboundError{Names: hollow}
	}
	return nil
}

// agentPrompt names the system prompt of agents.
const agentPrompt = "agent"

// withAgents returns the conversation with the agent's prompt and tools.
func (r *run) withAgents(d dag.DAG) dag.DAG {
	// An agent without a prompt leaves that of the conversation. An empty text of Instructions removes it.
	if r.prompt != "" || r.agent.Instructions != nil {
		// Do not send a prompt twice if the program has added the same text to the conversation itself.
		own := d.SystemPrompt(agentPrompt) == "" && slices.Contains(d.SystemPrompts(), safetext.UTF8(r.prompt))
		if !own {
			d = d.SetSystem(agentPrompt, r.prompt)
		}
	}
	if len(r.agent.Tools) > 0 {
		d = d.Tools(r.agent.Tools...)
	}
	return d
}

// transcript returns the messages and tools of the next request, without tools that have no function. It is shared and
// must not be changed.
func (r *run) transcript() shared.Transcript {
	r.shared = shared.Of(r.d.Heads(), r.unbound...)
	return r.shared
}

// start declares the agent's prompt and tools if bind could not, because calls were open, and appends the run's RunStart
// node: after the input and the declarations, and before the first request. It must not be called while calls are open:
// the node would come between them and their results. The node needs no save of its own: it is saved with the first
// response.
func (r *run) start() error {
	d := r.d
	if !r.declared {
		d = r.withAgents(d)
	}

	// A run that was resumed after a request has recorded its start before. A single tool phase is no run.
	if r.turn == 0 && !r.single {
		// A run that got no further than its start leaves nothing to keep: this run takes its place. So does one that
		// asks again from before a response.
		if h := d.Head(); h != nil && h.Kind() == (node.RunStart{}).Kind() {
			d = d.WithHeads(h.Parents()...)
		}

		l := r.agent.Limits
		d = d.Append(node.RunStart{Agent: r.agent.Name, Run: r.id, Version: r.agent.Version, Limits: node.RunLimits{
			Turns: max(l.Turns, 0), Calls: max(l.Calls, 0), Tokens: max(l.Tokens, 0), Cost: l.Cost, Time: max(l.Time, 0),
		}})
	}
	if err := d.Err(); err != nil {
		return err
	}
	r.d, r.declared, r.started = d, true, true
	return nil
}

// emit emits an event. It returns false if the consumer left.
//
// With Agent.Save, a step is saved together with the step that follows at once: the events of both wait for the next
// flush. Call flush before anything that may take time, and before reading a queue that the consumer may have filled.
//
// It is generic, because converting an event to an interface allocates: this way that happens only with a consumer.
func emit[E Event](r *run, event E) bool {
	if len(r.observers) > 0 {
		r.observe(event, nil)
	}
	if r.inside != nil {
		r.keepWithCall(event)
	}

	// Save before the event: a consumer that sees a step may rely on its being saved.
	if r.agent.Save != nil {
		switch e := any(event).(type) {
		case RunStart:
			r.save()
		case ToolStart, ToolEnd, MessageEnd, TurnEnd:
			r.held = append(r.held, event)
			return true
		case MessageStart:
			if e.Role == content.User {
				r.held = append(r.held, event)
				return true
			}
		}
		if !r.flush() {
			return false
		}
	}
	return r.yield == nil || r.yield(event, nil)
}

// keepWithCall keeps the conversation with the call around the run, if the event ends a step of the run.
func (r *run) keepWithCall(event Event) {
	switch event.(type) {
	case RunStart, TurnEnd:
		r.inside.keepChild(r.d)
	}
}

// refuse returns the End of a run that does not begin.
func (r *run) refuse(err error) (End, error) {
	if r.inside != nil {
		r.inside.keepChild(r.initial)
	}
	return End{DAG: r.initial}, err
}

// sum completes the totals.
func (r *run) sum(reason content.Stop) {
	t := r.meter.spent()
	t.Reason, t.Detail, t.Turns, t.ToolCalls = reason, r.totals.Detail, r.totals.Turns, r.totals.ToolCalls
	t.Elapsed = r.before + r.d.Source().Time().Sub(r.began)
	r.totals = t
}

// end appends the StopReason node and returns the End.
func (r *run) end(reason content.Stop, err error) (End, error) {
	var paused *PausedError
	switch {
	case errors.Is(err, errLeft):
		return End{}, errLeft
	case errors.As(err, &paused):
		// A paused run is not over, so it gets no StopReason.
		if r.inside != nil {
			r.inside.keepChild(r.d)
		}

		r.save()
		if !emit(r, Paused{paused.Continuation, r.d}) {
			return End{}, errLeft
		}
		return End{DAG: r.d, Stop: r.totals}, r.withSaveError(err)
	}

	// The conversation itself records how the run ended, for readers of the file. A run that ended with the calls that
	// it was given has no start yet.
	if !r.started {
		if startErr := r.start(); startErr != nil {
			err = errors.Join(err, startErr)
		}
	}
	r.sum(reason)
	if d := r.d.Append(r.totals); d.Err() == nil {
		r.d = d
	} else {
		err = errors.Join(err, d.Err()) // the conversation has no StopReason: report it to the caller
	}
	if r.inside != nil {
		r.inside.keepChild(r.d)
	}
	if r.agent.Save != nil {
		r.save()
		if !r.flush() {
			return End{}, errLeft
		}
		err = r.withSaveError(err)
	}
	return End{DAG: r.d, Stop: r.totals}, err
}
