package anthropic

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/servers"
	"github.com/plait-dev/plait/internal/wire"
)

// Body returns the body of the request that sends req to model, and the changes made for the API to accept it. It is a
// pure function: the same arguments give the same bytes.
//
// The messages come last in the body. Two conversations with a common prefix give messages with a common prefix, except
// for the cache_control markers (see [Options]). So the body of a growing conversation keeps its beginning.
//
// The options of req take precedence over those in o. Errors are *api.Error: api.ErrNothing if there is no message to
// send, and those of api.Options.Check.
func Body(req api.Request, model string, o *Options) ([]byte, []api.RepairNote, error) {
	b := newBuilder(o, req, model)
	parts, err := b.body(req)
	if err != nil {
		return nil, nil, err
	}
	return parts.Bytes(), b.Notes, nil
}

// builder is one request under construction.
type builder struct {
	roundtrip.Builder
	options Options
	model   string
	about   []api.RepairNote // about the options
	rules   *servers.Rules   // of the server
	// The value of "thinking"; "" for none.
	thinking content.JSON
	system   []string
	// The messages after repair.
	encoded dialect.Encoded
	// The marker of the cache policy; "" for none.
	mark content.JSON
}

// newBuilder returns a builder with the options of a request over those of the provider.
func newBuilder(o *Options, req api.Request, model string) builder {
	options, notes := o.over(req.Options)
	return builder{options: options, model: model, about: notes}
}

// body returns the body, and sets b.Notes.
func (b *builder) body(req api.Request) (*wire.Parts, error) {
	if _, err := roundtrip.Checked(API, b.options.Options); err != nil {
		return nil, err
	}
	var known bool
	if b.rules, known = servers.Of(b.options.Server); !known {
		return nil, badServer("%q is not a known server; known are %s", b.options.Server, strings.Join(servers.Names(), ", "))
	}
	if b.options.Body != "" {
		b.Further, _ = jsonx.Members(b.options.Body) // it was checked
	}

	b.mark = markOf(b.cache())
	differs := b.rules.Messages
	kind := variant{
		prefill: b.options.Prefill, unsigned: differs.Unsigned, plain: differs.Plain,
		files: differs.FilesFor(b.options.TextOnly), mark: b.mark,
	}
	b.encoded = encodings.Get(kind, variant.encoding).Encode(req.Messages)
	if b.encoded.Len() == 0 {
		return nil, &api.Error{Kind: api.ErrNothing, API: API}
	}

	// Notes about messages come before those about tools, system prompts and options.
	b.Notes = append(slices.Clip(b.encoded.Notes), b.about...)
	tools := b.rules.Fit(differs, &b.options.Options, req.Tools, b.Note)
	b.keepTools(tools)
	system := req.System

	// If the server ignores the option for the form of the response, a system prompt describes the form.
	if b.options.Output.JSON != "" && differs.IgnoresForm {
		system = b.rules.FormPrompt(system, b.options.Output, b.Note)
		b.options.Output = api.Schema{}
	}

	b.system = b.System(system)
	b.settle()

	if !slices.Contains(policies, b.options.Cache) {
		b.Note("option", "Cache %q is left out: the API has no such policy", string(b.options.Cache))
	}

	// The body stays in pieces: the encoded messages are shared with other requests and not copied.
	pieces := append([][]byte{b.front()}, b.encoded.Items()...)
	return wire.NewParts(append(pieces, []byte("]}"))...), nil
}

// cache returns the policy to apply. It is CacheOff for an unknown policy, and if Options.Body lets the API set the
// markers.
func (b *builder) cache() api.Cache {
	cache := b.options.Cache
	whole, _ := jsonx.Take(b.Further, cacheControl)
	if whole != "" || !slices.Contains(policies, cache) {
		return api.CacheOff
	}
	return cache
}

// variant holds everything the bytes of a message depend on, besides the messages.
type variant struct {
	prefill  bool
	unsigned bool // the server reads thinking without a signature
	plain    bool // the server knows only the blocks known to Plait
	files    servers.Files
	// The marker of the cache policy; "" for none.
	mark content.JSON
}

