package api_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
)

// counter counts: it returns what f does.
type counter struct {
	*apitest.Script
	f func(api.Request) (int64, error)
}

func (c counter) CountTokens(_ context.Context, req api.Request) (int64, error) { return c.f(req) }

func counting(f func(api.Request) (int64, error)) api.Provider {
	return counter{apitest.NewScript(), f}
}

func asked(text string) api.Request {
	return api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words(text)}}}
}

func TestCountTokensAsksTheProvider(t *testing.T) {
	p := counting(func(req api.Request) (int64, error) {
		return int64(len(req.Messages[0].Blocks.Text()) + req.Options.MaxTokens), nil
	})
	for name, p := range map[string]api.Provider{
		"itself": p, "a client": api.NewClient(p, nil), "with options": api.With(p, api.Options{}),
		"a fallback": api.Fallback(p, apitest.NewScript()), "all": api.NewClient(api.With(api.Fallback(p), api.Options{}), nil),
	} {
		n, err := api.CountTokens(t.Context(), p, asked("seven…"))
		require.NoError(t, err, name)
		require.Equal(t, api.TokenCount{Input: 8}, n, name)
	}

	n, err := api.CountTokens(t.Context(), api.With(p, api.Options{MaxTokens: 100}), asked(""))
	require.NoError(t, err)
	require.EqualValues(t, 100, n.Input, "the options of With are those of the request that is counted")
}

func TestCountTokensEstimatesWhereNoAPICounts(t *testing.T) {
	missing := counting(func(api.Request) (int64, error) { return 0, &api.Error{Kind: api.ErrNotFound} })
	for name, p := range map[string]api.Provider{
		"no counter": apitest.NewScript(), "a client of none": api.NewClient(apitest.NewScript(), nil),
		"with options": api.With(apitest.NewScript(), api.Options{}), "no endpoint": missing, "a client of none there": api.NewClient(missing, nil),
	} {
		n, err := api.CountTokens(t.Context(), p, asked("twelve bytes"))
		require.NoError(t, err, name)
		require.Equal(t, api.TokenCount{Input: 7, Estimated: true}, n, name)
	}
}

func TestCountTokensReturnsOtherErrors(t *testing.T) {
	refused := &api.Error{Kind: api.ErrAuth}
	_, err := api.CountTokens(t.Context(), counting(func(api.Request) (int64, error) { return 0, refused }), asked(""))
	require.ErrorIs(t, err, api.ErrAuth)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = api.CountTokens(ctx, api.NewClient(apitest.NewScript(), nil), asked(""))
	require.ErrorIs(t, err, context.Canceled)
}

func TestAClientCountsAgainAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		p := counting(func(api.Request) (int64, error) {
			if attempts++; attempts == 1 {
				return 0, &api.Error{Kind: api.ErrOverloaded}
			}
			return 5, nil
		})
		n, err := api.CountTokens(t.Context(), api.NewClient(p, nil), asked(""))
		require.NoError(t, err)
		require.EqualValues(t, 5, n.Input)
		require.Equal(t, 2, attempts)
	})
}

func TestUnsupportedIsNotRetried(t *testing.T) {
	attempts := 0
	p := counting(func(api.Request) (int64, error) { attempts++; return 0, errors.ErrUnsupported })
	_, err := api.CountTokens(t.Context(), api.NewClient(p, nil), asked(""))
	require.NoError(t, err)
	require.Equal(t, 1, attempts)
}

func TestEstimateGrowsWithEverythingThatIsSent(t *testing.T) {
	req := asked("How is the weather?")
	last := api.EstimateTokens(req)
	grows := func(what string) {
		t.Helper()
		now := api.EstimateTokens(req)
		require.Greater(t, now, last, what)
		last = now
	}

	req.System = append(req.System, "Be brief.")
	grows("a system prompt")
	req.Tools = append(req.Tools, content.Tool{Name: "get_weather", Description: "Returns it.", Schema: `{"type":"object"}`})
	grows("a tool")
	blocks, err := content.Of(content.Thinking{Text: "Let me see."}, content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":"Tokyo"}`})
	require.NoError(t, err)
	req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: blocks})
	grows("a call")
	blocks, err = content.Of(content.ToolResult{CallID: "a", Content: content.Words("22 °C")})
	require.NoError(t, err)
	req.Messages = append(req.Messages, content.Message{Role: content.User, Blocks: blocks})
	grows("a result")
}
