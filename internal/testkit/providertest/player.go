package providertest

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Player is a local server. It answers with recorded responses, in order, and records the requests.
type Player struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	heads  []string // the request line and the headers of each request
}

// theTapeIsOver is an error body for the clients of all APIs.
const theTapeIsOver = `{"type":"error","error":{"type":"invalid_request_error","code":400,"status":"INVALID_ARGUMENT","message":"the tape is over"}}`

// Play starts a server with the tape. The server is closed at the end of the test.
func Play(t testing.TB, tape ...Exchange) *Player {
	// Body may fail the test, which is allowed only in the goroutine of the test. So decode before the server starts.
	bodies := make([][]byte, len(tape))
	for i, exchange := range tape {
		bodies[i] = exchange.Body(t)
	}

	p := &Player{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Not require: it must not be called outside the goroutine of the test.
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		n := p.keep(r, string(body))
		if n >= len(tape) {
			http.Error(w, theTapeIsOver, http.StatusBadRequest)
			return
		}

		for name, values := range tape[n].Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(tape[n].Response.Status)
		_, _ = w.Write(bodies[n])
	}))
	t.Cleanup(p.Close)
	return p
}

// keep records a request and returns the number of requests before it.
func (p *Player) keep(r *http.Request, body string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies, p.heads = append(p.bodies, body), append(p.heads, head(r))
	return len(p.bodies) - 1
}

// head returns the request line and the headers, without the headers specific to the machine or the SDK's version.
func head(r *http.Request) string {
	lines := []string{r.Method + " " + r.URL.RequestURI()}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		switch {
		case strings.HasPrefix(name, "X-Stainless-"), name == "User-Agent", name == "X-Goog-Api-Client",
			name == "Accept-Encoding", name == "Content-Length":
		default:
			lines = append(lines, name+": "+strings.Join(r.Header[name], ", "))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// Requests returns the bodies received so far.
func (p *Player) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.bodies)
}
