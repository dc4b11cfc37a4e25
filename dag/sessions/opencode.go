package sessions

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/node"
)

// openCode imports a session of OpenCode.
func (im *importer) openCode(r io.Reader) error {
	whole, err := im.readAll(r)
	if err != nil {
		return err
	}
	j, err := im.valid(0, whole)
	if err != nil {
		return err
	}
	list, err := im.members(0, "", j)
	if err != nil {
		return err
	}
	info, infoErr := object(get(list, "info"))
	messages, is := items(get(list, "messages"))
	if infoErr != nil || !is {
		return im.errorf(0, "", errShape, "it has no info or no messages")
	}

	im.session = text(info, "id")
	for _, m := range info {
		im.about = append(im.about, about{"opencode." + m.Name, m.Value})
	}
	s := &openCodeSession{importer: im, tree: newTree(im)}
	for i, m := range messages {
		if err := s.message(i+1, m); err != nil {
			return err
		}
	}
	im.heads, err = s.tree.build()
	return err
}

// openCodeSession is the state of an import. The line of an entry is the number of its message.
type openCodeSession struct {
	*importer
	tree *tree
}

// message imports a message with its parts.
func (s *openCodeSession) message(number int, j content.JSON) error {
	where := fmt.Sprintf("message %d", number)
	list, err := s.members(0, where, j)
	if err != nil {
		return err
	}
	info, err := s.members(0, where+", info", get(list, "info"))
	if err != nil {
		return err
	}
	parts, is := items(get(list, "parts"))
	if !is {
		return s.errorf(0, where, errShape, "it has no parts")
	}

	when, _ := object(get(info, "time"))
	e := &entry{line: number, name: cmp.Or(text(info, "id"), where), time: stamp(get(when, "created")), body: string(j)}
	p := place{im: s.importer, line: 0, where: where, foreign: string(OpenCode)}
	if text(info, "role") == "user" {
		e.meta = metaOf(e.meta, "opencode", without(info, "id", "sessionID", "role"))
		return s.user(p, e, parts)
	}
	e.meta = metaOf(e.meta, "opencode", without(info, "id", "sessionID", "role", "tokens", "modelID", "finish"))
	return s.assistant(p, e, info, parts)
}

// user imports a message of the user.
func (s *openCodeSession) user(p place, e *entry, parts []content.JSON) error {
	e.blocks = []content.Block{}
	for _, raw := range parts {
		e.blocks = append(e.blocks, p.fit(raw, openCodePart(p, raw)))
	}
	e.payload = node.Message{Role: content.User}
	return s.tree.follow(e)
}

// openCodePart reads a part of a user's message, or an attachment of a result.
func openCodePart(p place, raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, p.foreign, "it is not an object")
	}
	rest := without(list, "id", "sessionID", "messageID", "type")
	switch text(list, "type") {
	case "text":
		return content.Text{Text: text(list, "text"), Extra: extra(p.foreign, without(rest, "text", "time"))}
	case "file":
		source := sourceOf(text(list, "url"), text(list, "mime"))
		more := extra(p.foreign, without(rest, "mime", "url", "filename"))
		if strings.HasPrefix(source.MediaType, "image/") {
			return content.Image{Source: source, Extra: more}
		}
		if words, err := base64.StdEncoding.DecodeString(source.Data); err == nil && source.MediaType == "text/plain" && len(words) > 0 {
			source.Text, source.Data = string(words), ""
		}
		return content.Document{Source: source, Title: text(list, "filename"), Extra: more}
	}
	return p.opaque(raw, p.foreign, "a part of the type "+excerpt(get(list, "type")))
}

