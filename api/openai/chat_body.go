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
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/servers"
	"github.com/plait-dev/plait/internal/wire"
)

const (
	maxChatTools = 128
	maxStops     = 4
)

// ChatBody returns the body of the Chat Completions request that sends req to model, and the changes made for the API
// to accept it. It is a pure function: the same arguments give the same bytes, and two conversations with a common
// beginning give messages with a common beginning. The messages are the last member: as a conversation grows, it keeps
// the beginning of its body.
//
// Errors are *api.Error:
//
//   - api.ErrNothing if there is no message to send.
//   - api.ErrInvalidRequest, with the name of the option, if an option is invalid in any request.
func ChatBody(req api.Request, model string, o *Options) ([]byte, []api.RepairNote, error) {
	c, err := chatCall(req, model, o, serverIn(o))
	if err != nil {
		return nil, nil, err
	}
	return c.body.Bytes(), c.notes, nil
}

// chatCall builds the request.
func chatCall(req api.Request, model string, o *Options, asked server) (call, error) {
	options, err := o.resolve(req, ChatAPI)
	if err := cmp.Or(err, asked.check(ChatAPI)); err != nil {
		return call{}, err
	}

	rules := asked.differs()

	// The encoding depends on the model and the server, so the bytes remembered for one never go to another.
	encoded := chatEncodings()[options.supports(model, rules.Chat)].Encode(req.Messages)
	if encoded.Len() == 0 {
		return call{}, &api.Error{Kind: api.ErrNothing, API: ChatAPI}
	}

	b := chatBuilder{options: options, model: model, rules: rules, notes: encoded.Notes}
	parts := append([][]byte{b.front(req)}, encoded.Items()...)
	return call{
		options: options,
		body:    wire.NewParts(append(parts, []byte("]}"))...),
		notes:   b.notes,
		streams: !options.NoStream,
	}, nil
}

// ownModels matches the names of OpenAI's own models and of fine-tuned ones. In Chat Completions these models do not
// return their thinking, and refuse the thinking of others. The open-weight gpt-oss models do not match.
var ownModels = pattern.Of(`^(ft:)?(gpt-\d|chatgpt-|o\d)`)

// mistralModels matches the names of Mistral's models, on any server. The templates of those with open weights refuse
// other IDs of calls than Mistral's API does.
var mistralModels = pattern.Of(`(?i)(^|[^a-z])(mistral|ministral|mixtral|codestral|devstral|magistral|pixtral)`)

// supports describes the requests accepted by the model behind a server. OpenAI's models with audio input have "audio"
// in their names. Some servers continue a text of the assistant at the end of a conversation, but not if the text does
// not have the form required by Output.
func (o *Options) supports(model string, server servers.Chat) chatSupport {
	s := chatSupport{
		thinking: !o.OmitThinking && !server.RefusesThought && !ownModels().MatchString(model),
		audio:    o.Audio || strings.Contains(model, "audio"),
		endsOpen: o.Output.JSON == "" && !server.Repeats,
		files:    server.FilesFor(o.TextOnly),
		plain:    server.Plain,
		shortIDs: server.ShortIDs || mistralModels().MatchString(model),
	}
	if s.thinking {
		s.thought = server.Thought
	}
	return s
}

// chatBuilder builds the part of a request body in front of the messages.
type chatBuilder struct {
	options Options
	model   string
	rules   *servers.Rules // of the server
	tools   []content.Tool
	list    []jsonx.Member // the members so far, without tools
	notes   []api.RepairNote
}

func (b *chatBuilder) note(kind api.RepairKind, format string, args ...any) {
	b.notes = append(b.notes, api.RepairNote{Kind: kind, Message: -1, Detail: fmt.Sprintf(format, args...)})
}

// set adds a member. An empty value adds nothing.
func (b *chatBuilder) set(name string, value content.JSON) {
	if value != "" {
		b.list = append(b.list, jsonx.Member{Name: name, Value: value})
	}
}

// front returns the body up to the first message after the system prompts: the options, the tools and the system
// prompts.
func (b *chatBuilder) front(req api.Request) []byte {
	// The tools come first: thinking and the tool choice depend on those that are sent.
	b.keepTools(b.rules.Fit(b.rules.Chat.API, &b.options.Options, req.Tools, b.note))

	b.set("model", jsonx.Quote(b.model))
	b.setResponseOptions()
	b.setToolChoice()

	// The members of Options.Body come last, because they replace those made of the options.
	b.addBody()

	// If the server cannot hold the model to a schema, a system prompt describes it.
	system := req.System
	if differs := b.rules.Chat; b.options.Output.JSON != "" && (differs.ObjectOnly || differs.IgnoresForm) {
		system = b.rules.FormPrompt(system, b.options.Output, b.note)
	}

	dst := appendMembers([]byte{'{'}, b.list)
	dst = b.appendTools(dst)
	dst = append(write.Name(dst, "messages"), '[')
	return b.appendSystem(dst, system)
}

