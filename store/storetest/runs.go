package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// RunRuns checks a driver against the rules of [store.Runs], with one subtest for each. NewRuns returns an empty store,
// and closes it with t.Cleanup.
//
// Leases in the suite are over at once or last for an hour: no case waits.
func RunRuns(t *testing.T, newRuns func(t *testing.T) store.Runs) {
	for _, c := range runCases {
		t.Run(c.name, func(t *testing.T) { c.check(&runsTest{T: t, Runs: newRuns(t), ctx: context.Background()}) })
	}
}

// runCases has a case for each rule of the interface comment, in its order.
var runCases = []struct {
	name  string
	check func(t *runsTest)
}{
	{"begin stores the run and its nodes", (*runsTest).beginStores},
	{"a refused begin stores nothing", (*runsTest).refusedBegin},
	{"an ID is used once", (*runsTest).existing},
	{"a head has one run that has not ended", (*runsTest).busy},
	{"a lease keeps others away", (*runsTest).leaseKeeps},
	{"a lease that has ended passes on", (*runsTest).leasePasses},
	{"only the latest claim is a lease", (*runsTest).latestClaim},
	{"a lease that ended and was not claimed is renewed", (*runsTest).renewEnded},
	{"a released lease is lost", (*runsTest).released},
	{"an unused claim is no attempt", (*runsTest).unused},
	{"attempts are limited", (*runsTest).attempts},
	{"a deadline ends the claims", (*runsTest).deadline},
	{"external calls are never claimed", (*runsTest).external},
	{"calls are given out by tool", (*runsTest).byTool},
	{"calls are given out by key", (*runsTest).byKey},
	{"runs are given out by agent and format", (*runsTest).byAgent},
	{"the oldest work comes first", (*runsTest).oldest},
	{"a step appends and pauses together", (*runsTest).stepTogether},
	{"a refused step changes nothing", (*runsTest).refusedStep},
	{"a step with a lost lease changes nothing", (*runsTest).lostStep},
	{"a continuation is consumed once", (*runsTest).consumedOnce},
	{"a continuation is consumed with its results", (*runsTest).consumedWithResults},
	{"an unconsumed pause stays", (*runsTest).unconsumed},
	{"a step that makes no sense is refused", (*runsTest).senseless},
	{"a run that has ended takes no step", (*runsTest).endedStep},
	{"results one by one are kept", (*runsTest).oneByOne},
	{"the first result holds", (*runsTest).firstResult},
	{"an equal result is no error", (*runsTest).equalResult},
	{"a different result is refused", (*runsTest).differentResult},
	{"a result after the run went on", (*runsTest).resultAfterwards},
	{"cancel closes everything", (*runsTest).cancel},
	{"cancel of a run that has ended", (*runsTest).cancelEnded},
	{"a parked run keeps its continuation", (*runsTest).parked},
	{"sweep wakes for what nobody took", (*runsTest).sweepWakes},
	{"sweep lists what nobody can claim", (*runsTest).sweepExpired},
	{"sweep has a limit for each kind of work", (*runsTest).sweepLimit},
	{"runs that ended long ago are removed", (*runsTest).pruneRuns},
	{"runs are removed in parts", (*runsTest).pruneParts},
	{"a run that has not ended is never removed", (*runsTest).pruneOpen},
	{"retention keeps what runs, heads and forks need", (*runsTest).retention},
	{"stats count what has not ended", (*runsTest).stats},
	{"runs are listed in pages", (*runsTest).listed},
	{"keys that do not exist", (*runsTest).unknown},
	{"texts are kept byte by byte", (*runsTest).texts},
	{"listeners hear of work", (*runsTest).listeners},
	{"a context that is done changes nothing", (*runsTest).doneContext},
	{"many claim, each gets one", (*runsTest).claimRace},
	{"many accept, one result holds", (*runsTest).acceptRace},
	{"many consume, one does", (*runsTest).consumeRace},
}

// runsTest is one case.
type runsTest struct {
	*testing.T
	store.Runs
	ctx context.Context
}

const (
	held  = time.Hour
	ended = -time.Second // a lease of it has ended when it begins
)

// record returns a new record.
func record() store.Record {
	id := node.ID(uuid.New())
	line := []byte(fmt.Sprintf(`{"id":%q}`, id))
	return store.Record{ID: id, Line: line, Sum: store.SumOf(line)}
}

// nodes returns an append of one record to head "main" of a conversation.
func nodes(conversation string, expect uint64) store.AppendRequest {
	r := record()
	return store.AppendRequest{
		Conversation: conversation, Head: "main", Expect: expect, Records: []store.Record{r}, Nodes: []node.ID{r.ID},
	}
}

// begin stores a run in a conversation of its own.
func (t *runsTest) begin(run string) store.Run {
	t.Helper()
	r, err := t.Begin(t.ctx, store.BeginRequest{Run: run, Agent: "agent", Append: nodes("of "+run, 0)})
	require.NoError(t, err)
	return r
}

func (t *runsTest) claimRun(lease time.Duration) store.ClaimedRun {
	t.Helper()
	claimed := t.tryRun(lease)
	require.Len(t, claimed, 1)
	return claimed[0]
}

func (t *runsTest) tryRun(lease time.Duration) []store.ClaimedRun {
	t.Helper()
	claimed, err := t.ClaimRuns(t.ctx, store.ClaimRunsRequest{
		Worker: "engine", Agents: []string{"agent"}, Formats: []int{1}, Lease: lease,
	})
	require.NoError(t, err)
	return claimed
}

func (t *runsTest) claimTask(lease time.Duration) store.ClaimedTask {
	t.Helper()
	claimed := t.tryTask(lease)
	require.Len(t, claimed, 1)
	return claimed[0]
}

