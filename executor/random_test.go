package executor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
)

var (
	scripts = flag.Int("scripts", 0, "how many random scripts are run; 0 takes 400, with -short a quarter, and with PLAIT_LONG 50,000")
	oneOf   = flag.Int("script", -1, "the one random script to run, of those of the seed")
)

// TestNothingInvalidatesAConversation runs random scripts and checks after each that the invariants hold that every run keeps. In a
// script everything is random that a program may do, and everything that can go wrong around a run:
//
//   - Tools fail, panic, end their goroutine, hang, ignore the end of their context, report progress while they run and long after.
//     Models fail, hang, cut off, call what is not there, and write arguments that are none.
//   - Hooks of every kind change what they get, decide everything that can be decided, and fail in all the ways that tools do.
//   - Strategies are all there are, and one that returns nonsense. Limits are of every kind. Sub-agents, with hooks and limits of their
//     own, nest three deep.
//   - Messages are queued before a run, beside it and from inside its events. Runs are cancelled, end by deadlines, and are left.
//   - Paused runs are resumed in parts, in any order, with edited arguments, again, and wrongly; from memory and from JSON.
//
// What is checked is named by the functions that check it: I1 to I10, invariants of any tool loop, and the promises of [executor.Event].
func TestNothingInvalidatesAConversation(t *testing.T) {
	seed := seedtest.First(t)
	n := *scripts
	if n == 0 {
		n = seedtest.Rounds(400, 50_000)
	}
	if *oneOf >= 0 {
		runScript(t, seed, *oneOf)
		return
	}
	t.Logf("%d scripts of PLAIT_SEED=%d", n, seed)
	var next, failed atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					failed.Store(1)
				}
			}()
			for i := next.Add(1) - 1; i < int64(n) && failed.Load() == 0; i = next.Add(1) - 1 {
				runScript(t, seed, int(i))
			}
		})
	}
}

// runScript runs one script in a bubble of its own. A goroutine that is left at its end for good is a deadlock of the bubble (I6).
func runScript(t *testing.T, seed uint64, i int) {
	said := fmt.Sprintf("PLAIT_SEED=%d, -script=%d", seed, i)
	watchdog := time.AfterFunc(2*time.Minute, func() { panic("the script never ends: " + said) })
	defer watchdog.Stop()
	defer func() {
		if v := recover(); v != nil {
			panic(fmt.Sprint(said, ": ", v))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if t.Failed() {
				t.Log(said)
			}
		}()
		defer time.Sleep(5 * time.Hour) // every tool and hook returns at last
		newWorld(t, seed, uint64(i)).script()
	})
}

// world is one random script. Rand is for the script's own goroutine; what others decide is decided by the dice of the witness.
type world struct {
	t *testing.T
	*rand.Rand
	*witness
	agent    executor.Agent
	queues   []*line
	batch    []bool        // which of the queues give all at once
	arrived  *arrivals     // what came out of them
	told     *plot         // the story of the run at hand
	slept    time.Duration // what the consumer slept
	attempts int           // how often the run was resumed
	again    int           // how often it was run anew at a pause
	elapsed  time.Duration // the totals at the last pause
}

func newWorld(t *testing.T, seed, script uint64) *world {
	w := &world{t: t, Rand: rand.New(rand.NewPCG(seed, script)), arrived: newArrivals()}
	w.witness = newWitness(w.Uint64())
	switch w.IntN(3) {
	case 0:
		w.calm = true
	case 1:
		w.eternal = true
	}
	w.stubborn = w.one(12)
	return w
}

func (w *world) one(in int) bool { return w.IntN(in) == 0 }

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.Int64N(int64(d))) }

// leg is one run of the script, or one part of it between two pauses.
type leg struct {
	before dag.DAG
	end    executor.End
	err    error
	left   bool // the consumer left it
	plot   *plot
	pause  *executor.Continuation
}

