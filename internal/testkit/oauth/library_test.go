package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
)

// person logs in, and is counted.
type person struct {
	asked atomic.Int32
	login func(ctx context.Context, address string) (url.Values, error) // nil: allows everything

	mu    sync.Mutex // guards token
	token mcp.Token  // what is kept
	short bool       // it cannot be renewed
}

func (p *person) oauth() *mcp.OAuth {
	return &mcp.OAuth{
		Redirect: "http://127.0.0.1/back",
		Login: func(ctx context.Context, address string) (url.Values, error) {
			p.asked.Add(1)
			if p.login != nil {
				return p.login(ctx, address)
			}
			return browse(address)
		},
		Tokens: func(_ context.Context, change func(mcp.Token) (mcp.Token, error)) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			changed, err := change(p.token)
			if p.short {
				changed.Refresh = ""
			}
			if err == nil {
				p.token = changed
			}
			return err
		},
	}
}

// connect connects to a server as a program that starts anew.
func connect(ctx context.Context, t *testing.T, p *protected, o *mcp.OAuth) (*mcp.Server, error) {
	var log bytes.Buffer
	s, err := mcp.Connect(ctx, mcp.URL(p.address, &mcp.URLOptions{OAuth: o}),
		&mcp.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	p.showsNoSecret(t, fmt.Sprintf("%v %+v %v", err, o, log.String()))
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// showsNoSecret fails if a text has a token or code that was ever issued.
func (p *protected) showsNoSecret(t *testing.T, text string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, header := range p.headers {
		if token := strings.TrimPrefix(header, "Bearer "); token != "" {
			require.NotContains(t, text, token)
		}
	}
	p.authority.mu.Lock()
	defer p.authority.mu.Unlock()
	for token := range p.authority.renewals {
		require.NotContains(t, text, token)
	}
	for code := range p.authority.codes {
		require.NotContains(t, text, code)
	}
}

// renew gets new tokens past the library, as somebody with the refresh token does.
func (a *authority) renew(t *testing.T, token mcp.Token) (access, refresh string) {
	response, err := http.PostForm(token.Address, url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {token.Refresh}, "client_id": {token.ClientID},
	})
	require.NoError(t, err)
	defer response.Body.Close()
	var got struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&got))
	require.NotEmpty(t, got.Access)
	return got.Access, got.Refresh
}

// badToken is what may be wrong with a token that a person got by a login.
type badToken struct {
	spoil  func(t *testing.T, a *authority, p *protected, ada *person)
	asked  int32 // how often the person is asked again
	failed bool  // ErrLogin, although the person was asked
}

var badTokens = map[string]badToken{
	"expired": {spoil: func(_ *testing.T, a *authority, _ *protected, ada *person) {
		a.endAccess()
		ada.token.Ends = time.Now().Add(-time.Hour)
	}},
	"ends within a minute": {spoil: func(_ *testing.T, a *authority, _ *protected, ada *person) {
		a.endAccess()
		ada.token.Ends = time.Now().Add(50 * time.Second)
	}},
	"expired by the server's clock": {spoil: func(t *testing.T, a *authority, _ *protected, ada *person) {
		a.lifetime = -time.Hour
		ada.token.Access, ada.token.Refresh = a.renew(t, ada.token)
		a.lifetime = time.Hour
	}},
	"revoked": {spoil: func(_ *testing.T, a *authority, _ *protected, _ *person) { a.endAccess() }},
	"revoked, with its login": {asked: 1, spoil: func(_ *testing.T, a *authority, _ *protected, _ *person) {
		a.endLogins()
	}},
	"expired, and its login revoked": {asked: 1, spoil: func(_ *testing.T, a *authority, _ *protected, ada *person) {
		a.endLogins()
		ada.token.Ends = time.Now().Add(-time.Hour)
	}},
	"expired, without another to renew it": {asked: 1, spoil: func(_ *testing.T, _ *authority, _ *protected, ada *person) {
		ada.token.Ends, ada.token.Refresh = time.Now().Add(-time.Hour), ""
	}},
	"for another server": {asked: 1, spoil: func(t *testing.T, a *authority, _ *protected, ada *person) {
		bob := &person{}
		_, err := connect(t.Context(), t, newProtected(t, a), bob.oauth())
		require.NoError(t, err)
		ada.token = bob.token
	}},
	"replayed refresh token": {asked: 1, spoil: func(t *testing.T, a *authority, _ *protected, ada *person) {
		ada.token.Ends = time.Now().Add(-time.Hour)
		a.renew(t, ada.token)
	}},
	"forged": {spoil: func(_ *testing.T, _ *authority, _ *protected, ada *person) { ada.token.Access = "forged" }},
	"forged altogether": {asked: 1, spoil: func(_ *testing.T, _ *authority, _ *protected, ada *person) {
		ada.token.Access, ada.token.Refresh = "forged", "forged too"
	}},
	"of a client that the authority forgot": {asked: 1, spoil: func(_ *testing.T, a *authority, _ *protected, _ *person) {
		a.endAccess()
		clear(a.clients)
	}},
	"none": {asked: 1, spoil: func(_ *testing.T, _ *authority, _ *protected, ada *person) { ada.token = mcp.Token{} }},
	"replayed code": {asked: 1, failed: true, spoil: func(_ *testing.T, a *authority, _ *protected, ada *person) {
		a.endLogins()
		var used string
		for code := range a.codes {
			used = code
		}
		ada.login = func(_ context.Context, address string) (url.Values, error) {
			back, err := browse(address)
			back.Set("code", used)
			return back, err
		}
	}},
	"refused for ever": {asked: 1, failed: true, spoil: func(_ *testing.T, _ *authority, p *protected, _ *person) {
		p.refuse = true
	}},
}