func (t *runsTest) tryTask(lease time.Duration) []store.ClaimedTask {
	t.Helper()
	claimed, err := t.ClaimTasks(t.ctx, store.ClaimTasksRequest{Worker: "worker", Tools: []string{"tool"}, Lease: lease})
	require.NoError(t, err)
	return claimed
}

func task(call string) store.Task {
	return store.Task{Key: store.Key{Call: call}, Tool: "tool", Payload: []byte("arguments of " + call)}
}

// pause begins a run and pauses it for the tasks, with continuation "p1".
func (t *runsTest) pause(run string, tasks ...store.Task) {
	t.Helper()
	t.begin(run)
	t.pauseClaimed(t.claimRun(held).Lease, "p1", tasks...)
}

func (t *runsTest) pauseClaimed(l store.Lease, continuation string, tasks ...store.Task) {
	t.Helper()
	_, err := t.Commit(t.ctx, store.Step{Lease: l, Pause: &store.Pause{
		Continuation: continuation, Format: 1, Payload: []byte("state of " + continuation), Tasks: tasks,
	}})
	require.NoError(t, err)
}

func result(run, call, text string) store.Result {
	return store.Result{
		Key: store.Key{Run: run, Continuation: "p1", Call: call}, Outcome: store.OutcomeOK, Payload: []byte(text),
	}
}

// accept accepts a result and reports whether it was the last one.
func (t *runsTest) accept(run, call, text string) bool {
	t.Helper()
	ready, err := t.Accept(t.ctx, result(run, call, text))
	require.NoError(t, err)
	return ready
}

func (t *runsTest) run(run string) store.Run {
	t.Helper()
	r, err := t.Run(t.ctx, run)
	require.NoError(t, err)
	return r
}

// Run returns a run: the method of the store, not of testing.T.
func (t *runsTest) Run(ctx context.Context, run string) (store.Run, error) {
	return t.Runs.Run(ctx, run)
}

func (t *runsTest) state(run string, want store.RunState) {
	t.Helper()
	require.Equal(t, want, t.run(run).State)
}

// refused requires an error with this kind and key.
func (t *runsTest) refused(err, kind error, key string) {
	t.Helper()
	require.ErrorIs(t, err, kind)
	var refused *store.RunError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, key, refused.Key.String())
}

func (t *runsTest) version(conversation string) uint64 {
	t.Helper()
	head, err := t.Head(t.ctx, conversation, "main")
	require.NoError(t, err)
	return head.Version
}

func (t *runsTest) beginStores() {
	r := t.begin("r")
	require.Equal(t, store.RunReady, r.State)
	require.Equal(t, "of r", r.Conversation)
	require.Equal(t, "main", r.Head)
	require.Equal(t, "agent", r.Agent)
	require.EqualValues(t, 1, t.version("of r"))

	again := t.run("r")
	require.Equal(t, r.State, again.State)
	require.Equal(t, r.Conversation, again.Conversation)
}

func (t *runsTest) refusedBegin() {
	// The head does not have version 7.
	_, err := t.Begin(t.ctx, store.BeginRequest{Run: "r", Agent: "agent", Append: nodes("c", 7)})
	require.ErrorIs(t, err, store.ErrMoved)
	_, err = t.Run(t.ctx, "r")
	t.refused(err, store.ErrNoRun, "r")

	// Invalid requests.
	_, err = t.Begin(t.ctx, store.BeginRequest{Run: "", Agent: "agent", Append: nodes("c", 0)})
	t.refused(err, store.ErrStep, "")
	_, err = t.Begin(t.ctx, store.BeginRequest{Run: "r", Agent: "agent", Append: store.AppendRequest{Conversation: "c"}})
	require.ErrorIs(t, err, store.ErrName)
	require.Empty(t, t.tryRun(held))
}

func (t *runsTest) existing() {
	t.begin("r")

	// Not even on another head.
	_, err := t.Begin(t.ctx, store.BeginRequest{Run: "r", Agent: "agent", Append: nodes("other", 0)})
	t.refused(err, store.ErrRunExists, "r")
	_, err = t.Head(t.ctx, "other", "main")
	require.ErrorIs(t, err, store.ErrNotStored)
}

func (t *runsTest) busy() {
	t.begin("r")
	_, err := t.Begin(t.ctx, store.BeginRequest{Run: "r2", Agent: "agent", Append: nodes("of r", 1)})
	t.refused(err, store.ErrBusy, "r")
	require.EqualValues(t, 1, t.version("of r"))

	// An ended run frees its head.
	require.NoError(t, t.Cancel(t.ctx, "r", ""))
	_, err = t.Begin(t.ctx, store.BeginRequest{Run: "r2", Agent: "agent", Append: nodes("of r", 1)})
	require.NoError(t, err)
}

func (t *runsTest) leaseKeeps() {
	t.begin("r")
	first := t.claimRun(held)
	require.Equal(t, store.Lease{Key: store.Key{Run: "r"}, Worker: "engine", Claim: 1}, first.Lease)
	require.Nil(t, first.Continuation)
	t.state("r", store.RunRunning)
	require.Empty(t, t.tryRun(held))

	// The same holds for calls.
	t.pauseClaimed(first.Lease, "p1", task("a"))
	claimed := t.claimTask(held)
	require.Equal(t, "arguments of a", string(claimed.Task.Payload))
	require.Equal(t, store.Key{Run: "r", Continuation: "p1", Call: "a"}, claimed.Lease.Key)
	require.Empty(t, t.tryTask(held))
}

