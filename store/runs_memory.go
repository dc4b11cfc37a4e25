package store

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"maps"
	"slices"
	"time"
)

func (m *memory) Begin(ctx context.Context, b BeginRequest) (Run, error) {
	if err := b.Check(); err != nil {
		return Run{}, err
	}
	return transact(ctx, m, func(now time.Time) (Run, error) { return m.runs.begin(now, b, m.append) })
}

func (m *memory) ClaimRuns(ctx context.Context, c ClaimRunsRequest) ([]ClaimedRun, error) {
	return transact(ctx, m, func(now time.Time) ([]ClaimedRun, error) { return m.runs.claimRuns(now, c), nil })
}

func (m *memory) ClaimTasks(ctx context.Context, c ClaimTasksRequest) ([]ClaimedTask, error) {
	return transact(ctx, m, func(now time.Time) ([]ClaimedTask, error) { return m.runs.claimTasks(now, c), nil })
}

func (m *memory) Renew(ctx context.Context, l Lease, d time.Duration) error {
	return transactErr(ctx, m, func(now time.Time) error { return m.runs.renew(now, l, d) })
}

func (m *memory) Release(ctx context.Context, l Lease, d time.Duration, unused bool) error {
	return transactErr(ctx, m, func(now time.Time) error { return m.runs.release(now, l, d, unused) })
}

func (m *memory) Commit(ctx context.Context, s Step) (Head, error) {
	if err := s.Check(); err != nil {
		return Head{}, err
	}
	return transact(ctx, m, func(now time.Time) (Head, error) { return m.runs.commit(now, s, m.append) })
}

func (m *memory) Accept(ctx context.Context, r Result) (ready bool, err error) {
	return transact(ctx, m, func(now time.Time) (bool, error) { return m.runs.accept(now, r) })
}

func (m *memory) Cancel(ctx context.Context, run, reason string) error {
	return transactErr(ctx, m, func(now time.Time) error { return m.runs.cancel(now, run, reason) })
}

func (m *memory) Requeue(ctx context.Context, run string) error {
	return transactErr(ctx, m, func(now time.Time) error { return m.runs.requeue(now, run) })
}

func (m *memory) Sweep(ctx context.Context, s SweepRequest) (Swept, error) {
	return transact(ctx, m, func(now time.Time) (Swept, error) { return m.runs.sweep(now, s), nil })
}

func (m *memory) PruneRuns(ctx context.Context, p PruneRunsRequest) (PrunedRuns, error) {
	return transact(ctx, m, func(now time.Time) (PrunedRuns, error) { return m.runs.prune(now, p), nil })
}

func (m *memory) Run(ctx context.Context, run string) (Run, error) {
	return transact(ctx, m, func(time.Time) (Run, error) {
		r, err := m.runs.find(Key{Run: run})
		if err != nil {
			return Run{}, err
		}
		return r.Run, nil
	})
}

func (m *memory) ListRuns(ctx context.Context, q ListRunsRequest) ([]Run, error) {
	return transact(ctx, m, func(time.Time) ([]Run, error) { return m.runs.list(q), nil })
}

func (m *memory) Stats(ctx context.Context) (RunStats, error) {
	return transact(ctx, m, func(now time.Time) (RunStats, error) { return m.runs.stats(now), nil })
}

func (m *memory) Tasks(ctx context.Context, run string) ([]TaskState, error) {
	return transact(ctx, m, func(time.Time) ([]TaskState, error) { return m.runs.taskStates(run) })
}

func (m *memory) Listen(fn func(Wake)) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()

	// Functions cannot be compared, so each gets an ID for stop.
	m.listened++
	id := m.listened
	if m.listeners == nil {
		m.listeners = map[int]func(Wake){}
	}
	m.listeners[id] = fn

	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.listeners, id)
	}
}

// transact calls fn under the lock, and then rings for newly available work.
func transact[T any](ctx context.Context, m *memory, fn func(now time.Time) (T, error)) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	result, err = fn(time.Now())

	// Listeners are called under the lock: they must not call the store (see Runs.Listen).
	wakes := m.runs.wakes
	m.runs.wakes = nil
	for _, wake := range wakes {
		for _, listener := range m.listeners {
			listener(wake)
		}
	}
	return result, err
}

