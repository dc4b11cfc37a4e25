package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/webguard"
)

// everywhere is a request to each path, and one to none.
var everywhere = []struct{ method, path string }{
	{"GET", ""}, {"GET", "events"}, {"GET", "request?node=x"}, {"GET", "copy?as=json"}, {"POST", "fork"}, {"POST", "answer"}, {"POST", "stop"}, {"GET", "nothing"},
}

func TestEveryResponseHasTheSecurityHeaders(t *testing.T) {
	s := serve(t, talk(), nil)
	for _, at := range everywhere {
		for _, token := range []string{s.Token(), "wrong"} {
			ctx, stop := context.WithCancel(t.Context())
			req := s.with(t, at.method, at.path, "{}").WithContext(ctx)
			req.Header.Set("Authorization", "Bearer "+token)
			res, err := s.client.Do(req)
			require.NoError(t, err)

			h := res.Header
			require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'sha256-", at.path)
			require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'")
			require.Contains(t, h.Get("Content-Security-Policy"), "connect-src 'self'")
			require.Contains(t, h.Get("Content-Security-Policy"), "; base-uri 'none'; form-action 'none'; ")
			require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")

			require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
			require.Equal(t, "DENY", h.Get("X-Frame-Options"))
			require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
			require.Equal(t, "same-origin", h.Get("Cross-Origin-Opener-Policy"))
			require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
			require.Equal(t, "no-store", h.Get("Cache-Control"))
			require.Empty(t, h.Get("Access-Control-Allow-Origin"))
			require.Empty(t, h.Get("Set-Cookie"))

			stop()
			res.Body.Close()
		}
	}
}

func TestOnlyThePageComesWithoutTheToken(t *testing.T) {
	s := serve(t, talk(), &Options{Run: runs(apitest.Say("Yes.")), Token: "s3cret"})
	for _, given := range []string{"", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cretx", "bearer s3cret", "Basic s3cret", "s3cret"} {
		for _, at := range everywhere[1:7] {
			req := s.with(t, at.method, at.path, `{}`)
			req.Header.Set("Authorization", given)
			req.URL.RawQuery += "&token=s3cret"

			res, text := s.send(t, req)
			require.Equal(t, http.StatusUnauthorized, res.StatusCode, "%q %s", given, at.path)
			require.Equal(t, "Bearer", res.Header.Get("WWW-Authenticate"))
			require.Contains(t, text, `"error":"no_token"`)
			require.NotContains(t, text, "s3cret")
		}
	}

	req := s.with(t, "GET", "", "")
	req.Header.Del("Authorization")
	res, text := s.send(t, req)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
	require.NotContains(t, text, "oak", "the page holds nothing of the conversation")
	require.NotContains(t, text, "s3cret")
}

func TestTokensAreRandom(t *testing.T) {
	a, b := New(dag.New(), nil), New(dag.New(), nil)
	require.NotEqual(t, a.Token(), b.Token())
	require.GreaterOrEqual(t, len(a.Token()), 26, "26 letters of 5 bits are 130 bits")
	require.Equal(t, "http://127.0.0.1:80/#token="+a.Token(), a.URL(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}))
	require.NoError(t, errors.Join(a.Close(), b.Close()))
}

// TestForeignHostNameIsRefused is DNS rebinding: a page of evil.example whose name resolves to 127.0.0.1 by now.
func TestForeignHostNameIsRefused(t *testing.T) {
	for _, c := range []struct {
		host   string
		remote bool
		ok     bool
	}{
		{"localhost", false, true}, {"LOCALHOST:8080", false, true}, {"127.0.0.1", false, true}, {"127.0.0.1:80", false, true},
		{"[::1]", false, true}, {"[::1]:80", false, true}, {"127.8.8.8:1", false, true}, {"box.example", false, true},
		{"box.example:443", false, true},

		{"evil.example", false, false}, {"evil.example:80", false, false}, {"localhost.evil.example", false, false},
		{"127.0.0.1.evil.example", false, false}, {"", false, false}, {"192.168.0.7", false, false}, {"0.0.0.0:80", false, false},
		{"2130706433", false, false}, {"localhost.", false, false}, {"[::1].evil.example", false, false}, {"xbox.example", false, false},

		{"192.168.0.7:80", true, true}, {"[fe80::1]:80", true, true}, {"evil.example", true, false},
	} {
		s := New(talk(), &Options{Hosts: []string{"box.example"}, Remote: c.remote})
		for _, at := range everywhere {
			if at.path == "events" {
				continue
			}

			req := httptest.NewRequest(at.method, "/"+at.path, strings.NewReader("{}"))
			req.Host, req.RemoteAddr = c.host, "127.0.0.1:999"
			req.Header.Set("Authorization", "Bearer "+s.Token())

			w := httptest.NewRecorder()
			s.ServeHTTP(w, req)
			refused := w.Code == http.StatusForbidden && strings.Contains(w.Body.String(), "wrong_host")
			require.Equal(t, !c.ok, refused, "%s %s: %s", c.host, at.path, w.Body)
		}
		require.NoError(t, s.Close())
	}
}

