package providers

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/page"
)

var (
	programs = flag.Int("programs", 0, "how many random programs are run; 0: 50, 300 with PLAIT_ALL, 20,000 with PLAIT_LONG")
	program  = flag.String("program", "", "the one program to run, as a failure prints it")
	keep     = flag.String("keep", "testdata/torture", "the folder that a failing program is kept in")
)

// step is one operation of a program, and the seed of all that it decides.
type step struct {
	op   string
	dice uint64
}

func (s step) String() string { return fmt.Sprintf("%s/%x", s.op, s.dice) }

// torture is one program while it runs.
type torture struct {
	*tortureWorker
	dir      string
	files    int
	words    atomic.Int64
	lineages []*tortured
	past     []past
	fakes    []*fake.API // by provider

	mu     sync.Mutex // guards what follows, and the truth of each conversation while an agent runs
	calls  int        // the number of the last call
	wrongs []string
}

// tortured is one conversation of a program.
type tortured struct {
	d        dag.DAG
	t        *truth
	queue    *executor.Queue
	provider int // twice its index, and 1 for responses without a stream
	store    keeper
	safe     dag.DAG // the last acknowledged save, and what was true of it
	truth    *truth
	dying    dag.DAG // the save in which the program died
}

// past is an older value of a conversation, as it was when it was made.
type past struct {
	d    dag.DAG
	then string
}

// wrong notes that an invariant does not hold. The lock must be held.
func (p *torture) wrong(invariant int, format string, args ...any) {
	p.wrongs = append(p.wrongs, fmt.Sprintf("invariant %d: ", invariant)+fmt.Sprintf(format, args...))
}

func (p *torture) check(invariant int, holds bool, format string, args ...any) {
	if !holds {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wrong(invariant, format, args...)
	}
}

// word returns a text that nobody has said before.
func (p *torture) word() string { return fmt.Sprintf("w%dx", p.words.Add(1)) }

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// tortureOps are the operations. One that does not fit its conversation does nothing.
var tortureOps = []struct {
	name   string
	weight int
	do     func(p *torture, c *tortured, dice *rand.Rand)
}{
	{"user", 6, (*torture).user},
	{"phase", 2, (*torture).phase},
	{"steer", 2, func(p *torture, c *tortured, _ *rand.Rand) { p.steer(c) }},
	{"run", 8, func(p *torture, c *tortured, dice *rand.Rand) { p.newRun(c, dice, "run").run(nil) }},
	{"cancel", 2, func(p *torture, c *tortured, dice *rand.Rand) { p.newRun(c, dice, "cancel").run(nil) }},
	{"abort", 2, func(p *torture, c *tortured, dice *rand.Rand) { p.newRun(c, dice, "abort").run(nil) }},
	{"crash", 4, (*torture).crash},
	{"resume", 6, (*torture).resume},
	{"refused resume", 1, (*torture).refusedResume},
	{"work", 3, (*torture).work},
	{"close", 1, (*torture).closeTools},
	{"hand off", 2, func(_ *torture, c *tortured, dice *rand.Rand) { c.provider = dice.IntN(2 * len(providers)) }},
	{"fork", 2, (*torture).fork},
	{"merge", 2, (*torture).merge},
	{"back", 1, (*torture).back},
	{"edit", 1, (*torture).edit},
	{"compact", 1, (*torture).compact},
	{"redact", 2, (*torture).redact},
	{"prune", 1, (*torture).prune},
	{"save", 1, func(p *torture, c *tortured, _ *rand.Rand) { p.save(c) }},
	{"load", 2, (*torture).load},
	{"store", 3, (*torture).move},
	{"clock", 1, (*torture).clock},
}

// tortureOf returns the program of a seed.
func tortureOf(seed uint64) (steps []step) {
	dice := rand.New(rand.NewPCG(seed, 38))
	var names []string
	for _, o := range tortureOps {
		for range o.weight {
			names = append(names, o.name)
		}
	}
	steps = []step{{"store", dice.Uint64N(1 << 32)}, {"user", dice.Uint64N(1 << 32)}}
	for range 4 + dice.IntN(12) {
		steps = append(steps, step{names[dice.IntN(len(names))], dice.Uint64N(1 << 32)})
	}
	return steps
}

