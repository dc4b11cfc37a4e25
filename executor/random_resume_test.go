package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// resume goes on with a run that paused, after some attempts that must be refused, and returns the next part of it. In a calm script the
// run is resumed twice, from memory and from JSON, and both must come to the same.
func (w *world) resume(l leg) leg {
	if before := l.plot.resumed; before == nil || before.continuation.ID != l.pause.ID { // else the conversation is as it was
		w.elapsed = l.end.Stop.Elapsed
	}
	w.resumeWrongly(l)
	replies := w.replies(l.end.DAG)
	var other *leg
	if w.calm {
		other = w.resumeFork(l, replies)
	}
	d := l.end.DAG
	if !w.calm && w.one(2) {
		d = w.saved(d, *l.pause)
		replies = w.carried(replies)
	}
	next := w.resumed(l, d, replies)
	for refused := 0; !next.left && !next.plot.began(); refused++ {
		if refused > 4 || !w.eternal && !w.calm && !errors.Is(next.err, errSecret) {
			return next // its hooks never allow it, or the context ended before
		}
		w.mu.Lock()
		w.asks++
		w.mu.Unlock()
		other = nil
		next = w.resumed(l, d, replies)
	}
	if other != nil {
		w.compare(next, *other)
	}
	return next
}

// resumed is one attempt to resume.
func (w *world) resumed(l leg, d dag.DAG, replies []executor.Reply) leg {
	ran := w.ranInAll()
	next := w.run(d, newPlot(w.witness, l.plot), func(ctx context.Context) iter.Seq2[executor.Event, error] {
		return w.agent.ResumeStream(ctx, d, replies...)
	})
	if !next.left && !next.plot.began() {
		w.check("I7", w.ranInAll() == ran, "a refused resumption carried something out")
		w.complain()
	}
	return next
}

