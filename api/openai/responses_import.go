package openai

import (
	"errors"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// ImportResponses reads the body of a Responses request and returns the request and the name of its model. It is the
// reverse of [ResponsesBody].
//
//   - Members other than system prompts, tools and items go to the request's Options.Body. "stream", "stream_options"
//     and null members are dropped.
//   - Options.Body also gets the API's defaults if they differ from those of ResponsesBody: "store" is true and
//     "include" is empty, unless the body sets them.
//   - The "instructions", and messages of the roles "system" and "developer" at the beginning, become the request's
//     system prompts. A later message of these roles becomes a content.Opaque of the user's side.
//   - Consecutive items of one side become one message. The "id" and "status" of a user message are dropped.
//   - A message of any other role keeps its role. An empty message is dropped.
//   - Items and parts without a block type in Plait become a content.Opaque.
//
// Errors are api.ErrInvalidRequest and give the position of the unreadable part. A readable body that breaks the rules
// of the API is not an error: ResponsesBody repairs it.
//
// dag.FromTranscript makes a conversation of the request's System, Tools and Messages.
func ImportResponses(body []byte) (req api.Request, model string, err error) {
	list, err := jsonx.Members(content.JSON(body))
	if err != nil {
		return req, "", roundtrip.ImportError(ResponsesAPI, roundtrip.NotRead("body", err))
	}

	var rest []jsonx.Member
	var front []string
	for _, m := range list {
		switch m.Name {
		case "model":
			model, _ = jsonx.Text(m.Value)
		case "stream", "stream_options":
		case "instructions":
			req.System, err = importTexts("instructions", m.Value)
		case "tools":
			req.Tools, err = roundtrip.ImportTools(m.Value, importResponsesTool)
		case "input":
			front, req.Messages, err = importInput(m.Value)
		default:
			rest = append(rest, m)
		}
		if err != nil {
			return api.Request{}, "", roundtrip.ImportError(ResponsesAPI, err)
		}
	}

	// The instructions come first, even if "input" is before them in the body.
	req.System = append(req.System, front...)
	req.Options.Body, req.Options.BodyAPI = jsonx.Object(withDefaults(rest)), ResponsesAPI
	return req, model, nil
}

// withDefaults returns the members other than null, and adds the API's defaults if they differ from those of
// ResponsesBody.
func withDefaults(list []jsonx.Member) []jsonx.Member {
	var all []jsonx.Member
	for _, m := range list {
		if m.Value != "null" {
			all = append(all, m)
		}
	}

	for _, m := range []jsonx.Member{{Name: "store", Value: "true"}, {Name: "include", Value: "[]"}} {
		if value(all, m.Name) == "" {
			all = append(all, m)
		}
	}
	return all
}

// importResponsesTool reads a tool definition. Anything but a function is a server tool, kept in its Extra.
func importResponsesTool(tool roundtrip.Imported, names roundtrip.ToolNames) content.Tool {
	kind, list, _ := jsonx.TakeText(tool.List, "type")
	name, list, named := jsonx.TakeText(list, "name")
	if !named {
		name = names.Name(kind)
	}

	// A member "function" marks a definition for Chat Completions.
	if kind != "function" || value(list, "function") != "" {
		return content.Tool{Name: name, Extra: content.Extra{API: ResponsesAPI, JSON: tool.Raw}}
	}

	def := content.Tool{Name: name}
	def.Description, list, _ = jsonx.TakeText(list, "description")
	def.Schema, list = jsonx.Take(list, "parameters")
	if def.Schema == "" || def.Schema == "null" {
		def.Schema = noArguments
	}

	if value(list, "strict") == "" {
		list = append(list, jsonx.Member{Name: "strict", Value: "null"}) // the default: strict if the schema can be
	}
	def.Extra = content.Extra{API: ResponsesAPI, JSON: jsonx.Object(list)}
	return def
}

// itemImport collects the system prompts and messages of a request.
type itemImport struct {
	sides
	system []string
	items  itemDecoder     // for the items of the current assistant message
	calls  map[string]bool // the types of results of calls read as a content.ToolUse
	begun  bool            // an item other than a system prompt was read
}

func importInput(j content.JSON) (system []string, messages []content.Message, err error) {
	var c itemImport
	if text, ok := jsonx.Text(j); ok {
		// The short form of a single user message.
		c.role, c.blocks = content.User, content.Words(text).Slice()
	} else if j != "null" {
		list, err := roundtrip.ImportObjects("input", j)
		if err != nil {
			return nil, nil, err
		}
		for i, item := range list {
			if err := c.item(fmt.Sprintf("input[%d]", i), item); err != nil {
				return nil, nil, err
			}
		}
	}

	err = c.end()
	return c.system, c.messages, err
}

// item reads an item. A message may omit its type.
func (c *itemImport) item(where string, item roundtrip.Imported) error {
	kind := memberType(item.List)
	if kind == "" && value(item.List, "role") != "" {
		list := append([]jsonx.Member{{Name: "type", Value: `"message"`}}, item.List...)
		kind, item = "message", roundtrip.Imported{Raw: jsonx.Object(list), List: list}
	}

	if kind == "message" {
		return c.message(where, item)
	}

	c.begun = true
	switch kind {
	case "function_call_output", "custom_tool_call_output":
		result, err := importOutput(where, item.List)
		if err != nil {
			return err
		}
		return c.say(content.User, result)
	case "additional_tools":
		return c.own(item)
	}

	// The result of a tool call executed by the program is on the user's side, all other items are the assistant's.
	if execution, _ := jsonx.Text(value(item.List, "execution")); execution != "server" {
		if _, ok := keyOfAnswer(content.Opaque{API: ResponsesAPI, JSON: item.Raw}); ok {
			if ranElsewhere(item.List) || !c.calls[kind] {
				return c.own(item)
			}
			return c.say(content.User, importClientResult(item.List))
		}
	}
	return c.answer(where, item)
}

// own adds an item as an Opaque of the user's side.
func (c *itemImport) own(item roundtrip.Imported) error {
	return c.say(content.User, content.Opaque{API: ResponsesAPI, JSON: item.Raw})
}

// answer reads an item as an item of a response.
func (c *itemImport) answer(where string, item roundtrip.Imported) error {
	if c.role != content.Assistant {
		c.items = itemDecoder{} // reasoning of an earlier message does not count
	}
	list, err := c.items.blocks(item.Raw)
	if err != nil {
		return roundtrip.NotRead(where, err)
	}
	if own, ok := clientCalls[memberType(item.List)]; ok && len(list) == 1 {
		_, open := list[0].(content.ToolUse)
		if c.calls == nil {
			c.calls = map[string]bool{}
		}
		c.calls[own.answer] = c.calls[own.answer] || open
	}
	return c.say(content.Assistant, list...)
}

// message reads a message item.
func (c *itemImport) message(where string, item roundtrip.Imported) error {
	role, list, _ := jsonx.TakeText(item.List, "role")
	words, list := jsonx.Take(list, "content")
	_, list = jsonx.Take(list, "type")

	// System prompts at the beginning are those of the request. Later ones stay in their position.
	switch role {
	case "system", "developer":
		texts, err := importTexts(where+".content", words)
		if c.begun || errors.Is(err, errNoText) {
			c.begun = true
			return c.own(item)
		}
		c.system = append(c.system, texts...)
		return err
	case "assistant":
		c.begun = true
		if text, ok := jsonx.Text(words); ok {
			return c.words(where, text, list)
		}
		return c.answer(where, item)
	}

	// Any other role is the user's, or unknown to Plait.
	c.begun = true
	blocks, err := importParts(where+".content", words)
	if err != nil {
		return err
	}

	// An item with members unknown to Plait is kept whole.
	for _, m := range list {
		if m.Name != "id" && m.Name != "status" && m.Value != "null" {
			return c.own(item)
		}
	}
	return c.say(content.Role(role), blocks...)
}

// words reads an assistant message with a string as content. With further members it is read as if it had one part.
func (c *itemImport) words(where, text string, further []jsonx.Member) error {
	if len(further) == 0 {
		return c.say(content.Assistant, content.Words(text).Slice()...)
	}

	part := jsonx.Object([]jsonx.Member{{Name: "type", Value: `"output_text"`}, {Name: "text", Value: jsonx.Quote(text)}})
	list := append([]jsonx.Member{
		{Name: "type", Value: `"message"`},
		{Name: "role", Value: `"assistant"`},
		{Name: "content", Value: "[" + part + "]"},
	}, further...)
	return c.answer(where, roundtrip.Imported{Raw: jsonx.Object(list), List: list})
}

// importOutput reads the result of a tool call.
func importOutput(where string, list []jsonx.Member) (content.Block, error) {
	var r content.ToolResult
	_, list = jsonx.Take(list, "type")
	r.CallID, list, _ = jsonx.TakeText(list, "call_id")

	output, list := jsonx.Take(list, "output")
	blocks, err := importParts(where+".output", output)
	if err != nil {
		return nil, err
	}
	if r.Content, err = content.Of(blocks...); err != nil {
		return nil, roundtrip.NotRead(where+".output", err)
	}

	r.Extra = importExtra(list)
	return r, nil
}

// importParts reads content: absent, a string, or a list of parts.
func importParts(where string, j content.JSON) ([]content.Block, error) {
	if text, ok := jsonx.Text(j); ok {
		return content.Words(text).Slice(), nil
	}
	if j == "" || j == "null" {
		return nil, nil
	}

	parts, err := roundtrip.ImportObjects(where, j)
	if err != nil {
		return nil, err
	}

	var blocks []content.Block
	for _, part := range parts {
		b := importPart(part.List)
		if b == nil {
			b = content.Opaque{API: ResponsesAPI, JSON: part.Raw}
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// importPart returns the block for a part of a message or of a tool result, or nil if no block can hold all of it. A
// text may have any of the API's type names for text, such as the one for the assistant's.
func importPart(list []jsonx.Member) content.Block {
	kind, list, _ := jsonx.TakeText(list, "type")
	switch kind {
	case "input_image":
		if s, rest, ok := takeSource(list, "image_url", "image_url"); ok {
			return content.Image{Source: s, Extra: importExtra(rest)}
		}
	case "input_file":
		name, list, _ := jsonx.TakeText(list, "filename")
		if s, rest, ok := takeSource(list, "file_data", "file_url"); ok {
			return content.Document{Source: s, Title: name, Extra: importExtra(rest)}
		}
	case "input_text", "output_text", "text":
		if text, rest, ok := jsonx.TakeText(list, "text"); ok {
			return content.Text{Text: text, Extra: importExtra(rest)}
		}
	}
	return nil
}

// importExtra keeps members without a field in the block. It drops an ownNote: only Plait itself may set one.
func importExtra(rest []jsonx.Member) content.Extra {
	_, rest = jsonx.Take(rest, own)
	return itemExtra(rest, ownNote{})
}

// takeSource takes the source of an image or a document out of its members: the member data with the bytes, the member
// url, or "file_id". ok reports whether there is exactly one.
func takeSource(list []jsonx.Member, data, url string) (s content.Source, rest []jsonx.Member, ok bool) {
	for _, m := range list {
		text, _ := jsonx.Text(m.Value)
		bytes, inline := dataSource(text)

		var found content.Source
		switch {
		case m.Value == "null":
			continue
		case m.Name == data && inline:
			found = bytes
		case m.Name == url && text != "" && !strings.HasPrefix(text, "data:"):
			found.URL = text
		case m.Name == "file_id":
			found.FileID = text
		}

		if found == (content.Source{}) {
			rest = append(rest, m)
			continue
		}
		if s != (content.Source{}) {
			return s, nil, false // more than one source
		}
		s = found
	}

	// A source in an unknown form must not end in the block's Extra.
	return s, rest, s != content.Source{} && value(rest, data) == "" && value(rest, url) == ""
}
