package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// Runs is a [Driver] that also keeps durable runs: their states, the calls of paused runs, and the workers with claims
// on them. A database implements it; package durable uses it. The stored state alone decides. A wake-up is only a hint:
// a lost, doubled or late one does no harm.
//
// # Keys
//
// A run is named by its ID, a pause by (run, continuation), and a call by (run, continuation, call). See [Key].
//
// # Transactions
//
// Each method is one transaction. When the method returns nil, all of it is durable. When it returns one of the errors
// below, nothing has changed. After any other error it is unknown whether the transaction was committed: repeat the
// call, or read the state.
//
//   - Begin stores a new run with its first nodes, in the state [RunReady].
//   - ClaimRuns and ClaimTasks assign work to a worker for the time of a lease.
//   - Renew and Release prolong a lease and give it up.
//   - Commit is a step of a claimed run: it appends nodes, consumes a continuation, pauses the run or ends it.
//   - Accept stores the result of a call. The last result of a pause makes its run ready.
//   - Cancel ends a run from anywhere. Requeue makes a parked run ready.
//   - Sweep rings again for unclaimed work, and lists the calls without attempts or time left.
//   - PruneRuns removes runs that ended long ago.
//
// # Rules
//
// Claims:
//
//   - A lease is counted in the store's clock. The clock of a worker never matters.
//   - While a lease holds, nobody else gets the same run or call. A lease of zero or less ends at once.
//   - Each claim of a key has a number, from 1. Only the latest claim is a lease: Renew, Release and Commit of an older
//     one are refused with [ErrLeaseLost]. An ended lease can be renewed if nobody has claimed the work since.
//   - A call can be claimed at most Task.Attempts times, never after its deadline or its result, and only while its run
//     waits. A call with Task.External can never be claimed.
//   - A run can be claimed only by a worker with its agent and with the format of its continuation.
//   - The oldest work is claimed first.
//
// Steps:
//
//   - Commit checks the lease, the continuation and the head together. Then it changes all of them or nothing.
//   - A continuation is consumed once, and only with all of its results. The second time is [ErrContinuationUsed].
//   - An ended or cancelled run accepts no further step: [ErrRunEnded].
//   - A head of a conversation has at most one unfinished run: Begin of another one is [ErrBusy]. If the head was moved
//     otherwise, the error is a *[ConflictError].
//   - Begin with the ID of an existing run is [ErrRunExists].
//
// Results:
//
//   - The first accepted result of a call holds, even if its worker has lost the lease.
//   - An equal second result is no error and changes nothing. A different one is [ErrResultConflict].
//   - Each result is kept as it arrives. The run becomes ready with the last one, in the same transaction.
//   - After Cancel no result is accepted: [ErrRunEnded].
//
// An unknown key is [ErrNoRun]. Runs is safe for concurrent use, by any number of processes.
type Runs interface {
	Driver

	// Begin stores a new run.
	Begin(ctx context.Context, b BeginRequest) (Run, error)
	// ClaimRuns claims ready runs, and running ones after the end of their lease.
	ClaimRuns(ctx context.Context, c ClaimRunsRequest) ([]ClaimedRun, error)
	// ClaimTasks claims calls of paused runs.
	ClaimTasks(ctx context.Context, c ClaimTasksRequest) ([]ClaimedTask, error)
	// Renew lets the lease end after d from now. A cancelled run and a call with its result have lost their lease.
	Renew(ctx context.Context, l Lease, d time.Duration) error
	// Release gives the lease up. The work has no worker then, and can be claimed again after d. With unused, the claim
	// is not counted as an attempt: the worker has not begun.
	Release(ctx context.Context, l Lease, d time.Duration, unused bool) error
	// Commit is a step of a claimed run. It returns the head as it is afterwards; zero if nothing was appended.
	Commit(ctx context.Context, s Step) (Head, error)
	// Accept stores the result of a call. It reports whether this was the run's last missing result.
	Accept(ctx context.Context, r Result) (ready bool, err error)
	// Cancel ends a run that has not ended. Its open calls are closed with [OutcomeCancelled]. To cancel it again is
	// no error. For a run that ended otherwise the error is [ErrRunEnded].
	Cancel(ctx context.Context, run, reason string) error
	// Requeue makes a parked run ready, and forgets its claims. Any other run is [ErrRunEnded] or [ErrBusy].
	Requeue(ctx context.Context, run string) error
	// Sweep rings for work that has waited for a claim for s.Grace, then for twice as long, and so on. It returns the
	// expired calls: no result yet, and the attempts used up or the deadline passed. It does not close them: accept a
	// result for each.
	Sweep(ctx context.Context, s SweepRequest) (Swept, error)

	// PruneRuns removes runs that ended at least p.OlderThan ago, with their pauses, calls and results. It
	// changes no conversation and no other run.
	//
	//   - It removes at most p.Limit runs, in the order of their IDs, and returns the counts. With p.DryRun it returns
	//     the same counts, and removes nothing.
	//   - A removed run does not exist any more: its ID can be used again, and its keys are ErrNoRun.
	PruneRuns(ctx context.Context, p PruneRunsRequest) (PrunedRuns, error)

	// Run returns a run.
	Run(ctx context.Context, run string) (Run, error)
	// ListRuns returns runs in the order of their IDs.
	ListRuns(ctx context.Context, q ListRunsRequest) ([]Run, error)
	// Tasks returns the calls of the run's latest pause in their order, with their results.
	Tasks(ctx context.Context, run string) ([]TaskState, error)
	// Stats counts the unfinished runs, and the calls of their latest pauses. Its cost does not grow with the ended
	// runs.
	Stats(ctx context.Context) (RunStats, error)
	// Listen calls fn after each commit that makes work available or ends a run, until stop is called. Wake-ups may be
	// lost, doubled or out of order. A store need not deliver wake-ups of other processes. fn must return quickly and
	// must not call the store.
	Listen(fn func(Wake)) (stop func())
}

