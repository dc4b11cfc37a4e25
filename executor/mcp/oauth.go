package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/secret"
)

// ErrLogin marks the error of a connection or a call for which a person has to log in: there is no token that the server
// accepts, and [OAuth.Login] is missing, failed, or brought a token that the server refuses.
var ErrLogin = errors.New("the server requires a login")

// OAuth gets and renews the tokens of a server, as the protocol has it: the server names its authorization server, where
// a person allows this client to act for them.
//
//   - A token is renewed a minute before it ends, and when the server refuses it. If that fails, a person is asked again,
//     once for each connection or call.
//   - Tokens go to the server's origin and to the authorization server, and nowhere else; over https, unless the server
//     is on this machine. What the server repeats of them is replaced by REDACTED.
//   - The addresses for logins and tokens must be of the authorization server's own origin, and redirects may not leave
//     it. None may be of a private network, or of this machine unless the server is.
type OAuth struct {
	// Login sends a person to an address, and returns the parameters with which the authorization server sends them back
	// to Redirect: "code", "state" and others. [Options.Timeout] includes it. Defaults to none: see [ErrLogin].
	Login func(ctx context.Context, address string) (url.Values, error)
	// Redirect is the address to which a person comes back. Required with Login.
	Redirect string
	// Tokens calls change with the token that is kept, or a zero one, and keeps what it returns, unless that is an error.
	// If several programs share the token, only one may change it at a time. Defaults to a token in memory, which ends
	// with the Dial.
	Tokens func(ctx context.Context, change func(Token) (Token, error)) error

	// ClientID is the client that is registered at the authorization server, or the https address of a document about
	// it. Defaults to a client that registers itself for each login. ClientSecret is its secret, if it has one.
	ClientID, ClientSecret string
	// Hosts are more hosts that the authorization server may name for logins and tokens, such as
	// "oauth2.googleapis.com". Defaults to none.
	Hosts []string
	// Client sends the requests to the authorization server, without the check of private networks. Its redirects are
	// limited too. Defaults to a client with that check.
	Client *http.Client
}

// Token is what is kept of a login. As text it is "REDACTED"; only its JSON has the secrets.
type Token struct {
	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token,omitempty"`
	Ends    time.Time `json:"ends,omitzero"` // zero: unknown
	Scopes  []string  `json:"scopes,omitempty"`

	// The client that the token was given to, and where it is renewed.
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	Address      string           `json:"token_endpoint"`
	AuthStyle    oauth2.AuthStyle `json:"auth_style"`
	// Revocation is where the token is revoked; "" if the authorization server names no address for that.
	Revocation string `json:"revocation_endpoint,omitempty"`
}

// Format writes "REDACTED", whatever the verb.
func (Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// usable reports whether a token lasts for this time.
func (t Token) usable(lasts time.Duration) bool {
	return t.Access != "" && (t.Ends.IsZero() || time.Until(t.Ends) > lasts)
}

// authorizer is the sdk's handler for the requests of a Dial.
type authorizer struct {
	OAuth
	endpoint string
	open     bool              // the endpoint is of another machine, and without TLS: it gets no token
	network  http.RoundTripper // to authorization servers, without the check of their origins
	secrets  secret.Set        // every token, code and secret that was seen
	asking   chan struct{}     // a lock for logins, which a waiting request can give up

	mu      sync.Mutex // guards the fields below
	token   Token
	loaded  bool
	untried string // the access token of a renewal or login, until the server accepts it
	login   bool   // untried is of a login
	failed  error  // of the login for this connection; another one is not tried
	dead    string // a refresh token that the authorization server has refused
}

var _ auth.OAuthHandler = (*authorizer)(nil)

func newAuthorizer(endpoint string, o *OAuth) *authorizer {
	a := &authorizer{OAuth: *o, endpoint: endpoint, asking: make(chan struct{}, 1), network: publicNetwork(endpoint)}
	a.open = !strings.HasPrefix(originOf(endpoint), "https:") && !isLocal(endpoint)
	if a.Client != nil {
		a.network = a.Client.Transport // nil: the default one
	}
	if a.Tokens == nil {
		var kept Token
		a.Tokens = func(_ context.Context, change func(Token) (Token, error)) error {
			changed, err := change(kept)
			if err == nil {
				kept = changed
			}
			return err
		}
	}
	return a
}

// begin allows a login again, for a new connection.
func (a *authorizer) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.untried, a.login, a.failed = "", false, nil
}

// tried notes whether the server accepts a token that it was given. That it refuses the token of a login is the end:
// another login would bring the same.
func (a *authorizer) tried(header string, response *http.Response) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.untried == "" || header != "Bearer "+a.untried {
		return nil
	}

	switch status := response.StatusCode; {
	case status < 400:
		a.untried, a.login = "", false
	case a.login && (status == http.StatusUnauthorized || status == http.StatusForbidden && asksForScope(response.Header)):
		return fmt.Errorf("%w: it refuses the token of the login", ErrLogin)
	}
	return nil
}

