package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/webguard"
)

// Limits of a listener's queue. A listener beyond one of them loses its queue, and gets the whole state when it reads
// again.
const (
	maxQueue = 256
	maxBytes = 1 << 20
)

// listener is an open stream of events. The server's mu guards all fields but out.
type listener struct {
	out    *webguard.Stream
	wake   chan struct{} // buffered for one; holds a value while there is something to write
	queue  [][]byte
	size   int  // of the queue, in bytes
	behind bool // the listener needs the whole state; queue is empty
}

// put queues an event. It never blocks. s.mu must be held.
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

// add registers l for events, or returns a refusal.
func (s *Server) add(l *listener) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return refuse(http.StatusServiceUnavailable, "closed", "the server is closed")
	case len(s.listeners) >= s.options.Listeners:
		return refuse(http.StatusServiceUnavailable, "too_many_listeners",
			fmt.Sprintf("%d pages are open, the maximum; close one", len(s.listeners)))
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

// publish sends an event to all listeners. s.mu must be held.
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

// frame formats a server-sent event.
func frame(name string, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // impossible: patches and activities consist of strings and numbers
	}

	event := make([]byte, 0, len(name)+len(data)+16)
	event = append(append(append(event, "event: "...), name...), "\ndata: "...)
	return append(append(event, data...), "\n\n"...)
}

// take returns the events to write to l now.
func (s *Server) take(l *listener) [][]byte {
	s.mu.Lock()
	queue, behind := l.queue, l.behind
	l.queue, l.size = nil, 0
	s.mu.Unlock()
	if !behind {
		return queue
	}

	// The whole state replaces the queue. modelMu keeps new patches out until it is complete.
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
		p.Reset = true // draw has reported the error
	}
	return frame("patch", p)
}

// show makes d the conversation and starts a goroutine to draw it, unless one is running. s.mu must be held.
func (s *Server) show(d dag.DAG) {
	s.d, s.undrawn = d, true
	s.dropPauses(func(p *pause) bool { return len(p.heads(d)) == 0 })

	// Without listeners, nothing is drawn. take draws for the next one.
	if s.drawing || s.closed || len(s.listeners) == 0 {
		return
	}

	s.drawing = true
	s.joined.Add(1)
	go s.drawAll()
}

// drawAll draws until nothing is new. A conversation set during a drawing is drawn right after it.
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

// draw updates the model if the conversation is new, and sends the changes to all listeners. s.modelMu must be held.
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

	// A streamed message may be in a newer conversation that is not drawn yet. Its text then stays.
	if !s.undrawn {
		s.drawn()
	}
}

// patch returns the changes in d as an event; nil if there are none.
func (s *Server) patch(d dag.DAG) []byte {
	defer s.guard("drawing")
	if s.options.Cache != nil {
		s.model.Cache = s.options.Cache(d)
	}

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

// guard recovers from a panic and shows it on the page, to keep the program running. It must be deferred.
func (s *Server) guard(what string) {
	if v := recover(); v != nil {
		s.report(panicked(what, v).Error())
	}
}

// attempt calls a function of the program. A panic is an error.
func attempt(what string, call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(what, v)
		}
	}()
	return call()
}

// panicked returns a panic as an error.
func panicked(what string, v any) error { return fmt.Errorf("%s panicked: %v", what, v) }

// Report shows an error on the page, beside those of runs, until the next Report. A nil error removes it.
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

// problems returns all errors to show, "" for none. s.mu must be held.
func (s *Server) problems() *string {
	all := s.now.problem
	if s.notice != "" {
		all = strings.TrimPrefix(all+"\n"+s.notice, "\n")
	}
	return &all
}
