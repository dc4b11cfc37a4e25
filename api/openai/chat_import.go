package openai

import (
	"fmt"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/roundtrip"
	"github.com/plait-dev/plait/internal/wire"
)

// ImportChat reads the body of a request to the Chat Completions API, and returns the request and the model that it asks: the reverse
// of [ChatBody]. Members that are neither tools nor messages are in the request's Options.Body, but for "stream" and
// "stream_options"; parts that Plait does not model are content.Opaque.
//
// Messages of the role "system" and "developer" are the request's system prompts, wherever they stand. Those of tools and those of
// the user in a row are one message. What a message of the user has beside its content, such as a name, is a content.Opaque before
// it. A message of any other role keeps its role; a message that says nothing is left out.
//
// Errors are api.ErrInvalidRequest and say where in the body something cannot be read. What can be read but is not what the API
// accepts is for ChatBody to repair.
//
// dag.FromTranscript makes a conversation of the request's System, Tools and Messages.
func ImportChat(body []byte) (req api.Request, model string, err error) {
	list, err := wire.Members(content.JSON(body))
	if err != nil {
		return req, "", roundtrip.ImportError(ChatAPI, roundtrip.NotRead("body", err))
	}
	var rest []wire.Member
	for _, m := range list {
		switch m.Name {
		case "model":
			model, _ = wire.Text(m.Value)
		case "stream", "stream_options":
		case "tools":
			req.Tools, err = importChatTools(m.Value)
		case "messages":
			req.System, req.Messages, err = importChatMessages(m.Value)
		default:
			rest = append(rest, m)
		}
		if err != nil {
			return api.Request{}, "", roundtrip.ImportError(ChatAPI, err)
		}
	}
	if len(rest) > 0 {
		req.Options.Body = wire.Object(rest)
	}
	return req, model, nil
}

func importChatTools(j content.JSON) ([]content.Tool, error) {
	list, err := roundtrip.ImportObjects("tools", j)
	if err != nil {
		return nil, err
	}
	var tools []content.Tool
	names := toolNames{}
	for _, one := range list {
		tools = append(tools, importChatTool(one, names))
	}
	return tools, nil
}

// importChatTool reads a definition. What is no function is known to the API alone.
func importChatTool(tool roundtrip.Imported, names toolNames) content.Tool {
	kind, outer, _ := wire.TakeText(tool.List, "type")
	function, outer := wire.Take(outer, "function")
	inner, err := wire.Members(function)
	if err != nil {
		custom, _ := wire.Members(value(tool.List, "custom")) // which may be missing
		name, _, named := wire.TakeText(custom, "name")
		if !named {
			name = names.name(kind)
		}
		return content.Tool{Name: name, Extra: content.Extra{API: ChatAPI, JSON: tool.Raw}}
	}
	var def content.Tool
	def.Name, inner, _ = wire.TakeText(inner, "name")
	def.Description, inner, _ = wire.TakeText(inner, "description")
	def.Schema, inner = wire.Take(inner, "parameters")
	if def.Schema == "" || def.Schema == "null" {
		def.Schema = noArguments
	}
	def.Extra = extra(wire.With(inner, outer)) // it has but one place for both
	return def
}

// chatImport collects the messages of a request.
type chatImport struct {
	sides
	system []string
}

func importChatMessages(j content.JSON) (system []string, messages []content.Message, err error) {
	list, err := roundtrip.ImportObjects("messages", j)
	if err != nil {
		return nil, nil, err
	}
	var c chatImport
	for i, m := range list {
		if err := c.message(fmt.Sprintf("messages[%d]", i), m.List); err != nil {
			return nil, nil, err
		}
	}
	err = c.end()
	return c.system, c.messages, err
}

// message reads one message.
func (c *chatImport) message(where string, list []wire.Member) error {
	role, list, _ := wire.TakeText(list, "role")
	switch role {
	case "system", "developer":
		prompts, err := importTexts(where+".content", value(list, "content"))
		c.system = append(c.system, prompts...)
		return err
	case "assistant":
		return c.assistant(where, list)
	case "tool", "function": // in the API's first form a result names no call
		return c.result(where, list)
	}
	said, rest, err := importChatWords(where, list, decodePart)
	if err != nil {
		return err
	}
	rest = slices.DeleteFunc(rest, func(m wire.Member) bool { return m.Value == "null" })
	if len(rest) > 0 {
		said = append([]content.Block{content.Opaque{API: ChatAPI, JSON: wire.Object(rest)}}, said...)
	}
	return c.say(content.Role(role), said...)
}

func (c *chatImport) result(where string, list []wire.Member) error {
	said, list, err := importChatWords(where, list, decodePart)
	if err != nil {
		return err
	}
	var r content.ToolResult
	r.CallID, list, _ = wire.TakeText(list, "tool_call_id")
	r.Extra = extra(list)
	if r.Content, err = content.Of(said...); err != nil {
		return roundtrip.NotRead(where+".content", err)
	}
	return c.say(content.User, r)
}

// assistant reads what the assistant says as an answer would say it, but for content that is a list: its parts stay apart.
func (c *chatImport) assistant(where string, list []wire.Member) error {
	if calls := value(list, "tool_calls"); calls != "" && calls != "null" {
		if _, err := roundtrip.ImportObjects(where+".tool_calls", calls); err != nil {
			return err
		}
	}
	var parts []content.Block
	if _, whole := wire.Text(value(list, "content")); !whole {
		var err error
		if parts, list, err = importChatWords(where, list, decodeAssistantPart); err != nil {
			return err
		}
	}
	a := newChatAnswer()
	if _, err := a.add(wire.Object(list), true); err != nil {
		return roundtrip.NotRead(where, err)
	}
	at := count(a.thinks()) // the parts come after it
	if err := c.end(); err != nil {
		return err
	}
	return c.say(content.Assistant, slices.Insert(a.blocks(true), at, parts...)...)
}

// importChatWords takes the content out of a message: absent, a string, or a list of parts.
func importChatWords(where string, list []wire.Member, decode func(content.JSON) content.Block) ([]content.Block, []wire.Member, error) {
	words, rest := wire.Take(list, "content")
	if said, ok := wire.Text(words); ok {
		return content.Words(said).Slice(), rest, nil
	}
	if words == "" || words == "null" {
		return nil, rest, nil
	}
	parts, err := roundtrip.ImportObjects(where+".content", words)
	if err != nil {
		return nil, nil, err
	}
	var blocks []content.Block
	for _, part := range parts {
		blocks = append(blocks, decode(part.Raw))
	}
	return blocks, rest, nil
}

// decodeAssistantPart reads a part of the assistant's. Thinking and refusals are read as in an answer.
func decodeAssistantPart(part content.JSON) content.Block {
	switch typeOf(part) {
	case "thinking", "refusal":
		a := newChatAnswer()
		a.part(part)
		if said := a.blocks(true); len(said) > 0 {
			return said[0]
		}
	}
	return decodePart(part)
}
