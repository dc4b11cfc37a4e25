package crashtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// The runs of a life. Their names are the names of their agents.
const (
	deferring = "deferring" // pauses for two calls of a worker
	asking    = "asking"    // pauses for an approval, and executes the call itself
	dropped   = "dropped"   // is cancelled while it waits
	parked    = "parked"    // is given back, parked, and made ready again
)

var lifeRuns = []string{deferring, asking, dropped, parked}

// brief is the store of the stopped process. For others, its leases end at once: nobody has to wait.
type brief struct{ Store }

func (b brief) ClaimRuns(ctx context.Context, c store.ClaimRunsRequest) ([]store.ClaimedRun, error) {
	c.Lease = 0
	return b.Store.ClaimRuns(ctx, c)
}

func (b brief) ClaimTasks(ctx context.Context, c store.ClaimTasksRequest) ([]store.ClaimedTask, error) {
	c.Lease = 0
	return b.Store.ClaimTasks(ctx, c)
}

func (b brief) Renew(ctx context.Context, l store.Lease, _ time.Duration) error {
	return b.Store.Renew(ctx, l, 0)
}

func (b brief) Release(ctx context.Context, l store.Lease, _ time.Duration, unused bool) error {
	return b.Store.Release(ctx, l, 0, unused)
}

// worked is the arguments of the tool of a life.
type worked struct {
	Item string `json:"item"`
}

// process returns an engine and a worker on a store. With renewing, the tool renews a lease, and asks for a second
// attempt once.
func (l *life) process(name string, db Store, renewing bool) (*durable.Engine, *durable.Worker) {
	p := &process{Store: db, name: name, write: func(e event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.history = append(l.history, e)
	}}

	// The tool renews its lease once, and fails once with a request for a second attempt.
	asked := false
	work := executor.Func("work", "Works.", func(ctx context.Context, in worked) (string, error) {
		key, deferred := durable.CallKey(ctx)
		if !deferred {
			return "worked", nil
		}
		p.log(started, key, "")
		if renewing && in.Item == "first" {
			_ = l.repeat(func() error { return p.Renew(ctx, store.Lease{Key: key, Claim: 1}, time.Hour) })
		}
		if renewing && in.Item == "second" && !asked {
			asked = true
			return "", durable.Retry(errors.New("once more"), 0)
		}
		return "worked by " + name, nil
	})

	// The model's responses depend on the run: its name is the text of the message.
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case len(last.Blocks.ToolResults()) > 0 || last.Blocks.Text() == parked:
			return apitest.Say("Done.")
		case last.Blocks.Text() == asking:
			return apitest.Call(apitest.Use("work", worked{"alone"}))
		}
		return apitest.Call(apitest.Use("work", worked{"first"}), apitest.Use("work", worked{"second"}))
	}).Always())

	settings := durable.Settings{
		Name: name, Poll: 10 * time.Millisecond, ShutdownTimeout: -1, Log: slog.New(slog.DiscardHandler),
	}
	workers := executor.Agent{Provider: model, Tools: []dag.Tool{work}, Strategy: executor.DeferAll()}
	engine := &durable.Engine{
		Store: p, Settings: settings,
		CallOptions: func(dag.Pending) durable.CallOptions { return durable.CallOptions{Attempts: -1} },
		Agents: map[string]executor.Agent{
			deferring: workers, dropped: workers, parked: workers,
			asking: {
				Provider: model, Tools: []dag.Tool{work}, Strategy: executor.Sequential(),
				Hooks: []executor.Hook{executor.RequireApproval("work")},
			},
		},
	}
	return engine, &durable.Worker{Store: p, Settings: settings, Tools: []executor.Tool{work}}
}

