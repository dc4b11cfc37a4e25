package tape

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/plait-dev/plait/internal/pattern"
)

// redacted replaces a secret on a tape.
const redacted = "REDACTED"

// secretName matches the names of headers and parameters with secret values, or with values that identify the account.
// Names with "tokens", such as those of rate limits, do not match: they count the tokens of a model.
var secretName = pattern.Of(`(?i)key|token($|[^s])|secret|auth|cookie|session|organi[sz]ation|project|credential|signature|password|^sig$`)

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
		if secretName().MatchString(name) {
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
type scrubber struct{ secrets []string }

// shortest is the minimum length of a secret found by request or header. A shorter text could be an ordinary word.
const shortest = 8

// request collects the secrets in a request.
func (s *scrubber) request(req *http.Request) {
	s.header(req.Header, secretName())
	for name, values := range req.URL.Query() {
		if secretName().MatchString(name) {
			s.found(values...)
		}
	}
	if password, ok := req.URL.User.Password(); ok {
		s.found(password)
	}
}

// header collects the secrets in the headers with a matching name. A whole value ("Bearer …") is a secret. So is each
// of its words with a digit: no ordinary word has one.
func (s *scrubber) header(h http.Header, named *regexp.Regexp) {
	for name, values := range h {
		if !named.MatchString(name) {
			continue
		}
		for _, value := range values {
			s.found(value)
			for _, word := range strings.FieldsFunc(value,
				func(c rune) bool { return strings.ContainsRune(" ;,=", c) }) {
				if strings.ContainsAny(word, "0123456789") {
					s.found(word)
				}
			}
		}
	}
}

func (s *scrubber) found(values ...string) {
	for _, v := range values {
		if len(v) >= shortest && v != redacted {
			s.add(v)
		}
	}
}

func (s *scrubber) add(secrets ...string) {
	for _, secret := range secrets {
		// In the query of a URL, a space is written as a plus sign.
		for _, form := range []string{secret, strings.ReplaceAll(secret, " ", "+")} {
			if form != "" && !slices.Contains(s.secrets, form) {
				s.secrets = append(s.secrets, form)
			}
		}
	}
}

// span is a part of a text, from start up to end.
type span struct{ start, end int }

// text returns the text without the secrets, plain or escaped (see find).
func (s *scrubber) text(text string) string {
	found := s.find(text, maxEscapes)
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })

	var clean strings.Builder
	end := 0 // of the secrets so far
	for _, secret := range found {
		// Secrets may overlap, such as one within another. Together they are replaced once.
		if secret.start >= end {
			clean.WriteString(text[end:secret.start] + redacted)
		}
		end = max(end, secret.end)
	}
	clean.WriteString(text[end:])
	return clean.String()
}

// maxEscapes is how many times a secret may be escaped to be found, such as 2 for JSON in a string of JSON.
const maxEscapes = 3

// find returns the spans of the secrets in text: plain, or escaped up to depth times, as JSON or in a URL. An escape
// may have any of its forms, such as / or \/ or \u002F, because text is decoded and searched again.
func (s *scrubber) find(text string, depth int) []span {
	var found []span
	for _, secret := range s.secrets {
		end := 0
		for i := strings.Index(text, secret); i >= 0; i = strings.Index(text[end:], secret) {
			start := end + i
			end = start + len(secret)
			found = append(found, span{start, end})
		}
	}
	if depth == 0 {
		return found
	}

	for _, e := range escapes {
		decoded, offsets := e.decode(text)
		if decoded == text {
			continue
		}
		for _, secret := range s.find(decoded, depth-1) {
			found = append(found, span{offsets[secret.start], offsets[secret.end]})
		}
	}
	return found
}

// holds reports whether text still contains a secret.
func (s *scrubber) holds(text string) bool { return len(s.find(text, maxEscapes)) > 0 }

// taped returns a request or a response without the secrets.
func (s *scrubber) taped(r taped) taped {
	r.url = s.text(s.url(r.url))
	for name, values := range r.header {
		for i, v := range values {
			r.header[name][i] = s.text(v)
		}
	}
	r.body = []byte(s.text(string(r.body)))
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
	query := u.Query()
	for name := range query {
		if secretName().MatchString(name) {
			query[name] = []string{redacted}
		}
	}
	u.RawQuery = query.Encode()
	return inProject().ReplaceAllString(u.String(), "${1}"+redacted)
}