// user appends a message. While calls are open, it goes to the queue.
func (p *torture) user(c *tortured, _ *rand.Rand) {
	if c.open() {
		p.steer(c)
		return
	}
	w := p.word()
	c.add(c.d.User(w), line{role: content.User, text: w})
}

// open reports whether the conversation ends in a tool phase.
func (c *tortured) open() bool {
	lines := c.t.lines[0]
	return len(lines) > 0 && len(lines[len(lines)-1].calls) > 0 ||
		slices.ContainsFunc(c.d.Heads(), func(n *node.Node) bool { return n.Kind() == "tool_execution" })
}

// add goes on with a conversation that has another message.
func (c *tortured) add(d dag.DAG, l line) {
	c.d = d
	c.t.lines[0] = append(slices.Clip(c.t.lines[0]), &l)
}

// steer puts a message into the queue.
func (p *torture) steer(c *tortured) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.word()
	c.t.queue = append(c.t.queue, w)
	_ = c.queue.Add(w)
}

// phase builds a response with calls by hand, with the results of some.
func (p *torture) phase(c *tortured, dice *rand.Rand) {
	if c.open() {
		return
	}
	r, said := p.newRun(c, dice, "run"), line{role: content.Assistant}
	var blocks []content.Block
	var done []node.ToolExecution
	for i := range 1 + dice.IntN(3) {
		use := r.newCall(dice, false)
		said.calls, blocks = append(said.calls, use.ID), append(blocks, use)
		if f := c.t.facts[number(use.ID)]; dice.IntN(2) == 0 {
			f.given = p.word()
			done = append(done, node.ToolExecution{Index: i, Result: content.Words(f.given)})
		}
	}
	c.add(c.d.Assistant("", blocks...), said)
	c.d = c.d.AppendExecutions(done...)
	if len(done) == len(blocks) {
		c.d = c.d.CloseTools()
	}
}

// closeTools ends an open tool phase by hand.
func (p *torture) closeTools(c *tortured, _ *rand.Rand) {
	if c.open() {
		c.t.mayFail()
		c.d = c.d.CloseTools()
	}
}

// run runs an agent, or resumes it, to its end, to the death of the program, or until the consumer leaves.
func (r *tortureRun) run(replies []executor.Reply) {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), tortureKey{}, r))
	defer cancel()
	before, then := r.d, r.t.clone()
	if r.how != "run" {
		r.t.mayFail()
	}
	for _, f := range r.t.facts {
		f.any = f.any || f.tool == "agent" && r.agent.Limits.Turns > 0
	}
	if r.how == "cancel" {
		defer time.AfterFunc(time.Duration(r.dice.IntN(40_000))*time.Millisecond, cancel).Stop()
	}
	leave := -1
	if r.how == "abort" {
		leave = r.dice.IntN(40)
	}
	events := r.agent.Stream(ctx, r.d)
	if replies != nil {
		events = r.agent.ResumeStream(ctx, r.d, replies...)
	}
	if r.dice.IntN(6) == 0 {
		events = executor.Tee(executor.Ordered(events), nil, func(executor.Event, error) { panic("an observer") })
	}

	var end *executor.End
	var failure error
	for e, err := range events {
		switch e := e.(type) {
		case executor.RunStart:
			r.begun = true
		case executor.End:
			end, failure = &e, err
		}
		if leave--; leave == -1 && end == nil {
			break
		}
		if !r.calm && r.dice.IntN(30) == 0 && end == nil {
			r.steer(r.tortured)
		}
	}
	cancel()
	r.settle()

	switch {
	case r.dead:
		r.revive(r.tortured, r.since)
	case end == nil && r.store != nil:
		r.dying = r.safe
		r.revive(r.tortured, r.since)
	case end == nil:
		r.d, r.t = before, then
		r.t.queue, r.queue = nil, &executor.Queue{}
	case !r.begun:
		r.check(9, dag.Equal(before, end.DAG) && r.t.agree(end.DAG) == "", "a run that was refused changed something")
		var refused *executor.ResumeError
		r.check(9, errors.Is(failure, executor.ErrAnswered) || r.how == "cancel" || errors.As(failure, &refused) && replies == nil,
			"the run is refused: %v", failure)
	default:
		r.ended(end.DAG, failure)
	}
}

