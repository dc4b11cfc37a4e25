package tape

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
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
type scrubber struct {
	secrets  []string
	replacer *strings.Replacer // nil after secrets has changed
}

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
		if secret != "" && !slices.Contains(s.secrets, secret) {
			s.secrets = append(s.secrets, secret)
			s.replacer = nil
		}
	}
}

// text returns the text without the secrets, plain or escaped (see replaces).
func (s *scrubber) text(text string) string {
	if s.replacer == nil {
		s.replacer = s.replaces()
	}
	return s.replacer.Replace(text)
}

// replaces returns a replacer for all secrets. It replaces the longest first: if one secret is part of another, nothing
// of the longer one is left.
func (s *scrubber) replaces() *strings.Replacer {
	var all []string
	for _, secret := range s.secrets {
		// A secret may be escaped as JSON, as JSON within JSON, or in a URL.
		escaped, _ := json.Marshal(secret)
		quoted := strings.Trim(string(jsonx.Quote(secret)), `"`)
		twice := strings.Trim(string(jsonx.Quote(quoted)), `"`)
		html := strings.Trim(string(escaped), `"`)
		all = append(all, secret, quoted, twice, html, strings.ReplaceAll(secret, "/", `\/`), url.QueryEscape(secret),
			url.PathEscape(secret))
	}

	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })

	var pairs []string
	for _, secret := range slices.Compact(all) {
		pairs = append(pairs, secret, redacted)
	}
	return strings.NewReplacer(pairs...)
}

// holds reports whether text still contains a secret.
func (s *scrubber) holds(text string) bool {
	return slices.ContainsFunc(s.secrets, func(secret string) bool { return strings.Contains(text, secret) })
}

// taped returns a request or a response without the secrets.
func (s *scrubber) taped(r taped) taped {
	r.url = s.text(s.url(r.url))
	for name, values := range r.header {
		for i, v := range values {
			r.header[name][i] = s.text(v)
		}
	}
	r.body = []byte(s.body(s.text(string(r.body))))
	return r
}

// body returns the body without the secrets escaped in forms unknown to text: in JSON, and in the JSON of server-sent
// events.
func (s *scrubber) body(body string) string {
	if len(s.secrets) == 0 || !strings.Contains(body, `\u`) {
		return body
	}
	if j := content.JSON(strings.TrimSpace(body)); readable(j) {
		return string(s.json(j))
	}

	// A stream has a JSON value in each of its data lines.
	var clean strings.Builder
	for line := range strings.Lines(body) {
		data, event := strings.CutPrefix(line, "data:")
		if j := content.JSON(strings.TrimSpace(data)); event && readable(j) {
			line = strings.Replace(line, string(j), string(s.json(j)), 1)
		}
		clean.WriteString(line)
	}
	return clean.String()
}

func readable(j content.JSON) bool { return j != "" && jsonx.Depth(j) < 100 && j.Valid() }

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

// json returns j without the secrets in its decoded strings. It returns j itself if there are none.
func (s *scrubber) json(j content.JSON) content.JSON {
	j = content.JSON(strings.TrimSpace(string(j)))
	if text, ok := jsonx.Text(j); ok {
		if clean := s.text(text); clean != text {
			return jsonx.Quote(clean)
		}
		return j
	}
	switch {
	case strings.HasPrefix(string(j), "{"):
		return s.members(j)
	case strings.HasPrefix(string(j), "["):
		return jsonx.MapItems(j, s.json)
	}
	return j
}

func (s *scrubber) members(j content.JSON) content.JSON {
	list, _ := jsonx.Members(j) // it is valid
	found := false
	for i, m := range list {
		list[i] = jsonx.Member{Name: s.text(m.Name), Value: s.json(m.Value)}
		found = found || list[i] != m
	}
	if !found {
		return j
	}
	return jsonx.Object(list)
}
