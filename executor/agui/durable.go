package agui

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// Runs are runs of an agent that outlive the requests of clients. durable.Engine.Front of executor/durable returns them.
type Runs interface {
	// Store returns the conversations.
	Store() *store.Store
	// Start appends nodes to a conversation and starts a run. It reports false, and changes nothing, if the conversation
	// has an unfinished run, or if add appends nothing. add may be called more than once.
	Start(ctx context.Context, conversation string, add func(dag.DAG) dag.DAG) (started bool, err error)
	// Send gives the messages that add appends to the unfinished run, which reads each once, before its next request. It
	// reports false if there is no such run. add may be called more than once.
	Send(ctx context.Context, conversation string, add func(dag.DAG) dag.DAG) (sent bool, err error)
	// Reply replies to pending calls. The first reply to a call counts.
	Reply(ctx context.Context, conversation string, replies ...executor.Reply) error
	// Cancel cancels the unfinished run, if there is one.
	Cancel(ctx context.Context, conversation, reason string) error
	// Follow yields the events of the last run, as executor.Agent.Stream does, beginning with its RunStart. A RunStart
	// in between means that what was yielded is void. A Paused comes whenever the run waits, and its Continuation lists
	// the calls without a reply. The error beside the End holds context.Canceled for a cancelled run.
	Follow(ctx context.Context, conversation string) iter.Seq2[executor.Event, error]
}

// Durable returns a handler for runs that outlive their requests. Requests, events and options are those of [Handler],
// with these differences:
//
//   - A lost connection does not end the run. A later request of the thread, in any process, gets what its client lacks
//     and follows the run. It may have answers: the first answer to a question counts.
//   - A request cancels the run of its thread only by the forwarded property {"cancel": true}. Other clients that follow
//     it get a RUN_ERROR with the code "cancelled".
//   - Texts arrive in pieces only if the run is executed by the process of the request. Otherwise each message arrives
//     as a whole, when it is stored.
//   - While calls wait for workers, the response continues. It ends with an interrupt if calls need approval, and with the
//     IDs of the calls of the client's own tools: see [Options].ClientTools.
//   - A new message to a thread whose run is under way is read by that run before its next request, also if the client
//     hangs up. In place of an answer, it cancels the run.
//   - There is no [State]: tools are called in other processes.
//
// The handler is safe for concurrent use.
func Durable(runs Runs, o *Options) http.Handler {
	h := newHandler(o)
	h.runs, h.Store = runs, runs.Store()
	return h
}

// follow starts or answers a run as the request says, and sends the events until the run is over or asks the client.
func (s *stream) follow(ctx context.Context, c *store.Conversation) {
	s.send(event{Type: "RUN_STARTED", ThreadID: s.in.ThreadID, RunID: s.in.RunID, ProtocolVersion: "1.0"})
	if _, err := s.in.withNew(c.DAG()); err != nil {
		s.fail(ctx, err)
		return
	}
	s.know(c.DAG())
	s.catchUp(c.DAG())

	s.tools = map[string]bool{}
	for _, t := range s.in.Tools {
		s.tools[t.Name] = slices.Contains(s.ClientTools, t.Name)
	}
	asked, err := s.converse(ctx, c)
	if !asked && ctx.Err() == nil {
		s.over(ctx, err)
	}
}

// converse does what the request asks for, and follows the runs of a thread until there is nothing more to do. It reports
// whether the response has ended with questions to the client.
func (s *stream) converse(ctx context.Context, c *store.Conversation) (asked bool, err error) {
	// What has arrived counts, even if the client has hung up meanwhile.
	request, key := context.WithoutCancel(ctx), c.Key()
	replies := s.replies(c.DAG().Pending())
	switch {
	case s.in.cancels():
		err = s.runs.Cancel(request, key, "cancelled by the client")
	case len(replies) > 0:
		err = s.runs.Reply(request, key, replies...)
	}

	// Messages beside answers, or of a request to cancel, are appended with the next request.
	appends := len(s.in.Resume) == 0 && !s.in.cancels()
	for err == nil {
		if appends && len(s.own) > 0 {
			if err := s.give(request, key); err != nil {
				return false, err
			}
		}

		_, err := s.forward(s.runs.Follow(ctx, key), &Shared{})
		left := appends && len(s.own) > 0 // the run has not read them
		var paused *executor.PausedError
		switch {
		case err == nil && left:
			continue
		case !errors.As(err, &paused):
			return false, err
		case !left:
			s.pause(s.waits)
			return true, nil
		}
		if err := s.runs.Cancel(ctx, key, "the user sent a message in place of an answer"); err != nil {
			return false, err
		}
	}
	return false, err
}

// give starts a run with the client's new messages, or gives them to the one that is under way.
func (s *stream) give(ctx context.Context, key string) error {
	add := func(d dag.DAG) dag.DAG {
		with, err := s.in.withNew(d)
		if err != nil {
			return d // it was checked before
		}
		return with
	}
	started, err := s.runs.Start(ctx, key, add)
	if err == nil && !started {
		_, err = s.runs.Send(ctx, key, add)
	}
	return err
}

// pendingOf returns the pending calls that have no reply yet.
func pendingOf(e executor.Paused) []dag.Pending {
	return slices.DeleteFunc(e.DAG.Pending(), func(p dag.Pending) bool { return !slices.Contains(e.Continuation.Calls, p.Key) })
}

// asks reports whether the client has to answer.
func (s *stream) asks(pending []dag.Pending) bool {
	return slices.ContainsFunc(pending, func(p dag.Pending) bool { return p.Approval || s.theirs(p) })
}
