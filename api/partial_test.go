package api_test

import (
	"context"
	"errors"
	"strings"
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

	// The largest part of all attempts is kept.
	require.NoError(t, fold.Add(api.Retry{}))
	require.Equal(t, part, fold.Partial())
	require.NoError(t, fold.Add(api.Delta{Kind: api.DeltaText, Text: "He"}))
	require.Equal(t, part, fold.Partial())
	require.NoError(t, fold.Add(api.Delta{Kind: api.DeltaText, Text: strings.Repeat("llo", 99)}))
	require.Equal(t, "He"+strings.Repeat("llo", 99), fold.Partial().Blocks.Text())

	fold = api.Fold{}
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

// TestTheBestPartOfAllAttemptsIsKept ends a request in each of the ways after a response that broke off.
func TestTheBestPartOfAllAttemptsIsKept(t *testing.T) {
	half := func() apitest.Turn {
		return apitest.Say("Half of it").Usage(content.Usage{Input: 5}).Fail(&api.Error{Kind: api.ErrCut, API: "script"})
	}
	down := &api.Error{Kind: api.ErrOverloaded, API: "script"}
	locked := &api.Error{Kind: api.ErrAuth, API: "script"}
	for name, c := range map[string]struct {
		turns []apitest.Turn
		want  error
		text  string
	}{
		"503s":                   {[]apitest.Turn{half(), apitest.Fail(down).Always()}, api.ErrOverloaded, "script: overloaded (attempt 1: script: response cut off; attempts 2 to 3: script: overloaded)"},
		"a wrong key":            {[]apitest.Turn{half(), apitest.Fail(locked)}, api.ErrAuth, "script: not authorized (attempt 1: script: response cut off)"},
		"an empty second answer": {[]apitest.Turn{half(), apitest.Say("").Fail(&api.Error{Kind: api.ErrCut}), apitest.Fail(locked)}, api.ErrAuth, ""},
		"less the second time":   {[]apitest.Turn{half(), apitest.Say("Ha").Usage(content.Usage{Input: 5}).Fail(locked)}, api.ErrAuth, ""},
		"a cancel in between":    {[]apitest.Turn{half(), apitest.Fail(down)}, context.Canceled, "stop: context canceled, while waiting to retry (attempt 1: script: response cut off)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			client := api.NewClient(apitest.NewScript(c.turns...), nil)
			var spent content.Usage
			var fold api.Fold
			part, err := client.SendFunc(ctx, request, func(e api.Event) error {
				if retry, ok := e.(api.Retry); ok {
					spent = spent.Plus(retry.Cut.Usage)
					if c.want == context.Canceled {
						cancel(errors.New("stop"))
					}
				}
				return fold.Add(e)
			})
			require.ErrorIs(t, err, c.want, name)
			if c.text != "" {
				require.EqualError(t, err, c.text, name)
			}
			require.Equal(t, "Half of it", part.Blocks.Text(), name)
			require.Equal(t, content.StopCut, part.Stop, name)
			require.Equal(t, "script", part.API, name)
			require.Equal(t, part.Blocks, fold.Partial().Blocks, "a consumer of the stream has it too")

			// Each attempt's tokens are counted once: in its Retry, or in the part.
			paid := int64(5)
			if name == "less the second time" {
				paid = 10
			}
			require.Equal(t, paid, spent.Plus(part.Usage).Input, name)
		})
	}
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
