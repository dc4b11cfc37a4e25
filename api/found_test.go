package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
)

// What a reviewer found, and must not come back.

func TestAHeaderIsOneInEverySpelling(t *testing.T) {
	provider := api.Options{Header: http.Header{"x-a": {"provider"}, "X-B": {"kept"}}}
	request := api.Options{Header: http.Header{"X-a": {"request"}}}
	require.Equal(t, http.Header{"X-A": {"request"}, "X-B": {"kept"}}, request.Over(provider).Header)
	require.Equal(t, http.Header{"X-A": {"provider"}, "X-B": {"kept"}}, api.Options{}.Over(provider).Header)
	require.Nil(t, api.Options{}.Over(api.Options{}).Header)
}

func TestWhatIsWrongWithAHeaderIsAllThatIsSaid(t *testing.T) {
	err := api.Options{Header: http.Header{"X-A": {"a\nb"}}}.Check()
	require.EqualError(t, err, `invalid request: Options.Header: "X-A" cannot be sent`)
}

func TestAPolicyOfOneProviderIsNoMistake(t *testing.T) {
	require.NoError(t, api.Options{Cache: "own"}.Check())
	require.Error(t, api.Options{Cache: "own it"}.Check())
}

func TestABudgetIsWrittenInOneWay(t *testing.T) {
	for _, s := range []api.Thinking{"007", "+5", "-0", "1e3"} {
		require.Zero(t, s.Tokens(), s)
		require.ErrorIs(t, api.Options{Thinking: s}.Check(), api.ErrInvalidRequest, s)
	}
	require.Equal(t, 7, api.ThinkTokens(7).Tokens())
}

func TestNoNameHasNoPrice(t *testing.T) {
	for _, model := range []string{"-latest", "models/", "models/-latest", "-20250101"} {
		_, known := api.Prices{"": {Input: 1, Output: 1}}.Of(model)
		require.False(t, known, model)
	}
}
