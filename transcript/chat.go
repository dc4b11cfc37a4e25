package transcript

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/plait-dev/plait/node"
)

// chat imports messages of the Chat Completions API: one document, or lines of them.
func (im *importer) chat(r io.Reader) error {
	data, err := im.readAll(r)
	if err != nil {
		return err
	}
	im.session = im.fingerprint()
	c := &chatFile{importer: im}
	if im.isLines(data) {
		err = im.lines(strings.NewReader(data), c.line)
	} else if data = strings.TrimSpace(data); strings.Contains(data, "\n") {
		err = c.line(line{0, data})
	} else if data != "" {
		err = c.line(line{1, data})
	} else {
		err = im.errorf(0, "", ErrSyntax, "the file is empty")
	}
	if err != nil {
		return err
	}
	return c.end()
}

// isLines reports whether a file is one of lines, and not a document.
func (im *importer) isLines(data string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(data), "\n")
	if strings.TrimSpace(rest) == "" {
		return false
	}
	return content.JSON(first).Valid() || im.opts.Lenient && !content.JSON(data).Valid()
}

// chatFile is a file while it is read.
type chatFile struct {
	*importer
	open *chatTalk // the conversation of messages that are lines of their own
}

// chatTalk is a conversation.
type chatTalk struct {
	*importer
	tree *tree
	last string // the name of its last entry
	n    int
}

func (im *importer) chatTalk() *chatTalk { return &chatTalk{importer: im, tree: newTree(im)} }

func (c *chatFile) line(l line) error {
	err := c.value(l)
	if err == nil || !c.opts.Lenient {
		return err
	}
	if c.open == nil {
		c.open = c.chatTalk()
	}
	return c.unreadable(c.open.tree, l, err)
}

// value takes a message, a conversation, or a list of messages.
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
		return c.errorf(l.at, "", ErrShape, `an object has neither "messages" nor a "role": %s`, excerpt(j))
	}
	if c.open == nil {
		c.open = c.chatTalk()
	}
	return c.open.message(l.at, "", j)
}

func (c *chatFile) whole(at int, list []wire.Member, messages []content.JSON) error {
	if err := c.end(); err != nil {
		return err
	}
	talk := c.chatTalk()
	if err := talk.declare(at, list); err != nil {
		return err
	}
	for i, m := range messages {
		if err := talk.message(at, fmt.Sprintf("messages[%d]", i), m); err != nil {
			return err
		}
	}
	return talk.end()
}

// end ends the conversation of messages that are lines of their own.
func (c *chatFile) end() error {
	talk := c.open
	if c.open = nil; talk == nil {
		return nil
	}
	return talk.end()
}

// end makes the nodes of a conversation.
func (c *chatTalk) end() error {
	ends, err := c.tree.build()
	c.heads = append(c.heads, ends...)
	return err
}

// add takes the next entry, after the last.
func (c *chatTalk) add(at int, e *entry) error {
	c.n++
	e.line, e.parentName = at, c.last
	if e.name == "" || c.tree.byName[e.name] != nil {
		e.name = "line " + strconv.Itoa(at) + ", " + strconv.Itoa(c.n)
	}
	c.last = e.name
	return c.tree.add(e)
}

// noArguments is the schema of a function that declares none.
const noArguments = `{"type":"object","properties":{}}`

// declare takes what a conversation has beside its messages: definitions of tools, and members that are kept as a record.
func (c *chatTalk) declare(at int, list []wire.Member) error {
	d := declarations{place: place{im: c.importer, line: at}}
	raw := func(name string, list []wire.Member) []content.JSON {
		defs, ok := items(get(list, name))
		if get(list, name) != "" && !ok {
			d.note(NoteLeftOut, "%s is no list", name)
		}
		return defs
	}
	for _, one := range raw("tools", list) {
		outer, err := object(one)
		function, outer := wire.Take(outer, "function")
		inner, wrong := object(function)
		switch {
		case err != nil:
			d.refuse(one, "it is no object")
		case wrong != nil:
			d.add(content.Tool{Name: text(outer, "type"), Extra: content.Extra{API: chatAPI, JSON: one}}, one)
		default:
			d.add(chatFunction(inner, without(outer, "type")), one)
		}
	}
	for _, one := range raw("functions", list) {
		if inner, err := object(one); err != nil {
			d.refuse(one, "it is no object")
		} else {
			d.add(chatFunction(inner, nil), one)
		}
	}
	kept := without(list, "messages", "tools", "functions")
	if d.refused > 0 {
		kept = without(list, "messages")
	}
	if len(kept) > 0 {
		c.note(at, "", NoteRecord, "what stands beside the messages: %s", names(kept))
		if err := c.add(at, &entry{payload: node.Custom{Name: "chat", JSON: wire.Object(kept)}}); err != nil {
			return err
		}
	}
	if len(d.defs) == 0 {
		return nil
	}
	return c.add(at, &entry{payload: node.Tools{Defs: node.ListOf(d.defs...)}})
}

