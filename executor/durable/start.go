package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// StartRequest describes a run to start.
type StartRequest struct {
	// Run is the run's ID. A second Start with the same ID and the same text does nothing, so a Start can be repeated if
	// the reply was lost. Defaults to a new ID.
	Run string
	// Agent is the name of the agent: a key of [Options.Agents] in some process.
	Agent string
	// Conversation is the key of the conversation to continue, and Head its head. Head defaults to "main". At "main", a
	// missing conversation is created; any other head must exist.
	Conversation, Head string
	// Text is the message of the user; "" for none.
	Text string
	// Add appends nodes before the run begins, and before Text if both are set. It may be called more than once.
	// Defaults to nothing.
	Add func(d dag.DAG) dag.DAG
	// At is when the run begins. Its message is in the conversation at once. Defaults to now.
	At time.Time

	onlyNew bool // start nothing if Add appends nothing
}

// Start stores a run, and returns its ID. It does not wait for the run: a process with the agent executes it (see
// [Engine.Serve]). The nodes, the run and its job are stored in one transaction. Errors:
//
//   - ErrBusy if the head has an unfinished run;
//   - ErrRunExists if the ID belongs to a run of another conversation, head or agent, or with another text;
//   - the errors of store.Store.Conversation.
func (e *Engine) Start(ctx context.Context, s StartRequest) (run string, err error) {
	if s.Run == "" {
		s.Run = uuid.Must(uuid.NewV7()).String()
	}
	if s.Head == "" {
		s.Head = store.Main
	}
	for _, name := range []string{s.Run, s.Agent, s.Conversation, s.Head} {
		if err := store.CheckName(name); err != nil {
			return "", err
		}
	}

	if err := e.ready(ctx); err != nil {
		return "", err
	}
	for range maxRaces {
		if err = e.start(ctx, s); !errors.Is(err, errRaced) {
			break
		}
	}
	if errors.Is(err, ErrRunExists) {
		err = e.compare(ctx, s)
	}
	if _, known := e.Agents[s.Agent]; err == nil && !known && len(e.Agents) > 0 {
		e.Log.WarnContext(ctx, "durable: a run was started for an agent that this process has not", "run", s.Run, "agent", s.Agent)
	}
	return s.Run, err
}

// maxRaces is how often an operation is tried if another writer moves the head meanwhile.
const maxRaces = 10

// errRaced ends a transaction if another writer has moved the head. It hides the *store.ConflictError: the nodes are not
// kept under a head of their own, but made again.
var errRaced = errors.New("durable: another writer moves the head all the time")

// errNothingNew ends a Start that would append nothing.
var errNothingNew = errors.New("durable: there is nothing new")

func (e *Engine) start(ctx context.Context, s StartRequest) error {
	c, err := e.open(ctx, s.Conversation, s.Head)
	if err != nil {
		return err
	}
	d, rows, err := e.settle(ctx, target{s.Conversation, s.Head}, c.DAG().WithSource(e.Source))
	if err != nil {
		return err
	}
	var added []sent
	if s.Add != nil {
		before := d
		if d = s.Add(d); s.onlyNew && slices.Equal(d.Heads(), before.Heads()) {
			return errNothingNew
		}
		added = messagesAfter(before, d)
	}
	if s.Text != "" {
		d = d.User(s.Text)
	}

	// The message, for a later comparison.
	var first node.ID
	if head := d.Head(); head != nil && s.Text != "" {
		first = head.ID()
	}

	return c.AppendWith(ctx, d, func(ctx context.Context, a store.AppendRequest) (h store.Head, err error) {
		err = e.db.Update(ctx, func(tx store.Tx) error {
			if err := e.vacant(ctx, tx, s); err != nil {
				return err
			}
			// A message that the last run did not read comes into the conversation here.
			sent, err := named(ctx, tx, target{s.Conversation, s.Head}, added)
			if err != nil {
				return err
			}
			a.Taken = slices.AppendSeq(slices.Clone(rows), maps.Values(sent))
			if h, err = tx.Append(ctx, a); err != nil {
				return raced(err)
			}
			return e.enqueue(ctx, tx, s, first)
		})
		return h, err
	})
}

// raced returns errRaced for a conflict.
func raced(err error) error {
	if errors.Is(err, store.ErrMoved) {
		return errRaced
	}
	return err
}

// vacant returns an error if the ID is used or the head has an unfinished run.
func (e *Engine) vacant(ctx context.Context, tx store.Tx, s StartRequest) error {
	others, err := queryRuns(ctx, tx, `id = $1 OR (conversation = $2 AND head = $3 AND busy = 1)`,
		s.Run, s.Conversation, s.Head)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(others, func(r Run) bool { return r.ID == s.Run }):
		return &RunError{Run: s.Run, Err: ErrRunExists}
	case len(others) > 0:
		return &RunError{Run: others[0].ID, Err: ErrBusy}
	}
	return nil
}

// enqueue inserts the row of a run and its job.
func (e *Engine) enqueue(ctx context.Context, tx store.Tx, s StartRequest, first node.ID) error {
	job := runJob{Run: s.Run, Conversation: s.Conversation, Head: s.Head, Agent: s.Agent, Message: first}
	id, err := e.insertRun(ctx, tx, job, time.Until(s.At)) // long ago if At is not set
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, `INSERT INTO plait_index
		(id, conversation, head, agent, state, reason, busy, job, start, began, changed)
		VALUES ($1, $2, $3, $4, $5, '', 1, $6, $7, `+tx.Now()+`, `+tx.Now()+`) ON CONFLICT DO NOTHING`,
		s.Run, s.Conversation, s.Head, s.Agent, string(Active), id, first[:])
	if err == nil && n == 0 {
		err = errRaced // another Start was first: look again
	}
	return err
}

