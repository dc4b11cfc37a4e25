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

// langChain imports messages of LangChain, or a state of LangGraph that holds some. The forms are those of langchain-core's messages
// (libs/core/langchain_core/messages) and load.dumpd, and of langgraph's StateSnapshot and Checkpoint.
func (im *importer) langChain(r io.Reader) error {
	data, err := im.readAll(r)
	if err != nil {
		return err
	}
	im.session = im.fingerprint()

	c := &langChainFile{chatFile{importer: im}}
	switch trimmed := strings.TrimSpace(data); {
	case trimmed == "":
		return im.errorf(0, "", ErrSyntax, "the file is empty")
	case im.isLines(data):
		err = im.lines(strings.NewReader(data), c.line)
	default:
		err = c.line(line{1, trimmed})
	}
	if err != nil {
		return err
	}
	return c.end()
}

// langChainFile is a file while it is read.
type langChainFile struct{ chatFile }

// line takes a message, a conversation, or a state.
func (c *langChainFile) line(l line) error {
	j, err := c.valid(l.at, l.text)
	if err == nil {
		err = c.value(l.at, "", j)
	}
	if err == nil || !c.opts.Lenient {
		return err
	}
	c.begin()
	return c.unreadable(c.open.tree, l, err)
}

// begin makes sure that there is a conversation for messages that are lines of their own.
func (c *langChainFile) begin() {
	if c.open == nil {
		c.open = c.chatTalk()
	}
}

// value takes what a line or the whole file holds.
func (c *langChainFile) value(at int, where string, j content.JSON) error {
	if list, ok := items(j); ok {
		return c.list(at, where, nil, list)
	}
	list, err := c.members(at, where, j)
	if err != nil {
		return err
	}

	if _, _, ok := langChainFields(list); ok {
		c.begin()
		return c.message(c.open, at, where, j)
	}
	if messages, ok := items(get(list, "messages")); ok {
		return c.list(at, join(where, "messages"), without(list, "messages"), messages)
	}

	for _, wrapper := range stateWrappers {
		inner := get(list, wrapper.member)
		if _, err := object(inner); err != nil || strings.Count(where, ".") >= maxWrappers {
			continue
		}
		if rest := without(list, wrapper.member); len(rest) > 0 {
			c.about = append(c.about, about{"langchain." + wrapper.key, wire.Object(rest)})
		}
		return c.value(at, join(where, wrapper.member), inner)
	}
	return c.errorf(at, where, ErrShape, `an object is neither a message nor a state with "messages": %s`, excerpt(j))
}

// stateWrappers are the members in which LangGraph keeps a state: StateSnapshot.values, Checkpoint.channel_values, and the Checkpoint of a
// CheckpointTuple. Their neighbors become metadata under the key.
var stateWrappers = []struct{ member, key string }{
	{"values", "state"}, {"channel_values", "checkpoint"}, {"checkpoint", "checkpoint_tuple"},
}

// maxWrappers is how many wrappers may stand inside of each other, beside the first.
const maxWrappers = 1

// join is a place within a place.
func join(where, name string) string { return strings.TrimPrefix(where+"."+name, ".") }

// list takes the messages of a conversation, or the conversations of a batch. Beside is what a state holds beside its messages.
func (c *langChainFile) list(at int, where string, beside []wire.Member, messages []content.JSON) error {
	if len(messages) > 0 {
		if _, nested := items(messages[0]); nested {
			return c.batch(at, where, messages)
		}
	}
	if err := c.end(); err != nil {
		return err
	}

	talk := c.chatTalk()
	if len(beside) > 0 {
		c.note(at, "", NoteRecord, "what stands beside the messages: %s", names(beside))
		if err := talk.add(at, &entry{payload: node.Custom{Name: "langchain", JSON: wire.Object(beside)}}); err != nil {
			return err
		}
	}
	for i, m := range messages {
		if err := c.message(talk, at, where+"["+strconv.Itoa(i)+"]", m); err != nil {
			return err
		}
	}
	return talk.end()
}

