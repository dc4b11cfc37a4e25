package tape

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/secret"
)

// accountName matches the names of response headers that identify the account.
var accountName = pattern.Of(`(?i)cookie|organi[sz]ation(-id)?$|project(-id)?$`)

// headers lists the names of the recorded headers.
type headers []string

// keptHeaders returns the headers with a meaning for a provider or a test, and the given ones.
func keptHeaders(names []string) (headers, error) {
	kept := headers{
		"Accept", "Anthropic-Beta", "Anthropic-Version", "Content-Type", "Openai-Beta", "Request-Id", "Retry-After", "Retry-After-Ms",
		"X-Request-Id", "X-Should-Retry",
	}
	for _, name := range names {
		if secret.Named(name) {
			return nil, fmt.Errorf("%w: the header %s may hold a secret, and is not recorded", ErrUnusable, name)
		}
		kept = append(kept, http.CanonicalHeaderKey(name))
	}
	return kept, nil
}

func (h headers) of(all http.Header) http.Header {
	kept := http.Header{}
	for _, name := range h {
		if values := all.Values(name); len(values) > 0 {
			kept[name] = slices.Clone(values)
		}
	}
	return kept
}

// scrubber removes the secrets of a tape.
type scrubber struct{ secret.Set }

// taped returns a request or a response without the secrets.
func (s *scrubber) taped(r taped) taped {
	r.url = s.Text(s.url(r.url))
	for name, values := range r.header {
		for i, v := range values {
			r.header[name][i] = s.Text(v)
		}
	}
	r.body = []byte(s.Text(string(r.body)))
	return r
}

var inProject = pattern.Of(`(/projects/)[^/?]+`)

// url returns the address without values that identify the account, with its parameters in order.
func (s *scrubber) url(address string) string {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return address
	}
	u.User, u.Fragment = nil, ""
	u.RawQuery = u.Query().Encode()
	return inProject().ReplaceAllString(secret.URL(u.String()), "${1}"+secret.Redacted)
}
