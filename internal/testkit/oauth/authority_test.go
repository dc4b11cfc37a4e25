package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// authority is an authorization server. The library parses, checks and signs; this type keeps clients and logins.
type authority struct {
	*storage.Storage // the signing key, and what is not used

	address  string
	provider *op.Provider

	mu       sync.Mutex // guards the fields below
	lifetime time.Duration
	clients  map[string]client
	logins   map[string]*login // by ID
	codes    map[string]*login
	renewals map[string]*login // by each refresh token, also those used up
	access   map[string]*login // by the ID of each access token that counts
	requests []string          // "METHOD path", and the grant of requests for tokens

	change  func(metadata map[string]any) // changes the metadata before it is sent
	instead map[string]http.HandlerFunc   // answers at a path in place of the server
}

// client is a registered client whose access tokens are signed, so that the MCP server sees for whom they are.
type client struct {
	*storage.Client
	address string
}

func (client) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }
func (client) IsScopeAllowed(string) bool          { return true }
func (c client) LoginURL(id string) string         { return c.address + "/person?id=" + id }

// login is what a person allowed, from their coming to the end of the last token.
type login struct {
	id       string
	request  *oidc.AuthRequest
	audience []string
	done     bool
	code     string
	used     bool   // the code was used
	renewal  string // the last refresh token
	ended    bool
}

func (l *login) GetID() string                      { return l.id }
func (l *login) GetACR() string                     { return "" }
func (l *login) GetAMR() []string                   { return nil }
func (l *login) GetAudience() []string              { return l.audience }
func (l *login) GetAuthTime() time.Time             { return time.Now() }
func (l *login) GetClientID() string                { return l.request.ClientID }
func (l *login) GetNonce() string                   { return l.request.Nonce }
func (l *login) GetRedirectURI() string             { return l.request.RedirectURI }
func (l *login) GetScopes() []string                { return l.request.Scopes }
func (l *login) SetCurrentScopes([]string)          {}
func (l *login) GetState() string                   { return l.request.State }
func (l *login) GetSubject() string                 { return "ada" }
func (l *login) Done() bool                         { return l.done }
func (l *login) GetResponseType() oidc.ResponseType { return l.request.ResponseType }
func (l *login) GetResponseMode() oidc.ResponseMode { return l.request.ResponseMode }
func (l *login) GetCodeChallenge() *oidc.CodeChallenge {
	return &oidc.CodeChallenge{Challenge: l.request.CodeChallenge, Method: l.request.CodeChallengeMethod}
}

// keys makes a signing key, which takes long, for all authorities.
var keys = sync.OnceValue(func() *storage.Storage {
	return storage.NewStorageWithClients(storage.NewUserStore("http://localhost"), nil)
})

func newAuthority(t *testing.T) *authority {
	a := &authority{
		Storage:  keys(),
		lifetime: time.Hour, clients: map[string]client{}, logins: map[string]*login{}, codes: map[string]*login{},
		renewals: map[string]*login{}, access: map[string]*login{}, instead: map[string]http.HandlerFunc{},
	}
	server := httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(server.Close)
	a.address = server.URL

	var err error
	a.provider, err = op.NewProvider(&op.Config{
		CodeMethodS256: true, GrantTypeRefreshToken: true, AuthMethodPost: true,
		SupportedScopes: []string{"openid", "tools", "offline_access"},
	}, a, op.StaticIssuer(a.address), op.WithAllowInsecure())
	require.NoError(t, err)
	return a
}

type resource struct{}

func (a *authority) serve(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.mu.Lock()
	a.requests = append(a.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Form.Get("grant_type")))
	instead := a.instead[r.URL.Path]
	a.mu.Unlock()

	r = r.WithContext(context.WithValue(r.Context(), resource{}, r.Form["resource"]))
	switch {
	case instead != nil:
		instead(w, r)
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		a.metadata(w, r)
	case r.URL.Path == "/register":
		a.register(w, r)
	case r.URL.Path == "/person":
		a.mu.Lock()
		a.logins[r.Form.Get("id")].done = true
		a.mu.Unlock()
		http.Redirect(w, r, a.address+"/authorize/callback?id="+r.Form.Get("id"), http.StatusFound)
	default:
		a.provider.ServeHTTP(w, r)
	}
}