// Key names a run, one of its pauses, or a call of the pause. For a run only Run is set.
type Key struct {
	Run          string
	Continuation string
	Call         string
}

// String returns the nonempty parts, separated by slashes. Use it as the idempotency key of a call.
func (k Key) String() string {
	text := k.Run
	if k.Continuation != "" {
		text += "/" + k.Continuation
	}
	if k.Call != "" {
		text += "/" + k.Call
	}
	return text
}

// RunState is the state of a run.
type RunState string

// The states of a run.
const (
	// RunReady: it can be claimed. It is new, or has all of its results, or was released by its worker.
	RunReady RunState = "ready"
	// RunRunning: a worker has claimed it. When the lease ends, it can be claimed as well.
	RunRunning RunState = "running"
	// RunWaiting: it is paused, and waits for results.
	RunWaiting RunState = "waiting"
	// RunParked: it was set aside, because no worker could continue it. Requeue makes it ready.
	RunParked RunState = "parked"
	// RunDone: it has ended.
	RunDone RunState = "done"
	// RunFailed: it has ended with an error.
	RunFailed RunState = "failed"
	// RunCancelled: Cancel has ended it.
	RunCancelled RunState = "cancelled"
)

// Ended reports whether the run has ended.
func (s RunState) Ended() bool { return s == RunDone || s == RunFailed || s == RunCancelled }

// Run is a durable run as the store has it. All times are those of the store's clock.
type Run struct {
	ID string
	// Conversation and Head name the run's head.
	Conversation, Head string
	// Agent is the name of the run's agent.
	Agent string
	State RunState
	// Reason is why it ended or was parked.
	Reason string
	// Continuation is the ID of the pause to wait for or to resume; "" if there is none.
	Continuation string
	// Format is the format of the continuation.
	Format int
	// Pending counts the missing results of the pause.
	Pending int
	// Claims counts the claims of the run since it began, paused or was requeued.
	Claims int
	// Worker is the name of the latest worker, LeaseUntil the end of its lease. After Release, Worker is "", and
	// LeaseUntil the earliest time for the next claim of the run.
	Worker     string
	LeaseUntil time.Time
	// Began is when the run was stored, Changed when its state changed last.
	Began, Changed time.Time
}

// BeginRequest describes a new run.
type BeginRequest struct {
	Run, Agent string
	// Append names the conversation and the head, and holds the run's first nodes. It may hold none.
	Append AppendRequest
}

// ClaimRunsRequest selects runs for a worker to claim.
type ClaimRunsRequest struct {
	// Worker is the name of the worker. It is only shown, never compared.
	Worker string
	// Agents are the worker's agents, and Formats the formats of continuations it can read.
	Agents  []string
	Formats []int
	// Run, if it is set, is the only run to claim: the run of a wake-up.
	Run string
	// Lease is how long the claim holds without Renew.
	Lease time.Duration
	// Limit is the maximum number of runs to claim. Defaults to 1.
	Limit int
}

