package executor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

var (
	scripts = flag.Int("scripts", 0, "how many random scripts are run; 0 takes 3,000, with -short 500, and with PLAIT_LONG set 100,000")
	seed    = flag.Uint64("seed", 0, "seed of the random scripts; 0 takes a new one")
)

// TestNothingInvalidatesAConversation runs random scripts (tools that fail, panic, hang, ignore the end of their context, vanish;
// models that fail, hang, cut off; cancels, deadlines and breaks at any time; limits of every kind) and checks after each that
// the invariants hold which every conversation of an executor has.
func TestNothingInvalidatesAConversation(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	n := *scripts
	switch {
	case n > 0:
	case testing.Short():
		n = 500
	case os.Getenv("PLAIT_LONG") != "":
		n = 100_000
	default:
		n = 3000
	}
	tempers()
	for i := range n {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, Rand: rand.New(rand.NewPCG(*seed, uint64(i))), called: map[int]int{}}
			defer func() {
				if t.Failed() {
					t.Logf("script %d of -seed=%d", i, *seed)
				}
			}()
			present.Store(w)
			w.script()
			time.Sleep(3 * time.Hour) // every tool returns at last; a goroutine that is left then is a deadlock
		})
		if t.Failed() {
			return
		}
	}
}

// world is one random script and what was seen of it.
type world struct {
	t *testing.T
	*rand.Rand
	mu     sync.Mutex  // for called
	calls  int         // how many calls the model made, to number them
	called map[int]int // how often the function of a call ran, by its number
}

func (w *world) one(in int) bool { return w.IntN(in) == 0 }

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.Int64N(int64(d))) }

type numbered struct {
	N int `json:"n"`
}

// tempers is a tool of each temper. They are made once, because schemas take longer than scripts, and count in the world that is
// the present one.
var tempers = sync.OnceValue(func() []executor.Tool {
	var list []executor.Tool
	add := func(name string, fn func(ctx context.Context, n int) (any, error)) {
		list = append(list, executor.Func(name, "", func(ctx context.Context, in numbered) (any, error) {
			present.Load().count(in.N)
			return fn(ctx, in.N)
		}))
	}
	add("echo", func(_ context.Context, n int) (any, error) { return fmt.Sprint("echo ", n), nil })
	add("fails", func(context.Context, int) (any, error) { return nil, errors.New("failed") })
	add("panics", func(context.Context, int) (any, error) { panic(errors.New("panicked")) })
	add("exits", func(context.Context, int) (any, error) { runtime.Goexit(); return nil, nil })
	add("slow", func(ctx context.Context, n int) (any, error) {
		return "slow", wait(ctx, time.Duration(n%7)*5*time.Second)
	})
	add("hangs", func(ctx context.Context, _ int) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
	add("deaf", func(_ context.Context, n int) (any, error) {
		time.Sleep(time.Duration(n%7) * time.Minute)
		return "late", nil
	})
	add("silent", func(context.Context, int) (any, error) { return nil, nil })
	add("wrong", func(context.Context, int) (any, error) { return content.Blocks{}, fmt.Errorf("\xff") })
	add("worse", func(context.Context, int) (any, error) { return content.ToolUse{}, nil })
	return list
})

var present atomic.Pointer[world]

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.called[n]++
}

// tools are the tools of all tempers, some with a timeout of their own.
func (w *world) tools() []dag.Tool {
	var list []dag.Tool
	for _, t := range tempers() {
		if w.one(4) {
			t = executor.WithTimeout(t, w.upTo(time.Minute)-10*time.Second)
		}
		list = append(list, t)
	}
	return list
}

// answer is a random turn of the model.
func (w *world) answer() apitest.Turn {
	turn := apitest.Turn{}
	if w.one(2) {
		turn = apitest.Say("So.")
	}
	for range w.IntN(5) {
		turn = turn.Call(w.call())
	}
	switch w.IntN(12) {
	case 0:
		turn = turn.Stop(content.StopMaxTokens)
	case 1:
		turn = turn.Stop(content.StopPause)
	case 2:
		turn = turn.Fail(&api.Error{Kind: api.ErrOverloaded})
	case 3:
		turn = turn.Fail(&api.Error{Kind: api.ErrAuth})
	case 4:
		if w.one(3) {
			turn = turn.Hang()
		}
	case 5:
		turn = turn.Stop(content.StopContext)
	}
	return turn.Wait(w.upTo(10 * time.Second)).Usage(content.Usage{Output: w.Int64N(100)})
}

func (w *world) call() content.ToolUse {
	names := []string{"echo", "echo", "fails", "panics", "exits", "slow", "slow", "hangs", "deaf", "silent", "wrong", "worse", "unknown", ""}
	w.calls++
	made := apitest.Use(names[w.IntN(len(names))], numbered{w.calls})
	switch w.IntN(8) {
	case 0:
		made.Input = content.JSON([]string{"", "{", "[]", `{"n":"x"}`}[w.IntN(4)])
	case 1:
		made.ID = "same"
	}
	return made
}

// conversation is a random one to begin with, sometimes in the middle of a tool phase.
func (w *world) conversation() dag.DAG {
	d := dag.New().System("Be random.").Tools(w.tools()...).User("Go.")
	if w.one(3) {
		var calls []content.Block
		for range 1 + w.IntN(3) {
			calls = append(calls, w.call())
		}
		d = d.Assistant("", calls...)
		said := d.Head()
		for i := range calls {
			if w.one(3) {
				d, _, _ = d.AppendTo([]*node.Node{said}, node.ToolExecution{Index: i, Result: content.Words("before")})
			}
		}
	}
	require.NoError(w.t, d.Err())
	return d
}