// batch takes a list of conversations, as the input of several runs is.
func (c *langChainFile) batch(at int, where string, conversations []content.JSON) error {
	for i, one := range conversations {
		place := where + "[" + strconv.Itoa(i) + "]"
		messages, ok := items(one)
		if !ok {
			return c.errorf(at, place, ErrShape, "a list of messages was expected, and not %s", excerpt(one))
		}
		if len(messages) > 0 {
			if _, nested := items(messages[0]); nested {
				return c.errorf(at, place, ErrShape, "a message was expected, and not a list")
			}
		}
		if err := c.list(at, place, nil, messages); err != nil {
			return err
		}
	}
	return nil
}

// langChainTypes are the types of messages, by the names that they have in the three forms.
var langChainTypes = map[string]string{
	"human": "human", "HumanMessage": "human", "HumanMessageChunk": "human",
	"ai": "ai", "AIMessage": "ai", "AIMessageChunk": "ai",
	"system": "system", "SystemMessage": "system", "SystemMessageChunk": "system",
	"tool": "tool", "ToolMessage": "tool", "ToolMessageChunk": "tool",
	"function": "tool", "FunctionMessage": "tool", "FunctionMessageChunk": "tool",
	"chat": "chat", "ChatMessage": "chat", "ChatMessageChunk": "chat", "generic": "chat",
	"remove": "remove", "RemoveMessage": "remove",
}

// langChainFields returns the fields of a message and its type, by whichever of the forms it has:
//
//	{"lc": 1, "type": "constructor", "id": […, "AIMessage"], "kwargs": {…}}   dumpd, and toJSON of LangChain.js
//	{"type": "ai", "data": {…}}                                              messages_to_dict
//	{"type": "ai", "content": …, …}                                          model_dump, and the API of LangGraph
func langChainFields(list []wire.Member) (kind string, fields []wire.Member, ok bool) {
	name := text(list, "type")
	switch {
	case get(list, "lc") != "" && name == "constructor":
		path, _ := items(get(list, "id"))
		if len(path) > 0 {
			name, _ = wire.Text(path[len(path)-1])
		}
		fields, _ = object(get(list, "kwargs"))
	case get(list, "data") != "":
		fields, _ = object(get(list, "data"))
	case get(list, "content") != "" || get(list, "tool_calls") != "" || name == "remove":
		fields = list
	}
	kind, known := langChainTypes[name]
	return kind, fields, known && fields != nil
}

// message takes one message.
func (c *langChainFile) message(talk *chatTalk, at int, where string, j content.JSON) error {
	list, err := c.members(at, where, j)
	if err != nil {
		return err
	}
	kind, fields, ok := langChainFields(list)
	if !ok {
		// A state may hold messages as dictionaries with a role, which LangGraph takes as well.
		if text(list, "role") != "" {
			return talk.message(at, where, j)
		}
		if !c.opts.Lenient {
			return c.errorf(at, where, ErrShape, "no message of LangChain: %s", excerpt(j))
		}
		c.note(at, where, NoteRecord, "no message of LangChain")
		return talk.add(at, &entry{payload: node.Custom{Name: "langchain.message", JSON: j}})
	}

	if kind == "chat" {
		kind = chatRoles[text(fields, "role")]
	}
	p := place{im: c.importer, line: at, where: where, foreign: "langchain"}
	e := &entry{}
	taken := []string{"type", "content", "id", "example", "tool_call_chunks", "chunk_position"}
	switch kind {
	case "system":
		err = p.langChainSystem(e, fields)
	case "human":
		var blocks content.Blocks
		blocks, err = p.list(get(fields, "content"), langChainBlock)
		e.payload = node.Message{Role: content.User, Blocks: blocks}
	case "ai":
		taken = append(taken, "tool_calls", "invalid_tool_calls", "usage_metadata")
		err = p.langChainAnswer(e, fields)
	case "tool":
		taken = append(taken, "tool_call_id", "status", "artifact")
		err = p.langChainResult(e, fields, j)
	default: // an instruction to remove a message, or a role of the program's own
		c.note(at, where, NoteRecord, "a message of the type %q", text(list, "type"))
		e.payload = node.Custom{Name: "langchain.message", JSON: j}
	}
	if err != nil {
		return err
	}

	if e.payload.Kind() != "custom" {
		e.meta = metaOf(e.meta, "langchain", langChainRest(fields, taken))
	}
	if id := text(fields, "id"); id != "" {
		e.meta = metaWith(e.meta, "langchain.id", wire.Quote(id))
		e.name = id
	}
	return talk.add(at, e)
}

