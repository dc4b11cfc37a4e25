package agui

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// event is an event of the protocol. Each type has only some of the members.
type event struct {
	Type            string   `json:"type"`
	ThreadID        string   `json:"threadId,omitempty"`
	RunID           string   `json:"runId,omitempty"`
	ProtocolVersion string   `json:"protocolVersion,omitempty"`
	MessageID       string   `json:"messageId,omitempty"`
	Role            string   `json:"role,omitempty"`
	Delta           string   `json:"delta,omitempty"`
	ToolCallID      string   `json:"toolCallId,omitempty"`
	ToolCallName    string   `json:"toolCallName,omitempty"`
	ParentMessageID string   `json:"parentMessageId,omitempty"`
	Content         any      `json:"content,omitempty"`  // a string, which may be empty, or a list of parts
	Snapshot        any      `json:"snapshot,omitempty"` // the state
	Messages        any      `json:"messages,omitempty"` // a list of messages, which may be empty
	Outcome         *outcome `json:"outcome,omitempty"`
	Message         string   `json:"message,omitempty"`
	Code            string   `json:"code,omitempty"`
}

// outcome is the outcome of a run.
type outcome struct {
	Type           string      `json:"type"`
	Interrupts     []interrupt `json:"interrupts,omitempty"`
	PendingCallIDs []string    `json:"pendingToolCallIds,omitempty"`
}

// interrupt is a question for approval.
type interrupt struct {
	ID             string         `json:"id"`
	Reason         string         `json:"reason"`
	Message        string         `json:"message,omitempty"`
	ToolCallID     string         `json:"toolCallId,omitempty"`
	ResponseSchema map[string]any `json:"responseSchema"`
	Metadata       map[string]any `json:"metadata,omitempty"`
}

// message is a message in a snapshot.
type message struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`
	Content    any        `json:"content,omitempty"` // a string, which may be empty, or a list of parts
	ToolCalls  []toolCall `json:"toolCalls,omitempty"`
	ToolCallID string     `json:"toolCallId,omitempty"`
	Error      string     `json:"error,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// messageID returns the ID of the message at an index of a conversation: the client's, or one made from the index. An
// index is known before the message exists, so that its first pieces can be sent with the ID. The ID of a message of
// tool results is unused, because each result is sent as a message of its own.
func messageID(n *node.Node, index int) string {
	if id := n.Meta().Get(metaID); id != "" {
		var given string
		if id.Decode(&given) == nil {
			return given
		}
	}
	return numbered(index)
}

// numbered returns the ID of a message without a client's ID. Its prefix distinguishes it from the IDs of clients.
func numbered(index int) string { return fmt.Sprintf("plait-%d", index) }

// callOf returns the ID of a call of a message. index is that of its block.
func callOf(messageID string, index int) string { return fmt.Sprintf("%s/%d", messageID, index) }

// resultOf returns the ID of the message with the result of a call.
func resultOf(callID string) string { return callID + "/result" }

// messageNodes returns the nodes of the messages of a conversation, in order.
func messageNodes(d dag.DAG) []*node.Node {
	var list []*node.Node
	for _, n := range d.Nodes() {
		if _, is := n.Payload().(node.Message); is {
			list = append(list, n)
		}
	}
	return list
}

// messagesOf returns the messages of a conversation.
func messagesOf(d dag.DAG) []message {
	list := []message{}
	var calls []toolCall // of the last message with calls
	for i, n := range messageNodes(d) {
		m, _ := n.Message()
		id := messageID(n, i)

		switch {
		case m.Role == content.Assistant:
			response := assistant(id, m.Blocks)
			if len(response.ToolCalls) > 0 {
				calls = response.ToolCalls
			}
			list = append(list, response)
		case len(m.Blocks.ToolResults()) > 0:
			// A message of results has one for each call, in call order.
			for i, result := range m.Blocks.ToolResults() {
				if i < len(calls) {
					list = append(list, toolMessage(calls[i].ID, result.Content, result.IsError))
				}
			}
		default:
			list = append(list, message{ID: id, Role: "user", Content: contentOf(m.Blocks)})
		}
	}
	return append(list, openResults(d)...)
}

// openResults returns the results of the calls of the last message, while others have none yet.
func openResults(d dag.DAG) (list []message) {
	nodes := messageNodes(d)
	if len(nodes) == 0 || len(d.OpenCalls()) == 0 {
		return nil
	}
	last := len(nodes) - 1
	for _, n := range d.Nodes() {
		e, is := n.Payload().(node.ToolExecution)
		if key, ok := n.Call(); is && ok && key.Message == nodes[last].ID() && !e.State.Unfinished() {
			list = append(list, toolMessage(callOf(messageID(nodes[last], last), e.Index), e.Result, e.IsError))
		}
	}
	return list
}

// hasText reports whether a message of the client, as JSON, has the text of m.
func (m message) hasText(given json.RawMessage) bool {
	var text string
	_ = json.Unmarshal(given, &text) // no text: a client has no content then
	own, _ := m.Content.(string)
	return text == own
}

// isNumbered reports whether an ID is one of numbered.
func isNumbered(id string) bool {
	index, ok := strings.CutPrefix(id, "plait-")
	_, err := strconv.Atoi(index)
	return ok && err == nil
}

// assistant returns a message of the model.
func assistant(id string, blocks content.Blocks) message {
	m := message{ID: id, Role: "assistant"}
	if text := blocks.Text(); text != "" {
		m.Content = text
	}
	for index, block := range blocks.All() {
		if call, is := block.(content.ToolUse); is {
			m.ToolCalls = append(m.ToolCalls, toolCall{callOf(id, index), "function", function{call.Name, string(call.Input)}})
		}
	}
	return m
}

// toolMessage returns the message with the result of a call.
func toolMessage(callID string, blocks content.Blocks, failed bool) message {
	m := message{ID: resultOf(callID), Role: "tool", ToolCallID: callID, Content: contentOf(blocks)}
	if failed {
		m.Error = blocks.Text()
	}
	return m
}

// contentOf returns blocks as a text, or as a list of parts if there are images or documents.
func contentOf(blocks content.Blocks) any {
	parts, plain := []part{}, true
	for _, b := range blocks.All() {
		switch b := b.(type) {
		case content.Text:
			parts = append(parts, part{Type: "text", Text: b.Text})
		case content.Image:
			parts, plain = append(parts, part{Type: "image", Source: sourceOf(b.Source)}), false
		case content.Document:
			parts, plain = append(parts, part{Type: "document", Source: sourceOf(b.Source)}), false
		case content.Thinking, content.ToolUse, content.CutToolUse, content.ToolResult, content.Opaque, content.Unknown:
			// The protocol has no part of a message for these.
		}
	}
	if plain {
		return blocks.Text()
	}
	return parts
}

func sourceOf(s content.Source) *source {
	if s.URL != "" {
		return &source{"url", s.URL, s.MediaType}
	}
	return &source{"data", s.Data, s.MediaType}
}
