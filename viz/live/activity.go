package live

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// activity is what an event "activity" says: every member may be absent, which means that nothing is new there. The package comment has
// its JSON.
type activity struct {
	State    string  `json:"state,omitempty"`
	Turn     int     `json:"turn,omitempty"`
	Begin    bool    `json:"begin,omitempty"`
	Text     string  `json:"text,omitempty"`
	Thinking string  `json:"thinking,omitempty"`
	Tools    []tool  `json:"tools,omitempty"`
	Tokens   *tokens `json:"tokens,omitempty"`
	Stop     string  `json:"stop,omitempty"`
	Error    *string `json:"error,omitempty"` // "" where there is none any more
}

// tool is a tool call, as far as it is known. Its id tells it from all others.
type tool struct {
	ID      string `json:"id"`
	Tool    string `json:"tool"`
	Input   string `json:"input"`
	Started string `json:"started"`
	Note    string `json:"note,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
}

type tokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

const (
	idle    = "idle"
	running = "running"
)

// maxNote is how much of a tool's arguments and progress is shown while it runs.
const maxNote = 4096

// state is what is going on, for those who begin to listen now.
type state struct {
	turn           int
	text, thinking strings.Builder // of the message that is being written
	landed         bool            // the message is in the conversation, and stays until that is drawn
	tools          []tool          // of this turn
	used           content.Usage
	stop           string
	problem        string
}

// all is the whole state as one activity. It is called with mu.
func (s *Server) all() activity {
	now := &s.now
	a := activity{
		State: idle, Turn: now.turn, Begin: true, Text: now.text.String(), Thinking: now.thinking.String(), Tools: now.tools,
		Tokens: now.tokens(), Stop: now.stop, Error: s.problems(),
	}
	if s.goesOn() {
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

// Watch returns the events, and shows each before it is yielded: the conversation takes the place of the heads that it goes on from, and
// other heads stay beside it. It does not wait for whoever looks. Of several runs that are watched at once, the conversations of all are
// shown, and the streamed text and the tools of the one that began last.
//
// The sequence can be ranged over once, as that of a run. A run that is watched cannot be stopped from the page.
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

// watch is one run that is watched.
type watch struct {
	*Server
	run   dag.DAG      // the run's conversation
	heads []*node.Node // its heads, as they are shown
}

// end says that the run is over.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches = slices.DeleteFunc(w.watches, func(other *watch) bool { return other == w })
	if w.voice == w {
		w.voice = nil
	}
	w.rest()
}

// rest says that nothing goes on, where nothing does. It is called with mu.
func (s *Server) rest() {
	if s.goesOn() {
		return
	}
	s.now.tools = nil
	s.publish("activity", activity{State: idle})
}

// goesOn reports whether a run does. It is called with mu.
func (s *Server) goesOn() bool { return len(s.watches) > 0 || s.stop != nil }

// observe takes in an event of the run.
func (w *watch) observe(event executor.Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case executor.RunStart:
		w.heads = within(w.d.Heads(), e.DAG)
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
	}
	if w.voice == w || w.voice == nil {
		w.tell(event, err)
	}
}

// place shows the run's conversation in the place of what it was before.
func (w *watch) place(d dag.DAG) {
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
	if next := w.d.WithHeads(heads...); !slices.EqualFunc(next.Heads(), w.d.Heads(), func(a, b *node.Node) bool { return a == b }) {
		w.show(next)
	}
}

// same reports whether a node is n: one that was read from a file again is.
func same(n *node.Node) func(*node.Node) bool {
	return func(m *node.Node) bool { return m.ID() == n.ID() }
}

// within returns those of the heads that are in d.
func within(heads []*node.Node, d dag.DAG) []*node.Node {
	contains := d.Contains
	if len(heads) > 8 { // looking for each would take its time
		nodes := map[node.ID]bool{}
		for _, n := range d.Nodes() {
			nodes[n.ID()] = true
		}
		contains = func(n *node.Node) bool { return nodes[n.ID()] }
	}
	return slices.DeleteFunc(heads, func(h *node.Node) bool { return !contains(h) })
}

// tell says what the event says of what is going on.
func (w *watch) tell(event executor.Event, err error) {
	now := &w.now
	switch e := event.(type) {
	case executor.TurnStart:
		now.turn, now.tools = e.Turn, nil
		w.publish("activity", activity{Turn: e.Turn})
	case executor.MessageStart:
		now.begin()
		w.publish("activity", activity{Begin: true})
	case executor.Retry:
		now.begin()
		w.publish("activity", activity{Begin: true})
	case executor.MessageDelta:
		if d, ok := e.Event.(api.Delta); ok {
			w.delta(d)
		}
	case executor.MessageEnd:
		now.landed = true
		if e.Node == nil || !w.undrawn || len(w.listeners) == 0 {
			w.drawn()
		}
	case executor.ToolStart:
		w.tool(tool{
			ID: callID(e.Turn, e.Ran.Index), Tool: e.Ran.Name, Input: short(string(e.Ran.Input)), Started: time.Now().UTC().Format(time.RFC3339Nano),
		})
	case executor.ToolUpdate:
		w.note(callID(e.Turn, e.Call.Index), func(t *tool) { t.Note = short(e.Content.Text()) })
	case executor.Child:
		if said := inside(e); said != "" {
			w.note(callID(e.Turn, e.Path[0].Index), func(t *tool) { t.Note = said })
		}
	case executor.ToolEnd:
		w.note(callID(e.Turn, e.Execution.Index), func(t *tool) { t.Ended, t.Failed = true, e.Execution.IsError })
	case executor.TurnEnd:
		now.used = now.used.Plus(e.Usage).Plus(e.ToolUsage)
		w.publish("activity", activity{Tokens: now.tokens()})
	case executor.Paused:
		now.stop = string(e.Continuation.Reason)
	case executor.End:
		w.over(e, err)
	}
}

// over tells why the run ended.
func (w *watch) over(e executor.End, err error) {
	if e.Stop.Reason != "" {
		w.now.stop = string(e.Stop.Reason)
	}
	w.now.begin()
	said := activity{Begin: true, Stop: w.now.stop}
	if err != nil {
		w.now.problem = err.Error()
		said.Error = w.problems()
	}
	w.publish("activity", said)
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

// drawn forgets the streamed text of a message that the page can see in the conversation now. It is called with mu.
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

// note changes what is known of a call.
func (w *watch) note(id string, change func(*tool)) {
	i := slices.IndexFunc(w.now.tools, func(t tool) bool { return t.ID == id })
	if i < 0 {
		return
	}
	change(&w.now.tools[i])
	w.publish("activity", activity{Tools: []tool{w.now.tools[i]}})
}

func callID(turn, index int) string { return fmt.Sprintf("%d.%d", turn, index) }

// inside is what a run inside a call is doing; "" where that is not worth a word.
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
	return short(strings.Join(path, " › "))
}

// short is s, cut where it is too long to be shown beside a call that runs.
func short(s string) string {
	if len(s) <= maxNote {
		return s
	}
	return strings.ToValidUTF8(s[:maxNote], "") + "…"
}
