package executor_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

func TestAfterHooksRunInOrder(t *testing.T) {
	appends := func(text string) executor.Hook {
		return executor.Hook{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
			r.Content = content.Words(r.Content.Text() + text)
			return r, nil
		}}
	}
	agent := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{appends(" 1"), appends(" 2"), appends(" 3")}}
	d, err := agent.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	require.Equal(t, []string{"fast 1 2 3"}, outcomes(t, d))
}

func TestCallsThatANextHookLeavesOpenAreAnswered(t *testing.T) {
	calls := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
		if turn.Number == 1 {
			turn.DAG = turn.DAG.Assistant("", apitest.Use("fast", `{}`))
		}
		return turn, nil
	}}
	model := once(call("fast"))
	d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{calls}}.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	sent := model.Requests()[1].Messages
	require.Equal(t, content.NoResult, sent[len(sent)-1].Blocks.ToolResults()[0].Content.Text())
	requireValid(t, d)
}

// tooLong is a model that refuses what takes more than so many messages, and counts its requests.
type tooLong struct {
	most     int
	requests []int
	model    api.Provider
}

func (m *tooLong) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	m.requests = append(m.requests, len(req.Messages))
	if len(req.Messages) > m.most {
		return apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrContextTooLong})).Stream(ctx, req)
	}
	return m.model.Stream(ctx, req)
}

// talk is a conversation of so many questions, each but the last with its answer.
func talk(questions int) dag.DAG {
	d := dag.New()
	for i := range questions {
		if i > 0 {
			d = d.Assistant(strings.Repeat("answer ", 20))
		}
		d = d.User(strings.Repeat("question ", 20))
	}
	return d
}

func TestCompactionShortensWhatTheProviderRefuses(t *testing.T) {
	model := &tooLong{most: 12, model: apitest.NewScript(apitest.Say("Done.").Always())}
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{executor.Compaction{Budget: 1 << 30}.Hook()}}
	all, end, err := watch(t, agent.Stream(t.Context(), talk(10)))
	require.NoError(t, err)
	require.Len(t, model.requests, 2)
	require.Equal(t, 19, model.requests[0])
	require.Less(t, model.requests[1], 13)
	require.Equal(t, "Done.", end.DAG.Text())
	require.Equal(t, 1, end.Stop.Turns, "it is one turn")
	require.Len(t, only[executor.TurnEnd](all), 1)
	require.Len(t, only[executor.MessageEnd](all), len(only[executor.MessageStart](all)))
	compacted := 0
	for _, n := range end.DAG.Nodes() {
		if _, ok := n.Payload().(node.Compaction); ok {
			compacted++
		}
	}
	require.Equal(t, 1, compacted)
	requireValid(t, end.DAG)
}

func TestContextThatIsTooLongIsAskedOnceMoreOnly(t *testing.T) {
	model := &tooLong{most: 1}
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{executor.Compaction{Budget: 1 << 30}.Hook()}}
	_, err := agent.Run(t.Context(), talk(10))
	require.ErrorIs(t, err, api.ErrContextTooLong)
	require.Len(t, model.requests, 2)

}

func TestContextThatNoHookShortensIsAnError(t *testing.T) {
	failed := errors.New("no summary")
	for name, hooks := range map[string][]executor.Hook{
		"no hook":        nil,
		"nothing to cut": {executor.Compaction{Budget: 1 << 30}.Hook()},
		"one that fails": {{TooLong: func(_ context.Context, d dag.DAG) (dag.DAG, error) { return d, failed }}},
	} {
		model := &tooLong{most: 0}
		d, err := executor.Agent{Provider: model, Hooks: hooks}.Run(t.Context(), talk(1))
		require.ErrorIs(t, err, api.ErrContextTooLong, name)
		if name == "one that fails" {
			require.ErrorIs(t, err, failed)
		}
		require.Len(t, model.requests, 1, name)
		requireValid(t, d)
	}
}
