package crashtest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// The states of the runs in a golden database. A run is named like its state.
const (
	stateStarted = "started"      // nobody has claimed it
	stateClaimed = "claimed"      // its process is lost
	statePaused  = "paused"       // it has one of two results
	stateCalled  = "called"       // a call is claimed, and its process is lost
	stateReady   = "ready"        // it has all of its results
	stateDoubt   = "in doubt"     // its process is lost, and has begun a call
	stateInner   = "in sub-agent" // it waits for an approval in a sub-agent
	stateParked  = "parked"       // with its results
)

var goldenStates = []string{
	stateStarted, stateClaimed, statePaused, stateCalled, stateReady, stateDoubt, stateInner, stateParked,
}

// vanishing is the store of a process about to vanish. Its leases end at once.
type vanishing struct {
	store.Runs
	gone bool
}

var errGone = errors.New("the process is gone")

func (v *vanishing) ClaimRuns(ctx context.Context, c store.ClaimRunsRequest) ([]store.ClaimedRun, error) {
	c.Lease = 0
	return v.Runs.ClaimRuns(ctx, c)
}

func (v *vanishing) ClaimTasks(ctx context.Context, c store.ClaimTasksRequest) ([]store.ClaimedTask, error) {
	c.Lease = 0
	return v.Runs.ClaimTasks(ctx, c)
}

func (v *vanishing) Commit(ctx context.Context, s store.Step) (store.Head, error) {
	if v.gone {
		return store.Head{}, errGone
	}
	return v.Runs.Commit(ctx, s)
}

func (v *vanishing) Release(ctx context.Context, lease store.Lease, d time.Duration, unused bool) error {
	if v.gone {
		return errGone
	}
	return v.Runs.Release(ctx, lease, d, unused)
}

// goldenEngine returns the engine and the worker of the runs. During is called in the calls of an agent itself.
func goldenEngine(db store.Runs, during func()) (*durable.Engine, *durable.Worker) {
	// A call with a key is executed by a worker, any other by the agent itself.
	count := executor.Func("count", "Counts.", func(ctx context.Context, in counted) (string, error) {
		if _, deferred := durable.CallKey(ctx); !deferred {
			during()
		}
		return "many " + in.Name, nil
	})
	model := func(calls ...content.ToolUse) api.Provider {
		return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
			results := req.Messages[len(req.Messages)-1].Blocks.ToolResults()
			if len(results) == 0 {
				return apitest.Call(calls...)
			}
			text := ""
			for _, r := range results {
				text += r.Content.Text() + ". "
			}
			return apitest.Say(text)
		}).Always())
	}

	// The agents: one with calls for workers, one with an approval, and one with the second as sub-agent.
	bolts, nuts := apitest.Use("count", counted{"bolts"}), apitest.Use("count", counted{"nuts"})
	workers := executor.Agent{
		Provider: model(bolts, nuts), Tools: []dag.Tool{count}, Strategy: executor.DeferAll(),
	}
	asking := executor.Agent{
		Provider: model(bolts), Tools: []dag.Tool{count}, Hooks: []executor.Hook{executor.RequireApproval("count")},
	}
	outer := executor.Agent{
		Provider: model(apitest.Use("ask", executor.Task{Task: "Count."})),
		Tools:    []dag.Tool{executor.SubAgent("ask", "Asks another agent.", asking)},
	}

	agents := map[string]executor.Agent{stateDoubt: asking, stateInner: outer}
	for _, state := range goldenStates {
		if agents[state].Provider == nil {
			agents[state] = workers
		}
	}
	settings := durable.Settings{
		Name: "a process", Poll: 10 * time.Millisecond, ShutdownTimeout: -1, Log: slog.New(slog.DiscardHandler),
	}
	return &durable.Engine{Store: db, Agents: agents, Settings: settings},
		&durable.Worker{Store: db, Tools: []executor.Tool{count}, Settings: settings}
}

