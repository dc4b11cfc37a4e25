package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/internal/unwrap"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Worker is a group of tools for deferred calls, with a queue of its own.
type Worker struct {
	// Queue is the queue of the group. Defaults to [CallQueue].
	Queue string
	// Tools are the tools of the group.
	Tools []executor.Tool
	// Concurrency is the maximum number of calls at the same time. Defaults to 16.
	Concurrency int
	// Timeout is how long a call may take; executor.WithTimeout sets it for one tool. Negative is no limit. Defaults to
	// 30 seconds.
	Timeout time.Duration
}

// CallOptions are options of a call that waits for somebody outside its run.
type CallOptions struct {
	// Queue is the queue of the group of workers that execute the call. Defaults to [CallQueue].
	Queue string
	// External reports that no worker executes the call: [Engine.Reply] brings its result. A call that waits for
	// approval is external too.
	External bool
	// Deadline is how long the call may wait. Then it gets the reply of Options.AtDeadline. Defaults to no limit.
	Deadline time.Duration
}

// maxResult is the maximum size of a saved result, in bytes. The model reads an error in place of a larger one.
const maxResult = 8 << 20

// callWorker works the jobs of calls.
type callWorker struct {
	river.WorkerDefaults[callJob]
	process *process
}

// NextRetry implements river.Worker.
func (w *callWorker) NextRetry(job *river.Job[callJob]) time.Time {
	return w.process.time.Now().Add(retryAfter(job.Attempt))
}

// Work implements river.Worker.
func (w *callWorker) Work(ctx context.Context, job *river.Job[callJob]) error {
	return w.process.do(ctx, job.JobRow, func(ctx context.Context) error {
		c := &calling{
			process: w.process, claim: claim{job.ID, job.Attempt, job.MaxAttempts}, args: job.Args, ctx: ctx,
			queue: job.Queue, priority: job.Priority,
		}
		if err := json.Unmarshal(job.Metadata, &c.noted); err != nil {
			return err
		}
		return c.work()
	})
}

// noted is what the metadata of a job says.
type noted struct {
	// Losses is the number of processes lost with the job, and for a run since its head had Version.
	Losses  int    `json:"plait_losses,omitempty"`
	Version uint64 `json:"plait_version,omitempty"`
	// Parked is the reason of a parked run.
	Parked string `json:"plait_parked,omitempty"`
	// Begun reports that the call of a sub-agent was begun. The calls of the conversation itself are marked in it.
	Begun bool `json:"plait_begun,omitempty"`
}

// calling is a deferred call that this process executes.
type calling struct {
	*process
	claim
	noted
	args     callJob
	ctx      context.Context // ends if the job is lost, or the process ends
	queue    string
	priority int

	conversation *store.Conversation
	shown        dag.Pending
	found        bool  // the call still waits for its result
	begins       bool  // the start of the call is recorded before its tool is called
	failure      error // of prepare
}

// errUnprepared: prepare has panicked for another call of the group.
var errUnprepared = errors.New("durable: the call was not read")

// work executes the call and delivers its result.
func (c *calling) work() error {
	c.failure = errUnprepared
	c.process.calls.do(c.args.target(), c)
	switch err := c.failure; {
	case deleted(err), errors.Is(err, executor.ErrUnknownCall):
		return nil // it has its result now
	case errors.Is(err, errLost), err != nil && context.Cause(c.ctx) != nil:
		return notMine // the process with the job next reports to the model that a call that was begun is in doubt
	case errors.Is(err, executor.ErrConflict):
		return river.JobSnooze(0) // another job of the same call was first: look again
	case err != nil && c.found:
		return err
	case err != nil:
		return river.JobSnooze(time.Second) // the database failed
	case !c.found:
		return nil // the call has its result, or was given up
	}
	tool, agent, known := c.tool()
	if !known {
		c.Log.WarnContext(c.ctx, "durable: a call is left to another process: this one does not have its tool",
			"tool", c.shown.Call.Name, "queue", c.queue)
		return river.JobSnooze(5 * time.Second)
	}

	// A call that was begun is executed again only if its effect allows it.
	repeatable := effectOf(tool) != executor.EffectUnknown
	switch {
	case c.wasBegun() && !c.begins && !repeatable:
		return c.deliver(executor.FailedFor(c.shown.Key, content.OutcomeUnknown))
	case c.Losses > c.process.Losses:
		return c.deliver(executor.FailedFor(c.shown.Key, textLosses(c.Losses)))
	}

	// The last moment to give up without an effect.
	if err := c.untilAlive(c.ctx); err != nil {
		return notMine
	}
	return c.execute(agent, repeatable)
}

