package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/plait-dev/plait/store"
)

var _ store.Runs = (*Driver)(nil)

// listeners are the functions of Listen.
type listeners struct {
	mu   sync.Mutex
	list map[int]func(store.Wake) // by ID
	next int                      // the ID of the latest one; guarded by mu, as list is
}

// Listen implements store.Runs.
func (d *Driver) Listen(fn func(store.Wake)) (stop func()) {
	l := &d.listeners
	l.mu.Lock()
	defer l.mu.Unlock()

	// Functions cannot be compared: give each an ID for stop.
	l.next++
	id := l.next
	if l.list == nil {
		l.list = map[int]func(store.Wake){}
	}
	l.list[id] = fn

	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.list, id)
	}
}

func (l *listeners) ring(wakes []store.Wake) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, wake := range wakes {
		for _, fn := range l.list {
			fn(wake)
		}
	}
}

// runsTx is one transaction of store.Runs.
type runsTx struct {
	d     *Driver
	ctx   context.Context
	tx    Tx
	now   time.Time // of the store's clock
	wakes []store.Wake
}

// transact runs f in a transaction. It rings twice for work made available by f: Options.Ring inside the transaction,
// and the listeners of this process after the commit.
func (d *Driver) transact(ctx context.Context, f func(t *runsTx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	var wakes []store.Wake
	err := d.write(ctx, func(tx Tx) error {
		t := &runsTx{d: d, ctx: ctx, tx: tx}
		if err := t.readClock(); err != nil {
			return err
		}
		if err := f(t); err != nil {
			return err
		}

		// The transaction may be run again: only the wake-ups of its last attempt count.
		wakes = t.wakes
		if d.ringTx != nil && len(wakes) > 0 {
			return d.ringTx(ctx, tx, wakes)
		}
		return nil
	})
	if err == nil {
		d.listeners.ring(wakes)
	}
	return err
}

// readClock sets t.now from the database's clock, or from this machine's if the database is on it.
func (t *runsTx) readClock() error {
	if t.d.dialect.Clock == "" {
		t.now = t.d.clock()
		return nil
	}

	var micro int64
	if _, err := first(t.ctx, t.tx, t.d.dialect.Clock, nil, &micro); err != nil {
		return err
	}
	t.now = time.UnixMicro(micro)
	return nil
}

func (t *runsTx) exec(query string, args ...any) (int64, error) {
	return t.tx.Exec(t.ctx, query, args...)
}

// nanos returns a time as it is stored; 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// maxWait limits rings.wait: how many times the grace of a sweep passes between two wake-ups for the same work.
const maxWait = 1024

// runRow is a row of plait_runs.
type runRow struct {
	store.Run
	num    int64 // the primary key
	claim  int64 // the number of the latest claim; an update of the row compares it
	queued int64 // when it was made ready
	rings  rings
}

// rings are the columns about wake-ups.
type rings struct {
	since int64 // the time of the latest wake-up
	total int64 // how many there were, over all
	wait  int64 // the pause before the next one, in graces; doubled by each sweep
}

func (r *rings) ring(now time.Time) int {
	r.since, r.total = now.UnixNano(), r.total+1
	return int(r.total)
}

const runColumns = `num, id, conversation, head, agent, state, reason, continuation, format, pending, claim, claims, worker,
	lease_until, began, changed, queued, since, total, wait`

func scanRun(scan func(...any) error) (r runRow, err error) {
	var state string
	var format, pending, claims, until, began, changed int64
	err = scan(&r.num, &r.ID, &r.Conversation, &r.Head, &r.Agent, &state, &r.Reason, &r.Continuation, &format, &pending,
		&r.claim, &claims, &r.Worker, &until, &began, &changed, &r.queued, &r.rings.since, &r.rings.total, &r.rings.wait)

	r.State, r.Format, r.Pending, r.Claims = store.RunState(state), int(format), int(pending), int(claims)
	r.LeaseUntil, r.Began, r.Changed = fromNanos(until), fromNanos(began), fromNanos(changed)
	return r, err
}

// run reads a run, and locks it.
func (t *runsTx) run(id string) (*runRow, error) {
	return t.oneRun(`SELECT `+runColumns+` FROM plait_runs WHERE id = $1`+t.d.dialect.Lock, id)
}

func (t *runsTx) oneRun(query, id string) (r *runRow, err error) {
	err = each(t.ctx, t.tx, query, []any{id}, func(scan func(...any) error) error {
		row, err := scanRun(scan)
		r = &row
		return err
	})
	if err == nil && r == nil {
		err = &store.RunError{Kind: store.ErrNoRun, Key: store.Key{Run: id}}
	}
	return r, err
}

// saveRun writes the changeable columns of a run, if the latest claim in the table is still the given one. It reports
// false if the run was claimed or released since it was read.
func (t *runsTx) saveRun(r *runRow, claim int64) (saved bool, err error) {
	n, err := t.exec(`UPDATE plait_runs SET state = $1, reason = $2, continuation = $3, format = $4, pending = $5, claim = $6,
		claims = $7, worker = $8, lease_until = $9, changed = $10, queued = $11, since = $12, total = $13, wait = $14,
		open = $15, busy = $16 WHERE num = $17 AND claim = $18`,
		string(r.State), r.Reason, r.Continuation, int64(r.Format), int64(r.Pending), r.claim,
		int64(r.Claims), r.Worker, nanos(r.LeaseUntil), nanos(r.Changed), r.queued, r.rings.since, r.rings.total, r.rings.wait,
		flag(r.State == store.RunReady || r.State == store.RunRunning), flag(!r.State.Ended()), r.num, claim)
	return n == 1, err
}

func flag(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// makeReady lets the run be claimed. The caller saves it.
func (t *runsTx) makeReady(r *runRow) {
	r.State, r.Changed, r.LeaseUntil, r.queued = store.RunReady, t.now, time.Time{}, t.now.UnixNano()
	t.wakeRun(r)
	r.rings.wait = 1
}

func (t *runsTx) wakeRun(r *runRow) {
	t.wakes = append(t.wakes, store.Wake{
		Kind: store.WakeRun, Key: store.Key{Run: r.ID}, Agent: r.Agent, Generation: r.rings.ring(t.now),
	})
}

// rest sets a state in which the run cannot be claimed. The caller saves it.
func (t *runsTx) rest(r *runRow, state store.RunState, reason string) {
	r.State, r.Reason, r.Changed, r.LeaseUntil = state, reason, t.now, time.Time{}
	t.wakes = append(t.wakes, store.Wake{
		Kind: store.WakeStopped, Key: store.Key{Run: r.ID}, Agent: r.Agent, Generation: r.rings.ring(t.now),
	})
}

// Begin implements store.Runs.
func (d *Driver) Begin(ctx context.Context, b store.BeginRequest) (run store.Run, err error) {
	if err := b.Check(); err != nil {
		return run, err
	}
	err = d.transact(ctx, func(t *runsTx) error {
		r, err := t.begin(b)
		run = r.Run
		return err
	})
	if err == nil {
		d.news.notify(b.Append.Conversation)
	}
	return run, err
}

func (t *runsTx) begin(b store.BeginRequest) (r runRow, err error) {
	if _, err := t.run(b.Run); err == nil {
		return r, &store.RunError{Kind: store.ErrRunExists, Key: store.Key{Run: b.Run}}
	} else if !isNoRun(err) {
		return r, err
	}

	// Checked before the append: a head with a run must give ErrBusy, not a conflict.
	conversation, head := b.Append.Conversation, b.Append.Head
	busy := func() error {
		var other string
		found, err := first(t.ctx, t.tx, `SELECT id FROM plait_runs WHERE conversation = $1 AND head = $2 AND busy = 1`,
			[]any{conversation, head}, &other)
		if err == nil && found {
			err = &store.RunError{Kind: store.ErrBusy, Key: store.Key{Run: other}}
		}
		return err
	}
	if err := busy(); err != nil {
		return r, err
	}
	if _, err := t.d.append(t.ctx, t.tx, b.Append); err != nil {
		return r, err
	}

	r.Run = store.Run{ID: b.Run, Conversation: conversation, Head: head, Agent: b.Agent, Began: t.now}
	t.makeReady(&r)
	n, err := t.exec(`INSERT INTO plait_runs (id, conversation, head, agent, state, reason, continuation, format, pending,
			claim, claims, worker, lease_until, began, changed, queued, since, total, wait, open, busy)
		VALUES ($1, $2, $3, $4, $5, '', '', 0, 0, 0, 0, '', 0, $6, $7, $8, $9, $10, 1, 1, 1) ON CONFLICT DO NOTHING`,
		r.ID, conversation, head, r.Agent, string(r.State), nanos(r.Began), nanos(r.Changed), r.queued,
		r.rings.since, r.rings.total)

	// Another transaction has inserted a run since: one on the same head, or one with the same ID.
	if err == nil && n == 0 {
		if err = busy(); err == nil {
			err = &store.RunError{Kind: store.ErrRunExists, Key: store.Key{Run: b.Run}}
		}
	}
	return r, err
}

func isNoRun(err error) bool {
	refused, ok := err.(*store.RunError)
	return ok && refused.Kind == store.ErrNoRun
}

// ClaimRuns implements store.Runs.
func (d *Driver) ClaimRuns(ctx context.Context, c store.ClaimRunsRequest) (claimed []store.ClaimedRun, err error) {
	err = d.transact(ctx, func(t *runsTx) error {
		claimed = nil
		rows, err := t.claimableRuns(c)
		for _, r := range rows {
			if err != nil {
				break
			}

			// The number of the claim distinguishes this worker from an earlier one that lost its lease: saveRun
			// compares it.
			before := r.claim
			r.claim++
			r.State, r.Changed, r.Worker, r.LeaseUntil = store.RunRunning, t.now, c.Worker, t.now.Add(c.Lease)
			r.Claims++
			r.rings.wait = 1

			var saved bool
			if saved, err = t.saveRun(&r, before); err != nil || !saved {
				continue // another worker was first
			}

			next := store.ClaimedRun{Run: r.Run, Lease: store.Lease{
				Key: store.Key{Run: r.ID}, Worker: c.Worker, Claim: int(r.claim),
			}}
			if r.Continuation != "" {
				next.Continuation, err = t.continuation(&r)
			}
			claimed = append(claimed, next)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// claimableRuns returns the claimable runs, oldest first.
func (t *runsTx) claimableRuns(c store.ClaimRunsRequest) (rows []runRow, err error) {
	if len(c.Agents) == 0 {
		return nil, nil
	}
	args := []any{t.now.UnixNano()}
	query := `SELECT ` + runColumns + ` FROM plait_runs WHERE open = 1 AND lease_until <= $1`
	if c.Run != "" {
		query, args = query+` AND id = $2`, append(args, c.Run)
	}

	var agents, formats []any
	for _, a := range c.Agents {
		agents = append(agents, a)
	}
	for _, f := range c.Formats {
		formats = append(formats, int64(f))
	}
	query, args = withList(query, args, ` AND agent IN `, agents)

	// A run without a continuation has no format: every worker with the agent can begin it.
	if len(formats) == 0 {
		query += ` AND continuation = ''`
	} else {
		query, args = withList(query, args, ` AND (continuation = '' OR format IN `, formats)
		query += `)`
	}

	// Skip rows being claimed by another worker: workers do not wait for each other.
	args = append(args, int64(max(c.Limit, 1)))
	query += fmt.Sprintf(` ORDER BY queued, num LIMIT $%d`, len(args)) + t.d.dialect.Skip

	err = each(t.ctx, t.tx, query, args, func(scan func(...any) error) error {
		r, err := scanRun(scan)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// withList appends a list of parameters to a query. The list must not be empty. Its last value is repeated up to a
// power of two: each query is prepared once and kept, so there should be few different ones.
func withList(query string, args []any, before string, list []any) (string, []any) {
	size := 1
	for size < len(list) {
		size *= 2
	}

	query += before + `(`
	for i := range size {
		if i > 0 {
			query += `, `
		}
		args = append(args, list[min(i, len(list)-1)])
		query += fmt.Sprintf(`$%d`, len(args))
	}
	return query + `)`, args
}

// continuation reads the pause of a ready run, with its results.
func (t *runsTx) continuation(r *runRow) (*store.Continuation, error) {
	c := &store.Continuation{ID: r.Continuation, Format: r.Format}
	_, err := first(t.ctx, t.tx, `SELECT payload FROM plait_pauses WHERE run = $1 AND id = $2`,
		[]any{r.num, r.Continuation}, &c.Payload)
	if err != nil {
		return nil, err
	}

	tasks, err := t.tasks(r.num, r.ID, r.Continuation)
	for _, task := range tasks {
		c.Results = append(c.Results, task.Result)
	}
	return c, err
}

// taskRow is a row of plait_tasks.
type taskRow struct {
	store.TaskState
	num   int64 // the primary key
	run   int64 // plait_runs.num
	claim int64 // the number of the latest claim; an update of the row compares it
	agent string
	rings rings
}

const taskColumns = `t.num, t.run, t.pause, t.call, t.tool, t.agent, t.payload, t.attempts, t.result_timeout,
	t.external, t.deadline, t.claim, t.claims, t.worker, t.lease_until, t.since, t.total, t.wait, t.done, t.outcome,
	t.result, t.result_claim, t.result_worker, t.accepted`

// scanTask reads a row of taskColumns. The columns after them are read into more.
func scanTask(scan func(...any) error, more ...any) (row taskRow, err error) {
	var attempts, timeout, external, deadline, claims, until, done, claim, accepted int64
	var outcome string
	key, result := &row.Task.Key, &row.Result
	err = scan(append([]any{
		&row.num, &row.run, &key.Continuation, &key.Call, &row.Task.Tool, &row.agent, &row.Task.Payload, &attempts, &timeout,
		&external, &deadline, &row.claim, &claims, &row.Worker, &until, &row.rings.since, &row.rings.total, &row.rings.wait,
		&done, &outcome, &result.Payload, &claim, &result.Worker, &accepted,
	}, more...)...)

	row.Task.Attempts, row.Task.ResultTimeout, row.Task.External = int(attempts), time.Duration(timeout), external == 1
	row.Deadline, row.Claims, row.LeaseUntil = fromNanos(deadline), int(claims), fromNanos(until)
	row.Done = done == 1
	result.Claim, result.Outcome, result.Accepted = int(claim), store.Outcome(outcome), fromNanos(accepted)
	return row, err
}

// name sets the run of the task's keys.
func (r *taskRow) name(run string) {
	r.Task.Key.Run = run
	if r.Done {
		r.Result.Key = r.Task.Key
	}
}

// tasks reads the calls of a pause, in their order.
func (t *runsTx) tasks(num int64, run, pause string) (rows []taskRow, err error) {
	err = each(t.ctx, t.tx, `SELECT `+taskColumns+` FROM plait_tasks t WHERE t.run = $1 AND t.pause = $2 ORDER BY t.num`,
		[]any{num, pause}, func(scan func(...any) error) error {
			row, err := scanTask(scan)
			row.name(run)
			rows = append(rows, row)
			return err
		})
	return rows, err
}

// task reads a call and its run. It locks the run: the results of one run are stored one after the other.
func (t *runsTx) task(key store.Key) (*runRow, *taskRow, error) {
	// The error names the call, not its run alone.
	r, err := t.run(key.Run)
	if isNoRun(err) {
		return nil, nil, &store.RunError{Kind: store.ErrNoRun, Key: key}
	}
	if err != nil {
		return nil, nil, err
	}

	var task *taskRow
	err = each(t.ctx, t.tx, `SELECT `+taskColumns+` FROM plait_tasks t WHERE t.run = $1 AND t.pause = $2 AND t.call = $3`,
		[]any{r.num, key.Continuation, key.Call}, func(scan func(...any) error) error {
			row, err := scanTask(scan)
			row.name(key.Run)
			task = &row
			return err
		})
	if err == nil && task == nil {
		err = &store.RunError{Kind: store.ErrNoRun, Key: key}
	}
	return r, task, err
}

// saveClaim writes the claim of a call, if the call has no result yet and its latest claim in the table is still the
// given one. It reports false otherwise.
func (t *runsTx) saveClaim(row *taskRow, claim int64) (saved bool, err error) {
	n, err := t.exec(`UPDATE plait_tasks SET claim = $1, claims = $2, worker = $3, lease_until = $4, since = $5, total = $6,
		wait = $7 WHERE num = $8 AND claim = $9 AND done = 0`,
		row.claim, int64(row.Claims), row.Worker, nanos(row.LeaseUntil), row.rings.since, row.rings.total, row.rings.wait,
		row.num, claim)
	return n == 1, err
}

func (t *runsTx) wakeTask(row *taskRow) {
	t.wakes = append(t.wakes, store.Wake{
		Kind: store.WakeTask, Key: row.Task.Key, Agent: row.agent, Tool: row.Task.Tool, Generation: row.rings.ring(t.now),
	})
}

// ClaimTasks implements store.Runs.
func (d *Driver) ClaimTasks(ctx context.Context, c store.ClaimTasksRequest) (claimed []store.ClaimedTask, err error) {
	err = d.transact(ctx, func(t *runsTx) error {
		claimed = nil
		rows, err := t.claimableTasks(c)
		for _, row := range rows {
			if err != nil {
				break
			}

			// The number of the claim distinguishes this worker from an earlier one that lost its lease: saveClaim
			// compares it.
			before := row.claim
			row.claim++
			row.Worker, row.LeaseUntil = c.Worker, t.now.Add(c.Lease)
			row.Claims++
			row.rings.wait = 1

			var saved bool
			if saved, err = t.saveClaim(&row, before); err != nil || !saved {
				continue // another worker was first, or the call has its result
			}

			next := store.ClaimedTask{
				Lease: store.Lease{Key: row.Task.Key, Worker: c.Worker, Claim: int(row.claim)},
				Task:  row.Task, Attempt: row.Claims, Deadline: row.Deadline,
			}
			if !row.Deadline.IsZero() {
				next.Left = row.Deadline.Sub(t.now)
			}
			claimed = append(claimed, next)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// claimableTasks returns the claimable calls, oldest first.
func (t *runsTx) claimableTasks(c store.ClaimTasksRequest) (rows []taskRow, err error) {
	if len(c.Tools) == 0 {
		return nil, nil
	}

	// open is 0 for external calls, for calls with a result, and for the calls of a cancelled run.
	now := t.now.UnixNano()
	args := []any{now, now}
	query := `SELECT ` + taskColumns + `, r.id FROM plait_tasks t JOIN plait_runs r ON r.num = t.run
		WHERE t.open = 1 AND t.lease_until <= $1 AND (t.deadline = 0 OR t.deadline > $2)
		AND (t.attempts = 0 OR t.claims < t.attempts)`
	if c.Key != (store.Key{}) {
		args = append(args, c.Key.Run, c.Key.Continuation, c.Key.Call)
		query += ` AND r.id = $3 AND t.pause = $4 AND t.call = $5`
	}

	var tools []any
	for _, tool := range c.Tools {
		tools = append(tools, tool)
	}
	query, args = withList(query, args, ` AND t.tool IN `, tools)

	// As for runs, workers do not wait for each other.
	args = append(args, int64(max(c.Limit, 1)))
	query += fmt.Sprintf(` ORDER BY t.num LIMIT $%d`, len(args)) + t.d.dialect.SkipTasks

	err = each(t.ctx, t.tx, query, args, func(scan func(...any) error) error {
		var run string
		row, err := scanTask(scan, &run)
		row.name(run)
		rows = append(rows, row)
		return err
	})
	return rows, err
}

// Renew implements store.Runs.
func (d *Driver) Renew(ctx context.Context, l store.Lease, length time.Duration) error {
	return d.transact(ctx, func(t *runsTx) error {
		r, task, err := t.leased(l)
		if err != nil {
			return err
		}

		if task == nil {
			r.LeaseUntil = t.now.Add(length)
			return t.mustSave(r, r.claim)
		}
		task.LeaseUntil = t.now.Add(length)
		return t.mustClaim(task, task.claim)
	})
}

// leased returns the run of a lease and, if the lease is one of a call, the call. The error is ErrLeaseLost if the
// lease is not the latest claim any more.
func (t *runsTx) leased(l store.Lease) (r *runRow, task *taskRow, err error) {
	// The claim decides, not the time: an ended lease can be renewed if nobody has claimed the work since.
	lost := &store.RunError{Kind: store.ErrLeaseLost, Key: l.Key}
	if l.Key.Call == "" {
		r, err = t.run(l.Key.Run)
		if err == nil && (r.State != store.RunRunning || int(r.claim) != l.Claim) {
			err = lost
		}
		return r, nil, err
	}

	r, task, err = t.task(l.Key)
	if err == nil && (task.Done || int(task.claim) != l.Claim) {
		err = lost
	}
	return r, task, err
}

// mustSave is saveRun with an error in place of false.
func (t *runsTx) mustSave(r *runRow, claim int64) error {
	saved, err := t.saveRun(r, claim)
	if err == nil && !saved {
		err = &store.RunError{Kind: store.ErrLeaseLost, Key: store.Key{Run: r.ID}}
	}
	return err
}

// mustClaim is saveClaim with an error in place of false.
func (t *runsTx) mustClaim(task *taskRow, claim int64) error {
	saved, err := t.saveClaim(task, claim)
	if err == nil && !saved {
		err = &store.RunError{Kind: store.ErrLeaseLost, Key: task.Task.Key}
	}
	return err
}

// Release implements store.Runs.
func (d *Driver) Release(ctx context.Context, l store.Lease, after time.Duration, unused bool) error {
	return d.transact(ctx, func(t *runsTx) error {
		r, task, err := t.leased(l)
		if err != nil {
			return err
		}

		// The next number makes this lease an old one.
		if task == nil {
			before := r.claim
			r.claim++
			t.makeReady(r)
			r.Claims -= int(flag(unused))
			r.Worker, r.LeaseUntil = "", t.now.Add(after)
			return t.mustSave(r, before)
		}

		before := task.claim
		task.claim++
		t.wakeTask(task)
		task.rings.wait = 1
		task.Claims -= int(flag(unused))
		task.Worker, task.LeaseUntil = "", t.now.Add(after)
		return t.mustClaim(task, before)
	})
}

// Commit implements store.Runs.
func (d *Driver) Commit(ctx context.Context, s store.Step) (head store.Head, err error) {
	if err := s.Check(); err != nil {
		return head, err
	}
	err = d.transact(ctx, func(t *runsTx) (err error) {
		head, err = t.commit(s)
		return err
	})
	if err != nil {
		return store.Head{}, err
	}
	if s.Append != nil {
		d.news.notify(s.Append.Conversation)
	}
	return head, nil
}

func (t *runsTx) commit(s store.Step) (head store.Head, err error) {
	r, err := t.run(s.Lease.Key.Run)
	key := store.Key{Run: s.Lease.Key.Run}

	// Only the worker of the latest claim may take a step.
	switch {
	case err != nil:
		return head, err
	case r.State.Ended():
		return head, &store.RunError{Kind: store.ErrRunEnded, Key: key, Detail: string(r.State)}
	case r.State != store.RunRunning || int(r.claim) != s.Lease.Claim:
		return head, &store.RunError{Kind: store.ErrLeaseLost, Key: key}
	}

	// The step must belong to the claimed state. Nothing is written before this is checked.
	err = s.Fits(r.Run, func(continuation string) (had, used bool, err error) {
		var usedColumn int64
		had, err = first(t.ctx, t.tx, `SELECT used FROM plait_pauses WHERE run = $1 AND id = $2`,
			[]any{r.num, continuation}, &usedColumn)
		return had, usedColumn == 1, err
	})
	if err != nil {
		return head, err
	}

	// The conversation and the run change in one transaction: a crash leaves both or neither.
	if s.Append != nil {
		if head, err = t.d.append(t.ctx, t.tx, *s.Append); err != nil {
			return head, err
		}
	}
	if s.Consume != "" {
		if _, err := t.exec(`UPDATE plait_pauses SET used = 1 WHERE run = $1 AND id = $2`, r.num, s.Consume); err != nil {
			return head, err
		}
		r.Continuation, r.Format = "", 0
	}

	// A step without a pause or an end leaves the run with its worker.
	switch {
	case s.Pause != nil:
		r.Continuation, r.Format, r.Pending, r.Claims = s.Pause.Continuation, s.Pause.Format, len(s.Pause.Tasks), 0
		t.rest(r, store.RunWaiting, "")
		if err := t.storePause(r, *s.Pause); err != nil {
			return head, err
		}
	case s.End != "":
		t.rest(r, s.End, s.Reason)
	case s.Consume == "":
		return head, nil // the run is as it was
	}

	// The row is locked, so its claim is still the one compared above.
	return head, t.mustSave(r, r.claim)
}

// storePause inserts a pause and its calls.
func (t *runsTx) storePause(r *runRow, p store.Pause) error {
	_, err := t.exec(`INSERT INTO plait_pauses (run, id, payload, used) VALUES ($1, $2, $3, 0)`,
		r.num, p.Continuation, notNull(p.Payload))
	if err != nil {
		return err
	}

	// In the order of the pause: tasks reads the calls by their rising numbers.
	for _, task := range p.Tasks {
		task.Key.Run, task.Key.Continuation = r.ID, p.Continuation
		row := taskRow{agent: r.Agent, TaskState: store.TaskState{Task: task}, rings: rings{wait: 1}}
		if task.ResultTimeout != 0 {
			row.Deadline = t.now.Add(task.ResultTimeout)
		}
		if !task.External {
			t.wakeTask(&row) // before the insert: the row includes the count of wake-ups
		}

		_, err := t.exec(`INSERT INTO plait_tasks (run, pause, call, tool, agent, payload, attempts, result_timeout, external,
				deadline, claim, claims, worker, lease_until, since, total, wait, done, open, outcome, result, result_claim,
				result_worker, accepted)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 0, '', 0, $11, $12, 1, 0, $13, '', NULL, 0, '', 0)`,
			r.num, p.Continuation, task.Key.Call, task.Tool, r.Agent, notNull(task.Payload), int64(task.Attempts),
			int64(task.ResultTimeout), flag(task.External), nanos(row.Deadline), row.rings.since, row.rings.total,
			flag(!task.External))
		if err != nil {
			return err
		}
	}
	return nil
}

// Accept implements store.Runs.
func (d *Driver) Accept(ctx context.Context, result store.Result) (ready bool, err error) {
	err = d.transact(ctx, func(t *runsTx) error {
		ready = false
		r, task, err := t.task(result.Key)
		if err != nil {
			return err
		}
		if task.Done {
			return task.Result.CheckSecond(result)
		}

		closed, err := t.close(task, result)
		if err != nil {
			return err
		}
		if !closed { // impossible while the run is locked
			return fmt.Errorf("store: the result of %s was accepted meanwhile", result.Key)
		}

		// The last result makes the run ready, in the same transaction.
		if r.Pending--; r.Pending == 0 {
			ready = true
			t.makeReady(r)
		}
		return t.mustSave(r, r.claim)
	})
	return ready && err == nil, err
}

// close stores the result of a call. It reports false, and stores nothing, if the call has one already.
func (t *runsTx) close(task *taskRow, result store.Result) (bool, error) {
	n, err := t.exec(`UPDATE plait_tasks SET done = 1, open = 0, lease_until = 0, outcome = $1, result = $2, result_claim = $3,
		result_worker = $4, accepted = $5 WHERE num = $6 AND done = 0`,
		string(result.Outcome), result.Payload, int64(result.Claim), result.Worker, t.now.UnixNano(), task.num)
	return n == 1, err
}

// Cancel implements store.Runs.
func (d *Driver) Cancel(ctx context.Context, run, reason string) error {
	return d.transact(ctx, func(t *runsTx) error {
		r, err := t.run(run)
		switch {
		case err != nil:
			return err
		case r.State == store.RunCancelled:
			return nil
		case r.State.Ended():
			return &store.RunError{Kind: store.ErrRunEnded, Key: store.Key{Run: run}, Detail: string(r.State)}
		}

		// Close the open calls: no worker may claim one, and no result is accepted.
		_, err = t.exec(`UPDATE plait_tasks SET done = 1, open = 0, lease_until = 0, outcome = $1, accepted = $2
			WHERE run = $3 AND done = 0`, string(store.OutcomeCancelled), t.now.UnixNano(), r.num)
		if err != nil {
			return err
		}
		r.Continuation, r.Format, r.Pending = "", 0, 0
		t.rest(r, store.RunCancelled, reason)
		return t.mustSave(r, r.claim)
	})
}

// Requeue implements store.Runs.
func (d *Driver) Requeue(ctx context.Context, run string) error {
	return d.transact(ctx, func(t *runsTx) error {
		r, err := t.run(run)
		refused := func(kind error) error {
			return &store.RunError{Kind: kind, Key: store.Key{Run: run}, Detail: string(r.State)}
		}
		switch {
		case err != nil:
			return err
		case r.State.Ended():
			return refused(store.ErrRunEnded)
		case r.State != store.RunParked:
			return refused(store.ErrBusy)
		}

		r.Reason, r.Claims = "", 0
		t.makeReady(r)
		return t.mustSave(r, r.claim)
	})
}

// due selects unclaimed work after a long enough wait for another wake-up. $1 and $2 are the time, $3 is the grace. The
// wait begins with the latest wake-up, or with the end of a lease if that came later.
const due = `open = 1 AND lease_until <= $1
	AND $2 - CASE WHEN lease_until > since THEN lease_until ELSE since END >= $3 * wait`

// Sweep implements store.Runs.
func (d *Driver) Sweep(ctx context.Context, s store.SweepRequest) (swept store.Swept, err error) {
	limit := int64(1000)
	if s.Limit > 0 {
		limit = int64(s.Limit)
	}

	err = d.transact(ctx, func(t *runsTx) error {
		swept = store.Swept{}
		if err := t.sweepRuns(s, limit); err != nil {
			return err
		}
		err := t.sweepTasks(s, limit, &swept)
		swept.Woken = len(t.wakes)
		return err
	})
	return swept, err
}

func (t *runsTx) sweepRuns(s store.SweepRequest, limit int64) error {
	now := t.now.UnixNano()
	var rows []runRow
	err := each(t.ctx, t.tx, `SELECT `+runColumns+` FROM plait_runs WHERE `+due+` ORDER BY queued, num LIMIT $4`+t.d.dialect.Skip,
		[]any{now, now, int64(s.Grace), limit}, func(scan func(...any) error) error {
			r, err := scanRun(scan)
			rows = append(rows, r)
			return err
		})

	for _, r := range rows {
		if err != nil {
			break
		}

		// Each wake-up without a claim doubles the wait: work without a fitting worker costs less and less.
		t.wakeRun(&r)
		r.rings.wait = min(r.rings.wait*2, maxWait)
		_, err = t.exec(`UPDATE plait_runs SET since = $1, total = $2, wait = $3 WHERE num = $4`,
			r.rings.since, r.rings.total, r.rings.wait, r.num)
	}
	return err
}

// namedTasks runs a query for taskColumns, and sets the ID of the run in each row. A row itself has only the number of
// its run. ids holds the IDs by number: each is looked up once.
func (t *runsTx) namedTasks(ids map[int64]string, query string, args ...any) (rows []taskRow, err error) {
	err = each(t.ctx, t.tx, query, args, func(scan func(...any) error) error {
		row, err := scanTask(scan)
		rows = append(rows, row)
		return err
	})

	// Only after the last row: a Tx runs one query at a time.
	for i := range rows {
		if err != nil {
			break
		}
		num := rows[i].run
		if ids[num] == "" {
			id := ""
			_, err = first(t.ctx, t.tx, `SELECT id FROM plait_runs WHERE num = $1`, []any{num}, &id)
			ids[num] = id
		}
		rows[i].name(ids[num])
	}
	return rows, err
}

func (t *runsTx) sweepTasks(s store.SweepRequest, limit int64, swept *store.Swept) error {
	now := t.now.UnixNano()
	ids := map[int64]string{}

	// Find the calls that nobody may execute any more: their time is over, or their last attempt was lost.
	expired, err := t.namedTasks(ids, `SELECT `+taskColumns+` FROM plait_tasks t WHERE t.done = 0 AND t.open = 1
		AND (t.deadline > 0 AND t.deadline <= $1 OR t.attempts > 0 AND t.claims >= t.attempts AND t.lease_until <= $2)
		ORDER BY t.num LIMIT $3`, now, now, limit)
	if err != nil {
		return err
	}
	for _, row := range expired {
		swept.Expired = append(swept.Expired, row.TaskState)
	}

	// Find the calls waiting for a worker. The workers were woken once; wake them again, less often each time.
	unclaimed, err := t.namedTasks(ids, `SELECT `+taskColumns+` FROM plait_tasks t WHERE `+due+`
		AND (t.deadline = 0 OR t.deadline > $4) AND (t.attempts = 0 OR t.claims < t.attempts)
		ORDER BY t.num LIMIT $5`+t.d.dialect.Skip, now, now, int64(s.Grace), now, limit)
	for _, row := range unclaimed {
		if err != nil {
			break
		}
		t.wakeTask(&row)
		row.rings.wait = min(row.rings.wait*2, maxWait)
		_, err = t.exec(`UPDATE plait_tasks SET since = $1, total = $2, wait = $3 WHERE num = $4`,
			row.rings.since, row.rings.total, row.rings.wait, row.num)
	}
	return err
}

// Run implements store.Runs.
func (d *Driver) Run(ctx context.Context, run string) (store.Run, error) {
	var found *runRow
	err := d.readRuns(ctx, func(t *runsTx) (err error) {
		found, err = t.oneRun(`SELECT `+runColumns+` FROM plait_runs WHERE id = $1`, run)
		return err
	})
	if err != nil {
		return store.Run{}, err
	}
	return found.Run, nil
}

// readRuns runs f in a read-only transaction.
func (d *Driver) readRuns(ctx context.Context, f func(t *runsTx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.db.Snapshot(ctx, func(tx Tx) error { return f(&runsTx{d: d, ctx: ctx, tx: tx}) })
}

// ListRuns implements store.Runs.
func (d *Driver) ListRuns(ctx context.Context, q store.ListRunsRequest) (list []store.Run, err error) {
	query, args := `SELECT `+runColumns+` FROM plait_runs WHERE id > $1`, []any{q.After}
	for _, filter := range []struct{ column, value string }{{"conversation", q.Conversation}, {"agent", q.Agent}} {
		if filter.value != "" {
			args = append(args, filter.value)
			query += fmt.Sprintf(` AND %s = $%d`, filter.column, len(args))
		}
	}
	if len(q.States) > 0 {
		var states []any
		for _, s := range q.States {
			states = append(states, string(s))
		}
		query, args = withList(query, args, ` AND state IN `, states)
	}

	limit := 100
	if q.Limit > 0 {
		limit = q.Limit
	}
	args = append(args, int64(limit))
	query += fmt.Sprintf(` ORDER BY id LIMIT $%d`, len(args))

	err = d.readRuns(ctx, func(t *runsTx) error {
		list = nil
		return each(ctx, t.tx, query, args, func(scan func(...any) error) error {
			r, err := scanRun(scan)
			list = append(list, r.Run)
			return err
		})
	})
	return list, err
}

// Tasks implements store.Runs.
func (d *Driver) Tasks(ctx context.Context, run string) (states []store.TaskState, err error) {
	err = d.readRuns(ctx, func(t *runsTx) error {
		r, err := t.oneRun(`SELECT `+runColumns+` FROM plait_runs WHERE id = $1`, run)
		if err != nil {
			return err
		}

		// A run without a pause has no calls: latest stays empty, and no row has an empty pause.
		var latest string
		_, err = first(ctx, t.tx, `SELECT id FROM plait_pauses WHERE run = $1 ORDER BY num DESC LIMIT 1`, []any{r.num}, &latest)
		if err != nil {
			return err
		}

		rows, err := t.tasks(r.num, run, latest)
		for _, row := range rows {
			states = append(states, row.TaskState)
		}
		return err
	})
	return slices.Clip(states), err
}
