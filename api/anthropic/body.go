package anthropic

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// Body returns the body of the request that asks model for req, and how req was changed so that the API takes it. It is a pure
// function: the same arguments give the same bytes, and two conversations with a common beginning give messages with a common
// beginning, but for the cache_control markers (see [Options.Cache]). The messages stand last, so that a conversation that
// grows keeps the front of its body.
//
// Errors are *api.Error: api.ErrNothing when there is no message to send; api.ErrInvalidRequest, which names the option, when
// Temperature is not a number from 0 to 1, Thinking is negative but not Adaptive or more than any API takes, Cache is no policy,
// or Body is no JSON object.
func Body(req api.Request, model string, o *Options) ([]byte, []api.RepairNote, error) {
	b := builder{options: o.withDefaults(), model: model}
	if err := b.prepare(req); err != nil {
		return nil, nil, err
	}
	b.markers()
	return b.bytes(), b.notes, nil
}

// builder is one request under construction.
type builder struct {
	options  Options
	model    string
	further  []member // of Options.Body
	thinking content.JSON
	tools    []content.Tool
	system   []string
	messages []content.Message
	notes    []api.RepairNote
	marks    map[spot]content.JSON
}

func (b *builder) note(kind api.RepairKind, format string, args ...any) {
	b.notes = append(b.notes, api.RepairNote{Kind: kind, Message: -1, Detail: fmt.Sprintf(format, args...)})
}

// prepare makes everything that is sent fit for the API.
func (b *builder) prepare(req api.Request) error {
	if err := b.options.check(); err != nil {
		return &api.Error{Kind: api.ErrInvalidRequest, API: API, Err: err}
	}
	if b.options.Body != "" {
		b.further, _ = members(b.options.Body) // it was checked
	}
	b.messages, b.notes = repair(req.Messages, b.options.Prefill)
	if len(b.messages) == 0 {
		return &api.Error{Kind: api.ErrNothing, API: API}
	}
	b.keepTools(req.Tools)
	for _, s := range req.System {
		if !blank(s) {
			b.system = append(b.system, s)
		} else if s != "" {
			b.note(api.RepairDropped, "a system prompt of nothing but space")
		}
	}
	b.settle()
	return nil
}

// keepTools keeps the definitions that the API takes.
func (b *builder) keepTools(tools []content.Tool) {
	seen := map[string]bool{}
	for _, t := range tools {
		why := unfit(t)
		if seen[sentName(t)] {
			why = "it is declared twice"
		}
		if why != "" {
			b.note(api.RepairTool, "the tool %q is left out: %s", t.Name, why)
			continue
		}
		seen[sentName(t)] = true
		b.tools = append(b.tools, t)
	}
}

// sentName is the name that the API sees: a server tool may have its own.
func sentName(t content.Tool) string {
	if list, err := members(t.Extra.For(API)); err == nil && t.Server() {
		if name, _, ok := takeText(list, "name"); ok {
			return name
		}
	}
	return t.Name
}

// unfit says why the API does not take a definition; "" when it does.
func unfit(t content.Tool) string {
	if err := t.Check(); err != nil {
		return err.Error()
	}
	further, _ := members(t.Extra.For(API))
	kind, _, _ := takeText(further, "type")
	if t.Server() {
		if kind == "" || kind == "custom" {
			return "it has no schema, and is no server tool of this API"
		}
		return ""
	}
	schema, _ := members(t.Schema)
	for _, m := range schema {
		switch m.name {
		case "oneOf", "allOf", "anyOf":
			return "its schema has " + m.name + " at the top level"
		case "properties":
			properties, _ := members(m.value)
			for _, p := range properties {
				if !propertyName.MatchString(p.name) {
					return fmt.Sprintf("the name of its argument %q does not match %s", p.name, propertyName)
				}
			}
		}
	}
	return ""
}

var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// settle decides on the options that depend on the conversation or on each other.
func (b *builder) settle() {
	for _, own := range []string{"model", "system", "tools", "messages", "stream"} {
		if b.takeFurther(own) != "" {
			b.note(api.RepairOption, "%q in Options.Body is left out", own)
		}
	}
	forced := b.settleToolChoice()
	b.thinking = b.takeFurther("thinking")
	if b.thinking == "" {
		switch budget := b.options.Thinking; {
		case budget > 0:
			b.thinking = content.JSON(`{"type":"enabled","budget_tokens":` + strconv.Itoa(budget) + `}`)
		case budget == Adaptive:
			b.thinking = `{"type":"adaptive"}`
		}
	}
	b.settleThinking(forced)
}

// takeFurther removes a member of Options.Body and returns it.
func (b *builder) takeFurther(name string) content.JSON {
	value, rest := take(b.further, name)
	b.further = rest
	return value
}

