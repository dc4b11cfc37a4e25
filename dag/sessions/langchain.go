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

// langChain imports messages of LangChain, or a state of LangGraph with messages. The forms are those of
// langchain-core's messages (libs/core/langchain_core/messages) and load.dumpd, and of langgraph's StateSnapshot and
// Checkpoint.
func (im *importer) langChain(r io.Reader) error {
	data, err := im.readAll(r)
	if err != nil {
		return err
	}

	c := &langChainFile{chatFile{importer: im}}
	if err := im.documents(data, c.line); err != nil {
		return err
	}
	return c.end()
}

// langChainFile is the state of an import.
type langChainFile struct{ chatFile }

// line imports a message, a conversation, or a state. A broken line is kept as a record if the options are lenient.
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

// begin starts the conversation of messages on lines of their own, unless it is open already.
func (c *langChainFile) begin() {
	if c.open == nil {
		c.open = c.chatConversation()
	}
}

// value imports the content of a line, or of the whole file.
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
		// The position has a dot for each wrapper around the first.
		if _, err := object(inner); err != nil || strings.Count(where, ".") >= maxWrappers {
			continue
		}
		if rest := without(list, wrapper.member); len(rest) > 0 {
			c.about = append(c.about, about{"langchain." + wrapper.key, jsonx.Object(rest)})
		}
		return c.value(at, join(where, wrapper.member), inner)
	}
	return c.errorf(at, where, ErrShape, `an object is neither a message nor a state with "messages": %s`, excerpt(j))
}

// stateWrappers are LangGraph's members for a state: StateSnapshot.values, Checkpoint.channel_values, and the
// Checkpoint of a CheckpointTuple. Their neighbors become metadata under the key.
var stateWrappers = []struct{ member, key string }{
	{"values", "state"}, {"channel_values", "checkpoint"}, {"checkpoint", "checkpoint_tuple"},
}

// maxWrappers limits how many wrappers may be nested in the first.
const maxWrappers = 1

// join returns the position of a member within another position.
func join(where, name string) string { return strings.TrimPrefix(where+"."+name, ".") }

// list imports the messages of a conversation, or the conversations of a batch. Rest holds the other members of a
// state.
func (c *langChainFile) list(at int, where string, rest []jsonx.Member, messages []content.JSON) error {
	// A list of lists is a batch of conversations.
	if len(messages) > 0 {
		if _, nested := items(messages[0]); nested {
			return c.batch(at, where, messages)
		}
	}

	if err := c.end(); err != nil {
		return err
	}

	conv := c.chatConversation()
	if len(rest) > 0 {
		c.note(at, "", NoteRecord, "the members beside the messages: %s", names(rest))
		if err := conv.add(at, &entry{payload: node.Custom{Name: "langchain", JSON: jsonx.Object(rest)}}); err != nil {
			return err
		}
	}

	for i, m := range messages {
		if err := c.message(conv, at, where+"["+strconv.Itoa(i)+"]", m); err != nil {
			return err
		}
	}
	return conv.end()
}

// batch imports a list of conversations, such as the input of several runs.
func (c *langChainFile) batch(at int, where string, conversations []content.JSON) error {
	for i, one := range conversations {
		place := where + "[" + strconv.Itoa(i) + "]"
		messages, ok := items(one)
		if !ok {
			return c.errorf(at, place, ErrShape, "expected a list of messages, got %s", excerpt(one))
		}

		// list would take this for another batch, and follow a hostile file to any depth.
		if len(messages) > 0 {
			if _, nested := items(messages[0]); nested {
				return c.errorf(at, place, ErrShape, "expected a message, got a list")
			}
		}
		if err := c.list(at, place, nil, messages); err != nil {
			return err
		}
	}
	return nil
}

// langChainTypes maps the names of message types, in all three forms, to those used here.
var langChainTypes = map[string]string{
	"human": "human", "HumanMessage": "human", "HumanMessageChunk": "human",
	"ai": "ai", "AIMessage": "ai", "AIMessageChunk": "ai",
	"system": "system", "SystemMessage": "system", "SystemMessageChunk": "system",
	"tool": "tool", "ToolMessage": "tool", "ToolMessageChunk": "tool",
	"function": "tool", "FunctionMessage": "tool", "FunctionMessageChunk": "tool",
	"chat": "chat", "ChatMessage": "chat", "ChatMessageChunk": "chat", "generic": "chat",
	"remove": "remove", "RemoveMessage": "remove",
}

