package api_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
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

func TestAFilmIsNoImage(t *testing.T) {
	film := content.Image{Source: content.Source{URL: "gs://b/o.mp4", MediaType: "video/mp4"}}
	taken, why := api.Targets["gemini"].Accept(content.User, film, false)
	require.IsType(t, content.Text{}, taken)
	require.Contains(t, why, "no image")
}

// TestAShortConversationDoesNotKeepTheLongOne lets a conversation go on for a hundred megabytes, drops what came, and keeps the
// beginning, which was sent before.
func TestAShortConversationDoesNotKeepTheLongOne(t *testing.T) {
	e := strange()
	short := []content.Message{user(text("Hi"))}
	for range 20 {
		short = append(short, assistant(text("x")), user(text("y")))
	}
	e.Encode(short)
	before := heap()
	long := append([]content.Message(nil), short...)
	for range 100 {
		long = append(long, assistant(text(strings.Repeat("x", 200_000))), user(text(strings.Repeat("y", 200_000))))
		e.Encode(long)
	}
	require.Greater(t, heap()-before, 60<<20, "it was remembered")
	runtime.KeepAlive(long)
	require.Less(t, heap()-before, 10<<20)
	runtime.KeepAlive(short)
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