// TestBadTokens has a person log in, spoils the token, and connects as a program that starts anew.
func TestBadTokens(t *testing.T) {
	for name, c := range badTokens {

		for _, attended := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, person there: %v", name, attended), func(t *testing.T) {
				a := newAuthority(t)
				server := newProtected(t, a)
				ada := &person{}
				_, err := connect(t.Context(), t, server, ada.oauth())
				require.NoError(t, err)
				c.spoil(t, a, server, ada)
				exchanged, sent := a.count("POST /oauth/token"), len(server.headers)

				o := ada.oauth()
				if !attended {
					o.Login = nil
				}
				s, err := connect(t.Context(), t, server, o)
				require.LessOrEqual(t, a.count("POST /oauth/token")-exchanged, 3, "no loop")
				require.LessOrEqual(t, len(server.headers)-sent, 12, "no loop")
				if c.failed || !attended && c.asked > 0 {
					require.ErrorIs(t, err, mcp.ErrLogin)
				} else {
					require.NoError(t, err)
					_, err = s.Session(t.Context())
					require.NoError(t, err)
				}
				if attended {
					require.Equal(t, c.asked, ada.asked.Load()-1)
				} else {
					require.EqualValues(t, 1, ada.asked.Load())
				}
			})
		}
	}
}

// TestReplayEndsTheLogin: the authority takes a code or a refresh token that comes twice as stolen.
func TestReplayEndsTheLogin(t *testing.T) {
	a := newAuthority(t)
	server := newProtected(t, a)
	ada := &person{}
	_, err := connect(t.Context(), t, server, ada.oauth())
	require.NoError(t, err)

	thief := ada.token
	access, _ := a.renew(t, thief)
	_, err = server.check(t.Context(), access)
	require.NoError(t, err)
	ada.token.Ends = time.Now().Add(-time.Hour)
	_, err = connect(t.Context(), t, server, ada.oauth())
	require.NoError(t, err)
	_, err = server.check(t.Context(), access)
	require.Error(t, err, "what the thief got does not count any more")
}

func TestRevokedLoginCountsNowhere(t *testing.T) {
	for _, short := range []bool{false, true} {
		a := newAuthority(t)
		server := newProtected(t, a)
		ada := &person{short: short}
		require.NoError(t, ada.oauth().Revoke(t.Context(), server.address), "there is nothing to revoke")
		_, err := connect(t.Context(), t, server, ada.oauth())
		require.NoError(t, err)
		require.Equal(t, a.address+"/revoke", ada.token.Revocation)

		for range 2 {
			require.NoError(t, ada.oauth().Revoke(t.Context(), server.address))
			_, err = server.check(t.Context(), ada.token.Access)
			require.ErrorContains(t, err, "it was revoked")
		}
		unattended := ada.oauth()
		unattended.Login = nil
		_, err = connect(t.Context(), t, server, unattended)
		require.ErrorIs(t, err, mcp.ErrLogin)
	}
}