// update changes the kept token. a.mu must be held.
func (a *authorizer) update(ctx context.Context, change func(Token) (Token, error)) error {
	err := a.Tokens(ctx, func(kept Token) (Token, error) {
		a.know(kept)
		changed, err := change(kept)
		if err != nil {
			return kept, err
		}

		// A token that cannot be kept is used all the same.
		a.know(changed)
		a.token, a.loaded = changed, true
		return changed, nil
	})
	return a.secrets.Err(err)
}

// know adds the secrets of a token to those that no text may have.
func (a *authorizer) know(t Token) { a.secrets.Add(t.Access, t.Refresh, t.ClientSecret) }

// TokenSource returns the token for a request, or nil if there is none: the server's refusal then starts a login.
func (a *authorizer) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	const early = time.Minute
	if a.open {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.loaded {
		if err := a.update(ctx, func(kept Token) (Token, error) { return kept, nil }); err != nil {
			return nil, fmt.Errorf("reading the token: %w", err)
		}
	}

	// A token that cannot be renewed is used to its end.
	if !a.token.usable(early) && a.token.Refresh != "" {
		if err := a.renew(ctx, a.token.Access); err != nil && !errors.Is(err, ErrLogin) && !a.token.usable(0) {
			return nil, err
		}
	}
	if !a.token.usable(0) {
		return nil, nil
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: a.token.Access}), nil
}

// renew replaces the token with this access, unless another program has done so. Its error is ErrLogin if only a login
// helps. a.mu must be held.
func (a *authorizer) renew(ctx context.Context, access string) error {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, a.client(originOf(a.token.Address)))
	err := a.update(ctx, func(kept Token) (Token, error) {
		if kept.Access != access && kept.usable(0) {
			return kept, nil
		}
		if kept.Refresh == "" || kept.Refresh == a.dead {
			return kept, ErrLogin
		}

		// The package has no request of a refresh with a resource of its own, but takes any parameters here.
		request := clientcredentials.Config{
			ClientID: kept.ClientID, ClientSecret: kept.ClientSecret, TokenURL: kept.Address, AuthStyle: kept.AuthStyle,
			EndpointParams: url.Values{
				"grant_type": {"refresh_token"}, "refresh_token": {kept.Refresh}, "resource": {a.endpoint},
			},
		}
		fresh, err := request.Token(ctx)
		if refuses(err) {
			a.dead = kept.Refresh
			return kept, fmt.Errorf("%w: %w", ErrLogin, err)
		}
		if err != nil {
			return kept, err
		}
		kept.Access, kept.Ends = fresh.AccessToken, fresh.Expiry
		kept.Refresh = cmp.Or(fresh.RefreshToken, kept.Refresh)
		return kept, nil
	})
	if err != nil {
		return fmt.Errorf("renewing the token: %w", err)
	}
	return nil
}

// refuses reports whether the authorization server has refused a request for good.
func refuses(err error) bool {
	var answer *oauth2.RetrieveError
	return errors.As(err, &answer) && answer.Response != nil &&
		(answer.Response.StatusCode == http.StatusBadRequest || answer.Response.StatusCode == http.StatusUnauthorized)
}

// Authorize gets a token after a request was refused.
func (a *authorizer) Authorize(ctx context.Context, request *http.Request, response *http.Response) error {
	defer response.Body.Close()
	return a.secrets.Err(a.authorize(ctx, request, response))
}

func (a *authorizer) authorize(ctx context.Context, request *http.Request, response *http.Response) error {
	if a.open {
		return fmt.Errorf("%w, but has no https: anybody could read the token", ErrLogin)
	}

	// More rights need a login. Any other status 403 is the answer.
	more := response.StatusCode == http.StatusForbidden
	if more && !asksForScope(response.Header) {
		return nil
	}

	// While one request waits for a login, others wait for its end.
	select {
	case a.asking <- struct{}{}:
		defer func() { <-a.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	refused := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
	if done, err := a.renewed(ctx, refused, more); done || err != nil {
		return err
	}
	err := a.askPerson(ctx, request, response)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrLogin, err)
		a.failed = err
	}
	return err
}

// renewed reports whether there is another token than the refused one, without a login. An error is final.
func (a *authorizer) renewed(ctx context.Context, refused string, more bool) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.update(ctx, func(kept Token) (Token, error) { return kept, nil }); err != nil {
		return false, fmt.Errorf("reading the token: %w", err)
	}
	if a.token.Access != refused && a.token.usable(0) {
		return true, nil
	}

	// A token that was just renewed, and is refused all the same, asks for a login.
	if refused != a.untried && !more && a.token.Refresh != "" {
		err := a.renew(ctx, refused)
		if err == nil {
			a.untried, a.login = a.token.Access, false
			return true, nil
		}
		if !errors.Is(err, ErrLogin) {
			return false, err
		}
	}
	if a.Login == nil {
		return false, ErrLogin
	}
	return false, a.failed
}

