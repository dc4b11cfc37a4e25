package agui

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// speaker is the source of messages and calls: the agent of the thread, or a sub-agent.
type speaker struct {
	*stream
	run     string // the ID of the sub-agent's run, equal to the ID of its call; "" for the agent of the thread
	count   int    // the number of messages in its conversation
	calling string // the ID of its last message with calls
	text    bool   // a text was started, for the message with the ID next
	think   bool   // thinking was started

	suspended bool // the run has paused; its End follows
}

// say sends an event of the speaker.
func (s *speaker) say(e event) {
	e.SubagentRunID = s.run
	s.send(e)
}

// named returns the ID of a message of the speaker. The ID of a sub-agent's message begins with the ID of its run.
func (s *speaker) named(id string) string {
	if s.run == "" {
		return id
	}
	return s.run + "/" + id
}

// next returns the ID of the next message.
func (s *speaker) next() string { return s.named(numbered(s.count)) }

// delta sends a piece of text or thinking.
func (s *speaker) delta(e api.Event) {
	d, ok := e.(api.Delta)
	if !ok || d.Text == "" {
		return
	}
	switch d.Kind {
	case api.DeltaText:
		s.endThinking()

		// A message starts with its first piece, because a response may have no text.
		if !s.text {
			s.text = true
			s.say(event{Type: "TEXT_MESSAGE_START", MessageID: s.next(), Role: "assistant"})
		}
		s.say(event{Type: "TEXT_MESSAGE_CONTENT", MessageID: s.next(), Delta: d.Text})
	case api.DeltaThinking:
		if !s.think {
			s.think = true
			s.say(event{Type: "REASONING_START", MessageID: s.thought()})
			s.say(event{Type: "REASONING_MESSAGE_START", MessageID: s.thought(), Role: "reasoning"})
		}
		s.say(event{Type: "REASONING_MESSAGE_CONTENT", MessageID: s.thought(), Delta: d.Text})
	}
}

// thought returns the ID of the next message's thinking.
func (s *speaker) thought() string { return s.next() + "/reasoning" }

// close ends the text and the thinking that were started.
func (s *speaker) close() {
	s.endThinking()
	if s.text {
		s.text = false
		s.say(event{Type: "TEXT_MESSAGE_END", MessageID: s.next()})
	}
}

func (s *speaker) endThinking() {
	if s.think {
		s.think = false
		s.say(event{Type: "REASONING_MESSAGE_END", MessageID: s.thought()})
		s.say(event{Type: "REASONING_END", MessageID: s.thought()})
	}
}

// messageEnd ends a message, and sends its calls. A text that was not streamed is sent as a whole.
func (s *speaker) messageEnd(n *node.Node) {
	if n == nil {
		s.close()
		return
	}

	// A provider that does not stream sends no deltas.
	m, _ := n.Message()
	id := s.next()
	if text := m.Blocks.Text(); m.Role == content.Assistant && text != "" && !s.text {
		s.delta(api.Delta{Kind: api.DeltaText, Text: text})
	}
	s.close()
	s.count++

	// A pending call names the node of its message: see callID.
	if s.run == "" {
		id = s.keep(n, m)
	}
	for index, block := range m.Blocks.All() {
		call, is := block.(content.ToolUse)
		if !is {
			continue
		}
		s.calling = id
		callID := callOf(id, index)
		s.say(event{Type: "TOOL_CALL_START", ToolCallID: callID, ToolCallName: call.Name, ParentMessageID: id})
		if call.Input != "" {
			s.say(event{Type: "TOOL_CALL_ARGS", ToolCallID: callID, Delta: string(call.Input)})
		}
		s.say(event{Type: "TOOL_CALL_END", ToolCallID: callID})
	}
}

// keep notes a message of the thread, and returns its ID. A message of the user that the client lacks is sent: it came
// from elsewhere.
func (s *stream) keep(n *node.Node, m node.Message) string {
	id := messageID(n, s.main.count-1)
	s.ids[n.ID()] = id
	switch {
	case m.Role == content.Assistant:
		s.shown = append(s.shown, assistant(id, m.Blocks))
	case len(m.Blocks.ToolResults()) == 0:
		s.shown = append(s.shown, message{ID: id, Role: "user", Content: contentOf(m.Blocks)})
		_, own := s.own[id]
		delete(s.own, id)
		if !own {
			s.snapshot()
		}
	}
	return id
}

