package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// model is what is requested.
type model struct {
	provider api.Provider // of the next turn
	client   *api.Client  // of provider; nil until it is used
	options  api.Options

	// requested has the options of the request that led to the open calls. It is zero for calls that an earlier run
	// left open.
	requested  api.Options
	voided     content.Usage // usage of failed attempts at this turn's request
	retries    int           // number of failed attempts at this turn's request
	endsInGoOn bool          // a repair ended the last request with content.GoOn, which is not in the conversation
}

// ask sends one request and appends the response to the conversation, even if it broke off. It returns the response and
// its node, nil for an empty response that is no refusal.
func (r *run) ask() (api.Response, *node.Node, error) {
	if r.agent.Save != nil && !r.flush() {
		return api.Response{}, nil, errLeft
	}

	t := r.transcript()
	if err := r.d.Err(); err != nil {
		return api.Response{}, nil, err // the transcript needed nodes that could not be loaded
	}
	req := api.Request{System: t.System, Tools: t.Tools, Messages: t.Messages, Options: r.options}
	if len(r.hooks.send) > 0 {
		changed, err := r.runSendHooks(req)
		if err != nil {
			return api.Response{}, nil, err
		}
		req = changed
	}

	// A Send hook may have changed the tool choice. The calls of the response are checked against it.
	r.requested = req.Options
	if !emit(r, MessageStart{Turn: r.turn, Role: content.Assistant, Request: req, Model: api.ModelOf(r.provider)}) {
		return api.Response{}, nil, errLeft
	}

	// The context that the observers return for the MessageStart is that of the request.
	ctx := r.ctx
	if r.observed != nil {
		ctx = r.observed
	}
	r.retries, r.endsInGoOn = 0, false
	answer, failure := r.receive(ctx, req)

	// A consumer that leaves gets no conversation, so nothing has to be kept.
	if errors.Is(failure, errLeft) {
		return answer, nil, failure
	}

	// Keep the part that arrived before a failure: it was shown and paid for.
	message, err := r.take(answer)
	if failure != nil && !errors.Is(err, errLeft) {
		err = failure
	}
	return answer, message, err
}

// runSendHooks passes the request through the Send hooks.
func (r *run) runSendHooks(req api.Request) (api.Request, error) {
	// The lists are shared with the conversation, which a hook must not change.
	req.System, req.Tools, req.Messages = slices.Clone(req.System), slices.Clone(req.Tools), slices.Clone(req.Messages)
	for _, send := range r.hooks.send {
		changed, err := guard(r.ctx, &r.crew, send, req)
		if err != nil {
			return req, err
		}
		req = changed
	}
	return req, nil
}

// receive sends the request and emits an event for each piece of the response. Beside an error it returns the received
// part of the response.
func (r *run) receive(ctx context.Context, req api.Request) (api.Response, error) {
	if r.client == nil {
		r.client = api.NewClient(r.provider, nil)
	}
	return r.client.SendFunc(ctx, req, func(event api.Event) error {
		stays := true
		switch e := event.(type) {
		case api.Finish, api.Cut: // MessageEnd follows in their place
		case api.Repaired:
			r.endsInGoOn = r.endsInGoOn || slices.ContainsFunc(e.Repairs, asksToGoOn)
			stays = emit(r, Repaired{Turn: r.turn, Repairs: e.Repairs})
		case api.Retry:
			// The provider charges for a response that broke off, although nothing of it is kept.
			r.voided = r.voided.Plus(e.Cut.Usage)
			r.meter.spend(ownRequest, e.Cut.Model, e.Cut.Usage)
			r.retries++
			stays = emit(r, Retry{Turn: r.turn, Retry: e})
		default:
			stays = emit(r, MessageDelta{Turn: r.turn, Event: e})
		}

		if !stays {
			return errLeft
		}
		return nil
	})
}

// take appends the answer to the conversation and returns its node. For an empty answer, except a refusal, it only
// counts the usage.
func (r *run) take(answer api.Response) (*node.Node, error) {
	r.meter.spend(ownRequest, answer.Model, answer.Usage)

	// Providers refuse an empty message, so an empty answer leaves none. A refusal is kept for its reason: the provider's
	// details. It is not sent.
	silent, thinks := true, false
	for _, b := range answer.Blocks.All() {
		t, isText := b.(content.Text)
		_, isThinking := b.(content.Thinking)
		silent, thinks = silent && isText && t.Text == "", thinks || isThinking
	}
	if silent && answer.Stop != content.StopRefusal {
		if !emit(r, MessageEnd{Turn: r.turn}) {
			return nil, errLeft
		}
		return nil, nil
	}

	var seen node.Seen
	if thinks {
		seen = r.seen()
	}
	err := r.append(r.d.Append(node.Message{Role: content.Assistant, Blocks: answer.Blocks, Answer: node.Answer{
		API: answer.API, Model: answer.Model, ResponseID: answer.ResponseID,
		Stop: answer.Stop, Usage: answer.Usage, Latency: answer.Latency, Retries: r.retries,
		Seen: seen, Details: answer.Details,
	}}))
	return r.d.Head(), err
}

// seen returns dag.DAG.Seen of the transcript that was sent for an answer with thinking.
func (r *run) seen() node.Seen {
	// After the model's own message, the request ended with content.GoOn, which is not in the conversation.
	t := r.transcript()
	return t.Seen(r.endsInGoOn || r.ownTurn(t.Messages))
}

// ownTurn reports whether the conversation ends with a message of the model that was not paused.
func (r *run) ownTurn(messages []content.Message) bool {
	// Skip messages that are never sent.
	last := len(messages) - 1
	for last >= 0 && neverSent(messages[last].Blocks) {
		last--
	}
	if last < 0 || messages[last].Role != content.Assistant {
		return false
	}

	message := lineage.LastMessage(r.d.Head())
	if message == nil {
		return true
	}
	m, _ := message.Message()
	return m.Answer.Stop != content.StopPause
}

// neverSent reports whether an answer was cut off before its first text or call. Nothing of it is ever sent.
func neverSent(blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		switch b := b.(type) {
		case content.CutToolUse:
		case content.Thinking:
			// Thinking that was cut off has no signature and no origin, and no API is sent it.
			if b != (content.Thinking{Text: b.Text}) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// asksToGoOn reports whether a repair appended a message of the user to a request.
func asksToGoOn(note api.RepairNote) bool { return note.Kind == "end" && note.Message > 0 }
