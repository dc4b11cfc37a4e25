package gemini

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// Import reads the body of a request, and returns the request. It is the reverse of [Body]. dag.FromTranscript makes a
// conversation of the request's System, Tools and Messages. The model is not in the body, but in the address.
//
//   - Other members than system prompts, tools and contents are in the request's Options.Body, except "model" and null
//     members.
//   - Parts unknown to Plait are content.Opaque.
//   - The API has two names for each member, such as "inlineData" and "inline_data", and accepts an object for a list
//     of one. So does Import.
//   - Consecutive contents of the same role are one message. A role unknown to the API is kept. An empty content is
//     left out.
//   - OpenAPI schemas become JSON Schema.
//
// Errors are api.ErrInvalidRequest and name the unreadable position in the body. Import accepts a readable body even if
// the API does not: Body repairs it.
func Import(body []byte) (req api.Request, err error) {
	list, err := jsonx.Members(content.JSON(body))
	if err != nil {
		return req, roundtrip.ImportError(API, roundtrip.NotRead("body", err))
	}

	var rest []jsonx.Member
	for _, m := range list {
		switch {
		case m.Value == "null", m.Name == "model":
		case isNamed(m, "systemInstruction"):
			req.System, err = importSystem(m)
		case m.Name == "tools":
			req.Tools, err = importTools(m.Value)
		case m.Name == "contents":
			req.Messages, err = importContents(m.Value)
		default:
			rest = append(rest, m)
		}
		if err != nil {
			return api.Request{}, roundtrip.ImportError(API, err)
		}
	}

	if len(rest) > 0 {
		req.Options.Body, req.Options.BodyAPI = jsonx.Object(rest), API
	}
	return req, nil
}

// fromSnake maps the second names of members to the first.
var fromSnake = func() map[string]string {
	names := map[string]string{}
	for _, name := range slices.Concat(data, beside, fileMembers, []string{"parametersJsonSchema"}) {
		names[snake(name)] = name
	}
	return names
}()

// renamed returns list with the second names of members replaced by the first, and reports whether there were any. If
// list has both names of a member, they are kept.
func renamed(list []jsonx.Member) (all []jsonx.Member, changed bool) {
	all = slices.Clone(list)
	for i, m := range all {
		name := fromSnake[m.Name]
		if name == "" || name == m.Name {
			continue
		}

		if named, _ := jsonx.Take(list, name); named == "" {
			all[i].Name, changed = name, true
		}
	}
	return all, changed
}

// importObjects reads a list of objects, or one object. Parameter where is its position in the body.
func importObjects(where string, j content.JSON) ([]roundtrip.Imported, error) {
	if j.IsObject() {
		j = "[" + j + "]"
	}
	return roundtrip.ImportObjects(where, j)
}

// importParts reads the parts of an object. They may be missing.
func importParts(where string, list []jsonx.Member) ([]roundtrip.Imported, error) {
	parts, _ := jsonx.Take(list, "parts")
	if parts == "" {
		return nil, nil
	}
	return importObjects(where+".parts", parts)
}

// importSystem reads the system prompts, one from each part.
func importSystem(m jsonx.Member) ([]string, error) {
	list, err := jsonx.Members(m.Value)
	if err != nil {
		return nil, roundtrip.NotRead(m.Name, err)
	}

	parts, err := importParts(m.Name, list)
	if err != nil {
		return nil, err
	}

	var system []string
	for i, part := range parts {
		text, _, ok := jsonx.TakeText(part.List, "text")
		if !ok {
			return nil, roundtrip.NotRead(fmt.Sprintf("%s.parts[%d]", m.Name, i), errors.New("it is not text"))
		}
		system = append(system, text)
	}
	return system, nil
}

// importTools reads the entries of "tools": functions, and the tools run by the API. The name of such a tool is its key
// in the entry.
func importTools(j content.JSON) ([]content.Tool, error) {
	entries, err := importObjects("tools", j)
	if err != nil {
		return nil, err
	}

	var tools []content.Tool
	for i, entry := range entries {
		for _, m := range entry.List {
			if !isNamed(m, "functionDeclarations") {
				// The API has two names for a key. The tool gets the same name for both.
				tools = append(tools, content.Tool{Name: snake(m.Name), Extra: extra([]jsonx.Member{m})})
				continue
			}

			functions, err := importObjects(fmt.Sprintf("tools[%d].%s", i, m.Name), m.Value)
			if err != nil {
				return nil, err
			}
			for _, f := range functions {
				tools = append(tools, importFunction(f.List))
			}
		}
	}
	return tools, nil
}