// setResponseOptions sets the members that control the response.
func (b *chatBuilder) setResponseOptions() {
	o := b.options
	if o.MaxTokens > 0 {
		b.set(cmp.Or(o.MaxTokensName, b.rules.Chat.MaxTokens, maxTokens), content.JSON(strconv.Itoa(o.MaxTokens)))
	}
	if o.Temperature != nil {
		b.set("temperature", content.JSON(strconv.FormatFloat(*o.Temperature, 'g', -1, 64)))
	}

	b.set("stop", b.stops())
	b.setThinking()
	b.set("response_format", b.format())
	b.set("metadata", b.metadata())
	b.set(caching(o.Cache, b.model, b.rules, b.note))

	if !o.NoStream {
		b.set("stream", "true")
		// Without this option, a stream of OpenAI has no usage.
		if !b.rules.Chat.NoStreamOptions {
			b.set("stream_options", `{"include_usage":true}`)
		}
	}
}

const maxTokens = "max_completion_tokens"

func (b *chatBuilder) stops() content.JSON {
	stops := b.options.StopSequences
	if len(stops) > maxStops {
		b.note(api.RepairOption, "only the first %d of %d stop sequences are sent", maxStops, len(stops))
		stops = stops[:maxStops]
	}
	if len(stops) == 0 {
		return ""
	}

	dst := []byte{'['}
	for _, s := range stops {
		dst = append(write.Comma(dst), jsonx.Quote(s)...)
	}
	return content.JSON(append(dst, ']'))
}

// setThinking sets the amount of thinking. OpenAI's models that do not reason refuse the member.
func (b *chatBuilder) setThinking() {
	t, thinks := b.options.Thinking, b.rules.Chat.Thinks

	// The models of such a server think by default, so even an unset Thinking must become "off".
	if thinks == servers.ThinkingToggle && b.forcesCall() {
		if t != api.ThinkOff {
			b.note(api.RepairOption, "thinking is off: ToolChoice forces a call, which %s refuses otherwise", b.rules.Name)
		}
		t = api.ThinkOff
	}

	switch {
	case t == "":
		return
	case !reasons(b.model):
		// Off and auto need no note: they do not ask the model to think.
		if t != api.ThinkOff && t != api.ThinkAuto {
			b.note(api.RepairOption, "Thinking is left out: the model does not reason")
		}
		return
	}

	switch thinks {
	case servers.ReasoningOf:
		b.set("reasoning", reasoningOf(t))
	case servers.ThinkingToggle:
		if t == api.ThinkOff {
			b.set("thinking", `{"type":"disabled"}`)
		} else {
			b.set("reasoning_effort", b.effort(t))
		}
	default:
		b.set("reasoning_effort", b.effort(t))
	}
}

// forcesCall reports whether the tool choice will be sent, and forces a call.
func (b *chatBuilder) forcesCall() bool {
	choice := b.options.ToolChoice
	return choice == api.ToolsAny && len(b.tools) > 0 || choice.Tool() != "" && b.has(choice.Tool())
}

// effort returns how much the model thinks as a level, or "" for the default.
func (b *chatBuilder) effort(t api.Thinking) content.JSON {
	switch {
	case t == api.ThinkOff:
		return `"none"`
	case t.Tokens() > 0:
		b.note(api.RepairOption, "a thinking budget of %d tokens is left out: the API has only levels", t.Tokens())
	case t.Level() != "":
		return jsonx.Quote(t.Level())
	}
	return ""
}

// reasoningOf returns the amount of thinking in OpenRouter's form. This form has budgets.
func reasoningOf(t api.Thinking) content.JSON {
	switch {
	case t == api.ThinkOff:
		return `{"effort":"none"}`
	case t.Tokens() > 0:
		return content.JSON(`{"max_tokens":` + strconv.Itoa(t.Tokens()) + `}`)
	case t.Level() != "":
		return `{"effort":` + jsonx.Quote(t.Level()) + `}`
	}
	return `{"enabled":true}`
}

// format returns the format of the response.
func (b *chatBuilder) format() content.JSON {
	form := b.options.Output
	// A server that does not apply the schema gets it in a system prompt (see front).
	switch differs := b.rules.Chat; {
	case form.JSON == "", differs.IgnoresForm:
		return ""
	case differs.ObjectOnly:
		return `{"type":"json_object"}`
	}

	schema, dropped := chatTarget().Form(form.JSON)
	if len(dropped) > 0 {
		b.note(api.RepairOption, "the schema of Output is sent without %s", strings.Join(dropped, ", "))
	}

	schema, _ = withProperties(schema)
	inner := []jsonx.Member{{Name: "name", Value: jsonx.Quote(form.Name)}, {Name: "schema", Value: schema}}

	// The API refuses "strict" for a schema that breaks its rules for strict ones.
	if strictSchema(schema) {
		inner = append(inner, jsonx.Member{Name: "strict", Value: "true"})
	}

	return jsonx.Object([]jsonx.Member{
		{Name: "type", Value: `"json_schema"`},
		{Name: "json_schema", Value: jsonx.Object(inner)},
	})
}

