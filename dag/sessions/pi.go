package sessions

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/node"
)

// pi imports a session of pi, of any version.
func (im *importer) pi(r io.Reader) error {
	s := &piSession{importer: im, tree: newTree(im)}

	if err := im.objects(r, s.line); err != nil {
		return err
	}

	heads, err := s.tree.build()
	im.heads = heads
	return err
}

// piSession is the state of an import.
type piSession struct {
	*importer
	tree  *tree
	index []string // the name of each line: the first version has indexes of lines instead of IDs
	last  string   // the name of the last entry, the parent of the next line without an ID
}

// piTypes are pi's own types of lines.
var piTypes = []string{
	"session", "message", "leaf", "compaction", "branch_summary", "custom", "custom_message", "label", "session_info", "model_change",
	"thinking_level_change",
}

// line imports the next line.
func (s *piSession) line(l objectLine) error {
	list := l.list
	e := &entry{line: l.at, name: text(list, "id"), parentName: text(list, "parentId"), time: stamp(get(list, "timestamp")), body: string(l.json)}
	s.recognize(l.at, slices.Contains(piTypes, l.kind))

	switch l.kind {
	case "session":
		s.header(list)
		return nil
	case "leaf":
		s.tree.current = s.tree.byName[text(list, "targetId")]
		s.note(l.at, "", noteLeftOut, "it marks the current entry; the heads replace it")
		s.index = append(s.index, "")
		return nil
	}

	// Lines of the first version have no IDs: each follows the line before it.
	if e.name == "" {
		e.name, e.parentName = "line "+strconv.Itoa(l.at), s.last
	}

	if err := s.entry(e, l.kind, list, l.json); err != nil {
		return err
	}

	s.index = append(s.index, e.name)
	s.last, s.tree.current = e.name, s.tree.byName[e.name]
	return nil
}

// header imports the first line of a file.
func (s *piSession) header(list []jsonx.Member) {
	s.index = append(s.index, "")

	if s.session == "" {
		s.session = text(list, "id")
	}
	for _, m := range without(list, "type") {
		s.about = append(s.about, about{"pi." + m.Name, m.Value})
	}
}

// rest adds the members of a line to the metadata, except for the named ones and those of every line.
func (s *piSession) rest(e *entry, list []jsonx.Member, names ...string) {
	e.meta = metaOf(e.meta, "pi", without(list, append(names, "type", "id", "parentId", "timestamp", "message")...))
}

// entry imports a line of this type.
func (s *piSession) entry(e *entry, kind string, list []jsonx.Member, j content.JSON) error {
	p := place{im: s.importer, line: e.line, foreign: "pi"}

	switch kind {
	case "message":
		message, err := s.members(e.line, "message", get(list, "message"))
		if err != nil {
			return err
		}
		s.rest(e, list)
		return s.message(p, e, message, j)

	case "compaction":
		s.rest(e, list, "summary", "firstKeptEntryId", "firstKeptEntryIndex")
		e.keeps = text(list, "firstKeptEntryId")
		// The first version names the entry by the index of its line.
		if i := count(list, "firstKeptEntryIndex"); e.keeps == "" && i > 0 && i < int64(len(s.index)) {
			e.keeps = s.index[i]
		}
		e.payload = node.Compaction{Summary: content.Words(text(list, "summary"))}
		return s.tree.add(e)

	case "branch_summary":
		s.rest(e, list, "summary")
		e.payload, e.keeps = node.Compaction{Summary: content.Words(text(list, "summary"))}, keepsEverything
		return s.tree.add(e)

	case "custom_message":
		s.rest(e, list, "content")
		return s.userMessage(p, e, get(list, "content"))
	}
	return s.tree.record(e, node.Custom{Name: "pi." + kind, JSON: j})
}