// settle waits until tools that were left behind have returned.
func (p *torture) settle() {
	time.Sleep(2 * time.Minute)
	p.mu.Lock()
	defer p.mu.Unlock()
}

// ended looks at the conversation of a run that is over.
func (r *tortureRun) ended(d dag.DAG, failure error) {
	r.d = d
	r.check(9, d.Err() == nil, "the run returns a conversation with the error %v", d.Err())
	why := r.t.agree(d)
	r.check(2, why == "", "after a run: %s", why)
	r.check(2, len(r.t.said) == 0 || r.how == "cancel", "the response %v is lost", r.t.said)
	r.t.said, r.t.shown = map[int]line{}, map[int][]string{}

	var failed *api.Error
	switch {
	case errors.Is(failure, executor.ErrPaused):
		r.check(4, len(d.Pending()) > 0, "the run pauses, and nothing waits")
	default:
		empty := errors.Is(failure, api.ErrNothing) && len(r.t.lines[0]) == 0
		known := failure == nil || empty || r.how == "cancel"
		if errors.As(failure, &failed) {
			known = known || !r.calm || failed.Kind == api.ErrInvalidRequest // which is invariant 1
		}
		r.check(9, known, "the run ends with %v", failure)
		r.check(4, len(d.OpenCalls()) == 0, "the run ends with open calls")
	}
	if r.store != nil {
		r.check(10, dag.Equal(d, r.safe), "the end of the run was not saved")
	}
	var waiting []string
	for _, m := range r.queue.Messages() {
		waiting = append(waiting, m.Blocks.Text())
	}
	r.check(2, slices.Equal(waiting, r.t.queue), "%v wait in the queue instead of %v", waiting, r.t.queue)
}

// crash runs an agent until the program dies, or ends it between two operations.
func (p *torture) crash(c *tortured, dice *rand.Rand) {
	switch {
	case c.store == nil:
	case dice.IntN(4) == 0:
		c.dying = c.safe
		p.revive(c, p.calls)
	default:
		p.newRun(c, dice, "crash").run(nil)
	}
}

// acknowledge saves a conversation, which must be what the model knows.
func (p *torture) acknowledge(c *tortured, d dag.DAG) error {
	err := c.store.save(d)
	if errors.Is(err, dag.ErrNotErased) && c.t.redacted {
		p.count("rewritten")
		c.store.fail(0)
		err = c.store.rewrite(d)
	}
	c.store.fail(0)
	if err != nil {
		p.wrong(9, "saving fails: %v", err)
		return err
	}
	if why := c.t.agree(d); why != "" {
		p.wrong(2, "a save: %s", why)
	}
	c.safe, c.truth = d, c.t.clone()
	return nil
}

func (p *torture) save(c *tortured) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.store != nil {
		_ = p.acknowledge(c, c.d)
	}
}

// revive is another process that goes on with what was saved (invariant 10).
func (p *torture) revive(c *tortured, since int) {
	d, err := c.store.load()
	p.check(10, err == nil, "after a crash: %v", err)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := c.truth.clone()
	switch {
	case same(d, c.safe):
	case same(d, c.dying):
		t = c.t.clone()
	default:
		p.wrong(10, "what was saved is lost:\n%v\ninstead of\n%v", d, c.safe)
	}
	if why := t.agree(d); why != "" {
		p.wrong(10, "after a crash: %s", why)
	}
	if why := t.revive(c.t, since); why != "" {
		p.wrong(3, "%s", why)
	}
	c.d, c.t, c.queue = d, t, &executor.Queue{}
	c.safe, c.truth = d, t.clone()
}

// same reports whether two conversations have the same content and the same heads.
func same(a, b dag.DAG) bool {
	return dag.Equal(a, b) && slices.EqualFunc(a.Heads(), b.Heads(), func(a, b *node.Node) bool { return a.ID() == b.ID() })
}

// load goes on in another process with what is saved now.
func (p *torture) load(c *tortured, dice *rand.Rand) {
	if c.store == nil {
		var b bytes.Buffer
		err := c.d.Write(&b)
		if err == nil {
			c.d, err = dag.Read(&b)
		}
		p.check(5, err == nil, "a document is not loaded: %v", err)
		return
	}
	p.save(c)
	d, err := c.store.load()
	p.check(5, err == nil && same(d, c.d), "a conversation is loaded as another one: %v", err)
	if err == nil {
		c.d = d
	}
}