func (a *authority) metadata(w http.ResponseWriter, r *http.Request) {
	r.URL.Path = "/.well-known/openid-configuration"
	got := httptest.NewRecorder()
	a.provider.ServeHTTP(got, r)
	var metadata map[string]any
	if err := json.Unmarshal(got.Body.Bytes(), &metadata); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	metadata["registration_endpoint"] = a.address + "/register"
	if a.change != nil {
		a.change(metadata)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(metadata)
}

func (a *authority) register(w http.ResponseWriter, r *http.Request) {
	var asked oauthex.ClientRegistrationMetadata
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := uuid.NewString()
	a.mu.Lock()
	a.clients[id] = client{storage.NativeClient(id, asked.RedirectURIs...), a.address}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(&oauthex.ClientRegistrationResponse{ClientRegistrationMetadata: asked, ClientID: id})
}

// count returns how many requests there were whose line begins with this text.
func (a *authority) count(begin string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, request := range a.requests {
		if strings.HasPrefix(request, begin) {
			n++
		}
	}
	return n
}

// The methods of op.Storage that keep something.

func (a *authority) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, found := a.clients[id]
	if !found {
		return nil, oidc.ErrInvalidClient().WithDescription("no such client")
	}
	return c, nil
}

func (a *authority) CreateAuthRequest(ctx context.Context, request *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	audience, _ := ctx.Value(resource{}).([]string)
	l := &login{id: uuid.NewString(), request: request, audience: audience}
	a.logins[l.id] = l
	return l, nil
}

func (a *authority) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.logins[id]; l != nil {
		return l, nil
	}
	return nil, oidc.ErrInvalidRequest().WithDescription("no such login")
}

func (a *authority) SaveAuthCode(_ context.Context, id, code string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.logins[id]
	l.code = code
	a.codes[code] = l
	return nil
}

// AuthRequestByCode ends the login of a code that is used twice.
func (a *authority) AuthRequestByCode(_ context.Context, code string) (op.AuthRequest, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.codes[code]
	if l == nil || l.used {
		if l != nil {
			l.ended = true
		}
		return nil, oidc.ErrInvalidGrant().WithDescription("the code was used")
	}
	return l, nil
}

// DeleteAuthRequest is called when the code was used.
func (a *authority) DeleteAuthRequest(_ context.Context, id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.logins[id].used = true
	return nil
}

func (a *authority) CreateAccessToken(_ context.Context, request op.TokenRequest) (string, time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := uuid.NewString()
	a.access[id] = request.(*login)
	return id, time.Now().Add(a.lifetime), nil
}

func (a *authority) CreateAccessAndRefreshTokens(
	ctx context.Context, request op.TokenRequest, _ string,
) (string, string, time.Time, error) {
	id, ends, err := a.CreateAccessToken(ctx, request)
	a.mu.Lock()
	defer a.mu.Unlock()
	l := request.(*login)
	l.renewal = uuid.NewString()
	a.renewals[l.renewal] = l
	return id, l.renewal, ends, err
}

// TokenRequestByRefreshToken ends the login of a token that is used twice.
func (a *authority) TokenRequestByRefreshToken(_ context.Context, token string) (op.RefreshTokenRequest, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.renewals[token]
	if l != nil && l.renewal != token {
		l.ended = true
	}
	if l == nil || l.ended {
		return nil, op.ErrInvalidRefreshToken
	}
	return l, nil
}

// GetRefreshTokenInfo returns the token itself as its ID.
func (a *authority) GetRefreshTokenInfo(_ context.Context, _ string, token string) (string, string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.renewals[token] == nil {
		return "", "", op.ErrInvalidRefreshToken
	}
	return "ada", token, nil
}

// RevokeToken ends the login of a refresh token, or an access token alone.
func (a *authority) RevokeToken(_ context.Context, token, _, clientID string) *oidc.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := cmp.Or(a.renewals[token], a.access[token])
	if l == nil {
		return nil
	}
	if l.GetClientID() != clientID {
		return oidc.ErrInvalidClient()
	}
	delete(a.access, token)
	l.ended = l.ended || a.renewals[token] != nil
	return nil
}

func (a *authority) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return nil, nil
}

