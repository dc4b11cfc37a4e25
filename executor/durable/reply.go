package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/riverqueue/river"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// target names the head of a run.
type target struct{ conversation, head string }

// Reply replies to pending calls of a paused run. The pending calls are in the conversation: dag.DAG.Pending lists them.
// Head defaults to "main". The replies are stored in one transaction, in the inbox of the head. The run continues as soon
// as all pending calls of one message have their reply.
//
// The first reply to a call counts. The same reply again changes nothing. Errors:
//
//   - those of executor.Agent.Resume about replies: executor.ErrUnknownCall, ErrConflict, ErrStale and ErrReply;
//   - ErrNotBusy if the head has no unfinished run.
func (e *Engine) Reply(ctx context.Context, conversation, head string, replies ...executor.Reply) error {
	if head == "" {
		head = store.Main
	}
	if err := e.ready(ctx); err != nil {
		return err
	}
	return e.replyTo(ctx, target{conversation, head}, func(d dag.DAG) (fresh []executor.Reply, err error) {
		for _, reply := range replies {
			is, err := fits(d, reply)
			if err != nil {
				return nil, err
			}
			if is { // otherwise the conversation has this result already
				fresh = append(fresh, reply)
			}
		}
		return fresh, nil
	})
}

// replyTo accepts the replies that choose returns for the conversation as it is.
func (e *Engine) replyTo(ctx context.Context, t target, choose func(dag.DAG) ([]executor.Reply, error)) error {
	var err error
	for range maxRaces {
		c, openErr := e.store.Head(ctx, t.conversation, t.head)
		if openErr != nil {
			return openErr
		}
		replies, chooseErr := choose(c.DAG())
		if chooseErr != nil || len(replies) == 0 {
			return chooseErr
		}
		err = e.db.Update(ctx, func(tx store.Tx) error {
			runs, err := e.lockedRun(ctx, tx, t)
			if err != nil {
				return err
			}
			if err := e.accept(ctx, tx, c.DAG(), t, runs, replies); err != nil {
				return err
			}

			// Look at the head last: if the run has taken another reply to the call meanwhile, the head has moved.
			now, err := tx.Head(ctx, t.conversation, t.head)
			if err == nil && now.Version != c.Version() {
				err = errRaced
			}
			return err
		})
		if !errors.Is(err, errRaced) {
			break
		}
	}
	return err
}

// Pending returns the pending calls of a waiting run that have no reply yet. A run in another state has none.
func (e *Engine) Pending(ctx context.Context, run string) ([]dag.Pending, error) {
	r, err := e.Run(ctx, run)
	if err != nil || r.State != Waiting {
		return nil, err
	}
	c, err := e.store.Head(ctx, r.Conversation, r.Head)
	if deleted(err) {
		return nil, nil // removed meanwhile
	}
	if err != nil {
		return nil, err
	}
	return e.unreplied(ctx, r.target(), c.DAG())
}

// unreplied returns the pending calls without a reply in the inbox.
func (e *Engine) unreplied(ctx context.Context, t target, d dag.DAG) ([]dag.Pending, error) {
	var replied map[string]bool
	err := e.db.View(ctx, func(tx store.Tx) (err error) {
		replied, err = repliedCalls(ctx, tx, t)
		return err
	})
	return slices.DeleteFunc(d.Pending(), func(p dag.Pending) bool { return replied[p.Key.String()] }), err
}

// fits reports whether the call of a reply is pending, or returns an error if the reply does not fit. For the same
// result as the call's own it reports false.
func fits(d dag.DAG, reply executor.Reply) (bool, error) {
	refuse := func(kind error, detail string) (bool, error) {
		return false, &executor.ResumeError{Kind: kind, Call: reply.Call, Err: errors.New(detail)}
	}
	for _, p := range d.Pending() {
		switch {
		case p.Key != reply.Call:
		case p.Approval && reply.IsResult():
			return refuse(executor.ErrReply, "the call waits for approval")
		case !p.Approval && !reply.IsResult():
			return refuse(executor.ErrReply, "the call waits for its result")
		case reply.Shown != (executor.Fingerprint{}) && reply.Shown != executor.Shown(p):
			return refuse(executor.ErrStale, "the call is not what was shown")
		default:
			if _, err := reply.MarshalJSON(); err == nil {
				return true, nil
			}
		}
	}

	// The call has its result already, or the reply is not valid.
	_, err := executor.Accept(d, reply)
	return false, err
}

