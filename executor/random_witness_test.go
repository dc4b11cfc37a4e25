package executor_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
)

// witness is what tools, hooks and models of a script saw. They find it in their context, so that scripts can run side by side. Its dice
// fall the same way for the same question: a run can be done twice.
type witness struct {
	seed     uint64
	calm     bool // everything is a function of its arguments, and nothing is taken at random from outside
	eternal  bool // no context ever ends: a goroutine that waits for one is left behind
	nested   bool // there are sub-agents
	stubborn bool // the model makes the same call again and again

	mu      sync.Mutex
	calls   map[int64]*sighting
	spent   [4]content.Usage // by models, by how deep they are
	given   bool             // a call was given up: not all that was spent is counted
	raced   bool             // a sub-agent was given up, or reached an outer limit: what it came to is left to chance
	asked   map[uint64]int   // how often each request was made
	asks    int              // how often a Resume hook was asked
	marks   int
	busy    int             // tools that end with their context
	refused map[string]bool // messages of queues that hooks rejected
	wrong   []string
}

// sighting is what was seen of one call, by its number.
type sighting struct {
	ran      int    // how often its function was called
	never    string // why it must never be
	waits    bool   // for approval
	brought  bool   // its result came from outside
	expected string // its argument "s", where somebody changed it
	edited   bool   // by somebody whose arguments are not checked
}

type witnessKey struct{}

func of(ctx context.Context) *witness { return ctx.Value(witnessKey{}).(*witness) }

func newWitness(seed uint64) *witness {
	return &witness{seed: seed, calls: map[int64]*sighting{}, asked: map[uint64]int{}, refused: map[string]bool{}}
}

// fork is a witness of another world that was the same until now.
func (w *witness) fork() *witness {
	w.mu.Lock()
	defer w.mu.Unlock()
	other := newWitness(w.seed)
	other.calm, other.eternal, other.nested, other.stubborn = w.calm, w.eternal, w.nested, w.stubborn
	other.spent, other.given, other.raced, other.asks, other.marks = w.spent, w.given, w.raced, w.asks, w.marks
	maps.Copy(other.asked, w.asked)
	maps.Copy(other.refused, w.refused)
	for n, s := range w.calls {
		c := *s
		other.calls[n] = &c
	}
	return other
}

// dice are those of one question.
func (w *witness) dice(what string, n uint64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(what))
	return rand.New(rand.NewPCG(w.seed^h.Sum64(), n*0x9E3779B97F4A7C15+1))
}

// check notes what is wrong, and which invariant says so.
func (w *witness) check(invariant string, holds bool, format string, args ...any) bool {
	if !holds {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wrong = append(w.wrong, invariant+": "+fmt.Sprintf(format, args...))
	}
	return holds
}

func (w *witness) complaints() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.wrong, "\n")
}

// see changes what is known of a call. A number of 0 is a call that cannot be told from others.
func (w *witness) see(n int64, change func(*sighting)) {
	if n == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls[n] == nil {
		w.calls[n] = &sighting{}
	}
	change(w.calls[n])
}

func (w *witness) seen(n int64) (s sighting) {
	w.see(n, func(found *sighting) { s = *found })
	return s
}

// refuse notes a message of a queue that a hook rejects.
func (w *witness) refuse(m content.Message) {
	if name, n, ok := tagged(m.Blocks.Text()); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refused[fmt.Sprint(name, n)] = true
	}
}

func (w *witness) isRefused(name string, n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused[fmt.Sprint(name, n)]
}

func (w *witness) never(n int64, why string) { w.see(n, func(s *sighting) { s.never = why }) }

// called checks I5 for a function that is called now: at most once for each call, over all parts of a run, never for one that was denied,
// cut off, deferred and so on, and with the arguments that were decided on.
func (w *witness) called(ctx context.Context, tool string, c executor.Call) {
	n := numberOf(c.ID, c.Input)
	var s sighting
	w.see(n, func(found *sighting) { found.ran++; s = *found })
	w.check("I5", s.ran <= 1, "call %d of %s was carried out twice", n, tool)
	w.check("I5", s.never == "", "call %d of %s was carried out, though %s", n, tool, s.never)
	w.check("I5", !s.waits, "call %d of %s was carried out without approval", n, tool)
	w.check("I5", tool == handlers || tool == c.Name, "a call of %q went to %q", c.Name, tool)
	w.check("I5", c.Input.IsObject(), "arguments of %s are no object: %s", tool, c.Input)
	var in struct {
		N *int64 `json:"n"`
		S string `json:"s"`
	}
	if tool != handlers && tool != "idle" && tool != "own" && !s.edited {
		w.check("I5", c.Input.Decode(&in) == nil && in.N != nil, "%s was called with %s", tool, c.Input)
		w.check("I5", s.expected == "" || in.S == s.expected, "call %d of %s: %s instead of %q", n, tool, c.Input, s.expected)
	}
	got, ok := executor.CallOf(ctx)
	w.check("I5", ok && got == c, "CallOf is %v in %v", got, c)
	w.check("I7", executor.Attributes(ctx)["tenant"] == "t1", "an attribute is lost")
}

