package dialect

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// Settings reads the settings that all APIs have from the members of a request's body, in the form of the named API:
// the limit of tokens, temperature, stop sequences, tool choice, the amount of thinking, the form of the response and
// metadata. So a conversation can keep them when its provider changes. It also returns the names of the members that
// are not among them, in the order of the body.
func Settings(name string, body content.JSON) (o api.Options, others []string) {
	list, _ := jsonx.Members(body) // anything else has no settings
	r := settings{}
	for _, m := range list {
		known := false
		switch name {
		case "anthropic":
			known = r.anthropic(m)
		case "openai-chat":
			known = r.chat(m)
		case "openai-responses":
			known = r.responses(m)
		case "gemini":
			known = r.gemini(m)
		}
		if !known && m.Value != "null" {
			others = append(others, m.Name)
		}
	}
	return r.options, others
}

// WithoutSettings returns a body in the form of the named API without the members for what o sets: the limit of tokens,
// the temperature and the amount of thinking. So they do not override o.
func WithoutSettings(name string, body content.JSON, o api.Options) content.JSON {
	overrides := func(member jsonx.Member) bool {
		has, _ := Settings(name, jsonx.Object([]jsonx.Member{member}))
		return o.MaxTokens != 0 && has.MaxTokens != 0 || o.Temperature != nil && has.Temperature != nil ||
			o.Thinking != "" && has.Thinking != ""
	}

	list, _ := jsonx.Members(body) // anything else has no settings
	var kept []jsonx.Member
	for _, m := range list {
		if overrides(m) {
			// Of an object with several settings, the others stay.
			inner, _ := jsonx.Members(m.Value) // none for other values
			inner = slices.DeleteFunc(inner, func(one jsonx.Member) bool {
				return m.Name == "thinking" || overrides(jsonx.Member{Name: m.Name, Value: jsonx.Object([]jsonx.Member{one})})
			})
			if len(inner) == 0 {
				continue
			}
			m.Value = jsonx.Object(inner)
		}
		kept = append(kept, m)
	}
	switch {
	case len(kept) == len(list) && len(list) == 0:
		return body
	case len(kept) == 0:
		return ""
	}
	return jsonx.Object(kept)
}

// settings are the options read so far. A value that no request can have is left out.
type settings struct{ options api.Options }

// try sets an option, and reports whether it is valid.
func (r *settings) try(set func(o *api.Options)) bool {
	changed := r.options
	set(&changed)
	if changed.Check() != nil {
		return false
	}
	r.options = changed
	return true
}

func (r *settings) maxTokens(j content.JSON) bool {
	var n int
	return j.Decode(&n) == nil && n > 0 && r.try(func(o *api.Options) { o.MaxTokens = n })
}

func (r *settings) temperature(j content.JSON) bool {
	var t float64
	return j.Decode(&t) == nil && r.try(func(o *api.Options) { o.Temperature = &t })
}

// stops reads a list, or one text.
func (r *settings) stops(j content.JSON) bool {
	var list []string
	if one, ok := jsonx.Text(j); ok {
		list = []string{one}
	} else if j.Decode(&list) != nil {
		return false
	}
	return r.try(func(o *api.Options) { o.StopSequences = list })
}

func (r *settings) thinking(t api.Thinking) bool {
	return t != "" && r.try(func(o *api.Options) { o.Thinking = t })
}

// effort reads a level of thinking.
func (r *settings) effort(j content.JSON) bool {
	level, _ := jsonx.Text(j)
	if level = strings.ToLower(level); level == "none" {
		return r.thinking(api.ThinkOff)
	}
	return r.thinking(api.Thinking(level))
}

// form reads the schema of a response.
func (r *settings) form(name string, schema content.JSON) bool {
	if name == "" {
		name = "response"
	}
	return schema != "" && r.try(func(o *api.Options) { o.Output = api.Schema{Name: name, JSON: schema} })
}

func (r *settings) metadata(j content.JSON) bool {
	pairs := map[string]string{}
	return j.Decode(&pairs) == nil && r.try(func(o *api.Options) { o.Metadata = pairs })
}

// choice reads a tool choice by its word, or the name of the one tool.
func (r *settings) choice(word, tool string) bool {
	choices := map[string]api.ToolChoice{
		"auto": api.ToolsAuto, "any": api.ToolsAny, "required": api.ToolsAny, "none": api.ToolsNone, "validated": api.ToolsAuto,
	}
	choice, ok := choices[strings.ToLower(word)]
	if tool != "" {
		choice, ok = api.OneTool(tool), true
	}
	return ok && r.try(func(o *api.Options) { o.ToolChoice = choice })
}

// oneCall reads whether a response may have several calls.
func (r *settings) oneCall(parallel content.JSON) bool {
	r.options.OneCall = parallel == "false"
	return parallel == "false" || parallel == "true"
}