// open opens a conversation at a head. At "main" it may be missing.
func (e *Engine) open(ctx context.Context, conversation, head string) (*store.Conversation, error) {
	if head == store.Main {
		return e.store.Conversation(ctx, conversation)
	}
	return e.store.Head(ctx, conversation, head)
}

// compare returns nil if a stored run is the requested one.
func (e *Engine) compare(ctx context.Context, s StartRequest) error {
	r, err := e.Run(ctx, s.Run)
	if err != nil {
		return err
	}
	other := func(format string, args ...any) error {
		return &RunError{Run: s.Run, Err: ErrRunExists, Detail: fmt.Sprintf(format, args...)}
	}
	if r.Conversation != s.Conversation || r.Head != s.Head || r.Agent != s.Agent {
		return other("it is a run of %s at head %s of %s", r.Agent, r.Head, r.Conversation)
	}

	// The text is compared with the message in the conversation: nothing else keeps a copy of it.
	text := ""
	if r.start != (node.ID{}) {
		c, err := e.open(ctx, r.Conversation, r.Head)
		if err != nil {
			return err
		}
		n := c.DAG().Node(r.start)
		if n == nil {
			return other("its message is no longer at the head")
		}
		if m, ok := n.Message(); ok {
			text = m.Blocks.Text()
		}
	}
	if text != s.Text {
		return other("its message is another one")
	}
	return nil
}

// Cancel ends a run in any process. A running tool's context ends within about a second. Nothing more is added to the
// conversation, and later results are refused. To cancel a run again is no error. The error holds ErrRunEnded if it has
// ended otherwise.
//
// A call that was under way stays open and started in the conversation: the next run does not execute it again unless
// its effect or a hook allows it.
func (e *Engine) Cancel(ctx context.Context, run, reason string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	r, err := e.Run(ctx, run)
	if err != nil {
		return err
	}
	for range maxRaces {
		if err = e.cancel(ctx, r, reason); !errors.Is(err, errRaced) {
			break
		}
	}
	if err == nil {
		e.ends.bells.Ring(run)
	}
	return err
}

// cancel cancels a run. Results that have arrived before are kept: their calls were executed.
func (e *Engine) cancel(ctx context.Context, r Run, reason string) error {
	cancel := func(tx store.Tx, settle func(store.Tx) error) error {
		// The jobs first: all transactions lock them before the row of the run, except for a pending one.
		if err := e.cancelJobs(ctx, tx, r.ID, working); err != nil {
			return err
		}
		now, err := runOf(ctx, tx, r.ID, e.queue.dialect().lock)
		if err != nil || now.State == Cancelled {
			return err
		}
		if now.State.Ended() {
			return &RunError{Run: r.ID, Err: ErrRunEnded, Detail: string(now.State)}
		}
		if err := settle(tx); err != nil {
			return err
		}

		// A pause may have inserted jobs while this transaction waited for it.
		if err := e.cancelJobs(ctx, tx, r.ID, working+`, 'pending'`); err != nil {
			return err
		}
		_, err = setState(ctx, tx, r.ID, Cancelled, reason, 0)
		return err
	}

	c, d, rows, err := e.settled(ctx, r.target())
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return e.db.Update(ctx, func(tx store.Tx) error { return cancel(tx, func(store.Tx) error { return nil }) })
	}
	return c.AppendWith(ctx, d, func(ctx context.Context, a store.AppendRequest) (h store.Head, err error) {
		a.Taken = rows
		err = e.db.Update(ctx, func(tx store.Tx) error {
			return cancel(tx, func(tx store.Tx) (err error) {
				h, err = tx.Append(ctx, a)
				return raced(err)
			})
		})
		return h, err
	})
}

// settled returns the conversation of a head with the results that are in its inbox, and their rows.
func (e *Engine) settled(ctx context.Context, t target) (*store.Conversation, dag.DAG, []int64, error) {
	c, err := e.store.Head(ctx, t.conversation, t.head)
	if deleted(err) {
		return nil, dag.DAG{}, nil, nil
	}
	if err != nil {
		return nil, dag.DAG{}, nil, err
	}
	d, rows, err := e.settle(ctx, t, c.DAG().WithSource(e.Source))
	return c, d, rows, err
}

// settle appends the results in the inbox of a head to its conversation, and returns their rows.
func (e *Engine) settle(ctx context.Context, t target, d dag.DAG) (dag.DAG, []int64, error) {
	if len(d.Pending()) == 0 {
		return d, nil, nil
	}
	var list []message
	err := e.db.View(ctx, func(tx store.Tx) (err error) {
		list, err = queryInbox(ctx, tx, t.conversation, t.head, ` AND call <> ''`)
		return err
	})

	var rows []int64
	for _, m := range list {
		var reply executor.Reply
		if reply.UnmarshalJSON(m.Payload) != nil || !reply.IsResult() {
			continue
		}
		if after, err := executor.Accept(d, reply); err == nil {
			d, rows = after, append(rows, m.num)
		}
	}
	return d, rows, err
}

// Requeue continues a parked run. The error holds ErrRunEnded or ErrBusy for any other run.
func (e *Engine) Requeue(ctx context.Context, run string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	return e.db.Update(ctx, func(tx store.Tx) error {
		r, err := runOf(ctx, tx, run, e.queue.dialect().lock)
		switch {
		case err != nil:
			return err
		case r.State.Ended():
			return &RunError{Run: run, Err: ErrRunEnded, Detail: string(r.State)}
		case r.State != Parked:
			return &RunError{Run: run, Err: ErrBusy, Detail: string(r.State)}
		}

		job, err := e.insertRun(ctx, tx, jobOf(r), 0)
		if err != nil {
			return err
		}
		return e.activate(ctx, tx, r, job)
	})
}