// langChainFields returns the type and the fields of a message in one of these forms:
//
//	{"lc": 1, "type": "constructor", "id": […, "AIMessage"], "kwargs": {…}}   dumpd, and toJSON of LangChain.js
//	{"type": "ai", "data": {…}}                                              messages_to_dict
//	{"type": "ai", "content": …, …}                                          model_dump, and the API of LangGraph
func langChainFields(list []jsonx.Member) (kind string, fields []jsonx.Member, ok bool) {
	name := text(list, "type")
	switch {
	// The type is the last element of the path of the class.
	case get(list, "lc") != "" && name == "constructor":
		path, _ := items(get(list, "id"))
		if len(path) > 0 {
			name, _ = jsonx.Text(path[len(path)-1])
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

// message imports one message.
func (c *langChainFile) message(conv *chatConversation, at int, where string, j content.JSON) error {
	list, err := c.members(at, where, j)
	if err != nil {
		return err
	}
	kind, fields, ok := langChainFields(list)
	if !ok {
		// LangGraph also accepts messages in the form of the Chat Completions API.
		if text(list, "role") != "" {
			return conv.message(at, where, j)
		}

		if !c.opts.Lenient {
			return c.errorf(at, where, ErrShape, "not a message of LangChain: %s", excerpt(j))
		}
		c.note(at, where, NoteRecord, "not a message of LangChain")
		return conv.add(at, &entry{payload: node.Custom{Name: "langchain.message", JSON: j}})
	}

	if kind == "chat" {
		kind = chatRoles[text(fields, "role")]
	}

	// The members in taken are held by the payload, or say nothing beside it. All others become metadata.
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
		err = p.langChainResponse(e, fields)

	case "tool":
		taken = append(taken, "tool_call_id", "status", "artifact")
		err = p.langChainResult(e, fields, j)

	default: // an instruction to remove a message, or a custom role
		c.note(at, where, NoteRecord, "a message of type %q", text(list, "type"))
		e.payload = node.Custom{Name: "langchain.message", JSON: j}
	}
	if err != nil {
		return err
	}

	// A record has the whole message as its payload.
	if _, record := e.payload.(node.Custom); !record {
		e.meta = metaOf(e.meta, "langchain", langChainRest(fields, taken))
	}

	// LangGraph's messages have IDs. Only a UUID can be the ID of a node, so the metadata keeps the ID in any case.
	if id := text(fields, "id"); id != "" {
		e.meta = metaWith(e.meta, "langchain.id", jsonx.Quote(id))
		e.name = id
	}
	return conv.add(at, e)
}

// chatRoles maps the role of a ChatMessage to a message type.
var chatRoles = map[string]string{
	"user": "human", "human": "human", "assistant": "ai", "ai": "ai", "system": "system", "developer": "system",
	"tool": "tool", "function": "tool",
}

// langChainRest returns the fields of a message outside its payload. Empty objects and lists are dropped.
func langChainRest(fields []jsonx.Member, taken []string) []jsonx.Member {
	var rest []jsonx.Member
	for _, m := range without(fields, taken...) {
		if m.Name == "additional_kwargs" {
			if kwargs, err := object(m.Value); err == nil {
				m.Value = jsonx.Object(without(kwargs, "tool_calls", "function_call", "reasoning_content", "refusal"))
			}
		}
		if m.Value != "{}" && m.Value != "[]" {
			rest = append(rest, m)
		}
	}
	return rest
}

// langChainSystem imports a system prompt into e.
func (p place) langChainSystem(e *entry, fields []jsonx.Member) error {
	blocks, err := p.list(get(fields, "content"), langChainBlock)
	if err != nil {
		return err
	}

	e.payload = node.System{Text: blocks.Text()}
	if !onlyText(blocks) {
		e.meta = metaWith(e.meta, "langchain.content", get(fields, "content"))
		p.note(NoteChanged, "only the text of the system prompt is sent")
	}
	return nil
}

// langChainResult imports a tool result into e.
func (p place) langChainResult(e *entry, fields []jsonx.Member, j content.JSON) error {
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

// langChainResponse imports an assistant's message into e.
func (p place) langChainResponse(e *entry, fields []jsonx.Member) error {
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

	// Some servers return thinking and refusals beside the content.
	kwargs, _ := object(get(fields, "additional_kwargs"))
	e.blocks = []content.Block{}
	if thought := text(kwargs, "reasoning_content"); thought != "" {
		mark := content.Extra{API: chatAPI, JSON: `{"field":"reasoning_content"}`}
		e.blocks = append(e.blocks, content.Thinking{Text: thought, Extra: mark})
	}

	calls := p.langChainCalls(fields, kwargs)
	body, err := p.list(get(fields, "content"), langChainBlock)
	if err != nil {
		return err
	}

	placed, calls := placeCalls(body, calls)
	e.blocks = append(e.blocks, placed...)

	if refusal := text(kwargs, "refusal"); refusal != "" {
		e.blocks = append(e.blocks, content.Text{Text: refusal, Extra: content.Extra{API: chatAPI, JSON: `{"type":"refusal"}`}})
	}
	e.blocks = append(e.blocks, calls...)
	return nil
}

// placeCalls returns the blocks of the content, and the calls missing there. A call in both keeps its position in the
// content, but gets its values from calls: streamed content may lack the arguments. Calls without an ID are matched by
// their name. Of several calls that match, each is used once, in order.
func placeCalls(body content.Blocks, calls []content.Block) (blocks, rest []content.Block) {
	type key struct{ id, name string }
	keyOf := func(use content.ToolUse) key {
		if use.ID != "" {
			return key{id: use.ID}
		}
		return key{name: use.Name}
	}

	unplaced := map[key][]int{} // indexes in calls
	for i, b := range calls {
		if use, ok := b.(content.ToolUse); ok {
			unplaced[keyOf(use)] = append(unplaced[keyOf(use)], i)
		}
	}

	for _, b := range body.All() {
		if use, ok := b.(content.ToolUse); ok {
			k := keyOf(use)
			if same := unplaced[k]; len(same) > 0 {
				listed := calls[same[0]].(content.ToolUse)
				// The block in the content is the provider's own: keep its further members.
				listed.Extra = use.Extra
				b, calls[same[0]], unplaced[k] = listed, nil, same[1:]
			}
		}
		blocks = append(blocks, b)
	}

	for _, b := range calls {
		if b != nil {
			rest = append(rest, b)
		}
	}
	return blocks, rest
}

// langChainCalls returns the calls outside the content: first the ones parsed by LangChain, and then the others. If
// there are none, it returns the calls in the provider's own form.
func (p place) langChainCalls(fields, kwargs []jsonx.Member) []content.Block {
	var calls []content.Block
	good, _ := items(get(fields, "tool_calls"))
	for _, raw := range good {
		calls = append(calls, p.fit(raw, langChainCall(p, raw)))
	}

	bad, _ := items(get(fields, "invalid_tool_calls"))
	for _, raw := range bad {
		p.note(NoteChanged, "a call is kept with arguments that LangChain could not parse")
		calls = append(calls, p.fit(raw, langChainCall(p, raw)))
	}
	if len(calls) > 0 {
		return calls
	}

	// Without parsed calls, those of the provider are left.
	written, _ := items(get(kwargs, "tool_calls"))
	for _, raw := range written {
		calls = append(calls, p.fit(raw, p.chatCall(raw)))
	}
	if old, err := object(get(kwargs, "function_call")); err == nil {
		calls = append(calls, p.fit(get(kwargs, "function_call"), chatArguments(content.ToolUse{}, old, nil)))
	}
	return calls
}

// langChainCall reads a call in LangChain's form. If LangChain could not parse the arguments, they are a text.
func langChainCall(p place, raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, p.foreign, "it is not an object")
	}

	id, list, _ := jsonx.TakeText(list, "id")
	name, list, named := jsonx.TakeText(list, "name")
	if !named {
		return p.opaque(raw, p.foreign, "a call without a name")
	}

	args, list := jsonx.Take(list, "args")
	if s, ok := jsonx.Text(args); ok {
		args = content.JSON(s)
	}

	return content.ToolUse{ID: id, Name: name, Input: args, Extra: extra("langchain", without(list, "type", "error", "index"))}
}

// langChainBlock reads a block of content: LangChain's own, of version 0 or 1, or a provider's.
func langChainBlock(p place, raw content.JSON) content.Block {
	if s, ok := jsonx.Text(raw); ok {
		return content.Text{Text: s}
	}

	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, p.foreign, "it is not an object")
	}

	kind, rest, _ := jsonx.TakeText(list, "type")
	rest = without(rest, "index")

	switch kind {
	case "text":
		if s, rest, ok := jsonx.TakeText(rest, "text"); ok {
			return content.Text{Text: s, Extra: extra(p.foreign, rest)}
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

	// A file may also have the form of OpenAI's API.
	case "image", "audio", "video", "file", "text-plain", "document":
		if b := langChainMedia(p, kind, rest); b != nil {
			return b
		}
		return chatPart(p, raw)

	case "image_url", "input_audio", "input_text", "output_text", "refusal":
		return chatPart(p, raw)

	case "non_standard":
		if value, ok := object(get(rest, "value")); ok == nil {
			return p.opaque(get(rest, "value"), p.foreign, fmt.Sprintf("a block of type %q", text(value, "type")))
		}
	}
	return p.opaque(raw, p.foreign, fmt.Sprintf("a block of type %q", kind))
}

