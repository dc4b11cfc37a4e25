package executor

import (
	"errors"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

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
