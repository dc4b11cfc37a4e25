package executor_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/internal/testkit/racetest"
)

// works returns the work of do, without that of the first time.
func works(do func()) growthtest.Work {
	do()
	const times = 20
	w := growthtest.Measure(func() {
		for range times {
			do()
		}
	})
	return growthtest.Work{Allocations: w.Allocations / times, Bytes: w.Bytes / times}
}

func TestToolPhaseAllocatesLittleForEachCall(t *testing.T) {
	racetest.SkipCounting(t)
	phase := func(k int) growthtest.Work {
		d := fan(k)
		return works(func() {
			_, err := executor.ExecuteTools(t.Context(), d)
			check(err)
		})
	}

	// A node, its payload, and the block with the result; the rest is shared by all calls.
	few, many := phase(8), phase(136)
	require.LessOrEqual(t, (many.Allocations-few.Allocations)/128, uint64(5), "allocations a call")
	require.LessOrEqual(t, (many.Bytes-few.Bytes)/128, uint64(2400), "bytes a call")
	require.LessOrEqual(t, few.Allocations, uint64(130), "allocations of a phase of 8 calls")
}

func TestTurnAllocatesLittle(t *testing.T) {
	racetest.SkipCounting(t)
	run := func(k, turns int) growthtest.Work {
		a := executor.Agent{Provider: caller(k), Tools: []dag.Tool{instant{}}, Limits: executor.Limits{Turns: turns}}
		return works(func() {
			_, err := a.Run(t.Context(), dag.New().User("Go."))
			check(err)
		})
	}
	turn := func(k int) uint64 { return (run(k, 30).Allocations - run(k, 10).Allocations) / 20 }

	require.LessOrEqual(t, turn(1), uint64(75), "allocations of a turn with one call")
	require.LessOrEqual(t, turn(64), uint64(75+63*7), "allocations of a turn with 64 calls, two of each call in the model")
}

// TestAConsumerAddsLittleToATurn compares turns whose events are consumed with turns without a consumer: an event
// becomes an interface, and nothing else is made for it.
func TestAConsumerAddsLittleToATurn(t *testing.T) {
	racetest.SkipCounting(t)
	run := func(consumed bool, turns int) growthtest.Work {
		a := executor.Agent{Provider: caller(64), Tools: []dag.Tool{instant{}}, Limits: executor.Limits{Turns: turns}}
		return works(func() {
			if !consumed {
				_, err := a.Run(t.Context(), dag.New().User("Go."))
				check(err)
				return
			}
			for _, err := range a.Stream(t.Context(), dag.New().User("Go.")) {
				check(err)
			}
		})
	}
	turn := func(consumed bool) uint64 {
		return (run(consumed, 30).Allocations - run(consumed, 10).Allocations) / 20
	}

	require.LessOrEqual(t, turn(true)-turn(false), uint64(290), "allocations of the events of a turn with 64 calls: 4 for each call")
}

// deltas is a model whose response has that many deltas.
type deltas int

func (n deltas) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	var delta api.Event = api.Delta{Kind: api.DeltaText, Text: "x"}
	return func(yield func(api.Event, error) bool) {
		for range int(n) {
			yield(delta, nil)
		}
		_ = yield(api.BlockEnd{Block: content.Text{Text: "x"}}, nil) && yield(api.Finish{Stop: content.StopEndTurn}, nil)
	}
}

// A run without a consumer makes no events: of a delta it keeps only the text, in case the response breaks off.
func TestRunMakesNoEventOfADelta(t *testing.T) {
	racetest.SkipCounting(t)
	run := func(model deltas) uint64 {
		return works(func() {
			_, err := executor.Run(t.Context(), model, dag.New().User("Go."))
			check(err)
		}).Allocations
	}
	require.LessOrEqual(t, run(2000), run(1000)+50)
}
