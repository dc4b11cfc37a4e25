package live

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/viz/page/internal/web"
)

// IndexOptions configure an [Index].
type IndexOptions struct {
	// Title is the heading of the list. Defaults to "Conversations".
	Title string
	// Token, Remote and Hosts are as in [Options]. They also apply to the pages of the conversations.
	Token  string
	Remote bool
	Hosts  []string

	// List returns the conversations in display order. It is called repeatedly while a page with the list is open, one
	// call at a time. It is required.
	List func(ctx context.Context) ([]Entry, error)
	// Open returns a server for the conversation with that key. ctx ends when the index closes the server: in Close, or
	// to limit the number of open conversations without a reader. Open may be called for several conversations at the
	// same time. It is required.
	Open func(ctx context.Context, key string) (*Server, error)
}

// Entry is a conversation in the list of an [Index].
type Entry struct {
	// Key names the conversation for Open, and for people.
	Key string
	// State is the state of its run, such as "queued", "running", "paused", "in doubt" or "failed"; "" for none.
	State string
	// Detail explains the state, such as "2 calls wait". It may be long.
	Detail string
	// Waits reports that the run waits for a person. Such conversations are marked.
	Waits bool
	// Changed is the time of the last change of the conversation or of its run's state. Zero is unknown.
	Changed time.Time
}

// Index serves a page with a list of conversations, and a page for each. It is an http.Handler, safe for concurrent use.
// [NewIndex] returns one. The security notes of the package hold.
type Index struct {
	options IndexOptions
	base    *Server // checks requests, listens and serves; its own conversation is empty

	listing sync.Mutex // held while List runs; guards the next three
	list    []listed
	listed  time.Time // the time of list
	took    time.Duration

	mu     sync.Mutex // guards the rest
	pages  map[string]*page
	closed bool

	closing sync.WaitGroup
}

// page is the page of an open conversation.
type page struct {
	opening sync.Mutex // held while Open runs; guards the next three: they do not change while used is 0
	server  *Server    // nil until Open has returned it
	cancel  context.CancelFunc
	closed  bool

	used int // requests under way; guarded by Index.mu
}

