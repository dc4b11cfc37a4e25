package openai

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
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
//   - Some of the API's own tools are executed by a program: a computer, a shell, a patch, a search for tools, an
//     approval. Their calls are content.ToolUse with the names computer, shell, local_shell, apply_patch, tool_search
//     and mcp_approval_request. A text of the result becomes the output, an image the screenshot of a computer. An
//     approval is the text {"approve": true}. Members in the Extra of a result replace those made of its content. A tool
//     with a schema and an Extra of such a type is declared by its type, and its function executes the calls.
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
	options, notes, err := o.resolve(req, ResponsesAPI)
	if err := cmp.Or(err, asked.check(ResponsesAPI)); err != nil {
		return call{}, err
	}

	b := responsesBuilder{options: options, model: model, server: asked, rules: asked.differs(), reasons: reasons(model)}
	// The members of Options.Body are needed first: they decide about reasoning and the limit.
	if options.Body != "" {
		b.Further, _ = jsonx.Members(options.Body) // checked by resolve
		b.LeaveOut(
			"model", "instructions", "input", "tools", "stream", "previous_response_id", "conversation", "background",
		)
	}

	differs := b.rules.Responses
	encoded := responsesEncodings.Get(responsesSupport{
		keeping: b.keeping(), files: differs.FilesFor(options.TextOnly), compatible: asked.compatible, plain: differs.Plain,
	}, responsesSupport.encoding).Encode(req.Messages)
	if encoded.Len() == 0 {
		return call{}, &api.Error{Kind: api.ErrNothing, API: ResponsesAPI}
	}

	// The front is built for each request; the items are shared with earlier requests.
	front := b.front(req)
	parts := append([][]byte{front}, encoded.Items()...)
	body := wire.NewParts(append(parts, []byte("]}"))...)
	notes = append(slices.Concat(encoded.Notes, notes), b.Notes...)
	return call{options: options, body: body, notes: notes, streams: !options.NoStream, limit: b.limit()}, nil
}

