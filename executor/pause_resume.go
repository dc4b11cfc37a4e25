package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// placedReply is a reply and the pending call that it is for.
type placedReply struct {
	Reply
	waits *node.Node     // the unfinished execution
	path  []node.CallKey // the calls of the sub-agents around it, the outermost first
}

// replies are the replies of a Resume for one run: for its own calls, and for calls inside its sub-agents.
type replies struct {
	own    map[node.CallKey]*placedReply
	inside map[node.CallKey]*insideReplies // by the call of this run with the sub-agent
}

// insideReplies are the replies for one sub-agent, and for those below it.
type insideReplies struct {
	depth int // of the sub-agent's run
	list  []*placedReply
}

func (in *insideReplies) replies() *replies { return newReplies(in.depth, in.list) }

// newReplies sorts replies by the call of a run so deep that they are for.
func newReplies(depth int, list []*placedReply) *replies {
	rs := &replies{own: make(map[node.CallKey]*placedReply, len(list))}
	for _, p := range list {
		if len(p.path) == depth {
			rs.own[p.Call] = p
			continue
		}
		if rs.inside == nil {
			rs.inside = map[node.CallKey]*insideReplies{}
		}
		at := p.path[depth]
		if rs.inside[at] == nil {
			rs.inside[at] = &insideReplies{depth: depth + 1}
		}
		rs.inside[at].list = append(rs.inside[at].list, p)
	}
	return rs
}

// given reports whether there is a reply for a call of the phase, or inside it.
func (rs *replies) given(p lineage.Phase) bool { return len(rs.numbers(p)) > 0 }

// leave reports whether a call stays as it is: it waits for somebody, and has no reply. execution is its unfinished
// execution, or nil.
func (rs *replies) leave(execution *node.Node) bool {
	if execution == nil || !execution.Payload().(node.ToolExecution).State.Paused() {
		return false
	}
	key := keyOf(execution)
	return rs.own[key] == nil && rs.inside[key] == nil
}

// numbers returns the numbers of the calls of the phase with a reply, or with one inside them, in order.
func (rs *replies) numbers(p lineage.Phase) (list []int) {
	message := p.Caller.ID()
	for key := range rs.own {
		if key.Message == message {
			list = append(list, p.Number(key.Index))
		}
	}
	for key := range rs.inside {
		if key.Message == message {
			list = append(list, p.Number(key.Index))
		}
	}
	slices.Sort(list)
	return list
}

// any reports whether there is any reply.
func (rs *replies) any() bool { return len(rs.own)+len(rs.inside) > 0 }

// place finds the pending call of each reply in the conversation of r. A reply that repeats a result is left out. It
// executes nothing.
func (r *run) place(given []Reply) ([]*placedReply, error) {
	wanted := make(map[node.CallKey]Reply, len(given))
	for _, reply := range given {
		if err := reply.unfit(); err != nil {
			return nil, err
		}
		if _, twice := wanted[reply.Call]; twice {
			return nil, reply.refuse(ErrReply, "there are two replies to the call")
		}
		wanted[reply.Call] = reply
	}

	// Usually the replies are for the run's own calls, which are found at once.
	placed := make([]*placedReply, 0, len(given))
	for _, p := range r.open.Phases {
		for _, reply := range given {
			i := p.Number(reply.Call.Index)
			if reply.Call.Message != p.Caller.ID() || i < 0 || p.Started(i) == nil {
				continue
			}
			if e := p.Started(i).Payload().(node.ToolExecution); e.State.Paused() && e.Child.Len() == 0 {
				placed = append(placed, &placedReply{Reply: reply, waits: p.Started(i)})
				delete(wanted, reply.Call)
			}
		}
	}
	if len(wanted) > 0 {
		for w := range lineage.Pending(r.open.Phases) {
			if reply, is := wanted[keyOf(w.Node)]; is {
				placed = append(placed, &placedReply{Reply: reply, waits: w.Node, path: w.Path})
				delete(wanted, reply.Call)
			}
		}
	}

	for _, p := range placed {
		if err := p.fits(); err != nil {
			return nil, err
		}
	}
	for _, reply := range given {
		if _, left := wanted[reply.Call]; left {
			if err := r.hadResult(reply); err != nil {
				return nil, err
			}
		}
	}
	return placed, nil
}

// fits returns an error if the reply is not of the kind that its call waits for, or was given to something else.
func (p *placedReply) fits() error {
	e := p.waits.Payload().(node.ToolExecution)
	switch asks := e.State == node.ExecutionAwaitingApproval; {
	case asks && p.kind == returned:
		return p.refuse(ErrReply, "the call waits for approval")
	case !asks && p.kind != returned:
		return p.refuse(ErrReply, "the call waits for its result")
	case p.Shown != (Fingerprint{}) && p.Shown != Shown(dag.PendingOf(p.waits)):
		return p.refuse(ErrStale, "the call is not what was shown")
	}
	return nil
}

