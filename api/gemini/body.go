package gemini

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/wire"
)

// Body returns the body of the request that sends req to model, and the changes made for the API to accept it. It is a
// pure function: the same arguments give the same bytes.
//
// The contents come last in the body. Two conversations with a common prefix give contents with a common prefix. So the
// body of a growing conversation keeps its beginning. The model, and the choice of streaming, are in the address of a
// request, not in its body.
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
	// Of Tools, the functions, and the entries of "tools" for the tools run by the API.
	functions []content.Tool
	servers   []content.Tool
	system    []string
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
	if b.options.Body != "" {
		list, _ := jsonx.Members(b.options.Body) // Checked has read it

		// Of a member under both of its names, the last one holds: that of the request follows that of the provider.
		for i, m := range list {
			b.Further = append(without(b.Further, list[i:i+1]), m)
		}
	}

	encoded := encodingOf(b.model).Encode(req.Messages)
	if encoded.Len() == 0 || len(req.System) == 0 && saysNothing(encoded) {
		return nil, &api.Error{Kind: api.ErrNothing, API: API}
	}

	// Notes about messages come before those about tools, system prompts and options.
	b.Notes = append(slices.Clip(encoded.Notes), b.about...)
	b.keepTools(req.Tools)
	b.system = b.System(req.System)

	pieces := append([][]byte{b.front()}, encoded.Items()...)
	return wire.NewParts(append(pieces, []byte("]}"))...), nil
}

// front returns the body up to the contents.
func (b *builder) front() []byte {
	// First, because it may drop the tools, and the tool choice depends on them.
	b.leaveOut()

	// The two configurations are taken out of Options.Body. Its other members are sent as they are.
	choice := merged(b.toolConfig(), b.ownToolConfig())
	generation := merged(b.generationConfig(), b.ownGeneration())

	var list roundtrip.Header
	list.Set("toolConfig", choice)
	list = append(list, b.Further...)
	list.Set("generationConfig", generation)

	dst := b.appendTools(b.appendSystem([]byte{'{'}))
	dst = roundtrip.AppendMembers(dst, list)
	return append(write.Name(dst, "contents"), '[')
}

// leaveOut removes unsendable members of Options.Body, and everything unsendable next to cachedContent.
func (b *builder) leaveOut() {
	// These members are made from the request, or are in its address.
	for _, own := range []string{"contents", "systemInstruction", "tools", "model"} {
		if b.take(own) != "" {
			b.Note("option", "%q in Options.Body is left out", own)
		}
	}

	if !b.holds("cachedContent") {
		return
	}

	// The API refuses system prompts and tools next to cached content.
	if choice := b.take("toolConfig"); choice != "" || len(b.system)+len(b.functions)+len(b.servers) > 0 {
		b.Note("option", "system prompts and tools are left out: the cached content holds them")
	}
	b.system, b.functions, b.servers = nil, nil, nil
}

// take removes a member from Options.Body and returns it. The API has two names for each member; both are removed.
func (b *builder) take(name string) content.JSON {
	value, rest := jsonx.Take(b.Further, name)
	other, rest := jsonx.Take(rest, snake(name))
	b.Further = rest
	if value == "" {
		return other
	}
	return value
}

// snake returns the other name of a member: "tool_config" for "toolConfig".
func snake(name string) string {
	var other strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			other.WriteByte('_')
			c += 'a' - 'A'
		}
		other.WriteRune(c)
	}
	return other.String()
}

// isNamed reports whether m is the member called name, under either of its names.
func isNamed(m jsonx.Member, name string) bool {
	return m.Name == name || strings.Contains(m.Name, "_") && m.Name == snake(name)
}

// without returns list without the members that others has, under either of their names. It changes list.
func without(list, others []jsonx.Member) []jsonx.Member {
	return slices.DeleteFunc(list, func(m jsonx.Member) bool {
		return slices.ContainsFunc(others, func(o jsonx.Member) bool { return snake(m.Name) == snake(o.Name) })
	})
}

// merged returns an object of the members of own and further; "" if there are none. Members of further replace those of
// own, under either of their names: the API refuses a member with both. If further is not an object, it replaces all of
// own.
func merged(own []jsonx.Member, further content.JSON) content.JSON {
	if further != "" && further != "null" {
		list, err := jsonx.Members(further)
		if err != nil {
			return further // the API refuses it
		}
		own = append(without(own, list), list...)
	}
	if len(own) == 0 {
		return ""
	}
	return jsonx.Object(own)
}

// toolConfig returns the configuration of the tools from the options.
func (b *builder) toolConfig() []jsonx.Member {
	if b.options.OneCall {
		b.Note("option", "OneCall is left out: the API does not have it")
	}

	list := b.toolChoice()
	if len(b.functions) > 0 && len(b.servers) > 0 && !b.options.vertex() {
		list = append(list, jsonx.Member{Name: "includeServerSideToolInvocations", Value: "true"}) // the API requires it
	}
	return list
}

// ownToolConfig returns the one of Options.Body, without a tool choice if there are no functions.
func (b *builder) ownToolConfig() content.JSON {
	config := b.take("toolConfig")
	list, err := jsonx.Members(config)
	if err != nil || len(b.functions) > 0 {
		return config
	}

	// Without functions, there is nothing to choose from.
	for _, name := range []string{"functionCallingConfig", "function_calling_config"} {
		var left content.JSON
		if left, list = jsonx.Take(list, name); left != "" {
			b.Note("option", "%q in Options.Body is left out: there are no functions", name)
		}
	}
	return jsonx.Object(list)
}