// chatRoles are the types that the roles of a ChatMessage stand for.
var chatRoles = map[string]string{
	"user": "human", "human": "human", "assistant": "ai", "ai": "ai", "system": "system", "developer": "system", "tool": "tool", "function": "tool",
}

// langChainRest is what a message has beyond what its node says. Members that hold nothing are not kept.
func langChainRest(fields []wire.Member, taken []string) []wire.Member {
	var rest []wire.Member
	for _, m := range without(fields, taken...) {
		if m.Name == "additional_kwargs" {
			if kwargs, err := object(m.Value); err == nil {
				m.Value = wire.Object(without(kwargs, "tool_calls", "function_call", "reasoning_content", "refusal"))
			}
		}
		if m.Value != "{}" && m.Value != "[]" {
			rest = append(rest, m)
		}
	}
	return rest
}

func (p place) langChainSystem(e *entry, fields []wire.Member) error {
	blocks, err := p.list(get(fields, "content"), langChainBlock)
	if err != nil {
		return err
	}
	e.payload = node.System{Text: blocks.Text()}
	if !onlyText(blocks) {
		e.meta = metaWith(e.meta, "langchain.content", get(fields, "content"))
		p.note(NoteChanged, "of a system prompt only the text is sent")
	}
	return nil
}

func (p place) langChainResult(e *entry, fields []wire.Member, j content.JSON) error {
	inner := p
	inner.inner = true
	blocks, err := inner.list(get(fields, "content"), langChainBlock)
	if err != nil {
		return err
	}
	r := content.ToolResult{CallID: text(fields, "tool_call_id"), Content: blocks, IsError: text(fields, "status") == "error"}
	e.payload, e.blocks = node.Message{Role: content.User}, []content.Block{p.fit(j, r)}
	e.details = get(fields, "artifact")
	return nil
}

// langChainAnswer takes a message of the model's.
func (p place) langChainAnswer(e *entry, fields []wire.Member) error {
	about, _ := object(get(fields, "response_metadata"))
	answer := node.Answer{
		API:        langChainAPI(about, text(fields, "id")),
		Model:      firstText(about, "model_name", "model", "model_id"),
		ResponseID: text(about, "id"),
		Stop:       langChainStop(firstText(about, "finish_reason", "stop_reason", "stopReason", "done_reason", "status")),
		Usage:      langChainUsage(fields),
		Seen:       seenElsewhere,
	}
	e.payload = node.Message{Role: content.Assistant, Answer: answer}
	if answer.API != "" {
		p.foreign = answer.API
	}
	kwargs, _ := object(get(fields, "additional_kwargs"))

	// Servers put thinking and refusals beside the content.
	e.blocks = []content.Block{}
	if thought := text(kwargs, "reasoning_content"); thought != "" {
		mark := content.Extra{API: chatAPI, JSON: `{"field":"reasoning_content"}`}
		e.blocks = append(e.blocks, content.Thinking{Text: thought, Extra: mark})
	}
	calls := p.langChainCalls(fields, kwargs)
	said, err := p.list(get(fields, "content"), langChainBlock)
	if err != nil {
		return err
	}

	// A call that stands in the content as well has its place there. What tool_calls says of it holds: in content of a stream
	// the arguments may be missing.
	byID := map[string]int{}
	for i, b := range calls {
		if use, ok := b.(content.ToolUse); ok {
			byID[use.ID] = i
		}
	}
	for _, b := range said.All() {
		if use, ok := b.(content.ToolUse); ok {
			if i, listed := byID[use.ID]; listed && calls[i] != nil {
				listedUse := calls[i].(content.ToolUse)
				listedUse.Extra = use.Extra
				b, calls[i] = listedUse, nil
			}
		}
		e.blocks = append(e.blocks, b)
	}
	if refusal := text(kwargs, "refusal"); refusal != "" {
		e.blocks = append(e.blocks, content.Text{Text: refusal, Extra: content.Extra{API: chatAPI, JSON: `{"type":"refusal"}`}})
	}
	for _, b := range calls {
		if b != nil {
			e.blocks = append(e.blocks, b)
		}
	}
	return nil
}

