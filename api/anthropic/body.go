package anthropic

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/roundtrip"
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
	b := builder{options: o.over(req.Options), model: model}
	parts, err := b.body(req)
	if err != nil {
		return nil, nil, err
	}
	return parts.Bytes(), b.notes, nil
}

// builder is one request under construction.
type builder struct {
	options Options
	model   string
	rules   *servers.Rules // of the server
	// The members of Options.Body, except those already taken out.
	further []jsonx.Member
	// The value of "thinking"; "" for none.
	thinking content.JSON
	tools    []content.Tool
	system   []string
	// For each system prompt of system, the object that may hold its marker; "" if Options.Body has none.
	beside []content.JSON
	// The messages after repair.
	encoded dialect.Encoded
	notes   []api.RepairNote
	// The markers of tools and system prompts. With CacheOwn, also those of messages.
	marks marks
}

// note records a change about no single message.
func (b *builder) note(kind api.RepairKind, format string, args ...any) {
	b.notes = append(b.notes, api.RepairNote{Kind: kind, Message: -1, Detail: fmt.Sprintf(format, args...)})
}

// body returns the body, and sets b.notes.
func (b *builder) body(req api.Request) (*wire.Parts, error) {
	if _, err := roundtrip.Checked(API, b.options.Options); err != nil {
		return nil, err
	}
	var known bool
	if b.rules, known = servers.Of(b.options.Server); !known {
		return nil, badServer("%q is not a known server; known are %s", b.options.Server, strings.Join(servers.Names(), ", "))
	}
	if b.options.Body != "" {
		b.further, _ = jsonx.Members(b.options.Body) // it was checked
	}

	cache := b.cache()
	differs := b.rules.Messages
	kind := variant{
		prefill: b.options.Prefill, unsigned: differs.Unsigned, plain: differs.Plain,
		files: differs.FilesFor(b.options.TextOnly), mark: markOf(cache),
	}
	b.encoded = encodings()[kind].Encode(req.Messages)
	if b.encoded.Len() == 0 {
		return nil, &api.Error{Kind: api.ErrNothing, API: API}
	}

	// Notes about messages come before those about tools, system prompts and options.
	b.notes = b.encoded.Notes
	b.keepTools(b.rules.Fit(differs, &b.options.Options, req.Tools, b.note))
	system := req.System

	// If the server ignores the option for the form of the response, a system prompt describes the form.
	if b.options.Output.JSON != "" && differs.IgnoresForm {
		system = b.rules.FormPrompt(system, b.options.Output, b.note)
		b.options.Output = api.Schema{}
	}

	b.keepSystem(system)
	b.settle()

	if !slices.Contains(policies, b.options.Cache) {
		b.note(api.RepairOption, "Cache %q is left out: the API has no such policy", string(b.options.Cache))
	}

	// The encoding sets the markers of a policy. The conversation's own depend on all of its messages.
	items := b.encoded.Items()
	if cache == CacheOwn {
		items = b.ownItems()
	} else {
		b.marks = frontMarks(markOf(cache), b.tools, b.system)
	}

	// The body stays in pieces: the encoded messages are shared with other requests and not copied.
	pieces := append([][]byte{b.front()}, items...)
	return wire.NewParts(append(pieces, []byte("]}"))...), nil
}

// policies are the cache policies of this API.
var policies = []api.Cache{api.CacheShort, api.CacheLong, api.CacheOff, CacheOwn}