// langChainThinking reads a reasoning item of OpenAI's Responses API, or thinking in LangChain's own form. It returns
// nil for neither.
func (p place) langChainThinking(list, rest []jsonx.Member) content.Block {
	if get(list, "summary") != "" || get(list, "encrypted_content") != "" {
		return reasoningItem(without(list, "index"))
	}

	thought, rest, ok := jsonx.TakeText(rest, "reasoning")
	if !ok {
		return nil
	}

	extras, err := object(get(rest, "extras"))
	signature := text(extras, "signature")
	// Only these APIs read such a signature. Otherwise it stays in an Extra that no API is sent.
	if err == nil && signature != "" && (p.foreign == anthropicAPI || p.foreign == geminiAPI) {
		mark := content.Extra{API: p.foreign, JSON: jsonx.Object(without(extras, "signature"))}
		return content.Thinking{Text: thought, Signature: signature, Extra: mark}
	}
	return content.Thinking{Text: thought, Extra: extra("langchain", rest)}
}

// langChainMedia reads an image or a file with the member names of version 1, of version 0 ("source_type") or of
// Anthropic ("source"). It returns nil for anything else.
func langChainMedia(p place, kind string, list []jsonx.Member) content.Block {
	if get(list, "source") != "" {
		return knownAnthropic(p, kind, list)
	}

	var s content.Source
	s.MediaType, list, _ = jsonx.TakeText(list, "mime_type")
	from, list, _ := jsonx.TakeText(list, "source_type")

	// The bytes, a URL, an uploaded file or a text, each under its name in version 1 or in version 0.
	switch {
	case text(list, "base64") != "":
		s.Data, list, _ = jsonx.TakeText(list, "base64")
	case from == "base64":
		s.Data, list, _ = jsonx.TakeText(list, "data")
	case text(list, "url") != "":
		var url string
		url, list, _ = jsonx.TakeText(list, "url")
		// Only a data: URL has a media type of its own.
		found, ok := urlSource(url)
		if !ok {
			return nil
		}
		if found.MediaType == "" {
			found.MediaType = s.MediaType
		}
		s = found
	case text(list, "file_id") != "":
		s.FileID, list, _ = jsonx.TakeText(list, "file_id")
	case from == "id":
		s.FileID, list, _ = jsonx.TakeText(list, "id")
	case text(list, "text") != "":
		s.Text, list, _ = jsonx.TakeText(list, "text")
		s.MediaType = "text/plain"
	default:
		return nil
	}

	if kind == "image" {
		return content.Image{Source: s, Extra: extra("langchain", list)}
	}
	title, list, _ := jsonx.TakeText(list, "title")
	return content.Document{Source: s, Title: title, Extra: extra("langchain", list)}
}

// langChainAPI returns Plait's name for the API of the message, or "" if it is not known.
func langChainAPI(about []jsonx.Member, id string) string {
	response := firstText(about, "id")
	if response == "" {
		response = id
	}

	// The order matters: the Responses API gives its messages IDs with "msg_", like Anthropic's.
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

// langChainUsage returns the token counts of a message. LangChain's input_tokens include tokens read from and written
// to a cache.
func langChainUsage(fields []jsonx.Member) content.Usage {
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

// firstText returns the first non-empty string among these members, or "".
func firstText(list []jsonx.Member, names ...string) string {
	for _, name := range names {
		if s := text(list, name); s != "" {
			return s
		}
	}
	return ""
}