// live is the work of the process until it is stopped. It has each transaction of store.Runs at least once.
func (l *life) live() {
	db := brief{l.db}
	engine, worker := l.process("first", db, true)

	// The steps are functions, because the process may be stopped before each of them.
	begin := func(run string) func() {
		return func() { l.repeat(func() error { return l.start(engine, run) }) }
	}
	execute := func(run string) func() {
		return func() { _ = engine.Handle(l.ctx, store.Wake{Kind: store.WakeRun, Key: store.Key{Run: run}}) }
	}
	call := func(index int) func() {
		return func() {
			if tasks, err := db.Tasks(l.ctx, deferring); err == nil && index < len(tasks) {
				_ = worker.Handle(l.ctx, store.Wake{Kind: store.WakeTask, Key: tasks[index].Task.Key})
			}
		}
	}

	var lease store.Lease
	claim := func() {
		l.repeat(func() error {
			runs, err := db.ClaimRuns(l.ctx, store.ClaimRunsRequest{Worker: "first", Agents: []string{parked}, Run: parked})
			if len(runs) > 0 {
				lease = runs[0].Lease
			}
			return err
		})
	}

	for _, next := range []func(){
		// Pause for a worker, wake it, and execute the calls. One call asks for a second attempt.
		begin(deferring), execute(deferring),
		func() { l.repeat(func() error { _, err := db.Sweep(l.ctx, store.SweepRequest{}); return err }) },
		call(0), call(1), call(1), execute(deferring),

		// Pause for an approval, and execute the call after it.
		begin(asking), execute(asking),
		func() { l.approve(engine) },
		execute(asking),

		// Cancel a waiting run.
		begin(dropped), execute(dropped),
		func() { l.repeat(func() error { return engine.Cancel(l.ctx, dropped, "nobody needs it") }) },

		// Give a claim back, park the run, and make it ready again.
		begin(parked),
		claim,
		func() { l.repeat(func() error { return db.Release(l.ctx, lease, 0, true) }) },
		claim,
		func() {
			l.repeat(func() error {
				_, err := db.Commit(l.ctx, store.Step{Lease: lease, End: store.RunParked, Reason: "a test"})
				return err
			})
		},
		func() { l.repeat(func() error { return db.Requeue(l.ctx, parked) }) },
		execute(parked),
	} {
		if l.ctx.Err() == nil {
			next()
		}
	}
}

