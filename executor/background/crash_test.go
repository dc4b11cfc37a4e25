package background_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/background"
)

// saver is a program that runs an agent with background work, and may end after any save.
type saver struct {
	effect executor.Effect
	hooks  []executor.Hook
	takes  time.Duration // for each letter of the subject

	mu    sync.Mutex
	calls []string // the idempotency keys of the calls of the tool
}

// run runs d, and returns what was saved at each step.
func (s *saver) run(t *testing.T, d dag.DAG, turns ...apitest.Turn) (steps []dag.DAG, end dag.DAG) {
	t.Helper()
	tool := executor.Func("research", "Finds out.", func(ctx context.Context, in subject) (string, error) {
		s.mu.Lock()
		s.calls = append(s.calls, executor.IdempotencyKey(ctx))
		s.mu.Unlock()
		time.Sleep(s.takes * time.Duration(len(in.Subject)))
		return "all about " + in.Subject, nil
	})
	agent := executor.Agent{Provider: apitest.NewScript(turns...), Hooks: s.hooks}
	agent.Save = func(_ context.Context, d dag.DAG) error {
		steps = append(steps, d)
		return nil
	}
	end, err := background.Add(agent, executor.WithEffect(tool, s.effect)).Run(t.Context(), d)
	require.NoError(t, err)
	return steps, end
}

// says is a model that answers everything.
func says(n int) (turns []apitest.Turn) {
	for range n {
		turns = append(turns, apitest.Say("I see."))
	}
	return turns
}

// reloaded returns the conversation as another process reads it.
func reloaded(t *testing.T, d dag.DAG) (loaded dag.DAG) {
	t.Helper()
	text, err := d.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, loaded.UnmarshalJSON(text))
	return loaded
}

func TestAfterACrashAtAnyStepWorkHasOneEnd(t *testing.T) {
	for _, effect := range []executor.Effect{executor.EffectUnknown, executor.EffectIdempotent} {
		synctest.Test(t, func(t *testing.T) { crashAtEachStep(t, effect) })
	}
}

func crashAtEachStep(t *testing.T, effect executor.Effect) {
	first := &saver{effect: effect, takes: time.Minute}
	steps, _ := first.run(t, dag.New().User("Go."), apitest.Call(about("bees"), about("wasps")), apitest.Say("I wait."), apitest.Say("One."), apitest.Say("Two."))
	require.Greater(t, len(steps), 5)
	open := 0
	for i, d := range steps {
		d = reloaded(t, d)
		if last, is := d.LastRun(); is && last.Final {
			continue
		}
		open += len(background.Open(d))

		// The calls that were never made have to be asked for again.
		turns := says(4)
		if !strings.Contains(d.String(), "bees") {
			turns = append([]apitest.Turn{apitest.Call(about("bees"), about("wasps"))}, turns...)
		}
		second := &saver{effect: effect}
		_, end := second.run(t, d, turns...)
		require.Empty(t, end.Validate(), i)
		require.Empty(t, background.Open(end), i)

		// Each call has one end: a message, or a result of its own that says that nobody knows.
		inDoubt := strings.Count(results(api.Request{Messages: end.Messages()}), "outcome of this tool call is unknown")
		require.Equal(t, 2, len(endings(end))+inDoubt, "step %d\n%s", i, end)
		for _, text := range endings(end) {
			if effect == executor.EffectIdempotent {
				require.Contains(t, text, "all about", i)
			}
		}
		if effect == executor.EffectIdempotent {
			require.Zero(t, inDoubt, i)
		}

		// The same work has the same key in every process.
		for _, key := range second.calls {
			if strings.Contains(steps[i].String(), "bees") {
				require.Contains(t, first.calls, key, i)
			}
		}
		require.LessOrEqual(t, len(second.calls), 2, i)
		if effect == executor.EffectUnknown && len(background.Open(d)) > 0 {
			require.Empty(t, second.calls, "what may have been done is not done again")
		}
	}
	require.GreaterOrEqual(t, open, 5, "too few steps had open work")
}

func TestWorkIsStartedAgainOnlyIfTheHooksAllowIt(t *testing.T) {
	s := &saver{effect: executor.EffectReadOnly}
	steps, _ := s.run(t, dag.New().User("Go."), append([]apitest.Turn{apitest.Call(about("bees"))}, says(2)...)...)
	var middle dag.DAG
	for _, d := range steps {
		if len(background.Open(d)) == 1 {
			middle = d
		}
	}
	require.Positive(t, middle.Len())

	for name, hook := range map[string]executor.Hook{
		"denied":   executor.Only("another"),
		"approval": executor.RequireApproval("research"),
		"other content": {Before: func(context.Context, executor.Call) (executor.Decision, error) {
			return executor.Modify(`{"subject":"cats"}`), nil
		}},
	} {
		second := &saver{effect: executor.EffectReadOnly, hooks: []executor.Hook{hook}}
		_, end := second.run(t, reloaded(t, middle), says(2)...)
		require.Empty(t, second.calls, name)
		require.Len(t, endings(end), 1, name)
		require.Contains(t, endings(end)[0], "is lost", name)
	}
}
