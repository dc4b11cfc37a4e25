package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// step is what a run does next: another turn or, with stop or err, nothing more.
type step struct {
	input []content.Message // appended before the next turn's request
	stop  content.Stop      // why the run ends; "" beside an err if it pauses or the consumer left
	err   error
}

// loop is the run. It prepares r with begin and executes the open calls. Then it sends requests and executes the calls
// of the responses, until a response has no calls or the run has to stop. It returns the End and its error, errLeft if
// the consumer left.
func (r *run) loop(begin func(*run) error) (end End, err error) {
	if len(r.observers) > 0 {
		err = errLeft // stays so if a provider or the consumer panics
		defer func() { r.observe(end, err) }()
	}
	if r.broken != nil {
		return r.refuse(r.broken)
	}
	switch err := begin(r); {
	case errors.Is(err, errRepeated):
		return r.refuse(nil) // nothing is left to do
	case err != nil:
		return r.refuse(err)
	}

	if !emit(r, RunStart{Run: r.id, DAG: r.d, Unbound: r.unbound}) {
		return End{}, errLeft
	}
	next := r.begunOpen()
	for next.stop == "" && next.err == nil {
		next = r.takeTurn(next.input)
	}
	return r.end(next.stop, next.err)
}

// begunOpen executes the calls that an earlier run left open. Without any, the first turn begins with the messages of
// the queues.
func (r *run) begunOpen() step {
	switch {
	case r.open.Branches > 1:
		if end := r.closeBranches(); end.stop != "" || end.err != nil {
			return end
		}
	case len(r.open.Phases) == 1:
		return r.closeTurn(r.open.Phases[0].Caller, r.open.Phases[0], content.Usage{}, "")
	case r.open.Unclosed: // executions of no call
		return r.closeTurn(nil, lineage.Phase{}, content.Usage{}, "")
	}
	r.replies = nil
	if err := r.start(); err != nil {
		return r.failed(err)
	}

	if r.unended && r.ctx.Err() == nil {
		last := lineage.LastMessage(r.d.Head())
		return r.afterTurn(Turn{
			Message: last, DAG: r.d, Provider: r.provider, Options: r.options, Stop: answerOf(last).Stop,
		})
	}

	// After the model's own message, or without any message, there is nothing to respond to: FollowUps count too.
	words, whole := lineage.Answered(r.d.Head())
	next := r.nextTurn("", words || len(r.transcript().Messages) == 0)
	if whole && next.stop == "" && next.err == nil && len(next.input) == 0 { // hooks rejected every message
		return step{stop: content.StopError, err: ErrAnswered}
	}
	return next
}

// takeTurn appends the input, sends a request, and executes the calls of the response.
func (r *run) takeTurn(input []content.Message) step {
	// Another run inside the same tools may have taken the last turn since the limits were checked.
	if !r.meter.claim(false, false) {
		r.detail = r.meter.outerLimit(false)
		return step{stop: content.StopMaxTurns}
	}

	r.turn++
	if !emit(r, TurnStart{Turn: r.turn}) {
		return step{err: errLeft}
	}
	if len(input) > 0 {
		if err := r.appendInput(input); err != nil {
			return r.failTurn(nil, content.Usage{}, err)
		}
	}

	if len(r.hooks.turn) > 0 {
		if _, err := r.change(r.hooks.turn); err != nil {
			return r.failTurn(nil, content.Usage{}, err)
		}
	}

	r.voided = content.Usage{}
	answer, message, err := r.ask()

	// Once only: after a second refusal, the reason is another one, or a message that is too long by itself.
	if message == nil && errors.Is(err, api.ErrContextTooLong) {
		answer, message, err = r.askShorter(err)
	}
	usage := r.voided.Plus(answer.Usage)
	if err != nil {
		return r.failTurn(message, usage, err)
	}

	// Calls continue the run, whatever the model's stop reason. So does a response that is not complete yet: the
	// provider's own tools are still running.
	var open lineage.Phase
	stop, calls := answer.Stop, false
	if message != nil {
		open, calls = lineage.Branch{Last: message, Heads: r.d.Heads()}.Phase()
	}
	if calls || stop == content.StopPause {
		stop = ""
	}

	inARow(&r.stalls.cut, answer.Stop == content.StopMaxTokens && calls)
	if inARow(&r.stalls.empty, answer.Stop == content.StopPause && message == nil) >= maxEmpty {
		stop = content.StopLoop
	}
	if !calls {
		open = lineage.Phase{}
	}
	return r.closeTurn(message, open, usage, stop)
}