// repeat repeats a transaction until its outcome is known, as store.Runs asks for.
func (l *life) repeat(transaction func() error) (err error) {
	for range 100 { // if the store stays broken, it has to be opened again
		err = transaction()
		var refused *store.RunError
		if err == nil || errors.As(err, &refused) || l.ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (l *life) start(engine *durable.Engine, run string) error {
	_, err := engine.Start(l.ctx, durable.StartRequest{Run: run, Agent: run, Conversation: "of " + run, Text: run})
	return err
}

// approve approves the call of a waiting run.
func (l *life) approve(engine *durable.Engine) {
	tasks, err := engine.Store.Tasks(l.ctx, asking)
	if err != nil {
		return
	}
	for _, task := range tasks {
		if !task.Done {
			l.repeat(func() error { return engine.Reply(l.ctx, task.Task.Key, executor.Approved(shown(l.t, task))) })
		}
	}
}

// invariants checks what must hold at any moment.
func (l *life) invariants() {
	l.t.Helper()
	ctx := context.Background()
	if err := l.db.Check(ctx); err != nil {
		l.fault("invariant: damaged: %v", err)
	}
	runs, err := l.db.ListRuns(ctx, store.ListRunsRequest{})
	require.NoError(l.t, err)

	for _, run := range runs {
		tasks, err := l.db.Tasks(ctx, run.ID)
		require.NoError(l.t, err)
		open := 0
		for _, task := range tasks {
			if !task.Done {
				open++
			} else if task.Result.Outcome != store.OutcomeCancelled {
				// A stored result was accepted, also if the reply was lost.
				l.record(event{kind: accepted, key: task.Task.Key.String(), detail: sumOf(task.Result)})
			}
		}
		if open != run.Pending {
			l.fault("invariant: run %s waits for %d results, and %d are missing", run.ID, run.Pending, open)
		}

		// A run waits exactly as long as a result is missing.
		if waits := run.State == store.RunWaiting; waits != (open > 0) || waits && run.Continuation == "" {
			l.fault("invariant: run %s is %s in its pause %q, and misses %d results", run.ID, run.State, run.Continuation, open)
		}
		l.conversation(run.Conversation)
	}

	// Every started run has its conversation, and every conversation its run.
	for c, err := range store.New(l.db, nil).Conversations(ctx, "") {
		require.NoError(l.t, err)
		if _, err := l.db.Run(ctx, strings.TrimPrefix(c, "of ")); err != nil {
			l.fault("invariant: %s: %v", c, err)
		}
	}
}

func (l *life) record(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history = append(l.history, e)
}

// conversation reads a conversation and checks it.
func (l *life) conversation(key string) dag.DAG {
	l.t.Helper()
	ctx := context.Background()
	head, err := l.db.Head(ctx, key, store.Main)
	if err != nil {
		l.fault("invariant: %s: %v", key, err)
		return dag.DAG{}
	}
	c, err := store.New(l.db, nil).Conversation(ctx, key)
	require.NoError(l.t, err)
	if found := c.DAG().Validate(); len(found) > 0 {
		l.fault("invariant: %s is not valid: %v", key, found)
	}

	// The head moves from the unfinished execution of a call to that with its result.
	if unused, err := l.db.Prune(ctx, key, true); err != nil || key != "of "+asking && key != "of "+deferring && unused.Records+unused.Blobs > 0 {
		l.fault("invariant: %s has %+v that no head reaches (%v)", key, unused, err)
	}
	if len(head.Nodes) == 0 {
		l.fault("invariant: the head of %s points to nothing", key)
	}
	return c.DAG()
}

// finish lets the next process finish the runs, and checks them.
func (l *life) finish() {
	l.t.Helper()
	before := len(l.history)
	l.ctx, l.cancel = context.WithTimeout(context.Background(), patience)
	defer l.cancel()
	engine, worker := l.process("second", l.db, false)

	// The program repeats the starts and the cancellation if they were not acknowledged.
	for _, run := range lifeRuns {
		require.NoError(l.t, l.start(engine, run))
	}
	if err := engine.Cancel(l.ctx, dropped, "nobody needs it"); err != nil {
		l.fault("%s cannot be cancelled: %v", dropped, err)
	}
	cancelled := l.conversation("of " + dropped).Heads()
	if r, err := l.db.Run(l.ctx, parked); err == nil && r.State == store.RunParked {
		require.NoError(l.t, engine.Store.Requeue(l.ctx, parked))
	}

	// Serve until all runs are at rest.
	serving, stop := context.WithCancel(l.ctx)
	var ends sync.WaitGroup
	ends.Go(func() { _ = engine.Serve(serving) })
	ends.Go(func() { _ = worker.Serve(serving) })
	for _, run := range lifeRuns {
		l.wait(engine, run)
	}
	stop()
	ends.Wait()

	l.invariants()
	for _, run := range lifeRuns {
		l.done(run)
	}
	if fmt.Sprint(l.conversation("of "+dropped).Heads()) != fmt.Sprint(cancelled) {
		l.fault("a cancelled run has gone on")
	}

	// The leases of the first process end at once, so only the second is checked for calls after their results.
	l.faults = append(l.faults, l.history.faults()...)
	if n := l.history[before:].overtaken(); n > 0 {
		l.fault("%d calls started after acceptance: %v", n, l.history)
	}
}

// wait waits for the end of a run. It approves the run's calls.
func (l *life) wait(engine *durable.Engine, run string) {
	// Listen before the first look: no stop can be missed between them.
	rested := make(chan struct{}, 1)
	defer l.db.Listen(func(w store.Wake) {
		if w.Kind == store.WakeStopped && w.Key.Run == run {
			select {
			case rested <- struct{}{}:
			default:
			}
		}
	})()

	for {
		r, err := l.db.Run(l.ctx, run)
		switch {
		case err != nil:
			l.fault("lost: %s: %v", run, err)
			return
		case r.State.Ended() || r.State == store.RunParked:
			return
		case r.State == store.RunWaiting && run == asking:
			l.approve(engine)
		}
		select {
		case <-rested:
		case <-l.ctx.Done():
		}
	}
}

// done checks a run at the end.
func (l *life) done(run string) {
	ctx := context.Background()
	r, err := l.db.Run(ctx, run)
	require.NoError(l.t, err)

	state, roles := store.RunDone, "[user assistant user assistant]"
	switch run {
	case dropped:
		state = store.RunCancelled
	case parked:
		roles = "[user assistant]"
	}
	if r.State != state {
		l.fault("lost: run %s is %s: %s", run, r.State, r.Reason)
	}
	if run == dropped {
		return
	}

	// The messages show whether a turn was repeated or lost.
	var found []string
	for _, m := range l.conversation("of " + run).Transcript().Messages {
		found = append(found, string(m.Role))
	}
	if fmt.Sprint(found) != roles {
		l.fault("repeated or lost: run %s has the messages %v", run, found)
	}
}