func transactErr(ctx context.Context, m *memory, fn func(now time.Time) error) error {
	_, err := transact(ctx, m, func(now time.Time) (struct{}, error) { return struct{}{}, fn(now) })
	return err
}

// runTable holds the runs of a memory store. The mutex of the store guards it. Nothing undoes a change, so each method
// makes all its checks before its first change.
type runTable struct {
	runs  map[string]*runRow
	busy  map[headKey]*runRow // unfinished runs, by head; a head has at most one
	open  list.List           // of *runRow: the ready and the running ones, oldest first
	tasks list.List           // of *taskRow: the ones for workers, oldest first

	wakes []Wake // of the transaction under way
}

type headKey struct{ conversation, head string }

type runRow struct {
	Run
	claim  int // number of the latest claim
	rings  rings
	at     *list.Element // in runTable.open; nil if it is not there
	pauses map[string]*pauseRow
	latest *pauseRow // nil before the first pause
}

type pauseRow struct {
	Pause
	tasks []*taskRow
	byID  map[string]*taskRow
	used  bool
}

type taskRow struct {
	TaskState
	run   *runRow
	claim int
	rings rings
	at    *list.Element // in runTable.tasks; nil if it is not there
}

// rings counts the wake-ups for one piece of work.
type rings struct {
	since time.Time // the time of the latest wake-up
	total int       // how many there were, over all
	again int       // how many came after the first without a claim between them
}

// due reports whether it is time for another wake-up. The wait begins with the latest wake-up or the end of the lease,
// and doubles with each wake-up without a claim.
func (r rings) due(now, leaseUntil time.Time, grace time.Duration) bool {
	const maxDoublings = 10
	since := r.since
	if leaseUntil.After(since) {
		since = leaseUntil
	}
	return now.Sub(since) >= grace<<min(r.again, maxDoublings)
}

func (r *rings) ring(now time.Time) int {
	r.since, r.total, r.again = now, r.total+1, r.again+1
	return r.total
}

func (t *runTable) find(key Key) (*runRow, error) {
	if r := t.runs[key.Run]; r != nil {
		return r, nil
	}
	return nil, &RunError{Kind: ErrNoRun, Key: key}
}

func (t *runTable) findTask(key Key) (*taskRow, error) {
	if r := t.runs[key.Run]; r != nil {
		if p := r.pauses[key.Continuation]; p != nil && p.byID[key.Call] != nil {
			return p.byID[key.Call], nil
		}
	}
	return nil, &RunError{Kind: ErrNoRun, Key: key}
}

func (t *runTable) begin(now time.Time, b BeginRequest, appendNodes func(AppendRequest) (Head, error)) (Run, error) {
	key, on := Key{Run: b.Run}, headKey{b.Append.Conversation, b.Append.Head}
	if t.runs[b.Run] != nil {
		return Run{}, &RunError{Kind: ErrRunExists, Key: key}
	}
	if other := t.busy[on]; other != nil {
		return Run{}, &RunError{Kind: ErrBusy, Key: Key{Run: other.ID}}
	}

	// Append last: a refused append changes nothing, and no later step can fail.
	if _, err := appendNodes(b.Append); err != nil {
		return Run{}, err
	}

	r := &runRow{pauses: map[string]*pauseRow{}, Run: Run{
		ID: b.Run, Conversation: on.conversation, Head: on.head, Agent: b.Agent, Began: now, Changed: now,
	}}
	if t.runs == nil {
		t.runs, t.busy = map[string]*runRow{}, map[headKey]*runRow{}
	}
	t.runs[b.Run], t.busy[on] = r, r
	t.makeReady(now, r)
	return r.Run, nil
}