// askShorter lets the hooks shorten a conversation after the provider refused it as too long, and sends it once more.
// It returns the refusal if they leave the conversation as it is.
func (r *run) askShorter(refusal error) (api.Response, *node.Node, error) {
	changed, err := r.change(r.hooks.tooLong)
	if err != nil {
		return api.Response{}, nil, errors.Join(refusal, err)
	}
	if !changed {
		return api.Response{}, nil, refusal
	}
	return r.ask()
}

// change runs hooks that may change the conversation, and reports whether they did.
func (r *run) change(hooks []func(context.Context, dag.DAG) (dag.DAG, error)) (bool, error) {
	d := r.d
	for _, hook := range hooks {
		changed, err := guard(r.ctx, &r.crew, hook, d)
		if err == nil {
			err = changed.Err()
		}
		if err != nil {
			return false, err
		}
		d = changed
	}
	if slices.Equal(d.Heads(), r.d.Heads()) {
		return false, nil
	}

	// A hook may return another conversation, with other tools.
	r.d = d
	return true, r.bindTools(r.d)
}

// failTurn ends a turn in which the model failed. message holds the part of the response that arrived; it may be nil.
func (r *run) failTurn(message *node.Node, usage content.Usage, err error) step {
	if errors.Is(err, errLeft) || !emit(r, TurnEnd{Turn: r.turn, Message: message, Usage: usage, DAG: r.d}) {
		return step{err: errLeft}
	}
	return r.failed(err)
}

// closeTurn executes the open calls of the message, ends the turn, and returns the next step. Without calls, open is
// zero. stop is the model's reason to end the run, or "".
func (r *run) closeTurn(message *node.Node, open lineage.Phase, usage content.Usage, stop content.Stop) step {
	if r.resumed && r.turn > 0 { // the turn includes its usage from before the pause
		usage = answerOf(message).Usage
	}

	// A declaration must not come between the calls and their results. The agent's declarations follow now.
	done, err := r.executePhase(open)
	r.replies = nil // they were for the calls that were open
	if err == nil && !r.started {
		err = r.start()
	}
	if err != nil {
		return r.failed(err)
	}

	ended := TurnEnd{
		Turn: r.turn, Message: message, Executions: done.executions, Usage: usage, ToolUsage: done.usage, DAG: r.d,
	}
	if !emit(r, ended) {
		return step{err: errLeft}
	}

	// The tools' request to end outranks the model's reason.
	if done.terminates {
		stop = content.StopTerminated
	}

	// The last step is saved together with the end of the run, unless the consumer can still change what comes next.
	alone := len(r.hooks.next) == 0 && r.agent.Steering == nil && r.agent.FollowUps == nil
	last := r.stop != "" || stop != "" && alone
	if r.agent.Save != nil && !last && !r.flush() {
		return step{err: errLeft}
	}
	if r.stop != "" {
		return step{stop: r.stop}
	}

	if len(r.hooks.next) > 0 && r.ctx.Err() == nil {
		return r.afterTurn(Turn{
			Number: r.turn, Message: message, Executions: done.executions, Results: done.results,
			DAG: r.d, Provider: r.provider, Options: r.options, Stop: stop,
		})
	}
	return r.nextTurn(stop, stop != "")
}

// afterTurn lets the Next hooks decide about the next step.
func (r *run) afterTurn(turn Turn) step {
	stop := turn.Stop
	turn, err := r.next(turn)
	switch {
	case err != nil:
		return r.failed(err)
	case turn.Stop != "" && turn.Stop != stop:
		return step{stop: turn.Stop} // even if messages wait in the queues
	}
	return r.nextTurn(turn.Stop, turn.Stop != "")
}

func answerOf(message *node.Node) node.Answer {
	m, _ := message.Message()
	return m.Answer
}

