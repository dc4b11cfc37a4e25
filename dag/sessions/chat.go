package sessions

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/node"
)

// chat imports messages of the Chat Completions API: one JSON document, or one a line.
func (im *importer) chat(r io.Reader) error {
	data, err := im.readAll(r)
	if err != nil {
		return err
	}
	c := &chatFile{importer: im}
	if err := im.documents(data, c.line); err != nil {
		return err
	}
	return c.end()
}

// documents calls each with the documents of a file: each nonblank line, or once with the whole file.
func (im *importer) documents(data string, each func(line) error) error {
	trimmed := strings.TrimSpace(data)
	before := strings.Count(data[:strings.Index(data, trimmed)], "\n") // the blank lines before the document

	switch {
	case trimmed == "":
		return im.errorf(0, "", ErrSyntax, "the file is empty")
	case im.isLines(data):
		return im.lines(strings.NewReader(data), each)
	case strings.Contains(trimmed, "\n"):
		// The line of a value in the document is not known. That of a mistake in its syntax is counted from the start.
		return each(line{0, strings.Repeat("\n", before) + trimmed})
	}
	return each(line{1 + before, trimmed})
}

// isLines reports whether a file has a JSON value a line, as opposed to one document.
func (im *importer) isLines(data string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(data), "\n")
	if strings.TrimSpace(rest) == "" {
		return false
	}
	return content.JSON(first).Valid() || im.opts.Lenient && !content.JSON(data).Valid()
}

// chatFile is the state of an import.
type chatFile struct {
	*importer
	open *chatConversation // of messages on lines of their own; nil if there are none
}

// chatConversation is one conversation of a file.
type chatConversation struct {
	*importer
	tree *tree
	last string // the name of the last entry
	n    int    // how many entries there are
}

func (im *importer) chatConversation() *chatConversation {
	return &chatConversation{importer: im, tree: newTree(im)}
}

// line imports a line. A broken one is kept as a record if the options are lenient.
func (c *chatFile) line(l line) error {
	err := c.value(l)
	if err == nil || !c.opts.Lenient {
		return err
	}

	if c.open == nil {
		c.open = c.chatConversation()
	}
	return c.unreadable(c.open.tree, l, err)
}

// value imports a message, a conversation, or a list of messages.
func (c *chatFile) value(l line) error {
	j, err := c.valid(l.at, l.text)
	if err != nil {
		return err
	}

	if messages, ok := items(j); ok {
		return c.whole(l.at, nil, messages)
	}

	list, err := c.members(l.at, "", j)
	if err != nil {
		return err
	}

	messages, ok := items(get(list, "messages"))
	switch {
	case ok:
		return c.whole(l.at, list, messages)
	case text(list, "role") == "":
		return c.errorf(l.at, "", ErrShape, `an object has neither "messages" nor "role": %s`, excerpt(j))
	}

	if c.open == nil {
		c.open = c.chatConversation()
	}
	return c.open.message(l.at, "", j)
}

// whole imports a conversation. List holds the members of the object around the messages.
func (c *chatFile) whole(at int, list []jsonx.Member, messages []content.JSON) error {
	// It ends an open conversation of messages on lines of their own.
	if err := c.end(); err != nil {
		return err
	}

	conv := c.chatConversation()
	if err := conv.declare(at, list); err != nil {
		return err
	}

	for i, m := range messages {
		if err := conv.message(at, fmt.Sprintf("messages[%d]", i), m); err != nil {
			return err
		}
	}

	return conv.end()
}

// end ends the conversation of messages on lines of their own.
func (c *chatFile) end() error {
	conv := c.open
	if c.open = nil; conv == nil {
		return nil
	}
	return conv.end()
}

// end makes the nodes of a conversation.
func (c *chatConversation) end() error {
	ends, err := c.tree.build()
	c.heads = append(c.heads, ends...)
	return err
}

