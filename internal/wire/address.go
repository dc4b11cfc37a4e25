package wire

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/secret"
)

// ErrAddress marks an address to which no request can be sent.
var ErrAddress = errors.New("not the address of an API")

// Ready prepares a request to be sent: it collects its secrets (see [secret.Collect]) and checks its address.
func Ready(req *http.Request) error {
	secret.Collect(req)
	return CheckAddress(req.URL.String())
}

// CheckAddress returns an error in the chain of ErrAddress, with what to write instead, unless the address is an
// absolute URL of HTTP or HTTPS with a host.
func CheckAddress(address string) error {
	refuse := func(format string, args ...any) error {
		shown := safetext.Escape(secret.URL(address), 200)
		return fmt.Errorf("%w: \"%s\": %s", ErrAddress, shown, fmt.Sprintf(format, args...))
	}
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return refuse("it contains a space or a control character")
	}

	u, err := url.Parse(address)
	switch {
	case err == nil && (u.Scheme == "http" || u.Scheme == "https"):
		if u.Hostname() == "" {
			return refuse("it names no host: write it like http://localhost:8080")
		}
		return nil
	case err == nil && strings.Contains(address, "://"):
		return refuse("write http:// or https:// in place of %s://", safetext.Escape(u.Scheme, 40))
	case strings.Contains(address, "://"):
		return refuse("it is no URL: write it like http://localhost:8080")
	}

	// Without a scheme, "localhost:8080" is parsed as a URL of the scheme "localhost".
	host, parseErr := url.Parse("http://" + strings.TrimLeft(address, "/"))
	if parseErr != nil || host.Hostname() == "" {
		return refuse("it is no URL: write it like http://localhost:8080")
	}
	scheme := "https://"
	if ip := net.ParseIP(host.Hostname()); ip != nil || !strings.Contains(host.Hostname(), ".") {
		scheme = "http://" // a server on this machine or in this network
	}
	return refuse("write %s", safetext.Escape(secret.URL(scheme+strings.TrimLeft(address, "/")), 200))
}
