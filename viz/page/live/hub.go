package live

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
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
	seen   int  // the last change that a returning listener has received; 0 for none, and after the first answer
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
func frame(name string, value any) []byte { return frameWith("", name, value) }

// frameWith formats a server-sent event with an ID; "" for none.
func frameWith(id, name string, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // impossible: patches and activities consist of strings and numbers
	}

	event := make([]byte, 0, len(id)+len(name)+len(data)+24)
	if id != "" {
		event = append(append(append(event, "id: "...), id...), '\n')
	}
	event = append(append(append(event, "event: "...), name...), "\ndata: "...)
	return append(append(event, data...), "\n\n"...)
}

// eventID returns the ID of a change: the server's own, and the number of the change.
func (s *Server) eventID(number int) string { return s.id + "-" + strconv.Itoa(number) }

// seen returns the number of the change that a client names as the last one it has received. It returns 0 if that was
// of another server, or is no ID.
func (s *Server) seen(id string) int {
	number, ok := strings.CutPrefix(id, s.id+"-")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 {
		return 0
	}
	return n
}

// take returns the events to write to l now.
func (s *Server) take(l *listener) iter.Seq[[]byte] {
	s.mu.Lock()
	queue, behind := l.queue, l.behind
	l.queue, l.size = nil, 0
	s.mu.Unlock()
	if !behind {
		return slices.Values(queue)
	}

	// The state replaces the queue. modelMu keeps new patches out until it is complete.
	s.modelMu.Lock()
	defer s.modelMu.Unlock()
	s.draw()
	events := s.missed(l.seen)
	if events == nil {
		events = s.pieces()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	l.behind, l.seen = false, 0
	now := frame("activity", s.all())
	return func(yield func([]byte) bool) {
		for event := range events {
			if !yield(event) {
				return
			}
		}
		yield(now)
	}
}

// missed returns the changes after the one with a number; nil if they are not all kept. s.modelMu must be held.
func (s *Server) missed(seen int) iter.Seq[[]byte] {
	first := s.drawnTo - len(s.recent)
	if seen == 0 || seen < first || seen > s.drawnTo {
		return nil
	}
	return slices.Values(slices.Clone(s.recent[seen-first:]))
}

// pieces returns the whole conversation in pieces. s.modelMu must be held.
func (s *Server) pieces() iter.Seq[[]byte] {
	whole, id := s.model.Whole(), s.eventID(s.drawnTo)
	return func(yield func([]byte) bool) {
		for piece := range whole.Pieces() {
			// Only the last piece has an ID: who has less begins again.
			own := id
			if piece.More {
				own = ""
			}
			if !yield(frameWith(own, "patch", piece)) {
				return
			}
		}
	}
}

// keep adds an event to the latest ones, and drops the oldest ones beyond a limit. s.modelMu must be held.
func (s *Server) keep(event []byte) {
	s.recent = append(s.recent, event)
	size := 0
	for i, e := range slices.Backward(s.recent) {
		if size += len(e); size > maxBytes || len(s.recent)-i > maxQueue {
			s.recent = slices.Clone(s.recent[i+1:])
			break
		}
	}
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

	changes, err := s.model.Update(d)
	if err != nil {
		s.report(err.Error())
		return nil
	}
	if changes.Empty() {
		return nil
	}

	// If there are many, those who listen get the whole conversation in pieces.
	s.drawnTo++
	if changes.IsLong() {
		s.recent = nil
		s.fallBehind()
		return nil
	}
	event := frameWith(s.eventID(s.drawnTo), "patch", changes.Patch())
	s.keep(event)
	return event
}

// fallBehind makes all listeners need the whole state.
func (s *Server) fallBehind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		l.queue, l.size, l.behind = nil, 0, true
		l.rouse()
	}
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