// wasBegun reports whether the call was begun before.
func (c *calling) wasBegun() bool { return c.Begun || !c.shown.Started.IsZero() }

// prepare reads the calls of a group from their conversation, and records the start of those that need it.
func (p *process) prepare(_ target, group []*calling) {
	var begin []*calling
	for i, c := range group {
		if i > 0 && group[0].failure == nil {
			c.conversation = group[0].conversation
			c.found, c.failure = c.look()
		} else {
			c.found, c.failure = c.find()
		}
		if c.failure == nil && c.found && c.needsBegin() {
			begin = append(begin, c)
		}
	}

	if len(begin) > 1 && p.beginAll(begin) {
		return
	}
	for _, c := range begin {
		c.failure = c.begin()
	}
}

// needsBegin reports whether the start of a call is recorded: its tool must not be called again after that.
func (c *calling) needsBegin() bool {
	tool, _, known := c.tool()
	c.begins = known && !c.wasBegun() && effectOf(tool) == executor.EffectUnknown && c.Losses <= c.process.Losses
	return c.begins
}

// beginAll records that calls of one conversation are begun, in one append. It reports false, and has recorded nothing
// for sure, if that is not possible for all of them.
func (p *process) beginAll(group []*calling) bool {
	if !p.queue.dialect().writesInWith {
		return false
	}
	d := group[0].conversation.DAG().WithSource(p.Source)
	var claims [][]any
	for _, c := range group {
		var err error
		if len(c.shown.Path) == 0 {
			d, err = executor.Begin(d, c.shown.Key)
		}
		if err != nil || len(c.shown.Path) > 0 {
			return false
		}
		claims = append(claims, []any{c.claim.id, int64(c.claim.attempt)})
	}

	c := group[0]
	err := c.retry(c.ctx, func(ctx context.Context) error {
		return c.conversation.AppendWith(ctx, d, func(ctx context.Context, a store.AppendRequest) (store.Head, error) {
			h, err := p.appendIfAllHeld(ctx, a, claims)
			return h, raced(err)
		})
	})
	if errors.Is(err, errRaced) {
		// The reply to an earlier try may have been lost, and another call has moved the head since.
		_, err = c.find()
		return err == nil && c.conversation.DAG().Contains(executionOf(d, c.shown.Key))
	}
	return err == nil
}

// deleted reports whether an error means that there is no such head. A missing record is damage.
func deleted(err error) bool {
	return errors.Is(err, store.ErrNotStored) && !errors.Is(err, store.ErrRecord)
}

// find reads the call from the conversation, and reports whether it still waits for its result.
func (c *calling) find() (bool, error) {
	var err error
	if c.conversation == nil {
		c.conversation, err = c.store.Head(c.ctx, c.args.Conversation, c.args.Head)
	} else {
		c.conversation, err = c.conversation.Head(c.ctx, c.args.Head)
	}
	if err != nil {
		return false, err
	}
	return c.look()
}

// look is find in the conversation as it was read.
func (c *calling) look() (bool, error) {
	key, err := node.ParseCallKey(c.args.Call)
	if err != nil {
		return false, err
	}
	for _, p := range c.conversation.DAG().Pending() {
		if p.Key == key && p.Deferred && !p.Approval {
			c.shown = p
			return c.waits()
		}
	}
	return false, nil
}

// waits reports whether the call, which is pending, has no result in the inbox. A process may be lost between the result
// and the end of its job, so only a job in place of a lost one has to look.
func (c *calling) waits() (bool, error) {
	if c.Losses == 0 {
		return true, nil
	}
	var replied map[string]bool
	err := c.db.View(c.ctx, func(tx store.Tx) (err error) {
		replied, err = repliedCalls(c.ctx, tx, c.args.target())
		return err
	})
	return !replied[c.args.Call], err
}

// tool returns the tool of the call, with an agent to execute it.
func (c *calling) tool() (executor.Tool, executor.Agent, bool) {
	for _, w := range c.Workers {
		if w.Queue != c.queue {
			continue
		}
		for _, t := range w.Tools {
			if t.Definition().Name == c.shown.Call.Name {
				return t, executor.Agent{ToolTimeout: w.Timeout, Log: c.Log}, true
			}
		}
	}
	return nil, executor.Agent{}, false
}

