package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor/mcp"
)

// bearer adds a token to each request, as a program's client does.
type bearer struct{ base http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret")
	return b.base.RoundTrip(r)
}

// thief is a server that counts the requests it gets.
func thief(t *testing.T) (address string, got *atomic.Int32) {
	t.Helper()
	got = new(atomic.Int32)
	listener := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	t.Cleanup(listener.Close)
	return listener.URL, got
}

// redirecting is a server behind TLS that answers with what redirect returns, or as a hostile server if that is "".
func redirecting(t *testing.T, redirect func(r *http.Request) string) *httptest.Server {
	t.Helper()
	handler := hostiles["turncoat"]().handler(false)
	listener := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := redirect(r); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	return listener
}

func TestRedirectToAnotherOriginIsRefused(t *testing.T) {
	stolen, got := thief(t)
	var listener *httptest.Server
	listener = redirecting(t, func(r *http.Request) string {
		switch r.URL.Path {
		case "/host":
			return stolen
		case "/scheme":
			return strings.Replace(listener.URL, "https", "http", 1)
		case "/port":
			return "https://127.0.0.1:1/"
		case "/name":
			return strings.Replace(listener.URL, "127.0.0.1", "localhost", 1)
		}
		return ""
	})
	client := &http.Client{Transport: bearer{listener.Client().Transport}}
	for _, path := range []string{"/host", "/scheme", "/port", "/name"} {
		_, err := mcp.Connect(t.Context(), mcp.URL(listener.URL+path, &mcp.URLOptions{Client: client}), nil)
		require.ErrorIs(t, err, mcp.ErrOrigin, path)
		var origin *mcp.OriginError
		require.ErrorAs(t, err, &origin)
		require.NotEqual(t, origin.From, origin.To)
		require.NotContains(t, err.Error(), "secret")
	}
	require.Zero(t, got.Load(), "nothing reaches the other host")
}

func TestRedirectDuringACallIsRefused(t *testing.T) {
	stolen, got := thief(t)
	var away atomic.Bool
	listener := redirecting(t, func(*http.Request) string {
		if away.Load() {
			return stolen
		}
		return ""
	})
	s := connect(t, mcp.URL(listener.URL, &mcp.URLOptions{Client: &http.Client{Transport: bearer{listener.Client().Transport}}}), nil)
	away.Store(true)
	result := run(t, s, apitest.Use("read", nil))[0]
	require.True(t, result.IsError)
	require.Contains(t, result.Result.Text(), mcp.ErrOrigin.Error())
	require.NoError(t, s.Close())
	require.Zero(t, got.Load())
}

func TestRedirectsOfOneOriginAreCounted(t *testing.T) {
	var followed atomic.Int32
	listener := redirecting(t, func(r *http.Request) string {
		if r.URL.Path == "/moved" {
			return "/"
		}
		if r.URL.Path == "/loop" {
			followed.Add(1)
			return "/loop"
		}
		return ""
	})
	s := connect(t, mcp.URL(listener.URL+"/moved", &mcp.URLOptions{Client: listener.Client()}), nil)
	require.Equal(t, "the server's read", run(t, s, apitest.Use("read", nil))[0].Result.Text())

	_, err := mcp.Connect(t.Context(), mcp.URL(listener.URL+"/loop", &mcp.URLOptions{Client: listener.Client()}), &mcp.Options{Limits: mcp.Limits{Redirects: 3}})
	require.ErrorIs(t, err, dag.ErrLimit)
	require.Zero(t, followed.Load()%4, "a request, and 3 redirects")

	// The program's own rule holds too.
	own := *listener.Client()
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	_, err = mcp.Connect(t.Context(), mcp.URL(listener.URL+"/moved", &mcp.URLOptions{Client: &own}), nil)
	require.Error(t, err)
}

// TestServerThatNamesAnotherEndpointGetsNoToken: in the old form of the protocol the server names the address for the
// client's messages.
func TestServerThatNamesAnotherEndpointGetsNoToken(t *testing.T) {
	stolen, got := thief(t)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: endpoint\ndata: " + stolen + "\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(listener.Close)
	client := &http.Client{Transport: bearer{http.DefaultTransport}}
	t.Cleanup(client.CloseIdleConnections)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)

	_, err := mcp.Connect(t.Context(), func() (sdk.Transport, error) {
		return &sdk.SSEClientTransport{Endpoint: listener.URL, HTTPClient: client}, nil
	}, nil)
	require.ErrorIs(t, err, mcp.ErrOrigin, "whatever the SDK reports")
	require.Zero(t, got.Load())
}

func TestOriginsAreComparedInOneForm(t *testing.T) {
	for _, same := range []string{"https://a.example/x", "https://A.example:443/", "HTTPS://a.EXAMPLE?q"} {
		require.Equal(t, "https://a.example:443", mcp.OriginOf(same))
	}
	for _, other := range []string{"http://a.example", "https://a.example:8443", "https://b.example", "https://a.example.b", "https://a.example@b", "//a.example", ":"} {
		require.NotEqual(t, "https://a.example:443", mcp.OriginOf(other))
	}
}