// encodings holds the encoding of each variant: an encoding is identified by its address.
var encodings wire.Cache[variant, *dialect.Encoding]

func (kind variant) encoding() *dialect.Encoding {
	return &dialect.Encoding{
		Rules: rules(kind),
		Append: func(dst []byte, m content.Message, end int) []byte {
			return appendMessage(dst, m, kind.mark, end)
		},
	}
}

// keepTools keeps the acceptable definitions. A toolset that several tools are of is sent once.
func (b *builder) keepTools(tools []content.Tool) {
	toolsets := map[content.JSON]bool{}
	b.KeepTools(tools, 0, func(t content.Tool) (content.Tool, string, bool) {
		f := fits.Get(t, fit)
		if entry := f.tool.Extra.For(API); f.ok && f.tool.Server() && isToolset(typeOf(f.tool)) {
			if toolsets[entry] {
				return f.tool, "", false
			}
			toolsets[entry] = true
		}
		return f.tool, f.why, f.ok
	}, sentName)
}

// sentName returns the name of a tool in the request. A tool of the API's own may have another.
func sentName(t content.Tool) string {
	if !t.Server() {
		return t.Name
	}
	if list, err := jsonx.Members(t.Extra.For(API)); err == nil {
		if name, _, ok := jsonx.TakeText(list, "name"); ok {
			return name
		}
	}
	return t.Name
}

// typeOf returns the type of a tool of the API's own, or "".
func typeOf(t content.Tool) string {
	list, _ := jsonx.Members(t.Extra.For(API)) // none without an Extra
	kind, _, _ := jsonx.TakeText(list, "type")
	if kind == "custom" {
		return ""
	}
	return kind
}

// isToolset reports whether the tools of a type have one entry without a name: browser_toolset_20260801, mcp_toolset.
func isToolset(kind string) bool { return strings.Contains(kind, "toolset") }

// fitted is a definition in the form the API accepts. If it is ok, why is the change made, or ""; otherwise why is the
// reason to leave the tool out.
type fitted struct {
	tool content.Tool
	why  string
	ok   bool
}

// fits caches the results of fit: a conversation declares the same tools in every request.
var fits wire.Cache[content.Tool, fitted]

// fit converts a definition.
func fit(def content.Tool) fitted {
	t, why, ok := target().Tool(def)
	if !ok {
		return fitted{t, why, false}
	}

	// The API knows the description and the schema of its own tools, also of those that a program executes.
	if typeOf(t) != "" {
		t.Description, t.Schema = "", ""
		return fitted{t, "", true}
	}
	if t.Server() {
		return fitted{t, "it has no schema and is not a server tool of this API", false}
	}

	schema, _ := jsonx.Members(t.Schema)
	properties, _ := jsonx.Take(schema, "properties")
	list, _ := jsonx.Members(properties) // without members if it is not an object
	for _, p := range list {
		if !propertyName().MatchString(p.Name) {
			return fitted{t, fmt.Sprintf("the name of its argument %q does not match %s", p.Name, propertyName()), false}
		}
	}
	return fitted{t, why, true}
}

// propertyName matches the argument names accepted by the API.
var propertyName = pattern.Of(`^[a-zA-Z0-9_.-]{1,64}$`)

// settle computes the options that depend on the conversation or on each other.
func (b *builder) settle() {
	// These members are made from the request.
	b.LeaveOut("model", "system", "tools", "messages", "stream")

	// The order matters: binding is read from "thinking" before settleTokens removes it from Options.Body.
	forced := b.settleToolChoice()
	binding := b.binding()
	b.settleTokens()
	b.settleThinking(forced, binding)
	b.setContainer()
}

// binding returns the "block_binding" of thinking in Options.Body, or "".
func (b *builder) binding() content.JSON {
	thinking, _ := jsonx.Take(b.Further, "thinking")
	list, _ := jsonx.Members(thinking) // without members if it is not an object
	binding, _ := jsonx.Take(list, blockBinding)
	return binding
}