// script is the whole of it: a run, resumed as long as it pauses, and what can be done with its conversation afterwards.
func (w *world) script() {
	w.agent = w.newAgent(0)
	d := w.conversation()
	if w.one(20) {
		w.byHand(d)
		return
	}
	events := func(ctx context.Context) iter.Seq2[executor.Event, error] { return w.agent.Stream(ctx, d) }
	p := newPlot(w.witness, nil)
	p.queues = w.arrived
	l := w.run(d, p, events)
	for l.pause != nil && w.attempts < 8 {
		w.attempts++
		l = w.resume(l)
	}
	w.afterwards(l)
	w.checkQueues()
	w.complain()
}

// complain fails the script where anybody saw something wrong.
func (w *world) complain() {
	w.t.Helper()
	if wrong := w.complaints(); len(wrong) > 0 {
		story := ""
		if w.told != nil {
			story = strings.Join(w.told.lines, "\n")
		}
		w.t.Fatalf("%s\n\nthe story until then:\n%s", wrong, story)
	}
}

// context is one that ends at a random time, by cancel or deadline, late, or never.
func (w *world) context() (context.Context, context.CancelFunc) {
	ctx := w.ctx()
	switch {
	case w.eternal, w.calm:
		return ctx, func() {}
	case w.one(4):
		ctx, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(w.upTo(time.Minute), func() { cancel(errCancelled) })
		return ctx, func() { timer.Stop(); cancel(errCancelled) }
	case w.one(4):
		return context.WithTimeout(ctx, w.upTo(time.Minute))
	}
	return context.WithTimeout(ctx, time.Hour)
}

var errCancelled = errors.New("cancelled at random")

// run ranges over a run, and does in its events what a program may do.
func (w *world) run(d dag.DAG, p *plot, events func(context.Context) iter.Seq2[executor.Event, error]) leg {
	ctx, cancel := w.context()
	clock := newClock(ctx, w.agent)
	defer clock.stop()
	seq := w.wrapped(events(ctx), cancel, p)
	stop := w.outsiders()
	l := leg{before: d, plot: p}
	w.told = p
	leave := -1
	if !w.calm && w.one(8) {
		leave = w.IntN(30)
	}
	l.left = w.watch(&l, seq, cancel, clock, leave)
	clock.returned(w.witness, l.left)
	stop()
	w.complain()
	if w.one(10) {
		w.checkSingleUse(seq)
	}
	if !w.eternal && !w.calm {
		cancel()
	}
	if !l.left {
		w.checkLeg(&l)
	}
	w.complain()
	return l
}

// watch ranges over the events, and reports whether it left before the end.
func (w *world) watch(l *leg, seq iter.Seq2[executor.Event, error], cancel func(), clock *clock, leave int) (left bool) {
	defer func() {
		if v := recover(); v != nil {
			if v != errConsumer {
				panic(v)
			}
			left = true
		}
	}()
	n := 0
	for event, err := range seq {
		l.plot.feed(event, err)
		if end, ok := event.(executor.End); ok {
			l.end, l.err = end, err
			continue
		}
		if n++; n == leave {
			clock.leave()
			if w.one(3) {
				panic(errConsumer)
			}
			return true
		}
		w.react(cancel, clock)
	}
	return false
}

var errConsumer = errors.New("the consumer panics")

// react does something inside of an event.
func (w *world) react(cancel func(), clock *clock) {
	if w.calm {
		return
	}
	switch w.IntN(60) {
	case 0, 1:
		w.queues[w.IntN(len(w.queues))].add()
	case 2:
		if w.one(5) && !w.eternal {
			cancel()
		}
	case 3, 4:
		d := w.upTo(5 * time.Second)
		w.slept += d
		clock.sleep(d)
	}
}

