package anthropic

import (
	"fmt"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// Import reads the body of a request, and returns the request and its model. It is the reverse of [Body].
// dag.FromTranscript makes a conversation of the request's System, Tools and Messages.
//
//   - Other members than system prompts, tools and messages are in the request's Options.Body, except "stream".
//   - Blocks unknown to Plait are content.Opaque. So is a message of the role "system", in a message of the user.
//   - Options.Cache is api.CacheShort if the body has cache_control markers, api.CacheLong if one of them is for an
//     hour, and api.CacheOff otherwise. The markers themselves are Plait's then.
//   - Of system prompts, only the texts are read.
//
// Errors are api.ErrInvalidRequest and name the unreadable position in the body. Import accepts a readable body even if
// the API does not: Body repairs it.
func Import(body []byte) (req api.Request, model string, err error) {
	list, err := jsonx.Members(content.JSON(body))
	if err != nil {
		return req, "", roundtrip.ImportError(API, roundtrip.NotRead("body", err))
	}

	var rest []jsonx.Member
	for _, m := range list {
		switch m.Name {
		case "model":
			model, _ = jsonx.Text(m.Value)
		case "stream":
		case "system":
			req.System, err = importSystem(m.Value)
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

	if len(rest) > 0 {
		req.Options.Body, req.Options.BodyAPI = jsonx.Object(rest), API
	}

	req.Options.Cache = policyOf(body)
	return req, model, nil
}

// importSystem reads the texts of system prompts.
func importSystem(j content.JSON) (system []string, err error) {
	blocks, err := importContent(j)
	if err != nil {
		return nil, roundtrip.NotRead("system", err)
	}
	for i, b := range blocks.All() {
		text, ok := b.(content.Text)
		if !ok {
			return nil, roundtrip.NotRead(fmt.Sprintf("system[%d]", i), fmt.Errorf("it is not text"))
		}
		system = append(system, text.Text)
	}
	return system, nil
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