// cache returns the policy to apply. It is CacheOff for an unknown policy, and if Options.Body lets the API set the
// markers.
func (b *builder) cache() api.Cache {
	cache := b.options.Cache
	whole, _ := jsonx.Take(b.further, cacheControl)
	if whole != "" && cache != CacheOwn || !slices.Contains(policies, cache) {
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

// encodings holds the encoding of each variant. There is one map: an encoding is identified by its address.
var encodings = sync.OnceValue(func() map[variant]*dialect.Encoding {
	all := map[variant]*dialect.Encoding{}
	for _, policy := range []api.Cache{api.CacheShort, api.CacheLong, api.CacheOff} {
		for _, files := range []servers.Files{servers.AnyFile, servers.NoDocuments, servers.NoFile} {
			// The other three are true or false.
			for bits := range 1 << 3 {
				kind := variant{
					prefill: bits&1 > 0, unsigned: bits&2 > 0, plain: bits&4 > 0, files: files, mark: markOf(policy),
				}
				all[kind] = &dialect.Encoding{
					Rules: rules(kind),
					Append: func(dst []byte, m content.Message, end int) []byte {
						return appendMessage(dst, m, lastMarks(kind.mark, m, end))
					},
				}
			}
		}
	}
	return all
})

// ownItems returns the messages with their own markers, and sets b.marks.
func (b *builder) ownItems() [][]byte {
	// A cache_control of the whole request counts as one of the markers.
	room := maxMarks
	if whole, _ := jsonx.Take(b.further, cacheControl); whole != "" {
		room--
	}

	messages := b.encoded.Messages()
	own, left := ownMarks(b.tools, b.beside, messages, room)
	for _, why := range left {
		b.note(api.RepairOption, "%s", why)
	}
	b.marks = own

	var dst []byte
	for i, m := range messages {
		dst = appendMessage(write.Comma(dst), m, own.of(i))
	}
	return [][]byte{dst}
}

// keepSystem keeps the acceptable system prompts, each with its object in Options.Body.
func (b *builder) keepSystem(system []string) {
	// The markers of system prompts are in Options.Body, because prompts have no Extra.
	var beside []jsonx.Raw
	if given, rest := jsonx.Take(b.further, "system"); b.options.Cache == CacheOwn && given.Decode(&beside) == nil {
		b.further = rest
	}

	for i, s := range system {
		if !blank(s) {
			b.system = append(b.system, s)
			b.beside = append(b.beside, "")
			if i < len(beside) {
				b.beside[len(b.beside)-1] = content.JSON(beside[i])
			}
		} else if s != "" {
			b.note(api.RepairDropped, "a system prompt of white space")
		}
	}
}

// keepTools keeps the acceptable definitions.
func (b *builder) keepTools(tools []content.Tool) {
	seen := map[string]bool{}
	for _, def := range tools {
		f := fits.Get(def, fit)
		t, why, ok := f.tool, f.why, f.ok

		// A server tool's own name may be the name of another tool.
		if ok && seen[sentName(t)] {
			ok, why = false, "it is declared twice"
		}

		switch {
		case !ok:
			b.note(api.RepairTool, "the tool %q is left out: %s", t.Name, why)
			continue
		case why != "":
			b.note(api.RepairTool, "the tool %q: %s", t.Name, why)
		}

		seen[sentName(t)] = true
		b.tools = append(b.tools, t)
	}
}

// sentName returns the name of a tool in the request. A server tool may have its own.
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

	if t.Server() {
		further, _ := jsonx.Members(t.Extra.For(API))
		kind, _, _ := jsonx.TakeText(further, "type")
		if kind == "" || kind == "custom" {
			return fitted{t, "it has no schema and is not a server tool of this API", false}
		}
		return fitted{t, why, true}
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
	for _, own := range []string{"model", "system", "tools", "messages", "stream"} {
		if b.takeFurther(own) != "" {
			b.note(api.RepairOption, "%q in Options.Body is left out", own)
		}
	}

	// The order matters: binding is read from "thinking" before settleTokens removes it from Options.Body.
	forced := b.settleToolChoice()
	binding := b.binding()
	b.settleTokens()
	b.settleThinking(forced, binding)
}

// binding returns the "block_binding" of thinking in Options.Body, or "".
func (b *builder) binding() content.JSON {
	thinking, _ := jsonx.Take(b.further, "thinking")
	list, _ := jsonx.Members(thinking) // without members if it is not an object
	binding, _ := jsonx.Take(list, blockBinding)
	return binding
}

const blockBinding = "block_binding"

// takeFurther removes a member from Options.Body and returns it.
func (b *builder) takeFurther(name string) content.JSON {
	value, rest := jsonx.Take(b.further, name)
	b.further = rest
	return value
}

// settleToolChoice sets tool_choice from the options, unless Options.Body has one, and removes it if its tool is not
// declared. It reports whether the model is forced to call a tool.
func (b *builder) settleToolChoice() bool {
	value, _ := jsonx.Take(b.further, "tool_choice")
	if value == "" {
		value = b.toolChoice()
		b.further = append(b.further, member("tool_choice", value)...)
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
		slices.ContainsFunc(b.tools, func(t content.Tool) bool { return sentName(t) == choice.Name })
	if len(b.tools) == 0 || !named {
		b.takeFurther("tool_choice")
		b.note(api.RepairOption, noChoice)
		return false
	}

	return choice.Type == "any" || choice.Type == "tool"
}

const noChoice = "tool_choice is left out: there is no such tool"

// member returns a list of one member, or of none if the value is empty.
func member(name string, value content.JSON) []jsonx.Member {
	if value == "" {
		return nil
	}
	return []jsonx.Member{{Name: name, Value: value}}
}

// toolChoice returns the tool_choice of the options. The options name a tool as it was declared, not by its sentName.
func (b *builder) toolChoice() content.JSON {
	o := b.options
	dst := []byte{'{'}
	switch name := o.ToolChoice.Tool(); {
	case name != "":
		at := slices.IndexFunc(b.tools, func(t content.Tool) bool { return t.Name == name })
		if at < 0 {
			b.note(api.RepairOption, noChoice)
			return ""
		}
		dst = write.String(append(dst, `"type":"tool"`...), "name", sentName(b.tools[at]))
	case o.ToolChoice == api.ToolsAny:
		dst = append(dst, `"type":"any"`...)
	case o.ToolChoice == api.ToolsNone:
		return `{"type":"none"}`
	// ToolsAuto is the API's default. It is sent only to carry disable_parallel_tool_use.
	case !o.OneCall || len(b.tools) == 0:
		return ""
	default:
		dst = append(dst, `"type":"auto"`...)
	}

	if o.OneCall {
		dst = append(dst, `,"disable_parallel_tool_use":true`...)
	}
	return content.JSON(append(dst, '}'))
}

// settleTokens sets MaxTokens and b.thinking.
func (b *builder) settleTokens() {
	o := &b.options

	// A "thinking" with a type in Options.Body replaces the one of the options. One without is merged into it below.
	given := b.takeFurther("thinking")
	further, err := jsonx.Members(given)
	if kind, _, _ := jsonx.TakeText(further, "type"); kind != "" || given != "" && err != nil {
		b.thinking = given
	}

	budget := o.Thinking.Tokens()
	if budget > 0 && budget < leastThinking {
		b.note(api.RepairOption, "a thinking budget of %d is sent as %d, the minimum", budget, leastThinking)
		budget = leastThinking
	}

	// The API counts thinking as part of max_tokens, so the budget must be smaller.
	switch {
	case o.MaxTokens == 0:
		o.MaxTokens = defaultMaxTokens + budget
	case budget >= o.MaxTokens && b.thinking == "":
		b.note(api.RepairOption, "MaxTokens of %d leaves no room for %d tokens of thinking: it is sent as %d",
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
		b.note(api.RepairOption, "thinking is off: tool_choice forces a call")
		return
	case enabled && !thinkingFits(b.encoded.Backward()):
		b.thinking = still
		b.note(api.RepairOption, "thinking is off: the turn began without thinking")
		return
	}

	if further := b.takeFurther("temperature"); further != "" || b.options.Temperature != nil {
		b.options.Temperature = nil
		b.note(api.RepairOption, "temperature is left out while the model thinks")
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
	for _, m := range b.header() {
		dst = append(write.Name(dst, m.Name), m.Value...)
	}

	dst = b.appendTools(dst)
	dst = b.appendSystem(dst)
	return append(write.Name(dst, "messages"), '[')
}

// header returns the configuration of the response. Members of Options.Body come last, and replace the others.
func (b *builder) header() []jsonx.Member {
	o := b.options
	list := member("max_tokens", content.JSON(strconv.Itoa(o.MaxTokens)))
	if o.Temperature != nil {
		list = append(list, member("temperature", b.temperature(*o.Temperature))...)
	}
	list = append(list, member("stop_sequences", b.stopSequences())...)
	list = append(list, member("thinking", b.thinking)...)
	list = append(list, member("output_config", b.outputConfig())...)
	list = append(list, member("metadata", b.metadata())...)

	// No member may appear twice: those of Options.Body replace those of the options.
	for _, m := range b.further {
		_, list = jsonx.Take(list, m.Name)
	}
	list = append(list, b.further...)

	if !o.NoStream {
		list = append(list, jsonx.Member{Name: "stream", Value: "true"})
	}
	return list
}

// temperature returns the temperature, limited to the API's range.
func (b *builder) temperature(t float64) content.JSON {
	if t > 1 {
		b.note(api.RepairOption, "a temperature of %v is sent as 1, the maximum", t)
		t = 1
	}
	return content.JSON(strconv.FormatFloat(t, 'g', -1, 64))
}

// outputConfig returns the effort of thinking and the format of the response; "" for neither.
func (b *builder) outputConfig() content.JSON {
	var list []jsonx.Member

	// The level of thinking is an effort here. "thinking" has its mode or its budget.
	if level := b.options.Thinking.Level(); level != "" {
		list = member("effort", jsonx.Quote(level))
	}

	if form := b.options.Output.JSON; form != "" {
		list = append(list, member("format", jsonx.Object([]jsonx.Member{
			{Name: "type", Value: `"json_schema"`}, {Name: "schema", Value: form},
		}))...)
	}

	if len(list) == 0 {
		return ""
	}
	return jsonx.Object(list)
}

// metadata returns the acceptable metadata; "" for none.
func (b *builder) metadata() content.JSON {
	var list []jsonx.Member
	for _, key := range slices.Sorted(maps.Keys(b.options.Metadata)) {
		if key == "user_id" {
			list = member(key, jsonx.Quote(b.options.Metadata[key]))
		} else {
			b.note(api.RepairOption, "%q in Metadata is left out: the API accepts only user_id", key)
		}
	}

	if len(list) == 0 {
		return ""
	}
	return jsonx.Object(list)
}

// stopSequences returns the list of acceptable stop sequences; "" for none.
func (b *builder) stopSequences() content.JSON {
	dst := []byte{'['}
	for _, s := range b.options.StopSequences {
		if blank(s) {
			b.note(api.RepairOption, "a stop sequence of white space is left out")
			continue
		}
		dst = append(write.Comma(dst), jsonx.Quote(s)...)
	}

	if len(dst) == 1 {
		return ""
	}
	return content.JSON(append(dst, ']'))
}

func (b *builder) appendTools(dst []byte) []byte {
	if len(b.tools) == 0 {
		return dst
	}
	dst = append(write.Name(dst, "tools"), '[')
	for i, t := range b.tools {
		dst = b.appendTool(write.Comma(dst), i, t)
	}
	return append(dst, ']')
}

// appendTool appends the definition of tool i, with its marker.
func (b *builder) appendTool(dst []byte, i int, t content.Tool) []byte {
	dst = append(dst, '{')
	var further []jsonx.Member
	if extra := t.Extra.For(API); extra != "" {
		further, _ = jsonx.Members(extra) // it was checked with the tool
	}

	// A function is sent as its fields. A server tool is sent as its Extra, and its name is added if it is needed.
	var own []string
	if kind, _, _ := jsonx.TakeText(further, "type"); !t.Server() {
		dst = write.OptString(dst, "name", t.Name)
		dst = write.OptString(dst, "description", t.Description)
		dst = append(write.Name(dst, "input_schema"), t.Schema...)
		own = []string{"name", "description", "input_schema"}
	} else if name, _ := jsonx.Take(further, "name"); name == "" && kind != "mcp_toolset" {
		dst = write.OptString(dst, "name", t.Name)
	}

	dst = appendFurther(dst, further, own...)
	return append(b.marks.append(dst, spot{tool: i + 1}), '}')
}

func (b *builder) appendSystem(dst []byte) []byte {
	if len(b.system) == 0 {
		return dst
	}
	dst = append(write.Name(dst, "system"), '[')
	for i, s := range b.system {
		dst = write.String(append(write.Comma(dst), `{"type":"text"`...), "text", s)
		dst = append(b.marks.append(dst, spot{system: i + 1}), '}')
	}
	return append(dst, ']')
}

// appendMessage appends a repaired message, with the markers at.
func appendMessage(dst []byte, m content.Message, at marks) []byte {
	dst = write.String(append(dst, '{'), "role", string(m.Role))
	dst = append(write.Name(dst, "content"), '[')
	for j, block := range m.Blocks.All() {
		dst = at.appendBlock(write.Comma(dst), block, spot{block: j + 1})
	}
	return append(dst, "]}"...)
}

// appendBlock appends a block returned by accept.
func (m marks) appendBlock(dst []byte, block content.Block, at spot) []byte {
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
		dst = append(write.Name(write.OptString(dst, "name", block.Name), "input"), block.Input...)
		extra = block.Extra
	case content.ToolResult:
		dst, extra = m.appendToolResult(dst, block, at), block.Extra
	case content.Opaque:
		return m.appendOpaque(dst, block, at)
	}

	if further := extra.For(API); further != "" && further != "{}" {
		list, _ := jsonx.Members(further) // it was checked when the block was made
		dst = appendFurther(dst, list, written...)
	}
	return append(m.append(dst, at), '}')
}

// written are the members written by appendBlock, for blocks of any type. An Extra cannot add them again.
var written = []string{"type", "text", "source", "title", "thinking", "signature", "data", "id", "name",
	"input", "tool_use_id", "content", "is_error"}

func appendThinking(dst []byte, t content.Thinking) []byte {
	if t.Redacted != "" {
		return write.String(append(dst, `{"type":"redacted_thinking"`...), "data", t.Redacted)
	}
	dst = write.String(append(dst, `{"type":"thinking"`...), "thinking", t.Text)
	return write.String(dst, "signature", t.Signature)
}

func (m marks) appendToolResult(dst []byte, r content.ToolResult, at spot) []byte {
	dst = write.String(append(dst, `{"type":"tool_result"`...), "tool_use_id", r.CallID)
	if r.Content.Len() > 0 {
		dst = append(write.Name(dst, "content"), '[')
		for i, inner := range r.Content.All() {
			at.inner = i + 1
			dst = m.appendBlock(write.Comma(dst), inner, at)
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

// appendOpaque appends a block unchanged, except for a cache_control missing in m: it is left out.
func (m marks) appendOpaque(dst []byte, o content.Opaque, at spot) []byte {
	list, _ := jsonx.Members(o.JSON) // it was checked when the block was made
	if mark, rest := jsonx.Take(list, cacheControl); mark != "" && m[at] != mark {
		return append(dst, jsonx.Object(rest)...)
	}
	return append(dst, o.JSON...)
}

// appendFurther appends members, except those with a name in but, and cache_control: marks.append writes it.
func appendFurther(dst []byte, list []jsonx.Member, but ...string) []byte {
	for _, m := range list {
		if m.Name != cacheControl && !slices.Contains(but, m.Name) {
			dst = append(write.Name(dst, m.Name), m.Value...)
		}
	}
	return dst
}