// metadata returns the metadata if OpenAI is to store the response, and "" otherwise, because the API then refuses it.
func (b *chatBuilder) metadata() content.JSON {
	if len(b.options.Metadata) == 0 {
		return ""
	}
	body, _ := jsonx.Members(b.options.Body) // checked by resolve
	if kept, _ := jsonx.Take(body, "store"); kept != "true" {
		b.note(api.RepairOption, `metadata is left out: the API accepts it only with "store": true in Options.Body`)
		return ""
	}
	return metadata(b.options.Metadata, b.note)
}

// setToolChoice sets the members that control tool calls.
func (b *chatBuilder) setToolChoice() {
	choice := b.options.ToolChoice
	switch name := choice.Tool(); {
	case choice == api.ToolsAuto:
	case len(b.tools) == 0:
		b.note(api.RepairOption, "ToolChoice is left out: there are no tools")
	case choice == api.ToolsAny:
		b.set("tool_choice", `"required"`)
	case choice == api.ToolsNone:
		b.set("tool_choice", `"none"`)
	case !b.has(name):
		b.note(api.RepairOption, "ToolChoice is left out: there is no tool %q", name)
	default:
		b.set("tool_choice", b.chosen(name))
	}

	// The API refuses this member in a request without tools.
	if b.options.OneCall && len(b.tools) > 0 {
		b.set("parallel_tool_calls", "false")
	}
}

// has reports whether a tool with this name is sent.
func (b *chatBuilder) has(name string) bool {
	return slices.ContainsFunc(b.tools, func(t content.Tool) bool { return sentName(t) == name })
}

// chosen returns the tool choice for one tool.
func (b *chatBuilder) chosen(name string) content.JSON {
	kind := "function"
	if slices.ContainsFunc(b.tools, func(t content.Tool) bool { return sentName(t) == name && isCustom(t.Extra) }) {
		kind = "custom"
	}

	inner := jsonx.Object([]jsonx.Member{{Name: "name", Value: jsonx.Quote(name)}})
	return jsonx.Object([]jsonx.Member{{Name: "type", Value: jsonx.Quote(kind)}, {Name: kind, Value: inner}})
}

// addBody adds the members of Options.Body. They replace members of the same name.
func (b *chatBuilder) addBody() {
	if b.options.Body == "" {
		return
	}
	body, _ := jsonx.Members(b.options.Body) // checked by resolve
	for _, m := range body {
		if why := b.unfit(m); why != "" {
			b.note(api.RepairOption, "%q in Options.Body is left out: %s", m.Name, why)
			continue
		}

		// The limit of tokens has several names: a request must carry one of them only.
		names := []string{m.Name}
		if m.Name == "max_tokens" || m.Name == maxTokens {
			names = []string{"max_tokens", maxTokens, b.options.MaxTokensName}
		}

		for _, name := range names {
			_, b.list = jsonx.Take(b.list, name)
		}
		b.list = append(b.list, m)
	}
}

// unfit returns the reason why a member of Options.Body cannot be sent, or "".
func (b *chatBuilder) unfit(m jsonx.Member) string {
	switch m.Name {
	case "model", "messages", "tools", "stream":
		return "Plait sets it"
	case "stream_options":
		if b.options.NoStream {
			return "the response is not streamed"
		}
	case "tool_choice":
		// A choice that is a word, such as "none", names no tool.
		list, err := jsonx.Members(m.Value)
		if err != nil {
			break
		}
		for _, kind := range []string{"function", "custom"} {
			if inner, err := jsonx.Members(value(list, kind)); err == nil && !b.has(firstText(inner, "name")) {
				return "there is no such tool"
			}
		}
	}

	if (m.Name == "tool_choice" || m.Name == "parallel_tool_calls") && len(b.tools) == 0 {
		return "there are no tools"
	}
	return ""
}

// appendSystem writes each system prompt as a message with a comma after it.
func (b *chatBuilder) appendSystem(dst []byte, system []string) []byte {
	for _, s := range system {
		switch {
		case strings.TrimSpace(s) != "":
			dst = write.String(append(dst, '{'), "role", cmp.Or(b.options.SystemRole, "system"))
			dst = append(write.String(dst, "content", s), "},"...)
		case s != "":
			b.note(api.RepairDropped, "a system prompt of white space")
		}
	}
	return dst
}