const blockBinding = "block_binding"

// settleToolChoice sets tool_choice from the options, unless Options.Body has one, and removes it if its tool is not
// declared. It reports whether the model is forced to call a tool.
func (b *builder) settleToolChoice() bool {
	value, _ := jsonx.Take(b.Further, "tool_choice")
	if value == "" {
		value = b.toolChoice()
		b.Further = append(b.Further, member("tool_choice", value)...)
	}

	var choice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if value == "" || value.Decode(&choice) != nil {
		return false
	}

	// The API refuses a choice without tools, or of an undeclared tool.
	named := choice.Type != "tool" ||
		slices.ContainsFunc(b.Tools, func(t content.Tool) bool { return sentName(t) == choice.Name })
	if len(b.Tools) == 0 || !named {
		b.Take("tool_choice")
		b.Note("option", "tool_choice is left out: there is no such tool")
		return false
	}

	return choice.Type == "any" || choice.Type == "tool"
}

// member returns a list of one member, or of none if the value is empty.
func member(name string, value content.JSON) []jsonx.Member {
	var list roundtrip.Header
	list.Set(name, value)
	return list
}

// toolChoice returns the tool_choice of the options. The options name a tool as it was declared, not by its sentName.
func (b *builder) toolChoice() content.JSON {
	one := b.options.OneCall
	dst := []byte{'{'}
	switch choice, tool := b.Choice(b.options.ToolChoice, b.Tools); {
	case choice == api.ToolsNone:
		return `{"type":"none"}`
	case choice == api.ToolsAny:
		dst = append(dst, `"type":"any"`...)
	case choice != api.ToolsAuto:
		dst = write.String(append(dst, `"type":"tool"`...), "name", sentName(tool))
	// ToolsAuto is the API's default. It is sent only to carry disable_parallel_tool_use.
	case !one || len(b.Tools) == 0:
		return ""
	default:
		dst = append(dst, `"type":"auto"`...)
	}

	if one {
		dst = append(dst, `,"disable_parallel_tool_use":true`...)
	}
	return content.JSON(append(dst, '}'))
}

// settleTokens sets MaxTokens and b.thinking.
func (b *builder) settleTokens() {
	o := &b.options

	// A "thinking" with a type in Options.Body replaces the one of the options. One without is merged into it below.
	given := b.Take("thinking")
	further, err := jsonx.Members(given)
	if kind, _, _ := jsonx.TakeText(further, "type"); kind != "" || given != "" && err != nil {
		b.thinking = given
	}

	budget := o.Thinking.Tokens()
	if budget > 0 && budget < leastThinking {
		b.Note("option", "a thinking budget of %d is sent as %d, the minimum", budget, leastThinking)
		budget = leastThinking
	}

	// The API counts thinking as part of max_tokens, so the budget must be smaller.
	switch {
	case o.MaxTokens == 0:
		o.MaxTokens = defaultMaxTokens + budget
	case budget >= o.MaxTokens && b.thinking == "":
		b.Note("option", "MaxTokens of %d leaves no room for %d tokens of thinking: it is sent as %d",
			o.MaxTokens, budget, budget+o.MaxTokens)
		o.MaxTokens += budget
	}

	if b.thinking != "" {
		return
	}

	switch {
	case budget > 0:
		b.thinking = content.JSON(`{"type":"enabled","budget_tokens":` + strconv.Itoa(budget) + `}`)
	case o.Thinking == api.ThinkOff:
		b.thinking = `{"type":"disabled"}`
	case o.Thinking != "":
		b.thinking = `{"type":"adaptive"}`
	}

	// Members without a type add to the result of the options.
	if len(further) > 0 {
		made, _ := jsonx.Members(b.thinking)
		b.thinking = jsonx.Object(jsonx.With(made, further))
	}
}

