package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

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
		if !asked { // who keeps the TurnEnd keeps what it said
			asked, turn.Executions = true, slices.Clone(turn.Executions)
		}
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