// langChainCalls returns the calls that are listed beside the content: those that LangChain could read, those that it could not, and,
// where it lists neither, those that the provider wrote.
func (p place) langChainCalls(fields, kwargs []wire.Member) []content.Block {
	var calls []content.Block
	good, _ := items(get(fields, "tool_calls"))
	for _, raw := range good {
		calls = append(calls, p.fit(raw, langChainCall(p, raw)))
	}
	bad, _ := items(get(fields, "invalid_tool_calls"))
	for _, raw := range bad {
		p.note(NoteChanged, "a call whose arguments LangChain could not read is kept with them")
		calls = append(calls, p.fit(raw, langChainCall(p, raw)))
	}
	if len(calls) > 0 {
		return calls
	}

	written, _ := items(get(kwargs, "tool_calls"))
	for _, raw := range written {
		calls = append(calls, p.fit(raw, p.chatCall(raw)))
	}
	if old, err := object(get(kwargs, "function_call")); err == nil {
		calls = append(calls, p.fit(get(kwargs, "function_call"), chatArguments(content.ToolUse{}, old, nil)))
	}
	return calls
}

// langChainCall reads a call of LangChain's. The arguments of one that it could not read are text.
func langChainCall(p place, raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, p.foreign, "it is no object")
	}
	id, list, _ := wire.TakeText(list, "id")
	name, list, named := wire.TakeText(list, "name")
	if !named {
		return p.opaque(raw, p.foreign, "a call without a name")
	}
	args, list := wire.Take(list, "args")
	if said, ok := wire.Text(args); ok {
		args = content.JSON(said)
	}
	return content.ToolUse{ID: id, Name: name, Input: args, Extra: extra("langchain", without(list, "type", "error", "index"))}
}

// langChainBlock reads a block of content: LangChain's own of version 1 and of the version before, or a provider's.
func langChainBlock(p place, raw content.JSON) content.Block {
	if said, ok := wire.Text(raw); ok {
		return content.Text{Text: said}
	}
	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, p.foreign, "it is no object")
	}
	kind, rest, _ := wire.TakeText(list, "type")
	rest = without(rest, "index")
	switch kind {
	case "text":
		if said, rest, ok := wire.TakeText(rest, "text"); ok {
			return content.Text{Text: said, Extra: extra(p.foreign, rest)}
		}
	case "reasoning":
		if b := p.langChainThinking(list, rest); b != nil {
			return b
		}
	case "thinking", "redacted_thinking", "tool_use":
		if b := knownAnthropic(p, kind, rest); b != nil {
			return b
		}
	case "tool_call", "invalid_tool_call":
		return langChainCall(p, raw)
	case "image", "audio", "video", "file", "text-plain", "document":
		if b := langChainMedia(p, kind, rest); b != nil {
			return b
		}
		return chatPart(p, raw)
	case "image_url", "input_audio", "input_text", "output_text", "refusal":
		return chatPart(p, raw)
	case "non_standard":
		if value, ok := object(get(rest, "value")); ok == nil {
			return p.opaque(get(rest, "value"), p.foreign, fmt.Sprintf("a block of the type %q", text(value, "type")))
		}
	}
	return p.opaque(raw, p.foreign, fmt.Sprintf("a block of the type %q", kind))
}

