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

// BenchmarkTurn measures a turn of the loop (a model call, k tool calls, their nodes and events) without hooks, with a hook of every
// kind, and beside bare goroutines that do nothing but the calls. The metrics x-hooks and x-bare are how many times as long a turn
// takes with hooks as without, and without hooks as bare.
func BenchmarkTurn(b *testing.B) {
	for _, k := range []int{1, 8, 64, 10_000} {
		b.Run(fmt.Sprintf("calls=%d", k), func(b *testing.B) {
			n := max(2, 1000/k)
			var plain, hooked, alone time.Duration
			b.ReportAllocs()
			for b.Loop() {
				plain += turns(b, executor.Agent{}, k, 1, n)
				hooked += turns(b, executor.Agent{Hooks: []executor.Hook{idle}}, k, 1, n)
				start := time.Now()
				for range n {
					bare(b.Context(), k)
				}
				alone += time.Since(start)
			}
			b.ReportMetric(float64(plain.Nanoseconds())/float64(b.N*n), "ns/turn")
			b.ReportMetric(float64(hooked)/float64(plain), "x-hooks")
			b.ReportMetric(float64(plain)/float64(alone), "x-bare")
		})
	}
}

// BenchmarkLateTurn measures turns at the beginning of a run and after 10,000 of them, and how many times as long a late one takes.
func BenchmarkLateTurn(b *testing.B) {
	for _, k := range []int{1, 8} {
		b.Run(fmt.Sprintf("calls=%d", k), func(b *testing.B) {
			const sample = 200
			var early, late time.Duration
			for b.Loop() {
				early += turns(b, executor.Agent{}, k, 10, sample)
				late += turns(b, executor.Agent{}, k, 10_000, sample)
			}
			b.ReportMetric(float64(early.Nanoseconds())/float64(b.N*sample), "ns/turn-10")
			b.ReportMetric(float64(late.Nanoseconds())/float64(b.N*sample), "ns/turn-10000")
			b.ReportMetric(float64(late)/float64(early), "late/early")
		})
	}
}

// idle is a hook of every kind that does nothing.
var idle = executor.Hook{
	Input:   func(_ context.Context, m content.Message) (content.Message, error) { return m, nil },
	Send:    func(_ context.Context, r api.Request) (api.Request, error) { return r, nil },
	Prepare: func(_ context.Context, c executor.Call) (executor.Call, error) { return c, nil },
	Before:  func(context.Context, executor.Call) (executor.Decision, error) { return executor.Allow(), nil },
	After:   func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) { return r, nil },
	Next:    func(_ context.Context, t executor.Turn) (executor.Turn, error) { return t, nil },
}

// turns returns how long the sample turns after the first n of a run take.
func turns(b *testing.B, agent executor.Agent, k, n, sample int) time.Duration {
	agent.Provider, agent.Tools, agent.Limits.Turns = caller(k), []dag.Tool{instant{}}, n+sample
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
