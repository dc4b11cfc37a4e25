package openai

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/servers"
	"github.com/plait-dev/plait/internal/wire"
)

// ResponsesBody returns the body of the request that sends req to model, and the changes made for the API to accept it.
// It is a pure function: the same arguments give the same bytes, and two conversations with a common beginning give
// items with a common beginning. The items are the last member: as a conversation grows, it keeps the beginning of its
// body.
//
//   - System prompts are the "instructions", joined by an empty line.
//   - "store" is false, and "include" requests "reasoning.encrypted_content", to carry the model's reasoning in later
//     requests. Models without reasoning refuse it and get no "include" (gpt-3, gpt-4, gpt-5-chat). Options.Body
//     overrides both. With "store" true, reasoning without encrypted content is sent back, too.
//   - Reasoning is sent back only with the next item of the model, and the ID of an item only with the reasoning before
//     it: the API refuses one without the other.
//   - A custom tool accepts any text. An Extra of the type "custom" declares it. The Input of its calls is a JSON
//     string.
//   - Some of the API's own tools are executed by a program (a computer, a shell, an approval). Their calls are
//     content.Opaque, and so are the results, as parts of a user message.
//   - "strict" of a tool is false, unless its Extra sets it.
//
// "model", "instructions", "input", "tools" and "stream" in Options.Body are left out and noted. So are
// "previous_response_id", "conversation" and "background": each request carries the whole conversation, and waits for
// the response.
//
// Errors are *api.Error:
//
//   - api.ErrNothing if there is nothing to send.
//   - api.ErrInvalidRequest for options unusable in any request (see api.Options.Check).
func ResponsesBody(req api.Request, model string, o *Options) ([]byte, []api.RepairNote, error) {
	c, err := responsesCall(req, model, o, serverIn(o))
	if err != nil {
		return nil, nil, err
	}
	return c.body.Bytes(), c.notes, nil
}

// responsesCall builds the request.
func responsesCall(req api.Request, model string, o *Options, asked server) (call, error) {
	options, err := o.resolve(req, ResponsesAPI)
	if err := cmp.Or(err, asked.check(ResponsesAPI)); err != nil {
		return call{}, err
	}

	b := responsesBuilder{options: options, model: model, server: asked, rules: asked.differs(), reasons: reasons(model)}
	// The members of Options.Body are needed first: they decide about reasoning and the limit.
	b.takeBody()

	differs := b.rules.Responses
	encoded := responsesEncodings()[responsesSupport{
		keeping: b.keeping(), files: differs.FilesFor(options.TextOnly), compatible: asked.compatible, plain: differs.Plain,
	}].Encode(req.Messages)
	if encoded.Len() == 0 {
		return call{}, &api.Error{Kind: api.ErrNothing, API: ResponsesAPI}
	}

	// The front is built for each request; the items are shared with earlier requests.
	front := b.front(req)
	parts := append([][]byte{front}, encoded.Items()...)
	body := wire.NewParts(append(parts, []byte("]}"))...)
	notes := append(slices.Clip(encoded.Notes), b.notes...)
	return call{options: options, body: body, notes: notes, streams: !options.NoStream, limit: b.limit()}, nil
}

// limit returns call.limit: max_output_tokens for a compatible server, because some report every response as completed,
// and 0 for OpenAI.
func (b *responsesBuilder) limit() int {
	if !b.server.compatible {
		return 0
	}

	n := b.options.MaxTokens
	if given, _ := jsonx.Take(b.further, "max_output_tokens"); given != "" {
		n, _ = strconv.Atoi(string(given)) // anything but a number is no limit
	}
	return n
}

