package executor

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/plait-dev/plait/dag"
)

func noop(context.Context, Call) (Result, error) { return Result{}, nil }

// BenchmarkBatch measures how calls are carried out (one deadline, slots, panics, late results, ends in order) beside bare
// goroutines, in turns, without finding tools before and making nodes after. The metric x-bare is how many times as long it takes.
func BenchmarkBatch(b *testing.B) {
	for _, k := range []int{1, 8, 64, 10_000} {
		b.Run(fmt.Sprintf("calls=%d", k), func(b *testing.B) {
			r := newRun(b.Context(), Agent{}, dag.New(), nil)
			defer r.close()
			var ours, theirs time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				batch := newBatch(r, k)
				for i := range k {
					batch.slots = append(batch.slots, slot{place: i, task: task{fn: noop, timeout: r.agent.ToolTimeout}})
				}
				batch.open = k
				batch.run()
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