// limit returns call.limit: max_output_tokens for a compatible server, because some report every response as completed,
// and 0 for OpenAI.
func (b *responsesBuilder) limit() int {
	if !b.server.compatible {
		return 0
	}

	n := b.options.MaxTokens
	if given, _ := jsonx.Take(b.Further, "max_output_tokens"); given != "" {
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
	roundtrip.Builder
	options Options
	model   string
	server  server
	rules   *servers.Rules // of the server
	reasons bool
}

// keeping returns the kind of reasoning to send.
func (b *responsesBuilder) keeping() keeping {
	stored, _ := jsonx.Take(b.Further, "store")
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
	tools := b.rules.Fit(b.rules.Responses, &b.options.Options, req.Tools, b.Note)
	b.KeepTools(tools, maxTools, fitResponses, func(t content.Tool) string { return t.Name })

	// If the server does not apply the schema of the response, a system prompt describes it.
	system := req.System
	if b.options.Output.JSON != "" && b.rules.Responses.IgnoresForm {
		system = b.rules.FormPrompt(system, b.options.Output, b.Note)
	}

	dst := write.String([]byte{'{'}, "model", b.model)
	dst = write.OptString(dst, "instructions", strings.Join(b.System(system), "\n\n"))
	dst = roundtrip.AppendMembers(dst, b.header())
	dst = roundtrip.AppendList(dst, "tools", b.Tools, appendResponsesTool)
	return append(write.Name(dst, "input"), '[')
}

// header returns the members that control the response, those of Options.Body last.
func (b *responsesBuilder) header() roundtrip.Header {
	o := b.options

	// The API stores nothing: the conversation has the thinking itself, encrypted.
	var list roundtrip.Header
	list.Set("store", "false")
	if b.reasons {
		list.Set("include", `["reasoning.encrypted_content"]`)
	}

	list.SetInt("max_output_tokens", b.maxTokens())
	list.SetTemperature(o.Temperature)
	if len(o.StopSequences) > 0 {
		b.Note("option", "stop sequences are left out: the API does not have them")
	}
	list.Set("tool_choice", b.toolChoice())
	if o.OneCall && len(b.Tools) > 0 {
		list.Set("parallel_tool_calls", "false")
	}

	// A member of Options.Body with the same name is merged: a program can add to it.
	list.Set("reasoning", roundtrip.Over(b.reasoning(), b.Take("reasoning")))
	list.Set("text", roundtrip.Over(b.format(), b.Take("text")))
	list.Set(caching(o.Cache, b.model, b.rules, b.Note))

	list = b.Header(list)
	if !o.NoStream {
		list.Set("stream", "true")
	}
	return list
}

// leastTokens is the smallest max_output_tokens accepted by OpenAI. Compatible servers accept any.
const leastTokens = 16

func (b *responsesBuilder) maxTokens() int {
	n := b.options.MaxTokens
	if n > 0 && n < leastTokens && !b.server.compatible {
		b.Note("option", "MaxTokens %d became %d, the minimum of the API", n, leastTokens)
		return leastTokens
	}
	return n
}

// reasoning returns how much the model thinks, and requests a summary of it.
func (b *responsesBuilder) reasoning() content.JSON {
	t := b.options.Thinking
	switch {
	case t == "":
		return ""
	case !b.reasons:
		if t != api.ThinkOff {
			b.Note("option", "Thinking is left out: the model does not reason")
		}
		return ""
	case t == api.ThinkOff:
		return `{"effort":"none"}`
	case t.Tokens() > 0:
		// Without a level, the model chooses how much it thinks.
		b.Note("option", "the thinking budget is left out: the API has only levels")
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

	schema := b.Form(responsesTarget().Form(out.JSON))
	schema, _ = withProperties(schema)
	dst := write.OptString([]byte(`{"format":{"type":"json_schema"`), "name", out.Name)
	dst = append(write.Name(dst, "schema"), schema...)
	dst = strconv.AppendBool(write.Name(dst, "strict"), strictSchema(schema))
	return content.JSON(append(dst, "}}"...))
}

// toolChoice returns the tool choice, or "" if the model decides or the choice cannot be sent.
func (b *responsesBuilder) toolChoice() content.JSON {
	switch choice, tool := b.Choice(b.options.ToolChoice, b.Tools); choice {
	case api.ToolsAuto:
		return ""
	case api.ToolsAny:
		return `"required"`
	case api.ToolsNone:
		return `"none"`
	default:
		return chosen(tool)
	}
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

// fitResponses converts a definition for the Responses API.
func fitResponses(def content.Tool) (content.Tool, string, bool) {
	t, why, ok := responsesTarget().Tool(def)
	if kind := toolType(t); ok && kind != "" && kind != customTool && kind != "function" {
		t.Description, t.Schema = "", "" // the API knows them
	}
	if ok && t.Server() && toolType(t) == "" {
		return t, "it has no schema and is not a server tool of this API", false
	}
	if !ok {
		return t, why, false
	}
	t, listed := completed(t)
	return t, also(why, listed), true
}

// toolType returns the type in a tool's Extra, or "".
func toolType(t content.Tool) string {
	list, _ := extraOf(t.Extra)
	return memberType(list)
}

// appendResponsesTool writes a tool definition: a function, a custom tool, or a tool of the API with the members of its
// Extra.
func appendResponsesTool(dst []byte, _ int, t content.Tool) []byte {
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
		dst = roundtrip.AppendMembers(dst, list, "type", "name", "parameters")
	case t.Server():
		dst = roundtrip.AppendMembers(dst, list)
	default:
		dst = write.String(append(dst, `"type":"function"`...), "name", t.Name)
		dst = write.OptString(dst, "description", t.Description)
		dst = append(write.Name(dst, "parameters"), t.Schema...)
		// Without this member, the API makes the schema strict if it can.
		if strict, _ := jsonx.Take(list, "strict"); strict == "" {
			dst = append(write.Name(dst, "strict"), "false"...)
		}
		dst = roundtrip.AppendMembers(dst, list, "type", "name", "description", "parameters")
	}

	return append(dst, '}')
}
