package sqlite

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// TestDurableRunTakesOneCommitAStep counts the commits of a run, each of which syncs the file once. A step is a response
// of the model or a tool call. This is the most that a run takes: no two results come at the same time.
func TestDurableRunTakesOneCommitAStep(t *testing.T) {
	decide := executor.Hook{Before: func(context.Context, executor.Call) (executor.Decision, error) { return executor.Allow(), nil }}
	for _, c := range []struct {
		name  string
		agent executor.Agent
		more  int // commits beyond one a step and one for the beginning
	}{
		{"parallel", executor.Agent{}, 0},
		{"sequential", executor.Agent{Strategy: executor.Sequential()}, 0},
		{"limited", executor.Agent{Strategy: executor.Parallel(2)}, 0},
		{"a hook that decides", executor.Agent{Hooks: []executor.Hook{decide}}, 1},
		{"a queue", executor.Agent{FollowUps: &executor.Queue{}}, 1},
	} {
		for _, calls := range []int{0, 1, 4, 8} {
			t.Run(fmt.Sprintf("%s/calls=%d", c.name, calls), func(t *testing.T) {
				commits, steps := countCommits(t, c.agent, calls)
				require.Equal(t, min(2, calls+1)+calls, steps)

				more := c.more
				if calls == 0 && len(c.agent.Hooks) > 0 {
					more = 0 // it has nothing to decide
				}
				require.Equal(t, steps+1+more, commits)
			})
		}
	}
}

// countCommits runs an agent on a new database: a response with calls, and one without. It returns the number of
// commits and of steps.
func countCommits(t *testing.T, agent executor.Agent, calls int) (commits, steps int) {
	t.Helper()
	db, _ := openNew(t, nil)
	conversation, err := store.New(db).Conversation(t.Context(), "talk")
	require.NoError(t, err)

	// A call returns when the result of the call before it is stored.
	var mu sync.Mutex
	stored := sync.NewCond(&mu)
	open := make([]bool, calls)
	type none struct{}
	work := executor.Func("work", "", func(ctx context.Context, _ none) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		for before := indexOf(ctx) - 1; before >= 0 && open[before]; {
			stored.Wait()
		}
		return "done", nil
	})

	agent.Tools = []dag.Tool{work}
	agent.Provider = apitest.NewScript(apitest.Say("Done."))
	if calls > 0 {
		uses := slices.Repeat([]content.ToolUse{apitest.Use("work", "{}")}, calls)
		agent.Provider = apitest.NewScript(apitest.Call(uses...), apitest.Say("Done."))
	}
	agent.Save = func(ctx context.Context, d dag.DAG) error {
		err := conversation.Append(ctx, d)
		mu.Lock()
		defer mu.Unlock()
		clear(open)
		for _, call := range d.OpenCalls() {
			open[call.Index] = true
		}
		stored.Broadcast()
		return err
	}
	db.database.commits = func(int) { commits++ }
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)

	for _, n := range d.Nodes() {
		m, isMessage := n.Message()
		_, isCall := n.Payload().(node.ToolExecution)
		if isMessage && m.Role == content.Assistant || isCall {
			steps++
		}
	}
	return commits, steps
}

// indexOf returns the index of the call that ctx belongs to.
func indexOf(ctx context.Context) (index int) {
	var message string
	if _, err := fmt.Sscanf(executor.IdempotencyKey(ctx), "%36s/%d", &message, &index); err != nil {
		panic(err)
	}
	return index
}
