package apitest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// Anthropic is a strict fake of Anthropic's Messages API: an http.Handler, for httptest.NewServer. It checks every request with
// [CheckAnthropic], refuses a bad one as the real API does, and answers the others with its prepared answers, as JSON or, where
// the request asks for a stream, as server-sent events. It is safe for concurrent use.
type Anthropic struct {
	mu      sync.Mutex
	answers []AnthropicAnswer
	bodies  [][]byte
	refused []error
}

// NewAnthropic returns a fake that answers with answers, in order. A request beyond the last one is refused.
func NewAnthropic(answers ...AnthropicAnswer) *Anthropic {
	return &Anthropic{answers: slices.Clone(answers)}
}

// Bodies returns the body of every request until now, in order, the refused ones too.
func (a *Anthropic) Bodies() [][]byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	bodies := make([][]byte, len(a.bodies))
	for i, b := range a.bodies {
		bodies[i] = slices.Clone(b)
	}
	return bodies
}

// Refused returns why requests were refused until now, in order. A test of a program that must never send an invalid request
// wants it empty.
func (a *Anthropic) Refused() []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.refused)
}

// AnthropicAnswer is what an [Anthropic] answers a request with. The zero value is an assistant's message that says nothing.
type AnthropicAnswer struct {
	// Status is the HTTP status. Defaults to 200.
	Status int
	// Header is added to the response's header.
	Header http.Header
	// Body is the answer as the API gives it when no stream is asked for: a message, or an error. A body that begins with
	// "event:" is a stream already and is sent as it is. Defaults to an empty message.
	Body string
	// Cut breaks a stream off before its last block ends, as a broken connection does.
	Cut bool
}

// AnthropicMessage answers with blocks: texts, thinking, tool calls, and content.Opaque for every other block of the API. The
// stop reason is "tool_use" when there is a tool call and "end_turn" otherwise. Another kind of block is a mistake in a test and
// panics.
func AnthropicMessage(blocks ...content.Block) AnthropicAnswer {
	stop := content.StopEndTurn
	var parts []string
	for _, b := range blocks {
		if _, call := b.(content.ToolUse); call {
			stop = content.StopToolUse
		}
		parts = append(parts, anthropicBlock(b))
	}
	return AnthropicAnswer{Body: anthropicMessage(parts, stop)}
}

func anthropicMessage(blocks []string, stop content.Stop) string {
	return fmt.Sprintf(`{"id":"msg_fake","type":"message","role":"assistant","model":"claude-fake","content":[%s],`+
		`"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`, strings.Join(blocks, ","), stop)
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
		dst = content.AppendString(content.AppendString(dst, "type", "tool_use"), "id", b.ID)
		dst = content.AppendRaw(content.AppendString(dst, "name", b.Name), "input")
		return string(append(append(dst, b.Input...), '}'))
	case content.Opaque:
		return string(b.JSON)
	}
	panic(fmt.Sprintf("apitest: an assistant of this API says no %T", b))
}

// quoted is s as a JSON string.
func quoted(s string) string {
	b, _ := jsontext.AppendQuote(nil, s) // the error only tells of bytes that it replaced by U+FFFD
	return string(b)
}

// AnthropicFailure answers with an error of the API, such as 529, "overloaded_error", "Overloaded".
func AnthropicFailure(status int, kind, message string) AnthropicAnswer {
	return AnthropicAnswer{Status: status, Body: anthropicError(kind, message)}
}

