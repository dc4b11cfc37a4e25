package sessions

import (
	"io"
	"slices"
	"strconv"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/node"
)

// codexSession is the state of an import from Codex.
type codexSession struct {
	*importer
	tree     *tree
	last     string // the name of the last entry
	response *entry // the response that further items join; nil after its end
	replied  *entry // the last response, for its usage
	model    string
}

// codex imports a rollout of Codex.
func (im *importer) codex(r io.Reader) error {
	s := &codexSession{importer: im, tree: newTree(im)}
	if err := im.lines(r, s.line); err != nil {
		return err
	}
	if err := s.unrecognized(); err != nil {
		return err
	}
	heads, err := s.tree.build()
	im.heads = heads
	return err
}

// codexTypes are Codex's own types of lines.
var codexTypes = []string{
	"session_meta", "response_item", "event_msg", "turn_context", "world_state", "token_usage_record", "compacted",
}

// line imports the next line.
func (s *codexSession) line(l line) error {
	j, err := s.valid(l.at, l.text)
	if err != nil {
		return err
	}
	list, err := s.members(l.at, "", j)
	if err != nil {
		return err
	}
	kind := text(list, "type")
	if kind == "" {
		return s.errorf(l.at, "", errShape, "the line has no type")
	}
	payload, _ := object(get(list, "payload"))
	s.recognize(l.at, payload != nil && slices.Contains(codexTypes, kind))

	e := &entry{line: l.at, name: "line " + strconv.Itoa(l.at), time: stamp(get(list, "timestamp")), body: string(j)}
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
	return s.tree.record(e, node.Custom{Name: name, JSON: j})
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
		return s.add(e)
	}
	return nil
}

// add adds an entry behind the last one.
func (s *codexSession) add(e *entry) error {
	e.parentName, s.last = s.last, e.name
	return s.tree.add(e)
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
	return s.add(e)
}

