package providers

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// TestAPageIsNoResponse: an HTML page with status 200 is not retried, and its text is in the error.
func TestAPageIsNoResponse(t *testing.T) {
	each(t, func(t *testing.T, p provider, noStream bool) {
		requests := 0
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			requests++
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<html>Please log in.</html>"))
		})
		_, err := api.NewClient(p.at(server, api.Options{}, noStream), nil).Send(t.Context(), greeting())
		require.ErrorIs(t, err, api.ErrProtocol)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "<html>Please log in.</html>", e.Body)
		require.Equal(t, 1, requests)
	})
}

// TestSeveralResponsesAreNotAskedFor: a second choice would be paid for and not read.
func TestSeveralResponsesAreNotAskedFor(t *testing.T) {
	for name, c := range map[string]struct{ member, body string }{
		"openai-chat": {`"n"`, `{"n":2,"seed":1}`}, "gemini": {"candidateCount", `{"generationConfig":{"candidateCount":2,"topK":1}}`},
	} {
		req := greeting()
		req.Options.Body = content.JSON(c.body)
		body, notes, err := providerNamed(name).body(req)
		require.NoError(t, err)
		require.NotContains(t, string(body), c.member+":")
		require.Regexp(t, `"(seed|topK)":1`, string(body))
		require.Len(t, notes, 1)
		require.Contains(t, notes[0].Detail, "one response is read of each request")
	}
}

// TestATriggerOfCompactionStaysLast: nothing is added after it.
func TestATriggerOfCompactionStaysLast(t *testing.T) {
	req, err := providerNamed("openai-responses").parse([]byte(`{"input":[{"type":"message","role":"user","content":"Hi"},{"type":"compaction_trigger"}]}`))
	require.NoError(t, err)
	body, notes, err := providerNamed("openai-responses").body(req)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Regexp(t, `\{"type":"compaction_trigger"\}\]\}$`, string(body))
}