// settleThinking disables thinking if the API would refuse it in this request. Otherwise it removes the options not
// allowed beside thinking.
func (b *builder) settleThinking(forced bool, binding content.JSON) {
	var mode struct {
		Type string `json:"type"`
	}
	_ = b.thinking.Decode(&mode) // the API refuses anything undecodable
	enabled := mode.Type == "enabled"

	// The API needs the binding even if the model does not think.
	var still content.JSON
	if binding != "" {
		still = jsonx.Object([]jsonx.Member{{Name: blockBinding, Value: binding}})
	}

	switch {
	case !enabled && mode.Type != "adaptive":
		return
	case forced:
		b.thinking = still
		b.Note("option", "thinking is off: tool_choice forces a call")
		return
	case enabled && !thinkingFits(b.encoded.Backward()):
		b.thinking = still
		b.Note("option", "thinking is off: the turn began without thinking")
		return
	}

	if further := b.Take("temperature"); further != "" || b.options.Temperature != nil {
		b.options.Temperature = nil
		b.Note("option", "temperature is left out while the model thinks")
	}
}

// thinkingFits reports whether the API accepts the conversation with thinking enabled. The messages come in reverse
// order, last first.
//
// The API looks at the assistant's unfinished turn: a tool loop, or a last message to be continued. The turn must have
// begun with thinking. So must every message in it after a user message with more than tool results.
func thinkingFits(backward iter.Seq2[int, content.Message]) bool {
	// begins: the message after m begins with thinking that is not stale, if it is the assistant's.
	begins, last := true, true
	for _, m := range backward {
		switch {
		case m.Role == content.Assistant:
			t, thinks := m.Blocks.At(0).(content.Thinking)
			begins = thinks && !t.Stale
		case last && answersCalls(m), onlyResults(m):
		case last:
			return true
		case !begins || !answersCalls(m):
			return begins
		}
		last = false
	}
	return begins
}

// answersCalls reports whether m has tool results. onlyResults reports whether it has nothing else.
func answersCalls(m content.Message) bool { return len(m.Blocks.ToolResults()) > 0 }
func onlyResults(m content.Message) bool  { return len(m.Blocks.ToolResults()) == m.Blocks.Len() }

// front returns the body up to the messages.
func (b *builder) front() []byte {
	dst := write.String([]byte{'{'}, "model", b.model)
	dst = roundtrip.AppendMembers(dst, b.header())
	dst = roundtrip.AppendList(dst, "tools", b.Tools, b.appendTool)
	dst = roundtrip.AppendList(dst, "system", b.system, b.appendSystem)
	return append(write.Name(dst, "messages"), '[')
}

// header returns the configuration of the response. Members of Options.Body come last, and replace the others.
func (b *builder) header() []jsonx.Member {
	o := b.options
	var list roundtrip.Header
	list.SetInt("max_tokens", o.MaxTokens)
	list.SetTemperature(b.temperature())
	list.Set("stop_sequences", b.stopSequences())
	list.Set("thinking", b.thinking)
	list.Set("output_config", b.outputConfig())

	list = b.Header(list)
	if !o.NoStream {
		list.Set("stream", "true")
	}
	return list
}

// temperature returns the temperature, limited to the API's range.
func (b *builder) temperature() *float64 {
	t := b.options.Temperature
	if t != nil && *t > 1 {
		b.Note("option", "a temperature of %v is sent as 1, the maximum", *t)
		most := 1.0
		return &most
	}
	return t
}

// outputConfig returns the effort of thinking and the format of the response; "" for neither.
func (b *builder) outputConfig() content.JSON {
	var list roundtrip.Header

	// The level of thinking is an effort here. "thinking" has its mode or its budget.
	if level := b.options.Thinking.Level(); level != "" {
		list.Set("effort", jsonx.Quote(level))
	}
	if form := b.options.Output.JSON; form != "" {
		list.Set("format", jsonx.Object([]jsonx.Member{{Name: "type", Value: `"json_schema"`}, {Name: "schema", Value: form}}))
	}

	if len(list) == 0 {
		return ""
	}
	return jsonx.Object(list)
}

