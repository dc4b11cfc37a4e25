package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Task has the arguments of a [SubAgent].
type Task struct {
	// Task describes the sub-agent's work.
	Task string `json:"task" jsonschema:"what to do, with everything that has to be known for it"`
}

// SubAgent returns a tool that runs an agent on a task, in a conversation of its own that begins with the task. The
// tool's result is the whole text of the last response.
//
//   - The conversation is the Child of the call's execution, as far as it got, even if the sub-agent failed, was
//     cancelled or ran out of time.
//   - The name of the agent defaults to the name of the tool.
//   - Its turns, calls, tokens, cost and time count for the limits of the runs around it: see [Limits]. Its tokens are
//     in their totals as ToolUsage.
//   - Its events are [Child] events of the run around it.
//   - If the call is cancelled, the sub-agent and its calls are cancelled too.
//   - If a sub-agent reaches a limit, its own or that of a run around it, its result is its text so far, with a note
//     about the limit. If it fails, or is stopped for a loop, the result is an error.
//   - If a sub-agent pauses, the run around it pauses too, as soon as the other calls of the phase have their results.
//     dag.DAG.Pending has the calls of both. A sub-agent cannot pause inside a [Handler], or
//     inside a program's own tool that calls it and has no Unwrap method: there the result is an error.
//   - With [Agent.Save] of the run around it, its steps are saved one by one, as the Child of the call. After a crash
//     it continues after the last saved step. Its own calls may be in doubt, and its limits count anew. This holds at
//     any depth, but not for a sub-agent inside a program's own tool: that call is in doubt like any other call that
//     was started.
//   - Runs inside tools nest no deeper than Limits.Depth of each run around them allows.
//
// The call has no timeout of its own, because agents take long. Limit it by Limits.Time of the agent or by
// [WithTimeout]. Pauses do not count.
func SubAgent(name, description string, agent Agent) Tool {
	agent.Name = cmp.Or(agent.Name, name)
	s := &subAgent{agent: agent}
	s.bound = Func(name, description, func(ctx context.Context, in Task) (Result, error) { return s.work(ctx, in.Task) }).(*bound)
	return WithTimeout(s, 0)
}

// Fork returns a [SubAgent] that is a copy of the agent with the call, and begins from its conversation: the messages of
// the request that led to the call, and then the task. So its requests begin with that request, and a provider has the
// beginning in its prompt cache. The conversations share their nodes: nothing is copied.
//
// The copy has everything of the agent but its name, limits, queues and Save: the name is that of the tool, and limits
// replace the agent's own. It cannot call the tool again. Outside a run, as in a tool that is called by a program, the
// result is an error.
func Fork(name, description string, limits Limits) Tool {
	s := &subAgent{agent: Agent{Name: name, Limits: limits}, fork: true}
	s.bound = Func(name, description, func(ctx context.Context, in forkTask) (Result, error) { return s.work(ctx, in.Task) }).(*bound)
	return WithTimeout(s, 0)
}

// forkTask has the arguments of a Fork.
type forkTask struct {
	Task string `json:"task" jsonschema:"what to do; the conversation so far is known"`
}

// subAgent is the tool returned by SubAgent and Fork.
type subAgent struct {
	*bound
	agent Agent
	fork  bool // the agent is the one around it, with the name and limits of agent
}

// in returns the agent for calls of a run. It must not be called while the run declares or binds.
func (s *subAgent) in(r *run) Agent {
	if !s.fork {
		return s.agent
	}

	// A run may have got its provider, options, prompt and tools from hooks and from its conversation.
	a := r.agent
	a.Name, a.Limits = s.agent.Name, s.agent.Limits
	a.RunID, a.RunMeta = "", node.Meta{}
	a.Provider, a.Options = r.provider, r.options
	a.System, a.Instructions = r.prompt, nil
	a.Steering, a.FollowUps, a.Save = nil, nil, nil
	a.Tools = make([]dag.Tool, 0, len(r.bound))
	for _, def := range r.shared.Tools {
		if b := r.bound[def.Name]; b != nil && b.tool != nil {
			a.Tools = append(a.Tools, b.tool)
		}
	}

	// The observers of the run around hear of the events already.
	a.Hooks = slices.Clone(a.Hooks)
	for i := range a.Hooks {
		a.Hooks[i].Observe = nil
	}
	return a
}

// beginning returns the conversation of a new run of the sub-agent.
func (s *subAgent) beginning(call *toolCall, task string) dag.DAG {
	d := dag.New()
	if s.fork {
		d = d.WithHeads(call.phase.open.Caller.Parents()...)
	}
	return d.User(task)
}

