package executor_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// instant is a tool that does nothing.
type instant struct{}

func (instant) Definition() content.Tool {
	return content.Tool{Name: "instant", Schema: `{"type":"object"}`}
}

func (instant) Call(context.Context, executor.Call) (executor.Result, error) {
	return executor.Result{}, nil
}

// fan is a conversation whose last answer calls the instant tool k times.
func fan(k int) dag.DAG {
	calls := make([]content.Block, k)
	for i := range calls {
		calls[i] = content.ToolUse{ID: fmt.Sprint("call_", i), Name: "instant", Input: "{}"}
	}
	return dag.New().Tools(instant{}).User("Go.").Assistant("", calls...)
}

// bare is what a program without Plait would do: a goroutine for each call, and a place for its result.
func bare(ctx context.Context, k int) []executor.Result {
	results := make([]executor.Result, k)
	var all sync.WaitGroup
	for i := range k {
		all.Add(1)
		go func() {
			defer all.Done()
			results[i], _ = instant{}.Call(ctx, executor.Call{Index: i})
		}()
	}
	all.Wait()
	return results
}

// BenchmarkExecuteTools measures a whole tool phase (lookup, arguments, deadline, panics, times, k+1 nodes) beside bare
// goroutines that do nothing of this, in turns. The metric x-bare is how many times as long it takes.
func BenchmarkExecuteTools(b *testing.B) {
	for _, k := range []int{1, 8, 64, 10_000} {
		b.Run(fmt.Sprintf("calls=%d", k), func(b *testing.B) {
			d := fan(k)
			var ours, theirs time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				if _, err := executor.ExecuteTools(b.Context(), d); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				bare(b.Context(), k)
				ours, theirs = ours+middle.Sub(start), theirs+time.Since(middle)
			}
			b.ReportMetric(float64(ours)/float64(theirs), "x-bare")
			b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N*k), "ns/call")
		})
	}
}

// BenchmarkTurn measures a turn (a model call, k tool calls, their nodes) early and late in a run, and how many times as long a
// late one takes.
func BenchmarkTurn(b *testing.B) {
	for _, k := range []int{1, 8} {
		b.Run(fmt.Sprintf("calls=%d", k), func(b *testing.B) {
			var early, late time.Duration
			for b.Loop() {
				early += turns(b, k, 10)
				late += turns(b, k, 1000)
			}
			b.ReportMetric(float64(early.Nanoseconds())/float64(b.N*sample), "ns/turn-10")
			b.ReportMetric(float64(late.Nanoseconds())/float64(b.N*sample), "ns/turn-1000")
			b.ReportMetric(float64(late)/float64(early), "late/early")
		})
	}
}

// sample is how many turns are measured in a run.
const sample = 100

// turns returns how long the turns after the first n of a run take.
func turns(b *testing.B, k, n int) time.Duration {
	agent := executor.Agent{Provider: caller(k), Tools: []dag.Tool{instant{}}, Limits: executor.Limits{Turns: n + sample}}
	var start time.Time
	for event, err := range agent.Stream(b.Context(), dag.New().User("Go.")) {
		if err != nil {
			b.Fatal(err)
		}
		if e, ok := event.(executor.TurnEnd); ok && e.Turn == n {
			start = time.Now()
		}
	}
	return time.Since(start)
}

// caller is a model that always calls the instant tool that many times.
type caller int

func (c caller) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for i := range int(c) {
			if !yield(api.BlockEnd{Index: i, Block: content.ToolUse{ID: "call", Name: "instant", Input: "{}"}}, nil) {
				return
			}
		}
		yield(api.Finish{Stop: content.StopToolUse}, nil)
	}
}
