package executor_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/executor"
)

// What a strategy returned belongs to it: it may return the same waves each time, in several runs at once.
func TestStrategyMayReturnTheSameBatchesEachTime(t *testing.T) {
	waves := []executor.Batch{{Calls: []int{0, 1}}}
	agent := executor.Agent{Strategy: func([]executor.Ready) []executor.Batch { return waves }}
	for range 2 {
		agent.Provider = once(call("nope"), call("fast"), call("fast")) // the places of the two that run are 1 and 2
		_, err := agent.Run(t.Context(), ask(fast))
		require.NoError(t, err)
		require.Equal(t, []int{0, 1}, waves[0].Calls)
	}
}

// A strategy is a program's own code like a hook: it must not hang the run, end its goroutine, or tell the model what it panicked with.
func TestInvalidStrategyExecutesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		strategy executor.Strategy
		want     string
	}{
		"hangs":  {func([]executor.Ready) []executor.Batch { time.Sleep(time.Hour); return nil }, "Operation cancelled before the tool was started."},
		"ends":   {func([]executor.Ready) []executor.Batch { runtime.Goexit(); return nil }, `Tool "fast" failed.`},
		"panics": {func([]executor.Ready) []executor.Batch { panic("secret") }, `Tool "fast" failed.`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				agent := executor.Agent{Provider: once(call("fast"), call("nope"), call("fast")), Strategy: c.strategy, HideErrors: true}
				d, err := agent.Run(ctx, ask(fast))
				require.Equal(t, name == "hangs", errors.Is(err, context.DeadlineExceeded))
				require.LessOrEqual(t, time.Since(began), time.Minute+time.Second)
				requireValid(t, d)
				got := outcomes(t, d)
				require.Equal(t, []string{"error: " + c.want, "error: " + c.want}, []string{got[0], got[2]})
				time.Sleep(2 * time.Hour) // the one that hangs is left behind
			})
		})
	}
}
