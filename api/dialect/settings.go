package dialect

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
)

// Settings reads the settings that all APIs have from the members of a request's body, in the form of the named API:
// the limit of tokens, temperature, stop sequences, tool choice, the amount of thinking and the form of the response.
// So a conversation can keep them when its provider changes. It also returns the members that are not among
// them, in the order of the body: "top_k", and "generationConfig.topK" of an object with settings.
func Settings(name string, body content.JSON) (o api.Options, others []string) {
	list, _ := jsonx.Members(body) // anything else has no settings
	r := settings{form: forms[name]}
	r.read("", "", list)
	return r.options, r.others
}

// Options returns the options of a request over those of a provider of this API. A Body in the form of another API is
// replaced by the settings that all APIs have. The notes name its other members, which are left out.
func (t Target) Options(request, defaults api.Options) (api.Options, []api.RepairNote) {
	var notes []api.RepairNote
	for _, o := range []*api.Options{&request, &defaults} {
		if o.BodyAPI == "" || o.BodyAPI == t.API || !o.Body.IsObject() {
			continue
		}
		settings, others := Settings(o.BodyAPI, o.Body)
		if len(others) > 0 {
			notes = append(notes, noteOption("of Options.Body, which is in the form of %s, are left out: %s",
				safetext.Line(o.BodyAPI, 100), safetext.Line(strings.Join(others, ", "), 1000)))
		}
		o.Body, o.BodyAPI = "", ""
		*o = o.Over(settings)
	}
	return request.Over(defaults), notes
}