// importFunction reads the declaration of a function.
func importFunction(list []jsonx.Member) content.Tool {
	list, _ = renamed(list)
	var def content.Tool
	def.Name, list, _ = jsonx.TakeText(list, "name")
	def.Description, list, _ = jsonx.TakeText(list, "description")
	schema, list := jsonx.Take(list, "parametersJsonSchema")
	older, list := jsonx.Take(list, "parameters")

	// The older member, parameters, is an OpenAPI schema.
	switch {
	case schema != "" && schema != "null":
		def.Schema = schema
	case older != "" && older != "null":
		def.Schema = fromOpenAPI(older, 0)
	default:
		def.Schema = `{"type":"object","properties":{}}`
	}

	def.Extra = extra(list)
	return def
}

// deepestSchema is the depth to which schemas are converted.
const deepestSchema = 64

// fromOpenAPI converts an OpenAPI schema to JSON Schema, with types in lower case.
func fromOpenAPI(j content.JSON, depth int) content.JSON {
	list, err := jsonx.Members(j)
	if err != nil || depth > deepestSchema {
		return j
	}

	for i, m := range list {
		switch m.Name {
		case "type":
			if kind, ok := jsonx.Text(m.Value); ok {
				list[i].Value = jsonx.Quote(strings.ToLower(kind))
			}
		case "items", "additionalProperties":
			list[i].Value = fromOpenAPI(m.Value, depth+1)
		case "properties":
			properties, err := jsonx.Members(m.Value)
			if err != nil {
				continue
			}
			for k, p := range properties {
				properties[k].Value = fromOpenAPI(p.Value, depth+1)
			}
			list[i].Value = jsonx.Object(properties)
		case "anyOf":
			list[i].Value = jsonx.MapItems(m.Value, func(item content.JSON) content.JSON { return fromOpenAPI(item, depth+1) })
		}
	}

	return jsonx.Object(list)
}

// contentImport collects contents into messages.
type contentImport struct {
	// The current message has an empty text.
	silent   bool
	messages []content.Message
	// The message being read.
	role   content.Role
	blocks []content.Block
	// For each result in blocks, the name of its tool.
	names []string
	// The names of all calls so far.
	known map[string]bool
}

// importContents reads the contents.
func importContents(j content.JSON) ([]content.Message, error) {
	contents, err := importObjects("contents", j)
	if err != nil {
		return nil, err
	}

	c := contentImport{known: map[string]bool{}}
	for i, one := range contents {
		if err := c.content(fmt.Sprintf("contents[%d]", i), one.List); err != nil {
			return nil, err
		}
	}

	err = c.end()
	return c.messages, err
}

// content reads one content.
func (c *contentImport) content(where string, list []jsonx.Member) error {
	name, _, _ := jsonx.TakeText(list, "role")
	role := content.Role(name)
	switch name {
	case "model":
		role = content.Assistant
	case "user", "function", "":
		// Some clients send the results of calls with the role "function".
		role = content.User
	}

	// Consecutive contents of the same role are one message.
	if role != c.role {
		if err := c.end(); err != nil {
			return err
		}
		c.role = role
	}

	parts, err := importParts(where, list)
	if err != nil {
		return err
	}
	for i, part := range parts {
		if err := c.part(part); err != nil {
			return roundtrip.NotRead(fmt.Sprintf("%s.parts[%d]", where, i), err)
		}
	}
	return nil
}

