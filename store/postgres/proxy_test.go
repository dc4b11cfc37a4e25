package postgres_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/internal/seedtest"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/store/postgres"
)

// A trouble is what happens to the connection that sends a request.
type trouble string

const (
	quiet        trouble = ""                                // the requests are counted
	cutBefore    trouble = "cut before the server has it"    //
	cutAfter     trouble = "cut before the reply"            // with a COMMIT: it is unknown whether it was one
	silentBefore trouble = "silent before the server has it" // a black hole: no byte, and no end
	silentAfter  trouble = "silent before the reply"
)

// proxy is a network between clients and the server, in which one request meets with trouble.
type proxy struct {
	listener net.Listener
	socket   string // of the server
	running  sync.WaitGroup

	mu       sync.Mutex // guards what follows
	open     []net.Conn
	what     trouble
	only     string // count only requests with this text
	at       int    // the number of the request
	requests int    // so far, while armed
	armed    bool
	happened bool
}

// startProxy returns a proxy and the URL of the database through it.
func startProxy(t *testing.T, database string) (*proxy, string) {
	t.Helper()
	address, err := url.Parse(database)
	require.NoError(t, err)
	query := address.Query()
	p := &proxy{socket: query.Get("host") + "/.s.PGSQL.5432"}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.running.Go(p.accept)
	t.Cleanup(p.close)

	query.Del("host")
	query.Set("sslmode", "disable")
	address.Host, address.RawQuery = p.listener.Addr().String(), strings.ReplaceAll(query.Encode(), "+", "%20")
	return p, address.String()
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut()
	p.running.Wait()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		_ = conn.Close()
	}
	p.open = nil
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("unix", p.socket)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.open = append(p.open, client, server)
		p.mu.Unlock()
		w := &wire{proxy: p, client: client, server: server}
		p.running.Go(w.send)
		p.running.Go(w.receive)
	}
}

// arm lets a request meet with trouble, counted from 1 from now on.
func (p *proxy) arm(what trouble, only string, at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.only, p.at, p.requests, p.armed, p.happened = what, only, at, 0, true, false
}

// disarm returns the number of requests since arm, and whether one has met with trouble.
func (p *proxy) disarm() (requests int, happened bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	return p.requests, p.happened
}

// next returns what happens to a request.
func (p *proxy) next(request []byte) trouble {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed || !bytes.Contains(request, []byte(p.only)) {
		return quiet
	}
	if p.requests++; p.requests != p.at || p.what == quiet {
		return quiet
	}
	p.happened = true
	return p.what
}

// wire is one connection through the proxy.
type wire struct {
	proxy          *proxy
	client, server net.Conn

	mu      sync.Mutex
	trouble trouble // guarded by mu
}

func (w *wire) end() { _, _ = w.client.Close(), w.server.Close() }

// troubled sets what happens to all that comes from the server, and returns it.
func (w *wire) troubled(what trouble) trouble {
	w.mu.Lock()
	defer w.mu.Unlock()
	if what != quiet {
		w.trouble = what
	}
	return w.trouble
}

// send forwards what the client sends. The client waits for the reply to each request, so a read has one request.
func (w *wire) send() {
	defer w.end()
	data := make([]byte, 64<<10)
	for {
		n, err := w.client.Read(data)
		if err != nil {
			return
		}
		switch w.troubled(w.proxy.next(data[:n])) {
		case cutBefore:
			return
		case silentBefore:
			continue
		}
		if _, err := w.server.Write(data[:n]); err != nil {
			w.lose()
			return
		}
	}
}

// receive forwards what the server sends.
func (w *wire) receive() {
	defer w.end()
	data := make([]byte, 64<<10)
	for {
		n, err := w.server.Read(data)
		if err != nil {
			w.lose()
			return
		}
		switch w.troubled(quiet) {
		case cutAfter:
			return
		case silentBefore, silentAfter:
			continue
		}
		if _, err := w.client.Write(data[:n]); err != nil {
			return
		}
	}
}