// begin records that the call is begun, before its tool is called.
func (c *calling) begin() error {
	// The mark of a sub-agent's call is in the job: the conversation of the sub-agent is inside its parent's.
	if len(c.shown.Path) > 0 {
		return c.retry(c.ctx, func(ctx context.Context) error {
			return c.db.Update(ctx, func(tx store.Tx) error {
				if err := c.check(ctx, tx, c.claim); err != nil {
					return err
				}
				return c.note(ctx, tx, c.claim.id, noted{Begun: true})
			})
		})
	}

	// Other calls of the same message move the head too.
	for {
		d, err := executor.Begin(c.conversation.DAG().WithSource(c.Source), c.shown.Key)
		if err != nil {
			return err
		}
		err = c.retry(c.ctx, func(ctx context.Context) error {
			return c.conversation.AppendWith(ctx, d, func(ctx context.Context, a store.AppendRequest) (store.Head, error) {
				h, err := c.appendIfHeld(ctx, a, c.claim)
				return h, raced(err)
			})
		})
		if !errors.Is(err, errRaced) {
			return err
		}
		found, err := c.find()
		if err != nil {
			return err
		}
		if !found {
			return executor.ErrUnknownCall
		}

		// The reply to an earlier try may have been lost, and another call has moved the head since.
		if start := executionOf(d, c.shown.Key); c.conversation.DAG().Contains(start) {
			return nil
		}
	}
}

// executionOf returns the execution of a call at the heads, or nil.
func executionOf(d dag.DAG, call node.CallKey) *node.Node {
	for _, h := range d.Heads() {
		if key, is := h.Call(); is && key == call {
			return h
		}
	}
	return nil
}

// execute calls the tool and delivers the result.
func (c *calling) execute(agent executor.Agent, repeatable bool) error {
	tool, _, _ := c.tool()
	caught := &catching{Tool: tool}
	agent.Tools = []dag.Tool{caught}
	reply, err := agent.Work(c.ctx, c.shown)

	var later *retryError
	returned, failure := caught.returned()
	cause := context.Cause(c.ctx)
	switch {
	case returned:
		// The tool has returned. Its result is offered even if the job was given to another process: the state of the
		// call decides.
	case errors.Is(cause, errLost), errors.Is(cause, errLapsed):
		return notMine
	case cause != nil && repeatable:
		return c.again(0)
	case cause != nil:
		reply = executor.FailedFor(c.shown.Key, content.OutcomeUnknown)
	case errors.As(failure, &later) && repeatable && c.attempt < c.attempts:
		return c.again(later.after)
	case err != nil && failure == nil:
		c.Log.WarnContext(c.ctx, "durable: a call was not executed", "tool", c.shown.Call.Name, "error", err)
	}
	return c.deliver(reply)
}

// effectOf returns the effect of a tool, also of one that wraps another.
func effectOf(t executor.Tool) executor.Effect {
	if own, ok := unwrap.As[interface{ Effect() executor.Effect }, executor.Tool](t); ok {
		return own.Effect()
	}
	return executor.EffectUnknown
}

// catching is a tool that notes how it returned.
type catching struct {
	executor.Tool
	mu  sync.Mutex // the tool may return after it was given up
	err error
	ok  bool
}

// Unwrap returns the tool.
func (t *catching) Unwrap() executor.Tool { return t.Tool }

// Call implements executor.Tool.
func (t *catching) Call(ctx context.Context, call executor.Call) (executor.Result, error) {
	result, err := t.Tool.Call(ctx, call)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ok, t.err = err == nil, err
	return result, err
}

// returned reports whether the tool has returned a result, and otherwise its error.
func (t *catching) returned() (ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ok, t.err
}

// again finishes the job and inserts another one for the call.
func (c *calling) again(wait time.Duration) error {
	err := c.retry(c.ctx, func(ctx context.Context) error {
		return c.db.Update(ctx, func(tx store.Tx) error {
			if err := c.finish(ctx, tx, c.claim, Active); err != nil {
				return err
			}
			opts := &river.InsertOpts{Queue: c.queue, Priority: c.priority, MaxAttempts: c.attempts}
			if wait > 0 {
				opts.ScheduledAt = c.time.Now().Add(wait)
			}
			_, err := c.process.queue.insert(ctx, tx, []river.InsertManyParams{{Args: c.args, InsertOpts: opts}})
			return err
		})
	})
	if errors.Is(err, errLost) {
		return notMine
	}
	return err
}