func anthropicError(kind, message string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s},"request_id":"req_fake"}`, quoted(kind), quoted(message))
}

// ServeHTTP answers one request.
func (a *Anthropic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	answer, err := a.next(r, body)
	var refusal *api.Error
	if errors.As(err, &refusal) {
		answer = AnthropicFailure(refusal.Status, refusal.Type, refusal.Message)
	}
	answer.write(w, err == nil && streams(body))
}

// next records the request and takes the answer to it.
func (a *Anthropic) next(r *http.Request, body []byte) (AnthropicAnswer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bodies = append(a.bodies, body)
	err := checkAnthropicHTTP(r)
	if err == nil {
		err = CheckAnthropic(body)
	}
	if err == nil && len(a.answers) == 0 {
		err = refuse(http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("%v: this is request %d", ErrScriptOver, len(a.bodies)))
	}
	if err != nil {
		a.refused = append(a.refused, err)
		return AnthropicAnswer{}, err
	}
	answer := a.answers[0]
	a.answers = a.answers[1:]
	return answer, nil
}

func checkAnthropicHTTP(r *http.Request) error {
	switch {
	case !strings.HasSuffix(r.URL.Path, "/v1/messages"):
		return refuse(http.StatusNotFound, "not_found_error", "Not found")
	case r.Method != http.MethodPost:
		return refuse(http.StatusMethodNotAllowed, "invalid_request_error", "Method Not Allowed")
	case r.Header.Get("x-api-key") == "" && r.Header.Get("Authorization") == "":
		return refuse(http.StatusUnauthorized, "authentication_error", "x-api-key header is required")
	case r.Header.Get("anthropic-version") == "":
		return refuse(http.StatusBadRequest, "invalid_request_error", "anthropic-version: header is required")
	}
	return nil
}

func streams(body []byte) bool {
	var request struct {
		Stream bool `json:"stream"`
	}
	return json.Unmarshal(body, &request) == nil && request.Stream
}

// write sends the answer.
func (a AnthropicAnswer) write(w http.ResponseWriter, stream bool) {
	for name, values := range a.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	w.Header().Set("request-id", "req_fake")
	status, body := a.Status, a.Body
	if status == 0 {
		status = http.StatusOK
	}
	if body == "" {
		body = anthropicMessage(nil, content.StopEndTurn)
	}
	if status == http.StatusOK && stream && !strings.HasPrefix(body, "event:") {
		body = a.events(body)
	}
	if strings.HasPrefix(body, "event:") {
		w.Header().Set("content-type", "text/event-stream; charset=utf-8")
	} else {
		w.Header().Set("content-type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // a client that is gone is no concern of the fake
}

// events is a message as a stream. A body that is not a message is a mistake in a test and panics.
func (a AnthropicAnswer) events(body string) string {
	var m map[string]jsontext.Value
	var blocks []map[string]jsontext.Value
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		panic("apitest: the answer is not a message: " + err.Error())
	}
	if err := json.Unmarshal(m["content"], &blocks); err != nil {
		panic("apitest: the answer's content is no list: " + err.Error())
	}
	var s sse
	end := map[string]any{"stop_reason": m["stop_reason"], "stop_sequence": m["stop_sequence"]}
	usage := m["usage"]
	m["content"], m["stop_reason"], m["stop_sequence"] = jsontext.Value("[]"), jsontext.Value("null"), jsontext.Value("null")
	s.event("message_start", map[string]any{"message": m})
	s.event("ping", map[string]any{})
	for i, block := range blocks {
		s.block(i, block)
		if a.Cut && i == len(blocks)-1 {
			return s.String()
		}
		s.event("content_block_stop", map[string]any{"index": i})
	}
	if a.Cut {
		return s.String()
	}
	s.event("message_delta", map[string]any{"delta": end, "usage": usage})
	s.event("message_stop", map[string]any{})
	return s.String()
}

// sse is a stream of server-sent events under construction.
type sse struct{ strings.Builder }

func (s *sse) event(name string, members map[string]any) {
	members["type"] = name
	data, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		panic("apitest: " + err.Error())
	}
	fmt.Fprintf(s, "event: %s\ndata: %s\n\n", name, data)
}

// block begins a block and gives its contents in small pieces, as the API does.
func (s *sse) block(i int, block map[string]jsontext.Value) {
	pieces := func(member, delta, field string, whole string) {
		for _, piece := range split(whole) {
			s.event("content_block_delta", map[string]any{"index": i, "delta": map[string]string{"type": delta, field: piece}})
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
		s.event("content_block_delta", map[string]any{"index": i, "delta": map[string]string{"type": "signature_delta", "signature": signature}})
	case "tool_use", "server_tool_use", "mcp_tool_use":
		whole := string(block["input"])
		block["input"] = jsontext.Value(`{}`)
		start()
		pieces("input", "input_json_delta", "partial_json", whole)
	default:
		start()
	}
}

func text(v jsontext.Value) string {
	var s string
	_ = json.Unmarshal(v, &s) // what is no string is empty
	return s
}

// split cuts s into pieces of a few characters.
func split(s string) []string {
	var pieces []string
	for runes := []rune(s); len(runes) > 0; {
		n := min(7, len(runes))
		pieces, runes = append(pieces, string(runes[:n])), runes[n:]
	}
	return pieces
}