// ClaimTasksRequest selects calls for a worker to claim.
type ClaimTasksRequest struct {
	// Worker is the name of the worker. It is only shown, never compared.
	Worker string
	// Tools are the names of the worker's tools.
	Tools []string
	// Key, if it is set, is the only call to claim: the call of a wake-up.
	Key Key
	// Lease is how long the claim holds without Renew.
	Lease time.Duration
	// Limit is the maximum number of calls to claim. Defaults to 1.
	Limit int
}

// Lease is a worker's right to a claimed run or call. It ends by itself unless it is renewed.
type Lease struct {
	Key    Key
	Worker string
	// Claim is its number among the claims of the key, from 1.
	Claim int
}

// ClaimedRun is a run with the lease of its claim.
type ClaimedRun struct {
	Lease Lease
	Run   Run
	// Continuation is the pause to resume. It is nil if the run is new, or if an earlier worker consumed the
	// continuation and was lost.
	Continuation *Continuation
}

// Continuation is a pause with all of its results.
type Continuation struct {
	ID      string
	Format  int
	Payload []byte
	// Results are those of all of its calls, in the order of the tasks.
	Results []Result
}

// ClaimedTask is a call with the lease of its claim.
type ClaimedTask struct {
	Lease Lease
	Task  Task
	// Attempt counts the claims that are attempts, from 1 to Task.Attempts.
	Attempt int
	// Deadline is when the call is given up, in the store's clock; zero if there is none. A worker uses Left, because
	// its own clock may differ.
	Deadline time.Time
	// Left is the time from the claim to the deadline; zero if there is no deadline.
	Left time.Duration
}

// Task is a call of a paused run.
type Task struct {
	Key  Key
	Tool string
	// Payload holds everything a worker needs to execute the call.
	Payload []byte
	// Attempts is how many claims the call may have. 0 is no limit.
	Attempts int
	// ResultTimeout is how long after the pause the call must have its result. 0 is no limit.
	ResultTimeout time.Duration
	// External marks a call with a result from outside, such as an approval. No worker executes it.
	External bool
}

// TaskState is a call with its claims and its result.
type TaskState struct {
	Task Task
	// Claims counts the claims of the call. Worker is the name of the latest worker, LeaseUntil the end of its lease.
	// After Release, Worker is "", and LeaseUntil the earliest time for the next claim of the call.
	Claims     int
	Worker     string
	LeaseUntil time.Time
	// Deadline is zero if there is none.
	Deadline time.Time
	// Done reports whether the call has its result or its run was cancelled.
	Done   bool
	Result Result
}

// Step is one transaction of a run's worker. Its parts are executed in the order of the fields.
type Step struct {
	// Lease is the lease of the run.
	Lease Lease
	// Append holds nodes for the run's conversation and head. Nil appends nothing.
	Append *AppendRequest
	// Consume is the ID of the continuation to consume; "" is none.
	Consume string
	// Pause, if it is not nil, pauses the run and ends the lease.
	Pause *Pause
	// End, if it is not empty, ends the run or parks it, and ends the lease. It is RunDone, RunFailed or RunParked. A
	// parked run keeps its continuation.
	End RunState
	// Reason is stored with End.
	Reason string
}

// Pause is a continuation with its calls.
type Pause struct {
	Continuation string
	Format       int
	Payload      []byte
	// Tasks are the calls; there is at least one. The Run and Continuation of their keys are set by Commit.
	Tasks []Task
}

// Outcome is the kind of a result.
type Outcome string

// The outcomes.
const (
	// OutcomeOK: the call was executed.
	OutcomeOK Outcome = "ok"
	// OutcomeError: the call failed.
	OutcomeError Outcome = "error"
	// OutcomeTimeout: its deadline has passed.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeInDoubt: it may have been executed or not.
	OutcomeInDoubt Outcome = "in doubt"
	// OutcomeCancelled: its run was cancelled. There is no result.
	OutcomeCancelled Outcome = "cancelled"
)

// Result is the result of a call.
type Result struct {
	Key Key
	// Claim is the number of the worker's claim; 0 for a result from outside.
	Claim   int
	Worker  string
	Outcome Outcome
	// Payload is the result itself. Two results are equal if their outcomes and payloads are.
	Payload []byte
	// Accepted is when the store accepted the result.
	Accepted time.Time
}

// SweepRequest holds the settings of a sweep.
type SweepRequest struct {
	// Grace is how long work waits for a claim before the next wake-up.
	Grace time.Duration
	// Limit is the maximum number of runs, of expired calls, and of calls that wait for a claim in one sweep: one limit
	// for each of the three, so that work of one kind does not keep back that of another. Defaults to 1,000.
	Limit int
}

