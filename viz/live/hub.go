package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/plait-dev/plait/dag"
)

// What one who listens may leave unread: further events are told by a whole patch when it reads on.
const (
	maxQueue = 256
	maxBytes = 1 << 20
)

// listener is one who listens for events. All but rc and hurried are guarded by the server's mu.
type listener struct {
	rc     *http.ResponseController
	wake   chan struct{} // holds one where there is something to write
	queue  [][]byte
	size   int  // of the queue, in bytes
	behind bool // it has to be told everything anew; the queue is empty

	deadline sync.Mutex
	hurried  bool // the server is closed: the deadline stays as it is
}

// put adds an event. It never waits.
func (l *listener) put(event []byte) {
	switch {
	case l.behind:
		return
	case len(l.queue) == maxQueue || l.size+len(event) > maxBytes:
		l.queue, l.size, l.behind = nil, 0, true
	default:
		l.queue, l.size = append(l.queue, event), l.size+len(event)
	}
	l.rouse()
}

func (l *listener) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// extend gives the next write its time.
func (l *listener) extend() {
	l.deadline.Lock()
	defer l.deadline.Unlock()
	if !l.hurried {
		_ = l.rc.SetWriteDeadline(time.Now().Add(writeTime)) // a writer without deadlines is one of a test
	}
}

// hurry lets what is being written take no more than a second.
func (l *listener) hurry() {
	l.deadline.Lock()
	defer l.deadline.Unlock()
	l.hurried = true
	_ = l.rc.SetWriteDeadline(time.Now().Add(time.Second))
}

// add lets l listen, and reports why it may not.
func (s *Server) add(l *listener) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return refuse(http.StatusServiceUnavailable, "closed", "the server is closed")
	case len(s.listeners) >= s.options.Listeners:
		return refuse(http.StatusServiceUnavailable, "too_many_listeners",
			fmt.Sprintf("%d pages are open already, which is as many as are told; close one", len(s.listeners)))
	}
	s.listeners[l] = true
	s.joined.Add(1)
	return nil
}

func (s *Server) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
	s.joined.Done()
}

// publish gives an event to all who listen. It is called with mu.
func (s *Server) publish(name string, value any) {
	if len(s.listeners) == 0 {
		return
	}
	s.spread(frame(name, value))
}

func (s *Server) spread(event []byte) {
	for l := range s.listeners {
		l.put(event)
	}
}

// frame is a server-sent event.
func frame(name string, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // patches and activities are made of strings and numbers
	}
	event := make([]byte, 0, len(name)+len(data)+16)
	event = append(append(append(event, "event: "...), name...), "\ndata: "...)
	return append(append(event, data...), "\n\n"...)
}

// take returns what l has to be told now.
func (s *Server) take(l *listener) [][]byte {
	s.mu.Lock()
	queue, behind := l.queue, l.behind
	l.queue, l.size = nil, 0
	s.mu.Unlock()
	if !behind {
		return queue
	}
	s.modelMu.Lock()
	defer s.modelMu.Unlock()
	s.draw()
	if s.whole == nil {
		s.whole = s.wholePatch()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.behind = false
	return [][]byte{s.whole, frame("activity", s.all())}
}

func (s *Server) wholePatch() []byte {
	defer s.guard("drawing")
	p, err := s.model.Whole()
	if err != nil {
		p.Reset = true // draw has told why
	}
	return frame("patch", p)
}

// show makes d the conversation. It is called with mu, and lets another goroutine draw.
func (s *Server) show(d dag.DAG) {
	s.d, s.undrawn = d, true
	if s.drawing || s.closed || len(s.listeners) == 0 {
		return
	}
	s.drawing = true
	s.joined.Add(1)
	go s.drawAll()
}

// drawAll draws until there is nothing new. What comes while it draws is drawn at once afterwards.
func (s *Server) drawAll() {
	defer s.joined.Done()
	for again := true; again; {
		s.modelMu.Lock()
		s.draw()
		s.modelMu.Unlock()
		s.mu.Lock()
		again = s.undrawn && !s.closed && len(s.listeners) > 0
		s.drawing = again
		s.mu.Unlock()
	}
}

// draw tells the model of the conversation, where it does not know it yet, and all who listen what is new. It is called with modelMu.
func (s *Server) draw() {
	s.mu.Lock()
	d, undrawn := s.d, s.undrawn
	s.undrawn = false
	s.mu.Unlock()
	if !undrawn {
		return
	}
	s.whole = nil
	event := s.patch(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if event != nil {
		s.spread(event)
	}
	if !s.undrawn {
		s.drawn()
	}
}

// patch is what is new in d as an event; nil for nothing.
func (s *Server) patch(d dag.DAG) []byte {
	defer s.guard("drawing")
	p, err := s.model.Update(d)
	if err != nil {
		s.report(err.Error())
		return nil
	}
	if p.Empty() {
		return nil
	}
	return frame("patch", p)
}

// guard keeps a panic in what the page needs from ending the program, and shows it.
func (s *Server) guard(what string) {
	if v := recover(); v != nil {
		s.report(fmt.Sprintf("%s panicked: %v", what, v))
	}
}

// Report shows an error on the page, beside those of runs, until the next Report; nil takes it away.
func (s *Server) Report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = ""
	if err != nil {
		s.notice = err.Error()
	}
	s.publish("activity", activity{Error: s.problems()})
}

// report shows an error until the next run begins.
func (s *Server) report(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.problem = problem
	s.publish("activity", activity{Error: s.problems()})
}

// problems is all that is wrong, "" for nothing. It is called with mu.
func (s *Server) problems() *string {
	all := s.now.problem
	if s.notice != "" {
		all = strings.TrimPrefix(all+"\n"+s.notice, "\n")
	}
	return &all
}