// result sends the result of a call, unless it came from the client.
func (s *speaker) result(e node.ToolExecution) {
	id := callOf(s.calling, e.Index)
	if s.run == "" {
		s.shown = append(s.shown, toolMessage(id, e.Result, e.IsError))
	}
	if s.given[id] {
		return
	}
	s.say(event{
		Type: "TOOL_CALL_RESULT", MessageID: resultOf(id), ToolCallID: id, Role: "tool", Content: contentOf(e.Result),
	})
}

// child sends an event of a sub-agent, if the program wants it.
func (s *stream) child(e executor.Child) {
	if !s.SubAgents {
		return
	}
	key := pathKey(keysOf(e.Path))
	a := s.agents[key]
	if start, ok := e.Event.(executor.RunStart); ok && a == nil {
		a = s.startAgent(e.Path, start)
	}
	if a == nil {
		return // the run was over before this request
	}

	switch inner := e.Event.(type) {
	case executor.MessageDelta:
		a.delta(inner.Event)
	case executor.Retry:
		a.close()
		a.count++ // the pieces of the first attempt stay a message of their own
	case executor.MessageEnd:
		a.messageEnd(inner.Node)
	case executor.ToolEnd:
		a.result(inner.Execution)
	case executor.Paused:
		a.close()
		a.suspended = true // it may continue in this response: see suspend
	case executor.End:
		if a.suspended {
			a.suspended = false
			return
		}
		a.end(inner)
		delete(s.agents, key) // the call of another sub-agent may have the same path later
	}
}

// startAgent sends the start of a sub-agent's run, new or resumed. It returns nil if the parent is not shown.
func (s *stream) startAgent(path []executor.Call, start executor.RunStart) *speaker {
	parent, call := s.main, path[len(path)-1]
	if len(path) > 1 {
		if parent = s.agents[pathKey(keysOf(path[:len(path)-1]))]; parent == nil {
			return nil
		}
	}

	// The ID of the call is the same in each request, so that results find their calls after a pause.
	a := &speaker{stream: s, run: callOf(parent.calling, call.Index)}
	for i, n := range messageNodes(start.DAG) {
		a.count = i + 1
		if m, _ := n.Message(); len(m.Blocks.ToolUses()) > 0 {
			a.calling = a.named(numbered(i))
		}
	}

	a.say(event{
		Type: "SUBAGENT_STARTED", Name: call.Name, ParentSubagent: parent.run, ParentMessageID: parent.calling,
		ParentCallID: a.run,
	})
	s.agents[pathKey(keysOf(path))] = a
	return a
}

// end sends the end of a sub-agent's run. The text of an error is left out: the parent sends it as the call's result.
func (s *speaker) end(e executor.End) {
	s.close()
	if e.Stop.Reason == content.StopError {
		s.say(event{Type: "SUBAGENT_ERROR", Message: "The sub-agent failed."})
		return
	}
	s.say(event{Type: "SUBAGENT_FINISHED", Outcome: &outcome{Type: "success"}})
}

// suspend sends the end of the paused sub-agents when the response ends, each with the interrupts of its own calls.
// Inner sub-agents come first.
func (s *stream) suspend(pending []dag.Pending) {
	keys := slices.SortedFunc(maps.Keys(s.agents), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
	})
	for _, key := range keys {
		o := &outcome{Type: "suspended"}
		for _, p := range pending {
			if pathKey(p.Path) == key {
				o.InterruptIDs = append(o.InterruptIDs, interruptID(p))
			}
		}
		s.agents[key].close()
		s.agents[key].say(event{Type: "SUBAGENT_FINISHED", Outcome: o})
	}
	clear(s.agents)
}

// pathKey names the sub-agent that a path leads to.
func pathKey(path []node.CallKey) string {
	var key strings.Builder
	for _, call := range path {
		key.WriteString("/" + call.String())
	}
	return key.String()
}

// keysOf returns the keys of the calls in a path.
func keysOf(path []executor.Call) []node.CallKey {
	keys := make([]node.CallKey, len(path))
	for i, call := range path {
		keys[i] = call.Key()
	}
	return keys
}
