package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// client returns a client for the requests of one login or renewal. The issuer is the origin of the authorization server;
// if it is "", the server's metadata names it.
func (a *authorizer) client(issuer string) *http.Client {
	client := &http.Client{Timeout: 30 * time.Second}
	if a.Client != nil {
		given := *a.Client
		client = &given
	}
	client.Transport = &authTransport{authorizer: a, issuer: issuer}

	// A redirect could take a code or a token elsewhere.
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if from, to := originOf(via[0].URL.String()), originOf(r.URL.String()); from != to || via[0].Method != http.MethodGet {
			return &originError{from, to}
		}
		return over("Redirects", len(via), Limits{}.withDefaults().Redirects)
	}
	return client
}

// authTransport sends the requests of a login or renewal to two origins: that of the server has the first document of
// metadata, and that of the authorization server has everything else.
type authTransport struct {
	*authorizer

	mu         sync.Mutex // guards the fields below
	issuer     string     // the origin of the authorization server, whose metadata was read last
	revocation string     // its address for the revocation of tokens; "" if it names none
}

// RoundTrip sends a request.
func (t *authTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.String()
	reads := r.Method == http.MethodGet
	metadata := reads && isServerMetadata(r.URL.Path)
	if metadata && r.Response == nil {
		t.mu.Lock()
		t.issuer = originOf(address)
		t.mu.Unlock()
	}
	if !reads || originOf(address) != originOf(t.endpoint) {
		if err := t.allowed(address); err != nil {
			return nil, err
		}
	}

	base := t.network
	if base == nil {
		base = http.DefaultTransport
	}
	response, err := base.RoundTrip(r)
	if err != nil || reads && !metadata {
		return response, err
	}
	return response, t.collect(response)
}

// isServerMetadata reports whether a path is that of an authorization server's metadata.
func isServerMetadata(path string) bool {
	return strings.Contains(path, "/.well-known/oauth-authorization-server") ||
		strings.Contains(path, "/.well-known/openid-configuration")
}

// allowed returns an error for an address that is not of the authorization server.
func (t *authTransport) allowed(address string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("an address of the authorization server: %w", err)
	}
	if to := originOf(address); to != t.issuer && !slices.Contains(t.Hosts, strings.ToLower(u.Host)) {
		return &originError{t.issuer, to}
	}
	return nil
}

// collect notes the secrets in a response, before an error quotes them, and the address for revocations in metadata.
func (t *authTransport) collect(response *http.Response) error {
	const longest = 1 << 20
	body, err := io.ReadAll(io.LimitReader(response.Body, longest))
	if closing := response.Body.Close(); err == nil {
		err = closing
	}
	response.Body = io.NopCloser(bytes.NewReader(body))

	var members map[string]any
	_ = json.Unmarshal(body, &members) // a body that is no object has no secrets that could be used
	for _, name := range []string{"access_token", "refresh_token", "id_token", "client_secret", "registration_access_token"} {
		if value, ok := members[name].(string); ok {
			t.secrets.Add(value)
		}
	}
	if address, ok := members["revocation_endpoint"].(string); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.revocation = address
	}
	return err
}

// publicNetwork returns the transport to authorization servers. It connects to public addresses only, and to this machine
// if the server is on it. Through a proxy, the proxy decides.
func publicNetwork(endpoint string) http.RoundTripper {
	dialer := &net.Dialer{Timeout: 30 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err == nil && !isPublic(to.Addr().Unmap()) && !(to.Addr().Unmap().IsLoopback() && isLocal(endpoint)) {
			err = fmt.Errorf("the authorization server has an address that is not public: %v", to.Addr())
		}
		return err
	}}

	direct := &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	proxied := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if proxy, err := http.ProxyFromEnvironment(r); proxy != nil || err != nil {
			return proxied.RoundTrip(r)
		}
		return direct.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// isPublic reports whether an address can be of another network.
func isPublic(ip netip.Addr) bool {
	shared := netip.MustParsePrefix("100.64.0.0/10") // of a carrier
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !shared.Contains(ip)
}

// isLocal reports whether an endpoint is on this machine.
func isLocal(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