// Swept is the result of a sweep.
type Swept struct {
	// Woken is the number of wake-ups.
	Woken int
	// Expired are the calls with their attempts used up or their deadline passed, and no result.
	Expired []TaskState
}

// ListRunsRequest selects runs.
type ListRunsRequest struct {
	// States are the states to list. Defaults to all.
	States []RunState
	// Conversation and Agent, if set, list only the runs of these.
	Conversation, Agent string
	// After selects the runs with larger IDs. Give the last ID of a list to get the next one. "" begins at the first.
	After string
	// Limit is the maximum number of runs to return. Defaults to 100.
	Limit int
}

// RunStats counts the unfinished runs, and the calls of their latest pauses. Ages are in the store's clock.
type RunStats struct {
	// Ready, Running, Waiting and Parked are the runs in these states.
	Ready, Running, Waiting, Parked int
	// Lost are running runs after the end of their lease. Their worker is gone, and another one can claim them.
	Lost int
	// OldestReady, OldestWaiting and OldestParked are how long a run has been in this state, at most.
	OldestReady, OldestWaiting, OldestParked time.Duration
	// Calls are the calls of waiting runs without a result.
	Calls CallStats
	// InDoubt are the calls with the result [OutcomeInDoubt], of pauses not yet consumed. When the run continues, they
	// are no longer counted.
	InDoubt int
}

// CallStats counts calls without a result. Each is in one of Ready, Claimed, External and Exhausted.
type CallStats struct {
	// Ready can be claimed now. OldestReady is how long one of them has waited since its pause, at most.
	Ready       int
	OldestReady time.Duration
	// Claimed are under a lease, or were given back and wait to be repeated.
	Claimed int
	// External wait for a result from outside, such as an approval.
	External int
	// Exhausted cannot be claimed any more, because their deadline has passed or their attempts are used up. The next
	// sweep gives them a result.
	Exhausted int
	// Lost are the ones in Ready with an earlier claim: their worker is gone.
	Lost int
	// Repeated are the ones in Ready and Claimed with more than one claim.
	Repeated int
}

// PruneRunsRequest selects runs to remove.
type PruneRunsRequest struct {
	// OlderThan is the minimum time since the end of a run, in the store's clock. Zero or less is every ended run.
	OlderThan time.Duration
	// After selects the runs with larger IDs. Give PrunedRuns.Last to remove the next ones. "" begins at the first.
	After string
	// Limit is the maximum number of runs to remove. Defaults to 100, and is at most 10,000.
	Limit int
	// DryRun removes nothing.
	DryRun bool
}

// Max returns Limit, its default, or the largest limit. Databases limit the number of parameters in a statement.
func (p PruneRunsRequest) Max() int {
	if p.Limit <= 0 {
		return 100
	}
	return min(p.Limit, 10_000)
}

// PrunedRuns holds the counts of [Runs].PruneRuns.
type PrunedRuns struct {
	// Runs and Calls are the numbers of both.
	Runs, Calls int
	// Bytes is the size of the continuations, the calls and the results.
	Bytes int64
	// Last is the ID of the last run; "" if there was no run to remove after PruneRunsRequest.After.
	Last string
}

// WakeKind is the kind of a wake-up.
type WakeKind string

// The kinds of wake-ups.
const (
	// WakeRun: a run can be claimed.
	WakeRun WakeKind = "run"
	// WakeTask: a call can be claimed.
	WakeTask WakeKind = "task"
	// WakeStopped: a run has ended, was parked or waits.
	WakeStopped WakeKind = "stopped"
)

// Wake is a wake-up: a hint that a run or a call can be claimed, or that a run has stopped.
type Wake struct {
	Kind WakeKind
	Key  Key
	// Agent is the name of the run's agent, Tool the name of the call's tool.
	Agent, Tool string
	// Generation counts the wake-ups for the same work. It keeps them distinct in queues that drop duplicates.
	Generation int
}

// Errors of [Runs], for errors.Is; a [RunError] names the key.
var (
	// ErrNoRun: there is no such run, continuation or call.
	ErrNoRun = errors.New("there is no such run")
	// ErrRunExists: a run has this ID already.
	ErrRunExists = errors.New("the run exists already")
	// ErrBusy: the head has an unfinished run.
	ErrBusy = errors.New("the head has a run that has not ended")
	// ErrRunEnded: the run has ended, or does not wait any more.
	ErrRunEnded = errors.New("the run has ended")
	// ErrLeaseLost: the lease is not the latest claim any more, or the work is done.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrContinuationUsed: the continuation was consumed before.
	ErrContinuationUsed = errors.New("the continuation was used before")
	// ErrResultConflict: the call has another result already.
	ErrResultConflict = errors.New("another result was accepted before")
	// ErrStep: the step is not valid in any state of a run, or not in this one. It is a mistake of the program.
	ErrStep = errors.New("the step is not valid")
)