func names(list []wire.Member) string {
	var all []string
	for _, m := range list {
		all = append(all, m.Name)
	}
	return strings.Join(all, ", ")
}

func chatFunction(inner, outer []wire.Member) content.Tool {
	var def content.Tool
	def.Name, inner, _ = wire.TakeText(inner, "name")
	def.Description, inner, _ = wire.TakeText(inner, "description")
	def.Schema, inner = wire.Take(inner, "parameters")
	if def.Schema == "" || def.Schema == "null" {
		def.Schema = noArguments
	}
	def.Extra = extra(chatAPI, append(inner, outer...))
	return def
}

// message takes one message.
func (c *chatTalk) message(at int, where string, j content.JSON) error {
	list, err := c.members(at, where, j)
	if err != nil {
		return err
	}
	p := place{im: c.importer, line: at, where: where, foreign: chatAPI}
	blocks, err := p.list(get(list, "content"), chatPart)
	if err != nil {
		return err
	}
	e := &entry{time: stamp(get(list, "timestamp"))}
	if e.time.IsZero() {
		e.time = stamp(get(list, "created_at"))
	}
	taken := []string{"role", "content"}
	switch role := text(list, "role"); role {
	case "system", "developer":
		if role == "developer" {
			e.meta = metaWith(e.meta, "chat.role", `"developer"`)
		}
		e.payload = node.System{Text: blocks.Text()}
		if !onlyText(blocks) {
			e.meta = metaWith(e.meta, "chat.content", get(list, "content"))
			p.note(NoteChanged, "of a system prompt only the text is sent")
		}
	case "user":
		if name := text(list, "name"); name != "" {
			p.note(NoteChanged, "the name %q of the user is kept as metadata, and not sent", name)
		}
		e.payload = node.Message{Role: content.User, Blocks: blocks}
	case "assistant":
		taken = append(taken, chatTaken(list)...)
		e.payload = node.Message{Role: content.Assistant}
		e.blocks, err = p.chatAnswer(list, blocks)
	case "tool", "function":
		taken = append(taken, "tool_call_id")
		r := content.ToolResult{CallID: text(list, "tool_call_id"), Content: blocks}
		e.payload = node.Message{Role: content.User}
		e.blocks = []content.Block{p.fit(j, r)}
	default:
		if !c.opts.Lenient {
			return c.errorf(at, where, ErrShape, "the role %q is none of system, developer, user, assistant and tool", role)
		}
		c.note(at, where, NoteRecord, "a message of the role %q", role)
		e.payload = node.Custom{Name: "chat.message", JSON: j}
	}
	if err != nil {
		return err
	}
	if e.payload.Kind() != "custom" {
		e.meta = metaOf(e.meta, "chat", without(list, taken...))
	}
	return c.add(at, e)
}

func onlyText(blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		if t, ok := b.(content.Text); !ok || t.Extra != (content.Extra{}) {
			return false
		}
	}
	return true
}

// thoughts are the members in which servers tell what a model thought.
var thoughts = []string{"reasoning_content", "reasoning", "thinking"}

