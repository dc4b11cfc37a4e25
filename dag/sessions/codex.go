package sessions

import (
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/node"
)

// codexSession is the state of an import from Codex.
type codexSession struct {
	*importer
	tree     *tree
	response *entry // the response that further items join; nil after its end
	replied  *entry // the last response, for its usage
	model    string
}

// codex imports a rollout of Codex.
func (im *importer) codex(r io.Reader) error {
	s := &codexSession{importer: im, tree: newTree(im)}
	err := im.objects(r, s.line)
	if err == nil {
		im.heads, err = s.tree.build()
	}
	return err
}

// codexTypes are Codex's own types of lines.
var codexTypes = []string{
	"session_meta", "response_item", "event_msg", "turn_context", "world_state", "token_usage_record", "compacted",
}

// line imports the next line.
func (s *codexSession) line(l objectLine) error {
	list, kind := l.list, l.kind
	payload, _ := object(get(list, "payload"))
	s.recognize(l.at, payload != nil && slices.Contains(codexTypes, kind))

	e := &entry{line: l.at, name: "line " + strconv.Itoa(l.at), time: stamp(get(list, "timestamp")), body: string(l.json)}
	switch {
	case kind == "response_item" && payload != nil:
		return s.item(e, payload, get(list, "payload"))
	case kind == "session_meta" && payload != nil:
		return s.header(e, payload)
	case kind == "turn_context":
		s.model = text(payload, "model")
	case kind == "token_usage_record":
		s.used(payload)
		return nil
	}
	name := "codex." + kind
	if sub := text(payload, "type"); sub != "" {
		name += "." + sub
	}
	e.name = ""
	return s.tree.record(e, node.Custom{Name: name, JSON: l.json})
}

// header imports the first line: what is known about the session, and the system prompt.
func (s *codexSession) header(e *entry, list []jsonx.Member) error {
	if s.session == "" {
		s.session = text(list, "id")
	}
	for _, m := range without(list, "base_instructions") {
		s.about = append(s.about, about{"codex." + m.Name, m.Value})
	}
	prompt, _ := object(get(list, "base_instructions"))
	if words := text(prompt, "text"); words != "" {
		e.payload = node.System{Text: words}
		return s.tree.follow(e)
	}
	return nil
}

// used imports the token counts of a response. They also end it.
func (s *codexSession) used(list []jsonx.Member) {
	usage, _ := object(get(list, "usage"))
	if s.replied != nil {
		m := s.replied.payload.(node.Message)
		m.Answer.ResponseID = text(list, "response_id")
		cached := count(usage, "cached_input_tokens")
		m.Answer.Usage = content.Usage{
			Input: max(count(usage, "input_tokens")-cached, 0), CacheRead: cached, CacheWrite: count(usage, "cache_write_input_tokens"),
			Output: count(usage, "output_tokens"), Reasoning: count(usage, "reasoning_output_tokens"),
		}
		s.replied.payload = m
	}
	s.response, s.replied = nil, nil
}

// item imports an item of the conversation with the model.
func (s *codexSession) item(e *entry, list []jsonx.Member, raw content.JSON) error {
	p := place{im: s.importer, line: e.line, foreign: responsesAPI}
	switch kind := text(list, "type"); kind {
	case "message":
		return s.message(p, e, list)
	case "function_call_output":
		s.response = nil
		return s.result(p, e, list)
	case "function_call":
		rest := s.rest(list, "type", "name", "arguments", "call_id")
		return s.respond(e, content.ToolUse{
			ID: text(list, "call_id"), Name: text(list, "name"), Input: content.JSON(text(list, "arguments")),
			Extra: extra(responsesAPI, rest),
		})
	case "reasoning":
		return s.respond(e, reasoningItem(s.rest(list)))
	default:
		return s.respond(e, p.opaque(raw, responsesAPI, "an item of the type "+strconv.Quote(kind)))
	}
}