// makeReady lets the run be claimed.
func (t *runTable) makeReady(now time.Time, r *runRow) {
	r.State, r.Changed, r.LeaseUntil = RunReady, now, time.Time{}
	if r.at == nil {
		r.at = t.open.PushBack(r)
	}
	t.wakeRun(now, r)
	// wakeRun counts a repeated wake-up, but this one is the first.
	r.rings.again = 0
}

func (t *runTable) wakeRun(now time.Time, r *runRow) {
	t.wakes = append(t.wakes, Wake{Kind: WakeRun, Key: Key{Run: r.ID}, Agent: r.Agent, Generation: r.rings.ring(now)})
}

func (t *runTable) wakeTask(now time.Time, task *taskRow) {
	t.wakes = append(t.wakes, Wake{
		Kind: WakeTask, Key: task.Task.Key, Agent: task.run.Agent, Tool: task.Task.Tool, Generation: task.rings.ring(now),
	})
}

// rest sets a state without claims: waiting, parked or ended.
func (t *runTable) rest(now time.Time, r *runRow, state RunState, reason string) {
	r.State, r.Reason, r.Changed, r.LeaseUntil = state, reason, now, time.Time{}
	if r.at != nil {
		t.open.Remove(r.at)
		r.at = nil
	}
	if state.Ended() {
		delete(t.busy, headKey{r.Conversation, r.Head})
	}

	t.wakes = append(t.wakes, Wake{Kind: WakeStopped, Key: Key{Run: r.ID}, Agent: r.Agent, Generation: r.rings.ring(now)})
}

func (t *runTable) claimRuns(now time.Time, c ClaimRunsRequest) []ClaimedRun {
	var claimed []ClaimedRun
	for at := t.open.Front(); at != nil && len(claimed) < max(c.Limit, 1); at = at.Next() {
		// Leave out runs under a lease, runs not asked for, and runs of other agents. A run without a continuation has
		// no format: every worker with the agent can begin it.
		r := at.Value.(*runRow)
		switch {
		case r.LeaseUntil.After(now), c.Run != "" && r.ID != c.Run, !slices.Contains(c.Agents, r.Agent),
			r.Continuation != "" && !slices.Contains(c.Formats, r.Format):
			continue
		}

		// The new number makes an earlier lease an old one. The wake-ups have worked, so the wait for the next one is
		// short again.
		r.claim++
		r.State, r.Changed, r.Worker, r.LeaseUntil = RunRunning, now, c.Worker, now.Add(c.Lease)
		r.Claims++
		r.rings.again = 0

		next := ClaimedRun{Lease: Lease{Key: Key{Run: r.ID}, Worker: c.Worker, Claim: r.claim}, Run: r.Run}
		if r.Continuation != "" {
			next.Continuation = r.latest.continuation()
		}
		claimed = append(claimed, next)
	}
	return claimed
}

func (p *pauseRow) continuation() *Continuation {
	c := &Continuation{ID: p.Continuation, Format: p.Format, Payload: bytes.Clone(p.Payload)}
	for _, task := range p.tasks {
		c.Results = append(c.Results, task.Result.clone())
	}
	return c
}

func (r Result) clone() Result {
	r.Payload = bytes.Clone(r.Payload)
	return r
}

func (t *runTable) claimTasks(now time.Time, c ClaimTasksRequest) []ClaimedTask {
	var claimed []ClaimedTask
	for at := t.tasks.Front(); at != nil && len(claimed) < max(c.Limit, 1); at = at.Next() {
		// The list has no external call, because pause leaves it out, and no call with a result: close removes it.
		task := at.Value.(*taskRow)
		if task.LeaseUntil.After(now) || task.Exhausted(now) || !slices.Contains(c.Tools, task.Task.Tool) ||
			c.Key != (Key{}) && c.Key != task.Task.Key {
			continue
		}

		task.claim++
		task.Worker, task.LeaseUntil = c.Worker, now.Add(c.Lease)
		task.Claims++
		task.rings.again = 0

		next := ClaimedTask{
			Lease: Lease{Key: task.Task.Key, Worker: c.Worker, Claim: task.claim},
			Task:  task.Task.clone(), Attempt: task.Claims, Deadline: task.Deadline,
		}
		// A worker's own clock may differ, so it gets the time left as well.
		if !task.Deadline.IsZero() {
			next.Left = task.Deadline.Sub(now)
		}
		claimed = append(claimed, next)
	}
	return claimed
}

