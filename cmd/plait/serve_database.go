package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/viz/page/live"
)

// serveDatabase shows the list of the conversations of a database, and a page for each, until ctx ends.
func (v *served) serveDatabase(ctx context.Context, file string) error {
	if _, err := v.existing(file); err != nil {
		return err
	}
	index := live.NewIndex(&live.IndexOptions{
		Title: filepath.Base(file), Remote: v.remote, Hosts: v.hosts,
		List: func(ctx context.Context) ([]live.Entry, error) { return v.entries(ctx, file) },
		Open: func(ctx context.Context, key string) (*live.Server, error) { return v.openPage(ctx, file+mark+key) },
	})
	defer v.following.Wait()
	defer index.Close()
	return v.listen(ctx, index, file, func() {})
}

// openPage returns a page for a conversation of a database. It follows the conversation until ctx ends.
func (v *served) openPage(ctx context.Context, name string) (*live.Server, error) {
	// The page has a copy of the streams: the open databases in them are not for several goroutines.
	own := *v.streams
	file, _ := splitName(name)
	db, err := v.existing(file)
	if err != nil {
		return nil, err
	}
	absolute := file
	if !isURL(file) {
		if absolute, err = filepath.Abs(file); err != nil {
			return nil, err
		}
	}
	own.databases = databases{open: map[string]database{absolute: db}}
	if _, err := own.conversation(name, false); err != nil {
		return nil, err
	}

	p := &served{runner: v.runner, prices: v.prices}
	p.streams = &own
	if err := p.show(name); err != nil {
		return nil, err
	}
	p.file.refresh()
	v.following.Go(func() { _ = p.follow(ctx, nil, p.file.refresh) }) // without a listener it cannot fail
	return p.page, nil
}

// entries returns the conversations of a database with the states of their durable runs. First come those waiting for a
// person, then those under way, then the others, the latest first.
func (v *served) entries(ctx context.Context, file string) ([]live.Entry, error) {
	db, err := v.existing(file)
	if err != nil {
		return nil, err
	}
	var list []live.Entry
	err = v.withEngine(file, func(e *durable.Engine) (err error) {
		list, err = entriesOf(ctx, e, db)
		return err
	})
	return list, err
}

// entriesOf is entries with an engine on the database.
func entriesOf(ctx context.Context, engine *durable.Engine, db database) ([]live.Entry, error) {
	runs, err := latestRuns(ctx, engine)
	if err != nil {
		return nil, err
	}

	all := store.New(db)
	entries := []live.Entry{}
	for key, err := range all.Conversations(ctx, "") {
		if err != nil {
			return nil, err
		}

		for h, err := range all.Heads(ctx, key, "") {
			if err != nil {
				return nil, err
			}

			// A head other than main has its name after the key, as in a FILE.
			e := live.Entry{Key: key}
			if h.Name != store.Main {
				e.Key += mark + h.Name
			}

			if when := lastChange(h); when != nil {
				e.Changed = *when
			}
			if run, ok := runs[headKey{key, h.Name}]; ok {
				if e, err = withRun(ctx, engine, e, run); err != nil {
					return nil, err
				}
			}
			entries = append(entries, e)
		}
	}

	slices.SortStableFunc(entries, func(a, b live.Entry) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), b.Changed.Compare(a.Changed))
	})
	return entries, nil
}

// headKey names a head of a conversation.
type headKey struct{ conversation, head string }

// maxLookedAt is the number of runs that are looked through for the latest of each head.
const maxLookedAt = 10_000

// latestRuns returns the latest run of each head, among the newest runs.
func latestRuns(ctx context.Context, e *durable.Engine) (map[headKey]durable.Run, error) {
	runs, err := e.Runs(ctx, durable.RunsRequest{Limit: maxLookedAt})
	if err != nil {
		return nil, err
	}
	latest := map[headKey]durable.Run{}
	for _, run := range runs {
		at := headKey{run.Conversation, run.Head}
		if _, ok := latest[at]; !ok {
			latest[at] = run // the newest comes first
		}
	}
	return latest, nil
}

// withRun returns an entry with the state of its run.
func withRun(ctx context.Context, engine *durable.Engine, e live.Entry, run durable.Run) (live.Entry, error) {
	pending, err := engine.Pending(ctx, run.ID)
	if err != nil {
		return e, err
	}
	e.State, e.Detail = stateOf(run), detailOf(run, pending)
	if run.Changed.After(e.Changed) {
		e.Changed = run.Changed
	}
	e.Waits = slices.ContainsFunc(pending, func(p dag.Pending) bool { return p.Approval })
	return e, nil
}

// stateOf returns the state of a run in words for people.
func stateOf(run durable.Run) string {
	if run.State == durable.Waiting {
		return "paused"
	}
	return string(run.State)
}

// detailOf returns what the calls of a run wait for, and why it ended or was parked.
func detailOf(run durable.Run, pending []dag.Pending) string {
	var details []string
	if calls := listed(run, pending).callsText(); calls != "" {
		details = append(details, "calls: "+calls)
	}
	if run.Reason != "" && run.State != durable.Waiting {
		details = append(details, run.Reason)
	}
	return strings.Join(details, "\n")
}

// urgency sorts entries: waiting for a person comes first.
func urgency(e live.Entry) int {
	switch {
	case e.Waits:
		return 0
	case e.State == string(durable.Parked), e.State == string(durable.Failed):
		return 1
	case e.State == "paused", e.State == string(durable.Active):
		return 2
	}
	return 3
}

// showRun shows the durable run of the conversation: its state, and its pending calls.
func (w *watched) showRun(c *store.Conversation) error {
	file, _ := splitName(w.path)
	from := live.Origin{Changed: newest(c.DAG())}
	var paused []live.Paused
	err := w.withEngine(file, func(e *durable.Engine) error {
		runs, err := e.Runs(w.ctx, durable.RunsRequest{States: openStates(), Conversation: c.Key()})
		if err != nil {
			return err
		}
		for _, run := range runs {
			if run.Head != c.Name() {
				continue
			}
			pending := c.DAG().Pending()
			if run.State != durable.Waiting {
				pending = nil
			}
			from.Run, from.Detail = stateOf(run), detailOf(run, pending)
			if len(pending) > 0 {
				paused = append(paused, w.durablePause(file, run, c.DAG()))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	w.page.SetOrigin(from)
	if len(paused) > 0 || w.durable {
		w.page.SetPaused(paused...) // otherwise those of "plait run" stay
	}
	w.durable = len(paused) > 0
	return nil
}

// newest returns the time of the newest head of a conversation; zero if it is empty.
func newest(d dag.DAG) (t time.Time) {
	for _, h := range d.Heads() {
		if h.Time().After(t) {
			t = h.Time()
		}
	}
	return t
}

// durablePause returns the pending calls of a durable run. Replies go to the database: any process with the run's agent
// continues it.
func (w *watched) durablePause(file string, run durable.Run, d dag.DAG) live.Paused {
	return live.Paused{Continuation: executor.ContinuationOf(d), Reply: func(ctx context.Context, reply executor.Reply) error {
		return w.withEngine(file, func(e *durable.Engine) error {
			err := e.Reply(ctx, run.Conversation, run.Head, reply)
			if errors.Is(err, executor.ErrConflict) {
				return fmt.Errorf("the call was answered elsewhere: %w", err)
			}
			return err
		})
	}}
}
