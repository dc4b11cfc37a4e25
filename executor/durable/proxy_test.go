package durable

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A trouble is what happens to the connection that sends a request.
type trouble string

const (
	calm         trouble = ""                                // the requests are counted
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
		return calm
	}
	if p.requests++; p.requests != p.at || p.what == calm {
		return calm
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
	if what != calm {
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
		switch w.troubled(calm) {
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
	if what := w.troubled(calm); what == silentBefore || what == silentAfter {
		_, _ = io.Copy(io.Discard, w.client)
	}
}
