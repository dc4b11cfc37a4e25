package executor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// errTimeLimit is the cause of a context that Agent.MaxTime ended.
var errTimeLimit = errors.New("executor: the run's time limit was reached")

// errLeft says that whoever ranged over the stream broke off.
var errLeft = errors.New("executor: the consumer left")

// run is one run of an agent. It is used by one goroutine; only its tools run on others.
type run struct {
	agent   Agent
	ctx     context.Context
	cancel  context.CancelFunc
	yield   func(Event, error) bool // nil: nobody listens
	workers workers

	d      dag.DAG
	view   *dag.Transcript // what the model is sent; it grows with d. nil: to be made
	bound  map[string]Tool // what can be called
	names  []string        // the declared names, in order
	turn   int
	totals node.StopReason
	began  time.Time
}

func newRun(ctx context.Context, a Agent, d dag.DAG, yield func(Event, error) bool) *run {
	r := &run{agent: a.withDefaults(), d: d, yield: yield, workers: workers{idle: make(chan struct{}, 1)}}
	if a.MaxTime > 0 {
		r.ctx, r.cancel = context.WithTimeoutCause(ctx, a.MaxTime, errTimeLimit)
	} else {
		r.ctx, r.cancel = context.WithCancel(ctx)
	}
	return r
}

// close cancels what is under way and waits for it.
func (r *run) close() {
	r.cancel()
	r.workers.join(r.agent.Grace)
}

// begin returns why there is nothing to run.
func (r *run) begin() error {
	if r.agent.Provider == nil {
		return ErrNoProvider
	}
	return r.bind()
}

// bind finds what can run each declared tool.
func (r *run) bind() error {
	declared := r.declared()
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
	r.d, r.view = declared, &view
	return nil
}

func (r *run) declared() dag.DAG {
	if len(r.agent.Tools) == 0 {
		return r.d
	}
	return r.d.Tools(r.agent.Tools...)
}

// waits reports whether the conversation ends in a tool phase that is not closed.
func (r *run) waits() bool {
	heads := r.d.Heads()
	return len(r.d.OpenCalls()) > 0 || len(heads) > 0 && isExecution(heads[0])
}

// declare declares what bind could not declare while calls were open.
func (r *run) declare() error {
	if r.view != nil {
		return nil
	}
	d := r.declared()
	if err := d.Err(); err != nil {
		return err
	}
	view := d.Transcript()
	r.d, r.view = d, &view
	return nil
}

// loop is the run: ask, answer the calls, ask again, until the model calls nothing more or the run has to stop.
func (r *run) loop() (content.Stop, error) {
	for {
		if stop, err := r.tools(); stop != "" || err != nil {
			return stop, err
		}
		if err := r.declare(); err != nil {
			return content.StopError, err
		}
		if stop, err := r.ended(); stop != "" {
			return stop, err
		}
		if stop := r.limit(); stop != "" {
			return stop, nil
		}
		answer, err := r.ask()
		if err != nil {
			return r.failed(err)
		}
		if err := r.take(answer); err != nil {
			return content.StopError, err
		}
		if !calls(answer) && answer.Stop != content.StopPause {
			return answer.Stop, nil
		}
	}
}

func calls(answer api.Response) bool { return len(answer.Blocks.ToolUses()) > 0 }

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
	switch a := r.agent; {
	case r.spent():
		return content.StopTokenLimit
	case a.MaxTurns > 0 && r.totals.Turns >= a.MaxTurns:
		return content.StopMaxTurns
	}
	return ""
}

func (r *run) spent() bool {
	return r.agent.MaxTokens > 0 && r.totals.Usage.Total() >= r.agent.MaxTokens
}

// ask makes one request.
func (r *run) ask() (api.Response, error) {
	if r.view == nil {
		view := r.d.Transcript()
		r.view = &view
	}
	r.turn++
	req := api.Request{ // who appends to one of these gets a copy
		System: slices.Clip(r.view.System), Tools: slices.Clip(r.view.Tools), Messages: slices.Clip(r.view.Messages),
	}
	if !r.tell(TurnStart{Turn: r.turn, Request: req}) {
		return api.Response{}, errLeft
	}
	r.totals.Turns++
	var answer api.Fold
	for event, err := range api.NewClient(r.agent.Provider, nil).Stream(r.ctx, req) {
		if err == nil {
			err = answer.Add(event)
		}
		if err != nil {
			return api.Response{}, err
		}
		if !r.tell(Model{Turn: r.turn, Event: event}) {
			return api.Response{}, errLeft
		}
	}
	return answer.Response()
}

// failed returns the reason and the error of a run whose model call failed with err.
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

// take makes the answer a part of the conversation. An answer that says nothing leaves only its usage behind.
func (r *run) take(answer api.Response) error {
	r.totals.Usage = r.totals.Usage.Plus(answer.Usage)
	if silent(answer) {
		return nil
	}
	err := r.append(r.d.Append(node.Message{Role: content.Assistant, Blocks: answer.Blocks, Answer: node.Answer{
		API: answer.API, Model: answer.Model, ResponseID: answer.ResponseID,
		Stop: answer.Stop, Usage: answer.Usage, Latency: answer.Latency,
	}}))
	if err != nil {
		return err
	}
	if !r.tell(MessageEnd{Turn: r.turn, Node: r.d.Head()}) {
		return errLeft
	}
	if !calls(answer) && !r.tell(TurnEnd{Turn: r.turn, DAG: r.d}) {
		return errLeft
	}
	return nil
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

// append goes on with d, whose head is a new message.
func (r *run) append(d dag.DAG) error {
	if err := d.Err(); err != nil {
		return err
	}
	r.d = d
	if r.turn == 0 {
		r.view = nil // what closes now began in an earlier run, and some of it may be in view already
	} else if said, ok := d.Head().Message(); ok {
		r.view.Messages = append(r.view.Messages, content.Message{Role: said.Role, Blocks: said.Blocks})
	}
	return nil
}

// tell yields an event and reports whether anybody still listens.
func (r *run) tell(event Event) bool { return r.yield == nil || r.yield(event, nil) }

// refuse ends a run that has not begun.
func (r *run) refuse(err error) { r.yield(End{DAG: r.d}, err) }

// end writes down why the run ended, and its totals.
func (r *run) end(reason content.Stop, err error) {
	if errors.Is(err, errLeft) {
		return
	}
	r.totals.Reason = reason
	r.totals.Elapsed = r.d.Source().Time().Sub(r.began)
	if d := r.d.Append(r.totals); d.Err() == nil {
		r.d = d
	}
	r.yield(End{DAG: r.d, Stop: r.totals}, err)
}
