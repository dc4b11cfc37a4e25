package dialect_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
)

// small returns a provider whose body has the option MaxTokens alone, and the body that its server received last.
func small(t *testing.T, handle http.HandlerFunc) (*dialect.Provider, *string) {
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err == nil {
			body = string(text)
		}
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	return &dialect.Provider{
		Target: dialect.Target{API: "small"}, URL: server.URL, Client: server.Client(),
		Body: func(req api.Request) any {
			return map[string]any{"said": req.Messages[0].Blocks.Text(), "limit": req.Options.MaxTokens}
		},
		Read: func(_ io.Reader, yield func(api.Event) bool) error {
			yield(api.Finish{Stop: content.StopEndTurn})
			return nil
		},
	}, &body
}

func smallRequest(o api.Options) api.Request {
	return api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}}, Options: o}
}

// events returns the notes, the last event, and the error of a request.
func events(p api.Provider, req api.Request) (notes []string, last api.Event, err error) {
	for e, failure := range p.Stream(context.Background(), req) {
		if failure != nil {
			return notes, last, failure
		}
		if r, is := e.(api.Repaired); is {
			for _, note := range r.Repairs {
				notes = append(notes, note.String())
			}
		}
		last = e
	}
	return notes, last, nil
}

func TestProviderNotesOptionsThatDoNotChangeTheBody(t *testing.T) {
	p, body := small(t, func(http.ResponseWriter, *http.Request) {})
	p.Options = api.Options{MaxTokens: 7}

	notes, last, err := events(p, smallRequest(api.Options{
		OneCall: true, Cache: api.CacheLong, Idle: time.Minute, Body: `{"seed":1,"limit":9}`,
	}))
	require.NoError(t, err)
	require.JSONEq(t, `{"said":"Hello","limit":7,"seed":1}`, *body)
	require.Equal(t, []string{
		"option: OneCall is left out: the API has no such option",
		"option: Cache is left out: the API has no such option",
		`option: "limit" in Options.Body is left out`,
	}, notes)
	require.Equal(t, "small", last.(api.Finish).API)
}

func TestProviderExplainsRefusals(t *testing.T) {
	for status, kind := range map[int]error{
		400: api.ErrInvalidRequest, 401: api.ErrAuth, 404: api.ErrNotFound, 429: api.ErrRateLimited, 503: api.ErrOverloaded,
		500: api.ErrServer, 302: api.ErrProtocol,
	} {
		p, _ := small(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "2")
			w.Header().Set("X-Request-Id", "r1")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "no: "+r.Header.Get("Authorization"))
		})
		p.Options.Header = http.Header{"Authorization": {"Bearer sk-1234567890"}}

		_, _, err := events(p, smallRequest(api.Options{}))
		require.ErrorIs(t, err, kind, status)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "small", e.API)
		if status == 302 {
			continue // net/http reports a redirect without an address itself
		}
		require.Equal(t, []any{status, "r1", 2 * time.Second}, []any{e.Status, e.RequestID, e.RetryAfter})
		require.Contains(t, e.Message, "REDACTED")
		require.NotContains(t, err.Error()+e.Body, "sk-1234567890")
	}
}

func TestProviderWithoutAFinishIsCut(t *testing.T) {
	p, _ := small(t, func(http.ResponseWriter, *http.Request) {})
	own := &api.Error{Kind: api.ErrFiltered, API: "small"}
	for _, c := range []struct{ read, want error }{
		{nil, api.ErrCut}, {io.EOF, api.ErrCut}, {errors.New("not JSON"), api.ErrCut}, {own, api.ErrFiltered},
	} {
		p.Read = func(_ io.Reader, yield func(api.Event) bool) error { return c.read }
		_, _, err := events(p, smallRequest(api.Options{}))
		require.ErrorIs(t, err, c.want)
	}

	p.URL = "localhost:8080"
	_, _, err := events(p, smallRequest(api.Options{}))
	require.ErrorIs(t, err, api.ErrInvalidRequest)
	require.ErrorContains(t, err, "write http://localhost:8080")

	_, _, err = events(p, api.Request{})
	require.ErrorIs(t, err, api.ErrNothing)
}