// settleToolChoice sees to it that a tool_choice fits the tools, and reports whether it forces a call.
func (b *builder) settleToolChoice() bool {
	value, _ := take(b.further, "tool_choice")
	var choice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if value == "" || value.Decode(&choice) != nil {
		return false
	}
	named := choice.Type != "tool" || slices.ContainsFunc(b.tools, func(t content.Tool) bool { return t.Name == choice.Name })
	if len(b.tools) == 0 || !named {
		b.takeFurther("tool_choice")
		b.note(api.RepairOption, "tool_choice is left out: the tool is not there")
		return false
	}
	return choice.Type == "any" || choice.Type == "tool"
}

// settleThinking leaves thinking out of a request in which the API would refuse it, and out of one with thinking what does not
// go with it.
func (b *builder) settleThinking(forced bool) {
	var mode struct {
		Type string `json:"type"`
	}
	_ = b.thinking.Decode(&mode) // what is not understood here is the API's to refuse
	enabled := mode.Type == "enabled"
	switch {
	case !enabled && mode.Type != "adaptive":
		return
	case forced:
		b.thinking = ""
		b.note(api.RepairOption, "the model does not think: tool_choice forces a call")
		return
	case enabled && !thinkingFits(b.messages):
		b.thinking = ""
		b.note(api.RepairOption, "the model does not think: it is in a turn that began without thinking")
		return
	}
	if further := b.takeFurther("temperature"); further != "" || b.options.Temperature != nil {
		b.options.Temperature = nil
		b.note(api.RepairOption, "temperature is left out while the model thinks")
	}
}

// thinkingFits reports whether a thinking model can go on with the conversation: where the assistant has the floor already, in a
// tool loop or in a message to go on with, it must have begun with thinking, and again wherever it was told more than results.
func thinkingFits(messages []content.Message) bool {
	last := len(messages) - 1
	if messages[last].Role == content.User {
		if !answersCalls(messages[last]) {
			return true
		}
		last--
	}
	for i := last; i >= 0; i -= 2 { // the sides take turns
		if i > 0 && onlyResults(messages[i-1]) {
			continue
		}
		if _, thinks := messages[i].Blocks.At(0).(content.Thinking); !thinks {
			return false
		}
		if i == 0 || !answersCalls(messages[i-1]) {
			break
		}
	}
	return true
}

// answersCalls reports whether m answers tool calls, whatever else it says, and onlyResults whether it does nothing else.
func answersCalls(m content.Message) bool { return len(m.Blocks.ToolResults()) > 0 }
func onlyResults(m content.Message) bool  { return len(m.Blocks.ToolResults()) == m.Blocks.Len() }

// bytes writes the body.
func (b *builder) bytes() []byte {
	dst := appendString([]byte{'{'}, "model", b.model)
	for _, m := range b.header() {
		dst = append(content.AppendRaw(dst, m.name), m.value...)
	}
	dst = b.appendTools(dst)
	dst = b.appendSystem(dst)
	dst = append(content.AppendRaw(dst, "messages"), '[')
	for i, m := range b.messages {
		dst = b.appendMessage(separate(dst), i, m)
	}
	return append(dst, "]}"...)
}

// header is the members that say how to answer, those of Options.Body last.
func (b *builder) header() []member {
	o := b.options
	list := []member{{"max_tokens", content.JSON(strconv.Itoa(o.MaxTokens))}}
	if o.Temperature != nil {
		list = append(list, member{"temperature", content.JSON(strconv.FormatFloat(*o.Temperature, 'g', -1, 64))})
	}
	if stops := b.stopSequences(); stops != "" {
		list = append(list, member{"stop_sequences", stops})
	}
	if b.thinking != "" {
		list = append(list, member{"thinking", b.thinking})
	}
	for _, m := range b.further {
		_, list = take(list, m.name)
	}
	list = append(list, b.further...)
	if !o.NoStream {
		list = append(list, member{"stream", "true"})
	}
	return list
}

func (b *builder) stopSequences() content.JSON {
	dst := []byte{'['}
	for _, s := range b.options.StopSequences {
		if blank(s) {
			b.note(api.RepairOption, "a stop sequence of nothing but space is left out")
			continue
		}
		dst = append(separate(dst), quote(s)...)
	}
	if len(dst) == 1 {
		return ""
	}
	return content.JSON(append(dst, ']'))
}

// separate appends a comma where one is needed before the next item of a list.
func separate(dst []byte) []byte {
	if dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	return dst
}

func (b *builder) appendTools(dst []byte) []byte {
	if len(b.tools) == 0 {
		return dst
	}
	dst = append(content.AppendRaw(dst, "tools"), '[')
	for i, t := range b.tools {
		dst = b.appendTool(separate(dst), i, t)
	}
	return append(dst, ']')
}

func (b *builder) appendTool(dst []byte, i int, t content.Tool) []byte {
	dst = append(dst, '{')
	further, _ := members(t.Extra.For(API))
	var own []string
	if kind, _, _ := takeText(further, "type"); !t.Server() {
		dst = content.AppendString(dst, "name", t.Name)
		dst = content.AppendString(dst, "description", t.Description)
		dst = append(content.AppendRaw(dst, "input_schema"), t.Schema...)
		own = []string{"name", "description", "input_schema"}
	} else if name, _ := take(further, "name"); name == "" && kind != "mcp_toolset" {
		dst = content.AppendString(dst, "name", t.Name)
	}
	dst = appendFurther(dst, further, own...)
	return append(b.appendMark(dst, spot{tool: i + 1}), '}')
}

