package dialect

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/schema"
	"github.com/plait-dev/plait/internal/wire"
)

// Tool returns a tool's definition as the API takes it, and what was taken out of its schema. A tool that the provider itself
// runs is one only for its own provider: for others ok is false, as it is for a definition that no API takes.
func (t Target) Tool(def content.Tool) (fit content.Tool, why string, ok bool) {
	f := fits.Get(declared{t.API, def}, func(declared) fitted { return t.fit(def) })
	return f.fit, f.why, f.ok
}

// declared is a tool of an API, and fitted what Target.Tool says of it. The same tools are declared in every request.
type declared struct {
	api string
	def content.Tool
}

type fitted struct {
	fit content.Tool
	why string
	ok  bool
}

var fits wire.Cache[declared, fitted]

func (t Target) fit(def content.Tool) fitted {
	if err := def.Check(); err != nil {
		return fitted{def, err.Error(), false}
	}
	if def.Server() {
		if def.Extra.For(t.API) == "" {
			return fitted{def, "it has no schema, and is no server tool of this API", false}
		}
		return fitted{def, "", true}
	}
	why := ""
	r := reducer{target: t}
	def.Schema = r.schema(schema.Objects(def.Schema), 0)
	if r.malformed != "" {
		return fitted{def, "its schema: " + r.malformed, false}
	}
	if len(r.dropped) > 0 {
		why = "its schema is sent without " + strings.Join(r.dropped, ", ")
	}
	return fitted{def, why, true}
}

// Form returns a schema as the API takes it, and what was taken out of it.
func (t Target) Form(form content.JSON) (content.JSON, []string) {
	r := reducer{target: t}
	return r.schema(schema.Objects(form), 0), r.dropped
}

// reducer takes out of a schema what the target does not know.
type reducer struct {
	target  Target
	dropped []string // keywords, each once
	moved   bool     // what the schema calls definitions the target calls $defs

	malformed string // where a schema should be there is something else
}

// spoil remembers that the value of a keyword is none that it can have.
func (r *reducer) spoil(keyword, is string) {
	if r.malformed == "" {
		r.malformed = short(keyword) + " is " + is
	}
}

// deepestSchema is how deep schemas may nest; below it everything is allowed.
const deepestSchema = 100

func (r *reducer) schema(j content.JSON, depth int) content.JSON {
	list, err := wire.Members(j)
	if err != nil {
		if j != "true" && j != "false" {
			r.spoil("a schema", "neither an object nor a boolean")
		}
		return j
	}
	if depth > deepestSchema {
		r.drop("what nests too deep")
		return "{}"
	}
	if depth == 0 {
		r.moved = r.moves(list)
	}
	changed := false
	kept := list[:0:0]
	for _, m := range list {
		if r.moved && r.move(&m, depth) {
			changed = true
		}
		if !r.takes(m.Name, depth) || m.Name == "additionalProperties" && r.widens(list, depth) {
			r.drop(m.Name)
			changed = true
			continue
		}
		value := r.below(m, depth+1)
		changed = changed || value != m.Value
		kept = append(kept, wire.Member{Name: m.Name, Value: value})
	}
	if !changed {
		return j
	}
	return wire.Object(kept)
}

// widens reports whether additionalProperties would be about more properties than it was: those of patternProperties, too.
func (r *reducer) widens(list []wire.Member, depth int) bool {
	return !r.takes("patternProperties", depth) && slices.ContainsFunc(list, func(m wire.Member) bool { return m.Name == "patternProperties" })
}

// moves reports whether the definitions of a schema stand where only older versions of JSON Schema have them.
func (r *reducer) moves(top []wire.Member) bool {
	_, rest := wire.Take(top, "$defs")
	_, without := wire.Take(top, "definitions")
	return len(rest) == len(top) && len(without) < len(top) && r.takes("$defs", 0) && !r.takes("definitions", 0)
}

// move puts definitions where the target looks for them, and lets references lead there.
func (r *reducer) move(m *wire.Member, depth int) bool {
	const before = "#/definitions/"
	switch ref, ok := wire.Text(m.Value); {
	case m.Name == "definitions" && depth == 0:
		m.Name = "$defs"
		return true
	case m.Name == "$ref" && ok && strings.HasPrefix(ref, before):
		m.Value = wire.Quote("#/$defs/" + ref[len(before):])
		return true
	}
	return false
}

func (r *reducer) takes(keyword string, depth int) bool {
	if depth == 0 && slices.Contains(r.target.SchemaTop, keyword) {
		return false
	}
	return r.target.Schema == nil || slices.Contains(r.target.Schema, keyword)
}

// drop tells of a keyword that is left out. A schema may hold any number of words that are none.
func (r *reducer) drop(keyword string) {
	const most = 20
	if keyword = short(keyword); len(r.dropped) == most {
		keyword = "and others"
	}
	if len(r.dropped) <= most && !slices.Contains(r.dropped, keyword) {
		r.dropped = append(r.dropped, keyword)
	}
}

// below reduces the schemas that a keyword holds.
func (r *reducer) below(m wire.Member, depth int) content.JSON {
	switch m.Name {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		if !strings.HasPrefix(string(m.Value), "{") {
			r.spoil(m.Name, "no object")
		}
		return r.named(m.Value, depth)
	case "items", "allOf", "anyOf", "oneOf", "prefixItems":
		if strings.HasPrefix(string(m.Value), "[") {
			return r.list(m.Value, depth)
		}
		if m.Name != "items" {
			r.spoil(m.Name, "no list")
		}
		return r.schema(m.Value, depth)
	case "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
		"additionalItems", "contentSchema":
		return r.schema(m.Value, depth)
	}
	return m.Value
}

func (r *reducer) named(j content.JSON, depth int) content.JSON {
	list, err := wire.Members(j)
	if err != nil {
		return j
	}
	changed := false
	for i, m := range list {
		list[i].Value = r.schema(m.Value, depth)
		changed = changed || list[i].Value != m.Value
	}
	if !changed {
		return j
	}
	return wire.Object(list)
}

func (r *reducer) list(j content.JSON, depth int) content.JSON {
	var items []wire.Raw
	if j.Decode(&items) != nil {
		return j
	}
	changed := false
	dst := []byte{'['}
	for _, item := range items {
		reduced := r.schema(content.JSON(item), depth)
		changed = changed || reduced != content.JSON(item)
		dst = append(wire.Separate(dst), reduced...)
	}
	if !changed {
		return j
	}
	return content.JSON(append(dst, ']'))
}
