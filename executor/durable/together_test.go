package durable

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// A response waits for what follows it, to be stored with it, but not for a hook that takes long.
func TestResponseIsStoredWhileAHookTakesLong(t *testing.T) {
	onEach(t, func(w *world) {
		var c counting
		e := w.engine(func(o *Options) {
			defers("count", 1)(o)
			works(c.tool("count"))(o)
			a := o.Agents["a"]
			a.Hooks = []executor.Hook{{Before: func(ctx context.Context, _ executor.Call) (executor.Decision, error) {
				for range time.Tick(time.Millisecond) {
					d, err := store.New(w.db).Conversation(ctx, "c")
					if err != nil || len(d.DAG().OpenCalls()) == 1 {
						return executor.Decision{}, err
					}
				}
				return executor.Decision{}, ctx.Err()
			}}}
			o.Agents["a"] = a
		})
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "Count."}))
		require.Equal(w, Done, r.State, r.Reason)
	})
}

// A process was lost between the result of a call and the end of its job: the call is not executed again.
func TestCallOfALostJobIsNotExecutedAfterItsResult(t *testing.T) {
	onEach(t, func(w *world) {
		var c counting
		e := w.engine(defers("count", 2))
		stop := w.serve(e)
		run := w.start(e, StartRequest{Text: "Count."})
		pending := w.pending(e, run)
		stop()

		// The job of the first call is that of a lost process, and is handed back.
		d := e.queue.dialect()
		by := map[bool]string{true: `ARRAY['lost']`, false: `JSONB('["lost"]')`}[d.writesInWith]
		job := slices.Min(w.jobsOfKind(e, kindCall))
		require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
			n, err := tx.Exec(w.Context(), `UPDATE `+d.jobs+` SET state = 'running', attempt = 1, attempted_by = `+by+`
				WHERE id = $1 AND state = 'available'`, job)
			require.EqualValues(w, 1, n)
			return err
		}))
		require.NoError(w, newProcess(e).handBack(w.Context(), "lost"))
		result := executor.Result{Content: content.Words("from the lost process")}
		require.NoError(w, e.Reply(w.Context(), "c", "", executor.Returned(pending[0], result)))

		w.serve(w.engine(func(o *Options) {
			defers("count", 2)(o)
			works(executor.WithEffect(c.tool("count"), executor.EffectIdempotent))(o)
		}))
		require.Equal(w, Done, w.wait(e, run).State)
		require.Equal(w, "from the lost process. many bolts 1. ", w.text("c"))
		require.EqualValues(w, 1, c.total.Load())
	})
}