func (t Task) clone() Task {
	t.Payload = bytes.Clone(t.Payload)
	return t
}

// lease returns a pointer to the end of a lease, or an error if l is not the latest claim.
func (t *runTable) lease(l Lease) (until *time.Time, err error) {
	// The claim decides, not the time: an ended lease can be renewed if nobody has claimed the work since.
	lost := &RunError{Kind: ErrLeaseLost, Key: l.Key}
	if l.Key.Call == "" {
		r, err := t.find(l.Key)
		switch {
		case err != nil:
			return nil, err
		case r.State != RunRunning || r.claim != l.Claim:
			return nil, lost
		}
		return &r.LeaseUntil, nil
	}

	task, err := t.findTask(l.Key)
	switch {
	case err != nil:
		return nil, err
	case task.Done || task.claim != l.Claim:
		return nil, lost
	}
	return &task.LeaseUntil, nil
}

func (t *runTable) renew(now time.Time, l Lease, d time.Duration) error {
	until, err := t.lease(l)
	if err == nil {
		*until = now.Add(d)
	}
	return err
}

func (t *runTable) release(now time.Time, l Lease, d time.Duration, unused bool) error {
	until, err := t.lease(l)
	if err != nil {
		return err
	}

	// Take a claim number without a holder: from now on Renew and Commit refuse this lease.
	attempts := &t.runs[l.Key.Run].Claims
	if l.Key.Call == "" {
		r := t.runs[l.Key.Run]
		r.claim++
		r.Worker = ""
		t.makeReady(now, r)
	} else {
		task, _ := t.findTask(l.Key)
		task.claim++
		task.Worker = ""
		attempts = &task.Claims
		t.wakeTask(now, task)
		task.rings.again = 0
	}
	if unused {
		*attempts--
	}
	*until = now.Add(d)
	return nil
}

func (t *runTable) commit(now time.Time, s Step, appendNodes func(AppendRequest) (Head, error)) (head Head, err error) {
	r, err := t.find(s.Lease.Key)
	if err != nil {
		return head, err
	}
	if err := r.checkStep(s); err != nil {
		return head, err
	}

	// The last check. Nothing is refused from here on.
	if s.Append != nil {
		if head, err = appendNodes(*s.Append); err != nil {
			return Head{}, err
		}
	}

	if s.Consume != "" {
		r.latest.used, r.Continuation, r.Format = true, "", 0
	}

	// A step without a pause or an end leaves the run with its worker.
	switch {
	case s.Pause != nil:
		t.pause(now, r, *s.Pause)
	case s.End != "":
		t.rest(now, r, s.End, s.Reason)
	}
	return head, nil
}

// checkStep returns an error if the step is not possible for the run in its state, or with the lease of the step.
func (r *runRow) checkStep(s Step) error {
	switch key := (Key{Run: r.ID}); {
	case r.State.Ended():
		return &RunError{Kind: ErrRunEnded, Key: key, Detail: string(r.State)}
	case r.State != RunRunning || r.claim != s.Lease.Claim:
		return &RunError{Kind: ErrLeaseLost, Key: key}
	}
	return s.Fits(r.Run, func(continuation string) (had, used bool, err error) {
		p := r.pauses[continuation]
		return p != nil, p != nil && p.used, nil
	})
}