func TestOtherMachinesAreRefused(t *testing.T) {
	for peer, want := range map[string]int{
		"127.0.0.1:5": 200, "[::1]:5": 200, "[::ffff:127.0.0.1]:5": 200, "127.9.9.9:5": 200,
		"192.168.0.7:5": 403, "[fe80::1%eth0]:5": 403, "8.8.8.8:5": 403, "@": 403, "": 403, "localhost:5": 403,
	} {
		for _, remote := range []bool{false, true} {
			s := New(talk(), &Options{Remote: remote})
			req := httptest.NewRequest("GET", "/", nil)
			req.Host, req.RemoteAddr = "localhost", peer
			req.Header.Set("X-Forwarded-For", "127.0.0.1")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, req)
			if remote {
				require.Equal(t, 200, w.Code, peer)
			} else {
				require.Equal(t, want, w.Code, peer)
			}
			require.NoError(t, s.Close())
		}
	}
}

func TestListenRefusesWhatOthersReach(t *testing.T) {
	s := New(talk(), nil)
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		_, err := s.Listen(addr)
		require.ErrorIs(t, err, ErrRemote, addr)
	}
	_, err := s.Listen("nonsense")
	require.Error(t, err)
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := s.Listen(addr)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	require.NoError(t, s.Close())
	s = New(talk(), &Options{Remote: true})
	l, err := s.Listen("0.0.0.0:0")
	require.NoError(t, err)
	require.NoError(t, errors.Join(l.Close(), s.Close()))
}

func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	d := talk()
	s := serve(t, d, &Options{Run: runs(apitest.Say("Yes.").Always())})
	host := strings.TrimPrefix(s.url, "http://")
	fork := fmt.Sprintf(`{"at":%q,"text":"Hi"}`, d.Head().ID())
	for _, h := range []http.Header{
		{"Origin": {"https://evil.example"}}, {"Origin": {"null"}}, {"Origin": {"http://127.0.0.1:1"}},
		{"Origin": {"http://" + host + ".evil.example"}},
		{"Origin": {"http://%zz"}}, {"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}},
		{"Origin": {"http://" + host}, "Sec-Fetch-Site": {"cross-site"}},
	} {
		for _, path := range []string{"fork", "answer", "stop"} {
			req := s.with(t, http.MethodPost, path, fork)
			for k, v := range h {
				req.Header[k] = v
			}
			res, text := s.send(t, req)
			require.Equal(t, http.StatusForbidden, res.StatusCode, "%v", h)
			require.Contains(t, text, "cross_origin")
		}

		if h.Get("Origin") != "" && h.Get("Sec-Fetch-Site") == "" {
			req := s.with(t, http.MethodGet, "copy?as=json", "")
			req.Header.Set("Origin", h.Get("Origin"))
			res, text := s.send(t, req)
			require.Equal(t, http.StatusForbidden, res.StatusCode, "%v", h)
			require.NotContains(t, text, "oak")
		}
	}
	require.True(t, dag.Equal(d, s.DAG()))

	// A request of the page itself is accepted.
	req := s.with(t, http.MethodPost, "fork", fork)
	req.Header.Set("Origin", s.url)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	res, text := s.send(t, req)
	require.Equal(t, http.StatusAccepted, res.StatusCode, text)
}