// move saves the conversation elsewhere.
func (p *torture) move(c *tortured, dice *rand.Rand) {
	k, err := p.newKeeper(dice.IntN(3))
	p.check(5, err == nil, "a store is not opened: %v", err)
	if err == nil {
		p.leave(c)
		c.store = k
		p.save(c)
	}
}

// leave gives up where a conversation is saved.
func (p *torture) leave(c *tortured) {
	if c.store != nil {
		err := c.store.close()
		p.check(5, err == nil, "a store is not closed: %v", err)
	}
}

// resume replies to calls that wait, and resumes the run.
func (p *torture) resume(c *tortured, dice *rand.Rand) {
	replies := p.replies(c, dice)
	if len(replies) == 0 {
		return
	}
	if dice.IntN(2) == 0 { // by way of another process
		for i, reply := range replies {
			data, err := reply.MarshalJSON()
			if err == nil {
				err = replies[i].UnmarshalJSON(data)
			}
			p.check(5, err == nil, "a reply is not read: %v", err)
		}
	}
	how := "run"
	if c.store != nil && dice.IntN(3) == 0 {
		how = "crash"
	} else if dice.IntN(8) == 0 {
		how = "cancel"
	}
	p.newRun(c, dice, how).run(replies)
}

// replies returns replies to all calls of a message that need approval, or to some that wait for results.
func (p *torture) replies(c *tortured, dice *rand.Rand) (replies []executor.Reply) {
	asks := map[string]bool{}
	for _, w := range c.d.Pending() {
		if path := fmt.Sprint(w.Path); w.Approval {
			asks[path] = true
		}
	}
	for _, w := range c.d.Pending() {
		f := c.t.facts[number(w.Call.ID)]
		p.check(4, f != nil && f.final == nil, "a call waits that has its result: %s", w.Call.ID)
		if f == nil || asks[fmt.Sprint(w.Path)] && !w.Approval {
			continue
		}
		switch n := dice.IntN(4); {
		case w.Approval && n == 0:
			f.fails = true
			replies = append(replies, executor.Declined(w, "no"))
		case w.Approval:
			f.allowed = true
			if !w.Started.IsZero() {
				f.may++
			}
			replies = append(replies, executor.Approved(w))
		case n == 0:
			f.fails = true
			replies = append(replies, executor.Failed(w, "it failed elsewhere"))
		case n < 3:
			f.given = p.word()
			replies = append(replies, executor.Returned(w, executor.Result{Content: content.Words(f.given)}))
		}
	}
	return replies
}

// refusedResume resumes with a reply to something else than what is shown. Nothing may come of it.
func (p *torture) refusedResume(c *tortured, dice *rand.Rand) {
	waiting := c.d.Pending()
	if len(waiting) == 0 {
		return
	}
	w := waiting[dice.IntN(len(waiting))]
	w.Note += "!"
	reply := executor.Failed(w, "no")
	if w.Approval {
		reply = executor.Approved(w)
	}
	r := p.newRun(c, dice, "run")
	d, err := r.agent.Resume(context.WithValue(context.Background(), tortureKey{}, r), c.d, reply)
	p.check(9, errors.Is(err, executor.ErrStale), "a stale reply gets %v", err)
	p.check(9, same(d, c.d), "a refused reply changed the conversation")
}

