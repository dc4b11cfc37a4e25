package executor_test

import (
	"cmp"
	"context"
	"iter"
	"sync/atomic"
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
	for _, p := range []api.Provider{api.NewClient(nil, nil), noSequence{}} {
		d, err := executor.Run(t.Context(), p, dag.New().User("x"))
		require.ErrorIs(t, err, api.ErrProtocol)
		require.Len(t, d.Messages(), 1)
	}
	_, err := executor.Run(t.Context(), (*api.Client)(nil), dag.New().User("x"))
	require.ErrorIs(t, err, executor.ErrNoProvider)
}

// TestCallsThatTheRequestForbadeAreNotExecuted asks a provider that ignores the choice of tools, as some compatible servers do.
func TestCallsThatTheRequestForbadeAreNotExecuted(t *testing.T) {
	for name, test := range map[string]struct {
		options api.Options
		refused []string // a part of each call's result; "" is executed
	}{
		"no tools":         {api.Options{ToolChoice: api.ToolsNone}, []string{"no tool may be called now", "no tool may be called now"}},
		"one call":         {api.Options{OneCall: true}, []string{"", "only one tool may be called at a time"}},
		"one tool":         {api.Options{ToolChoice: api.OneTool("b")}, []string{`only the tool "b" may be called now`, ""}},
		"as it likes":      {api.Options{}, []string{"", ""}},
		"any, but at once": {api.Options{ToolChoice: api.ToolsAny}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var executed atomic.Int32
			tool := func(name string) dag.Tool {
				return executor.Func(name, "", func(context.Context, struct{}) (string, error) { executed.Add(1); return "done", nil })
			}
			model := apitest.NewScript(apitest.Call(apitest.Use("a", map[string]int{}), apitest.Use("b", map[string]int{})), apitest.Say("Done."))
			d, err := executor.Agent{Provider: model, Options: test.options, Tools: []dag.Tool{tool("a"), tool("b")}}.Run(t.Context(), dag.New().User("Go."))
			require.NoError(t, err)

			want := 0
			for i, o := range outcomes(t, d) {
				if test.refused[i] == "" {
					want++
				}
				require.Contains(t, o, cmp.Or(test.refused[i], "done"))
			}
			require.EqualValues(t, want, executed.Load())
			require.Len(t, outcomes(t, d), 2)
		})
	}
}

// TestCallsOfAnEarlierRunAreExecutedWhateverIsAskedNow runs on with a choice that was not made for the calls that are open.
func TestCallsOfAnEarlierRunAreExecutedWhateverIsAskedNow(t *testing.T) {
	executed := 0
	tool := executor.Func("a", "", func(context.Context, struct{}) (string, error) { executed++; return "done", nil })
	d := dag.New().Tools(tool).User("Go.").Assistant("", content.ToolUse{ID: "x", Name: "a", Input: "{}"})
	_, err := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Options: api.Options{ToolChoice: api.ToolsNone}, Tools: []dag.Tool{tool}}.Run(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, 1, executed)
}
