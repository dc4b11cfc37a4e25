package live

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start() dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

func talk() dag.DAG {
	return start().System("Be brief.").User("Name a tree.").Assistant("An oak.").Stop(content.StopEndTurn)
}

// site is a server at a real address.
type site struct {
	*Server
	url    string
	client *http.Client
}

func serve(t testing.TB, d dag.DAG, o *Options) *site {
	t.Helper()
	s := New(d, o)
	server := httptest.NewServer(s)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		client.CloseIdleConnections()
		server.Close()
	})
	return &site{s, server.URL, client}
}

// ask sends a request with the token and returns the status and the body.
func (s *site) ask(t testing.TB, method, path, body string) (int, string) {
	t.Helper()
	res, text := s.send(t, s.with(t, method, path, body))
	return res.StatusCode, text
}

// patience is how long a test waits for a response, and for the end of one, so that a missing one fails the test
// instead of hanging it.
const patience = 5 * time.Minute

func (s *site) with(t testing.TB, method, path, body string) *http.Request {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, method, s.url+"/"+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+s.Token())
	return req
}

func (s *site) send(t testing.TB, req *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := s.client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.False(t, req.Method == http.MethodGet && res.Header.Get("Content-Type") == "text/event-stream", "events have no end: use listen")
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(text)
}

// fork asks for a fork after the node, which has to be accepted.
func (s *site) forks(t testing.TB, at *node.Node, text string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"at": at.ID().String(), "text": text})
	require.NoError(t, err)
	status, said := s.ask(t, http.MethodPost, "fork", string(body))
	require.Equal(t, http.StatusAccepted, status, said)
}

// ear is one who listens.
type ear struct {
	t    testing.TB
	in   *bufio.Reader
	stop context.CancelFunc
	// what it has received
	nodes map[string]bool // by id
	heads []int
	keys  map[int]string // ids
}

// event is a server-sent event.
type event struct {
	id   string
	name string
	data string
}

func (s *site) listen(t testing.TB) *ear { return s.listenFrom(t, "") }

// listenFrom listens again, after the event with that ID.
func (s *site) listenFrom(t testing.TB, id string) *ear {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	req := s.with(t, http.MethodGet, "events", "").WithContext(ctx)
	req.Header.Set("Last-Event-ID", id)
	res, err := s.client.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	t.Cleanup(func() {
		stop()
		res.Body.Close()
	})
	return &ear{t: t, in: bufio.NewReader(res.Body), stop: stop, nodes: map[string]bool{}, keys: map[int]string{}}
}

// next returns the next event, and false at the end.
func (e *ear) next() (event, bool) {
	var got event
	for {
		line, err := e.in.ReadString('\n')
		if err != nil {
			return event{}, false
		}
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "id: "):
			got.id = line[len("id: "):]
		case strings.HasPrefix(line, "event: "):
			got.name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			got.data = line[len("data: "):]
		case line == "" && got.name != "":
			return got, true
		}
	}
}

// told is what the page needs of a patch here.
type told struct {
	Reset bool
	More  bool
	Nodes []struct {
		Key int
		ID  string
	}
	Gone  []int
	Heads []int
}

// take takes in a patch.
func (e *ear) take(data string) told {
	var p told
	require.NoError(e.t, json.Unmarshal([]byte(data), &p))
	if p.Reset {
		clear(e.nodes)
		clear(e.keys)
	}
	for _, n := range p.Nodes {
		e.nodes[n.ID], e.keys[n.Key] = true, n.ID
	}
	for _, key := range p.Gone {
		delete(e.nodes, e.keys[key])
		delete(e.keys, key)
	}
	if p.Heads != nil {
		e.heads = p.Heads
	}
	return p
}

// until reads on until done says so, and returns the activities as they came. Patches are taken in.
func (e *ear) until(done func(activity) bool) []activity {
	e.t.Helper()
	var all []activity
	for {
		got, ok := e.next()
		require.True(e.t, ok, "the events ended after %+v", all)
		if got.name == "patch" {
			e.take(got.data)
			continue
		}
		require.Equal(e.t, "activity", got.name)
		var a activity
		require.NoError(e.t, json.Unmarshal([]byte(got.data), &a))
		all = append(all, a)
		if done(a) {
			return all
		}
	}
}

func isIdle(a activity) bool { return a.State == idle }

// knows waits until all nodes of d have arrived.
func (e *ear) knows(d dag.DAG) {
	e.t.Helper()
	whole := func() bool {
		for _, n := range d.WithChildren() {
			if !e.nodes[n.ID().String()] {
				return false
			}
		}
		return true
	}
	for !whole() {
		got, ok := e.next()
		require.True(e.t, ok)
		if got.name == "patch" {
			e.take(got.data)
		}
	}
}

// ends are the ids of the heads that it received.
func (e *ear) ends() []string {
	var ids []string
	for _, key := range e.heads {
		ids = append(ids, e.keys[key])
	}
	return ids
}