func (b *builder) appendSystem(dst []byte) []byte {
	if len(b.system) == 0 {
		return dst
	}
	dst = append(content.AppendRaw(dst, "system"), '[')
	for i, s := range b.system {
		dst = appendString(append(separate(dst), `{"type":"text"`...), "text", s)
		dst = append(b.appendMark(dst, spot{system: i + 1}), '}')
	}
	return append(dst, ']')
}

func (b *builder) appendMessage(dst []byte, i int, m content.Message) []byte {
	dst = appendString(append(dst, '{'), "role", string(m.Role))
	dst = append(content.AppendRaw(dst, "content"), '[')
	for j, block := range m.Blocks.All() {
		dst = b.appendBlock(separate(dst), block, spot{message: i + 1, block: j + 1})
	}
	return append(dst, "]}"...)
}

// appendBlock writes a block that accept let pass.
func (b *builder) appendBlock(dst []byte, block content.Block, at spot) []byte {
	var extra content.Extra
	switch block := block.(type) {
	case content.Text:
		dst, extra = appendString(append(dst, `{"type":"text"`...), "text", block.Text), block.Extra
	case content.Image:
		dst, extra = appendSource(append(dst, `{"type":"image"`...), block.Source), block.Extra
	case content.Document:
		dst, extra = appendSource(append(dst, `{"type":"document"`...), block.Source), block.Extra
		dst = content.AppendString(dst, "title", block.Title)
	case content.Thinking:
		dst, extra = appendThinking(dst, block), block.Extra
	case content.ToolUse:
		dst = appendString(append(dst, `{"type":"tool_use"`...), "id", block.ID)
		dst = append(content.AppendRaw(content.AppendString(dst, "name", block.Name), "input"), block.Input...)
		extra = block.Extra
	case content.ToolResult:
		dst, extra = b.appendToolResult(dst, block, at), block.Extra
	case content.Opaque:
		return b.appendOpaque(dst, block, at)
	}
	if further := extra.For(API); further != "" && further != "{}" {
		list, _ := members(further) // it was checked when the block was made
		dst = appendFurther(dst, list, written...)
	}
	return append(b.appendMark(dst, at), '}')
}

// written is the members of blocks that Plait models: an Extra cannot say them a second time.
var written = []string{"type", "text", "source", "title", "thinking", "signature", "data", "id", "name", "input", "tool_use_id", "content", "is_error"}

func appendThinking(dst []byte, t content.Thinking) []byte {
	if t.Redacted != "" {
		return appendString(append(dst, `{"type":"redacted_thinking"`...), "data", t.Redacted)
	}
	dst = appendString(append(dst, `{"type":"thinking"`...), "thinking", t.Text)
	return appendString(dst, "signature", t.Signature)
}

func (b *builder) appendToolResult(dst []byte, r content.ToolResult, at spot) []byte {
	dst = appendString(append(dst, `{"type":"tool_result"`...), "tool_use_id", r.CallID)
	if r.Content.Len() > 0 {
		dst = append(content.AppendRaw(dst, "content"), '[')
		for i, inner := range r.Content.All() {
			at.inner = i + 1
			dst = b.appendBlock(separate(dst), inner, at)
		}
		dst = append(dst, ']')
	}
	if r.IsError {
		dst = append(content.AppendRaw(dst, "is_error"), "true"...)
	}
	return dst
}

func appendSource(dst []byte, s content.Source) []byte {
	dst = append(content.AppendRaw(dst, "source"), '{')
	switch {
	case s.URL != "":
		dst = appendString(append(dst, `"type":"url"`...), "url", s.URL)
	case s.FileID != "":
		dst = appendString(append(dst, `"type":"file"`...), "file_id", s.FileID)
	case s.Text != "":
		dst = appendString(append(dst, `"type":"text","media_type":"text/plain"`...), "data", s.Text)
	default:
		dst = appendString(append(dst, `"type":"base64"`...), "media_type", s.MediaType)
		dst = appendString(dst, "data", s.Data)
	}
	return append(dst, '}')
}

// appendOpaque writes a block as it came, but for a cache_control that is not to be there.
func (b *builder) appendOpaque(dst []byte, o content.Opaque, at spot) []byte {
	list, _ := members(o.JSON) // it was checked when the block was made
	if mark, rest := take(list, cacheControl); mark != "" && b.marks[at] != mark {
		return append(dst, object(rest)...)
	}
	return append(dst, o.JSON...)
}

// appendFurther writes members but those named, and cache_control, which appendMark writes.
func appendFurther(dst []byte, list []member, but ...string) []byte {
	for _, m := range list {
		if m.name != cacheControl && !slices.Contains(but, m.name) {
			dst = append(content.AppendRaw(dst, m.name), m.value...)
		}
	}
	return dst
}
