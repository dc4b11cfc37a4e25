package durable

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// The clocks of two processes and of a program are hours off. Waits are as long as they should be: the database's time
// counts.
func TestWrongClockDoesNoHarm(t *testing.T) {
	onEach(t, func(w *world) {
		off := func(by time.Duration) func(o *Options) {
			return func(o *Options) {
				o.now = func() time.Time { return time.Now().Add(by) }
				o.River = lookOften
			}
		}
		var tried atomic.Int64
		again := executor.WithEffect(tool("again", func(context.Context, string) (string, error) {
			if tried.Add(1) == 1 {
				return "", Retry(errors.New("not yet"), 500*time.Millisecond)
			}
			return "now", nil
		}), executor.EffectReadOnly)
		for _, by := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
			w.serve(w.engine(func(o *Options) {
				off(by)(o)
				works(again)(o)
				down := apitest.Fail(&api.Error{Kind: api.ErrOverloaded})
				o.Agents = map[string]executor.Agent{
					"a": {
						Provider: apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
							if len(req.Messages) == 1 {
								return apitest.Call(apitest.Use("again", item{}), apitest.Use("sign", item{}))
							}
							return apitest.Say("Done.")
						}).Always()),
						Hooks: []executor.Hook{executor.RequireApproval("sign")},
						Tools: []dag.Tool{executor.DeferredTool(again.Definition()), tool("sign", nil)},
					},
					"fails": {Provider: once(down, apitest.Say("Done.").Always())},
				}
				o.Call = func(_ string, p dag.Pending) CallOptions {
					if p.Approval {
						return CallOptions{Deadline: time.Second}
					}
					return CallOptions{}
				}
			}))
		}

		began := time.Now()
		before, after := w.engine(off(-7*time.Hour)), w.engine(off(7*time.Hour))
		failing := w.start(before, StartRequest{Conversation: "d", Agent: "fails", Text: "Hi."})
		run := w.start(after, StartRequest{Text: "Sign."})
		for _, id := range []string{run, failing} {
			r := w.wait(before, id)
			require.Equal(w, Done, r.State, r.Reason)
		}
		require.EqualValues(w, 2, tried.Load())
		require.Contains(w, fmt.Sprint(w.load("c").Messages()), textDeadline)
		require.Greater(w, time.Since(began), time.Second, "the deadline was not waited for")
	})
}

// fetch lets a process take the job of a run, as River does.
func (w *world) fetch(e *Engine, run, process string) {
	w.Helper()
	d := e.queue.dialect()
	by := map[bool]string{true: `ARRAY['` + process + `']`, false: `JSONB('["` + process + `"]')`}[d.writesInWith]
	require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
		n, err := tx.Exec(w.Context(), `UPDATE `+d.jobs+` SET state = 'running', attempt = 1, attempted_by = `+by+`
			WHERE id = (SELECT job FROM plait_index WHERE id = $1) AND state = 'available'`, run)
		require.EqualValues(w, 1, n)
		return err
	}))
}

// lose lets a process take the job of a run, and dies: others hand the job back.
func (w *world) lose(e *Engine, run, lost string) {
	w.Helper()
	w.fetch(e, run, lost)
	p := &process{Engine: e, id: "other"}
	require.NoError(w, p.handBack(w.Context(), lost))
}

// A fetch was committed, and the reply was lost: the process has a job in the database, and does not know it.
func TestJobThatDidNotArriveIsHandedBack(t *testing.T) {
	onEach(t, func(w *world) {
		e := w.engine(says(apitest.Say("Hello.").Always()))
		run := w.start(e, StartRequest{Text: "Hi."})
		p := &process{Engine: e, id: "p", work: map[int64]context.CancelCauseFunc{}}
		w.fetch(e, run, p.id)

		// At the first look, it may be on its way.
		_, unknown, err := p.strays(w.Context(), nil)
		require.NoError(w, err)
		require.Len(w, unknown, 1)
		require.Equal(w, map[string]int{"running": 1}, w.jobs(e))

		// It has arrived since: it is left alone.
		p.work[unknown[0]] = func(error) {}
		_, known, err := p.strays(w.Context(), unknown)
		require.NoError(w, err)
		require.Empty(w, known)
		require.Equal(w, map[string]int{"running": 1}, w.jobs(e))
		delete(p.work, unknown[0])

		_, _, err = p.strays(w.Context(), unknown)
		require.NoError(w, err)
		require.Equal(w, map[string]int{"available": 1, "discarded": 1}, w.jobs(e))
		w.serve(e)
		require.Equal(w, Done, w.wait(e, run).State)
		require.Equal(w, "Hello.", w.text("c"))
	})
}

// A process died after its row was gone, and has a job.
func TestJobOfAProcessWithoutARowIsFound(t *testing.T) {
	onEach(t, func(w *world) {
		e := w.engine(says(apitest.Say("Hello.").Always()))
		run := w.start(e, StartRequest{Text: "Hi."})
		w.fetch(e, run, "gone")
		p := &process{Engine: e, id: "p", work: map[int64]context.CancelCauseFunc{}}
		processes, unknown, err := p.strays(w.Context(), nil)
		require.NoError(w, err)
		require.Equal(w, []string{"gone"}, processes)
		require.Empty(w, unknown)

		gone := &process{Engine: e, id: "gone"}
		require.NoError(w, gone.firstBeat(w.Context()))
		processes, _, err = p.strays(w.Context(), nil)
		require.NoError(w, err)
		require.Empty(w, processes, "it is alive")
	})
}

