package live

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// change adds nodes to a conversation after the node n, or in its place. It returns the conversation, and the message
// to continue from.
type change func(d dag.DAG, n *node.Node) (dag.DAG, *node.Node, error)

// withText returns a change that adds a message of the user.
func withText(text string) change {
	return func(d dag.DAG, n *node.Node) (dag.DAG, *node.Node, error) {
		return d.AppendTo([]*node.Node{n}, node.Message{Role: content.User, Blocks: content.Words(text)})
	}
}

// errNoExecution marks a node whose result cannot be replaced.
var errNoExecution = errors.New("the node is no executed call whose results were sent to the model")

// withResult returns a change that adds the results of a message's calls again, with another result of the call n.
func withResult(text string, failed bool) change {
	return func(d dag.DAG, n *node.Node) (dag.DAG, *node.Node, error) {
		old, ok := n.Payload().(node.ToolExecution)
		answer := resultsOf(d, n)
		if !ok || answer == nil {
			return d, nil, errNoExecution
		}

		// The executions beside it are those whose results the model was sent.
		var executions []node.ToolExecution
		for _, p := range answer.Parents() {
			e, ok := p.Payload().(node.ToolExecution)
			if p == n {
				e = node.ToolExecution{Index: old.Index, Ran: old.Ran, Result: content.Words(text), IsError: failed}
			}
			if ok {
				executions = append(executions, e)
			}
		}

		branch := d.WithHeads(n.Parents()...).CloseTools(executions...)
		if err := branch.Err(); err != nil {
			return d, nil, err
		}
		return d.Join(branch), branch.Head(), nil
	}
}

// resultsOf returns the message with the result of an execution, or nil.
func resultsOf(d dag.DAG, execution *node.Node) *node.Node {
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Role == content.User && slices.Contains(n.Parents(), execution) {
			return n
		}
	}
	return nil
}

// fork changes the conversation at a node, and runs the result.
func (s *Server) fork(at node.ID, change change) *refusal {
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
	if no := s.elsewhere(); no != nil {
		return no
	}

	n := s.d.Node(at)
	if n == nil {
		return unknownNode(at.String())
	}

	whole, message, err := change(s.d, n)
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "cannot_fork", err.Error())
	}

	// The page shows the message at once. The run continues in the background and ends with the server.
	s.show(whole)
	s.start(func(ctx context.Context) runEvents { return s.options.Run(ctx, whole.WithHeads(message)) }, func(outcome) {})
	return nil
}

type runEvents = iter.Seq2[executor.Event, error]

// outcome is how a run of the page ended.
type outcome struct {
	err      error
	executed bool // a tool call was started
}

// start begins a run in the background, and calls ended at its end. s.mu must be held.
func (s *Server) start(begin func(context.Context) runEvents, ended func(outcome)) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.stop = cancel
	s.joined.Add(1)
	go s.run(ctx, begin, ended)
}

// run shows a run until it stops.
func (s *Server) run(ctx context.Context, begin func(context.Context) runEvents, ended func(outcome)) {
	defer s.joined.Done()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop()
		s.stop = nil
		s.rest()
	}()

	ended(s.follow(ctx, begin))
}

// follow shows a run until it stops, and saves it after each turn. A panic of the run is an error.
func (s *Server) follow(ctx context.Context, begin func(context.Context) runEvents) (got outcome) {
	defer func() {
		if v := recover(); v != nil {
			got.err = panicked("the run", v)
			s.report(got.err.Error())
		}
	}()

	for event, err := range s.Watch(begin(ctx)) {
		got.err = err
		switch e := event.(type) {
		case executor.ToolStart:
			got.executed = true
		case executor.Child:
			if _, started := e.Event.(executor.ToolStart); started {
				got.executed = true
			}
		case executor.TurnEnd, executor.End:
			s.save()
		}
	}
	return got
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
