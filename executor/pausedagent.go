package executor

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// PausedAgent is a paused sub-agent in a [Continuation]. It waits for a pending call of its own, or for a sub-agent of
// its own. Its conversation is kept in that of the run, by a node after the message with the sub-agent's call.
type PausedAgent struct {
	// Path leads from the run to the sub-agent. It has the call of each sub-agent on the way, as it is executed, the
	// outermost first. The last is the call of this sub-agent.
	Path []Call
	// The fields below are those of a Continuation, for the sub-agent's own run.
	Run, ID, Parent        string
	Message                node.ID
	Totals                 node.StopReason
	InnerTurns, InnerCalls int
}

// own returns the pending calls and the paused sub-agents of the run itself, without those below its sub-agents.
func (c Continuation) own() (pending []Pending, agents []PausedAgent) {
	if len(c.Agents) == 0 {
		return c.Pending, nil
	}
	for _, p := range c.Pending {
		if len(p.Path) == 0 {
			pending = append(pending, p)
		}
	}
	for _, a := range c.Agents {
		if len(a.Path) == 1 {
			agents = append(agents, a)
		}
	}
	return pending, agents
}

// ownReason returns the reason of the pause for the run's own calls. While a call of a message waits for approval, no
// call of that message was executed, so no sub-agent is paused beside it.
func (c Continuation) ownReason() content.Stop {
	own, agents := c.own()
	if len(agents) == 0 {
		return c.Reason
	}
	return stopReason(slices.ContainsFunc(own, asksApproval))
}

// above returns the keys of the paths, at every depth, that lead to a pending call for which has returns true.
func (c Continuation) above(has func(Pending) bool) map[string]bool {
	keys := map[string]bool{}
	for _, p := range c.Pending {
		if has(p) {
			keys[pathKey(p.Path)] = true
		}
	}

	// Agents are listed before those below them, so going backward passes each key up to the top.
	for _, a := range slices.Backward(c.Agents) {
		if keys[pathKey(a.Path)] && len(a.Path) > 0 {
			keys[pathKey(a.Path[:len(a.Path)-1])] = true
		}
	}
	return keys
}

// stopReason returns the reason of a pause: for approval if a call asks for it, otherwise for results.
func stopReason(asks bool) content.Stop {
	if asks {
		return content.StopApproval
	}
	return content.StopResults
}

func asksApproval(p Pending) bool { return p.Approval }

// agentPause is the pause of a sub-agent's run.
type agentPause struct {
	dag          dag.DAG // the sub-agent's conversation
	continuation Continuation
}

// pausedError is the error that a [SubAgent] returns when its run pauses. The call can be resumed with it.
type pausedError struct {
	agentPause
	call *toolCall
}

// Error returns the text for the model. It is used if the sub-agent cannot be resumed, because a program's own tool
// wraps it.
func (e *pausedError) Error() string { return cannotResume(e.continuation.Reason) }

func cannotResume(reason content.Stop) string {
	return fmt.Sprintf("the sub-agent waits (%s), and cannot be resumed", reason)
}

// agentResume is a paused sub-agent in a run that is resumed.
type agentResume struct {
	agentPause
	replies map[string]Reply
	held    bool              // there is no reply for it: it stays paused
	ids     map[string]string // the ID in the run's own continuation and replies, by the ID in the sub-agent's
	hooks   []Hook            // of the sub-agent
	below   []*agentResume    // the sub-agents that are paused in its calls
}

