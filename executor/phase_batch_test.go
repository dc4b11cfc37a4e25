package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/shared"
)

func noop(context.Context, Call) (Result, error) { return Result{}, nil }

func TestToolThatReportsItsEndedContextGetsTheReasonsOwnWords(t *testing.T) {
	for name, end := range map[string]func(r *run) (context.Context, context.CancelFunc){
		"Tool exceeded timeout of 1m0s.": func(r *run) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(r.ctx)
			cancel()
			return ctx, cancel
		},
		textCancelled: func(r *run) (context.Context, context.CancelFunc) {
			r.cancel()
			return r.ctx, r.cancel
		},
	} {
		r := newRun(t.Context(), Agent{}, dag.New(), nil)
		ctx, cancel := end(r)
		defer cancel()
		c := r.apart(Call{}, Call{})
		c.ctx.Context = ctx
		c.task = &task{timeout: time.Minute, fn: func(ctx context.Context, _ Call) (Result, error) {
			return Result{}, fmt.Errorf("gave up: %w", ctx.Err())
		}}
		got := c.failed(c.fn(&c.ctx, c.ran))
		if got.Content.Text() != name || !got.IsError {
			t.Errorf("the result says %q, not %q", got.Content.Text(), name)
		}
	}
}

// BenchmarkBatch measures how calls are executed (one deadline, results, panics, late results, ends in order) beside bare
// goroutines, in turns, without finding tools before and making nodes after. The metric x-bare is how many times as long it takes.
func BenchmarkBatch(b *testing.B) {
	for _, k := range []int{1, 8, 64, 10_000} {
		b.Run(fmt.Sprintf("calls=%d", k), func(b *testing.B) {
			d := dag.New().User("Go.").Assistant("", slices.Repeat([]content.Block{content.ToolUse{Name: "noop"}}, k)...)
			open, numbers := shared.OpenAt(&d).Phases[0], upTo(k)
			r := newRun(b.Context(), Agent{}, d, nil)
			defer r.close()
			var ours, theirs time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				p := newPhase(r, open, numbers)
				for i := range p.calls {
					p.calls[i].task = &task{fn: noop, timeout: r.agent.ToolTimeout}
				}
				p.execute()
				middle := time.Now()
				var all sync.WaitGroup
				results := make([]Result, k)
				for i := range k {
					all.Add(1)
					go func() {
						defer all.Done()
						results[i], _ = noop(b.Context(), Call{})
					}()
				}
				all.Wait()
				ours, theirs = ours+middle.Sub(start), theirs+time.Since(middle)
			}
			b.ReportMetric(float64(ours)/float64(theirs), "x-bare")
		})
	}
}
