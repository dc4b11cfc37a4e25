// Package secret removes secrets from texts: from tapes, from errors that are saved or printed, and from addresses.
//
// A [Set] knows values, such as the key of a request, and finds them however they are escaped. [URL] and [InText] need
// no values: they remove the password and the secret parameters of addresses.
package secret

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/plait-dev/plait/internal/pattern"
)

// Redacted replaces a secret.
const Redacted = "REDACTED"

// Names of headers and parameters. Names with "tokens", such as those of rate limits, do not match: they count the
// tokens of a model.
var (
	// secretName matches names with secret values.
	secretName = pattern.Of(`(?i)key|token($|[^s])|secret|auth|cookie|session|credential|signature|password|^sig$`)
	// accountName matches names with values that identify the account.
	accountName = pattern.Of(`(?i)organi[sz]ation|project`)
)

// Named reports whether the value of a header or parameter with that name is a secret, or identifies the account.
func Named(name string) bool {
	return secretName().MatchString(name) || accountName().MatchString(name)
}

// shortest is the minimum length of a secret found by Request or Header. A shorter text could be an ordinary word.
const shortest = 8

// Set is a set of secret values. The zero value is empty. A Set may be used concurrently.
type Set struct {
	// Accounts makes Request also collect the values that identify the account, such as an organization.
	Accounts bool

	mu     sync.Mutex // guards values
	values []string
}

// Add adds secrets of any length. An empty one is ignored.
func (s *Set) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range secrets {
		// In the query of a URL, a space is written as a plus sign.
		for _, form := range append(inBase64(secret), secret, strings.ReplaceAll(secret, " ", "+")) {
			if form != "" && !slices.Contains(s.values, form) {
				s.values = append(s.values, form)
			}
		}
	}
}

// inBase64 returns how a secret looks within a longer text that is encoded in base64: it begins at any of three
// positions. The characters at its ends depend on the text around it and are left out.
func inBase64(secret string) []string {
	const enough = 12 // characters; fewer could be chance
	var forms []string
	for skip := range min(3, len(secret)) {
		// Three bytes are four characters.
		inner := secret[skip:]
		inner = inner[:len(inner)/3*3]
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if form := e.EncodeToString([]byte(inner)); len(form) >= enough {
				forms = append(forms, form)
			}
		}
	}
	return forms
}

// Request adds the secrets of a request: in its headers, its address and its parameters.
func (s *Set) Request(req *http.Request) {
	secrets := func(name string) bool {
		return secretName().MatchString(name) || s.Accounts && accountName().MatchString(name)
	}
	for name, values := range req.Header {
		if secrets(name) {
			s.words(values)
		}
	}
	for name, values := range req.URL.Query() {
		if secrets(name) {
			s.found(values...)
		}
	}
	if password, ok := req.URL.User.Password(); ok {
		s.found(password)
	}
}

// Header adds the values of the headers with a matching name.
func (s *Set) Header(h http.Header, named *regexp.Regexp) {
	for name, values := range h {
		if named.MatchString(name) {
			s.words(values)
		}
	}
}

// words adds values of headers. A whole value ("Bearer …") is a secret. So is what follows its first word, and each word
// with a digit: no ordinary word has one.
func (s *Set) words(values []string) {
	for _, value := range values {
		_, rest, _ := strings.Cut(value, " ")
		s.found(value, rest)
		for _, word := range strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" ;,=", c) }) {
			if strings.ContainsAny(word, "0123456789") {
				s.found(word)
			}
		}
	}
}

func (s *Set) found(values ...string) {
	for _, v := range values {
		if len(v) >= shortest && v != Redacted {
			s.Add(v)
		}
	}
}

// span is a part of a text, from start up to end.
type span struct{ start, end int }

// Text returns the text without the secrets: plain, split over lines, in base64, or escaped up to 3 times as JSON or in
// a URL. An escape may have any of its forms, such as / or \/ or \u002F.
func (s *Set) Text(text string) string {
	found := s.find(text)
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })

	var clean strings.Builder
	end := 0 // of the secrets so far
	for _, secret := range found {
		// Secrets may overlap, such as one within another. Together they are replaced once.
		if secret.start >= end {
			clean.WriteString(text[end:secret.start] + Redacted)
		}
		end = max(end, secret.end)
	}
	clean.WriteString(text[end:])
	return clean.String()
}

// Holds reports whether text contains a secret.
func (s *Set) Holds(text string) bool { return len(s.find(text)) > 0 }

// maxEscapes is how many times a secret may be escaped to be found, such as 2 for JSON in a string of JSON.
const maxEscapes = 3

func (s *Set) find(text string) []span {
	s.mu.Lock()
	values := slices.Clone(s.values)
	s.mu.Unlock()
	if len(values) == 0 {
		return nil
	}
	return find(values, text, maxEscapes)
}

// find returns the spans of the values in text, plain or escaped up to depth times: text is decoded and searched again.
func find(values []string, text string, depth int) []span {
	var found []span
	for _, secret := range values {
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
		decoded, spans := e.decode(text)
		if decoded == text {
			continue
		}
		for _, secret := range find(values, decoded, depth-1) {
			found = append(found, span{spans[secret.start].start, spans[secret.end-1].end})
		}
	}
	return found
}

// URL returns an address without its user and password, and without the values of its secret parameters; each is
// replaced. An address that cannot be parsed is cleaned as by InText.
func URL(address string) string {
	// Without a scheme, the user is parsed as one.
	if host, _, _ := strings.Cut(address, "/"); !strings.Contains(address, "://") && strings.Contains(host, "@") {
		address = Redacted + address[strings.LastIndex(host, "@"):]
	}
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return InText(address)
	}

	if u.User != nil {
		u.User = url.User(Redacted)
	}
	query, changed := u.Query(), false
	for name := range query {
		if Named(name) {
			query[name], changed = []string{Redacted}, true
		}
	}
	if changed {
		u.RawQuery = query.Encode()
	}
	return u.String()
}

var (
	userInText      = pattern.Of(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'<>]*@`)
	parameterInText = pattern.Of(`([?&])([\w.%-]+)=([^\s&#"'<>]+)`)
)

// InText returns a text without the users, the passwords and the secret parameters of the addresses in it.
func InText(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	text = userInText().ReplaceAllString(text, "${1}"+Redacted+"@")
	return parameterInText().ReplaceAllStringFunc(text, func(found string) string {
		if name, _, _ := strings.Cut(found[1:], "="); secretName().MatchString(name) {
			return found[:1] + name + "=" + Redacted
		}
		return found
	})
}

// Err returns an error with the text of err without the secrets and without those of addresses. It returns err itself
// if its text has none. The chain of err is kept, so errors further down still have their own texts.
func (s *Set) Err(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := InText(s.Text(text)); clean != text {
		return &cleaned{clean, err}
	}
	return err
}

type cleaned struct {
	text string
	err  error
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.err }

type collecting struct{}

// Collecting returns a context whose requests add their secrets to s, by Collect.
func Collecting(ctx context.Context, s *Set) context.Context {
	return context.WithValue(ctx, collecting{}, s)
}

// Collect adds the secrets of a request to the set of its context, if it has one.
func Collect(req *http.Request) {
	if s, ok := req.Context().Value(collecting{}).(*Set); ok {
		s.Request(req)
	}
}