// A step shows that a run does not crash its processes, however many are lost in its whole life.
func TestLossesAreCountedFromTheLastStep(t *testing.T) {
	onEach(t, func(w *world) {
		e := w.engine(says(apitest.Say("Hello.").Always()))
		run := w.start(e, StartRequest{Text: "Hi."})
		for i := range 3 * e.Losses {
			c, err := e.Store().Conversation(w.Context(), "c")
			require.NoError(w, err)
			require.NoError(w, c.Append(w.Context(), c.DAG().User(fmt.Sprint("step ", i))))
			w.lose(e, run, fmt.Sprint("p", i))
			r, err := e.Run(w.Context(), run)
			require.NoError(w, err)
			require.Equal(w, Active, r.State, "loss %d: %s", i, r.Reason)
		}

		// In the same step they count. The last loss above was the first one of this step.
		for i := range e.Losses {
			w.lose(e, run, fmt.Sprint("q", i))
		}
		r, err := e.Run(w.Context(), run)
		require.NoError(w, err)
		require.Equal(w, Parked, r.State)
		require.Contains(w, r.Reason, fmt.Sprint(e.Losses+1, " processes"))

		require.NoError(w, e.Requeue(w.Context(), run))
		w.serve(e)
		require.Equal(w, Done, w.wait(e, run).State)
	})
}

// away is a database that cannot be reached for some time.
type away struct {
	store.Transactor
	gone atomic.Bool
}

var errAway = errors.New("the database is away")

// Update implements store.Transactor.
func (a *away) Update(ctx context.Context, f func(store.Tx) error) error {
	if a.gone.Load() {
		return errAway
	}
	return a.Transactor.Update(ctx, f)
}

// View implements store.Transactor.
func (a *away) View(ctx context.Context, f func(store.Tx) error) error {
	if a.gone.Load() {
		return errAway
	}
	return a.Transactor.View(ctx, f)
}

// AppendIf implements store.Transactor.
func (a *away) AppendIf(ctx context.Context, r store.AppendRequest, query string, args ...any) (store.Head, bool, error) {
	if a.gone.Load() {
		return store.Head{}, false, errAway
	}
	return a.Transactor.AppendIf(ctx, r, query, args...)
}

// outage is a database that a process loses while it executes calls. It comes back after a time that is longer than that
// after which a process counts as lost. If there are others, they reach it all the time, and the process executes calls
// alone: River, whose connection is not taken away here, would go on giving it runs.
func outage(w *world, defers, others bool) (results []string, times map[string]int) {
	const calls = 8
	var c counting
	begun, finish := make(chan struct{}, calls), make(chan struct{})
	slow := tool("pay", func(ctx context.Context, item string) (string, error) {
		_, _ = c.tool("pay").Call(ctx, executor.Call{Input: content.JSON(`{"name":"x"}`)})
		begun <- struct{}{}
		<-finish
		return "paid " + item, nil
	})
	db := &away{Transactor: w.db}
	runs := func(o *Options) {
		agent := executor.Agent{Provider: payer(calls), ToolTimeout: -1, Tools: []dag.Tool{slow}}
		if defers {
			agent.Strategy = executor.DeferAll()
		}
		o.Agents = map[string]executor.Agent{"a": agent}
	}
	executes := func(o *Options) {
		works(slow)(o)
		o.Workers[0].Concurrency = calls
	}
	e := w.engine(func(o *Options) {
		runs(o)
		if !others {
			executes(o)
			o.wrap = func(store.Transactor) store.Transactor { return db }
		}
	})
	w.serve(e)
	stop := func() {}
	if others {
		stop = w.serve(w.engine(func(o *Options) {
			executes(o)
			o.wrap = func(store.Transactor) store.Transactor { return db }
		}))
	}
	run := w.start(e, StartRequest{Text: "Pay."})
	for range calls {
		<-begun
	}

	// The calls end while the database is away. Others, which reach it, take the process for lost.
	db.gone.Store(true)
	close(finish)
	if others {
		w.serve(w.engine(executes))
		require.Equal(w, Done, w.wait(e, run).State)
	} else {
		time.Sleep(2 * lapse * heartbeat)
	}
	db.gone.Store(false)
	stop() // when the results were offered
	r := w.wait(e, run)
	require.Equal(w, Done, r.State, r.Reason)
	for _, m := range w.load("c").Messages() {
		for _, result := range m.Blocks.ToolResults() {
			results = append(results, result.Content.Text())
		}
	}
	require.Len(w, results, calls)
	return results, c.times
}

// payer is a model that calls pay n times at once.
func payer(n int) api.Provider { return calls("pay", n) }

// A finished call's result is kept and offered until the database is back.
func TestResultsOutliveAnAbsenceOfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, defers := range []bool{true, false} {
		t.Run(map[bool]string{true: "calls as jobs", false: "calls in the run"}[defers], func(t *testing.T) {
			onOne(t, func(w *world) {
				results, times := outage(w, defers, false)
				for i, result := range results {
					require.Equal(w, fmt.Sprint("paid bolts ", i), result)
				}
				for key, n := range times {
					require.Equal(w, 1, n, key)
				}
			})
		})
	}
}

// A process that alone has lost the database is taken for lost. The model reads that the outcome is unknown, and the results
// that are offered later are refused by the state.
func TestResultsOfAProcessThatWasCutOffAreRefusedByTheState(t *testing.T) {
	onEach(t, func(w *world) {
		results, times := outage(w, true, true)
		for _, result := range results {
			require.Equal(w, content.OutcomeUnknown, result)
		}
		for key, n := range times {
			require.Equal(w, 1, n, key)
		}
		require.NoError(w, w.db.View(w.Context(), func(tx store.Tx) error {
			rows, err := queryInbox(w.Context(), tx, "c", store.Main, "")
			require.Empty(w, rows)
			return err
		}))
	})
}