// obey runs fn, which ends with its context.
func (w *witness) obey(fn func()) {
	w.mu.Lock()
	w.busy++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.busy--
	}()
	fn()
}

func (w *witness) obeying() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy
}

// hang waits until the context ends, where one ever does.
func (w *witness) hang(ctx context.Context) {
	if w.eternal || w.calm {
		_ = wait(ctx, 20*time.Minute)
		return
	}
	<-ctx.Done()
}

// trouble is what can go wrong in any hook, one time in so many.
func (w *witness) trouble(ctx context.Context, d *rand.Rand, in int) (err error) {
	if d.IntN(in) != 0 {
		return nil
	}
	switch d.IntN(7) {
	case 0:
		panic(errSecret)
	case 1:
		exit()
	case 2:
		w.obey(func() { w.hang(ctx) })
		return errSecret
	case 3:
		time.Sleep(time.Duration(d.Int64N(int64(10 * time.Minute))))
		return nil
	}
	return errSecret
}

// clock checks I6 for a run: it returns at most its Grace after its context ended or its consumer left.
type clock struct {
	agent executor.Agent
	ctx   context.Context
	stop  func() bool
	mu    sync.Mutex
	start time.Time
	ended time.Time
	slept time.Duration
}

func newClock(ctx context.Context, agent executor.Agent) *clock {
	c := &clock{agent: agent, ctx: ctx, start: time.Now()}
	c.stop = context.AfterFunc(ctx, c.leave)
	return c
}

func (c *clock) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.IsZero() {
		c.ended = time.Now()
	}
}

func (c *clock) sleep(d time.Duration) {
	time.Sleep(d)
	c.slept += d
}

func (c *clock) returned(w *witness, left bool) {
	now := time.Now()
	if w.nested {
		synctest.Wait() // a sub-agent may have a grace of none
	}
	if c.ctx.Err() != nil {
		c.leave()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit := c.agent.Limits.Time; limit > 0 && (c.ended.IsZero() || c.ended.After(c.start.Add(limit))) {
		c.ended = c.start.Add(limit)
	}
	if c.ended.IsZero() {
		return
	}
	grace := c.agent.Grace
	if grace == 0 {
		grace = time.Second
	}
	late := now.Sub(c.ended) - c.slept - max(grace, 0)
	w.check("I6", late <= 0, "the run returned %v too late", late)
	if grace > 0 && (left || c.ctx.Err() != nil) {
		w.check("I6", w.obeying() == 0, "%d tools that end with their context still run", w.obeying())
	}
}

// line is a queue, and how many messages were put into it.
type line struct {
	name string
	*executor.Queue
	mu   sync.Mutex
	sent int
}

func newLine(name string, all bool) *line {
	l := &line{name: name, Queue: &executor.Queue{}}
	if all {
		l.Queue = executor.NewQueue()
	}
	return l
}

// add puts the next message into the queue.
func (l *line) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent < 12 {
		_ = l.Add(fmt.Sprintf("%s#%d.", l.name, l.sent))
		l.sent++
	}
}

// left is which messages wait, and how many were put in.
func (l *line) left() (waiting []int, sent int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.Messages() {
		_, n, _ := tagged(m.Blocks.Text())
		waiting = append(waiting, n)
	}
	return waiting, l.sent
}

// tagged is which message of which queue a text is.
func tagged(text string) (queue string, n int, ok bool) {
	for _, name := range []string{"steer", "follow"} {
		if _, rest, found := strings.Cut(text, name+"#"); found {
			if _, err := fmt.Sscanf(rest, "%d.", &n); err == nil {
				return name, n, true
			}
		}
	}
	return "", 0, false
}