// newAgentResume returns the sub-agent's part of a continuation and of the replies, in the form for the sub-agent's own
// run: without the name of the sub-agent's call at the beginning of each ID. names are the names of the run's calls, and
// d is the sub-agent's conversation.
func newAgentResume(
	c Continuation, agent PausedAgent, names []string, d dag.DAG, replies map[string]Reply,
) *agentResume {
	index := agent.Path[0].Index
	name := names[index]

	// Every head of d belongs to the message with the sub-agent's calls. checkAgent refuses any other conversation.
	inner := callNames(callerOf(d.Heads()[0]))
	s := &agentResume{agentPause: agentPause{dag: d}, replies: map[string]Reply{}, ids: map[string]string{}}
	s.continuation = Continuation{
		Run: agent.Run, ID: agent.ID, Parent: agent.Parent, Message: agent.Message, Reason: agent.Totals.Reason,
		Totals: agent.Totals, InnerTurns: agent.InnerTurns, InnerCalls: agent.InnerCalls, Attributes: c.Attributes,
	}

	// An ID of a call of the run itself may look like one of the sub-agent. The run's own call has priority.
	for id, reply := range replies {
		if own, below := innerID(id, name, inner); below && !slices.Contains(names, id) {
			s.replies[own], s.ids[own] = reply, id
		}
	}
	s.held = len(s.replies) == 0

	// Remove the first call of each path: a path in the sub-agent's continuation begins at the sub-agent.
	for _, p := range c.Pending {
		if len(p.Path) == 0 || p.Path[0].Index != index {
			continue
		}
		own, _ := innerID(p.ID, name, inner)
		s.ids[own] = p.ID
		p.ID, p.Path = own, p.Path[1:]
		s.continuation.Pending = append(s.continuation.Pending, p)
	}
	for _, a := range c.Agents {
		if len(a.Path) > 1 && a.Path[0].Index == index {
			a.Path = a.Path[1:]
			s.continuation.Agents = append(s.continuation.Agents, a)
		}
	}
	return s
}

// include adds the continuation of the sub-agent that is paused in call. names are the names of the run's own calls.
func (c *Continuation) include(call Call, names []string, sub Continuation) {
	within := func(path []Call) []Call { return slices.Concat([]Call{call}, path) }
	c.Agents = append(c.Agents, PausedAgent{
		Path: within(nil), Run: sub.Run, ID: sub.ID, Parent: sub.Parent, Message: sub.Message, Totals: sub.Totals,
		InnerTurns: sub.InnerTurns, InnerCalls: sub.InnerCalls,
	})
	for _, a := range sub.Agents {
		a.Path = within(a.Path)
		c.Agents = append(c.Agents, a)
	}

	for _, p := range sub.Pending {
		p.ID = distinct(outerID(p, names[call.Index]), names)
		p.Path = within(p.Path)
		c.Pending = append(c.Pending, p)
	}
}

// The ID of a sub-agent's call consists of the names of the calls in its path and its own name, separated by slashes.
// Slashes in a name are escaped.
var (
	slashes   = strings.NewReplacer("%", "%25", "/", "%2F")
	unslashed = strings.NewReplacer("%25", "%", "%2F", "/")
)

// outerID returns the ID of a sub-agent's pending call in the run around it. name is the name of the sub-agent's call.
func outerID(p Pending, name string) string {
	if len(p.Path) == 0 {
		p.ID = slashes.Replace(p.ID)
	}

	// A slash at the end only made the ID differ from that of a call of the sub-agent's own: see distinct.
	return slashes.Replace(name) + "/" + strings.TrimRight(p.ID, "/")
}

// innerID reverses outerID: it returns the ID in the sub-agent's own run. inner are the names of that run's own calls.
// It returns false for an ID that is not below the call with the name.
func innerID(id, name string, inner []string) (string, bool) {
	rest, below := strings.CutPrefix(id, slashes.Replace(name)+"/")
	rest = strings.TrimRight(rest, "/")

	// A path to a call deeper down stays escaped: the sub-agent reads it in the same way.
	if strings.Contains(rest, "/") {
		rest = distinct(rest, inner)
	} else {
		rest = unslashed.Replace(rest)
	}
	return rest, below && rest != ""
}

// distinct returns the ID of a sub-agent's call with slashes at its end, if it is by chance one of names, the names of
// the run's own calls.
func distinct(id string, names []string) string {
	for slices.Contains(names, id) {
		id += "/"
	}
	return id
}