// reasons reports whether a model reasons. An unknown model counts as reasoning: all new models reason, and servers
// without reasoning ignore the members for it.
func reasons(model string) bool {
	model = model[strings.LastIndex(model, "/")+1:] // gateways prepend the vendor
	model = strings.TrimPrefix(model, "ft:")

	for _, old := range []string{"gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"} {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return true
}

// responsesBuilder builds the part of a request body in front of the items.
type responsesBuilder struct {
	options Options
	model   string
	server  server
	rules   *servers.Rules // of the server
	reasons bool
	further []jsonx.Member // of Options.Body
	tools   []content.Tool
	notes   []api.RepairNote
}

func (b *responsesBuilder) note(kind api.RepairKind, format string, args ...any) {
	b.notes = append(b.notes, api.RepairNote{Kind: kind, Message: -1, Detail: fmt.Sprintf(format, args...)})
}

// takeBody keeps the members allowed in Options.Body.
func (b *responsesBuilder) takeBody() {
	if b.options.Body == "" {
		return
	}

	list, _ := jsonx.Members(b.options.Body) // checked by resolve
	for _, m := range list {
		switch m.Name {
		case "model", "instructions", "input", "tools", "stream", "previous_response_id", "conversation", "background":
			b.note(api.RepairOption, "%q in Options.Body is left out", m.Name)
		default:
			b.further = append(b.further, m)
		}
	}
}

// takeFurther removes a member of Options.Body and returns it.
func (b *responsesBuilder) takeFurther(name string) content.JSON {
	var value content.JSON
	value, b.further = jsonx.Take(b.further, name)
	return value
}

// keeping returns the kind of reasoning to send.
func (b *responsesBuilder) keeping() keeping {
	stored, _ := jsonx.Take(b.further, "store")
	switch {
	case !b.reasons:
		return keepNone
	case stored == "true":
		return keepAll
	case b.rules.Responses.Unsigned:
		return keepOpen
	}
	return keepSealed
}

// front returns the body up to its items.
func (b *responsesBuilder) front(req api.Request) []byte {
	// The tools come first: the tool choice depends on those that are sent.
	b.keepTools(b.rules.Fit(b.rules.Responses, &b.options.Options, req.Tools, b.note))

	// If the server does not apply the schema of the response, a system prompt describes it.
	system := req.System
	if b.options.Output.JSON != "" && b.rules.Responses.IgnoresForm {
		system = b.rules.FormPrompt(system, b.options.Output, b.note)
	}

	dst := write.String([]byte{'{'}, "model", b.model)
	dst = write.OptString(dst, "instructions", b.instructions(system))
	for _, m := range b.header() {
		dst = append(write.Name(dst, m.Name), m.Value...)
	}

	dst = b.appendTools(dst)
	return append(write.Name(dst, "input"), '[')
}

// instructions joins the system prompts, except blank ones.
func (b *responsesBuilder) instructions(system []string) string {
	var texts []string
	for _, s := range system {
		if strings.TrimSpace(s) != "" {
			texts = append(texts, s)
		} else if s != "" {
			b.note(api.RepairDropped, "a system prompt of white space")
		}
	}
	return strings.Join(texts, "\n\n")
}

// header returns the members that control the response, those of Options.Body last.
func (b *responsesBuilder) header() []jsonx.Member {
	o := b.options

	// The API stores nothing: the conversation has the thinking itself, encrypted.
	list := []jsonx.Member{{Name: "store", Value: "false"}}
	if b.reasons {
		list = append(list, jsonx.Member{Name: "include", Value: `["reasoning.encrypted_content"]`})
	}

	// add appends a member, unless its value is "".
	add := func(name string, value content.JSON) {
		if value != "" {
			list = append(list, jsonx.Member{Name: name, Value: value})
		}
	}

	add("max_output_tokens", b.maxTokens())
	if o.Temperature != nil {
		add("temperature", content.JSON(strconv.FormatFloat(*o.Temperature, 'g', -1, 64)))
	}

	if len(o.StopSequences) > 0 {
		b.note(api.RepairOption, "stop sequences are left out: the API does not have them")
	}
	add("tool_choice", b.toolChoice())
	if o.OneCall && len(b.tools) > 0 {
		add("parallel_tool_calls", "false")
	}

	// A member of Options.Body with the same name is merged: a program can add to it.
	add("reasoning", over(b.reasoning(), b.takeFurther("reasoning")))
	add("text", over(b.format(), b.takeFurther("text")))
	add("metadata", metadata(o.Metadata, b.note))
	add(caching(o.Cache, b.model, b.rules, b.note))

	// Members of Options.Body replace those of the same name.
	for _, m := range b.further {
		_, list = jsonx.Take(list, m.Name)
	}
	list = append(list, b.further...)

	if !o.NoStream {
		list = append(list, jsonx.Member{Name: "stream", Value: "true"})
	}
	return list
}

// over returns the object ours with the members of theirs added. A member of both is taken from theirs. If theirs is
// not an object, it replaces ours.
func over(ours, theirs content.JSON) content.JSON {
	if ours == "" || theirs == "" {
		return ours + theirs
	}

	list, _ := jsonx.Members(ours)
	further, err := jsonx.Members(theirs)
	if err != nil {
		return theirs
	}

	for _, m := range further {
		_, list = jsonx.Take(list, m.Name)
	}
	return jsonx.Object(append(list, further...))
}

// leastTokens is the smallest max_output_tokens accepted by OpenAI. Compatible servers accept any.
const leastTokens = 16

func (b *responsesBuilder) maxTokens() content.JSON {
	n := b.options.MaxTokens
	if n == 0 {
		return ""
	}
	if n < leastTokens && !b.server.compatible {
		b.note(api.RepairOption, "MaxTokens %d became %d, the minimum of the API", n, leastTokens)
		n = leastTokens
	}
	return content.JSON(strconv.Itoa(n))
}

// reasoning returns how much the model thinks, and requests a summary of it.
func (b *responsesBuilder) reasoning() content.JSON {
	t := b.options.Thinking
	switch {
	case t == "":
		return ""
	case !b.reasons:
		if t != api.ThinkOff {
			b.note(api.RepairOption, "Thinking is left out: the model does not reason")
		}
		return ""
	case t == api.ThinkOff:
		return `{"effort":"none"}`
	case t.Tokens() > 0:
		// Without a level, the model chooses how much it thinks.
		b.note(api.RepairOption, "the thinking budget is left out: the API has only levels")
	case t.Level() != "":
		return `{"effort":` + jsonx.Quote(t.Level()) + `,"summary":"auto"}`
	}
	return `{"summary":"auto"}`
}

// format returns the format of the response.
func (b *responsesBuilder) format() content.JSON {
	// A server that does not apply the schema gets it in a system prompt (see front).
	out := b.options.Output
	if out.JSON == "" || b.rules.Responses.IgnoresForm {
		return ""
	}

	schema, dropped := responsesTarget().Form(out.JSON)
	if len(dropped) > 0 {
		b.note(api.RepairOption, "the schema of Output is sent without %s", strings.Join(dropped, ", "))
	}

	schema, _ = withProperties(schema)
	dst := write.OptString([]byte(`{"format":{"type":"json_schema"`), "name", out.Name)
	dst = append(write.Name(dst, "schema"), schema...)
	dst = strconv.AppendBool(write.Name(dst, "strict"), strictSchema(schema))
	return content.JSON(append(dst, "}}"...))
}

// toolChoice returns the tool choice, or "" if the model decides or the choice cannot be sent.
func (b *responsesBuilder) toolChoice() content.JSON {
	choice := b.options.ToolChoice
	name := choice.Tool()
	at := slices.IndexFunc(b.tools, func(t content.Tool) bool { return t.Name == name })

	switch {
	case choice == api.ToolsAuto:
		return ""
	case len(b.tools) == 0, name != "" && at < 0:
		b.note(api.RepairOption, "ToolChoice is left out: there is no such tool")
		return ""
	case name != "":
		return chosen(b.tools[at])
	case choice == api.ToolsNone:
		return `"none"`
	}
	return `"required"`
}

// chosen returns the tool choice for one tool: by its name if a program executes it, by its type if the API does.
func chosen(t content.Tool) content.JSON {
	list, _ := extraOf(t.Extra)
	switch kind := memberType(list); {
	case kind == customTool: // declared with or without a schema
		return `{"type":"custom","name":` + jsonx.Quote(t.Name) + `}`
	case kind != "" && t.Server():
		choice := []jsonx.Member{{Name: "type", Value: jsonx.Quote(kind)}}
		if label, _ := jsonx.Take(list, "server_label"); label != "" {
			choice = append(choice, jsonx.Member{Name: "server_label", Value: label})
		}
		return jsonx.Object(choice)
	}
	return `{"type":"function","name":` + jsonx.Quote(t.Name) + `}`
}

// customTool is the type of a tool that takes any text as input.
const customTool = "custom"

// maxTools is the maximum number of tools in a request to the API.
const maxTools = 128

// keepTools keeps the acceptable tool definitions, in the API's form.
func (b *responsesBuilder) keepTools(tools []content.Tool) {
	seen := map[string]bool{}
	for _, t := range tools {
		fit, why, ok := responsesTarget().Tool(t)
		switch {
		case ok && seen[t.Name]:
			ok, why = false, "it is declared twice"
		case ok && len(b.tools) == maxTools:
			ok, why = false, fmt.Sprintf("the API accepts %d tools", maxTools)
		case ok && t.Server() && !hasType(t):
			ok, why = false, "it has no schema and is not a server tool of this API"
		}

		if !ok {
			b.note(api.RepairTool, "the tool %q is left out: %s", t.Name, why)
			continue
		}
		if why != "" {
			b.note(api.RepairTool, "the tool %q: %s", t.Name, why)
		}

		seen[t.Name] = true
		b.tools = append(b.tools, completed(fit, b.note))
	}
}

func hasType(t content.Tool) bool {
	list, _ := extraOf(t.Extra)
	return memberType(list) != ""
}

func (b *responsesBuilder) appendTools(dst []byte) []byte {
	if len(b.tools) == 0 {
		return dst
	}

	dst = append(write.Name(dst, "tools"), '[')
	for _, t := range b.tools {
		dst = appendResponsesTool(write.Comma(dst), t)
	}
	return append(dst, ']')
}

// appendResponsesTool writes a tool definition: a function, a custom tool, or a tool of the API with the members of its
// Extra.
func appendResponsesTool(dst []byte, t content.Tool) []byte {
	list, _ := extraOf(t.Extra)

	dst = append(dst, '{')
	switch kind := memberType(list); {
	case kind == customTool:
		dst = write.String(append(dst, `"type":"custom"`...), "name", t.Name)
		// The tool's description replaces the one in its Extra.
		if t.Description != "" {
			dst = write.OptString(dst, "description", t.Description)
			_, list = jsonx.Take(list, "description")
		}
		dst = appendMembers(dst, list, "type", "name", "parameters")
	case t.Server():
		dst = appendMembers(dst, list)
	default:
		dst = write.String(append(dst, `"type":"function"`...), "name", t.Name)
		dst = write.OptString(dst, "description", t.Description)
		dst = append(write.Name(dst, "parameters"), t.Schema...)
		// Without this member, the API makes the schema strict if it can.
		if strict, _ := jsonx.Take(list, "strict"); strict == "" {
			dst = append(write.Name(dst, "strict"), "false"...)
		}
		dst = appendMembers(dst, list, "type", "name", "description", "parameters")
	}

	return append(dst, '}')
}
