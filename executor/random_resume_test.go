package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// resume goes on with a run that paused, after some attempts that must be refused, and returns the next part of it. In a calm script the
// run is resumed twice, from memory and from JSON, and both must come to the same.
func (w *world) resume(l leg) leg {
	w.resumeWrongly(l)
	replies := w.replies(*l.pause)
	var other *leg
	if w.calm {
		other = w.resumeFork(l, replies)
	}
	d, c := l.end.DAG, *l.pause
	if !w.calm && w.one(2) {
		d, c = w.saved(d, c)
	}
	next := w.resumed(l, d, c, replies)
	for refused := 0; !next.left && !next.plot.began(); refused++ {
		if refused > 4 || !w.eternal && !w.calm && !errors.Is(next.err, errSecret) {
			return next // its hooks never allow it, or the context ended before
		}
		w.mu.Lock()
		w.asks++
		w.mu.Unlock()
		other = nil
		next = w.resumed(l, d, c, replies)
	}
	if other != nil {
		w.compare(next, *other)
	}
	return next
}

// resumed is one attempt to resume.
func (w *world) resumed(l leg, d dag.DAG, c executor.Continuation, replies map[string]executor.Reply) leg {
	ran := w.ranInAll()
	next := w.run(d, newPlot(w.witness, l.plot), func(ctx context.Context) iter.Seq2[executor.Event, error] {
		return w.agent.ResumeStream(ctx, d, c, replies)
	})
	if !next.left && !next.plot.began() {
		w.check("I7", w.ranInAll() == ran, "a refused resumption carried something out")
		w.complain()
	}
	return next
}

// resumeFork resumes the run in a world of its own, from JSON.
func (w *world) resumeFork(l leg, replies map[string]executor.Reply) *leg {
	fork := &world{t: w.t, Rand: w.Rand, witness: w.witness.fork(), agent: w.agent, attempts: w.attempts, arrived: newArrivals()}
	for i, q := range w.queues {
		copied := newLine(q.name, w.batch[i])
		for _, m := range q.Messages() {
			require.NoError(w.t, copied.Add("", m.Blocks.Slice()...))
		}
		fork.queues = append(fork.queues, copied)
	}
	fork.agent.Steering, fork.agent.FollowUps = fork.queues[0].Queue, fork.queues[1].Queue
	d, c := w.saved(l.end.DAG, *l.pause)
	before := *l.plot
	before.w, before.queues = fork.witness, fork.arrived
	other := fork.resumed(leg{plot: &before}, d, c, replies)
	return &other
}

// compare checks I7: both came to the same, event by event and node by node.
func (w *world) compare(a, b leg) {
	if a.plot.w.raced || b.plot.w.raced {
		return
	}
	if !w.check("I7", slices.Equal(a.plot.lines, b.plot.lines), "from memory:\n%s\n\nfrom JSON:\n%s", strings.Join(a.plot.lines, "\n"), strings.Join(b.plot.lines, "\n")) {
		w.complain()
	}
	w.check("I7", dag.Equal(a.end.DAG, b.end.DAG), "two conversations:\n%v\n%v", a.end.DAG, b.end.DAG)
	w.check("I7", fmt.Sprint(a.err) == fmt.Sprint(b.err) || errors.As(a.err, new(*executor.ResumeError)), "two errors: %v, %v", a.err, b.err)
	w.check("I7", a.end.Stop.Elapsed == b.end.Stop.Elapsed, "it took %v, and from JSON %v", a.end.Stop.Elapsed, b.end.Stop.Elapsed)
	w.check("I7", a.end.Stop.Cost == b.end.Stop.Cost, "it cost %v, and from JSON %v", a.end.Stop.Cost, b.end.Stop.Cost)
	w.complain()
}

// saved is the conversation and the continuation as they come back from where they were kept.
func (w *world) saved(d dag.DAG, c executor.Continuation) (dag.DAG, executor.Continuation) {
	var file bytes.Buffer
	require.NoError(w.t, d.Write(&file))
	loaded, err := dag.Read(&file)
	require.NoError(w.t, err)
	w.check("I7", dag.Equal(d, loaded), "the conversation came back as another one")
	for _, def := range d.ToolDefs() {
		if t, ok := d.Tool(def.Name); ok {
			loaded = loaded.Tools(t)
		}
	}
	codec := executor.ContinuationCodec{Keys: []string{"tenant"}}
	data, err := codec.Encode(c)
	require.NoError(w.t, err)
	read, err := codec.Decode(data)
	require.NoError(w.t, err)
	w.check("I7", !bytes.Contains(data, []byte(`"secret"`)), "an attribute was written that was not asked for")
	again, err := codec.Encode(read)
	require.NoError(w.t, err)
	w.check("I7", bytes.Equal(data, again), "the continuation came back as another one")
	return loaded, read
}

// replies answer what waits: all of it where that is wanted, else some.
func (w *world) replies(c executor.Continuation) map[string]executor.Reply {
	replies := map[string]executor.Reply{}
	left := map[string]bool{} // the sub-agents that get no approval
	for _, a := range c.Agents {
		left[fmt.Sprint(a.Path)] = w.one(4)
	}
	asks := asking(c)
	for _, p := range c.Pending {
		switch path := fmt.Sprint(p.Path); {
		case left[path], asks[path] && !p.Approval:
		case p.Approval:
			replies[p.ID] = w.verdict(p)
		case w.one(2):
			replies[p.ID] = w.brought(p)
		}
	}
	return replies
}

// asking says of which runs, by their paths, calls wait for approval.
func asking(c executor.Continuation) map[string]bool {
	asks := map[string]bool{}
	for _, p := range c.Pending {
		asks[fmt.Sprint(p.Path)] = asks[fmt.Sprint(p.Path)] || p.Approval
	}
	return asks
}

