package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// loop is the run: carry out what is open; then ask, answer the calls, and ask again, until the model calls nothing more or the run has
// to stop.
func (r *run) loop() (content.Stop, error) {
	if !r.emit(RunStart{Run: r.id, DAG: r.d, Unbound: r.unbound}) {
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
	if stop, err = r.closeBranches(); stop != "" || err != nil {
		return nil, stop, err
	}
	words, whole := r.answered()
	if !r.waits() {
		if stop, err = r.ended(); stop != "" {
			return nil, stop, err
		}
		if stop = r.limit(); stop != "" {
			return nil, stop, nil
		}
		if input, err = r.poll(words || len(r.transcript().Messages) == 0); err != nil {
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
	if !r.emit(TurnStart{Turn: r.turn}) {
		return Turn{}, "", errLeft
	}
	if err := r.say(input); err != nil {
		return r.failedTurn(nil, content.Usage{}, err)
	}
	r.voided = content.Usage{}
	answer, said, err := r.ask()
	if said == nil && errors.Is(err, api.ErrContextTooLong) {
		answer, said, err = r.askShorter(err)
	}
	usage := r.voided.Plus(answer.Usage)
	if err != nil {
		return r.failedTurn(said, usage, err)
	}
	stop := answer.Stop
	if calls(answer) || stop == content.StopPause {
		stop = ""
	}
	return r.closeTurn(said, usage, stop)
}

// askShorter lets the hooks shorten a conversation that the provider refused as too long, and asks once more. It returns the refusal where
// they do not.
func (r *run) askShorter(refusal error) (api.Response, *node.Node, error) {
	shorter := r.d
	for _, h := range r.agent.Hooks {
		if h.TooLong == nil {
			continue
		}
		changed, err := guard(r.ctx, &r.workers, h.TooLong, shorter)
		if err == nil {
			err = changed.Err()
		}
		if err != nil {
			return api.Response{}, nil, errors.Join(refusal, err)
		}
		shorter = changed
	}
	if slices.Equal(shorter.Heads(), r.d.Heads()) {
		return api.Response{}, nil, refusal
	}

	r.d = shorter
	if err := r.rebind(); err != nil {
		return api.Response{}, nil, err
	}
	return r.ask()
}

func calls(answer api.Response) bool { return len(answer.Blocks.ToolUses()) > 0 }

// failedTurn ends a turn in which the model failed, and returns why the run ends. Said is what arrived of its answer; nil is nothing.
func (r *run) failedTurn(said *node.Node, usage content.Usage, err error) (Turn, content.Stop, error) {
	if errors.Is(err, errLeft) || !r.emit(TurnEnd{Turn: r.turn, Message: said, Usage: usage, DAG: r.d}) {
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
				tools = tools.Minus(e.Usage)
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
		ToolUsage: r.ledger.toolUsage().Minus(tools), DAG: r.d,
	}
	if !r.emit(ended) {
		return turn, "", errLeft
	}
	return turn, r.stop, nil
}

func answeredBy(said *node.Node) node.Answer {
	m, _ := said.Message()
	return m.Answer
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
	if isNil(turn.Provider) {
		return turn, ErrNoProvider
	}
	changed := !slices.Equal(turn.DAG.Heads(), r.d.Heads())
	r.d, r.provider, r.options = turn.DAG, turn.Provider, turn.Options
	if closed := r.d.CloseTools(); closed.Err() == nil { // no hook is to leave a call without a result
		r.d, changed = closed, true
	}
	if !changed {
		return turn, nil
	}
	return turn, r.rebind()
}

// rebind finds what runs tools that a hook declared.
func (r *run) rebind() error {
	return r.bindTools(r.d)
}

// ended returns the reason and the error of a run whose context ended; no reason while it has not.
func (r *run) ended() (content.Stop, error) {
	switch {
	case r.saveErr != nil:
		return content.StopError, r.saveErr
	case r.ctx.Err() == nil:
		return "", nil
	case errors.Is(context.Cause(r.ctx), errTimeLimit):
		return content.StopTimeLimit, nil
	case errors.Is(r.ctx.Err(), context.DeadlineExceeded):
		return content.StopDeadline, errorOf(r.ctx)
	}
	return content.StopCancelled, errorOf(r.ctx)
}

// errorOf returns why ctx ended: its error and its cause, so that errors.Is finds both. It returns nil while ctx has not ended.
func errorOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
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
