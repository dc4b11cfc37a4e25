package live

import (
	"context"
	"fmt"
	"net/http"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// fork appends text to the node as a message of the user, and runs the result.
func (s *Server) fork(at node.ID, text string) *refusal {
	if s.options.Run == nil {
		return refuse(http.StatusForbidden, "cannot_run", "running is off: the program that serves this page does not allow it")
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	switch {
	case s.closed:
		return refuse(http.StatusServiceUnavailable, "closed", "the server is closed")
	case s.active():
		return refuse(http.StatusConflict, "running", "another run is in progress")
	}

	n := s.d.Node(at)
	if n == nil {
		return unknownNode(at.String())
	}

	whole, message, err := s.d.AppendTo([]*node.Node{n}, node.Message{Role: content.User, Blocks: content.Words(text)})
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "cannot_fork", err.Error())
	}

	// The page shows the message at once. The run continues in the background and ends with the server.
	s.show(whole)

	ctx, cancel := context.WithCancel(s.ctx)
	s.stop = cancel
	s.joined.Add(1)
	go s.run(ctx, whole.WithHeads(message))
	return nil
}

// run runs d until it stops, and saves it after each turn.
func (s *Server) run(ctx context.Context, d dag.DAG) {
	defer s.joined.Done()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop()
		s.stop = nil
		s.rest()
	}()
	defer s.guard("the run")

	for event := range s.Watch(s.options.Run(ctx, d)) {
		switch event.(type) {
		case executor.TurnEnd, executor.End:
			s.save()
		}
	}
}

// save calls Options.Save and reports its error.
func (s *Server) save() {
	if s.options.Save == nil {
		return
	}
	if err := s.options.Save(s.DAG()); err != nil {
		s.report(fmt.Sprintf("not saved: %v", err))
	}
}

// halt stops the run that the page began.
func (s *Server) halt() *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()

	switch {
	case s.stop != nil:
		s.stop()
	case len(s.watches) > 0:
		return refuse(http.StatusConflict, "not_ours", "the run was not started on this page and cannot be stopped here")
	}
	return nil
}
