package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// cancelled begins a run with two calls, accepts the result of one, and cancels the run.
func (t *runsTest) cancelled(run string) {
	t.Helper()
	t.pause(run, task("a"), task("b"))
	t.accept(run, "a", "result")
	require.NoError(t, t.Cancel(t.ctx, run, ""))
}

func (t *runsTest) prune(p store.PruneRunsRequest) store.PrunedRuns {
	t.Helper()
	pruned, err := t.PruneRuns(t.ctx, p)
	require.NoError(t, err)
	return pruned
}

func (t *runsTest) pruneRuns() {
	t.cancelled("r")
	require.Zero(t, t.prune(store.PruneRunsRequest{OlderThan: held}))

	size := len("state of p1") + 2*len("arguments of a") + len("result")
	want := store.PrunedRuns{Runs: 1, Calls: 2, Bytes: int64(size), Last: "r"}
	require.Equal(t, want, t.prune(store.PruneRunsRequest{DryRun: true}))
	t.state("r", store.RunCancelled)

	require.Equal(t, want, t.prune(store.PruneRunsRequest{}))
	_, err := t.Run(t.ctx, "r")
	t.refused(err, store.ErrNoRun, "r")
	_, err = t.Accept(t.ctx, result("r", "b", "late"))
	t.refused(err, store.ErrNoRun, "r/p1/b")
	require.EqualValues(t, 1, t.version("of r"), "the conversation stays")

	// The ID can be used again.
	_, err = t.Begin(t.ctx, store.BeginRequest{Run: "r", Agent: "agent", Append: nodes("of r", 1)})
	require.NoError(t, err)
	states, err := t.Tasks(t.ctx, "r")
	require.NoError(t, err)
	require.Empty(t, states)
}

func (t *runsTest) pruneParts() {
	for i := range 5 {
		t.cancelled(fmt.Sprint("r", i))
	}
	t.begin("r2a")

	// A page begins after the last run of the page before. Unfinished runs are skipped.
	part := t.prune(store.PruneRunsRequest{Limit: 2, DryRun: true})
	require.Equal(t, []any{2, "r1"}, []any{part.Runs, part.Last})
	part = t.prune(store.PruneRunsRequest{Limit: 2, After: "r1"})
	require.Equal(t, []any{2, "r3"}, []any{part.Runs, part.Last})
	part = t.prune(store.PruneRunsRequest{Limit: 2, After: "r3"})
	require.Equal(t, []any{1, "r4"}, []any{part.Runs, part.Last})
	require.Zero(t, t.prune(store.PruneRunsRequest{Limit: 2, After: "r4"}))
	require.Equal(t, 2, t.prune(store.PruneRunsRequest{}).Runs, "r0 and r1")
	t.state("r2a", store.RunReady)
}

func (t *runsTest) pruneOpen() {
	l := t.resumed("parked")
	_, err := t.Commit(t.ctx, store.Step{Lease: l, End: store.RunParked})
	require.NoError(t, err)
	t.pause("waiting", task("a"))
	t.begin("running")
	t.claimRun(ended)
	t.begin("ready")

	require.Zero(t, t.prune(store.PruneRunsRequest{}))

	// All four can continue.
	t.accept("waiting", "a", "x")
	require.NoError(t, t.Requeue(t.ctx, "parked"))
	for range 4 {
		t.claimRun(held)
	}
}

// retention makes random changes to runs and heads, and applies a Retention in between.
func (t *runsTest) retention() {
	w := &retentionWorld{runsTest: t, rand: rand.New(rand.NewPCG(1, 2))}
	for range 6 {
		for range 40 {
			w.change()
		}
		before := w.needed()

		// The dry run changes nothing, and counts the same as the next call. That one removes three runs at a time.
		would, err := store.Retention{DryRun: true}.Apply(t.ctx, t.Runs)
		require.NoError(t, err)
		require.Equal(t, before, w.needed())
		did, err := store.Retention{Batch: 3}.Apply(t.ctx, t.Runs)
		require.NoError(t, err)
		require.Equal(t, would, did)
		require.NotZero(t, did.Runs)
		require.NotZero(t, did.Nodes)

		// Everything needed is still there, and nothing more can be removed.
		require.Equal(t, before, w.needed())
		require.Len(t, w.runs(), len(w.open()), "runs that have ended are removed")
		again, err := store.Retention{}.Apply(t.ctx, t.Runs)
		require.NoError(t, err)
		require.Zero(t, again)
	}
}

type retentionWorld struct {
	*runsTest
	rand *rand.Rand
	runN int
}