func TestReadingChangesNothing(t *testing.T) {
	d := talk()
	s := serve(t, d, &Options{Run: runs(apitest.Say("Yes.").Always())})

	for _, at := range everywhere {
		for _, method := range []string{"GET", "HEAD"} {
			if method == "GET" && at.path == "events" {
				continue
			}
			path := at.path + "?at=" + d.Head().ID().String() + "&text=Hi"
			res, text := s.send(t, s.with(t, method, path, ""))
			if method == "HEAD" {
				require.Empty(t, text)
			}
			if at.method == "POST" {
				require.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)
				require.Equal(t, "POST", res.Header.Get("Allow"))
			}
		}

		for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "BREW"} {
			status, _ := s.ask(t, method, at.path, "{}")
			require.Contains(t, []int{http.StatusMethodNotAllowed, http.StatusNotFound}, status, "%s %s", method, at.path)
		}
	}

	require.True(t, dag.Equal(d, s.DAG()))
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	s := serve(t, talk(), nil)
	for _, path := range []string{"x", "/", "events/", "fork/x", "..%2fevents", "index.html", "page.js", "%00", ".git/config", "debug/pprof"} {
		status, text := s.ask(t, http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, status, path)
		require.JSONEq(t, `{"error":"no_such_path","message":"no such path"}`, text)
	}
}

// pipes is a listener whose connections are in memory, so that a server in a synctest bubble has them.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// TestUnfinishedBodyIsAnswered announces a body and never sends the rest of it, to a server without time limits of its
// own.
func TestUnfinishedBodyIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, token, length string
		status                      int
		after                       time.Duration
	}{
		"fork":          {"POST", "fork", "s3cret", "Content-Length: 100", http.StatusRequestTimeout, bodyTime},
		"stop":          {"POST", "stop", "s3cret", "Content-Length: 100", http.StatusRequestTimeout, bodyTime},
		"chunks":        {"POST", "fork", "s3cret", "Transfer-Encoding: chunked", http.StatusRequestTimeout, bodyTime},
		"without token": {"POST", "fork", "", "Content-Length: 100", http.StatusUnauthorized, 0},
		"unknown path":  {"POST", "nothing", "s3cret", "Content-Length: 100", http.StatusNotFound, 0},
		"wrong method":  {"PUT", "", "", "Content-Length: 100", http.StatusMethodNotAllowed, 0},
		"page":          {"GET", "", "", "Content-Length: 100", http.StatusBadRequest, 0},
		"events":        {"GET", "events", "s3cret", "Content-Length: 100", http.StatusBadRequest, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(talk(), &Options{Run: runs(), Token: "s3cret", Remote: true})
				l := pipes{make(chan net.Conn), make(chan struct{})}
				server := &http.Server{Handler: s}
				go func() { _ = server.Serve(l) }()
				client, conn := net.Pipe()
				l.conns <- conn

				begin := time.Now()
				go func() {
					_, _ = fmt.Fprintf(client, "%s /%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n", c.method, c.path, c.token, c.length)
				}()
				in := bufio.NewReader(client)
				res, err := http.ReadResponse(in, nil)
				require.NoError(t, err)
				require.Equal(t, c.status, res.StatusCode)
				require.Equal(t, c.after, time.Since(begin))

				_, err = io.Copy(io.Discard, in)
				require.NoError(t, err, "and the server hangs up")
				require.LessOrEqual(t, time.Since(begin), bodyTime+time.Second)
				require.NoError(t, errors.Join(client.Close(), server.Close(), s.Close()))
			})
		})
	}
}

// TestEventsOutliveTheBodyDeadline listens for longer than the server gives a request to arrive.
func TestEventsOutliveTheBodyDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(talk(), &Options{Token: "s3cret", Remote: true})
		l := pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: s, ReadTimeout: bodyTime}
		go func() { _ = server.Serve(l) }()
		client, conn := net.Pipe()
		l.conns <- conn
		go func() {
			_, _ = io.WriteString(client, "GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\n\r\n")
		}()
		res, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		lines, begin := bufio.NewReader(res.Body), time.Now()
		for time.Since(begin) < 3*webguard.Beat {
			_, err := lines.ReadString('\n')
			require.NoError(t, err)
		}
		require.NoError(t, errors.Join(client.Close(), server.Close(), s.Close()))
	})
}

func TestBodiesHaveABound(t *testing.T) {
	s := serve(t, talk(), &Options{Run: runs()})
	for _, path := range []string{"fork", "answer", "stop"} {
		req := s.with(t, http.MethodPost, path, "")
		read := 0
		req.Body, req.ContentLength = io.NopCloser(endless{&read}), -1
		res, err := s.client.Do(req)
		if err != nil {
			continue // the server hung up while more was sent
		}
		require.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
		res.Body.Close()
	}

	req := s.with(t, http.MethodGet, "copy?as=json", "")
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader("x")), -1
	res, err := s.client.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, res.StatusCode, "a GET has no body, of whatever length")
	res.Body.Close()
}