// add appends an entry to the conversation.
func (c *chatConversation) add(at int, e *entry) error {
	c.n++
	e.line, e.parentName = at, c.last

	// Two messages of LangChain may have one ID. Entries here have no body, so the tree would drop the second one as a
	// repetition; it gets a name of its own instead.
	if e.name == "" || c.tree.byName[e.name] != nil {
		e.name = "line " + strconv.Itoa(at) + ", " + strconv.Itoa(c.n)
	}
	c.last = e.name
	return c.tree.add(e)
}

// noArguments is the schema of a function without parameters.
const noArguments = `{"type":"object","properties":{}}`

// declare imports the members of a conversation other than the messages: the tool definitions, and everything else as a
// record.
func (c *chatConversation) declare(at int, list []jsonx.Member) error {
	d := declarations{place: place{im: c.importer, line: at}}
	definitions := func(name string, list []jsonx.Member) []content.JSON {
		defs, ok := items(get(list, name))
		if get(list, name) != "" && !ok {
			d.note(NoteLeftOut, "%s is not a list", name)
		}
		return defs
	}

	for _, one := range definitions("tools", list) {
		outer, err := object(one)
		function, outer := jsonx.Take(outer, "function")
		inner, wrong := object(function)
		switch {
		case err != nil:
			d.refuse(one, "it is not an object")
		// A tool other than a function: only its own API knows its meaning.
		case wrong != nil:
			d.add(content.Tool{Name: text(outer, "type"), Extra: content.Extra{API: chatAPI, JSON: one}}, one)
		default:
			d.add(chatFunction(inner, without(outer, "type")), one)
		}
	}

	// The older form of the same definitions.
	for _, one := range definitions("functions", list) {
		if inner, err := object(one); err != nil {
			d.refuse(one, "it is not an object")
		} else {
			d.add(chatFunction(inner, nil), one)
		}
	}

	// If a definition was refused, the record has all of them.
	kept := without(list, "messages", "tools", "functions")
	if d.refused > 0 {
		kept = without(list, "messages")
	}
	if len(kept) > 0 {
		c.note(at, "", NoteRecord, "the members beside the messages: %s", names(kept))
		if err := c.add(at, &entry{payload: node.Custom{Name: "chat", JSON: jsonx.Object(kept)}}); err != nil {
			return err
		}
	}

	if len(d.defs) == 0 {
		return nil
	}
	return c.add(at, &entry{payload: node.Tools{Defs: node.ListOf(d.defs...)}})
}

// names returns the names of the members, for a note.
func names(list []jsonx.Member) string {
	var all []string
	for _, m := range list {
		all = append(all, m.Name)
	}
	return strings.Join(all, ", ")
}

// chatFunction reads the definition of a function. Outer holds the members beside it.
func chatFunction(inner, outer []jsonx.Member) content.Tool {
	var def content.Tool
	def.Name, inner, _ = jsonx.TakeText(inner, "name")
	def.Description, inner, _ = jsonx.TakeText(inner, "description")
	def.Schema, inner = jsonx.Take(inner, "parameters")

	if def.Schema == "" || def.Schema == "null" {
		def.Schema = noArguments
	}

	def.Extra = extra(chatAPI, append(inner, outer...))
	return def
}

// message imports one message.
func (c *chatConversation) message(at int, where string, j content.JSON) error {
	list, err := c.members(at, where, j)
	if err != nil {
		return err
	}

	p := place{im: c.importer, line: at, where: where, foreign: chatAPI}
	blocks, err := p.list(get(list, "content"), chatPart)
	if err != nil {
		return err
	}

	// The API's messages have no time. Some programs add one when they save them.
	e := &entry{time: stamp(get(list, "timestamp"))}
	if e.time.IsZero() {
		e.time = stamp(get(list, "created_at"))
	}

	// taken are the members held by the payload. All others become metadata.
	taken := []string{"role", "content"}
	switch role := text(list, "role"); role {
	case "system", "developer":
		p.chatSystem(e, role, list, blocks)

	case "user":
		if name := text(list, "name"); name != "" {
			p.note(NoteChanged, "the name %q of the user is kept as metadata, and not sent", name)
		}
		e.payload = node.Message{Role: content.User, Blocks: blocks}

	case "assistant":
		taken = append(taken, chatTaken(list)...)
		e.payload = node.Message{Role: content.Assistant}
		e.blocks, err = p.chatResponse(list, blocks)

	case "tool", "function":
		taken = append(taken, "tool_call_id")
		r := content.ToolResult{CallID: text(list, "tool_call_id"), Content: blocks}
		e.payload = node.Message{Role: content.User}
		e.blocks = []content.Block{p.fit(j, r)}

	default:
		if !c.opts.Lenient {
			return c.errorf(at, where, ErrShape, "the role %q is not one of system, developer, user, assistant and tool", role)
		}
		c.note(at, where, NoteRecord, "a message with the role %q", role)
		e.payload = node.Custom{Name: "chat.message", JSON: j}
	}

	if err != nil {
		return err
	}

	// A record has the whole message as its payload.
	if _, record := e.payload.(node.Custom); !record {
		e.meta = metaOf(e.meta, "chat", without(list, taken...))
	}
	return c.add(at, e)
}

