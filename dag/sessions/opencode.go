package sessions

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

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
	last string // the name of the last entry
}

// add adds an entry behind the last one.
func (s *openCodeSession) add(e *entry) error {
	e.parentName, s.last = s.last, e.name
	return s.tree.add(e)
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
	return s.add(e)
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
		Model: text(info, "modelID"), Stop: openCodeStop(text(info, "finish")), Seen: seenElsewhere,
		Usage: content.Usage{
			Input: count(tokens, "input"), Output: count(tokens, "output") + reasoning, Reasoning: reasoning,
			CacheRead: count(cache, "read"), CacheWrite: count(cache, "write"),
		},
	}}
	if err := s.add(e); err != nil || results.blocks == nil {
		return err
	}
	results.payload = node.Message{Role: content.User}
	return s.add(results)
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

func openCodeStop(finish string) content.Stop {
	for stop, word := range openCodeStops {
		if word == finish {
			return stop
		}
	}
	return content.Stop(finish)
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

// openCodePlace has the members of a part that say where it is.
type openCodePlace struct {
	ID        string `json:"id"`
	SessionID string `json:"sessionID"`
	MessageID string `json:"messageID"`
}

type openCodeText struct {
	openCodePlace
	Type string `json:"type"`
	Text string `json:"text"`
	Time any    `json:"time,omitempty"`
}

type openCodeFile struct {
	openCodePlace
	Type string `json:"type"`
	Mime string `json:"mime"`
	URL  string `json:"url"`
	Name string `json:"filename,omitempty"`
}

type openCodeTool struct {
	openCodePlace
	Type   string `json:"type"`
	Tool   string `json:"tool"`
	CallID string `json:"callID"`
	State  any    `json:"state"`
}

type openCodeSpan struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
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
func (x *exporter) openCode() error {
	x.lose(LossSystem, len(x.system))
	x.lose(LossTools, len(x.tools))
	name := "ses_" + strings.ReplaceAll(x.session.String(), "-", "")[:26]
	w := &openCodeWriter{exporter: x, ids: openCodeIDs{session: name}}

	title := "From Plait"
	messages := []any{}
	user := "msg_" + strings.Repeat("0", 26)
	last := x.began
	for i := range x.turns {
		s := &x.turns[i]
		last, w.message = s.time, w.ids.next("msg")
		m := w.spoken(s, user)
		if m == nil {
			x.lose(LossMessages, 1)
			continue
		}
		if s.role == content.User {
			user = w.message
		}
		messages = append(messages, m)
	}
	return x.line(map[string]any{
		"info": map[string]any{
			"id": name, "slug": "plait", "projectID": "global", "directory": x.opts.Folder, "title": title,
			"version": openCodeVersion, "time": map[string]int64{"created": x.began.UnixMilli(), "updated": last.UnixMilli()},
		},
		"messages": messages,
	})
}

// place returns the place of the next part.
func (w *openCodeWriter) place() openCodePlace {
	return openCodePlace{w.ids.next("prt"), w.ids.session, w.message}
}

// spoken returns a message with its parts, or nil if it has none. user is the message that a response is for.
func (w *openCodeWriter) spoken(s *spoken, user string) any {
	if s.role == content.User {
		parts := []any{}
		for _, b := range s.blocks {
			if part := w.part(b); part != nil {
				parts = append(parts, part)
			}
		}
		if len(parts) == 0 {
			return nil
		}
		return map[string]any{"parts": parts, "info": map[string]any{
			"id": w.message, "sessionID": w.ids.session, "role": "user", "time": map[string]int64{"created": s.time.UnixMilli()},
			"agent": "build", "model": map[string]string{"providerID": w.opts.Provider, "modelID": w.opts.Model},
		}}
	}

	parts := w.response(s)
	if len(parts) == 0 {
		return nil
	}
	w.stop(s.answer, openCodeStops)
	if s.answer.ResponseID != "" {
		w.lose(LossAnswers, 1)
	}
	u := s.answer.Usage
	info := map[string]any{
		"id": w.message, "sessionID": w.ids.session, "role": "assistant", "parentID": user, "mode": "build", "agent": "build",
		"path": map[string]string{"cwd": w.opts.Folder, "root": w.opts.Folder}, "cost": 0,
		"tokens": map[string]any{
			"input": u.Input, "output": max(u.Output-u.Reasoning, 0), "reasoning": u.Reasoning,
			"cache": map[string]int64{"read": u.CacheRead, "write": u.CacheWrite},
		},
		"modelID": w.model(s.answer), "providerID": w.opts.Provider,
		"time": map[string]int64{"created": s.time.UnixMilli(), "completed": s.time.UnixMilli()},
	}
	if word := openCodeStops[s.answer.Stop]; word != "" {
		info["finish"] = word
	}
	return map[string]any{"info": info, "parts": parts}
}

// part returns a block as a part of a message or an attachment, or nil.
func (w *openCodeWriter) part(b content.Block) any {
	switch b := b.(type) {
	case content.Text:
		w.extra(b.Extra)
		return openCodeText{w.place(), "text", b.Text, nil}
	case content.Image:
		w.extra(b.Extra)
		return w.file(b.Source, "")
	case content.Document:
		w.extra(b.Extra)
		return w.file(b.Source, b.Title)
	}
	w.lose(LossBlocks, 1)
	return nil
}

func (w *openCodeWriter) file(s content.Source, title string) any {
	if s.Text != "" {
		s.Data, s.MediaType = base64.StdEncoding.EncodeToString([]byte(s.Text)), "text/plain"
	}
	url := dataURL(s)
	if url == "" {
		w.lose(LossBlocks, 1)
		return nil
	}
	return openCodeFile{w.place(), "file", cmp.Or(s.MediaType, "application/octet-stream"), url, title}
}

// response returns the parts of a response, with the results of its calls.
func (w *openCodeWriter) response(s *spoken) []any {
	parts := []any{}
	call := 0 // the results are in the order of the calls

	for _, b := range s.blocks {
		switch b := b.(type) {
		case content.Text:
			w.extra(b.Extra)
			parts = append(parts, openCodeText{w.place(), "text", b.Text, nil})
		case content.Thinking:
			if b.Signature != "" || b.Redacted != "" {
				w.lose(LossThinking, 1)
			}
			w.extra(b.Extra)
			if b.Text != "" {
				parts = append(parts, openCodeText{w.place(), "reasoning", b.Text, openCodeSpan{s.time.UnixMilli(), s.time.UnixMilli()}})
			}
		case content.ToolUse:
			w.extra(b.Extra)
			c := &s.calls[call]
			parts = append(parts, openCodeTool{w.place(), "tool", b.Name, c.id, w.state(c, s.time)})
			call++
		default:
			w.lose(LossBlocks, 1)
		}
	}
	return parts
}

// state returns the state of a call: its arguments and its result.
func (w *openCodeWriter) state(c *called, began time.Time) any {
	input := w.object(c.Input)
	if !c.answered {
		return map[string]any{"status": "pending", "input": input, "raw": string(input)}
	}

	span := openCodeSpan{began.UnixMilli(), max(c.ended.UnixMilli(), began.UnixMilli())}
	words, other := texts(c.result.Content)
	w.lose(LossTexts, max(len(words)-1, 0))
	w.extra(c.result.Extra)
	if c.result.IsError {
		w.lose(LossBlocks, len(other))
		return map[string]any{"status": "error", "input": input, "error": strings.Join(words, "\n"), "time": span}
	}
	state := map[string]any{
		"status": "completed", "input": input, "output": strings.Join(words, "\n"), "title": c.Name,
		"metadata": map[string]any{}, "time": span,
	}
	var attached []any
	for _, b := range other {
		if part := w.part(b); part != nil {
			attached = append(attached, part)
		}
	}
	if len(attached) > 0 {
		state["attachments"] = attached
	}
	return state
}
