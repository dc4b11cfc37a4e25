package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// Paused is a paused run for [Server.SetPaused].
type Paused struct {
	// Continuation names the calls that wait. The conversation has everything else about them.
	Continuation executor.Continuation
	// Reply receives each answer at once, for a run that another process resumes, as package durable does. It may be
	// called for several calls at the same time. An error is shown to the answering user, and the call stays open.
	// Defaults to nil: Options.Resume resumes the run when all calls are answered.
	Reply func(ctx context.Context, reply executor.Reply) error
}

// pause is a paused run. The server's mu guards it.
type pause struct {
	executor.Continuation
	pending []dag.Pending             // as shown
	names   map[node.CallKey]string   // of the sub-agents in the paths
	reply   sender                    // nil for Options.Resume
	replies map[string]executor.Reply // by the key of the call
	answers map[string]string         // the same in words, for people
}

// pausedRun is a pause in an event "activity".
type pausedRun struct {
	ID    string     `json:"id"`
	Node  node.ID    `json:"node"`
	Takes bool       `json:"takes,omitempty"` // it takes answers
	Calls []openCall `json:"calls"`
}

// openCall is a call of a pause.
type openCall struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	Input  string `json:"input"`
	Path   string `json:"path,omitempty"` // of the sub-agent
	Reason string `json:"reason,omitempty"`
	Asks   asks   `json:"asks,omitempty"`
	Doubt  bool   `json:"doubt,omitempty"` // it was started before, and its outcome is unknown
	Answer string `json:"answer,omitempty"`
}

// asks is the kind of answer a call needs. It is "" for a call that only waits for decisions about others.
type asks string

const (
	asksApproval asks = "approval"
	asksResult   asks = "result"
)

// asks returns the kind of answer a call needs.
func (p *pause) asks(call dag.Pending) asks {
	switch {
	case call.Approval:
		return asksApproval
	case p.Reason == content.StopResults:
		return asksResult
	}
	return ""
}

// complete reports whether all calls that need an answer have one.
func (p *pause) complete() bool {
	return !slices.ContainsFunc(p.pending, func(call dag.Pending) bool {
		return p.asks(call) != "" && p.answers[call.Key.String()] == ""
	})
}

// heads returns the heads of d from which the run continues: the message with the open calls, and executions of its
// calls.
func (p *pause) heads(d dag.DAG) []*node.Node {
	var heads []*node.Node
	for _, h := range d.Heads() {
		if at := lineage.CallerOf(h).ID(); slices.ContainsFunc(p.pending, func(call dag.Pending) bool { return messageOf(call) == at }) {
			heads = append(heads, h)
		}
	}
	return heads
}

// messageOf returns the message of the run itself that leads to the call.
func messageOf(call dag.Pending) node.ID {
	if len(call.Path) > 0 {
		return call.Path[0].Message
	}
	return call.Key.Message
}

// shown returns the pause for the page.
func (s *Server) shown(p *pause) pausedRun {
	run := pausedRun{ID: p.ID, Node: messageOf(p.pending[0]), Takes: s.takesAnswers(p)}
	for _, c := range p.pending {
		var path []string
		for _, call := range c.Path {
			path = append(path, p.names[call])
		}
		run.Calls = append(run.Calls, openCall{
			ID: c.Key.String(), Tool: c.Call.Name, Input: string(c.Call.Input), Path: strings.Join(path, " › "), Reason: c.Note,
			Asks: p.asks(c), Doubt: !c.Started.IsZero(), Answer: p.answers[c.Key.String()],
		})
	}
	return run
}

// takesAnswers reports whether answers to the calls of a paused run are accepted.
func (s *Server) takesAnswers(p *pause) bool { return p.reply != nil || s.options.Resume != nil }