func (t *runsTest) leasePasses() {
	t.begin("r")
	first := t.claimRun(ended)
	second := t.claimRun(held)
	require.Greater(t, second.Lease.Claim, first.Lease.Claim)

	// The same holds for calls.
	t.pauseClaimed(second.Lease, "p1", task("a"))
	one, two := t.claimTask(ended), t.claimTask(held)
	require.Greater(t, two.Lease.Claim, one.Lease.Claim)
}

func (t *runsTest) latestClaim() {
	t.begin("r")
	old, current := t.claimRun(ended).Lease, t.claimRun(held).Lease
	t.refused(t.Renew(t.ctx, old, held), store.ErrLeaseLost, "r")
	t.refused(t.Release(t.ctx, old, 0, false), store.ErrLeaseLost, "r")
	require.NoError(t, t.Renew(t.ctx, current, held))

	t.pauseClaimed(current, "p1", task("a"))
	old, current = t.claimTask(ended).Lease, t.claimTask(held).Lease
	t.refused(t.Renew(t.ctx, old, held), store.ErrLeaseLost, "r/p1/a")
	t.refused(t.Release(t.ctx, old, 0, false), store.ErrLeaseLost, "r/p1/a")
	require.NoError(t, t.Renew(t.ctx, current, held))

	// A call with its result is leased to nobody.
	t.accept("r", "a", "x")
	t.refused(t.Renew(t.ctx, current, held), store.ErrLeaseLost, "r/p1/a")
}

func (t *runsTest) renewEnded() {
	t.pause("r", task("a"))
	claimed := t.claimTask(ended)
	require.NoError(t, t.Renew(t.ctx, claimed.Lease, held))
	require.Empty(t, t.tryTask(held))
}

func (t *runsTest) released() {
	t.pause("r", task("a"))
	lease := t.claimTask(held).Lease
	// worker returns the name of the latest worker, and whether the lease has no end.
	worker := func() (string, bool) {
		states, err := t.Tasks(t.ctx, "r")
		require.NoError(t, err)
		return states[0].Worker, states[0].LeaseUntil.IsZero()
	}
	name, never := worker()
	require.NotEmpty(t, name)
	require.False(t, never)

	require.NoError(t, t.Release(t.ctx, lease, held, false))
	name, never = worker()
	require.Empty(t, name)
	require.False(t, never, "it has the time of its repetition")
	require.Empty(t, t.tryTask(held), "it is not yet time")
	t.refused(t.Renew(t.ctx, lease, held), store.ErrLeaseLost, "r/p1/a")

	// A run can be claimed again at once, and its old lease is lost.
	t.begin("r2")
	run := t.claimRun(held).Lease
	require.NoError(t, t.Release(t.ctx, run, 0, false))
	t.state("r2", store.RunReady)
	require.Empty(t, t.run("r2").Worker)
	_, err := t.Commit(t.ctx, store.Step{Lease: run, End: store.RunDone})
	t.refused(err, store.ErrLeaseLost, "r2")
	require.Greater(t, t.claimRun(held).Lease.Claim, run.Claim)
}

func (t *runsTest) unused() {
	once := task("a")
	once.Attempts = 1
	t.pause("r", once)

	// The first claim is given back unused, so the second one is still attempt 1.
	lease := t.claimTask(held).Lease
	require.NoError(t, t.Release(t.ctx, lease, ended, true))
	again := t.claimTask(held)
	require.Equal(t, 1, again.Attempt)
	require.Greater(t, again.Lease.Claim, lease.Claim)
	require.NoError(t, t.Release(t.ctx, again.Lease, ended, false))
	require.Empty(t, t.tryTask(held), "the attempt is used up")
}

func (t *runsTest) attempts() {
	twice := task("a")
	twice.Attempts = 2
	t.pause("r", twice)
	require.Equal(t, 1, t.claimTask(ended).Attempt)
	require.Equal(t, 2, t.claimTask(ended).Attempt)
	require.Empty(t, t.tryTask(held))
}

func (t *runsTest) deadline() {
	late, early := task("a"), task("b")
	late.ResultTimeout, early.ResultTimeout = ended, held
	t.pause("r", late, early)

	// The call after its deadline is left out.
	claimed := t.claimTask(held)
	require.Equal(t, "b", claimed.Task.Key.Call)
	require.Greater(t, claimed.Left, held/2)
	require.LessOrEqual(t, claimed.Left, held)
	require.Empty(t, t.tryTask(held))

	// The late worker is still the first.
	require.False(t, t.accept("r", "a", "x"))
}

func (t *runsTest) external() {
	approval := task("a")
	approval.External = true
	t.pause("r", approval)
	require.Empty(t, t.tryTask(held))
	require.True(t, t.accept("r", "a", "yes"))
	require.Equal(t, "yes", string(t.claimRun(held).Continuation.Results[0].Payload))
}

func (t *runsTest) byTool() {
	other := task("a")
	other.Tool = "other"
	t.pause("r", other, task("b"))
	require.Equal(t, "b", t.claimTask(held).Task.Key.Call)
	require.Empty(t, t.tryTask(held))
	claimed, err := t.ClaimTasks(t.ctx, store.ClaimTasksRequest{Tools: []string{"tool", "other"}, Lease: held, Limit: 5})
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	require.Equal(t, "other", claimed[0].Task.Tool)
}

func (t *runsTest) byKey() {
	t.pause("r", task("a"), task("b"))
	key := store.Key{Run: "r", Continuation: "p1", Call: "b"}
	for _, want := range []int{1, 0} {
		claimed, err := t.ClaimTasks(t.ctx, store.ClaimTasksRequest{Tools: []string{"tool"}, Key: key, Lease: held, Limit: 5})
		require.NoError(t, err)
		require.Len(t, claimed, want)
	}
	require.Equal(t, "a", t.claimTask(held).Task.Key.Call)

	// The same holds for runs.
	t.begin("r2")
	t.begin("r3")
	claimed, err := t.ClaimRuns(t.ctx, store.ClaimRunsRequest{Agents: []string{"agent"}, Run: "r3", Lease: held, Limit: 5})
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	require.Equal(t, "r3", claimed[0].Run.ID)
}