// lose ends the server's side. In a silent network the client does not learn of it, and waits until it gives up itself.
func (w *wire) lose() {
	if what := w.troubled(quiet); what == silentBefore || what == silentAfter {
		_, _ = io.Copy(io.Discard, w.client)
	}
}

// network is a database behind a proxy.
type network struct {
	crashtest.Points
	proxy *proxy
	url   string
}

func newNetwork(t *testing.T) network {
	n := network{Points: points(t)}
	n.proxy, n.url = startProxy(t, n.Database())
	return n
}

// life is what was found in the life of a process.
type life struct {
	requests int
	happened bool // the trouble; a life with fewer requests than at its counting may not reach it
	faults   []string
}

// live lets a process live with one request in trouble.
func (n network) live(t *testing.T, what trouble, only string, at int, wrap func(sqlstore.DB) sqlstore.DB) (l life) {
	t.Helper()
	address := n.Database()

	// Where a connection falls silent, the process waits for no longer than this. A busy machine may exceed it at other
	// requests too: those are repeated like the one in trouble.
	opts := postgres.Patient
	if what == silentBefore || what == silentAfter {
		const limit = 150 * time.Millisecond
		opts = &postgres.Options{IdleTimeout: limit, LockTimeout: limit, StatementTimeout: limit}
	}
	db, err := postgres.OpenWrapped(context.Background(), n.url, opts, wrap)
	for attempts := 1; err != nil && attempts < 100; attempts++ {
		db, err = postgres.OpenWrapped(context.Background(), n.url, opts, wrap)
	}
	require.NoError(t, err)
	defer func() {
		n.proxy.cut() // the driver waits up to 15 seconds for the end of a connection that it has given up
		require.NoError(t, db.Close())
	}()

	n.proxy.arm(what, only, at)
	l.faults = n.Survive(t, address, db, func() { l.requests, l.happened = n.proxy.disarm() })
	return l
}

func honest(db sqlstore.DB) sqlstore.DB { return db }

// A process whose connection fails at any request, in any way, loses nothing and repeats nothing. PLAIT_LONG tests
// more.
func TestConnectionsMayFailAtAnyRequest(t *testing.T) {
	n := newNetwork(t)
	for _, only := range []string{"", "commit"} {
		counted := n.live(t, quiet, only, 0, honest)
		require.Empty(t, counted.faults)
		require.NotZero(t, counted.requests)

		// A few of all requests, or of all commits.
		samples := seedtest.Rounds(3, 50)
		stride := max(1, counted.requests/samples)
		for _, what := range []trouble{cutBefore, cutAfter, silentBefore, silentAfter} {
			t.Run(strings.TrimSpace(string(what)+" "+only), func(t *testing.T) {
				happened := 0
				for at := 1 + stride/2; at <= counted.requests; at += stride {
					l := n.live(t, what, only, at, honest)
					require.Empty(t, l.faults, "request %d of %d", at, l.requests)
					if l.happened {
						happened++
					}
				}
				require.NotZero(t, happened)
			})
		}
	}
}

// careless takes a lost reply for a good one: the negative control.
type careless struct{ sqlstore.DB }

func (c careless) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	var own error
	err := c.DB.Write(ctx, func(tx sqlstore.Tx) error {
		own = f(tx)
		return own
	})
	if err != nil && own == nil {
		return nil
	}
	return err
}

func TestNetworkShowsACommitThatIsTakenForGranted(t *testing.T) {
	n := newNetwork(t)
	trust := func(db sqlstore.DB) sqlstore.DB { return careless{db} }
	requests := n.live(t, quiet, "commit", 0, honest).requests

	found := ""
	for at := requests / 4; at <= requests && !strings.Contains(found, "accepted twice"); at++ {
		found += strings.Join(n.live(t, cutBefore, "commit", at, trust).faults, "\n")
	}
	require.Contains(t, found, "accepted twice")
}