func (a *authority) SetUserinfoFromScopes(context.Context, *oidc.UserInfo, string, string, []string) error {
	return nil
}
func (a *authority) SetUserinfoFromRequest(context.Context, *oidc.UserInfo, op.IDTokenRequest, []string) error {
	return nil
}

// What a test does to the tokens.

// endAccess makes the authority's servers refuse all access tokens that were issued up to now.
func (a *authority) endAccess() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
}

// endLogins revokes everything.
func (a *authority) endLogins() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
	for _, l := range a.logins {
		l.ended = true
	}
}

// protected is an MCP server whose requests need a token of an authority.
type protected struct {
	address   string
	authority *authority

	mu       sync.Mutex // guards the fields below
	metadata oauthex.ProtectedResourceMetadata
	refuse   bool     // every token
	scope    string   // that a token needs
	never    bool     // no token has the scope
	document string   // the address of the metadata in a refusal; "" for the right one
	headers  []string // the Authorization of each request
}

func newProtected(t *testing.T, a *authority) *protected {
	p := &protected{authority: a}
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "headers", Description: "Returns the header of the request."},
		func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			text := r.Extra.Header.Get("Authorization")
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "the header is " + text}}}, nil, nil
		})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true})

	mux := http.NewServeMux()
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	p.address = front.URL + "/mcp"
	p.metadata = oauthex.ProtectedResourceMetadata{
		Resource: p.address, AuthorizationServers: []string{a.address}, ScopesSupported: []string{"openid", "tools"},
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.metadata)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.headers = append(p.headers, r.Header.Get("Authorization"))
		scope, document := p.scope, cmp.Or(p.document, front.URL+"/.well-known/oauth-protected-resource/mcp")
		p.mu.Unlock()

		// The SDK's check of scopes does not say which one is missing.
		check := sdkauth.RequireBearerToken(p.verify, &sdkauth.RequireBearerTokenOptions{ResourceMetadataURL: document})
		check(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if scope != "" && !slices.Contains(sdkauth.TokenInfoFromContext(r.Context()).Scopes, scope) {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, scope))
				http.Error(w, "more rights are needed", http.StatusForbidden)
				return
			}
			handler.ServeHTTP(w, r)
		})).ServeHTTP(w, r)
	})
	return p
}

// verify checks a token: its signature, its end, for whom it is, and whether it was revoked.
func (p *protected) verify(ctx context.Context, token string, _ *http.Request) (*sdkauth.TokenInfo, error) {
	info, err := p.check(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", sdkauth.ErrInvalidToken, token, err) // as a careless server does
	}
	return info, nil
}

func (p *protected) check(ctx context.Context, token string) (*sdkauth.TokenInfo, error) {
	ctx = op.ContextWithIssuer(ctx, p.authority.address)
	claims, err := op.VerifyAccessToken[*oidc.AccessTokenClaims](ctx, token, p.authority.provider.AccessTokenVerifier(ctx))
	if err != nil {
		return nil, err
	}

	p.authority.mu.Lock()
	l := p.authority.access[claims.JWTID]
	p.authority.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !slices.Contains(claims.Audience, p.address):
		return nil, fmt.Errorf("it is for %v", claims.Audience)
	case l == nil || l.ended:
		return nil, fmt.Errorf("it was revoked")
	case p.refuse:
		return nil, fmt.Errorf("it is refused")
	}
	info := &sdkauth.TokenInfo{UserID: claims.Subject, Expiration: claims.GetExpiration()}
	if !p.never {
		info.Scopes = l.request.Scopes
	}
	return info, nil
}

// browse is the browser of a person who allows everything. It returns the parameters with which they come back.
func browse(address string) (url.Values, error) {
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for range 10 {
		response, err := browser.Get(address)
		if err != nil {
			return nil, err
		}
		_ = response.Body.Close()
		to, err := response.Location()
		if err != nil {
			return nil, fmt.Errorf("status %s without a redirect", response.Status)
		}
		if to.Path == "/back" || to.Path == "/callback" {
			return to.Query(), nil
		}
		address = to.String()
	}
	return nil, fmt.Errorf("too many redirects")
}

// redirectOf returns the address to which a login page comes back.
func redirectOf(address string) (string, error) {
	login, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return login.Query().Get("redirect_uri"), nil
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