func (t *runsTest) byAgent() {
	t.begin("r")
	claimed, err := t.ClaimRuns(t.ctx, store.ClaimRunsRequest{Agents: []string{"other"}, Formats: []int{1}, Lease: held})
	require.NoError(t, err)
	require.Empty(t, claimed)

	// A paused run needs a worker with the format of its continuation.
	t.pauseClaimed(t.claimRun(held).Lease, "p1", task("a"))
	require.True(t, t.accept("r", "a", "x"))
	claimed, err = t.ClaimRuns(t.ctx, store.ClaimRunsRequest{Agents: []string{"agent"}, Formats: []int{2}, Lease: held})
	require.NoError(t, err)
	require.Empty(t, claimed, "its continuation has format 1")
	require.Equal(t, "r", t.claimRun(held).Run.ID)
}

func (t *runsTest) oldest() {
	for _, run := range []string{"r3", "r1", "r2"} {
		t.begin(run)
	}
	for _, run := range []string{"r3", "r1", "r2"} {
		claimed := t.claimRun(held)
		require.Equal(t, run, claimed.Run.ID)
		t.pauseClaimed(claimed.Lease, "p1", task("b"), task("a"))
	}
	for _, want := range []string{"r3/p1/b", "r3/p1/a", "r1/p1/b", "r1/p1/a", "r2/p1/b", "r2/p1/a"} {
		require.Equal(t, want, t.claimTask(held).Lease.Key.String())
	}
}

func (t *runsTest) stepTogether() {
	t.begin("r")
	l := t.claimRun(held).Lease
	step := nodes("of r", 1)
	head, err := t.Commit(t.ctx, store.Step{Lease: l, Append: &step})
	require.NoError(t, err)
	require.EqualValues(t, 2, head.Version)
	t.state("r", store.RunRunning)

	// Append and pause in one step: the head, the run and its calls change together.
	step = nodes("of r", 2)
	head, err = t.Commit(t.ctx, store.Step{Lease: l, Append: &step, Pause: &store.Pause{
		Continuation: "p1", Format: 1, Payload: []byte("state"), Tasks: []store.Task{task("a"), task("b")},
	}})
	require.NoError(t, err)
	require.EqualValues(t, 3, head.Version)
	run := t.run("r")
	require.Equal(t, store.RunWaiting, run.State)
	require.Equal(t, "p1", run.Continuation)
	require.Equal(t, 1, run.Format)
	require.Equal(t, 2, run.Pending)
	require.Zero(t, run.Claims)
}

func (t *runsTest) refusedStep() {
	t.begin("r")
	l := t.claimRun(held).Lease
	step := nodes("of r", 9)
	_, err := t.Commit(t.ctx, store.Step{Lease: l, Append: &step, Pause: &store.Pause{
		Continuation: "p1", Tasks: []store.Task{task("a")},
	}})
	var conflict *store.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.EqualValues(t, 1, conflict.Current.Version)

	// Neither the pause nor its call is stored, and the lease holds.
	t.state("r", store.RunRunning)
	require.Empty(t, t.tryTask(held))
	require.NoError(t, t.Renew(t.ctx, l, held))
}

func (t *runsTest) lostStep() {
	t.begin("r")
	old, current := t.claimRun(ended).Lease, t.claimRun(held).Lease
	step := nodes("of r", 1)
	_, err := t.Commit(t.ctx, store.Step{Lease: old, Append: &step, End: store.RunDone})
	t.refused(err, store.ErrLeaseLost, "r")
	require.EqualValues(t, 1, t.version("of r"))
	t.state("r", store.RunRunning)

	// The latest claim may take the same step.
	_, err = t.Commit(t.ctx, store.Step{Lease: current, Append: &step, End: store.RunDone, Reason: "end_turn"})
	require.NoError(t, err)
	t.state("r", store.RunDone)
	require.Equal(t, "end_turn", t.run("r").Reason)
}

// resumed returns the lease of a run after one pause with its result.
func (t *runsTest) resumed(run string) store.Lease {
	t.Helper()
	t.pause(run, task("a"))
	require.True(t, t.accept(run, "a", "x"))
	return t.claimRun(held).Lease
}

func (t *runsTest) consumedOnce() {
	l := t.resumed("r")
	step := nodes("of r", 1)
	_, err := t.Commit(t.ctx, store.Step{Lease: l, Append: &step, Consume: "p1"})
	require.NoError(t, err)
	require.Empty(t, t.run("r").Continuation)

	// A second time nothing is stored, not even the nodes.
	step = nodes("of r", 2)
	_, err = t.Commit(t.ctx, store.Step{Lease: l, Append: &step, Consume: "p1"})
	t.refused(err, store.ErrContinuationUsed, "r/p1")
	require.EqualValues(t, 2, t.version("of r"))

	// The next worker does not get it again.
	require.NoError(t, t.Renew(t.ctx, l, ended))
	require.Nil(t, t.claimRun(held).Continuation)
}

func (t *runsTest) consumedWithResults() {
	// The results come in another order than the calls.
	t.pause("r", task("b"), task("a"))
	t.accept("r", "a", "of a")
	require.Empty(t, t.tryRun(held), "a result is missing")
	t.accept("r", "b", "of b")
	t.state("r", store.RunReady)

	c := t.claimRun(held).Continuation
	require.NotNil(t, c)
	require.Equal(t, "p1", c.ID)
	require.Equal(t, 1, c.Format)
	require.Equal(t, "state of p1", string(c.Payload))
	require.Len(t, c.Results, 2)
	require.Equal(t, "of b", string(c.Results[0].Payload), "in the order of the tasks")
	require.Equal(t, "of a", string(c.Results[1].Payload))
	require.Equal(t, store.OutcomeOK, c.Results[0].Outcome)
	require.Equal(t, "r/p1/b", c.Results[0].Key.String())
}