// message imports a message.
func (s *piSession) message(p place, e *entry, list []jsonx.Member, j content.JSON) error {
	if t := stamp(get(list, "timestamp")); e.time.IsZero() {
		e.time = t
	}

	// taken are the members held by the payload. All others become metadata.
	taken := []string{"role", "content", "timestamp"}
	var err error
	switch role := text(list, "role"); role {
	case "user":
		err = s.userMessage(p, e, get(list, "content"))

	case "assistant":
		if stop := text(list, "stopReason"); stop == "error" || stop == "aborted" {
			return s.tree.record(e, node.Custom{Name: "pi.message." + stop, JSON: j}) // pi does not send it again, either
		}
		taken = append(taken, "model", "stopReason", "responseId")
		err = s.assistant(p, e, list)

	case "toolResult":
		taken = append(taken, "toolCallId", "toolName", "isError", "details")
		err = s.result(p, e, list)

	// pi sends these as messages of the user.
	case "custom", "hookMessage":
		err = s.userMessage(p, e, get(list, "content"))

	case "compactionSummary", "branchSummary":
		taken = append(taken, "summary")
		e.payload, e.keeps = node.Compaction{Summary: content.Words(text(list, "summary"))}, keepsEverything
		err = s.tree.add(e)

	case "bashExecution":
		if isTrue(list, "excludeFromContext") {
			return s.tree.record(e, node.Custom{Name: "pi.message.bashExecution", JSON: j})
		}
		e.payload = node.Message{Role: content.User, Blocks: content.Words(bashText(list))}
		p.note(noteChanged, "a command of the user and its output became text; the original members are metadata")
		err = s.tree.add(e)

	default:
		return s.tree.record(e, node.Custom{Name: "pi.message." + role, JSON: j})
	}

	// The entry is in the tree already; its node is made at the end of the file.
	if rest := without(list, taken...); len(rest) > 0 {
		e.meta = metaWith(e.meta, "pi.message", jsonx.Object(rest))
	}
	return err
}

// bashText returns the text for the model about a command run by the user.
func bashText(list []jsonx.Member) string {
	s := "I ran this command: " + text(list, "command") + "\n\n" + text(list, "output")
	if code := get(list, "exitCode"); code != "" && code != "0" {
		s += "\n\nIt ended with exit code " + string(code) + "."
	}
	if isTrue(list, "cancelled") {
		s += "\n\nIt was cancelled."
	}
	return strings.TrimSpace(s)
}

// userMessage appends a user message with this content.
func (s *piSession) userMessage(p place, e *entry, j content.JSON) error {
	blocks, err := p.list(j, piBlock)
	if err != nil {
		return err
	}
	e.payload = node.Message{Role: content.User, Blocks: blocks}
	return s.tree.add(e)
}

// result appends a message with one tool result.
func (s *piSession) result(p place, e *entry, list []jsonx.Member) error {
	p.inner = true
	blocks, err := p.list(get(list, "content"), piBlock)
	if err != nil {
		return err
	}

	p.inner = false
	r := content.ToolResult{CallID: piCallID(text(list, "toolCallId")), Content: blocks, IsError: isTrue(list, "isError")}
	e.payload, e.blocks = node.Message{Role: content.User}, []content.Block{p.fit(get(list, "content"), r)}
	e.details = get(list, "details")
	return s.tree.add(e)
}

// piAPI returns Plait's name for an API of pi. An unknown name is returned unchanged.
func piAPI(api string) string {
	switch {
	case strings.HasPrefix(api, "anthropic"), strings.HasPrefix(api, "bedrock"):
		return anthropicAPI
	case strings.Contains(api, "responses"):
		return responsesAPI
	case strings.HasPrefix(api, "openai"):
		return chatAPI
	case strings.HasPrefix(api, "google"):
		return geminiAPI
	case api == piAPIs[""]:
		return ""
	}
	return api
}

// piAPIs are pi's names for APIs.
var piAPIs = map[string]string{
	anthropicAPI: "anthropic-messages", responsesAPI: "openai-responses", chatAPI: "openai-completions",
	geminiAPI: "google-generative-ai", "": "unknown",
}

func (s *piSession) assistant(p place, e *entry, list []jsonx.Member) error {
	api := piAPI(text(list, "api"))
	blocks, err := p.list(get(list, "content"), func(p place, raw content.JSON) content.Block { return piAssistantBlock(p, raw, api) })
	if err != nil {
		return err
	}

	usage, _ := object(get(list, "usage"))
	e.payload = node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{
		API: api, Model: text(list, "model"), ResponseID: text(list, "responseId"), Stop: stopOf(text(list, "stopReason"), piStops),
		Usage: content.Usage{
			Input: count(usage, "input"), Output: count(usage, "output"),
			CacheRead: count(usage, "cacheRead"), CacheWrite: count(usage, "cacheWrite"), Reasoning: count(usage, "reasoning"),
		},
		Seen: seenElsewhere,
	}}
	return s.tree.add(e)
}

// piStops are pi's words for stop reasons.
var piStops = map[content.Stop]string{
	content.StopEndTurn: "stop", content.StopToolUse: "toolUse", content.StopMaxTokens: "length",
}

// piCallID returns the ID of a call. For OpenAI's Responses API, pi writes "CALL|ITEM"; the item's ID is cut off.
func piCallID(id string) string {
	call, _, _ := strings.Cut(id, "|")
	return call
}

