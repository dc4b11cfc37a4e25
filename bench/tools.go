package main

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// tool waits for its duration and returns nothing.
type tool time.Duration

func (tool) Definition() content.Tool {
	return content.Tool{Name: "instant", Schema: `{"type":"object"}`}
}

func (t tool) Call(context.Context, executor.Call) (executor.Result, error) {
	if t > 0 {
		time.Sleep(time.Duration(t))
	}
	return executor.Result{}, nil
}

// fan returns a conversation with k calls of a tool in its last response.
func fan(k int, t tool) dag.DAG {
	calls := make([]content.Block, k)
	for i := range calls {
		calls[i] = content.ToolUse{ID: fmt.Sprint("call_", i), Name: "instant", Input: "{}"}
	}
	return dag.New().Tools(t).User("Go.").Assistant("", calls...)
}

// bare is the least that a program without Plait does: an errgroup, and a place for each result.
func bare(ctx context.Context, k int, t tool) ([]executor.Result, error) {
	results := make([]executor.Result, k)
	group, ctx := errgroup.WithContext(ctx)
	for i := range k {
		group.Go(func() (err error) {
			results[i], err = t.Call(ctx, executor.Call{Index: i})
			return err
		})
	}
	return results, group.Wait()
}

// guarded is the same work with the guarantees of a tool phase: one deadline for the batch, results in call order, and
// a result for a panic. It does not wait for a tool after the deadline.
func guarded(ctx context.Context, k int, t tool) []executor.Result {
	type slot struct {
		result executor.Result
		err    error
		done   atomic.Bool
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	slots := make([]slot, k)
	var open atomic.Int64
	open.Store(int64(k))
	all := make(chan struct{})
	for i := range slots {
		go func() {
			s := &slots[i]
			defer func() {
				if p := recover(); p != nil {
					s.err = fmt.Errorf("panic: %v", p)
				}

				// Last, after the writes to the slot: a reader of done may then read the slot.
				s.done.Store(true)
				if open.Add(-1) == 0 {
					close(all)
				}
			}()
			s.result, s.err = t.Call(ctx, executor.Call{Index: i})
		}()
	}

	select {
	case <-all:
	case <-ctx.Done():
	}

	results := make([]executor.Result, k)
	for i := range slots {
		// A tool that is late may still write to its slot: a slot is read only once it is done.
		switch s := &slots[i]; {
		case !s.done.Load():
			results[i] = executor.Result{IsError: true, Content: content.Words("timeout")}
		case s.err != nil:
			results[i] = executor.Result{IsError: true, Content: content.Words(s.err.Error())}
		default:
			results[i] = s.result
		}
	}
	return results
}

// toolPhase compares a whole tool phase, its checks and nodes included, with goroutines for the calls alone.
func toolPhase(k int, limit float64) pair.Case {
	return pair.Case{Name: "tools/" + short(k), Per: "phase", Variants: func() ([]pair.Variant, error) {
		d := fan(k, 0)
		ctx := context.Background()

		return []pair.Variant{
			{Name: "ExecuteTools", Run: func(s *pair.Sample) error {
				for range s.N {
					closed, err := executor.ExecuteTools(ctx, d)
					if err != nil {
						return err
					}
					kept = closed
				}
				return nil
			}},
			{Name: "errgroup", Run: func(s *pair.Sample) error {
				for range s.N {
					if _, err := bare(ctx, k, 0); err != nil {
						return err
					}
				}
				return nil
			}},
			{Name: "goroutines, same guarantees", Run: func(s *pair.Sample) error {
				for range s.N {
					keptResults = guarded(ctx, k, 0)
				}
				return nil
			}},
		}, nil
	}, Goals: []pair.Goal{
		{Number: 11, Kind: pair.AtMost, Limit: limit},
		{Number: 11, Name: "same guarantees", Kind: pair.AtMost, Beside: "goroutines, same guarantees"},
		{Number: 11, Name: "allocs", Kind: pair.Allocs, Limit: float64(12*k + 12)},
		{Number: 11, Name: "bytes", Kind: pair.Bytes, Limit: float64(1200*k + 1200)},
	}}
}

// slowTools compares phases with tools of 1 ms. It shows the part of a phase in the time of tools with some work.
func slowTools(k int) pair.Case {
	variants := func() ([]pair.Variant, error) {
		t := tool(time.Millisecond)
		d := fan(k, t)
		ctx := context.Background()

		return []pair.Variant{
			{Name: "ExecuteTools", Run: repeat(func() error { _, err := executor.ExecuteTools(ctx, d); return err })},
			{Name: "errgroup", Run: repeat(func() error { _, err := bare(ctx, k, t); return err })},
		}, nil
	}
	return pair.Case{
		Name: "tools/1 ms/" + short(k), Per: "phase", Wall: true, Variants: variants,
		Goals: []pair.Goal{{Number: 11, Kind: pair.AtMost, Limit: 1.05}},
	}
}

// caller is a model. Its value is the number of calls of the instant tool in each response.
type caller int

// Stream yields the calls.
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

// turns runs the loop, and measures n turns after the first ones.
func turns(s *pair.Sample, agent executor.Agent, k, after, n int) error {
	s.Pause() // the clock runs from one end of a turn to another
	agent.Provider, agent.Tools, agent.Limits.Turns = caller(k), []dag.Tool{tool(0)}, after+n
	for event, err := range agent.Stream(context.Background(), dag.New().User("Go.")) {
		if err != nil {
			return err
		}
		if end, ok := event.(executor.TurnEnd); ok && end.Turn == after {
			s.Resume()
		} else if ok && end.Turn == after+n {
			s.Pause()
		}
	}
	return nil
}

// turn measures turns of the loop with k tool calls each, without files or network.
func turn(k int) pair.Case {
	return pair.Case{Name: "turn/k=" + short(k), Per: "turn", Variants: func() ([]pair.Variant, error) {
		from := func(agent executor.Agent, after int) func(*pair.Sample) error {
			return func(s *pair.Sample) error { return turns(s, agent, k, after, s.N) }
		}
		limit := max(20, 2000/k)   // turns in a sample
		late := max(100, 10_000/k) // turns before a late one

		return []pair.Variant{
			{Name: "Stream", Run: from(executor.Agent{}, 10), Max: limit},
			{Name: "errgroup", Max: limit, Run: func(s *pair.Sample) error {
				for range s.N {
					if _, err := bare(context.Background(), k, 0); err != nil {
						return err
					}
				}
				return nil
			}},
			{Name: "late", Run: from(executor.Agent{}, late), Max: limit},
			{Name: "with hooks", Run: from(executor.Agent{Hooks: []executor.Hook{idle}}, 10), Max: limit},
		}, nil
	}, Goals: []pair.Goal{
		{Number: 12, Kind: pair.AtMost},
		{Number: 12, Name: "late beside early", Kind: pair.AtMost, Ours: "late", Beside: "Stream", Limit: 1.2},
		{Number: 12, Name: "hooks", Kind: pair.AtMost, Ours: "with hooks", Beside: "Stream", Limit: 1.3},
		{Number: 12, Name: "allocs", Kind: pair.Allocs, Limit: float64(60 + 12*k)},
	}}
}

// idle has a hook of every kind. They change nothing.
var idle = executor.Hook{
	Input:   func(_ context.Context, m content.Message) (content.Message, error) { return m, nil },
	Send:    func(_ context.Context, r api.Request) (api.Request, error) { return r, nil },
	Prepare: func(_ context.Context, c executor.Call) (executor.Call, error) { return c, nil },
	Before:  func(context.Context, executor.Call) (executor.Decision, error) { return executor.Allow(), nil },
	After:   func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) { return r, nil },
	Next:    func(_ context.Context, t executor.Turn) (executor.Turn, error) { return t, nil },
}