// langChainThinking reads thinking of OpenAI's Responses API as it stands there, or LangChain's own form.
func (p place) langChainThinking(list, rest []wire.Member) content.Block {
	if get(list, "summary") != "" || get(list, "encrypted_content") != "" {
		return reasoningItem(without(list, "index"))
	}
	thought, rest, ok := wire.TakeText(rest, "reasoning")
	if !ok {
		return nil
	}
	extras, err := object(get(rest, "extras"))
	signature := text(extras, "signature")
	if err == nil && signature != "" && (p.foreign == anthropicAPI || p.foreign == geminiAPI) {
		return content.Thinking{Text: thought, Signature: signature, Extra: content.Extra{API: p.foreign, JSON: wire.Object(without(extras, "signature"))}}
	}
	return content.Thinking{Text: thought, Extra: extra("langchain", rest)}
}

// langChainMedia reads an image or a file, with the names of version 1, of the version before ("source_type") or of Anthropic ("source").
func langChainMedia(p place, kind string, list []wire.Member) content.Block {
	if get(list, "source") != "" {
		return knownAnthropic(p, kind, list)
	}
	var s content.Source
	s.MediaType, list, _ = wire.TakeText(list, "mime_type")
	from, list, _ := wire.TakeText(list, "source_type")
	switch {
	case text(list, "base64") != "":
		s.Data, list, _ = wire.TakeText(list, "base64")
	case from == "base64":
		s.Data, list, _ = wire.TakeText(list, "data")
	case text(list, "url") != "":
		var url string
		url, list, _ = wire.TakeText(list, "url")
		found, ok := urlSource(url)
		if !ok {
			return nil
		}
		if found.MediaType == "" {
			found.MediaType = s.MediaType
		}
		s = found
	case text(list, "file_id") != "":
		s.FileID, list, _ = wire.TakeText(list, "file_id")
	case from == "id":
		s.FileID, list, _ = wire.TakeText(list, "id")
	case text(list, "text") != "":
		s.Text, list, _ = wire.TakeText(list, "text")
		s.MediaType = "text/plain"
	default:
		return nil
	}
	if kind == "image" {
		return content.Image{Source: s, Extra: extra("langchain", list)}
	}
	title, list, _ := wire.TakeText(list, "title")
	return content.Document{Source: s, Title: title, Extra: extra("langchain", list)}
}

// langChainAPI is Plait's name of the API that answered, "" where nothing tells.
func langChainAPI(about []wire.Member, id string) string {
	response := firstText(about, "id")
	if response == "" {
		response = id
	}
	switch provider := text(about, "model_provider"); {
	case strings.HasPrefix(response, "resp_"), text(about, "object") == "response":
		return responsesAPI
	case strings.HasPrefix(provider, "anthropic"), strings.HasPrefix(response, "msg_"):
		return anthropicAPI
	case strings.HasPrefix(provider, "google"):
		return geminiAPI
	case provider == "openai", strings.HasPrefix(response, "chatcmpl-"), get(about, "system_fingerprint") != "":
		return chatAPI
	}
	return ""
}

func langChainStop(reason string) content.Stop {
	switch reason {
	case "stop", "STOP", "completed":
		return content.StopEndTurn
	case "tool_calls", "function_call":
		return content.StopToolUse
	case "length", "MAX_TOKENS":
		return content.StopMaxTokens
	case "content_filter", "SAFETY":
		return content.StopRefusal
	}
	return claudeStop(reason)
}

// langChainUsage is the counters of a message. LangChain's input includes what a cache had or was given.
func langChainUsage(fields []wire.Member) content.Usage {
	usage, _ := object(get(fields, "usage_metadata"))
	in, _ := object(get(usage, "input_token_details"))
	out, _ := object(get(usage, "output_token_details"))
	u := content.Usage{
		Output: count(usage, "output_tokens"), CacheRead: count(in, "cache_read"), CacheWrite: count(in, "cache_creation"),
		Reasoning: count(out, "reasoning"),
	}
	u.Input = max(0, count(usage, "input_tokens")-u.CacheRead-u.CacheWrite)
	return u
}

// firstText is the first of these members that is a string and not empty.
func firstText(list []wire.Member, names ...string) string {
	for _, name := range names {
		if said := text(list, name); said != "" {
			return said
		}
	}
	return ""
}
