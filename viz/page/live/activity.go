package live

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// activity is the content of an event "activity". Absent members have not changed. The package comment has the JSON.
type activity struct {
	State    string  `json:"state,omitempty"`
	Turn     int     `json:"turn,omitempty"`
	Begin    bool    `json:"begin,omitempty"`
	Text     string  `json:"text,omitempty"`
	Thinking string  `json:"thinking,omitempty"`
	Tools    []tool  `json:"tools,omitempty"`
	Tokens   *tokens `json:"tokens,omitempty"`
	Stop     string  `json:"stop,omitempty"`
	Error    *string `json:"error,omitempty"` // "" if the former error is gone

	Paused *[]pausedRun `json:"paused,omitempty"` // all of them
	Origin *origin      `json:"origin,omitempty"`
	CanRun *bool        `json:"canRun,omitempty"`
}

// tool is the known state of a tool call. ID identifies it within the run.
type tool struct {
	ID      string `json:"id"`
	Tool    string `json:"tool"`
	Input   string `json:"input"`
	Started string `json:"started"`
	Note    string `json:"note,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	State   string `json:"state,omitempty"` // of an execution of unknown outcome
}

type tokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

const (
	idle    = "idle"
	running = "running"
)

// maxNote limits the bytes of a running tool's arguments and of its progress.
const maxNote = 4096

// state is the current activity. A new listener gets all of it.
type state struct {
	turn           int
	text, thinking strings.Builder // of the message being streamed
	landed         bool            // the message is in the conversation; its text stays here until the drawing has it
	tools          []tool          // of this turn
	used           content.Usage
	stop           string
	problem        string
}

// all returns the whole state as one activity. s.mu must be held.
func (s *Server) all() activity {
	now, from, canRun := &s.now, s.origin, s.options.Run != nil
	a := activity{
		State: idle, Turn: now.turn, Begin: true, Text: now.text.String(), Thinking: now.thinking.String(), Tools: now.tools,
		Tokens: now.tokens(), Stop: now.stop, Error: s.problems(),
		Paused: s.paused(), Origin: &from, CanRun: &canRun,
	}

	if s.active() {
		a.State = running
	}
	return a
}

func (s *state) tokens() *tokens {
	if s.used == (content.Usage{}) {
		return nil
	}
	return &tokens{Input: s.used.Total() - s.used.Output, Output: s.used.Output}
}

func (s *state) begin() {
	s.text.Reset()
	s.thinking.Reset()
	s.landed = false
}

// Watch returns the events, and shows each before yielding it.
//
//   - The conversation of the run replaces the heads it continues. Other heads stay beside it.
//   - Watch does not wait for browsers.
//   - If several runs are watched at once, the conversations of all are shown. Streamed text and tools are shown for
//     the last one that began.
//   - The sequence can be ranged over once, like that of a run. The page cannot stop a watched run.
func (s *Server) Watch(events iter.Seq2[executor.Event, error]) iter.Seq2[executor.Event, error] {
	return func(yield func(executor.Event, error) bool) {
		w := &watch{Server: s}
		s.mu.Lock()
		s.watches = append(s.watches, w)
		s.mu.Unlock()
		defer w.end()

		failed := func(_ int, err error) { s.report(err.Error()) }
		executor.Tee(events, failed, w.observe)(yield)
	}
}

// watch is one watched run.
type watch struct {
	*Server
	run   dag.DAG      // the run's conversation
	heads []*node.Node // the shown heads of run
}

// end removes the run from those being watched.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches = slices.DeleteFunc(w.watches, func(other *watch) bool { return other == w })
	if w.voice == w {
		w.voice = nil
	}
	w.rest()
}

// rest publishes the state idle if no run is active. s.mu must be held.
func (s *Server) rest() {
	if s.active() {
		return
	}
	s.now.tools = nil
	s.publish("activity", activity{State: idle})
}

// active reports whether a run is active. s.mu must be held.
func (s *Server) active() bool { return len(s.watches) > 0 || s.stop != nil }

// observe updates the page for an event of the run. For an event without a conversation it only updates the activity.
func (w *watch) observe(event executor.Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	switch e := event.(type) {
	case executor.RunStart:
		w.heads = within(w.d.Heads(), e.DAG)
		w.dropPauses(func(p *pause) bool { return len(p.heads(e.DAG)) > 0 }) // the run continues them
		w.voice, w.now = w, state{}
		w.publish("activity", activity{State: running, Begin: true, Error: w.problems()})
		w.place(e.DAG)
	case executor.MessageEnd:
		if e.Node != nil {
			w.place(w.run.WithHeads(e.Node))
		}
	case executor.TurnEnd:
		w.place(e.DAG)
	case executor.End:
		w.place(e.DAG)
		if paused := (*executor.PausedError)(nil); errors.As(err, &paused) {
			w.addPause(newPause(paused.Continuation(), e.DAG))
		}
	}

	// Show streamed text and tools of one run only: the last one that began.
	if w.voice == w || w.voice == nil {
		w.update(event, err)
	}
}

// place replaces the heads of the run's former conversation by those of d.
func (w *watch) place(d dag.DAG) {
	// Put the new heads at the position of the first replaced one. Other heads keep their order.
	fresh := d.Heads()
	var heads []*node.Node
	placed := false
	for _, h := range w.d.Heads() {
		if !slices.ContainsFunc(w.heads, same(h)) {
			heads = append(heads, h)
		} else if !placed {
			heads, placed = append(heads, fresh...), true
		}
	}
	if !placed {
		heads = append(heads, fresh...)
	}

	w.run, w.heads = d, fresh
	next := w.d.WithHeads(heads...)
	if !slices.EqualFunc(next.Heads(), w.d.Heads(), func(a, b *node.Node) bool { return a == b }) {
		w.show(next)
	}
}

// same returns a comparison of a node with n by ID. After a second read of a file, nodes are equal, but not identical.
func same(n *node.Node) func(*node.Node) bool {
	return func(m *node.Node) bool { return m.ID() == n.ID() }
}

// within returns those heads that d contains.
func within(heads []*node.Node, d dag.DAG) []*node.Node {
	contains := d.Contains
	if len(heads) > 8 { // a search of d for each head would be slow
		nodes := map[node.ID]bool{}
		for _, n := range d.Nodes() {
			nodes[n.ID()] = true
		}
		contains = func(n *node.Node) bool { return nodes[n.ID()] }
	}
	return slices.DeleteFunc(heads, func(h *node.Node) bool { return !contains(h) })
}

// update changes the state by an event, and publishes the change. w.mu must be held.
func (w *watch) update(event executor.Event, err error) {
	now := &w.now
	switch e := event.(type) {
	case executor.TurnStart:
		now.turn, now.tools = e.Turn, nil
		w.publish("activity", activity{Turn: e.Turn})

	case executor.MessageStart:
		now.begin()
		w.publish("activity", activity{Begin: true})
	case executor.Retry: // the text so far is void: begin again
		now.begin()
		w.publish("activity", activity{Begin: true})
	case executor.MessageDelta:
		if d, ok := e.Event.(api.Delta); ok {
			w.delta(d)
		}
	case executor.MessageEnd:
		// The streamed text stays on the page until the node with it is drawn. Without a drawing to come, it goes now.
		now.landed = true
		if e.Node == nil || !w.undrawn || len(w.listeners) == 0 {
			w.drawn()
		}

	case executor.ToolStart:
		w.tool(tool{
			ID: callID(e.Turn, e.Ran.Index), Tool: e.Ran.Name, Input: safetext.Cut(string(e.Ran.Input), maxNote),
			Started: time.Now().UTC().Format(time.RFC3339Nano),
		})
	case executor.ToolUpdate:
		w.note(callID(e.Turn, e.Call.Index), func(t *tool) { t.Note = safetext.Cut(e.Content.Text(), maxNote) })
	case executor.Child:
		if text := inside(e); text != "" {
			w.note(callID(e.Turn, e.Path[0].Index), func(t *tool) { t.Note = text })
		}
	case executor.ToolEnd:
		w.note(callID(e.Turn, e.Execution.Index), func(t *tool) {
			t.Ended, t.Failed, t.State = true, e.Execution.IsError, describe.State(e.Execution.State)
		})

	case executor.TurnEnd:
		now.used = now.used.Plus(e.Usage).Plus(e.ToolUsage)
		w.publish("activity", activity{Tokens: now.tokens()})
	case executor.Paused:
		now.stop = string(e.Continuation.Reason)
	case executor.End:
		w.over(e, err)
	}
}

// over publishes the end of the run, with its stop reason or error.
func (w *watch) over(e executor.End, err error) {
	if e.Stop.Reason != "" {
		w.now.stop = string(e.Stop.Reason)
	}

	// A pause is shown by its open calls, not as an error.
	w.now.begin()
	last := activity{Begin: true, Stop: w.now.stop}
	if err != nil && !errors.Is(err, executor.ErrPaused) {
		w.now.problem = err.Error()
		last.Error = w.problems()
	}
	w.publish("activity", last)
}

func (w *watch) delta(d api.Delta) {
	switch d.Kind {
	case api.DeltaText:
		w.now.text.WriteString(d.Text)
		w.publish("activity", activity{Text: d.Text})
	case api.DeltaThinking:
		w.now.thinking.WriteString(d.Text)
		w.publish("activity", activity{Thinking: d.Text})
	}
}

// drawn clears the streamed text once its message is drawn as a node. s.mu must be held.
func (s *Server) drawn() {
	if s.now.landed {
		s.now.begin()
		s.publish("activity", activity{Begin: true})
	}
}

func (w *watch) tool(t tool) {
	w.now.tools = append(slices.Clip(w.now.tools), t)
	w.publish("activity", activity{Tools: []tool{t}})
}

// note changes the state of a call and publishes it.
func (w *watch) note(id string, change func(*tool)) {
	i := slices.IndexFunc(w.now.tools, func(t tool) bool { return t.ID == id })
	if i < 0 {
		return
	}
	change(&w.now.tools[i])
	w.publish("activity", activity{Tools: []tool{w.now.tools[i]}})
}

func callID(turn, index int) string { return fmt.Sprintf("%d.%d", turn, index) }

// inside returns the current activity of a sub-agent as text, or "" for events that are not shown.
func inside(e executor.Child) string {
	var path []string
	for _, c := range e.Path[1:] {
		path = append(path, c.Name)
	}

	switch inner := e.Event.(type) {
	case executor.TurnStart:
		path = append(path, fmt.Sprintf("turn %d", inner.Turn))
	case executor.ToolStart:
		path = append(path, "calls "+inner.Ran.Name)
	default:
		return ""
	}
	return safetext.Cut(strings.Join(path, " › "), maxNote)
}