func (t *runTable) pause(now time.Time, r *runRow, p Pause) {
	// The row keeps no slice of the caller. Its calls are in row.tasks, with their states.
	row := &pauseRow{Pause: p, byID: map[string]*taskRow{}}
	row.Payload, row.Tasks = bytes.Clone(p.Payload), nil
	r.pauses[p.Continuation], r.latest = row, row
	r.Continuation, r.Format, r.Pending, r.Claims = p.Continuation, p.Format, len(p.Tasks), 0
	t.rest(now, r, RunWaiting, "")

	for _, task := range p.Tasks {
		task = task.clone()
		task.Key.Run, task.Key.Continuation = r.ID, p.Continuation
		added := &taskRow{run: r, TaskState: TaskState{Task: task}}
		if task.ResultTimeout != 0 {
			added.Deadline = now.Add(task.ResultTimeout)
		}
		row.tasks = append(row.tasks, added)
		row.byID[task.Key.Call] = added

		// The result of an external call comes through Accept alone: no worker can claim it.
		if !task.External {
			added.at = t.tasks.PushBack(added)
			t.wakeTask(now, added)
			added.rings.again = 0
		}
	}
}

func (t *runTable) accept(now time.Time, result Result) (ready bool, err error) {
	task, err := t.findTask(result.Key)
	if err != nil {
		return false, err
	}
	if task.Done {
		return false, task.Result.CheckSecond(result)
	}

	result = result.clone()
	result.Accepted = now
	t.close(task, result)

	// The last result makes the run ready, in the same transaction.
	r := task.run
	if r.Pending--; r.Pending > 0 {
		return false, nil
	}
	t.makeReady(now, r)
	return true, nil
}

// close stores the result of a call. The call can then no longer be claimed.
func (t *runTable) close(task *taskRow, result Result) {
	task.Done, task.Result, task.LeaseUntil = true, result, time.Time{}
	if task.at != nil {
		t.tasks.Remove(task.at)
		task.at = nil
	}
}

func (t *runTable) cancel(now time.Time, run, reason string) error {
	key := Key{Run: run}
	r, err := t.find(key)
	switch {
	case err != nil:
		return err
	case r.State == RunCancelled:
		return nil
	case r.State.Ended():
		return &RunError{Kind: ErrRunEnded, Key: key, Detail: string(r.State)}
	}

	// Close the open calls: no worker can claim one, and no result is accepted.
	if r.latest != nil {
		for _, task := range r.latest.tasks {
			if !task.Done {
				t.close(task, Result{Key: task.Task.Key, Outcome: OutcomeCancelled, Accepted: now})
			}
		}
	}

	r.Continuation, r.Format, r.Pending = "", 0, 0
	t.rest(now, r, RunCancelled, reason)
	return nil
}

func (t *runTable) requeue(now time.Time, run string) error {
	key := Key{Run: run}
	r, err := t.find(key)
	switch {
	case err != nil:
		return err
	case r.State.Ended():
		return &RunError{Kind: ErrRunEnded, Key: key, Detail: string(r.State)}
	case r.State != RunParked:
		return &RunError{Kind: ErrBusy, Key: key, Detail: string(r.State)}
	}

	r.Reason, r.Claims = "", 0
	t.makeReady(now, r)
	return nil
}

func (t *runTable) sweep(now time.Time, s SweepRequest) (swept Swept) {
	limit := cmp.Or(max(s.Limit, 0), 1000)

	// Ring for runs without a claim for a while.
	runs := 0
	for at := t.open.Front(); at != nil && runs < limit; at = at.Next() {
		r := at.Value.(*runRow)
		if r.LeaseUntil.After(now) || !r.rings.due(now, r.LeaseUntil, s.Grace) {
			continue
		}
		t.wakeRun(now, r)
		runs++
	}

	// List calls with no attempt or no time left, and ring for calls without a claim for a while.
	waiting := 0
	for at := t.tasks.Front(); at != nil && (waiting < limit || len(swept.Expired) < limit); at = at.Next() {
		task := at.Value.(*taskRow)
		leased := task.LeaseUntil.After(now)
		late := !task.Deadline.IsZero() && !task.Deadline.After(now)
		switch {
		case late, task.Exhausted(now) && !leased:
			if len(swept.Expired) < limit {
				swept.Expired = append(swept.Expired, task.state()) // it stays open until a result is accepted
			}
		case !leased && waiting < limit && task.rings.due(now, task.LeaseUntil, s.Grace):
			t.wakeTask(now, task)
			waiting++
		}
	}

	swept.Woken = len(t.wakes)
	return swept
}

