package fake

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// Anthropic returns a strict fake of Anthropic's Messages API. It checks requests with [CheckAnthropic] and answers
// with replies, in order. A request after the last reply is refused.
//
// The newest models bind thinking to the conversation before it. The fake always checks that binding, for any model
// name. Thinking from its own responses must come back
//
//   - unchanged,
//   - after the same system prompts, tools and messages, except for cache markers,
//   - and after the same thinking, or after none.
//
// Otherwise the request is refused, unless "thinking" in it has
// "block_binding":{"prefix_mismatch_behavior":"drop_block"}. Thinking unknown to the fake, and thinking in replies
// prepared as a stream, is not checked; see [API.Gave].
func Anthropic(replies ...Reply) *API { return newFake(&anthropic{bindings: bindings{}}, replies) }

// AnthropicMessage returns a reply with the blocks: texts, thinking, tool calls, and content.Opaque for every other
// block of the API. The stop reason is "tool_use" if there is a tool call, otherwise "end_turn". Any other kind of
// block is a mistake in a test and panics.
func AnthropicMessage(blocks ...content.Block) Reply {
	stop := content.StopEndTurn
	var parts []string
	for _, b := range blocks {
		if _, call := b.(content.ToolUse); call {
			stop = content.StopToolUse
		}
		parts = append(parts, anthropicBlock(b))
	}
	return Reply{Body: anthropicMessage(parts, stop)}
}

func anthropicMessage(blocks []string, stop content.Stop) string {
	return fmt.Sprintf(`{"id":"msg_fake","type":"message","role":"assistant","model":"claude-fake","content":[%s],`+
		`"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`,
		strings.Join(blocks, ","), stop)
}

func anthropicBlock(b content.Block) string {
	dst := []byte("{")
	switch b := b.(type) {
	case content.Text:
		return fmt.Sprintf(`{"type":"text","text":%s}`, quoted(b.Text))
	case content.Thinking:
		if b.Redacted != "" {
			return fmt.Sprintf(`{"type":"redacted_thinking","data":%s}`, quoted(b.Redacted))
		}
		return fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":%s}`, quoted(b.Text), quoted(b.Signature))
	case content.ToolUse:
		dst = write.OptString(write.OptString(dst, "type", "tool_use"), "id", b.ID)
		dst = write.Name(write.OptString(dst, "name", b.Name), "input")
		return string(append(append(dst, b.Input...), '}'))
	case content.Opaque:
		return string(b.JSON)
	}
	panic(fmt.Sprintf("fake: an assistant message of this API cannot contain a %T", b))
}

// AnthropicFailure returns a reply with an error of the API, such as 529, "overloaded_error", "Overloaded".
func AnthropicFailure(status int, kind, message string) Reply {
	return Reply{Status: status, Body: anthropicError(kind, message)}
}