// chatSystem imports a system prompt into e.
func (p place) chatSystem(e *entry, role string, list []jsonx.Member, blocks content.Blocks) {
	// A node.System has no role.
	if role == "developer" {
		e.meta = metaWith(e.meta, "chat.role", `"developer"`)
	}

	e.payload = node.System{Text: blocks.Text()}
	if !onlyText(blocks) {
		e.meta = metaWith(e.meta, "chat.content", get(list, "content"))
		p.note(NoteChanged, "only the text of the system prompt is sent")
	}
}

// onlyText reports whether the blocks are plain text.
func onlyText(blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		if t, ok := b.(content.Text); !ok || t.Extra != (content.Extra{}) {
			return false
		}
	}
	return true
}

// thoughts are the members for thinking, by different servers.
var thoughts = []string{"reasoning_content", "reasoning", "thinking"}

// chatTaken returns the names of the members of an assistant's message read by chatResponse.
func chatTaken(list []jsonx.Member) []string {
	taken := []string{"tool_calls"}

	// chatResponse reads only texts. A member of another shape, such as an object, stays as metadata.
	for _, name := range append([]string{"refusal"}, thoughts...) {
		if text(list, name) != "" {
			taken = append(taken, name)
		}
	}
	if _, err := object(get(list, "function_call")); err == nil {
		taken = append(taken, "function_call")
	}
	return taken
}

// chatResponse returns the blocks of an assistant's message: thinking, content, a refusal and calls. This is the order
// of package openai.
func (p place) chatResponse(list []jsonx.Member, body content.Blocks) ([]content.Block, error) {
	blocks := []content.Block{}
	for _, field := range thoughts {
		if thought := text(list, field); thought != "" {
			mark := content.Extra{API: chatAPI, JSON: jsonx.Object([]jsonx.Member{{Name: "field", Value: jsonx.Quote(field)}})}
			blocks = append(blocks, content.Thinking{Text: thought, Extra: mark})
		}
	}

	blocks = append(blocks, body.Slice()...)
	if refusal := text(list, "refusal"); refusal != "" {
		blocks = append(blocks, content.Text{Text: refusal, Extra: content.Extra{API: chatAPI, JSON: `{"type":"refusal"}`}})
	}

	calls, ok := items(get(list, "tool_calls"))
	if get(list, "tool_calls") != "" && !ok {
		return nil, p.im.errorf(p.line, p.where, ErrShape, "tool_calls is not a list")
	}

	for i, raw := range calls {
		at := p
		at.where = strings.TrimPrefix(fmt.Sprintf("%s, tool_calls[%d]", p.where, i), ", ")
		blocks = append(blocks, at.fit(raw, at.chatCall(raw)))
	}

	// The older form of a call. It has no ID.
	if old, err := object(get(list, "function_call")); err == nil {
		blocks = append(blocks, p.fit(get(list, "function_call"), chatArguments(content.ToolUse{}, old, nil)))
	}
	return blocks, nil
}