// SetPaused shows the open calls of runs that paused before they were watched, for example in a conversation read from
// a file. It replaces all paused runs on the page. Watched runs need no call: a pause appears by itself.
//
// A run is shown only while its calls are open at the heads of the conversation: call Set first. With Paused.Reply or
// Options.Resume, a user of the page can answer the calls.
func (s *Server) SetPaused(list ...Paused) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var pauses []*pause
	before := s.paused()
	for _, given := range list {
		p := newPause(given.Continuation, s.d)
		if i := slices.IndexFunc(s.pauses, func(old *pause) bool { return old.ID == p.ID }); i >= 0 {
			p.replies, p.answers = s.pauses[i].replies, s.pauses[i].answers
		}
		p.reply = given.Reply
		if len(p.pending) > 0 {
			pauses = append(pauses, p)
		}
	}

	s.pauses = pauses
	if !reflect.DeepEqual(before, s.paused()) {
		s.publishPauses()
	}
}

// newPause returns the pause of the calls of c that wait in d.
func newPause(c executor.Continuation, d dag.DAG) *pause {
	p := &pause{
		Continuation: c, names: map[node.CallKey]string{}, replies: map[string]executor.Reply{}, answers: map[string]string{},
	}
	for _, call := range d.Pending() {
		if slices.Contains(c.Calls, call.Key) {
			p.pending = append(p.pending, call)
		}
	}

	// The names of the sub-agents are in the executions on the way.
	nodes := d.Heads()
	for len(nodes) > 0 {
		n := nodes[0]
		nodes = nodes[1:]
		if e, is := n.Payload().(node.ToolExecution); is && e.State.Paused() && e.Child.Len() > 0 {
			key, _ := n.Call()
			p.names[key] = cmp.Or(e.Ran.Tool, e.Tool)
			nodes = append(nodes, e.Child.Slice()...)
		}
	}
	return p
}

// publishPauses publishes the paused runs. s.mu must be held.
func (s *Server) publishPauses() { s.publish("activity", activity{Paused: s.paused()}) }

// paused returns the paused runs for the page. s.mu must be held.
func (s *Server) paused() *[]pausedRun {
	list := []pausedRun{}
	for _, p := range s.pauses {
		list = append(list, s.shown(p))
	}
	return &list
}

// addPause shows a paused run. s.mu must be held.
func (s *Server) addPause(p *pause) {
	s.pauses = append(s.pauses, p)
	s.publishPauses()
}

// dropPauses removes those paused runs for which drop returns true. s.mu must be held.
func (s *Server) dropPauses(drop func(*pause) bool) {
	before := len(s.pauses)
	s.pauses = slices.DeleteFunc(s.pauses, drop)
	if len(s.pauses) < before {
		s.publishPauses()
	}
}

// errAnswered is the code of the refusal for a late answer.
const errAnswered = "answered"

// reply accepts the answer to a call. Only the first answer counts.
func (s *Server) reply(ctx context.Context, id string, reply executor.Reply, what asks, words string) *refusal {
	call := reply.Call.String()

	// Without a function to send the answer, it is collected under the same lock as the claim.
	s.mu.Lock()
	p, no := s.claim(id, call, what, words)
	if no != nil || p.reply == nil {
		defer s.mu.Unlock()
		if no == nil {
			s.collect(p, call, reply)
		}
		return no
	}
	send := p.reply
	s.mu.Unlock()

	// The call is claimed: until send returns, other answers are refused.
	if err := attempt("the answer", func() error { return send(ctx, reply) }); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(p.answers, call)
		s.publishPauses()
		return refuse(http.StatusConflict, "not_accepted", err.Error())
	}
	return nil
}

// sender sends an answer to the process that resumes the run. It is nil if this server does.
type sender func(ctx context.Context, reply executor.Reply) error