// RunError reports why a transaction of [Runs] was refused. Nothing was changed.
type RunError struct {
	// Kind is one of the errors above; errors.Is finds it.
	Kind error
	Key  Key
	// Detail has the reason; it may be empty.
	Detail string
}

// Error returns the kind, the key and the detail.
func (e *RunError) Error() string {
	text := fmt.Sprintf("store: %v: %q", e.Kind, e.Key.String())
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns Kind.
func (e *RunError) Unwrap() error { return e.Kind }

// Check returns an error for an invalid run. It needs no stored state. Every store calls it first.
func (b BeginRequest) Check() error {
	if b.Run == "" {
		return &RunError{Kind: ErrStep, Detail: "it has no ID"}
	}
	return b.Append.Check()
}

// Check returns an error for an invalid step. It needs no stored state. Every store calls it first.
func (s Step) Check() error {
	refused := func(detail string) error { return &RunError{Kind: ErrStep, Key: s.Lease.Key, Detail: detail} }

	// The other states have methods of their own: a pause makes a run wait, and only Cancel cancels it.
	switch {
	case s.Pause != nil && s.End != "":
		return refused("it pauses and ends")
	case s.End != "" && s.End != RunDone && s.End != RunFailed && s.End != RunParked:
		return refused("it ends as " + string(s.End))
	}

	if s.Append != nil {
		if err := s.Append.Check(); err != nil {
			return err
		}
	}
	if s.Pause == nil {
		return nil
	}

	if s.Pause.Continuation == "" {
		return refused("the continuation has no ID")
	}
	// The last result makes a waiting run ready. Without a call there would be none, and the run would wait forever.
	if len(s.Pause.Tasks) == 0 {
		return refused("it waits for no call")
	}

	// A result names its call by the key.
	seen := map[string]bool{}
	for _, task := range s.Pause.Tasks {
		if task.Key.Call == "" || seen[task.Key.Call] {
			return refused("a call has no ID of its own")
		}
		seen[task.Key.Call] = true
	}
	return nil
}

// Fits returns an error if the step is not possible for a claimed run. The lease and the version of the head are not
// checked. known reports whether the run has had a continuation, and whether it was consumed. Every store calls Fits.
func (s Step) Fits(r Run, known func(continuation string) (had, used bool, err error)) error {
	key := Key{Run: r.ID}
	refused := func(kind error, detail string) error { return &RunError{Kind: kind, Key: key, Detail: detail} }

	if s.Append != nil && (s.Append.Conversation != r.Conversation || s.Append.Head != r.Head) {
		return refused(ErrStep, "it appends to another head")
	}

	// The step must consume a pause of this run, once.
	if s.Consume != "" {
		key.Continuation = s.Consume
		switch had, used, err := known(s.Consume); {
		case err != nil:
			return err
		case !had:
			return refused(ErrNoRun, "")
		case used:
			return refused(ErrContinuationUsed, "")
		}
	}

	// A new pause needs an ID of its own, and the pause before it must be consumed.
	if s.Pause != nil {
		key.Continuation = ""
		had, _, err := known(s.Pause.Continuation)
		switch {
		case err != nil:
			return err
		case had:
			return refused(ErrStep, "the continuation has no ID of its own")
		case r.Continuation != "" && s.Consume == "":
			return refused(ErrStep, "it pauses, and the pause before is not consumed")
		}
	}
	return nil
}

// CheckSecond returns the error for a second result of a call after r was accepted, or nil if both are equal.
func (r Result) CheckSecond(second Result) error {
	switch {
	case r.Outcome == OutcomeCancelled: // Cancel closed the call: there is no result to compare with
		return &RunError{Kind: ErrRunEnded, Key: second.Key, Detail: string(RunCancelled)}
	case r.Outcome != second.Outcome || !bytes.Equal(r.Payload, second.Payload):
		return &RunError{Kind: ErrResultConflict, Key: second.Key}
	}
	return nil
}

// Exhausted reports whether the call cannot be claimed any more at a time in the store's clock: its deadline has
// passed, or its attempts are used up.
func (t TaskState) Exhausted(now time.Time) bool {
	late := !t.Deadline.IsZero() && !t.Deadline.After(now)
	return late || t.Task.Attempts > 0 && t.Claims >= t.Task.Attempts
}