// listed is an Entry for the page.
type listed struct {
	Key     string `json:"key"`
	Path    string `json:"path"`
	State   string `json:"state,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Waits   bool   `json:"waits,omitempty"`
	Changed string `json:"changed,omitempty"`
}

const (
	// maxPages limits the open conversations: at this number, those without requests and runs are closed.
	maxPages = 50
	// listEvery is the minimum time between two calls of List.
	listEvery = time.Second
)

// NewIndex returns an index. It panics if List or Open is missing.
func NewIndex(o *IndexOptions) *Index {
	if o == nil || o.List == nil || o.Open == nil {
		panic("live: an Index needs List and Open")
	}
	x := &Index{options: *o, pages: map[string]*page{}}
	if x.options.Title == "" {
		x.options.Title = "Conversations"
	}

	x.base = New(dag.New(), &Options{Title: x.options.Title, Token: o.Token, Remote: o.Remote, Hosts: o.Hosts})

	// base listens and serves, but passes requests to the index.
	x.base.handler = x
	x.base.page = rendered(web.Config{Title: x.options.Title, Live: true, Index: true})
	x.base.endpoints = map[string]endpoint{
		"": {http.MethodGet, true, (*Server).home},
		"list": {http.MethodGet, false, func(_ *Server, w http.ResponseWriter, r *http.Request) *refusal {
			return x.sendList(w, r)
		}},
	}
	return x
}

// Token returns the token.
func (x *Index) Token() string { return x.base.Token() }

// URL is as that of [Server].
func (x *Index) URL(addr net.Addr) string { return x.base.URL(addr) }

// Listen is as that of [Server].
func (x *Index) Listen(addr string) (net.Listener, error) { return x.base.Listen(addr) }

// Serve is as that of [Server].
func (x *Index) Serve(l net.Listener) error { return x.base.Serve(l) }

// Close closes the pages of all conversations, as [Server.Close] does, and makes Serve return.
func (x *Index) Close() error {
	x.mu.Lock()
	x.closed = true
	pages := x.pages
	x.pages = map[string]*page{}
	x.mu.Unlock()

	// Canceling the context also ends calls of Open. Otherwise p.close might wait long for them.
	x.base.cancel()
	for _, p := range pages {
		p.close()
	}
	x.closing.Wait()
	return x.base.Close()
}

func (p *page) close() {
	p.opening.Lock()
	defer p.opening.Unlock()
	p.closed = true
	if p.server != nil {
		p.cancel()
		_ = p.server.Close() // always nil
	}
}

// ServeHTTP answers a request. Paths are relative to the list: "c/NAME/" is the page of a conversation. See
// [Server.ServeHTTP].
func (x *Index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, rest, ok := conversationOf(r.URL.Path)
	if !ok {
		x.base.ServeHTTP(w, r)
		return
	}

	x.base.serve(w, r, func() *refusal {
		if no := x.base.stranger(r); no != nil {
			return no
		}

		// The page itself needs no token. It is the same for a missing conversation, so it reveals nothing.
		if rest == "" {
			return x.sendPage(w, r, key)
		}

		if no := x.base.check(w, r, endpoint{method: r.Method}); no != nil {
			return no
		}
		return x.pass(w, r, key, rest)
	})
}

// pass passes a request to the server of a conversation.
func (x *Index) pass(w http.ResponseWriter, r *http.Request, key, rest string) *refusal {
	p, err := x.open(key)
	if err != nil {
		return refuse(http.StatusNotFound, "cannot_open", err.Error())
	}
	defer x.leave(p)

	// The server of a conversation expects paths relative to its own page.
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = "/"+rest, ""
	p.server.ServeHTTP(w, inner)
	return nil
}

// conversationOf returns the key and the rest of a path "/c/NAME/REST".
func conversationOf(path string) (key, rest string, ok bool) {
	name, ok := strings.CutPrefix(strings.TrimPrefix(path, "/"), "c/")
	if !ok {
		return "", "", false
	}
	name, rest, ok = strings.Cut(name, "/")
	decoded, err := base64.RawURLEncoding.DecodeString(name)
	return string(decoded), rest, ok && err == nil
}

// pathOf returns the path of a conversation's page, relative to the list. The key is encoded: it may hold any
// character, such as a slash.
func pathOf(key string) string { return "c/" + base64.RawURLEncoding.EncodeToString([]byte(key)) + "/" }

// sendPage sends the page of a conversation, without the conversation.
func (x *Index) sendPage(w http.ResponseWriter, r *http.Request, key string) *refusal {
	if no := x.base.check(w, r, endpoint{method: http.MethodGet, open: true}); no != nil {
		return no
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(rendered(web.Config{Title: key, Live: true, Up: "../../"}))
	return nil
}

// open returns the page of a conversation, with its server. The caller must call leave.
func (x *Index) open(key string) (*page, error) {
	// Count the request before the lock is released: sweep closes only pages without requests.
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return nil, errClosed
	}

	p := x.pages[key]
	if p == nil {
		x.sweep()
		p = &page{}
		x.pages[key] = p
	}
	p.used++
	x.mu.Unlock()

	// The first request opens the conversation. Others wait for it here.
	p.opening.Lock()
	defer p.opening.Unlock()
	switch {
	case p.closed:
		x.leave(p)
		return nil, errClosed
	case p.server != nil:
		return p, nil
	}

	ctx, cancel := context.WithCancel(x.base.ctx)
	var server *Server
	err := attempt("opening it", func() (err error) {
		server, err = x.options.Open(ctx, key)
		return err
	})
	if err != nil {
		cancel()
		x.leave(p)
		return nil, err
	}

	// All pages of an index share its token and its access rules.
	server.options.Token, server.options.Remote, server.options.Hosts = x.base.options.Token, x.options.Remote, x.options.Hosts
	p.server, p.cancel = server, cancel
	return p, nil
}

var errClosed = errors.New("the server is closed")

// leave ends the use of a page by a request.
func (x *Index) leave(p *page) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p.used--
}

// sweep closes unused pages if there are many. x.mu must be held.
func (x *Index) sweep() {
	if len(x.pages) < maxPages {
		return
	}

	// Closing a page may take a second, so it is not done under the lock.
	for key, p := range x.pages {
		if p.used == 0 && (p.server == nil || !p.server.busy()) {
			delete(x.pages, key)
			x.closing.Go(p.close)
		}
	}
}

// busy reports whether a run is active.
func (s *Server) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active()
}

// sendList sends the list of conversations.
func (x *Index) sendList(w http.ResponseWriter, r *http.Request) *refusal {
	list, err := x.entries(r.Context())
	if err != nil {
		return refuse(http.StatusInternalServerError, "cannot_list", err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"entries": list})
	return nil
}

// entries returns the conversations. Requests at about the same time share one list. A slow List is called less often:
// it may use about a tenth of the time at most.
func (x *Index) entries(ctx context.Context) ([]listed, error) {
	x.listing.Lock()
	defer x.listing.Unlock()

	// Requests that waited for the lock find a list that is new enough.
	began := time.Now()
	if !x.listed.IsZero() && began.Sub(x.listed) < max(listEvery, 10*x.took) {
		return x.list, nil
	}

	// An error is not kept: the next request calls List again.
	var entries []Entry
	err := attempt("the list", func() (err error) {
		entries, err = x.options.List(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}

	list := make([]listed, 0, len(entries))
	for _, e := range entries {
		l := listed{Key: e.Key, Path: pathOf(e.Key), State: e.State, Detail: e.Detail, Waits: e.Waits}
		if !e.Changed.IsZero() {
			l.Changed = e.Changed.UTC().Format(time.RFC3339Nano)
		}
		list = append(list, l)
	}

	x.list, x.listed, x.took = list, time.Now(), time.Since(began)
	return list, nil
}

// rendered returns a page.
func rendered(c web.Config) []byte {
	var b bytes.Buffer
	if err := web.WritePage(&b, c, web.Changes{}); err != nil {
		panic(err) // impossible: the page consists of strings
	}
	return b.Bytes()
}