func (w *world) agent(model api.Provider) executor.Agent {
	a := executor.Agent{Provider: model, Limits: executor.Limits{Turns: 1 + w.IntN(8)}}
	if w.one(3) {
		a.Strategy = executor.Parallel(1 + w.IntN(3))
	}
	if w.one(3) {
		a.ToolTimeout = w.upTo(20*time.Second) - time.Second
	}
	if w.one(4) {
		a.Limits.Tokens = 1 + w.Int64N(200)
	}
	if w.one(4) {
		a.Limits.Time = w.upTo(time.Minute)
	}
	if w.one(4) {
		a.Grace = w.upTo(time.Minute) - 10*time.Second
	}
	return a
}

// context is one that ends at a random time, by cancel or deadline, or late.
func (w *world) context() (context.Context, context.CancelFunc) {
	switch w.IntN(4) {
	case 0:
		ctx, cancel := context.WithCancelCause(w.t.Context())
		timer := time.AfterFunc(w.upTo(time.Minute), func() { cancel(errCancelled) })
		return ctx, func() { timer.Stop(); cancel(nil) }
	case 1:
		return context.WithTimeout(w.t.Context(), w.upTo(time.Minute))
	}
	return context.WithTimeout(w.t.Context(), time.Hour) // some scripts hang
}

var errCancelled = errors.New("cancelled at random")

func (w *world) script() {
	var turns []apitest.Turn
	for range 1 + w.IntN(6) {
		turns = append(turns, w.answer())
	}
	model := apitest.NewScript(append(turns, apitest.Say("The end."))...)
	d, agent := w.conversation(), w.agent(model)
	ctx, cancel := w.context()
	defer cancel()
	leave := 1000
	if w.one(5) {
		leave = w.IntN(40)
	}
	end, err, left := w.watch(agent.Stream(ctx, d), leave)
	w.checkCalls(model)
	if left {
		return
	}
	w.checkEnd(d, end, err)

	after, err := executor.Run(w.t.Context(), apitest.NewScript(apitest.Say("Welcome back.")), end.DAG.User("Still there?"))
	require.NoError(w.t, err)
	require.Equal(w.t, "Welcome back.", after.Text())
	requireValid(w.t, after)
}

// watch checks the events of a run: starts and ends in pairs, one End, last.
func (w *world) watch(events func(func(executor.Event, error) bool), leave int) (end executor.End, err error, left bool) {
	open := map[int]bool{}
	ended, n := false, 0
	for event, failure := range events {
		require.False(w.t, ended, "%T after the End", event)
		switch e := event.(type) {
		case executor.ToolStart:
			require.False(w.t, open[e.Call.Index])
			open[e.Call.Index] = true
		case executor.ToolEnd:
			require.True(w.t, open[e.Execution.Index])
			delete(open, e.Execution.Index)
		case executor.TurnEnd:
			require.Empty(w.t, open)
			requireValid(w.t, e.DAG)
		case executor.End:
			ended, end, err = true, e, failure
			continue
		}
		require.NoError(w.t, failure)
		if n++; n == leave {
			return end, nil, true
		}
	}
	require.True(w.t, ended)
	require.Empty(w.t, open)
	return end, err, false
}

// checkCalls checks that no call was carried out twice, and that what was sent was, each time, a conversation.
func (w *world) checkCalls(model *apitest.Script) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, times := range w.called {
		require.Equal(w.t, 1, times, "call %d", n)
	}
	for _, req := range model.Requests() {
		_, notes := api.Repair(req.Messages, api.Rules{EndsOpen: func(content.Message) bool { return true }})
		for _, note := range notes {
			require.Contains(w.t, []api.RepairKind{api.RepairID, api.RepairMerged}, note.Kind, note.String())
		}
	}
}

func (w *world) checkEnd(before dag.DAG, end executor.End, err error) {
	t, d := w.t, end.DAG
	requireValid(t, d)
	require.Empty(t, d.OpenCalls())
	require.Equal(t, end.Stop, stopped(t, d))
	for _, head := range before.Heads() {
		require.True(t, d.Contains(head), "what was said before is lost")
	}
	switch end.Stop.Reason {
	case content.StopCancelled:
		require.ErrorIs(t, err, errCancelled)
	case content.StopDeadline:
		require.ErrorIs(t, err, context.DeadlineExceeded)
	case content.StopError:
		require.Error(t, err)
	default:
		require.NoError(t, err)
	}
	for _, n := range d.Nodes() {
		e, ok := n.Payload().(node.ToolExecution)
		if !ok || e.Result.Text() == "before" {
			continue
		}
		var in numbered
		if e.Tool == "echo" && !e.IsError && e.Input.Decode(&in) == nil {
			require.Equal(t, fmt.Sprint("echo ", in.N), e.Result.Text(), "a result went to another call")
		}
		require.False(t, e.Ended.Before(e.Started))
	}
	for _, m := range d.Messages() {
		for _, r := range m.Blocks.ToolResults() {
			require.NotEqual(t, content.NoResult, r.Content.Text())
		}
	}
}