// deliver delivers the result of the call, and finishes the job.
func (c *calling) deliver(reply executor.Reply) error {
	if payload, err := reply.MarshalJSON(); err != nil {
		reply = executor.FailedFor(c.shown.Key, "The call failed: "+err.Error())
	} else if len(payload) > maxResult {
		text := fmt.Sprintf("The call failed: its result has %d bytes, and the limit is %d", len(payload), maxResult)
		reply = executor.FailedFor(c.shown.Key, text)
	}

	// The result is offered until the state of the run accepts or refuses it, also after the end of the context. River
	// finishes the job: what it does when it comes again is nothing.
	own := &delivery{calling: c, reply: reply}
	err := c.retry(context.WithoutCancel(c.ctx), func(ctx context.Context) error {
		if c.process.queue.dialect().writesInWith {
			if c.process.results.do(struct{}{}, own); own.accepted {
				return nil
			}
		}
		return c.db.Update(ctx, func(tx store.Tx) error {
			runs, err := c.lockedRun(ctx, tx, c.args.target())
			if err != nil {
				return err
			}
			return c.accept(ctx, tx, c.conversation.DAG(), c.args.target(), runs, []executor.Reply{reply})
		})
	})
	if err != nil {
		c.Log.WarnContext(c.ctx, "durable: a result was not accepted", "call", c.args.Call, "error", err)
	}
	return nil
}

// delivery is the result of a call on its way to the inbox.
type delivery struct {
	*calling
	reply    executor.Reply
	accepted bool // with those of others
}

// acceptAll accepts the results of several calls in one transaction. All or none: if one is not a usual one, or its run is
// locked, each has a transaction of its own.
func (p *process) acceptAll(_ struct{}, group []*delivery) {
	if len(group) == 1 {
		return
	}
	ctx := context.WithoutCancel(group[0].ctx)
	err := p.db.Update(ctx, func(tx store.Tx) error { return p.acceptIn(ctx, tx, group) })
	for _, d := range group {
		d.accepted = err == nil
	}
}

// errNotUsual ends a transaction of several results: each has one of its own.
var errNotUsual = errors.New("durable: a result is not a usual one")

// acceptIn is acceptAll in its transaction.
func (p *process) acceptIn(ctx context.Context, tx store.Tx, group []*delivery) error {
	// One result of each run wakes it: the last one of the group sees those of all others.
	last := map[target]*delivery{}
	var rows []sqlstore.InboxRow
	for _, d := range group {
		payload, err := d.reply.MarshalJSON()
		if err != nil {
			return err
		}
		last[d.args.target()] = d
		rows = append(rows, p.row(d.args.target(), d.reply.Call.String(), payload))
	}

	runs, err := p.lockedRuns(ctx, tx, slices.Collect(maps.Keys(last)))
	if err != nil {
		return err
	}
	replied, err := p.insertReplies(ctx, tx, rows)
	if err != nil {
		return err
	}
	if len(runs) != len(last) || len(replied) != len(group) {
		return errNotUsual
	}

	var wake []Run
	for _, r := range runs {
		d := last[r.target()].conversation.DAG()
		keys := map[string]bool{}
		for row, all := range replied {
			if row.target == r.target() {
				keys[row.call] = true
				maps.Copy(keys, all)
			}
		}
		if r.State == Waiting && len(complete(d, keys)) > 0 {
			wake = append(wake, r)
		}
	}
	return p.wakeAll(ctx, tx, wake)
}

// Retry returns an error with which a tool of a [Worker] asks to be called again after some time. This happens as long
// as its job has attempts left, and only if the effect of the tool allows a second execution (executor.WithEffect).
// After that the model reads err.
func Retry(err error, after time.Duration) error { return &retryError{err: err, after: after} }

type retryError struct {
	err   error
	after time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }

func (e *retryError) Unwrap() error { return e.err }

// deadlineWorker works the jobs of deadlines.
type deadlineWorker struct {
	river.WorkerDefaults[deadlineJob]
	process *process
}

// Work implements river.Worker.
func (w *deadlineWorker) Work(ctx context.Context, job *river.Job[deadlineJob]) error {
	p := w.process
	run, err := p.Run(ctx, job.Args.Run)
	if err != nil || run.State.Ended() {
		return nil
	}
	err = p.replyTo(ctx, job.Args.target(), func(d dag.DAG) ([]executor.Reply, error) {
		for _, pending := range d.Pending() {
			if pending.Key.String() == job.Args.Call {
				return []executor.Reply{p.AtDeadline(run.Agent, pending)}, nil
			}
		}
		return nil, nil
	})
	if errors.Is(err, executor.ErrConflict) || errors.Is(err, ErrNotBusy) || deleted(err) {
		return nil // a reply was first, or nobody waits
	}
	return err
}

// textDeadline is the answer of the default of Options.AtDeadline.
const textDeadline = "nobody replied in time"

// atDeadline is the default of Options.AtDeadline.
func atDeadline(_ string, p dag.Pending) executor.Reply {
	if p.Approval {
		return executor.Declined(p, textDeadline)
	}
	return executor.Failed(p, textDeadline)
}
