package agui

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/front"
	"github.com/plait-dev/plait/internal/webguard"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// stream is the response to one request. One goroutine uses it, and another one keeps the connection alive.
type stream struct {
	*handler
	speech
	in input

	writing sync.Mutex // guards the next two fields
	out     *webguard.Stream
	err     error // of the connection; the run ends with it

	ids   map[node.ID]string // IDs of the conversation's messages
	shown []message          // the messages of the thread that the client has, without the pieces of a response
	own   map[string]any     // the content of the client's messages that the thread lacks, by ID
	tools map[string]bool    // the names of the client's own tools
	given map[string]bool    // the IDs of calls with a result from the client

	replied bool          // the replies of the request were used
	waits   []dag.Pending // the calls of a durable run that waited without a reply at its last pause
}

// run runs the agent on a thread, and sends the events.
func (s *stream) run(ctx context.Context, c *store.Conversation) {
	s.send(event{Type: "RUN_STARTED", ThreadID: s.in.ThreadID, RunID: s.in.RunID, ProtocolVersion: "1.0"})

	// A request with answers to interrupts appends no messages: they would end the pending calls.
	stored := c.DAG()
	d := stored
	if len(s.in.Resume) == 0 {
		var err error
		if d, err = s.in.withNew(stored); err != nil {
			s.fail(ctx, err)
			return
		}
	}
	s.know(d)
	s.catchUp(stored)

	// A client may open a new thread without a message.
	if d.Len() == 0 {
		s.finish(&outcome{Type: "success"})
		return
	}

	agent := s.agent
	agent.Tools, s.tools = s.in.tools(agent.Tools)
	agent.Save = front.Save(agent.Save, c.Append)
	state := &Shared{value: s.in.State}
	ctx = context.WithValue(ctx, sharedKey{}, state)

	for {
		// Pending calls wait as they are: nothing is decided or appended again. The request may have their answers.
		events := agent.Stream(ctx, d)
		if pending := d.Pending(); len(pending) > 0 {
			replies := s.replies(pending)
			if len(replies) == 0 {
				s.pause(pending)
				return
			}
			events = agent.ResumeStream(ctx, d, replies...)
		}

		end, err := s.forward(events, state)
		var paused *executor.PausedError
		if !errors.As(err, &paused) {
			s.over(ctx, err)
			return
		}
		d = end.DAG
	}
}

// know remembers the messages of the conversation and their IDs.
func (s *stream) know(d dag.DAG) {
	s.shown, s.ids, s.own = messagesOf(d), map[node.ID]string{}, map[string]any{}
	for _, m := range s.in.fresh(d) {
		if blocks, err := m.blocks(); err == nil {
			s.own[m.ID] = contentOf(blocks)
		}
	}
	for i, n := range messageNodes(d) {
		id := messageID(n, i)
		s.ids[n.ID()] = id
		if m, _ := n.Message(); len(m.Blocks.ToolUses()) > 0 {
			s.calling = id
		}
	}
	s.count = len(s.ids)
}

// catchUp sends the messages of the thread if the client lacks one of the stored messages, or has pieces of a response
// that was not stored like that.
func (s *stream) catchUp(stored dag.DAG) {
	has := map[string]json.RawMessage{}
	for _, m := range s.in.Messages {
		has[m.ID] = m.Content
		has[resultOf(m.ToolCallID)] = nil
	}

	same := true
	for _, m := range messagesOf(stored) {
		text, known := has[m.ID]
		same = same && known && (m.Role != "assistant" || m.hasText(text))
		delete(has, m.ID)
	}
	for id := range has {
		same = same && !isNumbered(id)
	}
	if !same {
		s.snapshot()
	}
}

// snapshot replaces the client's messages. Those that the thread lacks stay.
func (s *stream) snapshot() {
	all, has := slices.Clone(s.shown), map[string]bool{}
	for _, m := range s.shown {
		has[m.ID] = true
	}
	for _, m := range s.in.Messages {
		if own, is := s.own[m.ID]; is {
			all = append(all, message{ID: m.ID, Role: "user", Content: own})
		}
		if blocks, err := m.blocks(); s.given[m.ToolCallID] && !has[resultOf(m.ToolCallID)] && err == nil {
			all = append(all, message{ID: m.ID, Role: "tool", ToolCallID: m.ToolCallID, Content: contentOf(blocks)})
		}
	}
	s.send(event{Type: "MESSAGES_SNAPSHOT", Messages: all})
}

// begin continues with a conversation, which may be newer than what the client has. If something that was sent is not part
// of it, the client gets all of it: a durable run may have continued elsewhere, without the last pieces.
func (s *stream) begin(d dag.DAG) {
	now, has := map[string]message{}, map[string]bool{}
	for _, m := range messagesOf(d) {
		now[m.ID] = m
	}
	whole := !s.text && !s.think
	for _, m := range s.shown {
		has[m.ID] = true
		whole = whole && reflect.DeepEqual(now[m.ID], m)
	}
	if !whole {
		s.close()
		s.know(d)
		s.snapshot()
		return
	}

	for _, n := range d.Nodes() {
		if _, is := n.Message(); is && s.ids[n.ID()] == "" {
			s.messageEnd(n)
		}

		// Only the last message with calls may have new results.
		e, is := n.Payload().(node.ToolExecution)
		key, _ := n.Call()
		id := callOf(s.ids[key.Message], e.Index)
		if is && s.ids[key.Message] == s.calling && !e.State.Unfinished() && !has[resultOf(id)] {
			s.result(e)
		}
	}
}

