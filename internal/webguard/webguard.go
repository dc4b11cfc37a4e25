// Package webguard has what every handler needs that a browser may reach: the check of who sends a request, and
// deadlines for clients that do not send the rest of a body or do not read the response.
package webguard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// The pace of a connection.
const (
	// WriteTime is the time to write one piece of a stream.
	WriteTime = 10 * time.Second
	// Beat is the time between two comments that keep a stream alive.
	Beat = 15 * time.Second
)

// Refusal is the reason for refusing a request.
type Refusal struct {
	// Status is the HTTP status.
	Status int
	// Code names the reason for programs, Message explains it to people.
	Code, Message string
}

// Guard checks who sends a request. The zero value accepts requests of this machine to itself.
type Guard struct {
	// Remote accepts clients on other machines, and every IP address as the host.
	Remote bool
	// Hosts are the names of the server beside localhost, without a port. "*" accepts every name.
	Hosts []string
	// Origins are the other sites whose pages may send requests, such as "https://app.example.com".
	Origins []string
}

// Check returns the reason to refuse a request from another machine, for another host, or from a page of another site;
// nil for none.
func (g Guard) Check(r *http.Request) *Refusal {
	if !g.Remote && !loopback(r.RemoteAddr) {
		return forbidden("remote_peer", "only requests from this machine are allowed")
	}
	if !g.named(r.Host) {
		return forbidden("wrong_host", fmt.Sprintf("this server is not %.80q", r.Host))
	}

	// Check of net/http allows every GET. So compare Origin for all methods first; Check also uses Sec-Fetch-Site.
	origin := r.Header.Get("Origin")
	if origin != "" && slices.Contains(g.Origins, origin) {
		return nil
	}
	u, err := url.Parse(origin)
	if origin != "" && (err != nil || u.Host != r.Host) || http.NewCrossOriginProtection().Check(r) != nil {
		return forbidden("cross_origin", "the request comes from a page of another site")
	}
	return nil
}

func forbidden(code, message string) *Refusal { return &Refusal{http.StatusForbidden, code, message} }

func loopback(peer string) bool {
	addr, err := netip.ParseAddrPort(peer)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// named reports whether host is a name or an address of this server. This is the defense against DNS rebinding: another
// site can make its name resolve to this machine, but its Host header then has that name.
func (g Guard) named(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return g.Remote || addr.Unmap().IsLoopback()
	}

	is := func(known string) bool { return known == "*" || strings.EqualFold(known, name) }
	return is("localhost") || slices.ContainsFunc(g.Hosts, is)
}

// LimitBody sets the deadline of a request's body. Call it before anything else.
//
// net/http reads the rest of a body before and after it sends a response. Without a deadline, an endless body holds up
// the response and the connection, even if the handler ignores it. net/http sets the deadline anew for the next
// request.
func LimitBody(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
	}
}

// LeaveBody lets the response to a refused request go out without waiting for the rest of its body.
func LeaveBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
}

// Body returns the body of a request. It refuses a body of more than limit bytes, and one that is incomplete at the
// deadline of LimitBody.
func Body(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *Refusal) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))

	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &Refusal{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body has more than %d bytes", limit)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &Refusal{http.StatusRequestTimeout, "bad_body", "the body did not arrive in time"}
	case err != nil:
		return nil, &Refusal{http.StatusBadRequest, "bad_body", "the body is incomplete"}
	}

	// The body is complete. From now on, net/http reads only to notice when the client leaves, without a time limit.
	Listen(w)
	return body, nil
}

// Listen lifts the deadline of LimitBody: nothing more is read.
func Listen(w http.ResponseWriter) { _ = http.NewResponseController(w).SetReadDeadline(time.Time{}) }

// piece is the number of bytes written per deadline.
const piece = 64 << 10

// Stream writes a response of any length. Each piece has a deadline of WriteTime, so a client that does not read ends
// the stream, and net/http then cancels the context of the request. One goroutine may write at a time; Hurry may be called at any time.
type Stream struct {
	w  io.Writer
	rc *http.ResponseController

	deadline sync.Mutex
	hurried  bool // guarded by deadline; after Hurry, the deadline stays as it is
}

// NewStream returns a stream to w.
func NewStream(w http.ResponseWriter) *Stream {
	return &Stream{w: w, rc: http.NewResponseController(w)}
}

// Write writes events and flushes them. The error of a client that does not read is os.ErrDeadlineExceeded.
func (s *Stream) Write(events ...[]byte) error {
	for _, event := range events {
		for part := range slices.Chunk(event, piece) {
			s.extend()
			if _, err := s.w.Write(part); err != nil {
				return err
			}
		}
	}

	// A program may pass a writer without Flush. That is no reason to end the stream.
	s.extend()
	err := s.rc.Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// extend sets the deadline of the next write.
func (s *Stream) extend() {
	s.deadline.Lock()
	defer s.deadline.Unlock()
	if !s.hurried {
		_ = s.rc.SetWriteDeadline(time.Now().Add(WriteTime)) // a middleware's writer may have no deadlines
	}
}

// Hurry limits the current write to one more second.
func (s *Stream) Hurry() {
	s.deadline.Lock()
	defer s.deadline.Unlock()
	s.hurried = true
	_ = s.rc.SetWriteDeadline(time.Now().Add(time.Second))
}