// claim marks a call as answered, or refuses the answer. s.mu must be held.
func (s *Server) claim(id, call string, what asks, words string) (*pause, *refusal) {
	i := slices.IndexFunc(s.pauses, func(p *pause) bool { return p.ID == id })
	switch {
	case s.closed:
		return nil, refuse(http.StatusServiceUnavailable, "closed", "the server is closed")
	case i < 0:
		return nil, refuse(http.StatusConflict, errAnswered,
			"these calls no longer wait: they were answered elsewhere, or the conversation was continued without them")
	}

	p := s.pauses[i]
	switch {
	case !s.takesAnswers(p):
		return nil, refuse(http.StatusForbidden, "cannot_answer",
			"answering is off: the program that serves this page does not allow it")
	case s.active() && p.reply == nil:
		return nil, refuse(http.StatusConflict, "running", "another run is in progress")
	}

	at := slices.IndexFunc(p.pending, func(c dag.Pending) bool { return c.Key.String() == call })
	switch {
	case at < 0:
		return nil, refuse(http.StatusNotFound, "unknown_call", fmt.Sprintf("no call %.80q waits", call))
	case p.answers[call] != "":
		return nil, refuse(http.StatusConflict, errAnswered, "this call was answered before: "+p.answers[call])
	case p.asks(p.pending[at]) != what:
		return nil, refuse(http.StatusBadRequest, "bad_reply", "the call waits for "+waitsFor(p.asks(p.pending[at])))
	}

	// All pages show the answer at once. reply removes it again if it is not accepted.
	p.answers[call] = words
	s.publishPauses()
	return p, nil
}

func waitsFor(what asks) string {
	switch what {
	case asksApproval:
		return "approval"
	case asksResult:
		return "its result"
	}
	return "the decisions about other calls"
}

// collect keeps the answer to a claimed call. With the last one, the run continues in the background and ends with the
// server. s.mu must have been held since the claim: otherwise a run might have begun in between, and a claimed answer
// might be lost.
func (s *Server) collect(p *pause, call string, reply executor.Reply) {
	p.replies[call] = reply
	if !p.complete() {
		return
	}

	// The run begins at these heads alone: other heads of the conversation are not its own.
	before := p.heads(s.d)
	s.dropPauses(func(other *pause) bool { return other == p })
	d, replies := s.d.WithHeads(before...), slices.Collect(maps.Values(p.replies))
	s.start(func(ctx context.Context) runEvents { return s.options.Resume(ctx, d, replies...) },
		func(got outcome) { s.refused(p, before, got) })
}

// refused shows the calls again, without answers, if the run could not be resumed and nothing was executed.
func (s *Server) refused(p *pause, before []*node.Node, got outcome) {
	if got.err == nil || got.executed || errors.Is(got.err, executor.ErrPaused) ||
		errors.Is(got.err, executor.ErrStale) || errors.Is(got.err, executor.ErrUnknownCall) {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	// If the conversation was continued otherwise, the calls are no longer open.
	if slices.EqualFunc(before, p.heads(s.d), func(a, b *node.Node) bool { return a.ID() == b.ID() }) {
		s.addPause(newPause(p.Continuation, s.d))
	}
}

// pending returns a call of a pause. For an unknown call, it returns one that nothing waits for.
func (s *Server) pending(id, call string) dag.Pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pauses {
		if i := slices.IndexFunc(p.pending, func(c dag.Pending) bool { return c.Key.String() == call }); p.ID == id && i >= 0 {
			return p.pending[i]
		}
	}
	key, err := node.ParseCallKey(call)
	if err != nil {
		key.Message = node.ID{1}
	}
	return dag.Pending{Key: key}
}

// postAnswer accepts an answer to an open call.
func (s *Server) postAnswer(w http.ResponseWriter, r *http.Request) *refusal {
	var asked struct {
		Pause, Call string
		Reply       json.RawMessage
	}
	if no := read(w, r, &asked); no != nil {
		return no
	}

	// The pause is what the page has shown.
	reply, err := executor.ReplyTo(s.pending(asked.Pause, asked.Call), asked.Reply)
	if err != nil {
		return refuse(http.StatusBadRequest, "bad_reply", err.Error())
	}
	var kind struct {
		Approve *bool
		Reason  string
		IsError bool `json:"is_error"`
	}
	_ = json.Unmarshal(asked.Reply, &kind) // valid: it was just read as a reply

	// A decision has the member "approve". Anything else is a result.
	what, words := asksResult, "a result was given"
	switch {
	case kind.Approve == nil && kind.IsError:
		words = "it was reported as failed"
	case kind.Approve == nil:
	case *kind.Approve:
		what, words = asksApproval, "approved"
	case kind.Reason != "":
		what, words = asksApproval, "denied: "+kind.Reason
	default:
		what, words = asksApproval, "denied"
	}

	if no := s.reply(r.Context(), asked.Pause, reply, what, words); no != nil {
		return no
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
