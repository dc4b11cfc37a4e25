package live

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// TestResponsesAreAsWrittenDown holds the status, the headers and the body of every kind of response. Look at the difference before
// -update.
func TestResponsesAreAsWrittenDown(t *testing.T) {
	d := talk()
	answer, question := d.Nodes()[2].ID().String(), d.Nodes()[1].ID().String()
	const unknown = "01890000-0000-7000-8000-000000000000"
	long := strings.Repeat("x", 100)

	closed := New(d, &Options{Token: "secret", Run: runs(apitest.Hang())})
	require.NoError(t, closed.Close())
	watched := New(d, &Options{Token: "secret", Run: runs(apitest.Hang())})
	watched.watches = append(watched.watches, &watch{Server: watched})
	servers := map[string]*Server{
		"plain":   New(d, &Options{Token: "secret", Hosts: []string{"known.example"}}),
		"closed":  closed,
		"watched": watched,
		"full":    New(d, &Options{Token: "secret", Listeners: 1}),
		"remote":  New(d, &Options{Token: "secret", Remote: true}),
		"broken":  New(d.User(""), &Options{Token: "secret"}),
		"asking": New(d, &Options{Token: "secret", Request: func(before dag.DAG, n *node.Node) ([]byte, error) {
			if before.Len() != 2 || n.ID().String() != answer {
				return nil, errors.New("another node was meant")
			}
			return []byte(`{"exact":1}`), nil
		}}),
		"answering": New(d, &Options{Token: "secret", Resume: executor.Agent{}.ResumeStream}),
		"failing":   New(d, &Options{Token: "secret", Request: func(dag.DAG, *node.Node) ([]byte, error) { return nil, errors.New("it was deleted") }}),
	}
	servers["full"].listeners[&listener{}] = true

	type request struct {
		server, method, path, body string
		change                     func(*http.Request)
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	from := func(peer string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = peer } }
	requests := []request{
		{"plain", "GET", "", "", nil}, {"plain", "HEAD", "", "", nil}, {"plain", "POST", "", "", nil}, {"plain", "GET", "nowhere", "", nil}, {"plain", "POST", "copy", "", nil}, {"plain", "GET", "fork", "", nil}, {"plain", "HEAD", "stop", "", nil},
		{"plain", "GET", "copy?as=json", "", header("Authorization", "")}, {"plain", "GET", "copy?as=json", "", header("Authorization", "Bearer wrong")}, {"plain", "GET", "copy?as=json", "", header("Authorization", "secret")}, {"plain", "GET", "", "", header("Authorization", "")},
		{"plain", "GET", "copy?as=json", "{}", nil},
		{"plain", "GET", "", "", from("10.0.0.1:5")}, {"remote", "GET", "", "", from("10.0.0.1:5")}, {"plain", "GET", "", "", from("[::ffff:127.0.0.1]:5")}, {"plain", "GET", "", "", from("nobody")},
		{"plain", "GET", "", "", host("LOCALHOST")}, {"plain", "GET", "", "", host("[::1]:80")}, {"plain", "GET", "", "", host("10.0.0.1")}, {"remote", "GET", "", "", host("10.0.0.1")}, {"plain", "GET", "", "", host("Known.Example:80")}, {"plain", "GET", "", "", host(long)},
		{"plain", "GET", "", "", header("Origin", "http://127.0.0.1")}, {"plain", "GET", "", "", header("Origin", "http://other.example")}, {"plain", "GET", "", "", header("Origin", "%")}, {"plain", "POST", "stop", "{}", header("Sec-Fetch-Site", "cross-site")},
		{"plain", "GET", "copy?as=mermaid", "", nil}, {"plain", "GET", "copy?as=" + long, "", nil}, {"broken", "GET", "copy?as=json", "", nil},
		{"asking", "GET", "request?node=" + answer, "", nil}, {"asking", "GET", "request?node=" + question, "", nil}, {"asking", "GET", "request?node=" + d.Nodes()[0].ID().String(), "", nil}, {"plain", "GET", "request?node=" + answer, "", nil}, {"failing", "GET", "request?node=" + answer, "", nil}, {"asking", "GET", "request?node=" + unknown, "", nil},
		{"plain", "POST", "fork", `{"at":"` + answer + `","text":"Hi"}`, nil}, {"closed", "POST", "fork", `{"at":"` + answer + `","text":"Hi"}`, nil}, {"watched", "POST", "fork", `{"at":"` + answer + `","text":"Hi"}`, nil}, {"watched", "POST", "fork", `{"at":"` + answer + `","text":" "}`, nil},
		{"watched", "POST", "fork", `{"at":"` + long + `","text":"Hi"}`, nil}, {"watched", "POST", "fork", `[]`, nil}, {"watched", "POST", "fork", `{"at"`, nil}, {"watched", "POST", "fork", "", nil}, {"watched", "POST", "fork", strings.Repeat(" ", maxBody+1), nil},
		{"plain", "POST", "answer", `{"pause":"p","call":"c","reply":{"approve":true}}`, nil}, {"answering", "POST", "answer", `{"pause":"p","call":"c","reply":{"approve":true}}`, nil}, {"answering", "POST", "answer", `{"pause":"p","call":"c","reply":{"approve":1}}`, nil}, {"answering", "POST", "answer", "", nil},
		{"watched", "POST", "stop", "{}", nil}, {"plain", "POST", "stop", "{}", nil}, {"plain", "POST", "stop", "7", nil},
		{"closed", "GET", "events", "", nil}, {"full", "GET", "events", "", nil},
	}

	var b strings.Builder
	for _, c := range requests {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.1/"+c.path, strings.NewReader(c.body))
		r.RemoteAddr = "127.0.0.1:5"
		r.Header.Set("Authorization", "Bearer secret")
		if c.change != nil {
			c.change(r)
		}
		w := httptest.NewRecorder()
		servers[c.server].ServeHTTP(w, r)

		fmt.Fprintf(&b, "-- %s: %s /%s %.60s from %s to %.20s, %s --\n%d\n", c.server, c.method, c.path, c.body, r.RemoteAddr, r.Host, r.Header, w.Code)
		for _, name := range slices.Sorted(maps.Keys(w.Header())) {
			value := strings.ReplaceAll(w.Header().Get(name), servers[c.server].policy, "(the policy)")
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
		body := strings.ReplaceAll(w.Body.String(), string(servers[c.server].page), "(the page)")
		fmt.Fprintf(&b, "\n%s\n", body)
	}
	for _, s := range servers {
		s.watches, s.listeners = nil, nil
		require.NoError(t, s.Close())
	}

	goldentest.Require(t, "responses.txt", b.String())
}