func TestTokenIsRevokedNowhereElse(t *testing.T) {
	var sent atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	t.Cleanup(elsewhere.Close)
	fails := func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		http.Error(w, r.Form.Get("token"), http.StatusServiceUnavailable)
	}
	for name, c := range map[string]struct {
		change func(*authority)
		want   string
	}{
		"on another host": {func(a *authority) {
			a.change = func(m map[string]any) { m["revocation_endpoint"] = elsewhere.URL + "/revoke" }
		}, "http"},
		"moved elsewhere": {func(a *authority) {
			a.instead["/revoke"] = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			}
		}, "http"},
		"nowhere":   {func(a *authority) { a.change = func(m map[string]any) { delete(m, "revocation_endpoint") } }, "unsupported operation"},
		"on strike": {func(a *authority) { a.instead["/revoke"] = fails }, "status 503"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			server := newProtected(t, a)
			c.change(a)
			ada := &person{}
			_, err := connect(t.Context(), t, server, ada.oauth())
			require.NoError(t, err)
			err = ada.oauth().Revoke(t.Context(), server.address)
			require.ErrorContains(t, err, c.want)
			server.showsNoSecret(t, err.Error())
			require.Zero(t, sent.Load())
			require.NotEmpty(t, ada.token.Access)
		})
	}
}

// spoiledMetadata sets a member of the authority's metadata.
func spoiledMetadata(name, value string) func(*authority, *protected) {
	return func(a *authority, _ *protected) { a.change = func(m map[string]any) { m[name] = value } }
}

// misleading is metadata that points elsewhere, and whether the person is asked.
type misleading struct {
	change func(*authority, *protected)
	asked  int32
}

func misleadingTo(elsewhere string) map[string]misleading {
	redirect := func(path, to string, status int) func(*authority, *protected) {
		return func(a *authority, _ *protected) {
			a.instead[path] = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, status) }
		}
	}
	authorities := func(addresses ...string) func(*authority, *protected) {
		return func(_ *authority, p *protected) { p.metadata.AuthorizationServers = addresses }
	}
	const wellKnown = "/.well-known/oauth-authorization-server"

	return map[string]misleading{
		"login page on another host":      {spoiledMetadata("authorization_endpoint", elsewhere+"/authorize"), 0},
		"login page without TLS":          {spoiledMetadata("authorization_endpoint", "http://example.com/authorize"), 0},
		"login page that is a script":     {spoiledMetadata("authorization_endpoint", "javascript:alert(1)"), 0},
		"tokens on another host":          {spoiledMetadata("token_endpoint", elsewhere+"/token"), 1},
		"tokens without TLS":              {spoiledMetadata("token_endpoint", "http://example.com/token"), 0},
		"tokens at a private address":     {spoiledMetadata("token_endpoint", "https://192.168.0.1/token"), 0},
		"registration on another host":    {spoiledMetadata("registration_endpoint", elsewhere+"/register"), 0},
		"another issuer":                  {spoiledMetadata("issuer", elsewhere), 0},
		"metadata moved elsewhere":        {redirect(wellKnown, elsewhere+wellKnown, http.StatusFound), 0},
		"metadata moved to a private one": {redirect(wellKnown, "http://169.254.169.254/latest", http.StatusFound), 0},
		"registration moved elsewhere":    {redirect("/register", elsewhere, http.StatusTemporaryRedirect), 0},
		"tokens moved elsewhere":          {redirect("/oauth/token", elsewhere, http.StatusTemporaryRedirect), 1},
		"tokens moved on the same host":   {redirect("/oauth/token", "/elsewhere", http.StatusTemporaryRedirect), 1},
		"authority at a private address":  {authorities("https://10.0.0.1"), 0},
		"authority at a cloud's metadata": {authorities("https://169.254.169.254"), 0},
		"authority without TLS":           {authorities("http://auth.example.com"), 0},
		"no authority":                    {authorities(), 0},
		"document about another server":   {func(_ *authority, p *protected) { p.metadata.Resource = elsewhere }, 0},
	}
}

// TestMetadataThatPointsElsewhere: nothing is sent elsewhere, no person is sent elsewhere, and nothing is kept.
func TestMetadataThatPointsElsewhere(t *testing.T) {
	var sent atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for name, c := range misleadingTo(elsewhere.URL) {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			server := newProtected(t, a)
			c.change(a, server)
			ada := &person{}
			_, err := connect(t.Context(), t, server, ada.oauth())
			require.ErrorIs(t, err, mcp.ErrLogin)
			require.Equal(t, c.asked, ada.asked.Load())
			require.Empty(t, ada.token)
			require.Zero(t, sent.Load())
			require.Zero(t, a.count("POST /elsewhere"))
		})
	}

	t.Run("document on another host", func(t *testing.T) {
		server := newProtected(t, newAuthority(t))
		server.document = elsewhere.URL
		_, err := connect(t.Context(), t, server, (&person{}).oauth())
		require.NoError(t, err, "the server's own document counts")
		require.Zero(t, sent.Load())
	})

	t.Run("a host that the program allows", func(t *testing.T) {
		a := newAuthority(t)
		server := newProtected(t, a)
		other := httptest.NewServer(http.HandlerFunc(a.serve))
		t.Cleanup(other.Close)
		spoiledMetadata("token_endpoint", other.URL+"/oauth/token")(a, server)
		o := (&person{}).oauth()
		o.Hosts = []string{strings.TrimPrefix(other.URL, "http://")}
		_, err := connect(t.Context(), t, server, o)
		require.NoError(t, err)
	})
}