func (t *runsTest) unconsumed() {
	t.pause("r", task("a"))
	t.accept("r", "a", "x")
	first := t.claimRun(ended)
	require.NotNil(t, first.Continuation)
	second := t.claimRun(held)
	require.Equal(t, first.Continuation.Results[0].Payload, second.Continuation.Results[0].Payload)

	// A new pause has to consume the one before.
	_, err := t.Commit(t.ctx, store.Step{Lease: second.Lease, Pause: &store.Pause{
		Continuation: "p2", Tasks: []store.Task{task("b")},
	}})
	t.refused(err, store.ErrStep, "r")
}

func (t *runsTest) senseless() {
	t.begin("r")
	l := t.claimRun(held).Lease
	elsewhere := nodes("elsewhere", 0)
	one := []store.Task{task("a")}

	for name, step := range map[string]store.Step{
		"another head":      {Append: &elsewhere},
		"pause and end":     {Pause: &store.Pause{Continuation: "p", Tasks: one}, End: store.RunDone},
		"end as waiting":    {End: store.RunWaiting},
		"end as cancelled":  {End: store.RunCancelled},
		"pause without ID":  {Pause: &store.Pause{Tasks: one}},
		"no call":           {Pause: &store.Pause{Continuation: "p"}},
		"call without ID":   {Pause: &store.Pause{Continuation: "p", Tasks: []store.Task{{Tool: "tool"}}}},
		"one call twice":    {Pause: &store.Pause{Continuation: "p", Tasks: []store.Task{task("a"), task("a")}}},
		"consume and reuse": {},
	} {
		// This case alone needs an earlier pause. It may come before others, so they use its new lease.
		if name == "consume and reuse" {
			t.pauseClaimed(l, "p1", task("a"))
			t.accept("r", "a", "x")
			l = t.claimRun(held).Lease
			step = store.Step{Consume: "p1", Pause: &store.Pause{Continuation: "p1", Tasks: one}}
		}

		step.Lease = l
		_, err := t.Commit(t.ctx, step)
		require.ErrorIs(t, err, store.ErrStep, name)
		t.state("r", store.RunRunning)
	}

	_, err := t.Head(t.ctx, "elsewhere", "main")
	require.ErrorIs(t, err, store.ErrNotStored)
}

func (t *runsTest) endedStep() {
	t.begin("r")
	l := t.claimRun(held).Lease
	require.NoError(t, t.Cancel(t.ctx, "r", "no longer needed"))

	// The worker does not know yet of the cancellation.
	step := nodes("of r", 1)
	_, err := t.Commit(t.ctx, store.Step{Lease: l, Append: &step})
	t.refused(err, store.ErrRunEnded, "r")
	require.EqualValues(t, 1, t.version("of r"))
	t.refused(t.Renew(t.ctx, l, held), store.ErrLeaseLost, "r")
	require.Empty(t, t.tryRun(held))
}

func (t *runsTest) oneByOne() {
	t.pause("r", task("a"), task("b"), task("c"))
	require.False(t, t.accept("r", "b", "x"))
	require.Equal(t, 2, t.run("r").Pending)
	require.False(t, t.accept("r", "a", "y"))
	t.state("r", store.RunWaiting)

	// The store lists the calls in the order of the pause, each with its result so far.
	states, err := t.Tasks(t.ctx, "r")
	require.NoError(t, err)
	require.Len(t, states, 3)
	require.True(t, states[0].Done)
	require.Equal(t, "y", string(states[0].Result.Payload))
	require.False(t, states[2].Done)
	require.Equal(t, "tool", states[2].Task.Tool)

	require.True(t, t.accept("r", "c", "z"))
	t.state("r", store.RunReady)
	require.Zero(t, t.run("r").Pending)
}

func (t *runsTest) firstResult() {
	t.pause("r", task("a"))
	old, current := t.claimTask(ended).Lease, t.claimTask(held).Lease
	slow := result("r", "a", "of the first")
	slow.Claim, slow.Worker = old.Claim, "slow"
	ready, err := t.Accept(t.ctx, slow)
	require.NoError(t, err)
	require.True(t, ready)

	// The worker with the lease is late, although its claim is the newer one.
	fast := result("r", "a", "of the second")
	fast.Claim = current.Claim
	_, err = t.Accept(t.ctx, fast)
	t.refused(err, store.ErrResultConflict, "r/p1/a")
	states, err := t.Tasks(t.ctx, "r")
	require.NoError(t, err)
	require.Equal(t, "of the first", string(states[0].Result.Payload))
	require.Equal(t, old.Claim, states[0].Result.Claim)
	require.Equal(t, "slow", states[0].Result.Worker)
	require.Empty(t, t.tryTask(held), "a call with a result is not given out")
}

func (t *runsTest) equalResult() {
	t.pause("r", task("a"), task("b"))
	t.accept("r", "a", "x")
	require.False(t, t.accept("r", "a", "x"))
	require.Equal(t, 1, t.run("r").Pending)
	require.True(t, t.accept("r", "b", "y"))
	require.False(t, t.accept("r", "b", "y"), "it was the last result once")
	require.Len(t, t.tryRun(held), 1)
}