// work executes a deferred call on a worker, which may die in the middle.
func (p *torture) work(c *tortured, dice *rand.Rand) {
	var w dag.Pending
	for _, waiting := range c.d.Pending() {
		if !waiting.Approval && len(waiting.Path) == 0 && waiting.Started.IsZero() {
			w = waiting
		}
	}
	f := c.t.facts[number(w.Call.ID)]
	if f == nil {
		return
	}
	d, err := executor.Begin(c.d, w.Key)
	p.check(9, err == nil, "a call is not begun: %v", err)
	if _, err = executor.Begin(d, w.Key); !errors.Is(err, executor.ErrConflict) {
		p.check(3, false, "a call is begun twice: %v", err)
	}
	c.d, f.fails = d, true
	p.save(c)
	if dice.IntN(3) == 0 {
		return
	}

	r := p.newRun(c, dice, "run")
	r.agent.Tools = append(r.agent.Tools[:4:4], executor.NewTool(tortureTool("later"), workTorture))
	r.agent.Save = nil
	reply, err := r.agent.Work(context.WithValue(context.Background(), tortureKey{}, r), w)
	p.settle()
	p.check(9, err == nil, "a worker fails: %v", err)
	if err != nil || dice.IntN(3) == 0 {
		f.given = ""
		return
	}
	d, err = executor.Accept(c.d, reply)
	p.check(9, err == nil, "a result is not accepted: %v", err)
	again, err := executor.Accept(d, reply)
	p.check(4, err == nil && same(d, again), "the same result is accepted twice: %v", err)
	c.d = d
}

// fork makes another conversation of this one, elsewhere.
func (p *torture) fork(c *tortured, dice *rand.Rand) {
	other := &tortured{d: c.d, t: c.t.clone(), queue: &executor.Queue{}, provider: dice.IntN(2 * len(providers))}
	other.t.queue = nil
	if dice.IntN(3) > 0 {
		p.move(other, dice)
	}
	p.lineages = append(p.lineages, other)
}

// merge merges another conversation into this one.
func (p *torture) merge(c *tortured, dice *rand.Rand) {
	other := p.lineages[dice.IntN(len(p.lineages))]
	if other == c || c.open() || other.open() || len(c.t.erased)+len(other.t.erased) > 0 || len(c.t.lines[0]) == 0 || len(other.t.lines[0]) == 0 {
		return
	}
	t := c.t
	if !t.joins(other.t) {
		return
	}
	for _, l := range other.t.lines[0] {
		if !slices.Contains(t.lines[0], l) {
			t.lines[0] = append(slices.Clip(t.lines[0]), l)
		}
	}
	c.d = dag.Merge(dag.Branch{DAG: c.d}, dag.Branch{DAG: other.d})
	t.merged = true
	for task, lines := range other.t.lines {
		if task > 0 && t.lines[task] == nil {
			t.lines[task] = lines
		}
	}
	for n, f := range other.t.clone().facts {
		if t.facts[n] == nil || t.facts[n].final == nil {
			t.facts[n] = f
		}
	}
}

// joins reports whether the messages of both follow one another if the conversations are joined.
func (t *truth) joins(o *truth) bool {
	shared := 0
	for shared < min(len(t.lines[0]), len(o.lines[0])) && t.lines[0][shared] == o.lines[0][shared] {
		shared++
	}
	inPhase := shared > 0 && len(t.lines[0][shared-1].calls) > 0
	return !inPhase && t.summary == nil && o.summary == nil && !t.merged && !o.merged
}

// back goes back to before an exchange.
func (p *torture) back(c *tortured, dice *rand.Rand) {
	if c.t.merged || c.t.summary != nil {
		return
	}
	n, left := 1+dice.IntN(2), 0
	at := len(c.t.lines[0])
	for at > 0 && left < n {
		if at--; c.t.lines[0][at].role == content.User && c.t.lines[0][at].results == nil {
			left++
		}
	}
	d := c.d.Back(n)
	if left < n {
		p.check(9, d.Err() != nil && same(d.WithoutErr(), c.d), "going back too far changes something: %v", d.Err())
		return
	}
	c.d = d
	c.t.lines[0] = slices.Clip(c.t.lines[0][:at])
}

// edit goes back to before a message of the user, and says it anew.
func (p *torture) edit(c *tortured, dice *rand.Rand) {
	i, ok := c.pick(dice, func(l *line) bool { return l.role == content.User && l.results == nil })
	if !ok || c.open() || c.t.merged || c.t.summary != nil {
		return
	}
	w, n := p.word(), c.d.Transcript().Nodes[i]
	c.t.lines[0] = slices.Clip(c.t.lines[0][:i])
	c.add(c.d.WithHeads(n.Parents()...).User(w), line{role: content.User, text: w})
}