// ownGeneration returns the configuration of the response in Options.Body, for one response.
func (b *builder) ownGeneration() content.JSON {
	config := b.take("generationConfig")
	list, _ := jsonx.Members(config) // none for anything else
	several := func(m jsonx.Member) bool { return isNamed(m, "candidateCount") && m.Value != "1" && m.Value != "null" }
	if !slices.ContainsFunc(list, several) {
		return config
	}
	b.Note("option", `"candidateCount" in Options.Body is left out: one response is read of each request`)
	return jsonx.Object(slices.DeleteFunc(list, several))
}

// toolChoice returns the choice of the options. It uses the declared name of a tool, because every API accepts this
// name.
func (b *builder) toolChoice() []jsonx.Member {
	choice, tool := b.Choice(b.options.ToolChoice, b.functions)
	config := []byte(`{"mode":"ANY"`)
	switch {
	case choice == api.ToolsAuto:
		return nil
	case choice == api.ToolsNone:
		config = []byte(`{"mode":"NONE"`)
	case choice != api.ToolsAny:
		config = append(append(append(config, `,"allowedFunctionNames":[`...), jsonx.Quote(tool.Name)...), ']')
	}
	return []jsonx.Member{{Name: "functionCallingConfig", Value: content.JSON(append(config, '}'))}}
}

// generationConfig returns the configuration of the response from the options.
func (b *builder) generationConfig() []jsonx.Member {
	o := b.options
	var list roundtrip.Header
	list.SetInt("maxOutputTokens", min(o.MaxTokens, math.MaxInt32)) // the API's number has 32 bits
	list.SetTemperature(o.Temperature)
	list.Set("stopSequences", b.Stops(o.StopSequences, maxStops))
	list.Set("thinkingConfig", b.thinkingConfig())

	if form := b.form(); form != "" {
		// The API accepts a schema only for a response of this type.
		list.Set("responseMimeType", `"application/json"`)
		list.Set("responseJsonSchema", form)
	}

	if o.Cache != api.CacheShort {
		b.Note("option", "Cache %q is left out: the API caches by itself", string(o.Cache))
	}
	return list
}

// maxStops is the maximum number of stop sequences.
const maxStops = 5

// form returns the schema of the response; "" for none.
func (b *builder) form() content.JSON {
	switch {
	case b.options.Output.JSON == "":
		return ""
	case b.older() && len(b.functions) > 0:
		b.Note("option", "Output is left out: the model accepts no schema together with tools")
		return ""
	}

	return b.Builder.Form(target().Form(b.options.Output.JSON))
}

// older reports whether the model is known to be older than firstSigned.
func (b *builder) older() bool {
	generation := generationOf(b.model)
	return generation > 0 && generation < firstSigned
}

// nearest maps the levels of thinking of other APIs to those of this one.
var nearest = map[string]string{"none": "minimal", "xhigh": "high", "max": "high"}

// budgets maps the levels of thinking to tokens, for models without levels.
var budgets = map[string]int{"minimal": 512, "low": 1024, "medium": 8192, "high": 24576}

// thinkingConfig returns the configuration of thinking; "" for the model's default.
func (b *builder) thinkingConfig() content.JSON {
	thinking := b.options.Thinking
	level, budget := thinking.Level(), thinking.Tokens()
	level = cmp.Or(nearest[level], level)
	if n := budgets[level]; n > 0 && b.older() {
		level, budget = "", n
	}

	switch {
	case thinking == "":
		return ""
	case thinking == api.ThinkOff:
		return `{"thinkingBudget":0}`
	case level != "":
		return content.JSON(`{"includeThoughts":true,"thinkingLevel":` +
			string(jsonx.Quote(strings.ToUpper(level))) + `}`)
	// A budget of -1 lets the model decide.
	case thinking == api.ThinkAuto:
		budget = -1
	}
	return content.JSON(`{"includeThoughts":true,"thinkingBudget":` + strconv.Itoa(budget) + `}`)
}

// holds reports whether Options.Body has a member, under either of its names.
func (b *builder) holds(name string) bool {
	for _, n := range []string{name, snake(name)} {
		if value, _ := jsonx.Take(b.Further, n); value != "" && value != "null" {
			return true
		}
	}
	return false
}

func (b *builder) appendSystem(dst []byte) []byte {
	if len(b.system) == 0 {
		return dst
	}
	dst = append(write.Name(dst, "systemInstruction"), '{')
	dst = roundtrip.AppendList(dst, "parts", b.system, func(dst []byte, _ int, s string) []byte {
		return append(write.String(append(dst, '{'), "text", s), '}')
	})
	return append(dst, '}')
}

// saysNothing reports whether a conversation is one message of white space. The API accepts one only with a
// system instruction.
func saysNothing(e dialect.Encoded) bool {
	if e.Len() != 1 {
		return false
	}
	for _, b := range e.Messages()[0].Blocks.All() {
		if t, ok := b.(content.Text); (!ok || strings.TrimSpace(t.Text) != "") &&
			b != (content.Opaque{API: API, JSON: emptyText}) {
			return false
		}
	}
	return true
}