// part reads a part of the current message.
func (c *contentImport) part(part roundtrip.Imported) error {
	if list, changed := namedPart(part.List); changed {
		part = roundtrip.Imported{Raw: jsonx.Object(list), List: list}
	}

	if r, name, ok := knownResult(part.List); ok {
		// A result gets its name from its call, and needs its own only if no call has it.
		if !c.known[name] && name != "" {
			r.Extra = extra(jsonx.With([]jsonx.Member{{Name: "name", Value: jsonx.Quote(name)}}, membersOf(r.Extra)))
		}
		c.blocks, c.names = append(c.blocks, r), append(c.names, name)
		return nil
	}

	b, err := decodePart(part.Raw)
	if err != nil {
		return err
	}

	// decodePart returns nil for an empty text. A message may consist of nothing else.
	if b == nil {
		text, _ := jsonx.Take(part.List, "text")
		c.silent = c.silent || text == `""`
		return nil
	}

	if call, ok := b.(content.ToolUse); ok {
		c.known[call.Name] = true
	}
	c.blocks = append(c.blocks, b)
	return nil
}

// namedPart is renamed for a part and the file in it.
func namedPart(list []jsonx.Member) (all []jsonx.Member, changed bool) {
	all, changed = renamed(list)
	for i, m := range all {
		if m.Name != "inlineData" && m.Name != "fileData" {
			continue
		}

		if file, err := jsonx.Members(m.Value); err == nil {
			if file, other := renamed(file); other {
				all[i].Value, changed = jsonx.Object(file), true
			}
		}
	}
	return all, changed
}

// membersOf returns the members of an Extra.
func membersOf(e content.Extra) []jsonx.Member {
	list, _ := jsonx.Members(e.For(API)) // none without an Extra
	return list
}

// knownResult reads a part with the result of a call, and the name of its tool. The content of the result is the text,
// if the response has nothing else, or the object returned by the tool. The result does not keep the name, because the
// call has it.
func knownResult(part []jsonx.Member) (r content.ToolResult, name string, ok bool) {
	result, outer := jsonx.Take(part, "functionResponse")
	list, err := jsonx.Members(result)
	if err != nil || slices.ContainsFunc(outer, func(m jsonx.Member) bool { return slices.Contains(data, m.Name) }) {
		return r, "", false
	}

	r.CallID, list, _ = jsonx.TakeText(list, "id")
	name, list, _ = jsonx.TakeText(list, "name")
	response, list := jsonx.Take(list, "response")
	r.Extra = extra(jsonx.With(list, outer))

	if response == "null" {
		return r, name, true
	}

	// Body writes a text as {"output":"…"}, and an error as {"error":"…"}.
	r.Content = content.Words(string(response))
	if members, err := jsonx.Members(response); err == nil && len(members) == 1 {
		if text, isText := jsonx.Text(members[0].Value); isText &&
			(members[0].Name == "output" || members[0].Name == "error") {
			r.Content, r.IsError = content.Words(text), members[0].Name == "error"
		}
	}
	return r, name, true
}

// end ends the current message. An empty one is dropped, unless it is the user's and has an empty text.
func (c *contentImport) end() error {
	c.inCallOrder()
	if len(c.blocks) == 0 && c.silent && c.role == content.User {
		c.blocks = []content.Block{content.Opaque{API: API, JSON: emptyText}}
	}

	blocks, err := content.Of(c.blocks...)
	if err != nil {
		return roundtrip.NotRead("what the "+string(c.role)+" says", err)
	}
	if blocks.Len() > 0 {
		c.messages = append(c.messages, content.Message{Role: c.role, Blocks: blocks})
	}

	c.blocks, c.names, c.silent = nil, nil, false
	return nil
}

// inCallOrder puts results without an ID in the order of their calls. The API matches them by name, Plait by order.
func (c *contentImport) inCallOrder() {
	if len(c.names) < 2 || len(c.messages) == 0 {
		return
	}

	var indexes []int // of the results in blocks
	byName := map[string][]content.Block{}
	for i, b := range c.blocks {
		if r, ok := b.(content.ToolResult); ok {
			// Results with an ID are matched by it, in any order.
			if r.CallID != "" {
				return
			}
			name := c.names[len(indexes)]
			indexes, byName[name] = append(indexes, i), append(byName[name], b)
		}
	}

	// Calls with the same name get the results under that name in order.
	var ordered []content.Block
	for _, call := range c.messages[len(c.messages)-1].Blocks.ToolUses() {
		if results := byName[call.Name]; len(results) > 0 {
			ordered, byName[call.Name] = append(ordered, results[0]), results[1:]
		}
	}

	if len(ordered) != len(indexes) {
		return // some results have no call of their name
	}
	for i, index := range indexes {
		c.blocks[index] = ordered[i]
	}
}
