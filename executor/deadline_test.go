package executor

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

// newDeadline returns the context of a batch with a timeout of a minute, and what ends its run.
func newDeadline(t *testing.T) (d *deadline, endRun context.CancelFunc) {
	outer, endRun := context.WithCancel(t.Context())
	return &deadline{Context: outer, at: time.Now().Add(time.Minute)}, endRun
}

func TestToolThatWaitsForItsContextSeesTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := newDeadline(t)
		require.NoError(t, d.Err())
		start := time.Now()
		<-d.Done()
		require.Equal(t, time.Minute, time.Since(start))
		require.ErrorIs(t, d.Err(), context.DeadlineExceeded)
		d.end(context.DeadlineExceeded)
		d.end(context.Canceled)
		require.ErrorIs(t, d.Err(), context.DeadlineExceeded)
	})
}

func TestToolThatOnlyLooksAtItsContextSeesWhyItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, endRun := newDeadline(t)
		time.Sleep(time.Minute)
		d.end(context.DeadlineExceeded)
		require.ErrorIs(t, context.Cause(d), context.DeadlineExceeded)
		endRun()
		require.ErrorIs(t, d.Err(), context.DeadlineExceeded)
		<-d.Done()
		require.ErrorIs(t, d.Err(), context.DeadlineExceeded)

		d, endRun = newDeadline(t)
		endRun()
		d.end(context.DeadlineExceeded)
		require.ErrorIs(t, d.Err(), context.Canceled, "the run ended first")

		d, _ = newDeadline(t)
		d.end(context.Canceled)
		require.ErrorIs(t, d.Err(), context.Canceled, "the batch is over")
		<-d.Done()
		require.ErrorIs(t, d.Err(), context.Canceled)
	})
}

func TestContextDerivedFromThatOfACallNeedsNoGoroutine(t *testing.T) {
	d, endRun := newDeadline(t)
	c := &callContext{Context: d}
	before := runtime.NumGoroutine()
	derived := make([]context.Context, 100)
	for i := range derived {
		var cancel context.CancelFunc
		derived[i], cancel = context.WithCancel(c)
		defer cancel()
	}
	require.Less(t, runtime.NumGoroutine(), before+len(derived))

	endRun()
	for _, ctx := range derived {
		<-ctx.Done()
	}
}

func TestAlarmOfAnEarlierBatchTimesOutNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t.Context(), Agent{}, dag.New(), nil)
		defer r.close()
		p := newPhase(r, 1)
		b := &batch{phase: p, calls: []*toolCall{&p.calls[0]}}
		b.shared.Context, b.shared.at = r.ctx, time.Now().Add(time.Minute)
		p.calls[0].state = running

		r.alarm.set(b, time.Minute)
		state := func() state {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.calls[0].state
		}
		r.alarm.ring() // too early: it was set for a batch before
		require.Equal(t, running, state())

		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, done, state())
		require.ErrorIs(t, b.shared.Err(), context.DeadlineExceeded)
	})
}
