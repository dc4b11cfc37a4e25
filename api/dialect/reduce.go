package dialect

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/schema"
	"github.com/plait-dev/plait/internal/wire"
)

// Tool returns a tool's definition in the form accepted by the API, and the parts removed from its schema. Ok is false
// for an invalid definition, and for a server tool of another API: only its own provider can run it. Why is the reason
// then.
func (t Target) Tool(def content.Tool) (fit content.Tool, why string, ok bool) {
	f := fittedTools.Get(toolKey{t.API, def}, func(toolKey) fitted { return t.fit(def) })
	return f.fit, f.why, f.ok
}

// toolKey is the key of fittedTools.
type toolKey struct {
	api string
	def content.Tool
}

// fitted holds the results of Target.Tool.
type fitted struct {
	fit content.Tool
	why string
	ok  bool
}

// fittedTools caches the results of Target.Tool, because a conversation declares the same tools in every request.
var fittedTools wire.Cache[toolKey, fitted]

// fit is Tool without the cache.
func (t Target) fit(def content.Tool) fitted {
	if err := def.Check(); err != nil {
		return fitted{def, err.Error(), false}
	}
	if def.Server() {
		if def.Extra.For(t.API) == "" {
			return fitted{def, "it has no schema and is not a server tool of this API", false}
		}
		return fitted{def, "", true}
	}

	r := reducer{target: t}
	def.Schema = r.schema(schema.Objects(def.Schema), 0)
	if r.malformed != "" {
		return fitted{def, "its schema: " + r.malformed, false}
	}

	// Without these keywords the schema allows more than before, so a note reports them.
	why := ""
	if len(r.dropped) > 0 {
		why = "its schema is sent without " + strings.Join(r.dropped, ", ")
	}
	return fitted{def, why, true}
}

// Form returns a schema in the form accepted by the API, and the removed keywords.
func (t Target) Form(form content.JSON) (content.JSON, []string) {
	r := reducer{target: t}
	return r.schema(schema.Objects(form), 0), r.dropped
}

// reducer removes the keywords unknown to the target from a schema.
type reducer struct {
	target  Target
	dropped []string // the removed keywords, each once; the last may be "and others"
	moved   bool     // "definitions" becomes "$defs", also in references

	malformed string // why the schema is invalid; "" if it is not
}

// setMalformed records that a keyword has an invalid value. The first such keyword counts.
func (r *reducer) setMalformed(keyword, is string) {
	if r.malformed == "" {
		r.malformed = safetext.Line(keyword, maxLabel) + " is " + is
	}
}

// maxSchemaDepth limits the nesting of schemas. A schema below is replaced by one that allows everything.
const maxSchemaDepth = 100

// schema returns the schema j with only the keywords accepted by the target; j itself if nothing changes.
func (r *reducer) schema(j content.JSON, depth int) content.JSON {
	list, err := jsonx.Members(j)
	if err != nil {
		if j != "true" && j != "false" {
			r.setMalformed("a schema", "neither an object nor a boolean")
		}
		return j
	}
	if depth > maxSchemaDepth {
		r.drop("schemas that nest too deep")
		return "{}"
	}

	// References lead to the definitions, so renaming them is decided once for the whole schema.
	if depth == 0 {
		r.moved = r.movesDefinitions(list)
	}

	changed := false
	kept := list[:0:0]
	for _, m := range list {
		if r.moved && r.moveDefinitions(&m, depth) {
			changed = true
		}
		if !r.accepts(m.Name, depth) || m.Name == "additionalProperties" && r.widens(list, depth) {
			r.drop(m.Name)
			changed = true
			continue
		}

		value := r.keywordValue(m, depth+1)
		changed = changed || value != m.Value
		kept = append(kept, jsonx.Member{Name: m.Name, Value: value})
	}

	if !changed {
		return j
	}
	return jsonx.Object(kept)
}

// widens reports whether removing patternProperties would make additionalProperties apply to more properties than
// before.
func (r *reducer) widens(list []jsonx.Member, depth int) bool {
	return !r.accepts("patternProperties", depth) &&
		slices.ContainsFunc(list, func(m jsonx.Member) bool { return m.Name == "patternProperties" })
}

// movesDefinitions reports whether the schema has its definitions in "definitions", as in older versions of JSON
// Schema, and the target accepts only "$defs".
func (r *reducer) movesDefinitions(top []jsonx.Member) bool {
	_, rest := jsonx.Take(top, "$defs")
	_, without := jsonx.Take(top, "definitions")
	return len(rest) == len(top) && len(without) < len(top) && r.accepts("$defs", 0) && !r.accepts("definitions", 0)
}

// moveDefinitions renames "definitions" at the top to "$defs", and changes references to match. It reports whether m
// changed.
func (r *reducer) moveDefinitions(m *jsonx.Member, depth int) bool {
	const before = "#/definitions/"
	switch ref, ok := jsonx.Text(m.Value); {
	case m.Name == "definitions" && depth == 0:
		m.Name = "$defs"
		return true
	case m.Name == "$ref" && ok && strings.HasPrefix(ref, before):
		m.Value = jsonx.Quote("#/$defs/" + ref[len(before):])
		return true
	}
	return false
}

// accepts reports whether the target accepts the keyword. A depth of 0 is the top of the schema.
func (r *reducer) accepts(keyword string, depth int) bool {
	if depth == 0 && slices.Contains(r.target.SchemaTop, keyword) {
		return false
	}
	return r.target.Schema == nil || slices.Contains(r.target.Schema, keyword)
}

// drop records a removed keyword. There is a limit because a schema may hold any number of unknown members.
func (r *reducer) drop(keyword string) {
	const limit = 20
	if keyword = safetext.Line(keyword, maxLabel); len(r.dropped) == limit {
		keyword = "and others"
	}
	if len(r.dropped) <= limit && !slices.Contains(r.dropped, keyword) {
		r.dropped = append(r.dropped, keyword)
	}
}

// keywordValue returns the value of a keyword, with the schemas in it reduced.
func (r *reducer) keywordValue(m jsonx.Member, depth int) content.JSON {
	switch m.Name {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		if !strings.HasPrefix(string(m.Value), "{") {
			r.setMalformed(m.Name, "no object")
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		if !strings.HasPrefix(string(m.Value), "[") {
			r.setMalformed(m.Name, "no list")
		}
	}
	return schema.MapBelow(m, func(below content.JSON) content.JSON { return r.schema(below, depth) })
}
