package durable

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/plait-dev/plait/internal/bell"
	"github.com/plait-dev/plait/store"
)

// Wait waits until a run has ended or is parked, and returns it.
func (e *Engine) Wait(ctx context.Context, run string) (Run, error) {
	// Listen before the first look, so that no end is missed in between.
	ended, stop := e.ends.listen(run)
	defer stop()
	for {
		r, err := e.Run(ctx, run)
		if err != nil || r.State.Ended() || r.State == Parked {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-ended:
		}
	}
}

// pollEnds is how often the runs that somebody waits for are looked up, all of them in one query.
const pollEnds = 100 * time.Millisecond

// ends wakes the callers of Wait.
type ends struct {
	engine  *Engine
	ctx     context.Context
	stop    context.CancelFunc
	polling sync.WaitGroup

	bells bell.Bells // by run

	mu    sync.Mutex // guards polls
	polls bool       // poll is running
}

func (w *ends) init(e *Engine) {
	w.engine = e
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	w.stop = func() {
		cancel()
		w.polling.Wait()
	}
}

// listen returns a channel that is filled when the run has ended, until stop is called.
func (w *ends) listen(run string) (ended <-chan struct{}, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended, stop = w.bells.Listen(run)
	if !w.polls {
		w.polls = true
		w.polling.Go(w.poll)
	}
	return ended, stop
}

// poll looks for ends in other processes, as long as somebody waits.
func (w *ends) poll() {
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-time.After(pollEnds):
		}

		runs, some := w.list()
		if !some {
			return
		}
		ended, err := w.ended(runs)
		if err != nil && w.ctx.Err() == nil {
			w.engine.Log.WarnContext(w.ctx, "durable: cannot look for ended runs", "error", err)
		}
		for _, run := range ended {
			w.bells.Ring(run)
		}
	}
}

// list returns the runs that somebody waits for. If there are none, polling ends.
func (w *ends) list() (runs []string, some bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs = w.bells.Names()
	w.polls = len(runs) > 0
	return runs, w.polls
}

// ended returns those of the runs that have ended or are parked.
func (w *ends) ended(runs []string) (ended []string, err error) {
	names, err := json.Marshal(runs)
	if err != nil {
		return nil, err
	}
	err = w.engine.db.View(w.ctx, func(tx store.Tx) error {
		ended = nil
		condition := `id IN (SELECT ` + w.engine.queue.dialect().texts("$1") + `) AND state NOT IN ('active', 'waiting')`
		return query(w.ctx, tx, `SELECT id FROM plait_index WHERE `+condition, []any{string(names)},
			func(rows store.Rows) error {
				var run string
				err := rows.Scan(&run)
				ended = append(ended, run)
				return err
			})
	})
	return ended, err
}