func (w *world) verdict(p executor.Pending) executor.Reply {
	n := numberOf(p.Call.ID, p.Call.Input)
	switch w.IntN(6) {
	case 0:
		w.never(n, "it was declined")
		return executor.Declined([]string{"", "rather not"}[w.IntN(2)])
	case 1:
		if n == 0 || strings.HasPrefix(p.Call.Name, "agent") || p.Call.Name == "idle" {
			break
		}
		if w.one(3) {
			w.see(n, func(s *sighting) { s.waits = false; s.edited = p.Call.Name == "own" })
			return executor.ApprovedWith([]content.JSON{"[]", `{"n":"x"}`, "{"}[w.IntN(3)])
		}
		w.see(n, func(s *sighting) { s.waits, s.expected = false, "edited" })
		return executor.ApprovedWith(content.JSON(fmt.Sprintf(`{"n":%d,"s":"edited"}`, n)))
	}
	w.see(n, func(s *sighting) { s.waits = false })
	return executor.Approved()
}

func (w *world) brought(p executor.Pending) executor.Reply {
	n := numberOf(p.Call.ID, p.Call.Input)
	w.see(n, func(s *sighting) { s.brought, s.never = true, "its result came from outside" })
	switch w.IntN(4) {
	case 0:
		return executor.Failed("it failed elsewhere")
	case 1:
		return executor.Returned(executor.Result{
			Content: content.Words("from outside"), Terminate: w.one(2), Usage: content.Usage{Output: 7}, Details: `{"by":"hand"}`,
		})
	}
	return executor.Returned(executor.Result{Content: content.Words(fmt.Sprint("from outside ", n))})
}

// resumeWrongly tries what must be refused, and checks that it is, with the right error, and that nothing comes of it.
func (w *world) resumeWrongly(l leg) {
	d, c := l.end.DAG, *l.pause
	bad := map[string]executor.Reply{}
	for _, p := range c.Pending {
		if c.Reason == content.StopApproval && p.Approval {
			bad[p.ID] = executor.Declined("")
		}
	}
	var want error
	first := c.Pending[w.IntN(len(c.Pending))]
	asks := asking(c)[fmt.Sprint(first.Path)]
	switch w.IntN(8) {
	case 0:
		bad["nobody"], want = executor.Returned(executor.Result{}), executor.ErrUnknownCall
	case 1:
		if !asks {
			bad[first.ID], want = executor.Approved(), executor.ErrReply
		} else {
			bad[first.ID], want = executor.Failed(""), executor.ErrReply
		}
	case 2:
		c.Message[0] ^= 0xff
		want = executor.ErrStale
	case 3:
		d, want = d.Custom("note", "later"), executor.ErrStale
	case 4:
		c.Pending = slices.Clone(c.Pending)
		c.Pending[0].ID, want = "another", executor.ErrStale
		if len(bad) > 0 {
			bad["another"] = executor.Declined("")
		}
	case 5:
		if asks {
			if !first.Approval || len(first.Path) > 0 {
				return
			}
			delete(bad, first.ID)
			want = executor.ErrMissingReply
			break
		}
		r := executor.Result{Content: content.Words("x"), Details: "{"}
		bad[first.ID], want = executor.Returned(r), executor.ErrReply
	case 6:
		id := w.executed(d, c)
		if id == "" {
			return
		}
		bad[id], want = executor.Returned(executor.Result{Content: content.Words("conflict")}), executor.ErrConflict
	default:
		return
	}
	ran := w.ranInAll()
	after, err := w.agent.Resume(w.ctx(), d, c, bad)
	w.check("I7", errors.Is(err, want), "a wrong resumption is told %v instead of %v", err, want)
	w.check("I7", dag.Equal(after, d), "a refused resumption changed the conversation")
	w.check("I7", w.ranInAll() == ran, "a refused resumption carried something out")
	w.complain()
}

// executed is the id of a call of the pause's message that has a result already, and whose result no hook can change.
func (w *world) executed(d dag.DAG, c executor.Continuation) string {
	for _, h := range w.agent.Hooks {
		if h.After != nil {
			return ""
		}
	}
	said, _ := d.Node(c.Message).Message()
	for i, use := range said.Blocks.ToolUses() {
		waits := slices.ContainsFunc(d.OpenCalls(), func(o executor.Call) bool { return o.Index == i })
		if !waits && strings.HasPrefix(use.ID, "id-") {
			return use.ID
		}
	}
	return ""
}

func (w *witness) ranInAll() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.calls {
		n += s.ran
	}
	return n
}

// forget forgets what was decided about the calls that are open in d, and in its paused sub-agents. The witness is locked.
func (w *world) forget(d dag.DAG) {
	for _, o := range d.OpenCalls() {
		if s := w.calls[numberOf(o.ID, o.Input)]; s != nil {
			s.never, s.waits, s.expected, s.brought = "", false, "", false
		}
	}
	for _, h := range d.Heads() {
		if child := dag.FromNode(h); child.Len() > 0 {
			w.forget(child)
		}
	}
}

// runPausedAnew runs the conversation of a pause as if there were none: what is open is decided anew.
func (w *world) runPausedAnew(l leg) {
	w.witness = w.witness.fork()
	w.mu.Lock()
	w.forget(l.end.DAG)
	w.given = true
	w.mu.Unlock()
	w.again++
	d := l.end.DAG
	p := newPlot(w.witness, nil)
	p.queues = w.arrived
	next := w.run(d, p, func(ctx context.Context) iter.Seq2[executor.Event, error] { return w.agent.Stream(ctx, d) })
	if !next.left {
		w.check("I7", next.plot.began(), "a paused conversation cannot be run: %v", next.err)
	}
	w.complain()
}