// askPerson gets a token by the authorization code of a person.
func (a *authorizer) askPerson(ctx context.Context, request *http.Request, response *http.Response) error {
	client := a.client("")
	network := client.Transport.(*authTransport)
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: a.Redirect, RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: client,

		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if err := network.allowed(args.URL); err != nil {
				return nil, err
			}
			return a.code(ctx, args.URL)
		},

		// Rights that were given before stay.
		ScopeFilter: func(asked []string) []string {
			a.mu.Lock()
			defer a.mu.Unlock()
			for _, scope := range a.token.Scopes {
				if !slices.Contains(asked, scope) {
					asked = append(slices.Clip(asked), scope)
				}
			}
			return asked
		},
		NewTokenSource: func(ctx context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			return oauth2.StaticTokenSource(t), a.keep(ctx, c, t, network.revocation)
		},
	}
	a.register(config)
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return err
	}
	return handler.Authorize(ctx, request, response)
}

// register says which client the person allows.
func (a *authorizer) register(config *auth.AuthorizationCodeHandlerConfig) {
	switch {
	case strings.HasPrefix(a.ClientID, "https://"):
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: a.ClientID}
	case a.ClientID != "":
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: a.ClientID}
		if a.ClientSecret != "" {
			a.secrets.Add(a.ClientSecret)
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: a.ClientSecret}
		}
	default:
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "Plait", RedirectURIs: []string{a.Redirect}, TokenEndpointAuthMethod: "none",
				GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
			},
		}
	}
}

// code sends the person to the authorization server, and returns the code that it gave them.
func (a *authorizer) code(ctx context.Context, address string) (*auth.AuthorizationResult, error) {
	back, err := a.Login(ctx, address)
	if err != nil {
		return nil, err
	}
	a.secrets.Add(back.Get("code"))
	if reason := back.Get("error"); reason != "" {
		reason = strings.TrimSpace(reason + " " + back.Get("error_description"))
		return nil, fmt.Errorf("the authorization server says %s", safetext.Quote(reason, 200))
	}
	return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
}

// keep keeps the token of a login.
func (a *authorizer) keep(ctx context.Context, c *oauth2.Config, t *oauth2.Token, revocation string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.update(ctx, func(Token) (Token, error) {
		return Token{
			Access: t.AccessToken, Refresh: t.RefreshToken, Ends: t.Expiry, Scopes: slices.Sorted(slices.Values(c.Scopes)),
			ClientID: c.ClientID, ClientSecret: c.ClientSecret,
			Address: c.Endpoint.TokenURL, AuthStyle: c.Endpoint.AuthStyle, Revocation: revocation,
		}, nil
	})
	a.untried, a.login = t.AccessToken, true
	return err
}

// asksForScope reports whether a server refuses a request because the token gives too few rights.
func asksForScope(header http.Header) bool {
	challenges, _ := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	return slices.ContainsFunc(challenges, func(c oauthex.Challenge) bool {
		return c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope"
	})
}

// Revoke revokes the kept token of a server at its authorization server, with all tokens of the same login, and keeps it all
// the same. Without a token there is nothing to do. An error wraps [errors.ErrUnsupported] if the authorization server
// names no address for that.
func (o *OAuth) Revoke(ctx context.Context, endpoint string) error {
	a := newAuthorizer(endpoint, o)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.update(ctx, func(kept Token) (Token, error) { return kept, nil }); err != nil {
		return fmt.Errorf("reading the token: %w", err)
	}
	t := a.token
	if t.Access == "" {
		return nil
	}
	if t.Revocation == "" {
		return fmt.Errorf("the authorization server revokes no tokens: %w", errors.ErrUnsupported)
	}

	form := url.Values{"token": {cmp.Or(t.Refresh, t.Access)}}
	if t.Refresh != "" {
		form.Set("token_type_hint", "refresh_token")
	}
	inHeader := t.AuthStyle == oauth2.AuthStyleInHeader && t.ClientSecret != ""
	if !inHeader {
		form.Set("client_id", t.ClientID)
	}
	if !inHeader && t.ClientSecret != "" {
		form.Set("client_secret", t.ClientSecret)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return a.secrets.Err(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if inHeader {
		request.SetBasicAuth(url.QueryEscape(t.ClientID), url.QueryEscape(t.ClientSecret))
	}
	response, err := a.client(originOf(t.Address)).Do(request)
	if err != nil {
		return a.secrets.Err(err)
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("revoking the token: status %d", response.StatusCode)
	}
	return errors.Join(err, response.Body.Close())
}
