package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/internal/testkit/racetest"
)

// pausedWith returns a conversation in which n deferred calls wait for their results, and its agent.
func pausedWith(n int) (executor.Agent, dag.DAG) {
	a := executor.Agent{Provider: &busy{turns: 1, parallel: n}, Strategy: executor.DeferAll()}
	d, err := a.Run(context.Background(), ask(anything))
	mustPause(err)
	return a, d
}

func mustPause(err error) {
	if !errors.Is(err, executor.ErrPaused) {
		panic(fmt.Sprint("no pause: ", err))
	}
}

// TestAnswersOneAtATimeAreLinearInAll: n deferred calls are answered one after the other. All that is allocated for them
// grows with n, and not with its square: an answer copies nothing of the other calls.
func TestAnswersOneAtATimeAreLinearInAll(t *testing.T) {
	racetest.SkipCounting(t)
	const exponent = 1.2
	done := executor.Result{Content: content.Words("done")}
	for name, answer := range map[string]func(d dag.DAG, p dag.Pending) (dag.DAG, error){
		"Begin": func(d dag.DAG, p dag.Pending) (dag.DAG, error) { return executor.Begin(d, p.Key) },
		"Accept": func(d dag.DAG, p dag.Pending) (dag.DAG, error) {
			return executor.Accept(d, executor.Returned(p, done))
		},
		"Work": func(d dag.DAG, p dag.Pending) (dag.DAG, error) {
			_, err := executor.Agent{Tools: []dag.Tool{anything}}.Work(context.Background(), p)
			return d, err
		},
		"Resume": func(d dag.DAG, p dag.Pending) (dag.DAG, error) {
			a := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done."))}
			d, err := a.Resume(context.Background(), d, executor.Returned(p, done))
			if errors.Is(err, executor.ErrPaused) {
				err = nil
			}
			return d, err
		},
	} {
		for order, calls := range map[string]func([]dag.Pending){
			"in order": func([]dag.Pending) {}, "backward": slices.Reverse[[]dag.Pending],
		} {
			t.Run(name+" "+order, func(t *testing.T) {
				few, many := growthOfAnswers(512, calls, answer), growthOfAnswers(4096, calls, answer)
				t.Logf("512 calls: %+v; 4,096 calls: %+v", few, many)
				most := func(few uint64) uint64 { return uint64(float64(few) * math.Pow(4096/512, exponent)) }
				require.LessOrEqual(t, many.Bytes, most(few.Bytes))
				require.LessOrEqual(t, many.Allocations, most(few.Allocations))
				require.LessOrEqual(t, many.Statements, most(few.Statements))
			})
		}
	}
}

// growthOfAnswers returns the work of answering n deferred calls, after sort.
func growthOfAnswers(
	n int, sort func([]dag.Pending), answer func(dag.DAG, dag.Pending) (dag.DAG, error),
) growthtest.Work {
	_, d := pausedWith(n)
	calls := d.Pending()
	sort(calls)
	return growthtest.Measure(func() {
		for _, p := range calls {
			var err error
			d, err = answer(d, p)
			check(err)
		}
	})
}

// TestGrowthOfPausedAgentsInDepth: the innermost of n nested sub-agents pauses, and goes on.
func TestGrowthOfPausedAgentsInDepth(t *testing.T) {
	limits := executor.Limits{Depth: 1000}
	nested := func(n int) executor.Agent {
		asks := func() *apitest.Script { return once(apitest.Use("fast", `{"task":"Go on."}`)) }
		a := executor.Agent{Provider: asks(), Tools: []dag.Tool{anything}, Hooks: []executor.Hook{executor.RequireApproval()}}
		for range n {
			a.Limits = limits
			a = executor.Agent{Provider: asks(), Tools: []dag.Tool{executor.SubAgent("fast", "", a)}, Limits: limits}
		}
		return a
	}
	run := func(n int) (executor.Agent, dag.DAG) {
		a := nested(n)
		d, err := a.Run(context.Background(), ask())
		mustPause(err)
		return a, d
	}
	growthtest.Run(t, []growthtest.Case{
		{Name: "Run", Growth: growthtest.LogLinear, Small: 25, Large: 100, Fixed: true, Setup: func(_ testing.TB, n int) func() {
			return func() { run(n) }
		}},
		{Name: "Resume", Growth: growthtest.LogLinear, Small: 25, Large: 100, Fixed: true, Setup: func(_ testing.TB, n int) func() {
			a, d := run(n)
			return func() {
				_, err := a.Resume(context.Background(), d, executor.Approved(d.Pending()[0]))
				check(err)
			}
		}},
	})
}

// TestRunForksOfALongConversationAreSmall: what a run on each of 200 forks leaves in memory.
func TestRunForksOfALongConversationAreSmall(t *testing.T) {
	racetest.SkipCounting(t)
	const forks, most = 200, 4 << 10
	d := dag.New().User("Start")
	for d.Len() < 10_000 {
		d = d.Assistant("An answer.").User("On.")
	}
	held := func() int64 {
		runtime.GC()
		runtime.GC() // what finalizers and weak references let go
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	run := func() dag.DAG {
		d, err := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done."))}.Run(context.Background(), d)
		check(err)
		return d
	}
	kept := []dag.DAG{run()} // what is remembered of the conversation is there
	before := held()
	for range forks {
		kept = append(kept, run())
	}
	each := (held() - before) / forks
	t.Logf("%d bytes a fork", each)
	require.LessOrEqual(t, each, int64(most))
	runtime.KeepAlive(kept)
}