// hadResult returns an error unless the reply repeats the result that its call has: its sender may not have learned that
// it had arrived.
func (r *run) hadResult(reply Reply) error {
	var had *node.ToolExecution
	for _, n := range r.d.WithChildren() {
		if key, ok := n.Call(); !ok || key != reply.Call {
			continue
		}
		if e := n.Payload().(node.ToolExecution); !e.State.Unfinished() {
			had = &e
			if reply.kind == returned && r.hasResult(e, reply.result) {
				return nil
			}
		}
	}
	if had != nil && reply.kind == returned {
		return reply.refuse(ErrConflict, "")
	}
	return reply.refuse(ErrUnknownCall, "")
}

// hasResult reports whether an execution has the result, before or after the After hooks.
func (r *run) hasResult(had node.ToolExecution, result Result) bool {
	// The execution has the result as it came, or cut with the whole in Full, or as the After hooks return it.
	same := func(a, b content.Blocks, failed bool) bool { return a.Equal(b) && had.IsError == failed }
	if same(had.Result, result.Content, result.IsError) || had.Full.Len() > 0 && same(had.Full, result.Content, result.IsError) {
		return true
	}
	call := Call{Name: had.Tool, Input: had.Input, Index: had.Index, ID: had.CallID}
	result, err := r.afterDeferred(call, call, result)
	return err == nil && same(had.Result, result.Content, result.IsError)
}

// resume prepares a run that continues after a pause, with the replies of somebody outside.
func (r *run) resume(given []Reply) error {
	if r.broken != nil {
		return r.broken
	}

	// Check the replies first, so that one that came before gives the same error whatever has happened since.
	r.open = shared.OpenAt(&r.d)
	placed, err := r.place(given)
	if err != nil {
		return err
	}
	r.replies = newReplies(0, placed)
	switch repeated := len(given) > 0 && len(placed) == 0; {
	case repeated && len(r.open.Phases) == 0:
		return errRepeated
	case !repeated:
		if err := r.missing(); err != nil {
			return err
		}
	}
	return r.resumePlaced(false)
}

// errRepeated reports that a Resume only repeats results of calls that the conversation has left behind.
var errRepeated = errors.New("executor: every reply repeats a result that the conversation has")

// missing returns an error if a call that waits for approval has no reply, beside a call that has one. Without any
// reply to a call of the run, the first such call is named.
func (r *run) missing() error {
	for _, p := range r.open.Phases {
		if p.Approval == 0 {
			continue
		}
		replied := r.replies.given(p)
		for i := range p.List {
			n := p.Started(i)
			if n == nil {
				continue
			}
			e := n.Payload().(node.ToolExecution)
			asks := e.State == node.ExecutionAwaitingApproval && e.Child.Len() == 0
			if asks && r.replies.own[keyOf(n)] == nil && (replied || !r.replies.any()) {
				return &ResumeError{Kind: ErrMissingReply, Call: keyOf(n)}
			}
		}
	}
	return nil
}

// resumePlaced prepares the run with r.replies. The replies to an inner run were checked with those of the outermost
// one, and its Resume hooks were asked.
func (r *run) resumePlaced(inner bool) error {
	if err := r.begin(); err != nil {
		return err
	}
	r.parent = r.open.Phases
	if !inner {
		agents, err := r.checkAgents()
		if err != nil {
			return err
		}
		if err := r.askResumeHooks(r.hooks.resume, r.d, agents); err != nil {
			return err
		}
	}

	// A result from outside passes the After hooks, like that of a tool. If the context ends meanwhile, the run is
	// refused, so that the result is not lost.
	for _, p := range r.replies.own {
		if p.kind != returned {
			continue
		}
		shown := dag.PendingOf(p.waits)
		result, err := r.afterDeferred(shown.Call, shown.Call, p.result)
		if err != nil {
			return err
		}
		p.result = result
	}

	r.resumed = true
	r.restore(spentIn(r.open.Phases))
	return nil
}

// checkedAgent is a sub-agent that replies are for.
type checkedAgent struct {
	dag   dag.DAG
	hooks []func(context.Context, Continuation) error
	below []checkedAgent
}

// checkAgents returns the sub-agents that continue, or an error if one of them cannot. It executes nothing.
func (r *run) checkAgents() ([]checkedAgent, error) {
	var list []checkedAgent
	for key, inside := range r.replies.inside {
		n := r.waitingAt(key)
		shown := dag.PendingOf(n)
		c := r.apart(shown.Call, shown.Call)
		if err := r.findAgent(c); err != nil {
			return nil, &ResumeError{Kind: errNoAgent, Call: key, Err: err}
		}

		// The real run will log the same warnings.
		agent := c.agent.in(r)
		agent.Log = discard
		checked := checkedAgent{dag: dag.FromNode(n)}
		child := newRun(r.ctx, agent, checked.dag, nil)
		child.replies = inside.replies()
		child.open = shared.OpenAt(&child.d)
		below, err := child.checkAsAgent()
		child.close()
		if err != nil {
			return nil, err
		}
		checked.hooks, checked.below = child.hooks.resume, below
		list = append(list, checked)
	}
	return list, nil
}