func TestAnswerOfAnotherLoginIsRefused(t *testing.T) {
	for name, change := range map[string]func(url.Values){
		"another state":        func(back url.Values) { back.Set("state", "another") },
		"no state":             func(back url.Values) { back.Del("state") },
		"another issuer":       func(back url.Values) { back.Set("iss", "https://example.com") },
		"a refusal":            func(back url.Values) { back.Set("error", "access_denied\x1b[31m") },
		"no code":              func(back url.Values) { back.Del("code") },
		"the code of somebody": func(back url.Values) { back.Set("code", "guessed") },
	} {
		t.Run(name, func(t *testing.T) {
			server := newProtected(t, newAuthority(t))
			ada := &person{login: func(_ context.Context, address string) (url.Values, error) {
				back, err := browse(address)
				change(back)
				return back, err
			}}
			_, err := connect(t.Context(), t, server, ada.oauth())
			require.ErrorIs(t, err, mcp.ErrLogin)
			require.EqualValues(t, 1, ada.asked.Load())
			require.NotContains(t, err.Error(), "\x1b")
			require.Empty(t, ada.token)
		})
	}
}

func TestLoginThatIsNeverAnsweredEndsWithTheContext(t *testing.T) {
	server := newProtected(t, newAuthority(t))
	ctx, cancel := context.WithCancel(t.Context())
	ada := &person{login: func(ctx context.Context, _ string) (url.Values, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	_, err := connect(ctx, t, server, ada.oauth())
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 1, ada.asked.Load())
}

func TestCallsAtOnceAskOnce(t *testing.T) {
	for _, short := range []bool{false, true} {
		callsAtOnce(t, &person{short: short})
	}
}

func callsAtOnce(t *testing.T, ada *person) {
	a := newAuthority(t)
	server := newProtected(t, a)
	s, err := connect(t.Context(), t, server, ada.oauth())
	require.NoError(t, err)
	a.endLogins()

	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			session, err := s.Session(t.Context())
			if assert.NoError(t, err) {
				_, err = session.ListTools(t.Context(), nil)
				assert.NoError(t, err)
			}
		})
	}
	calls.Wait()
	require.EqualValues(t, 2, ada.asked.Load())
}

func TestMoreRightsAreAskedForOnce(t *testing.T) {
	a := newAuthority(t)
	server := newProtected(t, a)
	ada := &person{}
	_, err := connect(t.Context(), t, server, ada.oauth())
	require.NoError(t, err)
	require.NotContains(t, ada.token.Scopes, "more")

	server.scope = "more"
	_, err = connect(t.Context(), t, server, ada.oauth())
	require.NoError(t, err)
	require.EqualValues(t, 2, ada.asked.Load())
	require.Subset(t, ada.token.Scopes, []string{"more", "tools"})

	server.scope, server.never = "still more", true
	_, err = connect(t.Context(), t, server, ada.oauth())
	require.Error(t, err)
	require.EqualValues(t, 3, ada.asked.Load(), "the server asks for ever")
}

// TestServerThatRepeatsTheTokenLeaksNothing runs an agent whose tool returns the header of its request.
func TestServerThatRepeatsTheTokenLeaksNothing(t *testing.T) {
	a := newAuthority(t)
	server := newProtected(t, a)
	s, err := connect(t.Context(), t, server, (&person{}).oauth())
	require.NoError(t, err)

	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(apitest.Use("headers", nil)), apitest.Say("Done.")), Tools: s.Tools(),
	}
	d, err := agent.Run(t.Context(), dag.New().User("Which header?"))
	require.NoError(t, err)
	path := t.TempDir() + "/talk.json"
	require.NoError(t, d.Save(path))
	saved := read(t, path)
	require.Contains(t, saved, "the header is Bearer REDACTED")
	server.showsNoSecret(t, saved)
}
