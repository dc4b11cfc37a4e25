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

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
	"github.com/plait-dev/plait/viz/live"
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
	absolute, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	own.databases = databases{open: map[string]*sqlite.DB{absolute: db}}
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
	runs, err := latestRuns(ctx, db)
	if err != nil {
		return nil, err
	}

	all := store.New(db, nil)
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
				if e, err = withRun(ctx, db, e, run); err != nil {
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

// latestRuns returns the latest run of each head.
func latestRuns(ctx context.Context, db *sqlite.DB) (map[headKey]store.Run, error) {
	latest := map[headKey]store.Run{}
	// The runs come page by page, in the order of their IDs, so each is compared with the latest so far.
	for q := (store.ListRunsRequest{Limit: 1000}); ; {
		runs, err := db.ListRuns(ctx, q)
		if err != nil {
			return nil, err
		}

		for _, run := range runs {
			at := headKey{run.Conversation, run.Head}
			if old, ok := latest[at]; !ok || !run.Began.Before(old.Began) {
				latest[at] = run
			}
		}

		// A page with fewer runs than the limit is the last.
		if len(runs) < q.Limit {
			return latest, nil
		}
		q.After = runs[len(runs)-1].ID
	}
}

// withRun returns an entry with the state of its run.
func withRun(ctx context.Context, db *sqlite.DB, e live.Entry, run store.Run) (live.Entry, error) {
	var tasks []store.TaskState
	// The calls of an ended run do not wait any more.
	if !run.State.Ended() {
		var err error
		// ErrNoRun: the run was removed since it was listed.
		if tasks, err = db.Tasks(ctx, run.ID); err != nil && !errors.Is(err, store.ErrNoRun) {
			return e, err
		}
	}

	e.State = stateOf(run, tasks)
	if run.Changed.After(e.Changed) {
		e.Changed = run.Changed
	}

	e.Detail = detailOf(run, tasks)
	e.Waits = slices.ContainsFunc(tasks, func(t store.TaskState) bool { return t.Task.External && !t.Done })
	return e, nil
}

// stateOf returns the state of a run in words for people.
func stateOf(run store.Run, tasks []store.TaskState) string {
	inDoubt := func(t store.TaskState) bool { return t.Done && t.Result.Outcome == store.OutcomeInDoubt }
	switch {
	case !run.State.Ended() && slices.ContainsFunc(tasks, inDoubt):
		return "in doubt"
	case run.State == store.RunReady:
		return "queued"
	case run.State == store.RunWaiting:
		return "paused"
	}
	return string(run.State)
}

// detailOf returns how many calls of a run wait or are in doubt, and why it ended or was parked.
func detailOf(run store.Run, tasks []store.TaskState) string {
	var details []string
	if calls := listed(run, tasks).callsText(); calls != "-" {
		details = append(details, "calls: "+calls)
	}
	if run.Reason != "" {
		details = append(details, run.Reason)
	}
	return strings.Join(details, "\n")
}

// urgency sorts entries: waiting for a person comes first.
func urgency(e live.Entry) int {
	switch {
	case e.Waits:
		return 0
	case e.State == "in doubt", e.State == string(store.RunParked), e.State == string(store.RunFailed):
		return 1
	case e.State == "queued", e.State == "paused", e.State == string(store.RunRunning):
		return 2
	}
	return 3
}

// showRun shows the durable run of the conversation: its state, and its waiting calls.
func (w *watched) showRun(c *store.Conversation) error {
	file, _ := splitName(w.path)
	db, err := w.existing(file)
	if err != nil {
		return err
	}
	runs, err := db.ListRuns(w.ctx, store.ListRunsRequest{States: openStates(), Conversation: c.Key()})
	if err != nil {
		return err
	}

	from := live.Origin{Changed: newest(c.DAG())}
	var paused []live.Paused
	for _, run := range runs {
		if run.Head != c.Name() {
			continue
		}
		tasks, err := db.Tasks(w.ctx, run.ID)
		if err != nil {
			return err
		}
		from.Run, from.Detail = stateOf(run, tasks), detailOf(run, tasks)
		if run.State == store.RunWaiting {
			paused = append(paused, durablePause(db, run, tasks))
		}
	}

	w.page.SetOrigin(from)
	if len(paused) > 0 || w.durable {
		w.page.SetPaused(paused...) // otherwise those of "plait run" stay
	}
	w.durable = len(paused) > 0
	return nil
}

// openStates are the states of unfinished runs.
func openStates() []store.RunState {
	return slices.DeleteFunc(slices.Clone(runStates), store.RunState.Ended)
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

// durablePause returns the open calls of a durable run. Replies go to the database: any process with the run's agent
// resumes it.
func durablePause(db *sqlite.DB, run store.Run, tasks []store.TaskState) live.Paused {
	c := executor.Continuation{Run: run.ID, ID: run.Continuation, Reason: content.StopResults}
	for _, t := range tasks {
		key, err := node.ParseCallKey(t.Task.Key.Call)
		// A call with a result is not open.
		if t.Done || err != nil {
			continue
		}
		c.Calls = append(c.Calls, key)
		if t.Task.External {
			c.Reason = content.StopApproval // a person can decide about it on the page
		}
	}

	engine := &durable.Engine{Store: db}
	return live.Paused{Continuation: c, Reply: func(ctx context.Context, reply executor.Reply) error {
		err := engine.Reply(ctx, store.Key{Run: run.ID, Continuation: run.Continuation, Call: reply.Call.String()}, reply)
		if errors.Is(err, store.ErrResultConflict) {
			return fmt.Errorf("the call was answered elsewhere: %w", err)
		}
		return err
	}}
}