func (t *runTable) stats(now time.Time) (s RunStats) {
	for _, r := range t.busy { // not t.runs: ended runs cost nothing
		age := now.Sub(r.Changed)
		switch r.State {
		case RunReady:
			s.Ready, s.OldestReady = s.Ready+1, max(s.OldestReady, age)
		case RunRunning:
			s.Running++
			if !r.LeaseUntil.After(now) {
				s.Lost++
			}
		case RunWaiting:
			s.Waiting, s.OldestWaiting = s.Waiting+1, max(s.OldestWaiting, age)
		case RunParked:
			s.Parked, s.OldestParked = s.Parked+1, max(s.OldestParked, age)
		}

		// Count the calls of the latest pause, unless its continuation is consumed.
		if r.Continuation == "" {
			continue
		}
		for _, task := range r.latest.tasks {
			if task.Done && task.Result.Outcome == OutcomeInDoubt {
				s.InDoubt++
			}
			if !task.Done {
				s.Calls.add(task.TaskState, now, age)
			}
		}
	}
	return s
}

// add counts a call without a result. Its age is the age of its pause.
func (s *CallStats) add(t TaskState, now time.Time, age time.Duration) {
	late := !t.Deadline.IsZero() && !t.Deadline.After(now)
	claimed := t.LeaseUntil.After(now)

	// The first matching case counts. A late call is exhausted even under a lease, and a call without attempts only
	// after the lease.
	switch {
	case t.Task.External:
		s.External++
		return
	case late, t.Exhausted(now) && !claimed:
		s.Exhausted++
		return
	case claimed:
		s.Claimed++
	default:
		s.Ready, s.OldestReady = s.Ready+1, max(s.OldestReady, age)
		if t.Claims > 0 {
			s.Lost++
		}
	}

	// Only claimed and ready calls come here.
	if t.Claims > 1 {
		s.Repeated++
	}
}

func (t *runTable) prune(now time.Time, p PruneRunsRequest) (pruned PrunedRuns) {
	// In the order of IDs: Last and After page through the runs.
	for _, id := range slices.Sorted(maps.Keys(t.runs)) {
		r := t.runs[id]
		if id <= p.After || !r.State.Ended() || now.Sub(r.Changed) < p.OlderThan {
			continue
		}

		pruned.Runs, pruned.Last = pruned.Runs+1, id
		for _, pause := range r.pauses {
			pruned.Bytes += int64(len(pause.Payload))
			for _, task := range pause.tasks {
				pruned.Calls++
				pruned.Bytes += int64(len(task.Task.Payload) + len(task.Result.Payload))
			}
		}

		// No other list has the run: rest removed it from open and busy, and its calls were closed before.
		if !p.DryRun {
			delete(t.runs, id)
		}
		if pruned.Runs == p.Max() {
			break
		}
	}
	return pruned
}

// state returns a copy without shared memory.
func (t *taskRow) state() TaskState {
	s := t.TaskState
	s.Task, s.Result = s.Task.clone(), s.Result.clone()
	return s
}

func (t *runTable) list(q ListRunsRequest) []Run {
	var list []Run
	for id, r := range t.runs {
		if id > q.After && (len(q.States) == 0 || slices.Contains(q.States, r.State)) &&
			(q.Conversation == "" || q.Conversation == r.Conversation) && (q.Agent == "" || q.Agent == r.Agent) {
			list = append(list, r.Run)
		}
	}
	slices.SortFunc(list, func(a, b Run) int { return cmp.Compare(a.ID, b.ID) })
	return list[:min(len(list), cmp.Or(max(q.Limit, 0), 100))]
}

func (t *runTable) taskStates(run string) ([]TaskState, error) {
	r, err := t.find(Key{Run: run})
	if err != nil || r.latest == nil {
		return nil, err
	}
	states := make([]TaskState, len(r.latest.tasks))
	for i, task := range r.latest.tasks {
		states[i] = task.state()
	}
	return states, nil
}