// refuses returns why a call cannot be executed, or nil.
func (s *subAgent) refuses(call *toolCall, task string) error {
	switch {
	case strings.TrimSpace(task) == "":
		return refused("Missing required 'task' parameter")
	case !s.fork:
		return nil
	case call == nil || call.agent != s:
		return errors.New("there is no conversation to begin from: the tool was not called by a run")
	}
	if c := call.phase.r.inside; c != nil && c.agent == s {
		return refused("You have this task yourself: " + s.def.Name + " cannot be called again.")
	}
	return nil
}

// work runs the agent on a task, or continues the run that was paused in the call.
func (s *subAgent) work(ctx context.Context, task string) (Result, error) {
	around := callIn(ctx)
	if err := s.refuses(around, task); err != nil {
		return Result{}, err
	}

	agent := s.agent
	if s.fork {
		agent = s.in(around.phase.r)
	}
	if around.savesAgent() && around.agent == s {
		agent.Save = around.saveAgent(agent.Save)
	}

	if around != nil {
		ctx = context.WithValue(ctx, forwardKey{}, around)
	}

	var end End
	var failure error
	for event, err := range s.events(ctx, agent, around, task) {
		if around != nil {
			around.forward(event)
		}
		if e, ok := event.(End); ok {
			end, failure = e, err
		}
	}

	// The call can pause only if its own tool is this sub-agent: a resumed run finds the sub-agent by the tool's name.
	var paused *PausedError
	if errors.As(failure, &paused) && around != nil && around.agent == s {
		return Result{}, &pausedError{agentPause{end.DAG, paused.Reason}, around}
	}

	// After a crash between the sub-agent's last response and the end of its run, the response is the result.
	if errors.Is(failure, ErrAnswered) {
		failure = nil
	}

	// A paused sub-agent whose time is over is refused before it runs, so it has no stop reason.
	if end.Stop == (node.StopReason{}) && errors.Is(failure, errTimeLimit) {
		end.Stop.Reason, failure = content.StopTimeLimit, nil
	}
	return childResult(end, failure)
}

// events returns the events of a run of agent for a call. agent is s.agent with the Save of this call. call may be nil.
func (s *subAgent) events(ctx context.Context, agent Agent, call *toolCall, task string) iter.Seq2[Event, error] {
	fresh := agent.Stream(ctx, s.beginning(call, task))
	if call == nil || call.agent != s || call.kept == nil || !call.takeKept() {
		return fresh
	}

	d := dag.FromNode(call.kept)
	if inside := call.resume; inside != nil {
		return stream(
			func(yield func(Event, error) bool) *run { return resumed(ctx, agent, d, yield) },
			func(r *run) error {
				r.replies = inside.replies()
				return r.resumePlaced(true)
			},
		)
	}

	// Without replies, the saved conversation is run again, unless the call has another task now.
	before := call.kept.Payload().(node.ToolExecution)
	if cmp.Or(before.Ran.Input, before.Input) != call.ran.Input {
		return fresh
	}
	call.addUsage(before.Usage)

	// The program may have ended after the sub-agent's run, before its result was saved.
	if stop, over := endOf(d); over {
		return func(yield func(Event, error) bool) { yield(End{DAG: d, Stop: stop}, nil) }
	}
	return agent.Stream(ctx, d)
}

// endOf returns the stop reason of a run that is over. A failed or cancelled run does not count: it can continue.
func endOf(d dag.DAG) (stop node.StopReason, over bool) {
	if d.Head() == nil {
		return stop, false
	}
	stop, over = d.Head().Payload().(node.StopReason)
	switch stop.Reason {
	case content.StopError, content.StopCancelled, content.StopDeadline:
		return stop, false
	}
	return stop, over
}

// childResult returns the result of a sub-agent after the end of its run.
func childResult(end End, err error) (Result, error) {
	result := Result{Child: end.DAG}
	text := end.DAG.Text()
	switch reason := end.Stop.Reason; reason {
	case content.StopMaxTurns, content.StopTokenLimit, content.StopCostLimit, content.StopTimeLimit, content.StopCallLimit:
		text = strings.TrimSpace(text + "\n\n[Agent stopped: " + string(reason) + "]")
	case content.StopLoop:
		err = errors.New("the sub-agent was stopped for repeating a tool call")
	}

	// work has handled a pause that can be resumed. This one cannot, so it becomes an error for the model.
	var paused *PausedError
	if errors.As(err, &paused) {
		err = errors.New(cannotResume(paused.Reason))
	}
	if err != nil {
		return result, err
	}

	if text == "" {
		text = "(sub-agent produced no text output)"
	}
	result.Content = content.Words(text)
	return result, nil
}

// tooDeep returns an error if a run inside the call would nest deeper than a run around it allows.
func tooDeep(c *toolCall) error {
	for below := 1; c != nil; below++ {
		r := c.phase.r
		if below > r.agent.Limits.Depth {
			return fmt.Errorf("sub-agents may nest no deeper than %d", max(r.agent.Limits.Depth, 0))
		}
		c = r.inside
	}
	return nil
}