// forward sends the events of a run. It returns the last one and the run's error.
func (s *stream) forward(events iter.Seq2[executor.Event, error], state *Shared) (executor.End, error) {
	for e, err := range events {
		switch e := e.(type) {
		case executor.RunStart:
			s.begin(e.DAG)
		case executor.MessageDelta:
			s.delta(e.Event)
		case executor.Retry:
			// The snapshot lacks the pieces of the failed attempt, so the client drops them.
			s.close()
			s.snapshot()
		case executor.MessageEnd:
			s.messageEnd(e.Node)
		case executor.ToolEnd:
			s.result(e.Execution)
		case executor.Paused:
			// A durable run continues by itself when workers have the results: only the client's replies end the response.
			if s.waits = pendingOf(e); s.runs != nil && s.asks(s.waits) {
				s.close()
				return executor.End{DAG: e.DAG}, executor.PausedAt(e.DAG)
			}
		case executor.End:
			s.close()
			s.sendState(state)
			return e, err
		}

		s.sendState(state)
		if s.lost() != nil {
			break // cancels the run
		}
	}
	return executor.End{}, s.lost()
}

// sendState sends the state if it has changed.
func (s *stream) sendState(state *Shared) {
	if value := state.take(); value != nil {
		s.send(event{Type: "STATE_SNAPSHOT", Snapshot: value})
	}
}

// theirs reports whether the client executes a pending call.
func (s *stream) theirs(p dag.Pending) bool { return len(p.Path) == 0 && s.tools[p.Call.Name] }

// callID returns the ID of a pending call. It returns "" for a call of a sub-agent, because the client has not seen it.
func (s *stream) callID(p dag.Pending) string {
	if len(p.Path) > 0 {
		return ""
	}
	return callOf(s.ids[p.Key.Message], p.Key.Index)
}

// interruptID returns the ID of the question about a call: its key and a digest of what is shown, so that an old answer
// cannot approve another call, or other arguments.
func interruptID(p dag.Pending) string {
	shown := executor.Shown(p)
	return p.Key.String() + "/" + hex.EncodeToString(shown[:8])
}

// approval is the schema of an answer to a question for approval.
var approval = map[string]any{
	"type":     "object",
	"required": []string{"approved"},
	"properties": map[string]any{
		"approved": map[string]any{"type": "boolean"},
		"reason":   map[string]any{"type": "string"},
		"input":    map[string]any{"type": "object"},
	},
}

// pause ends the response of a paused run. If calls of the client's tools are pending, it sends their IDs. Otherwise it
// sends interrupts: questions for approval, and calls whose results come from elsewhere.
func (s *stream) pause(pending []dag.Pending) {
	asks := slices.ContainsFunc(pending, func(p dag.Pending) bool { return p.Approval })
	var calls []string
	var questions []interrupt
	for _, p := range pending {
		switch {
		case p.Approval:
			questions = append(questions, s.question(p, "tool_call", approval))
		case asks: // not yet: other calls need approval first
		case s.theirs(p):
			calls = append(calls, s.callID(p))
		default:
			questions = append(questions, s.question(p, "tool_result", map[string]any{}))
		}
	}

	// The client's own calls come first. When they have their results, the run pauses again for the others.
	if len(calls) > 0 {
		s.finish(&outcome{Type: "success", PendingCallIDs: calls})
		return
	}
	s.finish(&outcome{Type: "interrupt", Interrupts: questions})
}

// question returns the interrupt for a pending call.
func (s *stream) question(p dag.Pending, reason string, schema map[string]any) interrupt {
	var input any = string(p.Call.Input) // not always JSON: the model wrote it
	if p.Call.Input.Valid() {
		input = p.Call.Input
	}
	return interrupt{
		ID: interruptID(p), Reason: reason, Message: p.Note, ToolCallID: s.callID(p), ResponseSchema: schema,
		Metadata: map[string]any{"tool": p.Call.Name, "input": input},
	}
}

// over ends the response of a run that is over. A conversation that ends with a response (ErrAnswered) is a success: a
// request that was sent again has nothing to do.
func (s *stream) over(ctx context.Context, err error) {
	if err == nil || errors.Is(err, executor.ErrAnswered) {
		s.finish(&outcome{Type: "success"})
		return
	}
	s.fail(ctx, err)
}

func (s *stream) finish(o *outcome) {
	s.send(event{Type: "RUN_FINISHED", ThreadID: s.in.ThreadID, RunID: s.in.RunID, Outcome: o})
}

// fail ends the response with an error. The client gets its kind only.
func (s *stream) fail(ctx context.Context, err error) {
	s.Log.ErrorContext(ctx, "agui: a run failed", "thread", s.in.ThreadID, "error", err)

	s.send(event{Type: "RUN_ERROR", Message: "The run failed.", Code: front.Kind(err)})
}

// send sends an event, unless the connection is lost.
func (s *stream) send(e event) {
	data, err := json.Marshal(e)
	s.write(append(append([]byte("data: "), data...), "\n\n"...), err)
}

// write writes and flushes data, unless the connection is lost. It treats err, if not nil, like an error of writing.
func (s *stream) write(data []byte, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.err != nil {
		return
	}
	if err == nil {
		err = s.out.Write(data)
	}
	s.err = err
}

// lost returns the error of the connection.
func (s *stream) lost() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.err
}

// keepAlive writes a comment now and then until stop is called. Without it, proxies may close the connection of a run
// that sends no events for long. Clients ignore comments.
func (s *stream) keepAlive() (stop func()) {
	done, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		beats := time.NewTicker(webguard.Beat)
		defer beats.Stop()
		for {
			select {
			case <-done:
				return
			case <-beats.C:
				s.write([]byte(":\n\n"), nil)
			}
		}
	}()
	return func() {
		// Nothing may be written to the response after the handler has returned.
		close(done)
		<-joined
	}
}