func TestAListenerKeepsNoMoreThanMaxBytes(t *testing.T) {
	l := &listener{wake: make(chan struct{}, 1)}
	for range 3 {
		l.put(make([]byte, maxBytes/2))
		require.LessOrEqual(t, l.size, maxBytes)
	}
	require.True(t, l.behind, "it is told everything anew")
}

type endless struct{ read *int }

func (e endless) Read(p []byte) (int, error) {
	if *e.read > 64<<20 {
		return 0, errors.New("the server reads on and on")
	}
	*e.read += len(p)
	return copy(p, bytes.Repeat([]byte(" "), len(p))), nil
}

// speech is a run that says n words and then the answer, without a model.
func speech(d dag.DAG, n int) func(yield func(executor.Event, error) bool) {
	return func(yield func(executor.Event, error) bool) {
		yield(executor.RunStart{DAG: d}, nil)
		yield(executor.TurnStart{Turn: 1}, nil)
		yield(executor.MessageStart{Turn: 1, Role: content.Assistant}, nil)
		word := executor.MessageDelta{Turn: 1, Event: api.Delta{Kind: api.DeltaText, Text: strings.Repeat("word ", 200)}}
		for range n {
			yield(word, nil)
		}
		d = d.Assistant("Done.")
		yield(executor.MessageEnd{Turn: 1, Node: d.Head()}, nil)
		yield(executor.End{DAG: d}, nil)
	}
}

// A listener does not read while 20 MB of text arrive: the run is not held up, and the listener gets the whole state
// when it reads again. Time is not real, so that no run is too slow for the deadline of a write.
func TestASlowReaderDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := talk()
		s := &site{Server: New(d, nil)}
		p := newPipe()
		gone := attach(s.Server, p)
		synctest.Wait()
		p.hold()
		after := s.watches(t, speech(d, 20_000))

		// The assertions wait for the lock to be free: a failed one would leave it to Close.
		var size, length int
		s.mu.Lock()
		for l := range s.listeners {
			size, length = l.size, len(l.queue)
		}
		s.mu.Unlock()
		require.LessOrEqual(t, size, maxBytes)
		require.LessOrEqual(t, length, maxQueue)

		p.release()
		synctest.Wait()
		text := p.text()
		require.Less(t, len(text), 15_000_000, "most of it was left out")
		slow := &ear{t: t, in: bufio.NewReader(strings.NewReader(text)), nodes: map[string]bool{}, keys: map[int]string{}}
		for resets := 0; resets < 2; {
			got, ok := slow.next()
			require.True(t, ok, "%d resets in %d bytes", resets, len(text))
			if got.name == "patch" && slow.take(got.data).Reset {
				resets++
			}
		}
		slow.knows(after)

		require.NoError(t, s.Close())
		<-gone
	})
}

// pipe is a connection that takes nothing until it is let, with the deadlines of a real one.
type pipe struct {
	header http.Header
	mu     sync.Mutex
	wrote  bytes.Buffer
	stuck  bool
	expire *time.Timer
	// dead is closed when the deadline passes, and moved when there is another one before that.
	dead, moved chan struct{}
}

func newPipe() *pipe {
	return &pipe{header: http.Header{}, dead: make(chan struct{}), moved: make(chan struct{})}
}

func (p *pipe) Header() http.Header { return p.header }

func (p *pipe) WriteHeader(int) {}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stuck {
		dead, moved := p.dead, p.moved
		p.mu.Unlock()
		select {
		case <-dead:
			p.mu.Lock()
			return 0, os.ErrDeadlineExceeded
		case <-moved: // there is another deadline now
			p.mu.Lock()
		}
	}
	return p.wrote.Write(b)
}

func (p *pipe) SetWriteDeadline(at time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expire != nil && p.expire.Stop() {
		close(p.moved)
	}
	dead, moved := make(chan struct{}), make(chan struct{})
	p.dead, p.moved = dead, moved
	p.expire = time.AfterFunc(time.Until(at), func() { close(dead) })
	return nil
}

// hold lets writes wait from now on.
func (p *pipe) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = true
}

// release lets them continue.
func (p *pipe) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = false
	if p.expire != nil && p.expire.Stop() {
		close(p.moved)
	}
}

func (p *pipe) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrote.String()
}

