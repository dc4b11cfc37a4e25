package otel

import (
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// message is a message in the form of the conventions.
type message struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason,omitempty"`
}

// part is a part of a message or of a system prompt. Each type has only some of the members.
type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  any             `json:"response,omitempty"`
	MIMEType  string          `json:"mime_type,omitempty"`
	URI       string          `json:"uri,omitempty"`
}

// tool is the declaration of a tool.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// requestContent returns the system prompts, the messages and the declared tools of a request.
func requestContent(req api.Request) []attribute.KeyValue {
	var attributes []attribute.KeyValue
	if len(req.System) > 0 {
		var system []part
		for _, text := range req.System {
			system = append(system, part{Type: "text", Content: text})
		}
		attributes = append(attributes, encoded(semconv.GenAISystemInstructionsKey, system))
	}

	var messages []message
	for _, m := range req.Messages {
		messages = append(messages, messageOf(m.Role, m.Blocks))
	}
	attributes = append(attributes, encoded(semconv.GenAIInputMessagesKey, messages))

	if len(req.Tools) > 0 {
		var tools []tool
		for _, t := range req.Tools {
			tools = append(tools, tool{"function", t.Name, t.Description, raw(t.Schema)})
		}
		attributes = append(attributes, encoded(semconv.GenAIToolDefinitionsKey, tools))
	}
	return attributes
}

// answerContent returns a model's message.
func answerContent(m node.Message) attribute.KeyValue {
	answer := messageOf(m.Role, m.Blocks)
	answer.FinishReason = finishReason(m.Answer.Stop)
	return encoded(semconv.GenAIOutputMessagesKey, []message{answer})
}

// resultContent returns the result of a tool.
func resultContent(result content.Blocks) attribute.KeyValue {
	return encoded(semconv.GenAIToolCallResultKey, responseOf(result))
}

// encoded returns a value as JSON text, a form that every collector supports.
func encoded(key attribute.Key, value any) attribute.KeyValue {
	data, err := json.Marshal(value)
	if err != nil {
		return key.String("")
	}
	return key.String(string(data))
}

func messageOf(role content.Role, blocks content.Blocks) message {
	m := message{Role: string(role), Parts: []part{}}
	for _, b := range blocks.All() {
		p := partOf(b)
		if p.Type == "tool_call_response" {
			m.Role = "tool"
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

// partOf returns a block as a part. A block unknown to the conventions becomes a part of the type "other".
func partOf(b content.Block) part {
	switch b := b.(type) {
	case content.Text:
		return part{Type: "text", Content: b.Text}
	case content.Thinking:
		return part{Type: "reasoning", Content: b.Text}
	case content.ToolUse:
		return part{Type: "tool_call", ID: b.ID, Name: b.Name, Arguments: raw(b.Input)}
	case content.ToolResult:
		return part{Type: "tool_call_response", ID: b.CallID, Response: responseOf(b.Content)}
	case content.Image:
		return sourceOf("image", b.Source)
	case content.Document:
		return sourceOf("document", b.Source)
	case content.CutToolUse:
		return part{Type: "tool_call", Name: b.Name, Arguments: raw(b.Input)}
	case content.Opaque, content.Unknown:
	}
	return part{Type: "other"}
}

// sourceOf returns the part for an image or a document, without its bytes.
func sourceOf(kind string, s content.Source) part {
	return part{Type: kind, MIMEType: s.MediaType, URI: s.URL}
}

// responseOf returns the text of a tool's result, or a list of parts if it is not a single text.
func responseOf(blocks content.Blocks) any {
	if blocks.Len() == 0 {
		return ""
	}
	if text, only := blocks.At(0).(content.Text); only && blocks.Len() == 1 {
		return text.Text
	}
	return messageOf("", blocks).Parts
}

// raw returns valid JSON as it is. Anything else, such as cut-off arguments, becomes a JSON string.
func raw(j content.JSON) json.RawMessage {
	if j == "" || json.Valid([]byte(j)) {
		return json.RawMessage(j)
	}
	data, _ := json.Marshal(string(j))
	return data
}