// piBlock reads a block of a user message or a tool result.
func piBlock(p place, raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, "pi", "it is not an object")
	}

	kind, list, _ := jsonx.TakeText(list, "type")
	switch kind {
	case "text":
		if s, rest, ok := jsonx.TakeText(list, "text"); ok {
			return content.Text{Text: s, Extra: extra("pi", rest)}
		}
	case "image":
		data, rest, ok := jsonx.TakeText(list, "data")
		media, rest, _ := jsonx.TakeText(rest, "mimeType")
		if ok && data != "" {
			return content.Image{Source: content.Source{MediaType: media, Data: data}, Extra: extra("pi", rest)}
		}
	}
	return p.opaque(raw, "pi", fmt.Sprintf("a block of the type %q", kind))
}

// piAssistantBlock reads a block of an assistant's message from this API.
func piAssistantBlock(p place, raw content.JSON, api string) content.Block {
	list, err := object(raw)
	if err != nil {
		return piBlock(p, raw)
	}

	switch kind, list, _ := jsonx.TakeText(list, "type"); kind {
	case "text":
		s, rest, ok := jsonx.TakeText(list, "text")
		// For the Responses API, textSignature holds the ID of a message: piBlock keeps it as it is.
		if signature, _, _ := jsonx.TakeText(rest, "textSignature"); ok && api == geminiAPI && signature != "" {
			return content.Text{Text: s, Extra: signed(signature)}
		}
	case "thinking":
		if thought, rest, ok := jsonx.TakeText(list, "thinking"); ok {
			return piThinking(thought, rest, api)
		}
	case "toolCall":
		return piCall(p, raw, list, api)
	}
	return piBlock(p, raw)
}

// signed returns the Extra of a block with a signature of Gemini.
func signed(signature string) content.Extra {
	return content.Extra{API: geminiAPI, JSON: jsonx.Object([]jsonx.Member{{Name: "thoughtSignature", Value: jsonx.Quote(signature)}})}
}

// piThinking reads thinking. The meaning of its signature depends on the API.
func piThinking(thought string, rest []jsonx.Member, api string) content.Block {
	signature, rest, _ := jsonx.TakeText(rest, "thinkingSignature")
	redacted, rest := jsonx.Take(rest, "redacted")
	t := content.Thinking{Text: thought, Signature: signature, Extra: content.Extra{API: api, JSON: "{}"}}

	switch api {
	case anthropicAPI:
		if redacted == "true" && signature != "" {
			return content.Thinking{Redacted: signature, Extra: t.Extra}
		}
		if signature != "" {
			return t
		}
	case responsesAPI:
		// pi keeps the whole reasoning item of the API as the signature.
		if item, err := object(content.JSON(signature)); err == nil {
			item = append([]jsonx.Member{{Name: "type", Value: `"reasoning"`}}, without(item, "type")...)
			return reasoningItem(item)
		}
	case chatAPI:
		// pi stores the name of the member with the thinking as its signature.
		t.Signature = ""
		if signature != "" {
			t.Extra.JSON = jsonx.Object([]jsonx.Member{{Name: "field", Value: jsonx.Quote(signature)}})
		}
		return t
	case geminiAPI:
		return t
	}

	// A signature of an unknown API is kept, but not as one.
	if signature != "" {
		rest = append(rest, jsonx.Member{Name: "thinkingSignature", Value: jsonx.Quote(signature)})
	}
	return content.Thinking{Text: thought, Extra: extra("pi", rest)}
}

// piCall reads a tool call.
func piCall(p place, raw content.JSON, list []jsonx.Member, api string) content.Block {
	id, rest, _ := jsonx.TakeText(list, "id")
	name, rest, named := jsonx.TakeText(rest, "name")
	input, rest := jsonx.Take(rest, "arguments")
	signature, rest, _ := jsonx.TakeText(rest, "thoughtSignature")
	if !named {
		return p.opaque(raw, "pi", "a call without a name")
	}

	call := content.ToolUse{ID: piCallID(id), Name: name, Input: input}
	// The ID as it was stays in the Extra, with the item's.
	if call.ID != id {
		rest = append([]jsonx.Member{{Name: "id", Value: jsonx.Quote(id)}}, rest...)
	}

	call.Extra = extra("pi", rest)
	if api == geminiAPI && signature != "" {
		call.Extra = signed(signature)
	}
	return call
}

// piVersion is the version of the format that is written.
const piVersion = 3

