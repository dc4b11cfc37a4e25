package executor_test

import (
	"context"
	"iter"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/stretchr/testify/require"
)

// A new release describes its tool in other words, and finds a conversation whose calls were open when the old one crashed.
func TestOpenCallsAreCarriedOutBeforeAChangedToolIsDeclared(t *testing.T) {
	echo := func(context.Context, struct{}) (string, error) { return "done", nil }
	before := dag.New().Tools(executor.Func("t", "old words", echo)).User("x").Assistant("", content.ToolUse{ID: "a", Name: "t", Input: "{}"})
	agent := executor.Agent{Tools: []dag.Tool{executor.Func("t", "new words", echo)}}

	d, err := agent.ExecuteTools(t.Context(), before)
	require.NoError(t, err)
	require.Equal(t, "done", d.Messages()[2].Blocks.ToolResults()[0].Content.Text())
	require.Equal(t, "new words", d.ToolDefs()[0].Description)
	require.Empty(t, d.Validate())

	agent.Provider = apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		return apitest.Say(req.Tools[0].Description + ": " + req.Messages[2].Blocks.ToolResults()[0].Content.Text())
	}))
	d, err = agent.Run(t.Context(), before)
	require.NoError(t, err)
	require.Equal(t, "new words: done", d.Text())
	require.Empty(t, d.Validate())
}

func TestAStreamRunsOnce(t *testing.T) {
	model := apitest.NewScript(apitest.Say("a"), apitest.Say("b"))
	events := executor.Stream(t.Context(), model, dag.New().User("x"))
	for _, err := range events {
		require.NoError(t, err)
	}
	seen := 0
	for event, err := range events {
		seen++
		require.IsType(t, executor.End{}, event)
		require.ErrorIs(t, err, api.ErrProtocol)
	}
	require.Equal(t, 1, seen)
	require.Len(t, model.Requests(), 1)
}

func TestAnEmptyTextLeavesNoMessage(t *testing.T) {
	d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Say("")), dag.New().User("x"))
	require.NoError(t, err)
	require.Len(t, d.Messages(), 1)
}

type noSequence struct{}

func (noSequence) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] { return nil }

func TestAProviderThatIsNoneIsAnError(t *testing.T) {
	for _, p := range []api.Provider{api.NewClient(nil, nil), (*api.Client)(nil), noSequence{}} {
		d, err := executor.Run(t.Context(), p, dag.New().User("x"))
		require.ErrorIs(t, err, api.ErrProtocol)
		require.Len(t, d.Messages(), 1)
	}
}