// attach lets p listen; what is returned says whether the server has let it go.
func attach(s *Server, p *pipe) <-chan struct{} {
	req := httptest.NewRequest("GET", "/events", nil)
	req.Host, req.RemoteAddr = "localhost", "127.0.0.1:9"
	req.Header.Set("Authorization", "Bearer "+s.Token())
	gone := make(chan struct{})
	go func() {
		s.ServeHTTP(p, req)
		close(gone)
	}()
	return gone
}

func TestListenerThatReadsNothingIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(talk(), nil)
		p := newPipe()
		gone := attach(s, p)
		synctest.Wait()
		require.Contains(t, p.text(), `event: activity`)
		p.hold()
		s.Set(dag.New().User("Another."))
		begin := time.Now()
		<-gone
		require.Equal(t, webguard.WriteTime, time.Since(begin))
		require.Empty(t, s.listeners)
		require.NoError(t, s.Close())
	})
}

func TestASignOfLifeComesWhereNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(talk(), nil)
		p := newPipe()
		gone := attach(s, p)
		synctest.Wait()
		before := p.text()
		time.Sleep(3*webguard.Beat + time.Second)
		require.Equal(t, before+":\n\n:\n\n:\n\n", p.text())
		require.NoError(t, s.Close())
		<-gone
	})
}

func TestCloseWaitsNoLongerThanASecondForAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(talk(), nil)
		p := newPipe()
		p.stuck = true
		gone := attach(s, p)
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, s.Close())
		require.Equal(t, time.Second, time.Since(begin))
		<-gone
	})
}

func TestADeadlineOfTheEndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe()
		l := &listener{out: webguard.NewStream(p)}
		l.out.Hurry()
		_ = l.out.Write()
		begin := time.Now()
		<-p.dead
		require.Equal(t, time.Second, time.Since(begin))
	})
}

func TestAThousandWhoListenAreTooMany(t *testing.T) {
	d := talk()
	s := serve(t, d, nil)
	var ears []*ear
	refused := 0

	for range 1000 {
		ctx, stop := context.WithCancel(context.Background())
		t.Cleanup(stop)
		res, err := s.client.Do(s.with(t, http.MethodGet, "events", "").WithContext(ctx))
		require.NoError(t, err)
		if res.StatusCode == http.StatusOK {
			ears = append(ears, &ear{})
			t.Cleanup(func() { res.Body.Close() })
			continue
		}

		require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Contains(t, string(text), `"error":"too_many_listeners"`)
		res.Body.Close()
		refused++
	}

	require.Len(t, ears, 100)
	require.Equal(t, 900, refused)
	after := s.watches(t, speech(d, 300))
	require.True(t, dag.Equal(after, s.DAG()))
}

func TestAListenerThatDiesMakesRoom(t *testing.T) {
	s := serve(t, talk(), &Options{Listeners: 1})
	for range 3 {
		e := s.listen(t)
		e.until(isIdle)
		status, _ := s.ask(t, http.MethodGet, "events", "")
		require.Equal(t, http.StatusServiceUnavailable, status)
		e.stop()
		require.Eventually(t, func() bool { return len(s.ears()) == 0 }, patience, time.Millisecond)
	}
}

func (s *Server) ears() map[*listener]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[*listener]bool{}
	for l := range s.listeners {
		list[l] = true
	}
	return list
}

// TestServeClosesConnectionsWithSlowRequests: half a header, and no more.
func TestServeClosesConnectionsWithSlowRequests(t *testing.T) {
	require.Equal(t, 5*time.Second, headerTime)
	headerTime = 100 * time.Millisecond
	t.Cleanup(func() { headerTime = 5 * time.Second })
	s := New(talk(), nil)
	l, err := s.Listen("127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))

	// On a busy machine the server may hang up even before the header is sent, and the connection is then reset.
	_, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "))
	_, err = io.ReadAll(conn) // until the server hangs up
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server still waits for the rest")
	require.NoError(t, conn.Close())
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
	require.NoError(t, s.Serve(l), "a closed server serves nothing")
}

func TestAPanicOfThePageIsNoEndOfTheProgram(t *testing.T) {
	s := serve(t, talk(), nil)
	e := s.listen(t)
	e.until(isIdle)
	s.modelMu.Lock()
	s.model = nil
	s.modelMu.Unlock()
	s.Set(talk())
	got := story(e.until(func(a activity) bool { return a.Error != nil }))
	require.Contains(t, got[0], "error drawing panicked: ")
}