// talker is a model. Its value is the number of deltas before its text.
type talker int

// Stream yields the deltas.
func (t talker) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for range int(t) {
			if !yield(api.Delta{Kind: api.DeltaText, Text: "word "}, nil) {
				return
			}
		}
		_ = yield(api.BlockEnd{Block: content.Text{Text: "words"}}, nil) && yield(api.Finish{Stop: content.StopEndTurn}, nil)
	}
}

// deltas measures the cost of a run for each piece of a streamed response.
func deltas() pair.Case {
	const n = 10_000
	ctx := context.Background()
	variants := []pair.Variant{
		{Name: "Stream", Run: repeat(func() error {
			for _, err := range executor.Stream(ctx, talker(n), dag.New().User("Go.")) {
				if err != nil {
					return err
				}
			}
			return nil
		})},
		{Name: "range over the provider", Run: repeat(func() error {
			for _, err := range talker(n).Stream(ctx, api.Request{}) {
				if err != nil {
					return err
				}
			}
			return nil
		})},
		{Name: "channel of 64", Run: repeat(func() error { channel(n); return nil })},
	}

	goals := []pair.Goal{
		{Number: 14, Name: "time", Kind: pair.Value, Limit: 20},
		{Number: 14, Name: "allocs", Kind: pair.Allocs, Limit: 0.01},
		{Number: 14, Name: "provider alone", Kind: pair.AtMost, Beside: "range over the provider"},
		{Number: 14, Name: "channel", Kind: pair.AtMost, Beside: "channel of 64"},
	}
	return pair.Case{
		Name: "delta", Per: "delta", Units: n, Goals: goals,
		Variants: func() ([]pair.Variant, error) { return variants, nil },
	}
}

// repeat returns the Run of a variant: it calls f s.N times.
func repeat(f func() error) func(*pair.Sample) error {
	return func(s *pair.Sample) error {
		for range s.N {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}

// channel sends n events through a channel, as some libraries stream them.
func channel(n int) {
	events := make(chan api.Event, 64)
	var done sync.WaitGroup
	done.Go(func() {
		for range events {
		}
	})
	for range n {
		events <- api.Delta{Kind: api.DeltaText, Text: "word "}
	}
	close(events)
	done.Wait()
}