// wrapped is the events as some programs see them.
func (w *world) wrapped(seq iter.Seq2[executor.Event, error], cancel func(), p *plot) iter.Seq2[executor.Event, error] {
	if w.one(8) {
		p.ordered = true
		seq = executor.Ordered(seq)
	}
	if w.calm || !w.one(8) {
		return seq
	}
	return executor.Tee(seq, func(int, error) {}, func(executor.Event, error) {
		if w.one(40) {
			panic("an observer")
		}
	}, nil, func(executor.Event, error) {
		switch w.IntN(100) {
		case 0:
			w.queues[w.IntN(len(w.queues))].add()
		case 1:
			if !w.eternal && w.one(4) {
				cancel()
			}
		}
	})
}

// outsiders add to the queues while the run goes on, from goroutines of their own.
func (w *world) outsiders() (stop func()) {
	if w.calm || !w.one(3) {
		return func() {}
	}
	q, wait := w.queues[w.IntN(len(w.queues))], w.upTo(20*time.Second)
	timer := time.AfterFunc(wait, q.add)
	return func() { timer.Stop() }
}

// afterwards goes on with the conversation as programs do that know nothing of what happened: with another model, and where calls wait
// for somebody, with a new run.
func (w *world) afterwards(l leg) {
	if l.left {
		return
	}
	if l.pause != nil || len(l.end.DAG.OpenCalls()) > 0 {
		if l.plot.began() {
			w.runPausedAnew(l)
		}
		return
	}
	if !l.plot.began() {
		require.True(w.t, dag.Equal(l.before, l.end.DAG) && l.end.Stop == node.StopReason{}, "a run that was refused changed something")
		return
	}
	tame := executor.Agent{Provider: apitest.NewScript(apitest.Say("Welcome back.")), Tools: w.agent.Tools, Handler: w.agent.Handler}
	after, err := tame.Run(w.ctx(), l.end.DAG.User("Still there?"))
	require.NoError(w.t, err)
	require.Equal(w.t, "Welcome back.", after.Text())
	w.checkConversation("I1", after, false)
}

// ctx is a context that never ends.
func (w *world) ctx() context.Context {
	return executor.WithAttributes(context.WithValue(context.Background(), witnessKey{}, w.witness), map[string]any{"tenant": "t1", "secret": "s"})
}

// byHand carries out open calls without a run.
func (w *world) byHand(d dag.DAG) {
	ctx, cancel := w.context()
	defer cancel()
	after, err := w.agent.ExecuteTools(ctx, d)
	if errors.Is(err, executor.ErrPaused) {
		w.check("I4", len(after.OpenCalls()) > 0, "a phase paused without open calls")
	} else {
		w.check("I1", len(after.OpenCalls()) == 0, "calls are open")
		w.checkConversation("I1", after, false)
	}
	w.complain()
}

// conversation is a random one to begin with, sometimes in the middle of a tool phase.
func (w *world) conversation() dag.DAG {
	d := dag.New().System("Be random.")
	if len(w.agent.Tools) == 0 && w.agent.Handler == nil {
		d = d.Tools(w.tools(0)...)
	}
	d = d.User(fmt.Sprintf("Go #%d.", w.Uint32()))
	switch {
	case w.one(4):
		calls := w.openCalls()
		d = d.Assistant("", calls...)
		said := d.Head()
		for i, c := range calls {
			if w.one(3) {
				use := c.(content.ToolUse)
				w.never(numberOf(use.ID, use.Input), "it was carried out before")
				d, _, _ = d.AppendTo([]*node.Node{said}, node.ToolExecution{Index: i, Result: content.Words("before")})
			}
		}
	case w.one(20):
		d = d.Append(node.Message{Role: content.Assistant, Blocks: content.Words("Yes?"), Answer: node.Answer{Stop: content.StopEndTurn}})
	}
	require.NoError(w.t, d.Err())
	return d
}

// openCalls are what a model called before the script begins.
func (w *world) openCalls() []content.Block {
	var calls []content.Block
	names := []string{"any", "typed", "idle", "deferred", "unknown", "agent1", "first"}
	for i := range 1 + w.IntN(4) {
		number := w.Int64N(1<<46)<<4 | int64(i)
		calls = append(calls, newCall(w.Rand, names[w.IntN(len(names))], number))
	}
	return calls
}