// assistant imports a response, and the results of its calls as a message behind it.
func (s *openCodeSession) assistant(p place, e *entry, info []jsonx.Member, parts []content.JSON) error {
	results := &entry{line: e.line, name: e.name + " results", time: e.time, body: e.body}
	e.blocks = []content.Block{}
	var steps []content.JSON
	for _, raw := range parts {
		list, err := object(raw)
		switch kind := text(list, "type"); {
		case err == nil && (kind == "step-start" || kind == "step-finish" || kind == "snapshot" || kind == "patch"):
			steps = append(steps, raw)
		case err == nil && kind == "reasoning":
			rest := without(list, "id", "sessionID", "messageID", "type", "text", "time")
			e.blocks = append(e.blocks, content.Thinking{Text: text(list, "text"), Extra: extra(p.foreign, rest)})
		case err == nil && kind == "tool":
			s.tool(p, e, results, list)
		default:
			e.blocks = append(e.blocks, p.fit(raw, openCodePart(p, raw)))
		}
	}
	if len(steps) > 0 {
		e.meta = metaWith(e.meta, "opencode.steps", jsonx.Array(steps))
	}

	tokens, _ := object(get(info, "tokens"))
	cache, _ := object(get(tokens, "cache"))
	reasoning := count(tokens, "reasoning")
	e.payload = node.Message{Role: content.Assistant, Answer: node.Answer{
		Model: text(info, "modelID"), Stop: stopOf(text(info, "finish"), openCodeStops), Seen: seenElsewhere,
		Usage: content.Usage{
			Input: count(tokens, "input"), Output: count(tokens, "output") + reasoning, Reasoning: reasoning,
			CacheRead: count(cache, "read"), CacheWrite: count(cache, "write"),
		},
	}}
	if err := s.tree.follow(e); err != nil || results.blocks == nil {
		return err
	}
	results.payload = node.Message{Role: content.User}
	return s.tree.follow(results)
}

// tool imports a call, and its result if it has one.
func (s *openCodeSession) tool(p place, e, results *entry, list []jsonx.Member) {
	state, _ := object(get(list, "state"))
	id := text(list, "callID")
	input := get(state, "input")
	rest := without(list, "id", "sessionID", "messageID", "type", "callID", "tool", "state")
	e.blocks = append(e.blocks, content.ToolUse{ID: id, Name: text(list, "tool"), Input: input, Extra: extra(p.foreign, rest)})

	r := content.ToolResult{CallID: id}
	var blocks []content.Block
	switch text(state, "status") {
	case "completed":
		if words := text(state, "output"); words != "" {
			blocks = append(blocks, content.Text{Text: words})
		}
		attached, _ := items(get(state, "attachments"))
		inner := p
		inner.inner = true
		for _, raw := range attached {
			blocks = append(blocks, inner.fit(raw, openCodePart(inner, raw)))
		}
	case "error":
		r.IsError, blocks = true, []content.Block{content.Text{Text: text(state, "error")}}
	default:
		return // the call has no result yet
	}
	made, err := content.Of(blocks...)
	if err != nil {
		p.note(noteLeftOut, "the result of a call: %v", err)
		return
	}
	r.Content = made
	when, _ := object(get(state, "time"))
	if t := stamp(get(when, "end")); !t.IsZero() {
		results.time = t
	}
	if len(results.blocks) == 0 {
		results.details = get(state, "metadata")
	}
	results.blocks = append(results.blocks, r)
}

// openCodeStops are OpenCode's words for stop reasons.
var openCodeStops = map[content.Stop]string{
	content.StopEndTurn: "stop", content.StopToolUse: "tool-calls", content.StopMaxTokens: "length",
	content.StopRefusal: "content-filter",
}

// openCodeIDs makes IDs. OpenCode sorts messages and parts by them.
type openCodeIDs struct {
	session string
	made    int
}

// next returns the next ID with a prefix: a number in ascending order, and a hash that makes it unique.
func (g *openCodeIDs) next(prefix string) string {
	g.made++
	sum := sha256.Sum256(fmt.Append(nil, g.session, "/", g.made))
	return fmt.Sprintf("%s_%012x%s", prefix, g.made, hex.EncodeToString(sum[:7]))
}

// openCodeWriter is the state of an export.
type openCodeWriter struct {
	*exporter
	ids     openCodeIDs
	message string // the ID of the message that is written
}

// openCodeVersion is the version of OpenCode whose sessions were recorded.
const openCodeVersion = "1.18.33"

// openCode writes a session for "opencode import".
func (x *exporter) openCode() {
	x.unset()
	x.only("")
	name := "ses_" + strings.ReplaceAll(x.session.String(), "-", "")[:26]
	w := &openCodeWriter{exporter: x, ids: openCodeIDs{session: name}}
	w.message = w.ids.next("msg")

	messages := []any{}
	user := "msg_" + strings.Repeat("0", 26)
	last := x.began
	x.each(w.part, func(s *spoken, parts []any) {
		messages = append(messages, fields{"info": w.info(s, user), "parts": parts})
		if last = s.time; s.role == content.User {
			user = w.message
		}
		w.message = w.ids.next("msg")
	})
	x.line(fields{
		"info": fields{
			"id": name, "slug": "plait", "projectID": "global", "directory": x.opts.Folder, "title": "From Plait",
			"version": openCodeVersion, "time": fields{"created": x.began.UnixMilli(), "updated": last.UnixMilli()},
		},
		"messages": messages,
	})
}