// pick returns the index of a message at random that is no summary.
func (c *tortured) pick(dice *rand.Rand, fits func(*line) bool) (int, bool) {
	var at []int
	for i, l := range c.t.lines[0] {
		if l != c.t.summary && fits(l) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return 0, false
	}
	return at[dice.IntN(len(at))], true
}

// compact replaces messages by a summary. A call stays with its results.
func (p *torture) compact(c *tortured, dice *rand.Rand) {
	lines := c.t.lines[0]
	if c.open() || c.t.summary != nil || c.t.merged || len(lines) < 3 {
		return
	}
	from := dice.IntN(len(lines) - 1)
	to := from + 1 + dice.IntN(len(lines)-from)
	if to > len(lines) || lines[from].results != nil || to < len(lines) && lines[to].results != nil {
		return
	}
	var ids []node.ID
	for _, n := range c.d.Transcript().Nodes[from:to] {
		ids = append(ids, n.ID())
	}
	w := p.word()
	c.d = c.d.Append(node.Compaction{Summary: content.Words(w), Replaced: node.ListOf(ids...)})
	c.t.summary = &line{role: content.User, text: w}
	c.t.lines[0] = slices.Concat(lines[:from], []*line{c.t.summary}, lines[to:])
}

// redact erases a message, with the executions that its results are from, and what is inside of them.
func (p *torture) redact(c *tortured, dice *rand.Rand) {
	i, ok := c.pick(dice, func(*line) bool { return true })
	if !ok || c.open() {
		return
	}
	n := c.d.Transcript().Nodes[i]
	ids := []node.ID{n.ID()}
	for _, parent := range n.Parents() {
		if parent.Kind() == "tool_execution" {
			ids = append(ids, parent.ID())
			for _, inside := range dag.FromNode(parent).WithChildren() {
				ids = append(ids, inside.ID())
			}
		}
	}
	d := c.d.Redact(ids...)
	p.check(6, d.Err() == nil, "nothing is redacted: %v", d.Err())
	c.d = d
	c.t.erase(i)
	p.draw(c, dice.IntN(4) == 0)
	if dice.IntN(2) == 0 {
		p.save(c)
	}
}

// draw looks for what was erased in every drawing (invariant 6).
func (p *torture) draw(c *tortured, pages bool) {
	drawings := map[string]func(io.Writer) error{
		"log":     func(w io.Writer) error { return c.d.WriteLog(w, nil) },
		"mermaid": func(w io.Writer) error { return viz.Mermaid(w, c.d, nil) },
		"dot":     func(w io.Writer) error { return viz.DOT(w, c.d, nil) },
	}
	if pages {
		drawings["svg"] = func(w io.Writer) error { return viz.SVG(w, c.d, nil) }
		drawings["page"] = func(w io.Writer) error { return page.Write(w, c.d, nil) }
	}
	for name, draw := range drawings {
		var b strings.Builder
		p.check(6, draw(&b) == nil, "it is not drawn: %s", name)
		p.gone(c, name, b.String())
	}
}

// gone checks that a text has nothing that was erased.
func (p *torture) gone(c *tortured, where, text string) {
	for _, w := range aWord().FindAllString(text, -1) {
		p.check(6, !c.t.erased[w], "%s is erased, and found in: %s", w, where)
	}
}

// prune drops what nothing reaches.
func (p *torture) prune(c *tortured, dice *rand.Rand) {
	if dice.IntN(2) == 0 {
		c.d = c.d.WithRef(fmt.Sprint("ref", dice.IntN(2)))
	}
	d := c.d.Prune()
	p.check(9, same(d, c.d) && len(d.Unreachable().Nodes) == 0, "pruning changes the conversation")
	c.d = d
}

// clock goes on with a clock that jumps.
func (p *torture) clock(c *tortured, dice *rand.Rand) {
	seed := dice.Uint64()
	c.d = c.d.WithSource(node.Source{Now: func() time.Time {
		return time.Now().Add(time.Duration(int64(hash(fmt.Sprint(seed, time.Now()))) % int64(100*24*time.Hour)))
	}})
}