// stopSequences returns the list of acceptable stop sequences; "" for none.
func (b *builder) stopSequences() content.JSON {
	stops := slices.DeleteFunc(slices.Clone(b.options.StopSequences), func(s string) bool {
		if blank(s) {
			b.Note("option", "a stop sequence of white space is left out")
		}
		return blank(s)
	})
	return b.Stops(stops, len(stops))
}

// appendTool appends the definition of tool i, with its marker.
func (b *builder) appendTool(dst []byte, i int, t content.Tool) []byte {
	dst = append(dst, '{')
	var further []jsonx.Member
	if extra := t.Extra.For(API); extra != "" {
		further, _ = jsonx.Members(extra) // it was checked with the tool
	}

	// A function is sent as its fields. A tool of the API's own is sent as its Extra, and its name is added if it is
	// needed.
	own := []string{cacheControl} // appendMark writes it
	if !t.Server() {
		dst = write.OptString(dst, "name", t.Name)
		dst = write.OptString(dst, "description", t.Description)
		dst = append(write.Name(dst, "input_schema"), t.Schema...)
		own = append(own, "name", "description", "input_schema")
	} else if name, _ := jsonx.Take(further, "name"); name == "" && !isToolset(typeOf(t)) {
		dst = write.OptString(dst, "name", t.Name)
	}

	dst = roundtrip.AppendMembers(dst, further, own...)

	// The tools and system prompts do not change during a conversation. The marker is at their end.
	if i == len(b.Tools)-1 && len(b.system) == 0 && t.Extra.For(API) == "" {
		dst = appendMark(dst, b.mark)
	}
	return append(dst, '}')
}

// appendSystem appends system prompt i. The last one has the marker.
func (b *builder) appendSystem(dst []byte, i int, s string) []byte {
	dst = write.String(append(dst, `{"type":"text"`...), "text", s)
	if i == len(b.system)-1 {
		dst = appendMark(dst, b.mark)
	}
	return append(dst, '}')
}

// appendMessage appends a repaired message, with the marker if it gets one: end messages follow. A system message in it
// is a message of its own.
func appendMessage(dst []byte, m content.Message, mark content.JSON, end int) []byte {
	begin, open, at := len(dst), false, marked(m, end)
	next := func() {
		if open {
			dst = append(dst, "]}"...)
		}
		if len(dst) > begin {
			dst = append(dst, ',')
		}
	}

	for j, block := range m.Blocks.All() {
		if o, ok := block.(content.Opaque); ok && m.Role == content.User && isSystem(o) {
			next()
			dst, open = append(dst, withoutMarks(o.JSON)...), false
			continue
		}

		// The blocks up to the next system message are in one message.
		if !open {
			next()
			dst = write.String(append(dst, '{'), "role", string(m.Role))
			dst, open = append(write.Name(dst, "content"), '['), true
		}
		own := content.JSON("")
		if j == at {
			own = mark
		}
		dst = appendBlock(write.Comma(dst), block, own)
	}

	if open {
		dst = append(dst, "]}"...)
	}
	return dst
}

// withoutMarks returns a system message without cache markers: they would count beside those of the policy.
func withoutMarks(message content.JSON) content.JSON {
	if !strings.Contains(string(message), cacheControl) {
		return message
	}
	return jsonx.MapMembers(message, func(m jsonx.Member) content.JSON {
		if m.Name != "content" || !strings.HasPrefix(string(m.Value), "[") {
			return m.Value
		}
		return jsonx.MapItems(m.Value, func(block content.JSON) content.JSON {
			list, err := jsonx.Members(block)
			if err != nil {
				return block
			}
			_, list = jsonx.Take(list, cacheControl)
			return jsonx.Object(list)
		})
	})
}