// chatTaken is the members of an assistant's message that chatAnswer reads.
func chatTaken(list []wire.Member) []string {
	taken := []string{"tool_calls"}
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

// chatAnswer is what the assistant says: thinking, words, a refusal and calls, in the order in which the provider reads them.
func (p place) chatAnswer(list []wire.Member, words content.Blocks) ([]content.Block, error) {
	blocks := []content.Block{}
	for _, field := range thoughts {
		if thought := text(list, field); thought != "" {
			mark := content.Extra{API: chatAPI, JSON: wire.Object([]wire.Member{{Name: "field", Value: wire.Quote(field)}})}
			blocks = append(blocks, content.Thinking{Text: thought, Extra: mark})
		}
	}
	blocks = append(blocks, words.Slice()...)
	if refusal := text(list, "refusal"); refusal != "" {
		blocks = append(blocks, content.Text{Text: refusal, Extra: content.Extra{API: chatAPI, JSON: `{"type":"refusal"}`}})
	}
	calls, ok := items(get(list, "tool_calls"))
	if get(list, "tool_calls") != "" && !ok {
		return nil, p.im.errorf(p.line, p.where, ErrShape, "tool_calls is no list")
	}
	for i, raw := range calls {
		at := p
		at.where = strings.TrimPrefix(fmt.Sprintf("%s, tool_calls[%d]", p.where, i), ", ")
		blocks = append(blocks, at.fit(raw, at.chatCall(raw)))
	}
	if old, err := object(get(list, "function_call")); err == nil {
		blocks = append(blocks, p.fit(get(list, "function_call"), chatArguments(content.ToolUse{}, old, nil)))
	}
	return blocks, nil
}

func (p place) chatCall(raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, chatAPI, "it is no object")
	}
	var call content.ToolUse
	call.ID, list, _ = wire.TakeText(list, "id")
	kind, rest, _ := wire.TakeText(list, "type")
	if custom, err := object(get(rest, "custom")); err == nil {
		call.Name = text(custom, "name")
		call.Input = wire.Quote(text(custom, "input"))
		call.Extra = content.Extra{API: chatAPI, JSON: `{"type":"custom"}`}
		return call
	}
	function, rest := wire.Take(rest, "function")
	inner, err := object(function)
	if err != nil {
		return p.opaque(raw, chatAPI, fmt.Sprintf("a call of the type %q", kind))
	}
	return chatArguments(call, inner, without(rest, "index"))
}

// chatArguments is the call with the name and the arguments of a function: text that holds JSON or, in some files, JSON.
func chatArguments(call content.ToolUse, function, rest []wire.Member) content.ToolUse {
	call.Name = text(function, "name")
	arguments := get(function, "arguments")
	if said, ok := wire.Text(arguments); ok {
		arguments = content.JSON(said)
	}
	call.Input = arguments
	call.Extra = extra(chatAPI, append(without(function, "name", "arguments"), rest...))
	return call
}

// chatPart reads a part of a message's content.
func chatPart(p place, raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		if said, ok := wire.Text(raw); ok {
			return content.Text{Text: said}
		}
		return p.opaque(raw, chatAPI, "it is no object")
	}
	kind, list, _ := wire.TakeText(list, "type")
	inner, rest := wire.Take(list, kind)
	of, _ := object(inner)
	switch kind {
	case "text", "input_text", "output_text":
		if said, rest, ok := wire.TakeText(list, "text"); ok {
			return content.Text{Text: said, Extra: extra(chatAPI, rest)}
		}
	case "refusal":
		if said, ok := wire.Text(inner); ok {
			return content.Text{Text: said, Extra: content.Extra{API: chatAPI, JSON: `{"type":"refusal"}`}}
		}
	case "image_url":
		url, further, ok := wire.TakeText(of, "url")
		if said, plain := wire.Text(inner); plain {
			url, ok = said, true
		}
		if s, isURL := urlSource(url); ok && isURL {
			return content.Image{Source: s, Extra: extra(chatAPI, append(further, rest...))}
		}
	case "input_audio":
		data, further, ok := wire.TakeText(of, "data")
		format, further, named := wire.TakeText(further, "format")
		if ok && named && data != "" && len(further) == 0 {
			return content.Document{Source: content.Source{MediaType: "audio/" + strings.Replace(format, "mp3", "mpeg", 1), Data: data}, Extra: extra(chatAPI, rest)}
		}
	case "file":
		s, ok := urlSource(text(of, "file_data"))
		if id := text(of, "file_id"); !ok && id != "" {
			s, ok = content.Source{FileID: id}, true
		}
		if ok && len(without(of, "filename", "file_data", "file_id")) == 0 {
			return content.Document{Source: s, Title: text(of, "filename"), Extra: extra(chatAPI, rest)}
		}
	}
	return p.opaque(raw, chatAPI, fmt.Sprintf("a part of the type %q", kind))
}

// urlSource is what a URL leads to, which may hold it itself.
func urlSource(url string) (content.Source, bool) {
	data, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return content.Source{URL: url}, url != ""
	}
	head, data, ok := strings.Cut(data, ",")
	kind, encoded := strings.CutSuffix(head, ";base64")
	return content.Source{MediaType: kind, Data: data}, ok && encoded && data != ""
}