// pi writes a session.
func (x *exporter) pi() {
	x.unset()
	w := &piWriter{exporter: x}
	w.line(fields{"type": "session", "version": piVersion, "id": x.session.String(), "timestamp": rfc(x.began), "cwd": x.opts.Folder})

	x.each(w.block, func(s *spoken, parts []any) {
		message := fields{"role": s.role, "content": parts}
		if s.role == content.Assistant {
			w.response(message, s.answer)
		}
		w.add(message, s.time)

		for _, c := range s.calls {
			if c.answered {
				inner := func(b content.Block, c *called) any { return w.block(s, b, c) }
				w.add(w.with(fields{
					"role": "toolResult", "toolCallId": c.id, "toolName": c.Name, "isError": c.result.IsError,
					"content": x.parts(c.result.Content.Slice(), nil, inner),
				}, c.result.Extra, "pi"), c.ended)
			}
		}
	})
}

// piWriter is the state of an export.
type piWriter struct {
	*exporter
	lines int
}

// add writes a message behind the last one.
func (w *piWriter) add(message fields, at time.Time) {
	name := func(line int) any {
		if line == 0 {
			return nil
		}
		return fmt.Sprintf("%08x", line)
	}
	w.lines++
	message["timestamp"] = at.UnixMilli()
	w.line(fields{
		"type": "message", "id": name(w.lines), "parentId": name(w.lines - 1), "timestamp": rfc(at), "message": message,
	})
}

// response adds what is known about a response.
func (w *piWriter) response(message fields, a node.Answer) {
	message["api"], message["provider"], message["model"] = cmp.Or(piAPIs[a.API], a.API), w.opts.Provider, w.model(a)
	message["stopReason"] = cmp.Or(w.stop(a, piStops), "stop")
	if a.ResponseID != "" {
		message["responseId"] = a.ResponseID
	}
	u := a.Usage
	message["usage"] = fields{
		"input": u.Input, "output": u.Output, "cacheRead": u.CacheRead, "cacheWrite": u.CacheWrite, "reasoning": u.Reasoning,
		"totalTokens": u.Input + u.Output + u.CacheRead + u.CacheWrite,
		"cost":        map[string]int{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
	}
}

// block returns a block of a message or a result, or nil.
func (w *piWriter) block(s *spoken, b content.Block, c *called) any {
	switch b := b.(type) {
	case content.Text:
		return w.signed(fields{"type": "text", "text": b.Text}, b.Extra, s.answer.API, "textSignature")
	case content.Image:
		if b.Source.Data != "" {
			return w.with(fields{"type": "image", "data": b.Source.Data, "mimeType": b.Source.MediaType}, b.Extra, "pi")
		}
	case content.Thinking:
		return w.thinking(b, s.answer.API)
	case content.ToolUse:
		call := fields{"type": "toolCall", "name": b.Name, "arguments": w.object(b.Input)}
		w.callID(call, b.Extra, c)
		return w.signed(call, b.Extra, s.answer.API, "thoughtSignature")
	case content.Opaque:
		if b.API == "pi" {
			return jsontext.Value(b.JSON)
		}
	}
	return nil
}

// callID gives a call its ID, unless its further members have it together with that of an item: see piCallID.
func (w *piWriter) callID(call fields, e content.Extra, c *called) {
	list, _ := object(e.For("pi"))
	if whole := text(list, "id"); whole != "" && piCallID(whole) == c.id {
		c.id = whole
		return
	}
	if strings.Contains(c.id, "|") {
		c.id = strings.ReplaceAll(c.id, "|", "_")
		w.lose(LossCallIDs, 1)
	}
	call["id"] = c.id
}

// signed adds the further members of a block of an API. A signature of Gemini has this name.
func (w *piWriter) signed(f fields, e content.Extra, api, name string) any {
	list, _ := object(e.For(geminiAPI))
	if api == geminiAPI && len(list) == 1 && list[0].Name == "thoughtSignature" {
		f[name] = jsontext.Value(list[0].Value)
		return f
	}
	return w.with(f, e, "pi")
}

// thinking returns thinking in a response of an API. Its inverse is piThinking.
func (w *piWriter) thinking(t content.Thinking, api string) any {
	f := fields{"type": "thinking", "thinking": t.Text}
	rest, signature := t.Extra, t.Signature
	list, _ := object(rest.JSON)
	switch {
	case rest.API != api:
		w.lose(LossThinking, min(len(t.Signature+t.Redacted), 1))
		signature = ""
	case api == responsesAPI:
		signature, rest = string(reasoningJSON(t)), content.Extra{}
	case api == chatAPI:
		signature, rest.JSON = text(list, "field"), jsonx.Object(without(list, "field"))
	case t.Redacted != "":
		signature, f["redacted"] = t.Redacted, true
	}
	if signature != "" {
		f["thinkingSignature"] = signature
	}
	return w.with(f, rest, "pi")
}