// accept stores replies in the inbox, and continues the run if all calls of a message have theirs. d is the conversation
// with the pending calls, and runs is of lockedRun: the lock puts the replies to one run in order, and the last one
// continues it.
func (e *Engine) accept(
	ctx context.Context, tx store.Tx, d dag.DAG, t target, runs []Run, replies []executor.Reply,
) (err error) {
	if len(runs) == 0 {
		return &RunError{Run: t.conversation + "#" + t.head, Err: ErrNotBusy}
	}
	var replied map[string]bool
	for _, reply := range replies {
		if replied, err = e.insertReply(ctx, tx, t, reply); err != nil {
			return err
		}
	}
	if runs[0].State != Waiting {
		return nil // the run looks at its inbox before it waits
	}
	return e.wake(ctx, tx, d, replied, runs[0])
}

// wake continues a waiting run if a message has all of its replies. replied has the keys of the calls with a reply in the
// inbox.
func (e *Engine) wake(ctx context.Context, tx store.Tx, d dag.DAG, replied map[string]bool, r Run) error {
	if len(complete(d, replied)) == 0 {
		return nil
	}
	return e.wakeAll(ctx, tx, []Run{r})
}

// wakeAll continues waiting runs.
func (e *Engine) wakeAll(ctx context.Context, tx store.Tx, runs []Run) error {
	if len(runs) == 0 {
		return nil
	}
	var jobs []river.InsertManyParams
	for _, r := range runs {
		next := jobOf(r)
		next.Resumed = true
		jobs = append(jobs, e.runParams(next, 0))
	}
	ids, err := e.queue.insert(ctx, tx, jobs)
	if err != nil {
		return err
	}
	for i, r := range runs {
		if err := e.activate(ctx, tx, r, ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// complete returns the messages of which all pending calls are among keys.
func complete(d dag.DAG, keys map[string]bool) map[node.ID]bool {
	messages := map[node.ID]bool{}
	for _, p := range d.Pending() {
		whole, seen := messages[p.Key.Message]
		messages[p.Key.Message] = (whole || !seen) && keys[p.Key.String()]
	}
	for message, whole := range messages {
		if !whole {
			delete(messages, message)
		}
	}
	return messages
}

// insertReply stores a reply in the inbox, and returns the keys of all calls with a reply there. The same reply again
// changes nothing.
func (e *Engine) insertReply(ctx context.Context, tx store.Tx, t target, reply executor.Reply) (replied map[string]bool, err error) {
	payload, err := reply.MarshalJSON()
	if err != nil {
		return nil, err
	}

	// The query of RETURNING may or may not see the new row.
	err = query(ctx, tx, insertRow+` ON CONFLICT DO NOTHING
		RETURNING COALESCE((SELECT STRING_AGG(i.call, ',') FROM plait_inbox i
			WHERE i.conv = plait_inbox.conv AND i.head = plait_inbox.head AND i.call <> ''), '')`,
		insertArgs(e.row(t, reply.Call.String(), payload)), func(rows store.Rows) error {
			var others string
			err := rows.Scan(&others)
			replied = map[string]bool{reply.Call.String(): true}
			for _, call := range strings.Split(others, ",") {
				replied[call] = true
			}
			return err
		})
	if err != nil || replied != nil {
		return replied, err
	}

	rows, err := queryInbox(ctx, tx, t.conversation, t.head, ` AND call = '`+reply.Call.String()+`'`)
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, fmt.Errorf("durable: %q: %w", t.conversation, store.ErrNotStored)
	case !bytes.Equal(rows[0].Payload, payload):
		return nil, &executor.ResumeError{Kind: executor.ErrConflict, Call: reply.Call}
	}
	return repliedCalls(ctx, tx, t)
}

// repliedCall names a call with a reply.
type repliedCall struct {
	target
	call string
}

// insertReplies stores replies to calls of several runs, and returns those that were not there before, each with the keys
// of all calls of its run with a reply.
func (e *Engine) insertReplies(
	ctx context.Context, tx store.Tx, rows []sqlstore.InboxRow,
) (map[repliedCall]map[string]bool, error) {
	var list [][]any
	for _, r := range rows {
		list = append(list, insertArgs(r))
	}
	table, args := listed(list, "TEXT", "TEXT", "BYTEA", "BYTEA", "BIGINT", "TEXT")

	stored := map[repliedCall]map[string]bool{}
	err := query(ctx, tx, `INSERT INTO plait_inbox (conv, head, call, payload, sum, taken, arrived)
		SELECT c.num, g.head, g.call, g.payload, g.sum, 0, g.arrived
		FROM `+table+` AS g (head, call, payload, sum, arrived, name),
			LATERAL (SELECT num FROM plait_conversations WHERE name = g.name OFFSET 0) AS c
		ON CONFLICT DO NOTHING
		RETURNING (SELECT name FROM plait_conversations WHERE num = conv), head, call,
			COALESCE((SELECT STRING_AGG(i.call, ',') FROM plait_inbox i
				WHERE i.conv = plait_inbox.conv AND i.head = plait_inbox.head AND i.call <> ''), '')`,
		args, func(rows store.Rows) error {
			var r repliedCall
			var others string
			err := rows.Scan(&r.conversation, &r.head, &r.call, &others)
			stored[r] = map[string]bool{}
			for _, call := range strings.Split(others, ",") {
				stored[r][call] = true
			}
			return err
		})
	return stored, err
}

// repliedCalls returns the keys of the calls with a reply in the inbox.
func repliedCalls(ctx context.Context, tx store.Tx, t target) (map[string]bool, error) {
	keys := map[string]bool{}
	err := query(ctx, tx, `SELECT call FROM plait_inbox WHERE conv = (SELECT num FROM plait_conversations WHERE name = $1)
		AND head = $2 AND call <> ''`, []any{t.conversation, t.head}, func(rows store.Rows) error {
		var call string
		err := rows.Scan(&call)
		keys[call] = true
		return err
	})
	return keys, err
}

// replies returns the replies of the inbox with which the run can be resumed: those to messages with all of theirs. used
// also has those whose call is not pending.
func (i *inbox) replies(d dag.DAG) (replies []executor.Reply, used []usedReply, err error) {
	keys := map[string]bool{}
	for _, m := range i.replied {
		keys[m.Call] = true
	}
	pending := map[string]waiting{}
	for _, p := range d.Pending() {
		pending[p.Key.String()] = waitingOf(p)
	}

	whole := complete(d, keys)
	for _, m := range i.replied {
		var reply executor.Reply
		if err := reply.UnmarshalJSON(m.Payload); err != nil {
			return nil, nil, &executor.ResumeError{Kind: executor.ErrReply, Err: fmt.Errorf("the reply to call %s: %w", m.Call, err)}
		}
		call, is := pending[m.Call]
		if is && !whole[reply.Call.Message] {
			continue // others of the message are missing
		}
		if is {
			replies = append(replies, reply)
		}
		used = append(used, usedReply{m.num, call})
	}
	return replies, used, nil
}

// pauseJobs inserts the jobs of the calls that wait since this pause: one for each deferred call, and one for each
// deadline. before has the keys of the calls that waited before.
func (e *Engine) pauseJobs(ctx context.Context, tx store.Tx, r runJob, d dag.DAG, before map[waiting]bool) error {
	var jobs []river.InsertManyParams
	for _, p := range d.Pending() {
		if before[waitingOf(p)] {
			continue
		}
		opts := e.Call(r.Agent, p)
		if opts.Queue == "" {
			opts.Queue = CallQueue
		}

		args := callJob{r.Run, r.Conversation, r.Head, p.Key.String()}
		if !p.Approval && !opts.External {
			jobs = append(jobs, river.InsertManyParams{
				Args: args, InsertOpts: &river.InsertOpts{
					Queue: opts.Queue, Priority: e.Priority(r.Agent), MaxAttempts: e.Attempts,
				},
			})
		}
		if opts.Deadline > 0 {
			jobs = append(jobs, river.InsertManyParams{Args: deadlineJob(args), InsertOpts: &river.InsertOpts{
				Queue: e.RunQueue(r.Agent), MaxAttempts: e.Attempts, ScheduledAt: e.time.Now().Add(opts.Deadline),
			}})
		}
	}

	if len(jobs) == 0 {
		return nil
	}
	_, err := e.queue.insert(ctx, tx, jobs)
	return err
}

// waiting is a pending call, and what it waits for.
type waiting struct {
	call     node.CallKey
	approval bool
}

func waitingOf(p dag.Pending) waiting { return waiting{p.Key, p.Approval} }

// waitingIn returns the pending calls of a conversation.
func waitingIn(d dag.DAG) map[waiting]bool {
	list := map[waiting]bool{}
	for _, p := range d.Pending() {
		list[waitingOf(p)] = true
	}
	return list
}