// respond adds blocks to the response.
func (s *codexSession) respond(e *entry, blocks ...content.Block) error {
	if s.response == nil {
		e.payload = node.Message{Role: content.Assistant, Answer: node.Answer{API: responsesAPI, Model: s.model, Seen: seenElsewhere}}
		e.blocks = []content.Block{}
		s.response, s.replied = e, e
		if err := s.add(e); err != nil {
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
	return s.add(e)
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

// codexLine is a line of a rollout.
type codexLine struct {
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Payload   any    `json:"payload"`
}

// codexVersion is the version of Codex whose rollouts were recorded.
const codexVersion = "0.171.0"

// codex writes a rollout.
func (x *exporter) codex() error {
	x.lose(LossTools, len(x.tools))
	meta := map[string]any{
		"id": x.session.String(), "timestamp": rfc(x.began), "cwd": x.opts.Folder, "originator": "plait",
		"cli_version": codexVersion, "source": "exec", "model_provider": x.opts.Provider,
	}
	if len(x.system) > 0 {
		meta["base_instructions"] = map[string]string{"text": x.system[0]}
	}
	if err := x.line(codexLine{rfc(x.began), "session_meta", meta}); err != nil {
		return err
	}
	for _, prompt := range x.system[min(1, len(x.system)):] {
		developer := codexMessage("developer", []any{codexText{"input_text", prompt}})
		if err := x.line(codexLine{rfc(x.began), "response_item", developer}); err != nil {
			return err
		}
	}

	model := ""
	for i := range x.turns {
		s := &x.turns[i]
		if name := x.model(s.answer); s.role == content.Assistant && name != model {
			model = name
			if err := x.line(codexLine{rfc(s.time), "turn_context", x.codexTurn(name)}); err != nil {
				return err
			}
		}
		if err := x.codexSpoken(s); err != nil {
			return err
		}
	}
	return nil
}

// codexTurn returns the settings of a turn, in which Codex keeps the model.
func (x *exporter) codexTurn(model string) any {
	return map[string]any{
		"cwd": x.opts.Folder, "approval_policy": "on-request", "sandbox_policy": map[string]string{"type": "read-only"},
		"model": model, "summary": "auto",
	}
}

type codexText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type codexImage struct {
	Type string `json:"type"`
	URL  string `json:"image_url"`
}

func codexMessage(role string, parts []any) any {
	return map[string]any{"type": "message", "role": role, "content": parts}
}

// codexParts returns blocks as parts of a message.
func (x *exporter) codexParts(blocks []content.Block, kind string) (parts []any) {
	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			x.extra(b.Extra)
			parts = append(parts, codexText{kind, b.Text})
		case content.Image:
			url := dataURL(b.Source)
			if url == "" || kind == "output_text" {
				x.lose(LossBlocks, 1)
				continue
			}
			x.extra(b.Extra)
			parts = append(parts, codexImage{"input_image", url})
		default:
			x.lose(LossBlocks, 1)
		}
	}
	return parts
}

// codexSpoken writes a message, or a response with the results of its calls.
func (x *exporter) codexSpoken(s *spoken) error {
	write := func(item any) error { return x.line(codexLine{rfc(s.time), "response_item", item}) }
	if s.role == content.User {
		parts := x.codexParts(s.blocks, "input_text")
		if len(parts) == 0 {
			x.lose(LossMessages, 1)
			return nil
		}
		return write(codexMessage("user", parts))
	}

	items := x.codexItems(s)
	if len(items) == 0 {
		x.lose(LossMessages, 1)
		return nil
	}
	for _, item := range items {
		if err := write(item); err != nil {
			return err
		}
	}
	x.stop(s.answer, nil)
	u := s.answer.Usage
	used := map[string]any{"usage": map[string]int64{
		"input_tokens": u.Input + u.CacheRead, "cached_input_tokens": u.CacheRead, "cache_write_input_tokens": u.CacheWrite,
		"output_tokens": u.Output, "reasoning_output_tokens": u.Reasoning, "total_tokens": u.Input + u.CacheRead + u.Output,
	}, "response_id": s.answer.ResponseID}
	if err := x.line(codexLine{rfc(s.time), "token_usage_record", used}); err != nil {
		return err
	}

	for _, c := range s.calls {
		if !c.answered {
			continue
		}
		if c.result.IsError {
			x.lose(LossErrors, 1)
		}
		x.extra(c.result.Extra)
		output := map[string]any{"type": "function_call_output", "call_id": c.id, "output": x.codexOutput(c.result.Content)}
		if err := x.line(codexLine{rfc(c.ended), "response_item", output}); err != nil {
			return err
		}
	}
	return nil
}

// codexOutput returns the content of a result: a text, or a list of parts.
func (x *exporter) codexOutput(blocks content.Blocks) any {
	parts := x.codexParts(blocks.Slice(), "input_text")
	if len(parts) == 0 {
		return ""
	}
	if one, is := parts[0].(codexText); is && len(parts) == 1 {
		return one.Text
	}
	return parts
}

// codexItems returns the items of a response.
func (x *exporter) codexItems(s *spoken) (items []any) {
	var open []any // the texts of the message that is being made
	flush := func() {
		if len(open) > 0 {
			items, open = append(items, codexMessage("assistant", open)), nil
		}
	}

	// Neighboring texts are one message. Anything else ends it.
	call := 0
	for _, b := range s.blocks {
		if t, is := b.(content.Text); is {
			open = append(open, x.codexParts([]content.Block{t}, "output_text")...)
			continue
		}
		flush()

		switch b := b.(type) {
		case content.ToolUse:
			x.extra(b.Extra)
			items = append(items, map[string]any{
				"type": "function_call", "name": b.Name, "arguments": string(b.Input), "call_id": s.calls[call].id,
			})
			call++
		case content.Thinking:
			if item := codexReasoning(b); item != nil {
				items = append(items, item)
			} else {
				x.lose(LossThinking, 1)
			}
		case content.Opaque:
			if b.API == responsesAPI {
				items = append(items, jsontext.Value(b.JSON))
			} else {
				x.lose(LossBlocks, 1)
			}
		default:
			x.lose(LossBlocks, 1)
		}
	}

	flush()
	return items
}

// codexReasoning returns thinking of the Responses API as an item, or nil.
func codexReasoning(t content.Thinking) any {
	if t.Extra.API != responsesAPI || t.Redacted != "" {
		return nil
	}
	list, err := object(content.JSON(t.Extra.JSON))
	if err != nil {
		list = nil
	}
	item := []jsonx.Member{{Name: "type", Value: `"reasoning"`}}
	if !has(list, "summary") {
		summary := content.JSON("[]")
		if t.Text != "" {
			summary = `[{"type":"summary_text","text":` + jsonx.Quote(t.Text) + `}]`
		}
		item = append(item, jsonx.Member{Name: "summary", Value: summary})
	}
	if t.Signature != "" {
		item = append(item, jsonx.Member{Name: "encrypted_content", Value: jsonx.Quote(t.Signature)})
	}
	return jsontext.Value(jsonx.Object(append(item, list...)))
}