// checkAsAgent checks a paused sub-agent and those below it. It declares and binds as the resumed run will, to find its
// errors now.
func (r *run) checkAsAgent() ([]checkedAgent, error) {
	r.prompt = r.agent.System
	at := r.declaring()
	declared := r.withAgents(at)
	if err := declared.Err(); err != nil {
		return nil, err
	}
	if err := r.bindTools(declared); err != nil {
		return nil, err
	}
	if err := r.missing(); err != nil {
		return nil, err
	}
	return r.checkAgents()
}

// waitingAt returns the unfinished execution of a call of the run.
func (r *run) waitingAt(key node.CallKey) *node.Node {
	for _, p := range r.open.Phases {
		if i := p.Number(key.Index); p.Caller.ID() == key.Message && i >= 0 {
			return p.Started(i)
		}
	}
	return nil
}

// findAgent finds the sub-agent of a call. Arguments changed by a hook before the pause are not checked again.
func (r *run) findAgent(c *toolCall) error {
	var misfit *argumentError
	err := r.find(c)
	if errors.As(err, &misfit) {
		err = nil
	}
	if err == nil && c.agent == nil {
		err = fmt.Errorf("the tool %s is no sub-agent", safetext.Quote(c.ran.Name, maxName))
	}
	return err
}

// askResumeHooks returns an error if a Resume hook refuses the pause. It calls the hooks with the pause of d, and then
// those of each continuing sub-agent with the sub-agent's own pause.
func (r *run) askResumeHooks(hooks []func(context.Context, Continuation) error, d dag.DAG, agents []checkedAgent) error {
	for _, hook := range hooks {
		c := ContinuationOf(d)
		c.Attributes = Attributes(r.ctx)
		ask := func(ctx context.Context, c Continuation) (struct{}, error) { return struct{}{}, hook(ctx, c) }
		if _, err := guard(r.ctx, &r.crew, ask, c); err != nil {
			if r.ctx.Err() != nil {
				return errorOf(r.ctx)
			}
			return &ResumeError{Kind: ErrStale, Err: err}
		}
	}
	for _, a := range agents {
		if err := r.askResumeHooks(a.hooks, a.dag, a.below); err != nil {
			return err
		}
	}
	return nil
}

// reply applies a reply to its call.
func (r *run) reply(c *toolCall, e *node.ToolExecution, p *placedReply) {
	shown := dag.PendingOf(p.waits).Call
	c.ran.Name, c.ran.Input, c.decided = shown.Name, shown.Input, p.decided()
	if !e.Started.IsZero() {
		c.start = e
	}
	switch {
	case p.kind == returned:
		c.start = nil
		c.answer(p.result)
		return
	case p.kind == declined && c.start != nil:
		c.leaveInDoubt(cmp.Or(p.reason, "a person decided not to execute it again"))
		return
	case p.kind == declined:
		c.deny(cmp.Or(p.reason, "denied by user"))
		return
	}

	// The call is approved. Arguments changed by a hook before the pause are not checked again.
	c.deferred = e.Deferred
	if p.input != "" {
		c.ran.Input = p.input
	}
	var misfit *argumentError
	if err := r.find(c); err != nil && (c.fn == nil || p.input != "" || !errors.As(err, &misfit)) {
		c.fail(err)
	}
}

// afterDeferred passes the result of a deferred call through the After hooks, within the agent's timeout for a call. An
// error of the hooks becomes an error result; the returned error is that of the run's context.
func (r *run) afterDeferred(call, ran Call, result Result) (Result, error) {
	if len(r.hooks.after) == 0 {
		return result, nil
	}
	ctx, cancel := r.ctx, func() {}
	if r.agent.ToolTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.agent.ToolTimeout)
	}
	defer cancel()

	// Use a separate call: a hook that was given up may still use it while the run continues.
	c := r.apart(call, ran)
	c.ctx.Context = ctx
	after := func(_ context.Context, result Result) (Result, error) { return c.runAfterHooks(result), nil }
	changed, err := guard(ctx, &r.crew, after, result)
	switch {
	case err == nil:
		return changed, nil
	case r.ctx.Err() != nil:
		return Result{}, errorOf(r.ctx)
	case ctx.Err() != nil:
		return failure(textTimeout, r.agent.ToolTimeout), nil
	}
	return failure("%v", r.hidden(ran.Name, err)), nil
}