// appendBlock appends a block returned by accept, with a marker, or with "" for none.
func appendBlock(dst []byte, block content.Block, mark content.JSON) []byte {
	var extra content.Extra
	switch block := block.(type) {
	case content.Text:
		dst, extra = write.String(append(dst, `{"type":"text"`...), "text", block.Text), block.Extra
	case content.Image:
		dst, extra = appendSource(append(dst, `{"type":"image"`...), block.Source), block.Extra
	case content.Document:
		dst, extra = appendSource(append(dst, `{"type":"document"`...), block.Source), block.Extra
		dst = write.OptString(dst, "title", block.Title)
	case content.Thinking:
		dst, extra = appendThinking(dst, block), block.Extra
	case content.ToolUse:
		dst = write.String(append(dst, `{"type":"tool_use"`...), "id", block.ID)
		dst = append(write.Name(write.OptString(dst, "name", memberName(block)), "input"), block.Input...)
		extra = block.Extra
	case content.ToolResult:
		dst, extra = appendToolResult(dst, block), block.Extra
	case content.Opaque:
		return appendOpaque(dst, block)
	}

	if further := extra.For(API); further != "" && further != "{}" {
		list, _ := jsonx.Members(further) // it was checked when the block was made
		dst = roundtrip.AppendMembers(dst, list, written...)
	}
	return append(appendMark(dst, mark), '}')
}

// memberName returns the name of a call as the API has it: that of a toolset's tool lacks the toolset.
func memberName(call content.ToolUse) string {
	list, _ := jsonx.Members(call.Extra.For(API)) // none without an Extra
	toolset, _, _ := jsonx.TakeText(list, toolsetName)
	if name, ok := strings.CutPrefix(call.Name, toolset+"_"); ok && toolset != "" && name != "" {
		return name
	}
	return call.Name
}

// written are the members written by appendBlock and appendMark, for blocks of any type, and those never sent: the
// facts about a response, and a member of a stream that earlier versions of Plait kept in thinking. An Extra cannot add
// them.
var written = []string{noteMember, estimatedTokens, cacheControl, "type", "text", "source", "title", "thinking", "signature", "data", "id", "name",
	"input", "tool_use_id", "content", "is_error"}

func appendThinking(dst []byte, t content.Thinking) []byte {
	if t.Redacted != "" {
		return write.String(append(dst, `{"type":"redacted_thinking"`...), "data", t.Redacted)
	}
	dst = write.String(append(dst, `{"type":"thinking"`...), "thinking", t.Text)
	return write.String(dst, "signature", t.Signature)
}

func appendToolResult(dst []byte, r content.ToolResult) []byte {
	dst = write.String(append(dst, `{"type":"tool_result"`...), "tool_use_id", r.CallID)
	if r.Content.Len() > 0 {
		dst = append(write.Name(dst, "content"), '[')
		for _, inner := range r.Content.All() {
			dst = appendBlock(write.Comma(dst), inner, "")
		}
		dst = append(dst, ']')
	}

	if r.IsError {
		dst = append(write.Name(dst, "is_error"), "true"...)
	}
	return dst
}

func appendSource(dst []byte, s content.Source) []byte {
	dst = append(write.Name(dst, "source"), '{')
	switch {
	case s.URL != "":
		dst = write.String(append(dst, `"type":"url"`...), "url", s.URL)
	case s.FileID != "":
		dst = write.String(append(dst, `"type":"file"`...), "file_id", s.FileID)
	case s.Text != "":
		dst = write.String(append(dst, `"type":"text","media_type":"text/plain"`...), "data", s.Text)
	default:
		dst = write.String(append(dst, `"type":"base64"`...), "media_type", s.MediaType)
		dst = write.String(dst, "data", s.Data)
	}
	return append(dst, '}')
}

// appendOpaque appends a block unchanged, except for the facts about its response, and for a marker: they are left out.
func appendOpaque(dst []byte, o content.Opaque) []byte {
	list, _ := jsonx.Members(o.JSON) // it was checked when the block was made
	noted, list := jsonx.Take(list, noteMember)
	mark, list := jsonx.Take(list, cacheControl)
	if mark != "" || noted != "" {
		return append(dst, jsonx.Object(list)...)
	}
	return append(dst, o.JSON...)
}