func (r *settings) anthropic(m jsonx.Member) bool {
	list, _ := jsonx.Members(m.Value) // none for other values
	kind, _, _ := jsonx.TakeText(list, "type")
	switch m.Name {
	case "max_tokens":
		return r.maxTokens(m.Value)
	case "temperature":
		return r.temperature(m.Value)
	case "stop_sequences":
		return r.stops(m.Value)
	case "metadata":
		return r.metadata(m.Value)
	case "tool_choice":
		tool, _, _ := jsonx.TakeText(list, "name")
		if one, _ := jsonx.Take(list, "disable_parallel_tool_use"); one == "true" {
			r.options.OneCall = true
		}
		return r.choice(kind, tool)
	case "thinking":
		var budget int
		tokens, _ := jsonx.Take(list, "budget_tokens")
		switch {
		case tokens != "" && tokens.Decode(&budget) == nil && budget > 0:
			return r.thinking(api.ThinkTokens(budget))
		case kind == "disabled":
			return r.thinking(api.ThinkOff)
		case kind == "adaptive" && r.options.Thinking != "": // output_config has the level
			return true
		}
		return kind == "adaptive" && r.thinking(api.ThinkAuto)
	case "output_config":
		effort, list := jsonx.Take(list, "effort")
		format, list := jsonx.Take(list, "format")
		inner, _ := jsonx.Members(format)
		schema, _ := jsonx.Take(inner, "schema")
		ok := effort == "" || r.effort(effort)
		return (format == "" || r.form("", schema)) && ok && len(list) == 0
	}
	return false
}

func (r *settings) chat(m jsonx.Member) bool {
	list, _ := jsonx.Members(m.Value) // none for other values
	switch m.Name {
	case "max_tokens", "max_completion_tokens":
		return r.maxTokens(m.Value)
	case "temperature":
		return r.temperature(m.Value)
	case "stop":
		return r.stops(m.Value)
	case "metadata":
		return r.metadata(m.Value)
	case "parallel_tool_calls":
		return r.oneCall(m.Value)
	case "reasoning_effort":
		return r.effort(m.Value)
	case "tool_choice":
		word, _ := jsonx.Text(m.Value)
		return r.choice(word, nameIn(list, "function"))
	case "response_format":
		inner, _ := jsonx.Take(list, "json_schema")
		list, _ = jsonx.Members(inner)
		return r.schemaIn(list)
	}
	return false
}

func (r *settings) responses(m jsonx.Member) bool {
	list, _ := jsonx.Members(m.Value) // none for other values
	switch m.Name {
	case "store", "include": // Plait has the API's thinking in the conversation
		return true
	case "max_output_tokens":
		return r.maxTokens(m.Value)
	case "temperature":
		return r.temperature(m.Value)
	case "metadata":
		return r.metadata(m.Value)
	case "parallel_tool_calls":
		return r.oneCall(m.Value)
	case "reasoning":
		effort, _ := jsonx.Take(list, "effort")
		return r.effort(effort)
	case "tool_choice":
		word, _ := jsonx.Text(m.Value)
		tool, _, _ := jsonx.TakeText(list, "name")
		return r.choice(word, tool)
	case "text":
		format, _ := jsonx.Take(list, "format")
		list, _ = jsonx.Members(format)
		return r.schemaIn(list)
	}
	return false
}

// nameIn returns the name in an inner object.
func nameIn(list []jsonx.Member, inner string) string {
	value, _ := jsonx.Take(list, inner)
	list, _ = jsonx.Members(value)
	name, _, _ := jsonx.TakeText(list, "name")
	return name
}

// schemaIn reads OpenAI's description of a response.
func (r *settings) schemaIn(list []jsonx.Member) bool {
	name, _, _ := jsonx.TakeText(list, "name")
	schema, _ := jsonx.Take(list, "schema")
	return r.form(name, schema)
}

func (r *settings) gemini(m jsonx.Member) bool {
	list, _ := jsonx.Members(m.Value) // none for other values
	switch m.Name {
	case "labels":
		return r.metadata(m.Value)
	case "toolConfig", "tool_config":
		if len(list) != 1 || !slices.Contains([]string{"functionCallingConfig", "function_calling_config"}, list[0].Name) {
			return false
		}
		list, _ = jsonx.Members(list[0].Value)
		mode, _, _ := jsonx.TakeText(list, "mode")
		only := either(list, "allowedFunctionNames", "allowed_function_names")
		var names []string
		if only.Decode(&names) == nil && len(names) == 1 && strings.EqualFold(mode, "any") {
			return r.choice(mode, names[0])
		}
		return only == "" && r.choice(mode, "")
	case "generationConfig", "generation_config":
		all := true
		for _, inner := range list {
			all = r.generation(inner) && all
		}
		return all
	}
	return false
}

// generation reads a member of Gemini's generationConfig.
func (r *settings) generation(m jsonx.Member) bool {
	switch m.Name {
	case "maxOutputTokens", "max_output_tokens":
		return r.maxTokens(m.Value)
	case "temperature":
		return r.temperature(m.Value)
	case "stopSequences", "stop_sequences":
		return r.stops(m.Value)
	case "responseJsonSchema", "response_json_schema":
		return r.form("", m.Value)
	case "responseMimeType", "response_mime_type": // goes with a schema
		return true
	case "thinkingConfig", "thinking_config":
		list, _ := jsonx.Members(m.Value)
		level := either(list, "thinkingLevel", "thinking_level")
		budget := either(list, "thinkingBudget", "thinking_budget")
		var n int
		switch {
		case level != "":
			return r.effort(level)
		case budget == "" || budget.Decode(&n) != nil:
			return false
		case n == 0:
			return r.thinking(api.ThinkOff)
		case n < 0:
			return r.thinking(api.ThinkAuto)
		}
		return r.thinking(api.ThinkTokens(n))
	}
	return false
}

// either returns a member under either of its names.
func either(list []jsonx.Member, name, other string) content.JSON {
	value, _ := jsonx.Take(list, name)
	if value == "" {
		value, _ = jsonx.Take(list, other)
	}
	return value
}
