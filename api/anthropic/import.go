package anthropic

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// Import reads the body of a request, and returns the request and its model. It is the reverse of [Body].
// dag.FromTranscript makes a conversation of the request's System, Tools and Messages.
//
//   - Other members than system prompts, tools and messages are in the request's Options.Body, except "stream".
//   - Blocks unknown to Plait are content.Opaque. So is a message of the role "system", in a message of the user.
//   - Options.Cache is [CacheOwn] if a tool, a system prompt or a message has a cache_control marker, and api.CacheOff
//     otherwise. The markers are kept. So the request has the same caching as the body. For the caching of Plait, set
//     another policy.
//   - The markers of system prompts (see [CacheOwn]) and their citations are kept in Options.Body.
//
// Errors are api.ErrInvalidRequest and name the unreadable position in the body. Import accepts a readable body even if
// the API does not: Body repairs it.
func Import(body []byte) (req api.Request, model string, err error) {
	list, err := jsonx.Members(content.JSON(body))
	if err != nil {
		return req, "", roundtrip.ImportError(API, roundtrip.NotRead("body", err))
	}

	var rest []jsonx.Member
	var beside content.JSON // the further members of the system prompts
	for _, m := range list {
		switch m.Name {
		case "model":
			model, _ = jsonx.Text(m.Value)
		case "stream":
		case "system":
			req.System, beside, err = importSystem(m.Value)
		case "tools":
			req.Tools, err = roundtrip.ImportTools(m.Value, importTool)
		case "messages":
			req.Messages, err = importMessages(m.Value)
		default:
			rest = append(rest, m)
		}
		if err != nil {
			return api.Request{}, "", roundtrip.ImportError(API, err)
		}
	}

	// System prompts have no Extra, so their further members go into Options.Body.
	rest = append(rest, member("system", beside)...)
	if len(rest) > 0 {
		req.Options.Body, req.Options.BodyAPI = jsonx.Object(rest), API
	}

	req.Options.Cache = api.CacheOff
	if strings.Contains(string(beside), cacheControl) || len(foundMarks(req.Tools, nil, req.Messages)) > 0 {
		req.Options.Cache = CacheOwn
	}
	return req, model, nil
}

// importSystem reads system prompts, and the list of their further members for Options.Body, such as markers and
// citations; "" for none.
func importSystem(j content.JSON) (system []string, beside content.JSON, err error) {
	blocks, err := importContent(j)
	if err != nil {
		return nil, "", roundtrip.NotRead("system", err)
	}

	dst, held := []byte{'['}, false
	for i, b := range blocks.All() {
		text, ok := b.(content.Text)
		if !ok {
			return nil, "", roundtrip.NotRead(fmt.Sprintf("system[%d]", i), fmt.Errorf("it is not text"))
		}
		system = append(system, text.Text)

		// Members belong to prompts by position, so a prompt without any gets an empty object.
		list, _ := jsonx.Members(text.Extra.For(API)) // none without an Extra
		list = slices.DeleteFunc(list, func(m jsonx.Member) bool { return m.Value == "null" })
		held = held || len(list) > 0
		dst = jsonx.AppendObject(write.Comma(dst), list)
	}
	if held {
		beside = content.JSON(append(dst, ']'))
	}
	return system, beside, nil
}

// importTool reads a definition. A tool without input_schema is one of the API's own, and keeps all of its members in
// Extra. A toolset has no name and is named after its type.
func importTool(tool roundtrip.Imported, names roundtrip.ToolNames) content.Tool {
	var def content.Tool
	schema, rest := jsonx.Take(tool.List, "input_schema")
	// The name stays in the Extra of a server tool: it is sent from there.
	def.Name, _, _ = jsonx.TakeText(rest, "name")
	if schema != "" {
		_, rest, _ = jsonx.TakeText(rest, "name")
		def.Description, rest, _ = jsonx.TakeText(rest, "description")
		def.Schema = schema
	}

	def.Extra = extra(rest)
	if kind := typeOf(def); def.Name == "" && isToolset(kind) {
		def.Name = names.Name(kind)
	}
	return def
}

// system is the role of system messages between the others. Such a message is a block of a user message: see
// dialect.SystemMessage.
const system = "system"

func importMessages(j content.JSON) ([]content.Message, error) {
	var raw []struct {
		Role    string    `json:"role"`
		Content jsonx.Raw `json:"content"`
	}
	if err := j.Decode(&raw); err != nil {
		return nil, roundtrip.NotRead("messages", err)
	}
	whole, err := jsonx.Items(j)
	if err != nil {
		return nil, roundtrip.NotRead("messages", err)
	}

	var messages []content.Message
	beside := false // a system message was the one before
	for i, m := range raw {
		blocks, err := importContent(content.JSON(m.Content))
		// A system message keeps its place: instructions, and changes of the tools.
		if m.Role == system {
			m.Role, beside = string(content.User), true
			blocks, err = content.Of(content.Opaque{API: API, JSON: whole[i]})
		}
		if err != nil {
			return nil, roundtrip.NotRead(fmt.Sprintf("messages[%d].content", i), err)
		}

		// It is a block of the user's message around it.
		if n := len(messages) - 1; beside && n >= 0 && m.Role == string(content.User) && messages[n].Role == content.User {
			blocks, err = content.Of(append(messages[n].Blocks.Slice(), blocks.Slice()...)...)
			if err != nil {
				return nil, roundtrip.NotRead(fmt.Sprintf("messages[%d]", i), err)
			}
			messages = messages[:n]
		}
		messages = append(messages, content.Message{Role: content.Role(m.Role), Blocks: blocks})
		beside = raw[i].Role == system
	}
	return messages, nil
}