// invariants checks what holds after every operation.
func (p *torture) invariants(c *tortured, dice *rand.Rand) {
	for i, f := range p.fakes {
		if refused := f.Refused(); len(refused) > 0 {
			p.check(1, false, "%s refuses a request: %v", providers[i].name, refused[0])
		}
	}
	d := c.d
	p.check(9, d.Err() == nil, "the conversation has the error %v", d.Err())
	if d.Err() != nil {
		return
	}
	p.mu.Lock()
	why := c.t.agree(d)
	p.mu.Unlock()
	p.check(2, why == "", "%s", why)

	results := map[node.CallKey]bool{}
	seen := map[node.ID]bool{}
	for _, n := range d.Nodes() {
		for _, parent := range n.Parents() {
			p.check(7, seen[parent.ID()], "a node comes before its parent")
		}
		seen[n.ID()] = true
		if e, ok := n.Payload().(node.ToolExecution); ok && !e.State.Unfinished() {
			key, _ := n.Call()
			p.check(4, !results[key], "the call %v has two results", key)
			results[key] = true
		}
	}
	findings := d.Validate()
	p.check(7, len(findings) == 0, "Validate finds %v", findings)
	p.check(7, d.Len() == 0 || d.Verify().OK(), "Verify finds %v", d.Verify().Findings)

	text := written(d)
	loaded, err := dag.Read(strings.NewReader(text))
	p.check(5, err == nil && same(d, loaded) && written(loaded) == text, "a document is loaded as another one: %v", err)
	p.gone(c, "a document", text)
	if len(c.t.erased) > 0 && c.store != nil && c.truth != nil && len(c.truth.erased) == len(c.t.erased) {
		held, err := c.store.held()
		p.check(6, err == nil, "%v", err)
		p.gone(c, fmt.Sprintf("what %T holds", c.store), held)
	}

	p.past = append(p.past, past{d, snapshot(d)})
	old := p.past[dice.IntN(len(p.past))]
	p.check(8, snapshot(old.d) == old.then, "an older value changed")
}

// snapshot returns what is seen of a conversation from outside.
func snapshot(d dag.DAG) string {
	text := written(d)
	for _, m := range d.Messages() {
		text += fmt.Sprint(lineOf(m))
	}
	return text
}