// rest returns the members of an item but those that are for Codex alone, and the named ones.
func (s *codexSession) rest(list []jsonx.Member, names ...string) []jsonx.Member {
	return without(list, append(names, "internal_chat_message_metadata_passthrough")...)
}

// message imports a message.
func (s *codexSession) message(p place, e *entry, list []jsonx.Member) error {
	blocks, err := p.list(get(list, "content"), codexBlock)
	if err != nil {
		return err
	}
	switch text(list, "role") {
	case "assistant":
		return s.respond(e, blocks.Slice()...)
	case "developer", "system":
		e.payload = node.System{Text: blocks.Text()}
	default:
		e.payload = node.Message{Role: content.User, Blocks: blocks}
	}
	s.response = nil
	e.meta = metaOf(e.meta, "codex", s.rest(list, "type", "role", "content"))
	return s.tree.follow(e)
}

// respond adds blocks to the response.
func (s *codexSession) respond(e *entry, blocks ...content.Block) error {
	if s.response == nil {
		e.payload = node.Message{Role: content.Assistant, Answer: node.Answer{API: responsesAPI, Model: s.model, Seen: seenElsewhere}}
		e.blocks = []content.Block{}
		s.response, s.replied = e, e
		if err := s.tree.follow(e); err != nil {
			return err
		}
	}
	s.response.blocks, s.response.last = append(s.response.blocks, blocks...), e.line

	// A rollout has no stop reasons.
	m := s.response.payload.(node.Message)
	m.Answer.Stop = content.StopEndTurn
	if slices.ContainsFunc(s.response.blocks, func(b content.Block) bool { _, is := b.(content.ToolUse); return is }) {
		m.Answer.Stop = content.StopToolUse
	}
	s.response.payload = m
	return nil
}

// result imports the result of a call.
func (s *codexSession) result(p place, e *entry, list []jsonx.Member) error {
	p.inner = true
	output := get(list, "output")
	if body, err := object(output); err == nil { // an older form
		output = get(body, "content")
	}
	blocks, err := p.list(output, codexBlock)
	if err != nil {
		return err
	}
	r := content.ToolResult{CallID: text(list, "call_id"), Content: blocks}
	e.payload, e.blocks = node.Message{Role: content.User}, []content.Block{r}
	return s.tree.follow(e)
}

// codexBlock reads a part of a message.
func codexBlock(p place, raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, p.foreign, "it is not an object")
	}
	kind, list, _ := jsonx.TakeText(list, "type")
	switch kind {
	case "input_text", "output_text", "text":
		if words, rest, ok := jsonx.TakeText(list, "text"); ok {
			return content.Text{Text: words, Extra: extra(responsesAPI, rest)}
		}
	case "input_image":
		if url, rest, ok := jsonx.TakeText(list, "image_url"); ok {
			return content.Image{Source: sourceOf(url, ""), Extra: extra(responsesAPI, rest)}
		}
	}
	return p.opaque(raw, p.foreign, "a block of the type "+strconv.Quote(kind))
}

// codexVersion is the version of Codex whose rollouts were recorded.
const codexVersion = "0.171.0"

// codex writes a rollout.
func (x *exporter) codex() {
	x.lose(LossTools, len(x.tools))
	x.only(responsesAPI)
	meta := fields{
		"id": x.session.String(), "timestamp": rfc(x.began), "cwd": x.opts.Folder, "originator": "plait",
		"cli_version": codexVersion, "source": "exec", "model_provider": x.opts.Provider,
	}
	if len(x.system) > 0 {
		meta["base_instructions"] = fields{"text": x.system[0]}
	}
	x.codexLine(x.began, "session_meta", meta)
	for _, prompt := range x.system[min(1, len(x.system)):] {
		parts := []any{fields{"type": "input_text", "text": prompt}}
		x.codexLine(x.began, "response_item", codexMessage("developer", parts))
	}

	model := ""
	x.each(x.codexItem, func(s *spoken, items []any) {
		// The settings of a turn have the model.
		if name := x.model(s.answer); s.role == content.Assistant && name != model {
			model = name
			x.codexLine(s.time, "turn_context", fields{
				"cwd": x.opts.Folder, "approval_policy": "on-request", "sandbox_policy": fields{"type": "read-only"},
				"model": model, "summary": "auto",
			})
		}
		x.codexSpoken(s, items)
	})
}