// resumeFork resumes the run in a world of its own, from JSON.
func (w *world) resumeFork(l leg, replies []executor.Reply) *leg {
	fork := &world{t: w.t, Rand: w.Rand, witness: w.witness.fork(), agent: w.agent, attempts: w.attempts, elapsed: w.elapsed, arrived: newArrivals()}
	for i, q := range w.queues {
		copied := newLine(q.name, w.batch[i])
		for _, m := range q.Messages() {
			require.NoError(w.t, copied.Add("", m.Blocks.Slice()...))
		}
		fork.queues = append(fork.queues, copied)
	}
	fork.agent.Steering, fork.agent.FollowUps = fork.queues[0].Queue, fork.queues[1].Queue
	d := w.saved(l.end.DAG, *l.pause)
	before := *l.plot
	before.w, before.queues = fork.witness, fork.arrived
	other := fork.resumed(leg{plot: &before}, d, w.carried(replies))
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

// saved is the conversation as it comes back from where it was kept. Its continuation can be made again from it.
func (w *world) saved(d dag.DAG, c executor.Continuation) dag.DAG {
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
	made := executor.ContinuationOf(loaded)
	made.Parent, made.Attributes = read.Parent, read.Attributes
	w.check("I7", reflect.DeepEqual(read, made), "the continuation %v is made again as %v", read, made)
	return loaded
}

// carried is the replies as they come back from JSON.
func (w *world) carried(replies []executor.Reply) (list []executor.Reply) {
	for _, r := range replies {
		data, err := r.MarshalJSON()
		if err != nil {
			list = append(list, r) // of the world's wrong ones
			continue
		}
		var read executor.Reply
		require.NoError(w.t, read.UnmarshalJSON(data))
		list = append(list, read)
	}
	return list
}

// replies answer what waits: all of it where that is wanted, else some.
func (w *world) replies(d dag.DAG) (replies []executor.Reply) {
	left := map[string]bool{} // the sub-agents that get no approval
	all := d.Pending()
	for _, p := range all {
		if path := fmt.Sprint(p.Path); len(p.Path) > 0 && !left[path] {
			left[path] = w.one(4)
		}
	}
	asks := asking(all)
	for _, p := range all {
		switch path := fmt.Sprint(p.Path); {
		case left[path], asks[path] && !p.Approval:
		case p.Approval:
			replies = append(replies, w.verdict(p))
		case w.one(2):
			replies = append(replies, w.brought(p))
		}
	}
	return replies
}

// asking says of which runs, by their paths, calls wait for approval.
func asking(all []dag.Pending) map[string]bool {
	asks := map[string]bool{}
	for _, p := range all {
		asks[fmt.Sprint(p.Path)] = asks[fmt.Sprint(p.Path)] || p.Approval
	}
	return asks
}

func (w *world) verdict(p dag.Pending) executor.Reply {
	n := numberOf(p.Call.ID, p.Call.Input)
	switch w.IntN(6) {
	case 0:
		w.never(n, "it was declined")
		return executor.Declined(p, []string{"", "rather not"}[w.IntN(2)])
	case 1:
		if n == 0 || strings.HasPrefix(p.Call.Name, "agent") || p.Call.Name == "idle" {
			break
		}
		if w.one(3) {
			w.see(n, func(s *sighting) { s.waits = false; s.edited = p.Call.Name == "own" })
			return executor.ApprovedWith(p, []content.JSON{`{}`, `{"n":"x"}`, `{"n":1.5}`}[w.IntN(3)])
		}
		w.see(n, func(s *sighting) { s.waits, s.expected = false, "edited" })
		return executor.ApprovedWith(p, content.JSON(fmt.Sprintf(`{"n":%d,"s":"edited"}`, n)))
	}
	w.see(n, func(s *sighting) { s.waits = false })
	return executor.Approved(p)
}

func (w *world) brought(p dag.Pending) executor.Reply {
	n := numberOf(p.Call.ID, p.Call.Input)
	w.see(n, func(s *sighting) { s.brought, s.never = true, "its result came from outside" })
	switch w.IntN(4) {
	case 0:
		return executor.Failed(p, "it failed elsewhere")
	case 1:
		return executor.Returned(p, executor.Result{
			Content: content.Words("from outside"), Terminate: w.one(2), Usage: content.Usage{Output: 7}, Details: `{"by":"hand"}`,
		})
	}
	return executor.ReturnedFor(p.Key, executor.Result{Content: content.Words(fmt.Sprint("from outside ", n))})
}

// resumeWrongly tries what must be refused, and checks that it is, with the right error, and that nothing comes of it.
func (w *world) resumeWrongly(l leg) {
	d := l.end.DAG
	all := d.Pending()
	bad := map[node.CallKey]executor.Reply{}
	for _, p := range all {
		if p.Approval {
			bad[p.Key] = executor.Declined(p, "")
		}
	}
	var want error
	first := all[w.IntN(len(all))]
	switch w.IntN(8) {
	case 0:
		unknown := node.CallKey{Message: node.ID{1}, Index: 1}
		bad[unknown], want = executor.ReturnedFor(unknown, executor.Result{}), executor.ErrUnknownCall
	case 1:
		if !first.Approval {
			bad[first.Key], want = executor.Approved(first), executor.ErrReply
		} else {
			bad[first.Key], want = executor.Failed(first, ""), executor.ErrReply
		}
	case 2:
		shown := first
		shown.Note += "!"
		if first.Approval {
			bad[first.Key], want = executor.Approved(shown), executor.ErrStale
		} else {
			bad[first.Key], want = executor.Failed(shown, ""), executor.ErrStale
		}
	case 3:
		if len(bad) == 0 {
			return
		}
		d, want = d.Custom("note", "later"), executor.ErrUnknownCall
	case 4:
		bad[first.Key], want = executor.Reply{Call: first.Key}, executor.ErrReply
	case 5:
		if first.Approval {
			if len(first.Path) > 0 {
				return
			}
			delete(bad, first.Key)
			want = executor.ErrMissingReply
			break
		}
		r := executor.Result{Content: content.Words("x"), Details: "{"}
		bad[first.Key], want = executor.Returned(first, r), executor.ErrReply
	case 6:
		key, has := w.executed(d)
		if !has {
			return
		}
		bad[key], want = executor.ReturnedFor(key, executor.Result{Content: content.Words("conflict")}), executor.ErrConflict
	default:
		return
	}
	ran := w.ranInAll()
	after, err := w.agent.Resume(w.ctx(), d, slices.Collect(maps.Values(bad))...)
	w.check("I7", errors.Is(err, want), "a wrong resumption is told %v instead of %v", err, want)
	w.check("I7", dag.Equal(after, d), "a refused resumption changed the conversation")
	w.check("I7", w.ranInAll() == ran, "a refused resumption carried something out")
	w.complain()
}

// executed is a call of the pause's message that has a result already, which no hook can change.
func (w *world) executed(d dag.DAG) (key node.CallKey, has bool) {
	for _, h := range w.agent.Hooks {
		if h.After != nil {
			return key, false
		}
	}
	for _, h := range d.Heads() {
		if e, is := h.Payload().(node.ToolExecution); is && !e.State.Unfinished() {
			return h.Call()
		}
	}
	return key, false
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
