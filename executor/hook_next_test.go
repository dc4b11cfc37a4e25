package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func TestNextGetsTheLastTurnOfAnInterruptedRunAgain(t *testing.T) {
	var saved dag.DAG // after the response, before the end
	asked := 0
	agent := executor.Agent{
		Save: func(_ context.Context, d dag.DAG) error {
			if m, is := d.Head().Message(); is && m.Role == content.Assistant {
				saved = d
			}
			return nil
		},
		Hooks: []executor.Hook{{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
			if asked++; turn.Stop == content.StopEndTurn && turn.DAG.Text() == "First." {
				turn.DAG, turn.Stop = turn.DAG.User("More."), ""
			}
			return turn, nil
		}}},
		Provider: apitest.NewScript(apitest.Say("First."), apitest.Say("Second.")),
	}
	_, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, "Second.", saved.Text())

	// The program ended after the second response: the hook leaves the end as it is.
	asked = 0
	model := apitest.NewScript()
	agent.Provider = model
	d, err := agent.Run(t.Context(), saved)
	require.NoError(t, err)
	require.Equal(t, 1, asked)
	require.Empty(t, model.Requests())
	last, _ := d.LastRun()
	require.True(t, last.Final)
	require.Equal(t, content.StopEndTurn, last.Stop.Reason)

	// A conversation that no run was interrupted in has nothing to respond to.
	_, err = agent.Run(t.Context(), d)
	require.ErrorIs(t, err, executor.ErrAnswered)
}