// nextTurn returns another turn, with the run's own message and those of the queues, or the end of a run that has to
// end. stop is the reason to end now; "" if there is none. With final, only a message of a queue is a reason to go on:
// FollowUps are read if Steering has none, and the run's own message does not count.
func (r *run) nextTurn(stop content.Stop, final bool) step {
	if r.ctx.Err() != nil {
		if stop != "" {
			return step{stop: stop} // the run was complete before its context ended
		}
		reason, err := r.ended()
		return step{stop: reason, err: err}
	}

	var limit content.Stop
	var detail string
	if r.meter.limited {
		limit, detail = r.meter.usedUp()
	}
	if turns := r.agent.Limits.Turns; limit == "" && turns > 0 && r.turn >= turns {
		limit = content.StopMaxTurns // the default of 50; the meter checks only limits that the program sets
	}
	if limit != "" {
		r.detail = detail
		return step{stop: cmp.Or(stop, limit)}
	}

	own := r.nudge
	r.nudge = nil
	var fresh []content.Message
	var err error
	if r.agent.Steering != nil {
		fresh, err = r.accepted(r.agent.Steering)
	}
	if err == nil && final && len(fresh) == 0 && r.agent.FollowUps != nil {
		fresh, err = r.accepted(r.agent.FollowUps)
	}
	switch {
	case err != nil:
		return r.failed(err)
	case len(fresh) > 0:
		r.same = repeats{} // new input may ask for the same call again, so repeats count anew
	case final:
		return step{stop: stop}
	}
	return step{input: append(own, fresh...)}
}

// next runs the Next hooks. The run continues with their conversation, provider and options.
func (r *run) next(turn Turn) (Turn, error) {
	turn.Executions = slices.Clone(turn.Executions) // a hook may change its copy; the TurnEnd event stays as it was
	for _, next := range r.hooks.next {
		changed, err := guard(r.ctx, &r.crew, next, turn)
		if err == nil {
			err = changed.DAG.Err()
		}
		if err != nil {
			return turn, err
		}
		turn = changed
	}
	if isNil(turn.Provider) {
		return turn, errNoProvider
	}

	// The hooks may have changed the provider, and the client belongs to the former one.
	changed := !slices.Equal(turn.DAG.Heads(), r.d.Heads())
	r.d, r.provider, r.client, r.options = turn.DAG, turn.Provider, nil, turn.Options
	if closed := r.d.CloseTools(); closed.Err() == nil { // a hook left a call without a result
		r.d, changed = closed, true
	}

	// A changed conversation may declare other tools.
	if !changed {
		return turn, nil
	}
	return turn, r.bindTools(r.d)
}

// ended returns the stop reason of a run that has to end at once, because its context ended or Agent.Save failed. The
// stop reason is "" otherwise.
func (r *run) ended() (content.Stop, error) {
	switch {
	case r.saveErr != nil:
		return content.StopError, r.saveErr
	case r.ctx.Err() == nil:
		return "", nil
	case errors.Is(context.Cause(r.ctx), errTimeLimit):
		// This run's context also has this cause if the limit is that of a run around it.
		if r.inside != nil && errors.Is(context.Cause(r.inside.phase.r.ctx), errTimeLimit) {
			r.detail = textOuterLimit
		}
		return content.StopTimeLimit, nil
	case errors.Is(r.ctx.Err(), context.DeadlineExceeded):
		return content.StopDeadline, errorOf(r.ctx)
	}
	return content.StopCancelled, errorOf(r.ctx)
}

// errorOf returns the error of ctx with its cause in the chain, or nil if ctx has not ended.
func errorOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// failed returns the end of a run that fails with err, pauses, or whose consumer left. The end of the context has
// priority: it usually caused err.
func (r *run) failed(err error) step {
	if errors.Is(err, errLeft) || errors.Is(err, ErrPaused) {
		return step{err: err}
	}
	if stop, cause := r.ended(); stop != "" {
		// If a request failed before and was to be sent again, its error has the end of the context and that failure.
		var attempts *api.AttemptsError
		if cause != nil && r.saveErr == nil && errors.As(err, &attempts) && errors.Is(err, r.ctx.Err()) {
			cause = err
		}
		return step{stop: stop, err: cause}
	}
	r.detail = err.Error()
	return step{stop: content.StopError, err: err}
}