func anthropicError(kind, message string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s},"request_id":"req_fake"}`, quoted(kind),
		quoted(message))
}

// anthropic is the dialect of the Messages API.
type anthropic struct{ bindings bindings }

func (d *anthropic) check(_ *http.Request, body []byte) error {
	if err := CheckAnthropic(body); err != nil {
		return err
	}
	if _, message := d.bindings.check(anthropicPrefixOf(body)); message != "" {
		return d.refuse(message)
	}
	return nil
}

func (*anthropic) refuse(message string) *api.Error {
	return refuseAnthropic(http.StatusBadRequest, "invalid_request_error", message)
}

func (d *anthropic) remember(request []byte, answer string) { d.bindings.add(request, answer) }

func (*anthropic) streams(_ *http.Request, body []byte) bool { return asksToStream(body) }

func (*anthropic) silence() string { return anthropicMessage(nil, content.StopEndTurn) }

func (*anthropic) header(h http.Header) { h.Set("request-id", "req_fake") }

func refuseAnthropic(status int, kind, message string) *api.Error {
	return refusal("anthropic", status, kind, message, anthropicError(kind, message))
}

func (*anthropic) address(r *http.Request) error {
	switch {
	case !strings.HasSuffix(r.URL.Path, "/v1/messages"):
		return refuseAnthropic(http.StatusNotFound, "not_found_error", "Not found")
	case r.Method != http.MethodPost:
		return refuseAnthropic(http.StatusMethodNotAllowed, "invalid_request_error", "Method Not Allowed")
	case r.Header.Get("x-api-key") == "" && r.Header.Get("Authorization") == "":
		return refuseAnthropic(http.StatusUnauthorized, "authentication_error", "x-api-key header is required")
	case r.Header.Get("anthropic-version") == "":
		return refuseAnthropic(http.StatusBadRequest, "invalid_request_error", "anthropic-version: header is required")
	}
	return nil
}

func (*anthropic) stream(_ []byte, answer string, cut bool) string {
	var m map[string]jsontext.Value
	var blocks []map[string]jsontext.Value
	parsed([]byte(answer), &m)
	parsed(m["content"], &blocks)

	// The stream begins with the message without its content and its end. Both follow in events of their own.
	var s anthropicStream
	end := map[string]any{"stop_reason": m["stop_reason"], "stop_sequence": m["stop_sequence"]}
	if container, ok := m["container"]; ok {
		end["container"] = container
		delete(m, "container")
	}
	usage := m["usage"]
	m["content"], m["stop_reason"], m["stop_sequence"] = jsontext.Value("[]"), jsontext.Value("null"),
		jsontext.Value("null")

	s.event("message_start", map[string]any{"message": m})
	s.event("ping", map[string]any{}) // as in recorded streams: a client must skip it

	for i, block := range blocks {
		s.block(i, block)
		if cut && i == len(blocks)-1 {
			return s.String()
		}
		s.event("content_block_stop", map[string]any{"index": i})
	}

	// A message without blocks breaks off before its end.
	if cut {
		return s.String()
	}

	s.event("message_delta", map[string]any{"delta": end, "usage": usage})
	s.event("message_stop", map[string]any{})
	return s.String()
}

// anthropicStream builds a stream of the API's events.
type anthropicStream struct{ sse }

func (s *anthropicStream) event(name string, members map[string]any) {
	members["type"] = name
	s.sse.event(name, members)
}

// block starts a block and sends its content in small pieces, as the API does.
func (s *anthropicStream) block(i int, block map[string]jsontext.Value) {
	pieces := func(member, delta, field string, whole string) {
		for _, piece := range split(whole) {
			s.event("content_block_delta",
				map[string]any{"index": i, "delta": map[string]string{"type": delta, field: piece}})
		}
		block[member] = jsontext.Value(`""`)
	}

	start := func() { s.event("content_block_start", map[string]any{"index": i, "content_block": block}) }

	switch text(block["type"]) {
	case "text":
		whole := text(block["text"])
		block["text"] = jsontext.Value(`""`)
		start()
		pieces("text", "text_delta", "text", whole)
	case "thinking":
		whole, signature := text(block["thinking"]), text(block["signature"])
		block["thinking"], block["signature"] = jsontext.Value(`""`), jsontext.Value(`""`)
		start()
		pieces("thinking", "thinking_delta", "thinking", whole)
		// The signature follows the text, whole.
		s.event("content_block_delta",
			map[string]any{"index": i, "delta": map[string]string{"type": "signature_delta", "signature": signature}})
	case "tool_use", "server_tool_use", "mcp_tool_use":
		// A call starts with an empty object. Its arguments follow as pieces of JSON text, invalid until the last one.
		whole := string(block["input"])
		block["input"] = jsontext.Value(`{}`)
		start()
		pieces("input", "input_json_delta", "partial_json", whole)
	default:
		// Any other block comes whole: redacted thinking, the result of a server tool.
		start()
	}
}