func written(d dag.DAG) string {
	var b strings.Builder
	if err := d.Write(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// tortureWorker runs programs, one after the other.
type tortureWorker struct {
	t      *testing.T
	dir    string
	models []api.Provider // by provider, streamed and whole

	mu     sync.Mutex // guards what follows
	fakes  []*fake.API
	blocks []content.Block // of the next response
	counts map[string]int  // what happened in the programs
}

type blocksKey struct{}

func newTortureWorker(t *testing.T, counts map[string]int) *tortureWorker {
	w := &tortureWorker{t: t, dir: t.TempDir(), counts: counts}
	for i, p := range providers {
		server := direct(t, http.NotFoundHandler())
		server.Client().Transport = transport(func(r *http.Request) (*http.Response, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.blocks, _ = r.Context().Value(blocksKey{}).([]content.Block)
			return calling(w.fakes[i])(r)
		})
		options := api.Options{Cache: api.CacheOff, MaxTokens: 20_000}
		w.models = append(w.models, p.at(server, options, false), p.at(server, options, true))
	}
	return w
}

func (w *tortureWorker) model(provider int) api.Provider { return w.models[provider] }

func (w *tortureWorker) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// play runs a program, and returns what was wrong, or "".
func (w *tortureWorker) play(steps []step) (wrong string) {
	dir, err := os.MkdirTemp(w.dir, "")
	require.NoError(w.t, err)
	defer os.RemoveAll(dir)
	w.fakes = nil
	for _, p := range providers {
		w.fakes = append(w.fakes, p.fake(fake.Func(func([]byte) fake.Reply { return p.says(w.blocks...) }).Always()))
	}
	p := &torture{tortureWorker: w, dir: dir, fakes: w.fakes}
	defer func() {
		if v := recover(); v != nil {
			wrong = fmt.Sprint("panic: ", v)
		}
	}()
	synctest.Test(w.t, func(*testing.T) {
		defer func() {
			if v := recover(); v != nil {
				stack := make([]byte, 4000)
				wrong = fmt.Sprintf("panic: %v\n%s", v, stack[:runtime.Stack(stack, false)])
			}
		}()
		wrong = p.play(steps)
	})
	return wrong
}

func (p *torture) play(steps []step) string {
	c := &tortured{t: newTruth(), queue: &executor.Queue{}, d: dag.New().System("Be random.").Tools(tortureTools()...)}
	p.lineages = []*tortured{c}
	for _, s := range steps {
		dice := rand.New(rand.NewPCG(s.dice, 1))
		c := p.lineages[dice.IntN(len(p.lineages))]
		p.count("op " + s.op)
		for _, o := range tortureOps {
			if o.name == s.op {
				o.do(p, c, dice)
			}
		}
		p.invariants(c, dice)
		p.mu.Lock()
		wrongs := slices.Clone(p.wrongs)
		p.mu.Unlock()
		if len(wrongs) > 0 {
			return fmt.Sprintf("after %v: %s", s, strings.Join(wrongs, "\n"))
		}
	}
	for _, c := range p.lineages {
		p.leave(c)
	}
	return strings.Join(p.wrongs, "\n")
}

// shrink drops steps of a failing program as long as the same invariant does not hold.
func (w *tortureWorker) shrink(steps []step, wrong string) ([]step, string) {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(steps); {
			shorter := slices.Concat(steps[:i], steps[i+size:])
			if why := w.play(shorter); invariantOf(why) == invariantOf(wrong) {
				steps, wrong = shorter, why
				continue
			}
			i += size
		}
	}
	return steps, wrong
}

// invariantOf returns the number of the first invariant that does not hold.
func invariantOf(wrong string) string { return anInvariant().FindString(wrong) }

var anInvariant = pattern.Of(`invariant \d+|panic`)

func spellSteps(steps []step) string {
	words := make([]string, len(steps))
	for i, s := range steps {
		words[i] = strings.ReplaceAll(s.String(), " ", "_")
	}
	return strings.Join(words, " ")
}

func readSteps(t *testing.T, text string) (steps []step) {
	for _, word := range strings.Fields(text) {
		name, dice, _ := strings.Cut(strings.ReplaceAll(word, "_", " "), "/")
		s := step{op: name}
		_, err := fmt.Sscanf(dice, "%x", &s.dice)
		require.NoError(t, err, word)
		steps = append(steps, s)
	}
	return steps
}

// TestTorture runs random programs over the whole API against a model of the conversations, with faults at every seam.
// After each operation ten invariants hold. A failing program is made shorter, printed and kept in testdata/torture: it
// is played first from then on.
func TestTorture(t *testing.T) {
	seed, n := seedtest.First(t), *programs
	if n == 0 {
		few := 50
		if seedtest.All() {
			few = 300
		}
		n = seedtest.Rounds(few, 20_000)
	}
	counts := map[string]int{}
	if *program != "" {
		require.Empty(t, newTortureWorker(t, counts).play(readSteps(t, *program)))
		return
	}
	names, err := filepath.Glob(filepath.Join(*keep, "*"))
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Empty(t, newTortureWorker(t, counts).play(readSteps(t, string(text))), name)
	}

	began := time.Now()
	var next, failed, played atomic.Int64
	var mu sync.Mutex
	t.Run("programs", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				own := map[string]int{}
				w := newTortureWorker(t, own)
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					for what, n := range own {
						counts[what] += n
					}
				}()
				for i := next.Add(1) - 1; i < int64(n) && failed.Load() == 0; i = next.Add(1) - 1 {
					steps := tortureOf(seed + uint64(i))
					wrong := w.play(steps)
					if played.Add(1); wrong == "" {
						continue
					}
					failed.Store(1)
					steps, wrong = w.shrink(steps, wrong)
					name := filepath.Join(*keep, fmt.Sprint(seed+uint64(i)))
					require.NoError(t, os.MkdirAll(*keep, 0o755))
					require.NoError(t, os.WriteFile(name, []byte(spellSteps(steps)+"\n"), 0o644))
					t.Fatalf("program %d of PLAIT_SEED=%d, shortened and kept in %s:\n\n"+
						"  go test -run '^TestTorture$' . -program '%s'\n\n%s", i, seed, name, spellSteps(steps), wrong)
				}
			})
		}
	})
	t.Logf("%d programs from PLAIT_SEED=%d in %v", played.Load(), seed, time.Since(began).Round(time.Millisecond))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[what], what)
	}
}
