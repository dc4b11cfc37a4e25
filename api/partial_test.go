package api_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
)

func TestFoldReturnsWhatArrived(t *testing.T) {
	var fold api.Fold
	require.Zero(t, fold.Partial())
	for _, e := range []api.Event{
		api.Delta{Index: 0, Kind: api.DeltaText, Text: "He"},
		api.Delta{Index: 2, Kind: api.DeltaText, Text: "wor"},
		api.Delta{Index: 1, Kind: api.DeltaInput, Tool: "f", Text: "{"},
		api.Delta{Index: 0, Kind: api.DeltaText, Text: "llo"},
		api.BlockEnd{Index: 0, Block: content.Text{Text: "Hello"}},
		api.Delta{Index: 2, Kind: api.DeltaText, Text: "ld"},
		api.Delta{Index: 3, Kind: api.DeltaText},
		api.Delta{Index: -1, Kind: api.DeltaText, Text: "nowhere"},
	} {
		require.NoError(t, fold.Add(e))
	}
	part := fold.Partial()
	require.Equal(t, []content.Block{
		content.Text{Text: "Hello"}, content.CutToolUse{Name: "f", Input: "{"}, content.Text{Text: "world"},
	}, part.Blocks.Slice())
	require.Equal(t, content.StopCut, part.Stop)
	require.Equal(t, content.Usage{Incomplete: true}, part.Usage)

	require.NoError(t, fold.Add(api.Retry{}))
	require.Zero(t, fold.Partial())
	require.NoError(t, fold.Add(api.Delta{Kind: api.DeltaInput}))
	require.Equal(t, content.StopCut, fold.Partial().Stop)
	require.True(t, fold.Partial().Usage.Incomplete, "the model had begun")
	require.NoError(t, fold.Add(api.Finish{Stop: content.StopEndTurn}))
	require.Equal(t, content.StopEndTurn, fold.Partial().Stop, "it did not break off")
}

func TestRetryReportsTheUsageOfTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		overloaded := &api.Error{Kind: api.ErrOverloaded}
		model := apitest.NewScript(
			apitest.Fail(overloaded), apitest.Say("Half").Usage(content.Usage{Input: 5}).Fail(overloaded), apitest.Say("Half").Usage(content.Usage{Input: 5}).Fail(overloaded),
		)
		var cuts []content.Usage
		var last api.Event
		for event := range api.NewClient(model, &api.ClientOptions{Attempts: 3}).Stream(t.Context(), request) {
			if e, ok := event.(api.Retry); ok {
				cuts = append(cuts, e.Cut.Usage)
			}
			if event != nil {
				last = event
			}
		}
		require.Equal(t, []content.Usage{{}, {Input: 5, Incomplete: true}}, cuts)
		require.Equal(t, content.Usage{Input: 5, Incomplete: true}, last.(api.Cut).Usage)

		part, err := api.NewClient(apitest.NewScript(apitest.Say("Half").Fail(&api.Error{Kind: api.ErrAuth})), nil).Send(t.Context(), request)
		require.ErrorIs(t, err, api.ErrAuth)
		require.Equal(t, "Half", part.Blocks.Text())
	})
}

// TestDetailsOfAResponseAreAnObject: a conversation could not hold anything else.
func TestDetailsOfAResponseAreAnObject(t *testing.T) {
	for _, wrong := range []content.JSON{"{", "1", `{"a":1,"a":2}`} {
		var f api.Fold
		require.ErrorIs(t, f.Add(api.Finish{Details: wrong}), api.ErrProtocol, string(wrong))
		require.ErrorIs(t, f.Add(api.Cut{Finish: api.Finish{Details: wrong}}), api.ErrProtocol, string(wrong))
	}

	var f api.Fold
	require.NoError(t, f.Add(api.Finish{Details: `{"timings":{}}`}))
	answer, err := f.Response()
	require.NoError(t, err)
	require.Equal(t, content.JSON(`{"timings":{}}`), answer.Details)
}