// noteOption returns a note about an option of a request.
func noteOption(format string, args ...any) api.RepairNote {
	return api.RepairNote{Kind: "option", Message: -1, Detail: fmt.Sprintf(format, args...)}
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
type settings struct {
	form    map[string]reader
	options api.Options
	others  []string
}

// reader reads a setting from its value, and reports whether it could.
type reader func(r *settings, value content.JSON) bool

// forms are the readers of each API, by the path of the member in the body. Gemini's are in lower case with underscores.
var forms = map[string]map[string]reader{
	"anthropic": {
		"max_tokens":             (*settings).maxTokens,
		"temperature":            (*settings).temperature,
		"stop_sequences":         (*settings).stops,
		"tool_choice":            (*settings).choice,
		"thinking.type":          (*settings).mode,
		"thinking.budget_tokens": (*settings).budget,
		"output_config.effort":   (*settings).effort,
		"output_config.format":   (*settings).output,
	},
	"openai-chat": {
		"max_tokens":            (*settings).maxTokens,
		"max_completion_tokens": (*settings).maxTokens,
		"temperature":           (*settings).temperature,
		"stop":                  (*settings).stops,
		"tool_choice":           (*settings).choice,
		"parallel_tool_calls":   (*settings).parallel,
		"reasoning_effort":      (*settings).effort,
		"response_format":       (*settings).output,
	},
	"openai-responses": {
		"max_output_tokens":   (*settings).maxTokens,
		"temperature":         (*settings).temperature,
		"tool_choice":         (*settings).choice,
		"parallel_tool_calls": (*settings).parallel,
		"reasoning.effort":    (*settings).effort,
		"reasoning.summary":   understood, // every provider asks for what it can show of the thinking
		"text.format":         (*settings).output,
		"store":               understood, // Plait has the API's thinking in the conversation
		"include":             understood,
	},
	"gemini": {
		"tool_config.function_calling_config":                (*settings).callingConfig,
		"generation_config.max_output_tokens":                (*settings).maxTokens,
		"generation_config.temperature":                      (*settings).temperature,
		"generation_config.stop_sequences":                   (*settings).stops,
		"generation_config.response_json_schema":             (*settings).schema,
		"generation_config.response_mime_type":               understood, // goes with a schema
		"generation_config.thinking_config.thinking_level":   (*settings).effort,
		"generation_config.thinking_config.thinking_budget":  (*settings).budget,
		"generation_config.thinking_config.include_thoughts": understood,
	},
}

// understood is the reader of a member that is no setting, and that no other API needs.
func understood(*settings, content.JSON) bool { return true }

// read reads the members of an object. Path is the path of the object, and key the same as in forms: each is empty or
// ends in a dot.
func (r *settings) read(path, key string, list []jsonx.Member) {
	for _, m := range list {
		at := key + snake(m.Name)
		read, known := r.form[at]
		inner, err := jsonx.Members(m.Value)

		switch {
		case m.Value == "null":
		case !known && err == nil && r.within(at+"."):
			r.read(path+m.Name+".", at+".", inner)
		case !known || !read(r, m.Value):
			r.others = append(r.others, path+m.Name)
		}
	}
}

// within reports whether an object with the path has settings.
func (r *settings) within(path string) bool {
	for key := range r.form {
		if strings.HasPrefix(key, path) {
			return true
		}
	}
	return false
}

// snake returns a name in lower case with underscores. Gemini accepts a member under both of its names.
func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

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

// mode reads Anthropic's word for thinking. The level or the budget is in another member.
func (r *settings) mode(j content.JSON) bool {
	switch word, _ := jsonx.Text(j); word {
	case "disabled":
		return r.thinking(api.ThinkOff)
	case "adaptive":
		return r.options.Thinking != "" || r.thinking(api.ThinkAuto)
	case "enabled":
		return true
	}
	return false
}

// budget reads a number of tokens for thinking. At Gemini, 0 turns thinking off and -1 lets the model decide.
func (r *settings) budget(j content.JSON) bool {
	var n int
	switch err := j.Decode(&n); {
	case err != nil:
		return false
	case n == 0:
		return r.thinking(api.ThinkOff)
	case n < 0:
		return r.thinking(api.ThinkAuto)
	}
	return r.thinking(api.ThinkTokens(n))
}

// output reads the form of a response: the schema is in the object, or in its "json_schema". Free text is the default.
func (r *settings) output(j content.JSON) bool {
	list, _ := jsonx.Members(j) // none for other values
	if inner, _ := jsonx.Take(list, "json_schema"); inner != "" {
		list, _ = jsonx.Members(inner)
	}
	if kind, _, _ := jsonx.TakeText(list, "type"); kind == "text" {
		return true
	}

	name, _, _ := jsonx.TakeText(list, "name")
	schema, _ := jsonx.Take(list, "schema")
	return r.outputOf(name, schema)
}

// schema reads the schema of a response.
func (r *settings) schema(j content.JSON) bool { return r.outputOf("", j) }

func (r *settings) outputOf(name string, schema content.JSON) bool {
	if name == "" {
		name = "response"
	}
	return schema != "" && r.try(func(o *api.Options) { o.Output = api.Schema{Name: name, JSON: schema} })
}

// choice reads a tool choice: a word, or an object with a type and perhaps the name of a tool.
func (r *settings) choice(j content.JSON) bool {
	list, _ := jsonx.Members(j) // none for a word
	word, _ := jsonx.Text(j)
	if word == "" {
		word, _, _ = jsonx.TakeText(list, "type")
	}
	if one, _ := jsonx.Take(list, "disable_parallel_tool_use"); one == "true" {
		r.options.OneCall = true
	}

	// Chat Completions has the name in the function.
	function, _ := jsonx.Take(list, "function")
	inner, _ := jsonx.Members(function)
	name, _, _ := jsonx.TakeText(append(list, inner...), "name")
	return r.choose(word, name)
}

// callingConfig reads Gemini's tool choice.
func (r *settings) callingConfig(j content.JSON) bool {
	var names []string
	mode := ""
	list, err := jsonx.Members(j)
	for _, m := range list {
		switch snake(m.Name) {
		case "mode":
			mode, _ = jsonx.Text(m.Value)
		case "allowed_function_names":
			err = m.Value.Decode(&names)
		}
	}

	switch {
	case err != nil:
		return false
	case len(names) == 0:
		return r.choose(mode, "")
	}
	return len(names) == 1 && strings.EqualFold(mode, "any") && r.choose(mode, names[0])
}

// choose sets a tool choice by its word, or by the name of the one tool.
func (r *settings) choose(word, tool string) bool {
	choices := map[string]api.ToolChoice{
		"auto": api.ToolsAuto, "any": api.ToolsAny, "required": api.ToolsAny, "none": api.ToolsNone, "validated": api.ToolsAuto,
	}
	choice, ok := choices[strings.ToLower(word)]
	if tool != "" {
		choice, ok = api.OneTool(tool), true
	}
	return ok && r.try(func(o *api.Options) { o.ToolChoice = choice })
}

// parallel reads whether a response may have several calls.
func (r *settings) parallel(j content.JSON) bool {
	r.options.OneCall = j == "false"
	return j == "false" || j == "true"
}