// chatCall reads an element of tool_calls.
func (p place) chatCall(raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, chatAPI, "it is not an object")
	}

	var call content.ToolUse
	call.ID, list, _ = jsonx.TakeText(list, "id")
	kind, rest, _ := jsonx.TakeText(list, "type")

	// The input of a custom tool is a text, not JSON. It becomes a JSON string.
	if custom, err := object(get(rest, "custom")); err == nil {
		call.Name = text(custom, "name")
		call.Input = jsonx.Quote(text(custom, "input"))
		call.Extra = content.Extra{API: chatAPI, JSON: `{"type":"custom"}`}
		return call
	}

	function, rest := jsonx.Take(rest, "function")
	inner, err := object(function)
	if err != nil {
		return p.opaque(raw, chatAPI, fmt.Sprintf("a call of type %q", kind))
	}
	return chatArguments(call, inner, without(rest, "index"))
}

// chatArguments sets the name and the arguments of a call. In some files the arguments are JSON itself, not a text with
// JSON in it.
func chatArguments(call content.ToolUse, function, rest []jsonx.Member) content.ToolUse {
	call.Name = text(function, "name")

	arguments := get(function, "arguments")
	if s, ok := jsonx.Text(arguments); ok {
		arguments = content.JSON(s)
	}

	call.Input = arguments
	call.Extra = extra(chatAPI, append(without(function, "name", "arguments"), rest...))
	return call
}

// chatPart reads an element of a message's content.
func chatPart(p place, raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		if s, ok := jsonx.Text(raw); ok {
			return content.Text{Text: s}
		}
		return p.opaque(raw, chatAPI, "it is not an object")
	}

	kind, list, _ := jsonx.TakeText(list, "type")

	// Most parts have their content in a member with the name of their type.
	inner, rest := jsonx.Take(list, kind)
	of, _ := object(inner)

	// A part becomes a block of Plait if the block can hold all of it. Otherwise the part stays as it is.
	switch kind {
	case "text", "input_text", "output_text":
		if s, rest, ok := jsonx.TakeText(list, "text"); ok {
			return content.Text{Text: s, Extra: extra(chatAPI, rest)}
		}

	case "refusal":
		if s, ok := jsonx.Text(inner); ok {
			return content.Text{Text: s, Extra: content.Extra{API: chatAPI, JSON: `{"type":"refusal"}`}}
		}

	case "image_url":
		url, further, ok := jsonx.TakeText(of, "url")
		// The URL itself may take the place of an object with it.
		if s, plain := jsonx.Text(inner); plain {
			url, ok = s, true
		}
		if s, isURL := urlSource(url); ok && isURL {
			return content.Image{Source: s, Extra: extra(chatAPI, append(further, rest...))}
		}

	case "input_audio":
		data, further, ok := jsonx.TakeText(of, "data")
		format, further, named := jsonx.TakeText(further, "format")
		if ok && named && data != "" && len(further) == 0 {
			// The format is "wav" or "mp3". The media type of the latter is audio/mpeg.
			s := content.Source{MediaType: "audio/" + strings.Replace(format, "mp3", "mpeg", 1), Data: data}
			return content.Document{Source: s, Extra: extra(chatAPI, rest)}
		}

	case "file":
		title, further, _ := jsonx.TakeText(of, "filename")
		data, further, _ := jsonx.TakeText(further, "file_data")
		id, further, _ := jsonx.TakeText(further, "file_id")

		s, ok := urlSource(data)
		if data == "" && id != "" {
			s, ok = content.Source{FileID: id}, true
		}
		if ok && len(without(further)) == 0 {
			// A document has one source. Unlike the ID, the data can be sent to each API.
			if s.FileID == "" && id != "" {
				p.note(NoteLeftOut, "the file_id %q: the part has its file_data, too", id)
			}
			return content.Document{Source: s, Title: title, Extra: extra(chatAPI, rest)}
		}
	}
	return p.opaque(raw, chatAPI, fmt.Sprintf("a part of type %q", kind))
}

// urlSource returns the source of a URL. The data of a data: URL must be in base64.
func urlSource(url string) (content.Source, bool) {
	data, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return content.Source{URL: url}, url != ""
	}

	head, data, ok := strings.Cut(data, ",")
	kind, encoded := strings.CutSuffix(head, ";base64")
	return content.Source{MediaType: kind, Data: data}, ok && encoded && data != ""
}