// WriteGolden stores a run in each state.
func WriteGolden(t *testing.T, db Store) {
	t.Helper()
	ctx := context.Background()
	process := &vanishing{Runs: db}
	engine, worker := goldenEngine(process, func() { process.gone = true })

	execute := func(run string) {
		require.NoError(t, engine.Handle(ctx, store.Wake{Kind: store.WakeRun, Key: store.Key{Run: run}}))
	}

	// call lets a worker execute the first calls of a run.
	call := func(run string, calls int) {
		tasks, err := db.Tasks(ctx, run)
		require.NoError(t, err)
		require.Len(t, tasks, 2)
		for _, task := range tasks[:calls] {
			require.NoError(t, worker.Handle(ctx, store.Wake{Kind: store.WakeTask, Key: task.Task.Key}))
		}
	}

	// claim takes a run as a process does, and leaves it with a lease that ends at once.
	claim := func(run string) store.Lease {
		claimed, err := process.ClaimRuns(ctx, store.ClaimRunsRequest{
			Worker: "a process", Agents: []string{run}, Formats: []int{2}, Run: run,
		})
		require.NoError(t, err)
		require.Len(t, claimed, 1)
		return claimed[0].Lease
	}

	for _, run := range goldenStates {
		_, err := engine.Start(ctx, durable.StartRequest{Run: run, Agent: run, Conversation: "of " + run, Text: "How many?"})
		require.NoError(t, err)
		if run != stateStarted && run != stateClaimed {
			execute(run)
		}
	}

	// Leave each run in the state of its name.
	claim(stateClaimed)
	call(statePaused, 1)
	call(stateReady, 2)
	call(stateParked, 2)
	_, err := db.Commit(ctx, store.Step{Lease: claim(stateParked), End: store.RunParked, Reason: "nobody can read it"})
	require.NoError(t, err)
	tasks, err := process.ClaimTasks(ctx, store.ClaimTasksRequest{
		Worker: "a process", Tools: []string{"count"}, Key: firstCall(t, db, stateCalled).Task.Key,
	})
	require.NoError(t, err)
	require.Len(t, tasks, 1)

	// This run comes last: with its call the process is gone.
	require.NoError(t, engine.Reply(ctx, firstCall(t, db, stateDoubt).Task.Key, executor.Approved(shown(t, firstCall(t, db, stateDoubt)))))
	execute(stateDoubt)
}

// shown returns the call of a task, as it is shown to whoever replies.
func shown(t testing.TB, task store.TaskState) dag.Pending {
	t.Helper()
	decoded, err := executor.ToolTaskCodec{}.Decode(task.Task.Payload)
	require.NoError(t, err)
	return decoded.Pending
}

func firstCall(t *testing.T, db store.Runs, run string) store.TaskState {
	t.Helper()
	tasks, err := db.Tasks(context.Background(), run)
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	return tasks[0]
}

// FinishGolden fails if a run of WriteGolden, perhaps by a former version, is not in its state, or does not finish.
func FinishGolden(t *testing.T, db Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, db.Check(ctx))

	// Each run is in the state of its name.
	states := map[string]store.RunState{
		stateStarted: store.RunReady, stateClaimed: store.RunRunning, statePaused: store.RunWaiting,
		stateCalled: store.RunWaiting, stateReady: store.RunReady, stateDoubt: store.RunRunning,
		stateInner: store.RunWaiting, stateParked: store.RunParked,
	}
	pending := map[string]int{statePaused: 1, stateCalled: 2, stateInner: 1}
	for run, state := range states {
		r, err := db.Run(ctx, run)
		require.NoError(t, err)
		require.Equal(t, state, r.State, run)
		require.Equal(t, pending[run], r.Pending, run)
	}

	// Two of the runs need a person: one waits for an approval, and one is parked.
	engine, worker := goldenEngine(db, func() {})
	require.NoError(t, engine.Reply(ctx, firstCall(t, db, stateInner).Task.Key, executor.Approved(shown(t, firstCall(t, db, stateInner)))))
	require.NoError(t, db.Requeue(ctx, stateParked))

	// Serve until all runs are done.
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 2)
	go func() { served <- engine.Serve(serving) }()
	go func() { served <- worker.Serve(serving) }()
	for run := range states {
		r, err := engine.Wait(ctx, run)
		require.NoError(t, err)
		require.Equal(t, store.RunDone, r.State, "%s: %s", run, r.Reason)
	}
	stop()
	require.NoError(t, errors.Join(<-served, <-served))

	// The lost process may have executed the call. Do not execute it again.
	unknown := content.OutcomeUnknown
	texts := map[string]string{
		stateDoubt: unknown + ". ", stateInner: "many bolts. . ", stateCalled: unknown + ". many nuts. ",
	}
	for run := range states {
		c, err := store.New(db, nil).Conversation(ctx, "of "+run)
		require.NoError(t, err)
		require.Empty(t, c.DAG().Validate(), run)
		want := texts[run]
		if want == "" {
			want = "many bolts. many nuts. "
		}
		require.Equal(t, want, c.DAG().Text(), run)
	}
	require.NoError(t, db.Check(ctx))
}