// change makes one random change. It may be refused.
func (w *retentionWorld) change() {
	conversation, head := fmt.Sprint("c", w.rand.IntN(3)), fmt.Sprint("h", w.rand.IntN(3))
	switch w.rand.IntN(8) {
	case 0, 1:
		w.runN++
		a := w.append(conversation, head)
		_, err := w.Begin(w.ctx, store.BeginRequest{Run: fmt.Sprintf("r%03d", w.runN), Agent: "agent", Append: a})
		w.allow(err)
	case 2, 3, 4:
		w.step()
	case 5:
		w.result()
	case 6:
		// Move the head back to an earlier node: the later ones are out of reach.
		a := w.append(conversation, head)
		a.Records = nil
		if a.Expect > 0 {
			a.Nodes = []node.ID{w.anyNode(conversation)}
			_, err := w.Append(w.ctx, a)
			w.allow(err)
		}
	case 7:
		if open := w.open(); len(open) > 0 && w.rand.IntN(2) == 0 {
			w.allow(w.Cancel(w.ctx, open[w.rand.IntN(len(open))].ID, ""))
			return
		}

		if h, err := w.Head(w.ctx, conversation, head); err == nil && !w.busyHead(conversation, head) {
			w.allow(w.RemoveHead(w.ctx, conversation, head, h.Version))
		}
	}
}

// allow fails the test for any error other than a refusal.
func (w *retentionWorld) allow(err error) {
	w.Helper()
	var refused *store.RunError
	if err != nil && !errors.As(err, &refused) && !errors.Is(err, store.ErrMoved) {
		require.NoError(w, err)
	}
}

// append returns an append of one record to a head, linked to a node of the conversation.
func (w *retentionWorld) append(conversation, head string) store.AppendRequest {
	a := nodes(conversation, 0)
	a.Head = head
	if at := w.anyNode(conversation); at != (node.ID{}) {
		a.Records[0].Links = []node.ID{at}
	}
	if h, err := w.Head(w.ctx, conversation, head); err == nil {
		a.Expect = h.Version
	}
	return a
}

// anyNode returns a node within reach of a head of the conversation, or the zero ID.
func (w *retentionWorld) anyNode(conversation string) node.ID {
	var ids []node.ID
	for _, h := range w.heads(conversation) {
		for r, err := range w.Read(w.ctx, conversation, h.Nodes, nil) {
			require.NoError(w, err)
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return node.ID{}
	}
	return ids[w.rand.IntN(len(ids))]
}

func (w *retentionWorld) heads(conversation string) []store.Head {
	heads, err := w.Heads(w.ctx, conversation, store.Page{})
	require.NoError(w, err)
	return heads
}

// step claims a run and makes a step of it.
func (w *retentionWorld) step() {
	claimed := w.tryRun(held)
	if len(claimed) == 0 {
		return
	}
	c := claimed[0]
	a := w.append(c.Run.Conversation, c.Run.Head)
	s := store.Step{Lease: c.Lease, Append: &a}

	// Without this, the store would refuse another pause of a resumed run.
	if c.Continuation != nil {
		s.Consume = c.Continuation.ID
	}

	switch w.rand.IntN(5) {
	case 0:
		s.End = store.RunDone
	case 1:
		s.End = store.RunFailed
	default:
		// The number of the claim differs for each step of a run, so the pause has an ID of its own.
		s.Pause = &store.Pause{Continuation: fmt.Sprint("p", c.Lease.Claim), Format: 1, Tasks: []store.Task{task("a"), task("b")}}
	}
	_, err := w.Commit(w.ctx, s)
	w.allow(err)
}

// result accepts the result of a call.
func (w *retentionWorld) result() {
	for _, task := range w.tryTask(time.Nanosecond) {
		_, err := w.Accept(w.ctx, store.Result{Key: task.Lease.Key, Outcome: store.OutcomeOK, Payload: []byte("x")})
		w.allow(err)
	}
}

func (w *retentionWorld) runs() []store.Run {
	runs, err := w.ListRuns(w.ctx, store.ListRunsRequest{Limit: 1000})
	require.NoError(w, err)
	return runs
}

// open returns the unfinished runs.
func (w *retentionWorld) open() (open []store.Run) {
	for _, r := range w.runs() {
		if !r.State.Ended() {
			open = append(open, r)
		}
	}
	return open
}

func (w *retentionWorld) busyHead(conversation, head string) bool {
	for _, r := range w.open() {
		if r.Conversation == conversation && r.Head == head {
			return true
		}
	}
	return false
}

// needed returns everything that must stay: each head with the records within its reach, and each unfinished run with
// its calls.
func (w *retentionWorld) needed() map[string]any {
	needed := map[string]any{}
	keys, err := w.Conversations(w.ctx, store.Page{})
	require.NoError(w, err)
	for _, key := range keys {
		for _, h := range w.heads(key) {
			ids := map[node.ID]string{}
			for r, err := range w.Read(w.ctx, key, h.Nodes, nil) {
				require.NoError(w, err)
				ids[r.ID] = string(r.Line)
			}
			needed["head "+key+" "+h.Name] = []any{h, ids}
		}
	}

	for _, r := range w.open() {
		tasks, err := w.Tasks(w.ctx, r.ID)
		require.NoError(w, err)
		needed["run "+r.ID] = []any{r, tasks}
	}
	return needed
}
