package durable

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// Front is the runs of one agent for a front end: agui.Durable takes it. Each thread of the front end is the head "main"
// of a conversation. Make one with [Engine.Front].
type Front struct {
	engine *Engine
	agent  string
}

// Front returns the runs of an agent for a front end. The engine may be without agents: any process with an agent of
// that name executes the runs.
func (e *Engine) Front(agent string) *Front { return &Front{e, agent} }

// Store returns the conversations.
func (f *Front) Store() *store.Store { return f.engine.Store() }

// Start appends nodes to a conversation and starts a run, as [Engine.Start] does. It reports false, and changes nothing,
// if the conversation has an unfinished run, or if add appends nothing: another request was first.
func (f *Front) Start(ctx context.Context, conversation string, add func(dag.DAG) dag.DAG) (started bool, err error) {
	_, err = f.engine.Start(ctx, StartRequest{Agent: f.agent, Conversation: conversation, Add: add, onlyNew: true})
	if errors.Is(err, ErrBusy) || errors.Is(err, errNothingNew) {
		return false, nil
	}
	return err == nil, err
}

// Send gives the messages that add appends to the unfinished run of a conversation, as [Engine.Send] does, without those
// that wait for it already: those with the same metadata. It reports false if there is no such run.
func (f *Front) Send(ctx context.Context, conversation string, add func(dag.DAG) dag.DAG) (sent bool, err error) {
	t := target{conversation, store.Main}
	for range maxRaces {
		c, err := f.engine.store.Head(ctx, conversation, store.Main)
		if err != nil {
			return false, err
		}
		list := messagesAfter(c.DAG(), add(c.DAG()))
		err = f.engine.db.Update(ctx, func(tx store.Tx) error {
			if _, err := f.engine.send(ctx, tx, t, list); err != nil {
				return err
			}

			// Look at the head last: the run may have taken one of the messages meanwhile.
			now, err := tx.Head(ctx, t.conversation, t.head)
			if err == nil && now.Version != c.Version() {
				err = errRaced
			}
			return err
		})
		if !errors.Is(err, errRaced) {
			if errors.Is(err, ErrNotBusy) {
				return false, nil
			}
			return err == nil, err
		}
	}
	return false, errRaced
}

// Reply replies to pending calls, as [Engine.Reply] does.
func (f *Front) Reply(ctx context.Context, conversation string, replies ...executor.Reply) error {
	return f.engine.Reply(ctx, conversation, store.Main, replies...)
}

// Cancel cancels the unfinished run of a conversation, if there is one.
func (f *Front) Cancel(ctx context.Context, conversation, reason string) error {
	r, err := f.last(ctx, conversation)
	if err != nil || r.ID == "" || r.State.Ended() {
		return err
	}
	err = f.engine.Cancel(ctx, r.ID, reason)
	if errors.Is(err, ErrRunEnded) {
		err = nil // meanwhile
	}
	return err
}

// Follow follows the last run of a conversation, as [Engine.Follow] does. Without a run, or if it was cancelled before,
// it yields an End only.
func (f *Front) Follow(ctx context.Context, conversation string) iter.Seq2[executor.Event, error] {
	return func(yield func(executor.Event, error) bool) {
		r, err := f.last(ctx, conversation)
		if err != nil || r.ID == "" || r.State == Cancelled {
			yield(executor.End{}, err)
			return
		}
		for e, err := range f.engine.Follow(ctx, r.ID) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// last returns the last run of a conversation at "main"; zero if there is none.
func (f *Front) last(ctx context.Context, conversation string) (r Run, err error) {
	if err := f.engine.ready(ctx); err != nil {
		return Run{}, err
	}
	err = f.engine.db.View(ctx, func(tx store.Tx) error {
		list, err := queryRuns(ctx, tx, `conversation = $1 AND head = $2 ORDER BY num DESC LIMIT 1`, conversation, store.Main)
		r = slices.Concat(list, []Run{{}})[0]
		return err
	})
	return r, err
}