func (t *runsTest) differentResult() {
	t.pause("r", task("a"), task("b"))
	t.accept("r", "a", "x")
	for _, other := range []store.Result{
		result("r", "a", "y"),
		{Key: store.Key{Run: "r", Continuation: "p1", Call: "a"}, Outcome: store.OutcomeError, Payload: []byte("x")},
	} {
		_, err := t.Accept(t.ctx, other)
		t.refused(err, store.ErrResultConflict, "r/p1/a")
	}
	require.Equal(t, 1, t.run("r").Pending)
}

func (t *runsTest) resultAfterwards() {
	l := t.resumed("r")
	_, err := t.Commit(t.ctx, store.Step{Lease: l, Consume: "p1", End: store.RunDone})
	require.NoError(t, err)
	require.False(t, t.accept("r", "a", "x"), "the reply to the first may have been lost")
	_, err = t.Accept(t.ctx, result("r", "a", "y"))
	t.refused(err, store.ErrResultConflict, "r/p1/a")
	t.state("r", store.RunDone)
}

func (t *runsTest) cancel() {
	t.pause("r", task("a"), task("b"))
	l := t.claimTask(held).Lease
	t.accept("r", "b", "x")
	require.NoError(t, t.Cancel(t.ctx, "r", "no longer needed"))
	run := t.run("r")
	require.Equal(t, store.RunCancelled, run.State)
	require.Equal(t, "no longer needed", run.Reason)

	// Nothing is claimed or accepted any more, and the lease of the worker is lost.
	_, err := t.Accept(t.ctx, result("r", "a", "late"))
	t.refused(err, store.ErrRunEnded, "r/p1/a")
	t.refused(t.Renew(t.ctx, l, held), store.ErrLeaseLost, "r/p1/a")
	require.Empty(t, t.tryTask(held))
	require.Empty(t, t.tryRun(held))
	states, err := t.Tasks(t.ctx, "r")
	require.NoError(t, err)
	require.True(t, states[0].Done)
	require.Equal(t, store.OutcomeCancelled, states[0].Result.Outcome)
	require.Equal(t, "x", string(states[1].Result.Payload), "a result that was accepted stays")
}

func (t *runsTest) cancelEnded() {
	t.begin("r")
	require.NoError(t, t.Cancel(t.ctx, "r", "first"))
	require.NoError(t, t.Cancel(t.ctx, "r", "second"))
	require.Equal(t, "first", t.run("r").Reason)

	// A run with another end is not cancelled.
	t.begin("r2")
	_, err := t.Commit(t.ctx, store.Step{Lease: t.claimRun(held).Lease, End: store.RunDone})
	require.NoError(t, err)
	t.refused(t.Cancel(t.ctx, "r2", ""), store.ErrRunEnded, "r2")
	t.state("r2", store.RunDone)
}

func (t *runsTest) parked() {
	l := t.resumed("r")
	_, err := t.Commit(t.ctx, store.Step{Lease: l, End: store.RunParked, Reason: "unreadable"})
	require.NoError(t, err)
	require.Equal(t, "unreadable", t.run("r").Reason)
	require.Empty(t, t.tryRun(held))

	// It has not ended, so its head stays busy.
	_, err = t.Begin(t.ctx, store.BeginRequest{Run: "r2", Agent: "agent", Append: nodes("of r", 1)})
	t.refused(err, store.ErrBusy, "r")

	require.NoError(t, t.Requeue(t.ctx, "r"))
	claimed := t.claimRun(held)
	require.NotNil(t, claimed.Continuation)
	require.Equal(t, 1, claimed.Run.Claims, "the claims before are forgotten")
	t.refused(t.Requeue(t.ctx, "r"), store.ErrBusy, "r")
	require.NoError(t, t.Cancel(t.ctx, "r", ""))
	t.refused(t.Requeue(t.ctx, "r"), store.ErrRunEnded, "r")
}

func (t *runsTest) sweepWakes() {
	t.pause("r", task("a"), task("b"))
	t.begin("r2")
	woken := func(grace time.Duration) int {
		swept, err := t.Sweep(t.ctx, store.SweepRequest{Grace: grace})
		require.NoError(t, err)
		require.Empty(t, swept.Expired)
		return swept.Woken
	}
	require.Zero(t, woken(held), "it is too early")

	// Two calls and a run wait. Without a grace they are woken by each sweep.
	require.Equal(t, 3, woken(0))
	require.Equal(t, 3, woken(0))

	// A claim or a result ends the wait.
	t.claimTask(held)
	require.Equal(t, 2, woken(0), "a call with a lease needs no wake-up")
	t.claimRun(held)
	require.Equal(t, 1, woken(0))
	t.accept("r", "b", "x")
	require.Zero(t, woken(0))
	t.accept("r", "a", "x")
	require.Equal(t, 1, woken(0), "the run is ready")
}

