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
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/servers"
	"github.com/plait-dev/plait/internal/wire"
)

const (
	maxTools = 128
	maxStops = 4
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
	options, notes, err := o.resolve(req, ChatAPI)
	if err := cmp.Or(err, asked.check(ChatAPI)); err != nil {
		return call{}, err
	}

	rules := asked.differs()

	// The encoding depends on the model and the server, so the bytes remembered for one never go to another.
	encoded := chatEncodings.Get(options.supports(model, rules.Chat), chatSupport.encoding).Encode(req.Messages)
	if encoded.Len() == 0 {
		return call{}, &api.Error{Kind: api.ErrNothing, API: ChatAPI}
	}

	b := chatBuilder{Builder: roundtrip.Builder{Notes: append(slices.Clip(encoded.Notes), notes...)}, options: options, model: model, rules: rules}
	parts := append([][]byte{b.front(req)}, encoded.Items()...)
	return call{
		options: options,
		body:    wire.NewParts(append(parts, []byte("]}"))...),
		notes:   b.Notes,
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
	roundtrip.Builder
	options Options
	model   string
	rules   *servers.Rules   // of the server
	list    roundtrip.Header // the members so far, without tools
}

// front returns the body up to the first message after the system prompts: the options, the tools and the system
// prompts.
func (b *chatBuilder) front(req api.Request) []byte {
	// The tools come first: thinking and the tool choice depend on those that are sent.
	b.KeepTools(b.rules.Fit(b.rules.Chat.API, &b.options.Options, req.Tools, b.Note), maxTools, fitChat, sentName)

	b.list.Set("model", jsonx.Quote(b.model))
	b.setResponseOptions()
	b.setToolChoice()

	// The members of Options.Body come last, because they replace those made of the options.
	b.takeBody()
	members := b.Header(b.list)

	// If the server cannot hold the model to a schema, a system prompt describes it.
	system := req.System
	if differs := b.rules.Chat; b.options.Output.JSON != "" && (differs.ObjectOnly || differs.IgnoresForm) {
		system = b.rules.FormPrompt(system, b.options.Output, b.Note)
	}

	dst := roundtrip.AppendMembers([]byte{'{'}, members)
	dst = roundtrip.AppendList(dst, "tools", b.Tools, appendTool)
	dst = append(write.Name(dst, "messages"), '[')
	for _, s := range b.System(system) {
		dst = write.String(append(dst, '{'), "role", cmp.Or(b.options.SystemRole, "system"))
		dst = append(write.String(dst, "content", s), "},"...)
	}
	return dst
}

// setResponseOptions sets the members that control the response.
func (b *chatBuilder) setResponseOptions() {
	o := b.options
	b.list.SetInt(cmp.Or(o.MaxTokensName, b.rules.Chat.MaxTokens, maxTokens), o.MaxTokens)
	b.list.SetTemperature(o.Temperature)
	b.list.Set("stop", b.Stops(o.StopSequences, maxStops))
	b.setThinking()
	b.list.Set("response_format", b.format())
	b.list.Set(caching(o.Cache, b.model, b.rules, b.Note))

	if !o.NoStream {
		b.list.Set("stream", "true")
		// Without this option, a stream of OpenAI has no usage.
		if !b.rules.Chat.NoStreamOptions {
			b.list.Set("stream_options", `{"include_usage":true}`)
		}
	}
}

const maxTokens = "max_completion_tokens"

// setThinking sets the amount of thinking. OpenAI's models that do not reason refuse the member.
func (b *chatBuilder) setThinking() {
	t, thinks := b.options.Thinking, b.rules.Chat.Thinks

	// The models of such a server think by default, so even an unset Thinking must become "off".
	if thinks == servers.ThinkingToggle && b.forcesCall() {
		if t != api.ThinkOff {
			b.Note("option", "thinking is off: ToolChoice forces a call, which %s refuses otherwise", b.rules.Name)
		}
		t = api.ThinkOff
	}

	switch {
	case t == "":
		return
	case !reasons(b.model):
		// Off and auto need no note: they do not ask the model to think.
		if t != api.ThinkOff && t != api.ThinkAuto {
			b.Note("option", "Thinking is left out: the model does not reason")
		}
		return
	}

	switch thinks {
	case servers.ReasoningOf:
		b.list.Set("reasoning", reasoningOf(t))
	case servers.ThinkingToggle:
		if t == api.ThinkOff {
			b.list.Set("thinking", `{"type":"disabled"}`)
		} else {
			b.list.Set("reasoning_effort", b.effort(t))
		}
	default:
		b.list.Set("reasoning_effort", b.effort(t))
	}
}

// forcesCall reports whether the tool choice will be sent, and forces a call.
func (b *chatBuilder) forcesCall() bool {
	choice := b.options.ToolChoice
	return choice == api.ToolsAny && len(b.Tools) > 0 || choice.Tool() != "" && b.declares(choice.Tool())
}

// effort returns how much the model thinks as a level, or "" for the default.
func (b *chatBuilder) effort(t api.Thinking) content.JSON {
	switch {
	case t == api.ThinkOff:
		return `"none"`
	case t.Tokens() > 0:
		b.Note("option", "a thinking budget of %d tokens is left out: the API has only levels", t.Tokens())
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

	schema := b.Form(chatTarget().Form(form.JSON))
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

// setToolChoice sets the members that control tool calls.
func (b *chatBuilder) setToolChoice() {
	switch choice, tool := b.Choice(b.options.ToolChoice, b.Tools); choice {
	case api.ToolsAuto:
	case api.ToolsAny:
		b.list.Set("tool_choice", `"required"`)
	case api.ToolsNone:
		b.list.Set("tool_choice", `"none"`)
	default:
		b.list.Set("tool_choice", chosenInChat(tool))
	}

	// The API refuses this member in a request without tools.
	if b.options.OneCall && len(b.Tools) > 0 {
		b.list.Set("parallel_tool_calls", "false")
	}
}

// declares reports whether a tool with this name is sent.
func (b *chatBuilder) declares(name string) bool {
	return slices.ContainsFunc(b.Tools, func(t content.Tool) bool { return sentName(t) == name })
}

// chosenInChat returns the tool choice for one tool.
func chosenInChat(t content.Tool) content.JSON {
	kind := "function"
	if isCustom(t.Extra) {
		kind = "custom"
	}
	inner := jsonx.Object([]jsonx.Member{{Name: "name", Value: jsonx.Quote(sentName(t))}})
	return jsonx.Object([]jsonx.Member{{Name: "type", Value: jsonx.Quote(kind)}, {Name: kind, Value: inner}})
}

// takeBody keeps the acceptable members of Options.Body.
func (b *chatBuilder) takeBody() {
	if b.options.Body == "" {
		return
	}
	body, _ := jsonx.Members(b.options.Body) // checked by resolve
	for _, m := range body {
		if why := b.unfit(m); why != "" {
			b.Note("option", "%q in Options.Body is left out: %s", m.Name, why)
			continue
		}

		// The limit of tokens has several names: a request must carry one of them only.
		if m.Name == "max_tokens" || m.Name == maxTokens {
			for _, name := range []string{"max_tokens", maxTokens, b.options.MaxTokensName} {
				_, b.list = jsonx.Take(b.list, name)
			}
		}
		b.Further = append(b.Further, m)
	}
}

// unfit returns the reason why a member of Options.Body cannot be sent, or "".
func (b *chatBuilder) unfit(m jsonx.Member) string {
	switch m.Name {
	case "model", "messages", "tools", "stream":
		return "Plait sets it"
	case "n":
		if m.Value != "1" && m.Value != "null" {
			return "one response is read of each request"
		}
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
			if inner, err := jsonx.Members(value(list, kind)); err == nil && !b.declares(firstText(inner, "name")) {
				return "there is no such tool"
			}
		}
	}

	if (m.Name == "tool_choice" || m.Name == "parallel_tool_calls") && len(b.Tools) == 0 {
		return "there are no tools"
	}
	return ""
}
