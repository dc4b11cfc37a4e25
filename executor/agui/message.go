package agui

import (
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// speech is what was sent of the next message.
type speech struct {
	count   int    // the number of messages in the conversation
	calling string // the ID of the last message with calls
	text    bool   // a text was started, for the message with the ID next
	think   bool   // thinking was started
}

// next returns the ID of the next message.
func (s *speech) next() string { return numbered(s.count) }

// delta sends a piece of text or thinking.
func (s *stream) delta(e api.Event) {
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
			s.send(event{Type: "TEXT_MESSAGE_START", MessageID: s.next(), Role: "assistant"})
		}
		s.send(event{Type: "TEXT_MESSAGE_CONTENT", MessageID: s.next(), Delta: d.Text})
	case api.DeltaThinking:
		if !s.think {
			s.think = true
			s.send(event{Type: "REASONING_START", MessageID: s.thought()})
			s.send(event{Type: "REASONING_MESSAGE_START", MessageID: s.thought(), Role: "reasoning"})
		}
		s.send(event{Type: "REASONING_MESSAGE_CONTENT", MessageID: s.thought(), Delta: d.Text})
	}
}

// thought returns the ID of the next message's thinking.
func (s *speech) thought() string { return s.next() + "/reasoning" }

// close ends the text and the thinking that were started.
func (s *stream) close() {
	s.endThinking()
	if s.text {
		s.text = false
		s.send(event{Type: "TEXT_MESSAGE_END", MessageID: s.next()})
	}
}

func (s *stream) endThinking() {
	if s.think {
		s.think = false
		s.send(event{Type: "REASONING_MESSAGE_END", MessageID: s.thought()})
		s.send(event{Type: "REASONING_END", MessageID: s.thought()})
	}
}

// messageEnd ends a message, and sends its calls. A text that was not streamed is sent as a whole.
func (s *stream) messageEnd(n *node.Node) {
	if n == nil {
		s.close()
		return
	}

	// A provider that does not stream sends no deltas.
	m, _ := n.Message()
	if text := m.Blocks.Text(); m.Role == content.Assistant && text != "" && !s.text {
		s.delta(api.Delta{Kind: api.DeltaText, Text: text})
	}
	s.close()
	s.count++

	// A pending call names the node of its message: see callID.
	id := s.keep(n, m)
	for index, block := range m.Blocks.All() {
		call, is := block.(content.ToolUse)
		if !is {
			continue
		}
		s.calling = id
		callID := callOf(id, index)
		s.send(event{Type: "TOOL_CALL_START", ToolCallID: callID, ToolCallName: call.Name, ParentMessageID: id})
		if call.Input != "" {
			s.send(event{Type: "TOOL_CALL_ARGS", ToolCallID: callID, Delta: string(call.Input)})
		}
		s.send(event{Type: "TOOL_CALL_END", ToolCallID: callID})
	}
}

// keep notes a message of the thread, and returns its ID. A message of the user that the client lacks is sent: it came
// from elsewhere.
func (s *stream) keep(n *node.Node, m node.Message) string {
	id := messageID(n, s.count-1)
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
func (s *stream) result(e node.ToolExecution) {
	id := callOf(s.calling, e.Index)
	s.shown = append(s.shown, toolMessage(id, e.Result, e.IsError))
	if s.given[id] {
		return
	}
	s.send(event{
		Type: "TOOL_CALL_RESULT", MessageID: resultOf(id), ToolCallID: id, Role: "tool", Content: contentOf(e.Result),
	})
}
