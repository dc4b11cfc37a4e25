package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAuthorizationServersArePublic(t *testing.T) {
	for address, public := range map[string]bool{
		"1.1.1.1": true, "2606:4700::1111": true,
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "fd00::1": false,
		"169.254.169.254": false, "fe80::1": false, "100.64.0.1": false, "224.0.0.1": false, "0.0.0.0": false, "::": false,
	} {
		require.Equal(t, public, isPublic(netip.MustParseAddr(address)), address)
	}

	// The check is of the address that is dialed, whatever a name leads to.
	listener := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(listener.Close)
	address := strings.Replace(listener.URL, "127.0.0.1", "localhost", 1) + "/.well-known/oauth-authorization-server"
	for endpoint, reached := range map[string]bool{
		"https://mcp.example.com": false, "https://localhost.example.com": false, "http://localhost:1": true, "http://127.0.0.1/mcp": true,
	} {
		response, err := newAuthorizer(endpoint, &OAuth{}).client("").Get(address)
		if reached {
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		} else {
			require.ErrorContains(t, err, "not public", endpoint)
		}
	}
}

func TestServerWithoutTLSGetsNoToken(t *testing.T) {
	kept := func(_ context.Context, change func(Token) (Token, error)) error {
		_, err := change(Token{Access: "secret"})
		return err
	}
	for endpoint, gets := range map[string]bool{
		"https://mcp.example.com": true, "http://127.0.0.1:80/mcp": true, "http://[::1]/mcp": true, "http://localhost/mcp": true,
		"http://mcp.example.com": false, "http://10.0.0.1/mcp": false, "http://localhost.example.com": false,
		"HTTP://mcp.example.com": false, "": false,
	} {
		a := newAuthorizer(endpoint, &OAuth{Tokens: kept})
		source, err := a.TokenSource(t.Context())
		require.NoError(t, err)
		require.Equal(t, gets, source != nil, endpoint)
		if gets {
			continue
		}
		response := &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(strings.NewReader(""))}
		require.ErrorIs(t, a.Authorize(t.Context(), httptest.NewRequest(http.MethodPost, "/", nil), response), ErrLogin)
	}
}

// TestErrorOfAnAuthorizationServerHasNoSecret: errors quote the responses of a careless one.
func TestErrorOfAnAuthorizationServerHasNoSecret(t *testing.T) {
	answer, status := "", http.StatusOK
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(listener.Close)

	for _, c := range []struct {
		status int
		answer string
	}{
		{http.StatusInternalServerError, `{"refresh_token":"new-secret"}`},
		{http.StatusInternalServerError, `you sent old-secret`},
		{http.StatusBadRequest, `{"error":"invalid_grant","error_description":"unknown: old-secret"}`},
		{http.StatusOK, `{"access_token":5,"refresh_token":"new-secret"}`},
		{http.StatusOK, `{"refresh_token":"new-secret"}`},
	} {
		answer, status = c.answer, c.status
		a := newAuthorizer(listener.URL, &OAuth{Tokens: func(_ context.Context, change func(Token) (Token, error)) error {
			_, err := change(Token{Access: "x", Refresh: "old-secret", Address: listener.URL, Ends: time.Unix(1, 0)})
			return err
		}})
		a.token = Token{Address: listener.URL}
		err := a.renew(t.Context(), "x")
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret", c.answer)
	}
}

// TestAuthorizationServerThatIsDownEndsNoLogin: the token is not asked for again, and is renewed later.
func TestAuthorizationServerThatIsDownEndsNoLogin(t *testing.T) {
	status := http.StatusServiceUnavailable
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		require.NoError(t, r.ParseForm())
		require.Equal(t, "https://mcp.example.com", r.Form.Get("resource"))
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "new", "token_type": "Bearer", "expires_in": 3600})
	}))
	t.Cleanup(listener.Close)

	kept := Token{Access: "old", Refresh: "r", Address: listener.URL, Ends: time.Now().Add(30 * time.Second)}
	a := newAuthorizer("https://mcp.example.com", &OAuth{
		Client: &http.Client{},
		Tokens: func(_ context.Context, change func(Token) (Token, error)) error {
			changed, err := change(kept)
			if err == nil {
				kept = changed
			}
			return err
		},
	})
	access := func() string {
		source, err := a.TokenSource(t.Context())
		require.NoError(t, err)
		token, err := source.Token()
		require.NoError(t, err)
		return token.AccessToken
	}
	for _, down := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		status = down
		require.Equal(t, "old", access(), "it has not ended yet")
	}
	kept.Ends = time.Now().Add(-time.Second)
	a.loaded = false
	_, err := a.TokenSource(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrLogin)

	status = http.StatusOK
	require.Equal(t, "new", access())
	require.Equal(t, "r", kept.Refresh, "an authorization server may keep the refresh token")
	require.NotContains(t, kept.Access, "old")
}