// keptAgents returns the unfinished executions with a sub-agent's conversation in the open tool phase of d, by the
// index of their call.
func keptAgents(d dag.DAG) map[int]*node.Node {
	var kept map[int]*node.Node
	for _, h := range executionHeads(d) {
		if e := h.Payload().(node.ToolExecution); e.State.Unfinished() && e.Child.Len() > 0 {
			if kept == nil {
				kept = map[int]*node.Node{}
			}
			kept[e.Index] = h
		}
	}
	return kept
}

// pausedAgents returns an execution for each call with a paused sub-agent, in call order. It replaces the execution of
// an earlier pause.
func (p *toolPhase) pausedAgents() []node.ToolExecution {
	var list []node.ToolExecution
	for i := range p.calls {
		c := &p.calls[i]
		if c.state != agentPaused {
			continue
		}
		e := c.executionOf(Result{}, time.Time{})
		e.State, e.Child = node.ExecutionState(c.pause.continuation.Reason), node.ListOf(c.pause.dag.Heads()...)
		list = append(list, e)
	}
	return list
}

// replyAgent prepares the call of a paused sub-agent. It returns an error if the sub-agent cannot be resumed with the
// replies. It executes nothing.
func (r *run) replyAgent(
	to *toolCall, c Continuation, agent PausedAgent, names []string, replies map[string]Reply,
) error {
	name := names[to.call.Index]
	if to.kept == nil {
		return &ResumeError{Kind: ErrStale, ID: c.ID, Err: fmt.Errorf("call %q has no paused sub-agent", name)}
	}

	// Arguments changed by a hook before the pause are not checked again.
	var misfit *argumentError
	err := r.find(to)
	if errors.As(err, &misfit) {
		err = nil
	}
	if err == nil && to.agent == nil {
		err = fmt.Errorf("the tool %s is no sub-agent", safetext.Quote(to.ran.Name, maxName))
	}
	if err != nil {
		return &ResumeError{Kind: ErrNoAgent, ID: name, Err: err}
	}

	// The time and the usage before the pause count for the sub-agent's limits.
	to.resume = newAgentResume(c, agent, names, dag.FromNode(to.kept), replies)
	to.spent, to.innerRun().usage = agent.Totals.Elapsed, agent.Totals.Usage.Plus(agent.Totals.ToolUsage)

	// Check before anything runs. The error gets the ID that the caller knows.
	err = r.checkAgent(to.agent.agent, to.resume)
	var wrong *ResumeError
	switch {
	case !errors.As(err, &wrong):
		return err
	case wrong.Kind == ErrStale:
		return &ResumeError{Kind: ErrStale, ID: c.ID, Err: wrong.Err}
	}
	id, named := to.resume.ids[wrong.ID]
	if !named {
		id = slashes.Replace(name) + "/" + wrong.ID
	}
	return &ResumeError{Kind: wrong.Kind, ID: id, Err: wrong.Err}
}

// checkAgent returns an error if the run of a paused sub-agent cannot be resumed. It executes nothing.
func (r *run) checkAgent(agent Agent, s *agentResume) error {
	agent.Log = slog.New(slog.DiscardHandler) // the real run will log the same warnings
	child := newRun(r.ctx, agent, s.dag, nil)
	defer child.close()
	if err := s.continuation.stale(child.d); err != nil {
		return err
	}

	// Declare and bind as the resumed run will, to find its errors now.
	child.prompt = agent.System
	declared := child.withAgents()
	if err := declared.Err(); err != nil {
		return err
	}
	if err := child.bindTools(declared); err != nil {
		return err
	}

	p, err := child.reply(s.continuation, s.replies, s.held)
	if err != nil {
		return err
	}

	// Sub-agents of the sub-agent were checked on the way.
	s.hooks = child.agent.Hooks
	for i := range p.calls {
		if below := p.calls[i].resume; below != nil {
			s.below = append(s.below, below)
		}
	}
	return nil
}
