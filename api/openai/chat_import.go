package openai

import (
	"fmt"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// ImportChat reads the body of a Chat Completions request and returns the request and the name of its model. It is the
// reverse of [ChatBody].
//
//   - Members other than tools and messages go to the request's Options.Body. "stream" and "stream_options" are
//     dropped.
//   - Messages of the roles "system" and "developer" at the beginning become the request's system prompts. A later one
//     becomes a content.Opaque of the user's side.
//   - Consecutive messages of the roles "tool" and "user" become one message.
//   - Further members of a user message, such as a name, become a content.Opaque before its content.
//   - A message of any other role keeps its role. An empty message is dropped.
//   - Parts without a block type in Plait become a content.Opaque.
//
// Errors are api.ErrInvalidRequest and give the position of the unreadable part. A readable body that breaks the rules
// of the API is not an error: ChatBody repairs it.
//
// dag.FromTranscript makes a conversation of the request's System, Tools and Messages.
func ImportChat(body []byte) (req api.Request, model string, err error) {
	list, err := jsonx.Members(content.JSON(body))
	if err != nil {
		return req, "", roundtrip.ImportError(ChatAPI, roundtrip.NotRead("body", err))
	}

	var rest []jsonx.Member
	for _, m := range list {
		switch m.Name {
		case "model":
			model, _ = jsonx.Text(m.Value)
		case "stream", "stream_options":
		case "tools":
			req.Tools, err = roundtrip.ImportTools(m.Value, importChatTool)
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
		req.Options.Body, req.Options.BodyAPI = jsonx.Object(rest), ChatAPI
	}
	return req, model, nil
}

// importChatTool reads a tool definition. Anything but a function is a server tool, kept in its Extra.
func importChatTool(tool roundtrip.Imported, names roundtrip.ToolNames) content.Tool {
	kind, outer, _ := jsonx.TakeText(tool.List, "type")
	function, outer := jsonx.Take(outer, "function")
	inner, err := jsonx.Members(function)
	if err != nil {
		custom, _ := jsonx.Members(value(tool.List, "custom")) // nil for other types
		name, _, named := jsonx.TakeText(custom, "name")
		if !named {
			name = names.Name(kind)
		}
		return content.Tool{Name: name, Extra: content.Extra{API: ChatAPI, JSON: tool.Raw}}
	}

	var def content.Tool
	def.Name, inner, _ = jsonx.TakeText(inner, "name")
	def.Description, inner, _ = jsonx.TakeText(inner, "description")
	def.Schema, inner = jsonx.Take(inner, "parameters")
	if def.Schema == "" || def.Schema == "null" {
		def.Schema = noArguments
	}

	def.Extra = extra(jsonx.With(inner, outer)) // an Extra cannot tell the two objects apart
	return def
}

// chatImport collects the system prompts and messages of a request.
type chatImport struct {
	sides
	system []string
	begun  bool // a message of another role was read
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
func (c *chatImport) message(where string, list []jsonx.Member) error {
	whole := list
	role, list, _ := jsonx.TakeText(list, "role")
	defer func() { c.begun = c.begun || role != "system" && role != "developer" }()
	switch role {
	case "system", "developer":
		// A later one keeps its place.
		if c.begun {
			if said := value(list, "content"); said == "" || said == "null" {
				return nil
			}
			return c.say(content.User, content.Opaque{API: ChatAPI, JSON: jsonx.Object(whole)})
		}
		prompts, err := importTexts(where+".content", value(list, "content"))
		c.system = append(c.system, prompts...)
		return err
	case "assistant":
		return c.assistant(where, list)
	case "tool", "function": // in the oldest form of the API a result names no call
		return c.result(where, list)
	}

	// Any other role is the user's, or unknown to Plait.
	blocks, rest, err := importChatWords(where, list, decodePart)
	if err != nil {
		return err
	}

	rest = slices.DeleteFunc(rest, func(m jsonx.Member) bool { return m.Value == "null" })
	if len(rest) > 0 {
		blocks = append([]content.Block{content.Opaque{API: ChatAPI, JSON: jsonx.Object(rest)}}, blocks...)
	}
	return c.say(content.Role(role), blocks...)
}

// result reads a tool result.
func (c *chatImport) result(where string, list []jsonx.Member) error {
	blocks, list, err := importChatWords(where, list, decodePart)
	if err != nil {
		return err
	}

	var r content.ToolResult
	r.CallID, list, _ = jsonx.TakeText(list, "tool_call_id")
	r.Extra = extra(list)
	if r.Content, err = content.Of(blocks...); err != nil {
		return roundtrip.NotRead(where+".content", err)
	}
	return c.say(content.User, r)
}

// assistant reads an assistant message like a response, except that the parts of a content list stay separate blocks.
func (c *chatImport) assistant(where string, list []jsonx.Member) error {
	// A response skips unreadable calls, but an import reports them.
	if calls := value(list, "tool_calls"); calls != "" && calls != "null" {
		if _, err := roundtrip.ImportObjects(where+".tool_calls", calls); err != nil {
			return err
		}
	}

	// A list of parts is read here: chatAnswer would join its texts.
	var parts []content.Block
	if _, whole := jsonx.Text(value(list, "content")); !whole {
		var err error
		if parts, list, err = importChatWords(where, list, decodeAssistantPart); err != nil {
			return err
		}
	}

	a := newChatAnswer()
	if _, err := a.add(jsonx.Object(list), true); err != nil {
		return roundtrip.NotRead(where, err)
	}

	// The content comes right after the thinking, as in a response.
	at := count(a.thinks())

	// End the message before, even if it is the assistant's: two in a row stay separate.
	if err := c.end(); err != nil {
		return err
	}
	return c.say(content.Assistant, slices.Insert(a.blocks(true), at, parts...)...)
}

// importChatWords reads the content of a message: absent, a string or a list of parts. It returns the content's blocks
// and the other members.
func importChatWords(
	where string, list []jsonx.Member, decode func(content.JSON) content.Block,
) ([]content.Block, []jsonx.Member, error) {
	words, rest := jsonx.Take(list, "content")
	if text, ok := jsonx.Text(words); ok {
		return content.Words(text).Slice(), rest, nil
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

// decodeAssistantPart reads a content part of an assistant message. Thinking and refusals are read as in a response.
func decodeAssistantPart(part content.JSON) content.Block {
	switch typeOf(part) {
	case "thinking", "refusal":
		a := newChatAnswer()
		a.part(part)
		if list := a.blocks(true); len(list) > 0 {
			return list[0]
		}
	}
	return decodePart(part)
}