func (x *exporter) codexLine(at time.Time, kind string, payload any) {
	x.line(fields{"timestamp": rfc(at), "type": kind, "payload": payload})
}

func codexMessage(role string, parts []any) fields {
	return fields{"type": "message", "role": role, "content": parts}
}

// codexSpoken writes a message, or a response with the results of its calls.
func (x *exporter) codexSpoken(s *spoken, items []any) {
	if s.role == content.User {
		x.codexLine(s.time, "response_item", codexMessage("user", items))
		return
	}

	// Neighboring texts of a response are one message. Anything else is an item of its own.
	var words []any
	isText := func(item any) bool { f, is := item.(fields); return is && f["type"] == "output_text" }
	for i, item := range items {
		if !isText(item) {
			x.codexLine(s.time, "response_item", item)
			continue
		}
		if words = append(words, item); i+1 == len(items) || !isText(items[i+1]) {
			x.codexLine(s.time, "response_item", codexMessage("assistant", words))
			words = nil
		}
	}
	x.stop(s.answer, nil)
	u := s.answer.Usage
	x.codexLine(s.time, "token_usage_record", fields{"response_id": s.answer.ResponseID, "usage": map[string]int64{
		"input_tokens": u.Input + u.CacheRead, "cached_input_tokens": u.CacheRead, "cache_write_input_tokens": u.CacheWrite,
		"output_tokens": u.Output, "reasoning_output_tokens": u.Reasoning, "total_tokens": u.Input + u.CacheRead + u.Output,
	}})

	for _, c := range s.calls {
		if !c.answered {
			continue
		}
		if c.result.IsError {
			x.lose(LossErrors, 1)
		}
		output := fields{"type": "function_call_output", "call_id": c.id, "output": x.codexOutput(c.result.Content)}
		x.codexLine(c.ended, "response_item", x.with(output, c.result.Extra, responsesAPI))
	}
}

// codexOutput returns the content of a result: a text, or a list of parts.
func (x *exporter) codexOutput(blocks content.Blocks) any {
	parts := x.parts(blocks.Slice(), nil, x.codexPart)
	if len(parts) == 0 {
		return ""
	}
	if one := parts[0].(fields); len(parts) == 1 && one["type"] == "input_text" && len(one) == 2 {
		return one["text"]
	}
	return parts
}

// codexPart returns a block of a user's message or of a result.
func (x *exporter) codexPart(b content.Block, _ *called) any {
	switch b := b.(type) {
	case content.Text:
		return x.with(fields{"type": "input_text", "text": b.Text}, b.Extra, responsesAPI)
	case content.Image:
		if address := x.address(b.Source); address != nil {
			return x.with(fields{"type": "input_image", "image_url": address}, b.Extra, responsesAPI)
		}
	}
	return nil
}

// codexItem returns a block of a message or a response.
func (x *exporter) codexItem(s *spoken, b content.Block, c *called) any {
	if s.role == content.User {
		return x.codexPart(b, nil)
	}
	switch b := b.(type) {
	case content.Text:
		return x.with(fields{"type": "output_text", "text": b.Text}, b.Extra, responsesAPI)
	case content.ToolUse:
		call := fields{"type": "function_call", "name": b.Name, "arguments": string(b.Input), "call_id": c.id}
		return x.with(call, b.Extra, responsesAPI)
	case content.Thinking:
		if item := reasoningJSON(b); item != "" {
			return jsontext.Value(item)
		}
	case content.Opaque:
		if b.API == responsesAPI {
			return jsontext.Value(b.JSON)
		}
	}
	return nil
}
