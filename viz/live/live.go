package live

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/web"
)

// ErrRemote marks an address that other machines could reach, where Options.Remote does not allow it.
var ErrRemote = errors.New("other machines could reach it")

// Options change what a [Server] shows and allows. Nil is the same as the zero value.
type Options struct {
	// Title stands above the conversation. Defaults to "Conversation".
	Title string
	// Token is the secret that every request but that for the page has to bring. Defaults to 128 random bits or more.
	Token string
	// Remote lets other machines ask: Listen takes addresses that they reach, and their requests are answered. The connection is
	// not encrypted. Defaults to false.
	Remote bool
	// Hosts are further names that the server has, without a port: those that a Host header may say. Defaults to none: localhost, and
	// addresses of this machine itself. With Remote, every address is taken.
	Hosts []string
	// Prices is what models cost. The page shows the cost of each call, and of all that goes on from a node. Defaults to none.
	Prices api.Prices
	// Listeners is how many may listen for events at once. Defaults to 100.
	Listeners int

	// Run runs a conversation for whoever asks on the page; executor.Agent's Stream fits. It is called on a goroutine of its own, once at a
	// time, and its context ends when the page says stop and when the server is closed. Defaults to nil: forking and running are off.
	Run func(ctx context.Context, d dag.DAG) iter.Seq2[executor.Event, error]
	// Save is given the whole conversation, with the heads beside the run's own, after each turn of a run that the page began and at its
	// end, on the run's goroutine. An error is shown on the page; the run goes on. Defaults to nil: the program sees to it in Run.
	Save func(d dag.DAG) error
	// Request returns the exact body of the request that answer, a message of the assistant in the conversation, was given to. Before is
	// the conversation that the model was asked with. An error says why it is not known. Defaults to nil: it is not known.
	Request func(before dag.DAG, answer *node.Node) ([]byte, error)
}

// Server shows a conversation to browsers. It is an http.Handler, and is made by [New].
type Server struct {
	options Options
	page    []byte
	policy  string
	ctx     context.Context // ends when the server is closed
	cancel  context.CancelFunc
	joined  sync.WaitGroup

	modelMu sync.Mutex // taken before mu, and never by a run
	model   *web.Model
	whole   []byte // the patch that tells everything, as it is sent; nil: to be made

	mu        sync.Mutex
	d         dag.DAG
	undrawn   bool // the model does not know d yet
	drawing   bool // a goroutine tells the model, and those who listen
	closed    bool
	listeners map[*listener]bool
	now       state
	notice    string             // of Report
	voice     *watch             // whose run the page hears of; the one that began last
	watches   []*watch           // that go on, in the order in which they began
	stop      context.CancelFunc // of the run that the page began; nil where none goes on
	served    map[*http.Server]bool
}

// The pace of a connection.
const (
	headerTime = 5 * time.Second  // for the header of a request
	bodyTime   = 10 * time.Second // for its body
	writeTime  = 10 * time.Second // for each piece that is written
	beat       = 15 * time.Second // between signs of life
)

// New returns a server that shows d.
func New(d dag.DAG, o *Options) *Server {
	s := &Server{model: web.NewModel(), d: d, undrawn: true, listeners: map[*listener]bool{}, served: map[*http.Server]bool{}}
	if o != nil {
		s.options = *o
	}
	if s.options.Token == "" {
		s.options.Token = rand.Text()
	}
	if s.options.Listeners <= 0 {
		s.options.Listeners = 100
	}
	s.model.Prices = s.options.Prices
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.policy = web.Policy(true) + "; frame-ancestors 'none'"
	var page bytes.Buffer
	config := web.Config{Title: s.options.Title, Live: true, CanRun: s.options.Run != nil}
	if err := web.WritePage(&page, config, web.Patch{}); err != nil {
		panic(err) // it is made of strings
	}
	s.page = page.Bytes()
	return s
}

// DAG returns the conversation that is shown.
func (s *Server) DAG() dag.DAG {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.d
}

// Set shows d in place of what was shown: a file that was read again, say. The conversation of a run that is being watched stays: it takes
// the place of those heads of d that it goes on from, unless d holds all of it.
func (s *Server) Set(d dag.DAG) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(d)
	for _, w := range s.watches {
		if len(within(w.run.Heads(), d)) < len(w.run.Heads()) {
			w.heads = within(s.d.Heads(), w.run)
			w.place(w.run)
		}
	}
}

// Token returns the token.
func (s *Server) Token() string { return s.options.Token }

// URL returns the address, with the token, of a server that is reached at addr. It is a secret.
func (s *Server) URL(addr net.Addr) string {
	return "http://" + addr.String() + "/#token=" + url.QueryEscape(s.options.Token)
}

// Listen listens at a TCP address, such as "127.0.0.1:0". One that other machines could reach is ErrRemote, unless Options.Remote is set.
func (s *Server) Listen(addr string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	if !s.options.Remote && !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("live: %s: %w", addr, ErrRemote)
	}
	return net.ListenTCP("tcp", resolved)
}

// Serve answers requests at l until the server is closed, with time limits for those that ask slowly. It closes l. The error is nil after
// Close, and else what went wrong.
func (s *Server) Serve(l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // what strangers send wrong is no news
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = l.Close()
		return nil
	}
	s.served[server] = true
	s.joined.Add(1)
	s.mu.Unlock()
	defer s.joined.Done()
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close ends everything: the run that the page began is cancelled, those who listen are let go, Serve returns. It returns when no
// goroutine of the server is left. Requests that come later are refused. A run that goes through Watch goes on, and is not shown any more.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for l := range s.listeners {
		l.hurry()
	}
	var servers []*http.Server
	for server := range s.served {
		servers = append(servers, server)
	}
	s.mu.Unlock()
	for _, server := range servers {
		shutdown(server)
	}
	s.joined.Wait()
	return nil
}

// shutdown ends a server of Serve: in order, where those who ask take no longer than a second.
func shutdown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