// info returns what is known about a message. user is the message that a response is for.
func (w *openCodeWriter) info(s *spoken, user string) any {
	info := fields{
		"id": w.message, "sessionID": w.ids.session, "role": s.role, "agent": "build", "time": fields{"created": s.time.UnixMilli()},
	}
	if s.role == content.User {
		info["model"] = fields{"providerID": w.opts.Provider, "modelID": w.opts.Model}
		return info
	}

	w.lose(LossAnswers, min(len(s.answer.ResponseID), 1))
	u := s.answer.Usage
	info["parentID"], info["mode"], info["cost"] = user, "build", 0
	info["path"] = fields{"cwd": w.opts.Folder, "root": w.opts.Folder}
	info["tokens"] = fields{
		"input": u.Input, "output": max(u.Output-u.Reasoning, 0), "reasoning": u.Reasoning,
		"cache": fields{"read": u.CacheRead, "write": u.CacheWrite},
	}
	info["modelID"], info["providerID"] = w.model(s.answer), w.opts.Provider
	info["time"] = fields{"created": s.time.UnixMilli(), "completed": s.time.UnixMilli()}
	if word := w.stop(s.answer, openCodeStops); word != "" {
		info["finish"] = word
	}
	return info
}

// placed returns a part with its place, and with the further members of its block.
func (w *openCodeWriter) placed(f fields, e content.Extra) any {
	f["id"], f["sessionID"], f["messageID"] = w.ids.next("prt"), w.ids.session, w.message
	return w.with(f, e, string(OpenCode))
}

// part returns a block of a message, or an attachment of a result.
func (w *openCodeWriter) part(s *spoken, b content.Block, c *called) any {
	switch b := b.(type) {
	case content.Text:
		return w.placed(fields{"type": "text", "text": b.Text}, b.Extra)
	case content.Image:
		return w.file(fields{}, b.Source, b.Extra)
	case content.Document:
		if s := &b.Source; s.Text != "" {
			s.Data, s.MediaType = base64.StdEncoding.EncodeToString([]byte(s.Text)), "text/plain"
		}
		if b.Title != "" {
			return w.file(fields{"filename": b.Title}, b.Source, b.Extra)
		}
		return w.file(fields{}, b.Source, b.Extra)

	case content.Thinking:
		if b.Text == "" {
			return nil
		}
		w.lose(LossThinking, min(len(b.Signature+b.Redacted), 1))
		span := fields{"start": s.time.UnixMilli(), "end": s.time.UnixMilli()}
		return w.placed(fields{"type": "reasoning", "text": b.Text, "time": span}, b.Extra)
	case content.ToolUse:
		return w.placed(fields{"type": "tool", "tool": b.Name, "callID": c.id, "state": w.state(s, c)}, b.Extra)
	case content.Opaque:
		if b.API == string(OpenCode) {
			return jsontext.Value(b.JSON)
		}
	}
	return nil
}

// file returns a file, or nil: OpenCode needs the media type.
func (w *openCodeWriter) file(f fields, s content.Source, e content.Extra) any {
	url := dataURL(s)
	if url == "" || s.MediaType == "" {
		return nil
	}
	f["type"], f["mime"], f["url"] = "file", s.MediaType, url
	return w.placed(f, e)
}

// state returns the state of a call: its arguments and its result.
func (w *openCodeWriter) state(s *spoken, c *called) any {
	input := w.object(c.Input)
	if !c.answered {
		return fields{"status": "pending", "input": input, "raw": string(input)}
	}

	span := fields{"start": s.time.UnixMilli(), "end": max(c.ended.UnixMilli(), s.time.UnixMilli())}
	words, other := texts(c.result.Content)
	w.lose(LossTexts, max(len(words)-1, 0))
	state := w.with(fields{"status": "completed", "input": input, "time": span}, c.result.Extra, string(OpenCode))
	if c.result.IsError {
		w.lose(LossBlocks, len(other))
		state["status"], state["error"] = "error", strings.Join(words, "\n")
		return state
	}
	state["output"], state["title"], state["metadata"] = strings.Join(words, "\n"), c.Name, fields{}
	attach := func(b content.Block, _ *called) any { return w.part(s, b, nil) }
	if attached := w.parts(other, nil, attach); len(attached) > 0 {
		state["attachments"] = attached
	}
	return state
}
