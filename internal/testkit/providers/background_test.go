package providers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/background"
)

// Each API accepts the result "started" and, after results and after a response, the message with the result of the work.
func TestEachAPIAcceptsTheMessagesOfBackgroundWork(t *testing.T) {
	each(t, func(t *testing.T, p provider, noStream bool) {
		model := p.fake(
			p.says(content.ToolUse{ID: "call_a", Name: "build", Input: `{}`}, content.ToolUse{ID: "call_b", Name: "test", Input: `{}`}),
			p.says(content.ToolUse{ID: "call_c", Name: "wait_for_work", Input: `{"id":1}`}),
			p.says(content.Text{Text: "Built."}),
			p.says(content.Text{Text: "Tested."}),
		)
		built := make(chan struct{})
		build := executor.Func("build", "Builds.", func(context.Context, struct{}) (string, error) { return "2 warnings", nil })
		test := executor.Func("test", "Tests.", func(ctx context.Context, _ struct{}) (string, error) {
			<-built
			return "all pass", nil
		})
		agent := background.Add(executor.Agent{Provider: p.at(direct(t, model), api.Options{}, noStream), Hooks: []executor.Hook{{
			Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
				if turn.DAG.Text() == "Built." {
					close(built)
				}
				return turn, nil
			},
		}}}, build, test)
		d, err := agent.Run(t.Context(), dag.New().User("Build and test."))
		require.NoError(t, err)
		require.Equal(t, "Tested.", d.Text())
		require.Empty(t, model.Refused())
		require.Empty(t, background.Open(d))
		bodies := model.Bodies()
		require.Len(t, bodies, 4)
		require.Contains(t, string(bodies[3]), "2 warnings")
		require.Contains(t, string(bodies[3]), "all pass")
	})
}