func (t *runsTest) sweepLimit() {
	a, b, late, later := task("a"), task("b"), task("c"), task("d")
	late.ResultTimeout, later.ResultTimeout = ended, ended
	t.pause("r", late, later, a, b)
	t.begin("r2")
	t.begin("r3")

	// The limit counts for each kind of work: one run, one call that waits, and one that is expired.
	swept, err := t.Sweep(t.ctx, store.SweepRequest{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, 2, swept.Woken)
	require.Len(t, swept.Expired, 1)

	swept, err = t.Sweep(t.ctx, store.SweepRequest{Limit: 2})
	require.NoError(t, err)
	require.Equal(t, 4, swept.Woken)
	require.Len(t, swept.Expired, 2)
}

func (t *runsTest) sweepExpired() {
	once, late, fine, running := task("a"), task("b"), task("c"), task("d")
	once.Attempts, running.Attempts, late.ResultTimeout = 1, 1, ended
	t.pause("r", once, running, late, fine)
	t.claimTask(ended)
	require.Equal(t, "d", t.claimTask(held).Task.Key.Call)

	// They are listed again until they have a result.
	for range 2 {
		swept, err := t.Sweep(t.ctx, store.SweepRequest{Grace: held})
		require.NoError(t, err)
		var calls []string
		for _, state := range swept.Expired {
			calls = append(calls, state.Task.Key.Call)
		}
		slices.Sort(calls)
		require.Equal(t, []string{"a", "b"}, calls)
	}

	// With a result they are done.
	t.accept("r", "a", "unknown")
	t.accept("r", "b", "too late")
	swept, err := t.Sweep(t.ctx, store.SweepRequest{Grace: held})
	require.NoError(t, err)
	require.Empty(t, swept.Expired)
}

func (t *runsTest) listed() {
	for i := range 5 {
		t.begin(fmt.Sprint("r", i))
	}
	require.NoError(t, t.Cancel(t.ctx, "r3", ""))

	list := func(q store.ListRunsRequest) []string {
		runs, err := t.ListRuns(t.ctx, q)
		require.NoError(t, err)
		var ids []string
		for _, r := range runs {
			ids = append(ids, r.ID)
		}
		return ids
	}
	require.Equal(t, []string{"r0", "r1", "r2", "r3", "r4"}, list(store.ListRunsRequest{}))
	require.Equal(t, []string{"r0", "r1"}, list(store.ListRunsRequest{Limit: 2}))
	require.Equal(t, []string{"r2", "r3"}, list(store.ListRunsRequest{Limit: 2, After: "r1"}))

	// Each filter alone.
	require.Equal(t, []string{"r3"}, list(store.ListRunsRequest{States: []store.RunState{store.RunCancelled}}))
	require.Equal(t, []string{"r2"}, list(store.ListRunsRequest{Conversation: "of r2"}))
	require.Empty(t, list(store.ListRunsRequest{Agent: "other"}))
	require.Len(t, list(store.ListRunsRequest{Agent: "agent"}), 5)
}

func (t *runsTest) stats() {
	stats := func() store.RunStats {
		s, err := t.Stats(t.ctx)
		require.NoError(t, err)
		return s
	}
	t.cancelled("cancelled")
	require.Zero(t, stats(), "runs that have ended are not counted")

	// Of the calls of one pause nobody took one, one is claimed, one was lost twice, and one is exhausted. The fifth
	// waits for a reply, and the sixth is in doubt.
	calls := []store.Task{task("new"), task("claimed"), task("lost"), task("exhausted"), task("ask"), task("doubt")}
	for i, c := range calls {
		calls[i].Tool = c.Key.Call
	}
	calls[3].Attempts, calls[4].External = 1, true
	t.pause("waiting", calls...)
	claim := func(tool string, lease time.Duration) {
		claimed, err := t.ClaimTasks(t.ctx, store.ClaimTasksRequest{Worker: "worker", Tools: []string{tool}, Lease: lease})
		require.NoError(t, err)
		require.Len(t, claimed, 1)
	}
	claim("claimed", held)
	claim("lost", ended)
	claim("lost", ended)
	claim("exhausted", ended)
	doubt := result("waiting", "doubt", "")
	doubt.Outcome = store.OutcomeInDoubt
	_, err := t.Accept(t.ctx, doubt)
	require.NoError(t, err)

	// A run in each other state.
	t.begin("running")
	t.claimRun(held)
	t.begin("lost")
	lost := t.claimRun(held)
	t.begin("parked")
	_, err = t.Commit(t.ctx, store.Step{Lease: t.claimRun(held).Lease, End: store.RunParked})
	require.NoError(t, err)
	require.NoError(t, t.Renew(t.ctx, lost.Lease, ended))
	t.begin("ready")

	// The clock of Windows stands still between its ticks, and all of this may have happened in one.
	for began := time.Now(); !time.Now().After(began); {
	}
	got := stats()
	for _, age := range []*time.Duration{&got.OldestReady, &got.OldestWaiting, &got.OldestParked, &got.Calls.OldestReady} {
		require.Positive(t, *age)
		require.Less(t, *age, held)
		*age = 0
	}
	want := store.RunStats{
		Ready: 1, Running: 2, Waiting: 1, Parked: 1, Lost: 1, InDoubt: 1,
		Calls: store.CallStats{Ready: 2, Claimed: 1, External: 1, Exhausted: 1, Lost: 1, Repeated: 1},
	}
	require.Equal(t, want, got)
}

func (t *runsTest) unknown() {
	_, err := t.Run(t.ctx, "r")
	t.refused(err, store.ErrNoRun, "r")
	_, err = t.Tasks(t.ctx, "r")
	t.refused(err, store.ErrNoRun, "r")
	t.refused(t.Cancel(t.ctx, "r", ""), store.ErrNoRun, "r")
	t.refused(t.Requeue(t.ctx, "r"), store.ErrNoRun, "r")
	_, err = t.Commit(t.ctx, store.Step{Lease: store.Lease{Key: store.Key{Run: "r"}, Claim: 1}})
	t.refused(err, store.ErrNoRun, "r")

	// A stored run, with unknown calls and continuations.
	t.pause("r", task("a"))
	_, err = t.Accept(t.ctx, result("r", "b", "x"))
	t.refused(err, store.ErrNoRun, "r/p1/b")
	lease := store.Lease{Key: store.Key{Run: "r", Continuation: "p1", Call: "b"}, Claim: 1}
	t.refused(t.Renew(t.ctx, lease, held), store.ErrNoRun, "r/p1/b")

	t.accept("r", "a", "x")
	_, err = t.Commit(t.ctx, store.Step{Lease: t.claimRun(held).Lease, Consume: "p2"})
	t.refused(err, store.ErrNoRun, "r/p2")
}

// texts tests difficult texts of models and tools in IDs, names and reasons.
func (t *runsTest) texts() {
	// Some databases accept neither NUL nor invalid UTF-8. Some of the other texts look like escapes of these, and must
	// stay different from them.
	odd := []string{
		"a\x00b", "a", "\x00", "\xff", "\ufffd", "a\xc3", "\x1a", "\x1a00", "\x1a1a00", `\x00`, `\u0000`, "%00", "a/b", "'", "\u202e",
	}
	var tasks []store.Task
	for _, text := range odd {
		odd := task(text)
		odd.Tool, odd.Payload = text, []byte(text)
		tasks = append(tasks, odd)
	}

	run := "r\x00\xff\x1a"
	begun, err := t.Begin(t.ctx, store.BeginRequest{Run: run, Agent: "agent", Append: nodes("talk", 0)})
	require.NoError(t, err)
	require.Equal(t, run, begun.ID)
	t.pauseClaimed(t.claimRun(held).Lease, "p1", tasks...)

	states, err := t.Tasks(t.ctx, run)
	require.NoError(t, err)
	require.Len(t, states, len(odd))
	for i, text := range odd {
		require.Equal(t, store.Key{Run: run, Continuation: "p1", Call: text}, states[i].Task.Key)
		got, err := t.ClaimTasks(t.ctx, store.ClaimTasksRequest{Worker: text, Tools: []string{text}, Lease: held, Limit: 99})
		require.NoError(t, err)
		require.Len(t, got, 1, "%q is the tool of one call", text)
		require.Equal(t, states[i].Task.Key, got[0].Task.Key)
		require.Equal(t, text, got[0].Task.Tool)

		r := result(run, text, text)
		r.Worker = text
		last, err := t.Accept(t.ctx, r)
		require.NoError(t, err)
		require.Equal(t, i == len(odd)-1, last)
	}

	// The texts are also the same after the way through the results.
	results := t.claimRun(held)
	require.Equal(t, run, results.Run.ID)
	require.Len(t, results.Continuation.Results, len(odd))
	for i, text := range odd {
		require.Equal(t, text, results.Continuation.Results[i].Key.Call)
		require.Equal(t, text, results.Continuation.Results[i].Worker)
	}
	_, err = t.Commit(t.ctx, store.Step{Lease: results.Lease, Consume: "p1", End: store.RunFailed, Reason: odd[0]})
	require.NoError(t, err)
	require.Equal(t, odd[0], t.run(run).Reason)
}

func (t *runsTest) listeners() {
	// Counted by content: wake-ups may come twice, and in any order.
	var mu sync.Mutex
	heard := map[string]int{}
	stop := t.Listen(func(w store.Wake) {
		mu.Lock()
		defer mu.Unlock()
		heard[fmt.Sprint(w.Kind, " ", w.Key, " ", w.Agent, " ", w.Tool)]++
	})
	has := func(wake string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		require.NotZero(t, heard[wake], "%v", heard)
		delete(heard, wake)
	}

	t.pause("r", task("a"))
	has("run r agent ")
	has("task r/p1/a agent tool")
	t.accept("r", "a", "x")
	has("run r agent ")
	require.NoError(t, t.Cancel(t.ctx, "r", ""))
	has("stopped r agent ")

	stop()
	clear(heard)
	t.begin("r2")
	require.Empty(t, heard)
}

func (t *runsTest) doneContext() {
	t.pause("r", task("a"))
	done, cancel := context.WithCancel(t.ctx)
	cancel()

	// Each method refuses, also for reading.
	_, err := t.Begin(done, store.BeginRequest{Run: "r2", Append: nodes("c", 0)})
	require.ErrorIs(t, err, context.Canceled)
	_, err = t.ClaimTasks(done, store.ClaimTasksRequest{Tools: []string{"tool"}, Lease: held})
	require.ErrorIs(t, err, context.Canceled)
	_, err = t.Accept(done, result("r", "a", "x"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, t.Cancel(done, "r", ""), context.Canceled)
	_, err = t.Stats(done)
	require.ErrorIs(t, err, context.Canceled)
	_, err = t.PruneRuns(done, store.PruneRunsRequest{})
	require.ErrorIs(t, err, context.Canceled)

	// Nothing has changed.
	t.state("r", store.RunWaiting)
	require.Len(t, t.tryTask(held), 1)
}

// together calls fn on n goroutines at once, and returns how many returned true.
func together(n int, fn func(i int) bool) int {
	// No goroutine begins before all of them exist.
	var wg sync.WaitGroup
	results := make([]bool, n)
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			results[i] = fn(i)
		})
	}
	close(begin)
	wg.Wait()

	count := 0
	for _, yes := range results {
		if yes {
			count++
		}
	}
	return count
}

const racers = 16

func (t *runsTest) claimRace() {
	t.pause("r", task("a"))
	require.Equal(t, 1, together(racers, func(int) bool {
		claimed, err := t.ClaimTasks(t.ctx, store.ClaimTasksRequest{Tools: []string{"tool"}, Lease: held})
		return err == nil && len(claimed) == 1
	}))
}

func (t *runsTest) acceptRace() {
	t.pause("r", task("a"), task("b"))
	require.Equal(t, 1, together(racers, func(i int) bool {
		_, err := t.Accept(t.ctx, result("r", "a", fmt.Sprint(i)))
		return err == nil
	}))
	require.Equal(t, 1, t.run("r").Pending)
}

func (t *runsTest) consumeRace() {
	l := t.resumed("r")
	require.Equal(t, 1, together(racers, func(int) bool {
		_, err := t.Commit(t.ctx, store.Step{Lease: l, Consume: "p1"})
		return err == nil
	}))
}
