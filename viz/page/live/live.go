package live

import (
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
	"github.com/plait-dev/plait/viz/page/internal/web"
)

// ErrRemote marks an address within reach of other machines. Options.Remote allows such addresses.
var ErrRemote = errors.New("other machines can reach this address")

// Options change what a [Server] shows and allows. Nil is the same as the zero value.
type Options struct {
	// Title is the heading above the conversation. Defaults to "Conversation".
	Title string
	// Token is the secret required by every request, except the request for the page itself. Defaults to 128 random
	// bits or more.
	Token string
	// Remote allows other machines: Listen accepts addresses within their reach, and the server answers their requests.
	// The connection is not encrypted. Defaults to false.
	Remote bool
	// Hosts are additional host names of the server, without a port, for the Host header of requests. Defaults to none:
	// localhost and addresses of this machine itself are accepted. With Remote, every address is accepted.
	Hosts []string
	// Prices are the models' prices. The page shows the cost of each call, and the total cost of everything after a
	// node. Defaults to none.
	Prices api.Prices
	// Cache returns the cache policy of a conversation's requests, as in promptcache.Options. From it, the page
	// predicts how much a request could read from the prompt cache. Defaults to api.CacheShort for all.
	Cache func(d dag.DAG) api.Cache
	// Listeners limits the number of pages that receive events at the same time. Defaults to 100.
	Listeners int

	// Run runs a conversation when a page requests it; executor.Agent's Stream fits. It is called on a goroutine of its
	// own, once at a time. Its context ends when the page stops the run and when the server is closed. Defaults to nil:
	// forking and running are off.
	Run func(ctx context.Context, d dag.DAG) iter.Seq2[executor.Event, error]
	// Resume resumes a paused run when all of its open calls have been answered on a page; executor.Agent's
	// ResumeStream fits. d has only the heads of that run. As Run, it is called on a goroutine of its own, once at a
	// time, with a context that ends when the page stops the run and when the server is closed. Defaults to nil: open
	// calls are shown, and cannot be answered.
	Resume func(ctx context.Context, d dag.DAG, replies ...executor.Reply) iter.Seq2[executor.Event, error]
	// Save receives the whole conversation, including heads outside the run. For a run that the page began, it is
	// called on the run's goroutine, after each turn and at the end. An error is shown on the page, and the run
	// continues. Defaults to nil: the program saves in Run.
	Save func(d dag.DAG) error
	// Request returns the exact body of the request for answer. answer is a message of the assistant in the
	// conversation, and before is the conversation sent to the model. If Request returns an error, the page shows it in
	// place of the body. Defaults to nil: no body is known.
	Request func(before dag.DAG, answer *node.Node) ([]byte, error)
}

// Server shows a conversation to browsers. It is an http.Handler. [New] returns one.
type Server struct {
	options Options
	handler http.Handler // the handler for Serve: s itself, or the index with this server
	page    []byte
	policy  string

	endpoints map[string]endpoint
	ctx       context.Context // ends when the server is closed
	cancel    context.CancelFunc
	joined    sync.WaitGroup

	modelMu sync.Mutex // taken before mu, and never by a run
	model   *web.Model
	// recent holds the latest events with changes, and drawnTo the number of all of them: the ID of an event is its
	// number. Guarded by modelMu.
	recent  [][]byte
	drawnTo int
	id      string // in the IDs of events: those of another server, or of one that has ended, mean nothing here

	mu        sync.Mutex // guards the fields below
	d         dag.DAG
	undrawn   bool // the model does not have d yet
	drawing   bool // a goroutine is updating the model and the listeners
	closed    bool
	listeners map[*listener]bool
	now       state
	notice    string   // the error set by Report
	voice     *watch   // the run that began last: its text and tools are shown
	watches   []*watch // active runs, the oldest first
	pauses    []*pause // paused runs, the first paused first
	origin    origin
	stop      context.CancelFunc // stops the run begun by the page; nil if there is none
	served    map[*http.Server]bool
}

// headerTime is the time to read the header of a request. A test shortens it.
var headerTime = 5 * time.Second

// bodyTime is the time to read a request's body.
const bodyTime = 10 * time.Second

// New returns a server for d.
func New(d dag.DAG, o *Options) *Server {
	s := &Server{id: rand.Text()[:8], model: web.NewModel(), d: d, undrawn: true, listeners: map[*listener]bool{}, served: map[*http.Server]bool{}}
	if o != nil {
		s.options = *o
	}

	if s.options.Token == "" {
		s.options.Token = rand.Text()
	}
	if s.options.Listeners <= 0 {
		s.options.Listeners = 100
	}

	s.handler, s.endpoints = s, endpoints
	s.model.Prices = s.options.Prices

	// Browsers accept frame-ancestors only in a header, so it is not part of the policy in the page itself.
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.policy = web.Policy(true) + "; frame-ancestors 'none'"
	s.page = rendered(web.Config{Title: s.options.Title, Live: true, CanRun: s.options.Run != nil})
	return s
}

// DAG returns the conversation being shown.
func (s *Server) DAG() dag.DAG {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.d
}

// Set replaces the conversation, for example after its file has been read again. The conversation of a watched run
// stays: unless d contains all of it, it replaces the heads of d that it continues.
func (s *Server) Set(d dag.DAG) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(d)

	// A run continues beside d unless d has all of its heads.
	for _, w := range s.watches {
		if len(within(w.run.Heads(), d)) < len(w.run.Heads()) {
			w.heads = within(s.d.Heads(), w.run)
			w.place(w.run)
		}
	}
}

// Token returns the token.
func (s *Server) Token() string { return s.options.Token }

// URL returns the address of a server at addr. It contains the token: keep it secret.
func (s *Server) URL(addr net.Addr) string {
	return "http://" + addr.String() + "/#token=" + url.QueryEscape(s.options.Token)
}

// Listen listens on a TCP address, such as "127.0.0.1:0". The error is ErrRemote for an address within reach of other
// machines, unless Options.Remote is set.
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

// Serve answers requests on l until the server is closed, with time limits for slow clients. It closes l. The error is
// nil after Close.
func (s *Server) Serve(l net.Listener) error {
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // malformed requests of strangers are not worth a line
	}

	// Close must either see this server or have happened before: both are decided under the lock.
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

// Close cancels the run that the page began, disconnects all listeners and makes Serve return. It returns after all
// goroutines of the server have ended. Later requests are refused. A run of the program, shown with Watch, continues
// and is no longer shown.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for l := range s.listeners {
		l.out.Hurry()
	}
	var servers []*http.Server
	for server := range s.served {
		servers = append(servers, server)
	}
	s.mu.Unlock()

	// Requests that are ending need the lock, so wait for them without it.
	for _, server := range servers {
		shutdown(server)
	}
	s.joined.Wait()
	return nil
}

// shutdown stops a server. Requests get a second to finish.
func shutdown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
